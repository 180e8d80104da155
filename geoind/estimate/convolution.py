"""Planar Laplace noise on a large grid without a matrix, by Fourier transforms.

The kernel is the probability of each offset from the cell of the truth to the cell of the report. The truth is
uniform within its cell, so with offsets (i, j) in cells and the density f

    k[i, j] = integral of f(x, y) * tent(x - i) * tent(y - j),   tent(t) = max(0, 1 - |t|).

If the truth were taken to be at the centre of its cell, reports next to a border would count as evidence for the
neighbouring cell: a bias that grows with the cell.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import fft

from geoind.arrays import FloatArray
from geoind.errors import InvalidInputError
from geoind.mechanisms.planar import PlanarLaplace
from geoind.space.sites import Grid

__all__ = ["BEYOND", "TAIL", "Convolution", "laplace_kernel", "window_around"]

BEYOND = 1e-4
"""Probability that a report falls outside the window, for a person on the border of the grid."""

MOST_CELLS = 1 << 25
"""Largest number of cells of a window: a quarter of a gigabyte per array."""


def window_around(grid: Grid, epsilon: float) -> Grid:
    """Return the grid with a margin on every side that contains almost all reports from the grid.

    Examples
    --------
    >>> window_around(Grid(0, 0, cell=100, columns=8, rows=4), 0.01).columns
    32
    """
    margin = math.ceil(float(PlanarLaplace(epsilon).radius_quantile(1 - BEYOND)) / grid.cell)
    columns, rows = grid.columns + 2 * margin, grid.rows + 2 * margin
    if columns * rows > MOST_CELLS:
        raise InvalidInputError(
            f"the noise extends {margin} cells beyond the grid, which needs {columns} x {rows} cells: "
            "use larger cells"
        )
    corner = grid.x - margin * grid.cell, grid.y - margin * grid.cell
    return Grid(*corner, cell=grid.cell, columns=columns, rows=rows)


@dataclass(frozen=True, eq=False)
class Convolution:
    """Planar Laplace noise of several epsilons, from the cells of a grid to those of the window around it.

    In the window the noise is the same kernel everywhere, also at the border of the grid. The transforms are long
    enough to avoid wrap-around.
    """

    window: tuple[int, int]
    people: tuple[slice, slice]
    lengths: tuple[int, int]
    spectra: tuple[FloatArray, ...]

    @classmethod
    def between(
        cls, grid: Grid, window: Grid, epsilons: Sequence[float], *, periodic: bool = False
    ) -> "Convolution":
        """Return the convolutions for noise of each epsilon, per metre.

        In a periodic window the east end is next to the west end; then the map has an inverse.
        """
        top, left = round((grid.y - window.y) / grid.cell), round((grid.x - window.x) / grid.cell)
        people = slice(top, top + grid.rows), slice(left, left + grid.columns)
        size = window.rows, window.columns
        tail = math.ceil(TAIL / (min(epsilons) * grid.cell))
        if periodic:
            kernels = [laplace_kernel(epsilon * grid.cell, (tail, tail)) for epsilon in epsilons]
            return cls(size, people, size, tuple(_spectrum(kernel, size) for kernel in kernels))
        farthest = min(window.rows - 1 - top, tail), min(window.columns - 1 - left, tail)
        lengths = (
            fft.next_fast_len(window.rows + farthest[0] - top, real=True),
            fft.next_fast_len(window.columns + farthest[1] - left, real=True),
        )
        kernels = [laplace_kernel(epsilon * grid.cell, farthest) for epsilon in epsilons]
        return cls(size, people, lengths, tuple(_spectrum(kernel, lengths) for kernel in kernels))

    def spread(self, mass: FloatArray) -> list[FloatArray]:
        """Return the probability of a report in each cell of the window, for each epsilon."""
        rows, columns = self.people
        image = np.zeros(self.window)
        image[rows, columns] = mass.reshape(rows.stop - rows.start, columns.stop - columns.start)
        transformed = fft.rfft2(image, s=self.lengths)
        return [
            self._back(transformed * spectrum)[: self.window[0], : self.window[1]] for spectrum in self.spectra
        ]

    def gather(self, images: Sequence[FloatArray]) -> FloatArray:
        """Return the adjoint of `spread`: for each cell of the grid the sum of the convolved images."""
        total = np.zeros(self.spectra[0].shape, dtype=np.complex128)
        for image, spectrum in zip(images, self.spectra, strict=True):
            total += fft.rfft2(image, s=self.lengths) * spectrum
        return np.maximum(self._back(total)[self.people], 0.0).ravel()

    def _back(self, transformed: npt.NDArray[np.complex128]) -> FloatArray:
        return np.asarray(fft.irfft2(transformed, s=self.lengths), dtype=np.float64)


def _spectrum(kernel: FloatArray, lengths: tuple[int, int]) -> FloatArray:
    """Return the transform of a kernel given for non-negative offsets: real, because the kernel is even.

    Offsets beyond the lengths wrap around and add up.
    """
    for axis, length in enumerate(lengths):
        offsets = np.arange(kernel.shape[axis])
        image = np.zeros((*kernel.shape[:axis], length, *kernel.shape[axis + 1 :]))
        moved, wrapped = np.moveaxis(kernel, axis, 0), np.moveaxis(image, axis, 0)
        np.add.at(wrapped, offsets % length, moved)
        np.add.at(wrapped, -offsets[1:] % length, moved[1:])
        kernel = image
    return np.asarray(fft.rfft2(kernel).real, dtype=np.float64)


TAIL = 40.0
"""Beyond this many noise scales the kernel is below the rounding error of its largest entries."""

NODES, MOST_NODES = 8, 160
"""Gauss-Legendre nodes per unit square: eight and one per noise scale in a cell give 12 digits."""


def laplace_kernel(scale: float, farthest: tuple[int, int]) -> FloatArray:
    """Return `k[i, j]` for offsets of 0 up to `farthest` rows and columns; other signs follow by symmetry.

    Parameters
    ----------
    scale : float
        epsilon * cell: the width of a cell in noise scales.
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
    # The tent at offset i increases over the unit square before i (index 1) and decreases over the one after
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
