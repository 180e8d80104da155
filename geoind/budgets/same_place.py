"""The same report for the same place: a repeated question gets the same answer, which is paid once.

Fresh noise for each report could be averaged out, so each report of a place costs epsilon. Here the world is
divided into cells, and every true location in a cell is reported with the noise of that cell, drawn once: a
repeated report reveals nothing about where in the cell the person is or moves.

Cells with public borders would violate epsilon near a border: a step across it moves the cell's centre by a whole
cell. Here the borders are secret. The grid of cells is rotated about the Earth's centre by a uniformly random
rotation, drawn from the person's secret. Without the secret, the centre of the cell is the true location plus a
random displacement, whose distribution is the same at every place and in every direction. Such displacements
commute with spherical Laplace noise: a report is one that was drawn from the *true* location and moved afterwards,
which is post-processing. So each single report has epsilon.
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
from geoind.keys import KEY_BYTES, KeyedRandomness, KeyLike, as_key
from geoind.mechanisms.protocol import Mechanism
from geoind.pipeline import Location, choose_mechanism

__all__ = ["SamePlace"]


@dataclass(frozen=True)
class SamePlace:
    """The same report for the same person, cell and epsilon, without stored records.

    It reveals, in addition to the report, which reports came from the same cell. See docs/budgets.md before using
    it.

    Parameters
    ----------
    key : Key or bytes
        32 secret bytes, from `secrets.token_bytes(32)`. Each person's secret is derived from it. The noise can be
        removed with it. A new key means new reports, which are paid again.
    cell : float
        Side of a cell, in metres. The distance of a report from the true location grows by about as much.

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

    key: KeyLike = field(repr=False)
    cell: float = 100.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", as_key(self.key))
        cell = as_positive(self.cell, "cell")
        if not 1 <= cell <= 100_000:
            raise InvalidInputError(f"cell must be between 1 and 100 000 metres, got {self.cell!r}")
        object.__setattr__(self, "cell", cell)

    @property
    def cell_radius(self) -> float:
        """The largest distance of a location from the centre of its cell, in WGS84 metres."""
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
        """Return the person's report for the cell of a true location; only the first one is charged.

        Parameters
        ----------
        lat, lon : float
            The true location, in degrees.
        person_id : str or int
            The person whose secret and budget are used.
        epsilon, or level and radius : float
            As in `obfuscate`. Another epsilon means another report, which is charged.
        ledger : Ledger, optional
            Charged once for each cell.
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
        # Read for each call: a pickled SamePlace must not contain a secret that is kept in a file.
        secret = as_key(self.key).read()
        return hashlib.blake2b(
            as_person(person).encode(), key=secret, digest_size=KEY_BYTES, person=b"geoind person"
        ).digest()

    def _cell(self, secret: bytes, lon: float, lat: float) -> tuple[tuple[int, int], tuple[float, float]]:
        """Return the number of a location's cell in the rotated grid, and the cell's centre in degrees."""
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
