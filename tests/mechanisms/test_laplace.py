import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from geoind import Grid, InvalidInputError, PlanarLaplace, PostProcessed
from geoind.arrays import FloatArray
from tests.given_words import GivenWords
from tests.goodness import counts_fit, fits, is_uniform

EPSILON = math.log(4) / 200
NOISE = PlanarLaplace(EPSILON)
CENTRE = np.array([448_262.25, -1_234.5])


def draw(noise: PlanarLaplace, n: int = 200_000, seed: int = 1) -> FloatArray:
    return np.asarray(noise.sample(np.tile(CENTRE, (n, 1)), rng=seed) - CENTRE)


def test_radius_and_angle_have_the_right_distribution_and_five_percent_more_or_less_is_seen() -> None:
    offsets = draw(NOISE)
    radius = np.hypot(*offsets.T)
    assert fits(radius, NOISE.radius_cdf)
    assert is_uniform(np.arctan2(offsets[:, 1], offsets[:, 0]))
    assert not fits(1.05 * radius, NOISE.radius_cdf)
    assert not fits(0.95 * radius, NOISE.radius_cdf)


def test_the_distribution_test_catches_the_classical_mutants() -> None:
    rng = np.random.default_rng(3)
    n = 200_000
    exponential_radius = rng.exponential(2 / EPSILON, n)
    per_axis = np.hypot(*rng.laplace(scale=1 / EPSILON, size=(2, n)))
    word = rng.integers(0, 1 << 64, size=n, dtype=np.uint64)
    one_uniform_twice = NOISE.sample(np.zeros((n, 2)), rng=GivenWords([(w, w) for w in word.tolist()]))
    assert not fits(exponential_radius, NOISE.radius_cdf)
    assert not fits(per_axis, NOISE.radius_cdf)
    assert not fits(1.04 * rng.gamma(2, 1 / EPSILON, n), NOISE.radius_cdf)
    quarter = (one_uniform_twice > 0).all(axis=1)
    assert not fits(np.hypot(*one_uniform_twice[quarter].T), NOISE.radius_cdf)


def test_radius_and_angle_are_independent() -> None:
    offsets = draw(NOISE)
    radius, angle = np.hypot(*offsets.T), np.arctan2(offsets[:, 1], offsets[:, 0])
    for quadrant in range(4):
        inside = np.floor(angle / (math.pi / 2)) + 2 == quadrant
        assert fits(radius[inside], NOISE.radius_cdf)


def test_cells_are_hit_as_often_as_the_density_says() -> None:
    grid = Grid(*CENTRE, cell=150, columns=1, rows=1)
    offsets = draw(NOISE, seed=5)
    edges = np.arange(-5.5, 6) * grid.cell
    counts, *_ = np.histogram2d(offsets[:, 0], offsets[:, 1], bins=[edges, edges])
    fine = (np.arange(-5.5 * 60, 5.5 * 60) + 0.5) * grid.cell / 60
    x, y = np.meshgrid(fine, fine, indexing="ij")
    density = EPSILON**2 / (2 * math.pi) * np.exp(-EPSILON * np.hypot(x, y)) * (grid.cell / 60) ** 2
    expected = density.reshape(11, 60, 11, 60).sum(axis=(1, 3)) * len(offsets)
    assert counts_fit(counts.ravel(), expected.ravel())


@pytest.mark.parametrize(
    ("p", "radius"),
    [(0.5, 1.678347), (0.75, 2.692635), (0.9, 3.889720), (0.95, 4.743865), (0.99, 6.638352), (0.999, 9.233413)],
)
def test_quantiles_meet_the_authors_table(p: float, radius: float) -> None:
    assert PlanarLaplace(1.0).radius_quantile(p) == pytest.approx(radius, abs=5e-7)
    assert PlanarLaplace(0.01).radius_quantile(p) == pytest.approx(100 * radius, abs=5e-5)


@given(st.floats(0, 1 - 2**-53), st.floats(1e-6, 1e3))
def test_the_quantile_inverts_the_distribution_function(p: float, epsilon: float) -> None:
    noise = PlanarLaplace(epsilon)
    assert noise.radius_cdf(noise.radius_quantile(p)) == pytest.approx(p, rel=1e-12, abs=1e-300)


def test_shapes_of_quantiles_follow_the_input() -> None:
    assert np.ndim(NOISE.radius_quantile(0.5)) == 0
    assert NOISE.radius_quantile([[0.1, 0.2]]).shape == (1, 2)
    assert NOISE.radius_cdf([[1.0, 2.0]]).shape == (1, 2)


def test_the_density_is_that_of_the_distribution_function() -> None:
    radius = np.linspace(1, 2000, 7)
    step = 1e-3
    slope = (NOISE.radius_cdf(radius + step) - NOISE.radius_cdf(radius - step)) / (2 * step)
    truth = np.full((7, 2), [12_345.0, -678.0])
    density = np.exp(NOISE.logpdf(truth + np.column_stack([0.6 * radius, 0.8 * radius]), truth))
    np.testing.assert_allclose(2 * math.pi * radius * density, slope, rtol=1e-5)


@given(st.tuples(*[st.floats(-1e4, 1e4)] * 6))
def test_no_report_tells_two_places_apart_by_more_than_the_promise(c: tuple[float, ...]) -> None:
    a, b, z = (np.array([c[i : i + 2]]) for i in (0, 2, 4))
    ratio = NOISE.logpdf(z, a) - NOISE.logpdf(z, b)
    assert abs(ratio[0]) <= EPSILON * np.hypot(*(a - b)[0]) + 1e-9


def test_reports_end_on_a_public_lattice_that_is_fine_against_the_noise() -> None:
    step = NOISE.lattice_step
    reports = NOISE.sample(np.random.default_rng(0).normal(size=(1000, 2)) * 1e4)
    assert (np.mod(reports, step) == 0).all()
    assert 0.0004 < step * EPSILON < 0.001
    assert math.frexp(step)[0] == 0.5
    on_the_spot = PlanarLaplace(1e-3).sample(np.zeros((400_000, 2)), rng=3)
    assert not np.signbit(on_the_spot[on_the_spot == 0]).any()


def test_the_sampler_holds_nothing_back() -> None:
    assert NOISE.noise_epsilon == NOISE.epsilon


def test_places_beyond_the_lattice_are_refused() -> None:
    limit = 2.0**50 * NOISE.lattice_step
    assert np.isfinite(NOISE.sample([[limit, -limit]])).all()
    with pytest.raises(InvalidInputError, match=r"points must lie within 1.41e\+14 m of the origin"):
        NOISE.sample([[0.0, 0], [0, -1.01 * limit]])


def test_the_mean_radius_is_two_over_epsilon() -> None:
    radius = np.hypot(*draw(NOISE).T)
    assert stats.ttest_1samp(radius, NOISE.mean_radius).pvalue > 1e-4


def test_snapping_to_a_grid_gives_its_cells() -> None:
    grid = Grid(0, 0, cell=100, columns=3, rows=3)
    reports = PostProcessed(NOISE, grid.snap).sample(np.zeros((500, 2)), rng=1)
    assert set(map(tuple, reports)) <= set(map(tuple, grid.xy))


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, "0.1", None, True])
def test_epsilon_must_be_positive_and_finite(epsilon: object) -> None:
    with pytest.raises(InvalidInputError, match="epsilon must be"):
        PlanarLaplace(epsilon)  # type: ignore[arg-type]


@pytest.mark.parametrize("p", [-0.1, 1.0, 1.1, math.nan])
def test_probabilities_of_a_quantile_are_below_one(p: float) -> None:
    with pytest.raises(InvalidInputError, match="p must"):
        NOISE.radius_quantile([0.5, p])


def test_a_negative_radius_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="radius"):
        NOISE.radius_cdf([-1.0])


def test_the_reach_allows_for_the_way_to_the_nearest_place_of_the_lattice() -> None:
    """Almost no noise: what is left is half the diagonal of a cell."""
    assert NOISE.reach(1e-15) == pytest.approx(NOISE.lattice_step * math.sqrt(0.5), rel=1e-3)
