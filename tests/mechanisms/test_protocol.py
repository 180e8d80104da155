"""One suite for every mechanism of the list in examples.py."""

import math
import pickle
from dataclasses import dataclass

import numpy as np
import pyproj
import pytest
import shapely

import geoind
from geoind import (
    Channel,
    ClosestIn,
    Grid,
    InvalidInputError,
    KeyedRandomness,
    Ledger,
    Mechanism,
    PlanarLaplace,
    PostProcessed,
    Projected,
    Projection,
    SphericalLaplace,
    audit,
    discretise,
    obfuscate,
    obfuscate_lonlat,
    private_query,
)
from geoind.arrays import ArrayLike, FloatArray, as_lonlat
from geoind.mechanisms.protocol import (
    RandomnessLike,
    Space,
    accepted,
    as_randomness,
    check_inside,
    is_mechanism,
    require_space,
)
from tests.mechanisms.examples import EXAMPLES, PLANE, Example
from tests.mechanisms.ground import EPSILON, PARIS

GEOD = pyproj.Geod(ellps="WGS84")
DRAWS = 20_000

every_example = pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
every_mechanism = pytest.mark.parametrize(
    "mechanism", [example.mechanism for example in EXAMPLES.values()], ids=EXAMPLES
)


def in_degrees(mechanism: Mechanism) -> Mechanism:
    return mechanism if mechanism.space == "lonlat" else Projected(mechanism, PLANE)


def distances(mechanism: Mechanism, reports: FloatArray) -> FloatArray:
    """Metres from (0, 0) to the reports, in the plane or on WGS84."""
    if mechanism.space == "xy":
        return np.asarray(np.hypot(*reports.T))
    zeros = np.zeros(len(reports))
    return np.asarray(GEOD.inv(zeros, zeros, reports[:, 0], reports[:, 1])[2])


def test_every_mechanism_of_the_face_has_an_example() -> None:
    members = ("epsilon", "space", "reach", "sample")
    public = [getattr(place, name) for place in (geoind, geoind.channels) for name in dir(place)]
    classes = {
        value
        for value in public
        if isinstance(value, type)
        and value is not Mechanism
        and all(hasattr(value, name) or name in getattr(value, "__annotations__", {}) for name in members)
    }
    shown = {type(example.mechanism) for example in EXAMPLES.values()}
    # An optimal channel is a channel with a certificate.
    assert {kind for kind in classes if not (issubclass(kind, Channel) and kind is not Channel)} == shown


@every_example
def test_it_has_its_epsilon_and_its_space(example: Example) -> None:
    assert isinstance(example.mechanism, Mechanism)
    assert is_mechanism(example.mechanism)
    assert example.mechanism.space in ("lonlat", "xy")
    assert example.mechanism.epsilon == pytest.approx(example.epsilon, rel=1e-3)
    assert example.mechanism.epsilon <= example.epsilon * (1 + 1e-6)


@every_mechanism
@pytest.mark.parametrize("n", [0, 1, 9000])
def test_there_is_one_finite_report_per_point(mechanism: Mechanism, n: int) -> None:
    reports = mechanism.sample(np.zeros((n, 2)))
    assert reports.shape == (n, 2)
    assert reports.dtype == np.float64
    assert np.isfinite(reports).all()


@every_mechanism
def test_equal_points_get_different_noise(mechanism: Mechanism) -> None:
    reports = mechanism.sample(np.zeros((50, 2)), rng=0)
    assert len(np.unique(reports, axis=0)) > 5


@every_mechanism
def test_a_key_repeats_the_reports_and_a_second_call_without_one_does_not(mechanism: Mechanism) -> None:
    points = np.zeros((50, 2))
    keyed = KeyedRandomness(bytes(32), np.arange(50))
    np.testing.assert_array_equal(mechanism.sample(points, rng=keyed), mechanism.sample(points, rng=keyed))
    assert not np.array_equal(mechanism.sample(points), mechanism.sample(points))


@every_mechanism
@pytest.mark.parametrize("bad", [[[math.nan, 0]], [[math.inf, 0]], [1.0, 2.0], "here", [[1, 2, 3]]])
def test_bad_points_are_refused(mechanism: Mechanism, bad: object) -> None:
    with pytest.raises(InvalidInputError):
        mechanism.sample(bad)  # type: ignore[arg-type]


@every_mechanism
def test_the_input_is_left_alone(mechanism: Mechanism) -> None:
    points = np.zeros((10, 2))
    mechanism.sample(points)
    assert (points == 0).all()


@every_mechanism
def test_it_travels_to_other_processes(mechanism: Mechanism) -> None:
    twin = pickle.loads(pickle.dumps(mechanism))
    np.testing.assert_array_equal(twin.sample(np.zeros((5, 2)), rng=1), mechanism.sample(np.zeros((5, 2)), rng=1))


@every_example
@pytest.mark.parametrize("confidence", [0.5, 0.9])
def test_reports_lie_within_its_reach_as_often_as_it_says(example: Example, confidence: float) -> None:
    apart = distances(example.mechanism, example.mechanism.sample(np.zeros((DRAWS, 2)), rng=1))
    # 4.5 standard deviations of a binomial share: a right reach fails once in 300 000.
    tolerance = 4.5 * math.sqrt(confidence * (1 - confidence) / DRAWS)
    assert np.mean(apart <= example.mechanism.reach(confidence)) >= confidence - tolerance


@every_example
def test_its_reach_is_not_much_wider_than_needed(example: Example) -> None:
    apart = distances(example.mechanism, example.mechanism.sample(np.zeros((DRAWS, 2)), rng=2))
    assert np.mean(apart <= example.too_little * example.mechanism.reach(0.9)) < 0.9


@every_mechanism
def test_its_reach_grows_with_the_confidence_and_takes_no_certainty(mechanism: Mechanism) -> None:
    reaches = [mechanism.reach(confidence) for confidence in (0.1, 0.5, 0.9, 0.999)]
    assert reaches == sorted(reaches)
    for bad in (0.0, 1.0, math.nan, -1.0):
        with pytest.raises(InvalidInputError, match="confidence"):
            mechanism.reach(bad)


@pytest.mark.slow
@every_mechanism
def test_an_audit_in_its_own_space_does_not_refute_its_promise(mechanism: Mechanism) -> None:
    if mechanism.epsilon == math.inf:
        with pytest.raises(InvalidInputError, match="the mechanism has none"):
            audit(mechanism)
        return
    # A channel is private between its sites, and these pairs are not sites.
    epsilon = mechanism.epsilon if not getattr(mechanism, "off_site_level", 0.0) else 3 * mechanism.epsilon
    # Few draws: metres that are taken for degrees show at once.
    assert not audit(mechanism, epsilon=epsilon, draws=100, rng=1).refuted


@every_mechanism
def test_metres_are_never_taken_for_degrees(mechanism: Mechanism) -> None:
    if mechanism.space == "xy":
        for call in (
            lambda: obfuscate(lat=48.8584, lon=2.2945, mechanism=mechanism),
            lambda: obfuscate_lonlat([[2.2945, 48.8584]], mechanism),
            lambda: private_query(lat=48.8584, lon=2.2945, radius=300, mechanism=mechanism),
        ):
            with pytest.raises(InvalidInputError, match=r"takes metres, not degrees: use Projected\("):
                call()
    else:
        with pytest.raises(InvalidInputError, match="takes degrees, not metres"):
            Projected(mechanism, PLANE)
    with pytest.raises(InvalidInputError, match=r"metres|degrees"):
        audit(mechanism, epsilon=0.01, lonlat=mechanism.space != "lonlat")


@every_mechanism
def test_calls_queries_and_ledgers_take_it_in_degrees(mechanism: Mechanism) -> None:
    degrees = in_degrees(mechanism)
    report = obfuscate(lat=0.0, lon=0.0, mechanism=degrees)
    assert (report.lat, report.lon) == (round(report.lat, 5), round(report.lon, 5))
    query = private_query(lat=0.0, lon=0.0, radius=300, confidence=0.9, mechanism=degrees)
    assert query.radius == 300 + degrees.reach(0.9)
    if degrees.epsilon < math.inf:
        ledger = Ledger("sqlite://", budget=1)
        obfuscate(lat=0.0, lon=0.0, mechanism=degrees, ledger=ledger, person_id="ana")
        assert ledger.spent("ana") == pytest.approx(degrees.epsilon)


@dataclass(frozen=True)
class TwoWays:
    """A new mechanism, in ten lines: a fair coin decides between north and south."""

    epsilon: float = 0.01
    space: Space = "lonlat"

    def reach(self, confidence: float) -> float:  # noqa: ARG002
        return 1115.0

    def sample(self, points: ArrayLike, *, rng: RandomnessLike = None) -> FloatArray:
        lonlat = as_lonlat(points)
        coin = as_randomness(rng, len(lonlat)).words(lonlat, 1, "TwoWays")[:, 0] & np.uint64(1)
        return lonlat + np.column_stack([np.zeros(len(lonlat)), 0.02 * coin.astype(np.float64) - 0.01])


def test_a_new_mechanism_needs_no_other_line_of_the_library() -> None:
    coin, ledger = TwoWays(), Ledger("sqlite://", budget=0.02)
    report = obfuscate(lat=0.0, lon=0.0, mechanism=coin, ledger=ledger, person_id="ana")
    assert report in ((0.01, 0.0), (-0.01, 0.0))
    query = private_query(lat=0.0, lon=0.0, radius=300, mechanism=coin, ledger=ledger, person_id="ana")
    assert (query.radius, query.covered, query.epsilon) == (1415.0, True, 0.01)
    assert ledger.remaining("ana") == 0
    assert audit(coin, draws=1000, rng=1).refuted
    metres = TwoWays(space="xy")
    with pytest.raises(InvalidInputError, match=r"TwoWays takes metres.*Projected"):
        obfuscate(lat=0.0, lon=0.0, mechanism=metres)
    assert obfuscate(lat=0.0, lon=0.0, mechanism=Projected(metres, PLANE)).lon == 0


def test_a_mechanism_says_which_truths_it_accepts_or_accepts_all_or_raises() -> None:
    class Northern(TwoWays):
        def check_truths(self, points: FloatArray) -> None:
            if (points[:, 1] < 0).any():
                raise InvalidInputError("south of the equator")

    oslo, paris, quito = [10.75, 59.91], [2.29, 48.86], [-78.51, -0.22]
    local = Projected(PlanarLaplace(EPSILON), PARIS)
    assert accepted(local, np.array([oslo, paris])).tolist() == [False, True]
    assert accepted(TwoWays(), np.array([oslo, quito])).tolist() == [True, True]
    assert accepted(Northern(), np.array([oslo, paris])).tolist() == [True, True]
    with pytest.raises(InvalidInputError, match="south"):
        accepted(Northern(), np.array([oslo, quito]))


def test_the_error_for_another_object_lists_the_members_of_a_mechanism() -> None:
    class Old:
        epsilon = 1.0

        def sample(self, points: FloatArray) -> FloatArray:
            return points

    with pytest.raises(InvalidInputError, match="must have epsilon, space, reach, sample, got Old"):
        obfuscate(lat=0.0, lon=0.0, mechanism=Old())  # type: ignore[call-overload]
    with pytest.raises(InvalidInputError, match="must be 'lonlat' or 'xy', got 'mars'"):
        require_space("lonlat", TwoWays(space="mars"))  # type: ignore[arg-type]


def test_looking_at_a_channel_does_not_measure_it() -> None:
    channel = EXAMPLES["channel"].mechanism
    fresh = pickle.loads(pickle.dumps(channel))
    fresh.__dict__.pop("epsilon", None)
    assert is_mechanism(fresh)
    assert "epsilon" not in fresh.__dict__


def test_the_globe_and_a_local_plane_agree_on_a_promise() -> None:
    globe, plane = SphericalLaplace(0.01), Projected(PlanarLaplace(0.01), Projection(2.35, 48.86))
    assert globe.reach(0.95) == pytest.approx(plane.reach(0.95), rel=0.015)


def test_a_truth_outside_the_region_is_refused_without_naming_it() -> None:
    box = ClosestIn(shapely.box(-700, -700, 700, 700))
    grid = Grid(0, 0, cell=100, columns=9, rows=9)
    noise = PlanarLaplace(EPSILON)
    for inner in (PostProcessed(noise, box), PostProcessed(noise, grid.snap), discretise(noise, grid)):
        with pytest.raises(InvalidInputError, match=r"outside the (region|grid)") as caught:
            check_inside(Projected(inner, PARIS), np.array([[2.5, 48.9]]))
        assert "2.5" not in str(caught.value)
    check_inside(SphericalLaplace(EPSILON), np.array([[2.5, 48.9]]))
