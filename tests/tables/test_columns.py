"""Which columns of a schema hold the places, which pass and which do not, and what the reports' schema says."""

import json
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest
import shapely

from geoind import InvalidInputError, SphericalGaussian, SphericalLaplace
from geoind.arrays import FloatArray
from geoind.randomness import RandomnessLike
from geoind.space.crs import from_lonlat
from geoind.tables import Problem, Recipe, Table
from geoind.tables.promise import PARQUET_KEY, TablePromise
from geoind.tables.where import LonLat, Points
from tests.tables import cases

TRUTH = cases.lonlat(40)
WKB = shapely.to_wkb(shapely.points(TRUTH))
NOISE = SphericalLaplace(0.01)


def table(schema: dict[str, pa.DataType], geo: Any = None, **options: Any) -> Table:
    """Return a table of these columns, of which GeoParquet declares some."""
    metadata = None if geo is None else {"geo": json.dumps(geo), "owner": "us"}
    where = {name: options.pop(name) for name in ("open_ended", "path") if name in options}
    return Recipe.of(epsilon=0.01, **options).table(pa.schema(schema, metadata), **where)


DEGREES = {"id": pa.int64(), "lon": pa.float64(), "lat": pa.float64()}
SHAPES = {"id": pa.int64(), "home": pa.binary(), "work": pa.binary()}
BOTH = {"primary_column": "work", "columns": {"home": {"crs": "EPSG:2154"}, "work": {}}}
HOME = {"primary_column": "home", "columns": {"home": {"crs": "EPSG:2154"}}}
BOXED = {"id": pa.int64(), "home": pa.binary(), "box": pa.string()}
BOX = {
    "primary_column": "home",
    "columns": {"home": {"crs": "EPSG:2154", "covering": {"bbox": {"xmin": ["box", "xmin"]}}}},
}
NOWHERE = {"primary_column": "home", "columns": {"home": {"crs": None}}}


@pytest.mark.parametrize(
    ("schema", "geo", "options", "places"),
    [
        (DEGREES, None, {}, [LonLat("lon", "lat")]),
        ({**DEGREES, "lng": pa.float64()}, None, {"drop": ["lng"]}, [LonLat("lon", "lat")]),
        (DEGREES, None, {"lon": "id", "lat": "lat", "drop": ["lon"]}, [LonLat("id", "lat")]),
        (SHAPES, BOTH, {"drop": ["home"]}, [Points("work", "OGC:CRS84")]),
        (SHAPES, BOTH, {"drop": ["work"]}, [Points("home", "EPSG:2154")]),
        (SHAPES, BOTH, {"crs": "EPSG:4326", "drop": ["home"]}, [Points("work", "OGC:CRS84")]),
        (SHAPES, BOTH, {"geometry": "home", "drop": ["work"]}, [Points("home", "EPSG:2154")]),
        (SHAPES, HOME, {"geometry": "work", "crs": "EPSG:3035", "drop": ["home"]}, [Points("work", "EPSG:3035")]),
        (SHAPES, NOWHERE, {"crs": "EPSG:3035", "drop": ["work"]}, [Points("home", "EPSG:3035")]),
        (
            {**DEGREES, "home": pa.binary()},
            HOME,
            {"lon": "lon", "lat": "lat", "drop": ["home"]},
            [LonLat("lon", "lat")],
        ),
        ({**DEGREES, "home": pa.binary()}, HOME, {"drop": ["lon", "lat"]}, [Points("home", "EPSG:2154")]),
    ],
)
def test_places_are_where_the_recipe_says_or_the_schema_or_usual_names(
    schema: dict[str, pa.DataType], geo: Any, options: dict[str, Any], places: list[Any]
) -> None:
    made = table(schema, geo, **options)
    assert made.places == tuple(places)
    gone = {*(name for place in places for name in place.names), *options.get("drop", ())}
    assert made.passing == made.checked == [name for name in schema if name not in gone]


@pytest.mark.parametrize(
    ("schema", "geo", "options", "message"),
    [
        (DEGREES, None, {"crs": "EPSG:4326"}, "no column is declared to be one"),
        (DEGREES, None, {"lon": "x", "lat": "lat"}, "column 'x' must be there once, the columns are id, lon, lat"),
        (DEGREES, None, {"id_column": "x"}, "column 'x' must be there once"),
        (DEGREES, None, {"person_column": "x"}, "column 'x' must be there once"),
        (DEGREES, None, {"trace": "x,id"}, "column 'x' must be there once"),
        (DEGREES, None, {"trace": "id,x"}, "column 'x' must be there once"),
        (DEGREES, None, {"drop": ["x"]}, "there is no column 'x' to drop or keep"),
        (DEGREES, None, {"keep": ["x"]}, "there is no column 'x' to drop or keep"),
        (DEGREES, None, {"lon": "lon", "lat": "lat", "drop": ["lat"]}, "column 'lat' is needed"),
        (DEGREES, None, {"id_column": "id", "drop": ["id"]}, "column 'id' is needed"),
        (DEGREES, None, {"id_column": "lat"}, "column 'lat' holds the place: it cannot say which record, who"),
        (DEGREES, None, {"person_column": "lon"}, "column 'lon' holds the place"),
        (DEGREES, None, {"person_column": "lat", "keep": ["lat"]}, "column 'lat' holds the place"),
        (DEGREES, None, {"person_column": "id", "lon": "lon", "lat": "id"}, "column 'id' holds the place"),
        (DEGREES, None, {"trace": "lat,id"}, "column 'lat' holds the place"),
        (DEGREES, None, {"trace": "id,lat"}, "column 'lat' holds the place"),
        (SHAPES, HOME, {"person_column": "home", "drop": ["work"]}, "column 'home' holds the place"),
        (BOXED, BOX, {"person_column": "box"}, "column 'box' holds the place"),
        ({**DEGREES, "lng": pa.float64()}, None, {}, "several columns are called"),
        (SHAPES, HOME, {"geometry": "x", "crs": "EPSG:4326"}, "column 'x' must be there once"),
        (SHAPES, HOME, {"geometry": "work", "drop": ["home"]}, "column 'work' must have a CRS"),
        (SHAPES, HOME, {"crs": "EPSG:4326", "drop": ["work"]}, "column 'home' declares another CRS than crs"),
        (SHAPES, NOWHERE, {"drop": ["work"]}, "column 'home' must have a CRS"),
        (SHAPES, BOTH, {}, "'home' holds geometries"),
        ({**DEGREES, "street": pa.string()}, None, {}, "'street'"),
        (
            DEGREES,
            {"primary_column": "lon", "columns": {}},
            {"path": "lat=48/a.parquet", "lon": "lon", "lat": "lat"},
            "lat",
        ),
    ],
)
def test_columns_that_are_missing_needed_or_telling_are_refused(
    schema: dict[str, pa.DataType], geo: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        table(schema, geo, **options)


def test_a_name_stands_for_one_column_unless_all_of_that_name_are_dropped() -> None:
    fields = [*pa.schema(DEGREES), pa.field("note", pa.string()), pa.field("note", pa.string())]
    with pytest.raises(InvalidInputError, match="column 'note' must be there once"):
        Recipe.of(epsilon=0.01).table(pa.schema(fields))
    with pytest.raises(InvalidInputError, match="column 'note' must be there once"):
        Recipe.of(epsilon=0.01, keep=["note"]).table(pa.schema(fields))
    assert Recipe.of(epsilon=0.01, drop=["note"]).table(pa.schema(fields)).passing == ["id"]


def test_what_is_dropped_or_kept_may_be_an_entry_of_the_metadata_or_of_the_path() -> None:
    for names in (["owner"], ["geo"], ["day"], ["owner", "day", "id"]):
        for way in ("drop", "keep"):
            table(DEGREES, {}, path="all/day=1/a=b=c.csv", **{way: names})
    with pytest.raises(InvalidInputError, match="there is no column '1'"):
        table(DEGREES, {}, path="day=1/a.csv", drop=["1"])
    with pytest.raises(InvalidInputError, match="there is no column 'all'"):
        table(DEGREES, {}, path="all/a.csv", keep=["all"])
    # One file of several: the column may be another one's.
    assert table(DEGREES, drop=["x"], keep=["y"], open_ended=True).passing == ["id"]


def test_a_folder_that_tells_the_place_is_refused_unless_it_is_kept() -> None:
    with pytest.raises(InvalidInputError, match="lat"):
        table(DEGREES, path="lat=48.85/a.csv")
    assert table(DEGREES, path="lat=48.85/a.csv", open_ended=True, keep=["lat"], lon="lon", lat="lat")


def test_columns_and_metadata_that_tell_the_place_are_named_together() -> None:
    schema = pa.schema({**DEGREES, "street": pa.string()}, {"extent": "2 48 3 49"})
    with pytest.raises(InvalidInputError, match=r"'street' .*'extent' in the metadata"):
        Recipe.of(epsilon=0.01).table(schema)
    made = Recipe.of(epsilon=0.01, drop=["extent"], keep=["street"]).table(schema)
    assert (made.passing, made.checked) == (["id", "street"], ["id"])
    assert made.promise.kept == ("street",)


def test_how_somebody_moved_passes_beside_single_places_and_not_beside_traces() -> None:
    schema = {**DEGREES, "when": pa.float64(), "speed": pa.float64()}
    assert "speed" in table(schema).passing
    with pytest.raises(InvalidInputError, match="'speed' tells how somebody moved"):
        table(schema, trace="id,when")


def test_the_promise_of_a_table_has_all_parts_of_its_recipe_and_names_the_places() -> None:
    options: dict[str, Any] = {"level": 1.5, "radius": 200.0, "delta": 1e-5, "reports": 2}
    noise = SphericalGaussian(5000.0)
    schema = pa.schema({**DEGREES, "a": pa.float64(), "b": pa.float64()})
    recipe = Recipe.of(**options, mechanism=noise, lon=["lon", "a"], lat=["lat", "b"], keep=["id"])
    wanted = TablePromise.of(noise, **options)
    assert recipe.table(schema).promise == replace(wanted, places=(("lon", "lat"), ("a", "b")), kept=("id",))
    trace = Recipe.of(epsilon=0.01, trace="who,when", key=bytes(32))
    moving = trace.table(pa.schema({"who": pa.int64(), "when": pa.int64(), **DEGREES}))
    assert moving.promise == replace(TablePromise.of(NOISE, trace=trace.trace), places=(("lon", "lat"),))
    # Who writes a table of traces tells what they cost.
    assert PARQUET_KEY not in (moving.reported_schema.metadata or {})


def test_the_schema_of_the_reports_lacks_what_is_dropped_and_notes_about_places() -> None:
    note = {"centre": "2.35 48.86"}
    fields = [
        pa.field("id", pa.int32(), metadata={"unit": "one"}),
        pa.field("lon", pa.float64(), nullable=False, metadata=note),
        pa.field("lat", pa.float32(), metadata=note),
        pa.field("cell", pa.string()),
    ]
    made = Recipe.of(epsilon=0.01, drop=["cell", "owner"]).table(
        pa.schema(fields, {"owner": "us", "author": "ana"})
    )
    schema = made.reported_schema
    assert schema.names == ["id", "lon", "lat"]
    assert schema.types == [pa.int32(), pa.float64(), pa.float32()]
    assert schema.field("id").metadata == {b"unit": b"one"}
    assert not schema.field("lon").metadata
    assert not schema.field("lon").nullable
    assert schema.metadata == {b"author": b"ana", b"geoind": made.promise.to_json().encode()}


def degrees(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {"id": np.arange(len(TRUTH)), "lon": TRUTH[:, 0], "lat": TRUTH[:, 1], **columns}
    )


def test_points_must_lie_on_earth_in_their_crs() -> None:
    places = [(180.0, 90.0), (-180.0, -90.0), (180.1, 0.0), (0.0, 90.1), (-200.0, -91.0), (1.0, np.inf)]
    batch = pa.RecordBatch.from_pydict({"place": shapely.to_wkb(shapely.points(places))})
    for crs in ("OGC:CRS84", "EPSG:4326"):
        examined = Recipe.of(epsilon=0.01, geometry="place", crs=crs).table(batch.schema).examine(batch)
        lost = "the point must lie on Earth in its CRS"
        assert examined.problems == (
            *(Problem(row, lost) for row in (2, 3, 4)),
            Problem(5, "the point must be finite"),
        )
        assert examined.rows.tolist() == [0, 1]


def test_the_first_reason_of_a_bad_row_is_told_and_of_which_place_it_speaks() -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "id": [None, 1, 2, None, 4, 5],
            "who": ["ana", None, "ben", "cyd", "dan", "eva "],
            "a": [2.0, 2.0, 200.0, None, 2.0, 2.0],
            "b": [48.0, 48.0, 48.0, 48.0, 48.0, 48.0],
            "c": [2.0, 2.0, None, 2.0, 2.0, 2.0],
            "d": [48.0, 48.0, 48.0, 100.0, 48.0, 48.0],
        }
    )
    options: dict[str, Any] = {"id_column": "id", "person_column": "who", "lon": ["a", "c"], "lat": ["b", "d"]}
    wanted = {
        0: "there is no identity in column 'id'",
        1: "there is no person in column 'who'",
        2: "a and b: |longitude| must be at most 180",
        3: "a and b: there is no place",
        5: "person must be a name without space around it",
    }
    found = Recipe.of(epsilon=0.01, **options).table(batch.schema).examine(batch)
    assert dict(found.problems) == wanted
    kept = Recipe.of(epsilon=0.01, missing="keep", **options).table(batch.schema).examine(batch)
    assert dict(kept.problems) == wanted | {3: "c and d: |latitude| must be at most 90"}
    assert kept.rows.tolist() == [4]
    one = Recipe.of(epsilon=0.01, lon="a", lat="b", drop=["c", "d"]).table(batch.schema).examine(batch)
    assert dict(one.problems) == {2: "|longitude| must be at most 180", 3: "there is no place"}


def test_columns_beside_are_asked_for_by_the_rows_that_were_given() -> None:
    lon = TRUTH[:, 0].copy()
    lon[[0, 7]] = 200.0
    given = degrees(lon=lon).select(["lon", "lat"])
    asked: list[list[int]] = []

    def beside(rows: Any) -> pa.RecordBatch:
        asked.append(rows.tolist())
        return pa.RecordBatch.from_pydict({"note": TRUTH[rows, 1]})

    made = Recipe.of(epsilon=0.01).table(pa.schema({**DEGREES, "note": pa.float64()}))
    with pytest.raises(InvalidInputError, match="'note'"):
        made.examine(given, beside=beside)
    assert asked == [[row for row in range(len(TRUTH)) if row not in (0, 7)]]
    with pytest.raises(InvalidInputError, match="'note'"):
        made.obfuscate(degrees().select(["lon", "lat"]), beside=beside)
    # What the batch does not hold, and nobody gives, cannot be looked at.
    assert made.examine(given).rows.tolist() == asked[0]


def test_a_copy_of_the_coordinates_in_their_own_crs_is_refused() -> None:
    own = from_lonlat(TRUTH, "EPSG:2154")
    places = shapely.to_wkb(shapely.points(own))
    for copy in (own[:, 0], own[:, 1], TRUTH[:, 1]):
        batch = pa.RecordBatch.from_pydict({"place": places, "note": copy})
        recipe = Recipe.of(epsilon=0.01, geometry="place", crs="EPSG:2154")
        with pytest.raises(InvalidInputError, match="'note'"):
            recipe.obfuscate(batch)


def test_a_copy_of_any_place_of_a_row_is_refused_and_any_place_may_be_sorted() -> None:
    other = cases.lonlat(40, seed=9)
    columns = {"a": other[:, 0], "b": other[:, 1]}
    recipe = Recipe.of(epsilon=0.01, lon=["lon", "a"], lat=["lat", "b"])
    assert recipe.obfuscate(degrees(**columns)).num_rows == 40
    with pytest.raises(InvalidInputError, match="'note'"):
        recipe.obfuscate(degrees(**columns, note=other[:, 1]))
    turn = np.argsort(other[:, 0])
    with pytest.raises(InvalidInputError, match="sorted by place"):
        recipe.obfuscate(degrees(**columns).take(pa.array(turn)))


def test_a_trace_may_go_straight_on() -> None:
    turn = np.argsort(TRUTH[:, 0])
    batch = (
        degrees(who=[7] * 40, when=np.arange(40)).take(pa.array(turn)).set_column(4, "when", pa.array(range(40)))
    )
    made = Recipe.of(epsilon=0.01, trace="who,when", drop=["id"]).table(batch.schema)
    assert made.examine(batch).problems == ()


@dataclass(frozen=True)
class ToThePole:
    """A mechanism whose reports are all at the South Pole."""

    epsilon: float = 0.01
    decimals: int = 5
    space: Literal["lonlat"] = "lonlat"

    def sample(self, truth: Any, *, rng: RandomnessLike = None) -> FloatArray:  # noqa: ARG002
        return np.tile([0.0, -90.0], (len(truth), 1))

    def reach(self, confidence: float) -> float:  # noqa: ARG002
        return 1e7


def test_reports_that_a_crs_has_no_coordinates_for_are_an_error() -> None:
    places = from_lonlat(TRUTH, "EPSG:2154")
    batch = pa.RecordBatch.from_pydict({"place": shapely.to_wkb(shapely.points(places))})
    recipe = Recipe(mechanism=ToThePole(), places=(Points("place", "EPSG:2154"),))
    assert np.isinf(from_lonlat(np.array([[0.0, -90.0]]), "EPSG:2154")).any()
    with pytest.raises(InvalidInputError, match="the CRS has no coordinates for some reports"):
        recipe.obfuscate(batch)


@pytest.mark.parametrize("crs", ["OGC:CRS84", "EPSG:2154"])
def test_boxes_of_a_geometry_are_made_anew_and_are_no_column_that_passes(crs: str) -> None:
    own = from_lonlat(TRUTH, crs)
    sides = {"xmin": own[:, 0], "ymin": own[:, 1], "xmax": own[:, 0], "ymax": own[:, 1]}
    boxes = pa.StructArray.from_arrays([pa.array(side) for side in sides.values()], list(sides))
    about = {"crs": crs, "bbox": [2, 48, 3, 49], "covering": {"bbox": {side: ["box", side] for side in sides}}}
    geo = {"version": "1.1.0", "primary_column": "place", "columns": {"place": about}}
    columns = {"place": shapely.to_wkb(shapely.points(own)), "fare": [7.5] * 40, "box": boxes}
    batch = pa.RecordBatch.from_pydict(columns).replace_schema_metadata({"geo": json.dumps(geo)})
    made = Recipe.of(epsilon=0.01).table(batch.schema)
    assert made.passing == ["fare"]
    found = made.obfuscate(batch)
    reports = from_lonlat(found.reports[0], crs)
    assert (reports != own).any(axis=1).all()
    assert found.batch["box"].to_pylist() == [
        dict(zip(sides, (x, y, x, y), strict=True)) for x, y in reports.tolist()
    ]
    assert "bbox" not in json.loads(found.batch.schema.metadata[b"geo"])["columns"]["place"]


def test_geometries_that_carry_another_crs_than_their_column_are_refused() -> None:
    shapes = shapely.set_srid(shapely.points(TRUTH), 4326)
    batch = pa.RecordBatch.from_pydict({"place": shapely.to_wkb(shapes, include_srid=True)})
    assert Recipe.of(epsilon=0.01, geometry="place", crs="OGC:CRS84").obfuscate(batch).num_rows == 40
    with pytest.raises(InvalidInputError, match="column 'place' has another CRS than its own geometries"):
        Recipe.of(epsilon=0.01, geometry="place", crs="EPSG:2154").obfuscate(batch)


def test_persons_are_counted_where_a_column_names_them() -> None:
    batch = degrees(who=["ana"] * 30 + ["ben"] * 10)
    named = Recipe.of(epsilon=0.01, person_column="who").table(batch.schema)
    assert named.count_persons(named.examine(batch)) == {"ana": 30, "ben": 10}
    nameless = Recipe.of(epsilon=0.01).table(batch.schema)
    with pytest.raises(InvalidInputError, match="person_column must name the column of persons"):
        nameless.count_persons(nameless.examine(batch))


def test_persons_that_no_column_names_may_not_tell_the_place_either() -> None:
    batch = degrees()
    made = Recipe.of(epsilon=0.01).table(batch.schema)
    examined = made.examine(batch)
    assert made.count_persons(examined, pa.array(["ana"] * 30 + ["ben"] * 10)) == {"ana": 30, "ben": 10}
    with pytest.raises(InvalidInputError, match="must not tell the place, and it repeats the latitude") as told:
        made.count_persons(examined, pa.array([str(lat) for lat in TRUTH[:, 1]]))
    assert str(TRUTH[0, 1]) not in str(told.value)
    nobody = made.examine(batch.slice(0, 0))
    assert made.count_persons(nobody, pa.array([], pa.string())) == {}


def test_shuffled_rows_stay_together_with_their_numbers_and_reports() -> None:
    lon = TRUTH[:, 0].copy()
    lon[[3, 8]] = 200.0
    batch = degrees(lon=lon)
    made = Recipe.of(epsilon=0.01, order="shuffle", key=bytes(32), id_column="id").table(batch.schema)
    found = made.report(made.examine(batch))
    assert found.rows.tolist() == found.batch["id"].to_pylist() != sorted(found.rows.tolist())
    assert [problem.row for problem in found.problems] == [3, 8]
    np.testing.assert_array_equal(
        found.reports[0], np.column_stack([found.batch["lon"].to_numpy(), found.batch["lat"].to_numpy()])
    )
    wanted = Recipe.of(epsilon=0.01, key=bytes(32), id_column="id").table(batch.schema)
    straight = wanted.report(wanted.examine(batch))
    order = np.argsort(found.rows)
    np.testing.assert_array_equal(found.reports[0][order], straight.reports[0])
