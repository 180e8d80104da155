"""Cells of a map are recognised by their values, and nothing else is taken for one."""

import math

import numpy as np
import pyarrow as pa
import pytest

from geoind.tables.cells import cells_of, geohash, is_h3, quadkey, s2_leaf
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
