"""A table in memory and in files, next to a plain copy by pyarrow and to the noise alone; what the checks cost.

python3 dev.py bench tables                  1e6 rows; writes docs/benchmarks/tables.md
python3 dev.py bench tables --rows 10000000

All times are seconds of processor of one process, without its start: a busy machine changes them little.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from geoind import EACH_ROW, KeyedRandomness, SphericalLaplace, obfuscate_file
from geoind.tables import obfuscate
from geoind.tables.order import RowOrder
from geoind.tables.table import Table

OUT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks" / "tables.md"
KEY = bytes(range(32))


def tables(rng: np.random.Generator, rows: int) -> dict[str, pa.Table]:
    """Return tables with few and many columns besides the place."""
    places = {
        "trip": np.arange(rows),
        "lon": rng.normal(2.35, 0.05, rows).round(6),
        "lat": rng.normal(48.86, 0.03, rows).round(6),
    }
    numbers = {"fare": rng.gamma(3, 6, rows).round(2), "riders": rng.integers(0, 9, rows)}
    texts = {
        "name": pa.array(rng.integers(0, 52, rows)).cast(pa.string()),
        "started": pa.array(rng.integers(1_700_000_000, 1_750_000_000, rows))
        .cast(pa.timestamp("s"))
        .cast(pa.string()),
    }
    wide = {f"sensor_{number}": rng.normal(number, 5, rows).round(3) for number in range(20)}
    return {
        "2 of numbers": pa.table(places | numbers),
        "2 of numbers, 2 of text": pa.table(places | numbers | texts),
        "22 of numbers, 2 of text": pa.table(places | numbers | texts | wide),
    }


def options_of(table: pa.Table) -> dict[str, Any]:
    """Return the declarations: all columns but the place are kept."""
    kept = [name for name in table.column_names if name not in ("lon", "lat")]
    return {"person": EACH_ROW, "keep": kept, "epsilon": 0.01, "key": KEY, "id_column": "trip"}


def seconds(work: Callable[[], object], runs: int) -> float:
    """Return the least processor time of some runs."""
    times = []
    for _ in range(runs):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return min(times)


def share_of_checks(work: Callable[[], object]) -> float:
    """Return the share of the processor time of the checks: of kept columns, and of the order of the rows."""
    spent, depth = 0.0, 0

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def inner(*arguments: Any, **options: Any) -> Any:
            nonlocal spent, depth
            begun, depth = time.process_time(), depth + 1
            try:
                return function(*arguments, **options)
            finally:
                depth -= 1
                spent += 0 if depth else time.process_time() - begun

        return inner

    checks = [(Table, "refuse_copies"), (RowOrder, "add"), (RowOrder, "finish"), (RowOrder, "refuse")]
    changed = [mock.patch.object(owner, name, timed(getattr(owner, name))) for owner, name in checks]
    for change in changed:
        change.start()
    begun = time.process_time()
    work()
    whole = time.process_time() - begun
    for change in changed:
        change.stop()
    return spent / whole


def line(name: str, table: pa.Table, runs: int) -> str:
    """Return one line of the page."""
    options = options_of(table)
    places = np.column_stack([table["lon"].to_numpy(), table["lat"].to_numpy()])
    labels, noise = table["trip"].to_numpy(), SphericalLaplace(0.01)

    def in_memory() -> None:
        obfuscate(table, **options).read_all()

    drawn = seconds(lambda: noise.sample(places, rng=KeyedRandomness(KEY, labels)), runs)
    cells = [f"{drawn:.2f}", f"{seconds(in_memory, runs):.2f}", f"{share_of_checks(in_memory):.0%}"]
    with tempfile.TemporaryDirectory() as folder:
        for kind, read, write in (
            ("parquet", pq.read_table, pq.write_table),
            ("csv", csv.read_csv, csv.write_csv),
        ):
            source, target = Path(folder, f"in.{kind}"), Path(folder, f"out.{kind}")
            write(table, source)
            copied = seconds(lambda: write(read(source), target), runs)  # noqa: B023
            made = seconds(lambda: obfuscate_file(source, target, **options), runs)  # noqa: B023
            cells += [f"{copied:.2f}", f"{made:.2f}"]
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    made = tables(np.random.default_rng(1), given.rows)
    measured = [line(name, table, given.runs) for name, table in made.items()]
    text = "\n".join(
        [
            "# Tables",
            "",
            f"`python3 dev.py bench tables`: {given.rows:,} rows with keyed noise, {os.cpu_count()} cores, load "
            f"average {os.getloadavg()[0]:.1f}. Seconds of processor, the least of {given.runs} runs, without the "
            "start of Python. The noise alone is drawn for an array under the same key. A copy is the same table "
            "read and written by pyarrow. The checks are those of kept columns and of the order of the rows.",
            "",
            "| columns besides the place | noise alone | in memory | of it checks "
            "| Parquet, copy | Parquet | CSV, copy | CSV |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
            *measured,
            "",
        ]
    )
    OUT.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
