"""The cases of what tells the place, through every door for files: each is refused, or passes, at all of them."""

import csv
import json
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from geoind.errors import InvalidInputError
from geoind.files import obfuscate_file
from geoind.files.folder import obfuscate_files
from geoind.files.job import Job
from geoind.tables import Recipe, table
from tests.tables.cases import BY_TYPE, BY_VALUE, PLAIN, lonlat, table_with

TRUTH = lonlat()

DOORS = ("csv", "tsv", "ndjson", "geojson", "geojsonl", "parquet", "geo.parquet", "gpkg", "folder", "to.parquet")
NESTED = ("ndjson", "geojson", "geojsonl", "parquet", "geo.parquet")
"""Doors of formats with lists and objects."""


def written(folder: Path, door: str, column: object) -> tuple[Path, Path]:
    """Write the places and one more column in the door's format, and return the file and its target."""
    table = table_with(TRUTH, column)
    rows = table.to_pylist()
    suffix = {"folder": "csv", "to.parquet": "csv"}.get(door, door)
    source = folder / f"in.{suffix}"
    if suffix in ("csv", "tsv"):
        with source.open("w", newline="") as file:
            writer = csv.writer(file, delimiter="\t" if suffix == "tsv" else ",")
            writer.writerow(table.column_names)
            writer.writerows(row.values() for row in rows)
    elif suffix == "ndjson":
        source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif suffix in ("geojson", "geojsonl"):
        features = [feature(row) for row in rows]
        lines = "".join(json.dumps(one) + "\n" for one in features)
        source.write_text(lines if suffix == "geojsonl" else json.dumps({"features": features}))
    elif suffix == "parquet":
        pq.write_table(table, source)
    else:
        frame(table).to_parquet(source) if suffix == "geo.parquet" else frame(table).to_file(source)
    return source, folder / f"out.{'parquet' if door == 'to.parquet' else suffix}"


def feature(row: dict[str, object]) -> dict[str, object]:
    properties = {name: value for name, value in row.items() if name not in ("lon", "lat")}
    point = {"type": "Point", "coordinates": [row["lon"], row["lat"]]}
    return {"type": "Feature", "properties": properties, "geometry": point}


def frame(table: pa.Table) -> geopandas.GeoDataFrame:
    points = geopandas.points_from_xy(*TRUTH.T)
    return geopandas.GeoDataFrame(table.drop_columns(["lon", "lat"]).to_pandas(), geometry=points, crs=4326)


def through(tmp_path: Path, door: str, column: object, **options: Any) -> bytes:
    """Return what comes out of a door."""
    source, target = written(tmp_path, door, column)
    if door == "folder":
        obfuscate_files([source], tmp_path / "out", Job(recipe=Recipe.of(epsilon=0.001, **options)))
        return (tmp_path / "out" / source.name).read_bytes()
    obfuscate_file(source, target, epsilon=0.001, **options)
    return target.read_bytes()


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("case", BY_VALUE)
def test_a_column_that_repeats_the_truth_passes_no_door(tmp_path: Path, door: str, case: str) -> None:
    column = BY_VALUE[case](TRUTH)
    with pytest.raises(InvalidInputError, match="note"):
        through(tmp_path, door, column)
    assert [path.name.split(".")[0] for path in tmp_path.iterdir()] == ["in"], "nothing may be left after an error"


@pytest.mark.parametrize("door", NESTED)
@pytest.mark.parametrize("case", BY_TYPE)
def test_a_column_whose_type_holds_places_passes_no_door(tmp_path: Path, door: str, case: str) -> None:
    column = BY_TYPE[case](TRUTH)
    if door.startswith(("ndjson", "geojson")) and pa.types.is_binary(column.type):
        column = pa.array([value.hex() for value in column.to_pylist()])
    with pytest.raises(InvalidInputError, match="note"):
        through(tmp_path, door, column)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("option", ["person_column", "trace"])
def test_at_no_door_a_column_of_the_place_names_persons_or_times(tmp_path: Path, door: str, option: str) -> None:
    place = {"geojson": "geometry.coordinates[1]", "geojsonl": "geometry.coordinates[1]", "gpkg": "geom"}
    name = place.get(door, "geometry" if door == "geo.parquet" else "lat")
    with pytest.raises(InvalidInputError, match="holds the place") as caught:
        through(tmp_path, door, ["ana"] * len(TRUTH), **{option: f"note,{name}" if option == "trace" else name})
    assert not any(str(axis) in str(caught.value) for axis in TRUTH.ravel())
    assert [path.name.split(".")[0] for path in tmp_path.iterdir()] == ["in"], "nothing may be left after an error"


@pytest.mark.parametrize("door", DOORS)
def test_columns_that_tell_nothing_pass_every_door(tmp_path: Path, door: str) -> None:
    for number, (case, column) in enumerate(PLAIN.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert through(folder, door, column(TRUTH)), case


@pytest.mark.parametrize("door", DOORS)
def test_what_is_dropped_is_gone_and_no_true_coordinate_is_left(tmp_path: Path, door: str) -> None:
    made = through(tmp_path, door, BY_VALUE["both in a text"](TRUTH), drop=["note"])
    for value in TRUTH[TRUTH.round(5) != TRUTH].tolist():
        assert f"{value}".encode() not in made
        assert np.float64(value).tobytes() not in made
    assert b"note" not in made or door == "gpkg"


@pytest.mark.parametrize("door", DOORS)
def test_the_checks_complain_without_the_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, door: str
) -> None:
    monkeypatch.setattr(table, "refuse", lambda _: None)
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        test_a_column_that_repeats_the_truth_passes_no_door(tmp_path, door, "text")
    (tmp_path / "again").mkdir()
    passed = through(tmp_path / "again", door, [f"at {lat}" for _, lat in TRUTH])
    assert b"at 48." in passed or door.endswith("parquet")
