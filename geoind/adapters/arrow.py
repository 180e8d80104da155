"""From record batch to record batch: what the command line, Dask and Spark share."""

from typing import TYPE_CHECKING, Literal

import numpy as np

from geoind.adapters.geoparquet import (
    LONLAT,
    box_columns,
    declared_crs,
    from_lonlat,
    geometry_columns,
    to_lonlat,
    without_boxes,
)
from geoind.adapters.points import Flags, GeometryColumn, LonLatColumns, PlaceColumns, column_of
from geoind.arrays import FloatArray, as_lonlat
from geoind.errors import InvalidInputError
from geoind.mechanisms.protocol import Mechanism
from geoind.pipeline import obfuscate_lonlat
from geoind.randomness import KeyedRandomness, RandomnessLike

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Missing", "located", "obfuscate_batch", "obfuscated_schema", "place_columns", "reported"]

Missing = Literal["keep", "raise"]


def obfuscate_batch(
    batch: "pa.RecordBatch",
    mechanism: Mechanism,
    *,
    lon: str | None = None,
    lat: str | None = None,
    geometry: str | None = None,
    crs: str | None = None,
    rng: RandomnessLike = None,
    missing: Missing = "keep",
) -> "pa.RecordBatch":
    """Return the batch with a report in place of each true location.

    Every other column, the order of rows and columns, the types and the metadata stay as they are, but for
    the bounding boxes of GeoParquet, which would give the truth away: the file's box is removed, each
    row's box is made from its report. **A column that tells the place in another way (an address, an H3 cell)
    stays too: drop it first.**

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        Places as two columns of degrees, or as one column of points: WKB, or GeoArrow's struct or list of x, y.
    mechanism : Mechanism
        Anything that samples lon/lat reports, such as `SphericalLaplace(epsilon)`.
    lon, lat : str, optional
        The two columns; "lon" and "lat" where the schema declares no geometry.
    geometry : str, optional
        The column of points; by default the first that the schema declares.
    crs : str, optional
        The CRS of the points where the schema declares none, such as "OGC:CRS84" for lon/lat.
    rng : RandomnessLike
        None for fresh noise; `KeyedRandomness` with one label per row to get the same report again.
    missing : "keep" or "raise"
        What to do with a row without a place: a null or an empty point. NaN is always an error.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from geoind import SphericalLaplace
    >>> batch = pa.RecordBatch.from_pydict({"trip": [7, 8], "lon": [2.2945, None], "lat": [48.8584, None]})
    >>> report = obfuscate_batch(batch, SphericalLaplace(0.01))
    >>> report.schema == batch.schema, report["trip"].to_pylist(), report["lat"].null_count
    (True, [7, 8], 1)
    """
    name = _geometry_name(batch.schema, lon, lat, geometry, crs)
    columns = _columns(batch, name, lon, lat)
    known_crs = _crs_of(columns, crs) if isinstance(columns, GeometryColumn) else LONLAT
    truth = _checked_truth(columns, known_crs, missing)
    _refuse_copies(batch, columns)
    reports = from_lonlat(_reports(truth, columns.missing, mechanism, rng), known_crs)
    if np.isinf(reports).any():
        raise InvalidInputError("the CRS has no coordinates for some reports: use one that covers them")
    changed = columns.written(reports)
    if name is not None:
        changed |= box_columns(batch, name, reports)
    arrays = [changed.get(field.name, array) for field, array in zip(batch.schema, batch.columns, strict=True)]
    import pyarrow as pa

    schema = batch.schema if name is None else without_boxes(batch.schema, name)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def located(
    batch: "pa.RecordBatch", *, lon: str | None = None, lat: str | None = None, geometry: str | None = None
) -> Flags:
    """Return which rows have a place, and so will get a report."""
    name = _geometry_name(batch.schema, lon, lat, geometry, None)
    return ~_columns(batch, name, lon, lat).missing


def reported(
    batch: "pa.RecordBatch",
    *,
    lon: str | None = None,
    lat: str | None = None,
    geometry: str | None = None,
    crs: str | None = None,
    missing: Missing = "keep",
) -> Flags:
    """Return which rows will get a report, and refuse places that `obfuscate_batch` would refuse."""
    columns = _columns(batch, _geometry_name(batch.schema, lon, lat, geometry, crs), lon, lat)
    _checked_truth(columns, _crs_of(columns, crs) if isinstance(columns, GeometryColumn) else LONLAT, missing)
    return ~columns.missing


def place_columns(
    schema: "pa.Schema", *, lon: str | None = None, lat: str | None = None, geometry: str | None = None
) -> list[str]:
    """Return the names of the columns in which places are written."""
    name = _geometry_name(schema, lon, lat, geometry, None)
    return [lon or "lon", lat or "lat"] if name is None else [name]


def obfuscated_schema(
    schema: "pa.Schema", *, lon: str | None = None, lat: str | None = None, geometry: str | None = None
) -> "pa.Schema":
    """Return the schema of the batches that `obfuscate_batch` makes: the same, without the true bounding box.

    Examples
    --------
    >>> import pyarrow as pa
    >>> schema = pa.schema({"lon": pa.float64(), "lat": pa.float64()})
    >>> obfuscated_schema(schema) == schema
    True
    """
    name = _geometry_name(schema, lon, lat, geometry, None)
    return schema if name is None else without_boxes(schema, name)


def _geometry_name(
    schema: "pa.Schema", lon: str | None, lat: str | None, geometry: str | None, crs: str | None
) -> str | None:
    """Return the column of points, or None for the two columns of degrees."""
    declared = geometry_columns(schema)
    if geometry is None and lon is None and lat is None and declared:
        geometry = declared[0]
    if geometry is not None and (lon is not None or lat is not None):
        raise InvalidInputError("give lon and lat, or geometry, not both")
    if geometry is None and crs is not None:
        raise InvalidInputError("crs belongs to a geometry: lon and lat are degrees")
    others = [name for name in declared if name != geometry]
    if others:
        raise InvalidInputError(f"column {others[0]!r} holds true places too: drop it first")
    return geometry


def _columns(
    batch: "pa.RecordBatch", name: str | None, lon: str | None, lat: str | None
) -> GeometryColumn | LonLatColumns:
    return LonLatColumns(batch, lon or "lon", lat or "lat") if name is None else GeometryColumn(batch, name)


def _refuse_copies(batch: "pa.RecordBatch", columns: GeometryColumn | LonLatColumns) -> None:
    """Refuse a batch with two columns of numbers that repeat the true coordinates."""
    import pyarrow as pa

    own = {columns.lon, columns.lat} if isinstance(columns, LonLatColumns) else {columns.name}
    others = [field.name for field in batch.schema if field.name not in own and pa.types.is_floating(field.type)]
    if len(others) < 2:
        return
    places = ~columns.missing
    truth = columns.coordinates[places]
    copied = set()
    for name in others:
        values = column_of(batch, name).cast(pa.float64()).to_numpy(zero_copy_only=False)[places]
        # A constant proves nothing: many columns are all zero.
        same = [np.array_equal(values, axis) and axis.min() < axis.max() for axis in truth.T if axis.size]
        if any(same):
            copied.add(name)
    if len(copied) > 1:
        raise InvalidInputError(f"the columns {sorted(copied)} repeat the true coordinates: drop them first")


def _crs_of(column: GeometryColumn, crs: str | None) -> str:
    """Return the CRS of the points; a doubt about it is an error."""
    declared = declared_crs(column.batch.schema, column.name)
    known = declared or crs
    if known is None:
        raise InvalidInputError(
            f"column {column.name!r} declares no CRS: give crs, such as 'OGC:CRS84' for lon/lat"
        )
    others = [f"EPSG:{srid}" for srid in column.srids] + ([crs] if crs is not None else [])
    if any(not _same_crs(known, other) for other in others):
        raise InvalidInputError(f"column {column.name!r} declares another CRS than crs or its own geometries")
    return known


def _same_crs(first: str, second: str) -> bool:
    import pyproj

    if first == second:
        return True
    return bool(pyproj.CRS(first).equals(pyproj.CRS(second), ignore_axis_order=True))


def _checked_truth(columns: PlaceColumns, crs: str, missing: Missing) -> FloatArray:
    """Return the true degrees, NaN where the location is missing."""
    if missing not in ("keep", "raise"):
        raise InvalidInputError(f"missing must be 'keep' or 'raise', got {missing!r}")
    if missing == "raise" and columns.missing.any():
        raise InvalidInputError(f"row {np.argmax(columns.missing)} has no location")
    truth = to_lonlat(columns.coordinates, crs)
    # Checked with every row in place, so that the message counts rows as the caller does.
    as_lonlat(np.where(columns.missing[:, None], 0.0, truth))
    return truth


def _reports(truth: FloatArray, missing: Flags, mechanism: Mechanism, rng: RandomnessLike) -> FloatArray:
    """Return reports, NaN where the location is missing."""
    if not missing.any():
        return obfuscate_lonlat(truth, mechanism, rng=rng)
    present = ~missing
    if isinstance(rng, KeyedRandomness):
        rng = rng.only(present)
    reports = np.full_like(truth, np.nan)
    reports[present] = obfuscate_lonlat(truth[present], mechanism, rng=rng)
    return reports
