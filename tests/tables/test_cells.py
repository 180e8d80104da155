"""Cells of a map are recognised by their values, and nothing else is taken for one."""

import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from geoind.tables.cells import cells_of, geohash, is_h3, maidenhead, quadkey, s2_leaf
from geoind.tables.units import utm
from tests.tables.cases import lonlat, plus_code

# A place, and what the libraries of their inventors, or close to them, say of it: s2sphere 0.2.5, pygeohash 3.5,
# mercantile 1.2, openlocationcode 1.0 and h3 4.5. The places lie on all six faces of the cube of S2.
KNOWN = [
    ((2.2945, 48.8584), 0x47E66FE1F36A36A5, "u09tun", "1202200110120003", "8FW4V75V+9R", 0x891FB46741BFFFF),
    ((151.2153, -33.8568), 0x6B12AE669072A21F, "r3gx2u", "3112301330022313", "4RRH46V8+74", 0x89BE0E35C0BFFFF),
    ((-78.5125, -0.2201), 0x91D599877DD4400D, "6rbntr", "2100100000303011", "67F3QFHQ+X2", 0x8966D33884BFFFF),
    ((-122.4783, 37.8199), 0x80858690648AA983, "9q8zhu", "0230102033302111", "849VRG9C+XM", 0x89283087023FFFF),
    ((25.7847, 71.1725), 0x45C84DA640658E45, "usdkfs", "1023023023012101", "CG375QFM+2V", 0x890123D814FFFFF),
    ((179.9, -77.85), 0xAF7DFF39B0BC9939, "pfpvje", "3313313313101323", "2VJX5W22+22", 0x89F3125B64FFFFF),
    ((36.8219, -1.2921), 0x182F10DEDC46C02F, "kzf0tu", "3001101022303133", "6GCRPR5C+5Q", 0x897A6E42CA3FFFF),
    ((77.2295, 28.6129), 0x390CE2DAA9A4364D, "ttnfv2", "1231213033101011", "7JWVJ67H+5R", 0x893DA1143D3FFFF),
]


@pytest.mark.parametrize(("place", "leaf", "hashed", "key", "code", "h3"), KNOWN)
def test_cells_are_those_of_their_inventors(
    place: tuple[float, float], leaf: int, hashed: str, key: str, code: str, h3: int
) -> None:
    assert s2_leaf(*place) >> 8 == leaf >> 8
    assert (geohash(*place), quadkey(*place, 16), plus_code(*place)) == (hashed, key, code)
    assert is_h3(h3)


@pytest.mark.parametrize("form", [str, int, "{:x}".format, "{:015x}".format])
def test_numbers_and_letters_by_chance_are_no_cells(form: type) -> None:
    rng = np.random.default_rng(4)
    truth = lonlat(24)
    for size in (2**20, 2**31, 2**60, 2**62):
        values = pa.array([form(number) for number in rng.integers(0, size, 24).tolist()])
        assert cells_of(values, truth, np.arange(24)) is None
        assert cells_of(values[:1], truth, np.arange(24)) is None


def test_cells_of_other_places_are_not_those_of_the_row() -> None:
    truth = lonlat(24)
    for tell in (geohash, lambda lon, lat: quadkey(lon, lat, 17), s2_leaf):
        cells = pa.array([tell(*place) for place in truth.tolist()])
        assert cells_of(cells, truth, np.arange(24)) is not None
        assert cells_of(cells, truth + 5, np.arange(24)) is None


def test_large_cells_are_towns_and_pass() -> None:
    truth = lonlat(24)
    town = [(s2_leaf(*place) & -(4**22)) | 4**22 for place in truth.tolist()]
    assert cells_of(pa.array(town), truth, np.arange(24)) is None


def test_geohashes_are_known_as_the_numbers_that_redis_keeps() -> None:
    # Palermo and Catania, in the documentation of GEOADD.
    places, scores = (
        np.array([[13.361389, 38.115556], [15.087269, 37.502669]]),
        [3479099956230698, 3479447370796909],
    )
    for column in (pa.array(scores), pa.array(scores, pa.uint64()), pa.array(map(str, scores))):
        assert cells_of(column, places, np.arange(2)) == "geohashes as numbers"
        assert cells_of(column, places[::-1] + 0.5, np.arange(2)) is None
    assert cells_of(pa.array([score + 2**52 for score in scores]), places, np.arange(2)) is None


def test_one_cell_in_all_rows_is_one() -> None:
    truth = lonlat(24)
    assert cells_of(pa.array(["8a1fb46741affff"] * 24), truth, np.arange(24)) == "H3 cells"
    assert cells_of(pa.array([None, "8FW4V75V+9R"]), truth, np.arange(2)) == "plus codes"


@pytest.mark.parametrize("lon", [-135.0, -45.0, 45.0, 135.0])
def test_a_place_on_the_edge_of_a_face_of_the_cube_is_in_a_cell_beside_it(lon: float) -> None:
    corner = math.degrees(math.atan(math.sqrt(0.5)))
    for lat in (0.0, 20.0, corner, np.nextafter(corner, 0), -corner, -20.0):
        beside = {s2_leaf(lon + 1e-7 * x, lat + 1e-7 * y) >> 32 for x in (-1, 1) for y in (-1, 1)}
        assert s2_leaf(lon, float(lat)) >> 32 in beside


def halves(value: float, low: float, high: float, count: int) -> list[int]:
    """Return on which side of the middle a value is, again and again."""
    sides = []
    for _ in range(count):
        middle = (low + high) / 2
        sides.append(int(value >= middle))
        low, high = (middle, high) if value >= middle else (low, middle)
    return sides


def hashed_by_halving(lon: float, lat: float, letters: int = 12) -> str:
    sides = zip(halves(lon, -180, 180, 30), halves(lat, -90, 90, 30), strict=True)
    bits = "".join(f"{east}{north}" for east, north in sides)
    return "".join("0123456789bcdefghjkmnpqrstuvwxyz"[int(bits[5 * at : 5 * at + 5], 2)] for at in range(letters))


def tile_by_halving(lon: float, lat: float, zoom: int) -> tuple[int, int]:
    """Return column and row of a web map's tile: the map is as high as it is wide, from 85.0511 degrees on."""
    height = math.degrees(math.log(math.tan(math.pi / 4 + math.radians(max(-89, min(89, lat))) / 2)))
    sides = halves(lon, -180, 180, zoom), [1 - side for side in halves(height, -180, 180, zoom)]
    east, south = (int("".join(map(str, side)), 2) for side in sides)
    return east, south


def tile_text(lon: float, lat: float, zoom: int) -> str:
    return "/".join(map(str, (zoom, *tile_by_halving(lon, lat, zoom))))


def key_by_halving(lon: float, lat: float, zoom: int) -> str:
    east, south = tile_by_halving(lon, lat, zoom)
    return "".join(str((east >> at & 1) + 2 * (south >> at & 1)) for at in reversed(range(zoom)))


def locator(lon: float, lat: float, signs: int = 12) -> str:
    """Return a Maidenhead locator by dividing a field into squares, these into subsquares, and so on."""
    rests = [(Fraction(lon) + 180) / 20, (Fraction(lat) + 90) / 10]
    result = ""
    for first, cells in (("A", 10), ("0", 24), ("A", 10), ("0", 24), ("A", 10), ("0", 1)):
        for axis in (0, 1):
            result += chr(ord(first) + int(rests[axis]))
            rests[axis] = rests[axis] % 1 * cells
    return result[:signs]


def encoded(lon: float, lat: float, scale: float = 1e5) -> str:
    """Return a way of one place as Google writes it, as its page describes it step by step."""
    result = ""
    for value in (lat, lon):
        number = round(value * scale) * 2
        number = number if number >= 0 else -number - 1
        chunks = [number % 32]
        while number >= 32:
            number //= 32
            chunks.append(number % 32)
        result += "".join(
            chr(chunk + (32 if chunk_at < len(chunks) - 1 else 0) + 63) for chunk_at, chunk in enumerate(chunks)
        )
    return result


def reference(lon: float, lat: float, digits: int = 5, east: int = 0, north: int = 0) -> str:
    """Return an MGRS reference, its digits moved by so many of the last one."""
    sides = utm(np.array([[lon, lat]]))[:, 0] % 1e5
    whole = [int(side) // 10 ** (5 - digits) + more for side, more in zip(sides, (east, north), strict=True)]
    return f"31UDQ{whole[0]:0{digits}}{whole[1]:0{digits}}"


def s2_cell(lon: float, lat: float, level: int) -> int:
    low = 1 << 2 * (30 - level)
    return s2_leaf(lon, lat) // (2 * low) * (2 * low) + low


WORLD = [
    [round(lon, 5), round(lat, 5)] for lon, lat in np.random.default_rng(9).uniform(-1, 1, (24, 2)) * [180, 80]
]
MADE: dict[str, tuple[str, Callable[[float, float], Any]]] = {
    "six letters": ("geohashes", lambda lon, lat: hashed_by_halving(lon, lat, letters=6)),
    "twelve letters": ("geohashes", hashed_by_halving),
    "capitals": ("geohashes", lambda lon, lat: hashed_by_halving(lon, lat).upper()),
    "fourteen digits": ("quadkeys", lambda lon, lat: key_by_halving(lon, lat, 14)),
    "thirty digits": ("quadkeys", lambda lon, lat: key_by_halving(lon, lat, 30)),
    "S2 tokens of sixteen digits": ("S2 cells", lambda lon, lat: f"{s2_cell(lon, lat, 12):016x}"),
    **{f"S2 numbers of level {level}": ("S2 cells", partial(s2_cell, level=level)) for level in range(12, 31)},
    "S2 numbers with a sign": ("S2 cells", lambda lon, lat: (s2_cell(lon, lat, 20) + 2**63) % 2**64 - 2**63),
    "S2 tokens": ("S2 cells", lambda lon, lat: f"{s2_cell(lon, lat, 15):016x}".rstrip("0")),
    "S2 tokens in capitals": ("S2 cells", lambda lon, lat: f"{s2_cell(lon, lat, 15):016X}".rstrip("0")),
    "eight signs": ("Maidenhead locators", lambda lon, lat: locator(lon, lat, signs=8)),
    "ten signs": ("Maidenhead locators", lambda lon, lat: locator(lon, lat, signs=10).lower()),
    "twelve signs": ("Maidenhead locators", locator),
    **{f"{digits} digits": ("MGRS references", partial(reference, digits=digits)) for digits in (3, 4, 5)},
    "MGRS with gaps": (
        "MGRS references",
        lambda lon, lat: re.sub("^(...)(..)(.{5})", r"\1 \2 \3 ", reference(lon, lat)),
    ),
    "a digit more": ("MGRS references", lambda lon, lat: reference(lon, lat, 4, east=1)),
    "a digit less": ("MGRS references", lambda lon, lat: reference(lon, lat, 4, north=-1)),
    **{f"tiles of level {zoom}": ("tiles of a map", partial(tile_text, zoom=zoom)) for zoom in (14, 17, 30)},
    "ways": ("encoded ways", encoded),
    "finer ways": ("encoded ways", lambda lon, lat: encoded(lon, lat, scale=1e6)),
    "long ways": ("encoded ways", lambda lon, lat: encoded(lon, lat) + "_ibE_seK" * 9),
    "ways from close by": ("encoded ways", lambda lon, lat: encoded(lon - 1e-5, lat + 1e-5)),
}
NOT_MADE: dict[str, Callable[[float, float], Any]] = {
    "five letters are a town": lambda lon, lat: hashed_by_halving(lon, lat, letters=5),
    "thirteen letters": lambda lon, lat: hashed_by_halving(lon, lat) + "b",
    "thirteen digits are a town": lambda lon, lat: key_by_halving(lon, lat, 13),
    "one level after another": lambda lon, lat: key_by_halving(lon, lat, 17)[1:],
    "S2 tokens of towns": lambda lon, lat: f"{s2_cell(lon, lat, 11):016x}",
    "S2 numbers of towns": lambda lon, lat: s2_cell(lon, lat, 11) >> 1,
    "between two levels": lambda lon, lat: str(s2_leaf(lon, lat) >> 22 << 22 | 1 << 21),
    "six signs are a town": lambda lon, lat: locator(lon, lat, signs=6),
    "two digits more": lambda lon, lat: reference(lon, lat, 4, east=2),
    "two digits less": lambda lon, lat: reference(lon, lat, 4, north=-2),
    "two digits are a town": lambda lon, lat: reference(lon, lat, 2),
    "seven digits": lambda lon, lat: reference(lon, lat, 4)[:-1],
    "tiles of towns": partial(tile_text, zoom=13),
    "tiles that are too small": partial(tile_text, zoom=31),
    "another row of tiles": lambda lon, lat: f"17/{tile_by_halving(lon, lat, 17)[0]}/5",
    "another column of tiles": lambda lon, lat: f"17/5/{tile_by_halving(lon, lat, 17)[1]}",
    "ways from further": lambda lon, lat: encoded(lon, lat + 4e-5),
    "ways from further east": lambda lon, lat: encoded(lon + 4e-5, lat),
    "ways of one number": lambda lon, lat: "`" * 5 + encoded(lon, lat)[:1],
    "ways without an end": lambda lon, lat: "`" * 30,  # noqa: ARG005
}


@pytest.mark.parametrize("case", MADE)
def test_codes_of_places_all_over_the_world_are_known(case: str) -> None:
    kind, make = MADE[case]
    codes = [str(make(*place)) for place in WORLD]
    assert cells_of(pa.array(codes), np.array(WORLD), np.arange(24)) == kind
    # Those of other places, or of one of them, are not.
    assert cells_of(pa.array(codes), np.roll(WORLD, 1, axis=0), np.arange(24)) is None
    if kind != "MGRS references":
        assert cells_of(pa.array(codes[:1] * 24), np.array(WORLD), np.arange(24)) is None
    for place in WORLD:
        assert cells_of(pa.array([str(make(*place))]), np.array([place]), np.arange(1)) == kind


@pytest.mark.parametrize("case", NOT_MADE)
def test_what_is_only_nearly_such_a_code_is_none(case: str) -> None:
    codes = [NOT_MADE[case](*place) for place in WORLD]
    assert cells_of(pa.array(codes), np.array(WORLD), np.arange(24)) is None


@pytest.mark.parametrize("lon", [-180.0, 0.0, 180.0])
@pytest.mark.parametrize("lat", [-90.0, -86.0, -85.0512, -85.0511, 0.0, 85.0511, 85.0512, 89.0, 90.0])
def test_places_at_the_ends_of_the_world_are_in_its_last_cells(lon: float, lat: float) -> None:
    assert geohash(lon, lat) == hashed_by_halving(lon, lat, 6)
    for zoom in (1, 14, 17, 24):
        assert quadkey(lon, lat, zoom) == key_by_halving(lon, lat, zoom)
    within = min(lon, 179.9999), min(lat, 89.9999)
    assert maidenhead(lon, lat) == locator(*within, signs=8)


def answers(words: list[str], places: Any = WORLD, rows: Any = None) -> str | None:
    return cells_of(pa.array(words), np.array(places), np.arange(len(words)) if rows is None else np.array(rows))


RIGHT = [hashed_by_halving(*place) for place in WORLD]
WRONG_ONES = [hashed_by_halving(-lon, -lat) for lon, lat in WORLD]


def test_more_than_half_of_the_different_codes_must_be_right() -> None:
    half = [right if row % 2 else wrong for row, (right, wrong) in enumerate(zip(RIGHT, WRONG_ONES, strict=True))]
    assert answers(half) is None
    assert answers([*half[:-2], *RIGHT[-2:]]) == "geohashes"
    # A code that is there often is one.
    assert answers([*RIGHT[:2], *[WRONG_ONES[2]] * 22]) == "geohashes"
    # What cannot be such a code does not count.
    assert answers([*RIGHT[:2], *["unknown place", "aiol!"] * 11]) == "geohashes"


def test_after_three_wrong_codes_the_rest_is_not_looked_at() -> None:
    assert answers([*WRONG_ONES[:2], *RIGHT[2:]]) == "geohashes"
    assert answers([*WRONG_ONES[:1], RIGHT[1], *WRONG_ONES[2:4], *RIGHT[4:]]) == "geohashes"
    assert answers([*WRONG_ONES[:3], *RIGHT[3:]]) is None


def test_one_of_the_first_four_texts_must_look_like_a_code() -> None:
    assert answers(["-"] * 3 + RIGHT[3:]) == "geohashes"
    assert answers(["-"] * 4 + RIGHT[4:]) is None


def test_the_first_codes_are_looked_at_wherever_they_are() -> None:
    places = np.tile(WORLD, (3, 1))
    words = [None] * 30 + RIGHT[6:] + [""] * 24
    assert cells_of(pa.array(words), places, np.arange(72)) == "geohashes"
    assert cells_of(pa.array(words[30:]), places, np.arange(30, 72)) == "geohashes"
    assert cells_of(pa.array(words), places[::-1], np.arange(72)) is None
    assert cells_of(pa.array(words), places[::-1], np.arange(72)[::-1]) == "geohashes"
    missing = places.copy()
    missing[2:] = np.nan
    assert cells_of(pa.array([*RIGHT[:2], *WRONG_ONES]), missing, np.arange(26)) == "geohashes"
    assert cells_of(pa.array(RIGHT), np.full((24, 2), np.nan), np.arange(24)) is None
    assert cells_of(pa.array([None] * 5, pa.string()), places, np.arange(5)) is None
    # So many values are looked at, and no more.
    half = [right if row % 2 else wrong for row, (right, wrong) in enumerate(zip(RIGHT, WRONG_ONES, strict=True))]
    assert cells_of(pa.array([*half, *RIGHT]), places, np.arange(48)) is None


def test_only_text_and_numbers_of_64_bits_hold_codes() -> None:
    numbers = [s2_leaf(*place) for place in WORLD]
    places, rows = np.array(WORLD), np.arange(24)
    assert cells_of(pa.array([number - (number >> 63 << 64) for number in numbers]), places, rows) == "S2 cells"
    assert cells_of(pa.array(numbers, pa.uint64()), places, rows) == "S2 cells"
    assert cells_of(pa.array(np.array(numbers, float)), places, rows) is None
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.binary()):
        assert (cells_of(pa.array(RIGHT, kind), places, rows) is None) == (kind == pa.binary())


def h3_cell(level: int, base: int, digits: Sequence[int]) -> int:
    """Return an H3 cell as its page describes it: a mode, a level, a base cell, a digit for each level, sevens."""
    text = "0" + "0001" + "000" + f"{level:04b}" + f"{base:07b}"
    return int(text + "".join(f"{digit:03b}" for digit in digits) + "111" * (15 - len(digits)), 2)


@pytest.mark.parametrize("level", range(16))
def test_an_h3_cell_has_a_digit_for_each_level_and_then_sevens(level: int) -> None:
    digits = np.random.default_rng(level).integers(0, 7, level).tolist()
    for base in (0, 57, 121):
        cell = h3_cell(level, base, digits)
        assert is_h3(cell)
        for bit in (*range(56, 59), 59, *range(60, 64)):
            assert not is_h3(cell ^ 1 << bit)
        for digit in range(15):
            free = 3 * (14 - digit)
            others = [cell & ~(7 << free) | value << free for value in range(8)]
            assert [is_h3(other) for other in others] == [digit < level] * 7 + [digit >= level]
    for base in (122, 127):
        assert not is_h3(h3_cell(level, base, digits))


def test_one_h3_cell_in_all_rows_is_one_where_chance_would_not_end_it_with_sevens() -> None:
    cells = {level: [h3_cell(level, 15, [last] * level) for last in (1, 2)] for level in (9, 12, 13, 15)}
    for level, (one, other) in cells.items():
        for form in (str, "{:x}".format):
            assert answers([form(one)]) == answers([form(one)] * 24) == ("H3 cells" if level <= 12 else None)
            assert answers([form(one), form(other)]) == "H3 cells"
            assert answers([form(one), "tree", form(other)]) is None
