"""The program as arrays: maps and their adjoints."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import shortest_path

from geoind import Grid
from geoind.arrays import FloatArray
from geoind.distances import euclidean, manhattan
from geoind.optimal.cones import ActivePairs, Program, classes_of, nearest_pairs, spanner, unchained_pairs

seeds = st.integers(0, 2**32)


def program(rng: np.random.Generator, orbit: list[int] | None = None) -> Program:
    """Three outputs and five inputs."""
    numbers = np.array(orbit) if orbit else np.arange(5)
    return Program(rng.random((3, 5)), rng.integers(1, 5, 3).astype(float), numbers, rng.integers(0, 5, 3))


def active(rng: np.random.Generator) -> ActivePairs:
    """Some pairs of three outputs and five inputs; others need no constraint."""
    ratio = rng.uniform(0.1, 0.9, (5, 5)) * (rng.random((5, 5)) < 0.7)
    np.fill_diagonal(ratio, 0)
    return ActivePairs(ratio, (rng.random((3, 5, 5)) < 0.5) & (ratio > 0))


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
    pairs = active(rng)
    columns, multipliers = rng.normal(size=(3, 5)), rng.normal(size=len(pairs))
    assert len(pairs) == pairs.chosen.sum()
    expected = [columns[z, k] - pairs.ratio[i, k] * columns[z, i] for z, i, k in np.argwhere(pairs.chosen)]
    np.testing.assert_allclose(pairs.slack(columns), expected)
    left = float(pairs.slack(columns) @ multipliers)
    assert left == pytest.approx(float((columns * pairs.adjoint(multipliers)).sum()), abs=1e-12)


@given(seeds)
def test_every_pair_has_its_place_in_the_lower_triangle_of_its_block(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = active(rng)
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
    pairs = active(rng)
    outside = np.argwhere(~pairs.chosen & (pairs.ratio > 0))
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
        assert slack == pytest.approx(columns[z, k] - pairs.ratio[i, k] * columns[z, i])


GRID = Grid(0, 0, cell=100, columns=5, rows=4)


def scattered(seed: int, count: int = 12) -> FloatArray:
    points = np.random.default_rng(seed).uniform(0, 1000, (count, 2))
    return euclidean(points, points)


def along(pairs: np.ndarray, apart: FloatArray) -> FloatArray:
    """Shortest ways over the pairs."""
    return np.asarray(shortest_path(np.where(pairs, apart, 0.0)))


def test_on_a_grid_the_steps_without_a_common_divisor_are_needed() -> None:
    row, column = np.divmod(np.arange(20), 5)
    expected = [
        [math.gcd(abs(row[i] - row[k]), abs(column[i] - column[k])) == 1 for k in range(20)] for i in range(20)
    ]
    np.testing.assert_array_equal(unchained_pairs(euclidean(GRID.xy, GRID.xy)), expected)
    neighbours = manhattan(GRID.xy, GRID.xy) == 100
    np.testing.assert_array_equal(unchained_pairs(manhattan(GRID.xy, GRID.xy)), neighbours)


@pytest.mark.slow
@given(st.integers(0, 1000))
def test_pairs_left_out_are_no_shorter_than_a_way_over_the_others(seed: int) -> None:
    # Distances of a graph: most pairs are chains of its edges.
    rng = np.random.default_rng(seed)
    edges = np.where(rng.random((9, 9)) < 0.3, rng.integers(1, 9, (9, 9)), 0) + np.diag(np.ones(8), 1)
    apart = np.asarray(shortest_path(edges, directed=False))
    needed = unchained_pairs(apart)
    assert not needed.diagonal().any()
    np.testing.assert_array_equal(needed, needed.T)
    np.testing.assert_allclose(along(needed, apart), apart)
    for i, k in np.argwhere(needed):
        others = needed.copy()
        others[i, k] = others[k, i] = False
        assert along(others, apart)[i, k] > apart[i, k]


@pytest.mark.slow
@given(st.integers(0, 1000), st.floats(1, 3))
def test_a_spanner_is_as_good_as_it_says_and_as_was_asked(seed: int, dilation: float) -> None:
    apart = scattered(seed)
    pairs, actual = spanner(apart, dilation)
    np.testing.assert_array_equal(pairs, pairs.T)
    off = ~np.eye(len(apart), dtype=bool)
    stretch = (along(pairs, apart)[off] / apart[off]).max()
    assert actual == pytest.approx(stretch)
    assert 1 <= actual <= dilation * (1 + 1e-9)
    # Greedy: every pair was longer by the others than allowed when it was taken.
    for i, k in np.argwhere(pairs):
        shorter = pairs & (apart < apart[i, k])
        assert along(shorter, apart)[i, k] > dilation * apart[i, k] * (1 - 1e-9)


def test_a_spanner_without_dilation_has_the_pairs_that_are_needed() -> None:
    apart = euclidean(GRID.xy, GRID.xy)
    pairs, actual = spanner(apart, 1.0)
    np.testing.assert_array_equal(pairs, unchained_pairs(apart))
    assert actual == pytest.approx(1, abs=1e-12)
    alone, single = spanner(np.zeros((1, 1)), 1.5)
    assert (alone.tolist(), single) == ([[False]], 1.0)


@given(st.integers(0, 1000))
def test_the_closest_ones_of_an_input_are_its_nearest_pairs(seed: int) -> None:
    apart = scattered(seed)
    legs = apart + np.diag(np.full(len(apart), np.inf))
    near = nearest_pairs(apart)
    closest = legs.min(axis=1)
    np.testing.assert_array_equal(near, near.T)
    expected = (legs <= 1.05 * closest[:, None]) | (legs <= 1.05 * closest)
    np.testing.assert_array_equal(near, expected)


def test_a_chain_of_close_inputs_is_one_class() -> None:
    line = np.array([[0.0, 0], [1, 0], [2, 0], [5, 0], [6.5, 0]])
    apart = euclidean(line, line)
    assert classes_of(apart, 1.0).tolist() == [0, 0, 0, 1, 2]
    assert len(set(classes_of(apart, 1.5))) == 2
    assert classes_of(apart, 0.5).tolist() == [0, 1, 2, 3, 4]
