"""What every reader of a file gives: record batches, with the number of each row in the file."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import pyarrow as pa

from geoind.arrays import IntArray

__all__ = ["BadRecord", "Dialect", "Reading", "Rows", "Source"]


class BadRecord(NamedTuple):
    """A record that cannot have a report: its number in the file, why, and its text."""

    row: int
    reason: str
    record: str


@dataclass(frozen=True)
class Rows:
    """Some records of a file.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        The records that could be read.
    numbers : (n,) array of int
        The number of each of them in the file, from 1. Records that could not be read are counted, too.
    bad : list of BadRecord
        The records between them that could not be read.
    """

    batch: pa.RecordBatch
    numbers: IntArray
    bad: list[BadRecord] = field(default_factory=list)


class Dialect(NamedTuple):
    """How a CSV file is written."""

    delimiter: str = ","
    decimal_comma: bool = False


@dataclass(frozen=True, kw_only=True)
class Reading:
    r"""How a file is read, where its name and its first bytes do not show it.

    Parameters
    ----------
    format : str, optional
        One of `geoind.files.formats.FORMATS`.
    delimiter : str, optional
        Between the fields of a CSV file; detected by default.
    header : bool
        Whether the first line of a CSV file names the columns; if not, they are numbers, from 1.
    layer : str, optional
        The layer of a file that GDAL reads, where it has several.

    Examples
    --------
    >>> Reading(delimiter=";").delimiter
    ';'
    """

    format: str | None = None
    delimiter: str | None = None
    header: bool = True
    layer: str | None = None


class Source(Protocol):
    """A file of records, which can be read any number of times."""

    unit: str
    """What a record is called in messages: "row", "line", "feature" or "point"."""
    dialect: Dialect | None
    """How a CSV file is written; None for other formats."""

    @property
    def schema(self) -> pa.Schema:
        """All columns. A geometry has the GeoArrow extension name and its CRS in the metadata of its field."""
        ...

    def rows(self, columns: Sequence[str] | None = None) -> Iterator[Rows]:
        """Yield the records from the beginning; only some of the columns, in the order of the schema."""
        ...
