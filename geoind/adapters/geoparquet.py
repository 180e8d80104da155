"""What a schema says about its places: the CRS, and the boxes that would give the truth away.

GeoParquet keeps JSON under the schema's key "geo", GeoArrow under the field's extension metadata.
"""

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from geoind.arrays import FloatArray
from geoind.errors import InvalidInputError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyproj import Transformer

__all__ = ["box_columns", "declared_crs", "from_lonlat", "geometry_columns", "to_lonlat", "without_boxes"]

LONLAT = "OGC:CRS84"


def geometry_columns(schema: "pa.Schema") -> list[str]:
    """Return the names of the columns that the schema declares to hold geometries, the primary one first."""
    geo = _geo(schema)
    names = [geo["primary_column"]] if "primary_column" in geo else []
    names += list(geo.get("columns", {}))
    names += [field.name for field in schema if _extension_name(field).startswith("geoarrow.")]
    return [name for name in dict.fromkeys(names) if name in schema.names]


def declared_crs(schema: "pa.Schema", name: str) -> str | None:
    """Return the CRS that the schema declares for a geometry column, None where it says nothing."""
    crs = _extension_metadata(schema.field(name)).get("crs")
    column = _geo(schema).get("columns", {}).get(name)
    if crs is None and column is not None:
        # GeoParquet: no entry means lon/lat, an entry of null means unknown.
        crs = column.get("crs", LONLAT)
    return json.dumps(crs) if isinstance(crs, dict) else crs


def without_boxes(schema: "pa.Schema", name: str) -> "pa.Schema":
    """Return the schema without the bounding box of the true places."""
    geo = _geo(schema)
    if "bbox" not in geo.get("columns", {}).get(name, {}):
        return schema
    del geo["columns"][name]["bbox"]
    return schema.with_metadata({**schema.metadata, b"geo": json.dumps(geo).encode()})


def box_columns(batch: "pa.RecordBatch", name: str, coordinates: FloatArray) -> "dict[str, pa.Array]":
    """Return the columns of per-row bounding boxes ("covering"), made from other coordinates."""
    import pyarrow as pa

    box = _geo(batch.schema).get("columns", {}).get(name, {}).get("covering", {}).get("bbox")
    if not box:
        return {}
    column = box["xmin"][0]
    kind = batch.schema.field(column).type
    sides = {path[1]: side for side, path in box.items()}
    if not pa.types.is_struct(kind) or {kind.field(i).name for i in range(kind.num_fields)} != set(sides):
        raise InvalidInputError(
            f"column {column!r} holds boxes of the true places that cannot be made anew: drop it"
        )
    missing = np.isnan(coordinates).all(axis=1)
    fields = [kind.field(number) for number in range(kind.num_fields)]
    parts = [_side(coordinates, sides[field.name], field.type) for field in fields]
    return {column: pa.StructArray.from_arrays(parts, fields=fields, mask=pa.array(missing))}


def _side(coordinates: FloatArray, side: str, kind: "pa.DataType") -> "pa.Array":
    import pyarrow as pa

    values = coordinates[:, "xy".index(side[0])]
    if pa.types.is_float32(kind):
        # A box in single precision must still contain its point.
        outward = np.float32(-np.inf if side.endswith("min") else np.inf)
        return pa.array(np.nextafter(values.astype(np.float32), outward))
    return pa.array(np.ascontiguousarray(values)).cast(kind)


def to_lonlat(coordinates: FloatArray, crs: str) -> FloatArray:
    """Return WGS84 degrees, longitude first, for coordinates in a CRS."""
    return _carried(coordinates, _transformer(crs, False))


def from_lonlat(lonlat: FloatArray, crs: str) -> FloatArray:
    """Return coordinates in a CRS for WGS84 degrees, longitude first."""
    return _carried(lonlat, _transformer(crs, True))


def _carried(points: FloatArray, transformer: "Transformer | None") -> FloatArray:
    return points if transformer is None else np.column_stack(transformer.transform(*points.T))


@lru_cache(maxsize=64)
def _transformer(crs: str, inverse: bool) -> "Transformer | None":
    if crs in (LONLAT, "EPSG:4326"):
        return None
    import pyproj

    try:
        parsed = pyproj.CRS.from_user_input(crs)
    except pyproj.exceptions.CRSError as error:
        raise InvalidInputError(f"crs is not known: {crs!r}") from error
    if parsed.equals(pyproj.CRS.from_user_input(LONLAT), ignore_axis_order=True):
        return None
    source, target = (LONLAT, parsed) if inverse else (parsed, LONLAT)
    return pyproj.Transformer.from_crs(source, target, always_xy=True)


def _geo(schema: "pa.Schema") -> dict[str, Any]:
    return _json((schema.metadata or {}).get(b"geo", b"{}"))


def _extension_name(field: "pa.Field") -> str:
    named: bytes = (field.metadata or {}).get(b"ARROW:extension:name", b"")
    return str(getattr(field.type, "extension_name", named.decode()))


def _extension_metadata(field: "pa.Field") -> dict[str, Any]:
    if not _extension_name(field).startswith("geoarrow."):
        return {}
    if hasattr(field.type, "__arrow_ext_serialize__"):
        return _json(field.type.__arrow_ext_serialize__())
    return _json((field.metadata or {}).get(b"ARROW:extension:metadata", b""))


def _json(text: bytes) -> dict[str, Any]:
    try:
        result = json.loads(text or b"{}")
    except ValueError as error:
        raise InvalidInputError("the geometry metadata of the schema is not JSON") from error
    if not isinstance(result, dict):
        raise InvalidInputError("the geometry metadata of the schema is not a JSON object")
    return result
