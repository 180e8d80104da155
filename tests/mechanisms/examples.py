"""The list of mechanisms: an example or two of each class of the face that is one, for the common suite.

`(0, 0)` must be a truth that each of them accepts, in metres or in degrees.
"""

import math
from dataclasses import dataclass

import shapely

from geoind import (
    ClosestIn,
    Grid,
    Mechanism,
    Places,
    PlanarGaussian,
    PlanarLaplace,
    PosteriorRemap,
    PostProcessed,
    Prior,
    Projected,
    Projection,
    SphericalGaussian,
    SphericalLaplace,
    discretise,
    exponential,
)
from geoind.channels import Dummies, Interpolated, elastic_noise
from geoind.distances import euclidean

EPSILON = math.log(4) / 200
NOISE = PlanarLaplace(EPSILON)
GRID = Grid(-400, -400, cell=100, columns=9, rows=9)
PLANE = Projection(0.0, 0.0)
ELL = shapely.Polygon([(-600, -600), (600, -600), (600, -400), (-400, -400), (-400, 600), (-600, 600)])


@dataclass(frozen=True)
class Example:
    """A mechanism, its expected epsilon, and which share of its reach is too little at (0, 0)."""

    mechanism: Mechanism
    epsilon: float
    too_little: float = 0.9


EXAMPLES: dict[str, Example] = {
    "planar": Example(NOISE, EPSILON),
    "globe": Example(SphericalLaplace(EPSILON), EPSILON),
    "gaussian": Example(PlanarGaussian(150), math.inf),
    "gaussian globe": Example(SphericalGaussian(150), math.inf),
    "dummies": Example(Dummies(Prior.uniform(GRID), k=3), math.inf, 0.3),
    "channel": Example(discretise(NOISE, GRID), 0.99951 * EPSILON, 0.5),
    "exponential": Example(exponential(GRID, GRID, epsilon=EPSILON, score=euclidean), 0.94819 * EPSILON, 0.4),
    "interpolated": Example(Interpolated(discretise(NOISE, GRID)), 1.442509 * EPSILON, 0.4),
    "deployed": Example(Projected(Interpolated(discretise(NOISE, GRID)), PLANE), 1.442569 * EPSILON, 0.4),
    "elastic": Example(elastic_noise(Prior.from_counts(GRID, range(81)), share=0.2), 0.566479 * EPSILON, 0.3),
    "snapped": Example(PostProcessed(NOISE, GRID.snap), EPSILON, 0.3),
    "truncated": Example(PostProcessed(NOISE, ClosestIn(shapely.box(-700, -700, 700, 700))), EPSILON),
    "truncated to an L": Example(
        PostProcessed(NOISE, ClosestIn(ELL.union(shapely.Point(0, 0).buffer(5)))), EPSILON, 0.4
    ),
    "remapped": Example(PostProcessed(NOISE, PosteriorRemap(Prior.uniform(Places(GRID.xy)), NOISE)), EPSILON, 0.1),
    "projected": Example(Projected(NOISE, PLANE), 1.0000413 * EPSILON),
    "projected grid": Example(Projected(PostProcessed(NOISE, GRID.snap), PLANE), 1.0000413 * EPSILON, 0.3),
    "projected channel": Example(Projected(discretise(NOISE, GRID), PLANE), 0.999552 * EPSILON, 0.5),
}
