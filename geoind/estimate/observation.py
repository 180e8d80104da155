"""What reports say about a population: the probability of each observed report, as a linear map.

Whatever estimates needs three things of the reports: how often each was seen (`counts`), how probable a
population makes each of them (`predict`), and the transposed map (`explain`). Only reports that were seen
matter, so `counts` and `predict` hold one number per *observed* report cell.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from geoind.arrays import FloatArray, IntArray
from geoind.channels.channel import Channel
from geoind.errors import InvalidInputError, plural
from geoind.estimate.convolution import Convolution
from geoind.space.sites import Grid

__all__ = ["ChannelReports", "NoiseReports", "Observation", "Together", "count_outputs"]

ROUNDING = 1e-16
"""A predicted probability below this share of the largest is rounding error of the Fourier transform."""


class Observation(Protocol):
    """Reports seen, and the linear map from populations to their probabilities."""

    @property
    def counts(self) -> FloatArray:
        """How often each observed report was seen."""
        ...

    @property
    def sensitivity(self) -> FloatArray:
        """Probability that a report of a person at each site is one that could be observed."""
        ...

    def predict(self, mass: FloatArray) -> FloatArray:
        """Return the probability of each observed report under a population."""
        ...

    def explain(self, weights: FloatArray) -> FloatArray:
        """Return for each site the sum of its reports' probabilities times their weights."""
        ...


@dataclass(frozen=True, eq=False)
class ChannelReports:
    """Reports of a finite channel: a dense matrix."""

    counts: FloatArray
    columns: FloatArray

    @classmethod
    def of(cls, channel: Channel, reports: FloatArray) -> "ChannelReports":
        """Return the reports as counts of the channel's outputs."""
        counts = count_outputs(channel, reports)
        seen = np.flatnonzero(counts)
        columns = channel.matrix[:, seen]
        impossible = int(counts[seen][columns.max(axis=0) == 0].sum())
        if impossible:
            raise InvalidInputError(
                f"no input of the channel can give {impossible:,} of {plural(len(reports), 'report')}: "
                "it is not the mechanism that made them"
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
    """Return how often each output of the channel was reported; reports outside a grid are refused."""
    if isinstance(channel.outputs, Grid):
        # Half a cell of tolerance: degrees on a lattice do not come back to the very centre of their cell.
        west, south, east, north = channel.outputs.bounds
        half = channel.outputs.cell / 2
        low, high = (west - half, south - half), (east + half, north + half)
        beyond = int(((reports < low) | (reports > high)).any(axis=1).sum())
        if beyond:
            raise InvalidInputError(
                f"the channel's outputs do not cover {beyond:,} of {plural(len(reports), 'report')}: "
                "it is not the mechanism that made them, or its grid is in another plane"
            )
    return np.bincount(channel.outputs.nearest(reports), minlength=len(channel.outputs))


@dataclass(frozen=True, eq=False)
class NoiseReports:
    """Reports of planar Laplace noise of several epsilons, counted in the cells of a window."""

    counts: FloatArray
    seen: tuple[IntArray, ...]
    convolution: Convolution

    @classmethod
    def of(cls, grid: Grid, window: Grid, groups: Sequence[tuple[float, FloatArray]]) -> "NoiseReports":
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
class Together:
    """Reports of people with different mechanisms (generalised iterative Bayesian update)."""

    parts: tuple[Observation, ...]

    @cached_property
    def counts(self) -> FloatArray:
        """How often each observed report was seen, part after part."""
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
        """Return the sum of what the parts explain."""
        bounds = np.cumsum([len(part.counts) for part in self.parts])[:-1]
        total = np.zeros(len(self.parts[0].sensitivity))
        for part, share in zip(self.parts, np.split(weights, bounds), strict=True):
            total += part.explain(share)
        return total
