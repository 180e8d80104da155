"""A synthetic city with a known population: the same on every machine, at any resolution."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from geoind.arrays import FloatArray, as_count, as_positive, frozen
from geoind.channels.priors import Prior
from geoind.errors import InvalidInputError
from geoind.space.projection import Projection
from geoind.space.sites import Grid

__all__ = ["City", "synthetic_city"]

CENTRES = (
    # (x, y, spread, weight) as fractions of the city's side: the old town, a business district, suburbs.
    (0.47, 0.56, 0.045, 5.0),
    (0.66, 0.63, 0.030, 3.0),
    (0.30, 0.74, 0.035, 1.6),
    (0.26, 0.30, 0.040, 1.8),
    (0.72, 0.25, 0.050, 1.8),
    (0.86, 0.84, 0.025, 0.8),
)
PLACES = (
    # (x, y, weight): railway stations, a stadium, a campus, each some 100 m wide in a city of 6.4 km.
    (0.555, 0.655, 26.0),
    (0.365, 0.605, 20.0),
    (0.815, 0.455, 20.0),
    (0.165, 0.565, 15.0),
    (0.585, 0.135, 15.0),
)
PLACE_RADIUS = 0.009
PARK = (0.60, 0.50, 0.050)
AVENUES = ((0.47, 0.56, 0.66, 0.63), (0.47, 0.56, 0.26, 0.30), (0.66, 0.63, 0.72, 0.25), (0.47, 0.56, 0.30, 0.74))
BACKGROUND = 0.06
BLOCK = 1 / 12
"""Distance between two parallel streets."""
FINEST = 512
"""Least number of sample points per side for averaging the density over cells."""


@dataclass(frozen=True, eq=False)
class City:
    """The population of a synthetic city.

    Attributes
    ----------
    prior : Prior
        The share of the people in each cell of `grid`.
    projection : Projection
        From degrees to the grid's metres; its origin is the middle of the city.
    """

    prior: Prior
    projection: Projection

    @property
    def grid(self) -> Grid:
        """The cells of the city."""
        if not isinstance(self.prior.sites, Grid):
            raise InvalidInputError("a city's prior must be over a grid")
        return self.prior.sites

    def sample_xy(self, count: int, *, rng: np.random.Generator | int) -> FloatArray:
        """Return the locations of `count` people in metres, uniform within random cells.

        For simulation only, so a seed or generator is required.
        """
        generator = np.random.default_rng(rng)
        count = as_count(count, "count")
        cells = generator.choice(len(self.grid), size=count, p=self.prior.mass)
        return self.grid.xy[cells] + self.grid.cell * (generator.random((count, 2)) - 0.5)

    def sample_lonlat(self, count: int, *, rng: np.random.Generator | int) -> FloatArray:
        """Return the locations of `count` people, in degrees, longitude first."""
        return self.projection.to_lonlat(self.sample_xy(count, rng=rng))


def synthetic_city(cells: int = 64, *, side: float = 6400.0, lon: float = 2.35, lat: float = 48.86) -> City:
    """Return a city of dense centres, streets, a river without people, a park and a few crowded places.

    The density is one fixed function of the plane, averaged over each cell: a finer grid shows the same city in
    more detail.

    Parameters
    ----------
    cells : int
        Rows and columns of the grid.
    side : float
        Side of the square city, in metres.
    lon, lat : float
        The middle of the city, in degrees.

    Examples
    --------
    >>> city = synthetic_city(32)
    >>> city.grid.cell, len(city.prior.mass)
    (200.0, 1024)
    >>> city.sample_lonlat(3, rng=1).shape
    (3, 2)
    """
    cells, side = as_count(cells, "cells"), as_positive(side, "side")
    cell = side / cells
    corner = -side / 2 + cell / 2
    grid = Grid(corner, corner, cell=cell, columns=cells, rows=cells)
    return City(Prior.from_counts(grid, _people(cells).ravel()), Projection(lon, lat))


@lru_cache(maxsize=4)
def _people(cells: int) -> FloatArray:
    """Return the people in each cell of a square, up to a factor."""
    finer = math.ceil(FINEST / cells)
    middles = (np.arange(cells * finer) + 0.5) / (cells * finer)
    density = _density(*np.meshgrid(middles, middles))
    return frozen(density.reshape(cells, finer, cells, finer).sum(axis=(1, 3)))


def _density(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return people per unit of area at fractions of the city's side, up to a factor."""
    people = np.full_like(x, BACKGROUND)
    for centre_x, centre_y, spread, weight in CENTRES:
        people += weight * np.exp(-np.hypot(x - centre_x, y - centre_y) / spread)
    street = np.maximum(np.abs(_within_block(x)), np.abs(_within_block(y))) > 0.43
    people *= np.where(street, 1.8, 0.7)
    for ax, ay, bx, by in AVENUES:
        along = np.clip(((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / ((bx - ax) ** 2 + (by - ay) ** 2), 0, 1)
        apart = np.hypot(x - ax - along * (bx - ax), y - ay - along * (by - ay))
        people += 0.9 * (apart < 0.008)
    for place_x, place_y, weight in PLACES:
        people += weight * (np.hypot(x - place_x, y - place_y) < PLACE_RADIUS)
    river = np.abs(y - 0.42 - 0.10 * np.sin(2 * math.pi * x)) < 0.018
    park = np.hypot(x - PARK[0], y - PARK[1]) < PARK[2]
    return np.where(river | park, 0.0, people)


def _within_block(position: FloatArray) -> FloatArray:
    """Return the position of a coordinate within its block, -0.5 to 0.5; the ends are the streets."""
    blocks = position / BLOCK
    return blocks - np.floor(blocks) - 0.5
