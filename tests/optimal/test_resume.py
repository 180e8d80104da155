"""A search offers better channels while it goes on, and continues from them."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from geoind import (
    Channel,
    Grid,
    InvalidInputError,
    Places,
    Prior,
    expected_loss,
    min_loss_given_epsilon,
    tight_epsilon,
)
from geoind.channels import Interpolated
from geoind.channels.extended import ExtendedMatrix
from geoind.distances import manhattan
from geoind.errors import SitesMismatchError
from geoind.files import load_mechanism, save_mechanism
from geoind.optimal import Iterate, OptimalChannel, least_loss, neighbourhoods

EPSILON = 0.01
METHODS: dict[str, dict[str, Any]] = {
    "exact": {"tolerance": 1e-6},
    "spanner": {"tolerance": 1e-6, "dilation": 1.5},
    "every place": {"tolerance": 1e-4, "everywhere": True},
    "neighbourhoods": {"tolerance": 0.02},
    "neighbourhoods, dense": {"tolerance": 0.02, "distance": manhattan},
}
by_every_method = pytest.mark.parametrize("method", METHODS)


def prior_of(side: int = 4, cell: float = 100.0) -> Prior:
    grid = Grid(0, 0, cell=cell, columns=side, rows=side)
    return Prior.from_counts(grid, np.random.default_rng(5).pareto(1.0, side * side) + 0.01)


@pytest.fixture
def settings(method: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The keywords of a method; neighbourhoods are small, and every better channel is offered."""
    monkeypatch.setattr(least_loss, "OFFERED", 1)
    if method.startswith("neighbourhoods"):
        monkeypatch.setattr(least_loss, "EXACT_WORK", 0)
        monkeypatch.setattr(neighbourhoods, "FIRST_SIZES", (9, 9))
    return METHODS[method]


def measured(channel: Channel, settings: dict[str, Any]) -> float:
    if "everywhere" in settings:
        return Interpolated(channel).epsilon
    return tight_epsilon(channel, settings["distance"]) if "distance" in settings else tight_epsilon(channel)


def optimum(settings: dict[str, Any]) -> float:
    exact = {name: value for name, value in settings.items() if name in ("everywhere", "distance")}
    return min_loss_given_epsilon(prior_of(), epsilon=EPSILON, **exact).certificate.objective


def assert_certified(found: OptimalChannel, least: float, settings: dict[str, Any]) -> None:
    proof = found.certificate
    assert measured(found, settings) == proof.epsilon <= EPSILON
    assert expected_loss(found, prior_of()) == pytest.approx(proof.objective)
    assert proof.bound <= least * (1 + 1e-6)
    assert proof.objective >= least * (1 - 1e-4)
    assert proof.gap >= (proof.objective - proof.bound) / proof.objective * (1 - 1e-6)


@by_every_method
def test_every_better_channel_is_offered_with_a_valid_certificate(settings: dict[str, Any]) -> None:
    offered: list[OptimalChannel] = []
    best = min_loss_given_epsilon(prior_of(), epsilon=EPSILON, checkpoint=offered.append, **settings)
    least = optimum(settings)
    assert len(offered) >= 2
    for found in offered:
        assert_certified(found, least, settings)
        assert not found.certificate.optimal
        assert found.certificate.gap > settings["tolerance"]
    for earlier, later in pairwise([*offered, best]):
        assert later.certificate.objective <= earlier.certificate.objective * (1 + 1e-9)
        assert later.certificate.gap <= earlier.certificate.gap
    # The last one is not far from the result.
    assert offered[-1].certificate.objective < 1.1 * best.certificate.objective


class StoppedError(Exception):
    """A search that ends in a callback."""


@by_every_method
def test_a_search_that_was_stopped_continues_from_the_channel_it_offered(settings: dict[str, Any]) -> None:
    kept: list[OptimalChannel] = []

    def stop(found: OptimalChannel) -> None:
        kept.append(found)
        if len(kept) == 2:
            raise StoppedError

    with pytest.raises(StoppedError):
        min_loss_given_epsilon(prior_of(), epsilon=EPSILON, checkpoint=stop, **settings)
    seen: list[Iterate] = []
    again = min_loss_given_epsilon(prior_of(), epsilon=EPSILON, start=kept[-1], progress=seen.append, **settings)
    # Never more than the channel that was offered, from the first iteration on.
    before = kept[-1].certificate.objective
    assert max(one.objective for one in seen) <= before * (1 + 1e-12)
    assert_certified(again, optimum(settings), settings)
    assert again.certificate.objective <= before
    assert again.certificate.optimal or "dilation" in settings


@by_every_method
def test_the_certificate_of_a_start_is_not_believed(settings: dict[str, Any]) -> None:
    rough = min_loss_given_epsilon(prior_of(), epsilon=EPSILON, **(settings | {"tolerance": 0.3}))
    claim = replace(rough.certificate, bound=rough.certificate.objective, gap=1e-16, epsilon=0.0, optimal=True)
    forged = OptimalChannel(rough.inputs, rough.outputs, rough.rows, claim)
    again = min_loss_given_epsilon(prior_of(), epsilon=EPSILON, start=forged, **settings)
    assert_certified(again, optimum(settings), settings)
    assert again.certificate.objective <= rough.certificate.objective * (1 + 1e-12)
    hurried = min_loss_given_epsilon(prior_of(), epsilon=EPSILON, start=forged, time_limit=1e-9, **settings)
    assert_certified(hurried, optimum(settings), settings)


@pytest.mark.parametrize("case", ["larger epsilon", "smaller epsilon", "coarser grid", "finer grid", "elsewhere"])
@by_every_method
def test_a_start_of_another_problem_leads_to_a_valid_certificate(settings: dict[str, Any], case: str) -> None:
    other, epsilon = {
        "larger epsilon": (prior_of(), 2 * EPSILON),
        "smaller epsilon": (prior_of(), EPSILON / 1.1),
        "coarser grid": (prior_of(3, 200.0), EPSILON),
        "finer grid": (prior_of(8, 60.0), EPSILON),
        "elsewhere": (Prior.uniform(Grid(5000, 0, cell=10, columns=2, rows=2)), EPSILON),
    }[case]
    start = min_loss_given_epsilon(other, epsilon=epsilon, everywhere="everywhere" in settings, tolerance=1e-4)
    best = min_loss_given_epsilon(prior_of(), epsilon=EPSILON, start=start, **settings)
    assert_certified(best, optimum(settings), settings)
    assert best.certificate.optimal or "dilation" in settings


@pytest.mark.parametrize("method", ["exact", "every place"])
def test_a_search_begins_at_the_start_also_if_that_is_not_private(settings: dict[str, Any]) -> None:
    start = min_loss_given_epsilon(prior_of(), epsilon=1.1 * EPSILON, **settings)
    assert measured(start, settings) > EPSILON
    first = []
    for given in (None, start):
        seen: list[Iterate] = []
        min_loss_given_epsilon(prior_of(), epsilon=EPSILON, start=given, progress=seen.append, **settings)
        first.append(seen[0])
    assert first[1].objective < first[0].objective


@pytest.mark.parametrize("method", ["neighbourhoods"])
def test_a_start_that_stays_the_best_is_stored_as_it_was(settings: dict[str, Any], tmp_path: Any) -> None:
    best = min_loss_given_epsilon(prior_of(), epsilon=EPSILON, **settings)
    save_mechanism(tmp_path / "best.parquet", best)
    start: Any = load_mechanism(tmp_path / "best.parquet")
    again = min_loss_given_epsilon(prior_of(), epsilon=EPSILON, start=start, time_limit=1e-9, **settings)
    assert isinstance(again.rows, ExtendedMatrix)
    assert again.rows.digest() == best.rows.digest()  # type: ignore[union-attr]
    assert not again.certificate.optimal


@pytest.mark.parametrize("method", ["exact", "neighbourhoods"])
@pytest.mark.parametrize("cost", [0.0, 1.0, 30.0])
def test_offers_take_a_tenth_of_the_time_at_most(
    settings: dict[str, Any], cost: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(least_loss, "OFFERED", 0.1)
    clock, spent, first = [0.0], [0.0], []
    monkeypatch.setattr(least_loss, "time", SimpleNamespace(perf_counter=lambda: clock[0]))

    def iterate(_: Iterate) -> None:
        clock[0] += 1.0
        assert spent[0] <= 0.1 * clock[0] + cost

    def save(_: OptimalChannel) -> None:
        first.append(clock[0])
        clock[0] += cost
        spent[0] += cost

    min_loss_given_epsilon(prior_of(), epsilon=EPSILON, progress=iterate, checkpoint=save, **settings)
    assert first
    assert len(first) > 5 or cost


@by_every_method
def test_the_memory_that_is_stated_first_is_what_the_limit_is_compared_with(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Iterate] = []

    def stop(now: Iterate) -> None:
        seen.append(now)
        raise StoppedError

    with pytest.raises(StoppedError):
        min_loss_given_epsilon(prior_of(), epsilon=EPSILON, progress=stop, **settings)
    assert seen[0].iteration == 0
    monkeypatch.setattr(least_loss, "MEMORY", seen[0].memory)
    with pytest.raises(StoppedError):
        min_loss_given_epsilon(prior_of(), epsilon=EPSILON, progress=stop, **settings)
    monkeypatch.setattr(least_loss, "MEMORY", np.nextafter(seen[0].memory, 0))
    with pytest.raises(InvalidInputError, match="GB of memory"):
        min_loss_given_epsilon(prior_of(), epsilon=EPSILON, progress=stop, **settings)


def test_the_bounds_of_a_spanner_are_those_of_all_pairs_during_the_search_too() -> None:
    seen: list[Iterate] = []
    min_loss_given_epsilon(prior_of(), epsilon=EPSILON, dilation=1.5, progress=seen.append)
    least = optimum({})
    assert all(one.bound <= least <= one.objective * (1 + 1e-6) for one in seen)


def test_wrong_starts_and_callbacks_are_errors_before_the_search() -> None:
    seen: list[Iterate] = []
    wrong: dict[str, Any] = {"checkpoint": 5, "start": "best.parquet"}
    for name, value in wrong.items():
        with pytest.raises(InvalidInputError, match=f"{name} must be"):
            min_loss_given_epsilon(prior_of(), epsilon=EPSILON, progress=seen.append, **{name: value})
    three = Places([[0.0, 0.0, 1.0]])
    with pytest.raises(SitesMismatchError, match="as many coordinates"):
        min_loss_given_epsilon(
            prior_of(), epsilon=EPSILON, progress=seen.append, start=Channel(three, three, [[1.0]])
        )
    assert not seen
