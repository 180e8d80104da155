"""Somebody who sees a report and knows the town: what they believe, and their best guess."""

import numpy as np

from geoind import PlanarLaplace, PosteriorRemap, SphericalLaplace
from geoind.arrays import FloatArray

from .town import Town

__all__ = ["best_guess", "credible_radius", "posterior"]


def posterior(town: Town, noise: SphericalLaplace, report: FloatArray) -> FloatArray:
    """Return the probability of each place of the town's prior after one (1, 2) lon/lat report."""
    apart = np.linalg.norm(town.prior.sites.xy - town.projection.to_xy(report), axis=1)
    # From the closest place on: exp(-epsilon * distance) itself is zero for a report far away.
    weights = town.prior.mass * np.exp(-noise.noise_epsilon * (apart - apart.min()))
    return np.asarray(weights / weights.sum())


def best_guess(town: Town, noise: SphericalLaplace, report: FloatArray) -> FloatArray:
    """Return the point, (2,) metres, whose expected distance from the truth is smallest after a report."""
    # Within a town the globe's noise is the plane's.
    remap = PosteriorRemap(town.prior, PlanarLaplace(noise.noise_epsilon))
    return np.asarray(remap(town.projection.to_xy(report))[0])


def credible_radius(town: Town, weights: FloatArray, guess: FloatArray, share: float) -> float:
    """Return the radius around the guess that holds a share of the belief, in metres."""
    apart = np.linalg.norm(town.prior.sites.xy - guess, axis=1)
    order = np.argsort(apart)
    reached = np.searchsorted(np.cumsum(weights[order]), share)
    return float(apart[order][min(reached, len(apart) - 1)])
