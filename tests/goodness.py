"""Goodness of fit that can fail: a helper for every test that looks at noise."""

from collections.abc import Callable

import numpy as np
from scipy import stats

from geoind.arrays import FloatArray

LEVEL = 1e-4
"""A fixed seed fails a right sampler with this probability, once and for all."""


def p_value(draws: FloatArray, cdf: Callable[[FloatArray], FloatArray]) -> float:
    """How probable draws at least as odd are (Kolmogorov-Smirnov)."""
    # The stubs know a distribution function of one number only; scipy calls it with an array.
    return float(stats.kstest(draws, cdf).pvalue)  # type: ignore[arg-type]


def fits(draws: FloatArray, cdf: Callable[[FloatArray], FloatArray]) -> bool:
    """Whether draws look like the distribution (Kolmogorov-Smirnov)."""
    return p_value(draws, cdf) > LEVEL


def is_uniform(angles: FloatArray, period: float = 2 * np.pi) -> bool:
    """Whether angles spread evenly over their period."""
    return fits(np.mod(angles, period) / period, stats.uniform.cdf)


def counts_fit(counts: FloatArray, expected: FloatArray) -> bool:
    """Whether cell counts look like their expectation (chi-square over cells expected at least 5 times)."""
    enough = expected >= 5
    observed = np.append(counts[enough], counts[~enough].sum())
    wanted = np.append(expected[enough], expected[~enough].sum())
    observed, wanted = observed[wanted > 0], wanted[wanted > 0]
    return bool(stats.chisquare(observed, wanted * observed.sum() / wanted.sum()).pvalue > LEVEL)
