"""What a channel is worth: to the person (utility) and to the adversary (privacy), for a given prior.

Every function takes the channel, then the prior. A loss is a `Distance` between truth and report (or guess);
a gain likewise, but larger is better. Information is measured in bits.
"""

from typing import Literal

import numpy as np

from geoind.arrays import FloatArray, as_number
from geoind.channels.channel import Channel
from geoind.channels.median import geometric_median
from geoind.channels.priors import Prior
from geoind.channels.vulnerability import identity_gain
from geoind.distances import Distance, euclidean, squared
from geoind.errors import InvalidInputError
from geoind.space.sites import Sites, as_plane

__all__ = [
    "adversary_error",
    "expected_gain",
    "expected_loss",
    "loss_quantile",
    "mutual_information",
    "posterior_entropy",
    "worst_case_loss",
]


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
    return float((channel.joint(prior) * _losses(channel, loss)).sum())


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
    # A quantile at the very end of a step must not slip to the next one by a rounding error of the sum.
    reached = np.searchsorted(cumulative, p * cumulative[-1] * (1 - 1e-12))
    return float(losses[order[reached]])


def worst_case_loss(channel: Channel, prior: Prior, *, loss: Distance = euclidean) -> float:
    """Return the largest loss that can happen.

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
    """Return the mean loss of an adversary who knows prior and channel and guesses as well as possible.

    Parameters
    ----------
    channel, prior : Channel, Prior
    loss : Distance
        Between truth and guess.
    guesses : Sites or "plane", optional
        Where the adversary may guess; default: the channel's inputs. In the plane the best guess is the
        posterior's geometric median (euclidean) or mean (squared); other losses need sites.

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
    """Return how many bits a report tells about the truth on average.

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
