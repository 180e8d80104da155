"""One suite for every mechanism: a new one is one more line in MECHANISMS."""

import math
import pickle

import numpy as np
import pytest
import shapely

from geoind import (
    ClosestIn,
    Grid,
    InvalidInputError,
    KeyedRandomness,
    Mechanism,
    Places,
    PlanarLaplace,
    PosteriorRemap,
    PostProcessed,
    Prior,
    Projected,
    Projection,
    SphericalLaplace,
)
from geoind.arrays import FloatArray

EPSILON = math.log(4) / 200
GRID = Grid(0, 0, cell=100, columns=9, rows=9)
PLANE = Projection(0.0, 0.0)
MECHANISMS: dict[str, Mechanism] = {
    "planar": PlanarLaplace(EPSILON),
    "globe": SphericalLaplace(EPSILON),
    "snapped": PostProcessed(PlanarLaplace(EPSILON), GRID.snap),
    "truncated": PostProcessed(PlanarLaplace(EPSILON), ClosestIn(shapely.Point(0, 0).buffer(1000))),
    "remapped": PostProcessed(
        PlanarLaplace(EPSILON), PosteriorRemap(Prior.uniform(Places(GRID.xy - 400)), PlanarLaplace(EPSILON))
    ),
    "projected": Projected(PlanarLaplace(EPSILON), PLANE),
}
every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)


@every_mechanism
def test_it_is_a_mechanism_with_a_promise(mechanism: Mechanism) -> None:
    assert isinstance(mechanism, Mechanism)
    assert mechanism.epsilon == EPSILON


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


def test_a_step_that_loses_reports_is_refused() -> None:
    def lose(reports: FloatArray) -> FloatArray:
        return reports[1:]

    with pytest.raises(InvalidInputError, match="step must return"):
        PostProcessed(PlanarLaplace(1.0), lose).sample(np.zeros((3, 2)))
