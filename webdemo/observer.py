"""Somebody who sees a report and knows the town: what they believe, and their best guess."""

import numpy as np

from geoind import SphericalLaplace
from geoind.arrays import FloatArray

from .town import Town

__all__ = ["best_guess", "credible_radius", "posterior"]

STEPS = 60
CLOSE = 0.01


def posterior(town: Town, noise: SphericalLaplace, report: FloatArray) -> FloatArray:
    """Return the probability of each place of the town's prior after one (1, 2) lon/lat report."""
    apart = np.linalg.norm(town.prior.sites.xy - town.projection.to_xy(report), axis=1)
    # From the closest place on: exp(-epsilon * distance) itself is zero for a report far away.
    weights = town.prior.mass * np.exp(-noise.noise_epsilon * (apart - apart.min()))
    return np.asarray(weights / weights.sum())


def best_guess(town: Town, weights: FloatArray) -> FloatArray:
    """Return the point, (2,) metres, whose expected distance from the truth is smallest.

    Weiszfeld's iteration for the geometric median, from the mean.
    """
    places = town.prior.sites.xy
    guess = weights @ places
    for _ in range(STEPS):
        pull = weights / np.maximum(np.linalg.norm(places - guess, axis=1), CLOSE)
        moved = pull @ places / pull.sum()
        if np.linalg.norm(moved - guess) < CLOSE:
            break
        guess = moved
    return np.asarray(guess)


def credible_radius(town: Town, weights: FloatArray, guess: FloatArray, share: float) -> float:
    """Return the radius around the guess that holds a share of the belief, in metres."""
    apart = np.linalg.norm(town.prior.sites.xy - guess, axis=1)
    order = np.argsort(apart)
    reached = np.searchsorted(np.cumsum(weights[order]), share)
    return float(apart[order][min(reached, len(apart) - 1)])
