"""The probabilities of a session's answers, as an adversary computes them."""

import math

import numpy as np

from geoind.arrays import FloatArray, as_positive, as_unit
from geoind.mechanisms.planar import PlanarLaplace
from geoind.pipeline import enough_noise

__all__ = [
    "enough_metres",
    "epsilon_within",
    "has_left",
    "laplace_density",
    "laplace_exceeds",
    "laplace_quantile",
    "noisy_minimum",
    "run_quantile",
    "shares",
]


def shares(epsilon: float) -> tuple[float, float]:
    """Return how a run of tests splits its epsilon: for the limit's noise and for the tests', 1 : 2^(2/3).

    The split with the least noise in the difference of the two (Lyu, Su and Li, VLDB 2017).
    """
    for_limit = epsilon / (1 + 2 ** (2 / 3))
    return for_limit, epsilon - for_limit


def epsilon_within(metres: float, confidence: float) -> float:
    """Return the epsilon with which a report is within so many metres with this probability."""
    metres = as_positive(metres, "metres")
    return float(PlanarLaplace(1.0).radius_quantile(as_unit(confidence, "confidence"))) / metres


def enough_metres(metres: float, confidence: float) -> float:
    """Return the metres of a wanted accuracy; raise if the mean noise is under 10 m, likely a unit error."""
    enough_noise(epsilon_within(metres, confidence), otherwise="give the method its epsilon")
    return metres


def laplace_density(apart: FloatArray, epsilon: float) -> FloatArray:
    """Return the density of planar Laplace noise at these distances."""
    return np.asarray(epsilon**2 / (2 * math.pi) * np.exp(-epsilon * apart))


def laplace_exceeds(bar: FloatArray, scale: float) -> FloatArray:
    """Return the probability that linear Laplace noise is at least this much."""
    half = 0.5 * np.exp(-np.abs(bar) / scale)
    return np.where(bar > 0, half, 1 - half)


def has_left(bars: FloatArray, apart: FloatArray, scale: float) -> FloatArray:
    """Return `laplace_exceeds(bars - apart, scale)` for a few bars, (m, 1), and many distances, in less time.

    Examples
    --------
    >>> has_left(np.array([[600.0], [900.0]]), np.array([0.0, 750.0]), 300.0).round(3).tolist()
    [[0.068, 0.697], [0.025, 0.303]]
    """
    # Measured from the middle of the bars, what is too large or too small for a number makes no difference.
    middle = bars.mean()
    above, beyond = (np.exp(np.clip((metres - middle) / scale, -350, 350)) for metres in (bars, apart))
    half = 0.5 * np.minimum(beyond / above, above / beyond)
    return np.asarray(np.where(bars > apart, half, 1 - half))


def laplace_quantile(p: FloatArray, scale: float) -> FloatArray:
    """Return what linear Laplace noise stays below with probability p."""
    return np.asarray(np.where(p < 0.5, 1.0, -1.0) * scale * np.log(2 * np.minimum(p, 1 - p)))


def noisy_minimum(scores: list[FloatArray], chosen: int, epsilon: float) -> FloatArray:
    """Return the probability that a score, plus exponential noise of scale 2 / epsilon, is the smallest."""
    rate = epsilon / 2
    others = [score - scores[chosen] for number, score in enumerate(scores) if number != chosen]
    # Each other score that the noise lifts the chosen one above makes the probability fall faster by one rate.
    total, begin, passed = np.zeros_like(scores[chosen]), np.zeros_like(scores[chosen]), np.zeros(())
    for count, lift in enumerate([*np.sort(others, axis=0), np.asarray(np.inf)], start=1):
        end = np.maximum(0.0, lift)
        total += (np.exp(-rate * (count * begin - passed)) - np.exp(-rate * (count * end - passed))) / count
        begin, passed = end, passed + lift
    return total


def run_quantile(confidence: float) -> float:
    """Return what the noise of a limit minus that of a test stays below, for a run of epsilon 1.

    Examples
    --------
    >>> round(run_quantile(0.9), 4)
    7.0351
    """
    for_limit, for_tests = shares(1.0)
    wide, narrow = 2 / for_tests, 1 / for_limit
    rest = 1 - as_unit(confidence, "confidence")

    def exceeds(bar: float) -> float:
        tails = wide**2 * math.exp(-bar / wide) - narrow**2 * math.exp(-bar / narrow)
        return tails / (2 * (wide**2 - narrow**2))

    if rest >= 0.5:
        return 0.0
    low, high = 0.0, 4 * wide * (1 - math.log(rest))
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if exceeds(middle) > rest else (low, middle)
    return high
