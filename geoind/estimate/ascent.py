"""The iterative Bayesian update, accelerated.

A plain step distributes each report over the sites in proportion to their posterior probability, and the sum is
the new population (expectation-maximisation; Agrawal and Aggarwal, PODS 2001). It never lowers the likelihood,
but converges slowly. Here Nesterov's momentum is applied to the *logarithms* of the masses: they stay positive,
and expectation-maximisation is mirror descent in that geometry. A step that would lower the likelihood is
discarded and the momentum reset, so every returned population is at least as likely as the one before.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from geoind.arrays import FloatArray
from geoind.estimate.observation import Observation

__all__ = ["HELD_OUT", "Blur", "OnStep", "ascend", "climbed", "held_out_steps"]

Blur: TypeAlias = Callable[[FloatArray], FloatArray]
"""A symmetric map of masses that keeps their sum."""

OnStep: TypeAlias = Callable[[int, float], None]
"""Called after each step with its number and its log-likelihood per report."""

LEAST_MASS = 1e-8
"""Least mass of a site, as a share of the uniform one; momentum could not increase a smaller one again."""

HELD_OUT = 0.5
"""Share of the reports that are held out; with fewer, their noise would decide."""

INDIFFERENCE = 1.0
"""Two populations whose log-likelihoods of all held-out reports differ by less nats predict them equally well."""

PATIENCE = 8
"""Number of steps with a worse prediction of the held-out reports before the search ends."""


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A population of the ascent.

    Attributes
    ----------
    mass : array
        The population.
    predicted : array
        The probability of each observed report.
    log_likelihood : float
        Per report, in nats.
    gap : float
        No population has a log-likelihood per report that is larger by more than this.
    """

    mass: FloatArray
    predicted: FloatArray
    log_likelihood: float
    gap: float


def ascend(
    observation: Observation, counts: FloatArray, blur: Blur, start: FloatArray | None = None
) -> Iterator[_Candidate]:
    """Yield populations of increasing likelihood for counts of the observed reports.

    The first one is uniform, or `start`, whose masses must be positive.
    """
    share = counts / counts.sum()
    sensitivity = blur(observation.sensitivity)

    def scaled(weights: FloatArray) -> FloatArray:
        # With this scale every population has the true expected number of observed reports, so that likelihoods
        # can be compared.
        weights = np.maximum(weights, LEAST_MASS * weights.mean())
        return weights / (sensitivity @ weights)

    def update(weights: FloatArray) -> tuple[_Candidate, FloatArray]:
        mass = blur(weights)
        predicted = observation.predict(mass)
        pull = blur(observation.explain(share / predicted)) / sensitivity
        # The log-likelihood is concave with gradient `pull`: the best one lies at most max(pull) - 1 above.
        step = _Candidate(mass / mass.sum(), predicted, float(share @ np.log(predicted)), float(pull.max() - 1))
        return step, scaled(weights * pull)

    step, here = update(scaled(np.ones_like(sensitivity) if start is None else start))
    before, age = here, 0
    while True:
        yield step
        following, image = update(scaled(here * (here / before) ** (age / (age + 3))))
        age += 1
        if following.log_likelihood < step.log_likelihood and age > 1:
            following, image = update(here)
            age = 0
        if following.log_likelihood < step.log_likelihood:
            # A plain step decreases only by rounding errors, at the maximum.
            return
        before, here, step = here, image, following


def held_out_steps(
    observation: Observation,
    blur: Blur,
    *,
    most: int,
    start: FloatArray | None = None,
    progress: OnStep | None = None,
) -> int:
    """Return the number of steps after which a fit to half of the reports predicts the other half best.

    Of steps with equally good predictions it is the last, which has the largest likelihood.
    """
    # A fixed seed, so that the same reports give the same map.
    held = np.random.default_rng(0).binomial(observation.counts.astype(np.int64), HELD_OUT).astype(np.float64)
    fitted = observation.counts - held
    if not fitted.sum() or not held.sum():
        return 1
    best, chosen = -np.inf, 1
    for number, step in enumerate(ascend(observation, fitted, blur, start)):
        score = float(held @ np.log(step.predicted))
        best = max(best, score)
        if score >= best - INDIFFERENCE:
            chosen = number
        if progress is not None:
            progress(number, step.log_likelihood)
        if number >= min(most, chosen + PATIENCE) or step.gap * fitted.sum() <= INDIFFERENCE:
            break
    return max(chosen, 1)


def climbed(
    observation: Observation,
    counts: FloatArray,
    blur: Blur,
    *,
    most: int,
    start: FloatArray | None = None,
    tolerance: float = 0.0,
    progress: OnStep | None = None,
) -> tuple[_Candidate, list[float]]:
    """Return the last population and the log-likelihoods of all steps.

    Ends after `most` steps, or when no population is likelier by more than `tolerance` nats over all reports.
    """
    trace: list[float] = []
    for number, step in enumerate(ascend(observation, counts, blur, start)):
        trace.append(step.log_likelihood)
        if progress is not None:
            progress(number, step.log_likelihood)
        if number >= most or step.gap * counts.sum() <= tolerance:
            break
    return step, trace
