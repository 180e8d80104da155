"""Mutation testing: change the code at random places, one at a time, and run the tests that execute it.

python3 dev.py mutants geoind/channels       tries some mutants of every file and prints those that survive
python3 dev.py mutants FILE ... --count 50   more of them (0: all there are)
python3 dev.py mutants FILE ... --write      also updates the rows of docs/benchmarks/mutants.md

Mutants are made in a copy of the tree. The tests of a file are its doctests, the tests of its folder and what the
table `ALSO` names; one run of all of them records which execute which line. Mutants that behave like the original
are listed with a reason in benchmarks/equivalent_mutants.txt.
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from _mutations import Mutation, mutations_of
from _trials import Knowledge, Loaded, fails, measured

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "docs" / "benchmarks" / "mutants.md"
EQUIVALENT = ROOT / "benchmarks" / "equivalent_mutants.txt"

ALSO = {
    "geoind/keys.py": ["tests/test_known_answers.py", "tests/mechanisms"],
    "geoind/mechanisms": ["tests/test_known_answers.py"],
    "geoind/budgets/ledger.py": ["tests/test_extras.py"],
    "geoind/budgets/same_place.py": ["tests/test_known_answers.py"],
    "geoind/arrays.py": ["tests/test_pipeline.py"],
    "geoind/channels": ["tests/pictures/test_cells.py"],
    "geoind/optimal/problem.py": ["tests/optimal/test_least_loss.py"],
    "geoind/traces/zones.py": ["tests/tables/test_moving.py"],
}
"""More tests than those of the same folder, by the beginning of a path."""

HEAD = """# Mutation testing

`python3 dev.py mutants FILE ... --write` changes the code at random places, one at a time, and runs the tests that
execute the changed line. "Killed" means that a test failed or that the tests took far longer than they should.
Equivalent mutants, which behave like the original for every caller, are listed with a reason in
`benchmarks/equivalent_mutants.txt` and do not count.

The mutants are those of `--seed 1`, and tests were written for the ones that survived: the shares are what is left
of this sample, when the file was tried. Another seed draws new mutants, and how many of them the first run kills
says more. Of those that are not equivalent it killed:

| packages | seeds | killed |
| --- | --- | --- |
| `tables`, `budgets`, `channels` | 9 | 134 of 134 |
| `optimal`: least loss | 9 | 39 of 39 |
| `mechanisms`, `randomness` | 9 to 11 | 163 of 169 |
| the same, all mutants of eleven files and more of four | 12 | 208 of 210 |
| `accounting`, `curator`, `queries` | 1 | 82 of 86 |
| `accounting`, `queries` | 9 | 44 of 47 |
| `traces`, fourteen files | 1 | 63 of 76 |
| `traces`: evaluation, costs, predictive | 1 | 14 of 23 |
| `traces`, the other twelve files, with their nearest tests | 9 | 60 of 66 |
| `traces`, seven of them after that | 10 | 35 of 35 |
| `channels`: extended and interpolated matrices, with their own tests | 13 | 6 of 9 |
| `curator`: noise, `queries`: services, with their own tests | 13 | 9 of 9 |
| `keys`, `mechanisms`: protocol, `accounting`: record, with their nearest tests | 17 | 33 of 38 |
| `tables`: release, `files`: job, writers, likewise | 17 | 22 of 22 |
| `optimal`: seven files, likewise | 17 | 49 of 53 |

All survivors have a test now or are listed as equivalent. Which mutants are equivalent is a judgement, made after
one has survived.

| file | possible | tried | equivalent | killed | share |
| --- | --- | --- | --- | --- | --- |
"""


@dataclass
class Score:
    """Counts of the mutants of one file."""

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
    parser = argparse.ArgumentParser(prog="dev.py mutants", description="Find mutants that no test kills.")
    parser.add_argument("files", nargs="+", type=Path, help="files or folders of the library")
    parser.add_argument("--count", type=int, default=20, help="mutants per file, 0 for all [%(default)s]")
    parser.add_argument("--seed", type=int, default=1, help="[%(default)s]")
    parser.add_argument("--tests", nargs="+", default=[], metavar="TEST", help="these instead of the files' own")
    parser.add_argument("--write", action="store_true", help="update docs/benchmarks/mutants.md")
    options = parser.parse_args()
    named = [path.resolve() for path in options.files]
    paths = [file for path in named for file in ([path] if path.is_file() else sorted(path.rglob("*.py")))]
    files = [str(path.relative_to(ROOT)) for path in paths if mutations_of(path.read_text())]
    scores: dict[str, Score] = {}
    _load_what_tests_load()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder).resolve()
        _copy_tree(copy)
        os.chdir(copy)
        tests = sorted({test for file in files for test in (options.tests or tests_of(file))} | set(files))
        known = measured(files, tests)
        print(f"{len(known.seconds)} tests take {sum(known.seconds.values()):.0f} s", flush=True)
        if known.failed:
            sys.exit("these fail without any mutant: " + ", ".join(known.failed))
        loaded = Loaded(tests, known)
        for file in files:
            scores[file] = try_file(file, loaded, known, chosen=(options.count, options.seed))
            print(scores[file].row(file), flush=True)
            if options.write:
                write_table({file: scores[file]})
        loaded.close()
    columns = zip(*(vars(score).values() for score in scores.values()), strict=True)
    print(Score(*(sum(values) for values in columns)).row("all"))


def try_file(file: str, loaded: Loaded, known: Knowledge, *, chosen: tuple[int, int]) -> Score:
    """Return the counts for some mutants of a file, chosen by (count, seed); print the survivors."""
    path = Path(file)
    source = path.read_text()
    found = mutations_of(source)
    labels, equivalent = _labels(file, found), _equivalent()
    for entry in sorted(equivalent.difference(labels)):
        if entry.startswith(f"{file} ") or not Path(entry.split()[0]).exists():
            print(f"{EQUIVALENT.name} lists a mutant that does not exist: {entry}", flush=True)
    score = Score(len(found))
    count, seed = chosen
    numbers = list(range(len(found)))
    # The same mutants whatever other files are tried.
    random.Random(f"{seed} {file}").shuffle(numbers)
    for number in numbers[: count or None]:
        mutation = found[number]
        score.tried += 1
        if labels[number] in equivalent:
            score.equivalent += 1
            continue
        tree = mutation.apply(source)
        # Processes that a test starts read the file.
        _write(path, ast.unparse(tree))
        inside = mutation.function
        # A computed constant may have no line of its own.
        # What a module does while it loads concerns all tests: a constant may be used in other files alone.
        tests = known.tests_of(file, mutation.lines, inside) if inside else sorted(known.seconds)
        patience = 20 + 5 * sum(known.seconds[test] for test in tests)
        failed = loaded.fails(file, tree, tests, patience) if inside and tests else None
        if failed is None:
            failed = bool(tests) and fails(tests, known, patience)
        _write(path, source)
        if failed:
            score.killed += 1
        else:
            print(f"survived {len(tests)} tests, line {mutation.lines[0]}: {labels[number]}", flush=True)
    return score


def tests_of(file: str) -> list[str]:
    """Return where the tests of a file are."""
    inside = Path(file).relative_to("geoind")
    own = Path("tests") / inside.parent
    # The top folder of the tests holds those of everything.
    folder = own / f"test_{inside.stem}.py" if own == Path("tests") else own
    more = [test for start, tests in ALSO.items() if file.startswith(start) for test in tests]
    return [path for path in (str(folder), *more) if Path(path).exists()]


def _load_what_tests_load() -> None:
    """Import once what every run needs, and nothing of geoind, which changes from run to run."""
    import geopandas  # noqa: F401
    import hypothesis  # noqa: F401
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
    # All runs of pytest clean up the same folder, and an error in that would count as a failed test.
    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(copy)
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
    # Whole or not at all: a run that is ended here would leave the next one an empty table to go on from.
    aside = OUT.with_suffix(".partial")
    aside.write_text(HEAD + "\n".join([*(rows[file] for file in sorted(rows)), total]) + "\n")
    aside.replace(OUT)


if __name__ == "__main__":
    main()
