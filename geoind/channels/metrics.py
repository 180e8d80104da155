"""Utility and privacy measures of a channel for a given prior: loss, adversary error, g-vulnerability, leakage.

Every function takes the channel, then the prior. A loss is a `Distance` between truth and report (or guess); for a
gain larger is better. Information is measured in bits.

A guess need not be a location. The gain is the value of each guess at each truth: a function of two lists of
locations like a `Distance`, or a table with a row for each truth and a column for each guess.
"""

import math
from typing import Literal, TypeAlias

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, as_finite, as_floats, as_number
from geoind.channels.channel import Channel
from geoind.channels.priors import Prior
from geoind.channels.remap import geometric_median
from geoind.channels.rows import parts_of
from geoind.distances import Distance, discrete, euclidean, squared
from geoind.errors import InvalidInputError, SitesMismatchError
from geoind.space.sites import Grid, Sites, as_plane

__all__ = [
    "Gain",
    "additive_leakage",
    "adversary_error",
    "bayes_risk",
    "bayes_vulnerability",
    "closeness_gain",
    "distance_gain",
    "expected_gain",
    "expected_loss",
    "g_vulnerability",
    "identity_gain",
    "loss_quantile",
    "min_entropy_leakage",
    "multiplicative_leakage",
    "mutual_information",
    "posterior_entropy",
    "prior_vulnerability",
    "worst_case_loss",
]


Gain: TypeAlias = Distance | ArrayLike
"""A function from the locations of truths and guesses to the (n, m) gains, or the array of gains."""


def identity_gain(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return 1 for equal points and 0 for different ones.

    >>> identity_gain(np.array([[0.0, 0.0]]), np.array([[0.0, 0.0], [9.0, 9.0]]))
    array([[1., 0.]])
    """
    return 1 - discrete(a, b)


def distance_gain(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return minus the Euclidean distance.

    >>> distance_gain(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]))
    array([[-5.]])
    """
    return -euclidean(a, b)


def closeness_gain(largest: float, distance: Distance = euclidean) -> Distance:
    """Return the gain D - d, which is 0 at the distance D.

    With D at least the largest distance that occurs, no gain is negative. Another D changes every vulnerability by
    the same number: it changes the multiplicative leakage, but neither the best guesses nor the additive leakage.

    Parameters
    ----------
    largest : float
        D, in the distance's unit.
    distance : Distance
        d, between truth and guess.

    Examples
    --------
    >>> closeness_gain(10)(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]))
    array([[5.]])
    """
    largest = as_finite(largest, "largest")

    def closeness(a: FloatArray, b: FloatArray) -> FloatArray:
        return largest - distance(a, b)

    return closeness


def expected_loss(channel: Channel, prior: Prior, *, loss: Distance = euclidean) -> float:
    """Return the mean loss between truth and report: the service quality loss.

    Examples
    --------
    >>> from geoind import Grid
    >>> street = Grid(0, 0, cell=100, columns=2, rows=1)
    >>> coin = Channel(street, street, [[0.75, 0.25], [0.25, 0.75]])
    >>> expected_loss(coin, Prior(street, [0.5, 0.5]))
    25.0
    """
    channel.check_prior(prior)
    losses = _losses(channel, loss)
    parts = ((prior.mass[part, None] * rows * losses[part]).sum() for part, rows in parts_of(channel.rows))
    return float(sum(parts))


def loss_quantile(channel: Channel, prior: Prior, p: float, *, loss: Distance = euclidean) -> float:
    """Return the smallest loss that is not exceeded with probability p.

    Examples
    --------
    >>> from geoind import Grid
    >>> street = Grid(0, 0, cell=100, columns=2, rows=1)
    >>> coin = Channel(street, street, [[0.75, 0.25], [0.25, 0.75]])
    >>> [loss_quantile(coin, Prior(street, [0.5, 0.5]), p) for p in (0.7, 0.75, 0.8)]
    [0.0, 0.0, 100.0]
    """
    if not 0 < as_number(p, "p") <= 1:
        raise InvalidInputError(f"p must be above 0 and at most 1, got {p!r}")
    joint = channel.joint(prior)
    possible = joint > 0
    losses, mass = _losses(channel, loss)[possible], joint[possible]
    order = np.argsort(losses, kind="stable")
    cumulative = np.cumsum(mass[order])
    # A quantile at the end of a step must not move to the next step by a rounding error of the sum.
    reached = np.searchsorted(cumulative, p * cumulative[-1] * (1 - 1e-12))
    return float(losses[order[reached]])


def worst_case_loss(channel: Channel, prior: Prior, *, loss: Distance = euclidean) -> float:
    """Return the largest loss of positive probability.

    Examples
    --------
    >>> from geoind import Grid
    >>> street = Grid(0, 0, cell=100, columns=2, rows=1)
    >>> coin = Channel(street, street, [[1, 0], [0.25, 0.75]])
    >>> worst_case_loss(coin, Prior(street, [1, 0])), worst_case_loss(coin, Prior(street, [0.5, 0.5]))
    (0.0, 100.0)
    """
    return float(_losses(channel, loss)[channel.joint(prior) > 0].max())


def expected_gain(channel: Channel, prior: Prior, *, gain: Distance = identity_gain) -> float:
    """Return the mean gain of a report: the utility of the lectures, without a remapping.

    Examples
    --------
    >>> from geoind import Grid
    >>> from geoind.channels import distance_gain
    >>> street = Grid(0, 0, cell=100, columns=2, rows=1)
    >>> coin = Channel(street, street, [[0.75, 0.25], [0.25, 0.75]])
    >>> expected_gain(coin, Prior(street, [0.5, 0.5]))
    0.75
    >>> expected_gain(coin, Prior(street, [0.5, 0.5]), gain=distance_gain)
    -25.0
    """
    return expected_loss(channel, prior, loss=gain)


def adversary_error(
    channel: Channel,
    prior: Prior,
    *,
    loss: Distance = euclidean,
    guesses: Sites | Literal["plane"] | None = None,
) -> float:
    """Return the mean loss of an adversary with prior and channel who makes the best guesses.

    Parameters
    ----------
    channel, prior : Channel, Prior
    loss : Distance
        Between truth and guess.
    guesses : Sites or "plane", optional
        The possible guesses; default: the channel's inputs. In the plane the best guess is the posterior's
        geometric median (euclidean) or mean (squared); other losses need sites.

    Examples
    --------
    >>> from geoind import Grid
    >>> street = Grid(0, 0, cell=100, columns=2, rows=1)
    >>> coin = Channel(street, street, [[0.75, 0.25], [0.25, 0.75]])
    >>> adversary_error(coin, Prior(street, [0.5, 0.5]))
    25.0
    >>> adversary_error(coin, Prior(street, [0.5, 0.5]), loss=squared, guesses="plane")
    1875.0
    """
    joint = channel.joint(prior)
    truth = channel.inputs.xy
    if guesses == "plane":
        as_plane(channel.inputs, "the channel's inputs")
        return _plane_error(joint[:, joint.any(axis=0)], truth, loss)
    places = channel.inputs if guesses is None else guesses
    return float((joint.T @ loss(truth, places.xy)).min(axis=1).sum())


def posterior_entropy(channel: Channel, prior: Prior) -> float:
    """Return the adversary's remaining uncertainty H(truth | report), in bits.

    Examples
    --------
    >>> from geoind import Grid
    >>> street = Grid(0, 0, cell=100, columns=2, rows=1)
    >>> blind = Channel(street, street, [[0.5, 0.5], [0.5, 0.5]])
    >>> posterior_entropy(blind, Prior(street, [0.5, 0.5]))
    1.0
    """
    return conditional_entropy(channel.joint(prior))


def conditional_entropy(joint: FloatArray) -> float:
    """Return H(row | column) of an (n, m) joint distribution, in bits.

    Examples
    --------
    >>> conditional_entropy(np.array([[0.25, 0.25], [0.25, 0.25]]))
    1.0
    """
    return max(0.0, _entropy(joint) - _entropy(joint.sum(axis=0)))


def mutual_information(channel: Channel, prior: Prior) -> float:
    """Return the mutual information of truth and report, in bits.

    Examples
    --------
    >>> from geoind import Grid
    >>> street = Grid(0, 0, cell=100, columns=2, rows=1)
    >>> honest = Channel(street, street, [[1, 0], [0, 1]])
    >>> mutual_information(honest, Prior(street, [0.5, 0.5]))
    1.0
    """
    return max(0.0, _entropy(prior.mass) - posterior_entropy(channel, prior))


def _losses(channel: Channel, loss: Distance) -> FloatArray:
    return loss(channel.inputs.xy, channel.outputs.xy)


def _entropy(mass: FloatArray) -> float:
    positive = mass[mass > 0]
    return float(-(positive * np.log2(positive)).sum())


def _plane_error(joint: FloatArray, truth: FloatArray, loss: Distance) -> float:
    weights = np.ascontiguousarray((joint / joint.sum(axis=0)).T)
    if loss is squared:
        best = weights @ truth
    elif loss is euclidean:
        best = geometric_median(truth, weights)
    else:
        raise InvalidInputError('guesses="plane" needs the euclidean or the squared loss')
    return float((joint * loss(truth, best)).sum())


def g_vulnerability(
    channel: Channel, prior: Prior, *, gain: Gain = identity_gain, guesses: Sites | None = None
) -> float:
    """Return the mean gain of the best guess after each report.

    With the gain of a user instead of an adversary it is the utility of the lectures: each report is remapped to
    the answer of largest gain.

    Parameters
    ----------
    channel, prior : Channel, Prior
    gain : Distance, or (inputs, guesses) array
        The value of a guess at a truth.
    guesses : Sites, optional
        The possible guesses; default: the channel's inputs. The guesses of a table are its columns.

    Examples
    --------
    >>> from geoind import Grid
    >>> street = Grid(0, 0, cell=100, columns=2, rows=1)
    >>> coin = Channel(street, street, [[0.75, 0.25], [0.25, 0.75]])
    >>> g_vulnerability(coin, Prior.uniform(street))
    0.75
    >>> g_vulnerability(coin, Prior.uniform(street), gain=closeness_gain(100))
    75.0
    >>> g_vulnerability(coin, Prior.uniform(street), gain=[[1, 0, 0.9], [0, 1, 0.9]])  # or not to guess, for 0.9
    0.9
    """
    joint = channel.joint(prior)
    if _is_the_number(prior, gain, guesses):
        return float(joint.max(axis=0).sum())
    return float((joint.T @ _gains(prior, gain, guesses)).max(axis=1).sum())


def prior_vulnerability(prior: Prior, *, gain: Gain = identity_gain, guesses: Sites | None = None) -> float:
    """Return the mean gain of the best guess without a report.

    Parameters
    ----------
    prior, gain, guesses
        As in `g_vulnerability`.

    Examples
    --------
    >>> from geoind import Grid
    >>> prior_vulnerability(Prior(Grid(0, 0, cell=100, columns=2, rows=1), [0.9, 0.1]))
    0.9
    """
    if _is_the_number(prior, gain, guesses):
        return float(prior.mass.max())
    return float((prior.mass @ _gains(prior, gain, guesses)).max())


def multiplicative_leakage(
    channel: Channel, prior: Prior, *, gain: Gain = identity_gain, guesses: Sites | None = None
) -> float:
    """Return the ratio of the best guess's gain with the report to that without.

    At least 1, and at most the sum of the largest entries of the channel's columns, for all gains and priors.

    Parameters
    ----------
    channel, prior, gain, guesses
        As in `g_vulnerability`. No gain may be negative, and some guess must have a positive gain without a
        report.

    Examples
    --------
    >>> from geoind import Grid
    >>> street = Grid(0, 0, cell=100, columns=2, rows=1)
    >>> coin = Channel(street, street, [[0.75, 0.25], [0.25, 0.75]])
    >>> multiplicative_leakage(coin, Prior.uniform(street))
    1.5
    """
    after = g_vulnerability(channel, prior, gain=gain, guesses=guesses)
    before = prior_vulnerability(prior, gain=gain, guesses=guesses)
    if not before > 0 or not (_is_the_number(prior, gain, guesses) or (_gains(prior, gain, guesses) >= 0).all()):
        raise InvalidInputError(
            "the ratio needs gains that are not negative, and a guess of positive gain without a report: "
            "use additive_leakage, or closeness_gain with a larger D"
        )
    return max(1.0, after / before)


def additive_leakage(
    channel: Channel, prior: Prior, *, gain: Gain = identity_gain, guesses: Sites | None = None
) -> float:
    """Return the difference of the best guess's gain with the report and without; never negative.

    Parameters
    ----------
    channel, prior, gain, guesses
        As in `g_vulnerability`.

    Examples
    --------
    >>> from geoind import Grid
    >>> street = Grid(0, 0, cell=100, columns=2, rows=1)
    >>> coin = Channel(street, street, [[0.75, 0.25], [0.25, 0.75]])
    >>> additive_leakage(coin, Prior.uniform(street), gain=distance_gain)  # metres closer
    25.0
    """
    after = g_vulnerability(channel, prior, gain=gain, guesses=guesses)
    return max(0.0, after - prior_vulnerability(prior, gain=gain, guesses=guesses))


def bayes_vulnerability(channel: Channel, prior: Prior, *, gain: Distance = identity_gain) -> float:
    """Return the mean gain of the best guess of the input: by default, the probability that it is right.

    Examples
    --------
    >>> from geoind import Grid
    >>> street = Grid(0, 0, cell=100, columns=2, rows=1)
    >>> coin = Channel(street, street, [[0.75, 0.25], [0.25, 0.75]])
    >>> bayes_vulnerability(coin, Prior(street, [0.5, 0.5]))
    0.75
    """
    return g_vulnerability(channel, prior, gain=gain)


def bayes_risk(channel: Channel, prior: Prior) -> float:
    """Return the probability that the best guess of the input is wrong: 1 - `bayes_vulnerability`.

    Examples
    --------
    >>> from geoind import Grid
    >>> street = Grid(0, 0, cell=100, columns=2, rows=1)
    >>> coin = Channel(street, street, [[0.75, 0.25], [0.25, 0.75]])
    >>> bayes_risk(coin, Prior(street, [0.5, 0.5]))
    0.25
    """
    return 1 - bayes_vulnerability(channel, prior)


def min_entropy_leakage(channel: Channel, prior: Prior) -> float:
    """Return the min-entropy leakage in bits: log2 of the multiplicative leakage with the identity gain.

    Examples
    --------
    >>> from geoind import Grid
    >>> street = Grid(0, 0, cell=100, columns=2, rows=1)
    >>> honest = Channel(street, street, [[1, 0], [0, 1]])
    >>> min_entropy_leakage(honest, Prior(street, [0.5, 0.5]))
    1.0
    """
    return math.log2(multiplicative_leakage(channel, prior))


def _is_the_number(prior: Prior, gain: Gain, guesses: Sites | None) -> bool:
    """Return whether the gain is the identity on distinct sites, for which no table of gains is needed."""
    if gain is not identity_gain or guesses is not None:
        return False
    return isinstance(prior.sites, Grid) or len(np.unique(prior.sites.xy, axis=0)) == len(prior)


def _gains(prior: Prior, gain: Gain, guesses: Sites | None) -> FloatArray:
    """Return the gain of each guess at each location, checked."""
    if callable(gain):
        places = prior.sites if guesses is None else guesses
        table, columns = np.asarray(gain(prior.sites.xy, places.xy), dtype=np.float64), len(places)
    else:
        table = as_floats(gain, "gain")
        columns = len(guesses) if guesses is not None else table.shape[-1] if table.ndim else 0
    if table.shape != (len(prior), columns) or not columns:
        raise SitesMismatchError(
            f"gain must have a row per place, {len(prior)}, and a column per guess, got shape {table.shape}"
        )
    if not np.isfinite(table).all():
        raise InvalidInputError("gain must be finite")
    return table
