"""Noise on a large grid without a matrix: from cells of people to cells of reports by Fourier transforms."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import fft

from geoind.arrays import FloatArray
from geoind.errors import InvalidInputError
from geoind.estimate.kernel import TAIL, laplace_kernel
from geoind.mechanisms.planar import PlanarLaplace
from geoind.space.sites import Grid

__all__ = ["BEYOND", "Convolution", "window_around"]

BEYOND = 1e-4
"""Probability that a report falls outside the window, for a person on the border of the grid."""

MOST_CELLS = 1 << 25
"""A window of more cells than this (a quarter of a gigabyte per array) is refused."""


def window_around(grid: Grid, epsilon: float) -> Grid:
    """Return the grid with a margin on every side, so wide that reports of its people stay within.

    Examples
    --------
    >>> window_around(Grid(0, 0, cell=100, columns=8, rows=4), 0.01).columns
    32
    """
    margin = math.ceil(float(PlanarLaplace(epsilon).radius_quantile(1 - BEYOND)) / grid.cell)
    columns, rows = grid.columns + 2 * margin, grid.rows + 2 * margin
    if columns * rows > MOST_CELLS:
        raise InvalidInputError(
            f"the noise reaches {margin} cells beyond the grid, which makes {columns} x {rows} cells: "
            "take larger cells"
        )
    corner = grid.x - margin * grid.cell, grid.y - margin * grid.cell
    return Grid(*corner, cell=grid.cell, columns=columns, rows=rows)


@dataclass(frozen=True, eq=False)
class Convolution:
    """Planar Laplace noise of several epsilons, from the cells of a grid to those of the window around it.

    In the window the noise is the same kernel everywhere: the border of the grid is no special case. The
    transforms are long enough that nothing wraps around.
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

        A periodic window has its east end next to its west end: then the map has an inverse.
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
        """Return for each cell of the grid the images (one per epsilon) seen through its noise, added up."""
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
