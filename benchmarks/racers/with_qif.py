"""qif (libqif) in the comparison: noise in the plane, one point per call."""

import numpy as np
import qif

PLANE = True


def sample(points: np.ndarray, epsilon: float) -> np.ndarray:
    """Return reports for many points, by the only sampler there is."""
    draw = qif.mechanism.geo_ind.planar_laplace_sample
    noise = [draw(epsilon) for _ in range(len(points))]
    return np.asarray(points + np.array([(z.x, z.y) for z in noise]))


def one(x: float, y: float, epsilon: float) -> tuple[float, float]:
    """Return a report for one point."""
    noise = qif.mechanism.geo_ind.planar_laplace_sample(epsilon)
    return x + noise.x, y + noise.y


def reports(x: float, y: float, count: int, epsilon: float) -> np.ndarray:
    """Return independent reports of one point."""
    return sample(np.tile([[x, y]], (count, 1)), epsilon)


def repeats() -> bool:
    """Return whether two calls with default arguments give the same noise."""
    return one(0.0, 0.0, 0.01) == one(0.0, 0.0, 0.01)


def distances(side: int, cell: float) -> np.ndarray:
    """Return distances between all cells of a square grid."""
    row, column = np.divmod(np.arange(side * side), side)
    return np.asarray(cell * np.hypot(row[:, None] - row[None, :], column[:, None] - column[None, :]))


def laplace_matrix(side: int, cell: float, epsilon: float) -> np.ndarray:
    """Return the planar Laplace as a matrix."""
    return np.asarray(qif.mechanism.geo_ind.planar_laplace_grid(side, side, cell, epsilon))


def optimal_matrix(side: int, cell: float, epsilon: float) -> np.ndarray:
    """Return the optimal mechanism as a matrix, by the default solver."""
    apart = distances(side, cell).tolist()
    return np.asarray(
        qif.mechanism.d_privacy.min_loss_given_d(
            qif.probab.uniform(side * side),
            side * side,
            lambda a, b: epsilon * apart[a][b],
            lambda a, b: apart[a][b],
        )
    )
