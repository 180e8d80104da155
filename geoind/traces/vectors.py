"""Sessions of many persons in arrays: what `TraceSession` answers, for thousands of steps at once.

Words are those of each person's own session, the comparisons are those of `GuardedPlace`, and what doubles cannot
decide is asked of a `GuardedPlace` of its own, so every answer is the same.

A batch is answered in rounds. In each round the next rows of each person are tested at once against the last
answer, up to the first yes; then every person who has moved gets a new answer. The number of rounds depends on how
often people move, not on how many rows there are.

Neither form replaces the other: arrays with a single row take about a millisecond, a session at most 0.15; a row
among many takes 2 to 10 microseconds, in a session 40 to 100.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from geoind.arrays import FloatArray, IntArray
from geoind.keys import Words
from geoind.mechanisms.spherical import WGS84_FACTOR, SphericalLaplace
from geoind.traces.methods import HOUR, Independent, TraceMethod
from geoind.traces.questions import (
    AboveThreshold,
    Flags,
    GuardedPlace,
    arc_length,
    distance_exceeds,
    laplace_noise,
    noisy_argmin,
    scales_of_tests,
)
from geoind.traces.sparse import FAR, SparseVector, Switching, still_counts
from geoind.traces.words import CHOICE, LIMIT, NO_CHOICE, TEST, SessionWords, as_block

__all__ = ["array_sessions"]

WINDOW, LARGEST = 8, 1 << 14
"""Rows of a person that are tested at once, at first and at most: twice as many after each silence."""

ANY_WORD = (1 << 64) - 1
"""The word of a place that is no candidate: enough bits for doubles."""


def array_sessions(method: TraceMethod, key: bytes) -> "_ArraySessions | None":
    """Return sessions in arrays for a method; None if it has none, as a subclass may answer otherwise."""
    inner = method.stays if type(method) is Switching else method
    return _ArraySessions(method, key) if type(inner) in (Independent, SparseVector) else None


class _ArraySessions:
    """The sessions of many persons, by their numbers: 0, 1, 2, ..."""

    def __init__(self, method: TraceMethod, key: bytes) -> None:
        self.switching = method if isinstance(method, Switching) else None
        inner = method.stays if isinstance(method, Switching) else method
        self.sparse = inner if isinstance(inner, SparseVector) else None
        self.fresh = inner.fresh if isinstance(inner, SparseVector) else inner.max_charges[0]
        self.words = SessionWords(key)
        self._globe = SphericalLaplace(self.fresh)
        self._count = 0
        self._blank = _blank(
            places=1 if self.sparse is None else self.sparse.places + 1,
            changes=1 if self.switching is None else self.switching.moves,
        )
        self.state: npt.NDArray[Any] = np.full(0, self._blank)

    def add(self, names: Sequence[str]) -> None:
        """Give the next numbers to some more persons."""
        first, self._count = self._count, self._count + len(names)
        if self._count > len(self.state):
            room = max(self._count, 2 * len(self.state)) - len(self.state)
            self.state = np.concatenate([self.state, np.full(room, self._blank)])
        self.state["person"][first : self._count] = self.words.persons(names)

    def costs(self, number: int) -> Counter[float]:
        """Return how many charges of each epsilon a person had."""
        prices = [self.fresh, *(() if self.sparse is None else (self.sparse.test, self.sparse.choice))]
        result: Counter[float] = Counter()
        for price, count in zip(prices, self.state["counts"][number].tolist(), strict=False):
            result[price] += count
        return +result

    def spent(self, number: int) -> float:
        """Return what a person's answers cost, per metre."""
        return float(self.state["spent"][number])

    def report(self, persons: IntArray, starts: IntArray, times: FloatArray, lonlat: FloatArray) -> FloatArray:
        """Return the answers to rows sorted by person, each person's in the order of time, without repetitions.

        `persons` are m numbers, each once; `starts`, (m + 1,), is where their rows begin, and where the last end.
        """
        rows_of = np.repeat(persons, np.diff(starts))
        seeds = self.words.steps(self.state["person"][rows_of], times, lonlat)
        if self.sparse is not None:
            return _Batch(self, self.sparse, persons, starts, times, lonlat, seeds).answered()
        self.pay_fresh(persons, np.diff(starts))
        return self.fresh_reports(lonlat, seeds)

    def fresh_reports(self, lonlat: FloatArray, seeds: Words) -> FloatArray:
        """Return a fresh report of each row."""
        return self._globe.sample(lonlat, rng=self.words.fresh(seeds, self.fresh))

    def pay_fresh(self, persons: IntArray, counts: IntArray) -> None:
        """Add the price of so many fresh reports, one after the other, as a session does."""
        self.state["counts"][persons, 0] += counts
        spent = self.state["spent"]
        for person, count in zip(persons.tolist(), counts.tolist(), strict=True):
            sums = np.full(count + 1, self.fresh)
            sums[0] = spent[person]
            spent[person] = np.add.accumulate(sums)[-1]

    def pay(self, person: int, charges: Iterable[float]) -> None:
        """Add what one step cost."""
        self.state["spent"][person] = math.fsum([self.state["spent"][person], *charges])

    def note_change(self, persons: IntArray, steps: IntArray, times: FloatArray) -> None:
        """Remember the steps at which answers changed, and when the answers before were given."""
        for name, values in (("changed", steps), ("changed_after", times)):
            kept = self.state[name]
            kept[persons, :-1] = kept[persons, 1:]
            kept[persons, -1] = values

    def note_place(self, persons: IntArray, places: FloatArray) -> None:
        """Put places at the end, where those used last are."""
        anchors = self.state["anchors"][persons]
        size = anchors.shape[1]
        same = (anchors == places[:, None]).all(axis=2)
        # The place itself, or else the oldest, makes room.
        gone = np.where(same.any(axis=1), same.argmax(axis=1), 0)
        order = np.arange(size - 1) + (np.arange(size - 1) >= gone[:, None])
        self.state["anchors"][persons, :-1] = np.take_along_axis(anchors, order[:, :, None], axis=1)
        self.state["anchors"][persons, -1] = places


def _blank(*, places: int, changes: int) -> npt.NDArray[Any]:
    """Return the state of a session that has not begun."""
    blank = np.zeros(
        (),
        [
            ("person", np.uint64, (2,)),  # the words that stand for the person
            ("spent", np.float64),
            ("counts", np.int64, (3,)),  # of fresh reports, runs of tests and choices
            ("last", np.float64, (2,)),  # the last answer, and when it was given
            ("last_time", np.float64),
            ("steps", np.int64),  # how many answers there were
            ("run", np.int64),  # the number of the run that is going on, -1 for none
            ("runs", np.int64),
            ("threshold", np.float64),  # the limit of that run with its noise
            ("anchors", np.float64, (places, 2)),  # the places that were used last, NaN for none
            ("changed", np.int64, (changes,)),  # the steps at which the answer changed last
            ("changed_after", np.float64, (changes,)),  # when the answers before them were given
        ],
    )
    blank["last"] = blank["threshold"] = blank["anchors"] = np.nan
    blank["last_time"] = blank["changed_after"] = -np.inf
    blank["run"], blank["changed"] = -1, -(1 << 62)
    return blank


class _Batch:
    """Sparse vector sessions of many persons, answering a batch of rows."""

    def __init__(
        self,
        sessions: _ArraySessions,
        method: SparseVector,
        persons: IntArray,
        starts: IntArray,
        times: FloatArray,
        lonlat: FloatArray,
        seeds: Words,
    ) -> None:
        self.sessions, self.method, self.words = sessions, method, sessions.words
        self.persons, self.times, self.lonlat, self.seeds = persons, times, lonlat, seeds
        self.fresh = sessions.fresh_reports(lonlat, seeds)
        self.reports = np.empty_like(self.fresh)
        self.at, self.ends = starts[:-1].copy(), starts[1:].copy()
        self.window = np.full(len(persons), WINDOW)
        self.limit_scale, test_scale = scales_of_tests(method.test)
        self.size = 2 * method.limit + self.limit_scale + test_scale
        self.noise = laplace_noise(self.words.pairs(self.seeds, method.test, TEST).T, test_scale)

    def answered(self) -> FloatArray:
        """Return the answers to all rows."""
        run = self.sessions.state["run"]
        while len(active := np.flatnonzero(self.at < self.ends)):
            moving = self._is_moving(active)
            if moving.any():
                self._answer_fresh(active[moving])
                active = active[~moving]
            tested = run[self.persons[active]] >= 0
            movers = np.concatenate([active[~tested], self._tested(active[tested])])
            if len(movers):
                self._move(movers)
        return self.reports

    def _is_moving(self, active: IntArray) -> Flags:
        """Return who gets fresh reports because of many moves within the hour."""
        switching, state = self.sessions.switching, self.sessions.state
        if switching is None:
            return np.zeros(len(active), bool)
        persons = self.persons[active]
        ago = state["steps"][persons] - state["changed"][persons, 0] + 1
        now, before = self.times[self.at[active]], state["changed_after"][persons, 0]
        return np.asarray(still_counts(now, before, ago, switching.remembered))

    def _windows(self, active: IntArray) -> tuple[IntArray, IntArray]:
        """Return the next rows of each person, and to which of the persons they belong."""
        sizes = np.minimum(self.window[active], self.ends[active] - self.at[active])
        owner = np.repeat(np.arange(len(active)), sizes)
        inside = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return self.at[active][owner] + inside, owner

    def _answer_fresh(self, active: IntArray) -> None:
        """Answer each person's next rows of the same hour afresh, as long as answers change."""
        state, persons, at = self.sessions.state, self.persons[active], self.at[active]
        rows, owner = self._windows(active)
        hours = self.times[rows] // HOUR
        first = np.flatnonzero(np.diff(owner, prepend=-1))
        before = np.empty((len(rows), 2))
        before[1:] = self.fresh[rows[:-1]]
        before[first] = state["last"][persons]
        # The row after an answer that stayed the same by chance needs another decision.
        stop = np.zeros(len(rows), bool)
        stop[1:] = (self.fresh[rows] == before).all(axis=1)[:-1]
        stop |= hours != hours[first][owner]
        stop[first] = False
        counts = _until(stop, owner, len(active))
        kept = rows - at[owner] < counts[owner]
        self.reports[rows[kept]] = self.fresh[rows[kept]]
        self._note_changes(persons, at, counts)
        state["last"][persons] = self.fresh[at + counts - 1]
        state["last_time"][persons] = self.times[at + counts - 1]
        state["steps"][persons] += counts
        state["run"][persons] = -1
        self.sessions.pay_fresh(persons, counts)
        self.at[active] += counts
        self.window[active] = np.minimum(2 * self.window[active], LARGEST)

    def _note_changes(self, persons: IntArray, at: IntArray, counts: IntArray) -> None:
        """Remember when fresh answers changed: only the last ones matter."""
        state = self.sessions.state
        for back in range(min(state["changed"].shape[1], int(counts.max(initial=0))), 0, -1):
            some = np.flatnonzero(counts >= back)
            who, row = persons[some], at[some] + counts[some] - back
            inside = row > at[some]
            before = np.where(inside[:, None], self.fresh[row - 1], state["last"][who])
            time = np.where(inside, self.times[row - 1], state["last_time"][who])
            changed = (self.fresh[row] != before).any(axis=1)
            step = state["steps"][who] + row - at[some]
            self.sessions.note_change(who[changed], step[changed], time[changed])

    def _tested(self, active: IntArray) -> IntArray:
        """Answer rows with the last report up to the first test that says yes; return who had a yes."""
        state, persons = self.sessions.state, self.persons[active]
        rows, owner = self._windows(active)
        last = state["last"][persons]
        apart = arc_length(*self.lonlat[rows].T, *last[owner].T)
        left, sure = distance_exceeds(apart, self.noise[rows], state["threshold"][persons][owner], self.size)
        for number in np.flatnonzero(~sure).tolist():
            who = owner[number]
            run = AboveThreshold(int(state["run"][persons[who]]), self.method.test, tuple(last[who].tolist()))
            left[number] = self._guarded(int(persons[who]), int(rows[number]), run).has_left(self.method.limit)
        counts = _until(left, owner, len(active))
        silent = rows - self.at[active][owner] < counts[owner]
        self.reports[rows[silent]] = last[owner[silent]]
        self.at[active] += counts
        state["steps"][persons] += counts
        answered = counts > 0
        state["last_time"][persons[answered]] = self.times[self.at[active][answered] - 1]
        moved = np.zeros(len(active), bool)
        moved[owner[left]] = True
        window = self.window[active]
        self.window[active] = np.where(
            moved, np.maximum(window // 2, WINDOW // 2), np.minimum(2 * window, LARGEST)
        )
        return active[moved]

    def _move(self, active: IntArray) -> None:
        """Answer one row of each person with a place reported earlier, or with a fresh report; begin a run."""
        sessions, method, state = self.sessions, self.method, self.sessions.state
        persons, rows = self.persons[active], self.at[active]
        chosen, asked = self._chosen(persons, rows)
        fresh = np.isnan(chosen[:, 0])
        report = np.where(fresh[:, None], self.fresh[rows], chosen)
        for person, choice, new in zip(persons.tolist(), asked.tolist(), fresh.tolist(), strict=True):
            sessions.pay(person, method.charges(choice=choice, fresh=new))
        state["counts"][persons] += np.column_stack([fresh, np.ones_like(fresh), asked])
        changed = (report != state["last"][persons]).any(axis=1) & (state["steps"][persons] > 0)
        movers = persons[changed]
        sessions.note_change(movers, state["steps"][movers], state["last_time"][movers])
        sessions.note_place(persons, report)
        self.reports[rows] = report
        state["last"][persons], state["last_time"][persons] = report, self.times[rows]
        state["run"][persons] = state["runs"][persons]
        seeds = self.words.runs(state["person"][persons], state["run"][persons], report)
        noise = laplace_noise(self.words.pairs(seeds, method.test, LIMIT).T, self.limit_scale)
        state["threshold"][persons] = method.limit + noise
        state["runs"][persons] += 1
        state["steps"][persons] += 1
        self.at[active] += 1

    def _chosen(self, persons: IntArray, rows: IntArray) -> tuple[FloatArray, Flags]:
        """Return the earlier places that were chosen, NaN for none, and who had a choice at all."""
        method, state = self.method, self.sessions.state
        anchors = state["anchors"][persons]
        known = ~np.isnan(anchors[:, :, 0]) & (anchors != state["last"][persons][:, None]).any(axis=2)
        # All anchors but the last answer; if that is none of them, all but the oldest.
        known[:, 0] &= known[:, 1:].sum(axis=1) < method.places
        asked = known.any(axis=1) & (method.choice > 0)
        chosen = np.full((len(persons), 2), np.nan)
        some = np.flatnonzero(asked)
        if not len(some):
            return chosen, asked
        anchors, known, rows = anchors[some], known[some], rows[some]
        who, which = np.nonzero(known)
        number = (np.cumsum(known, axis=1) - 1)[who, which]
        scores = np.full((len(some), known.shape[1] + 1), np.inf)
        scores[:, -1] = FAR * method.limit
        scores[who, which] = arc_length(*self.lonlat[rows[who]].T, *anchors[who, which].T)
        words = np.full(scores.shape, ANY_WORD, np.uint64)
        words[who, which] = self.words.pairs(self.seeds[rows[who]], method.choice, CHOICE, number)[:, 0]
        words[:, -1] = self.words.pairs(self.seeds[rows], method.choice, NO_CHOICE)[:, 0]
        best, sure = noisy_argmin(scores.T, words.T, WGS84_FACTOR * (2 / method.choice))
        for row in np.flatnonzero(~sure).tolist():
            offered = np.flatnonzero(known[row])
            places = tuple((lon, lat) for lon, lat in anchors[row, offered].tolist())
            place = self._guarded(int(persons[some[row]]), int(rows[row]))
            answer = place.nearest(places, FAR * method.limit, method.choice)
            best[row] = known.shape[1] if answer is None else offered[answer]
        found = best < known.shape[1]
        chosen[some[found]] = anchors[found, best[found]]
        return chosen, asked

    def _guarded(self, person: int, row: int, run: AboveThreshold | None = None) -> GuardedPlace:
        """Return one step as the person's own session has it; its costs are counted elsewhere."""
        lon, lat = self.lonlat[row].tolist()
        words, seed = as_block(self.sessions.state["person"][person]), as_block(self.seeds[row])
        return GuardedPlace(lon, lat, self.words, words, seed, _charge_nothing, run)


def _charge_nothing(epsilon: float, label: str) -> None:
    pass


def _until(flags: Flags, owner: IntArray, count: int) -> IntArray:
    """Return how many rows each owner has before the first that is flagged; all of them, if none is."""
    sizes = np.bincount(owner, minlength=count)
    starts = np.cumsum(sizes) - sizes
    hits = np.flatnonzero(flags)[::-1]
    result = sizes.copy()
    # The first of each owner is written last.
    result[owner[hits]] = hits - starts[owner[hits]]
    return result
