"""Composition: several reports, and mechanisms after queries.

The theorems, each with a test:

- **Sequential** (`compose`): the epsilon of two reports about the same truth is the sum of their epsilons.
- **Post-processing** (`channel @ step`): processing a report does not change its epsilon.
- **Parallel**: the epsilon of independent reports about different persons (or disjoint parts of a database) is the
  larger of the epsilons, in the metric that adds the persons' distances.
- **Group**: the privacy loss between locations k steps apart is k times that of neighbours; k persons who move
  together by d have a privacy loss of k * epsilon * d.
- **Query** (`after_query`): a query of sensitivity delta multiplies epsilon by delta (`sensitivity`).
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, as_floats
from geoind.channels.channel import Channel, WorstCase
from geoind.distances import Distance, euclidean
from geoind.errors import InvalidInputError, SitesMismatchError, plural
from geoind.space.sites import Places, Sites, same_sites

__all__ = ["Query", "after_query", "compose", "sensitivity"]


def compose(first: Channel, second: Channel) -> Channel:
    """Return the channel whose report is the pair of both reports about the same truth.

    Its epsilon is at most the sum of the two epsilons.

    Parameters
    ----------
    first, second : Channel
        With the same inputs.

    Returns
    -------
    Channel
        Report number `i * len(second.outputs) + j` stands for the pair (i, j); its place is their midpoint.

    Examples
    --------
    >>> from geoind import randomised_response
    >>> coin = randomised_response(2, epsilon=0.5)
    >>> round(compose(coin, coin).epsilon, 9)
    1.0
    """
    if not same_sites(first.inputs, second.inputs):
        raise SitesMismatchError("both channels must have the same inputs")
    matrix = first.matrix[:, :, None] * second.matrix[:, None, :]
    if (columns := first.outputs.xy.shape[1]) != second.outputs.xy.shape[1]:
        raise SitesMismatchError("the reports of both channels must have the same number of columns")
    places = (first.outputs.xy[:, None] + second.outputs.xy) / 2
    return Channel(first.inputs, Places(places.reshape(-1, columns)), matrix.reshape(len(first.inputs), -1))


Query: TypeAlias = Callable[[FloatArray], ArrayLike]
"""From (n, columns) records to n answers: numbers, or rows of an (n, k) array."""

ROUNDING = 1e-9
"""An answer counts as an input of the mechanism if their distance is at most this share of the inputs' size."""


def sensitivity(
    query: Query, records: Sites, *, distance: Distance, answer_distance: Distance = euclidean
) -> WorstCase:
    """Return the largest distance between two answers per unit of distance between their records.

    The largest answer_distance(f(x), f(x')) / distance(x, x'), over all pairs of the given records. A mechanism
    with epsilon per unit of `answer_distance`, applied after the query (`after_query`), has epsilon times the
    sensitivity per unit of `distance`. It is infinite where records at distance 0 have different answers.

    Parameters
    ----------
    query : callable
        From (n, columns) records to n numbers, or to (n, k) answers.
    records : Sites
        All possible records: `Places` with any number of columns.
    distance : Distance
        Between records; `distances.hamming` for databases that differ in some persons.
    answer_distance : Distance
        Between answers: numbers are points with one column.

    Returns
    -------
    WorstCase
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
    return WorstCase(float(rates[truth, other]), truth, other)


def after_query(mechanism: Channel, query: Query, records: Sites) -> Channel:
    """Return the channel that evaluates a query on a record and reports the answer with a mechanism.

    If the mechanism has epsilon per unit of a distance between answers, and the query has the sensitivity delta
    (`sensitivity`), the result has epsilon * delta per unit of the distance between records.

    Parameters
    ----------
    mechanism : Channel
        Its inputs must include every answer.
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
