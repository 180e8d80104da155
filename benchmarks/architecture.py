"""Measure the structure of geoind: its size, its layers, and the files that a call runs through.

python3 dev.py bench architecture           print the size and the walks
python3 dev.py bench architecture --write   also update docs/architecture.md and docs/figures/architecture.svg

A walk is one use of the library, in a process of its own. A file counts if one of its functions runs; what runs
while a module is imported does not count.
"""

import argparse
import ast
import re
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "architecture.md"
FIGURE = ROOT / "docs" / "figures" / "architecture.svg"
WALKED = (f"{ROOT / 'geoind'}/", f"{ROOT / 'webdemo'}/")
TABLES = ("tables", "files", "adapters", "cli")
SERVICES = ("geoind/pipeline.py",)
"""Modules of the top folder that are not of the base layer."""

Walk = Callable[[], object]


class Visited:
    """Record the files whose functions run, in the order of their first call."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        self._threads = threading.local()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Count a call, unless a module is being imported in this thread."""
        code = frame.f_code
        importing = getattr(self._threads, "importing", 0)
        if code.co_name == "<module>" and event in ("call", "return"):
            self._threads.importing = importing + (1 if event == "call" else -1)
        elif event == "call" and not importing and code.co_filename.startswith(WALKED):
            self.files.setdefault(str(Path(code.co_filename).relative_to(ROOT)))

    def during(self, walk: Walk) -> list[str]:
        """Return the files that a walk visits, in all threads."""
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            walk()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        return list(self.files)


def scalar_call(_: Path) -> Walk:
    """Obfuscate one place."""
    import geoind

    return lambda: geoind.obfuscate(lat=48.8584, lon=2.2945, epsilon=0.01)


def one_csv(folder: Path) -> Walk:
    """Obfuscate a CSV file on the command line."""
    from geoind.cli import main

    _places(folder / "places.csv")
    return lambda: _succeeds(main(_command(folder / "places.csv", folder / "reports.csv")))


def one_folder(folder: Path) -> Walk:
    """Obfuscate a folder of two CSV files on the command line."""
    from geoind.cli import main

    (folder / "places").mkdir()
    for name in ("may.csv", "june.csv"):
        _places(folder / "places" / name)
    return lambda: _succeeds(main(_command(folder / "places", folder / "reports")))


def one_solve(_: Path) -> Walk:
    """Solve for the optimal mechanism on 25 cells."""
    import geoind

    prior = geoind.Prior.uniform(geoind.Grid(0, 0, cell=100, columns=5, rows=5))
    return lambda: geoind.min_loss_given_epsilon(prior, epsilon=0.01)


def session_step(_: Path) -> Walk:
    """Answer the second position of a person who moves."""
    from geoind import TraceSession
    from geoind.traces import SparseVector

    session = TraceSession(SparseVector(fresh=0.01, test=0.02, limit=3000))
    session.report(lat=48.8584, lon=2.2945, time=0.0)
    return lambda: session.report(lat=48.8589, lon=2.2951, time=60.0)


def demo_click(_: Path) -> Walk:
    """Click on the map of the demo's first tab."""
    from fastapi.testclient import TestClient

    from webdemo.app import create_app

    client = TestClient(create_app(), base_url="http://127.0.0.1")
    click = {"lat": 60.17, "lon": 24.94, "factor": 4, "radius": 200}
    return lambda: client.post("/api/explore", json=click).raise_for_status()


WALKS = {
    "scalar": scalar_call,
    "csv": one_csv,
    "folder": one_folder,
    "solve": one_solve,
    "session": session_step,
    "click": demo_click,
}


def _places(path: Path) -> None:
    rows = "".join(f"place {number},{48.8 + (7919 * number % 97) / 1000},2.3\n" for number in range(100))
    path.write_text(f"name,lat,lon\n{rows}")


def _command(source: Path, target: Path) -> list[str]:
    declared = ["--each-row-a-person", "--keep", "name", "--order", "keep", "--level", "1.386", "--radius", "200"]
    return ["obfuscate", str(source), str(target), *declared]


def _succeeds(code: int) -> None:
    if code:
        sys.exit(f"the command line ended with {code}")


def files_of(walk: str) -> list[str]:
    """Return the files of a walk, measured in a new process."""
    command = [sys.executable, __file__, "--walk", walk]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        sys.exit(f"the walk {walk} failed:\n{done.stderr}")
    return [line.removeprefix("visited ") for line in done.stdout.splitlines() if line.startswith("visited ")]


def code_lines(path: Path) -> int:
    """Return the number of lines that are neither blank, nor a comment, nor a docstring."""
    source = path.read_text()
    texts: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            texts |= {*range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    lines = [line.strip() for line in source.splitlines()]
    return sum(
        bool(line) and not line.startswith("#") and number not in texts for number, line in enumerate(lines, 1)
    )


def layers() -> list[list[str]]:
    """Return the packages of each layer, highest first, as import-linter checks them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    rows: list[str] = settings["contracts"][0]["layers"]
    return [[name.strip() for name in row.split(":") if name.strip() != "__main__"] for row in rows]


def lines_of(package: str) -> int:
    """Return the lines of code of a package or module of the library."""
    path = ROOT / "geoind" / package
    return sum(map(code_lines, path.rglob("*.py"))) if path.is_dir() else code_lines(path.with_suffix(".py"))


def sizes(found: dict[str, list[str]]) -> dict[str, int]:
    """Return the numbers of the table of sizes, by their rows, from the files of each walk."""
    sources = sorted((ROOT / "geoind").rglob("*.py"))
    nodes = (node for path in sources for node in ast.walk(ast.parse(path.read_text())))
    return {
        "lines of code": sum(map(code_lines, sources)),
        "of them in `tables/`, `files/`, `adapters/` and `cli/`": sum(map(lines_of, TABLES)),
        "public classes": sum(isinstance(node, ast.ClassDef) and not node.name.startswith("_") for node in nodes),
        "names at the top": (ROOT / "geoind" / "__init__.pyi").read_text().count(" as ") - 1,
        "import layers": len(layers()),
        "files in the walk of a CSV file": len(found["csv"]),
        "of them above the base layer": sum(file.count("/") > 1 or file in SERVICES for file in found["csv"]),
    }


def draw() -> None:
    """Draw the layers, each package with its lines of code."""
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "architecture"
    rows = layers()
    box = {"boxstyle": "round,pad=0.4", "facecolor": "#dbe9f6", "edgecolor": "#3b5b7a", "linewidth": 0.8}
    figure, axes = plt.subplots(figsize=(11, 0.9 * len(rows)))
    for height, row in enumerate(reversed(rows)):
        for number, name in enumerate(row):
            axes.text(
                number - (len(row) - 1) / 2,
                height,
                f"{name}\n{lines_of(name):,}",
                ha="center",
                va="center",
                fontsize=8.5,
                bbox=box,
            )
        axes.text(-5.2, height, str(height + 1), ha="center", va="center", fontsize=10, color="#555555")
    axes.set_xlim(-5.4, 5)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.axis("off")
    figure.savefig(FIGURE, bbox_inches="tight", metadata={"Date": None})
    print(f"wrote {FIGURE.relative_to(ROOT)}")


def write_page(found: dict[str, list[str]]) -> None:
    """Replace the list of walks in the page, and the last column of the table of sizes."""
    rows = [f"| {_title(name)} | {len(files)} | {_listed(files)} |" for name, files in found.items()]
    table = "\n".join(["| walk | files | in the order of their first call |", "| --- | ---: | --- |", *rows])
    before, _, rest = PAGE.read_text().partition("<!-- walks -->\n")
    page = f"{before}<!-- walks -->\n{table}\n<!-- /walks -->{rest.partition('<!-- /walks -->')[2]}"
    for row, number in sizes(found).items():
        page, times = re.subn(
            rf"^(\| {re.escape(row)} \|.*\| )[\d,]+ \|$", rf"\g<1>{number:,} |", page, flags=re.M
        )
        if times != 1:
            sys.exit(f"the table of sizes must have one row {row!r}")
    PAGE.write_text(page)
    print(f"wrote {PAGE.relative_to(ROOT)}")


def _title(name: str) -> str:
    return (WALKS[name].__doc__ or name).rstrip(".")


def _listed(files: list[str]) -> str:
    return ", ".join(f"`{file.removeprefix('geoind/').removesuffix('.py')}`" for file in files)


def main() -> None:
    """Measure, print, and write if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--walk", choices=WALKS, help="print the files of one walk only")
    parser.add_argument("--write", action="store_true", help="update the page and the picture")
    options = parser.parse_args()
    if options.walk:
        with tempfile.TemporaryDirectory() as folder:
            files = Visited().during(WALKS[options.walk](Path(folder)))
        print(*(f"visited {file}" for file in files), sep="\n")
        return
    found = {name: files_of(name) for name in WALKS}
    print(*(f"{row}: {number:,}" for row, number in sizes(found).items()), sep="\n")
    for name, files in found.items():
        print(f"\n{_title(name)}: {len(files)} files", *files, sep="\n  ")
    if options.write:
        draw()
        write_page(found)


if __name__ == "__main__":
    main()
