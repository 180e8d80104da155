"""Where a draw leads, with 100 digits, by another library (mpmath) than the one that decides it in geoind."""

import mpmath

BITS = 256
"""Bits of a number between 0 and 1 that the reference takes for all of it."""

mp = mpmath.mp.clone()
mp.prec = 2 * BITS


def fraction(number: int) -> mpmath.mpf:
    return (mp.mpf(number) + mp.mpf("0.5")) / 2**BITS


def laplace_radius(survival: mpmath.mpf) -> mpmath.mpf:
    return -1 - mp.lambertw(-survival / mp.e, -1).real


def gaussian_radius(survival: mpmath.mpf) -> mpmath.mpf:
    return mp.sqrt(-2 * mp.log(survival))


def globe_arc(survival: mpmath.mpf, k: float) -> mpmath.mpf:
    """Return the arc by the distribution function itself, the antipode included."""
    k = mp.mpf(k)
    rest = mp.exp(-k * mp.pi)

    def beyond(arc: mpmath.mpf) -> mpmath.mpf:
        return mp.log((mp.exp(-k * arc) * (mp.cos(arc) + k * mp.sin(arc)) + rest) / (1 + rest)) - mp.log(survival)

    low, high = mp.mpf(0), mp.pi
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle) > 0 else (low, middle)
    return mp.findroot(beyond, (low, high), solver="secant", tol=mp.mpf(2) ** (-3 * BITS))


def plane(x: float, y: float, radius: mpmath.mpf, turn: mpmath.mpf, step: float) -> tuple[mpmath.mpf, mpmath.mpf]:
    """Return the drawn point in steps of the lattice."""
    angle = 2 * mp.pi * turn
    return (x + radius * mp.cos(angle)) / step, (y + radius * mp.sin(angle)) / step


def globe(lon: float, lat: float, arc: mpmath.mpf, turn: mpmath.mpf) -> tuple[mpmath.mpf, mpmath.mpf]:
    """Return the drawn point in degrees, the longitude not wrapped."""
    phi, bearing = mp.radians(mp.mpf(lat)), 2 * mp.pi * turn
    height = mp.sin(phi) * mp.cos(arc) + mp.cos(phi) * mp.sin(arc) * mp.cos(bearing)
    east = mp.sin(bearing) * mp.sin(arc) * mp.cos(phi)
    across = mp.cos(arc) - mp.sin(phi) * height
    # At a pole itself the bearing counts from the meridian that was given.
    swing = mp.atan2(east, across) if abs(lat) != 90 else (mp.pi - bearing if lat > 0 else bearing)
    return lon + mp.degrees(swing), mp.degrees(mp.asin(height))


def place_of(lon: mpmath.mpf, lat: mpmath.mpf, decimals: int) -> tuple[float, float]:
    """Return the place of the lattice, by its definition."""
    scale = 10**decimals
    row = round_half_up(lat * scale)
    if abs(row) == 90 * scale:
        return 0.0, row / scale
    coarser = coarser_in(lat, decimals) or 0
    column = round_half_up(lon * mp.mpf(10) ** (decimals - coarser)) * 10**coarser
    column = (column + 180 * scale - 1) % (360 * scale) - 180 * scale + 1
    return column / scale, row / scale


def coarser_in(lat: mpmath.mpf, decimals: int) -> int | None:
    """Return how many decimals fewer the longitudes of a latitude's row have; None for a pole's own row."""
    scale = 10**decimals
    row = round_half_up(lat * scale)
    return None if abs(row) == 90 * scale else int(mp.floor(-mp.log10(mp.cos(mp.radians(mp.mpf(row) / scale)))))


def round_half_up(value: mpmath.mpf) -> int:
    return int(mp.floor(value + mp.mpf("0.5")))


def turn_to_border(border: mpmath.mpf, x: float, radius: mpmath.mpf) -> mpmath.mpf | None:
    """Return a direction, in turns, whose cosine leads from x to the border."""
    cosine = (border - x) / radius
    return mp.acos(cosine) / (2 * mp.pi) if abs(cosine) < 1 else None


def turn_to_parallel(border: mpmath.mpf, lat: float, arc: mpmath.mpf) -> mpmath.mpf | None:
    """Return a bearing, in turns, on which an arc ends at a latitude."""
    phi, rise = mp.radians(mp.mpf(lat)), mp.radians(border)
    cosine = (mp.sin(rise) - mp.sin(phi) * mp.cos(arc)) / (mp.cos(phi) * mp.sin(arc))
    return mp.acos(cosine) / (2 * mp.pi) if abs(cosine) < 1 else None


def turn_to_meridian(border: mpmath.mpf, lon: float, lat: float, arc: mpmath.mpf) -> mpmath.mpf | None:
    """Return a bearing, in turns, on which an arc ends at a longitude."""
    phi, swing = mp.radians(mp.mpf(lat)), mp.radians(border - lon)
    a, b = mp.sin(arc) * mp.cos(swing), mp.sin(swing) * mp.sin(arc) * mp.sin(phi)
    cosine = mp.sin(swing) * mp.cos(arc) * mp.cos(phi) / mp.hypot(a, b)
    return (mp.atan2(a, b) + mp.acos(cosine)) / (2 * mp.pi) % 1 if abs(cosine) < 1 else None
