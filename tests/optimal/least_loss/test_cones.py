"""The program as arrays: maps and their adjoints."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoind.arrays import FloatArray
from geoind.optimal.least_loss.cones import ActivePairs, Program

seeds = st.integers(0, 2**32)


def program(rng: np.random.Generator, orbit: list[int] | None = None) -> Program:
    """Three outputs and five inputs; some pairs need no constraint."""
    ratio = rng.uniform(0.1, 0.9, (5, 5)) * (rng.random((5, 5)) < 0.7)
    np.fill_diagonal(ratio, 0)
    numbers = np.array(orbit) if orbit else np.arange(5)
    return Program(rng.random((3, 5)), ratio, rng.integers(1, 5, 3).astype(float), numbers, rng.integers(0, 5, 3))


def active(rng: np.random.Generator, of: Program) -> ActivePairs:
    return ActivePairs(of, (rng.random((3, 5, 5)) < 0.5) & (of.ratio > 0))


@given(seeds)
def test_row_sums_are_those_of_the_whole_matrix_averaged_over_orbits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = rng.random((3, 5))
    plain, folded = program(rng), program(rng, [0, 1, 0, 2, 1])
    np.testing.assert_allclose(plain.row_sums(columns), plain.weight @ columns)
    total = folded.weight @ columns
    expected = [(total[0] + total[2]) / 2, (total[1] + total[4]) / 2, total[3]]
    np.testing.assert_allclose(folded.row_sums(columns), expected)


@pytest.mark.parametrize("orbit", [None, [0, 1, 0, 2, 1], [0, 0, 0, 0, 0]])
@given(seed=seeds)
def test_spread_is_the_adjoint_of_the_row_sums(orbit: list[int] | None, seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = program(rng, orbit)
    columns, prices = rng.normal(size=(3, 5)), rng.normal(size=len(problem.orbit_size))
    left = float(problem.row_sums(columns) @ prices)
    assert left == pytest.approx(float((columns * problem.spread(prices)).sum()), abs=1e-12)


@given(seeds)
def test_a_slack_is_what_a_constraint_leaves_and_has_its_adjoint(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = program(rng)
    pairs = active(rng, problem)
    columns, multipliers = rng.normal(size=(3, 5)), rng.normal(size=len(pairs))
    assert len(pairs) == pairs.chosen.sum()
    expected = [columns[z, k] - problem.ratio[i, k] * columns[z, i] for z, i, k in np.argwhere(pairs.chosen)]
    np.testing.assert_allclose(pairs.slack(columns), expected)
    left = float(pairs.slack(columns) @ multipliers)
    assert left == pytest.approx(float((columns * pairs.adjoint(multipliers)).sum()), abs=1e-12)


@given(seeds)
def test_every_pair_has_its_place_in_the_lower_triangle_of_its_block(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = active(rng, program(rng))
    blocks = np.unravel_index(pairs.cell, (3, 5, 5))
    np.testing.assert_array_equal(blocks[0], pairs.owner)
    np.testing.assert_array_equal(blocks[1], np.maximum(pairs.giver, pairs.taker))
    np.testing.assert_array_equal(blocks[2], np.minimum(pairs.giver, pairs.taker))
    for output in range(3):
        assert (pairs.owner[pairs.start[output] : pairs.start[output + 1]] == output).all()
    assert pairs.start[0] == 0
    assert pairs.start[3] == len(pairs)


@given(seeds)
def test_pairs_that_join_keep_every_multiplier_with_its_pair(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = program(rng)
    pairs = active(rng, problem)
    outside = np.argwhere(~pairs.chosen & (problem.ratio > 0))
    joining = outside[rng.permutation(len(outside))[:4]]
    old = dict(zip(map(tuple, np.argwhere(pairs.chosen)), rng.random(len(pairs)), strict=True))
    new = dict(zip(map(tuple, joining), 10 + rng.random(len(joining)), strict=True))
    multipliers = pairs.extend(joining, np.array(list(old.values())), np.array(list(new.values())))
    now = zip(pairs.owner, pairs.giver, pairs.taker, strict=True)
    assert dict(zip(now, multipliers, strict=True)) == {**old, **new}
    assert pairs.chosen.sum() == len(pairs) == len(old) + len(new)
    assert (np.diff(pairs.owner) >= 0).all()
    columns: FloatArray = rng.random((3, 5))
    for slack, z, i, k in zip(pairs.slack(columns), pairs.owner, pairs.giver, pairs.taker, strict=True):
        assert slack == pytest.approx(columns[z, k] - problem.ratio[i, k] * columns[z, i])
