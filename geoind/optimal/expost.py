"""ExPost: the mechanism of largest conditional entropy at a given loss, by the Blahut-Arimoto algorithm."""

from functools import partial

import numpy as np

from geoind.arrays import FloatArray, as_finite, as_positive
from geoind.channels.channel import Channel, tight_epsilon
from geoind.channels.priors import Prior
from geoind.channels.rows import steepest_slope
from geoind.distances import Distance, euclidean
from geoind.errors import InfeasibleError, InvalidInputError
from geoind.optimal.problem import as_loss, as_metric, ends_of, keep_promise
from geoind.space.sites import Sites

__all__ = ["expost", "expost_for_loss"]

ITERATIONS = 5_000
ACCURACY = 1e-8
"""Accuracy of the conditional entropy, in nats."""
UNUSED = 1e-12
"""A report of smaller probability is removed from all rows."""


def expost(
    prior: Prior,
    *,
    epsilon: float | None = None,
    max_loss: float | None = None,
    outputs: Sites | None = None,
    loss: Distance = euclidean,
    distance: Distance = euclidean,
) -> Channel:
    """Return f(z|x) proportional to P(z) exp(-b loss(x, z)), where P is the distribution of its reports.

    Among all channels of its expected loss it has the largest conditional entropy of the truth given the report
    (Oya et al., CCS 2017). It is 2 b-private per unit of loss, for any P.

    Parameters
    ----------
    prior : Prior
    epsilon : float, optional
        Privacy loss per unit of `distance`: b is half of it, or less if the loss grows faster than the distance.
    max_loss : float, optional
        Expected loss: b is chosen to attain it. Pass one of epsilon and max_loss.
    outputs : Sites, optional
        The possible reports; default: the prior's sites.
    loss, distance : Distance
        Loss between truth and report, and the metric of epsilon.

    Examples
    --------
    >>> from geoind import Grid, Prior, expected_loss
    >>> from geoind.channels import posterior_entropy
    >>> city = Prior.uniform(Grid(0, 0, cell=100, columns=5, rows=5))
    >>> expost(city, epsilon=0.02).epsilon <= 0.02
    True
    >>> round(expected_loss(expost(city, max_loss=100), city), 6)
    100.0
    """
    if (epsilon is None) == (max_loss is None):
        raise InvalidInputError("pass either epsilon or max_loss")
    inputs, outputs = ends_of(prior, outputs, loss=loss, distance=distance)
    cost = as_loss(loss(inputs.xy, outputs.xy), (len(inputs), len(outputs)))
    if max_loss is not None:
        return Channel(inputs, outputs, expost_for_loss(prior.mass, cost, as_finite(max_loss, "max_loss")))
    epsilon = as_positive(epsilon if epsilon is not None else 0.0, "epsilon")
    apart = as_metric(distance(inputs.xy, inputs.xy), len(inputs))
    steepest = float(steepest_slope(cost, apart).rate)
    if steepest == np.inf:
        raise InvalidInputError("loss must not differ between inputs at distance 0")
    matrix = blahut_arimoto(prior.mass, cost, epsilon / (2 * steepest) if steepest > 0 else 0.0)
    return keep_promise(
        inputs, outputs, matrix, epsilon=epsilon, measure=partial(tight_epsilon, distance=distance)
    )[0]


def blahut_arimoto(mass: FloatArray, cost: FloatArray, rate: float) -> FloatArray:
    """Return the fixed point of P(z) = sum_x mass(x) f(z|x), f(z|x) proportional to P(z) exp(-rate cost(x, z))."""
    kernel = np.exp(-rate * (cost - cost.min(axis=1, keepdims=True)))
    likely = np.full(cost.shape[1], 1 / cost.shape[1])
    for _ in range(ITERATIONS):
        # At the fixed point this factor is 1 for every report in use, and at most 1 for the others; the logarithm
        # of its maximum bounds the remaining gain.
        factor = (mass / (kernel @ likely)) @ kernel
        likely = likely * factor
        if float(np.log(factor.max())) < ACCURACY:
            break
    matrix = kernel * np.where(likely < UNUSED * likely.max(), 0.0, likely)
    return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))


def expost_for_loss(mass: FloatArray, cost: FloatArray, max_loss: float) -> FloatArray:
    """Return the matrix of the smallest rate whose expected loss is at most `max_loss`."""
    expected = mass @ cost
    least = float(mass @ cost.min(axis=1))
    if not least <= max_loss < np.inf:
        raise InfeasibleError(f"no mechanism has an expected loss of {max_loss:g}: the least is {least:g}")
    if max_loss >= expected.min():
        matrix = np.zeros_like(cost)
        matrix[:, int(np.argmin(expected))] = 1.0
        return matrix
    spread = float(np.ptp(cost, axis=1).max())
    # At the upper end of the search only the cheapest report has a positive probability.
    low, high = -7.0, 4.0
    best = blahut_arimoto(mass, cost, 10.0**high / spread)
    for _ in range(60):
        middle = (low + high) / 2
        matrix = blahut_arimoto(mass, cost, 10.0**middle / spread)
        reached = float(mass @ (matrix * cost).sum(axis=1))
        if reached > max_loss:
            low = middle
            continue
        high, best = middle, matrix
        if reached > max_loss - 1e-9 * (max_loss - least):
            break
    return best
