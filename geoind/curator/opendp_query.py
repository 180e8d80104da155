"""Queries of OpenDP: OpenDP answers, geoind bounds the contributions and charges the ledger."""

import warnings
from typing import TYPE_CHECKING

import numpy as np

from geoind.arrays import ArrayLike, as_count
from geoind.curator.contributions import Persons, as_level, as_names, bounded, charge_release
from geoind.errors import InvalidInputError, plural
from geoind.extras import require

if TYPE_CHECKING:
    from opendp.mod import Measurement

    from geoind.budgets.ledger import Ledger

__all__ = ["release_query"]


def release_query(
    values: ArrayLike,
    query: "Measurement",
    *,
    epsilon: float,
    person: Persons,
    reports_per_person: int = 1,
    ledger: "Ledger | None" = None,
    label: str = "release_query",
) -> object:
    """Return the answer of an OpenDP measurement on the records that count.

    For statistics that geoind does not compute itself. If the query's privacy map returns more than epsilon for a
    person of `reports_per_person` records, nothing is charged or drawn. The map holds for records of the query's
    domain only, so other records (a value beyond its bounds, a NaN) are errors too. Epsilon is a level *per
    person*, not per metre.

    Parameters
    ----------
    values : (n,) array
        One record per row. For locations, their cells: `grid.nearest(xy)`.
    query : opendp.mod.Measurement
        From vectors under the symmetric distance to pure differential privacy (`dp.max_divergence()`).
    epsilon, person, reports_per_person, ledger, label
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

    level, most = as_level(epsilon), as_count(reports_per_person, "reports_per_person")
    if not isinstance(query, dp.Measurement):
        raise InvalidInputError(f"query must be a Measurement of OpenDP, got {type(query).__name__}")
    if query.input_metric != dp.symmetric_distance() or query.output_measure != dp.max_divergence():
        raise InvalidInputError(
            "query must go from the symmetric distance to dp.max_divergence(): others have no level per person, "
            f"got {query.input_metric} and {query.output_measure}"
        )
    records = np.asarray(values)
    if records.ndim != 1:
        raise InvalidInputError(f"values must be a list of records, got shape {records.shape}")
    names = as_names(person, len(records))
    counted = records[bounded(names, most)].tolist()
    cost = query.map(most)
    if not cost <= level:
        raise InvalidInputError(
            f"the level of the query for a person of {plural(most, 'record')} is {cost:g}, "
            f"more than epsilon {level:g}"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # OpenDP's own warning quotes the records.
        belong = query.input_domain.member(counted)
    if not belong:
        raise InvalidInputError(f"the records that count are not in the query's domain, {query.input_domain}")
    charge_release(ledger, names, level, label)
    return query(counted)
