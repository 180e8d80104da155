import json
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from geoind.errors import InvalidInputError
from geoind.files import obfuscate_file
from geoind.tables.promise import read_promise
from geoind.tables.recipe import Options
from tests.files.test_ogr import METRIC, SHARP, places


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
