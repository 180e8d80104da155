"""Distances along graphs: metrics, one-way streets, and graphs that are refused."""

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoind import InvalidInputError, Projection, exponential, min_loss_given_epsilon, tight_epsilon
from geoind.channels.priors import Prior
from geoind.space import road_distance


class Graph:
    """What is read of a graph of NetworkX."""

    def __init__(self, nodes: dict[Any, Any], edges: dict[Any, Any], *, directed: bool = True) -> None:
        self.nodes, self.edges, self.directed = nodes, edges, directed

    def is_directed(self) -> bool:
        return self.directed


def ring(count: int, lengths: list[float]) -> Graph:
    """A one-way ring with chords."""
    angle = 2 * np.pi * np.arange(count) / count
    nodes = {name: {"x": 100 * np.cos(a), "y": 100 * np.sin(a)} for name, a in enumerate(angle)}
    edges = {(k, (k + 1) % count): {"length": lengths[k]} for k in range(count)}
    return Graph(nodes, edges | {(0, count // 2): {"length": lengths[-1]}})


@settings(deadline=None)
@given(st.lists(st.floats(1, 1000), min_size=8, max_size=8), st.sampled_from(["both", "longer"]))
def test_road_distances_are_a_metric(lengths: list[float], one_way: Any) -> None:
    apart = road_distance(ring(7, lengths), one_way=one_way).apart
    assert (apart == apart.T).all()
    assert (np.diag(apart) == 0).all()
    assert (apart + np.eye(7) > 0).all()
    detours = (apart[:, :, None] + apart[None]).min(axis=1)
    assert (apart <= detours * (1 + 1e-12)).all()


def test_a_one_way_street_is_symmetrised_as_asked() -> None:
    graph = ring(4, [100.0, 100.0, 100.0, 100.0, 500.0])
    assert road_distance(graph, one_way="both").apart[0, 1] == 100
    assert road_distance(graph, one_way="longer").apart[0, 1] == 300
    with pytest.raises(TypeError):
        road_distance(graph)  # type: ignore[call-arg]


def test_the_shortest_of_parallel_edges_counts_and_loops_do_not() -> None:
    nodes = {"a": {"x": 0, "y": 0}, "b": {"x": 50, "y": 0}}
    edges = {("a", "b", 0): {"length": 90}, ("a", "b", 1): {"length": 60}, ("b", "a", 0): {"length": 70}}
    loop = {("a", "a", 0): {"length": 5}}
    assert road_distance(Graph(nodes, edges | loop), one_way="both").apart[0, 1] == 60
    assert road_distance(Graph(nodes, edges | loop), one_way="longer").apart[0, 1] == 70


def test_mechanisms_on_roads_keep_their_epsilon_and_report_on_a_road() -> None:
    roads = road_distance(ring(9, [40.0, 80.0, 70.0, 30.0, 90.0, 60.0, 50.0, 20.0, 100.0, 65.0]), one_way="both")
    noise = exponential(roads.sites, roads.sites, epsilon=0.02, distance=roads)
    prior = Prior.uniform(roads.sites)
    best = min_loss_given_epsilon(prior, epsilon=0.02, distance=roads, loss=roads)
    for channel in (noise, best):
        assert tight_epsilon(channel, roads) <= 0.02 * (1 + 1e-12)
    reports = noise.sample([[12.0, 3.0]] * 20, rng=1)
    assert {tuple(report) for report in reports.tolist()} <= {tuple(node) for node in roads.sites.xy.tolist()}


def test_degrees_need_a_projection() -> None:
    nodes = {1: {"x": 24.94, "y": 60.17}, 2: {"x": 24.95, "y": 60.17}}
    graph = Graph(nodes, {(1, 2): {"length": 560.0}}, directed=False)
    roads = road_distance(graph, one_way="both", projection=Projection(24.94, 60.17))
    assert roads.nodes == (1, 2)
    assert 550 < np.hypot(*(roads.sites.xy[1] - roads.sites.xy[0])) < 560


def osmnx_like() -> "nx.MultiDiGraph[Any]":
    """Streets as OSMnx returns them: degrees, keyed parallel edges, attributes that are lists or are missing."""
    graph = nx.MultiDiGraph(crs="epsg:4326")
    for name, (east, north) in {101: (0, 0), 102: (1, 0), 103: (1, 1), 104: (0, 1), 105: (2, 1)}.items():
        graph.add_node(name, x=24.94 + 0.002 * east, y=60.17 + 0.001 * north, street_count=3)
    for u, v, metres in ((101, 102, 112.0), (102, 103, 112.0), (103, 104, 111.5), (104, 101, 111.4)):
        graph.add_edge(u, v, osmid=[u, v], length=metres, oneway=True)
    graph.add_edge(101, 102, length=300.0, highway="footway")
    for u, v in ((103, 105), (105, 103)):
        graph.add_edge(u, v, length=np.float64(112.0), oneway=False)
    return graph


def test_a_graph_of_networkx_has_the_lengths_that_networkx_finds() -> None:
    graph, plane = osmnx_like(), Projection(24.94, 60.17)
    both = road_distance(graph, one_way="both", projection=plane)
    expected = dict(nx.all_pairs_dijkstra_path_length(graph.to_undirected(), weight="length"))
    assert both.nodes == tuple(graph.nodes)
    longer = road_distance(graph, one_way="longer", projection=plane)
    there = dict(nx.all_pairs_dijkstra_path_length(graph, weight="length"))
    for row, u in enumerate(both.nodes):
        for column, v in enumerate(both.nodes):
            assert both.apart[row, column] == pytest.approx(expected[u][v])
            assert longer.apart[row, column] == pytest.approx(max(there[u][v], there[v][u]))
    # Back from 102 to 101: around the block.
    assert longer.apart[0, 1] == pytest.approx(112 + 111.5 + 111.4)
    noise = exponential(both.sites, both.sites, epsilon=0.01, distance=both)
    assert tight_epsilon(noise, both) <= 0.01


def test_other_classes_of_networkx_are_read_too() -> None:
    path = nx.path_graph(4)
    for name in path:
        path.nodes[name].update(x=100.0 * name, y=0.0)
    nx.set_edge_attributes(path, 100.0, "metres")
    assert road_distance(path, one_way="both", length="metres").apart[0].tolist() == [0, 100, 200, 300]
    largest = osmnx_like().subgraph([101, 102, 103, 104])
    assert len(road_distance(largest, one_way="longer", projection=Projection(24.94, 60.17)).sites) == 4


def test_graphs_of_networkx_without_a_metric_are_refused() -> None:
    plane = Projection(24.94, 60.17)
    for metres, message in ((-5.0, "positive and finite"), (np.nan, "positive and finite"), ("112 m", "length")):
        graph = osmnx_like()
        graph[101][102][0]["length"] = metres
        with pytest.raises(InvalidInputError, match=message):
            road_distance(graph, one_way="both", projection=plane)
    apart = osmnx_like()
    apart.add_node(999, x=24.95, y=60.18)
    with pytest.raises(InvalidInputError, match="2 parts"):
        road_distance(apart, one_way="both", projection=plane)
    one_way = osmnx_like()
    one_way.remove_edge(105, 103)
    with pytest.raises(InvalidInputError, match="in the direction of its edges"):
        road_distance(one_way, one_way="longer", projection=plane)


TWO = {1: {"x": 0, "y": 0}, 2: {"x": 9, "y": 0}, 3: {"x": 9, "y": 9}}


@pytest.mark.parametrize(
    ("graph", "one_way", "message"),
    [
        (Graph({}, {}), "both", "no nodes"),
        (Graph(TWO, {(1, 2): {"length": 9}}), "both", "connected, it has 2 parts"),
        (Graph(TWO, {(1, 2): {"length": 9}, (2, 3): {"length": 9}}), "longer", "in the direction of its edges"),
        (Graph(TWO, {(1, 2): {"length": -9}, (2, 3): {"length": 9}}), "both", "positive and finite"),
        (Graph(TWO, {(1, 2): {"length": 0}, (2, 3): {"length": 9}}), "both", "positive and finite"),
        (Graph(TWO, {(1, 2): {"length": np.nan}, (2, 3): {"length": 9}}), "both", "positive and finite"),
        (Graph(TWO, {(1, 2): {"length": np.inf}, (2, 3): {"length": 9}}), "both", "positive and finite"),
        (Graph(TWO, {(1, 2): {}, (2, 3): {"length": 9}}), "both", "attribute 'length'"),
        (Graph({1: {"x": 0}}, {}), "both", "attribute 'y'"),
        (Graph({1: {"x": 0, "y": 0}, 2: {"x": 0, "y": 0}}, {(1, 2): {"length": 1}}), "both", "same place"),
        (Graph({1: {"x": np.nan, "y": 0}}, {}), "both", "finite"),
        (Graph(TWO, {(1, 2): {"length": 9}, (2, 3): {"length": 9}}), "shorter", "one_way must be"),
        (Graph(TWO, {(1, 2): {"length": 9}, (2, 3): {"length": 9}}, directed=False), "longer", "undirected"),
    ],
)
def test_graphs_without_a_metric_are_refused(graph: Graph, one_way: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        road_distance(graph, one_way=one_way)
