import json
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
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


def columns(**changes: object) -> pa.Table:
    return pa.table(
        {"id": [7, 8, 9], "lat": [1.0, 2.0, 3.0], "lon": [4.0, 5.0, 6.0], "note": ["a", None, "c"]} | changes
    )


def reason(tmp_path: Path, table: pa.Table, **options: Any) -> str:
    pq.write_table(table, tmp_path / "in.parquet")
    with pytest.raises(InvalidInputError) as caught:
        obfuscate_file(tmp_path / "in.parquet", tmp_path / "out.parquet", **{"epsilon": 0.1, **options})
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"], "nothing may be left after an error"
    return str(caught.value)


def test_parquet_columns_keep_types_order_metadata_and_compression(tmp_path: Path) -> None:
    table = columns().replace_schema_metadata({b"own": b"kept"})
    pq.write_table(table, tmp_path / "in.parquet", compression="zstd")
    summary = obfuscate_file(tmp_path / "in.parquet", tmp_path / "out.parquet", mechanism=SHARP)
    result = pq.read_table(tmp_path / "out.parquet")
    assert result.schema.equals(table.schema)
    assert result.schema.metadata[b"own"] == b"kept"
    assert result.drop_columns(["lat", "lon"]).equals(table.drop_columns(["lat", "lon"]))
    for name in ("lat", "lon"):
        assert np.allclose(result[name], table[name], atol=2e-5)
    assert pq.ParquetFile(tmp_path / "out.parquet").metadata.row_group(0).column(0).compression == "ZSTD"
    assert summary.reports == 3
    promise = read_promise(tmp_path / "out.parquet")
    assert (promise.mechanism, promise.epsilon) == ("SphericalLaplace", SHARP.epsilon)
    assert not (tmp_path / "out.parquet.geoind.json").exists()


def test_many_batches_are_like_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("geoind.files.parquet.BATCH_ROWS", 7)
    pq.write_table(columns(**{k: v * 20 for k, v in columns().to_pydict().items()}), tmp_path / "in.parquet")
    shares: list[float | None] = []
    obfuscate_file(
        tmp_path / "in.parquet", tmp_path / "out.parquet", mechanism=SHARP, progress=lambda _, s: shares.append(s)
    )
    result = pq.read_table(tmp_path / "out.parquet")
    assert result["id"].to_pylist() == [7, 8, 9] * 20
    assert np.allclose(result["lat"], [1, 2, 3] * 20, atol=2e-5)
    assert shares == sorted(share for share in shares if share is not None)
    assert shares[-1] == 1.0


@pytest.mark.parametrize("crs", [4326, METRIC])
@pytest.mark.parametrize("encoding", ["WKB", "geoarrow"])
def test_geoparquet_keeps_everything_but_places_and_boxes(tmp_path: Path, crs: int, encoding: str) -> None:
    truth = places(crs=crs)
    truth.to_parquet(tmp_path / "in.parquet", geometry_encoding=encoding, write_covering_bbox=True)
    obfuscate_file(tmp_path / "in.parquet", tmp_path / "out.parquet", mechanism=SHARP)
    reports = geopandas.read_parquet(tmp_path / "out.parquet")
    assert reports.crs == truth.crs
    pd.testing.assert_frame_equal(
        pd.DataFrame(reports.drop(columns="geometry")), pd.DataFrame(truth.drop(columns="geometry"))
    )
    assert (reports.to_crs(METRIC).distance(truth.to_crs(METRIC)) < 2).all()
    geo = json.loads(pq.read_schema(tmp_path / "out.parquet").metadata[b"geo"])
    assert "bbox" not in geo["columns"]["geometry"]
    boxes = pq.read_table(tmp_path / "out.parquet")["bbox"].to_pylist()
    assert [[box["xmin"], box["ymax"]] for box in boxes] == shapely.get_coordinates(reports.geometry).tolist()


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


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"lat": [1.0, 91.0, 12.345]}, "row 1: "),
        ({"lon": [12.345, 12.345, 180.5]}, "row 2: "),
        ({"lat": [1.0, float("nan"), 12.345]}, "row 1: "),
        ({"lat": [1.0, 12.345, None]}, "row 2: there is no place"),
        ({"lat": ["12.345", "1", "north"]}, "row 2: "),
        ({"lat": [1, 2, 3]}, "must be float, decimal or text"),
        ({"lng": [12.345] * 3}, "several columns"),
    ],
)
def test_a_bad_row_stops_with_its_number_and_no_coordinate(
    tmp_path: Path, changes: dict[str, Any], why: str
) -> None:
    message = reason(tmp_path, columns(**changes))
    assert why in message
    assert "12.345" not in message


def test_bad_rows_go_to_the_rejects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("geoind.files.parquet.BATCH_ROWS", 11)
    lat = [1.0] * 50
    for row in (0, 12, 13, 49):
        lat[row] = 91.0
    pq.write_table(pa.table({"id": range(50), "lat": lat, "lon": [2.0] * 50}), tmp_path / "in.parquet")
    summary = obfuscate_file(
        tmp_path / "in.parquet", tmp_path / "out.parquet", mechanism=SHARP, rejects=tmp_path / "rejects"
    )
    assert (summary.reports, summary.rejected) == (46, 4)
    kept = pq.read_table(tmp_path / "out.parquet")["id"].to_pylist()
    assert kept == [i for i in range(50) if i not in (0, 12, 13, 49)]
    told = [json.loads(line) for line in (tmp_path / "rejects").read_text().splitlines()]
    assert [one["row"] for one in told] == [0, 12, 13, 49]
    assert json.loads(told[0]["record"]) == {"id": 0, "lat": 91.0, "lon": 2.0}


def test_rows_without_a_place_stay_when_asked_for(tmp_path: Path) -> None:
    pq.write_table(columns(lat=[1.0, None, 3.0]), tmp_path / "in.parquet")
    options = Options(mechanism=SHARP, missing="keep")
    assert obfuscate_file(tmp_path / "in.parquet", tmp_path / "out.parquet", **options).reports == 2
    assert pq.read_table(tmp_path / "out.parquet")["lon"].null_count == 1


def test_an_empty_table_stays_empty(tmp_path: Path) -> None:
    pq.write_table(columns().slice(0, 0), tmp_path / "in.parquet")
    assert obfuscate_file(tmp_path / "in.parquet", tmp_path / "out.parquet", mechanism=SHARP).reports == 0
    assert pq.read_table(tmp_path / "out.parquet").schema.equals(columns().schema)


def test_undeclared_wkb_needs_a_column_and_a_crs(tmp_path: Path) -> None:
    table = pa.table({"spot": shapely.to_wkb(places().geometry.to_numpy())})
    assert "say which with lon" in reason(tmp_path, table)
    assert "must have a CRS" in reason(tmp_path, table, geometry="spot")
    obfuscate_file(
        tmp_path / "in.parquet", tmp_path / "out.parquet", mechanism=SHARP, geometry="spot", crs="OGC:CRS84"
    )
    assert len(pq.read_table(tmp_path / "out.parquet")) == 60


def test_a_key_gives_parquet_text_ids_the_noise_that_csv_gets(tmp_path: Path) -> None:
    keyed = Options(epsilon=0.01, key=bytes(range(32)), id_column="id")
    pq.write_table(columns(id=["7", "8", "9"]), tmp_path / "in.parquet")
    (tmp_path / "in.csv").write_text("id,lat,lon\n9,3,6\n8,2,5\n7,1,4\n")
    for suffix in ("parquet", "csv"):
        obfuscate_file(tmp_path / f"in.{suffix}", tmp_path / f"out.{suffix}", **keyed)
    parquet = pq.read_table(tmp_path / "out.parquet").select(["lat", "lon"]).to_pandas().to_numpy()
    csv = pd.read_csv(tmp_path / "out.csv")[["lat", "lon"]].to_numpy()[::-1]
    assert (parquet == csv).all()
    assert "row 1" in reason_for_null_id(tmp_path / "n", keyed)


def reason_for_null_id(folder: Path, keyed: Options) -> str:
    folder.mkdir()
    return reason(folder, columns(id=["7", None, "9"]), **keyed)


def test_parquet_through_standard_input_and_output(tmp_path: Path) -> None:
    import subprocess
    import sys

    pq.write_table(columns(), tmp_path / "in.parquet")
    run = [
        sys.executable,
        "-m",
        "geoind",
        "obfuscate",
        "-",
        "-",
        "--format",
        "parquet",
        "--epsilon",
        "1000",
        "--little-noise",
    ]
    with subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as job:
        out, err = job.communicate((tmp_path / "in.parquet").read_bytes())
    assert job.returncode == 0, err
    assert len(pq.read_table(pa.BufferReader(out))) == 3


def test_files_that_are_something_else_are_refused(tmp_path: Path) -> None:
    (tmp_path / "in.parquet").write_text("lat,lon\n12.345,1\n")
    (tmp_path / "in.gpkg").write_text("lat,lon\n12.345,1\n")
    for suffix, message in (("parquet", "cannot be read"), ("gpkg", "no file that GDAL can read")):
        with pytest.raises(InvalidInputError, match=message) as caught:
            obfuscate_file(tmp_path / f"in.{suffix}", tmp_path / f"out.{suffix}", epsilon=0.1)
        assert "12.345" not in str(caught.value)
    with pytest.raises(InvalidInputError, match="no file that GDAL can read"):
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


def test_attributes_that_repeat_the_truth_are_refused(tmp_path: Path) -> None:
    truth = places()
    truth = truth.assign(lat=truth.geometry.y, lon=truth.geometry.x)
    message = layer_reason(tmp_path, truth)
    assert "'lon'" in message
    assert "'lat'" in message
