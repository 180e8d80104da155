"""Same place, same report: what a person asks again from the same place is answered as before, and costs nothing.

Fresh noise each time would let an observer average it out, so each report of a place costs epsilon. Instead, the
world is cut into cells, and every true location in a cell is reported with the noise of that cell, drawn once: a
repeated report tells nothing about where in the cell the person is, or moves.

Cells with public borders would break the promise near a border: a step across it changes the cell's centre by a
whole cell. Here the borders are secret. The grid of cells is turned about the Earth's centre by a uniformly
random rotation, drawn from the person's secret. Seen without the secret, the centre of the cell is then the true
location moved by noise of its own, of a law that looks the same at every place and in every direction. Such
moves commute with the spherical Laplace noise: a report is one that was drawn from the *true* location and
moved afterwards, which is post-processing. Each single report keeps epsilon, metre by metre.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, as_location, as_positive
from geoind.budgets.ledger import Ledger
from geoind.budgets.persons import as_person
from geoind.distances import EARTH_RADIUS, GEODESIC_STRETCH
from geoind.errors import InvalidInputError
from geoind.keys import KEY_BYTES
from geoind.mechanisms.protocol import Mechanism
from geoind.pipeline import Location, choose_mechanism
from geoind.randomness import KeyedRandomness

__all__ = ["SamePlace"]


@dataclass(frozen=True)
class SamePlace:
    """A memory without records: the same answer again for the same person, cell and epsilon.

    What it reveals beyond the report itself: that two reports came from the same cell, and that two different
    ones did not. See docs/budgets.md before using it.

    Parameters
    ----------
    key : bytes
        32 secret bytes, from `secrets.token_bytes(32)`. Each person's secret is derived from it. Whoever has
        it can remove the noise; whoever changes it makes every answer a new one, to be paid again.
    cell : float
        Side of a cell, in metres. Reports are about this much farther from the truth.

    Examples
    --------
    >>> from geoind import Ledger
    >>> memory = SamePlace(bytes(32), cell=100)
    >>> ledger = Ledger("sqlite://", budget=0.02)
    >>> home = dict(lat=48.8584, lon=2.2945, epsilon=0.01, person_id="ana", ledger=ledger)
    >>> memory.obfuscate(**home) == memory.obfuscate(**home)
    True
    >>> ledger.remaining("ana")
    0.01
    """

    key: bytes = field(repr=False)
    cell: float = 100.0

    def __post_init__(self) -> None:
        if not isinstance(self.key, bytes) or len(self.key) != KEY_BYTES:
            raise InvalidInputError(f"key must be {KEY_BYTES} bytes")
        cell = as_positive(self.cell, "cell")
        if not 1 <= cell <= 100_000:
            raise InvalidInputError(f"cell must be between 1 and 100 000 metres, got {self.cell!r}")
        object.__setattr__(self, "cell", cell)

    @property
    def cell_radius(self) -> float:
        """How far a location and the centre of its cell lie apart at most, in WGS84 metres."""
        return GEODESIC_STRETCH * self.cell

    def obfuscate(
        self,
        *,
        lat: float,
        lon: float,
        person_id: str | int,
        epsilon: float | None = None,
        level: float | None = None,
        radius: float | None = None,
        ledger: Ledger | None = None,
    ) -> Location[float]:
        """Return the person's report for the cell of a true location, charged the first time only.

        Parameters
        ----------
        lat, lon : float
            The truth, in degrees.
        person_id : str or int
            Whose secret, and whose budget.
        epsilon, or level and radius : float
            As in `obfuscate`. Another epsilon is another report, to be paid.
        ledger : Ledger, optional
            Pays for each cell once, and never again: the answer tells nothing new.
        """
        globe = choose_mechanism(epsilon=epsilon, level=level, radius=radius)
        lon, lat = as_location(lon=lon, lat=lat)
        token, centre = self.cell_of(person_id, lon, lat, globe)
        if ledger is not None:
            ledger.charge(person_id, globe, label="new place", once=token)
        [report] = self.reports(person_id, [token], [centre], globe)
        return Location(float(report[1]), float(report[0]))

    def cell_of(
        self, person: str | int, lon: float, lat: float, mechanism: Mechanism
    ) -> tuple[str, tuple[float, float]]:
        """Return a token of the person's cell at a location, and the cell's centre in (lon, lat) degrees."""
        secret = self._secret(person)
        cell, centre = self._cell(secret, lon, lat)
        token = hashlib.blake2b(
            f"{mechanism.epsilon.hex()} {self.cell.hex()} {cell}".encode(), key=secret, digest_size=16
        ).hexdigest()
        return token, centre

    def reports(
        self, person: str | int, tokens: Sequence[str], centres: ArrayLike, mechanism: Mechanism
    ) -> FloatArray:
        """Return the (n, 2) reports of a person's cells."""
        return mechanism.sample(centres, rng=KeyedRandomness(self._secret(person), tokens))

    def _secret(self, person: str | int) -> bytes:
        return hashlib.blake2b(
            as_person(person).encode(), key=self.key, digest_size=KEY_BYTES, person=b"geoind person"
        ).digest()

    def _cell(self, secret: bytes, lon: float, lat: float) -> tuple[tuple[int, int], tuple[float, float]]:
        """Return the number of a location's cell in the turned grid, and the cell's centre in degrees."""
        rotation = _rotation(secret)
        rows = math.ceil(math.pi * EARTH_RADIUS / self.cell)
        x, y, z = (_unit_vector(lon, lat) @ rotation).tolist()
        height = math.pi / rows
        row = min(int((math.asin(max(-1.0, min(1.0, z))) + math.pi / 2) / height), rows - 1)
        middle = (row + 0.5) * height - math.pi / 2
        columns = max(1, math.ceil(2 * math.pi * math.cos(middle) / height))
        column = min(int((math.atan2(y, x) + math.pi) / (2 * math.pi) * columns), columns - 1)
        along = (column + 0.5) * 2 * math.pi / columns - math.pi
        x, y, z = (rotation @ _unit_vector(math.degrees(along), math.degrees(middle))).tolist()
        return (row, column), (math.degrees(math.atan2(y, x)), math.degrees(math.asin(max(-1.0, min(1.0, z)))))


def _unit_vector(lon: float, lat: float) -> FloatArray:
    turn, rise = math.radians(lon), math.radians(lat)
    return np.array([math.cos(rise) * math.cos(turn), math.cos(rise) * math.sin(turn), math.sin(rise)])


@lru_cache(maxsize=1024)
def _rotation(secret: bytes) -> FloatArray:
    """Return a uniformly random rotation: a uniform unit quaternion (Shoemake, 1992), as a matrix."""
    words = KeyedRandomness(secret, ["grid"]).words(np.zeros((1, 2)), 3, "SamePlace rotation")
    u, v, w = ((words[0] >> np.uint64(11)) * 2.0**-53).tolist()
    a, b = math.sqrt(1 - u) * math.sin(2 * math.pi * v), math.sqrt(1 - u) * math.cos(2 * math.pi * v)
    c, d = math.sqrt(u) * math.sin(2 * math.pi * w), math.sqrt(u) * math.cos(2 * math.pi * w)
    return np.array(
        [
            [1 - 2 * (b * b + c * c), 2 * (a * b - c * d), 2 * (a * c + b * d)],
            [2 * (a * b + c * d), 1 - 2 * (a * a + c * c), 2 * (b * c - a * d)],
            [2 * (a * c - b * d), 2 * (b * c + a * d), 1 - 2 * (a * a + b * b)],
        ]
    )
