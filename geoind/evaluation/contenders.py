"""The library's mechanisms in the comparison, each tuned to an expected loss under a prior."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Literal, TypeAlias

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from geoind import max_adversary_error_given_loss, min_loss_given_epsilon
from geoind.arrays import FloatArray, as_positive
from geoind.channels.channel import Channel
from geoind.channels.discretise import discretise
from geoind.channels.formulas import cloaking, exponential, planar_geometric, randomised_response
from geoind.channels.metrics import adversary_error, expected_loss
from geoind.channels.priors import Prior
from geoind.channels.remap import bayes_remap
from geoind.distances import Distance, euclidean
from geoind.errors import InfeasibleError
from geoind.evaluation.setting import Setting
from geoind.mechanisms.planar import PlanarLaplace
from geoind.optimal import optimal_error_range
from geoind.optimal.adversary_error import Choice
from geoind.space.sites import Grid, Places

__all__ = [
    "BUILT_IN",
    "EQUALISED",
    "FAMILIES",
    "TOLERANCE",
    "Equalised",
    "Family",
    "Lineup",
    "Tuned",
    "epsilon_for_loss",
]

Family: TypeAlias = Callable[[float], Channel]
"""From a privacy parameter to a channel; the larger the parameter, the smaller the expected loss."""

Equalised: TypeAlias = Literal["uniform", "evaluated"]
EQUALISED: tuple[Equalised, ...] = ("uniform", "evaluated")
"""The prior under which expected distances are equal: the uniform one (as in the paper), or that of the row."""

TOLERANCE = 1e-4
"""Relative gap at which a loss counts as optimal: a centimetre here, and reachable where the loss is tiny."""

OPTIMAL_FOR_UNIFORM = "optimal for uniform"


@dataclass(frozen=True, eq=False)
class Tuned:
    """A mechanism ready to be measured.

    Attributes
    ----------
    name : str
    channel : Channel or None
        None if a mechanism of the user's own failed.
    parameter : float
        Its epsilon per metre; NaN where there is none.
    knows_prior : bool
        Whether it was built for the prior that it is measured under.
    exact_answer : bool
        Whether the service answers for the true location, so that the loss is zero.
    epsilon : float, optional
        Per metre; default: measured on the channel.
    note : str
        What is wrong with it, or how its numbers were found.
    """

    name: str
    channel: Channel | None
    parameter: float = float("nan")
    knows_prior: bool = False
    exact_answer: bool = False
    epsilon: float | None = None
    note: str = ""


def _flat(grid: Grid, epsilon: float) -> Channel:
    """Return randomised response with a privacy loss of epsilon times cell between neighbouring cells."""
    response = randomised_response(len(grid), epsilon=epsilon * grid.cell)
    return Channel(grid, grid, response.matrix)


def _gaussian(grid: Grid, epsilon: float) -> Channel:
    """Return Gaussian noise of standard deviation 1 / epsilon per axis; outside reports go to border cells."""
    along_x, along_y = (_normal_steps(count, epsilon * grid.cell) for count in (grid.columns, grid.rows))
    matrix = np.kron(along_y, along_x)
    return Channel(grid, grid, matrix / matrix.sum(axis=1, keepdims=True))


def _normal_steps(count: int, rate: float) -> FloatArray:
    """Return the probability of each cell of a line for normal noise around each cell's centre."""
    steps = np.arange(count)
    near = np.abs(steps[None, :] - steps[:, None]) - 0.5
    # Both bounds are on the lower tail, because differences of cumulative values near 1 would lose the far cells.
    mass = ndtr(-near * rate) - ndtr(-(near + 1) * rate)
    for border in (0, count - 1):
        mass[:, border] = ndtr(-near[:, border] * rate)
    return np.asarray(mass / mass.sum(axis=1, keepdims=True))


def _decoy(grid: Grid) -> Channel:
    """Return the channel that reports the true cell and a random other one, without order (2-anonymous dummies).

    A report is a pair of cells; its location is their midpoint.
    """
    first, second = np.triu_indices(len(grid), k=1)
    matrix = np.zeros((len(grid), len(first)))
    pairs = np.arange(len(first))
    matrix[first, pairs] = matrix[second, pairs] = 1 / (len(grid) - 1)
    return Channel(grid, Places((grid.xy[first] + grid.xy[second]) / 2), matrix)


FAMILIES: dict[str, Callable[[Grid, float], Channel]] = {
    "planar Laplace": lambda grid, epsilon: discretise(PlanarLaplace(epsilon), grid),
    "planar geometric": lambda grid, epsilon: planar_geometric(grid, epsilon=epsilon),
    "exponential": lambda grid, epsilon: exponential(grid, grid, epsilon=epsilon),
    "randomised response": _flat,
    "Gaussian": _gaussian,
}
"""Mechanisms with one parameter, epsilon per metre (Gaussian: 1 / sigma), that do not depend on the prior."""

BUILT_IN = (
    "cloaking",
    OPTIMAL_FOR_UNIFORM,
    *(f"{OPTIMAL_FOR_UNIFORM}, {which}" for which in ("most entropy", "least error", "most error")),
    *FAMILIES,
    "remapped Laplace",
    "optimal geo-ind",
    "optimal for the prior",
    "dummies",
)
"""Names of the library's mechanisms."""


class Lineup:
    """All mechanisms of the comparison on one setting; those that do not depend on the prior are built once."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.loss, self.metric = setting.loss, setting.metric
        self._families: dict[str, Family] = {}

    def family(self, name: str) -> Family:
        """Return the family of that name on the setting's grid, with a cache of its channels."""
        if name not in self._families:
            self._families[name] = lru_cache(maxsize=256)(partial(FAMILIES[name], self.setting.grid))
        return self._families[name]

    @cached_property
    def optimal_for_uniform(self) -> list[Tuned]:
        """Two of the many mechanisms of largest adversary error under the uniform prior at the wanted loss."""
        choices: dict[str, Choice] = {
            OPTIMAL_FOR_UNIFORM: "symmetric",
            f"{OPTIMAL_FOR_UNIFORM}, most entropy": "entropy",
        }
        return [Tuned(name, self._most_error(self.setting.uniform, choose)) for name, choose in choices.items()]

    def optimal_for(self, prior: Prior) -> list[Tuned]:
        """Return the optimum for the prior, and the extremes of all optima for the uniform prior under it."""
        optima = [tuned.channel for tuned in self.optimal_for_uniform if tuned.channel is not None]
        if not np.array_equal(prior.mass, self.setting.uniform.mass):
            found = optimal_error_range(
                self.setting.uniform, prior, max_loss=self.loss, loss=self.metric, adversary_loss=self.metric
            )
            optima += [found.lowest_channel, found.highest_channel]
        # The lowest error found is an upper estimate of the minimum; another known optimum may be lower.
        optima.sort(key=lambda channel: adversary_error(channel, prior, loss=self.metric))
        return [
            Tuned(f"{OPTIMAL_FOR_UNIFORM}, least error", optima[0]),
            Tuned(f"{OPTIMAL_FOR_UNIFORM}, most error", optima[-1]),
            Tuned("optimal for the prior", self._most_error(prior, "symmetric"), knows_prior=True),
        ]

    @cached_property
    def for_uniform(self) -> dict[str, Tuned]:
        """The families tuned to the wanted loss under the uniform prior."""
        return self._families_for(self.setting.uniform)

    def against(self, prior: Prior) -> Iterator[tuple[Equalised, Tuned]]:
        """Yield the mechanisms to measure under a prior, each with the prior under which losses are equal.

        Mechanisms without a parameter to tune come twice: cloaking, dummies, and the optimal mechanisms, whose
        bound on the loss is under the prior that they are optimal for.
        """
        grid = self.setting.grid
        *extremes, best = self.optimal_for(prior)
        zones = Tuned("cloaking", cloaking(grid, zone=self.setting.zone))
        fixed_first = [zones, *self.optimal_for_uniform, *extremes]
        fixed_last = [best, Tuned("dummies", _decoy(grid), exact_answer=True)]
        for way in EQUALISED:
            tuned = self.for_uniform if way == "uniform" else self._families_for(prior)
            laplace = tuned["planar Laplace"]
            if way == "uniform":
                remapped = replace(laplace, channel=self.remapped(laplace.parameter, prior))
            else:
                remapped = self._tuned("", lambda epsilon: self.remapped(epsilon, prior), prior)
            private = self.least_loss(laplace.parameter, prior)
            informed = [
                replace(remapped, name="remapped Laplace", knows_prior=True),
                Tuned("optimal geo-ind", private, laplace.parameter, knows_prior=True),
            ]
            for contender in (*fixed_first, *tuned.values(), *informed, *fixed_last):
                yield way, contender

    def _families_for(self, prior: Prior) -> dict[str, Tuned]:
        return {name: self._tuned(name, self.family(name), prior) for name in FAMILIES}

    def remapped(self, epsilon: float, prior: Prior) -> Channel:
        """Return the planar Laplace followed by the best remapping for a prior."""
        channel = self.family("planar Laplace")(epsilon)
        return channel @ bayes_remap(channel, prior, loss=self.metric)

    def least_loss(self, epsilon: float, prior: Prior) -> Channel:
        """Return the mechanism of least loss for a prior and an epsilon per metre."""
        return min_loss_given_epsilon(prior, epsilon=epsilon, loss=self.metric, tolerance=TOLERANCE)

    def _most_error(self, prior: Prior, choose: Choice) -> Channel:
        return max_adversary_error_given_loss(
            prior, max_loss=self.loss, loss=self.metric, adversary_loss=self.metric, choose=choose
        )

    def _tuned(self, name: str, family: Family, prior: Prior) -> Tuned:
        try:
            epsilon = epsilon_for_loss(family, prior, loss=self.loss, metric=self.metric)
        except InfeasibleError:
            # The loss after remapping is at most the error of the prior alone; then the noise is as wide as
            # allowed.
            epsilon = 1 / (100 * float(np.ptp(prior.sites.xy, axis=0).max()))
        return Tuned(name, family(epsilon), epsilon)


RELATIVE = 1e-10
WIDEST = 4000.0
"""Largest ratio of the noise's scale to the extent of the sites, and of the extent to the scale."""


def epsilon_for_loss(family: Family, prior: Prior, *, loss: float, metric: Distance = euclidean) -> float:
    """Return the epsilon at which a family of mechanisms has the wanted expected distance.

    Parameters
    ----------
    family : callable
        From epsilon to a channel whose loss falls as epsilon grows.
    prior : Prior
        The prior of the expectation.
    loss : float
        Wanted expected distance between truth and report, in metres.
    metric : Distance
        The distance.

    Raises
    ------
    InfeasibleError
        If no epsilon gives such a large (or small) loss.

    Examples
    --------
    The planar Laplace with the loss of cloaking on the paper's grid:

    >>> from geoind import Grid, PlanarLaplace, discretise
    >>> grid = Grid(0, 0, cell=100, columns=9, rows=9)
    >>> epsilon = epsilon_for_loss(
    ...     lambda epsilon: discretise(PlanarLaplace(epsilon), grid), Prior.uniform(grid), loss=107.29838
    ... )
    >>> round(epsilon, 6)
    0.016163
    """
    loss = as_positive(loss, "loss")
    size = float(np.ptp(prior.sites.xy, axis=0).max())
    if not size > 0:
        raise InfeasibleError("the expected distance on a single site is always 0")
    low, high = 1 / (WIDEST * size), WIDEST / size

    def excess(log_epsilon: float) -> float:
        return expected_loss(family(math.exp(log_epsilon)), prior, loss=metric) / loss - 1

    # Widen the bracket from a likely value, because channels at the extremes are slow to compute.
    near = far = min(max(2 / loss, low), high)
    while excess(math.log(near)) < 0:
        if near <= low:
            raise InfeasibleError(f"no epsilon makes the expected distance as large as {loss:g}")
        far, near = near, max(near / 2, low)
    while excess(math.log(far)) > 0:
        if far >= high:
            raise InfeasibleError(f"no epsilon makes the expected distance as small as {loss:g}")
        near, far = far, min(far * 2, high)
    return math.exp(brentq(excess, math.log(near), math.log(far), xtol=RELATIVE, rtol=4 * RELATIVE))
