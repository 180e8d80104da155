"""Coordinates in every usual unit, against somebody else's numbers."""

import math
from fractions import Fraction

import numpy as np
import pyproj
import pytest

from geoind.tables.units import METRES, NAMES, NEAR, NEARNESS, in_every_unit, utm

PLACES = [
    *(
        (2.2945, 48.8584),
        (-70.6, -33.4),
        (0.1, 83.9),
        (-179.9, 0.0),
        (179.999, -79.5),
        (36.82, -1.29),
        (-0.5, 0.25),
    ),
    *((5.999999, 60.5), (6.0, 60.5), (-120.0, -0.000001), (8.123456789, 45.987654321), (-0.25, -12.75)),
]
EXACT = Fraction(1, 10**9)


def shares(value: float) -> dict[str, float]:
    """Return the parts of degrees, by whole numbers of 1e-9 degrees."""
    billionths = abs(round(Fraction(value) / EXACT))
    whole, rest = divmod(billionths, 10**9)
    minutes = Fraction(rest, 10**9) * 60
    seconds = minutes % 1 * 60
    return {
        "degrees and minutes": float(whole * 100 + minutes),
        "degrees, minutes and seconds": float(whole * 10_000 + minutes // 1 * 100 + seconds),
        "degrees without the whole ones": float(Fraction(rest, 10**9)),
        "minutes without the degrees": float(minutes),
        "seconds without degrees and minutes": float(seconds),
    }


def wanted(lon: float, lat: float) -> dict[str, float]:
    """Return the size of a place in every unit, by its name: angles by hand, metres by PROJ."""
    zone = min(int((lon + 180) // 6) + 1, 60)
    proj = {
        "Web Mercator": pyproj.Transformer.from_crs(4326, 3857, always_xy=True).transform(lon, lat),
        "UTM": pyproj.Transformer.from_crs(4326, (32700 if lat < 0 else 32600) + zone, always_xy=True).transform(
            lon, lat
        ),
        "geocentric": pyproj.Transformer.from_crs(4979, 4978, always_xy=True).transform(lon, lat, 0.0),
    }
    result = {}
    for axis, value in (("longitude", lon), ("latitude", lat)):
        for unit, size in {
            "degrees": value,
            "radians": math.radians(value),
            "gradians": value * 400 / 360,
            "arc minutes": value * 60,
            "arc seconds": value * 60 * 60,
            "thousandths of an arc second": value * 60 * 60 * 1000,
            "semicircles": value / 360 * 2**32,
            "1e-2 degrees": value * 100,
            "1e-3 degrees": value * 1_000,
            "1e-4 degrees": value * 10_000,
            "1e-5 degrees": value * 100_000,
            "1e-6 degrees": value * 1_000_000,
            "1e-7 degrees": value * 10_000_000,
            "1e-8 degrees": value * 100_000_000,
            "1e-9 degrees": value * 1_000_000_000,
            **shares(value),
        }.items():
            result[f"the {axis} in {unit}"] = abs(size)
        result[f"the sine of the {axis}"] = abs(math.sin(math.radians(value)))
        result[f"the cosine of the {axis}"] = abs(math.cos(math.radians(value)))
        result[f"the {axis} in metres of Web Mercator"] = abs(proj["Web Mercator"][axis == "latitude"])
    result["the longitude in degrees from 0 to 360"] = lon if lon >= 0 else lon + 360
    result["the longitude counted from the antimeridian"] = lon + 180
    result["the latitude counted from the south pole"] = lat + 90
    result["the latitude counted from the north pole"] = 90 - lat
    result["the easting of UTM"], result["the northing of UTM"] = proj["UTM"]
    for axis, metres in zip("xyz", proj["geocentric"], strict=True):
        result[f"the geocentric {axis} in metres"] = abs(metres)
    return result


@pytest.mark.parametrize(("lon", "lat"), PLACES)
def test_every_unit_is_what_its_name_says(lon: float, lat: float) -> None:
    sizes = dict(zip(NAMES, in_every_unit(np.array([[lon, lat]]))[:, 0], strict=False))
    expected = wanted(lon, lat)
    assert sizes.keys() == expected.keys()
    for name, size in expected.items():
        metres = 1e-4 if "UTM" in name or "metres" in name else 3e-7
        assert sizes[name] == pytest.approx(size, rel=1e-9, abs=metres), name


def test_the_last_two_names_are_those_of_the_tables_own_crs() -> None:
    assert NAMES[-2:] == ["the x of the table's CRS", "the y of the table's CRS"]
    assert len(NAMES) == len(NEARNESS) + 2 == len(set(NAMES))


def test_a_copy_is_as_near_in_every_unit_as_half_a_hundredth_of_a_degree_on_the_ground() -> None:
    assert NEAR == 0.0051
    assert pytest.approx(2 * math.pi * 6_378_137 / 360 * 0.0051, rel=1e-4) == METRES
    # How much a size changes at most with a degree: where angles or metres change fastest.
    for name, near in zip(NAMES, NEARNESS, strict=False):
        unit = name.split(" in ")[-1].removeprefix("the ")
        per_degree = {
            "radians": math.pi / 180,
            "gradians": 10 / 9,
            **dict.fromkeys(["arc minutes", "degrees and minutes", "minutes without the degrees"], 60.0),
            **dict.fromkeys(
                ["arc seconds", "degrees, minutes and seconds", "seconds without degrees and minutes"], 3600.0
            ),
            "thousandths of an arc second": 3.6e6,
            "semicircles": 2**31 / 180,
            **{f"1e-{power} degrees": 10.0**power for power in range(2, 10)},
        }.get(unit)
        if "sine" in name:
            per_degree = math.pi / 180
        elif per_degree is None:
            per_degree = METRES / NEAR if "metres" in name or "UTM" in name else 1.0
        assert near == pytest.approx(0.0051 * per_degree, rel=1e-9), name


def test_the_northing_jumps_at_the_equator_and_poles_and_missing_places_make_no_alarm() -> None:
    lonlat = np.array([[3.0, 0.0], [3.0, -1e-9], [3.0, 90.0], [3.0, -90.0], [np.nan, np.nan], [180.0, 10.0]])
    east, north = utm(lonlat)
    assert north[0] == pytest.approx(0, abs=1e-6)
    assert north[1] == pytest.approx(1e7, abs=1e-3)
    assert east[:4] == pytest.approx(500_000)
    assert north[2] == pytest.approx(9_997_964.943, abs=1e-3)
    assert north[3] == pytest.approx(1e7 - 9_997_964.943, abs=1e-3)
    assert east[5] == pytest.approx(utm(np.array([[-180.0, 10.0]]))[0, 0])
    sizes = in_every_unit(lonlat)
    assert np.isnan(sizes[:, 4]).all()
    assert not np.isnan(sizes[:, 2:4]).any()
