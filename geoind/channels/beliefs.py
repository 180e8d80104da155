"""Bayesian characterisations of geo-indistinguishability, in terms of an observer's beliefs.

A channel is epsilon-geo-indistinguishable if no report is more than e^(epsilon d) times as likely at one location
as at another at distance d (`tight_epsilon`). For all priors of the observer, that is equivalent to each of these:

1. **Odds** (`epsilon_of_odds`): a report changes the odds of two locations by a factor of at most e^(epsilon d).
2. **Balls** (`epsilon_within_balls`): for an observer who knows that the truth is within r of a location x, the
   probability of x changes by a factor of at most e^(epsilon r).
3. **Two priors** (`epsilon_of_two_priors`): if no location of one prior is farther than r from any of the other,
   no report is more than e^(epsilon r) times as likely under one as under the other.

For databases, where d counts records that differ, the second one is the Bayesian form of differential privacy
(`epsilon_of_records`). Each function returns the least epsilon for which its inequality holds with the given
prior: at most `tight_epsilon`, and arbitrarily close to it for some priors.
"""

import math

import numpy as np

from geoind.arrays import FloatArray
from geoind.channels.channel import Channel
from geoind.channels.priors import Prior
from geoind.channels.rows import steepest_ratio
from geoind.distances import Distance, euclidean
from geoind.errors import InvalidInputError

__all__ = ["epsilon_of_odds", "epsilon_of_records", "epsilon_of_two_priors", "epsilon_within_balls"]


def epsilon_of_odds(channel: Channel, prior: Prior, *, distance: Distance = euclidean) -> float:
    """Return the least epsilon for which reports change the odds of two locations by at most e^(epsilon d).

    Equal to `tight_epsilon` for every prior without a zero.

    Examples
    --------
    >>> from geoind import Grid
    >>> street = Grid(0, 0, cell=100, columns=2, rows=1)
    >>> coin = Channel(street, street, [[0.75, 0.25], [0.25, 0.75]])
    >>> home = Prior(street, [0.9, 0.1])
    >>> round(epsilon_of_odds(coin, home) * 100, 6), round(math.log(3), 6)
    (1.098612, 1.098612)
    """
    beliefs, known = channel.posterior(prior).T, prior.mass > 0
    changes = beliefs[known] / prior.mass[known, None]
    return steepest_ratio(changes, _distances(channel, distance)[np.ix_(known, known)]).rate


def epsilon_within_balls(channel: Channel, prior: Prior, *, distance: Distance = euclidean) -> float:
    """Return the least epsilon for which the probability of x within a ball changes by at most e^(epsilon r).

    The observer knows that the truth is in the ball of radius r around x. The probability of x before the report
    is its share of the ball's prior mass; afterwards its share of the ball's posterior mass. All x and r are
    compared.

    Examples
    --------
    >>> from geoind import Grid
    >>> street = Grid(0, 0, cell=100, columns=2, rows=1)
    >>> coin = Channel(street, street, [[0.75, 0.25], [0.25, 0.75]])
    >>> for mass in (0.5, 0.01, 0.0001):  # the smaller the mass, the larger the change
    ...     print(round(epsilon_within_balls(coin, Prior(street, [mass, 1 - mass])) * 100, 4))
    0.6931
    1.0919
    1.0985
    """
    apart, joint, matrix = _distances(channel, distance), channel.joint(prior), channel.matrix
    most = 0.0
    for truth in np.flatnonzero(prior.mass > 0).tolist():
        order = np.argsort(apart[truth], kind="stable")
        radii = apart[truth, order]
        # A ball contains all sites at its radius, so it ends at the last of them.
        closed = np.flatnonzero(np.diff(radii, append=math.inf) > 0)
        mass, joints = (np.cumsum(each[order], axis=0)[closed] for each in (prior.mass, joint))
        changes = _changes(matrix[truth], joints / mass[:, None])
        most = max(most, _rate(changes, radii[closed]))
    return most


def epsilon_of_two_priors(
    channel: Channel, prior: Prior, other: Prior, *, distance: Distance = euclidean
) -> float:
    """Return the least epsilon for which reports under two priors differ by at most e^(epsilon r).

    r is the largest distance between a location of one prior and a location of the other. With two priors on one
    location each this is the definition of geo-indistinguishability.

    Examples
    --------
    >>> from geoind import Grid
    >>> street = Grid(0, 0, cell=100, columns=3, rows=1)
    >>> coin = Channel(street, street, [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]])
    >>> here, there = Prior.over(street, [0]), Prior.over(street, [1, 2])
    >>> round(epsilon_of_two_priors(coin, here, there) * 200, 6)  # 0.6 against 0.2, and at most 200 m
    1.098612
    """
    reports, others = (channel.reports(each).mass for each in (prior, other))
    apart = _distances(channel, distance)[np.ix_(prior.mass > 0, other.mass > 0)]
    return _rate(_changes(reports, others[None]), np.array([apart.max()]))


def epsilon_of_records(channel: Channel, prior: Prior) -> float:
    """Return the largest change of the probability of one record given all others, as a logarithm.

    The Bayesian form of differential privacy: the channel's inputs are databases, with a column for each person's
    record. For any prior, the probability of a record given all others changes with the report by a factor of at
    most e^epsilon, where epsilon is `tight_epsilon(channel, distances.hamming)`.

    Examples
    --------
    >>> from geoind import Places, geometric
    >>> from geoind.channels import after_query
    >>> ill = Places([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> count = after_query(geometric(3, epsilon=0.5), lambda bits: bits.sum(axis=1), ill)
    >>> round(epsilon_of_records(count, Prior(ill, [0.97, 0.01, 0.01, 0.01])), 4)
    0.496
    """
    records, joint, known = channel.inputs.xy, channel.joint(prior), prior.mass > 0
    rows = channel.matrix[known]
    most = 0.0
    for person in range(records.shape[1]):
        group = np.unique(np.delete(records, person, axis=1), axis=0, return_inverse=True)[1].ravel()
        mass = np.bincount(group, weights=prior.mass)
        joints = np.zeros((len(mass), joint.shape[1]))
        np.add.at(joints, group, joint)
        changes = _changes(rows, joints[group[known]] / mass[group[known], None])
        most = max(most, _rate(changes, np.ones(len(changes))))
    return most


def _distances(channel: Channel, distance: Distance) -> FloatArray:
    apart = np.asarray(distance(channel.inputs.xy, channel.inputs.xy), dtype=np.float64)
    if apart.shape != (len(channel.inputs),) * 2 or not ((apart >= 0) & (apart < np.inf)).all():
        raise InvalidInputError("distance must return a finite, non-negative number for each pair of sites")
    return apart


def _changes(here: FloatArray, around: FloatArray) -> FloatArray:
    """Return the largest |ln(here / around)| of each row; 0 where both are zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.abs(np.log(here) - np.log(around))
    return np.asarray(np.where((here > 0) | (around > 0), logs, 0.0).max(axis=-1))


def _rate(changes: FloatArray, radii: FloatArray) -> float:
    """Return the largest change per unit of radius; infinite for a change at radius 0."""
    # A ball of equal rows changes only by the rounding of sums.
    changes = np.where(changes < 1e-13, 0.0, changes)
    return float(np.divide(changes, radii, out=np.where(changes > 0, math.inf, 0.0), where=radii > 0).max())
