"""The population behind private reports, by maximum likelihood."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy import fft
from scipy.ndimage import gaussian_filter

from geoind.arrays import FloatArray, as_finite, frozen
from geoind.channels.channel import Channel
from geoind.channels.priors import Prior
from geoind.errors import InvalidInputError, SitesMismatchError, plural
from geoind.estimate.ascent import Blur, climbed, held_out_steps
from geoind.estimate.climb import Climb
from geoind.estimate.convolution import BEYOND, window_around
from geoind.estimate.groups import Group, Mechanisms, Reports, epsilon_in_plane, grouped
from geoind.estimate.observation import ChannelReports, NoiseReports, Observation, Together
from geoind.parallel import available_cores
from geoind.pictures.card import card
from geoind.pictures.cells import thumbnail
from geoind.space.projection import Projection
from geoind.space.sites import Grid, Sites, same_sites

__all__ = ["PopulationEstimate", "estimate_population"]


@dataclass(frozen=True, eq=False)
class Fit:
    """How an estimate was made, so that it can be made again from resampled reports."""

    observation: Observation
    blur: Blur
    steps: int
    population: Sites
    """The sites that the estimate ran on: wider than the grid where people may be outside of it."""
    start: FloatArray | None = None
    """The population that it started from; the uniform one if None."""


@dataclass(frozen=True, eq=False, repr=False)
class PopulationEstimate(Prior):
    """An estimated population: a prior that says how it was found.

    Attributes
    ----------
    log_likelihood : array
        Per report, in nats, of the first population and after each step. Never falls.
    gap : float
        No population has a log-likelihood per report larger than the last one by more than this.
    reports : int
        How many reports the estimate explains.
    left_out : int
        How many reports lay too far from the grid to be of its people, and were not used.
    """

    log_likelihood: FloatArray
    gap: float
    reports: int
    left_out: int
    fit: Fit = field(repr=False)

    def __init__(
        self,
        sites: Sites,
        mass: FloatArray,
        *,
        log_likelihood: Sequence[float],
        gap: float,
        reports: int,
        left_out: int,
        fit: Fit,
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
        """How many steps were taken."""
        return len(self.log_likelihood) - 1


def estimate_population(
    reports: Reports,
    mechanism: Mechanisms,
    grid: Sites,
    *,
    projection: Projection | None = None,
    smoothing: float = 0.0,
    open_border: bool = False,
    climb: Climb = Climb(),
) -> PopulationEstimate:
    """Return the distribution of people over a grid that explains their private reports.

    The iterative Bayesian update climbs from the uniform population towards the most likely one. That one
    itself is a poor map: it explains the chance in the reports too, with a sky of single bright cells. By
    default half of the reports are set aside: the steps are counted after which the other half predicts them best,
    and as many steps are taken with all. `Climb(stopping="converged")` goes on until no population can be likelier
    by more than its tolerance (a guarantee, not a guess: the log-likelihood is concave), or its number of steps.

    Parameters
    ----------
    reports : (n, 2) array, GeoDataFrame or GeoSeries
        Metres in the grid's plane; degrees, longitude first, if a projection is given; or points with a CRS.
    mechanism : Channel, PlanarLaplace, SphericalLaplace or Projected; number; one of these per report
        What made the reports. A number is the epsilon of `PlanarLaplace`, or of `SphericalLaplace` where a
        projection is given. People with different epsilons or channels: a list or array, one per report.
    grid : Grid
        Where people may be. For channels, their inputs.
    projection : Projection, optional
        From degrees to the grid's metres.
    smoothing : float
        Standard deviation of a Gaussian, in metres: only populations that are blurred this much are
        considered. Nothing in the estimate is sharper than that: a peak comes out wider and lower.
    open_border : bool
        Whether people may also be outside the grid. If not, reports beyond it are noise of people within it,
        and too many too far away are an error. If so, the estimate runs on a wider grid, and the result is the
        distribution of those within the grid. For noise, not for channels.
    climb : Climb
        Until when, from where, and who hears of it meanwhile: `geoind.estimate.Climb(stopping="converged")`.

    Examples
    --------
    >>> from geoind import PlanarLaplace
    >>> from geoind.evaluation import synthetic_city
    >>> city, noise = synthetic_city(32), PlanarLaplace(math.log(4) / 200)
    >>> reports = noise.sample(city.sample_xy(20_000, rng=1), rng=2)
    >>> found = estimate_population(reports, noise, city.grid)
    >>> bool(abs(found.mass - city.prior.mass).sum() / 2 < 0.2)
    True
    """
    if not isinstance(climb, Climb):
        raise InvalidInputError(f"climb must be a Climb, such as Climb(stopping='converged'), got {climb!r}")
    groups, projection = grouped(reports, mechanism, projection)
    total = sum(len(xy) for _, xy in groups)
    observation, population = _observe(groups, grid, projection, open_border=open_border)
    blur = _gaussian_blur(population, smoothing)
    first = None if climb.start is None else _first(climb.start, population)
    steps, tolerance = climb.max_steps, climb.tolerance
    with fft.set_workers(available_cores()):
        if climb.stopping == "held-out":
            steps = held_out_steps(observation, blur, most=steps, start=first, progress=climb.progress)
            tolerance = 0.0
        last, trace = climbed(
            observation,
            observation.counts,
            blur,
            most=steps,
            start=first,
            tolerance=tolerance,
            progress=climb.progress,
        )
    used = int(observation.counts.sum())
    return PopulationEstimate(
        grid,
        share_within(grid, population, last.mass),
        log_likelihood=trace,
        gap=last.gap,
        reports=used,
        left_out=total - used,
        fit=Fit(observation, blur, len(trace) - 1, population, first),
    )


def _first(start: Prior, population: Sites) -> FloatArray:
    """Return the masses to start from, if they are of this population."""
    if not same_sites(start.sites, population):
        raise SitesMismatchError("start must be a population on the grid, and needs a closed border")
    return start.mass


def share_within(grid: Sites, population: Sites, mass: FloatArray) -> FloatArray:
    """Return the masses of the grid's cells, given that one is there, from those of a wider grid."""
    if population is grid:
        return mass
    inside = mass[population.nearest(grid.xy)]
    return np.asarray(inside / inside.sum())


def _observe(
    groups: Sequence[Group], grid: Sites, projection: Projection | None, *, open_border: bool
) -> tuple[Observation, Sites]:
    """Return what the reports say, and the sites that it is said about: the grid, or a wider one."""
    parts: list[Observation] = []
    for mechanism, xy in groups:
        if isinstance(mechanism, Channel):
            check_inputs(mechanism, grid)
            parts.append(ChannelReports.of(mechanism, xy))
    if open_border and parts:
        raise InvalidInputError("open_border needs noise: a channel knows nobody outside its inputs")
    population = grid
    noisy = [group for group in groups if not isinstance(group[0], Channel)]
    if noisy:
        cells, window, inside = windowed(noisy, grid, projection, open_border=open_border)
        population = window if open_border else cells
        parts.append(NoiseReports.of(window if open_border else cells, window, inside))
    return (parts[0] if len(parts) == 1 else Together(tuple(parts))), population


def check_inputs(channel: Channel, grid: Sites) -> None:
    """Refuse a grid that is not what the channel's people are on."""
    if not same_sites(channel.inputs, grid):
        raise SitesMismatchError("grid must be the inputs of the channel")


def windowed(
    groups: Sequence[Group], grid: Sites, projection: Projection | None, *, open_border: bool = False
) -> tuple[Grid, Grid, list[tuple[float, FloatArray]]]:
    """Return the grid, the window around it, and (epsilon per metre, reports within the window) for each group.

    Refuses if no report lies within the window, or more do not than its people would send that far.
    """
    if not isinstance(grid, Grid):
        raise InvalidInputError(f"grid must be a Grid where reports are noise, got {type(grid).__name__}")
    noisy = sorted(
        (epsilon_in_plane(mechanism, grid, projection), number) for number, (mechanism, _) in enumerate(groups)
    )
    window = window_around(grid, noisy[0][0])
    west, south, east, north = window.bounds
    kept, total = [], 0
    for epsilon, number in noisy:
        xy = groups[number][1]
        total += len(xy)
        kept.append((epsilon, xy[((xy >= (west, south)) & (xy <= (east, north))).all(axis=1)]))
    lost = total - sum(len(xy) for _, xy in kept)
    # Six standard deviations more than people on the very border would send that far.
    most = BEYOND * total + 6 * math.sqrt(BEYOND * total) + 6
    if lost == total or (lost > most and not open_border):
        raise InvalidInputError(
            f"the noise of people in the grid does not reach {lost:,} of {plural(total, 'report')}: "
            "is the grid in the reports' plane, and wide enough? If people may be outside it, open the border"
        )
    return grid, window, [(epsilon, xy) for epsilon, xy in kept if len(xy)]


def _gaussian_blur(sites: Sites, smoothing: float) -> Blur:
    """Return the blur with a standard deviation in metres, mirrored at the border so that no mass leaves."""
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
