"""The distribution of the sum of privacy losses: each loss on a grid, composed by FFT, with every error bounded.

A loss is rounded to the grid twice: once to a distribution that dominates it (an upper bound of every delta), once
to one that it dominates (a lower bound). Before the composition the masses are tilted (multiplied by exp(tilt *
loss) and normalised): the sum's tilted distribution lies around the requested level, so that a short window holds
it and the FFT's error is small compared with the delta there, however small that is.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import fft

from geoind.accounting.losses import Atoms
from geoind.arrays import FloatArray, IntArray

__all__ = [
    "LossPmf",
    "composed",
    "infinite_mass",
    "rounded_down",
    "rounded_up",
    "tilt_for_delta",
    "tilt_for_level",
]

ROUNDOFF = 2.0**-53

LOST = 1e-16
"""Tilted probability outside of a window, on either side."""

STRENGTHS = (1.0, 2.0, 4.0, 6.0, 7.0, 8.0, 8.6, 9.5, 11.0, 14.0, 20.0, 40.0)
"""Additional tilts tried in the Chernoff bounds of a window, in units of one over the standard deviation."""

MASS_ERROR = 1e-12
"""Relative error of a mass: quadrature (below 1e-15), Bessel functions, exponentials, normalisation."""

UNDERFLOW = 1e-300
"""Covers masses below the smallest double."""


@dataclass(frozen=True)
class LossPmf:
    """A privacy loss distribution on a grid.

    Attributes
    ----------
    step : float
        The grid's step.
    first : int
        `masses[i]` is the probability of the loss `(first + i) * step`.
    masses : array
    infinite : float
        Probability of an infinite loss.
    reports : int
        How many independent losses of this distribution are added up.
    doubt : float
        Every probability is right within a factor exp(doubt).
    """

    step: float
    first: int
    masses: FloatArray
    infinite: float
    reports: int = 1
    doubt: float = 0.0

    def logs(self) -> tuple[FloatArray, FloatArray]:
        """Return the losses of positive mass and the logarithms of their masses."""
        held = self.masses > 0
        losses = (self.first + np.flatnonzero(held)) * self.step
        return np.asarray(losses), np.log(self.masses[held])


def rounded_up(atoms: Atoms, step: float) -> LossPmf:
    """Return a distribution on the grid that dominates the atoms: every delta is at least theirs.

    Each atom is split between its two neighbours so that its probability at *both* places is kept. Merging the two
    neighbours gives the atom back, so the grid's distribution dominates ("connect the dots", Doroshenko et al.,
    PoPETs 2022). The error falls with the square of the step; that of rounding up falls with the step.
    """
    losses, mass, infinite = atoms
    index = np.floor(losses / step).astype(np.int64)
    above = np.clip(losses - index * step, 0, step)
    whole = -math.expm1(-step)
    higher = -np.expm1(-above) / whole
    lower = -np.exp(-above) * np.expm1(above - step) / whole
    first, masses = _gathered(np.concatenate([index, index + 1]), np.concatenate([lower * mass, higher * mass]))
    return LossPmf(step, first, masses, infinite)


def rounded_down(atoms: Atoms, step: float) -> LossPmf:
    """Return a distribution on the grid that the atoms dominate: every delta is at most theirs.

    All atoms closest to one point of the grid are merged, which only lowers deltas. The loss of such a group is
    close to its point, and a small share of a neighbour's mass, merged too, moves it onto the point. Where there
    is no such neighbour the group is rounded down.
    """
    losses, mass, infinite = atoms
    index = np.rint(losses / step).astype(np.int64)
    first, gathered = _gathered(index, mass)
    _, drops = _gathered(index, mass * np.expm1(index * step - losses))
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
    return LossPmf(step, first - 1, np.array(groups.masses), infinite)


class _Groups:
    """Masses of the points of a grid, with an empty one at either end, and their slants.

    The slant of a group is the relative excess of its probability at the other place over the one that its point
    implies. Above 0 the group's loss is lower than its point.
    """

    def __init__(self, masses: FloatArray, drops: FloatArray, step: float) -> None:
        self.masses = [0.0, *masses.tolist(), 0.0]
        slants = np.divide(drops, masses, out=np.zeros_like(drops), where=masses > 0)
        # Rounding errors of groups that lie on their points.
        slants[np.abs(slants) < 1e-14] = 0.0
        self.slants = [0.0, *slants.tolist(), 0.0]
        self.step = step

    def take_in(self, k: int, side: int) -> None:
        """Move enough of the neighbours' masses into a group to put the group's loss on its point."""
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
        """Move a whole group to the next point."""
        here, there = self.masses[k], self.masses[k + side]
        # The slant relative to the next point.
        slant = math.expm1(side * self.step) + math.exp(side * self.step) * self.slants[k]
        self.slants[k + side] = (here * slant + there * self.slants[k + side]) / (here + there)
        self.masses[k + side], self.masses[k], self.slants[k] = here + there, 0.0, 0.0


def _gathered(index: IntArray, masses: FloatArray) -> tuple[int, FloatArray]:
    first = int(index.min()) if len(index) else 0
    return first, np.bincount(index - first, weights=masses).astype(np.float64)


class _Cumulants:
    """The logarithm of E exp(tilt * sum of losses) and its first two derivatives."""

    def __init__(self, parts: Sequence[LossPmf]) -> None:
        self.parts = [(part.reports, *part.logs()) for part in parts]

    def __call__(self, tilt: float) -> tuple[float, float, float]:
        """Return value, mean and variance at a tilt."""
        value = mean = variance = 0.0
        for reports, losses, logs in self.parts:
            tilted = tilt * losses + logs
            top = float(tilted.max())
            masses = np.exp(tilted - top)
            total = float(masses.sum())
            middle = float(masses @ losses) / total
            value += reports * (top + math.log(total))
            mean += reports * middle
            variance += reports * float(masses @ (losses - middle) ** 2) / total
        return value, mean, variance


def tilt_for_level(parts: Sequence[LossPmf], level: float) -> float:
    """Return the tilt, not negative, that moves the mean of the sum to about a level."""
    cumulants, finest = _Cumulants(parts), parts[0].step ** 2

    def reached(tilt: float) -> bool:
        _, mean, variance = cumulants(tilt)
        return mean >= level or variance <= finest

    return _rising(reached)


def tilt_for_delta(parts: Sequence[LossPmf], delta: float) -> float:
    """Return the tilt that moves the mean of the sum to about the level of a delta."""
    cumulants, finest = _Cumulants(parts), parts[0].step ** 2

    def reached(tilt: float) -> bool:
        value, mean, variance = cumulants(tilt)
        if variance <= finest:  # below the grid's resolution
            return True
        # The saddle point's estimate of delta at the level `mean`.
        width = max(1.0, tilt * (1 + tilt) * math.sqrt(2 * math.pi * variance))
        return value - tilt * mean - math.log(width) <= math.log(delta)

    return _rising(reached)


def _rising(reached: Callable[[float], bool]) -> float:
    """Return about the least number from which on a condition holds, up to a million."""
    if reached(0.0):
        return 0.0
    low, high = math.log(1e-9), math.log(1e6)
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if reached(math.exp(middle)) else (middle, high)
    return math.exp(high)


@dataclass(frozen=True)
class _ComposedLoss:
    """The tilted distribution of a sum of losses on a grid, with bounds of its numerical errors.

    Attributes
    ----------
    losses, masses : arrays
        The window and its tilted masses.
    mean, deviation : float
        Of the tilted sum; the bounds are sharp near the mean.
    tilt, scale : float
        The probability of a loss is `mass * exp(scale - tilt * loss)`.
    noise : float
        Euclidean norm of the error of the masses, at most.
    lost : float
        Tilted mass outside of the window, which the FFT folds into it.
    infinite : float
        Probability of an infinite loss.
    growth : float
        Every probability is right within a factor exp(growth).
    """

    losses: FloatArray
    masses: FloatArray
    mean: float
    deviation: float
    tilt: float
    scale: float
    noise: float
    lost: float
    infinite: float
    growth: float

    def delta_above(self, level: float) -> float:
        """Return an upper bound of delta at a level."""
        value, error, factor = self._excess(level)
        return min(1.0, (value + error) * math.exp(min(700.0, factor + self.growth)) + self.infinite + UNDERFLOW)

    def delta_below(self, level: float) -> float:
        """Return a lower bound of delta at a level."""
        value, error, factor = self._excess(level)
        return max(0.0, (value - error) * math.exp(min(700.0, factor - self.growth)) + self.infinite)

    def _excess(self, level: float) -> tuple[float, float, float]:
        """Return the tilted E [1 - exp(level - L)]+, its error, and the log of the factor that undoes the tilt."""
        start = int(np.searchsorted(self.losses, level))
        above = self.losses[start:] - level
        weights = -np.expm1(-above) * np.exp(-self.tilt * above)
        # The largest weight that a lost mass can have: (1 - e^-x) e^(-tilt x) at its top.
        largest = (self.tilt / (1 + self.tilt)) ** self.tilt / (1 + self.tilt)
        error = _length(weights) * self.noise + largest * self.lost
        return float((weights * self.masses[start:]).sum()), error, self.scale - self.tilt * level


def infinite_mass(parts: Sequence[LossPmf]) -> float:
    """Return the probability that at least one loss is infinite."""
    stays = math.prod((1 - part.infinite) ** part.reports for part in parts if part.infinite > 1e-9)
    small = sum(part.reports * part.infinite for part in parts if part.infinite <= 1e-9)
    return min(1.0, 1 - stays + small)


def composed(parts: Sequence[LossPmf], tilt: float) -> _ComposedLoss:
    """Return the tilted distribution of the sum of all parts' losses."""
    step = parts[0].step
    cumulants = _Cumulants(parts)
    low, high = _window(parts, cumulants, tilt)
    size = fft.next_fast_len(max(16, high - low + 1), real=True)
    spectrum = np.ones(size // 2 + 1, dtype=np.complex128)
    logs = np.zeros(size // 2 + 1)
    errors = np.zeros(size // 2 + 1)
    for part in parts:
        losses, log_masses = part.logs()
        tilted = np.exp(tilt * losses + log_masses - _Cumulants([replace(part, reports=1)])(tilt)[0])
        index = part.first + np.flatnonzero(part.masses > 0)
        row = np.bincount(index % size, weights=tilted, minlength=size).astype(np.float64)
        transformed = fft.rfft(row)
        # The error of an FFT is at most about 7 log2(size) roundings of the norm (Higham, 2002, theorem 24.2).
        error = 8 * ROUNDOFF * math.log2(size) * math.sqrt(size) * _length(row)
        magnitude = np.abs(transformed) + error
        spectrum *= _power(transformed, part.reports)
        logs += part.reports * np.log(magnitude)
        # A product of n factors has n - 1 roundings of a complex product, sqrt(5) each.
        errors += part.reports * (error + 3 * ROUNDOFF) / magnitude
    masses = fft.irfft(spectrum, size)
    off = errors * np.exp(logs)
    # Half of the spectrum is stored, the other half mirrors it.
    noise = math.sqrt(2) * _length(off) / math.sqrt(size)
    noise += 8 * ROUNDOFF * math.log2(size) * _length(masses)
    ordered = masses[(np.arange(low, high + 1)) % size]
    value, mean, variance = cumulants(tilt)
    deviation = math.sqrt(variance + step * step)
    growth = sum(part.reports * (part.doubt + MASS_ERROR) for part in parts) + 1e-13 * abs(value)
    window = np.asarray(np.arange(low, high + 1) * step)
    return _ComposedLoss(
        window, ordered, mean, deviation, tilt, value, noise, 2 * LOST, infinite_mass(parts), growth
    )


def _length(vector: FloatArray) -> float:
    """Return the Euclidean norm, summed pairwise: more exact than BLAS, and without threads."""
    return math.sqrt(float(np.square(vector).sum()))


def _window(parts: Sequence[LossPmf], cumulants: _Cumulants, tilt: float) -> tuple[int, int]:
    """Return the first and last grid number of a window that misses LOST of the tilted mass on either side."""
    step = parts[0].step
    value, _, variance = cumulants(tilt)
    # The range of the sum.
    low = sum(part.reports * part.first for part in parts)
    high = sum(part.reports * (part.first + len(part.masses) - 1) for part in parts)
    for strength in STRENGTHS:
        # Chernoff: P(sum > c) <= exp(K(tilt + s) - K(tilt) - s c), and likewise below with a negative s.
        s = strength / math.sqrt(variance + step * step)
        above = (cumulants(tilt + s)[0] - value - math.log(LOST)) / s
        below = (math.log(LOST) - cumulants(tilt - s)[0] + value) / s
        high = min(high, math.ceil(above / step))
        low = max(low, math.floor(below / step))
    return low, high


def _power(values: npt.NDArray[np.complex128], exponent: int) -> npt.NDArray[np.complex128]:
    """Return values to a whole power by squaring, whose rounding error has a known bound."""
    result = np.ones_like(values)
    while exponent:
        if exponent & 1:
            result = result * values
        exponent >>= 1
        if exponent:
            values = values * values
    return result
