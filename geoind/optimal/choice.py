"""Which one of the many optimal mechanisms of the game."""

import numpy as np

from geoind.arrays import FloatArray
from geoind.errors import InfeasibleError
from geoind.optimal.expost import expost_for_loss
from geoind.optimal.game import Game, Play

__all__ = ["least_worst_loss", "most_entropy"]

ENTROPY_ACCURACY = 1e-3
"""Bits; the linear bound on what is left to gain, at which the search for the largest entropy ends."""


def _optimal_error(play: Play) -> float:
    """Return the error that counts as optimal: a hair less than the optimum, for the solver's sake."""
    return play.value - 1e-9 * abs(play.value)


def least_worst_loss(game: Game, max_loss: float, play: Play) -> FloatArray:
    """Return the optimal strategy with the smallest largest loss, by bisection over the losses that occur."""
    levels = np.unique(game.loss[game.adversaries[0].mass > 0])
    # Losses that differ by rounding only are one level.
    levels = levels[np.append(np.diff(levels) > 1e-9 * levels[-1], True)]
    low, high, best = -1, len(levels) - 1, play.matrix
    while high - low > 1:
        middle = (low + high) // 2
        try:
            found = game.solve(
                prize=(1.0,),
                max_loss=max_loss,
                allowed=game.loss <= levels[middle] * (1 + 1e-9),
            )
        except InfeasibleError:
            low = middle
            continue
        if found.value >= _optimal_error(play):
            high, best = middle, found.matrix
        else:
            low = middle
    return best


def most_entropy(game: Game, max_loss: float, play: Play) -> tuple[FloatArray, float]:
    """Return the optimal strategy of largest conditional entropy H(truth | report), and how much is left at most.

    Simplicial decomposition: the entropy is concave, so that its gradient at the best mixture of the vertices
    found so far yields, by a linear program over the optimal mechanisms, the vertex to add next and a bound on
    what is left. Mixtures of optimal mechanisms are optimal, whatever the accuracy of the weights.
    """
    mass = game.adversaries[0].mass
    # The largest entropy of all mechanisms within the loss: if this one is optimal, too, nothing can beat it.
    widest = expost_for_loss(mass, game.loss, max_loss)
    if game.least_error(widest) >= _optimal_error(play):
        return widest, 0.0
    vertices, weights, left = [play.matrix], np.ones(1), np.inf
    for _ in range(100):
        matrix = np.tensordot(weights, np.array(vertices), axes=1)
        slope = _entropy_slope(mass, matrix)
        found = game.solve(reward=slope, max_loss=max_loss, min_error=_optimal_error(play)).matrix
        left = float((slope * (found - matrix)).sum())
        if left <= ENTROPY_ACCURACY:
            break
        vertices.append(found)
        weights = _best_mixture(mass, np.array(vertices), np.append(0.9 * weights, 0.1))
        kept = weights > 1e-9
        vertices = [vertex for vertex, keep in zip(vertices, kept, strict=True) if keep]
        weights = weights[kept] / weights[kept].sum()
    return np.tensordot(weights, np.array(vertices), axes=1), max(left, 0.0)


def _entropy_slope(mass: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return the derivative of H(truth | report), in bits, by every entry of the matrix."""
    joint = mass[:, None] * matrix
    # An entry of 0 has an infinite slope; the floor stands for it and keeps the linear program in scale.
    posterior = np.maximum(joint, 1e-9 * mass[:, None]) / np.maximum(joint.sum(axis=0), 1e-9)
    return np.asarray(-mass[:, None] * np.log2(np.minimum(posterior, 1.0)))


def _best_mixture(mass: FloatArray, vertices: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weights of largest entropy, by multiplicative ascent with a step that adapts."""

    def entropy(share: FloatArray) -> float:
        joint = mass[:, None] * np.tensordot(share, vertices, axes=1)
        total = np.where(joint > 0, joint / np.maximum(joint.sum(axis=0), 1e-300), 1.0)
        return float(-(joint * np.log2(total)).sum())

    step, value = 1.0, entropy(weights)
    for _ in range(200):
        slope = np.tensordot(vertices, _entropy_slope(mass, np.tensordot(weights, vertices, axes=1)), axes=2)
        trial = weights * np.exp(step * (slope - slope.max()))
        trial /= trial.sum()
        reached = entropy(trial)
        if reached >= value:
            gained, weights, value, step = reached - value, trial, reached, 2 * step
            if gained < 1e-9:
                break
        else:
            step /= 4
            if step < 1e-6:
                break
    return weights
