"""The privacy loss of many reports together: losses on a grid, added up by FFT, with every error bounded.

The masses are tilted first (multiplied by exp(tilt * loss) and normalised): the sum's tilted distribution lies
around the level that is asked for, so that a short window holds it and the FFT's error is small beside the delta
there, however small that is.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import fft

from geoind.accounting.rounding import OnGrid
from geoind.arrays import FloatArray

__all__ = ["Composed", "Part", "beyond_all", "composed_of", "tilt_for_delta", "tilt_for_level"]

ROUNDOFF = 2.0**-53

LOST = 1e-16
"""Tilted probability that a window may miss, on either side."""

STRENGTHS = (1.0, 2.0, 4.0, 6.0, 7.0, 8.0, 8.6, 9.5, 11.0, 14.0, 20.0, 40.0)
"""Further tilts, in units of one over the standard deviation, among which a window's bounds are chosen."""

MASS_ERROR = 1e-12
"""Relative error of a mass: quadrature (below 1e-15), Bessel functions, exponentials, normalisation."""

UNDERFLOW = 1e-300
"""Covers masses that doubles cannot hold."""


@dataclass(frozen=True)
class Part:
    """One loss on a grid, how many reports lose as much, and within which factor exp(doubt) that is known."""

    loss: OnGrid
    reports: int
    doubt: float

    def logs(self) -> tuple[FloatArray, FloatArray]:
        """Return the losses and the logarithms of their masses."""
        held = self.loss.masses > 0
        losses = (self.loss.first + np.flatnonzero(held)) * self.loss.step
        return np.asarray(losses), np.log(self.loss.masses[held])


class _Cumulants:
    """The logarithm of E exp(tilt * sum of losses) and its first two derivatives."""

    def __init__(self, parts: Sequence[Part]) -> None:
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


def tilt_for_level(parts: Sequence[Part], level: float) -> float:
    """Return the tilt, not negative, that moves the mean of the sum to about a level."""
    cumulants, finest = _Cumulants(parts), parts[0].loss.step ** 2

    def reached(tilt: float) -> bool:
        _, mean, variance = cumulants(tilt)
        return mean >= level or variance <= finest

    return _rising(reached)


def tilt_for_delta(parts: Sequence[Part], delta: float) -> float:
    """Return the tilt that moves the mean of the sum to about the level of a delta."""
    cumulants, finest = _Cumulants(parts), parts[0].loss.step ** 2

    def reached(tilt: float) -> bool:
        value, mean, variance = cumulants(tilt)
        if variance <= finest:  # the grid shows nothing smaller
            return True
        # The saddle point's estimate of delta at the level `mean`.
        width = max(1.0, tilt * (1 + tilt) * math.sqrt(2 * math.pi * variance))
        return value - tilt * mean - math.log(width) <= math.log(delta)

    return _rising(reached)


def _rising(reached: Callable[[float], bool]) -> float:
    """Return about the least number from which a condition holds, up to a million."""
    if reached(0.0):
        return 0.0
    low, high = math.log(1e-9), math.log(1e6)
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if reached(math.exp(middle)) else (middle, high)
    return math.exp(high)


@dataclass(frozen=True)
class Composed:
    """The tilted distribution of a sum of losses on a grid, with the errors of its making.

    Attributes
    ----------
    losses, masses : arrays
        The window and its tilted masses.
    mean, deviation : float
        Of the tilted sum: where the bounds are sharp.
    tilt, scale : float
        A mass stands for `mass * exp(scale - tilt * loss)`.
    noise : float
        The masses are wrong by a vector of at most this Euclidean length.
    lost : float
        Tilted mass outside of the window, which was folded into it.
    beyond : float
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
    beyond: float
    growth: float

    def delta_above(self, level: float) -> float:
        """Return an upper bound of delta at a level."""
        value, error, factor = self._excess(level)
        return min(1.0, (value + error) * math.exp(min(700.0, factor + self.growth)) + self.beyond + UNDERFLOW)

    def delta_below(self, level: float) -> float:
        """Return a lower bound of delta at a level."""
        value, error, factor = self._excess(level)
        return max(0.0, (value - error) * math.exp(min(700.0, factor - self.growth)) + self.beyond)

    def _excess(self, level: float) -> tuple[float, float, float]:
        """Return the tilted E [1 - exp(level - L)]+, its error, and the logarithm of what undoes the tilt."""
        start = int(np.searchsorted(self.losses, level))
        above = self.losses[start:] - level
        weights = -np.expm1(-above) * np.exp(-self.tilt * above)
        # The largest weight that a lost mass can have: (1 - e^-x) e^(-tilt x) at its top.
        largest = (self.tilt / (1 + self.tilt)) ** self.tilt / (1 + self.tilt)
        error = _length(weights) * self.noise + largest * self.lost
        return float((weights * self.masses[start:]).sum()), error, self.scale - self.tilt * level


def beyond_all(parts: Sequence[Part]) -> float:
    """Return the probability that one of the losses lies above all finite ones."""
    stays = math.prod((1 - part.loss.beyond) ** part.reports for part in parts if part.loss.beyond > 1e-9)
    small = sum(part.reports * part.loss.beyond for part in parts if part.loss.beyond <= 1e-9)
    return min(1.0, 1 - stays + small)


def composed_of(parts: Sequence[Part], tilt: float) -> Composed:
    """Return the distribution of the sum of all parts' losses, tilted."""
    step = parts[0].loss.step
    cumulants = _Cumulants(parts)
    low, high = _window(parts, cumulants, tilt)
    size = fft.next_fast_len(max(16, high - low + 1), real=True)
    spectrum = np.ones(size // 2 + 1, dtype=np.complex128)
    logs = np.zeros(size // 2 + 1)
    errors = np.zeros(size // 2 + 1)
    for part in parts:
        losses, log_masses = part.logs()
        tilted = np.exp(tilt * losses + log_masses - _Cumulants([replace(part, reports=1)])(tilt)[0])
        index = part.loss.first + np.flatnonzero(part.loss.masses > 0)
        row = np.bincount(index % size, weights=tilted, minlength=size).astype(np.float64)
        transformed = fft.rfft(row)
        # An FFT's error is at most about 7 log2(size) roundings of the norm (Higham, 2002, theorem 24.2).
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
    return Composed(window, ordered, mean, deviation, tilt, value, noise, 2 * LOST, beyond_all(parts), growth)


def _length(vector: FloatArray) -> float:
    """Return the Euclidean norm, summed pairwise: more exact than BLAS, and it starts no threads."""
    return math.sqrt(float(np.square(vector).sum()))


def _window(parts: Sequence[Part], cumulants: _Cumulants, tilt: float) -> tuple[int, int]:
    """Return the first and last grid number of a window that misses LOST of the tilted mass on either side."""
    step = parts[0].loss.step
    value, _, variance = cumulants(tilt)
    # The sum itself ends somewhere.
    low = sum(part.reports * part.loss.first for part in parts)
    high = sum(part.reports * (part.loss.first + len(part.loss.masses) - 1) for part in parts)
    for strength in STRENGTHS:
        # Chernoff: P(sum > c) <= exp(K(tilt + s) - K(tilt) - s c), and likewise below with a negative s.
        s = strength / math.sqrt(variance + step * step)
        above = (cumulants(tilt + s)[0] - value - math.log(LOST)) / s
        below = (math.log(LOST) - cumulants(tilt - s)[0] + value) / s
        high = min(high, math.ceil(above / step))
        low = max(low, math.floor(below / step))
    return low, high


def _power(values: npt.NDArray[np.complex128], exponent: int) -> npt.NDArray[np.complex128]:
    """Return values to a whole power, by squaring: its error is known, that of a logarithm's is not."""
    result = np.ones_like(values)
    while exponent:
        if exponent & 1:
            result = result * values
        exponent >>= 1
        if exponent:
            values = values * values
    return result
