"""Confidence intervals of an estimated population, by the bootstrap."""

import numpy as np

from geoind.arrays import FloatArray, as_count, as_unit, frozen
from geoind.errors import InvalidInputError
from geoind.estimate.ascent import OnStep, climbed
from geoind.estimate.population import PopulationEstimate, share_within
from geoind.parallel import Threads, available_cores

__all__ = ["as_replicates", "bootstrap_intervals"]

CONFIDENCE = 0.9
"""Default confidence of an interval."""


def bootstrap_intervals(
    estimate: PopulationEstimate,
    *,
    confidence: float = CONFIDENCE,
    replicates: int = 200,
    rng: np.random.Generator | int = 0,
    workers: int | None = None,
    progress: OnStep | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return the lower and the upper end of an interval for the mass of each site, from resampled reports.

    Reports are resampled with replacement, and the estimate is repeated with the same number of steps. The
    quantiles over the replicates show the *variance* of the estimate. They do not show its bias: a map that was
    stopped early or smoothed is lower at peaks and higher around them than the truth, and so are its intervals.

    Parameters
    ----------
    estimate : PopulationEstimate
        From `estimate_population`.
    confidence : float
        Confidence of each interval.
    replicates : int
        Number of estimates.
    rng : Generator or int
        The same seed gives the same intervals, whatever the number of workers.
    workers : int, optional
        Number of threads; default: one per processor.
    progress : callable, optional
        Called with the number of replicates done and the log-likelihood per report of the last one.

    Examples
    --------
    >>> from geoind import estimate_population, randomised_response
    >>> channel = randomised_response(3, epsilon=2.0)
    >>> people = np.repeat(channel.inputs.xy, [600, 300, 100], axis=0)
    >>> found = estimate_population(channel.sample(people, rng=1), channel, channel.inputs)
    >>> low, high = bootstrap_intervals(found, replicates=50)
    >>> bool((low <= found.mass).all() and (found.mass <= high).all())
    True
    """
    confidence = as_unit(confidence, "confidence")
    replicates = as_replicates(replicates, confidence, "replicates")
    workers = as_count(available_cores() if workers is None else workers, "workers")
    fit, grid = estimate.fit, estimate.sites
    counts = fit.observation.counts
    total, shares = int(counts.sum()), counts / counts.sum()

    def replicate(generator: np.random.Generator) -> tuple[FloatArray, float]:
        drawn = generator.multinomial(total, shares).astype(np.float64)
        last, trace = climbed(fit.observation, drawn, fit.blur, most=fit.steps, start=fit.start)
        return share_within(grid, fit.population, last.mass), trace[-1]

    masses = np.empty((replicates, len(grid)))
    # Threads share the observation; transforms and products release the interpreter's lock.
    with Threads(workers) as threads:
        generators = np.random.default_rng(rng).spawn(replicates)
        for number, (mass, value) in enumerate(threads.each(replicate, generators)):
            masses[number] = mass
            if progress is not None:
                progress(number + 1, value)
    low, high = np.quantile(masses, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    return frozen(low), frozen(high)


def as_replicates(value: int, confidence: float, name: str) -> int:
    """Return the number of replicates, checked: some of them must lie outside an interval."""
    replicates = as_count(value, name)
    if replicates * (1 - confidence) < 1:
        raise InvalidInputError(f"{name} must be at least {int(1 / (1 - confidence)) + 1}, got {replicates}")
    return replicates
