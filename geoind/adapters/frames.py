"""Frames of pandas and geopandas, carried to `geoind.tables` and back: what GeoDataFrames and Dask share.

Only the columns that make reports become Arrow arrays in full. Of the others, and of the index, a sample is shown
to the policy; they stay in the frame as they are.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import shapely

from geoind.errors import InvalidInputError
from geoind.space.crs import as_crs
from geoind.tables import Examined, Obfuscated, Points, Recipe, Table
from geoind.tables.dictionaries import has_dictionary, used_only
from geoind.tables.names import listed
from geoind.tables.promise import ATTRS_KEY
from geoind.tables.values import ROWS

__all__ = ["examined", "placed", "reported", "table_of"]


def placed(frame: Any, recipe: Recipe) -> Recipe:
    """Return the recipe with the frame's active geometry, where it has one and no columns were named."""
    if recipe.places and not (isinstance(recipe.places[0], Points) and hasattr(frame, "active_geometry_name")):
        return recipe
    if not hasattr(frame, "active_geometry_name"):
        return recipe
    name = frame.active_geometry_name
    wanted = recipe.places[0].names if recipe.places else ()
    if name is None or (wanted and wanted != (name,)):
        raise InvalidInputError("the points must be the active geometry: choose them with set_geometry")
    crs = as_crs(frame.crs, f"column {name!r}")
    told = getattr(recipe.places[0], "crs", None) if recipe.places else None
    return replace(recipe, places=(Points(str(name), told or crs),))


def table_of(frame: Any, recipe: Recipe) -> Table:
    """Return the recipe for frames like this one; refuse columns, or an index, that tell the place."""
    names = [str(label) for label in frame.columns]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InvalidInputError(f"column {twice[0]!r} must be there once, the columns are {listed(names)}")
    some = np.unique(np.linspace(0, len(frame) - 1, min(ROWS, len(frame))).astype(np.int64))
    about = {"name of the columns": _told(frame.columns.names), "name of the index": _told(frame.index.names)}
    schema = _batch(frame.iloc[some]).schema
    return placed(frame, recipe).table(schema.with_metadata({name: text for name, text in about.items() if text}))


def examined(frame: Any, table: Table) -> Examined:
    """Return the frame's rows, looked at; nothing is drawn."""
    needed = [*(name for place in table.places for name in place.names)]
    needed += table.recipe.named
    batch = _batch(frame, list(dict.fromkeys(needed)))
    return table.examine(batch, beside=lambda rows: _batch(frame.iloc[rows]))


def reported(frame: Any, table: Table, made: Obfuscated) -> Any:
    """Return the frame with reports in place of true locations, without dropped columns, with the promise."""
    result = frame.iloc[made.rows] if len(made.rows) < len(frame) or table.recipe.order == "shuffle" else frame
    gone = [label for label in frame.columns if str(label) in table.recipe.drop]
    result = result.drop(columns=gone) if gone else result.copy(deep=False)
    for place in table.places:
        for name in place.names:
            values = made.batch.column(name).to_numpy(zero_copy_only=False)
            if isinstance(place, Points):
                result[name] = _shapes(values, frame[name], result.index)
            else:
                result[name] = pd.Series(values, index=result.index, copy=False).astype(frame[name].dtype)
    if any(name in table.recipe.drop for name in _levels(frame)) or table.recipe.order == "shuffle":
        # The numbers of the rows would tell their old order.
        result = result.reset_index(drop=True)
    for label, column in result.items():
        if (used := _used_only(column)) is not column:
            result[label] = used
    result.index, result.columns = _used_labels(result.index), _used_labels(result.columns)
    result.attrs = {ATTRS_KEY: table.promise.to_json()}
    return result


def _used_only(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return a column without categories that no row has."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.remove_unused_categories()
    if isinstance(column.dtype, pd.ArrowDtype) and has_dictionary(column.dtype.pyarrow_dtype):
        array = pd.arrays.ArrowExtensionArray(pa.chunked_array([used_only(_whole(pa.array(column)))]))
        return pd.Series(array, index=column.index, name=column.name)
    return column


def _used_labels(index: Any) -> Any:
    """Return the labels of an index without levels and categories that none of them has."""
    if not isinstance(index, pd.MultiIndex):
        return index.remove_unused_categories() if isinstance(index, pd.CategoricalIndex) else index
    index = index.remove_unused_levels()
    return index.set_levels([_used_labels(level) for level in index.levels], verify_integrity=False)


def _whole(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _told(labels: Any) -> str:
    return " ".join(str(label) for label in labels if label is not None)


def _levels(frame: Any) -> dict[str, Any]:
    """Return the levels of an index that is more than the numbers of the rows, under names that no column has."""
    if isinstance(frame.index, pd.RangeIndex):
        return {}
    taken = {str(label) for label in frame.columns}
    levels: dict[str, Any] = {}
    for level, label in enumerate(frame.index.names):
        unnamed = "index" if frame.index.nlevels == 1 else f"index {level}"
        name = unnamed if label is None else str(label)
        while name in taken or name in levels:
            name += " (index)"
        levels[name] = frame.index.get_level_values(level)
    return levels


def _batch(frame: Any, names: Sequence[str] | None = None) -> pa.RecordBatch:
    """Return some columns of a frame, or all and its index, as Arrow arrays."""
    columns: dict[str, Any] = {str(label): frame[label] for label in frame.columns}
    columns |= _levels(frame)
    made = [_array(name, columns[name], strict=names is not None) for name in names or columns]
    return pa.RecordBatch.from_arrays([array for _, array in made], schema=pa.schema([field for field, _ in made]))


def _array(name: str, column: Any, *, strict: bool) -> tuple[pa.Field, pa.Array]:
    """Return a column as an Arrow array; one of mixed kinds as text, unless it is needed as it is."""
    if str(column.dtype) == "geometry":
        wkb = pa.array(shapely.to_wkb(np.asarray(column, object)), pa.binary())
        crs = None if column.crs is None else json.loads(column.crs.to_json())
        about = {"ARROW:extension:name": "geoarrow.wkb", "ARROW:extension:metadata": json.dumps({"crs": crs})}
        return pa.field(name, pa.binary(), metadata=about), wkb
    try:
        array = pa.array(column, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        if strict:
            raise InvalidInputError(f"column {name!r} must hold values of one kind, got several") from None
        array = pa.array([str(value) for value in column], pa.string())
    array = _whole(array)
    return pa.field(name, array.type), array


def _shapes(wkb: Any, like: "pd.Series[Any]", index: Any) -> Any:
    return geopandas.GeoSeries.from_wkb(wkb, index=index, crs=like.crs)
