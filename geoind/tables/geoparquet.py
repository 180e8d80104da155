"""What a schema says about its places: the CRS, and the metadata that would give the truth away.

GeoParquet keeps JSON under the schema's key "geo", GeoArrow under the field's extension metadata.
"""

import json
from collections.abc import Collection
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from geoind.arrays import FloatArray
from geoind.errors import InvalidInputError
from geoind.space.crs import LONLAT, same_crs
from geoind.tables.names import tells_place

__all__ = [
    "box_columns",
    "covering_of",
    "declared_crs",
    "extension_name",
    "geometry_columns",
    "published_metadata",
    "telling_metadata",
]

KNOWN = (b"geo", b"pandas", b"geoind", b"ARROW:schema", b"gdal:schema", b"PANDAS_ATTRS")
"""Entries of a schema's metadata that are read, rewritten or harmless."""

ABOUT_COLUMN = ("encoding", "geometry_types", "crs", "edges", "orientation", "epoch", "covering")
"""What GeoParquet says of a column that is true of its reports too. Its bbox is not."""

ABOUT_FRAME = ("index_columns", "column_indexes", "columns", "creator", "pandas_version", "partition_columns")
"""What pandas says of a frame that is true of its reports too."""


def geometry_columns(schema: pa.Schema) -> list[str]:
    """Return the names of the columns that the schema declares to hold geometries, the primary one first."""
    geo = _geo(schema)
    names = [geo["primary_column"]] if "primary_column" in geo else []
    names += list(geo.get("columns", {}))
    names += [field.name for field in schema if _extension_of(field).startswith("geoarrow.")]
    return [name for name in dict.fromkeys(names) if name in schema.names]


def declared_crs(schema: pa.Schema, name: str) -> str | None:
    """Return the CRS that the schema declares for a geometry column, None where it says nothing."""
    crs = _text(_extension_metadata(schema.field(name)).get("crs"))
    column = _geo(schema).get("columns", {}).get(name)
    if column is None:
        return crs
    # GeoParquet: no entry means lon/lat, an entry of null means unknown.
    stored = _text(column.get("crs", LONLAT))
    if crs is None or stored is None:
        return crs or stored
    if not same_crs(crs, stored):
        raise InvalidInputError(f"column {name!r} declares two CRS: one in its type, another one in 'geo'")
    return crs


def _text(crs: Any) -> str | None:
    if crs is None or isinstance(crs, str):
        return crs
    if isinstance(crs, dict):
        return json.dumps(crs)
    raise InvalidInputError("the CRS in the geometry metadata must be text or an object")


def covering_of(schema: pa.Schema, name: str) -> str | None:
    """Return the column of per-row boxes that GeoParquet declares for a geometry column."""
    box = _geo(schema).get("columns", {}).get(name, {}).get("covering", {}).get("bbox")
    return str(box["xmin"][0]) if box else None


def telling_metadata(schema: pa.Schema) -> list[str]:
    """Return the entries of a schema's metadata that speak of a place by their names, or a member's name.

    Examples
    --------
    >>> telling_metadata(pa.schema({"a": pa.int64()}, {"extent": "2 48 3 49", "author": "ana"}))
    ['extent']
    """
    return [
        name.decode(errors="replace")
        for name, value in (schema.metadata or {}).items()
        if name not in KNOWN and not name.startswith(b"org.apache.spark.") and _tells(name, value)
    ]


def published_metadata(schema: pa.Schema, names: Collection[str], drop: Collection[str]) -> dict[bytes, bytes]:
    """Return the metadata that goes with the reports: without boxes, and without columns that are gone."""
    gone = {name.encode() for name in drop}
    metadata = {name: value for name, value in (schema.metadata or {}).items() if name not in gone}
    # A frame's own notes may hold anything, and say it a second time.
    metadata.pop(b"PANDAS_ATTRS", None)
    geo = _geo(schema)
    if geo:
        columns = {
            name: {key: value for key, value in about.items() if key in ABOUT_COLUMN}
            for name, about in geo.get("columns", {}).items()
            if name in names
        }
        kept = {key: geo[key] for key in ("version", "primary_column") if key in geo}
        metadata[b"geo"] = json.dumps({**kept, "columns": columns}).encode()
        if geo.get("primary_column") not in names:
            del metadata[b"geo"]
    if b"pandas" in metadata:
        metadata[b"pandas"] = _pandas(metadata[b"pandas"], names)
    return metadata


def _pandas(text: bytes, names: Collection[str]) -> bytes:
    """Return what pandas needs to know of the columns that are left; a frame's own notes may hold anything."""
    told = {key: value for key, value in _json(text).items() if key in ABOUT_FRAME}
    told["columns"] = [column for column in told.get("columns", []) if column.get("field_name") in names]
    kept = [entry for entry in told.get("index_columns", []) if isinstance(entry, dict) or entry in names]
    return json.dumps({**told, "index_columns": kept}).encode()


def box_columns(batch: pa.RecordBatch, name: str, coordinates: FloatArray) -> dict[str, pa.Array]:
    """Return the columns of per-row bounding boxes ("covering"), made from other coordinates."""
    column = covering_of(batch.schema, name)
    if column is None or column not in batch.schema.names:
        return {}
    box = _geo(batch.schema)["columns"][name]["covering"]["bbox"]
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


def _side(coordinates: FloatArray, side: str, kind: pa.DataType) -> pa.Array:
    values = coordinates[:, "xy".index(side[0])]
    if pa.types.is_float32(kind):
        # A box in single precision must still contain its point.
        outward = np.float32(-np.inf if side.endswith("min") else np.inf)
        return pa.array(np.nextafter(values.astype(np.float32), outward))
    return pa.array(np.ascontiguousarray(values)).cast(kind)


def published_field(field: pa.Field) -> pa.Field:
    """Return the field of a place without notes of its own, which may speak of the truth."""
    notes = dict(field.metadata or {})
    known = {key: value for key, value in notes.items() if key.startswith((b"ARROW:", b"PARQUET:"))}
    return field if known == notes else field.with_metadata(known)


def extension_name(kind: pa.DataType) -> str:
    """Return the name of an extension type, "" for any other."""
    return str(getattr(kind, "extension_name", ""))


@lru_cache(maxsize=256)
def _tells(name: bytes, value: bytes) -> bool:
    if tells_place(name.decode(errors="replace")):
        return True
    try:
        return any(tells_place(key) for key in _keys(json.loads(value)))
    except ValueError:
        return False


def _keys(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [*map(str, value), *(key for part in value.values() for key in _keys(part))]
    return [key for part in value for key in _keys(part)] if isinstance(value, list) else []


def _geo(schema: pa.Schema) -> dict[str, Any]:
    return _json((schema.metadata or {}).get(b"geo", b"{}"))


def _extension_of(field: pa.Field) -> str:
    named: bytes = (field.metadata or {}).get(b"ARROW:extension:name", b"")
    return extension_name(field.type) or named.decode()


def _extension_metadata(field: pa.Field) -> dict[str, Any]:
    if not _extension_of(field).startswith("geoarrow."):
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
