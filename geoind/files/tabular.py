"""Reports of one format written as another: CSV, TSV, NDJSON and Parquet may become each other."""

import json
from collections.abc import Callable, Iterator
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from geoind.arrays import FloatArray
from geoind.errors import InvalidInputError
from geoind.files.delimited import spreadsheet_safe
from geoind.tables import LonLat, Obfuscated, Table, TablePromise
from geoind.tables.promise import PARQUET_KEY

__all__ = ["write_table"]


def write_table(
    made: Iterator[tuple[Table, Obfuscated]],
    target: IO[bytes],
    name: str,
    promise: Callable[[], TablePromise],
    *,
    safe: bool = False,
) -> None:
    """Write batches of reports, whatever they came from, in a format, with what they promise in the end."""
    writer: Any = None
    names: list[str] | None = None
    try:
        for table, part in made:
            batch = _plain(table, part, as_text=name != "parquet")
            if names not in (None, batch.schema.names):
                raise InvalidInputError(f"records with other members than the first cannot be written as {name}")
            if name == "ndjson":
                lines = [json.dumps(row, default=str, ensure_ascii=False) + "\n" for row in batch.to_pylist()]
                target.write("".join(lines).encode())
            elif name == "parquet":
                writer = writer or pq.ParquetWriter(target, batch.schema, compression="snappy")
                for field, first in zip(batch.schema, writer.schema, strict=True):
                    if field.type != first.type:
                        raise InvalidInputError(
                            f"column {field.name!r} is {first.type} in the first rows and {field.type} in later "
                            "ones, which Parquet cannot hold: write CSV or NDJSON"
                        )
                writer.write_batch(batch)
            else:
                target.write(_delimited(batch, tabs=name == "tsv", header=names is None, safe=safe))
            names = batch.schema.names if name != "ndjson" else None
        if writer is not None and promise().session is not None:
            writer.add_key_value_metadata({PARQUET_KEY: promise().to_json().encode()})
    except pa.ArrowException as error:
        # Not its message: that may quote what the file holds.
        raise InvalidInputError(f"the reports cannot be written as {name} ({type(error).__name__})") from None
    finally:
        if writer is not None:
            writer.close()


def _delimited(batch: pa.RecordBatch, *, tabs: bool, header: bool, safe: bool) -> bytes:
    """Return lines of text: fields that need it are quoted in CSV; TSV has no quotes, and no such fields."""
    fields = [_fields(pa.array([name]), name, tabs, safe).to_pylist()[0] for name in batch.schema.names]
    first = ("\t" if tabs else ",").join(fields) + "\n" if header else ""
    if not len(batch):
        return first.encode()
    columns = [
        _fields(column, name, tabs, safe) for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    lines = pc.binary_join_element_wise(*columns, "\t" if tabs else ",")
    return (first + "\n".join(lines.to_pylist()) + "\n").encode()


def _fields(column: pa.Array, name: str, tabs: bool, safe: bool) -> pa.Array:
    texts = pc.fill_null(column.cast(pa.string()), "")
    texts = spreadsheet_safe(texts) if safe else texts
    if not tabs:
        doubled = pc.replace_substring(texts, '"', '""')
        quoted = pc.binary_join_element_wise('"', doubled, '"', "")
        return pc.if_else(pc.match_substring_regex(texts, '[",\r\n]'), quoted, texts)
    if pc.any(pc.match_substring_regex(texts, "[\t\r\n]")).as_py():
        raise InvalidInputError(f"column {name!r} holds tabs or line breaks, which TSV cannot: write CSV")
    return texts


def _plain(table: Table, part: Obfuscated, *, as_text: bool) -> pa.RecordBatch:
    """Return the reports in a form that any of the formats can hold: places as two columns of degrees."""
    places = {}
    gone = set()
    for place, reports in zip(table.places, part.reports, strict=True):
        names = place.names if isinstance(place, LonLat) else ("lon", "lat")
        if not isinstance(place, LonLat):
            gone |= set(place.names)
        for name, values in zip(names, reports.T, strict=True):
            places[name] = _degrees(np.ascontiguousarray(values), table.promise)
    columns = {}
    for name, column in zip(part.batch.schema.names, part.batch.columns, strict=True):
        if name not in gone:
            columns[name] = places.get(name, _flat(name, column) if as_text else column)
    columns |= places
    told = None if table.recipe.trace else {PARQUET_KEY: table.promise.to_json().encode()}
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns)).replace_schema_metadata(told)


def _degrees(values: FloatArray, promise: TablePromise) -> pa.Array:
    return pa.array(np.round(values, promise.decimals), pa.float64(), mask=np.isnan(values))


def _flat(name: str, column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        raise InvalidInputError(
            f"column {name!r} holds bytes, which text cannot: drop it, or stay with the format"
        )
    if pa.types.is_nested(kind):
        return pa.array(
            [None if value is None else json.dumps(value, default=str) for value in column.to_pylist()]
        )
    return column.dictionary_decode() if pa.types.is_dictionary(kind) else column
