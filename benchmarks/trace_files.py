"""What traces cost in time: files of them against independent noise, and one report at a time.

python3 dev.py bench trace_files     prints the tables, writes docs/benchmarks/trace_files.md
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from traces import driver, key, replay, table

from geoind import TraceSession
from geoind.arrays import FloatArray
from geoind.traces import Independent, Predictive, SparseVector, Switching, TraceMethod, commuter

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "docs" / "benchmarks" / "trace_files.md"
PERSONS, STEPS, EVERY = 1000, 1000, 300.0
METHODS = ("independent", "sparse", "switching")
REPEATS = 3


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
    """Return microseconds of one report, of a person who stays and of one who never does."""
    sparse = SparseVector.for_accuracy(500)
    methods: dict[str, TraceMethod] = {
        "independent": Independent(sparse.fresh),
        "predictive": Predictive.for_accuracy(500),
        "sparse vector, without memory": SparseVector(sparse.fresh, sparse.test, sparse.limit),
        "sparse vector, with memory": sparse,
        "switching": Switching(sparse),
    }
    traces = (commuter(), driver())
    rows = [
        [name, *(f"{microseconds(method, *trace):.0f}" for trace in traces)] for name, method in methods.items()
    ]
    return table(["microseconds of one `report`", "a commuter", "a person who never stays"], rows)


def microseconds(method: TraceMethod, times: FloatArray, truth: FloatArray) -> float:
    """Return the time of one report: the best of some runs, because others use this computer, too."""
    best = np.inf
    for number in range(5):
        session = TraceSession(method, key=key(number))
        began = time.process_time()
        replay(session, times, truth)
        best = min(best, (time.process_time() - began) / len(times))
    return float(best * 1e6)


def main() -> None:
    """Measure, print, write."""
    page = f"""# What traces cost in time

Written by `python3 dev.py bench trace_files`, all in one run on two shared cores.

## Files

CSV to CSV, {PERSONS:,} commuters with a position every five minutes. Processor time of the command without the
start of Python, which takes longer than a million rows: the best of {REPEATS}. `independent noise` is
`geoind obfuscate --person person` on the same file,
which answers each row on its own; the others are `--trace person,time --method ...`.

{files()}

## One report

Without a ledger, in processor time.

{one_by_one()}
"""
    OUT.write_text(page)
    print(page)


if __name__ == "__main__":
    main()
