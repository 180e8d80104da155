"""A missing extra: one sentence, exit code 2, and nothing is computed before."""

import ast
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import geoind
from geoind import Grid, Prior
from geoind.cli import command_parsers, main
from geoind.errors import MissingExtraError
from geoind.extras import EXTRAS, require
from geoind.queries import plot_retrieval_radius
from geoind.space import CellSites
from geoind.space.raster_files import read_raster
from tests.docs.pages import PAGES, name_of

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
GRID = Grid(0, 0, cell=100, columns=3, rows=1)
UNIFORM = Prior.uniform(GRID)


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without extras, and an empty folder with two files: true places and reports."""
    for package in EXTRAS:
        for loaded in [name for name in sys.modules if name.split(".")[0] == package]:
            monkeypatch.delitem(sys.modules, loaded)
        monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.chdir(tmp_path)
    rows = ["ana,48.8584,2.2945", "ben,48.8421,2.3219"] * 50
    Path("places.csv").write_text("\n".join(["person,lat,lon", *Random(1).sample(rows, 100)]) + "\n")
    return tmp_path


def says_what_is_missing(text: str, extra: str) -> bool:
    return (
        re.fullmatch(rf'.* needs .*: pip install "\.\[{extra}\]" in a clone of geoind', text.strip()) is not None
    )


# Commands

PRIVACY = ["--level", "1.386", "--radius", "200"]
EACH = ["--each-row-a-person"]
ESTIMATE = ["estimate", "reports.csv", "--grid", "500", "--quiet", "--out"]
WORKS = {
    "obfuscate": ["obfuscate", "places.csv", "other.csv", *PRIVACY, *EACH],
    "map": ["map", "reports.csv"],
    "assess": ["assess", "reports.csv"],
    "estimate": [*ESTIMATE, "people.geojson", "--out", "p.html", "--out", "p.parquet", "--out", "p.csv"],
    "explain": ["explain", *PRIVACY],
    "audit": ["audit", *PRIVACY, "--draws", "2000"],
    "optimal": ["optimal", *PRIVACY, "--columns", "3", "--rows", "3", "--cell", "100", "--out", "best.parquet"],
    "example": ["example", "--people", "100"],
    "extension": ["extension", "--out", "extension"],
}
CHARGED = ["--person", "person", "--ledger", "sqlite:///budgets.db", "--budget", "1"]
NEEDS = {
    "obfuscate with a ledger": (["obfuscate", "places.csv", "other.csv", *PRIVACY, *CHARGED], "ledger"),
    "estimate a picture": ([*ESTIMATE, "people.csv", "--out", "people.png"], "evaluation"),
    "evaluate a page": (["evaluate", "--prior", "city", "--out", "page.html"], "evaluation"),
    "demo": (["demo", "--no-browser"], "demo"),
    "demo elsewhere": (["demo", "--no-browser", "--basemap", "places.csv"], "demo"),
}


def test_every_command_is_tried_without_extras() -> None:
    assert {*WORKS, *(words.split()[0] for words in NEEDS)} == {*command_parsers()}


@pytest.mark.slow
@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("name", WORKS)
def test_a_command_that_needs_no_extra_works_without_any(name: str) -> None:
    assert main(["obfuscate", "places.csv", "reports.csv", *PRIVACY, *EACH]) == 0
    assert main(WORKS[name]) == 0


@pytest.mark.parametrize("name", NEEDS)
def test_a_command_that_needs_an_extra_says_so_before_it_computes(
    plain: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def computes(*_: Any, **__: Any) -> None:
        pytest.fail("it computed first")

    for place in ("geoind.cli.estimate.read_reports", "geoind.cli.evaluate.evaluate"):
        monkeypatch.setattr(place, computes)
    arguments, extra = NEEDS[name]
    before = sorted(plain.iterdir())
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("geoind: ")
    assert says_what_is_missing(printed.err, extra)
    assert sorted(plain.iterdir()) == before


# Functions


def _write_report(folder: Path) -> None:
    from geoind.evaluation.report import write_report

    write_report(None, folder / "page.html")  # type: ignore[arg-type]


def _draw_priors(_: Path) -> None:
    from geoind.evaluation import PAPER_SETTING
    from geoind.evaluation.figures import draw_priors

    draw_priors(PAPER_SETTING)


def _save_population(folder: Path) -> None:
    from geoind.maps import save_population

    save_population(UNIFORM, folder / "p.png", projection=geoind.Projection(2.35, 48.86))


def _earth_movers_distance(_: Path) -> None:
    from geoind.estimate import earth_movers_distance

    earth_movers_distance(UNIFORM, UNIFORM)


def _read_basemap(_: Path) -> None:
    from geoind.maps import read_basemap

    read_basemap()


FUNCTIONS: dict[str, tuple[Callable[[Path], object], str]] = {
    "plot_retrieval_radius": (lambda _: plot_retrieval_radius(300), "evaluation"),
    "write_report": (_write_report, "evaluation"),
    "draw_priors": (_draw_priors, "evaluation"),
    "save_population": (_save_population, "evaluation"),
    "CellSites": (lambda _: CellSites(["881fb4662dfffff"]), "h3"),
    "Prior.plot": (lambda _: UNIFORM.plot(), "evaluation"),
    "Channel.plot": (lambda _: geoind.geometric(3, epsilon=1.0).plot(), "evaluation"),
    "AuditResult.plot": (
        lambda _: geoind.audit(geoind.PlanarLaplace(0.01), draws=1000, rng=1).plot(),
        "evaluation",
    ),
    "earth_movers_distance": (_earth_movers_distance, "estimate"),
    "Ledger": (lambda _: geoind.Ledger("sqlite://", budget=1), "ledger"),
    "read_basemap": (_read_basemap, "demo"),
    "read_raster": (lambda folder: read_raster(folder / "people.tif"), "raster"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_that_needs_an_extra_says_so(plain: Path, name: str) -> None:
    call, extra = FUNCTIONS[name]
    with pytest.raises(MissingExtraError) as caught:
        call(plain)
    assert says_what_is_missing(str(caught.value), extra)


def test_a_ledger_in_postgresql_names_its_own_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError) as caught:
        geoind.Ledger("postgresql://user@host/budgets", budget=1)
    assert says_what_is_missing(str(caught.value), "postgres")


@pytest.mark.usefixtures("plain")
def test_a_ledger_in_postgresql_names_all_that_is_missing_at_once() -> None:
    with pytest.raises(MissingExtraError) as caught:
        geoind.Ledger("postgresql://user@host/budgets", budget=1)
    assert says_what_is_missing(str(caught.value), "ledger,postgres")


@pytest.mark.usefixtures("plain")
def test_populations_can_be_compared_without_the_extra_when_the_sliced_distance_will_do() -> None:
    from geoind.estimate import earth_movers_distance

    assert earth_movers_distance(UNIFORM, Prior(GRID, [1.0, 0.0, 0.0]), exact=False) == pytest.approx(
        100, rel=1e-3
    )


# The table itself


def requirements(extra: str) -> set[str]:
    """Return the names of what pyproject.toml lists under an extra."""
    return {re.split(r"[\[>=;]", line)[0].lower() for line in PROJECT["optional-dependencies"][extra]}


@pytest.mark.parametrize("package", EXTRAS)
def test_the_extra_installs_the_package(package: str) -> None:
    distribution = {"ot": "pot", "dask_geopandas": "dask-geopandas"}.get(package, package)
    assert distribution in requirements(EXTRAS[package])
    assert distribution not in {re.split(r"[\[>=;]", line)[0].lower() for line in PROJECT["dependencies"]}


@pytest.mark.usefixtures("plain")
def test_several_missing_packages_are_one_sentence() -> None:
    with pytest.raises(MissingExtraError, match=r'the demo needs FastAPI and uvicorn: pip install "\.\[demo\]"'):
        require("the demo", "fastapi", "uvicorn")


def names(node: ast.AST) -> list[str]:
    """Return the modules that a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []


@pytest.mark.parametrize("part", sorted(path.name for path in (ROOT / "geoind").iterdir() if path.is_dir()))
def test_a_part_that_imports_a_package_of_an_extra_asks_for_it(part: str) -> None:
    trees = [ast.parse(path.read_text()) for path in (ROOT / "geoind" / part).rglob("*.py")]
    # What only type checkers read is not imported.
    for tree in trees:
        tree.body = [
            line
            for line in tree.body
            if not (isinstance(line, ast.If) and ast.unparse(line.test) == "TYPE_CHECKING")
        ]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    # The frames and sessions of Spark are made by Spark, so it is installed.
    imported = {found.split(".")[0] for node in nodes for found in names(node)} - {"pyspark"}
    asked = [
        ast.unparse(node)
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "require"
    ]
    for package in imported & {*EXTRAS}:
        assert any(re.match(rf"require\(.*'{package}'", call) for call in asked), package


def test_the_docs_install_from_a_clone_because_no_index_has_geoind() -> None:
    for document in PAGES:
        text = document.read_text()
        assert not re.search(r"pip install '?\"?geoind", text), name_of(document)
        for extras in re.findall(r'pip install "\.\[([a-z,]+)\]"', text):
            assert {*extras.split(",")} <= {*PROJECT["optional-dependencies"]}, name_of(document)
