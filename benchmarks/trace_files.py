"""What traces cost in time: files of them against independent noise, and one report at a time.

python3 dev.py bench trace_files     prints the tables, writes docs/benchmarks/trace_files.md
"""

import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from traces import driver, key, table

from geoind import TraceSession
from geoind.traces import Independent, Predictive, Rationed, SparseVector, Switching, TraceMethod, commuter

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "docs" / "benchmarks" / "trace_files.md"
PERSONS, STEPS, EVERY = 1000, 1000, 300.0
METHODS = ("independent", "sparse", "switching")
REPEATS = 3
KINDS = ("a free step", "a paid step, an answer given before", "a paid step, a fresh report")


def write(path: Path, steps: int, *, by_person: bool) -> None:
    """Write a file of commuters, each at another place: persons one after the other, or mixed by time."""
    times, lonlat = commuter(days=int(np.ceil(steps * EVERY / 86_400)) + 1, every=EVERY)
    shifts = np.random.default_rng(0).normal(0, 0.05, (PERSONS, 2))
    persons, rows = np.meshgrid(np.arange(PERSONS), np.arange(steps), indexing="ij" if by_person else "xy")
    places = lonlat[rows.ravel()] + shifts[persons.ravel()]
    seconds = 1_700_000_000 + times[rows.ravel()].astype(np.int64)
    path.with_name("few.csv").write_text(f"person,time,lat,lon\n0,{seconds[0]},48.85,2.35\n")
    with path.open("w") as file:
        file.write("person,time,lat,lon\n")
        for person, second, (lon, lat) in zip(
            persons.ravel().tolist(), seconds.tolist(), places.tolist(), strict=True
        ):
            file.write(f"{person},{second},{lat:.6f},{lon:.6f}\n")


MEASURE = """
import resource, sys, time
from geoind.cli import main
many, few, target, *options = sys.argv[1:]
main(["obfuscate", few, target, "--epsilon", "0.01", "--quiet", *options])
began = time.process_time()
main(["obfuscate", many, target, "--epsilon", "0.01", "--quiet", *options])
print(time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def obfuscate(source: Path, *options: str) -> tuple[float, int]:
    """Return processor seconds of the command, once Python and the library are there, and peak megabytes."""
    few, target = source.with_name("few.csv"), source.with_name("out.csv")
    command = [sys.executable, "-c", MEASURE, str(source), str(few), str(target), *options]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    return float(output[0]), int(output[1]) // 1024


def files() -> str:
    """Return what a file of traces costs by each method, and by independent noise, in one run."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "in.csv")
        for steps, by_person in ((STEPS // 10, False), (STEPS, False), (STEPS, True)):
            write(source, steps, by_person=by_person)
            noise = min(obfuscate(source, "--order", "keep", "--person", "person") for _ in range(REPEATS))
            layout = "one person after the other" if by_person else "mixed by time"
            rows.append(
                [f"{PERSONS * steps:,}, {layout}", "independent noise, without traces", *_cells(noise, noise)]
            )
            for method in METHODS:
                options = ("--trace", "person,time", "--method", method)
                made = min(obfuscate(source, *options) for _ in range(REPEATS))
                rows.append(["", method, *_cells(made, noise)])
    return table(["rows", "method", "seconds of processor", "times independent noise", "peak MB"], rows)


def _cells(made: tuple[float, int], noise: tuple[float, int]) -> list[str]:
    return [f"{made[0]:.2f}", f"{made[0] / noise[0]:.2f}", f"{made[1]}"]


def one_by_one() -> str:
    """Return microseconds of one report, by what a step does."""
    sparse = SparseVector.for_accuracy(500)
    methods: dict[str, TraceMethod] = {
        "independent": Independent(sparse.fresh),
        "predictive": Predictive.for_accuracy(500),
        "sparse vector, without memory": SparseVector(sparse.fresh, sparse.test, sparse.limit),
        "sparse vector, with memory": sparse,
        "switching": Switching(sparse),
        "rationed sparse vector": Rationed(sparse, per_hour=sum(sparse.max_charges)),
    }
    rows = []
    for name, method in methods.items():
        found = microseconds(method)
        rows.append([name, *(f"{np.median(found[kind]):.0f}" if kind in found else "" for kind in KINDS)])
    return table(["microseconds of one `report`", *KINDS], rows)


def microseconds(method: TraceMethod) -> dict[str, list[float]]:
    """Return the times of all reports about a commuter and a person who never stays, by what the step did."""
    found = defaultdict[str, list[float]](list)
    for times, truth in (commuter(), driver()):
        for number in range(5):
            session = TraceSession(method, key=key(number))
            for moment, (lon, lat) in zip(times.tolist(), truth.tolist(), strict=True):
                charges = session.costs.total()
                began = time.process_time_ns()
                session.report(lat=lat, lon=lon, time=moment)
                took = (time.process_time_ns() - began) / 1000
                *_, fresh = json.loads(session.state())["history"]["reports"][-1]
                found[KINDS[fresh + (session.costs.total() > charges)]].append(took)
    return found


def main() -> None:
    """Measure, print, write."""
    page = f"""# What traces cost in time

Written by `python3 dev.py bench trace_files` on two shared cores.

## Files

CSV to CSV, {PERSONS:,} commuters with a position every five minutes. Processor time of the command without the
start of Python, which takes longer than a million rows: the best of {REPEATS}. `independent noise` is
`geoind obfuscate --person person` on the same file,
which answers each row on its own; the others are `--trace person,time --method ...`.

{files()}

## One report

Without a ledger: medians of the processor time of single calls, of a commuter's week and of a day of a person who
never stays, under five keys each. A free step repeats the last answer.

{one_by_one()}
"""
    OUT.write_text(page)
    print(page)


if __name__ == "__main__":
    main()
