"""A metric that adapts to the density of people: a unit of distance is short in town and long in the country.

The definition is that of Chatzikokolakis, Palamidessi and Stronati (PETS 2015): every ball of a given level holds
enough people. The sites are the leaves of a quadtree whose cells are small where people are dense. Neighbours are
joined by edges, and an edge of n metres has the length n / scale, where the scale of a site is the metres per unit
of privacy loss. The scale is adjusted until each ball has its people, which is measured for every ball.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from geoind.arrays import FloatArray, IntArray, as_positive, as_unit, frozen
from geoind.channels.channel import Channel
from geoind.channels.priors import Prior
from geoind.errors import InvalidInputError, SolverError, plural
from geoind.space.graphs import MOST_SITES, GraphDistance
from geoind.space.sites import Grid, Places

__all__ = ["ElasticDistance", "elastic_distance", "people_cloaking"]

LEAF = 0.8
"""Largest side of a leaf, in units of privacy loss."""
FEWEST = 8
"""Leaves along the longer side of the region, at least."""
ROUNDS = 5
"""Adjustments of the scale."""
STEP = 2.0
"""Largest factor of an adjustment, squared."""
SLACK = 1e-9
"""Rounding of sums of masses, relative to the share."""
MOST = 4.0
"""Largest factor of all adjustments together."""


@dataclass(frozen=True, eq=False, repr=False)
class ElasticDistance(GraphDistance):
    """A distance under which every ball of a level holds a share of the people, in units of privacy loss.

    Attributes
    ----------
    sites, apart
        The sites and their distances, as of `GraphDistance`.
    people : Prior
        The people, by site.
    share, level : float
        Every ball of this level around a site holds at least this share of the people.
    scale : (n,) array
        Metres per unit of privacy loss around each site.

    Examples
    --------
    >>> from geoind.evaluation import synthetic_city
    >>> town = elastic_distance(synthetic_city(32).prior, share=0.02)
    >>> bool(town.held(town.level).min() >= 0.02)
    True
    """

    people: Prior
    share: float
    level: float
    scale: FloatArray

    def held(self, level: float) -> FloatArray:
        """Return the share of the people in the ball of a level around each site.

        Examples
        --------
        >>> from geoind.evaluation import synthetic_city
        >>> elastic_distance(synthetic_city(32).prior, share=0.02).held(1000.0).min().round(9)
        np.float64(1.0)
        """
        return _held(self.apart, self.people.mass, as_positive(level, "level"))


def elastic_distance(people: Prior, *, share: float, level: float = math.log(2)) -> ElasticDistance:
    """Return a metric under which every ball of `level` holds at least `share` of the people.

    In units of privacy loss: use it with `epsilon=1`. Then the reports of a person, and of the people in a ball of
    this level, differ by a factor e^level at most: the noise is small in town, and grows in the country until it
    hides a person among as many.

    Parameters
    ----------
    people : Prior
        The public density of people on a grid: `Prior.from_counts`, `Prior.from_polygons` with buildings,
        `Prior.from_raster`, or that of `estimate_population`. It must not be made from the data to protect.
    share : float
        Share of all people, for example 500 / 300_000.
    level : float
        Privacy loss within which a person has this company; default: ln 2.

    Examples
    --------
    >>> from geoind import exponential, tight_epsilon
    >>> from geoind.evaluation import synthetic_city
    >>> town = elastic_distance(synthetic_city(32).prior, share=0.02)
    >>> noise = exponential(town.sites, town.sites, epsilon=1.0, distance=town)
    >>> tight_epsilon(noise, town) <= 1
    True
    """
    grid = people.sites
    if not isinstance(grid, Grid) or min(grid.columns, grid.rows) < 2:
        raise InvalidInputError("people must be a prior on a Grid of at least 2 x 2 cells")
    share, level = as_unit(share, "share"), as_positive(level, "level")
    scale_of_cells = _first_radius(people.mass.reshape(grid.rows, grid.columns), share) * grid.cell / level
    sites = Places(_leaves(grid, scale_of_cells))
    mass = Prior.from_points(sites, grid.xy, weights=people.mass)
    edges, metres = _neighbours(sites)
    first = scale_of_cells.ravel()[grid.nearest(sites.xy)]
    scale = first
    for _ in range(ROUNDS):
        held = _held(_apart(len(sites), edges, _lengths(metres, scale, edges), level), mass.mass, level)
        change = np.sqrt(share / np.maximum(held, share / STEP))
        scale = np.clip(scale * change, np.maximum(first / MOST, grid.cell), first * MOST)
    apart = _apart(len(sites), edges, _lengths(metres, scale, edges))
    # A ball with too few people becomes one with enough if all of it shrinks by the missing factor.
    needed = np.maximum(_levels(apart, mass.mass, share) * (1 + 1e-9), level)
    scale = scale * np.where(apart <= needed, needed / level, 1).max(axis=1)
    # Rounded down, so that a ball contains the sites on its border.
    apart = _apart(len(sites), edges, _lengths(metres, scale, edges)) * (1 - 1e-12)
    found = ElasticDistance(sites, frozen(apart), mass, share, level, frozen(scale))
    if not found.held(level).min() >= share * (1 - SLACK):
        raise SolverError("a ball of the elastic distance holds too few people")
    return found


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
    depth = (max(grid.columns, grid.rows) - 1).bit_length()
    cell = np.column_stack(np.divmod(np.arange(len(grid)), grid.columns)[::-1])
    # South-west corner and side of the block of each cell, in cells.
    block = np.column_stack([np.zeros_like(cell), np.full(len(grid), 1 << depth)])
    for number in range(depth - 1, -1, -1):
        _, of_cell = np.unique(cell >> number, axis=0, return_inverse=True)
        enough = np.bincount(of_cell.ravel(), weights=people.mass)[of_cell.ravel()] >= share * (1 - SLACK)
        quarter = np.column_stack([cell >> number << number, np.full(len(grid), 1 << number)])
        block = np.where(enough[:, None], quarter, block)
    blocks, targets = np.unique(block, axis=0, return_inverse=True)
    highest = np.minimum(blocks[:, :2] + blocks[:, 2:], (grid.columns, grid.rows))
    centres = (grid.x, grid.y) + grid.cell * (blocks[:, :2] + highest - 1) / 2
    # Two blocks of different sides may have the same centre at the border of the grid; their reports are equal.
    places, merged = np.unique(centres, axis=0, return_inverse=True)
    return Channel.deterministic(grid, Places(places), merged.ravel()[targets.ravel()])


def _first_radius(mass: FloatArray, share: float) -> FloatArray:
    """Return for each cell the radius in cells of a disc as large as the least square that holds the share."""
    rows, columns = mass.shape
    total = np.zeros((rows + 1, columns + 1))
    total[1:, 1:] = mass.cumsum(axis=0).cumsum(axis=1)
    row, column = np.ogrid[:rows, :columns]

    def enough(half: IntArray) -> npt.NDArray[np.bool_]:
        top, bottom = np.minimum(row + half + 1, rows), np.maximum(row - half, 0)
        right, left = np.minimum(column + half + 1, columns), np.maximum(column - half, 0)
        inside = total[top, right] - total[bottom, right] - total[top, left] + total[bottom, left]
        return np.asarray(inside >= share)

    low, high = np.full(mass.shape, -1), np.full(mass.shape, max(mass.shape))
    while (high - low).max() > 1:
        middle = (low + high + 1) // 2  # never -1, and nothing changes where the search has ended
        found = enough(middle)
        low, high = np.where(found, low, middle), np.where(found, middle, high)
    return np.asarray((2 * high + 1) / math.sqrt(math.pi))


def _leaves(grid: Grid, scale: FloatArray) -> FloatArray:
    """Return the centres of the leaves of a quadtree: blocks of cells with a side of at most LEAF units."""
    largest = max(grid.columns, grid.rows) // FEWEST
    levels = max(0, largest.bit_length() - 1)
    whole = 1 << levels
    rows, columns = (-(-side // whole) * whole for side in scale.shape)
    smallest = np.full((rows, columns), np.inf)
    smallest[: grid.rows, : grid.columns] = scale
    pyramid = [smallest]
    for _ in range(levels):
        quarters = pyramid[-1].reshape(len(pyramid[-1]) // 2, 2, -1, 2)
        pyramid.append(quarters.min(axis=(1, 3)))
    centres, open_blocks = [], np.isfinite(pyramid[-1])
    for number in range(levels, -1, -1):
        side = 1 << number
        is_leaf = open_blocks & ((side * grid.cell <= LEAF * pyramid[number]) | (number == 0))
        # A block at the border may have cells outside the grid.
        low = np.argwhere(is_leaf)[:, ::-1] * side
        high = np.minimum(low + side, (grid.columns, grid.rows))
        centre = (low + high - 1) / 2
        # The site of a block at the border is on the border, so that triangles of sites cover the region.
        centre = np.where(low == 0, -0.5, centre)
        centres.append(np.where(high == (grid.columns, grid.rows), high - 0.5, centre))
        if number:
            split = (open_blocks & ~is_leaf).repeat(2, axis=0).repeat(2, axis=1)
            open_blocks = split & np.isfinite(pyramid[number - 1])
    found = np.concatenate(centres)
    if len(found) > MOST_SITES:
        raise InvalidInputError(
            f"the metric needs {plural(len(found), 'site')}, more than {MOST_SITES:,}: "
            "choose a larger share or a smaller region"
        )
    return np.array([grid.x, grid.y]) + grid.cell * found


def _neighbours(sites: Places) -> tuple[IntArray, FloatArray]:
    """Return the edges of the Delaunay triangulation and their lengths in metres."""
    from scipy.spatial import Delaunay

    corners = Delaunay(sites.xy).simplices.astype(np.int64)
    edges = np.unique(np.sort(corners[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1), axis=0)
    return edges, np.hypot(*(sites.xy[edges[:, 0]] - sites.xy[edges[:, 1]]).T)


def _lengths(metres: FloatArray, scale: FloatArray, edges: IntArray) -> FloatArray:
    """Return the lengths of the edges in units of privacy loss, half of each by the scale of one end."""
    return np.asarray(metres * (1 / scale[edges]).mean(axis=1))


def _apart(n: int, edges: IntArray, lengths: FloatArray, limit: float = np.inf) -> FloatArray:
    """Return the lengths of shortest paths, infinite beyond the limit."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    graph = csr_array((lengths, (edges[:, 0], edges[:, 1])), shape=(n, n))
    apart = dijkstra(graph, directed=False, limit=limit * (1 + 1e-9))
    return np.asarray(np.minimum(apart, apart.T))


def _held(apart: FloatArray, mass: FloatArray, level: float) -> FloatArray:
    return np.asarray((apart <= level).astype(np.float64) @ mass)


def _levels(apart: FloatArray, mass: FloatArray, share: float) -> FloatArray:
    """Return for each site the least level whose ball holds the share."""
    order = np.argsort(apart, axis=1)
    within = np.cumsum(mass[order], axis=1)
    # The sum of all masses may be rounded to just below the share.
    first = np.minimum((within < share).sum(axis=1), len(mass) - 1)
    return np.asarray(np.take_along_axis(apart, order, axis=1)[np.arange(len(mass)), first])
