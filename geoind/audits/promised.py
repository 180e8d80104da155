"""What a release record promises: the law of its noise, and what the reports of one person add up to."""

import math
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import numpy as np

from geoind.accounting.accountant import level_of_reports
from geoind.accounting.record import ReleaseRecord
from geoind.arrays import FloatArray, IntArray
from geoind.mechanisms.protocol import Mechanism
from geoind.mechanisms.spherical import SphericalGaussian, SphericalLaplace

__all__ = [
    "DELTA",
    "HUGE",
    "RADII",
    "Noise",
    "Promised",
    "density_of",
    "noise_of",
    "promised_by",
    "share_within",
    "wider",
]

Noise: TypeAlias = SphericalLaplace | SphericalGaussian

DELTA = 1e-6
RADII = (50.0, 200.0, 1000.0)
HUGE = 100.0
"""How much wider the noise of the control with huge noise is."""


def density_of(noise: Noise, metres: FloatArray) -> FloatArray:
    """Return the density of the noise at a distance, up to a factor."""
    if isinstance(noise, SphericalGaussian):
        return np.asarray(np.exp(-((metres / noise.sigma) ** 2) / 2))
    return np.asarray(np.exp(-noise.noise_epsilon * metres))


def share_within(noise: Noise, metres: float) -> float:
    """Return the probability of a report within a distance."""
    if isinstance(noise, SphericalGaussian):
        return 1 - math.exp(-((metres / noise.sigma) ** 2) / 2)
    return float(noise.radius_cdf(metres))


def wider(noise: Noise) -> Noise:
    """Return the same noise, a hundred times as wide, or as wide as the globe allows."""
    if isinstance(noise, SphericalGaussian):
        return SphericalGaussian(min(5e5, HUGE * noise.sigma))
    return SphericalLaplace(max(3e-6, noise.epsilon / HUGE))


def noise_of(record: ReleaseRecord) -> Noise | None:
    """Return the noise of one report as the record describes it; of a session, that of a fresh report."""
    if record.session is not None and record.fresh is not None:
        return SphericalLaplace(record.fresh, record.decimals)
    if record.mechanism == "SphericalLaplace":
        return SphericalLaplace(record.epsilon, record.decimals)
    if record.mechanism == "SphericalGaussian" and record.sigma is not None:
        return SphericalGaussian(record.sigma, record.decimals)
    return None


class Promised(NamedTuple):
    """What some reports of one person promise: for each radius the level up to delta, and the sum of levels."""

    who: str
    reports: int
    epsilon: float
    levels: Mapping[float, float]
    sums: Mapping[float, float]


def promised_by(record: ReleaseRecord, noise: Noise | None, counts: IntArray | None) -> tuple[Promised, ...]:
    """Return the promise of one report, and of the median and the busiest person."""
    totals = [("one report", 1, record.epsilon)]
    if record.session is not None:
        totals = [("one fresh report", 1, record.fresh or math.inf)]
    if record.unit != "each row":
        for who, total in (("the median person", record.median), ("the busiest person", record.busiest)):
            if total is not None:
                totals.append((who, total.reports, total.epsilon))
        if record.busiest is None and counts is not None:
            each = record.epsilon
            median = int(np.sort(counts)[len(counts) // 2])
            totals += [("the median person", median, median * each)]
            totals += [("the busiest person", int(counts.max()), int(counts.max()) * each)]
    mechanism = noise if record.session is None else None
    return tuple(_levels(who, reports, epsilon, mechanism) for who, reports, epsilon in totals)


def _levels(who: str, reports: int, epsilon: float, mechanism: Mechanism | None) -> Promised:
    sums = {radius: epsilon * radius for radius in RADII}
    levels = dict(sums)
    if mechanism is not None and reports and (reports > 1 or epsilon == math.inf):
        for radius in RADII:
            level = level_of_reports(mechanism, reports=reports, radius=radius, delta=DELTA)
            levels[radius] = min(level, sums[radius])
    return Promised(who, reports, epsilon, levels, sums)
