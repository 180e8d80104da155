"""Frames on their way to Arrow and back: types of kept columns, the index, and what does not leave."""

import io
import pickle
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely

from geoind import EACH_ROW
from geoind.adapters.geopandas import obfuscate, refuse_index, reported, table_of
from geoind.errors import InvalidInputError
from geoind.tables import Recipe

SIZE = 30
RNG = np.random.default_rng(4)
LON, LAT = RNG.uniform(2, 3, SIZE), RNG.uniform(48, 49, SIZE)
PLACES: Any = shapely.points(LON, LAT)
FRAME = pd.DataFrame({"lon": LON, "lat": LAT, "fare": RNG.integers(3, 90, SIZE), "note": ["x", "y", "z"] * 10})
EACH: dict[str, Any] = {"epsilon": 0.01, "person": EACH_ROW, "key": bytes(32)}
SECRET = "SECRET-SECRET"


def points() -> geopandas.GeoDataFrame:
    return geopandas.GeoDataFrame(FRAME[["fare", "note"]], geometry=shapely.points(LON, LAT), crs=4326)


# Types

HOURS = pd.date_range("2024-03-30", periods=SIZE, freq="h", tz="UTC")
KEPT: dict[str, Any] = {
    "whole": np.arange(SIZE, dtype="int8"),
    "half": np.arange(SIZE, dtype="float16"),
    "flags": [True, False] * 15,
    "nullable": pd.array([1, 2, None] * 10, dtype="Int16"),
    "text": pd.array(["a", None, "c"] * 10, dtype="str"),
    "text of Python": pd.array(["a", None, "c"] * 10, dtype="string[python]"),
    "objects": pd.Series([1, "one", None] * 10, dtype=object),
    "complex": [1j] * SIZE,
    "more than 64 bits": pd.Series([2**80] * SIZE, dtype=object),
    "times": HOURS.tz_localize(None).as_unit("ms"),
    "times in a zone": HOURS.tz_convert("Europe/Paris"),
    "spans": pd.to_timedelta(np.arange(SIZE), unit="s"),
    "periods": pd.period_range("2024", periods=SIZE, freq="h"),
    "intervals": pd.interval_range(0, SIZE),
    "sparse": pd.arrays.SparseArray([0, 0, 1] * 10),
    "categories": pd.Categorical(["b", "a", None] * 10, ["b", "a"], ordered=True),
    "decimals of Arrow": pd.Series([1, 2, None] * 10, dtype=pd.ArrowDtype(pa.decimal128(38, 2))),
    "lists of Arrow": pd.Series([[1], [2], None] * 10, dtype=pd.ArrowDtype(pa.list_(pa.int64()))),
}


@pytest.mark.parametrize("kind", KEPT)
def test_a_kept_column_has_its_pandas_type_and_values(kind: str) -> None:
    frame = FRAME.assign(kept=KEPT[kind])
    reports = obfuscate(frame, **EACH, keep=["kept", "fare"])
    assert reports.columns.tolist() == ["lon", "lat", "fare", "kept"]
    pd.testing.assert_frame_equal(reports[["fare", "kept"]], frame[["fare", "kept"]])


@pytest.mark.parametrize("kind", ["float32", "Float64", "str", "object", "double[pyarrow]"])
def test_degrees_have_their_pandas_type(kind: str) -> None:
    frame = FRAME.astype({"lon": "str" if kind == "object" else kind, "lat": kind})
    reports = obfuscate(frame, **EACH)
    assert reports.dtypes.astype(str).tolist() == frame[["lon", "lat"]].dtypes.astype(str).tolist()
    assert (reports.astype(float) - FRAME[["lon", "lat"]]).abs().max(axis=None) < 1


def test_points_as_bytes_stay_bytes() -> None:
    frame = pd.DataFrame({"place": shapely.to_wkb(shapely.points(LON, LAT))})
    reports = obfuscate(frame, **EACH, geometry="place", crs="EPSG:4326")
    assert type(reports) is pd.DataFrame
    assert (shapely.from_wkb(reports["place"]) == obfuscate(points(), **EACH).geometry.to_numpy()).all()


def test_labels_that_are_no_text_are_named_by_their_text() -> None:
    frame = FRAME.rename(columns={"fare": 7, "note": ("a", "b")})
    reports = obfuscate(frame, **EACH, keep=["7", "('a', 'b')"])
    assert list(reports.columns) == ["lon", "lat", 7, ("a", "b")]
    frame["7"] = 1
    with pytest.raises(InvalidInputError, match="several columns are called '7'"):
        obfuscate(frame, **EACH, keep=["7"])
    assert list(obfuscate(frame, **EACH)) == ["lon", "lat"]


# The index


@pytest.mark.parametrize(
    ("index", "name"),
    [
        (pd.Index(LAT), "index 0"),
        (pd.Index(LAT, name="note"), r"note \(index\)"),
        (pd.Index([f"{lat:.4f}" for lat in LAT], name="seen"), "seen"),
        (pd.Index(PLACES, dtype=object), "index 0"),
        (pd.Index((LAT * 1e5).astype(int)), "index 0"),
        (pd.MultiIndex.from_arrays([range(SIZE), LAT]), "index 1"),
        (pd.MultiIndex.from_arrays([range(SIZE), LAT], names=["n", "level"]), "level"),
    ],
    ids=str,
)
def test_an_index_that_repeats_coordinates_is_refused(index: pd.Index, name: str) -> None:
    frame = FRAME.set_axis(index, axis=0)
    with pytest.raises(InvalidInputError, match=rf"index level '{name}' repeats .* reset_index\(drop=True\)"):
        obfuscate(frame, **EACH)
    assert isinstance(obfuscate(frame.reset_index(drop=True), **EACH).index, pd.RangeIndex)


def test_an_index_that_repeats_coordinates_of_the_crs_is_refused() -> None:
    metres = points().to_crs(2154)
    with pytest.raises(InvalidInputError, match="repeats true coordinates"):
        obfuscate(metres.set_index(metres.geometry.x.round(1)), **EACH)


INDEXES: dict[str, pd.Index] = {
    "range": pd.RangeIndex(10, 10 + 3 * SIZE, 3, name="n"),
    "twice the same": pd.Index([0, 1] * 15),
    "times": HOURS.rename("at"),
    "periods": pd.period_range("2024", periods=SIZE, freq="h"),
    "intervals": pd.interval_range(0, SIZE),
    "levels": pd.MultiIndex.from_arrays([["a", "b"] * 15, range(SIZE)], names=["part", None]),
}


@pytest.mark.parametrize("kind", INDEXES)
def test_any_other_index_stays(kind: str) -> None:
    frame = FRAME.set_axis(INDEXES[kind], axis=0)
    reports = obfuscate(frame, **EACH, keep=["fare"])
    pd.testing.assert_index_equal(reports.index, frame.index)
    pd.testing.assert_series_equal(reports["fare"], frame["fare"])


def test_a_level_that_names_persons_or_records_leaves_only_if_it_is_kept() -> None:
    frame = FRAME.assign(who=["ana", "ben"] * 15).set_index("who")
    for named in ({"person": "who"}, {"id_column": "who"}):
        with pytest.raises(InvalidInputError, match=r"index level 'who' .* reset_index\(\) first"):
            obfuscate(frame, **{**EACH, **named})
    reports = obfuscate(frame, **{**EACH, "person": "who"}, keep=["who"])
    assert reports.columns.tolist() == ["lon", "lat"]
    assert reports.index.equals(frame.index)
    hidden = obfuscate(frame.reset_index(), **{**EACH, "person": "who"})
    assert isinstance(hidden.index, pd.RangeIndex)
    assert (hidden.to_numpy() == reports.to_numpy()).all()


# What does not leave


class Noted(pd.DataFrame):
    """A frame with an attribute of its own."""

    _metadata = ["note"]  # noqa: RUF012

    @property
    def _constructor(self) -> type:
        return Noted


def hidden() -> dict[str, pd.DataFrame]:
    """Return frames with a secret in another place each."""
    codes = pd.CategoricalDtype(["x", "y", "z", SECRET])
    arrow = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2] * 10), pa.array(["x", "y", "z", SECRET]))
    twice = pd.concat([FRAME.assign(note=SECRET), FRAME], ignore_index=True)
    under = pd.arrays.IntegerArray(np.frombuffer(SECRET.encode()[:8] * SIZE, "i8").copy(), np.ones(SIZE, bool))
    noted: Any = Noted(FRAME)
    noted.note = SECRET
    with_attrs = FRAME.assign(**{SECRET: SECRET})
    with_attrs.attrs = {"note": SECRET}
    return {
        "a column, its name, attrs": with_attrs,
        "the name of the columns": FRAME.rename_axis(columns=SECRET),
        "a category of the columns": FRAME.set_axis(pd.CategoricalIndex([*FRAME], [*FRAME, SECRET]), axis=1),
        "a category": FRAME.astype({"note": codes}),
        "the name of categories": FRAME.assign(
            note=pd.Categorical(FRAME["note"], pd.Index(["x", "y", "z"], name=SECRET))
        ),
        "an entry of Arrow": FRAME.assign(note=pd.arrays.ArrowExtensionArray(pa.chunked_array([arrow]))),
        "a value under a missing one": FRAME.assign(note=under),
        "what fills a sparse column": FRAME.assign(note=pd.arrays.SparseArray(["x"] * SIZE, fill_value=SECRET)),
        "a category of the index": FRAME.set_index(pd.CategoricalIndex(["a"] * SIZE, ["a", SECRET])),
        "a level of the index": twice.set_index(
            pd.MultiIndex.from_arrays([[SECRET] * SIZE + ["a"] * SIZE, range(2 * SIZE)])
        ).iloc[SIZE:],
        "an attribute of a subclass": noted,
    }


@pytest.mark.parametrize("place", hidden())
@pytest.mark.parametrize("limit", [False, True], ids=["all rows", "some rows"])
def test_nothing_but_named_columns_and_labels_is_in_the_bytes(place: str, limit: bool) -> None:
    frame = hidden()[place]
    assert SECRET.encode()[:8] in pickle.dumps(frame)
    options = {**EACH, "keep": ["note"]}
    if limit:
        frame = frame.assign(who=(["ana", "ben", "cyd"] * SIZE)[: len(frame)])
        options |= {"person": "who", "reports_per_person": 5}
    reports = obfuscate(frame, **options)
    assert len(reports) == 15 if limit else SIZE
    assert reports.columns.tolist() == ["lon", "lat", "note"]
    assert [*reports.attrs] == ["geoind"]
    assert SECRET.encode()[:8] not in pickle.dumps(reports)
    file = io.BytesIO()
    reports.to_parquet(file)
    assert SECRET.encode()[:8] not in file.getvalue()


def test_an_object_that_is_a_geometry_cannot_be_kept() -> None:
    homes = pd.Series([shapely.Point(5, 6), None] * 15, dtype=object)
    with pytest.raises(InvalidInputError, match="'homes' holds geometries"):
        obfuscate(FRAME.assign(homes=homes), **EACH, keep=["homes"])


# Parts of a frame, as Dask has them


def test_a_table_has_the_columns_that_are_needed_and_knows_the_others() -> None:
    frame = points().assign(when=HOURS, who="ana", other=[1, "one", None] * 10)
    table, batch = table_of(frame, Recipe.of(epsilon=0.01, person="who", keep=["fare"]).with_key())
    assert set(batch.schema.names) == {"fare", "geometry", "who", "when"}
    assert table.left_out == ["note", "when", "who", "other"]
    assert [place.names for place in table.places] == [("geometry",)]


def test_a_part_without_rows_is_a_frame_of_the_same_types() -> None:
    from geoind.tables.parts import Part
    from geoind.tables.release import Release

    recipe = Recipe.of(**EACH, keep=["fare", "note"]).with_key()
    empty = points().iloc[:0]
    table, batch = table_of(empty, recipe)
    refuse_index(empty, table, batch)
    part = Part(table)
    release = Release.of(table.recipe, part.count([batch]), table)
    (made,) = part.draw([batch], release)
    reports = reported(empty, table, made)
    assert reports.dtypes.equals(obfuscate(points(), **EACH, keep=["fare", "note"]).dtypes)
    assert reports.crs == 4326
