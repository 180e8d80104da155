"""A release of a table: one pass counts, what it found is decided and charged, another pass draws the reports.

A part is a run of consecutive rows that comes in batches: a file, a partition, a frame. Counts of parts add up.
What is decided from their sum is the same for all parts: which rows of a person are reported, the totals per
person and the record of the release.
"""

import contextlib
import hashlib
import heapq
import math
import zlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from geoind.arrays import FloatArray, IntArray
from geoind.budgets.persons import PersonReports
from geoind.errors import InvalidInputError, plural
from geoind.mechanisms.protocol import Mechanism, off_site_level
from geoind.pipeline import LEAST_MEAN_ERROR, Budget, obfuscate_lonlat
from geoind.randomness import KeyedRandomness, Words
from geoind.tables.checks import SHUFFLE, RowOrder
from geoind.tables.columns import column_of, rows_of
from geoind.tables.recipe import EACH_ROW, Recipe, described
from geoind.tables.record import PARQUET_KEY, PersonTotal, ReleaseRecord, Summary
from geoind.tables.table import Examined, Table, key_of, remedies
from geoind.tables.unfinished import CHANGED, description

if TYPE_CHECKING:
    from geoind.budgets.same_place import SamePlace
    from geoind.traces.many import TraceSessions

__all__ = [
    "Count",
    "Part",
    "Release",
    "Reports",
    "corners_of",
    "decide_release",
    "drawn",
    "mean_error",
    "name_of",
    "refuse_row",
]

BOUNDING = "rows of a person"
RADIUS, DELTA = 200.0, 1e-6
"""For which the accountant states a level where the recipe names none."""


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


@dataclass
class Count:
    """What the first pass found in some parts.

    Attributes
    ----------
    rows : Counter
        How many rows make so many reports, before any are left out.
    persons : PersonReports
        The reports of each person; empty where each row is a person.
    smallest : dict
        With `reports_per_person`: the smallest tags of each person's rows, one more than may be reported, and the
        number of reports of these rows.
    seen : dict
        With `same_place`: the tokens of each person's cells.
    orders : list of RowOrder
        The order of the rows, by each of their places.
    costs, spent : dict
        Of traces: what the answers of each person's session cost, and their sum.
    digests : frozenset of str
        One for each part.
    kept : frozenset of str
        The kept columns that exist.
    exact_times : frozenset of str
        The columns of times that leave as they are.
    """

    rows: Counter[int] = field(default_factory=Counter)
    persons: PersonReports = field(default_factory=PersonReports)
    smallest: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    seen: dict[str, set[str]] = field(default_factory=dict)
    orders: list[RowOrder] = field(default_factory=list)
    costs: dict[str, Mapping[float, int]] = field(default_factory=dict)
    spent: dict[str, float] = field(default_factory=dict)
    digests: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()
    exact_times: frozenset[str] = frozenset()

    @property
    def reports(self) -> int:
        """All reports, before any are left out."""
        return sum(reports * rows for reports, rows in self.rows.items())

    def merge(self, other: "Count", most: int | None) -> None:
        """Add another part, of which at most so many rows of a person are reported."""
        self.rows.update(other.rows)
        if other.persons.counts:
            self.persons.update(other.persons)
        for person, tags in other.smallest.items():
            self.smallest[person] = heapq.nsmallest((most or 0) + 1, [*self.smallest.get(person, []), *tags])
        for person, tokens in other.seen.items():
            self.seen.setdefault(person, set()).update(tokens)
        self.orders = self.orders or [RowOrder() for _ in other.orders]
        for order, more in zip(self.orders, other.orders, strict=False):
            order.merge(more)
        self.costs |= other.costs
        self.spent |= other.spent
        self.digests |= other.digests
        self.kept |= other.kept
        self.exact_times |= other.exact_times


@dataclass(frozen=True, kw_only=True)
class Release:
    """What is decided before the first report, from the counts of all parts.

    Attributes
    ----------
    recipe : Recipe
        What is done, with a key.
    record : ReleaseRecord
        What leaves and what is promised.
    persons : PersonReports
        How many reports each person will be in.
    left_out : int
        Reports that are not made, because a person has more than `reports_per_person`.
    first_left_out : dict
        The smallest tag of the rows of a person that are left out.
    count : Count
        What the first pass found.
    """

    recipe: Recipe
    record: ReleaseRecord
    persons: PersonReports = field(repr=False)
    count: Count = field(repr=False)
    left_out: int = 0
    first_left_out: Mapping[str, int] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, recipe: Recipe, count: Count, table: Table, shuffle: str = SHUFFLE) -> "Release":
        """Return the decisions, or raise what forbids the release; `shuffle` says how rows are shuffled."""
        for name in recipe.keep:
            if name not in count.kept:
                raise InvalidInputError(f"column {name!r} of `keep=` exists in no file")
        if recipe.order != "keep" and recipe.time is None:
            for order in count.orders:
                order.refuse(shuffle, shuffled=recipe.order == "shuffle")
        persons, cut, left_out = count.persons, dict[str, int](), 0
        if recipe.same_place is not None:
            persons = _of_cells(count.seen)
        elif (most := recipe.most_rows) is not None:
            cut = {name: tags[most][0] for name, tags in count.smallest.items() if len(tags) > most}
            counts = Counter(persons.counts)
            for name, first in cut.items():
                counts[name] = sum(reports for tag, reports in count.smallest[name] if tag < first)
            if not all(counts[name] for name in cut):
                raise InvalidInputError(
                    "with `reports_per_person=` the identities of `id_column=` must be different: a person has "
                    "more rows of one identity than may be reported"
                )
            left_out = sum((persons.counts - counts).values())
            persons = PersonReports(counts)
        record = _record(recipe, count, persons, table)
        return cls(
            recipe=recipe, record=record, persons=persons, count=count, left_out=left_out, first_left_out=cut
        )

    @property
    def reports(self) -> int:
        """How many reports there will be."""
        return self.count.reports - self.left_out

    def chosen(self, examined: Examined, source: KeyedRandomness) -> tuple[Examined, KeyedRandomness]:
        """Return the rows that leave, and their randomness."""
        if examined.codes is None or not self.first_left_out:
            return examined, source
        firsts = np.array([self.first_left_out.get(name, 2**64 - 1) for name in examined.names], np.uint64)
        leaves = (turns_of(source, BOUNDING) < firsts[examined.codes]) | (examined.reports_per_row == 0)
        return examined.only(np.flatnonzero(leaves)), source.only(leaves)

    def sent(self) -> "Release":
        """Return what a task on another machine needs of the decisions."""
        return replace(self, persons=PersonReports(), count=Count(digests=self.count.digests))

    def charge(self, ledger: Budget, tags: Callable[["Release"], Iterable[PersonReports]], label: str) -> None:
        """Charge all persons for their reports, or none. The same reports under the same key are charged once.

        Parameters
        ----------
        ledger : Ledger
            Who is charged how much.
        tags : callable
            Returns the tags of the reports of each part. Those of traces and of cells are already counted.
        label : str
            The label of the charge.
        """
        persons = self.persons
        if self.recipe.time is None and self.recipe.same_place is None:
            persons = PersonReports()
            for part in tags(self):
                persons.update(part)
        more, fewer = persons.counts - self.persons.counts, self.persons.counts - persons.counts
        # Of rows with several places that are left out, the decision has the most reports that there can be.
        if more or (fewer and not (self.first_left_out and len(self.record.places) > 1)):
            raise InvalidInputError(CHANGED)
        if self.recipe.time is None:
            ledger.charge_counts(persons.counts, self.recipe.mechanism, label=label, once=persons.tokens)
        else:
            ledger.charge_all(dict(self.count.costs), label=label, once=persons.tokens, **self._places)

    @property
    def _places(self) -> dict[str, dict[str, tuple[Mechanism, str]]]:
        """What is charged once for the centres of private zones."""
        if self.recipe.zones is None:
            return {}
        from geoind.mechanisms.spherical import SphericalLaplace

        known = [zone for zone in self.recipe.zones if zone.person_id in self.count.costs]
        return {"places": {zone.person_id: (SphericalLaplace(zone.epsilon), zone.token) for zone in known}}

    def summary(
        self, corners: FloatArray, left_out: Sequence[str], *, rejected: int = 0, charged: bool = False
    ) -> Summary:
        """Return what was released; the corners are those of the reports."""
        mechanism, mean, reach = self.recipe.mechanism, None, None
        with contextlib.suppress(InvalidInputError):  # a step of one's own that does not say it
            mean, reach = mean_error(mechanism), float(mechanism.reach(0.95))
        return Summary(
            reports=self.reports,
            record=self.record,
            mean_error=mean,
            reach_95=reach,
            bounds=(*corners[0].tolist(), *corners[1].tolist()) if len(corners) else None,
            left_out=tuple(left_out),
            reports_left_out=self.left_out,
            rejected=rejected,
            charged=charged,
            exact_times=tuple(sorted(self.count.exact_times)),
        )


def mean_error(mechanism: Mechanism) -> float:
    """Return the mean distance in metres between truth and report, from the mechanism's quantiles."""
    own = getattr(mechanism, "mean_radius", None)
    if own is not None:
        return float(own)
    return float(np.mean([mechanism.reach((number + 0.5) / 200) for number in range(200)]))


def _record(recipe: Recipe, count: Count, persons: PersonReports, table: Table) -> ReleaseRecord:
    """Return the record; raise if the busiest person's total is refused."""
    mechanism, zones = recipe.mechanism, 0
    if recipe.zones is not None:
        # The centre is one more report of the home in every release, although it is charged once.
        centres = {zone.person_id: zone.epsilon for zone in recipe.zones if zone.person_id in count.costs}
        if not (zones := len(centres)):
            raise InvalidInputError("no person of `zones=` has a row: are the names the same?")
        costs = {name: Counter(count.costs[name]) + Counter([epsilon]) for name, epsilon in centres.items()}
        spent = {name: count.spent[name] + epsilon for name, epsilon in centres.items()}
        count = replace(count, costs=count.costs | costs, spent=count.spent | spent)
    totals: list[tuple[int, Mapping[float, int] | None]]
    if recipe.time is not None:
        names = sorted(count.spent, key=count.spent.__getitem__)
        many = len(names)
        # The last one is the busiest, then the median.
        totals = [(persons.counts[names[at]], count.costs[names[at]]) for at in (-1, (many - 1) // 2) if names]
    else:
        having = count.rows if recipe.person is EACH_ROW else Counter(persons.counts.values())
        numbers = sorted(number for number in having if number and having[number])
        upto = list(accumulate(having[number] for number in numbers))
        many = upto[-1] if upto else 0
        totals = [(numbers[at], None) for at in (-1, bisect_left(upto, (many + 1) // 2)) if numbers]
    record = ReleaseRecord.of(
        mechanism,
        unit=recipe.unit,
        level=recipe.level,
        radius=recipe.radius,
        reports=recipe.reports or 1,
        delta=recipe.delta or 0.0,
        places=tuple(place.names for place in table.places),
        kept=recipe.published,
        persons=many,
        zones=zones or None,
        time_step=recipe.time_step or (),
        key="given" if recipe.key_given else "discarded",
    )
    empty = PersonTotal(reports=0, epsilon=0.0)
    busiest, median = [_total(recipe, *total) for total in totals] or (empty, empty)
    record = replace(record, busiest=busiest, median=median)
    if recipe.method is not None:
        record = replace(
            record,
            mechanism=type(recipe.method).__name__,
            epsilon=busiest.epsilon or float(mechanism.epsilon),
            session=described(recipe.method),
            fresh=float(mechanism.epsilon),
        )
    _refuse_total(recipe, record)
    return record


def _total(recipe: Recipe, reports: int, costs: Mapping[float, int] | None) -> PersonTotal:
    """Return what so many reports of a person add up to."""
    radius, delta = recipe.radius or RADIUS, recipe.delta or DELTA
    mechanism = recipe.mechanism
    if reports == 1 and costs is None and mechanism.epsilon + off_site_level(mechanism) < math.inf:
        epsilon = float(mechanism.epsilon)
        level = epsilon * radius + off_site_level(mechanism)
        return PersonTotal(reports=1, epsilon=epsilon, level=level, radius=radius, delta=0.0)
    from geoind.accounting.accountant import level_of_reports
    from geoind.mechanisms.spherical import SphericalLaplace

    epsilon = reports * float(mechanism.epsilon) if costs is None else math.fsum(e * n for e, n in costs.items())
    try:
        if costs is None:
            level = level_of_reports(mechanism, reports=reports, radius=radius, delta=delta)
        else:
            parts: list[tuple[Mechanism, int]] = [(SphericalLaplace(e), n) for e, n in costs.items() if e > 0]
            level = min(epsilon * radius, level_of_reports(parts, radius=radius, delta=delta)) if parts else 0.0
    except (InvalidInputError, NotImplementedError, TypeError):  # a mechanism of one's own
        return PersonTotal(reports=reports, epsilon=epsilon)
    return PersonTotal(reports=reports, epsilon=epsilon, level=level, radius=radius, delta=delta)


def _refuse_total(recipe: Recipe, record: ReleaseRecord) -> None:
    """Raise if all reports of the busiest person are worth one report that is less than 10 m off on average."""
    busiest = record.busiest
    if busiest is None or not busiest.reports:
        return
    if recipe.reports is not None and recipe.reports > 1 and busiest.reports > recipe.reports:
        raise InvalidInputError(
            f"the promise is for {plural(recipe.reports, 'report')} of a person together, and one has "
            f"{busiest.reports:,}: give `reports={busiest.reports}`, or `reports_per_person={recipe.reports}`"
        )
    total, single = busiest.epsilon, record.fresh or recipe.mechanism.epsilon
    if record.sigma is not None:
        # The epsilon of the same mean error; n reports of Gaussian noise are worth one of sigma / sqrt(n).
        single = 2 / (record.sigma * math.sqrt(math.pi / 2))
        total = single * math.sqrt(busiest.reports)
    most = max(2 / LEAST_MEAN_ERROR, recipe.allow_total or 0.0, single)
    if total == math.inf and busiest.reports > 1 and recipe.allow_total is None:
        raise InvalidInputError(
            f"the busiest person has {plural(busiest.reports, 'report')} of a mechanism without an epsilon, so "
            "nothing is known of their total: `reports_per_person=1` leaves one, and `allow_total=` accepts any"
        )
    if total > most * (1 + 1e-9) and total != math.inf:
        ways = (
            "a session (`time=`), one report per place (`same_place=100`), fewer reports (`reports_per_person=N`)"
        )
        enough = math.ceil(total * (1 - 1e-9) * 1e4) / 1e4
        if recipe.time is not None:
            ways = "fewer rows of each person, another `method=`"
            # What a trace costs depends on the noise, which is another one in the next attempt.
            enough = math.ceil(total * 12) / 10
        elif recipe.same_place is not None:
            ways = "a session (`time=`), larger cells (`same_place=`)"
        raise InvalidInputError(
            f"the busiest person has {plural(busiest.reports, 'report')} that add up to epsilon {total:.6g} per "
            f"metre, as much as one report {2 / total:.2g} m off on average: they do not hide the person. Use "
            f"{ways}, a smaller epsilon, or accept this total with `allow_total={enough}`"
        )


def turns_of(source: KeyedRandomness, purpose: str) -> Words:
    """Return a tag for each record that depends on the key and the record's identity alone."""
    return np.asarray(source.words(np.zeros((len(source.labels), 2)), 1, purpose)[:, 0])


def _of_cells(seen: Mapping[str, set[str]]) -> PersonReports:
    """Return one report for each cell of a person."""
    total = PersonReports()
    for name, tokens in seen.items():
        words = np.array([[int(token[:16], 16), int(token[16:], 16)] for token in sorted(tokens)], np.uint64)
        ones = np.ones(len(words), np.int64)
        total.update(PersonReports.of([name], np.zeros(len(words), np.int64), ones, words))
    return total


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

    Examples
    --------
    >>> batch = pa.RecordBatch.from_pydict({"fare": [7.5, 9.0], "lon": [2.2945, 2.35], "lat": [48.8584, 48.86]})
    >>> recipe = Recipe.of(epsilon=0.01, person=EACH_ROW, keep=["fare"]).with_key()
    >>> part = Part(Table(recipe, batch.schema))
    >>> release = Release.of(recipe, part.count([batch]), part.table)
    >>> print(release.record.busiest)
    1 report, epsilon 0.01 per metre (level 2 within 200 m)
    >>> [made.schema.names for made, _, _ in part.draw([batch], release)]
    [['fare', 'lon', 'lat']]
    """

    def __init__(self, table: Table, sessions: "TraceSessions | None" = None, name: str = "") -> None:
        self.table, self.name = table, name
        self._sessions = sessions
        self._cells: dict[str, FloatArray] = {}
        self._remembered: list[tuple[Examined, KeyedRandomness]] | None = None
        self.drawn, self.corners = 0, corners_of([])

    def count(
        self, batches: Iterable[pa.RecordBatch], *, charged: bool = False, on_problems: OnProblems | None = None
    ) -> Count:
        """Return what is known of the rows before anything is drawn, or charged.

        Parameters
        ----------
        batches : iterable of pyarrow.RecordBatch
            At least the needed columns, and those of times that may explain the order of rows.
        charged : bool
            Whether a ledger is charged, for which the reports of traces are computed here.
        on_problems : callable, optional
            What happens to bad rows; by default they are an error.
        """
        recipe, table = self.table.recipe, self.table
        found = Count(orders=[RowOrder(shuffled=recipe.order == "shuffle") for _ in table.places])
        sessions, clocks = self._new_sessions(), None
        for number, (examined, source) in enumerate(self._examined(batches, on_problems, sessions), 1):
            if number == 1:
                found.exact_times = frozenset(table.exact_times(examined.batch))
            if number & (number - 1) == 0:
                # Of many batches the first, second, fourth, eighth, ...: a column of coordinates shows it soon.
                table.refuse_copies(examined)
            found.rows.update(dict(enumerate(np.bincount(examined.reports_per_row).tolist())))
            if recipe.order != "keep" and recipe.time is None:
                clocks = table.clocks(examined.batch) if clocks is None else clocks
                times = examined.batch.select(clocks).columns
                for order, truth in zip(found.orders, examined.truths, strict=True):
                    order.add(truth, times, examined.codes)
            if sessions is not None:
                found.persons.update(self._answered(examined, sessions, charged=charged))
            elif examined.codes is not None:
                self._count_persons(found, examined, examined.codes, source)
        if sessions is not None:
            found.costs, found.spent = dict(sessions.costs), sessions.spent  # type: ignore[arg-type]
        for order in found.orders:
            order.finish()
        found.kept = frozenset(recipe.keep) & frozenset(table.schema.names)
        found.digests = frozenset([self._digest])
        return found

    def _answered(self, examined: Examined, sessions: "TraceSessions", *, charged: bool) -> PersonReports:
        """Return the answers of sessions, and with a charge the tags of these answers."""
        steps, tags = examined.only(np.flatnonzero(examined.reports_per_row)).steps, None
        answers = sessions.report(*steps)
        if charged and self.table.recipe.key is not None:
            from geoind.traces.many import tags_of_answers

            tags = tags_of_answers(*steps, answers, self.table.recipe.key.read())
        return PersonReports.of(*steps[:2], np.ones(len(answers), np.int64), tags)

    def _count_persons(self, found: Count, examined: Examined, codes: IntArray, source: KeyedRandomness) -> None:
        """Count the reports of each person; of cells, their tokens; of rows to be left out, the smallest tags."""
        recipe, per_row, names = self.table.recipe, examined.reports_per_row, examined.names
        if recipe.same_place is not None:
            for name, _, tokens, _ in self._cells_of(examined, codes):
                found.seen.setdefault(name, set()).update(tokens)
            return
        found.persons.update(PersonReports.of(names, codes, per_row, None))
        if (most := recipe.most_rows) is None:
            return
        tags, used = turns_of(source, BOUNDING), np.flatnonzero(per_row)
        order = used[np.lexsort((tags[used], codes[used]))]
        both = list(zip(tags[order].tolist(), per_row[order].tolist(), strict=True))
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1)).tolist()
        for start, end in pairwise([*starts, len(order)]):
            name = names[codes[order[start]]]
            pairs = both[start : min(end, start + most + 1)]
            known = found.smallest.get(name)
            found.smallest[name] = pairs if known is None else sorted([*known, *pairs])[: most + 1]

    def tags(self, batches: Iterable[pa.RecordBatch], release: Release) -> PersonReports:
        """Return the reports that each person will be in, and which: what a ledger is charged for once.

        They are computed and not kept.
        """
        total = PersonReports()
        for examined, source in self._examined(batches, _ignore, None):
            chosen, keyed = release.chosen(examined, source)
            tags = tags_of(chosen.truths, self._drawn(chosen, keyed), release.recipe.mechanism, keyed)
            if chosen.codes is not None:
                total.update(PersonReports.of(chosen.names, chosen.codes, chosen.reports_per_row, tags))
        self._refuse_changes(release)
        return total

    def draw(
        self,
        batches: Iterable[pa.RecordBatch],
        release: Release,
        *,
        on_problems: OnProblems | None = None,
        places: bool = True,
    ) -> Iterator[Reports]:
        """Yield the reports; the rows must be those that were counted. A writer needs no columns of places.

        `drawn` is the number of reports so far, and `corners` what `corners_of` returns for them.
        """
        sessions = self._new_sessions()
        made, turns = list[Reports](), list[Words]()
        about = {**(self.table.reported_schema.metadata or {}), PARQUET_KEY: release.record.to_json().encode()}
        for examined, source in self._examined(batches, on_problems, sessions):
            chosen, keyed = release.chosen(examined, source)
            reports = self._drawn(chosen, keyed, sessions)
            batch = self.table.reported(chosen, reports if places else ()).replace_schema_metadata(about)
            self.drawn += int(chosen.reports_per_row.sum())
            self.corners = corners_of([self.corners, *reports])
            if release.recipe.order == "shuffle":
                made.append((batch, chosen.rows, tuple(reports)))
                turns.append(turns_of(keyed, "order of rows"))
            else:
                yield batch, chosen.rows, tuple(reports)
        self._refuse_changes(release)
        if made:
            yield _shuffled(made, turns)

    def released(
        self, batches: Callable[[], Iterable[pa.RecordBatch]], ledger: Budget | None, label: str
    ) -> Release:
        """Return the decisions about a release of this part alone, whose batches a function gives, and charge."""

        def counts() -> Iterator[Count]:
            yield self.count(batches(), charged=ledger is not None)

        return decide_release(self.table, counts(), lambda release: [self.tags(batches(), release)], ledger, label)

    def _refuse_changes(self, release: Release) -> None:
        # A partition without rows is not always counted.
        if self._digest not in release.count.digests and (self._first or not self.name):
            raise InvalidInputError(f"{self.name} {CHANGED_PART}" if self.name else CHANGED)

    def _new_sessions(self) -> "TraceSessions | None":
        return self.table.recipe.sessions if self._sessions is None else self._sessions

    def _examined(
        self, batches: Iterable[pa.RecordBatch], on_problems: OnProblems | None, sessions: "TraceSessions | None"
    ) -> Iterator[tuple[Examined, KeyedRandomness]]:
        """Yield the good rows of batches and their randomness; keep a digest of all.

        Rows that were counted and fit into memory are not read again.
        """
        total, rows, self._first = 0, 0, 0
        if self._remembered is not None:
            yield from self._remembered
            return
        size, kept = 0, list[tuple[Examined, KeyedRandomness]]()
        for batch in batches:
            examined = self.table.examine(batch)
            if sessions is not None:
                present = np.flatnonzero(examined.reports_per_row)
                flaws = sessions.flaws(*examined.only(present).steps)
                examined = examined.without({int(present[row]): reason for row, reason in flaws.items()})
            if examined.problems:
                (on_problems or self._raise_first)(batch, examined.problems)
            source = self.table.randomness(examined, self._first)
            total += self._sum(examined, source)
            rows += len(examined.rows)
            size += batch.nbytes + 16 * len(batch) * len(examined.truths)
            if size > REMEMBERED or sessions is not None or examined.problems:
                # Bad rows are handled at each reading, and sessions do not go back.
                size, kept = REMEMBERED + 1, []
            else:
                kept.append((examined, source))
            yield examined, source
            self._first += len(batch)
        self._digest = self._digested(rows, total)
        self._remembered = kept if size <= REMEMBERED else None

    def _raise_first(self, batch: pa.RecordBatch, problems: Mapping[int, str]) -> None:
        row, position = next(iter(problems)), self.table.position
        number = self._first + row if position is None else column_of(batch, position)[row].as_py()
        refuse_row(problems, number, self.name)

    def _sum(self, examined: Examined, source: KeyedRandomness) -> int:
        """Return a sum over rows of a word for record, places and person; of traces for time, place and person."""
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

    def _digested(self, rows: int, total: int) -> str:
        key = b"" if self.table.recipe.key is None else self.table.recipe.key.read()
        return hashlib.blake2b(f"{rows} {total % 2**64}".encode(), key=key, digest_size=16).hexdigest()

    def _drawn(
        self, examined: Examined, source: KeyedRandomness, sessions: "TraceSessions | None" = None
    ) -> list[FloatArray]:
        """Return the reports of each place that a row has, NaN where it has none."""
        recipe, reports = self.table.recipe, np.full_like(examined.truths[0], np.nan)
        if sessions is not None:
            present = np.flatnonzero(examined.reports_per_row)
            reports[present] = sessions.report(*examined.only(present).steps)
            return [reports]
        if recipe.same_place is not None and examined.codes is not None:
            for name, rows, tokens, centres in self._cells_of(examined, examined.codes):
                cells = zip(tokens, centres, strict=True)
                new = {token: centre for token, centre in cells if token not in self._cells}
                if new:
                    made = self._memory.reports(name, list(new), list(new.values()), recipe.mechanism)
                    self._cells |= dict(zip(new, made, strict=True))
                reports[rows] = [self._cells[token] for token in tokens]
            return [reports]
        numbered = enumerate(examined.truths)
        return [drawn(truth, recipe.mechanism, key_of(source, number)) for number, truth in numbered]

    def _cells_of(
        self, examined: Examined, codes: IntArray
    ) -> Iterator[tuple[str, IntArray, list[str], list[tuple[float, float]]]]:
        """Yield for each person the rows with a place, and the tokens and centres of their cells."""
        places, present = examined.truths[0], np.flatnonzero(examined.reports_per_row)
        order = present[np.argsort(codes[present], kind="stable")]
        for rows in filter(len, np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)):
            name = examined.names[codes[rows[0]]]
            mechanism = self.table.recipe.mechanism
            cells = [self._memory.cell_of(name, lon, lat, mechanism) for lon, lat in places[rows].tolist()]
            yield name, rows, [token for token, _ in cells], [centre for _, centre in cells]

    @cached_property
    def _memory(self) -> "SamePlace":
        from geoind.budgets.same_place import SamePlace

        recipe = self.table.recipe
        return SamePlace(b"" if recipe.key is None else recipe.key.read(), recipe.same_place or 0.0)


def decide_release(
    table: Table,
    counts: Iterable[Count],
    tags: Callable[[Release], Iterable[PersonReports]],
    ledger: Budget | None,
    label: str,
    shuffle: str = SHUFFLE,
) -> Release:
    """Return the decisions about a release from the counts of its parts, and charge for their tags."""
    recipe, total = table.recipe, Count()
    if ledger is not None:
        recipe.require_person_column("a ledger")
    for count in counts:
        total.merge(count, recipe.most_rows)
    release = Release.of(recipe, total, table, shuffle)
    if ledger is not None:
        release.charge(ledger, tags, label)
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
    inner: object = mechanism
    while (next_one := getattr(inner, "mechanism", None)) is not None:
        inner = next_one
    return description(mechanism) + str(getattr(inner, "purpose", ""))


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


def _ignore(batch: pa.RecordBatch, problems: Mapping[int, str]) -> None:
    """Leave bad rows out: they were reported when rows were counted."""


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
