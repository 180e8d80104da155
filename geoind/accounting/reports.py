"""What n reports cost together."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from geoind.accounting.bounds import Bounds, Losses, delta_of_losses, level_of_losses
from geoind.accounting.mechanisms import loss_of
from geoind.arrays import as_count, as_finite, as_positive, as_unit
from geoind.errors import InvalidInputError
from geoind.mechanisms.protocol import Mechanism

__all__ = ["MechanismCounts", "delta_bounds", "delta_of_reports", "level_bounds", "level_of_reports"]

MechanismCounts: TypeAlias = Mechanism | Mapping[Mechanism, int] | Sequence[tuple[Mechanism, int]]
"""One mechanism, or several with the number of reports of each."""

MOST_REPORTS = 10**7


def level_of_reports(
    mechanism: MechanismCounts, *, reports: int | None = None, radius: float, delta: float
) -> float:
    """Return the level that n independent reports keep together, up to a probability delta.

    Places up to `radius` metres apart can be told apart by a factor e^level from all of the reports, except with
    probability delta. Never more than the plain sum of the budgets, and for many reports far less. It is an upper
    bound: every error of its computation is included. `level_bounds` has the lower bound beside it.

    Parameters
    ----------
    mechanism : Mechanism, or a mapping or a list of pairs from mechanisms to numbers of reports
        Where reports come from several mechanisms, in any order.
    reports : int
        How many, of a single mechanism.
    radius : float
        In metres. The truth may move between reports: the promise is for two ways that are never farther apart.
    delta : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> import math
    >>> from geoind import PlanarGaussian, PlanarLaplace
    >>> noise = PlanarLaplace(epsilon=math.log(4) / 200)
    >>> round(level_of_reports(noise, reports=100, radius=200, delta=1e-5), 1)    # the sum is 138.6
    75.9
    >>> mixture = {noise: 20, PlanarGaussian(1000): 5}
    >>> round(level_of_reports(mixture, radius=200, delta=1e-5), 1)
    22.1
    """
    return level_of_losses(_losses(mechanism, reports, radius), as_unit(delta, "delta"), above=True)


def level_bounds(mechanism: MechanismCounts, *, reports: int | None = None, radius: float, delta: float) -> Bounds:
    """Return `level_of_reports` with a lower bound beside it: no accountant can promise less.

    Examples
    --------
    >>> import math
    >>> from geoind import PlanarLaplace
    >>> lower, upper = level_bounds(PlanarLaplace(math.log(4) / 200), reports=20, radius=200, delta=1e-5)
    >>> round(lower, 3), round(upper, 3)
    (21.808, 21.808)
    """
    losses, delta = _losses(mechanism, reports, radius), as_unit(delta, "delta")
    upper = level_of_losses(losses, delta, above=True)
    return Bounds(min(level_of_losses(losses, delta, above=False), upper), upper)


def delta_of_reports(
    mechanism: MechanismCounts, *, reports: int | None = None, radius: float, level: float
) -> float:
    """Return the delta that n independent reports have together at a level: an upper bound.

    Parameters are those of `level_of_reports`, of which it is the inverse.

    Examples
    --------
    >>> import math
    >>> from geoind import PlanarLaplace
    >>> noise = PlanarLaplace(epsilon=math.log(4) / 200)
    >>> delta_of_reports(noise, reports=100, radius=200, level=75.95) < 1e-5
    True
    """
    return delta_of_losses(_losses(mechanism, reports, radius), _level(level), above=True)


def delta_bounds(mechanism: MechanismCounts, *, reports: int | None = None, radius: float, level: float) -> Bounds:
    """Return `delta_of_reports` with a lower bound beside it.

    Examples
    --------
    >>> import math
    >>> from geoind import PlanarGaussian
    >>> lower, upper = delta_bounds(PlanarGaussian(1000), reports=16, radius=250, level=1.0)
    >>> round(lower, 6), round(upper, 6)    # that of one report with a quarter of the noise
    (0.126937, 0.126937)
    """
    losses, level = _losses(mechanism, reports, radius), _level(level)
    upper = delta_of_losses(losses, level, above=True)
    return Bounds(min(delta_of_losses(losses, level, above=False), upper), upper)


def _losses(mechanism: MechanismCounts, reports: int | None, radius: float) -> Losses:
    radius = as_positive(radius, "radius")
    if hasattr(mechanism, "sample") or not isinstance(mechanism, Iterable):
        if reports is None:
            raise InvalidInputError("reports must be given: how many, of this mechanism")
        return ((loss_of(mechanism, radius), _count(reports)),)
    if reports is not None:
        raise InvalidInputError("give each mechanism's number of reports with it, or reports, not both")
    pairs = list(mechanism.items() if isinstance(mechanism, Mapping) else mechanism)
    if not pairs or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
        raise InvalidInputError("several mechanisms must be given as pairs of a mechanism and a number of reports")
    return tuple((loss_of(each, radius), _count(count)) for each, count in pairs)


def _count(reports: int) -> int:
    count = as_count(reports, "reports")
    if count > MOST_REPORTS:
        raise InvalidInputError(f"reports must be at most {MOST_REPORTS:,}, got {count}")
    return count


def _level(level: float) -> float:
    if not as_finite(level, "level") >= 0:
        raise InvalidInputError(f"level must not be negative, got {level!r}")
    return float(level)
