"""Reports moved to better places: post-processing, so the promise stays as it is."""

import numpy as np

from geoind.channels.channel import Channel
from geoind.channels.priors import Prior
from geoind.distances import Distance, euclidean
from geoind.space.sites import Sites

__all__ = ["bayes_remap"]


def bayes_remap(
    channel: Channel, prior: Prior, *, loss: Distance = euclidean, outputs: Sites | None = None
) -> Channel:
    """Return the deterministic channel that, after `channel`, minimises the expected loss.

    It reads reports only, so `channel @ bayes_remap(channel, prior)` keeps the promise. A report that cannot occur
    under the prior goes to the closest place, or where reports and places are not of one kind to the best one
    without a report.

    Parameters
    ----------
    channel, prior : Channel, Prior
    loss : Distance
        Between truth and report.
    outputs : Sites, optional
        Where reports may be moved; default: the channel's own outputs.

    Examples
    --------
    >>> from geoind import Grid, expected_loss
    >>> street = Grid(0, 0, cell=100, columns=2, rows=1)
    >>> coin = Channel(street, street, [[0.75, 0.25], [0.25, 0.75]])
    >>> home = Prior(street, [0.9, 0.1])
    >>> better = coin @ bayes_remap(coin, home)
    >>> round(expected_loss(coin, home), 6), round(expected_loss(better, home), 6)
    (25.0, 10.0)
    """
    places = channel.outputs if outputs is None else outputs
    joint = channel.joint(prior)
    losses = loss(channel.inputs.xy, places.xy)
    if places.xy.shape[1] == channel.outputs.xy.shape[1]:
        otherwise = places.nearest(channel.outputs.xy)
    else:
        otherwise = np.full(len(channel.outputs), np.argmin(prior.mass @ losses))
    targets = np.where(joint.any(axis=0), np.argmin(joint.T @ losses, axis=1), otherwise)
    return Channel.deterministic(channel.outputs, places, targets)
