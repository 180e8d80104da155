"""Distances along graphs: metrics, one-way streets, and graphs that are refused."""

from typing import Any

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
