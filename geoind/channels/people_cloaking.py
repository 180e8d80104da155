"""Cloaking among people: blocks of a quadtree that hold enough of them, for comparison."""

import numpy as np

from geoind.arrays import FloatArray, IntArray, as_unit
from geoind.channels.channel import Channel
from geoind.channels.priors import Prior
from geoind.errors import InvalidInputError
from geoind.space.sites import Grid, Places

__all__ = ["people_cloaking", "smallest_blocks"]

SLACK = 1e-9
"""Rounding of sums of masses, relative to the share."""


def people_cloaking(people: Prior, *, share: float) -> Channel:
    """Return the channel that reports the centre of the smallest quadtree block that holds a share of the people.

    Spatial k-anonymity that adapts to the density, for comparison: the whole grid is divided into four as long as
    each person's quarter holds at least the share. It is deterministic, so no report hides which block it is:
    epsilon is infinite. And it does not compose: the common part of the blocks of two grids can be a single cell.
    (Once is too often, too: a report of a block with three dense quarters says that the person is in the fourth.)

    Parameters
    ----------
    people : Prior
        The density of people on a grid.
    share : float
        Share of all people in a block, for example 500 / 300_000.

    Examples
    --------
    >>> from geoind.evaluation import synthetic_city
    >>> cloak = people_cloaking(synthetic_city(16).prior, share=0.05)
    >>> cloak.epsilon
    inf
    """
    grid = people.sites
    if not isinstance(grid, Grid):
        raise InvalidInputError("people must be a prior on a Grid")
    share = as_unit(share, "share")
    blocks, targets = smallest_blocks(grid, people.mass, share)
    highest = np.minimum(blocks[:, :2] + blocks[:, 2:], (grid.columns, grid.rows))
    centres = (grid.x, grid.y) + grid.cell * (blocks[:, :2] + highest - 1) / 2
    # Two blocks of different sides may have the same centre at the border of the grid; their reports are equal.
    places, merged = np.unique(centres, axis=0, return_inverse=True)
    return Channel.deterministic(grid, Places(places), merged.ravel()[targets])


def smallest_blocks(grid: Grid, mass: FloatArray, share: float) -> tuple[IntArray, IntArray]:
    """Return quadtree blocks, by south-west corner and side in cells, and the number of the block of each cell."""
    depth = (max(grid.columns, grid.rows) - 1).bit_length()
    row, column = np.divmod(np.arange(len(grid)), grid.columns)
    size = np.full(len(grid), depth)
    for number in range(depth - 1, -1, -1):
        of_cell = (row >> number << depth) + (column >> number)
        enough = np.bincount(of_cell, weights=mass)[of_cell] >= share * (1 - SLACK)
        size[enough] = number
    # One number for each block: unique rows take ten times as long.
    keys = (((row >> size << size) << depth) + (column >> size << size)) * (depth + 1) + size
    _, first, targets = np.unique(keys, return_index=True, return_inverse=True)
    size = size[first]
    corner = (numbers[first] >> size << size for numbers in (column, row))
    return np.column_stack([*corner, 1 << size]), targets
