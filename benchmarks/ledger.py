"""What a charge and a private query cost, as ratios against named baselines in the same run.

python3 dev.py bench ledger          prints the table and writes docs/benchmarks/ledger.md
"""

import math
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from core import least_times

from geoind import Ledger, SamePlace, SphericalLaplace, obfuscate, private_query
from geoind.accounting import Promise

EPSILON = math.log(4) / 200
TRUTH: dict[str, Any] = {"lat": 48.8584, "lon": 2.2945}
ROUNDS = 300
CROWD = 10_000
OUT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks" / "ledger.md"


def bare_commit(path: Path) -> Callable[[], object]:
    """Return the least that a durable charge can be: one row, inserted and synchronised with the disk."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE charge (person TEXT, units INTEGER)")
    return lambda: connection.execute("INSERT INTO charge VALUES ('ana', 1)")


def seconds(job: Callable[[], object]) -> float:
    """Return how long a job takes, once."""
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def main() -> None:
    """Measure, print, write."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(f"sqlite:///{folder}/ledger.db", budget=999)
        promise = Promise(level=1000, radius=200, delta=1e-5)
        accounted = Ledger(f"sqlite:///{folder}/accounted.db", budget=promise)
        globe = SphericalLaplace(EPSILON)
        accounted.charge("ana", globe)  # what the accountant computes once for a mechanism
        crowd = [f"person {number}" for number in range(CROWD)]
        memory = SamePlace(os.urandom(32))
        places = np.random.default_rng(0).normal([2.2945, 48.8584], 0.02, (10_000, 2))
        query = private_query(**TRUTH, radius=300, epsilon=EPSILON)
        charges = least_times(
            {
                "one durable row, bare sqlite3": bare_commit(Path(folder) / "bare.db"),
                "`ledger.charge`": lambda: ledger.charge("ana", 1e-6),
                "`ledger.charge` of a known token": lambda: ledger.charge("ben", 1e-6, once="home"),
                "`ledger.charge_counts` against a `Promise`": lambda: accounted.charge_counts({"ana": 1}, globe),
            },
            ROUNDS,
        )
        queries = least_times(
            {
                "`obfuscate` without a ledger": lambda: obfuscate(**TRUTH, epsilon=EPSILON),
                "`private_query` without a ledger": lambda: private_query(**TRUTH, radius=300, epsilon=EPSILON),
                "`SamePlace.obfuscate`": lambda: memory.obfuscate(**TRUTH, epsilon=EPSILON, person_id="ana"),
                "`refine` of 10 000 places": lambda: query.refine(places),
            },
            ROUNDS,
        )
        batch = least_times({"batch": lambda: ledger.charge_counts(dict.fromkeys(crowd, 1), 1e-6)}, 3)["batch"]
        levels = [seconds(lambda: accounted.charge("ben", globe)) for _ in range(100)]
        ledger.close()
        accounted.close()
    lines = ["# What charges and queries cost", "", "The least of 300 rounds; the jobs of a table take turns.", ""]
    for times in (charges, queries):
        base = next(iter(times.values()))
        lines += ["| | microseconds | ratio |", "| --- | --- | --- |"]
        lines += [f"| {name} | {1e6 * taken:.0f} | {taken / base:.1f} |" for name, taken in times.items()]
        lines += [""]
    share = batch / CROWD / charges["`ledger.charge`"]
    ratio = statistics.median(levels) / charges["`ledger.charge`"]
    lines += [
        "`ledger.charge` also returns what remains. For a `Promise` the accountant computes that for every new",
        f"number of reports: {ratio:.0f} times a single charge (median of {len(levels)}).",
        "",
    ]
    lines += [f"A batch of {CROWD:,} persons costs {share:.3f} of a single charge per person.", ""]
    OUT.write_text("\n".join(lines))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
