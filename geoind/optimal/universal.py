"""Universal optimality: the excess loss of one mechanism over the best one, for a prior and for several priors.

Users have a prior and a loss of their own and remap reports accordingly. On a line of equal steps, the answers
of a counting query, the geometric mechanism is then optimal for all of them (Ghosh, Roughgarden and
Sundararajan, STOC 2009). Where answers form a cycle, as those of a sum do if a person can change it by more than
one step, no mechanism is (Brenner and Nissim, FOCS 2010).
"""

from collections.abc import Sequence
from itertools import product

import numpy as np

from geoind.channels.channel import Channel, tight_epsilon
from geoind.channels.metrics import expected_loss
from geoind.channels.priors import Prior
from geoind.channels.remap import bayes_remap
from geoind.distances import Distance, euclidean
from geoind.errors import InvalidInputError, SitesMismatchError
from geoind.optimal.least_loss import min_loss_given_epsilon
from geoind.optimal.problem import as_loss
from geoind.space.sites import Places, Sites, same_sites

__all__ = ["regret", "universality_gap"]

MOST_REPORTS = 5000
"""Largest number of reports of the shared mechanism; a report is a combination of guesses, one for each prior."""


def regret(
    channel: Channel,
    prior: Prior,
    *,
    epsilon: float | None = None,
    outputs: Sites | None = None,
    loss: Distance = euclidean,
    distance: Distance = euclidean,
) -> float:
    """Return the excess loss of a channel, after the best remapping, over the least loss at its epsilon.

    An upper bound that is proven by the certificate of `min_loss_given_epsilon`, exact to its tolerance (1e-7 of
    the loss). Where it is 0 the channel is optimal for this prior.

    Parameters
    ----------
    channel, prior : Channel, Prior
    epsilon : float, optional
        Privacy loss of the optimal mechanism; default: the measured epsilon of the channel.
    outputs : Sites, optional
        The possible targets of the remapping; default: the channel's inputs.
    loss : Distance
        Between truth and remapped report.
    distance : Distance
        The metric of epsilon.

    Examples
    --------
    >>> from geoind import exponential, geometric
    >>> count = geometric(6, epsilon=0.5)
    >>> people = Prior(count.inputs, [0.3, 0.1, 0.1, 0.1, 0.1, 0.3])
    >>> bool(regret(count, people) < 1e-6)
    True
    >>> round(regret(exponential(count.inputs, count.inputs, epsilon=0.5), people, epsilon=0.5), 3)
    0.575
    """
    promised = float(tight_epsilon(channel, distance)) if epsilon is None else epsilon
    if not 0 < promised < np.inf:
        raise InvalidInputError(f"the channel's epsilon must be positive and finite, got {promised!r}")
    places = channel.inputs if outputs is None else outputs
    remapped = channel @ bayes_remap(channel, prior, loss=loss, outputs=places)
    best = min_loss_given_epsilon(prior, epsilon=promised, outputs=places, loss=loss, distance=distance)
    return max(0.0, expected_loss(remapped, prior, loss=loss) - best.certificate.bound)


def universality_gap(
    priors: Sequence[Prior],
    *,
    epsilon: float,
    outputs: Sites | None = None,
    loss: Distance = euclidean,
    distance: Distance = euclidean,
) -> float:
    """Return the least mean excess loss of one mechanism for all priors over the best mechanism for each.

    Reports of the shared mechanism are remapped for each prior. A lower bound that is proven by the certificates
    of `min_loss_given_epsilon`: above 0 there is no universally optimal mechanism. Only the guess that a report
    is remapped to matters, so one program over all combinations of guesses gives the best shared mechanism.

    Parameters
    ----------
    priors : sequence of Prior
        On the same sites; few, because the program has as many reports as there are combinations of guesses.
    epsilon : float
        Privacy loss per unit of `distance`.
    outputs : Sites, optional
        The possible guesses; default: the sites.
    loss, distance : Distance
        Loss of guesses, and the metric of epsilon.

    Examples
    --------
    >>> from geoind import Grid
    >>> from geoind.distances import discrete, from_matrix
    >>> ring = from_matrix([[0, 1, 2, 1], [1, 0, 1, 2], [2, 1, 0, 1], [1, 2, 1, 0]])
    >>> answers = Grid(0, 0, cell=1, columns=4, rows=1)
    >>> opposite = [Prior.over(answers, [0, 2]), Prior.over(answers, [1, 3])]
    >>> round(universality_gap(opposite, epsilon=1.0, loss=discrete, distance=ring), 3)
    0.085
    >>> universality_gap(opposite, epsilon=1.0, loss=discrete)  # on a line
    0.0
    """
    if not priors:
        raise InvalidInputError("priors must hold at least one prior")
    sites = priors[0].sites
    if not all(same_sites(sites, each.sites) for each in priors):
        raise SitesMismatchError("all priors must be on the same sites")
    guesses = sites if outputs is None else outputs
    if len(guesses) ** len(priors) > MOST_REPORTS:
        raise InvalidInputError(
            f"a guess for each prior has {len(guesses)}^{len(priors)} combinations, more than {MOST_REPORTS}: "
            "pass fewer priors or guesses"
        )
    apart = as_loss(loss(sites.xy, guesses.xy), (len(sites), len(guesses)))
    alone = [
        min_loss_given_epsilon(each, epsilon=epsilon, outputs=guesses, loss=loss, distance=distance)
        for each in priors
    ]
    combinations = np.array(list(product(range(len(guesses)), repeat=len(priors))))
    weighted = sum(each.mass[:, None] * apart[:, combinations[:, i]] for i, each in enumerate(priors))
    mass = np.mean([each.mass for each in priors], axis=0)
    cost = weighted / (len(priors) * np.where(mass > 0, mass, 1.0))[:, None]
    shared = min_loss_given_epsilon(
        Prior(sites, mass),
        epsilon=epsilon,
        outputs=Places(combinations),
        loss=lambda _, __: np.asarray(cost),
        distance=distance,
    )
    return max(0.0, shared.certificate.bound - float(np.mean([each.certificate.objective for each in alone])))
