"""The probabilities of a session's answers, for whoever sees them."""

import math

import numpy as np

from geoind.arrays import FloatArray

__all__ = ["laplace_density", "laplace_exceeds", "laplace_quantile", "noisy_minimum", "shares"]

NODES, WEIGHTS = np.polynomial.laguerre.laggauss(32)


def shares(epsilon: float) -> tuple[float, float]:
    """Return how a run of tests splits its epsilon: for the limit's noise and for the tests', 1 : 2^(2/3).

    The split with the least noise in the difference of the two (Lyu, Su and Li, VLDB 2017).
    """
    for_limit = epsilon / (1 + 2 ** (2 / 3))
    return for_limit, epsilon - for_limit


def laplace_density(apart: FloatArray, epsilon: float) -> FloatArray:
    """Return the density of planar Laplace noise at these distances."""
    return np.asarray(epsilon**2 / (2 * math.pi) * np.exp(-epsilon * apart))


def laplace_exceeds(bar: FloatArray, scale: float) -> FloatArray:
    """Return the probability that linear Laplace noise is at least this much."""
    half = 0.5 * np.exp(-np.abs(bar) / scale)
    return np.where(bar > 0, half, 1 - half)


def laplace_quantile(p: float, scale: float) -> float:
    """Return what linear Laplace noise stays below with probability p."""
    return scale * math.log(2 * p) if p < 0.5 else -scale * math.log(2 * (1 - p))


def noisy_minimum(scores: list[FloatArray], chosen: int, epsilon: float) -> FloatArray:
    """Return the probability that a score, plus exponential noise of scale 2 / epsilon, is the smallest."""
    rate = epsilon / 2
    total = np.zeros_like(scores[chosen])
    for node, weight in zip(NODES.tolist(), WEIGHTS.tolist(), strict=True):
        level = scores[chosen] + node / rate
        excess = sum(np.maximum(0.0, level - score) for number, score in enumerate(scores) if number != chosen)
        total += weight * np.exp(-rate * excess)
    return total
