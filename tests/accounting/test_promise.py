import dataclasses
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoind import InvalidInputError, Mechanism, PlanarGaussian, PlanarLaplace
from geoind.accounting import PersonLevel, Promise, delta_of_reports, group, sequential

GOOD: dict[str, Any] = {"level": 2, "radius": 200, "delta": 1e-6, "reports": 5}


def promised(level: float, delta: float, radius: float = 100) -> Promise:
    return Promise(level=level, radius=radius, delta=delta)


def test_a_promise_is_an_immutable_value_of_floats() -> None:
    promise = Promise(**GOOD)
    assert promise == Promise(level=2.0, radius=200.0, delta=1e-6, reports=5)
    assert hash(promise) == hash(Promise(**GOOD))
    assert promise != Promise(**GOOD | {"radius": 201})
    assert [type(value) for value in dataclasses.astuple(promise)] == [float, float, float, int]
    assert type(PersonLevel(1).level) is float
    for value in (promise, PersonLevel(1)):
        with pytest.raises(dataclasses.FrozenInstanceError):
            value.level = 3.0  # type: ignore[misc]


@pytest.mark.parametrize("name", ["level", "radius", "delta", "reports"])
@pytest.mark.parametrize("value", [-1, math.nan, math.inf, "much", True, [1.0]])
def test_each_number_of_a_promise_is_checked(name: str, value: Any) -> None:
    with pytest.raises(InvalidInputError, match=name):
        Promise(**GOOD | {name: value})


@pytest.mark.parametrize(("name", "value"), [("radius", 0), ("delta", 1.5), ("reports", 0), ("level", None)])
def test_numbers_outside_of_their_range_are_refused(name: str, value: Any) -> None:
    with pytest.raises(InvalidInputError, match=name):
        Promise(**GOOD | {name: value})


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, "much", None])
def test_the_level_of_a_person_is_checked(value: Any) -> None:
    with pytest.raises(InvalidInputError, match="level"):
        PersonLevel(value)


def test_the_numbers_of_a_promise_are_given_by_name() -> None:
    with pytest.raises(TypeError):
        Promise(2, 200, 1e-6)  # type: ignore[call-arg]


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0, 0.1)), min_size=1, max_size=5))
def test_levels_and_deltas_add_up(numbers: list[tuple[float, float]]) -> None:
    together = sequential(promised(level, delta) for level, delta in numbers)
    assert together.level == pytest.approx(sum(level for level, _ in numbers))
    assert together.delta == pytest.approx(sum(delta for _, delta in numbers))
    assert together.radius == 100
    assert together.reports is None


def test_numbers_of_reports_add_up_where_all_are_known() -> None:
    known, unknown = Promise(**GOOD), promised(1.0, 0.0, 200)
    assert sequential([known, known]).reports == 10
    assert sequential([known, unknown]).reports is None
    assert group(known, 2).reports == 5


def test_the_sum_of_promises_holds_and_the_accountant_is_never_worse() -> None:
    noise = PlanarGaussian(700.0)
    for level in (0.3, 1.0):
        one = delta_of_reports(noise, reports=1, radius=200, level=level)
        together = sequential([promised(level, one, 200)] * 5)
        assert delta_of_reports(noise, reports=5, radius=200, level=together.level) <= together.delta


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("noise", [PlanarGaussian(700.0), PlanarLaplace(0.004)])
def test_a_group_promise_holds_as_many_times_as_far(noise: Mechanism, size: int) -> None:
    for level in (0.1, 0.5):
        delta = delta_of_reports(noise, reports=1, radius=100, level=level)
        far = group(promised(level, delta), size)
        assert far.level == size * level
        assert far.radius == size * 100
        assert delta_of_reports(noise, reports=1, radius=far.radius, level=far.level) <= far.delta + 1e-15
        assert far.delta <= min(1.0, size * math.exp(size * level) * delta)


def test_the_delta_of_extreme_groups_is_a_probability() -> None:
    assert group(promised(0.0, 0.1), 3).delta == pytest.approx(0.3)
    assert group(promised(1.0, 0.0), 10_000) == promised(10_000.0, 0.0, 1e6)
    assert group(promised(1.0, 1e-300), 10_000) == promised(10_000.0, 1.0, 1e6)


@pytest.mark.parametrize("promise", [0.5, None, (1, 0.1)])
def test_only_promises_are_composed(promise: Any) -> None:
    with pytest.raises(InvalidInputError, match="promise must be a Promise"):
        group(promise, 2)
    with pytest.raises(InvalidInputError, match="promise must be a Promise"):
        sequential([promise])


def test_promises_for_different_radii_and_no_promises_have_no_sum() -> None:
    for promises in ([], [promised(1.0, 0.0), promised(1.0, 0.0, 200)]):
        with pytest.raises(InvalidInputError, match="one and the same radius"):
            sequential(promises)
