import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoind import (
    Channel,
    Grid,
    InvalidInputError,
    Mechanism,
    PlanarGaussian,
    PlanarLaplace,
    SphericalLaplace,
    randomised_response,
)
from geoind.accounting.accountant import delta_bounds, delta_of_reports, level_bounds, level_of_reports
from geoind.arrays import FloatArray
from tests.trials import trials

LN4 = math.log(4)


NOISE = PlanarLaplace(LN4 / 200)


@pytest.mark.parametrize(
    ("reports", "low", "high"),
    [(5, 6.728, 6.730), (20, 21.806, 21.810), (100, 75.90, 75.95), (600, 337.8, 338.3)],
)
def test_the_reference_values_are_met(reports: int, low: float, high: float) -> None:
    lower, upper = level_bounds(NOISE, reports=reports, radius=200, delta=1e-5)
    assert low <= lower <= upper <= high
    assert upper - lower < 3e-5 * upper


def test_one_report_is_exact() -> None:
    rng = np.random.default_rng(1)
    lower, upper = level_bounds(NOISE, reports=1, radius=200, delta=1e-3)
    assert upper == pytest.approx(lower, rel=1e-10)
    # E [1 - e^(level - L)]+ over a million reports.
    radius, angle = rng.gamma(2, 1 / NOISE.epsilon, 1_000_000), rng.uniform(0, 2 * math.pi, 1_000_000)
    losses = NOISE.epsilon * (np.hypot(radius * np.cos(angle) - 200, radius * np.sin(angle)) - radius)
    excess = -np.expm1(np.minimum(0, 1.0 - losses))
    delta = delta_of_reports(NOISE, reports=1, radius=200, level=1.0)
    assert abs(excess.mean() - delta) < 5 * excess.std() / 1000


@pytest.mark.parametrize("reports", [2, 5, 20])
def test_drawn_reports_agree(reports: int) -> None:
    rng = np.random.default_rng(2)
    draws = 400_000
    total = np.zeros(draws)
    for _ in range(reports):
        radius, angle = rng.gamma(2, 1, draws), rng.uniform(0, 2 * math.pi, draws)
        total += np.hypot(radius * np.cos(angle) - 1, radius * np.sin(angle)) - radius
    level = float(np.quantile(total, 0.9))
    excess = -np.expm1(np.minimum(0, level - total))
    lower, upper = delta_bounds(PlanarLaplace(0.01), reports=reports, radius=100, level=level)
    error = 5 * excess.std() / math.sqrt(draws)
    assert lower - error < excess.mean() < upper + error
    assert upper - lower < 1e-3 * upper


@pytest.mark.parametrize("reports", [1, 3, 100, 10**6])
def test_gaussian_reports_are_one_report_with_less_noise(reports: int) -> None:
    noise = PlanarGaussian(1000.0)
    one = PlanarGaussian(1000.0 / math.sqrt(reports))
    for level in (0.1, 1.0, 5.0):
        lower, upper = delta_bounds(noise, reports=reports, radius=300, level=level)
        exact = delta_of_reports(one, reports=1, radius=300, level=level)
        assert lower == pytest.approx(exact, rel=1e-9)
        assert upper == pytest.approx(exact, rel=1e-9)


def brute_force(pairs: list[tuple[FloatArray, FloatArray]], level: float) -> float:
    """Delta of several channels' rows together, from every combination of reports."""
    here, there = np.ones(1), np.ones(1)
    for first, second in pairs:
        here, there = np.outer(here, first).ravel(), np.outer(there, second).ravel()
    return float(np.maximum(here - math.exp(level) * there, 0).sum())


@settings(max_examples=trials(40), deadline=None)
@given(st.integers(1, 6), st.floats(0.05, 1.5), st.floats(0.0, 3.0))
def test_small_channels_are_bracketed_by_brute_force(reports: int, epsilon: float, level: float) -> None:
    channel = randomised_response(3, epsilon=epsilon)
    exact = brute_force([(channel.matrix[0], channel.matrix[1])] * reports, level)
    lower, upper = delta_bounds(channel, reports=reports, radius=1, level=level)
    assert lower - 1e-12 <= exact <= upper + 1e-12
    if level < 0.9 * reports * epsilon:  # at the very end of the sum's range the grid itself shows
        assert upper < 1.001 * exact + 1e-9
        assert lower > 0.97 * exact - 1e-9


def test_a_channel_without_symmetry_is_dominated_also_on_changing_pairs() -> None:
    line = Grid(0, 0, cell=1, columns=3, rows=1)
    channel = Channel(line, line, [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.25, 0.25, 0.5]])
    pairs = [(0, 1), (1, 0), (1, 2), (2, 1)]
    for level in (0.5, 1.5, 3.0):
        upper = delta_of_reports(channel, reports=4, radius=1, level=level)
        worst = max(
            brute_force([(channel.matrix[x], channel.matrix[y]) for x, y in way], level)
            for way in ([one] * 2 + [other] * 2 for one in pairs for other in pairs)
        )
        assert worst <= upper
        assert delta_bounds(channel, reports=4, radius=1, level=level)[0] <= worst


def test_a_channel_that_reveals_its_input_has_the_level_of_how_often() -> None:
    line = Grid(0, 0, cell=1, columns=2, rows=1)
    channel = Channel(line, line, [[0.9, 0.1], [1.0, 0.0]])
    lower, upper = delta_bounds(channel, reports=5, radius=1, level=50.0)
    assert lower <= 1 - 0.9**5 <= upper == pytest.approx(1 - 0.9**5, rel=1e-6)
    assert level_of_reports(channel, reports=5, radius=1, delta=0.3) == math.inf


@pytest.mark.parametrize(
    ("matrix", "level"),
    [([[1, 0], [0, 1]], math.inf), ([[0.5, 0.5], [0.5, 0.5]], 0.0), ([[1, 0], [0.5, 0.5]], math.inf)],
)
def test_channels_that_tell_everything_or_nothing(matrix: list[list[float]], level: float) -> None:
    line = Grid(0, 0, cell=1, columns=2, rows=1)
    for reports in (1, 5):
        found = level_bounds(Channel(line, line, matrix), reports=reports, radius=1, delta=1e-5)
        assert found == (level, level)


def test_a_channel_of_one_input_reveals_nothing() -> None:
    here, there = (Grid(0, 0, cell=1, columns=columns, rows=1) for columns in (1, 2))
    assert level_of_reports(Channel(here, there, [[0.5, 0.5]]), reports=5, radius=1, delta=1e-5) == 0


@pytest.mark.slow
def test_mixtures_agree_with_the_sum_of_drawn_losses() -> None:
    rng = np.random.default_rng(3)
    draws = 400_000
    total = 0.4**2 * 4 / 2 + 0.8 * rng.standard_normal(draws)  # four Gaussian reports
    for size in (0.5, 0.5, 0.5, 2.0, 2.0):
        radius, angle = rng.gamma(2, 1, draws), rng.uniform(0, 2 * math.pi, draws)
        total += np.hypot(radius * np.cos(angle) - size, radius * np.sin(angle)) - radius
    mixture: list[tuple[Mechanism, int]] = [
        (PlanarLaplace(0.005), 3),
        (PlanarGaussian(250.0), 4),
        (PlanarLaplace(0.02), 2),
    ]
    for level in (1.0, 4.0):
        excess = -np.expm1(np.minimum(0, level - total))
        lower, upper = delta_bounds(mixture, radius=100, level=level)
        error = 5 * excess.std() / math.sqrt(draws)
        assert lower - error < excess.mean() < upper + error
        assert upper - lower < 1e-3 * upper


@settings(max_examples=trials(30), deadline=None)
@given(
    st.sampled_from([NOISE, PlanarGaussian(700.0), SphericalLaplace(NOISE.epsilon)]),
    st.integers(1, 300),
    st.floats(20.0, 500.0),
    st.floats(-9.0, -1.0),
)
def test_levels_grow_with_reports_and_radius_and_fall_with_delta(
    mechanism: Mechanism, reports: int, radius: float, exponent: float
) -> None:
    def level(reports: int, radius: float, delta: float) -> float:
        return level_of_reports(mechanism, reports=reports, radius=radius, delta=delta)

    here = level(reports, radius, 10**exponent)
    slack = 5e-5 * here
    assert here <= level(reports + 10, radius, 10**exponent) + slack
    assert here <= level(reports, radius * 1.1, 10**exponent) + slack
    assert here >= level(reports, radius, 2 * 10**exponent) - slack
    assert here <= reports * radius * mechanism.epsilon


@pytest.mark.parametrize(
    "arguments",
    [
        {"delta": 0},
        {"delta": 1},
        {"delta": -1e-5},
        {"delta": math.nan},
        {"reports": 0},
        {"reports": 1.5},
        {"reports": None},
        {"reports": 10**8},
        {"radius": 0},
        {"radius": math.inf},
        {"mechanism": "laplace"},
        {"mechanism": None},
        {"mechanism": []},
        {"mechanism": {NOISE: 5}},
        {"mechanism": [(NOISE, 0)], "reports": None},
        {"mechanism": [NOISE], "reports": None},
        {"mechanism": SphericalLaplace(0.01), "radius": 4e6},
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any]) -> None:
    usual: dict[str, Any] = {"mechanism": NOISE, "reports": 5, "radius": 200, "delta": 1e-5}
    with pytest.raises(InvalidInputError):
        level_of_reports(**usual | arguments)


@pytest.mark.parametrize("level", [-0.1, math.nan, math.inf, "1"])
def test_a_level_must_be_a_number_that_is_not_negative(level: Any) -> None:
    with pytest.raises(InvalidInputError):
        delta_of_reports(NOISE, reports=5, radius=200, level=level)


@pytest.mark.parametrize("reports", [2, 30, 3000, 100_000])
@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-12, 1e-100])
def test_bounds_are_close_however_many_reports_and_however_small_delta(reports: int, delta: float) -> None:
    lower, upper = level_bounds(NOISE, reports=reports, radius=200, delta=delta)
    assert 0 < lower <= upper <= reports * LN4
    # At the very end of the sum's range the grid itself shows.
    assert upper - lower < (5e-5 if upper < 0.9 * reports * LN4 else 2e-3) * upper


def test_noises_of_very_different_size_fit_on_one_grid() -> None:
    mixture: dict[Mechanism, int] = {PlanarLaplace(0.01): 1, PlanarLaplace(1e-6): 1000, PlanarGaussian(20.0): 2}
    lower, upper = level_bounds(mixture, radius=200, delta=1e-5)
    alone = level_of_reports(PlanarGaussian(20.0), reports=2, radius=200, delta=1e-5)
    assert alone < upper < alone + 2 + 0.2
    assert upper - lower < 1e-4 * upper


def test_the_order_and_the_grouping_of_a_mixture_do_not_count() -> None:
    wide, narrow = PlanarLaplace(0.001), PlanarLaplace(0.01)
    one = level_of_reports({wide: 7, narrow: 5}, radius=200, delta=1e-6)
    other = level_of_reports([(narrow, 2), (wide, 7), (narrow, 3)], radius=200, delta=1e-6)
    assert one == pytest.approx(other, rel=1e-4)
    assert level_of_reports({wide: 7}, radius=200, delta=1e-6) == level_of_reports(
        wide, reports=7, radius=200, delta=1e-6
    )


@settings(max_examples=trials(30), deadline=None)
@given(st.integers(1, 200), st.floats(0.01, 0.3))
def test_the_delta_of_a_level_is_the_delta_it_was_made_for(reports: int, delta: float) -> None:
    level = level_of_reports(NOISE, reports=reports, radius=100, delta=delta)
    assert delta_of_reports(NOISE, reports=reports, radius=100, level=level) == pytest.approx(delta, rel=2e-3)
