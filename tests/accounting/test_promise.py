"""Promises are numbers that were looked at."""

import dataclasses
import math
from typing import Any

import pytest

from geoind import InvalidInputError
from geoind.accounting import PersonLevel, Promise

GOOD: dict[str, Any] = {"level": 2, "radius": 200, "delta": 1e-6}


def test_a_promise_is_a_value_of_floats() -> None:
    promise = Promise(**GOOD)
    assert promise == Promise(level=2.0, radius=200.0, delta=1e-6)
    assert hash(promise) == hash(Promise(**GOOD))
    assert promise != Promise(**GOOD | {"radius": 201})
    assert all(type(value) is float for value in dataclasses.astuple(promise))
    assert type(PersonLevel(1).level) is float
    for value in (promise, PersonLevel(1)):
        with pytest.raises(dataclasses.FrozenInstanceError):
            value.level = 3.0  # type: ignore[misc]


@pytest.mark.parametrize("name", ["level", "radius", "delta"])
@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, "much", None, True, [1.0]])
def test_each_number_of_a_promise_is_looked_at(name: str, value: Any) -> None:
    with pytest.raises(InvalidInputError, match=name):
        Promise(**GOOD | {name: value})


@pytest.mark.parametrize("delta", [1, 1.5])
def test_a_delta_is_below_one(delta: float) -> None:
    with pytest.raises(InvalidInputError, match="delta"):
        Promise(level=2, radius=200, delta=delta)


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, "much", None])
def test_a_persons_level_is_looked_at(value: Any) -> None:
    with pytest.raises(InvalidInputError, match="level"):
        PersonLevel(value)


def test_three_numbers_cannot_be_mixed_up() -> None:
    with pytest.raises(TypeError):
        Promise(2, 200, 1e-6)  # type: ignore[call-arg]
