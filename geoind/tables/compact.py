"""Columns that hold the values of their rows and nothing else.

Arrow arrays share memory: a filtered column of text may hold the text of rows that were filtered out, a dictionary
entries that no row has, a null the value that it replaced. What is written to a file or sent has all of it.
"""

import numpy as np
import pyarrow as pa

from geoind.errors import InvalidInputError
from geoind.tables.places import without_views

__all__ = ["check_type", "compacted", "plain_type"]

LISTS = ("list", "large_list", "list_view", "large_list_view")


def compacted(column: pa.Array) -> pa.Array:
    """Return an equal column without entries, bytes under nulls or bytes of other rows.

    Examples
    --------
    >>> column = pa.DictionaryArray.from_arrays(pa.array([1, 1]), pa.array(["private", "public"]))
    >>> compacted(column).dictionary.to_pylist()
    ['public']
    """
    kind = column.type
    if isinstance(column, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(kind, compacted(column.storage))
    if pa.types.is_dictionary(kind):
        return _used(column)
    if _is_view(kind):
        return without_views(column).cast(kind)
    if pa.types.is_struct(kind) and kind.num_fields:
        fields = [kind.field(number) for number in range(kind.num_fields)]
        # flatten() hides the members of a struct that is null.
        members = [compacted(member) for member in column.flatten()]
        return pa.StructArray.from_arrays(members, fields=fields, mask=column.is_null())
    if any(_shares(kind.field(number).type) for number in range(kind.num_fields)):
        return pa.array(column.to_pylist(), kind)
    shares = column.null_count or kind.num_fields or column.nbytes < column.get_total_buffer_size()
    return column.take(pa.array(np.arange(len(column)))) if shares else column


def check_type(name: str, kind: pa.DataType) -> None:
    """Raise if columns of a type cannot be separated from other values in memory, such as run-end encoded ones."""
    try:
        compacted(pa.nulls(0, kind))
    except pa.ArrowNotImplementedError:
        raise InvalidInputError(f"column {name!r} has type {kind}, which cannot be kept: cast it") from None


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return a type without the metadata of its members.

    Examples
    --------
    >>> noted = pa.list_(pa.field("item", pa.int64(), metadata={"author": "ana"}))
    >>> plain_type(noted).value_field.metadata is None
    True
    """
    if isinstance(kind, pa.BaseExtensionType) or not kind.num_fields:
        return kind
    fields = [kind.field(number) for number in range(kind.num_fields)]
    fields = [pa.field(field.name, plain_type(field.type), field.nullable) for field in fields]
    if pa.types.is_struct(kind):
        return pa.struct(fields)
    if pa.types.is_map(kind):
        key, item = fields[0].type
        return pa.map_(key.type, item, keys_sorted=kind.keys_sorted)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(fields[0], kind.list_size)
    for name in LISTS:
        if getattr(pa.types, f"is_{name}")(kind):
            return getattr(pa, name if name != "list" else "list_")(fields[0])
    return kind


def _used(column: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return a dictionary of the entries that rows have, in their order."""
    used = np.zeros(len(column.dictionary), bool)
    used[column.indices.drop_null().to_numpy()] = True
    entries = compacted(without_views(column.dictionary).filter(pa.array(used))).cast(column.type.value_type)
    indices = pa.array(np.cumsum(used) - 1).take(column.indices).cast(column.type.index_type)
    return pa.DictionaryArray.from_arrays(indices, entries, ordered=column.type.ordered)


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def _shares(kind: pa.DataType) -> bool:
    """Return whether members of a list may hold more than their values after they were picked."""
    inside = [kind.field(number).type for number in range(kind.num_fields)]
    return pa.types.is_dictionary(kind) or pa.types.is_struct(kind) or _is_view(kind) or any(map(_shares, inside))
