import numpy as np
import pytest
import shapely

from geoind import (
    Channel,
    ClosestIn,
    Grid,
    InvalidInputError,
    Mechanism,
    Places,
    PlanarLaplace,
    PosteriorRemap,
    PostProcessed,
    Prior,
    Projected,
    Projection,
    SphericalLaplace,
    discretise,
)
from geoind.arrays import FloatArray
from geoind.mechanisms.protocol import check_inside, check_truths
from tests.mechanisms.ground import CONFIDENCE, EPSILON, PARIS, share_within

NOISE = PlanarLaplace(0.01)
GRID = Grid(0, 0, cell=100, columns=9, rows=9)


def test_a_step_that_loses_reports_is_refused() -> None:
    def lose(reports: FloatArray) -> FloatArray:
        return reports[1:]

    with pytest.raises(InvalidInputError, match="step must return"):
        PostProcessed(PlanarLaplace(1.0), lose).sample(np.zeros((3, 2)))


def test_a_step_that_measures_in_metres_does_not_follow_degrees() -> None:
    metres = ClosestIn(shapely.box(0, 0, 1, 1))
    for step in (GRID.snap, PosteriorRemap(Prior.uniform(Places(GRID.xy)), NOISE), metres):
        with pytest.raises(InvalidInputError, match="Laplace reports degrees, but the step needs metres"):
            PostProcessed(SphericalLaplace(0.01), step)
    with pytest.raises(InvalidInputError, match="PlanarLaplace reports metres, but the step needs degrees"):
        PostProcessed(NOISE, ClosestIn(shapely.box(0, 0, 1, 1), space="lonlat"))


def test_a_step_that_answers_degrees_with_metres_is_noticed_where_they_cannot_be_degrees() -> None:
    def five_kilometres_north(reports: FloatArray) -> FloatArray:
        return np.asarray(reports + np.array([0, 5000]))

    with pytest.raises(InvalidInputError, match="latitude"):
        PostProcessed(SphericalLaplace(0.01), five_kilometres_north).sample([[2.35, 48.86]])
    assert PostProcessed(NOISE, five_kilometres_north).sample([[0, 0]])[0, 1] > 2000


def test_what_is_no_mechanism_and_no_step_is_refused_when_they_are_combined() -> None:
    with pytest.raises(InvalidInputError, match="step must be callable, got Grid"):
        PostProcessed(NOISE, GRID)  # type: ignore[arg-type]
    for step in (GRID.snap, ClosestIn(shapely.box(0, 0, 1, 1))):
        with pytest.raises(InvalidInputError, match="mechanism must have"):
            PostProcessed("noise", step)  # type: ignore[arg-type]


def test_a_step_of_the_user_may_tell_how_far_it_moves_a_report() -> None:
    class North:
        space = "lonlat"

        def __call__(self, reports: FloatArray) -> FloatArray:
            return np.asarray(reports + np.array([0, 0.001]))

        def reach_after(self, reach: float) -> float:
            return reach + 112

    globe = SphericalLaplace(0.01)
    assert PostProcessed(globe, North()).reach(0.9) == globe.reach(0.9) + 112


def test_equal_parts_make_equal_mechanisms() -> None:
    assert PostProcessed(NOISE, GRID.snap) == PostProcessed(
        PlanarLaplace(0.01), Grid(0, 0, cell=100, columns=9, rows=9).snap
    )


@pytest.mark.slow
def test_truncation_to_a_region_with_a_gap_can_double_the_error_and_is_allowed_for() -> None:
    """An island in a ring: a report that falls half way between them moves to the ring."""
    noise = PlanarLaplace(EPSILON)
    quantile = float(noise.radius_quantile(CONFIDENCE))
    island, sea = shapely.Point(0, 0).buffer(5), shapely.Point(0, 0).buffer(1.1 * quantile, quad_segs=64)
    region = island.union(shapely.Point(0, 0).buffer(5 * quantile).difference(sea))
    mechanism = Projected(PostProcessed(noise, ClosestIn(region)), PARIS)
    assert share_within(mechanism, 2.35, 48.86, 1.05 * quantile) < CONFIDENCE - 0.1
    assert share_within(mechanism, 2.35, 48.86, mechanism.reach(CONFIDENCE)) >= CONFIDENCE


@pytest.mark.parametrize(
    "mechanism",
    [
        PostProcessed(SphericalLaplace(EPSILON), lambda reports: reports),
        PostProcessed(SphericalLaplace(EPSILON), ClosestIn(shapely.box(-1, -1, 1, 1), space="lonlat")),
        Projected(PostProcessed(PlanarLaplace(EPSILON), lambda reports: reports), PARIS),
        Projected(Channel(Places([[0, 0]]), Places([[0, 0]]), [[1.0]]), PARIS),
    ],
    ids=["own step", "closest in degrees", "own planar step", "places"],
)
def test_a_mechanism_without_a_known_bound_is_refused(mechanism: Mechanism) -> None:
    with pytest.raises(InvalidInputError, match="report_reach"):
        mechanism.reach(0.95)


def test_a_truth_that_the_mechanism_refuses_is_refused_whatever_the_step() -> None:
    grid = Grid(0, 0, cell=100, columns=9, rows=9)
    finite = PostProcessed(discretise(PlanarLaplace(EPSILON), grid), lambda reports: reports)
    with pytest.raises(InvalidInputError, match="outside the grid"):
        check_inside(finite, np.array([[5000.0, 0.0]]))
    check_inside(finite, np.array([[100.0, 100.0]]))
    oslo = Projected(PlanarLaplace(EPSILON), Projection(10.75, 59.91), domain=shapely.box(10, 59.8, 11.5, 60.2))
    near_oslo = PostProcessed(oslo, lambda reports: reports)
    with pytest.raises(InvalidInputError):
        check_truths(near_oslo, np.array([[2.35, 48.86]]))
    check_truths(near_oslo, np.array([[10.75, 59.91]]))


CRESCENT = shapely.Point(0, 0).buffer(500).difference(shapely.Point(200, 0).buffer(400))


def test_every_report_ends_inside_and_inner_ones_stay() -> None:
    raw = PlanarLaplace(0.005).sample(np.zeros((2000, 2)), rng=1)
    moved = ClosestIn(CRESCENT)(raw)
    assert shapely.distance(CRESCENT, shapely.points(moved)).max() < 1e-9
    inside = shapely.contains_xy(CRESCENT, raw)
    np.testing.assert_array_equal(moved[inside], raw[inside])


def test_a_report_moves_by_its_distance_to_the_region() -> None:
    raw = PlanarLaplace(0.005).sample(np.zeros((500, 2)), rng=2)
    moved = ClosestIn(CRESCENT)(raw)
    np.testing.assert_allclose(
        np.hypot(*(moved - raw).T), shapely.distance(CRESCENT, shapely.points(raw)), atol=1e-9
    )


def test_truncation_is_a_step() -> None:
    mechanism = PostProcessed(PlanarLaplace(0.005), ClosestIn(shapely.box(0, 0, 100, 100)))
    reports = mechanism.sample([[50, 50]] * 300)
    assert reports.min() >= 0
    assert reports.max() <= 100


@pytest.mark.parametrize("region", [shapely.Polygon(), None, shapely.Polygon([(0, 0), (1, 1), (1, 0), (0, 1)])])
def test_a_region_is_valid_and_not_empty(region: object) -> None:
    with pytest.raises(InvalidInputError, match="region must"):
        ClosestIn(region)  # type: ignore[arg-type]


def test_a_region_in_degrees_says_so_and_holds_degrees() -> None:
    paris = shapely.box(2.2, 48.8, 2.5, 48.9)
    reports = PostProcessed(SphericalLaplace(0.0001), ClosestIn(paris, space="lonlat")).sample(
        [[2.3, 48.85]] * 200
    )
    assert shapely.intersects_xy(paris, reports).all()
    with pytest.raises(InvalidInputError, match="longitude"):
        ClosestIn(shapely.box(0, 0, 5000, 5000), space="lonlat")
    with pytest.raises(TypeError):
        ClosestIn(paris, "lonlat")  # type: ignore[call-arg]
    with pytest.raises(InvalidInputError, match="space must be"):
        ClosestIn(paris, space="degrees")  # type: ignore[arg-type]
