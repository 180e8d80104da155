"""Queries in front of a mechanism: how far apart they take two records, and what the two promise together."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, as_floats
from geoind.channels.channel import Channel
from geoind.distances import Distance, euclidean
from geoind.errors import InvalidInputError, SitesMismatchError, plural
from geoind.space.sites import Sites

__all__ = ["Query", "Sensitivity", "after_query", "sensitivity"]

Query: TypeAlias = Callable[[FloatArray], ArrayLike]
"""From (n, columns) records to n answers: numbers, or rows of an (n, k) array."""

ROUNDING = 1e-9
"""An answer is a mechanism's input if it is no farther from it than this share of the inputs' size."""


class Sensitivity(float):
    """A measured sensitivity that knows where it is attained.

    Attributes
    ----------
    truth, other : int
        Numbers of the two records whose answers are that many times as far apart as they are.
    """

    truth: int
    other: int

    def __new__(cls, rate: float, truth: int, other: int) -> "Sensitivity":
        """Return the number with its pair."""
        self = super().__new__(cls, rate)
        self.truth, self.other = truth, other
        return self

    def __reduce__(self) -> tuple[type["Sensitivity"], tuple[float, int, int]]:
        return Sensitivity, (float(self), self.truth, self.other)


def sensitivity(
    query: Query, records: Sites, *, distance: Distance, answer_distance: Distance = euclidean
) -> Sensitivity:
    """Return how many times as far apart as two records their answers can be.

    The largest answer_distance(f(x), f(x')) / distance(x, x'), over all pairs of the records given. A mechanism
    that promises epsilon per unit of `answer_distance` promises epsilon times as much per unit of `distance`
    after the query (`after_query`). It is infinite where records at distance 0 have different answers.

    Parameters
    ----------
    query : callable
        From (n, columns) records to n numbers, or to (n, k) answers.
    records : Sites
        All that may be asked about: `Places` with any number of columns.
    distance : Distance
        Between records; `distances.hamming` for databases that differ in some persons.
    answer_distance : Distance
        Between answers: numbers are points with one column.

    Returns
    -------
    Sensitivity
        A float with the worst pair: `truth` and `other`.

    Examples
    --------
    >>> from geoind import Places, distances
    >>> ages = Places([[30, 40, 50], [30, 41, 50], [30, 100, 50], [0, 100, 100]])
    >>> mean = lambda databases: databases.mean(axis=1)
    >>> float(sensitivity(mean, ages, distance=distances.hamming))
    20.0
    >>> round(sensitivity(mean, ages, distance=distances.manhattan), 6)
    0.333333
    """
    moved = _table(answer_distance, _answers(query, records), "answer_distance")
    apart = _table(distance, records.xy, "distance")
    rates = np.divide(moved, apart, out=np.where(moved > 0, np.inf, 0.0), where=apart > 0)
    truth, other = divmod(int(np.argmax(rates)), len(records))
    return Sensitivity(float(rates[truth, other]), truth, other)


def after_query(mechanism: Channel, query: Query, records: Sites) -> Channel:
    """Return the channel that answers a query about a record and reports the answer by a mechanism: H after f.

    If the mechanism promises epsilon per unit of a distance between answers, and the query has the sensitivity
    delta (`sensitivity`), the result promises epsilon * delta per unit of the distance between records.

    Parameters
    ----------
    mechanism : Channel
        Its inputs must hold every answer.
    query : callable
        From (n, columns) records to n numbers (on the x axis, if the mechanism's inputs are places of the plane as
        in `geometric`), or to (n, k) answers.
    records : Sites
        The inputs of the result: `Places` with any number of columns.

    Examples
    --------
    >>> from geoind import Places, distances, geometric, tight_epsilon
    >>> ill = Places([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> count = lambda databases: databases.sum(axis=1)
    >>> private_count = after_query(geometric(3, epsilon=0.5), count, ill)
    >>> round(tight_epsilon(private_count, distances.hamming), 9)
    0.5
    """
    answers, inputs = _answers(query, records), mechanism.inputs.xy
    if answers.shape[1] == 1 and inputs.shape[1] == 2:
        answers = np.column_stack([answers, np.zeros(len(answers))])
    if answers.shape[1] != inputs.shape[1]:
        raise SitesMismatchError(
            f"answers have {plural(answers.shape[1], 'column')}, the mechanism's inputs have {inputs.shape[1]}"
        )
    rows = mechanism.inputs.nearest(answers)
    missed = np.abs(answers - inputs[rows]).max(axis=1) > ROUNDING * max(float(np.abs(inputs).max()), 1e-300)
    if missed.any():
        raise SitesMismatchError(
            f"the mechanism's inputs lack {missed.sum()} of {len(answers)} answers: round them in the query"
        )
    return Channel(records, mechanism.outputs, mechanism.matrix[rows])


def _answers(query: Query, records: Sites) -> FloatArray:
    answers = as_floats(query(records.xy), "the query's answers")
    if answers.ndim == 1:
        answers = answers[:, None]
    if answers.ndim != 2 or len(answers) != len(records) or not answers.shape[1] or not np.isfinite(answers).all():
        raise InvalidInputError("query must return a finite number, or a row of them, for each record")
    return answers


def _table(distance: Distance, points: FloatArray, name: str) -> FloatArray:
    table = np.asarray(distance(points, points), dtype=np.float64)
    if table.shape != (len(points),) * 2 or not ((table >= 0) & (table < np.inf)).all():
        raise InvalidInputError(f"{name} must return a finite, non-negative number for each pair")
    return table
