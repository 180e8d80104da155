import hashlib
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely

from geoind import (
    InvalidInputError,
    KeyedRandomness,
    Mechanism,
    PlanarLaplace,
    Projected,
    Projection,
    SphericalLaplace,
)
from geoind.adapters import arrow
from geoind.tables import Recipe
from tests.goodness import fits

KEY = hashlib.sha256(b"a key for tests").digest()
NOISE = SphericalLaplace(0.01)
RNG = np.random.default_rng(9)
LONLAT = np.column_stack([RNG.uniform(-180, 180, 40), RNG.uniform(-85, 85, 40)])
CRS84 = {"geometry": "place", "crs": "OGC:CRS84"}


def obfuscate_batch(batch: pa.RecordBatch, mechanism: Mechanism, **options: Any) -> pa.RecordBatch:
    return arrow.obfuscate_batch(batch, mechanism, **{"missing": "keep", **options})


def same_but_for_the_promise(report: pa.Schema, given: pa.Schema) -> bool:
    told = dict(report.metadata or {})
    assert json.loads(told.pop(b"geoind"))["epsilon"] == NOISE.epsilon
    return bool(report.with_metadata(told or None).equals(given, check_metadata=True))


def keyed(size: int = 40) -> KeyedRandomness:
    return KeyedRandomness(KEY, np.arange(size))


def in_columns(lonlat: np.ndarray = LONLAT, kind: pa.DataType | None = None) -> pa.RecordBatch:
    lon, lat = (pa.array(values, pa.float64(), from_pandas=True) for values in lonlat.T)
    kind = kind or pa.float64()
    schema = pa.schema(
        [
            pa.field("trip", pa.int32(), metadata={b"unit": b"one"}),
            pa.field("lon", kind, nullable=bool(lon.null_count)),
            pa.field("lat", kind),
            pa.field("note", pa.dictionary(pa.int8(), pa.string())),
        ],
        metadata={b"owner": b"us"},
    )
    notes = pa.array([None, "b"] * (len(lonlat) // 2)).dictionary_encode().cast(schema.field("note").type)
    columns = [pa.array(np.arange(len(lonlat)), pa.int32()), lon.cast(kind), lat.cast(kind), notes]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def in_points(form: str, lonlat: np.ndarray = LONLAT) -> pa.RecordBatch:
    missing = np.isnan(lonlat).all(axis=1)
    mask = pa.array(missing)
    shapes = np.asarray(shapely.points(lonlat))
    shapes[missing] = None
    if form == "struct":
        place = pa.StructArray.from_arrays([lonlat[:, 0].copy(), lonlat[:, 1].copy()], ["x", "y"], mask=mask)
    elif form == "list":
        place = pa.FixedSizeListArray.from_arrays(pa.array(lonlat.ravel()), 2, mask=mask)
    elif form == "big-endian":
        place = pa.array(shapely.to_wkb(shapes, byte_order=0), pa.binary())
    elif form == "ewkb":
        place = pa.array(shapely.to_wkb(shapely.set_srid(shapes, 4326), include_srid=True), pa.binary())
    else:
        place = pa.array(shapely.to_wkb(shapes), getattr(pa, form)())
    return pa.RecordBatch.from_pydict({"trip": np.arange(len(lonlat)), "place": place})


def places(batch: pa.RecordBatch) -> np.ndarray:
    column = batch["place"]
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_struct(column.type):
        pairs = [(place["x"], place["y"]) if place else (np.nan, np.nan) for place in column.to_pylist()]
    elif pa.types.is_fixed_size_list(column.type):
        pairs = [place or (np.nan, np.nan) for place in column.to_pylist()]
    else:
        shapes = shapely.from_wkb(column.to_pylist())
        pairs = [(np.nan, np.nan) if not s or s.is_empty else (s.x, s.y) for s in shapes]
    return np.array(pairs)


FORMS = ["struct", "list", "binary", "large_binary", "binary_view", "big-endian", "ewkb"]


def test_two_columns_get_the_mechanisms_reports_and_all_else_stays() -> None:
    batch = in_columns()
    report = obfuscate_batch(batch, NOISE, rng=keyed())
    report.validate(full=True)
    assert same_but_for_the_promise(report.schema, batch.schema)
    assert report["trip"] == batch["trip"]
    assert report["note"] == batch["note"]
    np.testing.assert_array_equal(
        np.column_stack([report["lon"].to_numpy(), report["lat"].to_numpy()]), NOISE.sample(LONLAT, rng=keyed())
    )


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_points_gets_the_same_reports(form: str) -> None:
    batch = in_points(form)
    report = obfuscate_batch(batch, NOISE, **CRS84, rng=keyed())
    report.validate(full=True)
    assert same_but_for_the_promise(report.schema, batch.schema)
    np.testing.assert_array_equal(places(report), NOISE.sample(LONLAT, rng=keyed()))
    if form == "ewkb":
        assert set(shapely.get_srid(shapely.from_wkb(report["place"].to_pylist()))) == {4326}


@pytest.mark.parametrize("form", ["columns", *FORMS])
def test_a_null_stays_null_and_changes_no_other_report(form: str) -> None:
    holes = LONLAT.copy()
    holes[[0, 7, 39]] = np.nan
    if form == "columns":
        report = obfuscate_batch(in_columns(holes), NOISE, rng=keyed())
        found = np.column_stack([report[name].to_numpy(zero_copy_only=False) for name in ("lon", "lat")])
        nulls = report["lon"].is_null().to_numpy(zero_copy_only=False)
    else:
        report = obfuscate_batch(in_points(form, holes), NOISE, **CRS84, rng=keyed())
        found = places(report)
        nulls = report["place"].is_null().to_numpy(zero_copy_only=False)
    report.validate(full=True)
    wanted = NOISE.sample(LONLAT, rng=keyed())
    wanted[[0, 7, 39]] = np.nan
    np.testing.assert_array_equal(found, wanted)
    assert list(np.flatnonzero(nulls)) == [0, 7, 39]


@pytest.mark.parametrize("form", ["columns", *FORMS])
@pytest.mark.parametrize(("start", "size"), [(0, 0), (5, 1), (11, 20)])
def test_a_slice_gets_the_reports_of_its_own_rows(form: str, start: int, size: int) -> None:
    holes = LONLAT.copy()
    holes[12] = np.nan
    batch = in_columns(holes) if form == "columns" else in_points(form, holes)
    options = {} if form == "columns" else CRS84
    part = slice(start, start + size)
    whole = obfuscate_batch(batch, NOISE, rng=keyed(), **options)
    piece = obfuscate_batch(
        batch.slice(start, size), NOISE, rng=KeyedRandomness(KEY, np.arange(40)[part]), **options
    )
    assert piece.equals(whole.slice(start, size))


def test_half_a_place_is_not_passed_on() -> None:
    batch = pa.RecordBatch.from_pydict({"lon": [None, 2.0], "lat": [48.0, 48.0]})
    report = obfuscate_batch(batch, NOISE)
    assert report["lat"].to_pylist()[0] is None


def test_an_empty_point_stays_empty() -> None:
    for order in (0, 1):
        points = shapely.to_wkb([shapely.Point(), shapely.Point(2, 48)], byte_order=order)
        report = obfuscate_batch(pa.RecordBatch.from_pydict({"place": list(points)}), NOISE, **CRS84)
        first, second = shapely.from_wkb(report["place"].to_pylist())
        assert first.is_empty
        assert not second.is_empty


def test_missing_places_can_be_refused() -> None:
    batch = pa.RecordBatch.from_pydict({"lon": [2.0, None], "lat": [48.0, None]})
    with pytest.raises(InvalidInputError, match="row 1: there is no place"):
        obfuscate_batch(batch, NOISE, missing="raise")
    with pytest.raises(InvalidInputError, match="missing must be"):
        obfuscate_batch(batch, NOISE, missing="drop")


@pytest.mark.parametrize("bad", [(np.nan, 0.0), (np.inf, 0.0), (181.0, 0.0), (0.0, -90.5)])
def test_a_place_that_is_none_is_refused_by_its_row(bad: tuple[float, float]) -> None:
    lons, lats = [None, 1.0, bad[0]], [None, 1.0, bad[1]]
    with pytest.raises(InvalidInputError, match="row 2"):
        obfuscate_batch(pa.RecordBatch.from_pydict({"lon": lons, "lat": lats}), NOISE)


@pytest.mark.parametrize("kind", [pa.float32(), pa.decimal128(9, 6)])
def test_single_and_decimal_columns_keep_their_type(kind: pa.DataType) -> None:
    batch = in_columns(kind=kind)
    report = obfuscate_batch(batch, NOISE, rng=keyed())
    assert report.schema == batch.schema
    truth = np.column_stack([batch[name].cast(pa.float64()).to_numpy() for name in ("lon", "lat")])
    np.testing.assert_allclose(
        np.column_stack([report[name].cast(pa.float64()).to_numpy() for name in ("lon", "lat")]),
        NOISE.sample(truth, rng=keyed()),
        atol=1e-5,
    )


def test_noise_in_a_batch_has_the_mechanisms_distribution() -> None:
    size = 20_000
    batch = pa.RecordBatch.from_pydict({"lon": np.zeros(size), "lat": np.zeros(size)})
    report = obfuscate_batch(batch, SphericalLaplace(1e-4), rng=KeyedRandomness(KEY, np.arange(size)))
    arc = np.arccos(np.cos(np.radians(report["lat"].to_numpy())) * np.cos(np.radians(report["lon"].to_numpy())))
    radius = arc * 6_371_008.8
    assert fits(radius, SphericalLaplace(1e-4).radius_cdf)
    assert not fits(radius * 1.05, SphericalLaplace(1e-4).radius_cdf)
    assert not fits(radius / 1.05, SphericalLaplace(1e-4).radius_cdf)


def geoparquet(crs: object = "absent", box: bool = True, kind: pa.DataType | None = None) -> pa.RecordBatch:
    kind = kind or pa.float64()
    plain = in_points("binary")
    sides = {
        side: pa.array(LONLAT[:, "xy".index(side[0])]).cast(kind) for side in ("xmin", "ymin", "xmax", "ymax")
    }
    boxes = pa.StructArray.from_arrays(list(sides.values()), list(sides))
    column: dict[str, object] = {"encoding": "WKB", "geometry_types": ["Point"], "bbox": [-179, -84, 179, 84]}
    if crs != "absent":
        column["crs"] = crs
    if box:
        column["covering"] = {"bbox": {side: ["bbox", side] for side in sides}}
    geo = {"version": "1.1.0", "primary_column": "place", "columns": {"place": column}}
    table = plain.append_column("bbox", boxes) if box else plain
    return table.replace_schema_metadata({b"geo": json.dumps(geo).encode(), b"owner": b"us"})


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_boxes_of_true_places_do_not_survive(kind: pa.DataType) -> None:
    batch = geoparquet(kind=kind)
    report = obfuscate_batch(batch, NOISE, rng=keyed())
    found = places(report)
    np.testing.assert_array_equal(found, NOISE.sample(LONLAT, rng=keyed()))
    boxes = report["bbox"].to_pylist()
    for (x, y), box in zip(found, boxes, strict=True):
        assert box["xmin"] <= x <= box["xmax"]
        assert box["ymin"] <= y <= box["ymax"]
        assert box["xmax"] - box["xmin"] < 1e-4
    geo = json.loads(report.schema.metadata[b"geo"])
    assert "bbox" not in geo["columns"]["place"]
    assert geo["columns"]["place"]["covering"]
    assert report.schema.metadata[b"owner"] == b"us"
    wanted = Recipe.of(mechanism=NOISE).table(batch.schema).reported_schema
    assert wanted.equals(report.schema, check_metadata=True)


def test_a_projected_crs_is_carried_there_and_back() -> None:
    lambert = Projection.from_crs("EPSG:2154")
    paris = np.column_stack([RNG.uniform(2.2, 2.5, 40), RNG.uniform(48.8, 48.9, 40)])
    batch = in_points("struct", lambert.to_xy(paris))
    report = obfuscate_batch(batch, NOISE, geometry="place", crs="EPSG:2154", rng=keyed())
    truth = lambert.to_lonlat(lambert.to_xy(paris))
    np.testing.assert_allclose(places(report), lambert.to_xy(NOISE.sample(truth, rng=keyed())), atol=1e-6)


@pytest.mark.parametrize("name", [b"geoarrow.point", b"geoarrow.wkb"])
def test_geoarrow_metadata_is_read_and_survives(name: bytes) -> None:
    plain = in_points("list" if name == b"geoarrow.point" else "binary")
    metadata = {b"ARROW:extension:name": name, b"ARROW:extension:metadata": b'{"crs": "EPSG:4326"}'}
    fields = [plain.schema.field("trip"), plain.schema.field("place").with_metadata(metadata)]
    batch = pa.RecordBatch.from_arrays(plain.columns, schema=pa.schema(fields))
    report = obfuscate_batch(batch, NOISE, rng=keyed())
    assert same_but_for_the_promise(report.schema, batch.schema)
    np.testing.assert_array_equal(places(report), NOISE.sample(LONLAT, rng=keyed()))


class Place(pa.ExtensionType):  # type: ignore[misc]
    def __init__(self, storage: pa.DataType) -> None:
        super().__init__(storage, "geoarrow.point")

    def __arrow_ext_serialize__(self) -> bytes:
        return b'{"crs": "OGC:CRS84"}'

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, _: bytes) -> "Place":
        return cls(storage)


def test_a_registered_extension_type_survives() -> None:
    plain = in_points("struct")
    place = pa.ExtensionArray.from_storage(Place(plain["place"].type), plain["place"])
    report = obfuscate_batch(pa.RecordBatch.from_pydict({"place": place}), NOISE, rng=keyed())
    assert isinstance(report["place"].type, Place)
    np.testing.assert_array_equal(places(report), NOISE.sample(LONLAT, rng=keyed()))


def test_any_lonlat_mechanism_will_do() -> None:
    paris: Mechanism = Projected(PlanarLaplace(0.01), Projection(2.35, 48.86))
    batch = pa.RecordBatch.from_pydict({"x": [2.3, None], "y": [48.8, None]})
    report = obfuscate_batch(batch, paris, lon="x", lat="y", rng=keyed(2))
    assert report["x"][0].as_py() == paris.sample([[2.3, 48.8]], rng=keyed(1))[0, 0]


REFUSED = {
    "no such column": (in_columns(), {"lon": "x", "lat": "lat"}, "column 'x' must be there once"),
    "degrees that are whole": (
        pa.RecordBatch.from_pydict({"lon": [1], "lat": [2]}),
        {},
        "must be float, decimal or text",
    ),
    "two ways": (in_columns(), {"lon": "lon", "geometry": "lat"}, "not both"),
    "a CRS for degrees": (in_columns(), {"crs": "EPSG:4326"}, "crs belongs to a geometry"),
    "a second column of places": (
        geoparquet().append_column("lon", pa.array(LONLAT[:, 0])).append_column("lat", pa.array(LONLAT[:, 1])),
        {"lon": "lon", "lat": "lat"},
        "'place' holds geometries",
    ),
    "no CRS": (in_points("binary"), {"geometry": "place"}, "must have a CRS"),
    "an unknown CRS": (geoparquet(crs=None), {}, "must have a CRS"),
    "another CRS": (geoparquet(), {"crs": "EPSG:2154"}, "declares another CRS"),
    "another SRID": (in_points("ewkb"), {"geometry": "place", "crs": "EPSG:2154"}, "has another CRS"),
    "nonsense for a CRS": (in_points("list"), {"geometry": "place", "crs": "Paris"}, "crs is not known"),
    "copies of the coordinates": (
        in_points("list").append_column("x", pa.array(LONLAT[:, 0])).append_column("y", pa.array(LONLAT[:, 1])),
        CRS84,
        r"'x' is one of two coordinates .* 'y' is",
    ),
    "text": (pa.RecordBatch.from_pydict({"place": ["POINT (1 2)"]}), CRS84, "must hold WKB or GeoArrow points"),
    "bytes that are not WKB": (
        pa.RecordBatch.from_pydict({"place": [b"\x01"]}),
        CRS84,
        "row 0: .* must be WKB",
    ),
    "a line": (
        pa.RecordBatch.from_pydict({"place": [None, shapely.LineString([(0, 0), (1, 1)]).wkb]}),
        CRS84,
        "row 1: the geometry must be a point",
    ),
    "a height in a struct": (
        pa.RecordBatch.from_pydict({"place": [{"x": 1.0, "y": 2.0, "z": 3.0}]}),
        CRS84,
        "points of x and y only",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_doubt_is_an_error(name: str) -> None:
    batch, options, message = REFUSED[name]
    with pytest.raises(InvalidInputError, match=message):
        obfuscate_batch(batch, NOISE, **options)


def test_heights_do_not_survive() -> None:
    report = obfuscate_batch(pa.RecordBatch.from_pydict({"place": [shapely.Point(1, 2, 3).wkb]}), NOISE, **CRS84)
    assert not shapely.from_wkb(report["place"][0].as_py()).has_z


def test_columns_that_are_constant_do_not_count_as_copies() -> None:
    zeros = {name: np.zeros(3) for name in ("lon", "lat", "speed", "course")}
    assert obfuscate_batch(pa.RecordBatch.from_pydict(zeros), NOISE)["speed"].to_pylist() == [0, 0, 0]
