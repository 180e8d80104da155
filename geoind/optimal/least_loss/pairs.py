"""Which pairs of inputs need a constraint of their own."""

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components

from geoind.arrays import FloatArray, IntArray

__all__ = ["classes_of", "nearest_pairs", "spanner", "unchained_pairs"]

CHAIN_TOLERANCE = 1e-12
"""Relative; a sum of two legs computed in doubles may miss the whole by a few units in the last place."""


def classes_of(apart: FloatArray, closest: float) -> IntArray:
    """Return a class number for each input; inputs closer than `closest` share one, directly or through others."""
    return np.asarray(connected_components(apart <= closest, directed=False)[1], dtype=np.int64)


def unchained_pairs(apart: FloatArray) -> npt.NDArray[np.bool_]:
    """Return the pairs that do not follow from two shorter ones by chaining.

    On a grid these are the steps with gcd(dx, dy) = 1, about 6/pi^2 of all; in a graph its edges.

    >>> unchained_pairs(np.abs(np.subtract.outer([0.0, 1.0, 2.0], [0.0, 1.0, 2.0]))).astype(int)
    array([[0, 1, 0],
           [1, 0, 1],
           [0, 1, 0]])
    """
    n = len(apart)
    legs = apart.copy()
    np.fill_diagonal(legs, np.inf)
    needed = np.empty((n, n), dtype=bool)
    for i in range(n):
        detour = (legs[i][:, None] + legs).min(axis=0)
        needed[i] = detour > apart[i] * (1 + CHAIN_TOLERANCE)
    np.fill_diagonal(needed, False)
    return needed & needed.T


def nearest_pairs(apart: FloatArray) -> npt.NDArray[np.bool_]:
    """Return for each input its closest ones, as symmetric pairs."""
    legs = apart.copy()
    np.fill_diagonal(legs, np.inf)
    near = legs <= 1.05 * legs.min(axis=1, keepdims=True)
    return np.asarray(near | near.T)


def spanner(apart: FloatArray, dilation: float) -> tuple[npt.NDArray[np.bool_], float]:
    """Return the pairs of a greedy spanner, and the dilation that it really has.

    Paths over the pairs are at most `dilation` times as long as the distance. The greedy graph is often better
    than asked for, and a promise divided by the asked-for dilation would waste the difference.

    >>> corners = np.array([[0.0, 1, 1.2], [1, 0, 1], [1.2, 1, 0]])
    >>> pairs, actual = spanner(corners, 1.9)
    >>> int(pairs.sum()) // 2, round(actual, 4)
    (2, 1.6667)
    """
    n = len(apart)
    along = np.where(np.eye(n, dtype=bool), 0.0, np.inf)
    chosen = np.zeros((n, n), dtype=bool)
    first, second = np.triu_indices(n, 1)
    for pair in np.argsort(apart[first, second], kind="stable"):
        i, k = first[pair], second[pair]
        length = apart[i, k]
        if along[i, k] > dilation * length * (1 + CHAIN_TOLERANCE):
            chosen[i, k] = chosen[k, i] = True
            via = along[:, i][:, None] + length + along[k]
            np.minimum(along, np.minimum(via, via.T), out=along)
    with np.errstate(divide="ignore", invalid="ignore"):
        stretch = np.where(apart > 0, along / apart, 1.0)
    return chosen, max(1.0, float(stretch.max(initial=1.0)))
