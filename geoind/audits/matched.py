"""The rows of a truth and of its reports, matched and checked."""

import math

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, as_floats, as_lonlat
from geoind.audits.attempts import CELL
from geoind.audits.visits import Visits, snapped
from geoind.errors import InvalidInputError

__all__ = ["as_places", "as_population", "match_rows"]

MOST_ROWS = 20_000_000


def match_rows(
    reports: FloatArray, truth: ArrayLike, person: ArrayLike | None, time: ArrayLike | None, k: int
) -> tuple[Visits, Visits, Visits, int]:
    """Return the true places with a report, their reports, all true visits of those persons, and how many rows.

    The visits of the third are in cells, so that equal places are equal. Fewer than k persons are an error.
    """
    places = as_places(truth, "truth")
    if len(places) != len(reports):
        raise InvalidInputError(
            f"truth has {len(places):,} rows, reports have {len(reports):,}: match them by an id"
        )
    names = np.arange(len(places)) if person is None else np.asarray(person)
    seconds = None if time is None else as_floats(time, "time")
    for name, values in (("person", names), ("time", seconds)):
        if values is not None and values.shape != (len(places),):
            raise InvalidInputError(f"{name} must be one per row, got {values.shape} for {len(places):,} rows")
    present = ~np.isnan(places[:, 0])
    if (np.isnan(places[:, 0]) & ~np.isnan(reports[:, 0])).any():
        raise InvalidInputError("a row without a true place has a report: truth and reports do not match")
    used = present & ~np.isnan(reports[:, 0])
    distinct, codes = np.unique(names[used], return_inverse=True)
    count = int(codes.max()) + 1 if len(codes) else 0
    if count < k:
        raise InvalidInputError(
            f"the statement would be about {'one person' if count == 1 else f'{count} persons'}, "
            f"fewer than k = {k}: its numbers would be about single persons"
        )
    number = np.searchsorted(distinct, names)
    here = present & (distinct[np.minimum(number, count - 1)] == names)
    everything = Visits(snapped(places[here], CELL), number[here], None if seconds is None else seconds[here])
    timed = None if seconds is None else seconds[used]
    true, reported = Visits(places[used], codes, timed), Visits(reports[used], codes, timed)
    return true, reported, everything, int(present.sum())


def as_places(values: ArrayLike, name: str) -> FloatArray:
    """Return (n, 2) degrees, where rows may be NaN."""
    array = as_floats(values, name)
    if array.ndim != 2 or array.shape[1] != 2:
        raise InvalidInputError(f"{name} must have shape (n, 2), got {array.shape}")
    if len(array) > MOST_ROWS:
        raise InvalidInputError(
            f"{name} has {len(array):,} rows, more than {MOST_ROWS:,}: assess a part of the persons"
        )
    gone = np.isnan(array).all(axis=1)
    as_lonlat(array[~gone], name)
    return array


def as_population(places: ArrayLike, weights: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return places and the people there, checked."""
    lonlat, people = as_lonlat(places, "population"), as_floats(weights, "weights of the population")
    if people.shape != (len(lonlat),) or not ((people >= 0) & (people < math.inf)).all():
        raise InvalidInputError("weights of the population must be one per place, finite and not negative")
    if not people.any():
        raise InvalidInputError("the population has no people")
    return lonlat, people
