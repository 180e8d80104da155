"""The reductions around the interior-point method keep what they reduce."""

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from geoind import (
    Grid,
    InvalidInputError,
    Places,
    Prior,
    adversary_error,
    expected_loss,
    min_loss_given_epsilon,
    tight_epsilon,
)
from geoind.arrays import FloatArray
from geoind.channels.channel import Channel
from geoind.distances import Distance, discrete, euclidean, from_matrix, manhattan, squared
from geoind.errors import SitesMismatchError, SolverError
from geoind.optimal import Iterate, OptimalChannel, least_loss
from geoind.optimal.candidates import cheap_candidate, cheap_mechanisms, one_report_for_all
from geoind.optimal.cones import Program, merge_classes
from geoind.optimal.interior import minimise
from geoind.optimal.least_loss import _solve
from geoind.optimal.newton import NewtonSystem
from geoind.optimal.problem import Task, as_task
from tests.trials import trials

REFERENCE = {
    (2, 0.01): 54.55511485,
    (2, 0.02): 26.64047415,
    (3, 0.01): 88.39396463,
    (3, 0.02): 39.54018205,
    (4, 0.01): 108.88543635,
    (4, 0.02): 46.64464837,
    (5, 0.01): 122.86772664,
    (5, 0.02): 51.06985434,
    (7, 0.01): 139.46174693,
    (7, 0.02): 56.25787517,
    (9, 0.01): 149.39592471,
    (9, 0.02): 59.19805429,
}


def square(side: int, cell: float = 100.0) -> Grid:
    return Grid(0, 0, cell=cell, columns=side, rows=side)


def skewed(side: int, seed: int = 0) -> Prior:
    return Prior(square(side), np.random.default_rng(seed).dirichlet(np.ones(side * side)))


def assert_kept(channel: OptimalChannel, epsilon: float, distance: Distance = euclidean) -> None:
    assert tight_epsilon(channel, distance) <= epsilon
    assert channel.certificate.epsilon <= epsilon
    assert np.abs(channel.matrix.sum(axis=1) - 1).max() < 1e-12
    assert channel.certificate.bound <= channel.certificate.objective


def by_highs(mass: np.ndarray, apart: np.ndarray, loss: np.ndarray, epsilon: float) -> float:
    """The same program, dense, by another solver."""
    n, m = loss.shape
    first, second = np.nonzero(~np.eye(n, dtype=bool))
    rows = np.zeros((len(first), m, n, m))
    pair, report = np.arange(len(first))[:, None], np.arange(m)
    rows[pair, report, first[:, None], report] = np.exp(-epsilon * apart[first, second])[:, None]
    rows[pair, report, second[:, None], report] = -1
    answer = linprog(
        (mass[:, None] * loss).ravel(),
        A_ub=rows.reshape(-1, n * m) if len(first) else None,
        b_ub=np.zeros(len(first) * m) if len(first) else None,
        A_eq=np.kron(np.eye(n), np.ones(m)),
        b_eq=np.ones(n),
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert answer.fun is not None
    return float(answer.fun)


@pytest.mark.parametrize(("side", "epsilon"), REFERENCE)
def test_the_reference_objectives_are_met_and_the_promise_is_kept(side: int, epsilon: float) -> None:
    best = min_loss_given_epsilon(Prior.uniform(square(side)), epsilon=epsilon)
    value = best.certificate.objective
    assert value == pytest.approx(REFERENCE[side, epsilon], rel=1e-6)
    assert value > REFERENCE[side, epsilon] * (1 - 1e-9)
    assert best.certificate.bound <= REFERENCE[side, epsilon] * (1 + 1e-9)
    assert best.certificate.optimal
    assert best.certificate.gap <= 1e-7
    assert best.epsilon <= epsilon
    assert_kept(best, epsilon)


def test_the_certificate_is_that_of_the_returned_channel() -> None:
    prior = skewed(4)
    best = min_loss_given_epsilon(prior, epsilon=0.01)
    assert best.certificate.objective == pytest.approx(expected_loss(best, prior), rel=1e-12)
    assert best.certificate.epsilon == float(tight_epsilon(best))
    assert "optimal: objective" in str(best.certificate)


def test_what_is_optimal_for_the_user_leaves_the_adversary_as_much() -> None:
    # With one loss for both, the best report is the best guess: remapping an optimal channel gains nothing.
    prior = skewed(4)
    best = min_loss_given_epsilon(prior, epsilon=0.01)
    assert adversary_error(best, prior) == pytest.approx(best.certificate.objective, rel=1e-6)


def test_symmetry_does_not_change_the_optimum() -> None:
    grid = square(5)
    mass = np.full(25, 1 / 25)
    mass[1] += 1e-9
    mass /= mass.sum()
    with_symmetry = min_loss_given_epsilon(Prior.uniform(grid), epsilon=0.01).certificate
    without = min_loss_given_epsilon(Prior(grid, mass), epsilon=0.01).certificate
    assert "symmetries" in with_symmetry.method
    assert "symmetries" not in without.method
    assert with_symmetry.objective == pytest.approx(without.objective, rel=2e-7)


@st.composite
def problems(draw: st.DrawFn) -> tuple[Prior, Places, Distance, Distance, float]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, m = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    inputs = Places(rng.uniform(0, 1000, (n, 2)))
    mass = rng.dirichlet(np.ones(n))
    mass[rng.random(n) < draw(st.sampled_from([0.0, 0.5]))] = 0
    mass = mass / mass.sum() if mass.any() else np.eye(n)[0]
    outputs = inputs if draw(st.booleans()) else Places(rng.uniform(0, 1000, (m, 2)))
    table = rng.uniform(10, 1000, (n, n))
    table = np.triu(table, 1) + np.triu(table, 1).T
    table_loss = rng.normal(size=(n, len(outputs)))

    def any_loss(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        assert len(a) == n
        assert len(b) == len(outputs)
        return table_loss

    distance = draw(st.sampled_from([euclidean, manhattan, from_matrix(table)]))
    loss = draw(st.sampled_from([euclidean, squared, discrete, any_loss]))
    return Prior(inputs, mass), outputs, loss, distance, 10 ** draw(st.floats(-4, -2))


@given(problems())
@settings(max_examples=trials(60), deadline=None, derandomize=True)
def test_random_problems_agree_with_highs(problem: tuple[Prior, Places, Distance, Distance, float]) -> None:
    prior, outputs, loss, distance, epsilon = problem
    best = min_loss_given_epsilon(prior, epsilon=epsilon, outputs=outputs, loss=loss, distance=distance)
    xy = prior.sites.xy
    cost = loss(xy, outputs.xy)
    value = by_highs(prior.mass, distance(xy, xy), cost, epsilon)
    room = 1e-6 * max(abs(value), 1e-3 * float(np.ptp(cost)))
    assert best.certificate.objective == pytest.approx(value, abs=room)
    assert best.certificate.bound <= value + room
    assert_kept(best, epsilon, distance)


@pytest.mark.parametrize("epsilon", [1e-12, 1e-9, 1e-7, 1e-5, 1e-3, 0.1, 1.0, 10.0, 1e4])
@pytest.mark.parametrize("prior", [Prior.uniform(square(3)), skewed(3)])
def test_any_epsilon_is_kept_and_proven(epsilon: float, prior: Prior) -> None:
    best = min_loss_given_epsilon(prior, epsilon=epsilon)
    assert best.certificate.optimal
    assert best.epsilon <= epsilon
    assert_kept(best, epsilon)


def test_the_ends_of_the_scale_are_silence_and_truth() -> None:
    prior = skewed(3)
    silence = min_loss_given_epsilon(prior, epsilon=1e-12)
    assert silence.certificate.objective == pytest.approx(
        (prior.mass @ euclidean(prior.sites.xy, prior.sites.xy)).min()
    )
    assert min_loss_given_epsilon(prior, epsilon=10).certificate.objective < 1e-9


def test_one_input_and_one_output_are_problems_too() -> None:
    alone = Prior.uniform(square(1))
    best = min_loss_given_epsilon(alone, epsilon=0.01, outputs=Places([[300, 400], [0, 50]]))
    np.testing.assert_array_equal(best.matrix, [[0, 1]])
    forced = min_loss_given_epsilon(Prior.uniform(square(2)), epsilon=0.01, outputs=Places([[50, 50]]))
    np.testing.assert_array_equal(forced.matrix, np.ones((4, 1)))
    assert forced.certificate.gap == 0


def test_sites_at_distance_zero_share_a_row() -> None:
    places = Places([[0, 0], [0, 0], [100, 0]])
    best = min_loss_given_epsilon(Prior(places, [0.2, 0.3, 0.5]), epsilon=0.02)
    np.testing.assert_array_equal(best.matrix[0], best.matrix[1])
    assert best.epsilon <= 0.02


def test_sites_without_mass_keep_their_privacy() -> None:
    mass = np.zeros(16)
    mass[[0, 3, 9]] = 0.5, 0.3, 0.2
    best = min_loss_given_epsilon(Prior(square(4), mass), epsilon=0.01)
    assert best.certificate.optimal
    assert_kept(best, 0.01)


@pytest.mark.parametrize("dilation", [1.05, 1.2, 2.0])
def test_a_spanner_costs_some_loss_and_no_privacy(dilation: float) -> None:
    prior = skewed(5)
    exact = min_loss_given_epsilon(prior, epsilon=0.007).certificate
    sparse = min_loss_given_epsilon(prior, epsilon=0.007, dilation=dilation)
    assert_kept(sparse, 0.007)
    assert exact.objective <= sparse.certificate.objective <= dilation * exact.objective
    assert sparse.certificate.bound <= exact.objective
    assert not sparse.certificate.optimal
    # The promise is divided by what the spanner has, not by what was asked for: it is used up.
    assert sparse.epsilon > 0.9999 * 0.007


@pytest.mark.slow
def test_out_of_time_the_best_so_far_is_returned_with_its_gap() -> None:
    best = min_loss_given_epsilon(skewed(8), epsilon=0.01, time_limit=1e-3)
    assert not best.certificate.optimal
    assert best.certificate.gap > 1e-7
    assert "NOT proven optimal" in str(best.certificate)
    assert_kept(best, 0.01)
    exact = min_loss_given_epsilon(skewed(8), epsilon=0.01).certificate
    assert best.certificate.bound <= exact.objective <= best.certificate.objective


def test_progress_brackets_the_optimum_at_every_step() -> None:
    seen: list[Iterate] = []
    best = min_loss_given_epsilon(skewed(4), epsilon=0.01, progress=seen.append)
    assert len(seen) == best.certificate.iterations + 1
    value = best.certificate.objective
    assert all(one.bound <= value * (1 + 1e-9) and one.objective >= value * (1 - 1e-7) for one in seen)
    assert seen[-1].gap <= 1e-7 < seen[-2].gap


def test_a_tolerance_out_of_reach_is_an_error() -> None:
    with pytest.raises(SolverError, match="larger tolerance"):
        min_loss_given_epsilon(skewed(3), epsilon=0.01, tolerance=1e-17)


def test_nonsense_is_refused() -> None:
    prior = skewed(2)
    for epsilon in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InvalidInputError, match="epsilon"):
            min_loss_given_epsilon(prior, epsilon=epsilon)
    with pytest.raises(InvalidInputError, match="symmetric"):
        min_loss_given_epsilon(prior, epsilon=1, distance=from_matrix(np.triu(np.ones((4, 4)), 1)))
    with pytest.raises(InvalidInputError, match="to itself"):
        min_loss_given_epsilon(prior, epsilon=1, distance=from_matrix(np.ones((4, 4))))
    with pytest.raises(SitesMismatchError, match="matrix"):
        min_loss_given_epsilon(prior, epsilon=1, loss=from_matrix(np.ones((3, 4))))
    with pytest.raises(InvalidInputError, match="loss must be finite"):
        min_loss_given_epsilon(prior, epsilon=1, loss=lambda a, b: np.full((len(a), len(b)), np.nan))
    with pytest.raises(InvalidInputError, match="dilation"):
        min_loss_given_epsilon(prior, epsilon=1, dilation=0.5)


def test_a_problem_that_would_not_fit_in_memory_is_refused_at_once() -> None:
    grid = Grid(0, 0, cell=10, columns=30, rows=31)
    mass = np.random.default_rng(0).dirichlet(np.ones(930))
    with pytest.raises(InvalidInputError, match="GB of memory; pass a larger tolerance"):
        min_loss_given_epsilon(Prior(grid, mass), epsilon=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cells", "epsilon"),
    [
        ([9, 18, 55, 65], 0.03),  # a few holes
        ([0, 40, 80], 0.06),
        ([cell for cell in range(81) if not (1 < cell // 9 < 6 and 1 < cell % 9 < 6)], 0.1),  # all but a region
        ([cell for cell in range(81) if cell // 9 != 4], 0.03),
    ],
)
def test_cells_without_mass_do_not_keep_the_optimum_from_being_proven(cells: list[int], epsilon: float) -> None:
    mass = np.random.default_rng(5).dirichlet(np.ones(81))
    mass[cells] = 0.0
    prior = Prior.from_counts(square(9), mass)
    best = min_loss_given_epsilon(prior, epsilon=epsilon)
    assert best.certificate.optimal
    assert_kept(best, epsilon)
    # Next to no mass changes next to nothing.
    filled = Prior.from_counts(square(9), np.maximum(prior.mass, 1e-12))
    nearby = min_loss_given_epsilon(filled, epsilon=epsilon).certificate
    assert best.certificate.objective == pytest.approx(nearby.objective, rel=1e-6, abs=1e-7)


def test_a_gap_is_relative_to_the_objective_or_to_the_yardstick() -> None:
    assert Iterate(0, 10.0, 9.0, 0.0, 1.0).gap == pytest.approx(0.1)
    assert Iterate(0, 10.0, 9.0, 0.0, 50.0).gap == pytest.approx(0.02)
    assert Iterate(0, -10.0, -11.0, 0.0, 1.0).gap == pytest.approx(0.1)
    assert Iterate(0, 5.0, 5.0, 0.0, 1.0).gap == 0
    assert Iterate(0, 1.0, 1.0 - 2.0**-60, 0.0, 1.0).gap == 0
    # What rounding leaves proves nothing better than rounding, a bound above the objective included.
    assert Iterate(0, 1.0, 1.0 + 2.0**-40, 0.0, 1.0).gap == np.finfo(float).eps


@pytest.mark.parametrize(
    "wrong",
    [
        {"tolerance": 0},
        {"tolerance": 1},
        {"tolerance": math.nan},
        {"dilation": math.nan},
        {"dilation": math.inf},
        {"time_limit": 0},
        {"time_limit": math.nan},
        {"time_limit": "60"},
        {"progress": 5},
    ],
)
def test_an_invalid_tolerance_limit_or_callback_is_an_error(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=f"{next(iter(wrong))} must"):
        min_loss_given_epsilon(skewed(2), epsilon=1, **wrong)


def task(seed: int, side: int = 3, epsilon: float = 0.01) -> Task:
    rng = np.random.default_rng(seed)
    grid = Grid(0, 0, cell=100, columns=side, rows=side)
    return as_task(Prior(grid, rng.dirichlet(np.ones(side * side))), epsilon, None, euclidean, euclidean)


@given(st.integers(0, 1000), st.floats(-4, -1))
@settings(max_examples=trials(15), deadline=None, derandomize=True)
def test_one_report_for_all_brackets_the_optimum(seed: int, epsilon: float) -> None:
    problem = task(seed, 2, 10**epsilon)
    ignorant = one_report_for_all(problem)
    best = _solve(problem, tolerance=1e-7).last
    assert ignorant.last.bound <= best.objective * (1 + 1e-9) + 1e-12
    assert best.bound <= ignorant.last.objective * (1 + 1e-9)
    # It is the best of its kind, and says what it costs.
    assert ignorant.last.objective == pytest.approx((problem.mass @ problem.cost).min())
    assert ignorant.last.objective == pytest.approx(problem.objective(ignorant.matrix))
    assert (ignorant.matrix == ignorant.matrix[0]).all()
    assert ignorant.matrix[0].sum() == 1
    # With epsilon near 0 the bound is tight; with a large epsilon it is far below.
    assert ignorant.last.bound >= np.exp(-(10**epsilon) * 100 * np.sqrt(2)) * ignorant.last.objective * 0.999


def test_one_report_of_loss_zero_for_all_is_proven_at_once() -> None:
    grid = Grid(0, 0, cell=100, columns=3, rows=3)
    rng = np.random.default_rng(8)
    prior = Prior(grid, rng.dirichlet(np.ones(9)))
    for outputs in (1, 4):
        cost = rng.uniform(1, 5, (9, outputs))
        cost[:, 0] = cost.min(axis=1)
        found = one_report_for_all(as_task(prior, 0.01, Places(grid.xy[:outputs]), from_matrix(cost), euclidean))
        assert found.last.gap == 0
        assert found.last.objective == pytest.approx(prior.mass @ cost[:, 0])
        assert (found.matrix[:, 0] == 1).all()


@pytest.mark.parametrize("steps", [0, 4])
def test_a_method_that_cannot_go_on_returns_its_best_and_what_is_proven(
    steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = task(2)
    best = _solve(problem, tolerance=1e-7).last.objective
    factor, left = NewtonSystem.factor, [None] * steps

    def failing(self: NewtonSystem, *arguments: Any) -> None:
        if not left:
            raise SolverError("a block of the Newton system could not be factored")
        left.pop()
        factor(self, *arguments)

    monkeypatch.setattr(NewtonSystem, "factor", failing)
    found = _solve(problem, tolerance=1e-7)
    assert (found.stopped, found.last.iteration) == ("stuck", steps)
    assert found.last.bound <= best * (1 + 1e-9)
    assert found.last.objective == pytest.approx(problem.objective(found.matrix), rel=1e-9)
    assert best < found.last.objective <= (problem.mass @ problem.cost).min() * (1 + 1e-9)
    allowed = np.exp(problem.epsilon * problem.apart)[:, :, None]
    assert (found.matrix[:, None, :] <= allowed * found.matrix[None, :, :]).all()


def test_a_constant_of_every_report_is_added_to_the_objective() -> None:
    problem = task(1)
    shifted = replace(problem, loss=lambda here, there: euclidean(here, there) + 1000.0)
    plain, moved = (_solve(one, tolerance=1e-8).last for one in (problem, shifted))
    assert moved.objective == pytest.approx(plain.objective + 1000, rel=1e-9)
    assert moved.bound == pytest.approx(plain.bound + 1000, rel=1e-7)
    per_row = replace(problem, loss=lambda here, there: euclidean(here, there) + np.arange(9.0)[:, None])
    assert _solve(per_row, tolerance=1e-8).last.objective == pytest.approx(
        plain.objective + problem.mass @ np.arange(9.0), rel=1e-7
    )


def test_classes_take_the_shortest_distances_and_the_sums_of_their_costs() -> None:
    apart = np.array([[0.0, 1e-15, 5], [1e-15, 0, 4], [5, 4, 0]])
    weighted = np.array([[1.0, 2], [10, 20], [100, 200]])
    shortest, total = merge_classes(apart, weighted, np.array([0, 0, 1]))
    assert shortest.tolist() == [[0, 4], [4, 0]]
    assert total.tolist() == [[11, 22], [100, 200]]


def test_inputs_that_doubles_do_not_tell_apart_are_one() -> None:
    near = Places([[0.0, 0], [1e-14, 0], [100.0, 0], [100.0, 50]])
    far = Places([[0, 0], [100, 0], [100, 50]])
    twice = as_task(Prior(near, [0.1, 0.2, 0.3, 0.4]), 0.01, far, squared, euclidean)
    once = as_task(Prior(far, [0.3, 0.3, 0.4]), 0.01, far, squared, euclidean)
    found = _solve(twice, tolerance=1e-8)
    np.testing.assert_array_equal(found.matrix[0], found.matrix[1])
    assert found.last.objective == pytest.approx(_solve(once, tolerance=1e-8).last.objective, rel=1e-7)


def test_every_solution_is_strictly_private_and_has_its_method() -> None:
    problem = task(2)
    found = _solve(problem, tolerance=1e-7)
    ratio = found.matrix[:, None, :] / found.matrix[None, :, :]
    allowed = np.exp(problem.epsilon * problem.apart)[:, :, None]
    assert (ratio <= allowed).all()
    assert found.stopped == "optimal"
    assert found.method == "interior point"
    assert found.last.objective == pytest.approx(problem.objective(found.matrix), rel=1e-9)
    grid = Grid(0, 0, cell=100, columns=3, rows=3)
    even = as_task(Prior.uniform(grid), 0.01, None, euclidean, euclidean)
    assert _solve(even, tolerance=1e-7).method == "interior point, 8 symmetries"


def test_what_does_not_fit_in_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # Nine outputs, each with 11 bytes for a cell of its block of 9 x 9: a double, a flag and what is temporary.
    monkeypatch.setattr(least_loss, "MEMORY", 9 * 81 * 11.0)
    assert _solve(task(3), tolerance=1e-6).stopped == "optimal"
    monkeypatch.setattr(least_loss, "MEMORY", 9 * 81 * 11.0 - 1)
    with pytest.raises(InvalidInputError, match="9 inputs and 9 outputs"):
        _solve(task(3), tolerance=1e-6)


def test_out_of_time_says_so_and_a_spanner_shares_the_time() -> None:
    assert _solve(task(4, 5), tolerance=1e-9, time_limit=1e-9).stopped == "time limit"
    sparse = _solve(task(4, 5), tolerance=1e-7, dilation=1.5)
    assert sparse.stopped == "spanner"
    assert "spanner of" in sparse.method
    assert sparse.last.bound < sparse.last.objective


def test_both_programs_of_a_spanner_share_one_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    limits, clock = [], itertools.count(0, 10)

    def watched(program: Program, ratio: FloatArray, *, time_limit: float, **others: Any) -> Any:
        limits.append(time_limit)
        return minimise(program, ratio, time_limit=np.inf, **others)

    monkeypatch.setattr(least_loss, "minimise", watched)
    # Every look at the clock is ten seconds after the one before.
    monkeypatch.setattr(least_loss, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    assert _solve(task(4), tolerance=1e-6, time_limit=100, dilation=1.5).stopped == "spanner"
    assert limits == [90, 80]


GRID = Grid(0, 0, cell=100, columns=6, rows=5)
SKEWED = Prior(GRID, np.random.default_rng(1).dirichlet(np.ones(30)))


@pytest.mark.parametrize(
    ("loss", "distance"), [(euclidean, euclidean), (manhattan, manhattan), (discrete, euclidean)]
)
def test_the_cheap_candidate_keeps_the_promise_and_is_not_far_off(loss: Distance, distance: Distance) -> None:
    problem = as_task(SKEWED, 0.01, None, loss, distance)
    matrix, name = cheap_candidate(problem, SKEWED)
    assert tight_epsilon(Channel(GRID, GRID, matrix), distance) <= 0.01 * (1 + 1e-9)
    best = _solve(problem, tolerance=1e-7).last.objective
    assert best * (1 - 1e-9) <= problem.objective(matrix) <= 1.8 * best
    assert name.endswith(("and Bayes remap", "one report for all"))


def half(a: FloatArray, b: FloatArray) -> FloatArray:
    """A metric in which a promise is twice as strict."""
    return np.asarray(euclidean(a, b) / 2)


@pytest.mark.parametrize("sites", [GRID, Places(GRID.xy)], ids=["grid", "places"])
@pytest.mark.parametrize("distance", [euclidean, manhattan, half], ids=lambda distance: distance.__name__)
def test_every_mechanism_that_is_compared_keeps_the_promise_in_its_metric(
    sites: Grid | Places, distance: Distance
) -> None:
    prior = Prior(sites, SKEWED.mass)
    found = cheap_mechanisms(as_task(prior, 0.01, None, euclidean, distance), prior)
    assert all(tight_epsilon(channel, distance) <= 0.01 * (1 + 1e-9) for channel, _ in found)
    # Planar Laplace exists for grids and the Euclidean distance only.
    laplace = {"planar Laplace"} if isinstance(sites, Grid) and distance is euclidean else set()
    assert {name for _, name in found} == {"exponential mechanism", "ExPost"} | laplace


def test_where_one_report_is_best_it_is_the_candidate() -> None:
    problem = as_task(SKEWED, 1e-9, None, euclidean, euclidean)
    matrix, name = cheap_candidate(problem, SKEWED)
    assert problem.objective(matrix) == pytest.approx((SKEWED.mass @ problem.cost).min(), rel=1e-6)
    assert (np.ptp(matrix, axis=0) < 1e-6).all()
    assert name
