"""Reports of noise in the plane: doubles decide almost all, exact arithmetic the rest."""

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from geoind.arrays import FloatArray, IntArray
from geoind.errors import InvalidInputError
from geoind.mechanisms.functions import ARRAYS
from geoind.mechanisms.noise import direction, half_angles, out_of_range, survivals
from geoind.parallel import over_blocks
from geoind.randomness import Randomness, Words, words_by_block

if TYPE_CHECKING:
    from flint import arb

__all__ = ["ERROR", "RELATIVE_ERROR", "coordinates", "planar_reports", "step_of"]

FARTHEST = 2.0**50
"""Steps from the origin that a true place may have: every place of the lattice around it is an exact double."""

ERROR = 2.0**-24
"""How far a computed coordinate may be from the drawn one, in steps; a unit of noise has less than 2048 steps."""

RELATIVE_ERROR = 2.0**-50
"""The same as a part of the coordinate itself: its sums and quotients are rounded."""


def step_of(scale: float) -> float:
    """Return the step of the public lattice: a power of two, of which 1024 to 2048 make the noise's scale.

    Read off the scale's bits: a logarithm that another machine rounds in another way could make another lattice.

    Examples
    --------
    >>> step_of(1024.0), step_of(math.nextafter(1024.0, 0))
    (1.0, 0.5)
    """
    _, exponent = math.frexp(scale)
    return math.ldexp(1.0, exponent - 11)


def planar_reports(
    points: FloatArray,
    source: Randomness,
    purpose: str,
    *,
    step: float,
    steps: Callable[[FloatArray], FloatArray],
    radius: "Callable[[arb], arb]",
) -> FloatArray:
    """Return one report for each point: truth plus noise, rounded to whole steps of the lattice.

    Parameters
    ----------
    points : (n, 2) array
    source, purpose
        Where the words come from, and what names them.
    step : float
        Of the lattice, in metres; a power of two.
    steps : callable
        From s, where exp(-s^2 / 2) is the probability of a larger radius, to the radius in steps, within 2^-25.
    radius : callable
        From the ball of that probability to the ball of the radius in metres.
    """
    if points.size and not max(points.max(), -points.min()) <= FARTHEST * step:
        raise InvalidInputError(f"points must lie within {FARTHEST * step:.3g} m of the origin for this noise")
    reports = np.empty_like(points)
    words_of = words_by_block(source, points, 2, purpose)

    def block(part: slice) -> tuple[IntArray, Words]:
        words = words_of(part)
        undecided = _block(points[part], words, reports[part], step, steps)
        return undecided + int(part.start), words[undecided]

    for rows, words in over_blocks(block, len(points)):
        for row, (first, second) in zip(rows.tolist(), words.tolist(), strict=True):
            from geoind.mechanisms.exact import Draw, decided, planar_place

            draw = Draw(first, second, partial(source.further, row, points[row], purpose))
            x, y = points[row].tolist()
            column, line = decided(planar_place(x, y, step=step, radius=radius), draw)
            reports[row] = column * step, line * step
    return reports


def _block(
    points: FloatArray, words: Words, reports: FloatArray, step: float, steps: Callable[[FloatArray], FloatArray]
) -> IntArray:
    """Fill in the reports, and return the rows that doubles cannot decide."""
    survival = survivals(words)
    rare = out_of_range(survival)
    survival[rare] = 0.5
    decided = np.ones(len(survival), bool)
    decided[rare] = False
    for axis, computed in enumerate(coordinates(points, survival, words, step, steps)):
        nearest = np.rint(computed)
        off = np.abs(computed - nearest)
        off += np.abs(computed, out=computed) * RELATIVE_ERROR
        # What is not a number is undecided, too.
        decided &= off < 0.5 - ERROR
        nearest *= step
        # Adding zero turns -0.0 into 0.0: a sign that says on which side of zero the noise fell.
        nearest += 0.0
        reports[:, axis] = nearest
    return np.flatnonzero(~decided)


def coordinates(
    points: FloatArray, survival: FloatArray, words: Words, step: float, steps: Callable[[FloatArray], FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Return x and y of the drawn points in steps of the lattice, within `ERROR` and `RELATIVE_ERROR`."""
    radius = steps(np.sqrt(-2.0 * np.log(survival)))
    cos, sin = direction(half_angles(words), ARRAYS)
    return points[:, 0] / step + radius * cos, points[:, 1] / step + radius * sin
