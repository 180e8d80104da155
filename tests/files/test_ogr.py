from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pyogrio
import pytest
import shapely

import geoind
from geoind.cli import main
from geoind.errors import InvalidInputError
from geoind.files import obfuscate_file
from geoind.tables.promise import read_promise
from geoind.tables.recipe import Options
from tests.goodness import p_value

SHARP = geoind.SphericalLaplace(1000.0)
METRIC = 2154


def places(count: int = 60, crs: int = 4326) -> geopandas.GeoDataFrame:
    # In no order that would tell the place.
    axes = [np.linspace(2.2, 2.4, count), np.linspace(48.9, 48.8, count)]
    lon, lat = np.random.default_rng(0).permuted(axes, axis=1)
    return geopandas.GeoDataFrame(
        {"name": [f"é {i}" for i in range(count)], "value": np.arange(count)},
        geometry=geopandas.points_from_xy(lon, lat),
        crs=4326,
    ).to_crs(crs)


@pytest.mark.parametrize("suffix", ["gpkg", "fgb", "shp", "gml"])
@pytest.mark.parametrize("crs", [4326, METRIC])
def test_whatever_pyogrio_reads_makes_a_round_trip(tmp_path: Path, suffix: str, crs: int) -> None:
    truth = places(crs=crs)
    truth.geometry = shapely.force_3d(truth.geometry, 324.5)
    truth.to_file(tmp_path / f"in.{suffix}")
    out = tmp_path / "out"
    out.mkdir()
    # FlatGeobuf sorts its features along a curve through the map.
    sharp = Options(mechanism=SHARP, order="keep")
    assert obfuscate_file(tmp_path / f"in.{suffix}", out / f"out.{suffix}", **sharp).reports == len(truth)
    reports = geopandas.read_file(out / f"out.{suffix}").sort_values("value", ignore_index=True)
    assert reports.crs == truth.crs
    assert reports["name"].tolist() == truth["name"].tolist()
    assert not reports.geometry.has_z.any()
    moved = reports.to_crs(METRIC).distance(truth.to_crs(METRIC))
    assert (moved < 2).all()
    assert (moved > 0).any()
    assert read_promise(out / f"out.{suffix}").epsilon == SHARP.epsilon
    assert not [path for path in out.iterdir() if path.name.startswith(".")]


def test_another_name_chooses_another_format(tmp_path: Path) -> None:
    places().to_file(tmp_path / "in.gpkg")
    obfuscate_file(tmp_path / "in.gpkg", tmp_path / "out.fgb", mechanism=SHARP)
    assert pyogrio.read_info(tmp_path / "out.fgb")["driver"] == "FlatGeobuf"


def test_the_noise_in_a_projected_file_has_the_promised_scale(tmp_path: Path) -> None:
    count = 100_000
    truth = geopandas.GeoDataFrame(geometry=shapely.points([[2.2945, 48.8584]] * count), crs=4326).to_crs(METRIC)
    truth.to_file(tmp_path / "in.gpkg")
    obfuscate_file(tmp_path / "in.gpkg", tmp_path / "out.gpkg", epsilon=0.01)
    reports = geopandas.read_file(tmp_path / "out.gpkg").to_crs(4326)
    import pyproj

    from geoind.distances import EARTH_RADIUS

    geod = pyproj.Geod(a=EARTH_RADIUS, f=0)
    lonlat = shapely.get_coordinates(reports.geometry)
    radius = geod.inv(np.full(count, 2.2945), np.full(count, 48.8584), lonlat[:, 0], lonlat[:, 1])[2]
    # Fresh noise, not a seed: a false alarm once in a billion runs.
    assert p_value(radius, geoind.SphericalLaplace(0.01).radius_cdf) > 1e-9
    for wrong in (0.01 / 1.05, 0.01 * 1.05):
        assert p_value(radius, geoind.SphericalLaplace(wrong).radius_cdf) < 1e-9


def test_files_that_are_something_else_are_refused(tmp_path: Path) -> None:
    (tmp_path / "in.parquet").write_text("lat,lon\n12.345,1\n")
    (tmp_path / "in.gpkg").write_text("lat,lon\n12.345,1\n")
    for suffix, message in (("parquet", "cannot be read"), ("gpkg", "does not begin like a .gpkg file")):
        with pytest.raises(InvalidInputError, match=message) as caught:
            obfuscate_file(tmp_path / f"in.{suffix}", tmp_path / f"out.{suffix}", epsilon=0.1)
        assert "12.345" not in str(caught.value)
    with pytest.raises(InvalidInputError, match="must be a local file: there is none"):
        obfuscate_file(tmp_path / "nowhere.gpkg", tmp_path / "out.gpkg", epsilon=0.1)
    with pytest.raises(InvalidInputError, match="files with names"):
        obfuscate_file("-", tmp_path / "out.gpkg", epsilon=0.1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.gpkg", "in.parquet"]


def layer_reason(tmp_path: Path, frame: geopandas.GeoDataFrame, **options: Any) -> str:
    frame.to_file(tmp_path / "in.gpkg")
    with pytest.raises(InvalidInputError) as caught:
        obfuscate_file(tmp_path / "in.gpkg", tmp_path / "out.gpkg", epsilon=0.1, **options)
    assert [path.name for path in tmp_path.iterdir()] == ["in.gpkg"]
    return str(caught.value)


@pytest.mark.filterwarnings("ignore:'crs' was not provided")
def test_layers_without_points_or_crs_are_refused(tmp_path: Path) -> None:
    assert "row 3: the geometry must be a point" in layer_reason(tmp_path, places().assign(geometry=with_line(3)))
    assert "row 5: there is no place" in layer_reason(tmp_path, places().assign(geometry=with_hole(5)))
    assert "must have a CRS" in layer_reason(tmp_path, places().set_crs(None, allow_override=True))


def with_line(row: int) -> geopandas.GeoSeries:
    shapes = places().geometry.to_list()
    shapes[row] = shapely.LineString([(12.345, 1), (2, 2)])
    return geopandas.GeoSeries(shapes, crs=4326)


def with_hole(row: int) -> geopandas.GeoSeries:
    shapes = places().geometry.to_list()
    shapes[row] = None
    return geopandas.GeoSeries(shapes, crs=4326)


def test_one_of_several_layers_must_be_chosen_and_comes_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    places(3).to_file(tmp_path / "in.gpkg", layer="homes")
    places(4).to_file(tmp_path / "in.gpkg", layer="offices")
    run = [
        "obfuscate",
        str(tmp_path / "in.gpkg"),
        str(tmp_path / "out.gpkg"),
        "--epsilon",
        "1000",
        "--little-noise",
    ]
    assert main(run) == 2
    assert "layer must be one of homes, offices" in capfd.readouterr().err
    assert main([*run, "--layer", "offices"]) == 0
    assert pyogrio.list_layers(tmp_path / "out.gpkg")[:, 0].tolist() == ["offices"]
    assert len(geopandas.read_file(tmp_path / "out.gpkg")) == 4


def test_a_layer_named_by_a_true_place_is_refused_dropped_or_kept(tmp_path: Path) -> None:
    truth = places()
    name = f"home {truth.geometry.y[3]} {truth.geometry.x[3]}"
    truth.to_file(tmp_path / "in.gpkg", layer=name)
    with pytest.raises(InvalidInputError, match="entry layer of its metadata") as caught:
        obfuscate_file(tmp_path / "in.gpkg", tmp_path / "out.gpkg", epsilon=0.01)
    assert str(truth.geometry.y[3]) not in str(caught.value)
    assert not (tmp_path / "out.gpkg").exists()
    dropped: Options = {"mechanism": SHARP, "drop": ["layer"]}
    kept: Options = {"mechanism": SHARP, "keep": ["layer"]}
    for options, layer in ((dropped, "out"), (kept, name)):
        obfuscate_file(tmp_path / "in.gpkg", tmp_path / "out.gpkg", **options)
        assert pyogrio.list_layers(tmp_path / "out.gpkg")[:, 0].tolist() == [layer]


def test_attributes_that_repeat_the_truth_are_refused(tmp_path: Path) -> None:
    truth = places()
    truth = truth.assign(lat=truth.geometry.y, lon=truth.geometry.x)
    message = layer_reason(tmp_path, truth)
    assert "'lon'" in message
    assert "'lat'" in message
