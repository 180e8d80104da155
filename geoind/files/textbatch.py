"""Records of text with two holes, for longitude and latitude: what all text formats have in common."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from geoind.arrays import FloatArray

__all__ = ["BATCH_BYTES", "BadRecordError", "Problem", "TextBatch", "degrees", "place"]

BATCH_BYTES = 1 << 20
"""Text handled at once."""


class BadRecordError(Exception):
    """A record that cannot be obfuscated; the message is the reason and never quotes the record."""


class Problem(NamedTuple):
    """A bad record: where it starts, why it is bad, and what it is."""

    line: int
    reason: str
    record: bytes


@dataclass
class TextBatch:
    """Some records of a file, in order, as pieces of text to be joined by `glue`.

    Parallel lists, because a tuple per record would keep Python's garbage collector busy.

    Attributes
    ----------
    records, endings : list of pieces, list of bytes
        Everything that is to be written.
    holes, spots : list of pieces, list of (position of the longitude, position of the latitude)
        The records that have coordinates, and where.
    lons, lats, labels : list
        The truth of each hole and, where noise is keyed, the record's identity.
    problems : list of Problem
        The records that are not to be written.
    """

    glue: bytes = b""
    records: list[list[bytes]] = field(default_factory=list)
    endings: list[bytes] = field(default_factory=list)
    holes: list[list[bytes]] = field(default_factory=list)
    spots: list[tuple[int, int]] = field(default_factory=list)
    lons: list[float] = field(default_factory=list)
    lats: list[float] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    size: int = 0

    def add_text(self, text: bytes) -> None:
        """Add text that stays as it is."""
        self.records.append([text])
        self.endings.append(b"")
        self.size += len(text)

    def add_place(
        self, pieces: list[bytes], spots: tuple[int, int], lon: float, lat: float, ending: bytes = b""
    ) -> None:
        """Add a record with its truth, and where in its pieces the report goes."""
        self.records.append(pieces)
        self.endings.append(ending)
        self.holes.append(pieces)
        self.spots.append(spots)
        self.lons.append(lon)
        self.lats.append(lat)

    def drop_from(self, count: int) -> None:
        """Remove the text that was added after the first `count` records."""
        del self.records[count:], self.endings[count:]

    @property
    def lonlat(self) -> FloatArray:
        """The truth, as an array."""
        return np.column_stack([np.array(self.lons, np.float64), np.array(self.lats, np.float64)])

    def filled(self, reports: FloatArray, decimals: int) -> list[bytes]:
        """Return the text with reports in the holes."""
        number = f"%.{decimals}f".encode()
        lons, lats = reports[:, 0].tolist(), reports[:, 1].tolist()
        for pieces, (lon_at, lat_at), lon, lat in zip(self.holes, self.spots, lons, lats, strict=True):
            pieces[lon_at] = number % lon
            pieces[lat_at] = number % lat
        join = self.glue.join
        return [join(pieces) + ending for pieces, ending in zip(self.records, self.endings, strict=True)]


def degrees(text: bytes) -> float:
    """Return the number that a field holds."""
    try:
        # Python would read 4_8.5 as a number; no other reader of the file would.
        return float(text) if b"_" not in text else float("nan")
    except ValueError:
        return float("nan")


def place(lon: float, lat: float) -> tuple[float, float]:
    """Return the two coordinates, checked."""
    if not (-180 <= lon <= 180 and -90 <= lat <= 90):
        for value, name, limit in ((lon, "longitude", 180), (lat, "latitude", 90)):
            if not abs(value) < float("inf"):
                raise BadRecordError(f"the {name} must be a finite number")
            if abs(value) > limit:
                raise BadRecordError(f"|{name}| must be at most {limit}")
    return lon, lat
