"""Private queries: ask a service what is near a person without telling where the person is.

The area of retrieval that is sent is centred on a report, and wide enough to hold the area of interest around
the truth with a chosen probability (Andrés et al., CCS 2013). What comes back is filtered on the trusted side.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from geoind.arrays import as_count, as_lonlat, as_number, as_positive, as_unit
from geoind.budgets.same_place import SamePlace
from geoind.distances import haversine
from geoind.errors import InvalidInputError
from geoind.mechanisms.laplace import PlanarLaplace
from geoind.mechanisms.protocol import Mechanism, check_inside
from geoind.mechanisms.sphere import WGS84_FACTOR
from geoind.pipeline import choose_mechanism, epsilon_for, obfuscate
from geoind.queries.points_of_interest import distances_from, lonlat_of, near
from geoind.queries.services import service_params
from geoind.randomness import RandomnessLike

if TYPE_CHECKING:
    from shapely.geometry.base import BaseGeometry

    from geoind.budgets.ledger import Ledger

__all__ = ["Nearest", "PrivateQuery", "private_query", "retrieval_radius"]


def retrieval_radius(radius: float, confidence: float, epsilon: float) -> float:
    """Return radius + C^-1(confidence), the area of retrieval of planar Laplace noise, in metres.

    The textbook's formula, for choosing parameters. `private_query` adds what the globe and the lattice need.

    Examples
    --------
    >>> import math
    >>> round(retrieval_radius(300, 0.95, math.log(4) / 200), 1)
    984.4
    """
    quantile = PlanarLaplace(epsilon).radius_quantile(as_unit(confidence, "confidence"))
    return as_positive(radius, "radius") + float(quantile)


class Nearest(NamedTuple):
    """The results closest to the truth, and whether they are certainly the closest of all.

    Attributes
    ----------
    results
        At most k of them, the closest first, in the kind that was given.
    certain : bool
        Whether no place outside the area of retrieval can be closer. Known to the trusted side only.
    """

    results: Any
    certain: bool


@dataclass(frozen=True)
class _Trusted:
    """What must not leave the trusted side."""

    lat: float
    lon: float
    shape: "BaseGeometry | None"


@dataclass(frozen=True)
class PrivateQuery:
    """A query that may be sent, and the way back from its results to those around the truth.

    Its fields are public: they depend on the truth through the report alone. The truth is kept beside them, not
    among them, so that printing, comparing or serialising a query does not show it.

    Attributes
    ----------
    lat, lon : float
        The reported centre, in degrees.
    radius : float
        Radius of the area of retrieval, in metres.
    interest_radius : float
        Radius of the area of interest, in metres: what was asked for.
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

    def __getstate__(self) -> dict[str, Any]:
        # A copy in a queue or a cache is no longer on the trusted side.
        return asdict(self)

    @property
    def guarantee(self) -> str:
        """What is promised, in a sentence."""
        return (
            f"With probability at least {self.confidence:g}, everything within {self.interest_radius:g} m of the "
            f"true location lies within {self.radius:.1f} m of the reported one, so no result is missed."
        )

    @property
    def covered(self) -> bool:
        """Whether the area of interest lies inside the area of retrieval this time; for the trusted side only."""
        return self.interest_radius <= self._certain_radius

    def as_params(self, service: str, *, kind: str | None = None) -> dict[str, Any]:
        """Return ready request parameters: google_places, foursquare, overpass, postgis or geojson.

        Parameters
        ----------
        service : str
            Whose parameters; nobody is contacted.
        kind : str, optional
            What is looked for, in the service's own words: a Google type, a Foursquare query, an
            OpenStreetMap tag such as amenity=restaurant.

        Examples
        --------
        >>> query = private_query(lat=48.8584, lon=2.2945, radius=300, epsilon=0.01)
        >>> sorted(query.as_params("postgis"))
        ['lat', 'lon', 'radius']
        """
        return service_params(service, lat=self.lat, lon=self.lon, radius=self.radius, kind=kind)

    def refine(self, results: Any) -> Any:
        """Return the results inside the true area of interest, closest first, with their `distance` in metres.

        Parameters
        ----------
        results : GeoDataFrame, list of dict, or array
            A frame in any CRS; records with lat and lon (or as the place services name them); or (n, 2)
            lon/lat, which come back as (m, 3) lon, lat, distance.

        Examples
        --------
        >>> query = private_query(lat=48.8584, lon=2.2945, radius=300, epsilon=0.01)
        >>> query.refine([{"lat": 48.8584, "lon": 2.2945, "name": "tower"}, {"lat": 48.9, "lon": 2.4}])
        [{'lat': 48.8584, 'lon': 2.2945, 'name': 'tower', 'distance': 0.0}]
        """
        truth = self._truth
        return _closest(results, truth, self.interest_radius, truth.shape)

    def nearest(self, results: Any, k: int) -> Nearest:
        """Return the k results closest to the truth, and whether they are certainly the k closest of all.

        If they are not, do not ask again with a larger radius: when you ask again depends on the truth. Choose the
        radius beforehand, from the density of the places, which is public.

        Examples
        --------
        >>> query = private_query(lat=48.8584, lon=2.2945, radius=300, epsilon=0.01)
        >>> found = query.nearest([{"lat": 48.8584, "lon": 2.2945}, {"lat": 48.9, "lon": 2.3}], k=1)
        >>> found.results[0]["distance"]
        0.0
        """
        k = as_count(k, "k")
        truth = self._truth
        # Half of the Earth's girth: everything.
        ranked = _closest(results, truth, 20_038_000.0, None)[:k]
        if hasattr(ranked, "geometry"):
            distances = ranked["distance"].tolist()
        elif isinstance(ranked, np.ndarray):
            distances = ranked[:, 2].tolist()
        else:
            distances = [record["distance"] for record in ranked]
        return Nearest(ranked, len(distances) == k and distances[-1] <= self._certain_radius)

    @property
    def _truth(self) -> _Trusted:
        truth = self.__dict__.get("_trusted")
        if not isinstance(truth, _Trusted):
            raise InvalidInputError("this query was not made here: only who made it knows the truth")
        return truth

    @property
    def _certain_radius(self) -> float:
        """How far around the truth everything was retrieved."""
        truth = self._truth
        return self.radius - float(distances_from([[self.lon, self.lat]], lat=truth.lat, lon=truth.lon)[0])


def private_query(
    *,
    lat: float,
    lon: float,
    radius: float,
    confidence: float = 0.95,
    epsilon: float | None = None,
    level: float | None = None,
    radius_of_level: float | None = None,
    mechanism: Mechanism | None = None,
    report_reach: float | None = None,
    shape: "BaseGeometry | None" = None,
    same_place: SamePlace | None = None,
    ledger: "Ledger | None" = None,
    person: str | None = None,
    rng: RandomnessLike = None,
) -> PrivateQuery:
    """Return a query for what is within `radius` metres of a true location, made from a report of it.

    The radius to send is fixed before the draw and does not depend on it: radius, plus the distance that the
    mechanism's reports keep to with probability `confidence`, plus the lattice's half diagonal.

    Parameters
    ----------
    lat, lon : float
        The truth, in degrees.
    radius : float
        Radius of the area of interest, in metres. It is public: never compute it from the truth.
    confidence : float
        Probability that nothing is missed, at least.
    epsilon : float
        Privacy loss per metre; or
    level, radius_of_level : float
        `epsilon = level / radius_of_level`, within 200 metres if only the level is given; or
    mechanism : Mechanism
        Anything that samples lon/lat reports.
    report_reach : float
        How far the mechanism's reports lie from the truth at most, with probability `confidence`, in metres;
        only for a mechanism of which geoind does not know it, such as a remapping of your own.
    shape : shapely geometry, optional
        Area of interest of any shape, in lon/lat degrees, within `radius` metres of the truth: a
        `corridor`, a polygon. It stays on the trusted side; what is sent is the circle around it.
    same_place : SamePlace, optional
        Ask the same query again from the same place, at no cost. Needs a person.
    ledger, person : Ledger and str, optional
        Whose budget pays, before any noise is drawn.
    rng : RandomnessLike
        As in `obfuscate`.

    Examples
    --------
    >>> import math
    >>> query = private_query(lat=48.8584, lon=2.2945, radius=300, confidence=0.95, level=math.log(4))
    >>> round(query.radius, 1)
    992.2
    """
    if level is not None and epsilon is None:
        epsilon, level = epsilon_for(level, 200.0 if radius_of_level is None else radius_of_level), None
    elif level is not None or radius_of_level is not None:
        raise InvalidInputError("give epsilon, or level with an optional radius_of_level, or a mechanism")
    chosen = choose_mechanism(epsilon=epsilon, mechanism=mechanism)
    interest = as_positive(radius, "radius")
    confidence = as_unit(confidence, "confidence")
    [[lon, lat]] = as_lonlat([[as_number(lon, "lon"), as_number(lat, "lat")]], "location").tolist()
    if report_reach is None:
        reach = chosen.reach(confidence)
        check_inside(chosen, np.array([[lon, lat]]))
    else:
        reach = as_positive(report_reach, "report_reach")
    _check_shape(shape, interest, lat, lon)
    if same_place is None:
        report = obfuscate(lat=lat, lon=lon, mechanism=chosen, ledger=ledger, person=person, rng=rng)
    elif mechanism is not None or rng is not None or person is None:
        raise InvalidInputError("same_place needs a person and epsilon or level, and makes its own noise")
    else:
        report = same_place.obfuscate(lat=lat, lon=lon, epsilon=chosen.epsilon, person=person, ledger=ledger)
        reach += same_place.cell_radius
    query = PrivateQuery(report.lat, report.lon, interest + reach, interest, confidence, chosen.epsilon)
    query.__dict__["_trusted"] = _Trusted(lat, lon, shape)
    return query


def _check_shape(shape: "BaseGeometry | None", radius: float, lat: float, lon: float) -> None:
    if shape is None:
        return
    import shapely

    if not isinstance(shape, shapely.Geometry) or shape.is_empty or not shape.is_valid:
        raise InvalidInputError("shape must be a valid, non-empty shapely geometry in lon/lat degrees")
    # A side may bulge beyond its corners, so points along it are looked at too.
    border = as_lonlat(shapely.get_coordinates(shapely.segmentize(shape, 0.01)), "shape")
    if not (distances_from(border, lat=lat, lon=lon) <= radius).all():
        raise InvalidInputError(f"shape must lie within {radius:g} m of the location, the radius that is sent")


def _closest(results: Any, truth: _Trusted, radius: float, shape: "BaseGeometry | None") -> Any:
    if hasattr(results, "sindex"):
        return near(results, lat=truth.lat, lon=truth.lon, radius=radius, shape=shape)
    import shapely

    if isinstance(results, (list, tuple)) and all(isinstance(record, Mapping) for record in results):
        places = lonlat_of(results)
    else:
        places = as_lonlat(results, "results")
    # A geodesic takes fifty times as long as a great circle, which is hardly ever longer.
    rough = haversine(np.array([[truth.lon, truth.lat]]), places)[0]
    rows = np.flatnonzero(rough <= WGS84_FACTOR * radius)
    distances = distances_from(places[rows], lat=truth.lat, lon=truth.lon)
    keep = distances <= radius
    if shape is not None:
        keep &= shapely.intersects_xy(shape, places[rows])
    order = np.flatnonzero(keep)[np.argsort(distances[keep], kind="stable")]
    if isinstance(results, (list, tuple)) and (not results or isinstance(results[0], Mapping)):
        return [{**results[rows[number]], "distance": float(distances[number])} for number in order]
    return np.column_stack([places[rows[order]], distances[order]])
