"""The population estimated from private reports, by matrix inversion.

The expected share of each report is a linear map of the population, so the inverse map of the observed shares
estimates the population (Agrawal and Aggarwal, PODS 2001). The result has negative entries by chance and is
projected to a distribution. It is unbiased before the projection, and much noisier than `estimate_population`.
"""

from typing import Literal

import numpy as np
from scipy import fft

from geoind.arrays import FloatArray
from geoind.channels.channel import Channel
from geoind.channels.priors import Prior
from geoind.errors import InvalidInputError
from geoind.estimate.convolution import Convolution
from geoind.estimate.observation import Mechanisms, Reports, check_inputs, count_outputs, grouped, windowed
from geoind.space.projection import Projection
from geoind.space.sites import Sites

__all__ = ["invert_population", "nearest_distribution"]

Repair = Literal["project", "clip"]

SINGULAR = 1e-12
"""A map with a smaller ratio of singular values is not inverted: rounding errors would dominate."""


def invert_population(
    reports: Reports,
    mechanism: Mechanisms,
    grid: Sites,
    *,
    projection: Projection | None = None,
    repair: Repair = "project",
    open_border: bool = False,
) -> Prior:
    """Return the population whose expected reports are the observed ones, repaired to a distribution.

    For a channel the linear system is solved; for noise on a grid the convolution is inverted by division of
    Fourier transforms, on the grid and a margin around it.

    Parameters
    ----------
    reports, mechanism, grid, projection
        As in `estimate_population`; one mechanism for all reports.
    repair : "project" or "clip"
        Take the closest distribution (Euclidean projection on the simplex), or set negative entries to zero and
        scale the rest.
    open_border : bool
        Whether people may also be outside the grid, as in `estimate_population`.

    Raises
    ------
    InvalidInputError
        If the channel is singular: different populations have the same reports.

    Examples
    --------
    >>> from geoind import Prior, randomised_response
    >>> channel = randomised_response(4, epsilon=1.0)
    >>> people = np.repeat(channel.inputs.xy, [6000, 2000, 1000, 1000], axis=0)
    >>> invert_population(channel.sample(people, rng=1), channel, channel.inputs).mass.round(1)
    array([0.6, 0.2, 0.1, 0.1])
    """
    if repair not in ("project", "clip"):
        raise InvalidInputError(f"repair must be 'project' or 'clip', got {repair!r}")
    groups, projection = grouped(reports, mechanism, projection)
    if len(groups) != 1:
        raise InvalidInputError("inversion needs one mechanism for all reports: use estimate_population")
    [(one, xy)] = groups
    if isinstance(one, Channel):
        check_inputs(one, grid)
        solved = _solve(one.matrix, count_outputs(one, xy) / len(xy))
    else:
        cells, window, [(epsilon, inside)] = windowed(groups, grid, projection, open_border=open_border)
        shares = np.bincount(window.nearest(inside), minlength=len(window)) / len(inside)
        solved = _deconvolve(Convolution.between(cells, window, [epsilon], periodic=True), shares)
    mass = nearest_distribution(solved) if repair == "project" else np.maximum(solved, 0.0)
    return Prior.from_counts(grid, mass)


def _solve(matrix: FloatArray, shares: FloatArray) -> FloatArray:
    """Return the weights `w` with `w @ matrix = shares`, in the least-squares sense if outputs are more."""
    rows, columns = matrix.shape
    singular = np.linalg.svd(matrix, compute_uv=False) if columns >= rows else np.zeros(1)
    if not singular[-1] > SINGULAR * singular[0]:
        raise InvalidInputError(
            "the channel is singular: different populations have the same reports; use estimate_population"
        )
    if columns == rows:
        return np.asarray(np.linalg.solve(matrix.T, shares), dtype=np.float64)
    return np.asarray(np.linalg.lstsq(matrix.T, shares)[0], dtype=np.float64)


def _deconvolve(convolution: Convolution, shares: FloatArray) -> FloatArray:
    """Return the population of the grid whose noise gives the shares of reports in the window."""
    [spectrum] = convolution.spectra
    if not spectrum.min() > SINGULAR * spectrum.max():
        raise InvalidInputError("the noise is too wide for these cells to be inverted; use estimate_population")
    image = fft.irfft2(fft.rfft2(shares.reshape(convolution.window)) / spectrum, s=convolution.lengths)
    return np.asarray(image[convolution.people], dtype=np.float64).ravel()


def nearest_distribution(weights: FloatArray) -> FloatArray:
    """Return the distribution closest to some weights in the Euclidean sense.

    Examples
    --------
    >>> nearest_distribution(np.array([0.9, 0.5, -0.4]))
    array([0.7, 0.3, 0. ])
    """
    falling = np.sort(weights)[::-1]
    shifts = (np.cumsum(falling) - 1) / np.arange(1, len(weights) + 1)
    shift = float(shifts[np.flatnonzero(falling > shifts)[-1]])
    return np.maximum(weights - shift, 0.0)
