"""Columns whose values stand in a dictionary, which is written with them: it holds what rows use, nothing else."""

import numpy as np
import pyarrow as pa

from geoind.tables.places import rows_of

__all__ = ["has_dictionary", "is_separable", "used_only"]


def has_dictionary(kind: pa.DataType) -> bool:
    """Return whether there are dictionaries in a column of that type."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    inside = (kind.field(number).type for number in range(kind.num_fields))
    return pa.types.is_dictionary(kind) or any(map(has_dictionary, inside))


def used_only(column: pa.Array) -> pa.Array:
    """Return a column whose dictionaries, also inside lists and structs, have no entry that no row uses.

    Examples
    --------
    >>> column = pa.DictionaryArray.from_arrays([1, None, 1], ["a", "b", "c"])
    >>> used_only(column).dictionary.to_pylist(), used_only(column).to_pylist()
    (['b'], ['b', None, 'b'])
    """
    kind = column.type
    if not has_dictionary(kind):
        return column
    if isinstance(column, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(kind, used_only(column.storage))
    if not pa.types.is_dictionary(kind):
        # Picked, since a slice still holds what it was cut from.
        return column.cast(_decoded(kind)).take(pa.array(np.arange(len(column)))).cast(kind)
    used = np.zeros(len(column.dictionary), bool)
    used[column.indices.drop_null().to_numpy()] = True
    if used.all():
        return column
    entries = rows_of(pa.RecordBatch.from_arrays([column.dictionary], names=["entry"]), np.flatnonzero(used))
    # In their old order: entries may be sorted, and say so.
    indices = pa.array(np.cumsum(used) - 1).take(column.indices).cast(kind.index_type)
    return pa.DictionaryArray.from_arrays(indices, entries.column(0), ordered=kind.ordered)


def is_separable(kind: pa.DataType) -> bool:
    """Return whether Arrow can part a column of that type from entries that no row uses."""
    if not has_dictionary(kind):
        return True
    try:
        used_only(pa.nulls(0, kind))
    except pa.ArrowException:
        return False
    return True


def _decoded(kind: pa.DataType) -> pa.DataType:
    """Return a type without dictionaries."""
    if pa.types.is_dictionary(kind):
        return kind.value_type
    fields = [kind.field(number) for number in range(kind.num_fields)]
    plain = [field.with_type(_decoded(field.type)) for field in fields]
    if pa.types.is_struct(kind):
        return pa.struct(plain)
    if pa.types.is_map(kind):
        return pa.map_(*plain[0].type, keys_sorted=kind.keys_sorted)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(plain[0], kind.list_size)
    return pa.large_list(plain[0]) if pa.types.is_large_list(kind) else pa.list_(plain[0]) if plain else kind
