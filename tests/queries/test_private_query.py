import copy
import dataclasses
import inspect
import json
import math
import pickle
import pprint

import geopandas
import numpy as np
import pyproj
import pytest
import shapely

from geoind import (
    BudgetExceededError,
    InvalidInputError,
    Ledger,
    PlanarLaplace,
    PostProcessed,
    Projected,
    Projection,
    SamePlace,
    SphericalLaplace,
    private_query,
)
from geoind.arrays import ArrayLike, FloatArray
from geoind.mechanisms.protocol import RandomnessLike, Space
from geoind.queries import PointsOfInterest, PrivateQuery, corridor, retrieval_radius
from tests.keywords import Place

EPSILON = math.log(4) / 200


EIFFEL: Place = {"lat": 48.8584, "lon": 2.2945}


class Ask(Place):
    radius: float
    confidence: float
    epsilon: float


ASK: Ask = {**EIFFEL, "radius": 300.0, "confidence": 0.95, "epsilon": EPSILON}


GEOD = pyproj.Geod(ellps="WGS84")


def places(count: int, *, seed: int = 0, spread: float = 0.02) -> FloatArray:
    return np.random.default_rng(seed).normal([EIFFEL["lon"], EIFFEL["lat"]], spread, (count, 2))


def frame_of(lonlat: FloatArray) -> geopandas.GeoDataFrame:
    points = geopandas.points_from_xy(lonlat[:, 0], lonlat[:, 1])
    return geopandas.GeoDataFrame({"number": range(len(lonlat))}, geometry=points, crs=4326)


def distances(lonlat: FloatArray, lat: float, lon: float) -> FloatArray:
    start = np.ones(len(lonlat))
    return np.asarray(GEOD.inv(lon * start, lat * start, lonlat[:, 0], lonlat[:, 1])[2])


@pytest.mark.parametrize(
    ("level", "expected"), [(2, 1668.8), (4, 984.4), (6, 829.5), (8, 756.3), (10, 712.0)], ids=str
)
def test_the_textbook_radius(level: int, expected: float) -> None:
    assert retrieval_radius(300, 0.95, math.log(level) / 200) == pytest.approx(expected, abs=0.05)


def test_on_the_globe_the_radius_is_the_textbooks_and_less_than_two_per_cent() -> None:
    textbook = retrieval_radius(300, 0.95, EPSILON)
    assert textbook + 0.786 < private_query(**ASK).radius < 1.02 * textbook


@pytest.mark.slow
@pytest.mark.parametrize("lat", [0.0, 89.999])
def test_the_area_of_interest_is_inside_as_often_as_promised(lat: float) -> None:
    """By simulation, in WGS84 metres: everything within 300 m of the truth is within the radius of the report."""
    draws, rng = 3000, np.random.default_rng(3)
    queries = [
        private_query(lat=lat, lon=10.0, radius=300, confidence=0.9, epsilon=0.02, rng=rng) for _ in range(draws)
    ]
    reports = np.array([[query.lon, query.lat] for query in queries])
    apart = distances(reports, lat, 10.0)
    tolerance = 4.5 * math.sqrt(0.9 * 0.1 / draws)
    assert np.mean(apart + 300 <= queries[0].radius) >= 0.9 - tolerance
    assert np.mean(apart + 300 <= queries[0].radius - 0.1 * (queries[0].radius - 300)) < 0.9
    for query, distance in zip(queries[:200], apart, strict=False):
        assert query.covered == (distance + 300 <= query.radius)


def test_nothing_that_is_sent_depends_on_the_truth_but_through_the_report() -> None:
    """Two truths with the same report give the same query to the last bit, whatever the noise was."""

    class Constant:
        epsilon = EPSILON
        space: Space = "lonlat"

        def reach(self, confidence: float) -> float:
            return 500.0 * confidence

        def sample(self, points: ArrayLike, *, rng: RandomnessLike = None) -> FloatArray:  # noqa: ARG002
            return np.full_like(points, 2.5, dtype=float)

    seen = set()
    for lat, lon in [(2.5, 2.5), (2.51, 2.49), (-48.0, 179.0), (90.0, 0.0)]:
        query = private_query(
            lat=lat, lon=lon, radius=300, mechanism=Constant(), report_reach=500.0, shape=shapely.Point(lon, lat)
        )
        sent = [
            query.as_params(name) for name in ("google_places", "overpass", "foursquare", "geojson", "postgis")
        ]
        seen.add(json.dumps([sent, dataclasses.asdict(query), repr(query), query.guarantee, hash(query)]))
    assert len(seen) == 1


def test_the_radius_does_not_depend_on_the_draw() -> None:
    queries = [private_query(**ASK) for _ in range(50)]
    assert len({query.radius for query in queries}) == 1
    assert len({query.lat for query in queries}) > 1


def test_the_truth_is_not_printed_compared_or_serialised() -> None:
    shape = shapely.Point(2.123456789, 48.123456789)
    query = private_query(lat=48.123456789, lon=2.123456789, radius=300, epsilon=EPSILON, shape=shape)
    public = dataclasses.asdict(query)
    assert set(public) == {"lat", "lon", "radius", "interest_radius", "confidence", "epsilon"}
    assert vars(query) == public == query.__getstate__()
    shown = [
        repr(query),
        str(query),
        json.dumps(query, default=vars),
        json.dumps(dataclasses.astuple(query)),
        query.guarantee,
        pprint.pformat(query),
        repr(inspect.getmembers(query, lambda member: not callable(member))),
        repr(query._trusted),
    ]
    for text in shown:
        assert "123456789" not in text
    assert b"123456789" not in pickle.dumps(query, protocol=0)
    twin = pickle.loads(pickle.dumps(query))
    assert twin == query == PrivateQuery(**public)
    for stranger in (
        twin,
        copy.copy(query),
        copy.deepcopy(query),
        PrivateQuery(**public),
        dataclasses.replace(query),
    ):
        with pytest.raises(InvalidInputError, match="has no true location"):
            stranger.refine([])
    assert query.refine([]) == []


def test_the_guarantee_is_stated() -> None:
    assert private_query(**ASK).guarantee == (
        "With probability at least 0.95, everything within 300 m of the true location lies within 992.2 m of the "
        "reported one, so no result is missed."
    )


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"lat": 91.0}, "latitude"),
        ({"lon": math.nan}, "finite"),
        ({"lat": "48"}, "number"),
        ({"radius": 0}, "radius"),
        ({"radius": math.nan}, "radius"),
        ({"confidence": 1.0}, "confidence"),
        ({"confidence": 0}, "confidence"),
        ({"confidence": math.nan}, "confidence"),
        ({"epsilon": None}, "give either epsilon or mechanism"),
        ({"mechanism": SphericalLaplace(EPSILON)}, "give either epsilon or mechanism"),
        ({"epsilon": 5}, "moves reports by 0.4 m on average"),
        ({"person_id": "ana"}, "go together"),
        ({"report_reach": -1}, "report_reach"),
        ({"shape": "round"}, "shape"),
        ({"shape": shapely.Polygon()}, "shape"),
        ({"shape": shapely.Point(2.2945, 48.87)}, "within 300 m"),
        ({"same_place": SamePlace(bytes(32))}, "needs person_id"),
        ({"same_place": SamePlace(bytes(32)), "person_id": "ana", "rng": 1}, "own noise"),
    ],
    ids=str,
)
def test_every_bad_argument_has_its_error_before_anything_is_charged(bad: dict[str, object], message: str) -> None:
    ledger = Ledger("sqlite://", budget=1)
    paid = {} if "person_id" in bad else {"ledger": ledger, "person_id": "ana"}
    if "same_place" in bad and "person_id" not in bad:
        paid = {}
    with pytest.raises(InvalidInputError, match=message):
        private_query(**{**ASK, **paid, **bad})  # type: ignore[arg-type]
    assert ledger.spent("ana") == 0


def test_a_shape_outside_the_radius_is_refused_without_quoting_it() -> None:
    with pytest.raises(InvalidInputError) as caught:
        private_query(**ASK, shape=shapely.Point(2.29451234, 48.87))
    assert "2.2945" not in str(caught.value)


def test_the_ledger_pays_and_refuses_first() -> None:
    ledger = Ledger("sqlite://", budget=2 * EPSILON)
    for _ in range(2):
        private_query(**ASK, ledger=ledger, person_id="ana")
    with pytest.raises(BudgetExceededError):
        private_query(**ASK, ledger=ledger, person_id="ana")


def test_the_same_place_asks_the_same_query_at_no_cost() -> None:
    ledger, memory = Ledger("sqlite://", budget=EPSILON), SamePlace(bytes(range(32)), cell=100)
    queries = {private_query(**ASK, ledger=ledger, person_id="ana", same_place=memory) for _ in range(5)}
    assert len(queries) == 1
    [query] = queries
    assert query.radius == pytest.approx(private_query(**ASK).radius + memory.cell_radius)


def test_a_planar_mechanism_may_ask() -> None:
    paris = Projected(PlanarLaplace(EPSILON), Projection(2.35, 48.86))
    query = private_query(**EIFFEL, radius=300, mechanism=paris)
    assert query.radius == pytest.approx(retrieval_radius(300, 0.95, EPSILON) + 0.9, abs=0.2)
    own = Projected(PostProcessed(PlanarLaplace(EPSILON), lambda reports: reports), Projection(2.35, 48.86))
    assert private_query(**EIFFEL, radius=300, mechanism=own, report_reach=700).radius == 1000


def test_what_the_provider_returned_holds_everything_when_covered() -> None:
    lonlat = places(5000, spread=0.03)
    provider = PointsOfInterest(frame_of(lonlat))
    wanted = np.flatnonzero(distances(lonlat, **EIFFEL) <= 300)
    covered = 0
    for seed in range(100):
        query = private_query(**ASK, rng=seed)
        answer = provider.around(lat=query.lat, lon=query.lon, radius=query.radius)
        found = query.refine(answer)["number"]
        if query.covered:
            covered += 1
            assert sorted(found) == wanted.tolist()
        else:
            assert set(found) <= set(wanted.tolist())
    assert 85 <= covered <= 100


def test_k_nearest_are_certain_exactly_when_nothing_closer_can_be_outside() -> None:
    lonlat = places(400, spread=0.01)
    frame = frame_of(lonlat)
    provider = PointsOfInterest(frame)
    order = np.argsort(distances(lonlat, **EIFFEL))
    certain = 0
    for seed in range(60):
        query = private_query(**EIFFEL, radius=150.0, confidence=0.6, epsilon=EPSILON, rng=seed)
        answer = provider.around(lat=query.lat, lon=query.lon, radius=query.radius)
        found, sure = query.nearest(answer, k=5)
        retrieved = query.radius - distances(np.array([[query.lon, query.lat]]), **EIFFEL)[0]
        assert sure == (len(found) == 5 and found["distance"].iloc[-1] <= retrieved)
        if sure:
            certain += 1
            assert found["number"].tolist() == order[:5].tolist()
        assert len(found) <= 5
    assert 5 < certain < 60


def test_k_nearest_of_records_and_arrays_agree_with_the_frame() -> None:
    lonlat = places(50)
    query = private_query(**EIFFEL, radius=20_000.0, epsilon=EPSILON)
    by_frame, in_frame = query.nearest(frame_of(lonlat), k=7)
    by_array, in_array = query.nearest(lonlat, k=7)
    by_record, in_record = query.nearest([{"lat": lat, "lon": lon} for lon, lat in lonlat.tolist()], k=7)
    assert in_frame
    assert in_array
    assert in_record
    np.testing.assert_allclose(by_frame["distance"], by_array[:, 2])
    assert [record["distance"] for record in by_record] == by_array[:, 2].tolist()
    assert not query.nearest(lonlat[:3], k=4)[1]


def test_a_corridor_and_a_polygon_are_areas_of_interest() -> None:
    walk = shapely.LineString([(2.2945, 48.8584), (2.2985, 48.8604), (2.3005, 48.8604)])
    way = corridor(walk, width=60)
    lonlat = places(20_000, spread=0.004)
    query = private_query(**EIFFEL, radius=600.0, epsilon=EPSILON, shape=way)
    found = query.refine(lonlat)
    inside = shapely.contains_xy(way, lonlat)
    assert len(found) == inside.sum() > 20
    assert (np.diff(found[:, 2]) >= 0).all()
    assert len(query.refine(frame_of(lonlat))) == inside.sum()
    plain = private_query(**EIFFEL, radius=600.0, epsilon=EPSILON)
    assert query.radius == plain.radius
