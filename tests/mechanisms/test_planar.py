"""Every report in the plane is that of the whole real numbers, however close they come to a border."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from geoind import Grid, InvalidInputError, Mechanism, PlanarGaussian, PlanarLaplace, PostProcessed
from geoind.arrays import FloatArray
from geoind.mechanisms import exact, planar
from geoind.mechanisms.noise import DIRECTION_ERROR, RADIUS_ERROR, laplace_radius, survivals
from tests.given_words import GivenWords
from tests.goodness import counts_fit, fits, is_uniform
from tests.mechanisms import reference
from tests.mechanisms.draws import PLANAR, planar_draws, planar_radius, source_of
from tests.mechanisms.reference import fraction


@pytest.mark.parametrize("noise", PLANAR, ids=repr)
@pytest.mark.parametrize("hunted", [False, True], ids=["random", "hunted"])
def test_planar_reports_are_those_of_a_hundred_digits(noise: PlanarLaplace | PlanarGaussian, hunted: bool) -> None:
    points, draws, reports = planar_draws(noise, 80, hunted=hunted)
    source = source_of(draws)
    assert noise.sample(points, rng=source).tolist() == reports
    assert (len(set(source.asked)) > 0.3 * len(points)) == hunted


def test_reports_that_doubles_cannot_decide_go_to_their_own_rows_in_every_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    points, draws, reports = planar_draws(PLANAR[0], 80, hunted=True)
    monkeypatch.setattr("geoind.mechanisms.noise.BLOCK", 7)
    assert PLANAR[0].sample(points, rng=source_of(draws)).tolist() == reports


def test_far_from_the_origin_more_is_left_to_exact_arithmetic() -> None:
    """2^46 steps away a double has 64 places in a step, and those within 2^-4 of a border are not trusted."""
    noise = PlanarLaplace(0.01)
    points = np.full((20_000, 2), 2.0**46 * noise.lattice_step)
    words = np.random.default_rng(1).integers(0, 1 << 64, (20_000, 2), np.uint64)
    unit = 1 / (noise.epsilon * noise.lattice_step)
    undecided = planar._block(
        points, words, np.empty_like(points), noise.lattice_step, lambda s: laplace_radius(s) * unit
    )
    assert 1 - len(undecided) / len(points) == pytest.approx((55 / 64) ** 2, abs=0.02)


@pytest.mark.parametrize("error", [0.0, -1.0], ids=["error bound zero", "borders ignored"])
def test_doubles_alone_would_fail_at_borders(error: float, monkeypatch: pytest.MonkeyPatch) -> None:
    noise = PLANAR[0]
    points, draws, reports = planar_draws(noise, 80, hunted=True)
    monkeypatch.setattr(planar, "ERROR", error)
    monkeypatch.setattr(planar, "RELATIVE_ERROR", 0.0)
    assert noise.sample(points, rng=source_of(draws)).tolist() != reports


def test_the_error_that_is_allowed_for_is_more_than_that_of_radius_and_direction() -> None:
    """docs/exact-draws.md: at most 2048 steps make the noise's scale, and radii are less than 19 of them."""
    assert 2048 * (RADIUS_ERROR + 19 * DIRECTION_ERROR) < planar.ERROR == 2.0**-24
    assert planar.RELATIVE_ERROR == 2.0**-50


@pytest.mark.parametrize("noise", PLANAR, ids=repr)
def test_computed_coordinates_keep_their_error(noise: PlanarLaplace | PlanarGaussian) -> None:
    points, draws, _ = planar_draws(noise, 80, hunted=False)
    words = source_of(draws).words(points, 2, "")
    unit = noise.lattice_step

    def steps(s: FloatArray) -> FloatArray:
        if isinstance(noise, PlanarLaplace):
            return laplace_radius(s) / (noise.epsilon * unit)
        return s * noise.sigma / unit

    computed = planar.coordinates(points, survivals(words), words, unit, steps)
    for row, ((x, y), (first, second)) in enumerate(zip(points.tolist(), draws, strict=True)):
        drawn = reference.plane(x, y, planar_radius(noise, fraction(first)), fraction(second), unit)
        for axis in (0, 1):
            allowed = planar.ERROR + planar.RELATIVE_ERROR * abs(float(drawn[axis]))
            assert abs(computed[axis][row] - drawn[axis]) < allowed / 4


@pytest.mark.parametrize("power", [-600, -7, 0, 1, 7, 600])
def test_the_lattice_does_not_depend_on_how_a_logarithm_is_rounded(power: int) -> None:
    """Next to a power of two a logarithm is rounded to a whole number, on one machine or on another."""
    scale = 2.0**power
    for near in (math.nextafter(scale, 0), scale, math.nextafter(scale, math.inf)):
        assert 1024 <= near / planar.step_of(near) < 2048
    assert PlanarGaussian(math.nextafter(scale, 0)).lattice_step == PlanarGaussian(scale).lattice_step / 2
    assert PlanarLaplace(1 / scale).lattice_step == PlanarGaussian(scale).lattice_step == scale / 1024


@pytest.mark.parametrize("noise", [PlanarLaplace(0.01), PlanarGaussian(300.0)])
@pytest.mark.parametrize("far", [0.0, 1e6])
def test_next_to_nothing_is_left_to_exact_arithmetic(
    noise: PlanarLaplace | PlanarGaussian, far: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound is 2^-24 steps on each side: about one report in four million."""
    asked = []

    def counted(*draw: Any) -> Any:
        asked.append(draw)
        return decided(*draw)

    decided = exact.decided
    monkeypatch.setattr(exact, "decided", counted)
    noise.sample(np.full((200_000, 2), far), rng=1)
    assert len(asked) <= 2


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
def test_no_report_has_a_larger_likelihood_ratio_than_epsilon_allows(c: tuple[float, ...]) -> None:
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
