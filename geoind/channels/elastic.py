"""A metric that adapts to the density of people: a unit of distance is short in town and long in the country.

The definition is that of Chatzikokolakis, Palamidessi and Stronati (PETS 2015): every ball of a given level holds
enough people. The sites are the leaves of a quadtree whose cells are small where people are dense, and they are
the corners of triangles. Each triangle has a scale, the metres per unit of privacy loss, and the length of a path
is the sum of its metres over the scales of the triangles on its way. The scales are adjusted until each ball has
its people, which is measured for every ball.
"""

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt

from geoind.arrays import ArrayLike, FloatArray, IntArray, as_points, as_positive, as_unit, frozen
from geoind.channels.channel import Channel
from geoind.channels.priors import Prior
from geoind.channels.rows import choose, choose_each, choose_exactly
from geoind.distances import euclidean
from geoind.errors import InvalidInputError, SolverError, plural
from geoind.mechanisms.protocol import Space
from geoind.randomness import RandomnessLike, Words, as_randomness
from geoind.space.graphs import MOST_SITES, GraphDistance
from geoind.space.sites import Grid, Places

if TYPE_CHECKING:
    from scipy.sparse import csr_array
    from scipy.spatial import Delaunay

__all__ = ["ElasticNoise", "elastic_distance", "elastic_noise", "people_cloaking"]

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
FAR = 10.0
"""The tail of reports that are as likely as each other has the weight of 1 / FAR square units."""
TICKS = 1 << 20
"""Lengths are multiples of 1 / TICKS, so that their sums are exact."""
EXPONENTS = (0.55, 0.6, 0.65, 0.7, 0.75, 0.8)
"""Exponents that are tried, larger than 1/2, which always keeps the promise."""
STEPS = 1 << 12
"""More pairs of further words than a step of a draw takes."""
TILE = 128
"""Triangles whose rows are computed together."""
KEPT = 1 << 25
"""Weights of rows that are kept, each with its distance: 512 MB."""
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
    land = _fit(people, share=share, level=level, everywhere=False)
    _, apart = _within(land.graph(land.scale), np.arange(len(land.xy)), np.inf)
    # Rounded down, so that a ball contains the sites on its border.
    return GraphDistance(Places(land.xy), frozen(np.minimum(apart, apart.T) * (1 - SLACK)))


@dataclass(frozen=True, eq=False, repr=False)
class ElasticNoise:
    """A mechanism of every place of a region whose noise adapts to the density of people; see `elastic_noise`.

    *Promise.* Each triangle T of the region has a scale s_T, the metres per unit of privacy loss. The elastic
    distance of two places is the least sum of (metres in T) / s_T over all paths between them. For all places x, y
    and all reports z, |ln K(x, z) - ln K(y, z)| <= elastic distance of x and y. And every ball of the `level`,
    around every place, holds at least the `share` of the people, who count at the closest of the nodes at which
    balls are counted.

    *Mechanism.* The reports are the corners of the triangles. D(v, z) is the length of the shortest path between
    corners along the sides of triangles, where a side has the length

        min over its triangles T of  metres * cos(w_T / 2) / s_T,     w_T the largest angle of T,

    and D_L = min(D, L), with L = 2 ln(10 W), W the sum of all w_z. In a triangle with the corners v_i a place x
    with the barycentric coordinates b_i has

        K(x, z) = w_z exp(-c g_z(x)) / N(x),    g_z(x) = sum_i b_i D_L(v_i, z),

    where N(x) makes the sum 1 and w_z is the area around z in square units. So beyond L all reports z are equally
    likely for their area: the tail is a part of the metric, and nothing is cut off.

    *Proof.* D_L is a metric: the least of a metric and a constant is one. So along a side of T, g_z changes by the
    side's length at most. A function that is linear in T and changes by at most a times the metres along two sides
    with the angle w between them has a slope of at most a / cos(w / 2); for three sides the largest slope is
    attained where it is so for two of them. So the slope G_z of g_z in T, a vector, is at most 1 / s_T long. ln K
    has the slope -c (G_z - E_x G), where E_x is the mean over the reports of x. This is at most 1 / s_T for
    c = 1/2. A larger c keeps the promise if c (|G_z - E_v G| + c r_T / s_T^2) <= 1 / s_T for all triangles, their
    corners v and all z, where r_T is the most metres from a place of T to its closest corner: the slope of E_x G
    is c times a covariance of vectors no longer than 1 / s_T. The largest c of a list for which this holds is
    taken. ln K is continuous, so it changes by the elastic distance of two places at most.

    Lengths of sides are rounded down to multiples of 2^-20, so D is exact; the barycentric coordinates and the
    probability with which a proposal is accepted are rounded, which adds less than 1e-11.

    Attributes
    ----------
    sites : Places
        The corners of the triangles: the reports.
    share, level : float
        Every ball of this level holds this share of the people.
    epsilon : float
        Privacy loss per metre, the largest of all places: 1 over the least scale.

    Examples
    --------
    >>> from geoind.evaluation import synthetic_city
    >>> noise = elastic_noise(synthetic_city(32).prior, share=0.02)
    >>> noise.sample([[0.0, 100.0]]).shape
    (1, 2)
    """

    share: float
    level: float
    _grid: Grid
    _land: "_Land"

    space: ClassVar[Space] = "xy"

    def __repr__(self) -> str:
        return f"ElasticNoise({plural(len(self.sites), 'site')}, share={self.share:.3g}, level={self.level:.3g})"

    def __reduce__(self) -> tuple[type["ElasticNoise"], tuple[object, ...]]:
        # Without the rows that are kept: a worker computes its own.
        return ElasticNoise, (self.share, self.level, self._grid, self._land)

    @cached_property
    def sites(self) -> Places:
        """The corners of the triangles, which are the reports."""
        return Places(self._land.xy)

    @property
    def epsilon(self) -> float:
        """Privacy loss per metre between any two places: that of the densest place."""
        return float(1 / self._land.scale.min())

    def rates_at(self, points: ArrayLike) -> FloatArray:
        """Return the privacy loss per metre around each of the (n, 2) points: 1 over the scale of its triangle.

        Examples
        --------
        >>> from geoind.evaluation import synthetic_city
        >>> noise = elastic_noise(synthetic_city(32).prior, share=0.02)
        >>> bool(noise.rates_at([[0.0, 0.0]])[0] <= noise.epsilon)
        True
        """
        return np.asarray(1 / self._land.scale[self._located(as_points(points))[0]])

    def probabilities(self, points: ArrayLike) -> FloatArray:
        """Return the probability of each report, (n, len(sites)), at each of the (n, 2) points.

        Examples
        --------
        >>> from geoind.evaluation import synthetic_city
        >>> noise = elastic_noise(synthetic_city(32).prior, share=0.02)
        >>> noise.probabilities([[0.0, 0.0]]).sum().round(12)
        np.float64(1.0)
        """
        triangles, weights = self._located(as_points(points))
        corners = self._land.corners[triangles]
        needed, number = np.unique(corners, return_inverse=True)
        apart = np.full((len(needed), len(self.sites)), self._limit)
        if len(needed):
            nodes, near = _within(self._graph, needed, self._limit)
            apart[:, nodes] = np.minimum(near, self._limit)
        mean = np.einsum("nc,ncz->nz", weights, apart[number.reshape(-1, 3)])
        odds = self._areas * np.exp(-self._exponent * mean)
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    def reach(self, confidence: float) -> float:
        """Return the metres within which a report lies of any truth in the region with at least this probability.

        From a truth to the closest corner of its triangle it is no farther than `farthest`, and its reports differ
        from those of the corner by a known factor at most.
        """
        outside = 1 - as_unit(confidence, "confidence")
        west, south, east, north = self._grid.bounds
        border = np.array([[west, south], [west, north], [east, south], [east, north]])
        land, largest = self._land, 0.0
        away = land.around(land.farthest)
        allowed = outside * np.exp(-land.around(land.farthest / land.scale))
        for number in range(self._tile_of.max() + 1):
            tile = self._tile(number)
            metres = euclidean(land.xy[tile.corners], land.xy[tile.nodes])
            order = np.argsort(metres, axis=1)
            # The tail, which is the first entry, counts as outside.
            inside = np.cumsum(np.take_along_axis(tile.entries[:, 1:], order, axis=1), axis=1) / tile.sums[:, None]
            found = inside >= 1 - allowed[tile.corners, None]
            radius = np.take_along_axis(metres, order, axis=1)[np.arange(len(order)), found.argmax(axis=1)]
            farthest = euclidean(land.xy[tile.corners], border).max(axis=1)
            radius = np.where(found.any(axis=1), radius, farthest)
            largest = max(largest, float((radius + away[tile.corners]).max()))
        return largest

    def check_inside(self, points: FloatArray) -> None:
        """Raise an error for truths outside the region."""
        self._grid.check_inside(points)

    def sample(self, points: ArrayLike, *, rng: RandomnessLike = None) -> FloatArray:
        """Return one report for each of the (n, 2) points; one outside counts as the closest place of the region.

        A corner is chosen with probabilities proportional to b_i N(v_i), and z from its row; z is accepted with
        the ratio of the geometric to the arithmetic mean of the corners' exp(-c D_L(v_i, z)), weighted by b_i.
        The ratio is at most 1, and accepted reports have the law K(x, .).
        """
        truth = as_points(points)
        source = as_randomness(rng, len(truth))
        triangles, weights = self._located(truth)
        words = source.words(truth, 4, self._purpose)
        result = np.empty(len(truth), dtype=np.int64)
        # One tile after the other, with all attempts: its rows may not be kept.
        for left in _groups(self._tile_of[triangles]):
            drawn = words[left]
            for attempt in count():

                def further(place: int, step: int, number: int) -> tuple[int, int]:
                    row = int(left[place])  # noqa: B023
                    return source.further(row, truth[row], self._purpose, (4 * attempt + step) * STEPS + number)  # noqa: B023

                reports, accepted = self._proposed(triangles[left], weights[left], drawn, further)
                result[left[accepted]] = reports[accepted]
                left = left[~accepted]
                if not left.size:
                    break
                again = [[*further(place, 0, 0), *further(place, 0, 1)] for place in range(len(left))]
                drawn = np.array(again, dtype=np.uint64)
        return self.sites.xy[result]

    def _proposed(
        self, triangles: IntArray, weights: FloatArray, words: Words, further: "_Further"
    ) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        """Return a proposal for the place of each row, and whether it is accepted."""
        reports, ratios = np.empty(len(words), dtype=np.int64), np.empty(len(words))
        tiles = self._tile_of[triangles]
        for rows in _groups(tiles):
            tile = self._tile(int(tiles[rows[0]]))
            corners = np.searchsorted(tile.corners, self._land.corners[triangles[rows]])
            odds = weights[rows] * tile.sums[corners]
            odds /= odds.sum(axis=1, keepdims=True)
            which, undecided = choose_each(odds, words[rows, 0])
            for k in undecided.tolist():
                more = partial(further, int(rows[k]), 1)
                which[k] = choose_exactly(odds[k], int(words[rows[k], 0]), more)
            start = corners[np.arange(len(rows)), which]
            entry = np.empty(len(rows), dtype=np.int64)
            for same in _groups(start):
                row = tile.entries[start[same[0]]]
                sums = np.cumsum(row)
                entry[same], undecided = choose(sums / sums[-1], words[rows[same], 1])
                for k in same[undecided].tolist():
                    entry[k] = choose_exactly(row, int(words[rows[k], 1]), partial(further, int(rows[k]), 2))
            found = tile.nodes[np.maximum(entry - 1, 0)]
            if (tail := np.flatnonzero(entry == 0)).size:
                sums = np.cumsum(self._areas)
                found[tail], undecided = choose(sums / sums[-1], words[rows[tail], 2])
                for k in tail[undecided].tolist():
                    found[k] = choose_exactly(
                        self._areas, int(words[rows[k], 2]), partial(further, int(rows[k]), 3)
                    )
            column = np.minimum(np.searchsorted(tile.nodes, found), len(tile.nodes) - 1)
            near = (tile.nodes[column] == found)[:, None]
            power = -self._exponent * np.where(near, tile.apart[corners, column[:, None]], self._limit)
            part = weights[rows]
            reports[rows] = found
            ratios[rows] = np.exp((part * power).sum(axis=1)) / (part * np.exp(power)).sum(axis=1)
        return reports, (words[:, 3] >> np.uint64(11)).astype(np.float64) * 2.0**-53 < ratios

    def _located(self, points: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the triangle of each point, or of the closest point of the region, and the coordinates in it."""
        west, south, east, north = self._grid.bounds
        points = np.clip(points, (west, south), (east, north))
        if not len(points):
            return np.empty(0, np.int64), np.empty((0, 3))
        found = self._triangles.find_simplex(points)
        if (border := np.flatnonzero(found < 0)).size:
            # The tolerance is for points on the border, which are rounded.
            found[border] = self._triangles.find_simplex(points[border], tol=1e-9)
        if (found < 0).any():
            raise InvalidInputError(f"row {np.argmin(found)} is in no triangle of the region")
        transform = self._triangles.transform[found]
        two = np.einsum("nij,nj->ni", transform[:, :2], points - transform[:, 2])
        weights = np.clip(np.column_stack([two, 1 - two.sum(axis=1)]), 0, 1)
        return found.astype(np.int64), weights / weights.sum(axis=1, keepdims=True)

    @cached_property
    def _triangles(self) -> "Delaunay":
        from scipy.spatial import Delaunay

        return Delaunay(self._land.xy)

    @cached_property
    def _areas(self) -> FloatArray:
        """The area around each corner, in square units."""
        a, b, c = self._land.xy[self._land.corners].transpose(1, 2, 0)
        area = np.abs((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])) / 2
        third = np.repeat(area / self._land.scale**2 / 3, 3)
        areas = np.bincount(self._land.corners.ravel(), weights=third, minlength=len(self._land.xy))
        return areas.astype(np.float64)

    @cached_property
    def _limit(self) -> float:
        """The distance at which the metric ends, a multiple of 2^-20."""
        return math.ceil(max(2 * math.log(FAR * self._areas.sum()), 1) * TICKS) / TICKS

    @cached_property
    def _graph(self) -> "csr_array":
        """The sides of the triangles, so short that no slope is too large, as multiples of 2^-20."""
        graph = self._land.graph(self._land.scale / np.sqrt((1 + self._land.widest) / 2))
        graph.data = np.floor(graph.data * (1 - SLACK) * TICKS) / TICKS
        if not graph.data.all():
            raise InvalidInputError(f"level is too small: {self.level!r}")
        return graph

    @cached_property
    def _tile_of(self) -> IntArray:
        """The number of the tile of each triangle: tiles are triangles that are near to each other."""
        from scipy.spatial import cKDTree

        order = cKDTree(self._land.xy[self._land.corners].mean(axis=1)).indices
        tiles = np.empty(len(order), dtype=np.int64)
        tiles[order] = np.arange(len(order)) // TILE
        return tiles

    def _near(self, number: int) -> tuple[IntArray, IntArray, FloatArray]:
        """Return the corners of a tile, the sites within the limit of one of them, and their distances."""
        corners = np.unique(self._land.corners[self._tile_of == number])
        nodes, apart = _within(self._graph, corners, self._limit)
        return corners, nodes, np.minimum(apart, self._limit)

    @cached_property
    def _exponent(self) -> float:
        """The largest exponent of the list for which the promise is proven at every place."""
        possible, land = list(EXPONENTS), self._land
        two = self._triangles.transform[:, :2]
        # The slopes of the barycentric coordinates, in units.
        slopes = np.concatenate([two, -two.sum(axis=1, keepdims=True)], axis=1) * land.scale[:, None, None]
        for number in range(self._tile_of.max() + 1):
            corners, nodes, apart = self._near(number)
            mine = np.flatnonzero(self._tile_of == number)
            own = np.searchsorted(corners, land.corners[mine])
            slope = np.einsum("tcd,tcz->dtz", slopes[mine], apart[own])
            away = (land.farthest / land.scale)[mine]
            area = self._areas[nodes]
            rest = self._areas.sum() - area.sum()
            for exponent in possible.copy():
                law = area * np.exp(-exponent * apart)
                law /= law.sum(axis=1, keepdims=True) + rest * math.exp(-exponent * self._limit)
                for corner in own.T:
                    mean = np.einsum("dtz,tz->dt", slope, law[corner])
                    # Sites that are not near have the slope 0.
                    steepest = np.hypot(*mean)
                    np.maximum(steepest, np.hypot(*(slope - mean[:, :, None])).max(axis=1), out=steepest)
                    if not (exponent * (steepest + exponent * away) <= 1 - SLACK).all():
                        possible.remove(exponent)
                        break
        return max(possible, default=0.5)

    @cached_property
    def _tiles(self) -> "dict[int, _Tile]":
        return {}

    def _tile(self, number: int) -> "_Tile":
        """Return the rows of the corners of a tile, which are kept as long as there is room."""
        if (known := self._tiles.get(number)) is not None:
            return known
        corners, nodes, apart = self._near(number)
        least, area = math.exp(-self._exponent * self._limit), self._areas
        entries = np.empty((len(corners), len(nodes) + 1))
        entries[:, 0] = area.sum() * least
        # The tail is for all sites, so the near ones have what is left of their weight.
        np.multiply(area[nodes], np.maximum(np.exp(-self._exponent * apart) - least, 0), out=entries[:, 1:])
        tile = _Tile(corners, nodes, apart, entries, np.cumsum(entries, axis=1)[:, -1])
        # Other threads may add tiles meanwhile.
        for oldest, kept in list(self._tiles.items()):
            if sum(other.entries.size for other in list(self._tiles.values())) <= KEPT - kept.entries.size:
                break
            self._tiles.pop(oldest, None)
        self._tiles[number] = tile
        return tile

    @cached_property
    def _purpose(self) -> str:
        """The name of the keyed random words: a digest of the triangles and their scales."""
        digest = hashlib.blake2b(self._land.xy.tobytes() + self._land.scale.tobytes(), digest_size=16)
        return f"ElasticNoise {digest.hexdigest()}"


class _Tile(NamedTuple):
    """Some corners, the sites near one of them, their distances, and rows: the tail, then a weight per site."""

    corners: IntArray
    nodes: IntArray
    apart: FloatArray
    entries: FloatArray
    sums: FloatArray


class _Further(Protocol):
    """From a place, a step of its draw and a number to two more words."""

    def __call__(self, place: int, step: int, number: int, /) -> tuple[int, int]: ...


def _groups(numbers: IntArray) -> list[IntArray]:
    """Return the places of equal numbers, together."""
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1) if len(numbers) else []


def elastic_noise(people: Prior, *, share: float, level: float = math.log(2)) -> ElasticNoise:
    """Return a mechanism of every place of a region: small noise in town, large noise in the country.

    Around every place of the grid, the people within a privacy loss of `level` are at least `share` of all. What
    is promised, and its proof: `ElasticNoise`. It takes metres; use it with `Projected`. The region may have a
    million cells.

    Parameters
    ----------
    people : Prior
        The public density of people on a grid, as of `elastic_distance`.
    share : float
        Share of all people, for example 500 / 300_000.
    level : float
        Privacy loss within which a person has this company; default: ln 2.

    Examples
    --------
    >>> from geoind import Projected, obfuscate
    >>> from geoind.evaluation import synthetic_city
    >>> city = synthetic_city(32)
    >>> noise = Projected(elastic_noise(city.prior, share=0.02), city.projection)
    >>> lon, lat = city.projection.to_lonlat([[0.0, 100.0]])[0]
    >>> report = obfuscate(lon=lon, lat=lat, mechanism=noise)
    """
    land = _fit(people, share=share, level=level, everywhere=True)
    noise = ElasticNoise(float(share), float(level), cast("Grid", people.sites), land)
    _ = noise._exponent  # takes a while, and not at the first report
    return noise


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
    blocks, targets = _smallest_blocks(grid, people.mass, share)
    highest = np.minimum(blocks[:, :2] + blocks[:, 2:], (grid.columns, grid.rows))
    centres = (grid.x, grid.y) + grid.cell * (blocks[:, :2] + highest - 1) / 2
    # Two blocks of different sides may have the same centre at the border of the grid; their reports are equal.
    places, merged = np.unique(centres, axis=0, return_inverse=True)
    return Channel.deterministic(grid, Places(places), merged.ravel()[targets])


def _smallest_blocks(grid: Grid, mass: FloatArray, share: float) -> tuple[IntArray, IntArray]:
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
class _Land:
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


def _within(graph: "csr_array", sources: IntArray, limit: float) -> tuple[IntArray, FloatArray]:
    """Return the nodes within a limit of any of some nodes, and the lengths of the shortest paths to these.

    Paths longer than the limit are infinite. The part of the graph that is near is cut out first, so the work does
    not grow with the graph if the sources are near to each other.
    """
    from scipy.sparse.csgraph import dijkstra

    nodes = np.flatnonzero(np.isfinite(dijkstra(graph, indices=sources, limit=limit, min_only=True)))
    near = graph[nodes][:, nodes]
    return nodes, np.asarray(dijkstra(near, indices=np.searchsorted(nodes, sources), limit=limit))


def _fit(people: Prior, *, share: float, level: float, everywhere: bool) -> _Land:
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
    net, balls = _Land(nodes, parts, first), _Balls(mass, share, np.asarray(cKDTree(nodes).indices, np.int64))
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
    return _Land(xy, corners, scale)


class _Balls(NamedTuple):
    """Shares of people at nodes, the share that a ball needs, and the nodes in an order that keeps neighbours."""

    mass: FloatArray
    share: float
    order: IntArray

    def held(self, graph: "csr_array", within: FloatArray) -> FloatArray:
        """Return the share of the people within a level of its own of each node."""
        held = np.empty(len(self.mass))
        for block in _blocks(self.order):
            nodes, apart = _within(graph, block, float(within[block].max()) * (1 + SLACK))
            held[block] = (apart <= within[block, None] * (1 + SLACK)) @ self.mass[nodes]
        return held

    def missing(self, graph: "csr_array", within: FloatArray, held: FloatArray) -> FloatArray:
        """Return for each node the largest factor that misses a ball around it or that contains it, at least 1."""
        factor, limit = np.ones(len(self.mass)), float(within.max())
        poor = self.order[held[self.order] < self.share]
        while poor.size:
            limit, left = 2 * limit, []
            for block in _blocks(poor):
                nodes, apart = _within(graph, block, limit)
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
    edges, numbers = _Land(xy, corners, np.empty(0)).edges
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
