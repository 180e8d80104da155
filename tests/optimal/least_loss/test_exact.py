"""The reductions around the interior-point method keep what they reduce."""

import itertools
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoind import Grid, InvalidInputError, Places, Prior
from geoind.distances import euclidean, from_matrix, squared
from geoind.errors import SolverError
from geoind.optimal.least_loss import exact
from geoind.optimal.least_loss.cones import Program
from geoind.optimal.least_loss.effort import Effort
from geoind.optimal.least_loss.exact import Task, _merge, _one_report_for_all, as_task, solve
from geoind.optimal.least_loss.interior import Solution, minimise
from geoind.optimal.least_loss.newton import NewtonSystem


def task(seed: int, side: int = 3, epsilon: float = 0.01) -> Task:
    rng = np.random.default_rng(seed)
    grid = Grid(0, 0, cell=100, columns=side, rows=side)
    return as_task(Prior(grid, rng.dirichlet(np.ones(side * side))), epsilon, None, euclidean, euclidean)


@given(st.integers(0, 1000), st.floats(-4, -1))
@settings(max_examples=15, deadline=None, derandomize=True)
def test_one_report_for_all_brackets_the_optimum(seed: int, epsilon: float) -> None:
    problem = task(seed, 2, 10**epsilon)
    ignorant = _one_report_for_all(problem)
    best = solve(problem, Effort(tolerance=1e-7)).last
    assert ignorant.last.bound <= best.objective * (1 + 1e-9) + 1e-12
    assert best.bound <= ignorant.last.objective * (1 + 1e-9)
    # It is the best of its kind, and says what it costs.
    assert ignorant.last.objective == pytest.approx((problem.mass @ problem.cost).min())
    assert ignorant.last.objective == pytest.approx(problem.objective(ignorant.matrix))
    assert (ignorant.matrix == ignorant.matrix[0]).all()
    assert ignorant.matrix[0].sum() == 1
    # Where nothing can be told, nothing is lost by it; where everything can, the bound is far below.
    assert ignorant.last.bound >= np.exp(-(10**epsilon) * 100 * np.sqrt(2)) * ignorant.last.objective * 0.999


def test_where_one_report_costs_nobody_anything_it_is_proven_at_once() -> None:
    grid = Grid(0, 0, cell=100, columns=3, rows=3)
    rng = np.random.default_rng(8)
    prior = Prior(grid, rng.dirichlet(np.ones(9)))
    for outputs in (1, 4):
        cost = rng.uniform(1, 5, (9, outputs))
        cost[:, 0] = cost.min(axis=1)
        found = _one_report_for_all(as_task(prior, 0.01, Places(grid.xy[:outputs]), from_matrix(cost), euclidean))
        assert found.last.gap == 0
        assert found.last.objective == pytest.approx(prior.mass @ cost[:, 0])
        assert (found.matrix[:, 0] == 1).all()


@pytest.mark.parametrize("steps", [0, 4])
def test_a_method_that_cannot_go_on_returns_its_best_and_what_is_proven(
    steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = task(2)
    best = solve(problem, Effort(tolerance=1e-7)).last.objective
    factor, left = NewtonSystem.factor, [None] * steps

    def failing(self: NewtonSystem, *arguments: Any) -> None:
        if not left:
            raise SolverError("a block of the Newton system could not be factored")
        left.pop()
        factor(self, *arguments)

    monkeypatch.setattr(NewtonSystem, "factor", failing)
    found = solve(problem, Effort(tolerance=1e-7))
    assert (found.stopped, found.last.iteration) == ("stuck", steps)
    assert found.last.bound <= best * (1 + 1e-9)
    assert found.last.objective == pytest.approx(problem.objective(found.matrix), rel=1e-9)
    assert best < found.last.objective <= (problem.mass @ problem.cost).min() * (1 + 1e-9)
    allowed = np.exp(problem.epsilon * problem.apart)[:, :, None]
    assert (found.matrix[:, None, :] <= allowed * found.matrix[None, :, :]).all()


def test_a_constant_of_every_report_is_added_to_the_objective() -> None:
    problem = task(1)
    shifted = Task(
        problem.inputs, problem.outputs, problem.mass, problem.epsilon, problem.apart, problem.cost + 1000.0
    )
    plain, moved = (solve(one, Effort(tolerance=1e-8)).last for one in (problem, shifted))
    assert moved.objective == pytest.approx(plain.objective + 1000, rel=1e-9)
    assert moved.bound == pytest.approx(plain.bound + 1000, rel=1e-7)
    per_row = Task(
        problem.inputs,
        problem.outputs,
        problem.mass,
        problem.epsilon,
        problem.apart,
        problem.cost + np.arange(9.0)[:, None],
    )
    assert solve(per_row, Effort(tolerance=1e-8)).last.objective == pytest.approx(
        plain.objective + problem.mass @ np.arange(9.0), rel=1e-7
    )


def test_classes_take_the_shortest_distances_and_the_sums_of_their_costs() -> None:
    apart = np.array([[0.0, 1e-15, 5], [1e-15, 0, 4], [5, 4, 0]])
    weighted = np.array([[1.0, 2], [10, 20], [100, 200]])
    shortest, total = _merge(apart, weighted, np.array([0, 0, 1]))
    assert shortest.tolist() == [[0, 4], [4, 0]]
    assert total.tolist() == [[11, 22], [100, 200]]


def test_inputs_that_doubles_do_not_tell_apart_are_one() -> None:
    near = Places([[0.0, 0], [1e-14, 0], [100.0, 0], [100.0, 50]])
    far = Places([[0, 0], [100, 0], [100, 50]])
    twice = as_task(Prior(near, [0.1, 0.2, 0.3, 0.4]), 0.01, far, squared, euclidean)
    once = as_task(Prior(far, [0.3, 0.3, 0.4]), 0.01, far, squared, euclidean)
    found = solve(twice, Effort(tolerance=1e-8))
    np.testing.assert_array_equal(found.matrix[0], found.matrix[1])
    assert found.last.objective == pytest.approx(solve(once, Effort(tolerance=1e-8)).last.objective, rel=1e-7)


def test_every_answer_is_strictly_inside_the_promise_and_tells_how_it_was_found() -> None:
    problem = task(2)
    found = solve(problem, Effort(tolerance=1e-7))
    ratio = found.matrix[:, None, :] / found.matrix[None, :, :]
    allowed = np.exp(problem.epsilon * problem.apart)[:, :, None]
    assert (ratio <= allowed).all()
    assert found.stopped == "optimal"
    assert found.method == "interior point"
    assert found.last.objective == pytest.approx(problem.objective(found.matrix), rel=1e-9)
    grid = Grid(0, 0, cell=100, columns=3, rows=3)
    even = as_task(Prior.uniform(grid), 0.01, None, euclidean, euclidean)
    assert solve(even, Effort(tolerance=1e-7)).method == "interior point, 8 symmetries"


def test_what_does_not_fit_in_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # Nine outputs, each with a block of 9 x 9 doubles and as many flags.
    monkeypatch.setattr(exact, "MEMORY", 9 * 81 * 9.0)
    assert solve(task(3), Effort(tolerance=1e-6)).stopped == "optimal"
    monkeypatch.setattr(exact, "MEMORY", 9 * 81 * 9.0 - 1)
    with pytest.raises(InvalidInputError, match="9 inputs and 9 outputs"):
        solve(task(3), Effort(tolerance=1e-6))


def test_out_of_time_says_so_and_a_spanner_shares_the_time() -> None:
    assert solve(task(4, 5), Effort(tolerance=1e-9, time_limit=1e-9)).stopped == "time limit"
    sparse = solve(task(4, 5), Effort(tolerance=1e-7), dilation=1.5)
    assert sparse.stopped == "spanner"
    assert "spanner of" in sparse.method
    assert sparse.last.bound < sparse.last.objective


def test_both_programs_of_a_spanner_share_one_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    limits, clock = [], itertools.count(0, 10)

    def watched(program: Program, *, effort: Effort, **others: Any) -> Solution:
        limits.append(effort.time_limit)
        return minimise(program, effort=replace(effort, time_limit=np.inf), **others)

    monkeypatch.setattr(exact, "minimise", watched)
    # Every look at the clock is ten seconds after the one before.
    monkeypatch.setattr(exact, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    assert solve(task(4), Effort(tolerance=1e-6, time_limit=100), dilation=1.5).stopped == "spanner"
    assert limits == [90, 80]
