"""Noise that adapts to the density of people: a mechanism of every place."""

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt

from geoind.arrays import ArrayLike, FloatArray, IntArray, as_points, as_unit
from geoind.channels.elastic import SLACK, Land, fit, within_limit
from geoind.channels.priors import Prior
from geoind.channels.rows import choose, choose_each, choose_exactly
from geoind.distances import euclidean
from geoind.errors import InvalidInputError, plural
from geoind.keys import Words
from geoind.mechanisms.protocol import RandomnessLike, Space, as_randomness
from geoind.space.sites import Grid, Places

if TYPE_CHECKING:
    from scipy.sparse import csr_array
    from scipy.spatial import Delaunay

__all__ = ["ElasticNoise", "elastic_noise"]

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


@dataclass(frozen=True, eq=False, repr=False)
class ElasticNoise:
    """A mechanism of every place of a region whose noise adapts to the density of people; see `elastic_noise`.

    *Promise.* Each triangle T of the region has a scale s_T, the metres per unit of privacy loss. The elastic
    distance of two places is the least sum of (metres in T) / s_T over all paths between them. For all places x, y
    and all reports z, abs(ln K(x, z) - ln K(y, z)) is at most the elastic distance of x and y. And every ball of
    the `level`, around every place, holds at least the `share` of the people, who count at the closest of the
    nodes at which balls are counted.

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
    c = 1/2. A larger c keeps the promise if c (abs(G_z - E_v G) + c r_T / s_T^2) <= 1 / s_T for all triangles,
    their corners v and all z, where r_T is the most metres from a place of T to its closest corner: the slope of
    E_x G is c times a covariance of vectors no longer than 1 / s_T. The largest c of a list for which this holds
    is taken. ln K is continuous, so it changes by the elastic distance of two places at most.

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
    >>> noise = elastic_noise(synthetic_city(16).prior, share=0.02)
    >>> noise.sample([[0.0, 100.0]]).shape
    (1, 2)
    """

    share: float
    level: float
    _grid: Grid
    _land: "Land"

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
        >>> noise = elastic_noise(synthetic_city(16).prior, share=0.02)
        >>> bool(noise.rates_at([[0.0, 0.0]])[0] <= noise.epsilon)
        True
        """
        return np.asarray(1 / self._land.scale[self._located(as_points(points))[0]])

    def probabilities(self, points: ArrayLike) -> FloatArray:
        """Return the probability of each report, (n, len(sites)), at each of the (n, 2) points.

        Examples
        --------
        >>> from geoind.evaluation import synthetic_city
        >>> noise = elastic_noise(synthetic_city(16).prior, share=0.02)
        >>> noise.probabilities([[0.0, 0.0]]).sum().round(12)
        np.float64(1.0)
        """
        triangles, weights = self._located(as_points(points))
        corners = self._land.corners[triangles]
        needed, number = np.unique(corners, return_inverse=True)
        apart = np.full((len(needed), len(self.sites)), self._limit)
        if len(needed):
            nodes, near = within_limit(self._graph, needed, self._limit)
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
        words = source.words(truth, 4, self.purpose)
        result = np.empty(len(truth), dtype=np.int64)
        # One tile after the other, with all attempts: its rows may not be kept.
        for left in _groups(self._tile_of[triangles]):
            drawn = words[left]
            for attempt in count():

                def further(place: int, step: int, number: int) -> tuple[int, int]:
                    row = int(left[place])  # noqa: B023
                    return source.further(row, truth[row], self.purpose, (4 * attempt + step) * STEPS + number)  # noqa: B023

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
        nodes, apart = within_limit(self._graph, corners, self._limit)
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
    def purpose(self) -> str:
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
    >>> city = synthetic_city(16)
    >>> noise = Projected(elastic_noise(city.prior, share=0.02), city.projection)
    >>> lon, lat = city.projection.to_lonlat([[0.0, 100.0]])[0]
    >>> report = obfuscate(lon=lon, lat=lat, mechanism=noise)
    """
    land = fit(people, share=share, level=level, everywhere=True)
    noise = ElasticNoise(float(share), float(level), cast("Grid", people.sites), land)
    _ = noise._exponent  # takes a while, and not at the first report
    return noise
