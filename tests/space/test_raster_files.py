"""Rasters of people: which pixels are places, where they lie, and that hostile files are one clear error."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from pyproj import Transformer

from geoind.cli import main
from geoind.errors import InvalidInputError
from geoind.space import raster_files
from geoind.space.raster_files import read_raster

# In a process of its own: rasterio and pyogrio each bring a GDAL.
WRITE = """
import json, sys
import numpy as np, rasterio
for name, about in json.load(sys.stdin).items():
    values = np.array(about.pop("values"), about["dtype"])
    scale = about.pop("scale", None)
    about["transform"] = rasterio.Affine(*about["transform"])
    count, height, width = values.shape
    with rasterio.open(name, "w", driver="GTiff", count=count, height=height, width=width, **about) as raster:
        raster.write(values)
        if scale is not None:
            raster.scales = [scale]
"""
DEGREES = {"crs": "EPSG:4326", "transform": [0.01, 0.0, 2.3, 0.0, -0.01, 48.9], "dtype": "float32"}
LAMBERT = {"crs": "EPSG:2154", "transform": [60.0, 80.0, 652000.0, 80.0, -60.0, 6862000.0], "dtype": "int16"}
TILES = {"tiled": True, "blockxsize": 16, "blockysize": 16}
MANY = np.random.default_rng(1).integers(0, 3, (1, 70, 2100))
GIVEN = {
    "degrees": DEGREES | {"values": [[[1.5, 0.0, -9.0], [float("inf"), float("nan"), 4.0]]], "nodata": -9.0},
    "nodata above 0": DEGREES | {"values": [[[1.0, 255.0]]], "nodata": 255.0},
    "turned": LAMBERT | {"values": [[[0, 5], [7, 0]]]},
    "scaled": LAMBERT | {"values": [[[0, 5]]], "scale": 0.5},
    "past 180": DEGREES | {"transform": [1.0, 0.0, 180.0, 0.0, -1.0, 1.0], "values": [[[3.0]]]},
    "tiles": DEGREES | TILES | {"transform": [1e-4, 0.0, 2.3, 0.0, -1e-4, 48.9], "values": MANY.tolist()},
    "empty": DEGREES | {"values": [[[0.0]]]},
    "two bands": DEGREES | {"values": [[[1.0]], [[1.0]]]},
    "complex": DEGREES | {"values": [[[1.0]]], "dtype": "complex64"},
    "no CRS": DEGREES | {"values": [[[1.0]]], "crs": None},
    "off the earth": DEGREES | {"transform": [1.0, 0.0, 2.0, 0.0, -1.0, 95.0], "values": [[[1.0]]]},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rasters")
    named = {f"{name}.tif": about for name, about in GIVEN.items()}
    subprocess.run([sys.executable, "-c", WRITE], input=json.dumps(named), text=True, cwd=folder, check=True)
    return folder


def test_pixels_above_0_are_places_at_their_centres(folder: Path) -> None:
    before = sorted(folder.iterdir())
    places, people = read_raster(folder / "degrees.tif")
    np.testing.assert_allclose(places, [[2.305, 48.895], [2.325, 48.885]])
    assert people.tolist() == [1.5, 4.0]
    assert read_raster(folder / "nodata above 0.tif")[1].tolist() == [1.0]
    np.testing.assert_allclose(read_raster(folder / "past 180.tif")[0], [[-179.5, 0.5]])
    assert sorted(folder.iterdir()) == before


def test_a_turned_grid_in_metres_is_carried_to_degrees(folder: Path) -> None:
    places, people = read_raster(folder / "turned.tif")
    assert people.tolist() == [5.0, 7.0]
    # The corner, and a step and a half along one axis, half a step along the other.
    x = [652000 + 1.5 * 60 + 0.5 * 80, 652000 + 0.5 * 60 + 1.5 * 80]
    y = [6862000 + 1.5 * 80 - 0.5 * 60, 6862000 + 0.5 * 80 - 1.5 * 60]
    degrees = Transformer.from_crs(2154, 4326, always_xy=True).transform(x, y)
    np.testing.assert_allclose(places, np.column_stack(degrees), atol=1e-9)
    assert read_raster(folder / "scaled.tif")[1].tolist() == [2.5]


def test_blocks_together_are_the_whole_raster(folder: Path) -> None:
    places, people = read_raster(folder / "tiles.tif")
    pixels = np.round((places - (2.3, 48.9)) / (1e-4, -1e-4) - 0.5).astype(int)
    found = np.zeros_like(MANY[0])
    found[pixels[:, 1], pixels[:, 0]] = people
    np.testing.assert_array_equal(found, MANY[0])
    assert len(people) == np.count_nonzero(MANY)


def test_an_ascii_grid_has_its_crs_in_another_file(tmp_path: Path) -> None:
    grid = tmp_path / "people.ASC"
    grid.write_text("ncols 2\nnrows 2\nxllcorner 2\nyllcorner 48\ncellsize 1\nNODATA_value 9\n0 7\n9 2\n")
    with pytest.raises(InvalidInputError, match="must have a CRS"):
        read_raster(grid)
    grid.with_suffix(".prj").write_text(
        'GEOGCS["GCS_WGS_1984",DATUM["D_WGS_1984",SPHEROID["WGS_1984",6378137.0,298.257223563]],'
        'PRIMEM["Greenwich",0.0],UNIT["Degree",0.0174532925199433]]'
    )
    places, people = read_raster(grid)
    np.testing.assert_allclose(places, [[3.5, 49.5], [3.5, 48.5]], atol=1e-9)
    assert people.tolist() == [7.0, 2.0]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("two bands", "must have one band of real numbers"),
        ("complex", "must have one band of real numbers"),
        ("no CRS", "must have a CRS"),
        ("off the earth", "people where its CRS has no places"),
    ],
)
def test_a_raster_that_is_not_one_of_people_is_a_sentence(folder: Path, name: str, sentence: str) -> None:
    with pytest.raises(InvalidInputError, match=sentence):
        read_raster(folder / f"{name}.tif")


def test_hostile_files_are_one_clear_error(folder: Path, tmp_path: Path) -> None:
    whole = (folder / "tiles.tif").read_bytes()
    virtual = b'<VRTDataset rasterXSize="1" rasterYSize="1"><VRTRasterBand dataType="Byte" band="1"/></VRTDataset>'
    header = "nrows 1000000\nxllcorner 2\nyllcorner 48\ncellsize 1\n1 2\n"
    cases = {
        "virtual.tif": (virtual, "does not begin like a .tif file"),
        "cut.tif": (whole[: len(whole) // 2], "GDAL cannot read 'cut.tif' as GTiff"),
        "broken.tif": (whole[:8] + b"\xff" * 4000, "GDAL cannot read 'broken.tif' as GTiff"),
        "a!b.tif": (whole, "rename it"),
        "wide.asc": (f"ncols 2000000000\n{header}".encode(), "GDAL cannot read|too large"),
        "people.vrt": (virtual, "must end in one of .tif, .tiff, .asc"),
    }
    for name, (content, sentence) in cases.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InvalidInputError, match=sentence):
            read_raster(tmp_path / name)
    with pytest.raises(InvalidInputError, match="must be a local file"):
        read_raster("https://example.org/people.tif")


def test_limits_are_stated(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raster_files, "MOST_PLACES", 5)
    with pytest.raises(InvalidInputError, match="more than 5 pixels with people: cut it"):
        read_raster(folder / "tiles.tif")
    for limit in ("MOST_PIXELS", "MOST_OF_A_BLOCK"):
        with monkeypatch.context() as patch:
            patch.setattr(raster_files, limit, 200)
            with pytest.raises(InvalidInputError, match="too large"):
                read_raster(folder / "tiles.tif")


def test_a_statement_counts_the_people_of_a_raster(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places, reports, out = tmp_path / "places.csv", tmp_path / "reports.csv", tmp_path / "statement.json"
    places.write_text("lon,lat\n" + "2.35,48.899\n" * 20)
    assert main(["obfuscate", str(places), str(reports), "--each-row", "--epsilon", "0.01", "--quiet"]) == 0
    command = ["assess", str(reports), "--out", str(out), "--population"]
    assert main([*command, str(folder / "tiles.tif")]) == 0
    sharing = json.loads(out.read_text())["sharing"]
    assert sharing["whose"] == "people of the population file"
    assert sharing["median"] > 100
    capsys.readouterr()
    assert main([*command, str(folder / "tiles.tif"), "--weight", "people"]) == 2
    assert "--weight needs --population FILE with points" in capsys.readouterr().err
    assert main([*command, str(folder / "empty.tif")]) == 2
    assert "the population has no people" in capsys.readouterr().err
