"""Which package belongs to which extra: the one place that knows, and that says so before anything is computed."""

from importlib.util import find_spec

from geoind.errors import MissingExtraError

__all__ = ["EXTRAS", "require"]

EXTRAS = {
    "sqlalchemy": "ledger",
    "psycopg": "postgres",
    "matplotlib": "evaluation",
    "ot": "estimate",
    "fastapi": "demo",
    "httpx": "demo",
    "uvicorn": "demo",
    "pyrosm": "demo",
    "dask": "dask",
    "dask_geopandas": "dask",
    "pyspark": "spark",
    "polars": "polars",
    "duckdb": "duckdb",
    "opendp": "opendp",
}
"""The name under which a package is imported, and the extra that installs it."""

TITLES = {
    "sqlalchemy": "SQLAlchemy",
    "ot": "POT",
    "fastapi": "FastAPI",
    "opendp": "OpenDP",
    "polars": "Polars",
    "duckdb": "DuckDB",
}
"""Packages that people know by another name."""


def require(purpose: str, *packages: str) -> None:
    """Raise the error that names the extra unless the packages are installed; nothing is imported.

    Parameters
    ----------
    purpose : str
        What needs them, as the subject of a sentence in the singular.
    *packages : str
        Names of `EXTRAS`.

    Examples
    --------
    >>> require("a figure", "matplotlib")
    """
    missing = [package for package in packages if not _installed(package)]
    if missing:
        names = " and ".join(TITLES.get(package, package) for package in missing)
        extras = ",".join(dict.fromkeys(EXTRAS[package] for package in missing))
        raise MissingExtraError(f'{purpose} needs {names}: pip install ".[{extras}]" in a clone of geoind')


def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):
        return False
