"""What the policy costs: the share of a table's time that goes into looking for copies of the truth.

python3 dev.py bench tables     writes docs/benchmarks/tables.md

All times are of one process and its processor: a busy machine changes the shares little.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from geoind.files.job import obfuscate_file
from geoind.files.parquet import BATCH_ROWS
from geoind.tables import Recipe, Table, table

OUT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks" / "tables.md"
OPTIONS: dict[str, Any] = {"epsilon": 0.01, "key": bytes(range(32)), "id_column": "trip"}
ROWS = 1 << 20


def places(rng: np.random.Generator) -> dict[str, Any]:
    """Return the columns that every table has."""
    return {
        "trip": rng.integers(0, 1 << 62, ROWS),
        "lon": rng.normal(2.35, 0.05, ROWS),
        "lat": rng.normal(48.86, 0.03, ROWS),
    }


def tables(rng: np.random.Generator) -> dict[str, pa.RecordBatch]:
    """Return tables with few and many columns beside the place."""
    numbers = {
        "fare": rng.gamma(3, 6, ROWS).round(2),
        "speed": rng.uniform(0, 130, ROWS),
        "riders": rng.integers(0, 9, ROWS),
        "paid": rng.random(ROWS) < 0.5,
    }
    texts = {
        "name": [f"trip {row} of week {row % 52}" for row in range(ROWS)],
        "started": [f"2024-05-{1 + row % 28:02}T12:{row % 60:02}:07Z" for row in range(ROWS)],
    }
    wide = {f"sensor_{number}": rng.normal(number, 5, ROWS) for number in range(20)}
    degrees = places(rng)
    written = {name: [f"{value:.6f}" for value in degrees[name]] for name in ("lon", "lat")}
    return {
        "4 columns of numbers": pa.RecordBatch.from_pydict(places(rng) | numbers),
        "4 of numbers, 2 of text": pa.RecordBatch.from_pydict(places(rng) | numbers | texts),
        "24 of numbers, 2 of text": pa.RecordBatch.from_pydict(places(rng) | numbers | texts | wide),
        "the same, degrees as text": pa.RecordBatch.from_pydict(places(rng) | written | numbers | texts | wide),
    }


class Policy:
    """The processor time that goes into the policy while this is entered."""

    def __enter__(self) -> "Policy":
        """Let names, types, values and the order of the rows be looked at under a clock."""
        self.seconds = 0.0
        self._begun = time.process_time()
        self._changed = [
            mock.patch.object(owner, name, self._timed(getattr(owner, name)))
            for owner, name in ((table, "telling_schema"), (Table, "_refuse_telling"))
        ]
        for change in self._changed:
            change.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the clock."""
        self.whole = time.process_time() - self._begun
        for change in self._changed:
            change.stop()

    def _timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **options: Any) -> Any:
            begun = time.process_time()
            try:
                return function(*arguments, **options)
            finally:
                self.seconds += time.process_time() - begun

        return timed


def in_memory(batch: pa.RecordBatch) -> None:
    """Obfuscate a frame."""
    made = Recipe.of(**OPTIONS).table(batch.schema)
    made.report(made.examine(batch))


def line(name: str, batch: pa.RecordBatch, runs: int) -> str:
    """Return one line of the page: nanoseconds per row and the policy's share, in memory and of files."""
    with tempfile.TemporaryDirectory() as folder:
        sources = {Path(folder, f"in.{kind}"): Path(folder, f"out.{kind}") for kind in ("parquet", "csv")}
        for source in sources:
            write = pq.write_table if source.suffix == ".parquet" else csv.write_csv
            write(pa.Table.from_batches([batch]), source)
        works: list[Callable[[], object]] = [lambda: in_memory(batch)]
        works += [partial(obfuscate_file, source, target, **OPTIONS) for source, target in sources.items()]
        cells = []
        for work in works:
            shares, times = [], []
            for _ in range(runs):
                with Policy() as policy:
                    work()
                shares.append(policy.seconds / policy.whole)
                times.append(policy.whole)
            cells.append(f"{min(times) / ROWS * 1e9:.0f} | {np.median(shares):.1%}")
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    measured = [line(name, batch, options.runs) for name, batch in tables(np.random.default_rng(1)).items()]
    text = "\n".join(
        [
            "# The policy of tables: measured",
            "",
            f"`python3 dev.py bench tables`: {ROWS:,} rows with keyed noise, {os.cpu_count()} cores, load average "
            f"{os.getloadavg()[0]:.1f}. A frame is one batch, a file has one per {BATCH_ROWS:,} rows (Parquet) "
            "or per four megabytes (CSV). Nanoseconds of processor per row for all that is done, file to file, "
            f"and the share of it that goes into the policy: the median of {options.runs} runs.",
            "",
            "| columns beside the place | frame, ns | policy | Parquet, ns | policy | CSV, ns | policy |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
            *measured,
            "",
        ]
    )
    OUT.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
