"""A zone around home in which a session tells nothing but one place, always the same."""

import hashlib
from dataclasses import dataclass

from geoind.arrays import as_lonlat, as_number, as_positive
from geoind.budgets.persons import as_person
from geoind.errors import InvalidInputError
from geoind.pipeline import choose_mechanism
from geoind.randomness import KEY_BYTES, KeyedRandomness
from geoind.traces.comparison import arc_length
from geoind.traces.session import Payer

__all__ = ["PrivateZone"]

CONFIDENCE = 0.99


@dataclass(frozen=True)
class PrivateZone:
    """A disk around a noisy home: whoever is inside is reported at its centre, always the same place.

    Centre and radius may be known to everybody: the centre is one report of the home, paid for once, the radius
    follows from public numbers. Averaging where somebody enters and leaves finds the centre, not the home.

    Parameters
    ----------
    lon, lat : float
        The centre: what is reported.
    radius : float
        In metres.

    Examples
    --------
    >>> from geoind import TraceSession
    >>> from geoind.traces import Independent
    >>> zone = PrivateZone.around(lat=48.8584, lon=2.2945, epsilon=0.01, key=bytes(32))
    >>> session = TraceSession(Independent(0.01), zone=zone)
    >>> at_home = session.report(lat=48.8584, lon=2.2945, time=0)
    >>> at_home == (zone.lat, zone.lon), session.spent
    (True, 0.0)
    """

    lon: float
    lat: float
    radius: float

    def __post_init__(self) -> None:
        as_lonlat([[self.lon, self.lat]], "centre")
        as_positive(self.radius, "radius")

    @classmethod
    def around(
        cls,
        *,
        lat: float,
        lon: float,
        epsilon: float,
        key: bytes,
        margin: float = 200.0,
        ledger: Payer | None = None,
        person: str | int | None = None,
    ) -> "PrivateZone":
        """Return a zone around a home; costs epsilon, once.

        Parameters
        ----------
        lat, lon : float
            The home.
        epsilon : float
            Of the one report of the home that becomes the centre, per metre. One that hides nobody is refused.
        key : bytes
            32 secret bytes: the same home gets the same zone again, free of charge.
        margin : float
            Everything within so many metres of the home is inside, with a probability of 99 %.
        ledger, person : Ledger and str, optional
            Whose budget pays.
        """
        # -0.0 and 0.0 are one place.
        [[lon, lat]] = (as_lonlat([[as_number(lon, "lon"), as_number(lat, "lat")]], "home") + 0.0).tolist()
        if not isinstance(key, bytes) or len(key) != KEY_BYTES:
            raise InvalidInputError(f"key must be {KEY_BYTES} bytes")
        if (ledger is None) != (person is None):
            raise InvalidInputError("a ledger and a person go together: give both or neither")
        noise = choose_mechanism(epsilon=epsilon)
        radius = noise.reach(CONFIDENCE) + as_positive(margin, "margin")
        if person is not None:
            # However the name was typed, or the number was kept: one person, one zone.
            person = as_person(person)
        home = f"{person!r} {lon.hex()} {lat.hex()} {noise.epsilon.hex()}".encode()
        token = hashlib.blake2b(home, key=key, digest_size=16, person=b"geoind zone").hexdigest()
        if ledger is not None and person is not None:
            ledger.charge(person, noise.epsilon, label="private zone", once=f"zone {token}")
        [[lon, lat]] = noise.sample([[lon, lat]], rng=KeyedRandomness(key, [f"zone {token}"])).tolist()
        return cls(lon, lat, radius)

    def contains(self, lon: float, lat: float) -> bool:
        """Return whether a place lies inside, in great-circle metres."""
        return arc_length(lon, lat, self.lon, self.lat) <= self.radius
