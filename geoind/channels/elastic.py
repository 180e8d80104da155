"""A metric that adapts to the density of people: a unit of distance is short in town and long in the country.

The definition is that of Chatzikokolakis, Palamidessi and Stronati (PETS 2015): every ball of a given level holds
enough people. The sites are the leaves of a quadtree whose cells are small where people are dense, and they are
the corners of triangles. Each triangle has a scale, the metres per unit of privacy loss, and the length of a path
is the sum of its metres over the scales of the triangles on its way. The scales are adjusted until each ball has
its people, which is measured for every ball.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from geoind.arrays import FloatArray, IntArray, as_positive, as_unit, frozen
from geoind.channels.priors import Prior
from geoind.errors import InvalidInputError, SolverError, plural
from geoind.space.graphs import MOST_SITES, GraphDistance
from geoind.space.sites import Grid, Places

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["SLACK", "Land", "elastic_distance", "fit", "within_limit"]

SIDES = [[0, 1], [1, 2], [2, 0]]
LEAF = 0.8
"""Largest side of a leaf, in units of privacy loss."""
FEWEST = 8
"""Leaves along the longer side of the region, at least."""
MOST_LEAVES = 100_000
"""Leaves of a mechanism, at most."""
ROUNDS = 8
"""Adjustments of the scale."""
STEP = 2.0
"""Largest factor of an adjustment, squared."""
MOST = 4.0
"""Largest factor of all adjustments together."""
SLACK = 1e-9
"""Rounding of sums of masses, relative to the share, and of lengths of paths."""
BLOCK = 256
"""Nodes, near to each other, whose balls are counted at once."""


def elastic_distance(people: Prior, *, share: float, level: float = math.log(2)) -> GraphDistance:
    """Return a metric between sites under which every ball of `level` holds at least `share` of the people.

    In units of privacy loss: use it with `epsilon=1`. Then the reports of a person, and of the people in a ball of
    this level, differ by a factor e^level at most: the noise is small in town, and grows in the country until it
    hides a person among as many. For channels and optimal mechanisms; `elastic_noise` is a mechanism of every
    place.

    Parameters
    ----------
    people : Prior
        The public density of people on a grid: `Prior.from_counts`, `Prior.from_polygons` with buildings,
        `Prior.from_raster`, or that of `estimate_population`. It must not be made from the data to protect. The
        people of a cell count at the closest site.
    share : float
        Share of all people, for example 500 / 300_000.
    level : float
        Privacy loss within which a person has this company; default: ln 2.

    Examples
    --------
    >>> from geoind import exponential, tight_epsilon
    >>> from geoind.evaluation import synthetic_city
    >>> city = synthetic_city(32).prior
    >>> town = elastic_distance(city, share=0.02)
    >>> noise = exponential(town.sites, town.sites, epsilon=1.0, distance=town)
    >>> tight_epsilon(noise, town) <= 1
    True
    >>> crowd = Prior.from_points(town.sites, city.sites.xy, weights=city.mass)
    >>> bool(((town.apart <= math.log(2)) @ crowd.mass).min() >= 0.02)
    True
    """
    land = fit(people, share=share, level=level, everywhere=False)
    _, apart = within_limit(land.graph(land.scale), np.arange(len(land.xy)), np.inf)
    # Rounded down, so that a ball contains the sites on its border.
    return GraphDistance(Places(land.xy), frozen(np.minimum(apart, apart.T) * (1 - SLACK)))


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


@dataclass(frozen=True, eq=False)
class Land:
    """Triangles over a region: (n, 2) corners in metres, (t, 3) their numbers, metres per unit of privacy loss."""

    xy: FloatArray
    corners: IntArray
    scale: FloatArray

    @cached_property
    def edges(self) -> tuple[IntArray, IntArray]:
        """The edges, as pairs of corners, and the numbers of the three edges of each triangle."""
        pairs = np.sort(self.corners[:, SIDES].reshape(-1, 2), axis=1)
        # One number for each pair: unique rows take ten times as long.
        keys, numbers = np.unique(pairs[:, 0] * len(self.xy) + pairs[:, 1], return_inverse=True)
        return np.column_stack(np.divmod(keys, len(self.xy))), numbers.reshape(-1, 3)

    @cached_property
    def sides(self) -> FloatArray:
        """The lengths of the sides of each triangle in metres, as many rows as triangles."""
        ends = self.xy[self.corners[:, SIDES]]
        return np.asarray(np.hypot(*(ends[:, :, 0] - ends[:, :, 1]).T).T)

    @cached_property
    def widest(self) -> FloatArray:
        """The cosine of the largest angle of each triangle."""
        a, b, c = np.sort(self.sides, axis=1).T
        return np.asarray((a**2 + b**2 - c**2) / (2 * a * b))

    @cached_property
    def farthest(self) -> FloatArray:
        """The most metres from a place of each triangle to its closest corner.

        The radius of the circle through the corners; where an angle is obtuse, that of a circle over the longest
        side covers the triangle.
        """
        return np.asarray(self.sides.max(axis=1) / (2 * np.sqrt(1 - np.maximum(self.widest, 0) ** 2)))

    def graph(self, scale: FloatArray) -> "csr_array":
        """Return the sides as a graph; the length of a side is the least of its triangles, metres over scale."""
        from scipy.sparse import csr_array

        edges, numbers = self.edges
        lengths = np.full(len(edges), np.inf)
        np.minimum.at(lengths, numbers, self.sides / scale[:, None])
        return csr_array(
            (np.tile(lengths, 2), (edges.T.ravel(), edges[:, ::-1].T.ravel())), shape=(len(self.xy),) * 2
        )

    def around(self, of_triangles: FloatArray) -> FloatArray:
        """Return for each corner the largest value of its triangles."""
        values = np.zeros(len(self.xy))
        np.maximum.at(values, self.corners, of_triangles[:, None])
        return values


def within_limit(graph: "csr_array", sources: IntArray, limit: float) -> tuple[IntArray, FloatArray]:
    """Return the nodes within a limit of any of some nodes, and the lengths of the shortest paths to these.

    Paths longer than the limit are infinite. The part of the graph that is near is cut out first, so the work does
    not grow with the graph if the sources are near to each other.
    """
    from scipy.sparse.csgraph import dijkstra

    nodes = np.flatnonzero(np.isfinite(dijkstra(graph, indices=sources, limit=limit, min_only=True)))
    near = graph[nodes][:, nodes]
    return nodes, np.asarray(dijkstra(near, indices=np.searchsorted(nodes, sources), limit=limit))


def fit(people: Prior, *, share: float, level: float, everywhere: bool) -> Land:
    """Return triangles with scales such that every ball of the level around a corner holds the share.

    With `everywhere`, around every place: balls are counted around the corners and the middles of the sides, and
    the level is lower by the largest distance of a place to the closest of these. The people of a cell of the grid
    count at the closest of these, too. Paths are along the sides of the triangles, halved, so a ball of the metric
    holds at least what is counted.
    """
    from scipy.spatial import Delaunay, cKDTree

    share, level = as_unit(share, "share"), as_positive(level, "level")
    grid = people.sites
    if not isinstance(grid, Grid) or min(grid.columns, grid.rows) < 2:
        raise InvalidInputError("people must be a prior on a Grid of at least 2 x 2 cells")
    of_cells = _first_radius(people.mass.reshape(grid.rows, grid.columns), share) * grid.cell / level
    xy = _leaves(grid, LEAF * of_cells)
    if len(xy) > (most := MOST_LEAVES if everywhere else MOST_SITES):
        raise InvalidInputError(
            f"the metric needs {plural(len(xy), 'site')}, more than {most:,}: "
            "choose a larger share or a smaller region"
        )
    corners = Delaunay(xy).simplices.astype(np.int64)
    first = of_cells.ravel()[grid.nearest(xy)][corners].mean(axis=1)
    nodes, parts = _halved(xy, corners) if everywhere else (xy, corners)
    # The parts of a triangle have its scale.
    of = np.arange(len(parts)) % len(corners)
    mass = np.bincount(Places(nodes).nearest(grid.xy), weights=people.mass, minlength=len(nodes)).astype(float)
    net, balls = Land(nodes, parts, first), _Balls(mass, share, np.asarray(cKDTree(nodes).indices, np.int64))
    farthest = net.farthest * everywhere
    least = np.maximum(first / MOST, grid.cell)
    np.maximum.at(least, of, 2 * farthest / level)

    def counted(scale: FloatArray) -> tuple["csr_array", FloatArray, FloatArray]:
        """Return the graph, the level of each ball without the way of a place to its node, and who is in it."""
        graph, within = net.graph(scale[of]), level - net.around(farthest / scale[of])
        return graph, within, balls.held(graph, within)

    scale = np.maximum(first, least)
    for _ in range(ROUNDS):
        _, _, held = counted(scale)
        change = np.sqrt(share / np.maximum(held, share / STEP))[parts].mean(axis=1)
        scale = scale * np.bincount(of, weights=change) / np.bincount(of)
        scale = np.clip(scale, least, np.maximum(first * MOST, least))
    # A ball with too few people becomes one with enough if all of its triangles shrink by the missing factor.
    missing = np.ones(len(corners))
    np.maximum.at(missing, of, balls.missing(*counted(scale))[parts].max(axis=1))
    scale = scale * missing * (1 + SLACK)
    if not counted(scale)[2].min() >= share * (1 - SLACK):
        raise SolverError("a ball of the elastic distance holds too few people")
    return Land(xy, corners, scale)


class _Balls(NamedTuple):
    """Shares of people at nodes, the share that a ball needs, and the nodes in an order that keeps neighbours."""

    mass: FloatArray
    share: float
    order: IntArray

    def held(self, graph: "csr_array", within: FloatArray) -> FloatArray:
        """Return the share of the people within a level of its own of each node."""
        held = np.empty(len(self.mass))
        for block in _blocks(self.order):
            nodes, apart = within_limit(graph, block, float(within[block].max()) * (1 + SLACK))
            held[block] = (apart <= within[block, None] * (1 + SLACK)) @ self.mass[nodes]
        return held

    def missing(self, graph: "csr_array", within: FloatArray, held: FloatArray) -> FloatArray:
        """Return for each node the largest factor that misses a ball around it or that contains it, at least 1."""
        factor, limit = np.ones(len(self.mass)), float(within.max())
        poor = self.order[held[self.order] < self.share]
        while poor.size:
            limit, left = 2 * limit, []
            for block in _blocks(poor):
                nodes, apart = within_limit(graph, block, limit)
                order = np.argsort(apart, axis=1)
                sums = np.cumsum(self.mass[nodes][order], axis=1)
                enough = sums >= self.share * (1 - SLACK)
                rich = enough.any(axis=1)
                needed = np.take_along_axis(apart, order, axis=1)[np.arange(len(block)), enough.argmax(axis=1)]
                # A ball may have enough only by what is beyond the limit.
                rich &= np.isfinite(needed)
                left.append(block[~rich])
                lacking = (needed / within[block])[rich, None]
                grown = np.where(apart[rich] <= needed[rich, None], lacking, 1).max(axis=0, initial=1)
                factor[nodes] = np.maximum(factor[nodes], grown)
            poor = np.concatenate(left)
        return factor


def _blocks(numbers: IntArray) -> list[IntArray]:
    return np.array_split(numbers, -(-len(numbers) // BLOCK)) if len(numbers) else []


def _halved(xy: FloatArray, corners: IntArray) -> tuple[FloatArray, IntArray]:
    """Return the corners and the middles of the sides, and four parts of each triangle: first all first ones."""
    edges, numbers = Land(xy, corners, np.empty(0)).edges
    a, b, c = corners.T
    ab, bc, ca = (numbers + len(xy)).T
    parts = ((a, ab, ca), (b, bc, ab), (c, ca, bc), (ab, bc, ca))
    return np.concatenate([xy, xy[edges].mean(axis=1)]), np.concatenate([np.column_stack(part) for part in parts])


def _leaves(grid: Grid, largest_side: FloatArray) -> FloatArray:
    """Return the centres of the leaves of a quadtree: blocks of cells with a side of at most that of their cells.

    Centres of every second row are moved by half a leaf, so that the triangles between them have no right angles.
    """
    largest = max(grid.columns, grid.rows) // FEWEST
    levels = max(0, largest.bit_length() - 1)
    whole = 1 << levels
    rows, columns = (-(-side // whole) * whole for side in largest_side.shape)
    smallest = np.full((rows, columns), np.inf)
    smallest[: grid.rows, : grid.columns] = largest_side
    pyramid = [smallest]
    for _ in range(levels):
        quarters = pyramid[-1].reshape(len(pyramid[-1]) // 2, 2, -1, 2)
        pyramid.append(quarters.min(axis=(1, 3)))
    centres, open_blocks = [], np.isfinite(pyramid[-1])
    for number in range(levels, -1, -1):
        side = 1 << number
        is_leaf = open_blocks & ((side * grid.cell <= pyramid[number]) | (number == 0))
        # A block at the border may have cells outside the grid.
        low = np.argwhere(is_leaf)[:, ::-1] * side
        high = np.minimum(low + side, (grid.columns, grid.rows))
        centre = (low + high - 1) / 2
        centre[:, 0] += side * np.where(low[:, 1] // side % 2, 0.25, -0.25)
        # The site of a block at the border is on the border, so that triangles of sites cover the region.
        centre = np.where(low == 0, -0.5, centre)
        centres.append(np.where(high == (grid.columns, grid.rows), high - 0.5, centre))
        if number:
            split = (open_blocks & ~is_leaf).repeat(2, axis=0).repeat(2, axis=1)
            open_blocks = split & np.isfinite(pyramid[number - 1])
    return np.array([grid.x, grid.y]) + grid.cell * np.concatenate(centres)
