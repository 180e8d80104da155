"""What is decided about a release from the counts of all its parts, which add up, and what is said about it.

Decided are the rows of a person that are reported, the totals per person, the record, and the charges.
"""

import contextlib
import csv
import heapq
import io
import math
import re
import shlex
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

import numpy as np

from geoind.accounting.record import PersonTotal, ReleaseRecord
from geoind.arrays import FloatArray
from geoind.budgets.persons import PersonReports
from geoind.errors import MOST_SAID, InvalidInputError, plural, printable
from geoind.keys import KeyedRandomness, Words
from geoind.mechanisms.protocol import Mechanism, mean_error, off_site_level
from geoind.mechanisms.spherical import SphericalLaplace
from geoind.pipeline import LEAST_MEAN_ERROR, Budget
from geoind.tables.order import SHUFFLE, RowOrder
from geoind.tables.recipe import EACH_ROW, Recipe, described
from geoind.tables.table import Examined, Table
from geoind.tables.unfinished import CHANGED

BOUNDING = "rows of a person"
"""The purpose of the tags that choose the rows of a person."""
RADIUS, DELTA = 200.0, 1e-6
"""For which the accountant states a level where the recipe names none."""
COORDINATE = re.compile(r"(^|[^a-z])(lat|latitude|lon|lng|long|longitude)$", re.IGNORECASE)
"""The name of a column that may hold another location of the row: it is not offered to be kept."""


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
    costs : dict
        Of traces: what the answers of each person's session cost.
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
    digests: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()
    exact_times: frozenset[str] = frozenset()

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
    first_left_out : dict
        The smallest tag of the rows of a person that are left out.
    count : Count
        What the first pass found.
    """

    recipe: Recipe
    record: ReleaseRecord
    persons: PersonReports = field(repr=False)
    count: Count = field(repr=False)
    first_left_out: Mapping[str, int] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, recipe: Recipe, count: Count, table: Table, shuffle: str = SHUFFLE) -> "Release":
        """Return the decisions, or raise what forbids the release; `shuffle` says how rows are shuffled."""
        for name in recipe.keep:
            if name not in count.kept:
                raise InvalidInputError(f"column {name!r} of `keep=` exists in no file")
        for order in count.orders:
            order.refuse(shuffle, shuffled=recipe.order == "shuffle")
        persons, cut = count.persons, dict[str, int]()
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
            persons = PersonReports(counts)
        record = _record(recipe, count, persons, table)
        return cls(recipe=recipe, record=record, persons=persons, count=count, first_left_out=cut)

    @property
    def left_out(self) -> int:
        """Reports that are not made, because a person has more than `reports_per_person`."""
        return sum((self.count.persons.counts - self.persons.counts).values()) if self.first_left_out else 0

    @property
    def reports(self) -> int:
        """How many reports there will be."""
        return sum(reports * rows for reports, rows in self.count.rows.items()) - self.left_out

    def chosen(self, examined: Examined) -> Examined:
        """Return the rows that leave."""
        if examined.codes is None or not self.first_left_out:
            return examined
        firsts = np.array([self.first_left_out.get(name, 2**64 - 1) for name in examined.names], np.uint64)
        leaves = turns_of(examined.source, BOUNDING) < firsts[examined.codes]
        return examined.only(leaves | (examined.reports_per_row == 0))

    def sent(self) -> "Release":
        """Return what a task on another machine needs of the decisions."""
        return replace(self, persons=PersonReports(), count=Count(digests=self.count.digests))

    def charge(self, ledger: Budget, tags: Callable[[], Iterable[PersonReports]], label: str) -> None:
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
            for part in tags():
                persons.update(part)
        more, fewer = persons.counts - self.persons.counts, self.persons.counts - persons.counts
        # Of rows with several places that are left out, the decision has the most reports that there can be.
        if more or (fewer and not (self.first_left_out and len(self.record.places) > 1)):
            raise InvalidInputError(CHANGED)
        if self.recipe.time is None:
            ledger.charge_counts(persons.counts, self.recipe.mechanism, label=label, once=persons.tokens)
        else:
            zones = [zone for zone in self.recipe.zones or () if zone.person_id in self.count.costs]
            centres = {zone.person_id: (SphericalLaplace(zone.epsilon), zone.token) for zone in zones}
            ledger.charge_all(dict(self.count.costs), label=label, once=persons.tokens, places=centres)

    def summary(
        self, corners: FloatArray, left_out: Sequence[str], *, rejected: int = 0, charged: bool = False
    ) -> "Summary":
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
            # Mechanisms whose noise depends on the place have it: elastic noise, interpolated channels.
            varies=hasattr(innermost(mechanism), "rates_at"),
        )


def innermost(mechanism: object) -> object:
    """Return the mechanism that draws, without projections and steps around it."""
    inner = getattr(mechanism, "mechanism", None)
    return mechanism if inner is None else innermost(inner)


def _record(recipe: Recipe, count: Count, persons: PersonReports, table: Table) -> ReleaseRecord:
    """Return the record; raise if the busiest person's total is refused."""
    mechanism, costs, zones = recipe.mechanism, count.costs, 0
    if recipe.zones is not None:
        # The centre is one more report of the home in every release, although it is charged once.
        centres = {zone.person_id: zone.epsilon for zone in recipe.zones if zone.person_id in costs}
        if not (zones := len(centres)):
            raise InvalidInputError("no person of `zones=` has a row: are the names the same?")
        costs = costs | {name: Counter(costs[name]) + Counter([epsilon]) for name, epsilon in centres.items()}
    totals: list[tuple[int, Mapping[float, int] | None]]
    if recipe.time is not None:
        names = sorted(costs, key=lambda name: _sum_of(costs[name]))
        many = len(names)
        # The last one is the busiest, then the median.
        totals = [(persons.counts[names[at]], costs[names[at]]) for at in (-1, (many - 1) // 2) if names]
    else:
        having = count.rows if recipe.person is EACH_ROW else Counter(persons.counts.values())
        numbers = sorted(number for number in having if number and having[number])
        upto = list(accumulate(having[number] for number in numbers))
        many = upto[-1] if upto else 0
        totals = [(numbers[at], None) for at in (-1, bisect_left(upto, (many + 1) // 2)) if numbers]
    empty = PersonTotal(reports=0, epsilon=0.0)
    busiest, median = [_total(recipe, *total) for total in totals] or (empty, empty)
    session: dict[str, Any] = {}
    if recipe.method is not None:
        session = {
            "mechanism": type(recipe.method).__name__,
            "epsilon": busiest.epsilon or float(mechanism.epsilon),
            "session": described(recipe.method),
            "fresh": float(mechanism.epsilon),
        }
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
        busiest=busiest,
        median=median,
        zones=zones or None,
        time_step=recipe.time_step or (),
        key="given" if recipe.key_given else "discarded",
        **session,
    )
    _refuse_total(recipe, busiest, record)
    return record


def _sum_of(costs: Mapping[float, int]) -> float:
    return math.fsum(epsilon * number for epsilon, number in costs.items())


def _total(recipe: Recipe, reports: int, costs: Mapping[float, int] | None) -> PersonTotal:
    """Return what so many reports of a person add up to."""
    radius, delta = recipe.radius or RADIUS, recipe.delta or DELTA
    mechanism = recipe.mechanism
    if reports == 1 and costs is None and mechanism.epsilon + off_site_level(mechanism) < math.inf:
        epsilon = float(mechanism.epsilon)
        level = epsilon * radius + off_site_level(mechanism)
        return PersonTotal(reports=1, epsilon=epsilon, level=level, radius=radius, delta=0.0)
    from geoind.accounting.accountant import level_of_reports

    parts: list[tuple[Mechanism, int]] = [(mechanism, reports)]
    if costs is not None:
        parts = [(SphericalLaplace(epsilon), number) for epsilon, number in costs.items() if epsilon > 0]
    epsilon = math.fsum(float(part.epsilon) * number for part, number in parts)
    if costs is not None and not _is_fixed(recipe):
        # What a session asks depends on its answers, and the accountant is for reports that are fixed beforehand.
        # Only the sum bounds the loss (docs/explanations/budgets.md), and tests are no Laplace reports.
        return PersonTotal(reports=reports, epsilon=epsilon, level=epsilon * radius, radius=radius, delta=0.0)
    try:
        level = level_of_reports(parts, radius=radius, delta=delta) if parts else 0.0
    except (InvalidInputError, NotImplementedError, TypeError):  # a mechanism of one's own
        return PersonTotal(reports=reports, epsilon=epsilon)
    level = level if costs is None else min(epsilon * radius, level)
    return PersonTotal(reports=reports, epsilon=epsilon, level=level, radius=radius, delta=delta)


def _is_fixed(recipe: Recipe) -> bool:
    """Return whether what a trace costs is known beforehand, whatever its answers are."""
    from geoind.traces.methods import Independent

    return recipe.zones is None and isinstance(recipe.method, Independent)


def _refuse_total(recipe: Recipe, busiest: PersonTotal, record: ReleaseRecord) -> None:
    """Raise if all reports of the busiest person are worth one report that is less than 10 m off on average."""
    if not busiest.reports:
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
            if not _is_fixed(recipe):
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


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What was done. Print it.

    Attributes
    ----------
    reports : int
        How many there are.
    record : ReleaseRecord
        What left, what is promised, and the totals per person.
    mean_error, reach_95 : float, optional
        Metres between truth and report: on average, and what at least 95 % of the reports stay within. None where
        a step after the noise does not say how far it moves a report.
    varies : bool
        Whether these distances depend on the place; then they are the largest.
    bounds : (west, south, east, north), optional
        Degrees that the *reports* span; None without reports.
    left_out : tuple of str
        The columns that did not leave.
    reports_left_out : int
        Reports that were not made because of `reports_per_person`.
    rejected : int
        Bad records that got no report.
    charged : bool
        Whether a ledger was charged; reports that it had recorded as paid are free.
    exact_times : tuple of str
        Columns of times that left as they are.
    """

    reports: int
    record: ReleaseRecord
    mean_error: float | None
    reach_95: float | None
    bounds: tuple[float, float, float, float] | None = None
    left_out: tuple[str, ...] = ()
    reports_left_out: int = 0
    rejected: int = 0
    charged: bool = False
    exact_times: tuple[str, ...] = ()
    varies: bool = False

    def __str__(self) -> str:
        return "\n".join(printable(line, MOST_SAID) for line in self._lines())

    def _lines(self) -> Iterator[str]:
        record, errors = self.record, ""
        if self.mean_error is not None and self.reach_95 is not None:
            fresh = "" if record.session is None else "a fresh report is "
            fresh = "where it is farthest, " if self.varies else fresh
            mean, reach = _metres(self.mean_error), _metres(self.reach_95)
            errors = f": {fresh}{mean} from the truth on average, 95 % within {reach}"
        yield f"{plural(self.reports, 'report')}, {record}{errors}"
        if record.cells is not None:
            yield f"each report was then moved to the centre of its cell ({record.cells})"
        yield from record.totals
        if self.bounds is not None:
            west, south, east, north = self.bounds
            yield f"the reports lie between {west:.5f} and {east:.5f} E, {south:.5f} and {north:.5f} N"
        if self.reports_left_out:
            yield f"{plural(self.reports_left_out, 'report')} left out by the limit per person"
        if self.rejected:
            yield f"{plural(self.rejected, 'bad record')} got no report"
        if self.charged:
            yield "the ledger was charged; persons whose reports are those of an earlier charge pay nothing"
        if record.zones is not None:
            yield f"{plural(record.zones, 'person')} with a private zone, whose centre is in the totals"
        for name, step in record.time_step:
            yield f"times in {name!r} are rounded down to {step:g} s"
        if self.exact_times:
            yield f"exact times are public: {', '.join(self.exact_times)} (--time-step makes them coarse)"
        if record.kept:
            yield f"columns kept: {', '.join(record.kept)}"
        if coordinates := [name for name in self.left_out if COORDINATE.search(name)]:
            yield f"columns left out, called like coordinates: {', '.join(coordinates)} (--lat and --lon)"
        if others := [name for name in self.left_out if name not in coordinates]:
            yield f"columns left out (to keep some: --keep {_pasted(others)})"


def _pasted(names: Sequence[str]) -> str:
    """Return names as the command line takes them: one CSV record, quoted for a shell.

    Examples
    --------
    >>> print(_pasted(["fare", "name, first"]))
    'fare,"name, first"'
    """
    record = io.StringIO()
    csv.writer(record, lineterminator="").writerow(names)
    return shlex.quote(record.getvalue())


def _metres(distance: float) -> str:
    """Return a distance to read; little noise must not look like none, nor like more than it is."""
    return f"{distance:,.0f} m" if distance >= 10 else f"{distance:.2g} m"
