"""The Newton system is solved, with and without symmetry."""

import numpy as np
import pytest

from geoind.arrays import FloatArray
from geoind.optimal.cones import ActivePairs, Program
from geoind.optimal.lapack import threads_for_blocks
from geoind.optimal.newton import NewtonSystem


def problem(seed: int, orbit: list[int] | None) -> tuple[Program, ActivePairs, FloatArray, FloatArray]:
    """A random iterate strictly inside its cones."""
    rng = np.random.default_rng(seed)
    outputs, n = 4, 6
    place = rng.uniform(0, 1, (n, 2))
    apart = np.hypot(*(place[:, None] - place).transpose(2, 0, 1))
    ratio = np.exp(-2 * apart) * (apart > 0)
    numbers = np.array(orbit) if orbit else np.arange(n)
    weight = np.ones(outputs) if orbit is None else rng.integers(1, 4, outputs).astype(float)
    program = Program(rng.random((outputs, n)), weight, numbers, rng.integers(0, n, outputs))
    columns = np.exp(-apart[rng.integers(0, n, outputs)]) * rng.uniform(0.1, 1, (outputs, 1))
    pairs = ActivePairs(ratio, np.broadcast_to(ratio > 0, (outputs, n, n)).copy())
    return program, pairs, columns, rng.uniform(0.1, 2, len(pairs))


@pytest.mark.parametrize("orbit", [None, [0, 0, 1, 1, 2, 2], [0, 1, 2, 3, 4, 0]])
@pytest.mark.parametrize("seed", range(6))
def test_both_equations_hold(seed: int, orbit: list[int] | None) -> None:
    program, pairs, columns, multipliers = problem(seed, orbit)
    rng = np.random.default_rng(100 + seed)
    right, residual = rng.normal(size=columns.shape), rng.normal(size=len(program.orbit_size))
    slack = pairs.slack(columns)
    assert slack.min() > 0
    with threads_for_blocks(len(columns.T)) as team:
        system = NewtonSystem(program, team)
        system.factor(pairs, columns, slack, multipliers)
        step, prices = system.solve(right, residual)
    pressed = pairs.adjoint(multipliers / slack * pairs.slack(step))
    np.testing.assert_allclose(pressed - program.spread(prices), right, atol=1e-7 * np.abs(pressed).max())
    np.testing.assert_allclose(program.row_sums(step), residual, atol=1e-9)


def test_the_system_can_be_factored_again_at_another_iterate() -> None:
    program, pairs, columns, multipliers = problem(1, None)
    right, residual = np.ones(columns.shape), np.zeros(6)
    with threads_for_blocks(6) as team:
        used, fresh = NewtonSystem(program, team), NewtonSystem(program, team)
        used.factor(pairs, columns * 0.5, pairs.slack(columns * 0.5), multipliers * 3)
        used.factor(pairs, columns, pairs.slack(columns), multipliers)
        fresh.factor(pairs, columns, pairs.slack(columns), multipliers)
        np.testing.assert_array_equal(used.solve(right, residual)[0], fresh.solve(right, residual)[0])
