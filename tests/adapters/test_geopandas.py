"""Frames of pandas, geopandas and MovingPandas: what stays in the frame, in which CRS, and what is refused."""

import inspect
import logging
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pyproj
import pytest
import shapely

from geoind import EACH_ROW, InvalidInputError, Key, KeyedRandomness, Ledger, SphericalLaplace, TraceSession
from geoind.adapters.geopandas import obfuscate
from geoind.distances import EARTH_RADIUS
from geoind.mechanisms import snap_lonlat
from geoind.tables import Recipe, ReleaseRecord, read_promise
from tests.goodness import p_value

EPSILON = 0.01
KEY = bytes(range(32))
EACH: dict[str, Any] = {"epsilon": EPSILON, "person": EACH_ROW, "key": KEY}
SIZE = 40
RNG = np.random.default_rng(3)
LONLAT = RNG.normal([2.35, 48.86], 0.05, (SIZE, 2))


def frame(crs: object = 4326) -> geopandas.GeoDataFrame:
    return geopandas.GeoDataFrame(
        {"user": [f"u{number % 4}" for number in range(SIZE)], "value": np.arange(SIZE) / 3},
        geometry=shapely.points(LONLAT),
        crs=4326,
        index=pd.Index([f"row {number}" for number in range(SIZE)], name="label"),
    ).to_crs(crs)


def plain_frame(lon: str = "lon", lat: str = "lat") -> pd.DataFrame:
    people = pd.DataFrame(frame().drop(columns="geometry"))
    return people.assign(**{lon: LONLAT[:, 0], lat: LONLAT[:, 1]})


def metres(truth: geopandas.GeoSeries, reports: geopandas.GeoSeries) -> np.ndarray:
    """Return great-circle distances, row by row."""
    a, b = (shapely.get_coordinates(points.to_crs(4326).to_numpy()) for points in (truth, reports))
    return np.asarray(pyproj.Geod(a=EARTH_RADIUS, f=0).inv(a[:, 0], a[:, 1], b[:, 0], b[:, 1])[2])


def on_lattice(lonlat: np.ndarray) -> bool:
    return bool((snap_lonlat(lonlat) == lonlat).all())


# What stays


@pytest.mark.parametrize("crs", [4326, "OGC:CRS84", 2154, 3857, 32631, 4258])
def test_index_kept_columns_and_crs_stay_in_any_crs(crs: object) -> None:
    truth = frame(crs)
    before = truth.copy()
    reports = obfuscate(truth, **EACH, keep=["value"])
    assert truth.equals(before)
    assert type(reports) is geopandas.GeoDataFrame
    assert reports.crs == truth.crs
    assert reports.columns.tolist() == ["value", "geometry"]
    assert reports.index.equals(truth.index)
    assert reports.index.name == "label"
    assert reports["value"].equals(truth["value"])
    moved = metres(truth.geometry, reports.geometry)
    assert ((moved > 0) & (moved < 40 / EPSILON)).all()


@pytest.mark.parametrize(("lon", "lat"), [("lon", "lat"), ("lng", "latitude"), ("Longitude", "Lat")])
def test_a_frame_of_pandas_has_reports_in_its_columns_of_degrees(lon: str, lat: str) -> None:
    truth = plain_frame(lon, lat)
    reports = truth.geoind.obfuscate(**EACH, keep=["user"])
    assert type(reports) is pd.DataFrame
    assert reports.columns.tolist() == ["user", lon, lat]
    source = KeyedRandomness(Key(KEY).for_file(""), np.arange(SIZE))
    assert (reports[[lon, lat]].to_numpy() == SphericalLaplace(EPSILON).sample(LONLAT, rng=source)).all()
    points = obfuscate(frame(), **EACH)
    assert (shapely.get_coordinates(points.geometry.to_numpy()) == reports[[lon, lat]].to_numpy()).all()


def test_notes_in_a_crs_do_not_leave() -> None:
    noted = pyproj.CRS.from_json_dict({**pyproj.CRS(2154).to_json_dict(), "name": "mine", "remarks": "a secret"})
    truth = frame(noted)
    assert b"a secret" in pickle.dumps(truth)
    reports = obfuscate(truth, **EACH)
    assert b"a secret" not in pickle.dumps(reports)
    assert reports.crs == pyproj.CRS(2154)


def test_a_series_keeps_name_index_and_crs() -> None:
    truth = frame().geometry.rename("home")
    reports = obfuscate(truth, person=EACH_ROW, level=1.0, radius=100)
    assert type(reports) is geopandas.GeoSeries
    assert (reports.name, reports.crs) == ("home", truth.crs)
    assert reports.index.equals(truth.index)
    assert ReleaseRecord.from_json(reports.attrs["geoind"]).epsilon == 0.01
    with pytest.raises(InvalidInputError, match="no column 'user'"):
        obfuscate(truth, epsilon=EPSILON, person="user")


def test_the_accessor_does_what_the_function_does_and_shows_its_keywords() -> None:
    truth = frame()
    reports = obfuscate(truth, **EACH)
    assert truth.geoind.obfuscate(**EACH).equals(reports)
    assert truth.geometry.geoind.obfuscate(**EACH).equals(reports.geometry)
    assert not hasattr(pd.Series([1]), "geoind")
    for function in (obfuscate, truth.geoind.obfuscate):
        names = inspect.signature(function).parameters
        assert {"person", "keep", "reports_per_person", "epsilon", "time", "ledger", "job", "key"} <= {*names}


def test_a_geometry_may_be_named_and_others_do_not_leave() -> None:
    truth = frame().rename_geometry("home")
    truth["office"] = truth["home"].to_crs(3857)
    assert obfuscate(truth, **EACH).columns.tolist() == ["home"]
    office = obfuscate(truth, **EACH, geometry="office")
    assert (office.columns.tolist(), office.active_geometry_name, office.crs) == (["office"], "office", 3857)
    with pytest.raises(InvalidInputError, match="'office' holds geometries"):
        obfuscate(truth, **EACH, keep=["office"])
    degrees = truth.assign(x=LONLAT[:, 0], y=LONLAT[:, 1])
    reports = obfuscate(degrees, **EACH, lon="x", lat="y")
    assert type(reports) is pd.DataFrame
    assert reports.columns.tolist() == ["x", "y"]


def test_the_record_is_in_attrs_and_in_parquet(tmp_path: Path) -> None:
    reports = obfuscate(frame(), level=2.0, radius=400, person="user", keep=["value"])
    record = ReleaseRecord.from_json(reports.attrs["geoind"])
    assert (record.epsilon, record.level, record.places) == (0.005, 2.0, (("geometry",),))
    assert (record.kept, record.unit, record.persons) == (("value",), "column", 4)
    assert record.busiest is not None
    assert record.busiest.reports == SIZE / 4
    reports.to_parquet(tmp_path / "reports.parquet")
    assert read_promise(tmp_path / "reports.parquet") == record


def test_the_log_names_what_was_left_out(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "geoind"):
        obfuscate(frame(), **EACH, keep=["value"])
    assert "40 reports" in caplog.text
    assert "--keep user" in caplog.text


# Reports


def test_reports_are_places_of_the_lattice_reprojected_if_need_be() -> None:
    assert on_lattice(shapely.get_coordinates(obfuscate(frame(), **EACH).geometry.to_numpy()))
    reports = obfuscate(frame(2154), **EACH).geometry
    lonlat = snap_lonlat(shapely.get_coordinates(reports.to_crs(4326).to_numpy()))
    again = geopandas.GeoSeries(shapely.points(lonlat), crs=4326).to_crs(2154)
    assert (shapely.get_coordinates(again.to_numpy()) == shapely.get_coordinates(reports.to_numpy())).all()


@pytest.mark.parametrize("crs", [4326, 2154, 3857])
def test_the_noise_has_the_promised_scale_in_ground_metres(crs: int) -> None:
    truth = geopandas.GeoSeries(shapely.points([(2.2945, 48.8584)] * 20_000), crs=4326).to_crs(crs)
    radius = metres(truth, obfuscate(truth, **EACH))
    assert p_value(radius, SphericalLaplace(EPSILON).radius_cdf) > 1e-3
    for wrong in (EPSILON / 1.05, EPSILON * 1.05):
        assert p_value(radius, SphericalLaplace(wrong).radius_cdf) < 1e-6


def test_heights_do_not_leave() -> None:
    truth = geopandas.GeoSeries([shapely.Point(2.2945, 48.8584, 324.0)], crs=4326)
    assert not obfuscate(truth, **EACH).has_z.any()


@pytest.mark.parametrize("hole", [None, shapely.Point()], ids=["none", "empty"])
def test_rows_without_a_point_are_an_error_or_stay_without_one(hole: object) -> None:
    truth, whole = frame(), obfuscate(frame(), **EACH)
    truth.geometry = geopandas.GeoSeries([*truth.geometry[:2], hole, *truth.geometry[3:]], truth.index, crs=4326)
    with pytest.raises(InvalidInputError, match="row 2: geometry is empty"):
        obfuscate(truth, **EACH)
    reports = obfuscate(truth, **EACH, missing="keep").geometry
    kept = reports.iloc[2]
    assert kept is None
    assert (reports == whole.geometry).tolist() == [number != 2 for number in range(SIZE)]


def test_a_frame_without_rows_and_one_without_points_keep_columns_and_crs() -> None:
    for order in ("raise", "shuffle", "keep"):
        reports = obfuscate(frame(2154).iloc[:0], **EACH, keep=["user"], order=order)
        assert (len(reports), reports.columns.tolist(), reports.crs) == (0, ["user", "geometry"], 2154)
    nowhere = geopandas.GeoSeries([None, None], crs=4326)
    assert obfuscate(nowhere, **EACH, missing="keep").isna().all()


def test_rows_in_hilbert_order_are_refused_or_shuffled() -> None:
    rng = np.random.default_rng(3)
    points = geopandas.GeoSeries(shapely.points(rng.normal([2.35, 48.86], 0.05, (400, 2))), crs=4326)
    truth = geopandas.GeoDataFrame({"trip": np.arange(400)}, geometry=points.to_numpy(), crs=4326)
    ordered = truth.iloc[np.argsort(truth.hilbert_distance())]
    with pytest.raises(InvalidInputError, match=r"order of the rows shows .* `order='shuffle'`"):
        obfuscate(ordered, **EACH)
    options = {**EACH, "id_column": "trip", "keep": ["trip"]}
    shuffled, kept = (obfuscate(ordered, **options, order=order) for order in ("shuffle", "keep"))
    assert kept.index.equals(ordered.index)
    # The old labels would show the old order.
    assert isinstance(shuffled.index, pd.RangeIndex)
    assert shuffled["trip"].tolist() != kept["trip"].tolist()
    assert shuffled.sort_values("trip", ignore_index=True).equals(kept.sort_values("trip", ignore_index=True))


@pytest.mark.parametrize("where", ["column", "index"])
@pytest.mark.parametrize("start", [0, 300, 1000])
def test_positions_along_a_curve_are_no_times(where: str, start: int) -> None:
    points = np.random.default_rng(0).normal([2.35, 48.86], 0.05, (3000, 2))
    truth = geopandas.GeoDataFrame(geometry=shapely.points(points), crs=4326)
    # Some of these numbers are seconds of the years 1990 to 2039.
    curve = truth.assign(curve=truth.hilbert_distance()).sort_values("curve", ignore_index=True).iloc[start:]
    with pytest.raises(InvalidInputError, match="order of the rows"):
        obfuscate(curve.set_index("curve") if where == "index" else curve, **EACH)


@pytest.mark.parametrize("where", ["column", "text", "index"])
def test_times_in_a_column_or_in_the_index_explain_an_order(where: str) -> None:
    at = pd.date_range("2024-05-01", periods=SIZE, freq="min", name="at")
    drive = plain_frame().reset_index(drop=True).assign(lat=np.sort(LONLAT[:, 1]))
    with pytest.raises(InvalidInputError, match="order of the rows"):
        obfuscate(drive, **EACH)
    timed = (
        drive.set_index(at) if where == "index" else drive.assign(at=at if where == "column" else at.astype(str))
    )
    assert "at" not in obfuscate(timed, **EACH).columns


# Persons and charges


def test_a_limit_leaves_rows_out_and_the_others_keep_their_labels() -> None:
    truth = frame()
    whole = obfuscate(truth, epsilon=EPSILON, person="user", key=KEY)
    reports = obfuscate(truth, epsilon=EPSILON, person="user", key=KEY, reports_per_person=3)
    assert truth["user"].loc[reports.index].value_counts().tolist() == [3] * 4
    assert (reports.geometry == whole.geometry.loc[reports.index]).all()
    assert reports.index.equals(truth.index[truth.index.isin(reports.index)])


def test_bad_frames_are_refused_before_a_charge() -> None:
    truth = plain_frame()
    bad: list[tuple[Any, dict[str, Any], str]] = [
        (truth.drop(columns="lat"), {}, "no column is called lat"),
        (truth.assign(copy=truth["lat"]), {"keep": ["copy"]}, "'copy' repeats true coordinates"),
        (truth.assign(lat=91.0), {}, "row 0: latitude must be between"),
        (truth.assign(lat=np.nan), {}, "row 0: latitude is empty"),
        (truth.assign(lat="here"), {}, "row 0: latitude must be a finite number"),
        (truth, {"lon": "x", "lat": "y"}, "'x'"),
        (truth, {"epsilon": 1.0}, "epsilon"),
        (truth, {"keep": ["nothing"]}, "no column 'nothing'"),
        (truth.assign(user=[1, "1"] * (SIZE // 2)), {}, "'user' must hold values of one kind"),
        (truth.assign(user=1.0), {}, "'user' must name persons in text or whole numbers"),
        (truth.assign(user=None), {}, "person is missing|must name persons"),
        (pd.concat([truth, truth[["user"]]], axis=1), {}, "several columns are called 'user'"),
    ]
    with Ledger("sqlite://", budget=100) as ledger:
        for people, options, message in bad:
            with pytest.raises(InvalidInputError, match=message):
                people.geoind.obfuscate(**{"epsilon": EPSILON, "ledger": ledger, "person": "user", **options})
        assert ledger.spent("u0") == ledger.spent("1") == 0


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (geopandas.GeoSeries([shapely.Point(1, 2)]), "must have a CRS"),
        (geopandas.GeoSeries([shapely.LineString([(0, 0), (1, 1)])], crs=4326), "row 0: geometry must be a point"),
        (geopandas.GeoSeries([shapely.MultiPoint([(0, 0)])], crs=4326), "row 0: geometry must be a point"),
        (geopandas.GeoSeries([shapely.Point(0, 0).buffer(1)], crs=4326), "row 0: geometry must be a point"),
        (geopandas.GeoSeries([shapely.Point(0, 0), shapely.Point(12.345, 91)], crs=4326), "row 1"),
        (geopandas.GeoSeries([shapely.Point(181.5, 0)], crs=4326), "row 0: point must lie on Earth"),
        (geopandas.GeoSeries([shapely.Point(np.nan, 12.345)], crs=4326), "row 0"),
        (geopandas.GeoSeries([shapely.Point(1e30, 12.345)], crs=32631), "row 0"),
        (geopandas.GeoSeries([shapely.Point(1, 2, 3)], crs=4978), "geocentric"),
        (geopandas.GeoDataFrame({"a": [1]}), "no column is called lon"),
        ([shapely.Point(1, 2)], "frame must be a DataFrame, .* got list"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_points_are_refused_without_quoting_them(points: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as caught:
        obfuscate(points, **{**EACH, "missing": "keep"})
    assert "12.345" not in str(caught.value)


def test_a_crs_that_does_not_reach_a_place_or_a_report_is_refused() -> None:
    building = pyproj.CRS.from_wkt(
        'ENGCRS["building",EDATUM["corner"],CS[Cartesian,2],AXIS["x",east],AXIS["y",north],LENGTHUNIT["metre",1]]'
    )
    with pytest.raises(InvalidInputError, match="cannot be transformed"):
        obfuscate(geopandas.GeoSeries([shapely.Point(12.345, 1)], crs=building), **EACH)
    horizon = geopandas.GeoSeries([shapely.Point(89.9, 0)] * 50, crs=4326)
    with pytest.raises(InvalidInputError, match="no coordinates for some reports"):
        obfuscate(horizon.to_crs("+proj=ortho +lat_0=0 +lon_0=0 +R=6371000"), **{**EACH, "epsilon": 1e-4})


# Traces


def walks(persons: int = 5, steps: int = 30) -> pd.DataFrame:
    """Return people between two places, mixed by time."""
    rng = np.random.default_rng(1)
    rows = [
        (f"p{person}", pd.Timestamp("2024-05-01", tz="UTC") + pd.Timedelta(minutes=7 * step), *place)
        for step in range(steps)
        for person in range(persons)
        for place in [np.add((2.35, 48.9) if step // 8 % 2 else (2.29, 48.85), rng.normal(0, 1e-4, 2))]
    ]
    return pd.DataFrame(rows, columns=["who", "when", "lon", "lat"])


WALK: dict[str, Any] = {"epsilon": EPSILON, "key": KEY, "person": "who", "time": "when"}


def answers() -> dict[tuple[str, float], tuple[float, float]]:
    """Return what each person's own session answers, by person and time."""
    method = Recipe.of(**WALK).method
    assert method is not None
    sessions = {f"p{number}": TraceSession(method, key=KEY, person_id=f"p{number}") for number in range(5)}
    found = {}
    for who, when, lon, lat in walks().itertuples(index=False):
        answer = sessions[who].report(lat=lat, lon=lon, time=when.timestamp())
        found[who, when.timestamp()] = (answer.lon, answer.lat)
    return found


def answered(who: Any, when: Any, points: Any) -> dict[tuple[str, float], tuple[float, float]]:
    moments = [pd.Timestamp(moment).timestamp() for moment in when]
    return {key: tuple(place) for key, place in zip(zip(who, moments, strict=True), points.tolist(), strict=True)}


def test_each_persons_own_session_answers_and_the_index_stays() -> None:
    truth = walks().set_index(pd.Index(range(1000, 1150))).assign(speed=3.0)
    reports = obfuscate(truth, **WALK)
    assert reports.columns.tolist() == ["who", "when", "lon", "lat"]
    assert answered(reports["who"], reports["when"], reports[["lon", "lat"]].to_numpy()) == answers()
    assert reports.index.equals(truth.index)
    assert reports["when"].equals(truth["when"])
    assert ReleaseRecord.from_json(reports.attrs["geoind"]).mechanism == "Switching"


@dataclass
class Trajectories:
    """What MovingPandas' TrajectoryCollection and Trajectory offer: the frame of their points, by time."""

    frame: geopandas.GeoDataFrame

    def to_point_gdf(self) -> geopandas.GeoDataFrame:
        return self.frame


def test_trajectories_have_times_and_persons_in_their_index() -> None:
    points = geopandas.points_from_xy(walks()["lon"], walks()["lat"], crs=4326)
    walked = geopandas.GeoDataFrame(walks()[["who", "when"]].rename(columns={"when": "t"}), geometry=points)
    for levels in (["t"], ["t", "who"]):
        reports = obfuscate(Trajectories(walked.set_index(levels)), **{**WALK, "time": "t"})
        assert isinstance(reports, geopandas.GeoDataFrame)
        assert reports.index.names == levels
        rows = reports.reset_index()
        assert answered(rows["who"], rows["t"], shapely.get_coordinates(rows.geometry.to_numpy())) == answers()


FLAWS: dict[str, tuple[str, Any, str]] = {
    "back": ("when", pd.Timestamp("2020-01-01", tz="UTC"), "row 100: .*'p0'"),
    "twice": ("when", pd.Timestamp("2024-05-01T02:13Z"), "row 100: .*'p0'"),
    "no time": ("when", pd.NaT, "row 100: time is missing"),
    "no person": ("who", None, "row 100: person is missing"),
    "space": ("who", "p0 ", "row 100: person must be a name without space"),
    "off the globe": ("lat", 91.0, "row 100"),
}


@pytest.mark.parametrize("case", FLAWS)
def test_a_bad_step_is_named_and_nothing_is_charged(case: str) -> None:
    column, value, message = FLAWS[case]
    truth = walks()
    truth.loc[100, column] = value
    with Ledger("sqlite://", budget=10) as ledger:
        with pytest.raises(InvalidInputError, match=message):
            obfuscate(truth, **WALK, ledger=ledger)
        assert ledger.spent("p0") == 0


@pytest.mark.parametrize("named", [{"person": "lat"}, {"time": "lat"}, {"id_column": "lat", "time": None}])
def test_a_coordinate_names_no_person_time_or_record(named: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="column 'lat' holds the true place"):
        obfuscate(walks().astype({"lat": str}), **{**WALK, **named})
