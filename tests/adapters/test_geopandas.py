from collections.abc import Mapping
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pyproj
import pytest
import shapely

import geoind
from geoind import Mechanism
from geoind.adapters.geopandas import obfuscate_points
from geoind.distances import EARTH_RADIUS
from geoind.errors import InvalidInputError
from geoind.pipeline import Costs, ReportCounts
from geoind.tables import TablePromise, read_promise
from tests.goodness import p_value

EPSILON = 0.01
PARIS = (2.2945, 48.8584)


class Book:
    """A ledger that remembers what it was asked."""

    def __init__(self) -> None:
        self.charged: list[tuple[dict[str | int, int], float]] = []

    def charge_all(self, costs: Costs, *, label: str = "", once: Mapping[str, str] | None = None) -> None:
        raise AssertionError(f"these are no traces: {costs} {label} {once}")

    def charge_counts(
        self, reports: ReportCounts, cost: Mechanism, *, label: str = "", once: Mapping[str, str] | None = None
    ) -> None:
        assert label
        assert once is None, "without a key each call is a new release"
        counts: dict[str | int, int] = {}
        counts.update(reports.items())
        self.charged.append((counts, cost.epsilon))


def frame(count: int = 4, crs: object = 4326) -> geopandas.GeoDataFrame:
    lon = np.linspace(2.2, 2.4, count)
    lat = np.linspace(48.8, 48.9, count)
    return geopandas.GeoDataFrame(
        {"user": [f"u{i % 2}" for i in range(count)], "value": np.arange(count) / 3},
        geometry=geopandas.points_from_xy(lon, lat),
        crs=4326,
        index=pd.Index([f"row {i}" for i in range(count)], name="key"),
    ).to_crs(crs)


def metres(truth: geopandas.GeoSeries, reports: geopandas.GeoSeries) -> np.ndarray:
    """Return great-circle distances, row by row."""
    a, b = (shapely.get_coordinates(points.to_crs(4326).to_numpy()) for points in (truth, reports))
    return np.asarray(pyproj.Geod(a=EARTH_RADIUS, f=0).inv(a[:, 0], a[:, 1], b[:, 0], b[:, 1])[2])


def on_lattice(points: geopandas.GeoSeries) -> bool:
    lonlat = shapely.get_coordinates(points.to_numpy())
    return bool((geoind.snap_lonlat(lonlat) == lonlat).all())


@pytest.mark.parametrize("crs", [4326, "OGC:CRS84", 2154, 3857, 32631, 4258])
def test_index_columns_and_crs_survive_in_any_crs(crs: object) -> None:
    truth = frame(crs=crs)
    reports = obfuscate_points(truth, epsilon=EPSILON)
    assert reports.crs == truth.crs
    assert type(reports) is geopandas.GeoDataFrame
    pd.testing.assert_frame_equal(
        pd.DataFrame(reports.drop(columns="geometry")), pd.DataFrame(truth.drop(columns="geometry"))
    )
    moved = metres(truth.geometry, reports.geometry)
    assert (moved > 0).all()
    assert (moved < 40 / EPSILON).all()


def test_the_frame_given_is_not_changed() -> None:
    truth = frame()
    before = truth.copy()
    obfuscate_points(truth, epsilon=EPSILON)
    assert truth.equals(before)


def test_a_series_keeps_name_index_and_crs() -> None:
    truth = frame().geometry.rename("home")
    reports = obfuscate_points(truth, level=1.0, radius=100)
    assert reports.name == "home"
    assert reports.index.equals(truth.index)
    assert reports.crs == truth.crs


def test_another_active_geometry_is_replaced_and_stays_active() -> None:
    truth = frame().rename_geometry("home")
    truth["office"] = geopandas.GeoSeries([shapely.Point(0, i) for i in range(4)], index=truth.index, crs=4326)
    with pytest.raises(InvalidInputError, match="'office' holds geometries"):
        obfuscate_points(truth, epsilon=EPSILON)
    reports = obfuscate_points(truth, epsilon=EPSILON, keep=["office"])
    assert reports.active_geometry_name == "home"
    assert list(reports.columns) == list(truth.columns)
    assert (reports["office"] == truth["office"]).all()
    assert not (reports["home"] == truth["home"]).any()


def test_the_accessor_does_what_the_function_does() -> None:
    truth = frame()
    by_function = obfuscate_points(truth, epsilon=EPSILON, rng=7)
    assert truth.geoind.obfuscate(epsilon=EPSILON, rng=7).equals(by_function)
    assert truth.geometry.geoind.obfuscate(epsilon=EPSILON, rng=7).equals(by_function.geometry)


def test_a_series_of_numbers_has_no_accessor() -> None:
    assert not hasattr(pd.Series([1]), "geoind")


def plain_frame(lon: str = "lon", lat: str = "lat") -> pd.DataFrame:
    people = frame(6)
    places = {lon: people.geometry.x + 0.0012345, lat: people.geometry.y + 0.0054321}
    return pd.DataFrame(people.drop(columns="geometry")).assign(**places)


@pytest.mark.parametrize(("lon", "lat"), [("lon", "lat"), ("lng", "latitude"), ("Longitude", "Lat")])
def test_a_frame_of_pandas_keeps_everything_but_its_degrees(lon: str, lat: str) -> None:
    truth = plain_frame(lon, lat)
    before = truth.copy()
    reports = truth.geoind.obfuscate(epsilon=EPSILON)
    assert type(reports) is pd.DataFrame
    pd.testing.assert_frame_equal(truth, before)
    pd.testing.assert_frame_equal(reports.drop(columns=[lon, lat]), truth.drop(columns=[lon, lat]))
    assert reports.columns.tolist() == truth.columns.tolist()
    drawn = reports[[lon, lat]].to_numpy()
    assert (geoind.snap_lonlat(drawn) == drawn).all()
    assert not (drawn == truth[[lon, lat]].to_numpy()).any()
    assert TablePromise.from_json(reports.attrs["geoind"]).epsilon == EPSILON


def test_a_frame_of_pandas_reports_as_a_frame_of_points_does() -> None:
    names, truth = [f"t{i}" for i in range(6)], plain_frame()
    people = geopandas.GeoDataFrame(
        {"trip": names}, geometry=geopandas.points_from_xy(truth["lon"], truth["lat"]), crs=4326
    )
    points = people.geoind.obfuscate(epsilon=EPSILON, key=bytes(32), id_column="trip")
    degrees = truth.assign(trip=names).geoind.obfuscate(epsilon=EPSILON, key=bytes(32), id_column="trip")
    assert (degrees[["lon", "lat"]].to_numpy() == shapely.get_coordinates(points.geometry.to_numpy())).all()


def test_a_frame_of_pandas_is_paid_by_its_persons() -> None:
    book = Book()
    plain_frame().geoind.obfuscate(epsilon=EPSILON, ledger=book, person="user")
    assert book.charged == [({"u0": 3, "u1": 3}, EPSILON)]


@pytest.mark.parametrize(
    ("people", "options", "message"),
    [
        (pd.DataFrame({"a": [1]}), {}, "lon"),
        (plain_frame().assign(copy=lambda table: table["lat"]), {}, "'copy'"),
        (plain_frame().assign(lat=91.0), {}, "latitude"),
        (plain_frame().assign(lat=np.nan), {}, "row 0"),
        (plain_frame().assign(lat="here"), {}, "lat"),
        (plain_frame(), {"lon": "x", "lat": "y"}, "'x'"),
        (plain_frame(), {"epsilon": 1.0}, "likely a unit error"),
    ],
)
def test_bad_frames_of_pandas_are_refused_before_anybody_pays(
    people: pd.DataFrame, options: dict[str, Any], message: str
) -> None:
    book = Book()
    with pytest.raises(InvalidInputError, match=message):
        people.geoind.obfuscate(**{"epsilon": EPSILON, "ledger": book, "person": "user", **options})
    assert not book.charged


def test_geographic_reports_are_places_of_the_lattice() -> None:
    assert on_lattice(obfuscate_points(frame(), epsilon=EPSILON).geometry)


def test_projected_reports_are_places_of_the_lattice_reprojected() -> None:
    reports = obfuscate_points(frame(crs=2154), epsilon=EPSILON).geometry
    lonlat = shapely.get_coordinates(reports.to_crs(4326).to_numpy())
    assert np.abs(lonlat - geoind.snap_lonlat(lonlat)).max() < 1e-9
    again = geopandas.GeoSeries(shapely.points(geoind.snap_lonlat(lonlat)), crs=4326).to_crs(2154)
    assert (shapely.get_coordinates(again.to_numpy()) == shapely.get_coordinates(reports.to_numpy())).all()


@pytest.mark.parametrize("crs", [4326, 2154, 3857])
def test_the_noise_has_the_promised_scale_in_ground_metres(crs: int) -> None:
    count = 20_000
    truth = geopandas.GeoSeries(shapely.points([PARIS] * count), crs=4326).to_crs(crs)
    reports = obfuscate_points(truth, epsilon=EPSILON, rng=1)
    radius = metres(truth, reports)
    right = geoind.SphericalLaplace(EPSILON)
    assert p_value(radius, right.radius_cdf) > 1e-3
    for wrong in (EPSILON / 1.05, EPSILON * 1.05):
        assert p_value(radius, geoind.SphericalLaplace(wrong).radius_cdf) < 1e-6


def test_heights_do_not_survive() -> None:
    truth = geopandas.GeoSeries([shapely.Point(*PARIS, 324.0)], crs=4326)
    assert not obfuscate_points(truth, epsilon=EPSILON).has_z.any()


def test_duplicate_index_labels_keep_their_rows() -> None:
    truth = frame()
    truth.index = pd.Index([0, 0, 1, 1])
    truth = truth.to_crs(4326)
    reports = obfuscate_points(truth, mechanism=geoind.SphericalLaplace(10.0))
    assert (metres(truth.geometry, reports.geometry) < 100).all()


def test_an_empty_frame_gives_an_empty_frame() -> None:
    truth = frame().iloc[:0]
    assert len(obfuscate_points(truth, epsilon=EPSILON)) == 0
    assert obfuscate_points(truth, epsilon=EPSILON).crs == truth.crs


@pytest.mark.parametrize("hole", [None, shapely.Point()])
def test_missing_and_empty_geometries_raise_or_are_kept(hole: object) -> None:
    truth = frame()
    truth.geometry = [*truth.geometry[:2], hole, truth.geometry.iloc[3]]
    truth = truth.set_crs(4326, allow_override=True)
    with pytest.raises(InvalidInputError, match="row 2: there is no place"):
        obfuscate_points(truth, epsilon=EPSILON)
    reports = obfuscate_points(truth, epsilon=EPSILON, missing="keep")
    kept = reports.geometry.iloc[2]
    assert kept is None if hole is None else kept.is_empty
    assert not (reports.geometry == truth.geometry).iloc[[0, 1, 3]].any()


def test_a_frame_of_nothing_but_missing_geometries_is_kept() -> None:
    truth = geopandas.GeoSeries([None, None], crs=4326)
    assert obfuscate_points(truth, epsilon=EPSILON, missing="keep").isna().all()


def test_with_missing_rows_keyed_noise_stays_with_its_record() -> None:
    key, labels = bytes(range(32)), np.arange(4)
    truth = frame().geometry
    whole = obfuscate_points(truth, epsilon=EPSILON, rng=geoind.KeyedRandomness(key, labels))
    holed = truth.copy()
    holed.iloc[1] = None
    part = obfuscate_points(holed, epsilon=EPSILON, missing="keep", rng=geoind.KeyedRandomness(key, labels))
    assert (part == whole).tolist() == [True, False, True, True]


def test_a_person_column_pays_one_report_per_row() -> None:
    book = Book()
    obfuscate_points(frame(), epsilon=EPSILON, ledger=book, person="user")
    assert book.charged == [({"u0": 2, "u1": 2}, EPSILON)]


def test_two_ways_of_saying_who_pays_are_refused_before_anybody_does() -> None:
    book = Book()
    for points in (frame(), frame().geometry):
        with pytest.raises(InvalidInputError, match="person and person_column both say who pays"):
            obfuscate_points(points, epsilon=EPSILON, ledger=book, person="alice", person_column="user")
    assert not book.charged


def test_a_column_of_identities_without_a_key_is_refused_before_anybody_pays() -> None:
    book = Book()
    with pytest.raises(InvalidInputError, match="give key, too"):
        obfuscate_points(frame(), epsilon=EPSILON, ledger=book, person="user", id_column="user")
    assert not book.charged


def test_rows_without_a_point_are_not_charged() -> None:
    book = Book()
    truth = frame()
    truth.iloc[0, truth.columns.get_loc("geometry")] = None
    obfuscate_points(truth, epsilon=EPSILON, ledger=book, person="user", missing="keep")
    assert book.charged == [({"u1": 2, "u0": 1}, EPSILON)]


def test_a_series_is_paid_by_one_person_or_one_per_row() -> None:
    book = Book()
    truth = frame().geometry
    obfuscate_points(truth, epsilon=EPSILON, ledger=book, person="alice")
    obfuscate_points(truth, epsilon=EPSILON, ledger=book, person=["a", "b", "c", "d"])
    obfuscate_points(truth, epsilon=EPSILON, ledger=book, person=pd.Series([1, 2, 3, 4], index=truth.index))
    assert [persons for persons, _ in book.charged] == [
        {"alice": 4},
        dict.fromkeys("abcd", 1),
        dict.fromkeys("1234", 1),
    ]


def test_bad_persons_are_refused_before_anything_is_charged() -> None:
    book, truth = Book(), frame()
    bad: list[tuple[Any, str]] = [
        ("nobody", "column 'nobody' must be there once"),
        (["a"], "one name per row"),
        (pd.Series(list("abcd")), "index of the points"),
        (["a", None, "c", "d"], "row 1 has none"),
        ([1.0, 2.0, 3.0, 4.0], "text or whole numbers"),
        ([str(lat) for lat in truth.geometry.y], "person must not tell the place"),
    ]
    for person, message in bad:
        with pytest.raises(InvalidInputError, match=message):
            obfuscate_points(truth, epsilon=EPSILON, ledger=book, person=person)
    assert book.charged == []


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (geopandas.GeoSeries([shapely.Point(1, 2)]), "must have a CRS"),
        (
            geopandas.GeoSeries([shapely.LineString([(0, 0), (1, 1)])], crs=4326),
            "row 0: the geometry must be a point",
        ),
        (geopandas.GeoSeries([shapely.MultiPoint([(0, 0)])], crs=4326), "row 0: the geometry must be a point"),
        (geopandas.GeoSeries([shapely.Point(0, 0), shapely.Point(12.345, 91)], crs=4326), "row 1"),
        (geopandas.GeoSeries([shapely.Point(181.5, 0)], crs=4326), "row 0: the point must lie on Earth"),
        (geopandas.GeoSeries([shapely.Point(np.nan, 12.345)], crs=4326), "row 0"),
        (geopandas.GeoSeries([shapely.Point(1e30, 12.345)], crs=32631), "row 0"),
        (geopandas.GeoSeries([shapely.Point(1, 2, 3)], crs=4978), "geocentric"),
        (geopandas.GeoDataFrame({"a": [1]}), "active geometry"),
        (pd.DataFrame({"lon": [1.0]}), "no column is called lat"),
        ([shapely.Point(1, 2)], "GeoSeries or a frame"),
    ],
)
def test_bad_points_are_refused_without_quoting_them(points: Any, message: str) -> None:
    book = Book()
    with pytest.raises(InvalidInputError, match=message) as caught:
        obfuscate_points(points, epsilon=EPSILON, ledger=book, person=["a"] * len(points))
    assert "12.345" not in str(caught.value)
    assert book.charged == []


def test_a_bad_row_is_named_by_its_place_in_the_frame() -> None:
    truth = geopandas.GeoSeries([None, shapely.Point(0, 0), shapely.Point(0, 91)], crs=4326)
    with pytest.raises(InvalidInputError, match="row 2"):
        obfuscate_points(truth, epsilon=EPSILON, missing="keep")


def test_non_points_are_never_passed_through() -> None:
    house = geopandas.GeoSeries([shapely.Point(0, 0).buffer(1)], crs=4326)
    with pytest.raises(InvalidInputError, match="row 0: the geometry must be a point"):
        obfuscate_points(house, epsilon=EPSILON, missing="keep")


def test_bad_options_are_refused() -> None:
    truth = frame()
    with pytest.raises(InvalidInputError, match="missing must be"):
        obfuscate_points(truth, epsilon=EPSILON, missing="drop")  # type: ignore[arg-type]
    bad: tuple[dict[str, Any], ...] = (
        {},
        {"level": 1.0},
        {"epsilon": 0.0},
        {"epsilon": np.nan},
        {"epsilon": 1.0, "level": 1.0, "radius": 1.0},
    )
    for options in bad:
        with pytest.raises(InvalidInputError):
            obfuscate_points(truth, **options)


@pytest.mark.parametrize("crs", [4326, 2154])
def test_columns_that_repeat_the_truth_are_refused(crs: int) -> None:
    truth = frame(crs=crs)
    degrees = truth.geometry.to_crs(4326)
    for x, y in ((truth.geometry.x, truth.geometry.y), (degrees.x, degrees.y)):
        copied = truth.assign(lon=x, lat=y)
        with pytest.raises(InvalidInputError, match=r"'lon' tells .* 'lat' tells .* drop=\['lon', 'lat'\]"):
            obfuscate_points(copied, epsilon=EPSILON)
        with pytest.raises(InvalidInputError, match=r"'a' repeats .*'b' repeats"):
            obfuscate_points(truth.assign(a=x, b=y), epsilon=EPSILON)
        assert list(obfuscate_points(truth.assign(a=x), epsilon=EPSILON, drop=["a"])) == list(truth)
    for twin in (truth.geometry, truth.geometry.to_crs(3857), truth.geometry.to_crs(3857).buffer(10)):
        with pytest.raises(InvalidInputError, match="'twin' holds geometries"):
            obfuscate_points(truth.assign(twin=twin), epsilon=EPSILON)


def test_an_index_that_tells_the_place_is_refused_or_dropped() -> None:
    truth = frame(40).sample(frac=1, random_state=1)
    for index in (truth.geometry.y, truth.geometry.x.astype(str), truth.geometry.to_wkt()):
        with pytest.raises(InvalidInputError, match="'index' repeats"):
            obfuscate_points(truth.set_index(pd.Index(index)), epsilon=EPSILON)
    hilbert = truth.set_index(truth.hilbert_distance().rename("hilbert_distance"))
    with pytest.raises(InvalidInputError, match="'hilbert_distance' tells"):
        obfuscate_points(hilbert, epsilon=EPSILON)
    reports = obfuscate_points(hilbert, epsilon=EPSILON, drop=["hilbert_distance"])
    assert isinstance(reports.index, pd.RangeIndex)


def test_rows_in_hilbert_order_are_refused_or_shuffled() -> None:
    rng = np.random.default_rng(3)
    points = geopandas.GeoSeries(shapely.points(rng.normal([2.35, 48.86], 0.05, (400, 2))), crs=4326)
    truth = geopandas.GeoDataFrame({"note": np.arange(400)}, geometry=points.to_numpy(), crs=4326)
    ordered = truth.iloc[np.argsort(truth.hilbert_distance())]
    with pytest.raises(InvalidInputError, match=r"sorted by place.*order='shuffle'"):
        obfuscate_points(ordered, epsilon=EPSILON)
    shuffled = obfuscate_points(ordered, epsilon=EPSILON, order="shuffle", key=bytes(32), id_column="note")
    again = obfuscate_points(truth, epsilon=EPSILON, order="shuffle", key=bytes(32), id_column="note")
    assert isinstance(shuffled.index, pd.RangeIndex)
    assert shuffled.equals(again)
    assert obfuscate_points(truth, epsilon=EPSILON, key=bytes(32), id_column="note").note.tolist() == list(
        range(400)
    )


def test_the_promise_travels_in_attrs_and_through_parquet(tmp_path: Path) -> None:
    truth = frame().assign(street="Rue de Rivoli")
    reports = obfuscate_points(truth, level=2.0, radius=400, keep=["street"])
    told = TablePromise.from_json(reports.attrs["geoind"])
    assert (told.epsilon, told.level, told.places, told.kept) == (0.005, 2.0, (("geometry",),), ("street",))
    reports.to_parquet(tmp_path / "reports.parquet")
    assert read_promise(tmp_path / "reports.parquet") == told


def test_persons_of_mixed_kinds_or_floats_are_refused() -> None:
    book, truth = Book(), frame()
    for persons in ([1.0, 2.0, 3.0, None], [1, "1", 2, "2"], [True, False, True, False]):
        with pytest.raises(InvalidInputError, match="'user'"):
            obfuscate_points(truth.assign(user=persons), epsilon=EPSILON, ledger=book, person="user")
    assert book.charged == []


def test_a_local_crs_that_leads_nowhere_is_refused() -> None:
    building = pyproj.CRS.from_wkt(
        'ENGCRS["building",EDATUM["corner"],CS[Cartesian,2],AXIS["x",east],AXIS["y",north],LENGTHUNIT["metre",1]]'
    )
    with pytest.raises(InvalidInputError, match="cannot be brought to degrees"):
        obfuscate_points(geopandas.GeoSeries([shapely.Point(12.345, 1)], crs=building), epsilon=EPSILON)


def test_reports_that_the_crs_cannot_express_are_an_error() -> None:
    horizon = geopandas.GeoSeries([shapely.Point(89.9, 0)] * 50, crs=4326)
    with pytest.raises(InvalidInputError, match="no coordinates for some reports"):
        obfuscate_points(horizon.to_crs("+proj=ortho +lat_0=0 +lon_0=0 +R=6371000"), epsilon=1e-4, rng=1)
