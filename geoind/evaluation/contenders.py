"""The mechanisms of the comparison, each tuned to a loss under a prior."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

import numpy as np

from geoind.arrays import FloatArray
from geoind.channel import Channel
from geoind.channels import cloaking, exponential, planar_geometric, randomised_response
from geoind.discretise import discretise
from geoind.errors import InfeasibleError
from geoind.evaluation.setting import Setting
from geoind.evaluation.tuning import Family, epsilon_for_loss
from geoind.laplace import PlanarLaplace
from geoind.optimal import min_loss_given_epsilon
from geoind.priors import Prior
from geoind.remap import bayes_remap
from geoind.sites import Grid

__all__ = ["FAMILIES", "Contender", "Lineup"]


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
    """

    name: str
    channel: Channel
    parameter: float = float("nan")
    knows_prior: bool = False


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
    from scipy.special import ndtr

    steps = np.arange(count)
    near = np.abs(steps[None, :] - steps[:, None]) - 0.5
    # Both bounds on the lower tail: differences of cumulative values near 1 would lose the far cells.
    mass = ndtr(-near * rate) - ndtr(-(near + 1) * rate)
    for border in (0, count - 1):
        mass[:, border] = ndtr(-near[:, border] * rate)
    return np.asarray(mass / mass.sum(axis=1, keepdims=True))


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
    def for_uniform(self) -> dict[str, Contender]:
        """The families tuned to the wanted loss under the uniform prior."""
        return {name: self._tuned(name, self.family(name), self.setting.uniform) for name in FAMILIES}

    def against(self, prior: Prior, *, tuned_to_prior: bool) -> Iterator[Contender]:
        """Yield the mechanisms to measure under a prior.

        Parameters
        ----------
        prior : Prior
            What the adversary knows.
        tuned_to_prior : bool
            Whether the expected distance is made equal under this prior, or under the uniform one (as the paper).
        """
        yield Contender("cloaking", cloaking(self.setting.grid, zone=self.setting.zone))
        tuned = (
            {name: self._tuned(name, self.family(name), prior) for name in FAMILIES}
            if tuned_to_prior
            else self.for_uniform
        )
        yield from tuned.values()
        laplace = tuned["planar Laplace"]
        if tuned_to_prior:
            yield self._tuned("remapped Laplace", lambda epsilon: self._remapped(epsilon, prior), prior)
        else:
            remapped = laplace.channel @ bayes_remap(laplace.channel, prior)
            yield Contender("remapped Laplace", remapped, laplace.parameter, knows_prior=True)
        best = min_loss_given_epsilon(prior, epsilon=laplace.parameter, tolerance=1e-6)
        yield Contender("optimal geo-ind", best, laplace.parameter, knows_prior=True)

    def _remapped(self, epsilon: float, prior: Prior) -> Channel:
        channel = self.family("planar Laplace")(epsilon)
        return channel @ bayes_remap(channel, prior)

    def _tuned(self, name: str, family: Family, prior: Prior) -> Contender:
        try:
            epsilon = epsilon_for_loss(family, prior, loss=self.loss)
        except InfeasibleError:
            # Remapping never costs more than the prior's own error: then the noise is as wide as it gets.
            epsilon = 1 / (100 * float(np.ptp(prior.sites.xy, axis=0).max()))
        return Contender(name, family(epsilon), epsilon, knows_prior=name == "remapped Laplace")
