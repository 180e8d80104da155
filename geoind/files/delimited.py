"""CSV and TSV: every byte stays as it is, but for the two coordinates."""

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from geoind.errors import InvalidInputError
from geoind.files.columns import coordinate_columns, telling_columns
from geoind.files.quoting import Record, Splitter, unquoted
from geoind.files.textbatch import BATCH_BYTES, BadRecordError, Problem, TextBatch, degrees, place

__all__ = ["Delimited"]

BOM = b"\xef\xbb\xbf"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")


class Delimited:
    """Tables of text, a record per line, fields quoted with double quotes where needed.

    Parameters
    ----------
    delimiter : bytes
        One byte.
    header : bool
        Whether the first record names the columns; otherwise columns are numbers, from 1.
    lon, lat, identity : str, optional
        The columns of the coordinates and of the record's identity for keyed noise.
    keep_missing : bool
        Whether a record with two empty coordinates stays as it is.
    """

    def __init__(
        self,
        delimiter: bytes,
        *,
        header: bool = True,
        lon: str | None = None,
        lat: str | None = None,
        identity: str | None = None,
        keep_missing: bool = False,
    ) -> None:
        self._splitter = Splitter(delimiter)
        self._header = header
        self._names = lon, lat, identity
        self._keep_missing = keep_missing
        self.left: list[str] = []

    def batches(self, stream: BinaryIO) -> Iterator[TextBatch]:
        """Return the file's records in batches."""
        lines = stream.readlines(BATCH_BYTES)
        if lines:
            yield self._beginning(lines, stream)
        elif self._header:
            raise InvalidInputError("line 1: the file is empty, where a header should name the columns")
        while lines:
            yield self._usual(lines) or self._careful(lines, stream)
            lines = stream.readlines(BATCH_BYTES)

    def _beginning(self, lines: list[bytes], stream: BinaryIO) -> TextBatch:
        """Take the byte order mark and the header off the lines, and find the columns."""
        batch = TextBatch()
        if lines[0].startswith(UTF_16):
            raise InvalidInputError("line 1: the text must be UTF-8, not UTF-16")
        if lines[0].startswith(BOM):
            batch.add_text(BOM)
            lines[0] = lines[0].removeprefix(BOM)
        rest = iter(lines)
        first = next(self._splitter.records(rest, stream))
        self._find_columns(first.fields)
        whole = first.text + first.ending
        if self._header:
            batch.add_text(whole)
            self._splitter.line += whole.count(b"\n")
            lines[:] = rest
        else:
            lines[:] = [whole, *rest]
        return batch

    def _find_columns(self, first: list[bytes]) -> None:
        if self._header:
            names = [unquoted(name).decode("utf-8", "backslashreplace") for name in first]
        else:
            names = [str(number) for number in range(1, len(first) + 1)]
        lon, lat, identity = self._names
        lon, lat = coordinate_columns(names, lon, lat)
        if identity is not None and names.count(identity) != 1:
            raise InvalidInputError(f"--id must name one column, there is no single {identity!r}")
        self._width = len(names)
        self._spots = names.index(lon), names.index(lat)
        self._id_at = None if identity is None else names.index(identity)
        self.left = telling_columns([name for name in names if name not in (lon, lat)])

    def _usual(self, lines: list[bytes]) -> TextBatch | None:
        """Return a batch of lines that are all plain and right, or None: several times faster than with care."""
        text = b"".join(lines)
        breaks, returns = text.count(b"\n"), text.count(b"\r")
        if b'"' in text or breaks != len(lines) or returns not in (0, text.count(b"\r\n")) or 0 < returns < breaks:
            return None
        ending = b"\r\n" if returns else b"\n"
        lon_at, lat_at = self._spots
        delimiter, cut = self._splitter.delimiter, -len(ending)
        rows = [line[:cut].split(delimiter) for line in lines]
        if set(map(len, rows)) != {self._width}:
            return None
        lons, lats = [row[lon_at] for row in rows], [row[lat_at] for row in rows]
        try:
            truth = np.array([list(map(float, lons)), list(map(float, lats))])
            labels = [] if self._id_at is None else [row[self._id_at].decode() for row in rows]
        except ValueError:
            return None
        right = (np.abs(truth) <= [[180], [90]]).all() and all(labels) and b"_" not in b"".join(lons + lats)
        if not right:
            return None
        self._splitter.line += len(lines)
        return TextBatch(
            glue=delimiter,
            records=rows,
            endings=[ending] * len(rows),
            holes=rows,
            spots=[self._spots] * len(rows),
            lons=truth[0].tolist(),
            lats=truth[1].tolist(),
            labels=labels,
        )

    def _careful(self, lines: list[bytes], stream: BinaryIO) -> TextBatch:
        """Return a batch of lines in which anything may be unusual or wrong."""
        batch = TextBatch(self._splitter.delimiter)
        for record in self._splitter.records(iter(lines), stream):
            try:
                self._add(batch, record)
            except BadRecordError as error:
                batch.problems.append(Problem(record.line, str(error), record.text))
        return batch

    def _add(self, batch: TextBatch, record: Record) -> None:
        fields = record.fields
        if not record.text:
            batch.add_text(record.ending)
            return
        if len(fields) != self._width:
            # The columns of such a record are anybody's guess, and so is where its true place would stay.
            raise BadRecordError(f"{len(fields)} fields, where the first line has {self._width}")
        lon_at, lat_at = self._spots
        lon, lat = unquoted(fields[lon_at]), unquoted(fields[lat_at])
        if self._keep_missing and not lon.strip() and not lat.strip():
            batch.add_text(record.text + record.ending)
            return
        truth = place(degrees(lon), degrees(lat))
        if self._id_at is not None:
            batch.labels.append(_label(fields[self._id_at]))
        batch.add_place(fields, self._spots, *truth, record.ending)


def _label(field: bytes) -> str:
    label = unquoted(field)
    if not label:
        raise BadRecordError("the id is empty")
    try:
        return label.decode()
    except UnicodeDecodeError:
        raise BadRecordError("the id is not UTF-8") from None
