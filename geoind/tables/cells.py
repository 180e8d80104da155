"""Codes of small areas on the map, recognised by what they say: geohashes, plus codes, quadkeys, S2, H3, MGRS, ...

Most are computed from the true place and compared. Plus codes and H3 cells are known by their form, which nothing
else has.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile

import numpy as np
import pyarrow as pa

from geoind.arrays import FloatArray, IntArray
from geoind.tables.places import is_text
from geoind.tables.units import utm

__all__ = ["cells_of", "geohash", "geohash_bits", "is_h3", "maidenhead", "quadkey", "s2_leaf"]

LOOKED_AT = 24
"""So many values of a column."""

WRONG = 3
"""After so many cells of other places the rest will be no better."""

FORM = re.compile(
    r"-?[0-9A-Za-z]{6,30}|[^ ]*\+.*|[?-~]{6,}|[0-9]+/[0-9]+/[0-9]+|[0-9]{1,2}[A-Za-z] ?[A-Za-z]{2} .*"
)
"""What none of the codes does without: most columns are done with after a look at their first values."""

LETTERS = "0123456789bcdefghjkmnpqrstuvwxyz"
GEOHASH = re.compile(f"[{LETTERS}]{{6,12}}")
GEOHASH_NUMBER = re.compile("[0-9]{6,16}")
POLES = (90.0, 85.05112878)
"""Where the latitudes of geohashes end: those of Redis where a web map does."""
PLUS_CODE = re.compile(r"(?:[2-9CFGHJMPQRVWX]{2}){2,4}\+[2-9CFGHJMPQRVWX]{2,7}(?:[ ,].*)?")
QUADKEY = re.compile("[0-3]{14,30}")
HEXADECIMAL = re.compile("[0-9a-f]{6,16}")
MAIDENHEAD = re.compile("[A-R]{2}[0-9]{2}[A-X]{2}[0-9]{2}(?:[A-X]{2}(?:[0-9]{2})?)?")
MGRS = re.compile("[0-9]{1,2}[C-HJ-NP-X][A-HJ-NP-Z][A-HJ-NP-V]((?:[0-9]{2}){3,5})")
TILE = re.compile("([0-9]{2})/([0-9]+)/([0-9]+)")
POLYLINE = re.compile("[?-~]{6,}")

S2_LEVEL = 12
"""Cells of this level have two kilometres; larger ones are towns."""
S2_ORDER = ((0, 1, 3, 2), (0, 3, 1, 2), (2, 3, 1, 0), (2, 1, 3, 0))
S2_TURN = (1, 0, 0, 3)


def cells_of(column: pa.Array, lonlat: FloatArray, rows: IntArray) -> str | None:
    """Return what the cells are called that a column of text or of whole numbers holds, None where it holds none.

    Parameters
    ----------
    column : pyarrow.Array
        Without members of its own.
    lonlat : (n, 2) array
        True places, in degrees.
    rows : array of int
        The place of each value.
    """
    kind = column.type
    if not (pa.types.is_int64(kind) or pa.types.is_uint64(kind) or is_text(kind)):
        return None
    if column.null_count:
        present = np.flatnonzero(np.asarray(column.is_valid()))[:LOOKED_AT]
        column, rows = column.take(pa.array(present)), rows[present]
    texts = [str(value) for value in column.slice(0, LOOKED_AT).to_pylist()]
    places = lonlat[rows[: len(texts)]].tolist()
    found = [(text, place) for text, place in zip(texts, places, strict=True) if text and math.isfinite(place[0])]
    if not found:
        return None
    words = [text for text, _ in found]
    if not any(map(FORM.fullmatch, words[: WRONG + 1])):
        return None
    if all(PLUS_CODE.fullmatch(text.upper()) for text in words):
        return "plus codes"
    numbers = list(takewhile(bool, (next(filter(is_h3, _numbers(text)), 0) for text in words)))
    # One number alone may be of that form by chance, unless its cell is one of those that end with sevens.
    if len(numbers) == len(words) and (len(set(numbers)) > 1 or numbers[0] & 511 == 511):
        return "H3 cells"
    return next((name for name, tells in COMPARED.items() if _agree(found, tells)), None)


def _agree(found: Sequence[tuple[str, Sequence[float]]], tells: "Tells") -> bool:
    """Return whether most of the different texts that may be cells are those of their places."""
    answers: dict[str, bool] = {}
    for text, (lon, lat) in found:
        right = tells(text, lon, lat)
        if right is not None:
            answers[text] = right
        if len(answers) == WRONG and not any(answers.values()):
            return False
    return sum(answers.values()) * 2 > len(answers)


Tells = Callable[[str, float, float], bool | None]
"""From a text and its place to whether it is the cell of that place; None where it is no such cell at all."""


def _is_geohash(text: str, lon: float, lat: float) -> bool | None:
    return geohash(lon, lat) == text.lower()[:6] if GEOHASH.fullmatch(text.lower()) else None


def _is_geohash_number(text: str, lon: float, lat: float) -> bool | None:
    if not GEOHASH_NUMBER.fullmatch(text) or int(text) >= 2**52:
        return None
    return f"{int(text):052b}"[:30] in (geohash_bits(lon, lat, pole) for pole in POLES)


def _is_quadkey(text: str, lon: float, lat: float) -> bool | None:
    return quadkey(lon, lat, len(text)) == text if QUADKEY.fullmatch(text) else None


def _is_s2(text: str, lon: float, lat: float) -> bool | None:
    # Of a cell's number the lowest bit that is set tells its level.
    cells = [(number, number & -number) for number in _numbers(text)]
    cells = [(number, low) for number, low in cells if low <= 4 ** (30 - S2_LEVEL) and low.bit_length() % 2]
    if not cells:
        return None
    leaf = s2_leaf(lon, lat)
    return any((leaf & -low) | low == number for number, low in cells)


def _is_maidenhead(text: str, lon: float, lat: float) -> bool | None:
    return maidenhead(lon, lat) == text.upper()[:8] if MAIDENHEAD.fullmatch(text.upper()) else None


def _is_mgrs(text: str, lon: float, lat: float) -> bool | None:
    match = MGRS.fullmatch(text.upper().replace(" ", ""))
    if match is None:
        return None
    half = len(match[1]) // 2
    east, north = utm(np.array([[lon, lat]]))[:, 0] % 1e5 // 10 ** (5 - half)
    # The last digit is rounded here, and cut off there.
    return bool(abs(east - int(match[1][:half])) <= 1 and abs(north - int(match[1][half:])) <= 1)


def _is_tile(text: str, lon: float, lat: float) -> bool | None:
    match = TILE.fullmatch(text)
    if match is None or not 14 <= int(match[1]) <= 30:
        return None
    key = quadkey(lon, lat, int(match[1]))
    east = int("".join(str(int(digit) & 1) for digit in key), 2)
    south = int("".join(str(int(digit) >> 1) for digit in key), 2)
    return (east, south) == (int(match[2]), int(match[3]))


def _is_polyline(text: str, lon: float, lat: float) -> bool | None:
    """Tell whether a way as Google, OSRM and Strava write it begins at the place."""
    if not POLYLINE.fullmatch(text):
        return None
    numbers: list[int] = []
    number = shift = 0
    # Two coordinates are no longer: a long text that is none must not take long.
    for sign in text[:16]:
        bits = ord(sign) - 63
        number |= (bits & 31) << shift
        shift += 5
        if bits < 32:
            numbers.append(~(number >> 1) if number & 1 else number >> 1)
            number = shift = 0
        if len(numbers) == 2:
            break
    else:
        return None
    return any(abs(numbers[0] / scale - lat) + abs(numbers[1] / scale - lon) < 3e-5 for scale in (1e5, 1e6))


COMPARED: dict[str, Tells] = {
    "geohashes": _is_geohash,
    "geohashes as numbers": _is_geohash_number,
    "quadkeys": _is_quadkey,
    "S2 cells": _is_s2,
    "Maidenhead locators": _is_maidenhead,
    "MGRS references": _is_mgrs,
    "tiles of a map": _is_tile,
    "encoded ways": _is_polyline,
}


def _numbers(text: str) -> Iterator[int]:
    """Yield what a text is as a number of 64 bits: in decimal digits, and as an S2 token or H3 index in others."""
    if re.fullmatch(r"-?[0-9]{15,20}", text):
        yield int(text) % 2**64
    if HEXADECIMAL.fullmatch(text.lower()):
        yield int(text.ljust(16, "0"), 16)
        if len(text) == 15:
            yield int(text, 16)


def maidenhead(lon: float, lat: float) -> str:
    """Return the first eight signs of a place's Maidenhead locator, half a kilometre.

    Examples
    --------
    >>> maidenhead(2.2945, 48.8584)
    'JN18DU56'
    """
    sides = _steps((lon + 180) / 360, 43_200), _steps((lat + 90) / 180, 43_200)
    signs = ""
    for size, cells, first in ((2400, 18, "A"), (240, 10, "0"), (10, 24, "A"), (1, 10, "0")):
        signs += "".join(chr(ord(first) + side // size % cells) for side in sides)
    return signs


def geohash(lon: float, lat: float) -> str:
    """Return the first six letters of a place's geohash.

    Examples
    --------
    >>> geohash(2.2945, 48.8584)
    'u09tun'
    """
    bits = geohash_bits(lon, lat, 90)
    return "".join(LETTERS[int(bits[at : at + 5], 2)] for at in range(0, 30, 5))


def geohash_bits(lon: float, lat: float, pole: float) -> str:
    """Return the first thirty bits of a place's geohash, whose latitudes go from one pole to the other."""
    east, north = _steps((lon + 180) / 360, 2**15), _steps((lat + pole) / (2 * pole), 2**15)
    return "".join(map("".join, zip(f"{east:015b}", f"{north:015b}", strict=True)))


def quadkey(lon: float, lat: float, zoom: int) -> str:
    """Return the quadkey of the tile of a web map in which a place is.

    Examples
    --------
    >>> quadkey(2.2945, 48.8584, 8)
    '12022001'
    """
    size = 2**zoom
    rise = math.asinh(math.tan(math.radians(lat)))
    column, row = _steps((lon + 180) / 360, size), _steps(0.5 - rise / math.tau, size)
    return "".join(str((column >> at & 1) + 2 * (row >> at & 1)) for at in reversed(range(zoom)))


def is_h3(number: int) -> bool:
    """Return whether a number has the form of an H3 cell: a level, a base cell, its digits, and then sevens.

    Examples
    --------
    >>> is_h3(0x8A1FB466659FFFF), is_h3(0x8A1FB4666590000)
    (True, False)
    """
    if number >> 56 != 8 or number >> 45 & 127 > 121:
        return False
    level = number >> 52 & 15
    digits = [number >> 3 * (14 - at) & 7 for at in range(15)]
    return all((digit == 7) == (at >= level) for at, digit in enumerate(digits))


def s2_leaf(lon: float, lat: float) -> int:
    """Return the number of the smallest S2 cell around a place.

    The Earth is projected on a cube; on each face a Hilbert curve goes through the cells.

    Examples
    --------
    >>> f"{s2_leaf(2.2945, 48.8584):x}"
    '47e66fe1f36a36a5'
    """
    around, up = math.radians(lon), math.radians(lat)
    x, y, z = math.cos(up) * math.cos(around), math.cos(up) * math.sin(around), math.sin(up)
    axis = max(range(3), key=lambda number: abs((x, y, z)[number]))
    face = axis + 3 * ((x, y, z)[axis] < 0)
    across = (
        lambda: (y / x, z / x),
        lambda: (-x / y, z / y),
        lambda: (-x / z, -y / z),
        lambda: (z / x, y / x),
        lambda: (z / y, -x / y),
        lambda: (-y / z, -x / z),
    )[face]()
    column, row = (_steps(_even(part), 2**30) for part in across)
    position, turned = 0, face & 1
    for at in reversed(range(30)):
        step = S2_ORDER[turned][2 * (column >> at & 1) + (row >> at & 1)]
        position, turned = 4 * position + step, turned ^ S2_TURN[step]
    return face << 61 | position << 1 | 1


def _even(part: float) -> float:
    """Return a coordinate on a face of the cube from 0 to 1, such that cells have nearly the same size."""
    return 0.5 * math.sqrt(1 + 3 * part) if part >= 0 else 1 - 0.5 * math.sqrt(1 - 3 * part)


def _steps(part: float, count: int) -> int:
    """Return in which of so many steps from 0 to 1 a part is, the first or the last where it is outside."""
    return min(max(int(part * count), 0), count - 1)
