"""Cells of H3, for counts."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from geoind.arrays import FloatArray, IntArray
from geoind.errors import InvalidInputError, plural
from geoind.extras import require

__all__ = ["H3Cells"]


@dataclass(frozen=True, init=False, repr=False)
class H3Cells:
    """Cells of H3, all of one resolution; chosen independently of the points.

    Parameters
    ----------
    cells : iterable of str
        Indexes of the cells, for example from `h3.geo_to_cells` for a public region.

    Examples
    --------
    >>> import h3
    >>> centre = h3.latlng_to_cell(48.86, 2.35, 8)
    >>> H3Cells(h3.grid_disk(centre, 2))
    H3Cells(19 cells of resolution 8)
    """

    cells: tuple[str, ...]
    resolution: int

    def __init__(self, cells: Iterable[str]) -> None:
        require("a cell of H3", "h3")
        import h3

        found = tuple(cells)
        if isinstance(cells, str) or not all(isinstance(cell, str) and h3.is_valid_cell(cell) for cell in found):
            raise InvalidInputError("cells must be a list of indexes of H3 cells")
        resolutions = {h3.get_resolution(cell) for cell in found}
        if len(resolutions) != 1 or len(set(found)) != len(found):
            raise InvalidInputError("cells must be different cells of one resolution, at least one")
        object.__setattr__(self, "cells", found)
        object.__setattr__(self, "resolution", resolutions.pop())

    def __len__(self) -> int:
        return len(self.cells)

    def __repr__(self) -> str:
        return f"H3Cells({plural(len(self), 'cell')} of resolution {self.resolution})"

    def numbers(self, lonlat: FloatArray) -> IntArray:
        """Return for each place the number of its cell, or -1.

        Examples
        --------
        >>> import h3
        >>> H3Cells([h3.latlng_to_cell(48.86, 2.35, 8)]).numbers(np.array([[2.35, 48.86], [2.45, 48.86]]))
        array([ 0, -1])
        """
        import h3

        known = {cell: number for number, cell in enumerate(self.cells)}
        found = (known.get(h3.latlng_to_cell(lat, lon, self.resolution), -1) for lon, lat in lonlat.tolist())
        return np.fromiter(found, dtype=np.int64, count=len(lonlat))
