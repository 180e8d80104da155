"""Would the tests notice? Break the code at random places, one at a time, and run the tests that belong to it.

python3 dev.py mutants geoind/channels       tries some mutants of every file and prints those that nobody noticed
python3 dev.py mutants FILE ... --count 50   more of them (0: all there are)
python3 dev.py mutants FILE ... --near       without the other tests of the folder, which take their time
python3 dev.py mutants FILE ... --write      also updates the rows of docs/benchmarks/mutants.md

Mutants are made in a copy of the tree. Each runs in a process of its own: first the file's doctests, then the test
of its name, what the table `ALSO` names, and the folder of its tests. Mutants that change nothing a caller can see
are listed with a reason in benchmarks/equivalent_mutants.txt.
"""

import argparse
import contextlib
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from _mutations import Mutation, mutations_of

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "docs" / "benchmarks" / "mutants.md"
EQUIVALENT = ROOT / "benchmarks" / "equivalent_mutants.txt"

ALSO = {
    "geoind/randomness.py": ["tests/test_known_answers.py", "tests/mechanisms"],
    "geoind/mechanisms/globe.py": ["tests/mechanisms/test_sphere.py"],
    "geoind/mechanisms/planar.py": ["tests/mechanisms/test_laplace.py"],
    "geoind/channels/draws.py": ["tests/channels/test_channel.py"],
    "geoind/arrays.py": ["tests/test_pipeline.py"],
    "geoind/channels/channel.py": ["tests/channels/test_tightness.py"],
    "geoind/channels/stencil.py": ["tests/channels/test_discretise.py", "tests/channels/test_formulas.py"],
    "geoind/channels/tightness.py": ["tests/channels/test_channel.py"],
    "geoind/channels/posterior_remap.py": ["tests/channels/test_remap.py"],
    "geoind/optimal/least_loss/interior.py": ["tests/optimal/least_loss/test_optimum.py"],
    "geoind/optimal/expost.py": ["tests/optimal/least_loss/test_near.py"],
}
"""Tests beside the one of the same name, by the beginning of the path."""

MEMORY = 6 * 2**30
"""Bytes that a mutant may take: some of them ask for all there is."""

HEAD = """# Would the tests notice?

`python3 dev.py mutants FILE ... --write` breaks the code at random places, one at a time, and runs the tests that
belong to it. "Killed" means that a test failed or that the tests took far longer than they should. Equivalent
mutants, which no caller could tell from the original, are listed with a reason in
`benchmarks/equivalent_mutants.txt` and do not count.

| file | possible | tried | equivalent | killed | share |
| --- | --- | --- | --- | --- | --- |
"""


@dataclass
class Score:
    """What became of the mutants of one file."""

    possible: int
    tried: int = 0
    equivalent: int = 0
    killed: int = 0

    def row(self, file: str) -> str:
        """Return the table's row."""
        counted = self.tried - self.equivalent
        share = f"{100 * self.killed / counted:.1f} %" if counted else "-"
        return f"| `{file}` | {self.possible} | {self.tried} | {self.equivalent} | {self.killed} | {share} |"


def main() -> None:
    """Try mutants of the named files."""
    parser = argparse.ArgumentParser(prog="dev.py mutants", description="Find mutants that no test notices.")
    parser.add_argument("files", nargs="+", type=Path, help="files or folders of the library")
    parser.add_argument("--count", type=int, default=20, help="mutants per file, 0 for all [%(default)s]")
    parser.add_argument("--seed", type=int, default=1, help="[%(default)s]")
    parser.add_argument("--near", action="store_true", help="run the closest tests only")
    parser.add_argument("--write", action="store_true", help="update docs/benchmarks/mutants.md")
    options = parser.parse_args()
    named = [path.resolve() for path in options.files]
    files = [file for path in named for file in ([path] if path.is_file() else sorted(path.rglob("*.py")))]
    known = _equivalent()
    _load_what_tests_load()
    scores = {}
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        _copy_tree(copy)
        os.chdir(copy)
        for file in (str(file.relative_to(ROOT)) for file in files):
            tests = tests_of(copy, file, near=options.near)
            score = try_file(copy, file, tests, chosen=(options.count, options.seed), known=known)
            if score.tried:
                scores[file] = score
                print(score.row(file), flush=True)
    total = Score(
        *(sum(values) for values in zip(*(vars(score).values() for score in scores.values()), strict=True))
    )
    print(total.row("all"))
    if options.write:
        write_table(scores)


def try_file(copy: Path, file: str, tests: list[str], *, chosen: tuple[int, int], known: set[str]) -> Score:
    """Return what became of some mutants of a file, chosen by (count, seed); print those that nobody noticed."""
    source = (copy / file).read_text()
    found = mutations_of(source)
    labels = _labels(file, found)
    score = Score(len(found))
    count, seed = chosen
    numbers = list(range(len(found)))
    # The same mutants whatever other files are tried.
    random.Random(f"{seed} {file}").shuffle(numbers)
    if not numbers or not tests:
        return score
    patience = 10 + 4 * sum(duration_of(test) for test in tests)
    for number in numbers[: count or None]:
        score.tried += 1
        if labels[number] in known:
            score.equivalent += 1
            continue
        _write(copy / file, found[number].apply(source))
        if run_tests(tests, patience):
            score.killed += 1
        else:
            print(f"survived, line {found[number].line}: {labels[number]}", flush=True)
    _write(copy / file, source)
    return score


@cache
def duration_of(test: str) -> float:
    """Return how long a test takes without any mutant, which it must survive."""
    began = time.perf_counter()
    if run_tests([test], 1800.0):
        sys.exit(f"{test} fails without any mutant")
    return time.perf_counter() - began


def tests_of(copy: Path, file: str, *, near: bool) -> list[str]:
    """Return the tests that belong to a file, the closest ones first."""
    inside = Path(file).relative_to("geoind")
    named = Path("tests") / inside.parent / f"test_{inside.stem}.py"
    more = [test for start, tests in ALSO.items() if file.startswith(start) for test in tests]
    # The top folder of the tests holds those of everything.
    folder = [] if near or named.parent == Path("tests") else [str(named.parent)]
    wanted = [file, str(named), *more, *folder]
    return list(dict.fromkeys(path for path in wanted if (copy / path).exists()))


def run_tests(tests: list[str], patience: float) -> bool:
    """Return whether a test fails, or more time or memory is taken than is good."""
    child = os.fork()
    if not child:
        _run_in_child(tests)
    end = time.monotonic() + patience
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status != 0
        time.sleep(0.02)
    # The child leads a group of its own: whatever it started ends with it.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def _run_in_child(tests: list[str]) -> None:
    code = 1
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        import pytest

        code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=1", *tests]))
    finally:
        os._exit(code)


def _load_what_tests_load() -> None:
    """Import once what every run needs, and nothing of geoind, which changes from run to run."""
    import geopandas  # noqa: F401
    import pytest  # noqa: F401
    import scipy.stats  # noqa: F401

    loaded = [name for name in sys.modules if name.split(".")[0] == "geoind"]
    if loaded:
        sys.exit(f"{loaded[0]} must not be loaded yet")


def _copy_tree(copy: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy / name)
    sys.path[:] = [str(copy), *(path for path in sys.path if path not in ("", str(ROOT)))]
    os.environ["PYTHONPATH"] = str(copy)
    # Bytecode is trusted by time and size: a mutant of the same second and size would go unseen.
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


def _write(path: Path, text: str) -> None:
    path.write_text(text)
    shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)


def _labels(file: str, found: list[Mutation]) -> list[str]:
    """Return a name for each mutant that stays when lines move; equal ones in a function are numbered."""
    seen: Counter[str] = Counter()
    labels = []
    for mutation in found:
        plain = f"{file} {mutation.where}: {mutation.what}"
        seen[plain] += 1
        labels.append(plain if seen[plain] == 1 else f"{plain} #{seen[plain]}")
    return labels


def _equivalent() -> set[str]:
    if not EQUIVALENT.exists():
        return set()
    lines = (line.strip() for line in EQUIVALENT.read_text().splitlines())
    return {line for line in lines if line and not line.startswith("#")}


def write_table(scores: dict[str, Score]) -> None:
    """Replace the rows of these files in the table, keep the others, and sum them up."""
    rows = {}
    if OUT.exists():
        for line in OUT.read_text().splitlines():
            if line.startswith("| `geoind/"):
                rows[line.split("`")[1]] = line
    rows = {file: row for file, row in rows.items() if (ROOT / file).exists()}
    rows |= {file: score.row(file) for file, score in scores.items()}
    numbers = [[int(part) for part in row.split("|")[2:6]] for row in rows.values()]
    total = Score(*(sum(column) for column in zip(*numbers, strict=True))).row("all").replace("`", "**")
    OUT.write_text(HEAD + "\n".join([*(rows[file] for file in sorted(rows)), total]) + "\n")


if __name__ == "__main__":
    main()
