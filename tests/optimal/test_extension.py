"""Any columns on any neighbourhoods become a private matrix."""

import numpy as np
import pytest

from geoind.arrays import FloatArray
from geoind.optimal.block_program import Blocks
from geoind.optimal.extension import private_matrix
from geoind.parallel import Threads


def problem(seed: int) -> tuple[Blocks, FloatArray, FloatArray, FloatArray]:
    """Random neighbourhoods of 12 inputs at 6 outputs."""
    rng = np.random.default_rng(seed)
    xy = rng.uniform(0, 3, (12, 2))
    ratio = np.exp(-np.hypot(*(xy[:, None] - xy).transpose(2, 0, 1)))
    kept = rng.random((6, 12)) < 0.5
    kept[:, 0] = True
    output, member = np.nonzero(kept)
    start = np.searchsorted(output, np.arange(7))
    return Blocks(member, start, start[:-1]), ratio, rng.random((12, 6)), rng.uniform(0.01, 0.4, len(member))


@pytest.mark.parametrize("seed", range(8))
def test_the_matrix_is_stochastic_and_every_pair_is_private(seed: int) -> None:
    blocks, ratio, cost, v = problem(seed)
    with Threads(1) as team:
        matrix, _ = private_matrix(blocks, v, ratio, cost, cost[blocks.member, blocks.owner], team)
    np.testing.assert_allclose(matrix.sum(axis=1), 1, atol=1e-14)
    assert (matrix[None] >= ratio[:, :, None] * matrix[:, None] * (1 - 1e-12)).all()


def test_a_private_matrix_stays_as_it_is() -> None:
    _, ratio, cost, _ = problem(1)
    whole = Blocks(np.tile(np.arange(12), 6), np.arange(7) * 12, np.arange(6) * 12)
    wanted = ratio[:, :6] ** 0.5
    wanted = 0.9 / 6 + 0.1 * wanted / wanted.sum(axis=1, keepdims=True)
    assert (wanted[None] >= ratio[:, :, None] * wanted[:, None]).all()
    with Threads(1) as team:
        matrix, _ = private_matrix(whole, wanted.T.ravel(), ratio, cost, cost.T.ravel(), team)
    np.testing.assert_allclose(matrix, wanted, rtol=1e-9)
