"""Private queries: ask a service for places near a person without sending the true location.

The area of retrieval that is sent is centred on a report, and wide enough to contain the area of interest around
the true location with a chosen probability (Andrés et al., CCS 2013). The results are filtered on the trusted
side.
"""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, TypeVar, overload

import numpy as np
import shapely

from geoind.arrays import Coordinates, FloatArray, as_count, as_location, as_lonlat, as_positive, as_unit
from geoind.budgets.same_place import SamePlace
from geoind.errors import InvalidInputError
from geoind.mechanisms.planar import PlanarLaplace
from geoind.mechanisms.protocol import Mechanism, RandomnessLike, check_inside
from geoind.pipeline import choose_mechanism, obfuscate
from geoind.queries.points_of_interest import EVERYTHING, Frame, Records, closest, distances_from
from geoind.queries.services import service_params

if TYPE_CHECKING:
    from shapely.geometry.base import BaseGeometry

    from geoind.budgets.ledger import Ledger

__all__ = ["PrivateQuery", "private_query", "retrieval_radius"]


def retrieval_radius(radius: float, confidence: float, epsilon: float) -> float:
    """Return radius + C^-1(confidence), the area of retrieval of planar Laplace noise, in metres.

    The textbook's formula, for choosing parameters. `private_query` adds corrections for the globe and the
    lattice.

    Examples
    --------
    >>> import math
    >>> round(retrieval_radius(300, 0.95, math.log(4) / 200), 1)
    984.4
    """
    quantile = PlanarLaplace(epsilon).radius_quantile(as_unit(confidence, "confidence"))
    return as_positive(radius, "radius") + float(quantile)


Results = TypeVar("Results")


@dataclass(frozen=True, repr=False)
class _Trusted:
    """Data that must not leave the trusted side."""

    lat: float
    lon: float
    shape: "BaseGeometry | None"


class _TrustedSide:
    """A slot for the true location, outside of the fields that `vars`, JSON, pickle and `asdict` read."""

    __slots__ = ("_trusted",)
    _trusted: _Trusted


@dataclass(frozen=True)
class PrivateQuery(_TrustedSide):
    """A query that may be sent, with methods that select the results around the true location.

    Its fields are public: they depend on the true location through the report alone. The true location is not a
    field, so that printing, comparing, `vars` or serialising a query does not show it.

    Attributes
    ----------
    lat, lon : float
        The reported centre, in degrees.
    radius : float
        Radius of the area of retrieval, in metres.
    interest_radius : float
        Radius of the area of interest, in metres: the argument of `private_query`.
    confidence : float
        Probability with which the area of interest lies inside the area of retrieval, at least.
    epsilon : float
        Privacy loss of the query, per metre.
    """

    lat: float
    lon: float
    radius: float
    interest_radius: float
    confidence: float
    epsilon: float

    def __getstate__(self) -> dict[str, float]:
        # A copy in a queue or a cache is no longer on the trusted side.
        return asdict(self)

    @property
    def guarantee(self) -> str:
        """The guarantee, as a sentence."""
        return (
            f"With probability at least {self.confidence:g}, everything within {self.interest_radius:g} m of the "
            f"true location lies within {self.radius:.1f} m of the reported one, so no result is missed."
        )

    @property
    def covered(self) -> bool:
        """Whether the area of interest lies inside the area of retrieval this time; for the trusted side only."""
        return self.interest_radius <= self._certain_radius

    def as_params(self, service: str, *, kind: str | None = None) -> dict[str, object]:
        """Return ready request parameters: google_places, foursquare, overpass, postgis or geojson.

        Parameters
        ----------
        service : str
            The service; no request is made.
        kind : str, optional
            The kind of place, in the service's terms: a Google type, a Foursquare query, an OpenStreetMap tag such
            as amenity=restaurant.

        Examples
        --------
        >>> query = private_query(lat=48.8584, lon=2.2945, radius=300, epsilon=0.01)
        >>> sorted(query.as_params("postgis"))
        ['lat', 'lon', 'radius']
        """
        return service_params(service, lat=self.lat, lon=self.lon, radius=self.radius, kind=kind)

    @overload
    def refine(self, results: Frame) -> Frame: ...
    @overload
    def refine(self, results: Records) -> list[dict[str, object]]: ...
    @overload
    def refine(self, results: Coordinates) -> FloatArray: ...
    def refine(self, results: object) -> object:
        """Return the results inside the true area of interest, closest first, with their `distance` in metres.

        Parameters
        ----------
        results : GeoDataFrame, list of dict, or array
            A frame in any CRS; records with lat and lon (or the names of place services); or (n, 2) lon/lat, for
            which (m, 3) lon, lat, distance are returned.

        Examples
        --------
        >>> query = private_query(lat=48.8584, lon=2.2945, radius=300, epsilon=0.01)
        >>> query.refine([{"lat": 48.8584, "lon": 2.2945, "name": "tower"}, {"lat": 48.9, "lon": 2.4}])
        [{'lat': 48.8584, 'lon': 2.2945, 'name': 'tower', 'distance': 0.0}]
        """
        truth = self._truth
        return closest(results, lat=truth.lat, lon=truth.lon, radius=self.interest_radius, shape=truth.shape)[0]

    @overload
    def nearest(self, results: Frame, k: int) -> tuple[Frame, bool]: ...
    @overload
    def nearest(self, results: Records, k: int) -> tuple[list[dict[str, object]], bool]: ...
    @overload
    def nearest(self, results: Coordinates, k: int) -> tuple[FloatArray, bool]: ...
    def nearest(self, results: object, k: int) -> object:
        """Return the k results closest to the true location, and whether they are certainly the k closest of all.

        If they are not, do not ask again with a larger radius: the decision to ask again depends on the true
        location. Choose the radius beforehand, from the public density of places.

        Examples
        --------
        >>> query = private_query(lat=48.8584, lon=2.2945, radius=300, epsilon=0.01)
        >>> found, certain = query.nearest([{"lat": 48.8584, "lon": 2.2945}, {"lat": 48.9, "lon": 2.3}], k=1)
        >>> found[0]["distance"], certain
        (0.0, True)
        """
        k, truth = as_count(k, "k"), self._truth
        ranked, distances = closest(results, lat=truth.lat, lon=truth.lon, radius=EVERYTHING)
        certain = len(distances) >= k and float(distances[k - 1]) <= self._certain_radius
        return ranked[:k], certain

    @property
    def _truth(self) -> _Trusted:
        try:
            return self._trusted
        except AttributeError:
            message = "this query has no true location: only the process that made it can refine results"
            raise InvalidInputError(message) from None

    @property
    def _certain_radius(self) -> float:
        """Radius around the true location within which everything was retrieved."""
        truth = self._truth
        return self.radius - float(distances_from([[self.lon, self.lat]], lat=truth.lat, lon=truth.lon)[0])


def private_query(
    *,
    lat: float,
    lon: float,
    radius: float,
    confidence: float = 0.95,
    epsilon: float | None = None,
    mechanism: Mechanism | None = None,
    report_reach: float | None = None,
    shape: "BaseGeometry | None" = None,
    same_place: SamePlace | None = None,
    ledger: "Ledger | None" = None,
    person_id: str | int | None = None,
    rng: RandomnessLike = None,
) -> PrivateQuery:
    """Return a query for what is within `radius` metres of a true location, made from a report of it.

    The radius to send does not depend on the draw: radius, plus the mechanism's reach at `confidence`, plus half
    the diagonal of the lattice.

    Parameters
    ----------
    lat, lon : float
        The true location, in degrees.
    radius : float
        Radius of the area of interest, in metres. It is public: never compute it from the true location.
    confidence : float
        Probability that nothing is missed, at least.
    epsilon : float
        Privacy loss per metre, such as `epsilon_for(level, radius)`; or
    mechanism : Mechanism
        Anything that samples lon/lat reports.
    report_reach : float
        Largest distance of a report from the true location with probability `confidence`, in metres; only for a
        mechanism without a known reach, such as a custom remapping.
    shape : shapely geometry, optional
        Area of interest of any shape, in lon/lat degrees, within `radius` metres of the true location: a
        `corridor`, a polygon. It stays on the trusted side; the circle around it is sent.
    same_place : SamePlace, optional
        Return the same query again for the same place, free of charge. Needs person_id.
    ledger, person_id : Ledger and str or int, optional
        The person whose budget is charged, before any noise is drawn.
    rng : RandomnessLike
        As in `obfuscate`.

    Examples
    --------
    >>> import math
    >>> from geoind import epsilon_for
    >>> epsilon = epsilon_for(level=math.log(4), radius=200)
    >>> query = private_query(lat=48.8584, lon=2.2945, radius=300, confidence=0.95, epsilon=epsilon)
    >>> round(query.radius, 1)
    992.2
    """
    if (epsilon is None) == (mechanism is None):
        raise InvalidInputError(
            "give either epsilon or mechanism; epsilon_for(level, radius) computes epsilon. "
            "radius is the radius of the area of interest"
        )
    chosen = choose_mechanism(epsilon=epsilon, mechanism=mechanism)
    interest = as_positive(radius, "radius")
    confidence = as_unit(confidence, "confidence")
    lon, lat = as_location(lon=lon, lat=lat)
    if report_reach is None:
        reach = chosen.reach(confidence)
        check_inside(chosen, np.array([[lon, lat]]))
    else:
        reach = as_positive(report_reach, "report_reach")
    _check_shape(shape, interest, lat, lon)
    if same_place is None:
        report = obfuscate(lat=lat, lon=lon, mechanism=chosen, ledger=ledger, person_id=person_id, rng=rng)
    elif mechanism is not None or rng is not None or person_id is None:
        raise InvalidInputError("same_place needs person_id and epsilon, and makes its own noise")
    else:
        report = same_place.obfuscate(lat=lat, lon=lon, epsilon=chosen.epsilon, person_id=person_id, ledger=ledger)
        reach += same_place.cell_radius
    query = PrivateQuery(report.lat, report.lon, interest + reach, interest, confidence, chosen.epsilon)
    object.__setattr__(query, "_trusted", _Trusted(lat, lon, shape))
    return query


def _check_shape(shape: "BaseGeometry | None", radius: float, lat: float, lon: float) -> None:
    if shape is None:
        return
    if not isinstance(shape, shapely.Geometry) or shape.is_empty or not shape.is_valid:
        raise InvalidInputError("shape must be a valid, non-empty shapely geometry in lon/lat degrees")
    # A side may bulge beyond its corners, so points along it are checked too.
    border = as_lonlat(shapely.get_coordinates(shapely.segmentize(shape, 0.01)), "shape")
    if not (distances_from(border, lat=lat, lon=lon) <= radius).all():
        raise InvalidInputError(f"shape must lie within {radius:g} m of the location, the radius that is sent")
