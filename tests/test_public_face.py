"""What `import geoind` gives and what it leaves alone."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

import geoind

ROOT = Path(geoind.__file__).resolve().parent.parent

HEAVY = [
    "pandas",
    "geopandas",
    "folium",
    "matplotlib",
    "dask",
    "pyspark",
    "sqlalchemy",
    "pyarrow",
    "scipy",
    "shapely",
]


def test_every_public_name_exists_and_is_documented() -> None:
    for name in dir(geoind):
        assert getattr(geoind, name).__doc__


def annotations(node: ast.AST) -> Iterator[ast.expr]:
    """What the public functions and fields in a piece of source are annotated with."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.FunctionDef) and not inner.name.startswith("_"):
            every = (*inner.args.posonlyargs, *inner.args.args, *inner.args.kwonlyargs)
            yield from (each.annotation for each in every if each.annotation is not None)
            if inner.returns is not None:
                yield inner.returns
        elif isinstance(inner, ast.AnnAssign):
            yield inner.annotation
        elif isinstance(inner, ast.ClassDef):
            yield from annotations(inner)


STABLE = [
    "geoind",
    "geoind.distances",
    "geoind.estimate",
    "geoind.evaluation",
    "geoind.files",
    "geoind.optimal",
    "geoind.adapters.dask",
    "geoind.adapters.duckdb",
    "geoind.adapters.geopandas",
    "geoind.adapters.polars",
    "geoind.adapters.spark",
    "geoind.tables",
    "geoind.traces",
]
"""Where users import from."""


OF_ANY_ENGINE = ("obfuscate", "register")
"""Functions whose frames have no common type: a frame in, one of its kind out."""


@pytest.mark.parametrize("path", STABLE)
def test_no_public_name_is_typed_as_anything(path: str) -> None:
    module = importlib.import_module(path)
    loose = []
    for name in getattr(module, "__all__", None) or dir(module):
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            written = map(ast.unparse, annotations(ast.parse(textwrap.dedent(inspect.getsource(value)))))
            # A column of a frame may hold anything, and so may the members of a record in JSON.
            loose += [one for one in written if re.search(r"(?<!Series\[)(?<!dict\[str, )\bAny\b", one)]
            if name in OF_ANY_ENGINE:
                loose = [one for one in loose if one != "Any"]
    assert not loose


def test_there_is_one_version() -> None:
    from importlib.metadata import version

    assert version("geoind") == geoind.__version__


@pytest.mark.parametrize("module", HEAVY)
def test_heavy_packages_load_only_when_used(module: str) -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", f"import sys, geoind; print({module!r} in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert loaded.stdout.strip() == "False"


def functions_of_many_parameters() -> Iterator[tuple[str, ast.arguments]]:
    for path in sorted((ROOT / "geoind").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                given = node.args
                names = {part.arg for part in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
                if len(names - {"self", "cls"}) > 7:
                    yield node.name, given


MORE_THAN_SEVEN = {
    "obfuscate": "the call of a backend: how much privacy in any of its words, and who pays",
    "obfuscate_file": "how a file is read and written; the declarations and the noise are keywords of Recipe.of",
    "of": "the declarations and the noise of a table, each a keyword",
    "private_query": "the words of obfuscate, and the area of interest",
    "register": "a function of SQL has no other place for its options",
    "write": "a file of any format, for geoind.files alone",
}
"""Functions that read better with one keyword per option than with values to build first, and why."""


def test_only_named_functions_have_more_than_seven_parameters_and_those_by_keyword() -> None:
    found = dict(functions_of_many_parameters())
    assert set(found) == set(MORE_THAN_SEVEN), "let a value object gather the parameters"
    for name, given in found.items():
        assert len(given.posonlyargs + given.args) <= 3, f"{name}: keywords only"
