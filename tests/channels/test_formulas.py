import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import laplace

from geoind import (
    Channel,
    Grid,
    InvalidInputError,
    Places,
    cloaking,
    distances,
    exponential,
    geometric,
    planar_geometric,
    randomised_response,
    tight_epsilon,
)
from geoind.arrays import FloatArray
from geoind.channels import linear_laplace
from geoind.channels.formulas import axis_cases, loss_per_step, spread_over
from geoind.distances import discrete, euclidean, from_matrix
from tests.channels.grids import grids
from tests.trials import trials

PAPER = Grid(0, 0, cell=100, columns=9, rows=9)


def test_cloaking_reports_the_centre_of_the_zone() -> None:
    channel = cloaking(PAPER, zone=(3, 3))
    assert channel.outputs.xy.tolist()[:4] == [[100, 100], [400, 100], [700, 100], [100, 400]]
    assert channel.sample([[0, 0], [799, 801], [390, 10]]).tolist() == [[100, 100], [700, 700], [400, 100]]


def test_zones_at_the_end_may_be_smaller_and_even_ones_have_their_own_centre() -> None:
    channel = cloaking(Grid(0, 0, cell=10, columns=5, rows=3), zone=(2, 3))
    assert channel.outputs.xy.tolist() == [[5, 10], [25, 10], [40, 10]]


def test_one_zone_reveals_nothing() -> None:
    assert cloaking(PAPER, zone=(9, 9)).epsilon == 0


@pytest.mark.parametrize("zone", [(0, 3), (3, -1), (1.5, 2)])
def test_bad_zones_are_refused(zone: tuple[Any, Any]) -> None:
    with pytest.raises(InvalidInputError):
        cloaking(PAPER, zone=zone)


@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.3, 1, 5, 100, 2000])
@pytest.mark.parametrize(("columns", "rows"), [(5, 4), (1, 6), (1, 1), (2, 2), (9, 9)])
def test_planar_geometric_attains_its_promise_and_never_exceeds_it(rate: float, columns: int, rows: int) -> None:
    channel = planar_geometric(Grid(3, 4, cell=100, columns=columns, rows=rows), epsilon=rate / 100)
    assert np.abs(channel.matrix.sum(axis=1) - 1).max() < 1e-12
    assert channel.epsilon <= rate / 100
    # At 2 000 scales per cell other cells are less likely than the smallest entry there is.
    if columns > 2 and rate < 600:
        assert channel.epsilon == pytest.approx(rate / 100, rel=1e-5)


@given(grids(), st.floats(-11, 3))
@settings(max_examples=trials(60), deadline=None, derandomize=True)
def test_planar_geometric_keeps_its_promise_on_any_grid(grid: Grid, rate: float) -> None:
    epsilon = 10**rate / grid.cell
    assert planar_geometric(grid, epsilon=epsilon).epsilon <= epsilon


@pytest.mark.parametrize("rate", [0.1, 0.8])
def test_planar_geometric_is_the_sum_over_the_lattice(rate: float) -> None:
    far = int(40 / rate)
    i, j = np.mgrid[-far : far + 1, -far : far + 1]
    weight = np.exp(-rate * np.hypot(i, j))
    weight /= weight.sum()
    matrix = planar_geometric(Grid(0, 0, cell=1, columns=4, rows=3), epsilon=rate).matrix
    for truth in range(12):
        column, row = np.clip(truth % 4 + i, 0, 3), np.clip(truth // 4 + j, 0, 2)
        expected = np.bincount((row * 4 + column).ravel(), weights=weight.ravel())
        assert matrix[truth] == pytest.approx(expected, rel=1e-9)


def test_the_exponential_mechanism_without_a_score_is_d_private() -> None:
    for rate in (0.1, 0.5, 2):
        channel = exponential(PAPER, PAPER, epsilon=rate / 100)
        assert 0.6 * rate / 100 < channel.epsilon <= rate / 100
    weights = np.exp(-0.02 * euclidean(PAPER.xy, PAPER.xy) / 2)
    expected = weights / weights.sum(axis=1, keepdims=True)
    assert exponential(PAPER, PAPER, epsilon=0.02).matrix == pytest.approx(expected, rel=1e-9)


def test_the_exponential_mechanism_of_the_lectures() -> None:
    answers = Places([[0, 0], [1, 0], [2, 0]])
    score = from_matrix([[3, 1, 0], [2, 2, 0], [0, 1, 4]])
    channel = exponential(answers, answers, epsilon=0.7, score=score, distance=discrete)
    # Sensitivity: the third answer's score changes by 4.
    weights = np.exp(0.7 * np.array([[3, 1, 0], [2, 2, 0], [0, 1, 4]]) / (2 * 4))
    assert channel.matrix == pytest.approx(weights / weights.sum(axis=1, keepdims=True), rel=1e-9)
    assert tight_epsilon(channel, discrete) <= 0.7


def test_a_known_sensitivity_may_be_larger_but_not_smaller_than_the_scores_own() -> None:
    def closeness(a: FloatArray, b: FloatArray) -> FloatArray:
        return -euclidean(a, b)

    same = exponential(PAPER, PAPER, epsilon=0.01, score=closeness)
    assert same.matrix == pytest.approx(exponential(PAPER, PAPER, epsilon=0.01).matrix, rel=1e-9)
    careful = exponential(PAPER, PAPER, epsilon=0.01, score=closeness, sensitivity=2)
    assert careful.epsilon < same.epsilon
    with pytest.raises(InvalidInputError, match="sensitivity"):
        exponential(PAPER, PAPER, epsilon=0.01, score=closeness, sensitivity=0.9)


def test_a_constant_score_says_nothing() -> None:
    flat = exponential(PAPER, PAPER, epsilon=1, score=lambda a, b: np.zeros((len(a), len(b))))
    assert flat.epsilon == 0
    # Nor does one that no truth changes: it has no sensitivity to be measured by.
    same = exponential(PAPER, PAPER, epsilon=1, score=lambda a, b: np.tile(np.arange(len(b)), (len(a), 1)))
    assert same.matrix == pytest.approx(np.full((81, 81), 1 / 81))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_bad_scores_are_refused(value: float) -> None:
    with pytest.raises(InvalidInputError, match="score"):
        exponential(PAPER, PAPER, epsilon=1, score=lambda a, b: np.full((len(a), len(b)), value))


@pytest.mark.parametrize("epsilon", [0.001, 0.05, 3.0])
def test_a_road_metric_is_a_matrix(epsilon: float) -> None:
    road = np.abs(np.subtract.outer(np.arange(4), np.arange(4))) * 130.0
    corners = Places([[0, 0], [100, 0], [100, 100], [0, 100]])
    channel = exponential(corners, corners, epsilon=epsilon, distance=from_matrix(road))
    assert tight_epsilon(channel, from_matrix(road)) <= epsilon


def test_randomised_response_is_the_coin_protocol_for_two() -> None:
    coin = randomised_response(2, epsilon=math.log(3))
    assert coin.matrix == pytest.approx(np.array([[0.75, 0.25], [0.25, 0.75]]), abs=1e-11)


@pytest.mark.parametrize("n", [1, 2, 7])
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 50, 900])
def test_randomised_response_keeps_its_promise_between_any_two_values(n: int, epsilon: float) -> None:
    measured = tight_epsilon(randomised_response(n, epsilon=epsilon), distances.discrete)
    assert measured <= epsilon
    if n > 1 and epsilon < 600:
        assert measured == pytest.approx(epsilon, rel=2e-6)


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf])
def test_bad_epsilons_are_refused_everywhere(epsilon: float) -> None:
    makers: list[Callable[[], Channel]] = [
        lambda: randomised_response(3, epsilon=epsilon),
        lambda: planar_geometric(PAPER, epsilon=epsilon),
        lambda: exponential(PAPER, PAPER, epsilon=epsilon),
    ]
    for make in makers:
        with pytest.raises(InvalidInputError):
            make()


both = pytest.mark.parametrize("make", [geometric, linear_laplace])


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 2.0])
def test_truncated_geometric_has_the_constants_of_the_literature(epsilon: float) -> None:
    expected = np.exp(-epsilon * np.abs(np.subtract.outer(np.arange(5), np.arange(5))))
    expected[:, 1:-1] *= (math.exp(epsilon) - 1) / (math.exp(epsilon) + 1)
    expected[:, [0, -1]] *= math.exp(epsilon) / (math.exp(epsilon) + 1)
    assert geometric(5, epsilon=epsilon).matrix == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(("n", "epsilon", "condition"), [(5, 0.3, 46), (50, 0.05, 3292)])
def test_truncated_geometric_is_as_ill_conditioned_as_known(n: int, epsilon: float, condition: int) -> None:
    assert np.linalg.cond(geometric(n, epsilon=epsilon).matrix) == pytest.approx(condition, rel=0.01)


@pytest.mark.parametrize("beyond", [0, 3])
def test_linear_laplace_is_the_mass_of_each_rounding_interval(beyond: int) -> None:
    channel = linear_laplace(4, epsilon=0.02, cell=50, beyond=beyond)
    edges = np.concatenate([[-np.inf], (np.arange(3 + 2 * beyond) - beyond + 0.5) * 50, [np.inf]])
    for truth in range(4):
        expected = np.diff(laplace.cdf(edges, loc=50 * truth, scale=1 / 0.02))
        assert channel.matrix[truth] == pytest.approx(expected, rel=1e-9)


@both
@pytest.mark.parametrize("rate", [1e-6, 0.3, 5, 100, 2000])
@pytest.mark.parametrize(("n", "beyond"), [(1, 0), (1, 4), (2, 0), (9, 0), (5, 30)])
def test_rows_sum_to_one_and_the_promise_is_kept(
    make: Callable[..., Channel], rate: float, n: int, beyond: int
) -> None:
    channel = make(n, epsilon=rate / 10, cell=10, beyond=beyond)
    assert np.abs(channel.matrix.sum(axis=1) - 1).max() < 1e-12
    assert channel.epsilon <= rate / 10


@both
@given(st.integers(2, 300), st.floats(-4, 5), st.floats(-11, 2))
@settings(max_examples=trials(40), deadline=None, derandomize=True)
def test_the_promise_is_kept_on_any_line(make: Callable[..., Channel], n: int, cell: float, rate: float) -> None:
    epsilon = 10**rate / 10**cell
    assert make(n, epsilon=epsilon, cell=10**cell).epsilon <= epsilon


@both
def test_the_promise_is_attained(make: Callable[..., Channel]) -> None:
    assert make(5, epsilon=0.7, beyond=2).epsilon == pytest.approx(0.7, rel=1e-11)


@both
def test_a_group_of_steps_costs_that_many_times(make: Callable[..., Channel]) -> None:
    channel = make(5, epsilon=0.7, beyond=2)
    # Between the first and the last value, four steps apart, whatever their distance is called.
    assert tight_epsilon(channel, discrete) == pytest.approx(4 * 0.7, rel=1e-11)


def test_reports_reach_beyond_the_values() -> None:
    channel = geometric(3, epsilon=1, cell=2, beyond=2)
    assert channel.inputs == Grid(0, 0, cell=2, columns=3, rows=1)
    assert channel.outputs == Grid(-4, 0, cell=2, columns=7, rows=1)
    assert channel.matrix[1] == pytest.approx(channel.matrix[1, ::-1])


@both
@pytest.mark.parametrize(
    "options", [{"n": 0}, {"epsilon": 0}, {"epsilon": math.nan}, {"cell": -1}, {"beyond": -1}, {"beyond": 0.5}]
)
def test_bad_arguments_are_refused(make: Callable[..., Channel], options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        make(**{"n": 3, "epsilon": 1.0} | options)


def test_every_entry_is_the_mass_of_its_offset_and_border() -> None:
    grid = Grid(0, 0, cell=1, columns=4, rows=3)
    masses = np.arange(9 * 7, dtype=float).reshape(9, 7) + 1
    matrix = spread_over(grid, masses)
    for truth in range(12):
        for report in range(12):
            x = abs(report % 4 - truth % 4) + 4 * (report % 4 in (0, 3))
            y = abs(report // 4 - truth // 4) + 3 * (report // 4 in (0, 2))
            assert matrix[truth, report] == masses[x, y]


def test_a_single_cell_takes_the_whole_line() -> None:
    assert axis_cases(1).tolist() == [[2]]


def test_nothing_underflows_to_zero() -> None:
    assert spread_over(Grid(0, 0, cell=1, columns=2, rows=1), np.zeros((5, 3))).min() == 1e-300


@given(grids())
def test_no_two_cells_are_closer_than_the_loss_per_step_says(grid: Grid) -> None:
    per_step = loss_per_step(grid, 1 / grid.cell)
    row, column = np.divmod(np.arange(len(grid)), grid.columns)
    steps = np.hypot(row[:, None] - row, column[:, None] - column)
    assert (per_step * steps <= euclidean(grid.xy, grid.xy) / grid.cell).all()
    assert 1 - 1e-3 < per_step < 1


def test_cells_that_share_a_coordinate_are_refused() -> None:
    for x, y in [(1e9, 0), (0, 1e9)]:
        with pytest.raises(InvalidInputError, match="cell"):
            loss_per_step(Grid(x, y, cell=1e-8, columns=2, rows=2), 1.0)
