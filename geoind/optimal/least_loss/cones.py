"""The linear program of least loss, as arrays: one cone per output, joined by the row sums.

For output z let v_z(x) = K(z|x). Privacy says v_z(k) >= a(i, k) v_z(i) with a = exp(-epsilon d), for all pairs
of inputs: a cone for each output on its own. Outputs meet only in the equations sum_z v_z(x) = 1.

Under a symmetry of the problem one output stands for its orbit: it counts `weight` times, and the equations are
needed on average over each orbit of inputs only.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from geoind.arrays import FloatArray, IntArray

__all__ = ["ActivePairs", "Program"]


@dataclass(frozen=True)
class Program:
    """Minimise sum_z weight_z cost_z . v_z over the cones, with unit row sums.

    Parameters
    ----------
    cost : (outputs, n) array
        Prior mass times loss, not negative.
    ratio : (n, n) array
        `ratio[i, k] = a(i, k)`, strictly between 0 and 1; 0 where a pair needs no constraint.
    weight : (outputs,) array
        How many outputs each one stands for.
    orbit : (n,) array of int
        The orbit of each input, numbered from 0.
    reference : (outputs,) array of int
        The input that loses least by each output, whatever its mass: where the column is large.
    """

    cost: FloatArray
    ratio: FloatArray
    weight: FloatArray
    orbit: IntArray
    reference: IntArray
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
        """Return what the rows sum to, averaged over each orbit."""
        total: FloatArray = self.weight @ columns
        return total if self.average is None else self.average @ total

    def spread(self, prices: FloatArray) -> FloatArray:
        """Return the adjoint of `row_sums`: what prices of the equations mean for every entry."""
        return np.outer(self.weight, (prices / self.orbit_size)[self.orbit])


class ActivePairs:
    """The constraints that the Newton system carries, sorted by output.

    `slack` maps entries to v(k) - a v(i); `adjoint` is its transpose.
    """

    def __init__(self, program: Program, chosen: npt.NDArray[np.bool_]) -> None:
        self.shape = program.cost.shape
        self.ratio = program.ratio
        self.chosen = chosen
        self._locate(*np.nonzero(chosen))

    def _locate(self, owner: IntArray, giver: IntArray, taker: IntArray) -> None:
        outputs, n = self.shape
        self.owner, self.giver, self.taker = owner, giver, taker
        self.a = self.ratio[giver, taker]
        self.from_entry = owner * n + giver
        self.to_entry = owner * n + taker
        # Lower triangle in C order: what LAPACK, which reads columns first, calls the upper one.
        self.cell = (owner * n + np.maximum(giver, taker)) * n + np.minimum(giver, taker)
        self.start = np.searchsorted(owner, np.arange(outputs + 1))

    def __len__(self) -> int:
        return len(self.owner)

    def slack(self, columns: FloatArray) -> FloatArray:
        """Return v(k) - a v(i) for each active pair."""
        flat: FloatArray = columns.ravel()
        return np.asarray(flat[self.to_entry] - self.a * flat[self.from_entry])

    def adjoint(self, multipliers: FloatArray) -> FloatArray:
        """Return what multipliers of the active pairs weigh on each entry."""
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
