"""The public face: at most 45 names at the top, the rest by subject, each documented and in one place."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
import textwrap
import tomllib
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, is_typeddict

import pytest

import geoind

ROOT = Path(geoind.__file__).resolve().parent.parent
TOP = importlib.import_module("geoind")
SUBJECTS = [f"geoind.{subject}" for subject in TOP.SUBJECTS]
ENGINES = [f"geoind.adapters.{engine}" for engine in ("dask", "duckdb", "geopandas", "polars", "spark")]
PLACES = ["geoind", *SUBJECTS, *ENGINES]
"""Every module that users import from."""

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


def offered(place: str) -> dict[str, Any]:
    """Return the public names of a module and their values."""
    module = importlib.import_module(place)
    return {name: getattr(module, name) for name in module.__all__ if name != "__version__"}


def callables(place: str) -> dict[str, Any]:
    """Return the public functions and classes of a module."""
    return {
        name: value for name, value in offered(place).items() if inspect.isroutine(value) or inspect.isclass(value)
    }


def is_declaration(value: Any) -> bool:
    """Return whether a name is an error, a protocol or a typed dictionary: the functions that use it show it."""
    declared = is_typeddict(value) or getattr(value, "_is_protocol", False)
    return declared or (inspect.isclass(value) and issubclass(value, Exception))


def documentation(value: Any) -> str:
    """Return the docstrings of a function, or of a class and what is defined in it."""
    own = [value, *vars(value).values()] if inspect.isclass(value) else [value]
    return "\n".join(getattr(part, "__doc__", None) or "" for part in own)


def annotations(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the annotations of the public functions and fields in a piece of source."""
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


def annotated(value: Any) -> Iterator[str]:
    """Yield the annotations of a public function or class as they are written."""
    source = textwrap.dedent(inspect.getsource(value))
    return map(ast.unparse, annotations(ast.parse(source)))


def test_the_top_level_offers_at_most_45_names() -> None:
    assert len(offered("geoind")) <= 45
    assert dir(geoind) == sorted(TOP.__all__)


def test_no_name_is_offered_in_two_places() -> None:
    # Each engine has its own function `obfuscate`, of one meaning.
    counts = Counter(name for place in ["geoind", *SUBJECTS] for name in offered(place))
    assert [name for name, count in counts.items() if count > 1 and name != "obfuscate"] == []


@pytest.mark.parametrize("place", PLACES)
def test_every_public_name_is_documented(place: str) -> None:
    assert importlib.import_module(place).__doc__
    assert [name for name, value in callables(place).items() if not inspect.getdoc(value)] == []


@pytest.mark.parametrize("place", PLACES)
def test_help_shows_the_names_of_array_types_and_not_what_they_are_made_of(place: str) -> None:
    for name, value in callables(place).items():
        parts = list(vars(value).values()) if inspect.isclass(value) else [value]
        functions = [getattr(part, "__func__", part) for part in parts]
        shown = [str(inspect.signature(each)) for each in functions if inspect.isfunction(each)]
        assert [text for text in shown if "_SupportsArray" in text or "float64" in text] == [], name


@pytest.fixture(scope="module")
def shown() -> str:
    """What functions with examples take and return: these examples show it."""
    return "\n".join(
        annotation
        for each in ["geoind", *SUBJECTS]
        for value in callables(each).values()
        if ">>> " in documentation(value)
        for annotation in annotated(value)
    )


@pytest.mark.parametrize("place", ["geoind", *SUBJECTS])
def test_every_public_function_and_class_has_an_example(place: str, shown: str) -> None:
    missing = [
        name
        for name, value in callables(place).items()
        if ">>> " not in documentation(value)
        and not is_declaration(value)
        and not (inspect.isclass(value) and re.search(rf"\b{name}\b", shown))
    ]
    assert missing == []


@pytest.mark.parametrize("place", PLACES)
def test_public_functions_show_their_parameters(place: str) -> None:
    hidden = [
        f"{name}({parameter})"
        for name, value in callables(place).items()
        if not is_declaration(value)
        for parameter in inspect.signature(value).parameters.values()
        if parameter.kind is inspect.Parameter.VAR_KEYWORD
    ]
    assert hidden == []


OF_ANY_ENGINE = ("obfuscate", "register")
"""Functions of frames that have no common type: a frame in, one of its kind out."""


@pytest.mark.parametrize("place", PLACES)
def test_no_public_name_is_typed_as_anything(place: str) -> None:
    loose = []
    for name, value in callables(place).items():
        # A column of a frame may hold anything, and so may the members of a record in JSON.
        found = [one for one in annotated(value) if re.search(r"(?<!Series\[)(?<!dict\[str, )\bAny\b", one)]
        loose += [f"{name}: {one}" for one in found if not (one == "Any" and name in OF_ANY_ENGINE)]
    assert loose == []


def test_there_is_one_version() -> None:
    assert version("geoind") == geoind.__version__


def test_heavy_packages_load_only_when_used() -> None:
    asked = f"import sys, geoind; print([name for name in {HEAVY} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


def test_five_layers_are_declared_and_hold_every_module() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    [layers] = [contract for contract in settings["contracts"] if contract["type"] == "layers"]
    assert len(layers["layers"]) == 5
    assert layers["exhaustive"]
