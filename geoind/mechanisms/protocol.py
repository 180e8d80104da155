"""What a mechanism is: four members, and nobody asks which class it has.

A new mechanism is a frozen dataclass with `epsilon`, `space`, `reach` and `sample` in a file of its own, one line
of the face (`geoind/__init__.pyi`) and one example in tests/mechanisms/examples.py. Calls, tables, queries, audits
and ledgers then take it, and the common test suite runs over it. It may tell more, which is asked for where it
matters and only there:

- `check_truths(points)` raises for truths that `sample` would refuse, so that nobody pays for them first;
- `check_inside(points)` raises for places where `reach` does not hold;
- `off_site_level` is the privacy loss beyond epsilon times distance, for a mechanism that first moves the truth to
  one of finitely many sites;
- `decimals` says that its reports lie on the public lattice of degrees already;
- `mean_radius` is their mean error in metres, for summaries;
- `noise_epsilon` is the epsilon of a Laplace density around the truth, from which a population can be estimated;
- `sigma` is that of Gaussian noise, in metres, where there is no epsilon (`math.inf`).

What a report of it costs beside others, the accountant and a ledger know by its epsilon. Noise without one tells
more by `loss_of.register` (`geoind.accounting.losses`) and `release_of.register` (`geoind.budgets.release`).
"""

from typing import Literal, Protocol, TypeAlias, TypeGuard, cast, runtime_checkable

from geoind.arrays import ArrayLike, FloatArray
from geoind.errors import InvalidInputError
from geoind.randomness import RandomnessLike

__all__ = [
    "Mechanism",
    "Space",
    "check_inside",
    "check_truths",
    "is_mechanism",
    "off_site_level",
    "space_of",
    "speaking",
]

Space: TypeAlias = Literal["lonlat", "xy"]
"""What places are: lon/lat degrees (WGS84), longitude first; or metres in a plane."""

SPOKEN: dict[str, str] = {"lonlat": "degrees", "xy": "metres"}

MEMBERS = ("epsilon", "space", "reach", "sample")


@runtime_checkable
class Mechanism(Protocol):
    """Whatever makes reports of true places, and tells what it promises.

    Examples
    --------
    >>> from geoind import PlanarLaplace
    >>> noise = PlanarLaplace(epsilon=0.01)
    >>> isinstance(noise, Mechanism), noise.space, round(noise.reach(0.95))
    (True, 'xy', 474)
    """

    @property
    def epsilon(self) -> float:
        """Privacy loss per metre; per metre on the ground where it speaks lon/lat."""
        ...

    @property
    def space(self) -> Space:
        """What its points and reports are: "lonlat" degrees or "xy" metres."""
        ...

    def reach(self, confidence: float) -> float:
        """Return the metres within which a report lies of its truth with at least this probability.

        It must not depend on the truth or on a draw: a query's radius is enlarged by it, for all to see.
        """
        ...

    def sample(self, points: ArrayLike, *, rng: RandomnessLike = None) -> FloatArray:
        """Return one report for each of the (n, 2) points."""
        ...


def is_mechanism(value: object) -> TypeGuard[Mechanism]:
    """Return whether a value has all members of a mechanism, without asking for any of them.

    `isinstance` would measure a channel's epsilon on the way, which takes seconds for a large one.
    """
    own = getattr(value, "__dict__", {})
    return all(name in own or hasattr(type(value), name) for name in MEMBERS)


def space_of(mechanism: object) -> Space:
    """Return which space a mechanism speaks, if it is one and the space is known.

    Examples
    --------
    >>> from geoind import SphericalLaplace
    >>> space_of(SphericalLaplace(0.01))
    'lonlat'
    """
    if not is_mechanism(mechanism):
        raise InvalidInputError(f"mechanism must have {', '.join(MEMBERS)}, got {type(mechanism).__name__}")
    if mechanism.space not in SPOKEN:
        raise InvalidInputError(f"a mechanism's space must be 'lonlat' or 'xy', got {mechanism.space!r}")
    return mechanism.space


def speaking(space: Space, mechanism: object) -> Mechanism:
    """Return the mechanism, if it is one and speaks the space.

    Examples
    --------
    >>> from geoind import PlanarLaplace
    >>> speaking("lonlat", PlanarLaplace(0.01))
    Traceback (most recent call last):
    geoind.errors.InvalidInputError: PlanarLaplace speaks metres, not degrees: use Projected(mechanism, ...
    """
    spoken = space_of(mechanism)
    if spoken != space:
        way = "use Projected(mechanism, Projection(lon, lat))" if space == "lonlat" else "it needs no projection"
        raise InvalidInputError(f"{type(mechanism).__name__} speaks {SPOKEN[spoken]}, not {SPOKEN[space]}: {way}")
    return cast("Mechanism", mechanism)


@runtime_checkable
class _Choosy(Protocol):
    def check_truths(self, points: FloatArray) -> None: ...


def check_truths(mechanism: object, points: FloatArray) -> None:
    """Refuse truths that the mechanism's `sample` would refuse, before anything is charged or drawn."""
    if isinstance(mechanism, _Choosy):
        mechanism.check_truths(points)


@runtime_checkable
class _Bounded(Protocol):
    def check_inside(self, points: FloatArray) -> None: ...


def check_inside(part: object, points: FloatArray) -> None:
    """Refuse truths outside the region where the `reach` of a mechanism, or of a step, holds."""
    if isinstance(part, _Bounded):
        part.check_inside(points)


def off_site_level(mechanism: Mechanism) -> float:
    """Return what may be told beyond epsilon times distance: zero, but for mechanisms between sites."""
    return float(getattr(mechanism, "off_site_level", 0.0))
