from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from geoind import Channel, Grid, PlanarLaplace, Projection, SphericalLaplace, obfuscate, private_query
from geoind.arrays import (
    as_count,
    as_floats,
    as_location,
    as_lonlat,
    as_number,
    as_points,
    as_positive,
    as_probabilities,
    as_unit,
    frozen,
)
from geoind.errors import GeoindError, InvalidInputError


@pytest.mark.parametrize(
    "points",
    [
        [[np.nan, 0.0]],
        [[0.0, np.inf]],
        [1.0, 2.0],
        [[1.0, 2.0, 3.0]],
        [["1", "2"]],
        [[1 + 2j, 0]],
        [[True, False]],
        [[1.0], [2.0, 3.0]],
        "48.8, 2.3",
        None,
        [[None, 1.0]],
    ],
    ids=str,
)
def test_bad_points_are_refused(points: object) -> None:
    with pytest.raises(InvalidInputError):
        as_points(points)  # type: ignore[arg-type]


CELL = Grid(0, 0, cell=100, columns=1, rows=1)
HIDDEN = np.ma.MaskedArray([[2.25, 48.75], [2.5, 48.875]], mask=[[False, False], [True, True]])


@pytest.mark.parametrize(
    "call",
    [
        lambda: as_points(HIDDEN),
        lambda: as_points(list(HIDDEN)),
        lambda: SphericalLaplace(0.01).sample(HIDDEN),
        lambda: PlanarLaplace(0.01).sample(HIDDEN),
        lambda: obfuscate(lon=HIDDEN[:, 0], lat=HIDDEN[:, 1], epsilon=0.01),
        lambda: as_floats(np.ma.masked, "lon"),
        lambda: Channel(CELL, CELL, [[1.0]]).sample(np.ma.MaskedArray([0], [True])),
    ],
)
def test_what_a_mask_hides_is_no_place(call: Callable[[], object]) -> None:
    with pytest.raises(InvalidInputError, match=r"must not have masked values|truth must be a list") as caught:
        call()
    assert "48" not in str(caught.value)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([2.25, None], dtype="Float64"),
        pd.Series([2, None], dtype="Int64"),
        pd.Series([2.25, None], dtype="float64[pyarrow]"),
        pa.array([2.25, None]),
        pa.array([2, None]),
        pa.chunked_array([[2], [None]]),
        pl.Series([2, None]),
    ],
    ids=lambda column: f"{type(column).__module__} {getattr(column, 'dtype', '')}",
)
def test_a_null_is_no_place(column: Any) -> None:
    with pytest.raises(InvalidInputError, match="must be finite, row 1 is not"):
        obfuscate(lon=column, lat=np.array([48.75, 48.875]), epsilon=0.01)


def test_a_masked_array_that_hides_nothing_is_an_array() -> None:
    assert as_points(np.ma.MaskedArray([[2.25, 48.75]])).tolist() == [[2.25, 48.75]]
    assert type(as_points(HIDDEN[:1])) is np.ndarray


@pytest.mark.parametrize("points", [[], np.empty((0, 2)), np.empty((0, 2), int)])
def test_no_points_are_an_empty_array(points: object) -> None:
    assert as_points(points).shape == (0, 2)  # type: ignore[arg-type]


@pytest.mark.parametrize("lonlat", [[[180.5, 0]], [[-181, 0]], [[0, 90.001]], [[0, -91]]])
def test_degrees_outside_the_globe_are_refused_without_quoting_them(lonlat: list[list[float]]) -> None:
    with pytest.raises(InvalidInputError, match="row 1 is not") as caught:
        as_lonlat([[0.0, 0.0], *lonlat])
    for value in lonlat[0]:
        if value:
            assert str(value) not in str(caught.value)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([2.25, 91], "lonlat: latitude must be between -90 and 90, row 1 is not: are lat and lon swapped?"),
        ([2.25, 181], "lonlat: latitude must be between -90 and 90, row 1 is not"),
        ([-180.5, 91], "lonlat: longitude must be between -180 and 180, row 1 is not"),
    ],
)
def test_rows_that_may_be_swapped_are_asked_about(row: list[float], message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        as_lonlat([[0.0, 0.0], row, [500.0, 0.0]])
    assert str(caught.value) == message


def test_the_edge_of_the_globe_is_on_the_globe() -> None:
    assert as_lonlat([[180, 90], [-180, -90]]).shape == (2, 2)
    assert as_location(lon=180, lat=-90) == (180.0, -90.0)


@pytest.mark.parametrize("value", ["48.8584", True, None, 488584 * 10**400, 48.8584j])
def test_what_is_no_coordinate_is_refused_without_quoting_it(value: Any) -> None:
    for place in ({"lon": 2.25, "lat": value}, {"lon": value, "lat": 2.25}):
        with pytest.raises(InvalidInputError, match="must be a number") as caught:
            as_location(**place)
        assert "48" not in str(caught.value)


@pytest.mark.parametrize("value", [0, -1, np.nan, np.inf, "1", True, None, [1.0, 2.0]])
def test_what_is_not_positive_is_refused(value: object) -> None:
    with pytest.raises(InvalidInputError, match="epsilon must be"):
        as_positive(value, "epsilon")  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [0, 1, 1.5, -0.1, np.nan])
def test_a_confidence_lies_strictly_between_zero_and_one(value: float) -> None:
    with pytest.raises(InvalidInputError, match="confidence"):
        as_unit(value, "confidence")


@pytest.mark.parametrize("value", [0, 1.5, np.nan, np.inf, -3])
def test_a_count_is_a_positive_whole_number(value: float) -> None:
    with pytest.raises(InvalidInputError, match="columns"):
        as_count(value, "columns")  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [-1e-9, 1 + 1e-9, np.nan])
def test_probabilities_stay_in_their_interval(value: float) -> None:
    with pytest.raises(InvalidInputError):
        as_probabilities([0.5, value])


def test_a_frozen_array_is_a_copy_that_cannot_be_written_to() -> None:
    original = np.zeros(3)
    copy = frozen(original)
    original[0] = 1
    assert copy[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        copy[0] = 1


def test_an_error_of_ours_is_also_a_value_error() -> None:
    assert issubclass(InvalidInputError, GeoindError)
    assert issubclass(InvalidInputError, ValueError)


def test_a_coordinate_given_as_text_is_never_quoted() -> None:
    for secret in ("48.8584123", b"48.8584123"):
        with pytest.raises(InvalidInputError) as caught:
            as_number(secret, "lat")  # type: ignore[arg-type]
        assert str(caught.value) == f"lat must be a number, got {type(secret).__name__}"
        for call in (
            lambda text=secret: private_query(lat=text, lon=2.0, radius=300, epsilon=0.01),
            lambda text=secret: obfuscate(lat=text, lon=2.0, epsilon=0.01),
            lambda text=secret: Projection(text, 2.0),
            lambda text=secret: SphericalLaplace(0.01).sample([[2.0, text]]),
        ):
            with pytest.raises(InvalidInputError) as caught:
                call()
            assert "8584" not in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [
        True,
        [True],
        [2.0, True],
        [[2.0, False]],
        ((2.0, 48.0), (np.True_, 3.0)),
        [np.array([True, False]), [2.0, 3.0]],
        [pd.Series([True, False]), [2.0, 3.0]],
        np.array([True]),
        np.array([2.0, True], dtype=object),
    ],
)
def test_a_boolean_is_not_a_number_wherever_it_stands(values: Any) -> None:
    with pytest.raises(InvalidInputError, match="x must be numbers"):
        as_floats(values, "x")
    for boolean in (True, np.True_):
        with pytest.raises(InvalidInputError, match="x must be a number"):
            as_number(boolean, "x")  # type: ignore[arg-type]


def test_nested_lists_without_booleans_are_numbers() -> None:
    mixed: Any = [(1, 2.0), [np.float32(3), 4]]
    assert as_floats(mixed, "x").tolist() == [[1, 2], [3, 4]]
    assert as_floats([[[[1.0]]]], "x").shape == (1, 1, 1, 1)
