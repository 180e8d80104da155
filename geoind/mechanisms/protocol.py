"""The `Mechanism` protocol: four members, whatever the class.

A new mechanism is a frozen dataclass with `epsilon`, `space`, `reach` and `sample`, one line in
`geoind/__init__.pyi` and one example in tests/mechanisms/examples.py. Calls, tables, queries, audits and ledgers
then accept it, and the common test suite runs on it. It may have more members, which are optional:

- `check_truths(points)` raises for truths that `sample` does not accept, so that they are not charged first;
- `accepts(points)` returns for each truth whether `sample` accepts it, so that a table can leave out the others;
- `check_inside(points)` raises for locations where `reach` does not hold;
- `off_site_level` is the privacy loss beyond epsilon times distance, for a mechanism that first moves the truth to
  one of finitely many sites;
- `decimals` is the number of decimals of its reports, if these already lie on the public lattice of degrees;
- `mean_radius` is their mean error in metres, for summaries;
- `outputs` and `sample_outputs(points, rng=)` are the sites of all its reports, and the numbers of drawn ones;
- `sample_one(lon, lat, first, second)` returns a report of one location from two random words, and `sample_output`
  the number of an output: single calls take a tenth of the time of an array with one row;
- `noise_epsilon` is the epsilon of a Laplace density around the truth, from which a population can be estimated;
- `sigma` is that of Gaussian noise, in metres, where epsilon is `math.inf`.

The accountant and the ledger compute the cost of a report from its epsilon. For noise without one, register
functions with `loss_of.register` (`geoind.accounting.losses`) and `as_cost.register` (`geoind.budgets.costs`).
"""

from typing import Literal, Protocol, TypeAlias, TypeGuard, cast, runtime_checkable

import numpy as np
import numpy.typing as npt

from geoind.arrays import ArrayLike, FloatArray
from geoind.errors import InvalidInputError
from geoind.randomness import RandomnessLike

__all__ = [
    "Mechanism",
    "Space",
    "accepted",
    "check_inside",
    "check_truths",
    "is_mechanism",
    "mean_error",
    "off_site_level",
    "require_space",
    "space_of",
]

Space: TypeAlias = Literal["lonlat", "xy"]
"""Kind of coordinates: lon/lat degrees (WGS84), longitude first; or metres in a plane."""

UNITS: dict[str, str] = {"lonlat": "degrees", "xy": "metres"}

MEMBERS = ("epsilon", "space", "reach", "sample")


@runtime_checkable
class Mechanism(Protocol):
    """An object that draws reports of true locations with a known privacy loss per metre.

    Examples
    --------
    >>> from geoind import PlanarLaplace
    >>> noise = PlanarLaplace(epsilon=0.01)
    >>> isinstance(noise, Mechanism), noise.space, round(noise.reach(0.95))
    (True, 'xy', 474)
    """

    @property
    def epsilon(self) -> float:
        """Privacy loss per metre; per metre on the ground where the space is "lonlat"."""
        ...

    @property
    def space(self) -> Space:
        """The coordinates of points and reports: "lonlat" degrees or "xy" metres."""
        ...

    def reach(self, confidence: float) -> float:
        """Return the metres within which a report lies of its truth with at least this probability.

        It must not depend on the truth or on a draw: a query's radius, which is public, is enlarged by it.
        """
        ...

    def sample(self, points: ArrayLike, *, rng: RandomnessLike = None) -> FloatArray:
        """Return one report for each of the (n, 2) points."""
        ...


def is_mechanism(value: object) -> TypeGuard[Mechanism]:
    """Return whether a value has all members of a mechanism, without evaluating them.

    `isinstance` would compute a channel's epsilon, which takes seconds for a large one.
    """
    own = getattr(value, "__dict__", {})
    return all(name in own or hasattr(type(value), name) for name in MEMBERS)


def space_of(mechanism: object) -> Space:
    """Return the space of a mechanism; raise an error if it is not a mechanism or the space is not valid.

    Examples
    --------
    >>> from geoind import SphericalLaplace
    >>> space_of(SphericalLaplace(0.01))
    'lonlat'
    """
    if not is_mechanism(mechanism):
        raise InvalidInputError(f"mechanism must have {', '.join(MEMBERS)}, got {type(mechanism).__name__}")
    if mechanism.space not in UNITS:
        raise InvalidInputError(f"a mechanism's space must be 'lonlat' or 'xy', got {mechanism.space!r}")
    return mechanism.space


def require_space(space: Space, mechanism: object) -> Mechanism:
    """Return the mechanism; raise an error if it is not a mechanism or has another space.

    Examples
    --------
    >>> from geoind import PlanarLaplace
    >>> require_space("lonlat", PlanarLaplace(0.01))
    Traceback (most recent call last):
    geoind.errors.InvalidInputError: PlanarLaplace takes metres, not degrees: use Projected(mechanism, ...
    """
    given = space_of(mechanism)
    if given != space:
        advice = (
            "use Projected(mechanism, Projection(lon, lat))" if space == "lonlat" else "it needs no projection"
        )
        raise InvalidInputError(f"{type(mechanism).__name__} takes {UNITS[given]}, not {UNITS[space]}: {advice}")
    return cast("Mechanism", mechanism)


@runtime_checkable
class _ChecksTruths(Protocol):
    def check_truths(self, points: FloatArray) -> None: ...


def check_truths(mechanism: object, points: FloatArray) -> None:
    """Raise an error for truths that `mechanism.sample` does not accept, before anything is charged or drawn."""
    if isinstance(mechanism, _ChecksTruths):
        mechanism.check_truths(points)


def accepted(mechanism: object, points: FloatArray) -> npt.NDArray[np.bool_]:
    """Return which truths `mechanism.sample` accepts; raise for others of a mechanism that does not say which."""
    accepts = getattr(mechanism, "accepts", None)
    if accepts is not None:
        return np.asarray(accepts(points))
    check_truths(mechanism, points)
    return np.ones(len(points), dtype=bool)


@runtime_checkable
class _ChecksInside(Protocol):
    def check_inside(self, points: FloatArray) -> None: ...


def check_inside(part: object, points: FloatArray) -> None:
    """Raise an error for truths outside the region where the `reach` of a mechanism or of a step holds."""
    if isinstance(part, _ChecksInside):
        part.check_inside(points)


def off_site_level(mechanism: Mechanism) -> float:
    """Return the privacy loss beyond epsilon times distance: zero except for mechanisms between sites."""
    return float(getattr(mechanism, "off_site_level", 0.0))


def mean_error(mechanism: Mechanism) -> float:
    """Return the mean distance in metres between truth and report, its own or that of its quantiles."""
    own = getattr(mechanism, "mean_radius", None)
    if own is not None:
        return float(own)
    return float(np.mean([mechanism.reach((number + 0.5) / 200) for number in range(200)]))
