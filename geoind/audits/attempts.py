"""The attacks, run on a release or on a control, and what they found."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.special import betaincinv

from geoind.arrays import ArrayLike, FloatArray, IntArray
from geoind.audits import attacks
from geoind.audits.promised import Noise, density_of
from geoind.audits.visits import Flags, Visits, at_night, at_work, plane_around, snapped
from geoind.space.geodesy import geodesic_lengths

__all__ = ["CELL", "Attack", "Attempts", "Estimate", "Guess", "Progress", "Results", "share_of", "some_of"]

CELL = 100.0
"""Side of the cells in which true places are the same place, in metres."""
GUESSED = 100
"""Persons on whom the guesses that a caller adds are tried."""

Guess: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]
"""From the reports of one person, (n, 2) degrees, and their times to a guess about the home, in degrees."""
Progress: TypeAlias = Callable[[str, float], None]
Results: TypeAlias = "dict[str, tuple[str, str, Estimate]]"
"""Group, title and success by the name of an attack."""


class Estimate(NamedTuple):
    """A share or a distance with its 95 % confidence interval.

    Attributes
    ----------
    value, low, high : float
    hits : float
        Of a share: the sum of the successes that it was computed from; NaN for a distance.
    trials : int
        How many there were.
    """

    value: float
    low: float
    high: float
    hits: float
    trials: int


class Attack(NamedTuple):
    """The success of one attack.

    Attributes
    ----------
    name : str
        The measure, see `MEASURES`, or "" for an attack that is a part of one.
    group : str
        "bayes", "home", "unique", "match" or "nearest".
    title : str
    release, without_noise, huge_noise : Estimate, optional
        On the release, and on two controls made from the same truth.
    """

    name: str
    group: str
    title: str
    release: Estimate
    without_noise: Estimate | None = None
    huge_noise: Estimate | None = None


def share_of(successes: ArrayLike) -> Estimate:
    """Return the mean of successes, each between 0 and 1, with a 95 % interval: Clopper and Pearson's.

    It holds for fractions, too, whose variance is at most that of zeros and ones.
    """
    values = np.asarray(successes, float)
    values = values[~np.isnan(values)]
    hits, count = float(values.sum()), len(values)
    low = betaincinv(hits, count - hits + 1, 0.025) if hits > 0 else 0.0
    high = betaincinv(hits + 1, count - hits, 0.975) if hits < count else 1.0
    return Estimate(hits / count, float(low), float(high), hits, count)


def _middle(errors: FloatArray, *, mean: bool = False) -> Estimate:
    """Return the median of errors with an interval by order statistics, or the mean with a normal one."""
    values = np.sort(errors[~np.isnan(errors)])
    count = len(values)
    spread = 1.96 * math.sqrt(count) / 2
    if mean:
        half = 1.96 * float(values.std()) / math.sqrt(count)
        value = float(values.mean())
        return Estimate(value, max(0.0, value - half), value + half, math.nan, count)
    low, high = max(0, math.floor(count / 2 - spread)), min(count - 1, math.ceil(count / 2 + spread))
    return Estimate(float(np.median(values)), float(values[low]), float(values[high]), math.nan, count)


def some_of(count: int, most: int, rng: np.random.Generator) -> IntArray:
    """Return at most so many of the numbers from 0 to count - 1, chosen at random, in order."""
    return np.arange(count) if count <= most else np.sort(rng.choice(count, most, replace=False))


class Attempts(NamedTuple):
    """The attacks on a release, or on a control.

    Attributes
    ----------
    truth : (n, 2) array
        The true places, row by row as in `release`.
    places : Visits
        The same in cells, so that equal places are equal.
    everything : Visits
        All true visits, in cells, also those without a report.
    release : Visits
        The reports; with times if they leave.
    noise : Noise, optional
        None for the control without noise.
    radius : float
        Metres within which a report fits a known place.
    exact : bool
        Whether the law of the noise is known.
    """

    truth: FloatArray
    places: Visits
    everything: Visits
    release: Visits
    noise: Noise | None
    radius: float
    exact: bool

    def results(
        self, sample: int, seed: int, guesses: Mapping[str, Guess], show: Progress
    ) -> tuple[Results, dict[str, str]]:
        """Return group, title and success of each attack, and why others were not run."""
        found: Results = {}
        skipped: dict[str, str] = {}
        rng = np.random.default_rng(seed)
        chosen = some_of(len(self.truth), sample, rng)
        persons = some_of(self.places.persons, sample, rng)
        show("Bayesian attack", 0.0)
        if self.exact:
            found |= self._bayes(chosen)
        else:
            skipped["the Bayesian attack on one report"] = "the record does not describe the noise of each report"
        show("nearest report", 0.2)
        linked = attacks.nearest_report(self.truth, self.release.lonlat, chosen)
        nearest = ("nearest", "own report is the nearest", share_of(linked))
        show("homes and workplaces", 0.25)
        found |= self._homes(persons, guesses, skipped)
        show("uniqueness", 0.5)
        found |= self._unique(persons, rng)
        show("matching", 0.75)
        found |= self._matching(persons, rng, skipped)
        found["nearest"] = nearest
        return found, skipped

    def law(self, metres: FloatArray) -> FloatArray:
        """Return the density of the noise; without noise, one that is gone after some metres."""
        return np.exp(-metres) if self.noise is None else density_of(self.noise, metres)

    def _bayes(self, chosen: IntArray) -> Results:
        fine = snapped(self.truth, CELL / 2)
        places, visits = np.unique(fine, axis=0, return_counts=True)
        reach = 100.0 if self.noise is None else self.noise.reach(1 - 1e-6)
        reports = self.truth if self.noise is None else self.release.lonlat
        errors, hits = attacks.bayesian(
            self.truth[chosen],
            reports[chosen],
            places=places,
            mass=visits / visits.sum(),
            law=self.law,
            reach=reach,
        )
        return {
            "bayes_error": ("bayes", "mean error of the best guess", _middle(errors, mean=True)),
            "bayes_found": ("bayes", "true place found within 100 m", share_of(hits)),
        }

    def _homes(self, persons: IntArray, guesses: Mapping[str, Guess], skipped: dict[str, str]) -> Results:
        """Return the best of the attacks on homes and on workplaces, and each of them."""
        found: Results = {}
        for what, truth, when in self._targets():
            place = "home" if what == "home" else "workplace"
            several = [
                person
                for person in persons.tolist()
                if not np.isnan(truth[person, 0]) and self.places.counts[person] > 1
            ]
            if not several:
                reason = "no person has two reports and a place that was visited twice"
                skipped[f"the attack on {place}s"] = reason
                continue
            tried = self._tried(several, truth, when)
            if what == "home" and self.release.time is not None:
                tried |= self._guessed(several[:GUESSED], truth, guesses)
            best = max(tried, key=lambda name: (tried[name] <= attacks.FOUND).mean())
            most = min(tried, key=lambda name: float(np.median(tried[name])))
            found[f"{what}_found"] = (
                "home",
                f"{place} found within 100 m ({best})",
                share_of(tried[best] <= attacks.FOUND),
            )
            found[f"{what}_error"] = ("home", f"median error about the {place} ({most})", _middle(tried[most]))
            for name, errors in tried.items():
                title = f"{place} found by the {name}"
                found[f"{what}: {name}"] = ("home", title, share_of(errors <= attacks.FOUND))
        return found

    def _targets(self) -> list[tuple[str, FloatArray, Flags | None]]:
        """Return homes and workplaces of the truth, and the reports of those hours if the adversary sees times."""
        always, seen = self.everything, self.release
        if always.time is None:
            return [
                (what, attacks.usual_places(always, number=number, least=2), None)
                for number, what in enumerate(("home", "work"))
            ]
        return [
            (
                what,
                attacks.usual_places(always, hours(always.lonlat, always.time), least=2),
                None if seen.time is None else hours(seen.lonlat, seen.time),
            )
            for what, hours in (("home", at_night), ("work", at_work))
        ]

    def _tried(self, persons: Sequence[int], truth: FloatArray, when: Flags | None) -> dict[str, FloatArray]:
        """Return the error of each estimator about each person's place."""
        estimators = {"mean": attacks.mean_of, "median": attacks.median_of, "mode": attacks.mode_of}
        kinds: dict[str, Flags | None] = {"of all reports": None}
        kinds |= {} if when is None else {"of reports in those hours": when}
        errors = {f"{name} {kind}": np.full(len(persons), np.inf) for kind in kinds for name in estimators}
        for number, person in enumerate(persons):
            own = self.release.rows_of(person)
            for kind, which in kinds.items():
                rows = own if which is None else own[which[own]]
                if not len(rows):
                    continue
                reports = self.release.lonlat[rows]
                centre = reports[0]
                xy = plane_around(centre, reports)
                [true] = plane_around(centre, truth[person][None])
                for name, estimate in estimators.items():
                    errors[f"{name} {kind}"][number] = np.hypot(*(estimate(xy, self.law) - true))
        return errors

    def _guessed(
        self, persons: Sequence[int], truth: FloatArray, guesses: Mapping[str, Guess]
    ) -> dict[str, FloatArray]:
        errors: dict[str, FloatArray] = {}
        for name, guess in guesses.items():
            found = []
            for person in persons:
                rows = self.release.rows_of(person)
                seconds = np.zeros(len(rows)) if self.release.time is None else self.release.time[rows]
                place = np.asarray(guess(self.release.lonlat[rows], seconds), float)
                found.append(float(geodesic_lengths(place, truth[person][None])[0]))
            errors[name] = np.array(found)
        return errors

    def _unique(self, persons: IntArray, rng: np.random.Generator) -> Results:
        unique = attacks.uniqueness(
            self.places,
            self.release,
            persons=persons,
            radius=self.radius,
            timed=self.release.time is not None,
            rng=rng,
        )
        return {
            f"unique{count}": ("unique", f"unique by {count} known visit{'s' * (count > 1)}", share_of(column))
            for count, column in enumerate(unique.T, 1)
            if not np.isnan(column).all()
        }

    def _matching(self, persons: IntArray, rng: np.random.Generator, skipped: dict[str, str]) -> Results:
        names = [*attacks.MATCHING, "home_work"]
        if self.release.time is None:
            names = [name for name in names if name not in ("sequence", "time")]
            skipped["matching by sequence and by time"] = "no times leave with the reports"
        risks = attacks.linkage(
            self.places,
            self.release,
            persons=persons,
            radius=self.radius,
            attacks=names,
            tolerance=attacks.TOLERANCE,
            rng=rng,
        )
        titles = {name: f"named by {name.replace('_', ' and ')}" for name in names}
        found = {n: ("match", titles[n], share_of(r)) for n, r in risks.items() if not np.isnan(r).all()}
        if len(found) < len(risks):
            skipped.setdefault("some matching attacks", "no person has two visits to two places")
        return found
