"""A zone around a home: inside, a session answers with one place, and entering and leaving are private events."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from geoind.arrays import as_location, as_positive
from geoind.budgets.ledger import Ledger
from geoind.budgets.persons import as_person
from geoind.budgets.same_place import SamePlace
from geoind.errors import InvalidInputError, plural
from geoind.keys import KeyLike, as_key
from geoind.pipeline import choose_mechanism
from geoind.traces.methods import History, TraceMethod
from geoind.traces.questions import GuardedPlace, Place, arc_length

__all__ = ["Home", "PrivateZone", "Zones"]

CONFIDENCE = 0.99
CELL = 200.0
"""Metres: a home that is measured again is in the same cell, in most cases."""
LIMIT, TEST = 3.0, 10.0
"""The limit of the tests in radii, and their epsilon times the radius.

By chance, a session leaves its zone in 13 % of the nights of 12 hours with a test every minute, and in 1.5 % of
them with a test every quarter of an hour. A smaller limit needs a larger epsilon, and the times of leaving would
reveal more.
"""


@dataclass(frozen=True)
class PrivateZone:
    """A disk around a noisy home, in which a session answers with the centre.

    A session enters the zone when a report of its method falls into the disk: the centre is published instead, and
    a run of private tests against the centre begins, paid for once with `test`. It leaves the zone when a test
    finds that the person is about `limit` metres or more from the centre. The centre is one report of the home;
    centre, radius, `test` and `limit` may be public.

    Parameters
    ----------
    lon, lat : float
        The centre.
    radius : float
        In metres.

    Examples
    --------
    >>> from geoind import TraceSession
    >>> from geoind.traces import Independent
    >>> zone = PrivateZone.around(lat=48.8584, lon=2.2945, epsilon=0.01, key=bytes(32))
    >>> session = TraceSession(Independent(0.01), key=bytes(32), zone=zone)
    >>> answers = {session.report(lat=48.8584, lon=2.2945, time=60 * minute) for minute in range(30)}
    >>> answers == {(zone.lat, zone.lon)}, session.spent == 0.01 + zone.test
    (True, True)
    """

    lon: float
    lat: float
    radius: float

    def __post_init__(self) -> None:
        as_location(lon=self.lon, lat=self.lat, name="centre")
        as_positive(self.radius, "radius")

    @classmethod
    def around(
        cls,
        *,
        lat: float,
        lon: float,
        epsilon: float,
        key: KeyLike,
        margin: float = 200.0,
        ledger: Ledger | None = None,
        person_id: str | int | None = None,
    ) -> "PrivateZone":
        """Return a zone around a home; costs epsilon, once.

        The centre is the report of `SamePlace(key)` for the home: a home that is measured again, in the same cell
        of 200 m, has the same centre. Near a border of cells it has up to four. A ledger charges each of them;
        without a ledger nothing counts them, so make a zone once and keep it.

        Parameters
        ----------
        lat, lon : float
            The home.
        epsilon : float
            Of the one report of the home that becomes the centre, per metre. Too little noise is refused.
        key : Key or bytes
            32 secret bytes: the same home gets the same zone again, free of charge.
        margin : float
            Metres by which the radius exceeds the noise of the centre, which stays within the rest with a
            probability of 99 %.
        ledger, person_id : Ledger and str, optional
            Whose budget pays.
        """
        if (ledger is None) != (person_id is None):
            raise InvalidInputError("ledger and person_id go together: give both or neither")
        radius = choose_mechanism(epsilon=epsilon).reach(CONFIDENCE) + as_positive(margin, "margin")
        owner = "home" if person_id is None else person_id
        centre = SamePlace(as_key(key).read(), cell=CELL).obfuscate(
            lat=lat, lon=lon, person_id=owner, epsilon=epsilon, ledger=ledger
        )
        return cls(centre.lon, centre.lat, radius)

    @property
    def limit(self) -> float:
        """How far from the centre the person may go, in metres, before noise."""
        return LIMIT * self.radius

    @property
    def test(self) -> float:
        """Epsilon of all tests until the session leaves the zone, per metre."""
        return TEST / self.radius

    def max_charges(self, method: TraceMethod) -> tuple[float, ...]:
        """Return the charges of the most expensive step: those of the method, and the next run of tests."""
        return (*method.max_charges, self.test)

    def answer(self, method: TraceMethod, history: History, place: GuardedPlace) -> tuple[History, Place]:
        """Return the history after a step and the centre, or what the method answers outside.

        The session is in the zone while the run of tests is against the centre.
        """
        centre = (self.lon, self.lat)
        if history.run is not None and history.run.place == centre:
            if not place.has_left(self.limit):
                return history, centre
            history = history._replace(run=None)
        asked = place.questions
        after, report = method.answer(history, place)
        # An answer without a question, such as the last one again, is no reason to pay for another run.
        if place.questions == asked or arc_length(*report, *centre) > self.radius:
            return after, report
        return history.with_run(self.test, centre), centre


class Home(NamedTuple):
    """A true home, and the epsilon and the margin of its zone.

    Examples
    --------
    >>> Home(lat=48.8584, lon=2.2945, epsilon=0.01).margin
    200.0
    """

    lat: float
    lon: float
    epsilon: float
    margin: float = 200.0


class Zones:
    """The private zones of several persons, for tables of traces; the true homes are not kept.

    The centre of a zone depends on the key, the person, the cell of the home and epsilon: the same home has the
    same centre in every release, which is charged once. So this key is not that of a release, which changes.

    Parameters
    ----------
    homes : mapping from person to Home
    key : Key or bytes
        32 secret bytes, used for zones alone.

    Examples
    --------
    >>> zones = Zones({"ana": Home(48.8584, 2.2945, epsilon=0.01)}, key=bytes(32))
    >>> zones == Zones({"ana": Home(48.8585, 2.2946, epsilon=0.01)}, key=bytes(32))
    True
    """

    def __init__(self, homes: Mapping[str, Home], *, key: KeyLike) -> None:
        if not homes:
            raise InvalidInputError("there must be at least one zone")
        memory = SamePlace(as_key(key).read(), cell=CELL)
        self.of: dict[str, PrivateZone] = {}
        self.costs: dict[str, float] = {}
        self.tokens: dict[str, str] = {}
        for person, home in homes.items():
            name, globe = as_person(person), choose_mechanism(epsilon=home.epsilon)
            if name in self.of:
                raise InvalidInputError(f"person {name!r} must have one zone")
            radius = globe.reach(CONFIDENCE) + as_positive(home.margin, "margin")
            token, cell = memory.cell_of(name, *as_location(lon=home.lon, lat=home.lat), globe)
            [[lon, lat]] = memory.reports(name, [token], [cell], globe).tolist()
            self.of[name] = PrivateZone(lon, lat, radius)
            self.costs[name], self.tokens[name] = float(globe.epsilon), token

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Zones) and (self.of, self.tokens) == (other.of, other.tokens)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        # Tokens are keyed, so a digest of them shows nothing of the homes.
        digest = hashlib.sha256(repr((sorted(self.tokens.items()), sorted(self.of.items(), key=str))).encode())
        return f"Zones({plural(len(self.of), 'person')}, {digest.hexdigest()[:8]})"
