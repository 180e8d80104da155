"""Exact arithmetic for the few draws that doubles cannot decide.

The words drawn so far are the first bits of two numbers between 0 and 1, so they define two intervals. Ball
arithmetic (Arb, part of FLINT) evaluates the same formulas on these intervals with proven bounds. If the result
lies within one cell of the lattice, that cell is the report, whatever bits would follow. If not, 64 more bits of
both numbers are drawn. The report is therefore the one that all bits of the two numbers would give.

The working precision changes the number of rounds, never the result. FLINT has one precision per process: if two
threads change it at the same time, a draw may take another round.
"""

from collections.abc import Callable
from typing import TypeVar

from flint import arb, ctx

from geoind.mechanisms.noise import longitude_decimals, wrapped

__all__ = ["ball_of", "decided", "gaussian_radius", "globe_arc", "globe_place", "laplace_radius", "planar_place"]

WORD = 64

LONGEST = 256
"""Words of one number. Only a source that always returns the same word would need more."""

Place = TypeVar("Place")


def decided(
    place: Callable[[arb, arb], Place | None],
    first: int,
    second: int,
    further: Callable[[int], tuple[int, int]],
) -> Place:
    """Return the place that two random numbers between 0 and 1 lead to.

    Parameters
    ----------
    place : callable
        From the intervals of both numbers to the place, or to None where it needs more bits.
    first, second : int
        The first 64 bits of both numbers.
    further : callable
        From 0, 1, 2, ... to the next 64 bits of both.
    """
    for words in range(1, LONGEST):
        with ctx.workprec(WORD * (words + 1)):
            found = place(ball_of(first, WORD * words), ball_of(second, WORD * words))
        if found is not None:
            return found
        more = further(words - 1)
        first, second = first << WORD | more[0], second << WORD | more[1]
    raise RuntimeError("the random source always returns the same bits")


def ball_of(number: int, bits: int) -> arb:
    """Return the interval of the numbers between 0 and 1 whose first bits are given."""
    return arb(arb((2 * number + 1, -bits - 1)), arb((1, -bits - 1)))


def planar_place(
    x: float, y: float, *, step: float, radius: Callable[[arb], arb]
) -> Callable[[arb, arb], tuple[int, int] | None]:
    """Return the function that finds the report's place, in steps of the lattice."""

    def place(survival: arb, turn: arb) -> tuple[int, int] | None:
        apart = radius(survival)
        sine, cosine = (2 * turn).sin_cos_pi()
        column = _nearest((x + apart * cosine) / step)
        row = _nearest((y + apart * sine) / step)
        return None if column is None or row is None else (column, row)

    return place


def globe_place(
    lon: float, lat: float, *, arc: Callable[[arb], arb], decimals: int
) -> Callable[[arb, arb], tuple[float, float] | None]:
    """Return the function that finds the report's place on the lattice of degrees."""

    def place(survival: arb, turn: arb) -> tuple[float, float] | None:
        sin_arc, cos_arc = arc(survival).sin_cos()
        sine, cosine = (2 * turn).sin_cos_pi()
        sin_phi, cos_phi = (arb(lat) / 180).sin_cos_pi()
        north, east = sin_arc * cosine, sin_arc * sine
        outward = cos_arc * cos_phi - north * sin_phi
        height = cos_arc * sin_phi + north * cos_phi
        degree = 180 / arb.pi()
        rise = arb.atan2(height, (outward * outward + east * east).sqrt()) * degree
        row = _nearest(rise * 10**decimals)
        if row is None:
            return None
        if abs(row) == 90 * 10**decimals:
            return 0.0, row / 10**decimals
        finest = longitude_decimals(row, decimals)
        column = _nearest((lon + arb.atan2(east, outward) * degree) * arb(10) ** finest)
        return None if column is None else (wrapped(column, finest), row / 10**decimals)

    return place


def gaussian_radius(survival: arb) -> arb:
    """Return the radius of a standard normal pair that is exceeded with this probability."""
    return (-2 * survival.log()).sqrt()


def laplace_radius(survival: arb) -> arb:
    """Return the planar Laplace radius, for epsilon = 1, that is exceeded with this probability."""
    return -1 - (-survival * arb(-1).exp()).lambertw(-1)


def globe_arc(survival: arb, scales: float) -> arb:
    """Return the arc on the sphere that is exceeded with this probability; k noise scales go into the radius.

    The probability falls from 1 to 0 as e^(-s) (cos(s/k) + k sin(s/k)) falls from 1 to -e^(-k pi); s is k arc.
    The search below need not be exact: both ends of the result are compared with the probability.
    """
    k = arb(scales)
    end = k * arb.pi()
    target = survival - (1 - survival) * (-end).exp()
    middle = target.mid()

    def falling(s: arb) -> arb:
        return (-s).exp() * ((s / k).cos() + k * (s / k).sin())

    low, high = arb(0), end.mid()
    s = laplace_radius(middle).mid()
    slope = arb(1)
    for _ in range(4 * ctx.prec):
        if not low < s < high:
            s = ((low + high) / 2).mid()
        above = (falling(s) - middle).mid()
        low, high = (s, high) if above > 0 else (low, s)
        slope = ((k + 1 / k) * (s / k).sin() * (-s).exp()).mid()
        before, s = s, (s + above / slope).mid()
        if abs(s - before) < arb((1, 20 - ctx.prec)):
            break
    width = 2 * target.rad() / slope + arb((1, 24 - ctx.prec))
    while True:
        low, high = s - width, s + width
        low_holds, high_holds = not low > 0 or falling(low) > target, not high < end or falling(high) < target
        if low_holds and high_holds:
            low, high = low.max(arb(0)), high.min(end)
            return low.union(high) / k
        width *= 4


def _nearest(value: arb) -> int | None:
    """Return the whole number closest to every number of the ball, or None if there are several."""
    found = (value + 0.5).floor().unique_fmpz()
    return None if found is None else int(found)
