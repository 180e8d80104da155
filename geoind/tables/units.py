"""True places in every usual unit: angles, parts of angles, and metres of the projections that everybody uses."""

import math

import numpy as np

from geoind.arrays import FloatArray

__all__ = ["METRES", "NAMES", "NEAR", "NEARNESS", "in_every_unit", "utm"]

NEAR = 0.0051
"""Degrees: a coordinate rounded to two decimals, half a kilometre, is still a copy."""
METRES = 111_320.0 * NEAR
EARTH = 6_378_137.0
ECCENTRICITY = 0.0818191908426215
"""Of WGS 84, as its radius."""
RADIUS = 0.9996 * 6_367_449.145823415
SERIES = (8.377318206e-4, 7.608527774e-7, 1.197645503e-9)
"""Krüger's series of the transverse Mercator projection, for WGS 84."""

UNITS = {
    "degrees": 1.0,
    "radians": math.pi / 180,
    "gradians": 1 / 0.9,
    "arc minutes": 60.0,
    "arc seconds": 3600.0,
    "thousandths of an arc second": 3.6e6,
    "semicircles": 2**31 / 180,
    **{f"1e-{power} degrees": 10.0**power for power in range(2, 10)},
}
PARTS = {
    "degrees and minutes": 60.0,
    "degrees, minutes and seconds": 3600.0,
    "degrees without the whole ones": 1.0,
    "minutes without the degrees": 60.0,
    "seconds without degrees and minutes": 3600.0,
}
"""Angles of which digits are put side by side, 4851.5047 or 485130.28, or left out: how many are a degree."""

AXES = ("longitude", "latitude")
FACTORS = np.array(list(UNITS.values()))
NAMES = [
    *(f"the {axis} in {unit}" for unit in (*UNITS, *PARTS) for axis in AXES),
    "the longitude in degrees from 0 to 360",
    "the longitude counted from the antimeridian",
    "the latitude counted from the south pole",
    "the latitude counted from the north pole",
    *(f"the {function} of the {axis}" for function in ("sine", "cosine") for axis in AXES),
    *(f"the {axis} in metres of Web Mercator" for axis in AXES),
    *(f"the {axis} of UTM" for axis in ("easting", "northing")),
    *(f"the geocentric {axis} in metres" for axis in "xyz"),
    *(f"the {axis} of the table's CRS" for axis in "xy"),
]
NEARNESS = [
    *np.repeat(NEAR * FACTORS, 2),
    *np.repeat(NEAR * np.array(list(PARTS.values())), 2),
    *[NEAR] * 4,
    *[math.radians(NEAR)] * 4,
    *[METRES] * 7,
]
"""How near a copy is to its coordinate, at most, in the order of the names but for the table's CRS."""


def in_every_unit(lonlat: FloatArray) -> FloatArray:
    """Return the sizes of (n, 2) degrees in every unit, a row for each but those of the table's CRS.

    Examples
    --------
    >>> sizes = in_every_unit(np.array([[-2.5, 48.5]]))[:, 0]
    >>> [float(sizes[NAMES.index(f"the latitude in {unit}")]) for unit in ("degrees", "degrees and minutes")]
    [48.5, 4830.0]
    """
    degrees = np.abs(lonlat.T)
    # 70.6 degrees are 36 minutes more than 70, not 35 minutes and 60 seconds.
    seconds = np.round(degrees * 3600, 8)
    whole, minutes = seconds // 3600, seconds % 3600 / 60
    lon, lat = lonlat.T
    angles = np.radians(lonlat.T)
    rows = [
        (FACTORS[:, None, None] * degrees).reshape(-1, len(lonlat)),
        whole * 100 + minutes,
        whole * 10_000 + np.floor(minutes) * 100 + seconds % 60,
        degrees % 1,
        minutes,
        seconds % 60,
        lon % 360,
        lon + 180,
        90 + lat,
        90 - lat,
        np.abs(np.sin(angles)),
        np.abs(np.cos(angles)),
        np.abs(_mercator(lonlat)),
        np.abs(utm(lonlat)),
        np.abs(_geocentric(lonlat)),
    ]
    return np.vstack(rows)


def utm(lonlat: FloatArray) -> FloatArray:
    """Return eastings and northings in metres, each place in its own zone of six degrees.

    Three terms of Krüger's series, right to a tenth of a millimetre within a zone.

    Examples
    --------
    >>> np.round(utm(np.array([[2.2945, 48.8584]])), 1).T.tolist()
    [[448252.0, 5411954.9]]
    """
    lon, lat = lonlat.T
    across = np.radians(lon - (6 * np.floor((lon + 180) / 6) - 177))
    sine, along = np.sin(np.radians(lat)), np.cos(across)
    with np.errstate(all="ignore"):
        upright = np.sinh(np.arctanh(sine) - ECCENTRICITY * np.arctanh(ECCENTRICITY * sine))
        sphere = np.arctan2(upright, along) + 1j * np.arcsinh(np.sin(across) / np.hypot(upright, along))
        # The sine of twice, four times and six times the number, from one exponential.
        turn = np.exp(2j * sphere)
        sines = [(wave - 1 / wave) / 2j for wave in (turn, turn**2, turn**3)]
    plane = RADIUS * (sphere + np.tensordot(SERIES, sines, 1))
    return np.array([500_000 + plane.imag, plane.real + np.where(lat < 0, 1e7, 0)])


def _mercator(lonlat: FloatArray) -> FloatArray:
    lon, lat = np.radians(lonlat.T)
    return np.array([EARTH * lon, EARTH * np.arcsinh(np.tan(lat))])


def _geocentric(lonlat: FloatArray) -> FloatArray:
    lon, lat = np.radians(lonlat.T)
    squared = ECCENTRICITY**2
    radius = EARTH / np.sqrt(1 - squared * np.sin(lat) ** 2)
    return np.array(
        [
            radius * np.cos(lat) * np.cos(lon),
            radius * np.cos(lat) * np.sin(lon),
            radius * (1 - squared) * np.sin(lat),
        ]
    )
