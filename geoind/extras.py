"""The extras of geoind, and the check that their packages are installed."""

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
    "h3": "h3",
    "rasterio": "raster",
}
"""From the import name of a package to the extra that installs it."""

TITLES = {
    "sqlalchemy": "SQLAlchemy",
    "ot": "POT",
    "fastapi": "FastAPI",
    "opendp": "OpenDP",
    "h3": "H3",
    "polars": "Polars",
    "duckdb": "DuckDB",
}
"""Display names of packages that differ from their import names."""


def require(purpose: str, *packages: str) -> None:
    """Raise an error with the name of the extra unless the packages are installed; nothing is imported.

    Parameters
    ----------
    purpose : str
        What needs the packages, as the subject of a sentence in the singular.
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
