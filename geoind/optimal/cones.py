"""The linear program of least loss as arrays, and the pairs of inputs that need a constraint.

For output z let v_z(x) = K(z|x). The privacy constraints are v_z(k) >= a(i, k) v_z(i) with a = exp(-epsilon d),
for all pairs of inputs: a separate cone for each output. Outputs are coupled only by the equations sum_z v_z(x)
= 1.

Under a symmetry of the problem one output represents its orbit: it counts `weight` times, and the equations are
needed on average over each orbit of inputs only.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components

from geoind.arrays import FloatArray, IntArray

__all__ = [
    "ActivePairs",
    "Program",
    "classes_of",
    "merge_classes",
    "nearest_pairs",
    "spanner",
    "unchained_pairs",
]


@dataclass(frozen=True)
class Program:
    """Minimise sum_z weight_z cost_z . v_z with unit row sums, and each column v_z in the same cone.

    Parameters
    ----------
    cost : (outputs, n) array
        Prior mass times loss, not negative.
    weight : (outputs,) array
        Number of outputs that each one represents.
    orbit : (n,) array of int
        The orbit of each input, numbered from 0.
    reference : (outputs,) array of int
        The input of least loss for each output, whatever its mass: there the column is large.
    start : (outputs, n) array, optional
        Columns whose rows sum to 1, at which a search begins.
    """

    cost: FloatArray
    weight: FloatArray
    orbit: IntArray
    reference: IntArray
    start: FloatArray | None = None
    orbit_size: FloatArray = field(init=False)
    average: FloatArray | None = field(init=False)

    def __post_init__(self) -> None:
        size = np.bincount(self.orbit).astype(np.float64)
        object.__setattr__(self, "orbit_size", size)
        average = None
        if len(size) < len(self.orbit):
            average = np.zeros((len(size), len(self.orbit)))
            average[self.orbit, np.arange(len(self.orbit))] = 1 / size[self.orbit]
        object.__setattr__(self, "average", average)

    def row_sums(self, columns: FloatArray) -> FloatArray:
        """Return the row sums, averaged over each orbit."""
        total: FloatArray = self.weight @ columns
        return total if self.average is None else self.average @ total

    def spread(self, prices: FloatArray) -> FloatArray:
        """Return the adjoint of `row_sums`: the contribution of the equations' prices to every entry."""
        return np.outer(self.weight, (prices / self.orbit_size)[self.orbit])


class ActivePairs:
    """The constraints of the Newton system, sorted by output.

    `slack` maps entries to v(k) - a v(i); `adjoint` is its transpose.

    Parameters
    ----------
    ratio : (n, n) array
        `ratio[i, k] = a(i, k)`, strictly between 0 and 1; 0 where a pair needs no constraint.
    chosen : (outputs, n, n) array of bool
    """

    def __init__(self, ratio: FloatArray, chosen: npt.NDArray[np.bool_]) -> None:
        self.shape = chosen.shape[:2]
        self.ratio = ratio
        self.chosen = chosen
        self._locate(*np.nonzero(chosen))

    def _locate(self, owner: IntArray, giver: IntArray, taker: IntArray) -> None:
        outputs, n = self.shape
        self.owner, self.giver, self.taker = owner, giver, taker
        self.a = self.ratio[giver, taker]
        self.from_entry = owner * n + giver
        self.to_entry = owner * n + taker
        # Lower triangle in C order; for LAPACK, which is column-major, the upper one.
        self.cell = (owner * n + np.maximum(giver, taker)) * n + np.minimum(giver, taker)
        self.start = np.searchsorted(owner, np.arange(outputs + 1))

    def __len__(self) -> int:
        return len(self.owner)

    def slack(self, columns: FloatArray) -> FloatArray:
        """Return v(k) - a v(i) for each active pair."""
        flat: FloatArray = columns.ravel()
        return np.asarray(flat[self.to_entry] - self.a * flat[self.from_entry])

    def adjoint(self, multipliers: FloatArray) -> FloatArray:
        """Return the sum of the active pairs' multipliers on each entry."""
        size = self.shape[0] * self.shape[1]
        gained = np.bincount(self.to_entry, multipliers, size)
        lost = np.bincount(self.from_entry, self.a * multipliers, size)
        return np.subtract(gained, lost, dtype=np.float64).reshape(self.shape)

    def extend(self, pairs: IntArray, multipliers: FloatArray, new: FloatArray) -> FloatArray:
        """Add pairs (rows of output, i, k) and return the multipliers of all pairs, in the new order."""
        owner, giver, taker = (
            np.concatenate([old, added])
            for old, added in zip((self.owner, self.giver, self.taker), pairs.T, strict=True)
        )
        order = np.argsort(owner, kind="stable")
        self.chosen[tuple(pairs.T)] = True
        self._locate(owner[order], giver[order], taker[order])
        return np.concatenate([multipliers, new])[order]


CHAIN_TOLERANCE = 1e-12
"""Relative; a sum of two distances in doubles may differ from the whole by a few units in the last place."""


def classes_of(apart: FloatArray, closest: float) -> IntArray:
    """Return a class number for each input; inputs closer than `closest` are connected."""
    return np.asarray(connected_components(apart <= closest, directed=False)[1], dtype=np.int64)


def merge_classes(apart: FloatArray, weighted: FloatArray, merged: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the smallest distances between classes of inputs, and the sums of their costs."""
    count = int(merged.max()) + 1
    total = np.zeros((count, weighted.shape[1]))
    np.add.at(total, merged, weighted)
    shortest = np.full((count, count), np.inf)
    np.minimum.at(shortest, (merged[:, None], merged[None, :]), apart)
    np.fill_diagonal(shortest, 0.0)
    return shortest, total


def unchained_pairs(apart: FloatArray) -> npt.NDArray[np.bool_]:
    """Return the pairs whose constraint does not follow from those of two shorter pairs.

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


def nearest_pairs(apart: FloatArray, factor: float = 1.05) -> npt.NDArray[np.bool_]:
    """Return for each input the ones within `factor` times the smallest distance, as symmetric pairs."""
    legs = apart.copy()
    np.fill_diagonal(legs, np.inf)
    near = legs <= factor * legs.min(axis=1, keepdims=True)
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
