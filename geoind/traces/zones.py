"""A zone around a home: inside, a session answers with one place, and entering and leaving are private events."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from geoind.arrays import as_location, as_positive
from geoind.budgets.ledger import Ledger
from geoind.budgets.persons import as_person
from geoind.budgets.same_place import SamePlace
from geoind.errors import InvalidInputError
from geoind.keys import KeyLike, as_key
from geoind.pipeline import choose_mechanism
from geoind.traces.methods import History, TraceMethod
from geoind.traces.questions import GuardedPlace, Place, arc_length

__all__ = ["PrivateZone", "zones_of_persons"]

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
    epsilon : float
        What the centre has cost, per metre; 0 for a place that is public.
    person_id : str
        Whose home it is; tables of traces need it.
    token : str
        A keyed name of the home's cell, under which a ledger charges the centre once.

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
    epsilon: float = 0.0
    person_id: str = ""
    token: str = field(default="", repr=False)

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
        without a ledger nothing counts them, so make a zone once and keep it. A table of traces charges the centre
        of a person's zone with the traces, if it was not charged before.

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
        person_id : str or int, optional
            Whose home it is, and whose budget pays.
        ledger : Ledger, optional
            Pays.
        """
        if ledger is not None and person_id is None:
            raise InvalidInputError("ledger needs person_id: whose budget pays")
        globe = choose_mechanism(epsilon=epsilon)
        # In whole metres: logarithms differ between machines in the last bit, and keyed sessions must not.
        radius = float(math.ceil(globe.reach(CONFIDENCE) + as_positive(margin, "margin")))
        owner = "home" if person_id is None else as_person(person_id)
        memory = SamePlace(as_key(key).read(), cell=CELL)
        centre = memory.obfuscate(lat=lat, lon=lon, person_id=owner, epsilon=epsilon, ledger=ledger)
        token, _ = memory.cell_of(owner, *as_location(lon=lon, lat=lat), globe)
        return cls(centre.lon, centre.lat, radius, globe.epsilon, "" if person_id is None else owner, token)

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


def zones_of_persons(zones: Iterable[PrivateZone]) -> tuple[PrivateZone, ...]:
    """Return the zones of a table of traces: each made for a person, no two for the same one."""
    found = tuple(zones)
    if not found:
        raise InvalidInputError("there must be at least one zone")
    persons = set[str]()
    for zone in found:
        if not zone.token or not zone.person_id:
            raise InvalidInputError("a zone for a table must be made by `PrivateZone.around` with `person_id=`")
        if zone.person_id in persons:
            raise InvalidInputError(f"person {zone.person_id!r} must have one zone")
        persons.add(zone.person_id)
    return found
