"""Cells with names that many programs know: geohash and H3."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, IntArray, as_lonlat, frozen
from geoind.errors import InvalidInputError, plural
from geoind.extras import require
from geoind.space.projection import Projection
from geoind.space.sites import Places

__all__ = ["CellSites", "as_cell_system", "cell_centres", "cell_names"]

DIGITS = "0123456789bcdefghjkmnpqrstuvwxyz"
"""The digits of a geohash, five bits each."""
SYSTEMS = {"geohash": range(1, 13), "h3": range(16)}
"""The kinds of cells, and their lengths or resolutions."""


def as_cell_system(text: str) -> tuple[str, int]:
    """Return the kind of cells and their length or resolution, of a text such as `h3:9` or `geohash:7`.

    Examples
    --------
    >>> as_cell_system("geohash:7")
    ('geohash', 7)
    """
    found = re.fullmatch(r"([0-9a-z]{1,20}):([0-9]{1,2})", text) if isinstance(text, str) else None
    if found is None or int(found[2]) not in SYSTEMS.get(found[1], ()):
        raise InvalidInputError(f"cells must be h3:0 to h3:15 or geohash:1 to geohash:12, got {text!r}")
    if found[1] == "h3":
        require("a cell of H3", "h3")
    return found[1], int(found[2])


def cell_names(lonlat: ArrayLike, cells: str) -> list[str]:
    """Return the names of the cells that contain (n, 2) locations, in degrees, longitude first.

    Parameters
    ----------
    lonlat : (n, 2) array
    cells : str
        `geohash:7` (seven digits, 153 m x 153 m at the equator) or `h3:9` (resolution 9, 174 m edges).

    Examples
    --------
    >>> cell_names([[10.40744, 57.64911]], "geohash:11")
    ['u4pruydqqvj']
    """
    places = as_lonlat(lonlat)
    kind, size = as_cell_system(cells)
    if kind == "h3":
        import h3

        return [h3.latlng_to_cell(lat, lon, size) for lon, lat in places.tolist()]
    digits = np.zeros((len(places), size), np.int64)
    for axis, (least, width) in enumerate(((-180.0, 360.0), (-90.0, 180.0))):
        bits = _bits(size)[axis]
        # Exact: the width is divided by a power of two, and 180 and 90 belong to the last cell.
        steps = np.floor((places[:, axis] - least) / (width / 2**bits)).astype(np.int64)
        steps = np.minimum(steps, 2**bits - 1)
        for number in range(bits):
            bit = 2 * number + axis
            digits[:, bit // 5] |= (steps >> (bits - 1 - number) & 1) << (4 - bit % 5)
    letters = np.array(list(DIGITS))[digits]
    return ["".join(row) for row in letters.tolist()]


def cell_centres(names: Sequence[str]) -> FloatArray:
    """Return the centres of geohashes or of H3 cells, (n, 2) degrees, longitude first.

    Examples
    --------
    >>> cell_centres(["ezs42"]).round(3)
    array([[-5.603, 42.605]])
    """
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise InvalidInputError("cells must be a list of names of cells")
    return as_lonlat([_centre(name) for name in names] if len(names) else np.empty((0, 2)), "cells")


def _bits(size: int) -> tuple[int, int]:
    """Return the bits of longitude and of latitude in a geohash; they alternate, longitude first."""
    return (5 * size + 1) // 2, 5 * size // 2


def _centre(name: str) -> tuple[float, float]:
    if 0 < len(name) <= 12 and set(name) <= set(DIGITS):
        bits = [DIGITS.index(digit) >> place & 1 for digit in name for place in range(4, -1, -1)]
        lon, lat = (int("".join(map(str, bits[axis::2])), 2) for axis in (0, 1))
        wide, high = _bits(len(name))
        return -180 + 360 * (lon + 0.5) / 2**wide, -90 + 180 * (lat + 0.5) / 2**high
    require("a cell of H3", "h3")
    import h3

    if not h3.is_valid_cell(name):
        raise InvalidInputError("a name is neither a geohash of 1 to 12 digits nor an H3 cell")
    lat, lon = h3.cell_to_latlng(name)
    return lon, lat


@dataclass(frozen=True, eq=False, repr=False, init=False)
class CellSites:
    """Cells of geohash or H3 as sites: for counts, and with their centres for channels, priors and solvers.

    Distances are those between the centres on the ground, within the error of the local plane (4e-5 at 100 km).

    Parameters
    ----------
    cells : iterable of str
        Names of different cells, all of one length or resolution.
    projection : Projection, optional
        From degrees to metres; default: around the first cell.

    Examples
    --------
    >>> from geoind import Projection, exponential
    >>> paris = Projection(2.35, 48.86)
    >>> cells = CellSites(["u09tunq", "u09tunr", "u09tunw"], paris)
    >>> cells.numbers([[2.2945, 48.8584], [2.35, 48.86]])
    array([ 0, -1])
    >>> noise = exponential(cells, cells, epsilon=0.01)
    >>> cells.cells[noise.sample_indices([0])[0]].startswith("u09tun")
    True
    """

    cells: tuple[str, ...]
    projection: Projection | None

    def __init__(self, cells: Iterable[str], projection: Projection | None = None) -> None:
        names = tuple(cells) if not isinstance(cells, str) else ()
        if not names or len(set(names)) != len(names):
            raise InvalidInputError("cells must be a list of different names of cells, at least one")
        lonlat = cell_centres(names)
        object.__setattr__(self, "cells", names)
        object.__setattr__(self, "projection", projection)
        if cell_names(lonlat, self.system) != [*names]:
            raise InvalidInputError("cells must be of one kind and of one length or resolution")

    @cached_property
    def system(self) -> str:
        """The kind of the cells, such as `geohash:7`."""
        first = self.cells[0]
        if len(first) <= 12:
            return f"geohash:{len(first)}"
        import h3

        return f"h3:{h3.get_resolution(first)}"

    def __len__(self) -> int:
        return len(self.cells)

    def __repr__(self) -> str:
        return f"CellSites({plural(len(self), 'cell')} of {self.system})"

    @cached_property
    def xy(self) -> FloatArray:
        """The centres in metres, (n, 2), read-only."""
        lonlat = cell_centres(self.cells)
        plane = Projection(*lonlat[0]) if self.projection is None else self.projection
        return frozen(plane.to_xy(lonlat))

    def nearest(self, points: ArrayLike) -> IntArray:
        """Return the number of the cell with the closest centre, for (n, 2) points in metres."""
        return self._places.nearest(points)

    def numbers(self, lonlat: ArrayLike) -> IntArray:
        """Return the number of the cell that contains each location, or -1."""
        known = {name: number for number, name in enumerate(self.cells)}
        return np.array([known.get(name, -1) for name in cell_names(lonlat, self.system)], np.int64)

    @cached_property
    def _places(self) -> Places:
        return Places(self.xy)
