"""What somebody learns who sees the whole sequence: a Bayesian who knows the method, the time and how people move.

A hidden Markov model over the cells of a grid. The forward-backward filter gives the belief about every moment,
given all reports, before and after it. A move of the belief is a convolution, so a step costs a few Fourier
transforms of the grid.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
from scipy import fft

from geoind.arrays import ArrayLike, FloatArray, as_floats, as_lonlat, as_positive
from geoind.channels.median import geometric_median
from geoind.channels.priors import Prior
from geoind.errors import InvalidInputError, SitesMismatchError
from geoind.space.projection import Projection
from geoind.space.sites import Grid, same_sites
from geoind.traces.session import Past, Published, TraceMethod

__all__ = ["Mobility", "trace_adversary_error", "trace_beliefs"]

LEVELS = (np.arange(12) + 0.5) / 12
"""Quantiles that stand for the noise that a run of tests shares."""


@dataclass(frozen=True)
class Mobility:
    """How people move, as far as the adversary knows: over an hour some stay, the others go in any direction.

    Parameters
    ----------
    grid : Grid
        The cells that the adversary tells apart.
    projection : Projection
        Between the grid's metres and degrees.
    speed : float
        Root mean square distance that somebody on the move covers in an hour, in metres.
    stay : float
        The share of people who are where they were, an hour later.
    prior : Prior, optional
        Where people are at any time: buildings, roads, a population. Uniform by default.
    """

    grid: Grid
    projection: Projection
    speed: float = 20_000.0
    stay: float = 0.5
    prior: Prior | None = None
    _spectra: dict[float, npt.NDArray[np.complex128]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        as_positive(self.speed, "speed")
        if not 0 <= self.stay < 1:
            raise InvalidInputError(f"stay must be at least 0 and less than 1, got {self.stay!r}")
        if self.prior is not None and not same_sites(self.prior.sites, self.grid):
            raise SitesMismatchError("the prior must be over the grid of the mobility model")

    @property
    def mass(self) -> FloatArray:
        """Where people are at any time, rows by columns."""
        flat = np.full(len(self.grid), 1 / len(self.grid)) if self.prior is None else self.prior.mass
        return np.asarray(flat).reshape(self.grid.rows, self.grid.columns)

    def spread(self, belief: FloatArray, hours: float) -> FloatArray:
        """Return the belief after a free walk of so many hours, before the prior pulls it to where people are."""
        shape = (2 * self.grid.rows, 2 * self.grid.columns)
        if hours not in self._spectra:
            if len(self._spectra) > 64:
                self._spectra.clear()
            self._spectra[hours] = fft.rfft2(self._kernel(hours, shape), workers=1)
        spectrum = fft.rfft2(belief, s=shape, axes=(-2, -1)) * self._spectra[hours]
        moved = fft.irfft2(spectrum, s=shape, axes=(-2, -1))[..., : self.grid.rows, : self.grid.columns]
        return np.maximum(moved, 0.0)

    def _kernel(self, hours: float, shape: tuple[int, int]) -> FloatArray:
        still = self.stay**hours
        # A walk, not a flight: the distance grows with the time, the direction is kept.
        reach = max(self.speed * hours, self.grid.cell / 4)
        rows, columns = (np.minimum(np.arange(n), n - np.arange(n)) * self.grid.cell for n in shape)
        walk = np.exp(-(rows[:, None] ** 2 + columns[None, :] ** 2) / reach**2)
        kernel = (1 - still) * walk / walk.sum()
        kernel[0, 0] += still
        return np.asarray(kernel, np.float64)


def trace_beliefs(
    reports: ArrayLike, times: ArrayLike, *, method: TraceMethod, mobility: Mobility
) -> Iterator[FloatArray]:
    """Yield the belief about each moment, given all reports: rows by columns of the mobility model's grid.

    Parameters
    ----------
    reports : (n, 2) array
        Published longitudes and latitudes, in order.
    times : (n,) array
        When, in seconds.
    method : TraceMethod
        How the session answers; the adversary knows it.
    mobility : Mobility
        How people move.
    """
    lonlat, seconds = as_lonlat(reports, "reports"), as_floats(times, "times")
    if seconds.shape != (len(lonlat),) or not len(lonlat):
        raise InvalidInputError(f"times must be one per report, got {seconds.shape} and {len(lonlat)} reports")
    if not (np.diff(seconds) > 0).all():
        raise InvalidInputError("times must increase")
    likelihoods, renewals = _likelihoods(lonlat, seconds, method, mobility)
    hours = np.diff(seconds) / 3600
    mass = mobility.mass
    ahead = [np.broadcast_to(mass, likelihoods[0].shape) * likelihoods[0]]
    for step, gap in enumerate(hours.tolist()):
        belief = _renewed(ahead[-1] / ahead[-1].sum(), renewals[step])
        ahead.append(_forward(belief, gap, mobility, mass) * likelihoods[step + 1])
    behind = np.ones_like(likelihoods[0])
    beliefs: list[FloatArray] = []
    for step in range(len(seconds) - 1, -1, -1):
        belief = (ahead[step] * behind).sum(axis=0)
        beliefs.append(belief / belief.sum())
        if step:
            behind = _backward(likelihoods[step] * behind, float(hours[step - 1]), mobility, mass)
            behind = _renewed(behind / behind.max(), renewals[step - 1])
    return reversed(beliefs)


def trace_adversary_error(
    reports: ArrayLike, truth: ArrayLike, *, times: ArrayLike, method: TraceMethod, mobility: Mobility
) -> float:
    """Return the mean distance, in metres, between the truth and the guesses of somebody who sees every report.

    The guess about each moment has the least expected distance under the belief. Parameters as in `trace_beliefs`;
    `truth` is (n, 2) lon/lat.
    """
    places = mobility.projection.to_xy(as_lonlat(truth, "truth"))
    xy = mobility.grid.xy
    errors = []
    for place, belief in zip(places, trace_beliefs(reports, times, method=method, mobility=mobility), strict=True):
        [guess] = geometric_median(xy, belief.reshape(1, -1), tolerance=mobility.grid.cell / 1000)
        errors.append(float(np.hypot(*(guess - place))))
    return float(np.mean(errors))


def _likelihoods(
    lonlat: FloatArray, seconds: FloatArray, method: TraceMethod, mobility: Mobility
) -> tuple[list[FloatArray], list[bool]]:
    """Return for each step the probability of its answer by (level, row, column), and whether its run ended."""
    grid = mobility.grid
    levels = (LEVELS if method.tests_in_runs else np.array([0.5]))[:, None]

    def apart(place: tuple[float, float]) -> FloatArray:
        [[x, y]] = mobility.projection.to_xy([place])
        return np.asarray(np.hypot(grid.xy[:, 0] - x, grid.xy[:, 1] - y))

    past = Past(float(seconds[0]), began=float(seconds[0]))
    likelihoods: list[FloatArray] = []
    renewals: list[bool] = []
    for time, (lon, lat) in zip(seconds.tolist(), lonlat.tolist(), strict=True):
        past = replace(past, time=time)
        after = method.seen(past, (lon, lat))
        quiet = likelihoods and past.run is not None and after.runs == past.runs and not renewals[-1]
        if quiet:
            # A silent test says the same as the one before: one array serves the whole run.
            likelihoods.append(likelihoods[-1])
        else:
            layers = np.broadcast_to(method.likelihood(past, (lon, lat), apart, levels), (len(levels), len(grid)))
            likelihoods.append((layers / layers.max()).astype(np.float32).reshape(-1, grid.rows, grid.columns))
        renewals.append(after.runs != past.runs)
        published = Published(time, lon, lat, fresh=after.anchors != past.anchors)
        past = replace(after, reports=(*after.reports, published)[-max(1, method.remembered) :])
    return likelihoods, renewals


def _renewed(belief: FloatArray, renewal: bool) -> FloatArray:
    """Return the belief after a new draw of the noise that a run shares."""
    return np.broadcast_to(belief.mean(axis=0), belief.shape) if renewal else belief


def _forward(belief: FloatArray, hours: float, mobility: Mobility, mass: FloatArray) -> FloatArray:
    # From a cell to each other one in proportion to the walk's reach and to the people there.
    return mass * mobility.spread(belief / mobility.spread(mass, hours), hours)


def _backward(belief: FloatArray, hours: float, mobility: Mobility, mass: FloatArray) -> FloatArray:
    return mobility.spread(mass * belief, hours) / mobility.spread(mass, hours)
