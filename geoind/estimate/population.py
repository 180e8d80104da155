"""The population estimated from private reports, by maximum likelihood."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, TypeAlias, get_args

import numpy as np
from scipy import fft
from scipy.ndimage import gaussian_filter

from geoind.arrays import FloatArray, as_count, as_finite, as_positive, frozen
from geoind.channels.priors import Prior
from geoind.errors import InvalidInputError, SitesMismatchError, plural
from geoind.estimate.ascent import Blur, OnStep, climbed, held_out_steps
from geoind.estimate.observation import Mechanisms, Observation, Reports, grouped, observe
from geoind.parallel import available_cores
from geoind.pictures.card import card
from geoind.pictures.cells import thumbnail
from geoind.space.projection import Projection
from geoind.space.sites import Grid, Sites, same_sites

__all__ = ["PopulationEstimate", "estimate_population"]

Stopping: TypeAlias = Literal["held-out", "converged"]


@dataclass(frozen=True, eq=False)
class _Fit:
    """What is needed to repeat an estimate with resampled reports."""

    observation: Observation
    blur: Blur
    steps: int
    population: Sites
    """The sites of the estimate: more than the grid with an open border."""
    start: FloatArray | None = None
    """The initial population; the uniform one if None."""


@dataclass(frozen=True, eq=False, repr=False)
class PopulationEstimate(Prior):
    """An estimated population: a prior with the history of its estimation.

    Attributes
    ----------
    log_likelihood : array
        Per report, in nats, of the initial population and after each step; it never decreases.
    gap : float
        No population has a log-likelihood per report larger than the last one by more than this.
    reports : int
        Number of reports used.
    left_out : int
        Number of reports too far from the grid, which were not used.
    """

    log_likelihood: FloatArray
    gap: float
    reports: int
    left_out: int
    fit: _Fit = field(repr=False)

    def __init__(
        self,
        sites: Sites,
        mass: FloatArray,
        *,
        log_likelihood: Sequence[float],
        gap: float,
        reports: int,
        left_out: int,
        fit: _Fit,
    ) -> None:
        super().__init__(sites, mass)
        object.__setattr__(self, "log_likelihood", frozen(np.asarray(log_likelihood)))
        object.__setattr__(self, "gap", gap)
        object.__setattr__(self, "reports", reports)
        object.__setattr__(self, "left_out", left_out)
        object.__setattr__(self, "fit", fit)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, from {plural(self.reports, 'report')} in {plural(self.steps, 'step')})"

    def _repr_html_(self) -> str:
        facts = {
            "sites": repr(self.sites),
            "largest mass": f"{self.mass.max():.3g}, at site {self.mass.argmax()}",
            "reports explained": self.reports,
            "reports left out": self.left_out,
            "steps": self.steps,
            "log-likelihood per report": f"{self.log_likelihood[-1]:.4f}, the largest is {self.gap:.2g} more",
        }
        return card(type(self).__name__, facts, thumbnail(self.sites, self.mass))

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.log_likelihood) - 1


def estimate_population(
    reports: Reports,
    mechanism: Mechanisms,
    grid: Sites,
    *,
    projection: Projection | None = None,
    smoothing: float = 0.0,
    open_border: bool = False,
    stopping: Stopping = "held-out",
    max_steps: int = 1000,
    tolerance: float = 1.0,
    start: Prior | None = None,
    progress: OnStep | None = None,
) -> PopulationEstimate:
    """Return the distribution of people over a grid, estimated from their private reports.

    The iterative Bayesian update increases the likelihood from the uniform population towards the maximum. The
    population of maximum likelihood is a poor map: it fits the noise of the reports with single bright cells. By
    default (`stopping="held-out"`) half of the reports are held out, the number of steps is chosen after which a
    fit to the other half predicts them best, and as many steps are taken with all reports. `stopping="converged"`
    continues until no population is likelier by more than `tolerance`, which is proven because the log-likelihood
    is concave.

    Parameters
    ----------
    reports : (n, 2) array, GeoDataFrame or GeoSeries
        Metres in the grid's plane; degrees, longitude first, if a projection is given; or points with a CRS.
    mechanism : Channel, PlanarLaplace, SphericalLaplace or Projected; number; one of these per report
        The mechanism of the reports. A number is the epsilon of `PlanarLaplace`, or of `SphericalLaplace` where a
        projection is given. For different epsilons or channels: a list or array, one per report.
    grid : Grid
        The possible true locations. For channels, their inputs.
    projection : Projection, optional
        From degrees to the grid's metres.
    smoothing : float
        Standard deviation of a Gaussian, in metres: only populations blurred by it are considered, so peaks
        become wider and lower.
    open_border : bool
        Whether people may also be outside the grid. If not, reports beyond it are noise of people within it,
        and too many too far away are an error. If so, the estimate runs on a wider grid, and the result is the
        distribution of those within the grid. For noise, not for channels.
    stopping : "held-out" or "converged"
        Stop where held-out reports are predicted best, or at the maximum of the likelihood.
    max_steps : int
        Largest number of steps.
    tolerance : float
        For `stopping="converged"`: the log-likelihood of all reports is within this many nats of its maximum.
    start : Prior, optional
        Initial population on the grid, positive at every site, for example last month's. Default: the uniform one.
        If the maximum is unique, a converged estimate does not depend on it; one that stops early does.
    progress : callable, optional
        Called with the number of each step and its log-likelihood per report.

    Examples
    --------
    >>> import math
    >>> from geoind import PlanarLaplace
    >>> from geoind.evaluation import synthetic_city
    >>> city, noise = synthetic_city(32), PlanarLaplace(math.log(4) / 200)
    >>> reports = noise.sample(city.sample_xy(20_000, rng=1), rng=2)
    >>> found = estimate_population(reports, noise, city.grid)
    >>> bool(abs(found.mass - city.prior.mass).sum() / 2 < 0.2)
    True
    """
    if stopping not in get_args(Stopping):
        raise InvalidInputError(f"stopping must be 'held-out' or 'converged', got {stopping!r}")
    steps, tolerance = as_count(max_steps, "max_steps"), as_positive(tolerance, "tolerance")
    if progress is not None and not callable(progress):
        raise InvalidInputError(f"progress must be callable, got {type(progress).__name__}")
    groups, projection = grouped(reports, mechanism, projection)
    total = sum(len(xy) for _, xy in groups)
    observation, population = observe(groups, grid, projection, open_border=open_border)
    blur = _gaussian_blur(population, smoothing)
    first = None if start is None else _initial_mass(start, population)
    with fft.set_workers(available_cores()):
        if stopping == "held-out":
            steps = held_out_steps(observation, blur, most=steps, start=first, progress=progress)
            tolerance = 0.0
        last, trace = climbed(
            observation,
            observation.counts,
            blur,
            most=steps,
            start=first,
            tolerance=tolerance,
            progress=progress,
        )
    used = int(observation.counts.sum())
    return PopulationEstimate(
        grid,
        share_within(grid, population, last.mass),
        log_likelihood=trace,
        gap=last.gap,
        reports=used,
        left_out=total - used,
        fit=_Fit(observation, blur, len(trace) - 1, population, first),
    )


def _initial_mass(start: Prior, population: Sites) -> FloatArray:
    """Return the masses of the initial population, checked."""
    if not isinstance(start, Prior):
        raise InvalidInputError(f"start must be a Prior, got {type(start).__name__}")
    if not (start.mass > 0).all():
        raise InvalidInputError(
            f"start must be positive at every site, {(start.mass == 0).sum()} of {len(start)} are zero: "
            "mix it with the uniform prior"
        )
    if not same_sites(start.sites, population):
        raise SitesMismatchError("start must be a population on the grid, and needs open_border=False")
    return start.mass


def share_within(grid: Sites, population: Sites, mass: FloatArray) -> FloatArray:
    """Return the distribution over the grid's cells, given the masses of a wider grid."""
    if population is grid:
        return mass
    inside = mass[population.nearest(grid.xy)]
    return np.asarray(inside / inside.sum())


def _gaussian_blur(sites: Sites, smoothing: float) -> Blur:
    """Return the blur with a standard deviation in metres, mirrored at the border so that the mass is kept."""
    if not as_finite(smoothing, "smoothing") >= 0:
        raise InvalidInputError(f"smoothing must not be negative, got {smoothing!r}")
    if not smoothing:
        return _unchanged
    if not isinstance(sites, Grid):
        raise InvalidInputError(f"smoothing needs a Grid, got {type(sites).__name__}")
    return partial(_blurred, shape=(sites.rows, sites.columns), width=smoothing / sites.cell)


def _unchanged(mass: FloatArray) -> FloatArray:
    return mass


def _blurred(mass: FloatArray, *, shape: tuple[int, int], width: float) -> FloatArray:
    return np.asarray(gaussian_filter(mass.reshape(shape), width, mode="reflect"), dtype=np.float64).ravel()
