import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from geoind import Grid, InvalidInputError, Mechanism, PlanarGaussian
from tests.goodness import fits, is_uniform

EPSILON = math.log(4) / 200


@pytest.mark.parametrize(("factor", "right"), [(1.0, True), (1.05, False), (0.95, False)])
def test_the_radius_is_rayleigh_and_the_direction_uniform(factor: float, right: bool) -> None:
    noise = PlanarGaussian(100.0)
    reports = noise.sample(np.zeros((40_000, 2)), rng=3)
    assert fits(np.hypot(*reports.T), stats.rayleigh(scale=100 * factor).cdf) is right
    assert is_uniform(np.arctan2(*reports.T))
    assert np.hypot(*reports.T).mean() == pytest.approx(noise.mean_radius, rel=0.01)


def test_reports_end_on_a_public_lattice() -> None:
    noise = PlanarGaussian(100.0)
    reports = noise.sample(np.random.default_rng(0).uniform(-1e5, 1e5, (100, 2)), rng=1)
    assert (reports % noise.lattice_step == 0).all()
    assert 0.0005 < noise.lattice_step / noise.sigma <= 0.001


@pytest.mark.parametrize("sigma", [0.3, 100.0, 1023.9, 1024.0])
@pytest.mark.parametrize("confidence", [1e-15, 0.5, 0.95, 1 - 1e-9])
def test_the_reach_is_the_quantile_of_the_radius_and_half_a_cell_s_diagonal(
    sigma: float, confidence: float
) -> None:
    noise = PlanarGaussian(sigma)
    rounding = math.hypot(noise.lattice_step, noise.lattice_step) / 2
    expected = stats.rayleigh(scale=sigma).ppf(confidence) + rounding
    assert noise.reach(confidence) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("distance", [10.0, 200.0, 900.0])
def test_delta_is_the_hockey_stick_divergence(distance: float) -> None:
    sigma, reach = 300.0, np.linspace(-6000, 6000, 400_001)
    here, there = stats.norm.pdf(reach, 0, sigma), stats.norm.pdf(reach, distance, sigma)
    excess = np.maximum(here - math.exp(EPSILON * distance) * there, 0)
    integral = excess.sum() * (reach[1] - reach[0])
    assert PlanarGaussian(sigma).delta(EPSILON, distance) == pytest.approx(integral, rel=1e-4, abs=1e-12)


def test_delta_grows_with_the_distance_so_that_the_radius_covers_what_is_within() -> None:
    noise = PlanarGaussian(300.0)
    deltas = [noise.delta(EPSILON, distance) for distance in np.linspace(0, 2000, 101)]
    assert deltas[0] == 0
    assert (np.diff(deltas) >= 0).all()


@pytest.mark.parametrize("delta", [0.3, 1e-5, 1e-12])
def test_calibration_is_the_least_noise_that_keeps_delta(delta: float) -> None:
    noise = PlanarGaussian.calibrated(epsilon=EPSILON, delta=delta, radius=200)
    assert noise.delta(EPSILON, 200) <= delta
    assert PlanarGaussian(noise.sigma * 0.999).delta(EPSILON, 200) > delta


@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.1, 0.9])
@pytest.mark.parametrize("level", [0.01, 0.5, 0.999])
def test_the_classical_calibration_keeps_delta_with_more_noise_than_needed(level: float, delta: float) -> None:
    classical = PlanarGaussian.classical(epsilon=level / 200, delta=delta, radius=200)
    assert classical.sigma**2 == pytest.approx(2 * 200**2 * math.log(1.25 / delta) / level**2)
    assert classical.delta(level / 200, 200) < delta
    assert classical.sigma > PlanarGaussian.calibrated(epsilon=level / 200, delta=delta, radius=200).sigma


def test_the_classical_calibration_is_refused_where_it_is_not_proven() -> None:
    with pytest.raises(InvalidInputError, match="below 1"):
        PlanarGaussian.classical(epsilon=0.005, delta=1e-5, radius=200)
    # And rightly so: at a level of 12 it would break its promise.
    sigma = math.sqrt(2 * math.log(1.25 / 1e-5)) / 12
    assert PlanarGaussian(sigma).delta(12, 1) > 1e-5


def test_it_promises_no_epsilon_and_its_ratio_has_no_bound() -> None:
    noise = PlanarGaussian(100.0)
    assert isinstance(noise, Mechanism)
    assert noise.epsilon == math.inf
    far = np.array([1e3, 1e4, 1e5])
    losses = stats.norm.logpdf(far, 50, 100) - stats.norm.logpdf(far, 0, 100)
    assert (np.diff(losses) > 4 * losses[:-1]).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PlanarGaussian(0), "sigma"),
        (lambda: PlanarGaussian(math.nan), "sigma"),
        (lambda: PlanarGaussian.calibrated(epsilon=0, delta=0.1, radius=1), "epsilon"),
        (lambda: PlanarGaussian.calibrated(epsilon=1, delta=0, radius=1), "delta"),
        (lambda: PlanarGaussian.calibrated(epsilon=1, delta=1, radius=1), "delta"),
        (lambda: PlanarGaussian.calibrated(epsilon=1, delta=0.1, radius=-1), "radius"),
        (lambda: PlanarGaussian.classical(epsilon=0, delta=0.1, radius=1), "epsilon"),
        (lambda: PlanarGaussian.classical(epsilon=0.1, delta=0, radius=1), "delta"),
        (lambda: PlanarGaussian.classical(epsilon=0.1, delta=0.1, radius=math.nan), "radius"),
        (lambda: PlanarGaussian(1).delta(1, math.nan), "distance"),
        (lambda: PlanarGaussian(1).delta(0, 1), "epsilon"),
        (lambda: PlanarGaussian(1).sample([[math.nan, 0]]), "finite"),
        (lambda: PlanarGaussian(1).sample(Grid(0, 0, cell=1, columns=1, rows=1)), "points"),  # type: ignore[arg-type]
    ],
)
def test_bad_arguments_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make()
