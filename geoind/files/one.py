"""One file of a release: its rows, counted and drawn, and the files that come of it."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pyarrow as pa

from geoind.arrays import FloatArray, IntArray
from geoind.atomic import STANDARD, AtomicWriter
from geoind.budgets.persons import PersonReports
from geoind.errors import InvalidInputError
from geoind.files.formats import READ_ONLY, Kind, kind_of
from geoind.files.open import open_source
from geoind.files.source import BadRecord, Reading, Source
from geoind.files.writers import check_writable, write
from geoind.parallel import OnReports
from geoind.tables.checks import clock_columns
from geoind.tables.recipe import Recipe
from geoind.tables.record import PARQUET_KEY, sidecar_of
from geoind.tables.release import Count, Release
from geoind.tables.stream import Part, Tally
from geoind.tables.table import Table, remedies

if TYPE_CHECKING:
    from geoind.traces.many import TraceSessions

__all__ = ["OneFile", "Outputs"]


@dataclass(frozen=True)
class Outputs:
    """Where the reports of a file, its bad records and its release record are written until they are complete."""

    reports: IO[bytes] | Path
    rejects: IO[bytes] | None
    sidecar: IO[bytes] | None


@dataclass
class OneFile:
    """One file of a release.

    Parameters
    ----------
    name : str
        The file of true places; "-" is standard input.
    target : str
        The file of reports.
    recipe : Recipe
        What is done, with a key.
    path : str
        The path of the file in its release, which names its records.
    reading : Reading
        How it is read.
    rejects : path, optional
        Where bad records go; without it the first one is an error.
    one_of_several : bool
        Whether a kept column may be missing here.
    spreadsheet_safe : bool
        Whether texts of CSV and TSV that a spreadsheet would run are written with a ' first.
    """

    name: str
    target: str
    recipe: Recipe
    path: str
    reading: Reading = field(default_factory=Reading)
    rejects: str | Path | None = None
    one_of_several: bool = False
    spreadsheet_safe: bool = False
    rejected: int = 0
    _part: Part | None = None
    _numbers: IntArray | None = None

    @cached_property
    def source(self) -> Source:
        """The reader of the file."""
        return open_source(self.name, replace(self.reading, format=self.kinds[0].format))

    @cached_property
    def kinds(self) -> tuple[Kind, Kind]:
        """The formats of both files."""
        chosen = self.reading.format
        if self.name == STANDARD and chosen is None and self.target != STANDARD:
            return kind_of(self.target), kind_of(self.target)
        first = kind_of(self.name, chosen)
        usual = "csv" if first.format in READ_ONLY else first.format
        if self.target == STANDARD:
            return first, Kind(usual, "")
        archive = Path(self.target).suffix.lower() == ".zip" and not Path(Path(self.target).stem).suffix
        if archive and usual not in ("parquet", "vector"):
            return first, Kind(usual, "zip")
        return first, kind_of(self.target)

    @cached_property
    def table(self) -> Table:
        """The recipe for this file."""
        return Table(self.recipe, self.source.schema, self.path, self.one_of_several, numbers=True)

    def count(self, sessions: "TraceSessions | None" = None, *, charged: bool = False) -> Count:
        """Return what is known before anything is drawn; refuse what could not be written."""
        check_writable(self.target, self.kinds[1], self.table.reported_schema, self.table.places)
        if self.spreadsheet_safe and self.kinds[1].format not in ("csv", "tsv"):
            raise InvalidInputError(f"`spreadsheet_safe=` is for CSV and TSV output, not {self.kinds[1].format}")
        on_problems = self._on_problems(None)
        self._part = Part(self.table, sessions)
        return self._part.count(self._batches(None), charged=charged, on_problems=on_problems)

    def tags(self, release: Release) -> PersonReports:
        """Return the reports of each person, for a ledger."""
        return (self._part or Part(self.table)).tags(self._batches(None), release)

    def opened(self, delivery: AtomicWriter) -> Outputs:
        """Return where the outputs are written; a place where nothing can be put is refused."""
        is_vector = self.kinds[1].format == "vector"
        has_sidecar = self.kinds[1].format != "parquet" and self.target != STANDARD
        # The target is opened first: it is put in place last.
        return Outputs(
            reports=delivery.path(self.target) if is_vector else delivery.open(self.target),
            rejects=None if self.rejects is None else delivery.open(self.rejects, private=True),
            sidecar=delivery.open(sidecar_of(self.target)) if has_sidecar else None,
        )

    def write(
        self,
        outputs: Outputs,
        release: Release,
        *,
        sessions: "TraceSessions | None" = None,
        progress: OnReports | None = None,
    ) -> Tally:
        """Write the reports, and return what was counted."""
        tally, part = (
            Tally(),
            self._part if self._part and sessions is None and not self.rejected else Part(self.table, sessions),
        )
        record = release.record.to_json().encode()

        def made() -> Iterator[tuple[pa.RecordBatch, Sequence[FloatArray]]]:
            problems = self._on_problems(outputs.rejects)
            for batch in part.draw(self._batches(outputs.rejects), release, on_problems=problems):
                tally.add(batch)
                yield batch.batch, batch.reports
                if progress is not None:
                    progress(tally.reports, tally.reports / max(release.reports, 1))

        schema = self.table.reported_schema
        schema = schema.with_metadata({**(schema.metadata or {}), PARQUET_KEY: record})
        write(
            outputs.reports,
            self.kinds[1],
            made(),
            schema=schema,
            places=self.table.places,
            decimals=self.table.decimals,
            dialect=self.source.dialect if self.kinds[0].format == "csv" else None,
            spreadsheet_safe=self.spreadsheet_safe,
        )
        if outputs.sidecar is not None:
            outputs.sidecar.write(record + b"\n")
        return tally

    def _batches(self, rejects: IO[bytes] | None) -> Iterator[pa.RecordBatch]:
        """Yield the needed columns of the rows that could be read."""
        self.rejected, self._numbers = 0, None
        for rows in self.source.rows(self._needed):
            self._numbers = rows.numbers
            if rows.bad:
                self._reject(rows.bad, rejects)
            if len(rows.batch):
                yield rows.batch

    @cached_property
    def _needed(self) -> list[str]:
        """The columns to read: for the reports, to leave with them, and times that may explain the row order."""
        wanted = set(self.table.needed)
        if self.recipe.order == "raise" and self.recipe.time is None:
            first = next(iter(self.source.rows(None)), None)
            wanted |= set() if first is None else set(clock_columns(first.batch))
        return [name for name in self.source.schema.names if name in wanted]

    def _on_problems(self, rejects: IO[bytes] | None) -> Callable[[pa.RecordBatch, Mapping[int, str]], None]:
        def on_problems(batch: pa.RecordBatch, problems: Mapping[int, str]) -> None:
            numbers = self._numbers
            self._reject(
                (
                    BadRecord(
                        row + 1 if numbers is None else int(numbers[row]),
                        reason,
                        json.dumps(batch.slice(row, 1).to_pylist()[0], default=str, ensure_ascii=False),
                    )
                    for row, reason in problems.items()
                ),
                rejects,
            )

        return on_problems

    def _reject(self, bad: "Iterator[BadRecord] | Sequence[BadRecord]", rejects: IO[bytes] | None) -> None:
        """Write bad records to their file, if there is one; otherwise the first is an error."""
        for row, reason, record in bad:
            if self.rejects is None:
                ways = " or ".join([*remedies(reason), "`rejects=FILE`"])
                raise InvalidInputError(f"{self.source.unit} {row}: {reason} (use {ways})")
            self.rejected += 1
            if rejects is not None:
                members = {self.source.unit: row, "reason": reason, "record": record}
                rejects.write(json.dumps(members, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n")

    def settled(self) -> "OneFile":
        """Return the file without what it holds in memory, to travel to another process."""
        return replace(self, _part=None)
