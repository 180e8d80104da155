"""The mechanism of largest adversary error at a bounded loss (Shokri et al., CCS 2012), and its converse."""

import time
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, as_finite
from geoind.channels.channel import Channel, tight_epsilon
from geoind.channels.priors import Prior
from geoind.distances import Distance, euclidean
from geoind.errors import InfeasibleError, InvalidInputError, SitesMismatchError, plural
from geoind.optimal.game import Game
from geoind.optimal.most_entropy import most_entropy
from geoind.optimal.problem import YARDSTICK, Certificate, OptimalChannel
from geoind.space.sites import Sites, same_sites

__all__ = [
    "ErrorRange",
    "GameChannel",
    "max_adversary_error_given_loss",
    "min_loss_given_adversary_error",
    "optimal_error_range",
]

Choice = Literal["symmetric", "vertex", "entropy", "worst_loss"]


class GameChannel(OptimalChannel):
    """The user's optimal strategy, together with the adversary's.

    Attributes
    ----------
    adversary : Channel
        From reports to guesses: the adversary's optimal strategy. Against it no mechanism within the bound on the
        loss has a larger error than `certificate.bound`.

    Examples
    --------
    >>> from geoind import Grid, Prior, max_adversary_error_given_loss
    >>> street = Prior.uniform(Grid(0, 0, cell=100, columns=3, rows=1))
    >>> best = max_adversary_error_given_loss(street, max_loss=20)
    >>> round(best.certificate.objective, 6), best.adversary.matrix.shape
    (20.0, (3, 3))
    """

    adversary: Channel

    def __init__(
        self, inputs: Sites, outputs: Sites, matrix: ArrayLike, certificate: Certificate, adversary: Channel
    ) -> None:
        super().__init__(inputs, outputs, matrix, certificate)
        object.__setattr__(self, "adversary", adversary)


@dataclass(frozen=True)
class ErrorRange:
    """The range of the adversary error of optimal mechanisms under another prior.

    Attributes
    ----------
    lowest, highest : float
        Adversary error under the other prior. The highest is exact. The lowest is attained, but finding the true
        minimum means minimising a concave function: it is the best of several descents, an upper estimate.
    lowest_channel, highest_channel : Channel
        Optimal mechanisms that attain them.
    """

    lowest: float
    highest: float
    lowest_channel: Channel
    highest_channel: Channel


def max_adversary_error_given_loss(
    prior: Prior,
    *,
    max_loss: float,
    outputs: Sites | None = None,
    loss: Distance = euclidean,
    adversary_loss: Distance = euclidean,
    choose: Choice = "symmetric",
) -> GameChannel:
    """Return a channel of expected loss at most `max_loss` with the largest adversary error.

    The adversary knows prior and channel and guesses one of the prior's sites. There are many optimal channels
    (with `loss = adversary_loss` the optimal error is `max_loss`, up to the error without any report), and they
    differ much under another prior, so `choose` selects one.

    Parameters
    ----------
    prior : Prior
        The adversary's prior. Sites of mass 0 get the row of the closest site with mass.
    max_loss : float
        Bound on the expected loss.
    outputs : Sites, optional
        The possible reports; default: the prior's sites.
    loss, adversary_loss : Distance
        Loss of the user between truth and report, and of the adversary between truth and guess.
    choose : {"symmetric", "vertex", "entropy", "worst_loss"}
        "symmetric" has the symmetries of the problem; "vertex" is a vertex of the whole program; "entropy" has
        the largest conditional entropy of the truth given the report (Oya et al., CCS 2017); "worst_loss" has
        the least worst-case loss.

    Raises
    ------
    InfeasibleError
        If every channel has a larger expected loss than `max_loss`.

    Examples
    --------
    >>> from geoind import Grid, Prior, distances
    >>> city = Prior.uniform(Grid(0, 0, cell=100, columns=5, rows=5))
    >>> best = max_adversary_error_given_loss(city, max_loss=100, adversary_loss=distances.discrete)
    >>> round(best.certificate.objective, 8)
    0.84845387
    """
    began = time.perf_counter()
    if choose not in get_args(Choice):
        raise InvalidInputError(f"choose must be one of {', '.join(get_args(Choice))}, got {choose!r}")
    game = Game([prior], outputs, loss, adversary_loss, symmetric=choose != "vertex")
    max_loss = _bounded_loss(game, max_loss)
    optimum = game.optimum(max_loss)
    matrix, method = optimum.matrix, f"HiGHS, {plural(optimum.rounds, 'round')} of guesses"
    if choose == "worst_loss":
        matrix = game.least_worst_loss(max_loss, optimum)
    elif choose == "entropy":
        matrix, _, short = most_entropy(
            game.masses[0],
            game.loss,
            game.error,
            game.program.symmetry,
            max_loss=max_loss,
            matrix=optimum.matrix,
            strategy=optimum.strategy,
            loss_price=optimum.loss_price,
        )
        method += f", entropy within {short:.1e} bits"
    repaired = game.within_loss(matrix, max_loss)
    values = game.adversary_error(matrix), game.adversary_error(repaired)
    return _certified(
        game, _Answer(repaired, optimum.strategy, *values, optimum.bound, optimum.rounds, method), began
    )


def min_loss_given_adversary_error(
    prior: Prior,
    *,
    min_error: float,
    outputs: Sites | None = None,
    loss: Distance = euclidean,
    adversary_loss: Distance = euclidean,
) -> GameChannel:
    """Return the channel of least expected loss with an adversary error of at least `min_error`.

    The converse of `max_adversary_error_given_loss`; it has the symmetries of the problem.

    Parameters
    ----------
    prior : Prior
        The adversary's prior.
    min_error : float
        Bound on the adversary error.
    outputs, loss, adversary_loss
        As in `max_adversary_error_given_loss`.

    Raises
    ------
    InfeasibleError
        If the adversary error without any report is smaller.

    Examples
    --------
    >>> from geoind import Grid, Prior
    >>> city = Prior.uniform(Grid(0, 0, cell=100, columns=4, rows=4))
    >>> round(min_loss_given_adversary_error(city, min_error=80).certificate.objective, 6)
    80.0
    """
    began = time.perf_counter()
    game = Game([prior], outputs, loss, adversary_loss, symmetric=True)
    wanted = as_finite(min_error, "min_error")
    blind = game.error_without_report()
    if wanted > blind:
        raise InfeasibleError(
            f"no mechanism has an adversary error of {wanted:g}: without any report it is {blind:g}"
        )
    optimum = game.program.solve(reward=-game.masses[0][:, None] * game.loss, min_error=wanted)
    strategy = game.strategy(optimum.guess_price)
    least = (game.loss - optimum.error_price * (game.error @ strategy.T)).min(axis=1)
    bound = float(game.masses[0] @ least) + optimum.error_price * wanted
    repaired = game.with_error(optimum.matrix, wanted)
    values = game.expected_loss(optimum.matrix), game.expected_loss(repaired)
    method = f"HiGHS, {plural(optimum.rounds, 'round')} of guesses"
    return _certified(game, _Answer(repaired, strategy, *values, bound, optimum.rounds, method), began)


def optimal_error_range(
    prior: Prior,
    other: Prior,
    *,
    max_loss: float,
    outputs: Sites | None = None,
    loss: Distance = euclidean,
    adversary_loss: Distance = euclidean,
) -> ErrorRange:
    """Return the range of the adversary error under `other`, over all mechanisms that are optimal for `prior`.

    Parameters
    ----------
    prior : Prior
        The prior of the optimal mechanisms, as in `max_adversary_error_given_loss`.
    other : Prior
        The adversary's prior instead, on the same sites.
    max_loss, outputs, loss, adversary_loss
        As there; the loss is bounded under `prior`.

    Examples
    --------
    >>> from geoind import Grid, Prior
    >>> grid = Grid(0, 0, cell=100, columns=3, rows=3)
    >>> found = optimal_error_range(Prior.uniform(grid), Prior(grid, [0.5] + [0] * 7 + [0.5]), max_loss=60)
    >>> found.lowest < 1, round(found.highest) > 50
    (True, True)
    """
    if not same_sites(prior.sites, other.sites):
        raise SitesMismatchError("both priors must have the same sites")
    alike = Game([prior, other], outputs, loss, adversary_loss, symmetric=True)
    max_loss = _bounded_loss(alike, max_loss)
    value = alike.program.solve(prize=(1.0,), max_loss=max_loss).value
    floor = value - 1e-9 * abs(value)
    # The error is concave in the mechanism, so its largest value is a symmetric linear program.
    highest = alike.program.solve(prize=(0.0, 1.0), max_loss=max_loss, min_error=floor).matrix
    # Its smallest value is not. For fixed guesses it is, so guesses and programs alternate, from several starts,
    # until an error of 0 is reached.
    whole = Game([prior, other], outputs, loss, adversary_loss, symmetric=False)
    mass, negligible = whole.masses[1], 1e-9 * whole.program.unit
    lowest, least = highest, whole.adversary_error(highest, 1)

    def vertex() -> FloatArray:
        return whole.program.solve(prize=(1.0,), max_loss=max_loss).matrix

    for start in (whole.cheapest_reports, lambda: highest, vertex):
        if least <= negligible:
            break
        matrix, error, better = start(), np.inf, True
        while better:
            guess = ((mass[:, None] * matrix).T @ whole.error).argmin(axis=1)
            cost = mass[:, None] * whole.error[:, guess]
            matrix = whole.program.solve(reward=-cost, max_loss=max_loss, min_error=floor).matrix
            before, error = error, whole.adversary_error(matrix, 1)
            better = negligible < error < before - negligible
            if error < least:
                lowest, least = matrix, error
    return ErrorRange(
        least,
        alike.adversary_error(highest, 1),
        whole.channel(whole.within_loss(lowest, max_loss)),
        alike.channel(alike.within_loss(highest, max_loss)),
    )


def _bounded_loss(game: Game, max_loss: float) -> float:
    """Return the bound on the loss, checked to be feasible."""
    bound = as_finite(max_loss, "max_loss")
    least = float(game.masses[0] @ game.loss.min(axis=1))
    if bound < 0 <= least:
        raise InvalidInputError(f"max_loss must not be negative, got {max_loss!r}")
    if bound < least:
        raise InfeasibleError(f"no mechanism has an expected loss of {bound:g}: the least is {least:g}")
    return bound


class _Answer(NamedTuple):
    """Both strategies, the objective before and after the repair, and its bound."""

    matrix: FloatArray
    strategy: FloatArray
    unrepaired: float
    objective: float
    bound: float
    rounds: int
    method: str


def _certified(game: Game, answer: _Answer, began: float) -> GameChannel:
    """Return the channel with its certificate."""
    channel = game.channel(answer.matrix)
    objective, bound = answer.objective, answer.bound
    gap = abs(objective - bound) / max(abs(objective), YARDSTICK * game.program.unit)
    certificate = Certificate(
        objective=objective,
        bound=bound,
        gap=gap,
        epsilon=float(tight_epsilon(channel)),
        repair=abs(objective - answer.unrepaired),
        iterations=answer.rounds,
        seconds=time.perf_counter() - began,
        method=answer.method,
        optimal=gap <= 1e-7,
    )
    adversary = Channel(game.outputs, game.inputs, answer.strategy)
    return GameChannel(game.inputs, game.outputs, channel.matrix, certificate, adversary)
