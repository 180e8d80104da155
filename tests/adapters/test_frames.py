"""Frames on their way to Arrow and back: what is looked at, what stays, and what is taken away."""

from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from geoind.adapters.frames import examined, placed, reported, table_of
from geoind.errors import InvalidInputError
from geoind.tables import LonLat, Points, Recipe, TablePromise

RNG = np.random.default_rng(4)
LON, LAT = RNG.uniform(2, 3, 30), RNG.uniform(48, 49, 30)
FRAME = pd.DataFrame({"lon": LON, "lat": LAT, "fare": RNG.integers(3, 90, 30), "note": ["x", "y", "z"] * 10})
NOISE: dict[str, Any] = {"epsilon": 0.01, "key": bytes(32)}


def made(frame: pd.DataFrame, **options: Any) -> pd.DataFrame:
    table = table_of(frame, Recipe.of(**NOISE, **options))
    result: pd.DataFrame = reported(frame, table, table.report(examined(frame, table)))
    return result


def test_what_is_no_place_stays_in_the_frame_as_it_is() -> None:
    parts = pd.Categorical(["a", "b"] * 15)
    mixed: Any = [1, "one", None] * 10
    frame = FRAME.assign(kind=parts, when=pd.Timestamp("2026-01-01", tz="UTC"), mixed=mixed)
    result = made(frame, order="keep", id_column="fare")
    pd.testing.assert_frame_equal(result.drop(columns=["lon", "lat"]), frame.drop(columns=["lon", "lat"]))
    assert (result[["lon", "lat"]] != frame[["lon", "lat"]]).all(axis=None)
    assert list(result) == list(frame)
    assert TablePromise.from_json(result.attrs["geoind"]).epsilon == 0.01


def test_categories_that_no_row_has_are_gone_wherever_a_frame_keeps_them() -> None:
    places = [f"{lat} {lon}" for lon, lat in zip(LON, LAT, strict=True)]
    spare = pd.CategoricalDtype(["b", "a", *places], ordered=True)
    column = pd.Categorical(["a", "b"] * 15, dtype=spare)
    arrow = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 15), pa.array(["a", "b", *places]))
    kept: Any = pd.arrays.ArrowExtensionArray(pa.chunked_array([arrow]))
    frame = FRAME.assign(kind=column, arrow=kept)
    frame.columns = pd.CategoricalIndex(frame.columns, categories=[*frame.columns, *places])
    frame.index = pd.CategoricalIndex(column, name="part")
    result: Any = made(frame, order="keep", id_column="fare")
    assert result["kind"].cat.categories.tolist() == result.index.categories.tolist() == ["b", "a"]
    assert result["kind"].cat.ordered
    assert result["kind"].tolist() == result["arrow"].tolist() == result.index.tolist() == ["a", "b"] * 15
    assert pa.array(result["arrow"]).dictionary.to_pylist() == ["a", "b"]
    assert result.columns.categories.tolist() == list(frame.columns)
    assert frame["kind"].cat.categories.tolist() == ["b", "a", *places], "the frame given is not changed"
    frame.index = pd.MultiIndex.from_arrays([column, range(30)])
    result = made(frame, order="keep", id_column="fare")
    assert result.index.levels[0].categories.tolist() == ["b", "a"]


def test_degrees_keep_their_type() -> None:
    narrow = FRAME.astype({"lon": "float32", "lat": "Float64"})
    assert made(narrow, id_column="fare").dtypes[["lon", "lat"]].astype(str).tolist() == ["float32", "Float64"]


def test_two_labels_that_are_one_name_are_refused() -> None:
    frame = FRAME.assign(**{"7": 1})
    frame[7] = 2
    with pytest.raises(InvalidInputError, match="column '7' must be there once"):
        table_of(frame, Recipe.of(**NOISE))


def test_a_label_that_is_no_text_is_dropped_by_its_text() -> None:
    frame = FRAME.assign(**{"7": LAT}).rename(columns={"7": 7})
    with pytest.raises(InvalidInputError, match="'7' repeats"):
        made(frame, id_column="fare")
    assert list(made(frame, drop=["7"], id_column="fare")) == list(FRAME)


@pytest.mark.parametrize(
    ("index", "name"),
    [
        (pd.Index(LAT), "index"),
        (pd.Index(LAT, name="note"), "note (index)"),
        (pd.MultiIndex.from_arrays([range(30), LAT]), "index 1"),
        (pd.MultiIndex.from_arrays([range(30), LAT], names=["n", "level"]), "level"),
    ],
)
def test_every_level_of_an_index_is_looked_at_under_a_name_of_its_own(index: pd.Index, name: str) -> None:
    frame = FRAME.set_axis(index, axis=0)
    with pytest.raises(InvalidInputError) as refused:
        made(frame, id_column="fare")
    assert f"{name!r} repeats" in str(refused.value)
    result = made(frame, drop=[name], id_column="fare")
    assert isinstance(result.index, pd.RangeIndex)
    assert list(result) == list(FRAME)


@pytest.mark.parametrize("axis", ["index", "columns"])
def test_names_of_columns_and_index_are_no_hiding_place(axis: str) -> None:
    frame = FRAME.rename_axis(**{axis: f"{LAT[7]:.6f} {LON[7]:.6f}"})  # type: ignore[call-overload]
    with pytest.raises(InvalidInputError, match=f"name of the {axis}"):
        made(frame, id_column="fare")


def test_levels_do_not_keep_entries_of_rows_that_are_gone() -> None:
    whole = FRAME.set_axis(pd.MultiIndex.from_arrays([["a"] * 15 + ["b"] * 15, range(30)]), axis=0)
    result = made(whole.iloc[:15], id_column="fare")
    assert isinstance(result.index, pd.MultiIndex)
    assert list(result.index.levels[0]) == ["a"]


def test_shuffled_rows_do_not_keep_their_numbers() -> None:
    result = made(FRAME, order="shuffle", id_column="fare")
    assert isinstance(result.index, pd.RangeIndex)
    assert result["fare"].tolist() != FRAME["fare"].tolist()
    assert sorted(result["fare"]) == sorted(FRAME["fare"])


def test_a_column_that_names_people_must_be_of_one_kind() -> None:
    frame = FRAME.assign(who=[1, "1", 2] * 10)
    table = table_of(frame, Recipe.of(**NOISE, person_column="who"))
    with pytest.raises(InvalidInputError, match="'who' must hold values of one kind"):
        examined(frame, table)


def test_a_frame_without_rows_has_its_columns() -> None:
    result = made(FRAME.iloc[:0], id_column="fare")
    assert (len(result), list(result)) == (0, list(FRAME))


def points() -> geopandas.GeoDataFrame:
    return geopandas.GeoDataFrame(FRAME[["fare"]], geometry=geopandas.points_from_xy(LON, LAT), crs=4326)


def test_the_active_geometry_is_the_place_unless_columns_were_named() -> None:
    assert placed(FRAME, Recipe.of(**NOISE)).places == ()
    (place,) = placed(points(), Recipe.of(**NOISE)).places
    assert isinstance(place, Points)
    assert place.geometry == "geometry"
    assert place.crs
    named = Recipe.of(**NOISE, lon="x", lat="y")
    assert placed(points(), named).places == (LonLat("x", "y"),)
    assert placed(points(), Recipe.of(**NOISE, geometry="geometry")).places == (place,)


def test_a_geometry_that_is_not_active_is_refused() -> None:
    frame = points().rename_geometry("here").assign(there=points().geometry)
    for recipe in (Recipe.of(**NOISE, geometry="there"), Recipe.of(**NOISE, geometry="nowhere")):
        with pytest.raises(InvalidInputError, match="must be the active geometry"):
            placed(frame, recipe)
    with pytest.raises(InvalidInputError, match="must be the active geometry"):
        placed(geopandas.GeoDataFrame(FRAME), Recipe.of(**NOISE))
