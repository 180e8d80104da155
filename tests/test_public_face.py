"""What `import geoind` gives and what it leaves alone."""

import subprocess
import sys

import pytest

import geoind

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
    for name in geoind.__all__:
        assert getattr(geoind, name).__doc__


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
