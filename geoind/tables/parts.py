"""A part of a table: one pass counts its rows, another pass draws the reports that the release allows.

A part is a run of consecutive rows that comes in batches: a file, a partition, a frame.
"""

import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from geoind.accounting.record import PARQUET_KEY
from geoind.arrays import FloatArray, IntArray
from geoind.budgets.persons import PersonReports
from geoind.errors import InvalidInputError, plural
from geoind.keys import KeyedRandomness, Words
from geoind.mechanisms.protocol import Mechanism
from geoind.pipeline import Budget, obfuscate_lonlat
from geoind.tables.columns import column_of, rows_of
from geoind.tables.order import SHUFFLE, RowOrder
from geoind.tables.release import BOUNDING, Count, Release, innermost, turns_of
from geoind.tables.table import Examined, Table, key_of, remedies
from geoind.tables.unfinished import CHANGED, description

if TYPE_CHECKING:
    from geoind.budgets.same_place import SamePlace
    from geoind.traces.many import TraceSessions

REMEMBERED = 192 << 20
"""Bytes of examined rows that are kept in memory between the two passes."""
CHANGED_PART = (
    "has other rows than when they were counted, so its reports are not released: the source changed, gives other "
    "rows at every run, or was cut into other partitions. Store the rows first, and obfuscate what was stored"
)

OnProblems = Callable[[pa.RecordBatch, Mapping[int, str]], None]
"""What happens to bad rows of a batch, and why they are bad; by default the first is an error."""

Reports = tuple[pa.RecordBatch, IntArray, tuple[FloatArray, ...]]
"""The columns that leave; the number of each row in the batch that was given; degrees of each place of a row."""


OnParts = Callable[[Callable[["Part", Iterable[pa.RecordBatch]], Any]], Iterable[Any]]


class Part:
    """Rows of one table that come in batches, to be counted, charged for and drawn.

    Parameters
    ----------
    table : Table
        The recipe for these rows, with a key.
    sessions : TraceSessions, optional
        Of traces: the sessions that answered the parts before. By default new ones.
    name : str, optional
        What the part is called in messages, such as "partition 3".
    check : callable, optional
        Raises for reports that cannot be written; it is called for all of them before persons are charged. By
        default reports must have coordinates in the CRS of their column.
    on_problems : callable, optional
        What happens to bad rows, at each reading; by default they are an error.

    Examples
    --------
    >>> from geoind.tables.recipe import EACH_ROW, Recipe
    >>> batch = pa.RecordBatch.from_pydict({"fare": [7.5, 9.0], "lon": [2.2945, 2.35], "lat": [48.8584, 48.86]})
    >>> recipe = Recipe.of(epsilon=0.01, person=EACH_ROW, keep=["fare"]).with_key()
    >>> part = Part(Table(recipe, batch.schema))
    >>> release = Release.of(recipe, part.count([batch]), part.table)
    >>> print(release.record.busiest)
    1 report, epsilon 0.01 per metre (level 2 within 200 m)
    >>> [made.schema.names for made, _, _ in part.draw([batch], release)]
    [['fare', 'lon', 'lat']]
    """

    def __init__(
        self,
        table: Table,
        sessions: "TraceSessions | None" = None,
        name: str = "",
        check: Callable[[Sequence[FloatArray]], None] | None = None,
        on_problems: OnProblems | None = None,
    ) -> None:
        self.table, self.name, self._check = table, name, check or table.refuse_outside_crs
        self._sessions, self._on_problems = sessions, on_problems or self._raise_first
        self._remembered: list[Examined] | None = None
        self.drawn = 0

    def count(self, batches: Iterable[pa.RecordBatch], *, charged: bool = False) -> Count:
        """Return what is known of the rows before anything is drawn, or charged.

        Parameters
        ----------
        batches : iterable of pyarrow.RecordBatch
            At least the needed columns, and those of times that may explain the order of rows.
        charged : bool
            Whether a ledger is charged, for which the reports of traces are computed here.
        """
        recipe, table = self.table.recipe, self.table
        found = Count(kept=frozenset(recipe.keep) & frozenset(table.schema.names))
        if recipe.order != "keep" and recipe.time is None:
            found.orders = [RowOrder(shuffled=recipe.order == "shuffle") for _ in table.places]
        sessions, clocks = self._new_sessions(), list[str]()
        for number, examined in enumerate(self._examined(batches, sessions), 1):
            if number == 1:
                found.exact_times = frozenset(table.exact_times(examined.batch))
                clocks = table.clocks(examined.batch)
            if number & (number - 1) == 0:
                # Of many batches the first, second, fourth, eighth, ...: a column of coordinates shows it soon.
                table.refuse_copies(examined)
            found.rows.update(dict(enumerate(np.bincount(examined.reports_per_row).tolist())))
            times = examined.batch.select(clocks).columns
            for order, truth in zip(found.orders, examined.truths, strict=False):
                order.add(truth, times, examined.codes)
            if sessions is not None:
                found.persons.update(self._answered(examined.placed, sessions, charged=charged))
            elif examined.codes is not None:
                self._count_persons(found, examined, examined.codes)
                if charged and recipe.same_place is not None:
                    self._check(self._drawn(examined))
        if sessions is not None:
            found.costs = dict(sessions.costs)  # type: ignore[arg-type]
        for order in found.orders:
            order.finish()
        found.digests = frozenset([self._digest])
        return found

    def _answered(self, examined: Examined, sessions: "TraceSessions", *, charged: bool) -> PersonReports:
        """Return the answers of sessions, and with a charge the tags of these answers."""
        answers, tags = sessions.report(*examined.steps), None
        self._check([answers])
        if charged and self.table.recipe.key is not None:
            from geoind.traces.many import tags_of_answers

            tags = tags_of_answers(*examined.steps, answers, self.table.recipe.key.read())
        return PersonReports.of(*examined.steps[:2], np.ones(len(answers), np.int64), tags)

    def _count_persons(self, found: Count, examined: Examined, codes: IntArray) -> None:
        """Count the reports of each person; of cells, their tokens; of rows to be left out, the smallest tags."""
        recipe = self.table.recipe
        if recipe.same_place is not None:
            for name, _, tokens, _ in self._cells_of(examined):
                found.seen.setdefault(name, set()).update(tokens)
            return
        found.persons.update(PersonReports.of(examined.names, codes, examined.reports_per_row, None))
        if (most := recipe.most_rows) is not None:
            tags, reports = turns_of(examined.source, BOUNDING), examined.reports_per_row
            for name, rows in _by_person(examined):
                pairs = zip(tags[rows].tolist(), reports[rows].tolist(), strict=True)
                found.smallest[name] = sorted([*found.smallest.get(name, ()), *pairs])[: most + 1]

    def tags(self, batches: Iterable[pa.RecordBatch], release: Release) -> PersonReports:
        """Return the reports that each person will be in, and which: what a ledger is charged for once.

        They are computed and not kept.
        """
        total = PersonReports()
        for examined in self._examined(batches, None):
            chosen = release.chosen(examined)
            reports = self._drawn(chosen)
            self._check(reports)
            tags = tags_of(chosen.truths, reports, release.recipe.mechanism, chosen.source)
            if chosen.codes is not None:
                total.update(PersonReports.of(chosen.names, chosen.codes, chosen.reports_per_row, tags))
        self._refuse_changes(release)
        return total

    def draw(
        self, batches: Iterable[pa.RecordBatch], release: Release, *, places: bool = True
    ) -> Iterator[Reports]:
        """Yield the reports; the rows must be those that were counted. A writer needs no columns of places.

        `drawn` is the number of reports so far.
        """
        sessions = self._new_sessions()
        made, turns = list[Reports](), list[Words]()
        about = {**(self.table.reported_schema.metadata or {}), PARQUET_KEY: release.record.to_json().encode()}
        for examined in self._examined(batches, sessions):
            chosen = release.chosen(examined)
            reports = self._drawn(chosen, sessions)
            batch = self.table.reported(chosen, reports if places else ()).replace_schema_metadata(about)
            self.drawn += int(chosen.reports_per_row.sum())
            if release.recipe.order == "shuffle":
                made.append((batch, chosen.rows, tuple(reports)))
                turns.append(turns_of(chosen.source, "order of rows"))
            else:
                yield batch, chosen.rows, tuple(reports)
        self._refuse_changes(release)
        if made:
            yield _shuffled(made, turns)

    def _refuse_changes(self, release: Release) -> None:
        # A partition without rows is not always counted.
        if self._digest not in release.count.digests and (self._first or not self.name):
            raise InvalidInputError(f"{self.name} {CHANGED_PART}" if self.name else CHANGED)

    def _new_sessions(self) -> "TraceSessions | None":
        return self.table.recipe.sessions if self._sessions is None else self._sessions

    def _examined(self, batches: Iterable[pa.RecordBatch], sessions: "TraceSessions | None") -> Iterator[Examined]:
        """Yield the good rows of batches; keep a digest of all.

        Rows that were counted and fit into memory are not read again.
        """
        self._first = total = rows = size = 0
        if self._remembered is not None:
            yield from self._remembered
            return
        # Sessions do not go back.
        kept = list[Examined]() if sessions is None else None
        for batch in batches:
            examined = self.table.examine(batch, self._first)
            if sessions is not None:
                placed = examined.placed
                flaws = sessions.flaws(*placed.steps)
                examined = examined.without({int(placed.rows[row]): reason for row, reason in flaws.items()})
            if examined.problems:
                self._on_problems(batch, examined.problems)
            total += self._sum(examined)
            rows += len(examined.rows)
            size += batch.nbytes + 16 * len(batch) * len(examined.truths)
            # Bad rows are handled at each reading.
            if kept is None or size > REMEMBERED or examined.problems:
                kept = None
            else:
                kept.append(examined)
            yield examined
            self._first += len(batch)
        key = b"" if self.table.recipe.key is None else self.table.recipe.key.read()
        self._digest = hashlib.blake2b(f"{rows} {total % 2**64}".encode(), key=key, digest_size=16).hexdigest()
        self._remembered = kept

    def _raise_first(self, batch: pa.RecordBatch, problems: Mapping[int, str]) -> None:
        row, position = next(iter(problems)), self.table.position
        number = self._first + row if position is None else column_of(batch, position)[row].as_py()
        refuse_row(problems, number, self.name)

    @staticmethod
    def _sum(examined: Examined) -> int:
        """Return a sum over rows of a word for record, places and person; of traces for time, place and person."""
        source = examined.source
        if examined.times is not None:
            # Rows of several persons at one time come in any order.
            source = KeyedRandomness(source.key, np.ascontiguousarray(examined.times).view(np.int64))
        words = np.zeros(len(examined.rows), np.uint64)
        for number, truth in enumerate(examined.truths):
            words += key_of(source, number).words(truth, 1, "row of a table")[:, 0]
        if examined.codes is not None:
            names = np.array([zlib.crc32(name.encode()) for name in examined.names], np.uint64)
            # Odd factors: no bit of a word is lost.
            words *= names[examined.codes] * np.uint64(2) + np.uint64(1)
        return int(words.sum(dtype=np.uint64))

    def _drawn(self, examined: Examined, sessions: "TraceSessions | None" = None) -> list[FloatArray]:
        """Return the reports of each place that a row has, NaN where it has none."""
        recipe, reports = self.table.recipe, np.full_like(examined.truths[0], np.nan)
        if sessions is not None:
            reports[examined.reports_per_row > 0] = sessions.report(*examined.placed.steps)
            return [reports]
        if recipe.same_place is not None:
            for name, rows, tokens, centres in self._cells_of(examined):
                reports[rows] = self._memory.reports(name, tokens, centres, recipe.mechanism)
            return [reports]
        numbered = enumerate(examined.truths)
        return [drawn(truth, recipe.mechanism, key_of(examined.source, number)) for number, truth in numbered]

    def _cells_of(
        self, examined: Examined
    ) -> Iterator[tuple[str, IntArray, list[str], list[tuple[float, float]]]]:
        """Yield for each person the rows with a place, and the tokens and centres of their cells."""
        for name, rows in _by_person(examined):
            mechanism, places = self.table.recipe.mechanism, examined.truths[0][rows].tolist()
            cells = [self._memory.cell_of(name, lon, lat, mechanism) for lon, lat in places]
            yield name, rows, [token for token, _ in cells], [centre for _, centre in cells]

    @cached_property
    def _memory(self) -> "SamePlace":
        from geoind.budgets.same_place import SamePlace

        recipe = self.table.recipe
        return SamePlace(b"" if recipe.key is None else recipe.key.read(), recipe.same_place or 0.0)


def _by_person(examined: Examined) -> Iterator[tuple[str, IntArray]]:
    """Yield the persons and their rows with a place."""
    present = np.flatnonzero(examined.reports_per_row)
    codes = np.zeros(len(examined.rows), np.int64) if examined.codes is None else examined.codes
    order = present[np.argsort(codes[present], kind="stable")]
    for rows in filter(len, np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)):
        yield examined.names[codes[rows[0]]], rows


def decide_release(
    table: Table,
    on_parts: OnParts,
    ledger: Budget | None,
    label: str,
    shuffle: str = SHUFFLE,
    charging: AbstractContextManager[object] | None = None,
) -> Release:
    """Return the decisions about a release from the counts of its parts, and charge for their tags.

    Parameters
    ----------
    table : Table
        The recipe, and the schema of the parts.
    on_parts : callable
        Calls a function with each part and its batches, where they are, and returns what it returns.
    ledger : Ledger, optional
        Charges all persons for their reports, or none.
    label : str
        The label of the charge.
    shuffle : str
        How rows are shuffled, for messages.
    charging : context manager, optional
        Entered for the charge.
    """
    recipe, charged, total = table.recipe, ledger is not None, Count()
    if charged:
        recipe.require_person_column()
    for count in on_parts(partial(Part.count, charged=charged)):
        total.merge(count, recipe.most_rows)
    release = Release.of(recipe, total, table, shuffle)
    if ledger is not None:
        with charging or nullcontext():
            release.charge(ledger, lambda: on_parts(partial(Part.tags, release=release.sent())), label)
    return release


def drawn(truth: FloatArray, mechanism: Mechanism, source: KeyedRandomness) -> FloatArray:
    """Return reports, NaN where a place is missing."""
    present = ~np.isnan(truth[:, 0])
    if present.all():
        return obfuscate_lonlat(truth, mechanism, rng=source)
    reports = np.full_like(truth, np.nan)
    reports[present] = obfuscate_lonlat(truth[present], mechanism, rng=source.only(present))
    return reports


def tags_of(
    truths: Sequence[FloatArray], reports: Sequence[FloatArray], mechanism: Mechanism, source: KeyedRandomness
) -> Words:
    """Return (n, 2) words per row that stand for its record, its places and their reports under a key.

    The truth and what draws the noise are part of it: a coarse report of another place, or of another mechanism,
    may be equal and is another draw.
    """
    tags, name = np.zeros((len(reports[0]), 2), np.uint64), name_of(mechanism)
    for number, (truth, report) in enumerate(zip(truths, reports, strict=True)):
        present = ~np.isnan(report[:, 0])
        keyed = key_of(source, number).only(present)
        tags[present] += keyed.words(truth[present], 2, f"tag of a place, {name}")
        tags[present] += keyed.words(report[present], 2, f"tag of a report, {name}")
    return tags


def name_of(mechanism: object) -> str:
    """Return a text that another mechanism does not have: of one with a matrix, the digest is part of it."""
    return description(mechanism) + str(getattr(innermost(mechanism), "purpose", ""))


def _shuffled(parts: Sequence[Reports], turns: Sequence[Words]) -> Reports:
    """Return all rows in an order that depends on key and records alone."""
    batches, rows, reports = zip(*parts, strict=True)
    joined = pa.Table.from_batches(batches).combine_chunks().to_batches()
    turn = np.argsort(np.concatenate(turns), kind="stable")
    places = tuple(np.concatenate(each)[turn] for each in zip(*reports, strict=True))
    return rows_of(joined[0] if joined else batches[0], turn), np.concatenate(rows)[turn], places


def refuse_row(problems: Mapping[int, str], number: int, name: str = "") -> None:
    """Raise the first of the problems, which is that of the row with this number in a file or partition."""
    reason = next(iter(problems.values()))
    remedy = "".join(f"; use {way}" for way in remedies(reason))
    where = f"{name}, row" if name else "row"
    raise InvalidInputError(f"{where} {number}: {reason} ({plural(len(problems), 'such row')}{remedy})")


def corners_of(places: Iterable[FloatArray]) -> FloatArray:
    """Return the south-west and the north-east corner of (n, 2) places; without places none.

    The corners of corners are those of all.
    """
    known = [each for each in places if not np.isnan(each[:, 0]).all()]
    if not known:
        return np.empty((0, 2))
    # Column by column, which numpy does faster than row by row.
    lows = [[np.fmin.reduce(axis) for axis in each.T] for each in known]
    highs = [[np.fmax.reduce(axis) for axis in each.T] for each in known]
    return np.array([np.min(lows, axis=0), np.max(highs, axis=0)])
