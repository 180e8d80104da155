"""Planar Laplace noise between the cells of a grid: the probability of each offset from truth to report.

A person is anywhere within their cell with equal probability; the cell of the report is `(i, j)` cells away
with probability `k[i, j]`. Averaging over the person's cell weights the density by a tent, so

    k[i, j] = integral of f(x, y) * tent(x - i) * tent(y - j),   tent(t) = max(0, 1 - |t|)

in units of cells. A person taken to be in the middle of the cell would make reports next to a border look like
evidence for the neighbour: a bias that grows with the cell.
"""

import math

import numpy as np

from geoind.arrays import FloatArray

__all__ = ["TAIL", "laplace_kernel"]

TAIL = 40.0
"""Beyond this many noise scales the kernel is below the rounding errors of its largest entries."""

NODES, MOST_NODES = 8, 160
"""Gauss-Legendre nodes per unit square: eight and one per noise scale in a cell give 12 digits."""


def laplace_kernel(scale: float, farthest: tuple[int, int]) -> FloatArray:
    """Return `k[i, j]` for offsets of 0 up to `farthest` rows and columns; other signs follow by symmetry.

    Parameters
    ----------
    scale : float
        epsilon * cell: how many noise scales a cell is wide.
    farthest : (int, int)
        Largest offset in rows and in columns.

    Examples
    --------
    >>> k = laplace_kernel(0.5, (90, 90))
    >>> total = k[0, 0] + 2 * k[0, 1:].sum() + 2 * k[1:, 0].sum() + 4 * k[1:, 1:].sum()
    >>> bool(abs(total - 1) < 1e-12)
    True
    """
    moments = scale**2 / (2 * math.pi) * _moments(scale, farthest[0] + 1, farthest[1] + 1)
    # The tent over offset i rises over the unit square before i (index 1) and falls over the one after
    # (index 0); at offset 0 the square before is the mirror image of the one after.
    rows = moments[:, :, 0].copy()
    rows[1:] += moments[:-1, :, 1]
    rows[0] *= 2
    kernel = rows[:, :, 0].copy()
    kernel[:, 1:] += rows[:, :-1, 1]
    kernel[:, 0] *= 2
    return kernel


def _moments(scale: float, rows: int, columns: int) -> FloatArray:
    """Return integrals of exp(-scale * r) over unit squares, (rows, columns, 2, 2): falling or rising per axis."""
    nodes, weights = _gauss(scale, NODES)
    tents = np.stack([1 - nodes, nodes]) * weights
    y, x = np.arange(rows)[:, None] + nodes, np.arange(columns)[:, None] + nodes
    moments = np.empty((rows, columns, 2, 2))
    for row in range(rows):
        density = np.exp(-scale * np.hypot(y[row][:, None, None], x[None]))
        moments[row] = np.einsum("py,ycx,qx->cpq", tents, density, tents, optimize=True)
    moments[0, 0] = _corner_moments(scale)
    return moments


def _corner_moments(scale: float) -> FloatArray:
    """Return the moments of the square at the truth, where the density has its cusp.

    Each of the two triangles next to the cusp is a square in polar-like coordinates (s, s t), where the
    integrand is smooth.
    """
    nodes, weights = _gauss(scale, 3 * NODES)
    s, t = np.meshgrid(nodes, nodes, indexing="ij")
    mass = np.outer(weights, weights) * s * np.exp(-scale * s * np.sqrt(1 + t**2))
    long, short = np.stack([1 - s, s]), np.stack([1 - s * t, s * t])
    one = np.einsum("pst,st,qst->pq", long, mass, short)
    return np.asarray(one + one.T)


def _gauss(scale: float, least: int) -> tuple[FloatArray, FloatArray]:
    nodes, weights = np.polynomial.legendre.leggauss(min(least + math.ceil(scale), MOST_NODES))
    return (nodes + 1) / 2, weights / 2
