"""Parquet and GeoParquet files, read by pyarrow."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from geoind.errors import InvalidInputError
from geoind.files.formats import Bytes, Source

__all__ = ["open_parquet"]

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
                if b"geoind:json" in (field.metadata or {}):
                    # It would be written as JSON without a check.
                    raise InvalidInputError(f"column {field.name!r} must not have the metadata geoind:json")
            yield file
        except (pa.ArrowException, OSError, UnicodeError) as error:
            # Not its message: it may quote the content of the file.
            raise InvalidInputError(f"the Parquet file cannot be read ({type(error).__name__})") from None
