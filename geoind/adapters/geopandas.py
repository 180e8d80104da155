"""Frames of pandas, geopandas and MovingPandas: `obfuscate`, and the accessor `frame.geoind.obfuscate`.

Importing this module adds the accessor to DataFrame, GeoDataFrame and GeoSeries. Kept columns are taken from the
frame that was given, so that they have their pandas types. The frame of reports is new: nothing else of the other
one is in it. Partitions of Dask are obfuscated by the same functions.
"""

import json
import logging
from dataclasses import replace
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import shapely

from geoind.accounting.record import ATTRS_KEY, PARQUET_KEY
from geoind.errors import InvalidInputError
from geoind.pipeline import Budget
from geoind.space.crs import parsed_crs
from geoind.tables.columns import listed, rows_of, sampled_rows
from geoind.tables.parts import Part, Reports, corners_of, decide_release
from geoind.tables.places import Points
from geoind.tables.recipe import Options, Recipe, with_options
from geoind.tables.table import Table

if TYPE_CHECKING:
    from geopandas import GeoDataFrame, GeoSeries

__all__ = ["obfuscate"]

log = logging.getLogger("geoind")

Frame: TypeAlias = "GeoSeries | GeoDataFrame | pd.DataFrame"


@with_options
def obfuscate(frame: Any, *, ledger: Budget | None = None, job: str = "frame", **options: Unpack[Options]) -> Any:
    """Return the frame with reports in place of true points, and only the kept columns.

    The index stays, so that reports can be joined to the frame; a level that repeats coordinates is an error. Kept
    columns have their own pandas types. Reports are in the CRS of the frame: in a geographic WGS84 frame they are
    places of the public lattice (5 decimals), in any other CRS such places, re-projected. A report has no height.
    `attrs["geoind"]` is the record of the release.

    Parameters
    ----------
    frame : GeoDataFrame, DataFrame, GeoSeries, or a Trajectory or TrajectoryCollection of MovingPandas
        True points, with a CRS, or columns of degrees. Of a GeoDataFrame the active geometry is replaced unless
        columns are named. A GeoSeries has no columns: its `person` is EACH_ROW. Of trajectories the frame of their
        points is returned, whose index is the time.
    ledger : Ledger, optional
        Charges all persons for their reports, or none. The same release again under the same key is free.
    job : str
        The label of the charge in the ledger.
    **options
        The keywords of `geoind.tables.Recipe.of`: `person` and one of `epsilon`, `level` and `radius`, `mechanism`
        are needed. `person`, `time`, `id_column` and `keep` may name levels of the index. With `time` the rows of
        a person must be in the order of time.

    Examples
    --------
    >>> from geoind import EACH_ROW
    >>> towers = geopandas.GeoDataFrame(
    ...     {"name": ["Eiffel", "Montparnasse"], "height": [330, 210]},
    ...     geometry=geopandas.points_from_xy([2.2945, 2.3219], [48.8584, 48.8421]),
    ...     crs=4326,
    ... )
    >>> reports = obfuscate(towers, person=EACH_ROW, keep=["height"], level=1.386, radius=200)
    >>> list(reports.columns), reports.crs == towers.crs
    (['height', 'geometry'], True)
    >>> plain = pd.DataFrame({"rider": ["ana", "ana"], "lon": [2.29, 2.3219], "lat": [48.86, 48.8421]})
    >>> plain.geoind.obfuscate(person="rider", epsilon=0.01).columns.tolist()
    ['lon', 'lat']
    """
    recipe = Recipe.of(**options).with_key()
    points = _points(frame)
    table, batch = table_of(points, recipe)
    refuse_index(points, table, batch)
    part = Part(table)
    release = decide_release(table, lambda work: [work(part, [batch])], ledger, job)
    (made,) = part.draw([batch], release)
    log.info("%s", release.summary(corners_of(made[2]), table.left_out, charged=ledger is not None))
    reports = reported(points, table, made)
    if not isinstance(frame, geopandas.GeoSeries):
        return reports
    series, record = reports.geometry.rename(frame.name), reports.attrs
    series.attrs = record
    return series


def _points(frame: Any) -> Any:
    """Return a frame with the points of a frame, a series, or trajectories."""
    if isinstance(frame, pd.DataFrame):
        return frame
    if isinstance(frame, geopandas.GeoSeries):
        return frame.to_frame("geometry")
    if hasattr(frame, "to_point_gdf"):
        return frame.to_point_gdf()
    raise InvalidInputError(
        f"frame must be a DataFrame, a GeoDataFrame, a GeoSeries or trajectories, got {type(frame).__name__}"
    )


@pd.api.extensions.register_dataframe_accessor("geoind")
@pd.api.extensions.register_series_accessor("geoind")
class _Accessor:
    """`frame.geoind` and `series.geoind`."""

    def __init__(self, frame: Frame) -> None:
        if not isinstance(frame, (pd.DataFrame, geopandas.GeoSeries)):
            # The error that `hasattr` expects: pandas offers an accessor to every series.
            raise AttributeError("only a frame or a GeoSeries has .geoind")
        self.obfuscate = MethodType(obfuscate, frame)


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
