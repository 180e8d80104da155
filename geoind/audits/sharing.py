"""How many persons share the place of a report."""

import math
from typing import NamedTuple

import numpy as np

from geoind.arrays import FloatArray, IntArray
from geoind.audits.attempts import Estimate, share_of
from geoind.audits.visits import rows_within
from geoind.distances import EARTH_RADIUS

__all__ = ["Sharing", "sharing_of"]

CELLS = 40
"""Cells of the map in each direction."""


class Sharing(NamedTuple):
    """How many persons are within the reach around reports.

    Attributes
    ----------
    whose : str
        "persons of the data" or "people of the population file".
    radius : float
        Metres.
    counts : (n,) array
        The number around each sampled report.
    few : Estimate
        The share of reports with fewer than k.
    cells : tuple of (column, row, fewest, reports)
        Of the map: the smallest number around a sampled report in the cell, and the sampled reports there.
    corner, side : (west, south) of the map, (width, height) of a cell, in degrees
    outside : int
        Sampled reports outside of the map.
    """

    whose: str
    radius: float
    counts: FloatArray
    few: Estimate
    cells: tuple[tuple[int, int, float, int], ...]
    corner: tuple[float, float]
    side: tuple[float, float]
    outside: int


def sharing_of(
    reports: FloatArray,
    people: tuple[FloatArray, FloatArray | None],
    radius: float,
    k: int,
    person: IntArray | None = None,
) -> Sharing:
    """Return how many persons, or people of a population, are within a radius of reports."""
    places, weights = people
    near = rows_within(places, radius)
    if weights is not None:
        counts = np.array([weights[near(report)].sum() for report in reports])
    else:
        assigned = np.arange(len(places)) if person is None else person
        counts = np.array([len(np.unique(assigned[near(report)])) for report in reports], float)
    (west, east), (south, north) = np.quantile(reports, [0.01, 0.99], axis=0).T
    middle = math.cos(math.radians((south + north) / 2))
    # Square cells on the ground, at least half of the radius wide.
    height = max((north - south), (east - west) * middle, 1e-3) / CELLS
    height = max(height, math.degrees(radius / EARTH_RADIUS) / 2)
    side = (height / max(middle, 0.01), height)
    cell = np.floor((reports - (west, south)) / side).astype(np.int64)
    inside = ((cell >= 0) & (cell <= CELLS)).all(axis=1)
    fewest: dict[tuple[int, int], list[float]] = {}
    for (column, row), count in zip(cell[inside].tolist(), counts[inside].tolist(), strict=True):
        fewest.setdefault((column, row), []).append(count)
    cells = tuple((column, row, min(found), len(found)) for (column, row), found in sorted(fewest.items()))
    whose = "people of the population file" if weights is not None else "persons of the data"
    few = share_of(counts < k)
    return Sharing(
        whose,
        radius,
        counts,
        few,
        cells,
        (float(west), float(south)),
        (float(side[0]), float(side[1])),
        int((~inside).sum()),
    )
