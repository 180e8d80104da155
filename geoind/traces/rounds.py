"""How sessions of many persons go through a batch of rows, round by round.

In each round the next rows of each person are tested at once against the last answer, up to the first yes; then
everybody who has moved gets a new answer. How many rounds there are depends on how often people move, not on how
many rows there are. What doubles cannot decide, the person's own session decides.
"""

import numpy as np
import numpy.typing as npt

from geoind.arrays import FloatArray, IntArray
from geoind.distances import EARTH_RADIUS
from geoind.mechanisms.spherical import WGS84_FACTOR
from geoind.randomness import Words
from geoind.traces.comparison import CLOSE, SURE, TAIL
from geoind.traces.guarded import Run
from geoind.traces.laws import shares
from geoind.traces.memory import Batch, Memory
from geoind.traces.sparse import FAR, SparseVector
from geoind.traces.switching import HOUR, Switching
from geoind.traces.words import CHOICE, LIMIT, NO_CHOICE, TEST

__all__ = ["Rounds"]

Flags = npt.NDArray[np.bool_]

WINDOW, LARGEST = 8, 1 << 14
"""Rows of a person that are tested at once, at first and at most: twice as many after each silence."""

UNIT = 2.0**-64


class Rounds:
    """Sparse vector sessions of many persons, on their way through a batch.

    Parameters
    ----------
    memory : Memory
        What the sessions remember; it goes on.
    method : SparseVector
        How they answer.
    switching : Switching, optional
        When they give up testing.
    batch : Batch
        The rows.
    seeds, fresh : (n, 2) arrays
        The words and the fresh reports of all rows.
    """

    def __init__(
        self,
        memory: Memory,
        method: SparseVector,
        switching: Switching | None,
        batch: Batch,
        seeds: Words,
        fresh: FloatArray,
    ) -> None:
        self.memory, self.method, self.switching = memory, method, switching
        self.batch, self.seeds, self.fresh = batch, seeds, fresh
        self.reports = np.empty_like(fresh)
        self.persons, self.ends = batch.persons, batch.starts[1:].copy()
        self.at = batch.starts[:-1].copy()
        self.window = np.full(len(self.persons), WINDOW)
        for_limit, for_tests = shares(method.test)
        self.limit_scale = WGS84_FACTOR * (1 / for_limit)
        self.test_scale = WGS84_FACTOR * (2 / for_tests)
        words = memory.words.pairs(seeds, method.test, TEST)
        self.noise, self.tail = _signed(words, self.test_scale)
        self.sines = _sines(batch.lonlat)

    def run(self) -> None:
        """Answer all rows."""
        memory = self.memory
        while len(active := np.flatnonzero(self.at < self.ends)):
            persons = self.persons[active]
            moving = self._moving(active)
            if moving.any():
                self._answer_fresh(active[moving])
                active, persons = active[~moving], persons[~moving]
            quiet = active[memory.run[persons] >= 0]
            moved = [active[memory.run[persons] < 0]]
            if len(quiet):
                moved.append(quiet[self._tested(quiet)])
            movers = np.concatenate(moved)
            if len(movers):
                self._move(movers)

    def _moving(self, active: IntArray) -> Flags:
        """Return who gets fresh reports because of many moves within the hour."""
        memory, switching = self.memory, self.switching
        if switching is None:
            return np.zeros(len(active), bool)
        persons = self.persons[active]
        begin = self.batch.times[self.at[active]] // HOUR * HOUR
        recent = memory.changed[persons, 0] - 1 >= memory.steps[persons] - switching.remembered
        return np.asarray((memory.changed_after[persons, 0] >= begin) & recent)

    def _answer_fresh(self, active: IntArray) -> None:
        """Answer each person's next rows of the same hour afresh, as long as answers change."""
        memory = self.memory
        persons, at = self.persons[active], self.at[active]
        rows, owner = self._windows(active)
        hours = self.batch.times[rows] // HOUR
        first = np.flatnonzero(np.diff(owner, prepend=-1))
        before = np.empty((len(rows), 2))
        before[1:] = self.fresh[rows[:-1]]
        before[first] = memory.last[persons]
        # The row after an answer that stayed the same by chance is looked at anew.
        stop = np.zeros(len(rows), bool)
        stop[1:] = (self.fresh[rows] == before).all(axis=1)[:-1]
        stop |= hours != hours[first][owner]
        stop[first] = False
        counts = _until(stop, owner, len(active))
        kept = rows - at[owner] < counts[owner]
        self.reports[rows[kept]] = self.fresh[rows[kept]]
        self._changes(active, counts)
        memory.last[persons] = self.fresh[at + counts - 1]
        memory.last_time[persons] = self.batch.times[at + counts - 1]
        memory.steps[persons] += counts
        memory.run[persons] = -1
        memory.pay_fresh(persons, counts, self.method.fresh)
        self.at[active] += counts
        self.window[active] = np.minimum(2 * self.window[active], LARGEST)

    def _changes(self, active: IntArray, counts: IntArray) -> None:
        """Remember when fresh answers changed: only the last ones matter."""
        memory = self.memory
        persons, at = self.persons[active], self.at[active]
        most = memory.changed.shape[1]
        for back in range(min(most, int(counts.max(initial=0))), 0, -1):
            some = np.flatnonzero(counts >= back)
            row = at[some] + counts[some] - back
            inside = row > at[some]
            before = np.where(inside[:, None], self.fresh[row - 1], memory.last[persons[some]])
            time = np.where(inside, self.batch.times[row - 1], memory.last_time[persons[some]])
            changed = (self.fresh[row] != before).any(axis=1)
            memory.note_change(
                persons[some][changed], (memory.steps[persons[some]] + row - at[some])[changed], time[changed]
            )

    def _windows(self, active: IntArray) -> tuple[IntArray, IntArray]:
        """Return the next rows of each person, and to which of the persons they belong."""
        sizes = np.minimum(self.window[active], self.ends[active] - self.at[active])
        owner = np.repeat(np.arange(len(active)), sizes)
        inside = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return self.at[active][owner] + inside, owner

    def _tested(self, active: IntArray) -> Flags:
        """Answer rows with the last report up to the first test that says yes; return where one did."""
        memory, method = self.memory, self.method
        persons = self.persons[active]
        rows, owner = self._windows(active)
        last = memory.last[persons]
        distance = _arcs(self.sines[:, rows], _sines(last)[:, owner], self.batch.lonlat[rows, 0] - last[owner, 0])
        bar = memory.bar[persons]
        apart = distance + self.noise[rows] - bar[owner]
        size = distance + np.abs(self.noise[rows]) + np.abs(bar[owner]) + 2 * method.limit
        size += self.test_scale + self.limit_scale
        yes = apart > 0
        doubtful = ~(np.abs(apart) > CLOSE + SURE * size) | self.tail[rows]
        for row in np.flatnonzero(doubtful).tolist():
            person = int(persons[owner[row]])
            other = (float(last[owner[row], 0]), float(last[owner[row], 1]))
            run = Run(int(memory.run[person]), method.test, other)
            place = memory.exactly(person, float(self.batch.times[rows[row]]), self.batch.lonlat[rows[row]], run)
            yes[row] = place.has_left(method.limit)
        counts = _until(yes, owner, len(active))
        at = self.at[active]
        silent = rows - at[owner] < counts[owner]
        self.reports[rows[silent]] = last[owner[silent]]
        self.at[active] += counts
        spoke = counts > 0
        memory.steps[persons] += counts
        memory.last_time[persons[spoke]] = self.batch.times[self.at[active][spoke] - 1]
        moved = np.zeros(len(active), bool)
        moved[owner[yes]] = True
        self.window[active] = np.where(
            moved, np.maximum(self.window[active] // 2, WINDOW // 2), np.minimum(2 * self.window[active], LARGEST)
        )
        return moved

    def _move(self, active: IntArray) -> None:
        """Answer one row of each person with a place reported earlier, or with a fresh report; begin a run."""
        memory, method = self.memory, self.method
        persons, rows = self.persons[active], self.at[active]
        chosen, asked = self._chosen(persons, rows)
        found = ~np.isnan(chosen[:, 0])
        report = np.where(found[:, None], chosen, self.fresh[rows])
        for person, had_choice, again in zip(persons.tolist(), asked.tolist(), found.tolist(), strict=True):
            prices = [method.choice] * had_choice + [method.fresh] * (not again) + [method.test]
            memory.pay(person, prices)
        memory.counts[persons, 0] += ~found
        memory.counts[persons, 1] += 1
        memory.counts[persons, 2] += asked
        changed = (report != memory.last[persons]).any(axis=1) & (memory.steps[persons] > 0)
        memory.note_change(persons[changed], memory.steps[persons[changed]], memory.last_time[persons[changed]])
        memory.note_place(persons, report)
        self.reports[rows] = report
        memory.last[persons], memory.last_time[persons] = report, self.batch.times[rows]
        memory.run[persons] = memory.runs[persons]
        seeds = memory.words.runs(memory.persons[persons], memory.run[persons], report)
        noise, tail = _signed(memory.words.pairs(seeds, method.test, LIMIT), self.limit_scale)
        # A limit in the tail of its noise is not a number: no double decides, so exact arithmetic does each time.
        memory.bar[persons] = np.where(tail, np.nan, method.limit + noise)
        memory.runs[persons] += 1
        memory.steps[persons] += 1
        self.at[active] += 1

    def _chosen(self, persons: IntArray, rows: IntArray) -> tuple[FloatArray, Flags]:
        """Return the earlier places that were chosen, NaN for none, and who had a choice at all."""
        memory, method = self.memory, self.method
        anchors = memory.anchors[persons]
        known = ~np.isnan(anchors[:, :, 0]) & (anchors != memory.last[persons][:, None]).any(axis=2)
        # All anchors but the last answer; if that is none of them, all but the oldest.
        known[:, 0] &= known[:, 1:].sum(axis=1) < method.places
        asked = known.any(axis=1) & (method.choice > 0)
        chosen = np.full((len(persons), 2), np.nan)
        some = np.flatnonzero(asked)
        if not len(some):
            return chosen, asked
        anchors, known = anchors[some], known[some]
        scale = WGS84_FACTOR * 2 / method.choice
        who, which = np.nonzero(known)
        number = (np.cumsum(known, axis=1) - 1)[who, which]
        words = memory.words.pairs(self.seeds[rows[some][who]], method.choice, CHOICE, number)[:, 0]
        none = memory.words.pairs(self.seeds[rows[some]], method.choice, NO_CHOICE)[:, 0]
        here = self.batch.lonlat[rows[some]]
        places = anchors[who, which]
        distance = _arcs(self.sines[:, rows[some][who]], _sines(places), here[who, 0] - places[:, 0])
        scores = np.full((len(some), known.shape[1] + 1), np.inf)
        doubtful = np.zeros(len(some), bool)
        with np.errstate(divide="ignore"):
            scores[who, which] = distance - scale * np.log(words * UNIT)
            scores[:, -1] = FAR * method.limit - scale * np.log(none * UNIT)
        doubtful[who[words * UNIT < TAIL]] = True
        doubtful |= none * UNIT < TAIL
        best = scores.argmin(axis=1)
        two = np.partition(scores, 1, axis=1)
        largest = np.max(scores, axis=1, where=np.isfinite(scores), initial=0.0)
        doubtful |= ~(two[:, 1] - two[:, 0] > CLOSE + SURE * (2 * largest + 2 * scale))
        for row in np.flatnonzero(doubtful).tolist():
            person, at = int(persons[some[row]]), int(rows[some[row]])
            place = memory.exactly(person, float(self.batch.times[at]), self.batch.lonlat[at])
            offered = np.flatnonzero(known[row])
            told = tuple((lon, lat) for lon, lat in anchors[row, offered].tolist())
            answer = place.nearest(told, FAR * method.limit, method.choice)
            best[row] = known.shape[1] if answer is None else offered[answer]
        took = best < known.shape[1]
        chosen[some[took]] = anchors[took, best[took]]
        return chosen, asked


def _until(flags: Flags, owner: IntArray, count: int) -> IntArray:
    """Return how many rows each owner has before the first that is flagged; all of them, if none is."""
    sizes = np.bincount(owner, minlength=count)
    starts = np.cumsum(sizes) - sizes
    hits = np.flatnonzero(flags)
    result = sizes.copy()
    # The first of each owner is written last.
    result[owner[hits[::-1]]] = hits[::-1] - starts[owner[hits[::-1]]]
    return result


def _signed(words: Words, scale: float) -> tuple[FloatArray, Flags]:
    """Return Laplace noise of (n, 2) words, and where its first bits are too few for doubles."""
    uniform = words[:, 1] * UNIT
    tail = uniform < TAIL
    with np.errstate(divide="ignore"):
        noise = -scale * np.log(uniform)
    noise[words[:, 0] & np.uint64(1) == 1] *= -1
    return noise, np.asarray(tail)


def _sines(lonlat: FloatArray) -> FloatArray:
    """Return sine and cosine of the latitudes, as two rows."""
    phi = np.radians(lonlat[:, 1])
    return np.stack([np.sin(phi), np.cos(phi)])


def _arcs(one: FloatArray, other: FloatArray, turn: FloatArray) -> FloatArray:
    """Return great-circle distances in metres, by the formula of `comparison.arc_length`."""
    turn = np.radians(turn)
    cos_turn = np.cos(turn)
    across = np.hypot(other[1] * np.sin(turn), one[1] * other[0] - one[0] * other[1] * cos_turn)
    return np.asarray(EARTH_RADIUS * np.arctan2(across, one[0] * other[0] + one[1] * other[1] * cos_turn))
