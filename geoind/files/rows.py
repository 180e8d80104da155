"""Some records of a file: as a record batch, as what they were, and as what they become."""

import json
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from geoind.arrays import IntArray
from geoind.files.rejects import BadRecord

__all__ = ["BatchRows", "Rows"]


class Rows(Protocol):
    """What a source yields."""

    @property
    def schema(self) -> pa.Schema:
        """All columns that pass, or hold places."""
        ...

    @property
    def batch(self) -> pa.RecordBatch:
        """One row per record: all columns, or at least those that are needed to make reports."""
        ...

    def beside(self, rows: IntArray) -> pa.RecordBatch:
        """Return all columns of some rows."""
        ...

    @property
    def problems(self) -> list[BadRecord]:
        """Records that are no rows."""
        ...

    def line(self, row: int) -> int:
        """Return where in the file a row is."""
        ...

    def record(self, row: int) -> bytes:
        """Return what a row was."""
        ...

    def written(self, reports: pa.RecordBatch, rows: IntArray) -> bytes:
        """Return some rows as their file would write them, with the places that a batch of as many rows has."""
        ...


@dataclass(frozen=True, eq=False)
class BatchRows:
    """Rows of a table that come as a record batch, numbered from 0.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        All columns.
    first : int
        The number of the first row in its file.
    """

    batch: pa.RecordBatch
    first: int
    problems: list[BadRecord] = field(default_factory=list)

    @property
    def schema(self) -> pa.Schema:
        """All columns."""
        return self.batch.schema

    def beside(self, rows: IntArray) -> pa.RecordBatch:
        """Return all columns of some rows."""
        return self.batch.take(pa.array(rows))

    def line(self, row: int) -> int:
        """Return the number of a row in its file."""
        return self.first + row

    def record(self, row: int) -> bytes:
        """Return a row as a JSON object."""
        return json.dumps(self.batch.slice(row, 1).to_pylist()[0], default=_plain, ensure_ascii=False).encode()

    def written(self, reports: pa.RecordBatch, rows: IntArray) -> bytes:
        """Return nothing: a table has no text."""
        raise NotImplementedError


def _plain(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
