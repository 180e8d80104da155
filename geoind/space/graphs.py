"""Distances along a graph: between sites that are its nodes."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, IntArray, as_floats, frozen
from geoind.errors import InvalidInputError
from geoind.space.sites import Places

if TYPE_CHECKING:
    from geoind.space.projection import Projection

__all__ = ["GraphDistance", "road_distance"]

OneWay = Literal["both", "longer"]
"""What a one-way street means for the distance: it counts in both directions, or the longer way of two counts."""

MOST_SITES = 6000
"""Nodes of a graph: the matrix of all distances has 300 MB."""


@dataclass(frozen=True, eq=False, repr=False)
class GraphDistance:
    """The lengths of the shortest paths between the nodes of a graph; a `Distance` between any points.

    A point counts as its closest node, so two points with the same closest node have the distance 0. Every
    function with `distance=` or `loss=` takes it: `exponential(d.sites, d.sites, epsilon=..., distance=d)`.

    Attributes
    ----------
    sites : Places
        The nodes, in metres.
    apart : (n, n) array
        Distances between nodes, read-only: symmetric, finite, with the triangle inequality.
    nodes : tuple
        The names of the nodes in the graph; else their numbers.

    Examples
    --------
    >>> from geoind import exponential
    >>> street = graph_distance([[0, 0], [100, 0], [100, 100]], [[0, 1], [1, 2]], [100.0, 250.0])
    >>> street(street.sites.xy, [[3, 99]]).T
    array([[350., 250.,   0.]])
    """

    sites: Places
    apart: FloatArray
    nodes: tuple[Hashable, ...] = field(default=(), kw_only=True)

    def __repr__(self) -> str:
        return f"GraphDistance({self.sites!r}, largest distance {self.apart.max():.4g})"

    def __call__(self, a: ArrayLike, b: ArrayLike) -> FloatArray:
        """Return the (n, m) distances between the closest nodes of two lists of points."""
        rows, columns = self.sites.nearest(a), self.sites.nearest(b)
        return np.asarray(self.apart[rows[:, None], columns])


def graph_distance(
    xy: ArrayLike,
    edges: ArrayLike,
    lengths: ArrayLike,
    *,
    one_way: OneWay = "both",
    nodes: Iterable[Hashable] = (),
) -> GraphDistance:
    """Return the distance along the edges of a connected graph.

    Parameters
    ----------
    xy : (n, 2) array
        The nodes, in metres, all different.
    edges : (m, 2) array of int
        Numbers of the nodes that an edge joins: from, to.
    lengths : (m,) array
        Of the edges: positive, finite.
    one_way : {"both", "longer"}
        Whether an edge counts in both directions, or the distance of two nodes is the longer of the two ways.
    nodes : iterable, optional
        Names of the nodes.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components, dijkstra

    sites, ends, costs = Places(xy), np.asarray(edges), as_floats(lengths, "lengths")
    n = len(sites)
    if n > MOST_SITES:
        raise InvalidInputError(f"a graph may have at most {MOST_SITES:,} nodes, got {n:,}: cut out a part")
    if len(np.unique(sites.xy, axis=0)) < n:
        raise InvalidInputError("two nodes of the graph are at the same place: merge them")
    if ends.shape != (len(costs), 2) or ends.dtype.kind not in "iu" or not ((ends >= 0) & (ends < n)).all():
        raise InvalidInputError("edges must be pairs of numbers of nodes, one pair per length")
    # Written so that NaN fails.
    if not ((costs > 0) & (costs < np.inf)).all():
        raise InvalidInputError("the length of an edge must be positive and finite")
    if one_way not in get_args(OneWay):
        raise InvalidInputError(f"one_way must be 'both' or 'longer', got {one_way!r}")
    # csr_array adds the lengths of parallel edges up; the shortest one counts.
    order = np.lexsort([costs, ends[:, 1], ends[:, 0]])
    ends, costs = ends[order], costs[order]
    first = np.append(True, (np.diff(ends, axis=0) != 0).any(axis=1)) if len(ends) else np.empty(0, bool)
    forth = csr_array((costs[first], (ends[first, 0], ends[first, 1])), shape=(n, n))
    parts, _ = connected_components(forth, directed=one_way == "longer", connection="strong")
    if parts > 1:
        way = " in the direction of its edges" if one_way == "longer" else ""
        raise InvalidInputError(f"the graph must be connected{way}, it has {parts:,} parts: keep the largest one")
    apart = dijkstra(forth, directed=one_way == "longer")
    apart = np.maximum(apart, apart.T)
    return GraphDistance(sites, frozen(apart), nodes=tuple(nodes))


class _Graph(Protocol):
    """The part of a NetworkX graph that is read."""

    @property
    def nodes(self) -> Any: ...
    @property
    def edges(self) -> Any: ...
    def is_directed(self) -> bool: ...


def road_distance(
    graph: _Graph, *, one_way: OneWay, projection: "Projection | None" = None, length: str = "length"
) -> GraphDistance:
    """Return the distance along the roads of a graph of NetworkX, OSMnx or pyrosm, between its nodes.

    With it a mechanism is geo-graph-indistinguishable (Takagi et al., DBSec 2019): two places are as different as
    the way between them is long, and each report is a place on a road. The largest connected part must be chosen
    before: `graph.subgraph(max(networkx.strongly_connected_components(graph), key=len))`.

    Parameters
    ----------
    graph : NetworkX graph
        Its nodes have `x` and `y`, its edges a length in metres.
    one_way : {"both", "longer"}
        A privacy metric is symmetric. With "both", an edge counts in both directions, as for a pedestrian. With
        "longer", the distance is the longer of the ways there and back. (The shorter one is not a metric.)
    projection : Projection, optional
        If `x` and `y` are degrees, as in OSMnx and pyrosm; default: they are metres.
    length : str
        Name of the attribute with the length of an edge.

    Examples
    --------
    >>> class Roads:
    ...     nodes = {"a": {"x": 0, "y": 0}, "b": {"x": 100, "y": 0}, "c": {"x": 100, "y": 100}}
    ...     edges = {("a", "b"): {"length": 100}, ("b", "c"): {"length": 120}, ("c", "a"): {"length": 150}}
    ...     def is_directed(self):
    ...         return True
    >>> road_distance(Roads(), one_way="both").apart[0]
    array([  0., 100., 150.])
    >>> road_distance(Roads(), one_way="longer").apart[0]
    array([  0., 270., 220.])
    """
    places, edges = dict(graph.nodes.items()), list(graph.edges.items())
    if not places:
        raise InvalidInputError("the graph has no nodes")
    numbers = {name: number for number, name in enumerate(places)}
    xy = as_floats(
        [[_attribute(about, axis, "node") for axis in ("x", "y")] for about in places.values()], "x and y"
    )
    # An edge of a multigraph is (from, to, key).
    ends = np.array([[numbers[edge[0]], numbers[edge[1]]] for edge, _ in edges], np.int64).reshape(-1, 2)
    lengths = as_floats([_attribute(about, length, "edge") for _, about in edges], length)
    if one_way == "longer" and not graph.is_directed():
        raise InvalidInputError("an undirected graph has no one-way streets: pass one_way='both'")
    return graph_distance(
        xy if projection is None else projection.to_xy(xy),
        *_without_loops(ends, lengths),
        one_way=one_way,
        nodes=numbers,
    )


def _attribute(about: Mapping[str, Any], name: str, what: str) -> Any:
    if name not in about:
        raise InvalidInputError(f"each {what} of the graph must have the attribute {name!r}")
    return about[name]


def _without_loops(ends: IntArray, lengths: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the edges between two different nodes: a loop shortens no way."""
    useful = ends[:, 0] != ends[:, 1]
    return ends[useful], lengths[useful]
