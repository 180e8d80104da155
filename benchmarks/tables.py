"""What the policy costs: the share of a batch's time that goes into looking for copies of the truth.

python3 dev.py bench tables     writes docs/benchmarks/tables.md

Each number is the least time of many runs in one process: a busy machine changes the shares little.
"""

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from geoind.tables import Recipe, Table

OUT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks" / "tables.md"
KEY = bytes(range(32))
ROWS = 1 << 17


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


def least(work: Callable[[], object], runs: int) -> float:
    """Return the seconds of the fastest run."""
    times = []
    for _ in range(runs):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def line(name: str, batch: pa.RecordBatch, runs: int) -> tuple[str, float]:
    """Return one line of the table, and the share of the policy."""
    recipe = Recipe.of(epsilon=0.01, key=KEY, id_column="trip")
    table = recipe.table(batch.schema)
    examined = table.examine(batch)
    whole = least(lambda: (recipe.table(batch.schema), table.report(table.examine(batch))), runs)
    policy = least(lambda: policy_alone(recipe, table, batch, examined), runs)
    share = policy / whole
    return f"| {name} | {whole / ROWS * 1e9:.0f} | {policy / ROWS * 1e9:.1f} | {share:.1%} |", share


def policy_alone(recipe: Recipe, table: Table, batch: pa.RecordBatch, examined: Any) -> None:
    """Do what a table without the policy would not do: names, types, values and the order of the rows."""
    recipe.table(batch.schema)
    table._refuse_telling(batch, examined.rows, examined.truths, None)


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=60)
    options = parser.parse_args()
    measured = [line(name, batch, options.runs) for name, batch in tables(np.random.default_rng(1)).items()]
    text = "\n".join(
        [
            "# The policy of tables: measured",
            "",
            f"`python3 dev.py bench tables`: batches of {ROWS:,} rows with keyed noise, {os.cpu_count()} cores, "
            f"load average {os.getloadavg()[0]:.1f}. Processor time per row, the least of {options.runs} runs.",
            "",
            "| columns beside the place | all, ns | policy, ns | share |",
            "| --- | ---: | ---: | ---: |",
            *(text for text, _ in measured),
            "",
        ]
    )
    OUT.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
