"""Frames of pandas and geopandas as Arrow tables, and reports as frames: what GeoDataFrames and Dask share.

Kept columns are taken from the frame that was given, so that they have their pandas types. The frame of reports is
new: nothing else of the other one is in it.
"""

import json
from dataclasses import replace
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import shapely

from geoind.errors import InvalidInputError
from geoind.space.crs import parsed_crs
from geoind.tables.checks import sampled_rows
from geoind.tables.columns import listed, rows_of
from geoind.tables.parts import Reports
from geoind.tables.places import Points
from geoind.tables.recipe import Recipe
from geoind.tables.record import ATTRS_KEY, PARQUET_KEY
from geoind.tables.table import Table


def table_of(frame: Any, recipe: Recipe) -> tuple[Table, pa.RecordBatch]:
    """Return the recipe for a frame, and its rows: the needed columns, and those of times.

    Parameters
    ----------
    frame : DataFrame or GeoDataFrame
        Its places are the active geometry, unless the recipe names columns. A level of the index is a column, too,
        where the recipe names it as person, time, id or kept column.
    recipe : Recipe
        What is done.
    """
    columns = [(str(label), frame.iloc[:, number]) for number, label in enumerate(frame.columns)]
    levels = _levels(frame)
    for name in {*recipe.named, *recipe.keep} & {*levels}:
        if name not in recipe.published:
            raise InvalidInputError(
                f"index level {name!r} names persons or records, and the index leaves with the reports: call "
                "reset_index() first, or name it in `keep=`"
            )
        columns.append((name, levels[name]))
    recipe = _placed(frame, recipe)
    outline = Table(recipe, pa.schema([_field(name, values) for name, values in columns]))
    known = dict(columns) | levels
    texts = {*recipe.keep} - {*recipe.named}
    arrays = {name: array_of(name, known[name], as_text=name in texts) for name in outline.needed}
    fields = [
        field.with_type(arrays[field.name].type) if field.name in arrays else field for field in outline.schema
    ]
    table = Table(recipe, pa.schema(fields))
    # Numbers of an index may be positions along a curve through the map, such as those of `hilbert_distance`.
    timed = dict(columns) | {name: level for name, level in levels.items() if level.dtype.kind not in "iuf"}
    some = sampled_rows(len(frame))
    sample = {name: array_of(name, values.take(some), as_text=True) for name, values in timed.items()}
    for name in table.clocks(pa.RecordBatch.from_pydict(sample)):
        arrays.setdefault(name, array_of(name, known[name], as_text=True))
    return table, pa.RecordBatch.from_pydict(arrays)


def refuse_index(frame: Any, table: Table, batch: pa.RecordBatch) -> None:
    """Raise if a level of the index repeats the true coordinates of its rows, in a sample of the rows."""
    rows = sampled_rows(len(frame))
    examined = table.examine(rows_of(batch, rows))
    for name, values in _levels(frame).items():
        level = pa.RecordBatch.from_pydict({name: array_of(name, values.take(rows[examined.rows]), as_text=True)})
        kept = Table(replace(table.recipe, keep=(name,)), table.schema, one_of_several=True)
        try:
            kept.refuse_copies(replace(examined, batch=level))
        except InvalidInputError:
            raise InvalidInputError(
                f"index level {listed([name])!r} repeats true coordinates of its rows: call "
                "reset_index(drop=True) first"
            ) from None


def reported(frame: Any, table: Table, made: Reports) -> Any:
    """Return the frame of reports: the columns that leave, the index and the CRS of a frame, and the record."""
    batch, rows, _ = made
    if table.recipe.order == "shuffle":
        # The labels of the rows would show their old order.
        index: Any = pd.RangeIndex(len(rows))
    elif isinstance(frame.index, pd.RangeIndex) and len(rows) == len(frame):
        index = frame.index
    else:
        index = _used_labels(frame.index.take(rows))
    data, geometry = {}, None
    for number, label in enumerate(frame.columns):
        if str(label) in table.reported_schema.names:
            column = frame.iloc[:, number]
            place = any(str(label) in place.names for place in table.places)
            if place and _is_geometry(column):
                geometry = label
            data[label] = _column(column, made, str(label), place=place).set_axis(index)
    result = pd.DataFrame(data, index=index)
    if geometry is not None:
        result = geopandas.GeoDataFrame(result, geometry=geometry)
    result.attrs = {ATTRS_KEY: batch.schema.metadata[PARQUET_KEY].decode()}
    return result


def _placed(frame: Any, recipe: Recipe) -> Recipe:
    """Return the recipe with the active geometry of a frame, where no columns are named."""
    name = getattr(frame, "active_geometry_name", None)
    crs = recipe.places[0].crs if recipe.places and isinstance(recipe.places[0], Points) else None
    if name is None or (recipe.places and recipe.places[0] != Points(None, crs)):
        return recipe
    return replace(recipe, places=(Points(str(name), crs),))


def _levels(frame: Any) -> dict[str, Any]:
    """Return the levels of the index, under names that no column has."""
    taken, levels = {str(label) for label in frame.columns}, dict[str, Any]()
    for number, label in enumerate(frame.index.names):
        name = f"index {number}" if label is None else str(label)
        while name in taken or name in levels:
            name += " (index)"
        levels[name] = frame.index.get_level_values(number)
    return levels


def _is_geometry(column: Any) -> bool:
    return str(column.dtype) == "geometry"


def _field(name: str, column: Any) -> pa.Field:
    """Return the name of a column, and whether it is a geometry; its type is known when it is read."""
    if not _is_geometry(column):
        return pa.field(name, pa.null())
    about = {"crs": None if column.crs is None else json.loads(column.crs.to_json())}
    metadata = {"ARROW:extension:name": "geoarrow.wkb", "ARROW:extension:metadata": json.dumps(about)}
    return pa.field(name, pa.binary(), metadata=metadata)


def array_of(name: str, column: Any, *, as_text: bool = False) -> pa.Array:
    """Return a column as an Arrow array; one of mixed kinds as text, to be looked at, or an error."""
    if _is_geometry(column) or column.dtype == object:
        values = np.array(column, object)
        shapes = shapely.is_geometry(values)
        if shapes.any() or _is_geometry(column):
            values[~shapes] = None
            return pa.array(shapely.to_wkb(values), pa.binary())
    try:
        array = pa.array(column, from_pandas=True)
    except (pa.ArrowException, OverflowError, TypeError, UnicodeError):
        if not as_text:
            raise InvalidInputError(f"column {name!r} must hold values of one kind, got several") from None
        array = pa.array([str(value).encode("utf-8", "replace").decode() for value in column], pa.string())
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _column(column: Any, made: Reports, name: str, *, place: bool) -> Any:
    """Return a column of reports, or the rows of a kept one, in the type of the column given."""
    array = made[0].column(name)
    if _is_geometry(column):
        # Without the notes of the author of the CRS.
        crs = parsed_crs(column.crs.to_json())
        return geopandas.GeoSeries.from_wkb(array.to_numpy(zero_copy_only=False), crs=crs)
    if hasattr(column.dtype, "__from_arrow__"):
        # Not from the frame: its arrays may have values under a missing one, and entries that no row has.
        kind: Any = pd.ArrowDtype(array.type) if isinstance(column.dtype, pd.ArrowDtype) else column.dtype
        return pd.Series(kind.__from_arrow__(array))
    if place:
        return array.to_pandas().astype(column.dtype)
    taken = column.take(made[1])
    if isinstance(taken.dtype, pd.SparseDtype) and taken.sparse.npoints == len(taken):
        # No row has the value that fills the others.
        taken = taken.sparse.to_dense()
    if isinstance(taken.dtype, pd.CategoricalDtype):
        taken = taken.cat.remove_unused_categories()
        taken = taken.cat.rename_categories(taken.cat.categories.rename(None))
    return taken


def _used_labels(index: Any) -> Any:
    """Return an index without levels and categories that no label has."""
    if isinstance(index, pd.MultiIndex):
        index = index.remove_unused_levels()
        return index.set_levels([_used_labels(level) for level in index.levels], verify_integrity=False)
    return index.remove_unused_categories() if isinstance(index, pd.CategoricalIndex) else index
