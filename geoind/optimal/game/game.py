"""A user's and an adversary's losses on the sites that matter, and strategies as matrices over them."""

import numpy as np

from geoind.arrays import FloatArray
from geoind.channels.channel import Channel
from geoind.channels.priors import Prior
from geoind.distances import Distance, euclidean
from geoind.optimal.game.program import GameProgram
from geoind.optimal.problem import as_loss
from geoind.optimal.symmetry import Symmetry, symmetry_of
from geoind.space.sites import Sites

__all__ = ["Game"]

ROUNDING = 1e-14


class Game:
    """The game between a user and adversaries with the given priors, restricted to inputs that have mass.

    Parameters
    ----------
    priors : list of Prior
        On the same sites; the first one's is the user's.
    outputs : Sites or None
        What may be reported; by default the priors' sites.
    loss, adversary_loss : Distance
    symmetric : bool
        Whether strategies must have the problem's symmetries.
    """

    def __init__(
        self,
        priors: list[Prior],
        outputs: Sites | None,
        loss: Distance,
        adversary_loss: Distance,
        *,
        symmetric: bool,
    ) -> None:
        self.inputs = priors[0].sites
        self.outputs = self.inputs if outputs is None else outputs
        n, m = len(self.inputs), len(self.outputs)
        cost = as_loss(loss(self.inputs.xy, self.outputs.xy), (n, m))
        error = as_loss(adversary_loss(self.inputs.xy, self.inputs.xy), (n, n), "adversary_loss")
        masses = np.column_stack([prior.mass for prior in priors])
        whole = Symmetry(np.arange(n)[None], np.arange(m)[None])
        if symmetric:
            whole = symmetry_of(self.inputs, self.outputs, error, cost, masses)
        self.support = np.flatnonzero(masses.any(axis=1))
        number = np.full(n, -1)
        number[self.support] = np.arange(len(self.support))
        self.masses = list(np.ascontiguousarray(masses[self.support].T))
        self.loss, self.error = cost[self.support], error[self.support]
        restricted = Symmetry(number[whole.inputs[:, self.support]], whole.outputs)
        self.program = GameProgram(self.masses, self.loss, self.error, restricted, whole.inputs, cost)

    def expected_loss(self, matrix: FloatArray) -> float:
        """Return the expected loss of a strategy under the first prior."""
        return float(self.masses[0] @ (matrix * self.loss).sum(axis=1))

    def adversary_error(self, matrix: FloatArray, turn: int = 0) -> float:
        """Return the error of the best guesses under one of the priors."""
        joint = self.masses[turn][:, None] * matrix
        return float((joint.T @ self.error).min(axis=1).sum())

    def error_without_report(self) -> float:
        """Return the error of the best single guess under the first prior."""
        return float((self.masses[0] @ self.error).min())

    def cheapest_reports(self) -> FloatArray:
        """Return the strategy that always sends the cheapest report: it hides least."""
        matrix = np.zeros_like(self.loss)
        matrix[np.arange(len(matrix)), self.loss.argmin(axis=1)] = 1.0
        return matrix

    def within_loss(self, matrix: FloatArray, max_loss: float) -> FloatArray:
        """Return the strategy with just enough of the cheapest one mixed in to bring the loss within bounds."""
        cheap = self.cheapest_reports()
        # A sum of products depends on the order of its terms: leave room for somebody else's.
        max_loss -= ROUNDING * abs(max_loss)
        over, least = self.expected_loss(matrix) - max_loss, self.expected_loss(cheap)
        share = over / max(over + max_loss - least, np.finfo(float).tiny)
        while over > 0:
            mixed = (1 - share) * matrix + share * cheap
            if self.expected_loss(mixed) <= max_loss or share >= 1:
                return mixed
            share = min(1.0, 2 * share)
        return matrix

    def with_error(self, matrix: FloatArray, min_error: float) -> FloatArray:
        """Return the strategy with just enough silence mixed in to bring the error within bounds."""
        silent = np.zeros_like(matrix)
        min_error += ROUNDING * abs(min_error)
        silent[:, int(np.argmin(self.masses[0] @ self.loss))] = 1.0
        under, most = min_error - self.adversary_error(matrix), self.error_without_report()
        share = under / max(under + most - min_error, np.finfo(float).tiny)
        while under > 0:
            mixed = (1 - share) * matrix + share * silent
            if self.adversary_error(mixed) >= min_error or share >= 1:
                return mixed
            share = min(1.0, 2 * share)
        return matrix

    def strategy(self, prices: FloatArray) -> FloatArray:
        """Return the adversary's strategy, (outputs, inputs), from the multipliers of its guesses."""
        prices = np.maximum(prices, 0.0)
        total = prices.sum(axis=1, keepdims=True)
        anything = np.zeros(prices.shape[1])
        anything[int(np.argmin(self.masses[0] @ self.error))] = 1.0
        return np.where(total > 0, prices / np.where(total > 0, total, 1.0), anything)

    def channel(self, matrix: FloatArray) -> Channel:
        """Return a strategy as a channel; an input without mass gets the row of the closest one that has some."""
        away = euclidean(self.inputs.xy, self.inputs.xy[self.support])
        return Channel(self.inputs, self.outputs, matrix[away.argmin(axis=1)])
