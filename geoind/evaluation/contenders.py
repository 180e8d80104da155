"""The mechanisms of the comparison, each tuned to a loss under a prior."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Literal, TypeAlias

import numpy as np
from scipy.special import ndtr

from geoind import max_adversary_error_given_loss, min_loss_given_epsilon
from geoind.arrays import FloatArray
from geoind.channels.channel import Channel
from geoind.channels.discretise import discretise
from geoind.channels.formulas import cloaking, exponential, planar_geometric, randomised_response
from geoind.channels.metrics import adversary_error
from geoind.channels.priors import Prior
from geoind.channels.remap import bayes_remap
from geoind.errors import InfeasibleError
from geoind.evaluation.setting import Setting
from geoind.evaluation.tuning import Family, epsilon_for_loss
from geoind.mechanisms.planar import PlanarLaplace
from geoind.optimal import Effort, optimal_error_range
from geoind.space.sites import Grid, Places

__all__ = ["EFFORT", "EQUALISED", "FAMILIES", "Contender", "Equalised", "Lineup"]

Equalised: TypeAlias = Literal["uniform", "evaluated"]
EQUALISED: tuple[Equalised, ...] = ("uniform", "evaluated")
"""The prior under which expected distances are made equal: the uniform one (as the paper), or the one at hand."""

EFFORT = Effort(tolerance=1e-4)
"""Relative gap at which a loss counts as least: a centimetre here, and reachable where the loss is tiny."""

OPTIMAL_FOR_UNIFORM = "optimal for uniform"


@dataclass(frozen=True, eq=False)
class Contender:
    """A mechanism ready to be measured.

    Attributes
    ----------
    name : str
    channel : Channel
    parameter : float
        The epsilon (per metre) it was built with; NaN where there is none.
    knows_prior : bool
        Whether it was built for the very prior that it is measured under.
    exact_answer : bool
        Whether the service answers for the true place, so that no distance is lost.
    """

    name: str
    channel: Channel
    parameter: float = float("nan")
    knows_prior: bool = False
    exact_answer: bool = False


def _flat(grid: Grid, epsilon: float) -> Channel:
    """Return randomised response whose neighbouring cells are epsilon per metre apart."""
    response = randomised_response(len(grid), epsilon=epsilon * grid.cell)
    return Channel(grid, grid, response.matrix)


def _gaussian(grid: Grid, epsilon: float) -> Channel:
    """Return Gaussian noise of standard deviation 1 / epsilon per axis; border cells take what falls outside."""
    along_x, along_y = (_normal_steps(count, epsilon * grid.cell) for count in (grid.columns, grid.rows))
    matrix = np.kron(along_y, along_x)
    return Channel(grid, grid, matrix / matrix.sum(axis=1, keepdims=True))


def _normal_steps(count: int, rate: float) -> FloatArray:
    """Return the probability of each cell of a line for normal noise around each cell's centre."""
    steps = np.arange(count)
    near = np.abs(steps[None, :] - steps[:, None]) - 0.5
    # Both bounds on the lower tail: differences of cumulative values near 1 would lose the far cells.
    mass = ndtr(-near * rate) - ndtr(-(near + 1) * rate)
    for border in (0, count - 1):
        mass[:, border] = ndtr(-near[:, border] * rate)
    return np.asarray(mass / mass.sum(axis=1, keepdims=True))


def _decoy(grid: Grid) -> Channel:
    """Return the channel that reports the true cell and one other at random, in no order (2-anonymous dummies).

    A report is a pair of cells; it is placed at their middle.
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
"""Mechanisms with one parameter, epsilon per metre (Gaussian: 1 / sigma), that do not look at the prior."""


class Lineup:
    """Every mechanism of the comparison on one setting, ready to meet priors.

    What does not depend on the prior is built once.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.loss = setting.loss
        self._families: dict[str, Family] = {}

    def family(self, name: str) -> Family:
        """Return the family of that name on the setting's grid; its members are remembered."""
        if name not in self._families:
            self._families[name] = lru_cache(maxsize=256)(partial(FAMILIES[name], self.setting.grid))
        return self._families[name]

    @cached_property
    def optimal_for_uniform(self) -> list[Contender]:
        """Two of the many mechanisms that leave the most error under the uniform prior at the wanted loss."""
        choices: dict[str, Literal["symmetric", "entropy"]] = {
            OPTIMAL_FOR_UNIFORM: "symmetric",
            f"{OPTIMAL_FOR_UNIFORM}, most entropy": "entropy",
        }
        return [
            Contender(
                name, max_adversary_error_given_loss(self.setting.uniform, max_loss=self.loss, choose=choose)
            )
            for name, choose in choices.items()
        ]

    def optimal_for(self, prior: Prior) -> list[Contender]:
        """Return the optimum for the prior, and under it the extremes of all optima for the uniform one."""
        optima: list[Channel] = [contender.channel for contender in self.optimal_for_uniform]
        if not np.array_equal(prior.mass, self.setting.uniform.mass):
            found = optimal_error_range(self.setting.uniform, prior, max_loss=self.loss)
            optima += [found.lowest_channel, found.highest_channel]
        # The lowest one found is an upper estimate of the lowest there is: another known optimum may be lower.
        optima.sort(key=lambda channel: adversary_error(channel, prior))
        return [
            Contender(f"{OPTIMAL_FOR_UNIFORM}, least error", optima[0]),
            Contender(f"{OPTIMAL_FOR_UNIFORM}, most error", optima[-1]),
            Contender(
                "optimal for the prior",
                max_adversary_error_given_loss(prior, max_loss=self.loss),
                knows_prior=True,
            ),
        ]

    @cached_property
    def for_uniform(self) -> dict[str, Contender]:
        """The families tuned to the wanted loss under the uniform prior."""
        return self._families_for(self.setting.uniform)

    def against(self, prior: Prior) -> Iterator[tuple[Equalised, Contender]]:
        """Yield the mechanisms to measure under a prior, and under which prior their loss was made equal.

        Some have nothing to tune and come twice: cloaking, dummies, the optimal mechanisms, whose bound on the
        loss is under the prior that they are optimal for.
        """
        grid = self.setting.grid
        *extremes, best = self.optimal_for(prior)
        zones = Contender("cloaking", cloaking(grid, zone=self.setting.zone))
        fixed_first = [zones, *self.optimal_for_uniform, *extremes]
        fixed_last = [best, Contender("dummies", _decoy(grid), exact_answer=True)]
        for way in EQUALISED:
            tuned = self.for_uniform if way == "uniform" else self._families_for(prior)
            laplace = tuned["planar Laplace"]
            if way == "uniform":
                remapped = replace(laplace, channel=self._remapped(laplace.parameter, prior))
            else:
                remapped = self._tuned("", lambda epsilon: self._remapped(epsilon, prior), prior)
            private = min_loss_given_epsilon(prior, epsilon=laplace.parameter, effort=EFFORT)
            informed = [
                replace(remapped, name="remapped Laplace", knows_prior=True),
                Contender("optimal geo-ind", private, laplace.parameter, knows_prior=True),
            ]
            for contender in (*fixed_first, *tuned.values(), *informed, *fixed_last):
                yield way, contender

    def _families_for(self, prior: Prior) -> dict[str, Contender]:
        return {name: self._tuned(name, self.family(name), prior) for name in FAMILIES}

    def _remapped(self, epsilon: float, prior: Prior) -> Channel:
        channel = self.family("planar Laplace")(epsilon)
        return channel @ bayes_remap(channel, prior)

    def _tuned(self, name: str, family: Family, prior: Prior) -> Contender:
        try:
            epsilon = epsilon_for_loss(family, prior, loss=self.loss)
        except InfeasibleError:
            # Remapping never costs more than the prior's own error: then the noise is as wide as it gets.
            epsilon = 1 / (100 * float(np.ptp(prior.sites.xy, axis=0).max()))
        return Contender(name, family(epsilon), epsilon)
