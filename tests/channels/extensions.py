"""Private matrices that are stored as extended columns, made without a solver."""

import numpy as np

from geoind.arrays import FloatArray, IntArray
from geoind.channels.extended import ExtendedMatrix
from geoind.distances import euclidean
from geoind.space.sites import Sites

Entries = tuple[IntArray, IntArray, FloatArray]


def expanded(sites: Sites, outputs: int, epsilon: float, kept: Entries) -> FloatArray:
    """The least epsilon-Lipschitz columns above the kept entries, 0 without any."""
    ratio = np.exp(-np.minimum(epsilon * euclidean(sites.xy, sites.xy), 200.0))
    matrix = np.zeros((len(sites), outputs))
    for row, column, value in zip(*kept, strict=True):
        np.maximum(matrix[:, column], ratio[row] * value, out=matrix[:, column])
    return matrix


def entries(sites: Sites, outputs: int, epsilon: float, report: int, *, seed: int, share: float = 0.2) -> Entries:
    """Random entries at a share of the inputs, of columns that fall from the closest of them."""
    rng = np.random.default_rng(seed)
    kept = rng.random((outputs, len(sites))) < share
    centre = rng.integers(0, len(sites), outputs)
    kept[np.arange(outputs), centre] = True
    kept[report] = False
    column, row = np.nonzero(kept)
    apart = euclidean(sites.xy, sites.xy)[row, centre[column]]
    value = np.exp(-0.6 * np.minimum(epsilon * apart, 200.0)) * rng.uniform(0.5, 1, len(row))
    most = expanded(sites, outputs, epsilon, (row, column, value)).sum(axis=1).max()
    return row, column, 0.6 / most * value


def rest_of(sites: Sites, matrix: FloatArray, epsilon: float) -> tuple[FloatArray, float]:
    """The least column, with a constant, that is private and takes the rest of rows; and the row sum with it."""
    rest = 1 - matrix.sum(axis=1)
    ratio = np.exp(-epsilon * euclidean(sites.xy, sites.xy))
    lacking = np.where(ratio < 1, (ratio * rest[:, None] - rest) / np.where(ratio < 1, 1 - ratio, 1), 0)
    constant = 2 * float(lacking.max(initial=0.0)) + 0.01
    return rest + constant, 1 + constant


def extended(
    sites: Sites, outputs: int, epsilon: float, *, seed: int = 0, report: int = 0, share: float = 0.2
) -> ExtendedMatrix:
    """A stochastic matrix whose epsilon is that of the rule."""
    row, column, value = entries(sites, outputs, epsilon, report, seed=seed, share=share)
    rest, total = rest_of(sites, expanded(sites, outputs, epsilon, (row, column, value)), epsilon)
    return ExtendedMatrix(sites, outputs, epsilon, (row, column, value / total), report, rest / total)
