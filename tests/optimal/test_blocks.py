"""The method over blocks finds the optimum of its program, and its bounds are valid at every iteration."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array

from geoind.arrays import FloatArray
from geoind.optimal.block_program import BlockProgram, Blocks
from geoind.optimal.blocks import BlockMethod
from geoind.optimal.extension import row_sums
from geoind.parallel import Threads
from tests.trials import trials

INPUTS, OUTPUTS = 8, 5


def problem(seed: int, extra: bool = False) -> BlockProgram:
    """Random blocks; a follower at each output and, if asked for, an inequality that concerns two inputs."""
    rng = np.random.default_rng(seed)
    xy = rng.uniform(0, 2, (INPUTS, 2))
    ratio = np.exp(-np.hypot(*(xy[:, None] - xy).transpose(2, 0, 1)))
    kept = [np.sort(rng.permutation(INPUTS)[:5]) for _ in range(OUTPUTS)]
    kept[0] = np.arange(INPUTS)
    start = np.concatenate([[0], np.cumsum([len(some) for some in kept])])
    member = np.concatenate(kept)
    equations = np.zeros((INPUTS + extra, len(member)))
    equations[member, np.arange(len(member))] = 1.0
    for j, some in enumerate(kept):
        for other in np.setdiff1d(np.arange(INPUTS), some)[:1]:
            equations[other, start[j] + 2] = ratio[some[2], other]
        if extra and j < 3:
            equations[INPUTS, start[j] : start[j] + 2] = 1.0, -0.5
    more = np.full(int(extra), 0.1), np.zeros(int(extra))
    return BlockProgram(
        Blocks(member, start, start[:-1] + 1),
        ratio,
        rng.uniform(0, 1, len(member)),
        csr_array(equations),
        np.concatenate([np.ones(INPUTS), more[0]]),
        np.concatenate([rng.uniform(0.2, 0.8, INPUTS), more[1]]),
        np.concatenate([xy[:, 0], more[1]]),
    )


def method_of(program: BlockProgram, active: bool, team: Threads) -> BlockMethod:
    """The method with all pairs, or with none but those of the references."""
    near = np.full((INPUTS, INPUTS), active) & ~np.eye(INPUTS, dtype=bool)
    return BlockMethod(program, near, np.ones(len(program.cost)), team)


def by_highs(program: BlockProgram) -> float:
    blocks, constraints = program.blocks, []
    for j in range(len(blocks)):
        for source in range(blocks.start[j], blocks.start[j + 1]):
            for target in range(blocks.start[j], blocks.start[j + 1]):
                if source != target:
                    row = np.zeros(len(blocks.member) + len(program.right))
                    row[source], row[target] = program.ratio[blocks.member[source], blocks.member[target]], -1
                    constraints.append(row)
    answer = linprog(
        np.concatenate([program.cost, program.rest_cost]),
        A_ub=np.array(constraints),
        b_ub=np.zeros(len(constraints)),
        A_eq=np.hstack([program.equations.toarray(), np.eye(len(program.right))]),
        b_eq=program.right,
    )
    assert answer.fun is not None
    return float(answer.fun)


@pytest.mark.parametrize("seed", range(trials(4)))
def test_the_bounds_rise_to_the_optimum_by_highs(seed: int) -> None:
    program, seen = problem(seed), list[float]()
    # No pair is active at first but those of the references; the others join.
    with Threads(1) as team:
        method = method_of(program, False, team)
        method.run(1e-6, enough=np.inf, deadline=np.inf, progress=seen.append)
    optimum = by_highs(program)
    assert max(seen) <= optimum + 1e-9
    assert max(seen) == pytest.approx(optimum, rel=1e-5)
    assert program.cost @ method.v + program.rest_cost @ method.rest == pytest.approx(optimum, rel=1e-5)


@pytest.mark.parametrize("seed", range(trials(4)))
def test_another_program_continues_with_more_equations(seed: int) -> None:
    before, after, seen = problem(seed), problem(seed, extra=True), list[float]()
    with Threads(1) as team:
        method = method_of(before, True, team)
        method.run(1e-2, enough=-np.inf, deadline=np.inf, progress=lambda _: None)
        method.reopen(after)
        method.run(1e-6, enough=np.inf, deadline=np.inf, progress=seen.append)
    optimum = by_highs(after)
    assert max(seen) <= optimum + 1e-9
    assert max(seen) == pytest.approx(optimum, rel=1e-5)


@pytest.mark.parametrize("seed", range(trials(4)))
def test_prices_above_the_cost_of_the_rest_make_no_bound_above_the_optimum(seed: int) -> None:
    before, seen = replace(problem(seed), rest_cost=np.full(INPUTS, 10.0)), list[float]()
    entries = len(before.cost)
    after = replace(
        before,
        equations=csr_array(np.vstack([before.equations.toarray(), np.full(entries, -0.5)])),
        right=np.append(before.right, 0.1),
        rest_cost=np.append(before.rest_cost, 0.0),
        along=np.append(before.along, 0.0),
    )
    with Threads(1) as team:
        method = method_of(before, True, team)
        method.run(1e-6, enough=np.inf, deadline=np.inf, progress=lambda _: None)
        method.early = None
        method.reopen(after)
        # The last equation always holds. Its price must be 0, or all inputs could have higher ones.
        method.price = np.append(method.price[:INPUTS] + 0.1, 1.0)
        method.run(1e-6, enough=np.inf, deadline=-np.inf, progress=seen.append)
    assert len(seen) == 1
    assert seen[0] <= by_highs(before) + 1e-9


def test_the_search_ends_at_a_bound_that_is_enough() -> None:
    program, seen = problem(0), list[float]()
    enough = 0.7 * by_highs(program)
    with Threads(1) as team:
        method = method_of(program, True, team)
        method.run(1e-9, enough=enough, deadline=np.inf, progress=seen.append)
    assert seen[-2] < enough <= seen[-1]


@pytest.mark.parametrize("seed", range(trials(4)))
def test_the_last_steps_fill_the_rows_and_keep_all_pairs(seed: int) -> None:
    program, weights = replace(problem(seed), rest_cost=np.full(INPUTS, 10.0)), list[FloatArray]()
    blocks = program.blocks

    def settle(v: FloatArray) -> BlockProgram:
        """Return the program in which other inputs follow the entry that asks most of them, with less weight.

        What the program lacks of the extended columns is for the last steps to find.
        """
        weights.append(v)
        equations = np.zeros((INPUTS, len(v)))
        equations[blocks.member, np.arange(len(v))] = 1.0
        for j in range(len(blocks)):
            here = blocks.entries(j)
            asked = program.ratio[blocks.member[here]] * v[here, None]
            for other in np.setdiff1d(np.arange(INPUTS), blocks.member[here]):
                first = int(asked[:, other].argmax())
                equations[other, here.start + first] = 0.9 * program.ratio[blocks.member[here][first], other]
        return replace(program, equations=csr_array(equations))

    with Threads(1) as team:
        method = method_of(settle(np.ones(len(program.cost))), True, team)
        method.run(0.2, enough=-np.inf, deadline=np.inf, progress=lambda _: None)
        # Rows that are not filled, as shorter steps of some outputs leave them.
        method.v = method.v * 0.97
        found = method.columns(settle)
        rows = row_sums(blocks, found, program.ratio, team)
    assert np.abs(rows - 1).max() < 1e-2
    assert weights[1] is method.v
    assert len(weights) > 2
    # The columns cost about as much as before, for full rows.
    assert program.cost @ found < 1.05 * (program.cost @ method.v) / 0.97
    for j in range(len(blocks)):
        column, kept = found[blocks.entries(j)], blocks.member[blocks.entries(j)]
        assert (program.ratio[kept[:, None], kept] * column[:, None] <= column * (1 + 1e-12)).all()


@pytest.mark.parametrize("seed", range(trials(4)))
def test_last_steps_that_fail_change_nothing(seed: int) -> None:
    # Most inputs follow at an output and the program does not know it, so its steps do not fill the rows.
    program = replace(problem(seed), rest_cost=np.full(INPUTS, 10.0))
    with Threads(1) as team:
        method = method_of(program, True, team)
        method.run(0.2, enough=-np.inf, deadline=np.inf, progress=lambda _: None)
        before, after = (
            np.abs(row_sums(program.blocks, v, program.ratio, team) - 1).max()
            for v in (method.v, method.columns(lambda _: program))
        )
    assert after <= before
