"""Reports of one format written as another: CSV, TSV, NDJSON and Parquet may become each other."""

import json
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from geoind.arrays import FloatArray
from geoind.errors import InvalidInputError
from geoind.tables import LonLat, Obfuscated, Promise, Table

__all__ = ["CONVERTIBLE", "write_table"]

CONVERTIBLE = ("csv", "tsv", "ndjson", "parquet")


def write_table(
    made: Iterator[tuple[Table, Obfuscated]], target: IO[bytes], name: str, *, codec: str = "snappy"
) -> None:
    """Write batches of reports, whatever they came from: a name of a format and, for Parquet, a compression."""
    writer: Any = None
    try:
        for table, part in made:
            batch = _plain(table, part, as_text=name != "parquet")
            if name == "ndjson":
                lines = [json.dumps(row, default=str, ensure_ascii=False) + "\n" for row in batch.to_pylist()]
                target.write("".join(lines).encode())
                continue
            if writer is None:
                writer = _writer(target, name, batch.schema, codec)
            writer.write_batch(batch)
    except (pa.ArrowException, KeyError) as error:
        # Not its message: that may quote what the file holds.
        raise InvalidInputError(f"the reports cannot be written as {name} ({type(error).__name__})") from None
    finally:
        if writer is not None:
            writer.close()


def _writer(target: IO[bytes], name: str, schema: pa.Schema, codec: str) -> Any:
    if name == "parquet":
        return pq.ParquetWriter(target, schema, compression=codec)
    options = pa.csv.WriteOptions(delimiter="\t" if name == "tsv" else ",", quoting_style="needed")
    return pa.csv.CSVWriter(target, schema, write_options=options)


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
    told = {b"geoind": table.promise.to_json().encode()}
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns)).replace_schema_metadata(told)


def _degrees(values: FloatArray, promise: Promise) -> pa.Array:
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
