"""Attacks on the reports of a release, each a short function of arrays.

The matching attacks ask which persons of a release fit what is known about one person, as in Pellungrini et al.
(2018) and scikit-mobility: `location`, `sequence`, `time`, `frequency`, `probability`, `proportion`, `home_work`.
A report fits a known place if it is within a radius of it; a radius of 0 means the same place.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from geoind.arrays import FloatArray, IntArray
from geoind.audits.visits import MILLIMETRE, Flags, Visits, on_sphere, plane_around, rows_within, snapped
from geoind.channels.remap import geometric_median
from geoind.distances import haversine
from geoind.errors import SolverError

__all__ = [
    "FOUND",
    "MATCHING",
    "TOLERANCE",
    "Law",
    "bayesian",
    "known_visits",
    "linkage",
    "mean_of",
    "median_of",
    "mode_of",
    "nearest_report",
    "uniqueness",
    "usual_places",
    "weighted_median",
]

Law: TypeAlias = Callable[[FloatArray], FloatArray]
"""From metres to a density of the noise, up to a factor."""

FOUND = 100.0
"""Metres within which a place is found."""
TOLERANCE = 0.1
"""Largest relative difference of frequencies that match after noise."""


# (a) One report, with the prior of the data.


def bayesian(
    truth: FloatArray, reports: FloatArray, *, places: FloatArray, mass: FloatArray, law: Law, reach: float
) -> tuple[FloatArray, Flags]:
    """Return the error of the optimal guess of each truth, and whether it was found within 100 m.

    The posterior over the places is proportional to mass times law. The guess of least expected error is its
    geometric median; the guess that finds most is the place with the most posterior mass within 100 m.

    Parameters
    ----------
    truth, reports : (n, 2) arrays
        Degrees.
    places, mass : (m, 2) and (m,) arrays
        The prior.
    law : Law
        The density of the noise.
    reach : float
        Metres beyond which the law is taken as zero; where no place is that near, all places are used.

    Examples
    --------
    >>> homes = np.array([[2.35, 48.86], [2.36, 48.86]])
    >>> law = lambda metres: np.exp(-0.01 * metres)
    >>> errors, found = bayesian(homes[:1], homes[:1], places=homes, mass=np.array([0.9, 0.1]), law=law, reach=1e4)
    >>> found, bool(errors[0] < 1)
    (array([ True]), True)
    """
    near, everything = rows_within(places, reach), np.arange(len(places))
    around = _neighbours(places, FOUND)
    errors, found = np.empty(len(truth)), np.zeros(len(truth), bool)
    for number, (place, report) in enumerate(zip(truth, reports, strict=True)):
        rows = near(report)
        rows = rows if len(rows) else everything
        xy = plane_around(report, places[rows])
        apart = np.hypot(*xy.T)
        weights = mass[rows] * law(apart)
        if not weights.any():
            # Farther than the law can express: the nearest place.
            weights = (apart == apart.min()).astype(float)
        weights = weights / weights.sum()
        [true] = plane_around(report, place[None])
        guess = weighted_median(xy, weights)
        errors[number] = np.hypot(*(guess - true))
        posterior = np.zeros(len(places))
        posterior[rows] = weights
        likely = int(rows[np.argmax(around[rows] @ posterior)])
        found[number] = haversine(places[likely][None], place[None])[0, 0] <= FOUND
    return errors, found


def _neighbours(places: FloatArray, radius: float) -> csr_array:
    """Return which places are within a radius of each other, as a matrix of ones."""
    pairs = cKDTree(on_sphere(places)).query_pairs(radius, output_type="ndarray")
    rows = np.concatenate([pairs[:, 0], pairs[:, 1], np.arange(len(places))])
    columns = np.concatenate([pairs[:, 1], pairs[:, 0], np.arange(len(places))])
    return csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(places), len(places)))


# (b) Home and work from the reports of one person.


def usual_places(visits: Visits, when: Flags | None = None, *, number: int = 0, least: int = 1) -> FloatArray:
    """Return the most visited place of each person, (persons, 2) degrees, NaN where there is none.

    Parameters
    ----------
    visits : Visits
        With equal coordinates for the same place.
    when : (n,) array of bool, optional
        The rows that count.
    number : int
        0 for the most visited place, 1 for the second most visited one.
    least : int
        The number of visits that it needs.

    Examples
    --------
    >>> home, work = [2.35, 48.86], [2.36, 48.86]
    >>> visits = Visits(np.array([home, work, home, home, work]), np.zeros(5, np.int64))
    >>> usual_places(visits), usual_places(visits, number=1)
    (array([[ 2.35, 48.86]]), array([[ 2.36, 48.86]]))
    """
    rows = np.arange(len(visits.person)) if when is None else np.flatnonzero(when)
    result = np.full((visits.persons, 2), np.nan)
    pairs = visits.person[rows].astype(np.int64) * (len(visits.place) + 1) + visits.place[rows]
    _, first, counts = np.unique(pairs, return_index=True, return_counts=True)
    person = visits.person[rows[first]]
    best = np.lexsort((-counts, person))
    rank = np.arange(len(best)) - np.searchsorted(person[best], person[best])
    chosen = best[(rank == number) & (counts[best] >= least)]
    result[person[chosen]] = visits.lonlat[rows[first[chosen]]]
    return result


def mean_of(xy: FloatArray, law: Law) -> FloatArray:  # noqa: ARG001
    """Return the mean of reports."""
    return np.asarray(xy.mean(axis=0))


def median_of(xy: FloatArray, law: Law) -> FloatArray:  # noqa: ARG001
    """Return the geometric median of reports: the most likely place if all are of one place (Laplace noise)."""
    return weighted_median(xy, np.full(len(xy), 1 / len(xy)))


def weighted_median(xy: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the geometric median, within a metre of the least mean distance or a thousandth of it."""
    apart = float(weights @ np.hypot(*(xy - weights @ xy).T))
    try:
        return np.asarray(geometric_median(xy, weights[None], tolerance=max(1.0, apart / 1000))[0])
    except SolverError:
        # Slow where a point is almost the median: then the best of the heaviest points is as good.
        some = xy[np.argsort(-weights, kind="stable")[:500]]
        mean = weights @ np.hypot(xy[:, None, 0] - some[None, :, 0], xy[:, None, 1] - some[None, :, 1])
        return np.asarray(some[int(mean.argmin())])


def mode_of(xy: FloatArray, law: Law) -> FloatArray:
    """Return the report around which the density of the reports is largest."""
    some = xy[:: -(-len(xy) // 500)]
    apart = np.hypot(xy[:, None, 0] - some[None, :, 0], xy[:, None, 1] - some[None, :, 1])
    return np.asarray(some[int(law(apart).sum(axis=0).argmax())])


# (c) Which persons fit what is known about one of them.


class _Known(NamedTuple):
    """What an adversary knows about a person.

    Attributes
    ----------
    places : (d, 2) array
        Distinct places, in degrees.
    place, hour : (p,) arrays of int
        The place and the hour of each known visit, in the order of time.
    frequency : (d,) array
        How often the person was at each place.
    total : int
        The number of all visits of the person.
    """

    places: FloatArray
    place: IntArray
    hour: IntArray
    frequency: FloatArray
    total: int


Near: TypeAlias = Sequence[IntArray]
"""The rows of the release near each known place."""


def location(known: _Known, near: Near, release: Visits, tolerance: float) -> Flags:  # noqa: ARG001
    """Return the persons with at least as many rows near each place as visits to it are known."""
    needed = np.bincount(known.place, minlength=len(near))
    return np.asarray(np.all([_counted(rows, release) >= n for rows, n in zip(near, needed, strict=True)], axis=0))


def time(known: _Known, near: Near, release: Visits, tolerance: float) -> Flags:  # noqa: ARG001
    """Return the persons with a row near each place within the hour of each known visit."""
    visits, needed = np.unique(np.column_stack([known.place, known.hour]), axis=0, return_counts=True)
    found = [
        _counted(near[place][release.hour[near[place]] == hour], release) >= n
        for (place, hour), n in zip(visits, needed, strict=True)
    ]
    return np.asarray(np.all(found, axis=0))


def sequence(known: _Known, near: Near, release: Visits, tolerance: float) -> Flags:  # noqa: ARG001
    """Return the persons with rows near the places in the order of the known visits."""
    last = np.full(release.persons, -1.0)
    for place in known.place:
        rows = near[place]
        rows = rows[release.rank[rows] > last[release.person[rows]]]
        # The earliest row that continues the sequence leaves the most for the next visit.
        last = np.full(release.persons, np.inf)
        np.minimum.at(last, release.person[rows], release.rank[rows])
    return np.asarray(last < np.inf)


def frequency(known: _Known, near: Near, release: Visits, tolerance: float) -> Flags:
    """Return the persons who were near each place about as often as the known person."""
    counts = np.array([_counted(rows, release) for rows in near], float)
    return _alike(counts, known.frequency[:, None], tolerance)


def probability(known: _Known, near: Near, release: Visits, tolerance: float) -> Flags:
    """Return the persons who were near each place for about the same share of their rows."""
    counts = np.array([_counted(rows, release) for rows in near], float)
    return _alike(counts / np.maximum(release.counts, 1), known.frequency[:, None] / known.total, tolerance)


def proportion(known: _Known, near: Near, release: Visits, tolerance: float) -> Flags:
    """Return the persons who were near the places in about the same proportion to each other."""
    counts = np.array([_counted(rows, release) for rows in near], float)
    most = np.maximum(counts.max(axis=0), 1)
    return _alike(counts / most, (known.frequency / known.frequency.max())[:, None], tolerance) & counts.all(
        axis=0
    )


MATCHING: Mapping[str, Callable[[_Known, Near, Visits, float], Flags]] = {
    "location": location,
    "sequence": sequence,
    "time": time,
    "frequency": frequency,
    "probability": probability,
    "proportion": proportion,
}
"""The matching attacks from places. `home_work` matches persons' usual places instead of rows."""


def _counted(rows: IntArray, release: Visits) -> IntArray:
    return np.bincount(release.person[rows], minlength=release.persons)


def _alike(values: FloatArray, known: FloatArray, tolerance: float) -> Flags:
    slack = 1e-9
    alike = (values >= known * (1 - tolerance) - slack) & (values <= known * (1 + tolerance) + slack)
    return np.asarray(alike.all(axis=0) & (values > 0).all(axis=0))


def known_visits(truth: Visits, rows: IntArray) -> _Known:
    """Return what is known from some rows of one person, in the order of time."""
    person = int(truth.person[rows[0]])
    own = truth.place[truth.rows_of(person)]
    rows = rows[np.argsort(truth.rank[rows])]
    numbers, first, place = np.unique(truth.place[rows], return_index=True, return_inverse=True)
    visits = np.array([(own == number).sum() for number in numbers], float)
    return _Known(truth.lonlat[rows[first]], place, truth.hour[rows], visits, len(own))


def uniqueness(
    truth: Visits, release: Visits, *, persons: IntArray, radius: float, timed: bool, rng: np.random.Generator
) -> FloatArray:
    """Return whether each person is the only one who fits 1 to 5 known visits: (persons, 5), NaN for too few rows.

    A person counts as unique only if the one who fits is the person.

    Parameters
    ----------
    truth, release : Visits
        Row by row the same persons; the truth with equal coordinates for the same place.
    persons : array of int
        The persons to attack.
    radius : float
        Metres within which a report fits a place.
    timed : bool
        Whether the adversary also compares the hour.
    rng : Generator
        Chooses the known visits.

    Examples
    --------
    >>> visits = Visits(np.array([[2.35, 48.86], [2.36, 48.86], [2.35, 48.86]]), np.array([0, 0, 1]))
    >>> rng = np.random.default_rng(1)
    >>> unique = uniqueness(visits, visits, persons=np.arange(2), radius=0.0, timed=False, rng=rng)
    >>> unique[0, 1], np.isnan(unique[1, 1])
    (np.float64(1.0), np.True_)
    """
    rows_near, match = rows_within(release.lonlat, radius), time if timed else location
    unique = np.full((len(persons), 5), np.nan)
    for number, person in enumerate(persons):
        own = truth.rows_of(int(person))
        chosen = rng.permutation(own)[:5]
        near = {int(truth.place[row]): rows_near(truth.lonlat[row]) for row in chosen}
        for count in range(1, len(chosen) + 1):
            known = known_visits(truth, chosen[:count])
            fits = match(known, [near[place] for place in np.unique(truth.place[chosen[:count]])], release, 0.0)
            unique[number, count - 1] = float(fits[person] and fits.sum() == 1)
    return unique


def linkage(
    truth: Visits,
    release: Visits,
    *,
    persons: IntArray,
    radius: float,
    attacks: Sequence[str],
    tolerance: float,
    rng: np.random.Generator,
) -> dict[str, FloatArray]:
    """Return for each matching attack the probability that it names each person, from two known visits or places.

    It is 1 / n if n persons fit and the person is one of them, else 0. `location`, `sequence` and `time` know two
    random visits; `frequency`, `probability` and `proportion` know how often the person was at two random
    places; `home_work` knows the two most visited places. Persons with fewer are NaN.

    Parameters
    ----------
    truth, release, persons, radius, rng
        As in `uniqueness`.
    attacks : sequence of str
        Names of `MATCHING`, or "home_work".
    tolerance : float
        Relative difference of frequencies that match.

    Examples
    --------
    >>> visits = Visits(np.array([[2.35, 48.86], [2.36, 48.86], [2.35, 48.86]]), np.array([0, 0, 1]))
    >>> linkage(visits, visits, persons=np.arange(2), radius=0.0, attacks=["location"], tolerance=0.0,
    ...     rng=np.random.default_rng(1))
    {'location': array([ 1., nan])}
    """
    rows_near = rows_within(release.lonlat, radius)
    risks = {name: np.full(len(persons), np.nan) for name in attacks}
    tops = _two_most_visited(release, radius) if "home_work" in attacks else None
    homes = [usual_places(truth, number=number) for number in (0, 1)]
    for number, person in enumerate(persons):
        own = truth.rows_of(int(person))
        visits = rng.permutation(own)[:2]
        _, first = np.unique(truth.place[own], return_index=True)
        places = rng.permutation(own[first])[:2]
        fits: dict[str, Flags] = {}
        for rows, names in ((visits, ("location", "sequence", "time")), (places, tuple(MATCHING)[3:])):
            if len(rows) == 2 and any(name in risks for name in names):
                known = known_visits(truth, rows)
                near = [rows_near(place) for place in known.places]
                fits |= {name: MATCHING[name](known, near, release, tolerance) for name in names if name in risks}
        if tops is not None and not np.isnan(homes[1][person]).any():
            fits["home_work"] = _home_work(np.array([places[person] for places in homes]), tops, radius)
        for name, flags in fits.items():
            risks[name][number] = flags[person] / max(1, flags.sum())
    return risks


def _two_most_visited(release: Visits, radius: float) -> FloatArray:
    """Return the two most visited places of each person, (2, persons, 2): reports in one cell are one place."""
    places = release if radius == 0 else Visits(snapped(release.lonlat, radius), release.person)
    return np.array([usual_places(places, number=number) for number in (0, 1)])


def _home_work(known: FloatArray, tops: FloatArray, radius: float) -> Flags:
    """Return the persons whose two most visited places are the two known ones."""
    missing = np.isnan(tops[..., 0])
    apart = np.array([haversine(known, np.where(missing[..., None], 0.0, tops)[rank]) for rank in (0, 1)])
    # (rank, known place, person): each known place has to be one of the two.
    fits = (apart <= radius + MILLIMETRE) & ~missing[:, None]
    return np.asarray(fits.any(axis=0).all(axis=0))


# (d) The nearest report.


def nearest_report(truth: FloatArray, reports: FloatArray, rows: IntArray) -> FloatArray:
    """Return the probability that the report nearest to the truth of each row is its own.

    Examples
    --------
    >>> places = np.array([[2.35, 48.86], [2.36, 48.86]])
    >>> nearest_report(places, places[::-1], np.array([0, 1])), nearest_report(places, places, np.array([0]))
    (array([0., 0.]), array([1.]))
    """
    tree = cKDTree(on_sphere(reports))
    places, own = on_sphere(truth[rows]), on_sphere(reports[rows])
    nearest = np.asarray(tree.query(places)[0])
    apart = np.sqrt(((places - own) ** 2).sum(axis=1))
    first = apart <= nearest + MILLIMETRE
    result = np.zeros(len(rows))
    tied = tree.query_ball_point(places[first], nearest[first] + MILLIMETRE, return_length=True)
    result[first] = 1 / np.asarray(tied, float)
    return result
