"""Any query of OpenDP's, on people's records: OpenDP answers, geoind bounds what a person adds, and charges."""

import warnings
from typing import TYPE_CHECKING

import numpy as np

from geoind.arrays import ArrayLike, as_count
from geoind.curator.contributions import Persons, as_contributors, as_person_level, bounded
from geoind.errors import InvalidInputError, plural
from geoind.extras import require

if TYPE_CHECKING:
    from opendp.mod import Measurement

__all__ = ["release_query"]


def release_query(
    values: ArrayLike, query: "Measurement", *, epsilon: float, person: Persons, reports_per_person: int = 1
) -> object:
    """Return what an OpenDP measurement answers on the records that count.

    For what geoind does not answer itself. The query's own privacy map is asked what it tells about a person of so
    many records; if that is more than epsilon, nothing is charged or drawn. It holds for records of the query's
    domain alone, so others (a value beyond its bounds, a NaN) are an error, too. Epsilon is a level *per person*,
    not per metre.

    Parameters
    ----------
    values : (n,) array
        One record per row. Of places, their cells: `grid.nearest(xy)`.
    query : opendp.mod.Measurement
        From vectors under the symmetric distance to pure differential privacy (`dp.max_divergence()`).
    epsilon, person, reports_per_person
        As in `release_counts`.

    Examples
    --------
    >>> import opendp.prelude as dp
    >>> dp.enable_features("contrib")
    >>> records = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> query = records >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
    >>> visits, visitors = [3, 1, 2] * 100, [*range(150)] * 2
    >>> count = release_query(visits, query, epsilon=1.0, person=visitors, reports_per_person=2)
    >>> abs(count - 300) < 80
    True
    """
    require("a query of OpenDP", "opendp")
    import opendp.prelude as dp

    promise, most = as_person_level(epsilon), as_count(reports_per_person, "reports_per_person")
    if not isinstance(query, dp.Measurement):
        raise InvalidInputError(f"query must be a Measurement of OpenDP, got {type(query).__name__}")
    if query.input_metric != dp.symmetric_distance() or query.output_measure != dp.max_divergence():
        raise InvalidInputError(
            "query must go from the symmetric distance to dp.max_divergence(): others promise something else, got "
            f"{query.input_metric} and {query.output_measure}"
        )
    records = np.asarray(values)
    if records.ndim != 1:
        raise InvalidInputError(f"values must be a list of records, got shape {records.shape}")
    people = as_contributors(person, len(records))
    counted = records[bounded(people.names, most)].tolist()
    told = query.map(most)
    if not told <= promise.level:
        raise InvalidInputError(
            f"the level of the query for a person of {plural(most, 'record')} is {told:g}, "
            f"more than epsilon {promise.level:g}"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # OpenDP's own warning quotes the records.
        belong = query.input_domain.member(counted)
    if not belong:
        raise InvalidInputError(f"the records that count are not in the query's domain, {query.input_domain}")
    people.charge(promise, "release_query")
    return query(counted)
