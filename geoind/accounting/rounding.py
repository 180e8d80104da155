"""A privacy loss on a grid, rounded once so that it tells more than the truth and once so that it tells less."""

import math
from typing import NamedTuple

import numpy as np

from geoind.accounting.losses import Atoms
from geoind.arrays import FloatArray, IntArray

__all__ = ["OnGrid", "rounded_down", "rounded_up"]


class OnGrid(NamedTuple):
    """Masses at the losses `(first + i) * step`, and the mass that lies above all losses."""

    step: float
    first: int
    masses: FloatArray
    beyond: float


def rounded_up(atoms: Atoms, step: float) -> OnGrid:
    """Return a distribution on the grid that tells at least as much.

    Each atom is split between its two neighbours so that its probability at *both* places is kept: then the atom
    is the pair of neighbours with their difference forgotten, so that the grid's distribution dominates (the
    "connect the dots" of Doroshenko et al., PoPETs 2022). Its error falls with the square of the step, that of
    rounding up with the step.
    """
    index = np.floor(atoms.losses / step).astype(np.int64)
    above = np.clip(atoms.losses - index * step, 0, step)
    whole = -math.expm1(-step)
    higher = -np.expm1(-above) / whole
    lower = -np.exp(-above) * np.expm1(above - step) / whole
    first, masses = _gathered(
        np.concatenate([index, index + 1]), np.concatenate([lower * atoms.masses, higher * atoms.masses])
    )
    return OnGrid(step, first, masses, atoms.beyond)


def rounded_down(atoms: Atoms, step: float) -> OnGrid:
    """Return a distribution on the grid that tells at most as much.

    All atoms closest to one point of the grid are taken together: what forgets their difference tells less. The
    loss of such a group is not yet its point's, but nearly: a small share of a neighbour's mass, taken in as well,
    makes it so. Where there is no such neighbour the group is rounded down.
    """
    index = np.rint(atoms.losses / step).astype(np.int64)
    first, gathered = _gathered(index, atoms.masses)
    _, drops = _gathered(index, atoms.masses * np.expm1(index * step - atoms.losses))
    groups = _Groups(gathered, drops, step)
    if groups.slants[1] < 0:
        groups.move(1, 1)
    for k in range(1, len(groups.masses) - 1):
        if groups.slants[k] > 0:
            groups.take_in(k, 1)
    for k in range(len(groups.masses) - 1, 0, -1):
        if groups.slants[k] > 0:
            groups.move(k, -1)
        elif groups.slants[k] < 0:
            groups.take_in(k, -1)
    return OnGrid(step, first - 1, np.array(groups.masses), atoms.beyond)


class _Groups:
    """Masses of the points of a grid, with an empty one at either end, and their slants.

    A group's slant says how much more likely it is at the other place than its point says, relatively: above 0 its
    loss is lower than its point's.
    """

    def __init__(self, masses: FloatArray, drops: FloatArray, step: float) -> None:
        self.masses = [0.0, *masses.tolist(), 0.0]
        slants = np.divide(drops, masses, out=np.zeros_like(drops), where=masses > 0)
        # What is left of a group that lies on its point, but for rounding.
        slants[np.abs(slants) < 1e-14] = 0.0
        self.slants = [0.0, *slants.tolist(), 0.0]
        self.step = step

    def take_in(self, k: int, side: int) -> None:
        """Move so much of the neighbours' masses into a group that the group's loss is its point's."""
        for other in (k + side, k + 2 * side, k + 3 * side):
            if not (self.slants[k] and 0 <= other < len(self.masses) and self.masses[other]):
                return
            pull = math.exp((k - other) * self.step) * (1 + self.slants[other]) - 1
            if pull * self.slants[k] >= 0:
                return
            here, taken = self.masses[k], min(self.masses[other], -self.masses[k] * self.slants[k] / pull)
            left = here * self.slants[k] + taken * pull
            self.slants[k] = left / (here + taken) if taken == self.masses[other] else 0.0
            self.masses[k], self.masses[other] = here + taken, self.masses[other] - taken
            if not self.masses[other]:
                self.slants[other] = 0.0

    def move(self, k: int, side: int) -> None:
        """Move a group to the next point, as it is."""
        here, there = self.masses[k], self.masses[k + side]
        # Seen from the next point.
        slant = math.expm1(side * self.step) + math.exp(side * self.step) * self.slants[k]
        self.slants[k + side] = (here * slant + there * self.slants[k + side]) / (here + there)
        self.masses[k + side], self.masses[k], self.slants[k] = here + there, 0.0, 0.0


def _gathered(index: IntArray, masses: FloatArray) -> tuple[int, FloatArray]:
    first = int(index.min()) if len(index) else 0
    return first, np.bincount(index - first, weights=masses).astype(np.float64)
