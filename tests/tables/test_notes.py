"""What is said about a whole table tells no place: names of columns, metadata, the CRS, the path."""

import json
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from geoind import InvalidInputError
from geoind.adapters.dataset import obfuscate_dataset
from geoind.adapters.geopandas import obfuscate_points
from geoind.files import obfuscate_file
from geoind.files.folder import obfuscate_files
from geoind.files.job import Job
from geoind.tables import Recipe
from geoind.tables.notes import numbers_of_notes, refuse_folders, refuse_notes
from geoind.tables.promise import PARQUET_KEY
from geoind.tables.values import Sample, sampled_rows
from tests.tables import cases

TRUTH = cases.lonlat()
ALL = str(TRUTH.tolist())
ONE = f"{TRUTH[3, 1]} {TRUTH[3, 0]}"
NOISE: dict[str, Any] = {"epsilon": 0.01}


def given(**columns: Any) -> pa.Table:
    return pa.table({"trip": range(60), "lon": TRUTH[:, 0], "lat": TRUTH[:, 1], **columns})


def obfuscated(table: pa.Table, **options: Any) -> pa.RecordBatch:
    return Recipe.of(**NOISE, **options).obfuscate(table.combine_chunks().to_batches()[0])


@pytest.mark.parametrize("text", [ALL, ONE])
@pytest.mark.parametrize("entry", ["history", "gdal:schema", "org.apache.spark.sql.parquet.row.metadata"])
def test_an_entry_of_the_metadata_that_holds_a_place_is_refused_dropped_or_kept(entry: str, text: str) -> None:
    table = given().replace_schema_metadata({entry: text})
    with pytest.raises(InvalidInputError, match="of its metadata") as caught:
        obfuscated(table)
    assert not any(str(axis) in str(caught.value) for axis in TRUTH.ravel())
    assert entry.encode() not in obfuscated(table, drop=[entry]).schema.metadata
    assert obfuscated(table, keep=[entry]).schema.metadata[entry.encode()] == text.encode()
    assert obfuscated(table.replace_schema_metadata({entry: "48.8566 2.3522 in 2024"})).num_rows == 60


def test_the_metadata_of_a_column_may_hold_no_place() -> None:
    field = pa.field("trip", pa.int64(), metadata={"ARROW:history": ALL})
    table = given().cast(pa.schema([field, *list(given().schema)[1:]]))
    with pytest.raises(InvalidInputError, match="the metadata of column trip"):
        obfuscated(table)


@pytest.mark.parametrize("names", [[ONE], [str(lat) for lat in TRUTH[:, 1]]])
def test_names_of_columns_may_hold_no_place(names: list[str]) -> None:
    table = given(**{name: ["x"] * 60 for name in names})
    with pytest.raises(InvalidInputError, match="the names of its columns") as caught:
        obfuscated(table)
    assert names[0] not in str(caught.value)
    assert obfuscated(table, drop=names).schema.names == ["trip", "lon", "lat"]
    assert obfuscated(given(**{"2024.12345": ["x"] * 60, "1.23456": ["x"] * 60})).num_rows == 60


@pytest.mark.parametrize("row", [0, 600, 999, 2222, 4999])
def test_what_is_said_of_a_long_table_may_hold_the_place_of_no_row(row: int) -> None:
    truth = cases.lonlat(5000)
    here, where = (f"{lat} {lon}" for lon, lat in (truth[row], truth[row] + 1e-5))
    table = pa.table({"lon": truth[:, 0], "lat": truth[:, 1], "fare": [1] * 5000})
    assert obfuscated(table.append_column(f"home {where}", [[where] * 5000])).num_rows == 5000
    with pytest.raises(InvalidInputError, match="the names of its columns"):
        obfuscated(table.append_column(f"home {here}", [["x"] * 5000]))
    with pytest.raises(InvalidInputError, match="entry history of its metadata"):
        obfuscated(table.replace_schema_metadata({"history": here}))
    with pytest.raises(InvalidInputError, match="'note' repeats coordinates of other rows"):
        obfuscated(table.append_column("note", [[here] * 5000]))


def test_a_list_of_latitudes_in_the_metadata_is_found_wherever_its_rows_are() -> None:
    truth = np.round(np.random.default_rng(3).uniform([-170, -80], [170, 80], (5000, 2)), 6)
    table = pa.table({"lon": truth[:, 0], "lat": truth[:, 1]})
    some = [row for row in range(600, 700) if row not in sampled_rows(5000)][:20]
    with pytest.raises(InvalidInputError, match="entry history of its metadata"):
        obfuscated(table.replace_schema_metadata({"history": str(truth[some, 1].tolist())}))


def test_two_columns_of_one_name_are_refused() -> None:
    arrays = [pa.array(TRUTH[:, 0]), pa.array(TRUTH[:, 1]), pa.array(TRUTH[:, 1]), pa.array(["x"] * 60)]
    with pytest.raises(InvalidInputError, match="'note' must be there once"):
        obfuscated(pa.Table.from_arrays(arrays, names=["lon", "lat", "note", "note"]))


def test_a_crs_around_a_true_place_is_refused(tmp_path: Path) -> None:
    frame = geopandas.GeoDataFrame({"trip": range(60)}, geometry=geopandas.points_from_xy(*TRUTH.T), crs=4326)
    for lon, lat in (TRUTH[3], (2.35221, 48.85661)):
        local = frame.to_crs(f"+proj=aeqd +lat_0={lat} +lon_0={lon} +datum=WGS84")
        local.to_parquet(tmp_path / "in.parquet")
        if lat == TRUTH[3, 1]:
            with pytest.raises(InvalidInputError, match="its CRS"):
                obfuscate_file(tmp_path / "in.parquet", tmp_path / "out.parquet", **NOISE)
        else:
            assert obfuscate_file(tmp_path / "in.parquet", tmp_path / "out.parquet", **NOISE).reports == 60


def test_of_pandas_own_metadata_only_what_it_needs_stays(tmp_path: Path) -> None:
    frame = given().to_pandas()
    frame.attrs = {"history": ALL}
    frame.to_parquet(tmp_path / "in.parquet")
    obfuscate_file(tmp_path / "in.parquet", tmp_path / "out.parquet", **NOISE)
    told = pq.read_schema(tmp_path / "out.parquet").metadata
    assert ALL[:40].encode() not in b"".join(told.values())
    assert "attributes" not in json.loads(told[b"pandas"])
    assert pd.read_parquet(tmp_path / "out.parquet").columns.tolist() == ["trip", "lon", "lat"]


@pytest.mark.parametrize(
    "folder", [f"lat={TRUTH[0, 1]}", f"cell={TRUTH[0, 1]}_{TRUTH[0, 0]}", "latitude=48.8", "geohash=u09tun"]
)
@pytest.mark.parametrize("door", ["dataset", "files"])
def test_names_of_folders_may_hold_no_place(folder: str, door: str, tmp_path: Path) -> None:
    def obfuscate(target: str, **options: Any) -> None:
        if door == "dataset":
            obfuscate_dataset(tmp_path / "in", tmp_path / target, key=bytes(32), workers=1, **NOISE, **options)
        else:
            job = Job(recipe=Recipe.of(**NOISE, **options))
            obfuscate_files([tmp_path / "in"], tmp_path / target, job, workers=1)

    (tmp_path / "in" / folder).mkdir(parents=True)
    pq.write_table(given(), tmp_path / "in" / folder / "a.parquet")
    with pytest.raises(InvalidInputError, match=r"the folder|its path") as caught:
        obfuscate("out")
    assert str(TRUTH[0, 1]) not in str(caught.value)
    (tmp_path / "in" / folder).rename(tmp_path / "in" / "city=Paris")
    obfuscate("reports")
    assert (tmp_path / "reports" / "city=Paris" / "a.parquet").exists()


def test_what_is_said_of_a_collection_may_hold_no_place(tmp_path: Path) -> None:
    features = [
        {"type": "Feature", "properties": {}, "geometry": {"type": "Point", "coordinates": place}}
        for place in TRUTH.tolist()
    ]
    for member in ({"title": ONE}, {"history": TRUTH.tolist()}, {ONE: 1}, {"note": ALL}):
        (tmp_path / "in.geojson").write_text(json.dumps({**member, "features": features}))
        with pytest.raises(InvalidInputError, match="tell the place"):
            obfuscate_file(tmp_path / "in.geojson", tmp_path / "out.geojson", **NOISE)
    (tmp_path / "in.geojson").write_text(json.dumps({"title": "Paris 48.8566 2.3522", "features": features}))
    assert obfuscate_file(tmp_path / "in.geojson", tmp_path / "out.geojson", **NOISE).reports == 60


@pytest.mark.parametrize("name", [None, "trip", "lon"])
def test_an_index_is_looked_at_whatever_it_and_columns_are_called(name: str | None) -> None:
    frame = given(index=["x"] * 60).to_pandas()
    frame.index = pd.Index(TRUTH[:, 1], name=name)
    called = f"{name or 'index'} (index)"
    with pytest.raises(InvalidInputError) as caught:
        obfuscate_points(frame, **NOISE)
    assert f"'{called}' " in str(caught.value)
    assert obfuscate_points(frame, drop=[called], **NOISE).index.tolist() == list(range(60))


def test_labels_of_a_frame_and_entries_of_its_index_that_no_row_has_tell_no_place() -> None:
    frame = given().to_pandas()
    for axis in ("columns", "index"):
        labelled = frame.rename_axis(ONE, axis=axis)
        with pytest.raises(InvalidInputError, match=f"name of the {axis}"):
            obfuscate_points(labelled, **NOISE)
    index = pd.MultiIndex.from_product([["x"], [*TRUTH[:, 1], 7.5]])[60:].repeat(60)
    reports = obfuscate_points(frame.set_index(index), **NOISE)
    assert [list(level) for level in reports.index.levels] == [["x"], [7.5]]
    assert not np.isin(TRUTH[:, 1], reports.index.levels[1]).any()


@pytest.mark.parametrize(
    "path", ["lat=48.8/a.csv", "a/lat=48.8/b.csv", "lat=48.8/a/b.csv", "a/b/geohash=u/c/d.csv"]
)
def test_a_folder_that_tells_a_place_is_refused_however_deep_and_a_file_or_a_plain_folder_is_not(
    path: str,
) -> None:
    name = path.split("=")[0].split("/")[-1]
    with pytest.raises(InvalidInputError, match=rf"the folder {name}=\.\.\..*keep=\['{name}'\]"):
        refuse_folders(path, ())
    refuse_folders(path, [name])
    refuse_folders("lat/geohash/lat=48.8", ())


def test_all_that_is_said_of_a_table_is_looked_at_where_two_numbers_may_be_degrees() -> None:
    fields = [
        pa.field("kept 48.8584 2.2945", pa.string(), metadata={"a": "48.8584 2.2945"}),
        pa.field("trip", pa.int64(), metadata={"a": "48.8584", "b": "2.2945"}),
        pa.field("fare", pa.float64(), metadata={"a": "48.8584", "b": "48.85"}),
        pa.field("none", pa.struct([("48.8584", pa.int64()), ("2.2945", pa.int64())])),
    ]
    both = b"48.8584 2.2945"
    notes = {b"history": both, b"other": both, b"48.8584": b"2.2945", b"one": b"48.8584", PARQUET_KEY: both}
    numbers = numbers_of_notes(
        pa.schema(fields, metadata=notes),
        keep=["kept 48.8584 2.2945", "other"],
        crs=["48.8584", "2.2945"],
        path="a",
    )
    assert set(numbers) == {
        "the names of its columns",
        "its CRS",
        "the metadata of column trip",
        "entry history of its metadata",
        "entry ... of its metadata",
    }
    assert all({48.8584, 2.2945} <= set(values.tolist()) for values in numbers.values())
    assert numbers_of_notes(pa.schema([]), keep=[], crs=[], path="48.8584/2.2945").keys() == {"its path"}
    assert numbers_of_notes(pa.schema([]), keep=[], crs=[], path="48.8584/2.29") == {}


def test_notes_are_refused_that_name_the_place_of_any_sample() -> None:
    samples = [Sample(TRUTH + 3), Sample(TRUTH)]
    refuse_notes({"its path": TRUTH[3] + 1, "its CRS": TRUTH[3, :1]}, samples)
    with pytest.raises(InvalidInputError, match="coordinates of a row are in its path"):
        refuse_notes({"its CRS": TRUTH[3, :1], "its path": TRUTH[3]}, samples)
