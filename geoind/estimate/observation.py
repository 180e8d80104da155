"""Reports as observations of a population: the probability of each observed report, as a linear map.

An estimator needs three things of the reports: their counts (`counts`), their probabilities under a population
(`predict`), and the transposed map (`explain`). Only reports that occurred matter, so `counts` and `predict` have
one number per *observed* report cell. Reports are first grouped by mechanism.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, IntArray, as_floats
from geoind.channels.channel import Channel
from geoind.distances import haversine
from geoind.errors import InvalidInputError, SitesMismatchError, plural
from geoind.estimate.convolution import BEYOND, Convolution, window_around
from geoind.mechanisms.planar import PlanarLaplace
from geoind.mechanisms.projected import Projected
from geoind.mechanisms.protocol import Mechanism, is_mechanism, space_of
from geoind.mechanisms.spherical import SphericalLaplace
from geoind.space.projection import Projection, points_xy
from geoind.space.sites import Grid, Sites, same_sites

if TYPE_CHECKING:
    from geopandas import GeoDataFrame, GeoSeries

__all__ = [
    "Mechanisms",
    "Observation",
    "Reports",
    "check_inputs",
    "count_outputs",
    "epsilon_in_plane",
    "grouped",
    "observe",
    "windowed",
]

ROUNDING = 1e-16
"""A predicted probability below this share of the largest is rounding error of the Fourier transform."""


Observation: TypeAlias = "_ChannelReports | _NoiseReports | _Together"
"""Observed reports, and the linear map from populations to their probabilities."""


@dataclass(frozen=True, eq=False)
class _ChannelReports:
    """Reports of a finite channel: a dense matrix.

    `counts` are those of each observed report; so they are of the other observations.
    """

    counts: FloatArray
    columns: FloatArray

    @classmethod
    def of(cls, channel: Channel, reports: FloatArray) -> "_ChannelReports":
        """Return the reports as counts of the channel's outputs."""
        counts = count_outputs(channel, reports)
        seen = np.flatnonzero(counts)
        columns = channel.matrix[:, seen]
        impossible = int(counts[seen][columns.max(axis=0) == 0].sum())
        if impossible:
            raise InvalidInputError(
                f"no input of the channel can give {impossible:,} of {plural(len(reports), 'report')}: "
                "it is not the mechanism of these reports"
            )
        return cls(counts[seen].astype(np.float64), columns)

    @property
    def sensitivity(self) -> FloatArray:
        """One: every report of a channel is observed."""
        return np.ones(len(self.columns))

    def predict(self, mass: FloatArray) -> FloatArray:
        """Return the probability of each observed output."""
        return mass @ self.columns

    def explain(self, weights: FloatArray) -> FloatArray:
        """Return for each input the weighted sum of its row."""
        return self.columns @ weights


def count_outputs(channel: Channel, reports: FloatArray) -> IntArray:
    """Return the count of each output of the channel; reports outside a grid raise an error."""
    if isinstance(channel.outputs, Grid):
        # Half a cell of tolerance, because degrees on a lattice do not map back to the exact centre of a cell.
        west, south, east, north = channel.outputs.bounds
        half = channel.outputs.cell / 2
        low, high = (west - half, south - half), (east + half, north + half)
        beyond = int(((reports < low) | (reports > high)).any(axis=1).sum())
        if beyond:
            raise InvalidInputError(
                f"the channel's outputs do not cover {beyond:,} of {plural(len(reports), 'report')}: "
                "it is not the mechanism of these reports, or its grid is in another plane"
            )
    return np.bincount(channel.outputs.nearest(reports), minlength=len(channel.outputs))


@dataclass(frozen=True, eq=False)
class _NoiseReports:
    """Reports of planar Laplace noise of several epsilons, counted in the cells of a window."""

    counts: FloatArray
    seen: tuple[IntArray, ...]
    convolution: Convolution

    @classmethod
    def of(cls, grid: Grid, window: Grid, groups: Sequence[tuple[float, FloatArray]]) -> "_NoiseReports":
        """Return the reports of groups (epsilon per metre, (n, 2) metres within the window)."""
        every = [np.bincount(window.nearest(xy), minlength=len(window)) for _, xy in groups]
        seen = tuple(np.flatnonzero(counts) for counts in every)
        counts = np.concatenate([every[group][cells] for group, cells in enumerate(seen)])
        convolution = Convolution.between(grid, window, [epsilon for epsilon, _ in groups])
        return cls(counts.astype(np.float64), seen, convolution)

    @cached_property
    def sensitivity(self) -> FloatArray:
        """Probability that a report stays within the window."""
        shares = np.array([part.sum() for part in self._parts(self.counts)]) / self.counts.sum()
        return self.convolution.gather([np.full(self.convolution.window, share) for share in shares])

    def predict(self, mass: FloatArray) -> FloatArray:
        """Return the probability of each observed cell, group after group."""
        images = self.convolution.spread(mass)
        return np.concatenate(
            [
                np.maximum(image.ravel()[seen], ROUNDING * image.max())
                for image, seen in zip(images, self.seen, strict=True)
            ]
        )

    def explain(self, weights: FloatArray) -> FloatArray:
        """Return for each cell of the population the weighted sum of its reports' probabilities."""
        images = []
        for seen, part in zip(self.seen, self._parts(weights), strict=True):
            image = np.zeros(self.convolution.window)
            image.ravel()[seen] = part
            images.append(image)
        return self.convolution.gather(images)

    def _parts(self, values: FloatArray) -> list[FloatArray]:
        return np.split(values, np.cumsum([len(seen) for seen in self.seen])[:-1])


@dataclass(frozen=True, eq=False)
class _Together:
    """Reports of people with different mechanisms (generalised iterative Bayesian update)."""

    parts: tuple[Observation, ...]

    @cached_property
    def counts(self) -> FloatArray:
        """Count of each observed report, part after part."""
        return np.concatenate([part.counts for part in self.parts])

    @cached_property
    def sensitivity(self) -> FloatArray:
        """Probability that a report can be observed, averaged over the reports."""
        total = np.zeros(len(self.parts[0].sensitivity))
        for part in self.parts:
            total += part.counts.sum() / self.counts.sum() * part.sensitivity
        return total

    def predict(self, mass: FloatArray) -> FloatArray:
        """Return the probability of each observed report, part after part."""
        return np.concatenate([part.predict(mass) for part in self.parts])

    def explain(self, weights: FloatArray) -> FloatArray:
        """Return the sum over the parts."""
        bounds = np.cumsum([len(part.counts) for part in self.parts])[:-1]
        total = np.zeros(len(self.parts[0].sensitivity))
        for part, share in zip(self.parts, np.split(weights, bounds), strict=True):
            total += part.explain(share)
        return total


Reports: TypeAlias = "ArrayLike | GeoDataFrame | GeoSeries"
"""(n, 2) metres; (n, 2) degrees where a projection is given; or a frame of points with a CRS."""


Mechanisms: TypeAlias = Mechanism | ArrayLike | Sequence[Mechanism]
"""One mechanism or epsilon for all reports, or one for each."""

MOST_GROUPS = 128
"""Largest number of different mechanisms; each needs two transforms per step."""

Group: TypeAlias = tuple[Mechanism, FloatArray]


def grouped(
    reports: Reports, mechanism: Mechanisms, projection: Projection | None
) -> tuple[list[Group], Projection | None]:
    """Return (mechanism, (n, 2) metres) for each different mechanism, and the projection into the plane."""
    projection = _common_projection(mechanism, projection)
    columns = mechanism.outputs.xy.shape[1] if isinstance(mechanism, Channel) else 2
    xy = points_xy(reports, projection, "reports", columns=columns)
    if not len(xy):
        raise InvalidInputError("reports must not be empty")
    split = _split(mechanism, len(xy), on_globe=projection is not None)
    return [(_planar(one), xy[rows]) for one, rows in split], projection


def _planar(mechanism: Mechanism) -> Mechanism:
    """Return the planar mechanism of projected reports: the one inside a `Projected`."""
    return mechanism.mechanism if isinstance(mechanism, Projected) else mechanism


def epsilon_in_plane(mechanism: Mechanism, grid: Grid, projection: Projection | None) -> float:
    """Return the epsilon of the noise's density, per metre of the plane.

    That is `noise_epsilon`. On the globe a metre of the plane differs by up to 0.6 % from a metre of the sphere on
    which the noise is drawn; the ratio is measured in the middle of the grid.
    """
    epsilon: float | None = getattr(mechanism, "noise_epsilon", None)
    if epsilon is None:
        raise InvalidInputError(
            "mechanism must be a Channel, or noise whose density is known (PlanarLaplace, SphericalLaplace), "
            f"got {type(mechanism).__name__}; for post-processed noise build the channel of its outputs"
        )
    if space_of(mechanism) == "xy":
        return epsilon
    if projection is None:
        raise InvalidInputError("the reports are in degrees: pass projection= for the grid's plane")
    west, south, east, north = grid.bounds
    middle = np.array([west + east, south + north]) / 2
    cross = projection.to_lonlat(middle + np.array([[-500, 0], [500, 0], [0, -500], [0, 500]]))
    across, along = haversine(cross[:1], cross[1:2])[0, 0], haversine(cross[2:3], cross[3:])[0, 0]
    return epsilon * math.sqrt(across * along) / 1000


def _common_projection(mechanism: Mechanisms, projection: Projection | None) -> Projection | None:
    several = mechanism if isinstance(mechanism, (list, tuple)) else [mechanism]
    for one in several:
        if isinstance(one, Projected):
            if projection is not None and projection != one.projection:
                raise InvalidInputError("the mechanism's projection differs from the one given")
            projection = one.projection
    return projection


def _split(mechanism: Mechanisms, count: int, *, on_globe: bool) -> list[tuple[Mechanism, Any]]:
    """Return each different mechanism and the rows of its reports."""
    if mechanism is None or isinstance(mechanism, (str, bytes)):
        raise InvalidInputError(f"the mechanism or the epsilon of the reports must be known, got {mechanism!r}")
    if _is_mechanism(mechanism):
        return [(cast("Mechanism", mechanism), slice(None))]
    if isinstance(mechanism, (list, tuple)) and mechanism and _is_mechanism(mechanism[0]):
        kinds: dict[Mechanism, int] = {}
        which = np.array([kinds.setdefault(one, len(kinds)) for one in mechanism])
        different = list(kinds)
    else:
        noise = SphericalLaplace if on_globe else PlanarLaplace
        epsilons = as_floats(cast("ArrayLike", mechanism), "epsilon")
        if not epsilons.shape:
            return [(noise(float(epsilons)), slice(None))]
        values, which = np.unique(epsilons, return_inverse=True)
        _check_groups(len(values))
        different = [noise(value) for value in values.tolist()]
    if which.shape != (count,):
        raise InvalidInputError(f"epsilon must be one for all or one per report: {which.size} for {count}")
    _check_groups(len(different))
    return [(one, which == group) for group, one in enumerate(different)]


def _check_groups(count: int) -> None:
    if count > MOST_GROUPS:
        raise InvalidInputError(
            f"reports have {count} different epsilons or mechanisms, more than {MOST_GROUPS}: round the epsilons"
        )


def _is_mechanism(value: object) -> bool:
    return is_mechanism(value)


def observe(
    groups: Sequence[Group], grid: Sites, projection: Projection | None, *, open_border: bool
) -> tuple[Observation, Sites]:
    """Return the observation, and the sites of its population: the grid, or a wider one."""
    parts: list[Observation] = []
    for mechanism, xy in groups:
        if isinstance(mechanism, Channel):
            check_inputs(mechanism, grid)
            parts.append(_ChannelReports.of(mechanism, xy))
    if open_border and parts:
        raise InvalidInputError("open_border needs noise: a channel has no people outside its inputs")
    population = grid
    noisy = [group for group in groups if not isinstance(group[0], Channel)]
    if noisy:
        cells, window, inside = windowed(noisy, grid, projection, open_border=open_border)
        population = window if open_border else cells
        parts.append(_NoiseReports.of(window if open_border else cells, window, inside))
    return (parts[0] if len(parts) == 1 else _Together(tuple(parts))), population


def check_inputs(channel: Channel, grid: Sites) -> None:
    """Raise an error if the grid is not the inputs of the channel."""
    if not same_sites(channel.inputs, grid):
        raise SitesMismatchError("grid must be the inputs of the channel")


def windowed(
    groups: Sequence[Group], grid: Sites, projection: Projection | None, *, open_border: bool = False
) -> tuple[Grid, Grid, list[tuple[float, FloatArray]]]:
    """Return the grid, the window around it, and (epsilon per metre, reports within the window) for each group.

    It is an error if no report lies within the window, or if more lie outside than people in the grid would send.
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
    # Six standard deviations more than people on the border would send that far.
    most = BEYOND * total + 6 * math.sqrt(BEYOND * total) + 6
    if lost == total or (lost > most and not open_border):
        raise InvalidInputError(
            f"{lost:,} of {plural(total, 'report')} are too far away for people in the grid: is the grid in the "
            "plane of the reports, and wide enough? If people may be outside it, pass open_border=True"
        )
    return grid, window, [(epsilon, xy) for epsilon, xy in kept if len(xy)]
