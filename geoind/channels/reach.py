"""How far reports between finitely many sites lie from the truth, with a given probability."""

import numpy as np

from geoind.arrays import FloatArray, as_unit
from geoind.distances import euclidean
from geoind.errors import InvalidInputError
from geoind.space.sites import Grid, Sites

__all__ = ["as_grid", "reach_of_rows"]


def as_grid(sites: Sites) -> Grid:
    """Return the sites if they are a grid: only a grid says how far people are from its sites."""
    if not isinstance(sites, Grid):
        raise InvalidInputError(
            f"how far people are from the nearest of these {type(sites).__name__} is not known: "
            "use a Grid, or give the caller's own bound (report_reach)"
        )
    return sites


def reach_of_rows(matrix: FloatArray, inputs: Sites, outputs: Sites, confidence: float) -> float:
    """Return the metres within which a report lies of any truth in the input grid with at least this probability.

    The largest quantile over the true sites, exactly, and the radius of a cell.
    """
    cell_radius = as_grid(inputs).cell_radius
    apart = euclidean(inputs.xy, outputs.xy)
    order = np.argsort(apart, axis=1)
    within = np.cumsum(np.take_along_axis(matrix, order, axis=1), axis=1)
    # A row's sum may round to just below the confidence: then its farthest report is the bound.
    enough = np.minimum((within < as_unit(confidence, "confidence")).sum(axis=1), apart.shape[1] - 1)
    return float(np.take_along_axis(apart, order, axis=1)[np.arange(len(apart)), enough].max()) + cell_radius
