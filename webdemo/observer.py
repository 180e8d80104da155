"""An observer who sees a report and knows the town: the posterior, and the best guess."""

import math

import numpy as np
import shapely
from pydantic import BaseModel, Field

from geoind import PlanarLaplace, PosteriorRemap, SphericalLaplace
from geoind.arrays import FloatArray

from .town import Town

__all__ = [
    "Odds",
    "Region",
    "best_guess",
    "by_shape",
    "likeliest_region",
    "odds_between",
    "posterior",
]


class Region(BaseModel):
    """The smallest set of buildings with a share of the posterior."""

    share: float
    count: int = Field(description="How many buildings")
    outline: list[list[list[tuple[float, float]]]] = Field(
        description="Areas around them: rings of latitudes and longitudes"
    )


MOST_LEVEL = 690.0
"""Larger levels are replaced by this one, because their factor times the prior odds may overflow a float."""


class Odds(BaseModel):
    """How a report changes the odds between two places."""

    distance: float = Field(description="Metres between the two places")
    before: float = Field(description="Odds of the true location against the other place, before the report")
    after: float = Field(description="The same after the report")
    change: float = Field(description="after / before")
    limit: float = Field(
        description="e^(epsilon * distance): no report can change the odds by more; at most e^690"
    )


def posterior(town: Town, noise: SphericalLaplace, report: FloatArray) -> FloatArray:
    """Return the probability of each place of the town's prior after one (1, 2) lon/lat report."""
    apart = np.linalg.norm(town.prior.sites.xy - town.projection.to_xy(report), axis=1)
    # From the closest place on: exp(-epsilon * distance) itself is zero for a report far away.
    weights = town.prior.mass * np.exp(-noise.noise_epsilon * (apart - apart.min()))
    return np.asarray(weights / weights.sum())


def best_guess(town: Town, noise: SphericalLaplace, report: FloatArray) -> FloatArray:
    """Return the point, (2,) metres, whose expected distance from the true location is smallest after a report."""
    # Within a town, noise on the globe equals noise in the plane.
    remap = PosteriorRemap(town.prior, PlanarLaplace(noise.noise_epsilon))
    return np.asarray(remap(town.projection.to_xy(report))[0])


def by_shape(town: Town, weights: FloatArray) -> FloatArray:
    """Return the probability of each building."""
    return np.asarray(np.bincount(town.shape_of, weights=weights, minlength=len(town.shapes)), dtype=np.float64)


def likeliest_region(town: Town, likely: FloatArray, share: float) -> Region:
    """Return the smallest set of buildings with a share of the posterior."""
    order = np.argsort(-likely, kind="stable")
    count = int(np.searchsorted(np.cumsum(likely[order]), share)) + 1
    area = shapely.simplify(shapely.union_all(town.surroundings[order[:count]]), 1.5)
    return Region(share=share, count=min(count, len(likely)), outline=town.degrees(area))


def odds_between(
    town: Town, noise: SphericalLaplace, report: FloatArray, here: FloatArray, there: FloatArray
) -> Odds:
    """Return how a report changes the odds between two places; all are (1, 2) lon/lat."""
    pair = town.projection.to_xy(np.vstack([here, there]))
    mine, other = np.linalg.norm(pair - town.projection.to_xy(report), axis=1)
    apart = float(np.linalg.norm(pair[0] - pair[1]))
    masses = town.prior.mass[town.prior.sites.nearest(pair)]
    before, change = float(masses[0] / masses[1]), _factor(noise.noise_epsilon * (other - mine))
    return Odds(
        distance=apart, before=before, after=before * change, change=change, limit=_factor(noise.epsilon * apart)
    )


def _factor(level: float) -> float:
    return math.exp(min(MOST_LEVEL, max(-MOST_LEVEL, level)))
