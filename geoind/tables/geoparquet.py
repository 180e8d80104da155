"""What a schema says about its geometries: which columns they are, and their CRS.

GeoParquet keeps JSON under the schema's key "geo", GeoArrow in the metadata of the field.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from geoind.errors import InvalidInputError
from geoind.space.crs import CODE, LONLAT, parsed_crs, same_crs
from geoind.tables.compact import plain_type
from geoind.tables.identities import JSON_TEXT

__all__ = ["declared_crs", "geometry_columns", "published_schema"]

ENCODINGS = ("WKB", "point")
EDGES = ("planar", "spherical")
VERSION = re.compile(r"[0-9.]{1,16}")


def geometry_columns(schema: pa.Schema) -> list[str]:
    """Return the names of the columns that the schema declares to hold geometries, the primary one first."""
    geo = _geo(schema)
    names = [geo["primary_column"]] if isinstance(geo.get("primary_column"), str) else []
    names += _columns(geo)
    names += [field.name for field in schema if _extension_of(field).startswith("geoarrow.")]
    return [name for name in dict.fromkeys(names) if name in schema.names]


def declared_crs(schema: pa.Schema, name: str) -> str | None:
    """Return the CRS that the schema declares for a geometry column, None where it says nothing."""
    crs = _text(_extension_metadata(schema.field(name)).get("crs"))
    column = _columns(_geo(schema)).get(name)
    if column is None:
        return crs
    # GeoParquet: no entry means lon/lat, an entry of null means unknown.
    stored = _text(column.get("crs", LONLAT))
    if crs is None or stored is None:
        return crs or stored
    if not same_crs(crs, stored):
        raise InvalidInputError(f"column {name!r} declares two CRS: one in its type, another one in 'geo'")
    return crs


def published_schema(schema: pa.Schema, names: Iterable[str], places: Iterable[str]) -> pa.Schema:
    """Return the schema of reports: some columns, and of all metadata what a geometry needs to be read.

    Examples
    --------
    >>> schema = pa.schema({"a": pa.int64(), "b": pa.int64()}, {"author": "ana"})
    >>> published_schema(schema, ["a"], []).metadata is None
    True
    """
    wanted, points = set(names), set(places)
    fields = [_bare(field, geometry=field.name in points) for field in schema if field.name in wanted]
    geo = _geo(schema)
    about = {name: _about(column) for name, column in _columns(geo).items() if name in points}
    if not about:
        return pa.schema(fields)
    primary = geo["primary_column"] if geo.get("primary_column") in about else next(iter(about))
    version = geo.get("version")
    known = isinstance(version, str) and VERSION.fullmatch(version)
    kept = {"version": version if known else "1.1.0", "primary_column": primary, "columns": about}
    return pa.schema(fields, {b"geo": json.dumps(kept).encode()})


def _about(column: dict[str, Any]) -> dict[str, Any]:
    """Return what GeoParquet says of a column that is true of its reports, too, in values that it defines."""
    about = {"encoding": column.get("encoding"), "geometry_types": ["Point"]}
    if about["encoding"] not in ENCODINGS:
        about["encoding"] = ENCODINGS[0]
    about |= {"crs": _without_notes(column["crs"])} if "crs" in column else {}
    return about | {key: column[key] for key in ("edges",) if column.get(key) in EDGES}


def _bare(field: pa.Field, *, geometry: bool) -> pa.Field:
    """Return a field without metadata, but for the CRS of a geometry and the mark of JSON values."""
    metadata = {key: value for key, value in (field.metadata or {}).items() if key == JSON_TEXT}
    if (
        geometry
        and _extension_of(field).startswith("geoarrow.")
        and not isinstance(field.type, pa.BaseExtensionType)
    ):
        known = _extension_metadata(field)
        about = {"crs": _without_notes(known["crs"])} if "crs" in known else {}
        about |= {"edges": known["edges"]} if known.get("edges") in EDGES else {}
        metadata = {"ARROW:extension:name": _extension_of(field), "ARROW:extension:metadata": json.dumps(about)}
    return pa.field(field.name, plain_type(field.type), field.nullable, metadata or None)


def _without_notes(crs: Any) -> Any:
    """Return a CRS by its code, or as PROJJSON without the notes of its author."""
    text = _text(crs)
    return crs if text is None or CODE.fullmatch(text) else parsed_crs(text).to_json_dict()


def _text(crs: Any) -> str | None:
    if crs is None or isinstance(crs, str):
        return crs
    if isinstance(crs, dict):
        return json.dumps(crs)
    raise InvalidInputError("the CRS in the geometry metadata must be text or an object")


def _geo(schema: pa.Schema) -> dict[str, Any]:
    return _json((schema.metadata or {}).get(b"geo", b"{}"))


def _columns(geo: dict[str, Any]) -> dict[str, dict[str, Any]]:
    columns = geo.get("columns", {})
    if not isinstance(columns, dict) or not all(isinstance(column, dict) for column in columns.values()):
        raise InvalidInputError("the geometry metadata of the schema must have an object per column")
    return columns


def _extension_of(field: pa.Field) -> str:
    named: bytes = (field.metadata or {}).get(b"ARROW:extension:name", b"")
    return str(getattr(field.type, "extension_name", "")) or named.decode(errors="replace")


def _extension_metadata(field: pa.Field) -> dict[str, Any]:
    if not _extension_of(field).startswith("geoarrow."):
        return {}
    if hasattr(field.type, "__arrow_ext_serialize__"):
        return _json(field.type.__arrow_ext_serialize__())
    return _json((field.metadata or {}).get(b"ARROW:extension:metadata", b""))


def _json(text: bytes) -> dict[str, Any]:
    try:
        result = json.loads(text or b"{}")
    except (ValueError, RecursionError) as error:
        raise InvalidInputError("the geometry metadata of the schema is not JSON") from error
    if not isinstance(result, dict):
        raise InvalidInputError("the geometry metadata of the schema is not a JSON object")
    return result
