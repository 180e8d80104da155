"""Parquet and GeoParquet, a batch of rows at a time."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from geoind.errors import InvalidInputError
from geoind.files.formats import Kind
from geoind.files.rows import BatchRows, Rows
from geoind.files.sources import Bytes, Reading, Wanted
from geoind.tables import Recipe

__all__ = ["BATCH_ROWS", "ParquetSource"]

BATCH_ROWS = 1 << 17


@dataclass
class ParquetSource:
    """A Parquet file.

    Parameters
    ----------
    data : Bytes
        Where it is.
    reading : Reading
        How to read it.
    wanted : Wanted
        What of it.
    """

    data: Bytes
    reading: Reading
    wanted: Wanted
    unit: str = "row"
    codec: str = "snappy"
    _total: int = 0
    _done: int = 0

    def __post_init__(self) -> None:
        self.reading.fit(Kind("parquet", ""))

    def rows(self) -> Iterator[Rows]:
        """Yield the file's rows."""
        with self.data.opened() as stream:
            try:
                file = pq.ParquetFile(stream, pre_buffer=False)
                self.codec = _codec(file)
                self._total, self._done = file.metadata.num_rows, 0
                # With no rows: whatever is wrong with the columns is wrong before the first row.
                yield BatchRows(pa.RecordBatch.from_pylist([], schema=file.schema_arrow), 0)
                size = max(1, self._total) if self.wanted.at_once else BATCH_ROWS
                for batch in self._batches(file, size):
                    self._done += len(batch)
                    yield BatchRows(batch, self._done - len(batch))
            except pa.ArrowException as error:
                # Not its message: that may quote what the file holds.
                raise InvalidInputError(f"the Parquet file cannot be read ({type(error).__name__})") from None

    def _batches(self, file: Any, size: int) -> Iterator[pa.RecordBatch]:
        if self.wanted.at_once:
            yield from file.read().combine_chunks().to_batches(max_chunksize=size)
        else:
            yield from file.iter_batches(size)

    def share(self) -> float | None:
        """Return how much of the file was read."""
        return self._done / self._total if self._total else None

    def recipe(self, recipe: Recipe, rows: Rows) -> Recipe:  # noqa: ARG002
        """Return the recipe: the file's own schema tells where the places are."""
        return recipe

    def finish(self, recipe: Recipe) -> None:
        """Refuse nothing: the schema told all names."""


def _codec(file: Any) -> str:
    """Return how a file is compressed."""
    if not file.num_row_groups or not file.metadata.num_columns:
        return "snappy"
    name = str(file.metadata.row_group(0).column(0).compression).lower()
    return {"uncompressed": "none", "lz4_raw": "lz4"}.get(name, name)
