"""Obfuscation of locations in degrees; a budget is charged before noise is drawn."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from numbers import Integral
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar, cast, overload

import numpy as np

from geoind.arrays import (
    ArrayLike,
    Coordinates,
    FloatArray,
    as_floats,
    as_location,
    as_lonlat,
    as_positive,
    as_unit,
)
from geoind.errors import InvalidInputError, plural
from geoind.mechanisms.noise import snap_lonlat
from geoind.mechanisms.protocol import (
    Mechanism,
    RandomnessLike,
    as_randomness,
    check_truths,
    fresh_pair,
    require_space,
)
from geoind.mechanisms.spherical import SphericalLaplace

if TYPE_CHECKING:
    from geoind.accounting.calibration import Family

__all__ = ["Location", "choose_mechanism", "enough_noise", "epsilon_for", "obfuscate", "obfuscate_lonlat"]


Persons: TypeAlias = str | int | Iterable[str | int] | None

ReportCounts: TypeAlias = Mapping[str, int] | Mapping[int, int] | Mapping[str | int, int]
"""Number of reports of each person."""

LEAST_MEAN_ERROR = 10.0
"""Smallest mean noise, in metres; less is refused as a likely unit error."""

OfEpsilons: TypeAlias = Mapping[float, int]
Costs: TypeAlias = Mapping[str, OfEpsilons] | Mapping[int, OfEpsilons] | Mapping[str | int, OfEpsilons]
"""For each person, the number of answers of each epsilon, per metre, of a session."""


class Budget(Protocol):
    """The part of a `Ledger` that calls, tables and engines use."""

    def charge_counts(
        self, reports: ReportCounts, cost: Mechanism, *, label: str = "", once: Mapping[str, str] | None = None
    ) -> None:
        """Charge each person for a number of the mechanism's reports: all persons or none."""
        ...

    def charge_all(
        self,
        costs: Costs,
        *,
        label: str = "",
        once: Mapping[str, str] | None = None,
        places: Mapping[str, tuple[Mechanism, str]] | None = None,
    ) -> None:
        """Charge each person for the answers of a session, and once for a place: all persons or none."""
        ...


Degrees = TypeVar("Degrees", float, FloatArray)


class Location(NamedTuple, Generic[Degrees]):
    """A location, or arrays of locations, in degrees.

    It is a named tuple, which JSON encoders write as a list, `[lat, lon]`. `location._asdict()` is written as an
    object: return that from a FastAPI endpoint.

    Examples
    --------
    >>> Location(48.75, 2.25)._asdict()
    {'lat': 48.75, 'lon': 2.25}
    """

    lat: Degrees
    lon: Degrees


def epsilon_for(level: float = math.log(4), radius: float = 200.0) -> float:
    """Return epsilon = level / radius, per metre.

    A report distinguishes places within `radius` metres by a factor e^level at most.

    Examples
    --------
    >>> round(epsilon_for(level=math.log(4), radius=200), 6)
    0.006931
    """
    return as_positive(as_positive(level, "level") / as_positive(radius, "radius"), "level / radius")


def choose_mechanism(
    *,
    epsilon: float | None = None,
    level: float | None = None,
    radius: float | None = None,
    delta: float | None = None,
    reports: int | None = None,
    mechanism: Mechanism | None = None,
    family: "Family | None" = None,
    little_noise: bool | None = None,
) -> Mechanism:
    """Return the mechanism of exactly one of: epsilon, level and radius, or mechanism.

    With delta, the level is that of all reports together: the mechanism of least noise for it, of the family asked
    for, is returned, or the given mechanism if it has this level. A mechanism that is not given and whose mean
    noise is less than 10 metres is an error, unless `little_noise` allows it.
    """
    if delta is None and reports is not None:
        raise InvalidInputError(
            "`reports=` goes with `delta=`, the probability that the level of all reports is exceeded"
        )
    if delta is not None:
        if epsilon is not None or level is None or radius is None:
            raise InvalidInputError("`delta=` goes with `level=` and `radius=`, not with `epsilon=`")
        together: dict[str, Any] = {"reports": 1 if reports is None else reports, "level": level, "radius": radius}
        if mechanism is None:
            from geoind.accounting.calibration import mechanism_for_reports

            noise = mechanism_for_reports(**together, delta=delta, family=family or "best", space="lonlat")
            if not little_noise:
                enough_noise(2 / noise.mean_radius)
            return noise
        from geoind.accounting.accountant import delta_of_reports

        kept = delta_of_reports(require_space("lonlat", mechanism), **together)
        if kept > as_unit(delta, "delta"):
            raise InvalidInputError(
                f"the delta of {plural(together['reports'], 'report')} of this mechanism at this level within "
                f"{radius:g} m is {kept:.3g}, more than {delta:g}: use a mechanism from mechanism_for_reports"
            )
        return mechanism
    if mechanism is not None:
        if not (epsilon is level is radius is None):
            raise InvalidInputError(
                "give `mechanism=`, `epsilon=`, or `level=` and `radius=`, not several of them"
            )
        return require_space("lonlat", mechanism)
    try:
        return _globe(epsilon, level, radius, little_noise)
    except TypeError as error:  # a list, for example, cannot be hashed
        raise InvalidInputError("epsilon, level and radius must be numbers") from error


@lru_cache(maxsize=256, typed=True)
def _globe(
    epsilon: float | None, level: float | None, radius: float | None, little_noise: bool | None
) -> SphericalLaplace:
    if epsilon is not None and (level is not None or radius is not None):
        raise InvalidInputError("give `epsilon=`, or `level=` and `radius=`, not both")
    if epsilon is None:
        if level is None or radius is None:
            raise InvalidInputError("give `epsilon=`, or `level=` and `radius=`")
        epsilon = epsilon_for(level, radius)
    epsilon = as_positive(epsilon, "epsilon")
    return SphericalLaplace(epsilon if little_noise else enough_noise(epsilon))


def enough_noise(epsilon: float, *, otherwise: str = "pass `mechanism=SphericalLaplace(epsilon)`") -> float:
    """Return epsilon; raise if the mean noise is under 10 m, which is likely a unit error.

    `otherwise` is the part of the message that says how to get so little noise.
    """
    mean = 2 / epsilon
    if mean < LEAST_MEAN_ERROR:
        raise InvalidInputError(
            f"epsilon {epsilon:.3g} per metre moves reports by {mean:.2g} m on average, less than "
            f"{LEAST_MEAN_ERROR:g} m: likely a unit error. Epsilon is level / radius with the radius in metres "
            f"(ln 4 within 200 m is 0.0069). For so little noise, {otherwise}"
        )
    return epsilon


@overload
def obfuscate(
    *,
    lat: float,
    lon: float,
    epsilon: float | None = None,
    level: float | None = None,
    radius: float | None = None,
    delta: float | None = None,
    reports: int | None = None,
    mechanism: Mechanism | None = None,
    ledger: Budget | None = None,
    person_id: Persons = None,
    rng: RandomnessLike = None,
) -> Location[float]: ...
@overload
def obfuscate(
    *,
    lat: Coordinates,
    lon: Coordinates,
    epsilon: float | None = None,
    level: float | None = None,
    radius: float | None = None,
    delta: float | None = None,
    reports: int | None = None,
    mechanism: Mechanism | None = None,
    ledger: Budget | None = None,
    person_id: Persons = None,
    rng: RandomnessLike = None,
) -> Location[FloatArray]: ...
def obfuscate(
    *misplaced: object,
    lat: float | Coordinates | None = None,
    lon: float | Coordinates | None = None,
    epsilon: float | None = None,
    level: float | None = None,
    radius: float | None = None,
    delta: float | None = None,
    reports: int | None = None,
    mechanism: Mechanism | None = None,
    ledger: Budget | None = None,
    person_id: Persons = None,
    rng: RandomnessLike = None,
) -> Location[float] | Location[FloatArray]:
    """Return a geo-indistinguishable report of a true location.

    All arguments are passed by name: positional ones are refused, so that lat and lon cannot be swapped.

    Parameters
    ----------
    lat, lon : float or array
        The true location, in degrees; required. Arrays must have the same shape.
    epsilon : float
        Privacy loss per metre, at most 0.2: a larger one would move reports by less than 10 metres; or
    level, radius : float
        `epsilon = level / radius`: places within `radius` metres are distinguished by a factor e^level at most; or
    level, radius, delta, reports
        The level is that of `reports` reports together (default: 1), except with probability `delta`; the noise is
        the least with this level, see `mechanism_for_reports`; or
    mechanism : Mechanism
        Any mechanism for lon/lat. The default is `SphericalLaplace(epsilon)`.
    ledger, person_id : Ledger and str or int (or one per location), optional
        The person, or persons, whose budget is charged before any noise is drawn.
    rng : RandomnessLike
        None for cryptographic noise; `KeyedRandomness` to get the same report for the same record;
        a numpy Generator or a seed for simulation only.

    Returns
    -------
    Location
        `lat` and `lon` in degrees on a public lattice (5 decimals): floats for scalars, arrays for arrays.

    Examples
    --------
    >>> import math
    >>> report = obfuscate(lat=48.8584, lon=2.2945, level=math.log(4), radius=200)
    >>> abs(report.lat - 48.8584) < 0.1
    True
    """
    if misplaced:
        raise _misplaced(misplaced[0])
    chosen = choose_mechanism(
        epsilon=epsilon, level=level, radius=radius, delta=delta, reports=reports, mechanism=mechanism
    )
    draw_one = getattr(chosen, "sample_one", None) if rng is None else None
    if isinstance(lat, float) and isinstance(lon, float) and draw_one is not None:
        if not (-90 <= lat <= 90 and -180 <= lon <= 180):
            as_location(lon=lon, lat=lat)
        if ledger is not None or person_id is not None:
            check_truths(chosen, np.array([[lon, lat]]))
            charge(ledger, person_id, 1, chosen)
        report_lon, report_lat = draw_one(lon, lat, *fresh_pair())
        return Location(report_lat, report_lon)
    if lat is None or lon is None:
        raise InvalidInputError("lat and lon must be numbers or arrays of degrees, and one of them is None")
    lats, lons = as_floats(cast("ArrayLike", lat), "lat"), as_floats(cast("ArrayLike", lon), "lon")
    if lats.shape != lons.shape:
        raise InvalidInputError(f"lat and lon must have the same shape, got {lats.shape} and {lons.shape}")
    if not lats.shape:
        as_location(lon=float(lons), lat=float(lats))
    truth = np.column_stack([lons.ravel(), lats.ravel()])
    drawn = obfuscate_lonlat(truth, chosen, ledger=ledger, person_id=person_id, rng=rng)
    if not lats.shape:
        return Location(float(drawn[0, 1]), float(drawn[0, 0]))
    return Location(drawn[:, 1].reshape(lats.shape), drawn[:, 0].reshape(lats.shape))


def _misplaced(argument: object) -> InvalidInputError:
    """Return the error for a positional argument of `obfuscate`."""
    kind = type(argument)
    if hasattr(kind, "columns") or hasattr(kind, "geometry"):
        return InvalidInputError(
            "geoind.obfuscate takes lat= and lon=, not a frame. For pandas and geopandas: "
            "import geoind.adapters.geopandas, then df.geoind.obfuscate(...)"
        )
    return InvalidInputError("geoind.obfuscate takes its arguments by name: obfuscate(lat=..., lon=..., ...)")


def obfuscate_lonlat(
    lonlat: ArrayLike,
    mechanism: Mechanism,
    *,
    ledger: Budget | None = None,
    person_id: Persons = None,
    rng: RandomnessLike = None,
) -> FloatArray:
    """Return one report for each (n, 2) lon/lat location, in degrees on a public lattice.

    Examples
    --------
    >>> from geoind import SphericalLaplace
    >>> obfuscate_lonlat([[2.2945, 48.8584]], SphericalLaplace(0.01)).shape
    (1, 2)
    """
    points = as_lonlat(lonlat)
    mechanism = require_space("lonlat", mechanism)
    source = as_randomness(rng, len(points))
    if ledger is not None or person_id is not None:
        check_truths(mechanism, points)
        charge(ledger, person_id, len(points), mechanism)
    reports = mechanism.sample(points, rng=source)
    # A mechanism with `decimals` has already rounded its reports to its lattice.
    return reports if hasattr(mechanism, "decimals") else snap_lonlat(reports)


def charge(ledger: Budget | None, person_id: Persons, count: int, mechanism: Mechanism) -> None:
    """Charge `count` reports to one person, or one report to each of `count` persons."""
    if ledger is None or person_id is None:
        raise InvalidInputError("ledger and person_id go together: give both or neither")
    persons = _listed(person_id, count)
    if len(persons) != count:
        raise InvalidInputError(f"person_id must be one name or one per location: {len(persons)} for {count}")
    if len({isinstance(name, str) for name in persons}) > 1:
        raise InvalidInputError("person_id must be text for all locations or a whole number for all, not both")
    try:
        reports = Counter(persons)
    except TypeError as error:  # a list, for example, cannot be hashed
        raise InvalidInputError("person_id must be text or a whole number, or one of them per location") from error
    ledger.charge_counts(reports, mechanism)


def _listed(person_id: str | int | Iterable[str | int], count: int) -> list[str | int]:
    if isinstance(person_id, (str, int, Integral)):
        return [person_id] * count
    # Iterating over bytes would give whole numbers, which are valid persons.
    if isinstance(person_id, Iterable) and not isinstance(person_id, (bytes, bytearray, memoryview)):
        return list(person_id)
    raise InvalidInputError(f"person_id must be text or a whole number, got {type(person_id).__name__}")
