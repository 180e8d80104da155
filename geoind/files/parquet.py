"""Parquet and GeoParquet files, by pyarrow."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from geoind.accounting.record import PARQUET_KEY
from geoind.errors import InvalidInputError
from geoind.files.formats import Bytes, Source
from geoind.files.writers import Layout, Part, is_json, text_of
from geoind.tables.columns import JSON_TEXT
from geoind.tables.places import Points, crs_metadata, geo_metadata

BATCH_ROWS = 1 << 17


def open_parquet(data: Bytes) -> Source:
    """Return the rows of a Parquet file, in the types of the file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "in.parquet")
    ...     pq.write_table(pa.table({"n": [1, 2], "lon": [2.2, 2.3]}), path)
    ...     next(open_parquet(Bytes(path)).rows(["n"])).batch.to_pylist()
    [{'n': 1}, {'n': 2}]
    """

    def read(wanted: list[str]) -> Iterator[pa.RecordBatch]:
        with _opened(data) as file:
            for batch in file.iter_batches(BATCH_ROWS, columns=wanted):
                # Text that is not UTF-8 would be an error of its reader.
                batch.validate(full=True)
                # pyarrow takes "a.b" for a member of "a", too.
                chosen = [at for at, name in enumerate(batch.schema.names) if name in wanted]
                yield batch.select(chosen)

    with _opened(data) as file:
        return Source(file.schema_arrow, read)


@contextmanager
def _opened(data: Bytes) -> Iterator[Any]:
    with data.opened() as stream:
        try:
            file = pq.ParquetFile(stream, pre_buffer=False)
            for field in file.schema_arrow:
                if JSON_TEXT in (field.metadata or {}):
                    # It would be written as JSON without a check.
                    raise InvalidInputError(
                        f"column {field.name!r} must not have the metadata {JSON_TEXT.decode()}"
                    )
            yield file
        except (pa.ArrowException, OSError, UnicodeError) as error:
            # Not its message: it may quote the content of the file.
            raise InvalidInputError(f"the Parquet file cannot be read ({type(error).__name__})") from None


def write_parquet(stream: IO[bytes], parts: Iterator[Part], layout: Layout) -> None:
    """Write a table with the release record, and the metadata of GeoParquet if there are points."""

    def converted(part: Part) -> pa.Table:
        columns = layout.columns(part).items()
        return pa.table(
            {name: text_of(*one).cast(pa.string()) if is_json(one[0]) else one[1] for name, one in columns}
        )

    points = {
        name: crs_metadata(place.crs)
        for place in layout.places
        if isinstance(place, Points)
        for name in place.names
    }
    metadata = {key: value for key, value in (layout.schema.metadata or {}).items() if key == PARQUET_KEY}
    fields = converted(layout.empty).schema
    schema = pa.schema(
        [(field.name, field.type) for field in fields], metadata | (geo_metadata(points) if points else {})
    )
    # A dictionary of numbers that are all different takes more time and space than the numbers.
    repeated = [field.name for field in schema if not (pa.types.is_primitive(field.type) or field.name in points)]
    with pq.ParquetWriter(stream, schema, use_dictionary=repeated) as writer:
        for part in parts:
            writer.write_table(converted(part))
