"""Which one of the many optimal mechanisms of the game."""

import numpy as np

from geoind.arrays import FloatArray
from geoind.errors import InfeasibleError
from geoind.optimal.game.program import Equilibrium, GameProgram

__all__ = ["least_worst_loss"]


def _optimal_error(optimum: Equilibrium) -> float:
    """Return the error that counts as optimal: less than the optimum by what the solver may miss."""
    return optimum.value - 1e-9 * abs(optimum.value)


def least_worst_loss(program: GameProgram, max_loss: float, optimum: Equilibrium) -> FloatArray:
    """Return the optimal strategy with the smallest largest loss, by bisection over the losses that occur."""
    levels = np.unique(program.loss[program.adversaries[0].mass > 0])
    # Losses that differ by rounding only are one level.
    levels = levels[np.append(np.diff(levels) > 1e-9 * levels[-1], True)]
    low, high, best = -1, len(levels) - 1, optimum.matrix
    while high - low > 1:
        middle = (low + high) // 2
        try:
            found = program.solve(
                prize=(1.0,),
                max_loss=max_loss,
                allowed=program.loss <= levels[middle] * (1 + 1e-9),
            )
        except InfeasibleError:
            low = middle
            continue
        if found.value >= _optimal_error(optimum):
            high, best = middle, found.matrix
        else:
            low = middle
    return best
