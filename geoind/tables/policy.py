"""What may stand beside a report: whatever does not tell the place, by its name, by its type or by its values.

A perfect report beside a copy of the truth protects nobody. A column (or a nested member, a metadata entry) that
tells is an error, which names it and the two ways out: drop it, or keep it, for whoever knows better.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress

import numpy as np
import pyarrow as pa

from geoind.arrays import IntArray
from geoind.errors import InvalidInputError
from geoind.tables.cells import cells_of
from geoind.tables.dictionaries import is_separable
from geoind.tables.geoparquet import extension_name, geometry_columns, telling_metadata
from geoind.tables.names import paired, tells_motion, tells_place
from geoind.tables.packed import bytes_in, telling_bytes, text_in
from geoind.tables.reading import is_number, leaves, plain_numbers, readable
from geoind.tables.values import Sample

__all__ = ["TELLS", "refuse", "telling_schema", "telling_values"]

TELLS = b"geoind tells"
"""In the metadata of a column: how it tells the place, by the word of a reader who knows its format."""

LOOKED_AT = 64
"""Numbers of a column that show whether it holds always the same few."""

Told = dict[str, str]
"""Columns that tell the place, and how."""


def refuse(told: Mapping[str, str]) -> None:
    """Raise an error that names the columns that tell the place, and the two ways out."""
    if not told:
        return
    what = ", ".join(f"{name!r} {how}" for name, how in told.items())
    raise InvalidInputError(
        f"this would tell the place beside the report: {what}. Leave it out with drop={list(told)} (--drop), "
        f"or pass it on with keep={list(told)} (--keep) if you know that it tells nothing"
    )


def telling_schema(schema: pa.Schema, passing: Sequence[str], *, moving: bool = False) -> Told:
    """Return what tells the place by its name or its type among the columns that would pass.

    Of traces (`moving`) also what tells how somebody moved: speed and course add up to the way that was taken.
    """
    told: Told = {}
    declared = set(geometry_columns(schema))
    wanted = set(passing)
    fields = [schema.field(position) for position, name in enumerate(schema.names) if name in wanted]
    for field in fields:
        if field.name in declared:
            told[field.name] = "holds geometries"
            continue
        if pa.types.is_boolean(field.type):
            # A bit holds no place, whatever it is called: address_verified.
            continue
        if TELLS in (field.metadata or {}):
            told[field.name] = field.metadata[TELLS].decode()
        if any(tells_place(key.decode(errors="replace")) for key in _own_notes(field)):
            told[field.name] = "has metadata that speak of a place"
        if moving and tells_motion(field.name):
            told[field.name] = "tells how somebody moved, by its name"
        for path, kind in _members(field.name, field.type):
            if field.name not in told and (how := _by_name(path, field.name) or _by_type(kind)):
                told[field.name] = how
    for name in paired(field.name for field in fields if _may_be_number(field.type)):
        told.setdefault(name, "is one of two coordinates by its name")
    return told


def telling_entries(schema: pa.Schema, drop: Iterable[str], keep: Iterable[str]) -> Told:
    """Return the metadata entries of a schema that tell a place by their names."""
    known = {*drop, *keep}
    return {name: "in the metadata speaks of a place" for name in telling_metadata(schema) if name not in known}


def telling_values(samples: Sequence[Sample], beside: pa.RecordBatch, passing: Sequence[str]) -> Told:
    """Return which columns repeat a true coordinate, and how.

    Parameters
    ----------
    samples : sequence of Sample
        The true places of some rows, one sample per place that a row has.
    beside : pyarrow.RecordBatch
        The same rows of the columns that would pass.
    passing : sequence of str
        The names of those columns.
    """
    told: Told = {}
    known = np.arange(len(beside))
    wanted = set(passing)
    columns = {name: beside.column(at) for at, name in enumerate(beside.schema.names) if name in wanted}
    clear = _clear_numbers(samples, columns)
    for name, column in columns.items():
        if name not in clear:
            how = _by_value(samples, name, column, known)
        else:
            how = _packed(samples, column, known) if clear[name] else None
        if how is not None:
            told[name] = how
    return told


def _clear_numbers(samples: Sequence[Sample], columns: Mapping[str, pa.Array]) -> dict[str, bool]:
    """Return the columns of plain numbers that come near no coordinate, and whether the numbers are whole.

    Most columns are such ones: all are looked at at once.
    """
    numbers = plain_numbers(columns)
    if not numbers or not samples or not len(samples[0].lonlat):
        return {}
    stack = np.vstack(list(numbers.values()))
    suspect = np.logical_or.reduce([sample.suspects(stack) for sample in samples])
    whole = ~np.any((stack != np.rint(stack)) & ~np.isnan(stack), axis=1)
    return dict(compress(zip(numbers, whole.tolist(), strict=True), ~suspect))


def _by_value(samples: Sequence[Sample], name: str, column: pa.Array, known: IntArray) -> str | None:
    if pa.types.is_nested(column.type) and _is_float_list(column.type) and (how := _pairs_of_numbers(column)):
        return how
    for path, leaf, rows in leaves(name, column, known):
        how = _packed(samples, leaf, rows) or _numbers(samples, leaf, rows)
        if how is not None:
            return how if path == name else f"{how} in {path!r}"
    return None


def _packed(samples: Sequence[Sample], leaf: pa.Array, rows: IntArray) -> str | None:
    """Return how a column without members tells a place but by its numbers: as cells of a map, or as bytes."""
    if (how := _cells(samples, leaf, rows)) is not None:
        return how
    unpacked = bytes_in(leaf, rows)
    if unpacked is None:
        return None
    if (how := telling_bytes(samples, *unpacked)) is not None:
        return how
    text, owners = text_in(unpacked[0]), unpacked[1]
    if text is None:
        return None
    return _cells(samples, text, owners) or _numbers(samples, text, owners)


def _numbers(samples: Sequence[Sample], leaf: pa.Array, rows: IntArray) -> str | None:
    """Return how the numbers of a column tell a place."""
    values, places = readable(leaf, rows)
    if not len(values):
        return None
    for sample in samples:
        unit = sample.copied_as(values, places)
        if unit is not None:
            return f"repeats {unit}"
        few = len(np.unique(values[:LOOKED_AT])) < LOOKED_AT // 4
        if sample.names_place(np.unique(values)) if few else sample.lists_places(values):
            return "repeats coordinates of other rows"
    return None


def _cells(samples: Sequence[Sample], column: pa.Array, rows: IntArray) -> str | None:
    """Return which cells of a map a column holds."""
    for sample in samples:
        if (cells := cells_of(column, sample.lonlat, rows)) is not None:
            return f"holds {cells}"
    return None


def _pairs_of_numbers(column: pa.Array) -> str | None:
    lengths = {len(value) for value in column.to_pylist()[:64] if value is not None}
    return "holds pairs of numbers" if lengths == {2} else None


def _by_name(path: str, root: str) -> str | None:
    if path == root:
        return "tells a place by its name" if tells_place(path) else None
    member = path.split(".")[-1]
    return f"tells a place by the name of its member {path!r}" if tells_place(member) else None


def _own_notes(field: pa.Field) -> list[bytes]:
    return [key for key in field.metadata or {} if not key.startswith((b"ARROW:", b"PARQUET:"))]


def _by_type(kind: pa.DataType) -> str | None:
    if pa.types.is_union(kind) or pa.types.is_run_end_encoded(kind) or not is_separable(kind):
        return f"is of a type into which nobody looks, {kind}"
    if extension_name(kind).startswith("geoarrow."):
        return "holds geometries"
    fields = [kind.field(number).type for number in range(kind.num_fields)] if pa.types.is_struct(kind) else []
    if len(fields) == 2 and all(map(is_number, fields)):
        return "holds pairs of numbers"
    if pa.types.is_fixed_size_list(kind) and kind.list_size == 2 and is_number(kind.value_type):
        return "holds pairs of numbers"
    return None


def _members(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """Yield the column and every member inside it."""
    yield path, kind
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_struct(kind):
        for number in range(kind.num_fields):
            yield from _members(f"{path}.{kind.field(number).name}", kind.field(number).type)
    elif pa.types.is_map(kind):
        yield from list(_members(path, kind.item_type))[1:]
    elif hasattr(kind, "value_type") and not pa.types.is_dictionary(kind):
        yield from list(_members(path, kind.value_type))[1:]


def _is_float_list(kind: pa.DataType) -> bool:
    return (
        hasattr(kind, "value_type") and not pa.types.is_dictionary(kind) and pa.types.is_floating(kind.value_type)
    )


def _may_be_number(kind: pa.DataType) -> bool:
    return is_number(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)
