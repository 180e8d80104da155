"""A finite mechanism as a matrix: the probability of each report for each true site."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, IntArray, as_floats, frozen
from geoind.channels.extended import ExtendedMatrix
from geoind.channels.priors import Prior
from geoind.channels.rows import (
    as_grid,
    choose,
    choose_exactly,
    choose_one,
    partial_sums,
    parts_of,
    reach_of_rows,
    steepest_ratio,
)
from geoind.distances import Distance, euclidean
from geoind.errors import InvalidInputError, NotStochasticError, SitesMismatchError
from geoind.mechanisms.protocol import RandomnessLike, Space, as_randomness, at_places, fresh_pair
from geoind.pictures.card import card
from geoind.pictures.cells import axes_or_new, dot_on_map, draw_density, thumbnail
from geoind.space.sites import Grid, Sites, same_sites

if TYPE_CHECKING:
    from folium import Map
    from matplotlib.axes import Axes

    from geoind.space.projection import Projection

__all__ = ["Channel", "WorstCase", "tight_epsilon"]

SUM_TOLERANCE = 1e-9

QUICK = 100_000
"""Largest number of entries of a matrix whose epsilon is computed for display in a notebook."""

KEPT = 1 << 23
"""Most partial sums of rows that a channel keeps between draws: 64 MB."""


@dataclass(frozen=True, eq=False, repr=False)
class Channel:
    """A read-only row-stochastic matrix between two sets of sites.

    The guarantee of a channel holds *between its input sites*. Mapping a true location to the closest site happens
    before the noise and is not covered: two points a metre apart on both sides of a cell border count as a whole
    cell apart.

    Parameters
    ----------
    inputs, outputs : Sites
        The possible true locations and the possible reports.
    matrix : (len(inputs), len(outputs)) array
        `matrix[x, z]` is the probability of report `z` at true site `x`; each row sums to 1.

    Examples
    --------
    >>> from geoind import Grid
    >>> street = Grid(0, 0, cell=100, columns=2, rows=1)
    >>> coin = Channel(street, street, [[0.75, 0.25], [0.25, 0.75]])
    >>> round(coin.epsilon * 100, 6)
    1.098612
    """

    inputs: Sites
    outputs: Sites
    rows: FloatArray | ExtendedMatrix
    """The matrix as it is stored; `rows[x]` and `rows[start:stop]` are arrays of its rows."""

    space: ClassVar[Space] = "xy"

    # An array on the left or right of `@` raises TypeError.
    __array_ufunc__ = None

    def __init__(self, inputs: Sites, outputs: Sites, matrix: ArrayLike | ExtendedMatrix) -> None:
        stored = matrix if isinstance(matrix, ExtendedMatrix) else as_floats(matrix, "matrix")
        if stored.shape != (len(inputs), len(outputs)):
            raise SitesMismatchError(
                f"matrix must have shape {(len(inputs), len(outputs))}, inputs by outputs, got {stored.shape}"
            )
        if isinstance(stored, ExtendedMatrix):
            if not same_sites(stored.inputs, inputs):
                raise SitesMismatchError("matrix must have been extended over the inputs")
            sums = stored.sums
        # Written so that NaN fails.
        elif not (stored >= 0).all():
            raise NotStochasticError("matrix must hold probabilities: an entry is negative or not a number")
        else:
            sums = stored.sum(axis=1)
        off = np.abs(sums - 1)
        if not (off <= SUM_TOLERANCE).all():
            row = int(np.argmax(off))
            raise NotStochasticError(f"each row of matrix must sum to 1, row {row} sums to {sums[row]:.12g}")
        if isinstance(stored, np.ndarray):
            # A large matrix that its maker has already made read-only is not copied.
            own = stored.base is None and stored.flags.c_contiguous and not stored.flags.writeable
            stored = stored if own else frozen(stored)
        object.__setattr__(self, "inputs", inputs)
        object.__setattr__(self, "outputs", outputs)
        object.__setattr__(self, "rows", stored)

    @property
    def matrix(self) -> FloatArray:
        """The matrix, (len(inputs), len(outputs)).

        A large optimal channel is stored as an `ExtendedMatrix`, from which this property computes all entries, at
        each call: for 10,000 inputs and outputs in some seconds 800 MB. Draws, `epsilon` and `rows[x]` do not need
        them.
        """
        return self.rows[:] if isinstance(self.rows, ExtendedMatrix) else self.rows

    def __repr__(self) -> str:
        ends = [self.inputs] if same_sites(self.inputs, self.outputs) else [self.inputs, self.outputs]
        size = f"{len(self.inputs)} x {len(self.outputs)} matrix"
        return f"{type(self).__name__}({', '.join(map(repr, ends))}, {size})"

    def _repr_html_(self) -> str:
        facts = {"inputs": repr(self.inputs), "outputs": repr(self.outputs)}
        if len(self.inputs) * len(self.outputs) <= QUICK:
            facts["measured epsilon"] = f"{self.epsilon:.6g} per metre"
        middle = self._middle
        facts["picture"] = f"reports of input {middle}, the one in the middle"
        return card(type(self).__name__, facts, thumbnail(self.outputs, self.rows[middle]))

    def plot(self, truth: int | None = None, axes: "Axes | None" = None) -> "Axes":
        """Draw the probability of each report at one input, which is marked, and return the axes.

        Parameters
        ----------
        truth : int, optional
            Number of the input; default: the one in the middle.
        axes : matplotlib Axes, optional
            Where to draw, in kilometres; default: a new figure.

        Examples
        --------
        >>> from geoind import Grid, planar_geometric
        >>> planar_geometric(Grid(0, 0, cell=100, columns=5, rows=5), epsilon=0.01).plot(7).get_title()
        'reports of input 7'
        """
        number = self._middle if truth is None else self._numbers([truth])[0]
        axes = axes_or_new(axes)
        draw_density(self.outputs, self.rows[number], axes)
        axes.plot(*self.inputs.xy[number] / 1000, marker="+", color="white", markersize=12)
        axes.set_title(f"reports of input {number}")
        return axes

    def explore(self, projection: "Projection", truth: int | None = None) -> "Map":
        """Return a folium map of the probability of each report at one input, which is marked.

        Parameters
        ----------
        projection : Projection
            From degrees to the metres of the outputs, which must be a grid.
        truth : int, optional
            Number of the input; default: the one in the middle.

        Examples
        --------
        >>> from geoind import Grid, Projection, planar_geometric
        >>> channel = planar_geometric(Grid(0, 0, cell=100, columns=5, rows=5), epsilon=0.01)
        >>> type(channel.explore(Projection(2.35, 48.86))).__name__
        'Map'
        """
        number = self._middle if truth is None else self._numbers([truth])[0]
        [place] = projection.to_lonlat(self.inputs.xy[[number]]).tolist()
        return dot_on_map(Prior(self.outputs, self.rows[number]).explore(projection), place)

    @classmethod
    def deterministic(cls, inputs: Sites, outputs: Sites, targets: ArrayLike) -> "Channel":
        """Return the channel that always reports output `targets[x]` at input x.

        Examples
        --------
        >>> from geoind import Grid
        >>> street = Grid(0, 0, cell=100, columns=3, rows=1)
        >>> Channel.deterministic(street, street, [1, 1, 1]).matrix[0]
        array([0., 1., 0.])
        """
        numbers = np.asarray(targets)
        if numbers.shape != (len(inputs),) or numbers.dtype.kind not in "iu":
            raise SitesMismatchError(
                f"targets must be site numbers, one per input, got {numbers.shape} for {len(inputs)}"
            )
        if not ((numbers >= 0) & (numbers < len(outputs))).all():
            raise InvalidInputError(f"targets must be numbers of outputs, 0 to {len(outputs) - 1}")
        matrix = np.zeros((len(inputs), len(outputs)))
        matrix[np.arange(len(inputs)), numbers] = 1
        return cls(inputs, outputs, matrix)

    @cached_property
    def epsilon(self) -> float:
        """The measured privacy loss per metre of Euclidean distance between input sites."""
        return float(tight_epsilon(self))

    @property
    def off_site_level(self) -> float:
        """The privacy loss beyond epsilon times distance, for two truths that are not input sites.

        Each is mapped to its closest site, so the sites may be farther apart than the truths by the diagonal of a
        cell; on a `Grid` of side u that is a factor e^(sqrt(2) * u * epsilon). Infinite for other sites.

        Examples
        --------
        >>> from geoind import Grid
        >>> street = Grid(0, 0, cell=100, columns=2, rows=1)
        >>> round(Channel(street, street, [[0.75, 0.25], [0.25, 0.75]]).off_site_level, 3)
        1.554
        """
        return 2 * self.inputs.cell_radius * self.epsilon if isinstance(self.inputs, Grid) else np.inf

    def reach(self, confidence: float) -> float:
        """Return the metres within which a report lies of any truth in the grid with at least this probability.

        Exact at the sites. Defined for inputs that are a `Grid`.

        Examples
        --------
        >>> from geoind import Grid
        >>> street = Grid(0, 0, cell=100, columns=2, rows=1)
        >>> round(Channel(street, street, [[0.75, 0.25], [0.25, 0.75]]).reach(0.9), 1)
        170.7
        """
        return reach_of_rows(self.rows, self.inputs, self.outputs, confidence)

    def check_inside(self, points: FloatArray) -> None:
        """Raise an error for truths outside the grid of the inputs."""
        as_grid(self.inputs).check_inside(points)

    def sample(self, points: ArrayLike, *, rng: RandomnessLike = None) -> FloatArray:
        """Return one report for each of the (n, 2) points: an output, drawn from the row of the closest input.

        Points have as many columns as the inputs, reports as many as the outputs. Draws are exact: each output has
        the probability of its entry over the sum of the row, as rational numbers, however small it is.
        """
        return self.outputs.xy[self.sample_outputs(points, rng=rng)]

    def sample_outputs(self, points: ArrayLike, *, rng: RandomnessLike = None) -> IntArray:
        """Return the number of an output for each of the points, drawn from the row of the closest input."""
        return self.sample_indices(self.inputs.nearest(points), rng=rng)

    def sample_indices(self, truth: ArrayLike, *, rng: RandomnessLike = None) -> IntArray:
        """Return for each number of an input the number of an output, drawn from its row.

        Examples
        --------
        >>> from geoind import Grid
        >>> street = Grid(0, 0, cell=100, columns=2, rows=1)
        >>> Channel.deterministic(street, street, [1, 0]).sample_indices([0, 0, 1])
        array([1, 1, 0])
        """
        rows = self._numbers(truth)
        # A keyed source gets the site, so that a person who stays within a cell repeats the same report. It takes
        # two numbers; for records these are derived from the record's index.
        places = (
            self.inputs.xy if self.inputs.xy.shape[1] == 2 else np.arange(2.0 * len(self.inputs)).reshape(-1, 2)
        )
        points = places[rows]
        source = at_places(as_randomness(rng, len(rows)), points)
        words = source.words(points, 1, self.purpose)[:, 0]
        if len(rows) == 1:
            further = partial(source.further, 0, points[0], self.purpose)
            return np.array([self.sample_index(int(rows[0]), int(words[0]), further)])
        result = np.empty(len(rows), dtype=np.int64)
        # Numbers of 16 bits are sorted in linear time.
        order = np.argsort(rows.astype(np.uint16) if len(self.inputs) <= 1 << 16 else rows, kind="stable")
        starts = np.flatnonzero(np.diff(rows[order], prepend=-1))
        for same_row in np.split(order, starts[1:]) if len(rows) else []:
            site = int(rows[same_row[0]])
            result[same_row], undecided = (
                self.rows.choose(site, words[same_row])
                if isinstance(self.rows, ExtendedMatrix)
                else choose(self._partial_sums(site), words[same_row])
            )
            for number in same_row[undecided].tolist():
                further = partial(source.further, number, points[number], self.purpose)
                result[number] = choose_exactly(self.rows[site], int(words[number]), further)
        return result

    def sample_index(self, site: int, word: int, further: Callable[[int], tuple[int, int]] = fresh_pair) -> int:
        """Return the number of an output, drawn from the row of an input by a random 64-bit word, without arrays.

        The few draws that the word does not decide take the pairs 0, 1, 2, ... of `further`.

        Examples
        --------
        >>> from geoind import Grid
        >>> street = Grid(0, 0, cell=100, columns=2, rows=1)
        >>> Channel(street, street, [[0.75, 0.25], [0.25, 0.75]]).sample_index(0, 2**63)
        0
        """
        stored = self.rows
        if isinstance(stored, ExtendedMatrix):
            found = stored.choose_one(site, word)
        else:
            found = choose_one(self._partial_sums(site), word)
        return choose_exactly(self.rows[site], word, further) if found is None else found

    def joint(self, prior: Prior) -> FloatArray:
        """Return the probability of each pair, (len(inputs), len(outputs)): truth x and report z."""
        self.check_prior(prior)
        return np.asarray(prior.mass[:, None] * self.matrix)

    def check_prior(self, prior: Prior) -> None:
        """Raise an error for a prior over other sites than the inputs."""
        if not same_sites(prior.sites, self.inputs):
            raise SitesMismatchError("the prior's sites must be the channel's inputs")

    def reports(self, prior: Prior) -> Prior:
        """Return the distribution of the reports.

        Examples
        --------
        >>> from geoind import Grid, Prior
        >>> street = Grid(0, 0, cell=100, columns=2, rows=1)
        >>> coin = Channel(street, street, [[0.75, 0.25], [0.25, 0.75]])
        >>> coin.reports(Prior(street, [1, 0])).mass
        array([0.75, 0.25])
        """
        self.check_prior(prior)
        parts = (prior.mass[part, None] * rows for part, rows in parts_of(self.rows))
        return Prior(self.outputs, np.sum([part.sum(axis=0) for part in parts], axis=0))

    def posterior(self, prior: Prior) -> FloatArray:
        """Return the posteriors, (len(outputs), len(inputs)): row z is the distribution of the truth given z.

        The posterior of a report that cannot occur is the prior.

        Examples
        --------
        >>> from geoind import Grid, Prior
        >>> street = Grid(0, 0, cell=100, columns=2, rows=1)
        >>> coin = Channel(street, street, [[0.75, 0.25], [0.25, 0.75]])
        >>> coin.posterior(Prior(street, [0.5, 0.5]))
        array([[0.75, 0.25],
               [0.25, 0.75]])
        """
        joint = self.joint(prior).T
        total = joint.sum(axis=1, keepdims=True)
        return np.where(total > 0, joint / np.where(total > 0, total, 1), prior.mass)

    def __matmul__(self, other: object) -> "Channel":
        """Return this channel followed by another one, whose inputs are its reports."""
        if not isinstance(other, Channel):
            return NotImplemented
        if not same_sites(self.outputs, other.inputs):
            raise SitesMismatchError("the first channel's outputs must be the second one's inputs")
        return Channel(self.inputs, other.outputs, self.matrix @ other.matrix)

    def _numbers(self, truth: ArrayLike) -> IntArray:
        """Return the numbers of some inputs."""
        rows = np.asarray(truth)
        if np.ma.is_masked(truth) or rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
            raise InvalidInputError("truth must be a list of numbers of inputs")
        rows = rows.astype(np.int64)
        if not ((rows >= 0) & (rows < len(self.inputs))).all():
            raise InvalidInputError(f"truth must be numbers of inputs, 0 to {len(self.inputs) - 1}")
        return rows

    @property
    def _middle(self) -> int:
        """The input that is closest to the middle of all."""
        return int(self.inputs.nearest([self.inputs.xy.mean(axis=0)])[0])

    def _partial_sums(self, site: int) -> FloatArray:
        """Return the partial sums of a row, kept while there is room."""
        kept = self._kept
        if (found := kept.get(site)) is not None:
            return found
        sums = partial_sums(self.rows[site])
        if (len(kept) + 1) * sums.size > KEPT:
            kept.clear()
        kept[site] = sums
        return sums

    @cached_property
    def _kept(self) -> dict[int, FloatArray]:
        return {}

    @cached_property
    def purpose(self) -> str:
        """The name of this channel's keyed random words: a digest of its stored matrix and its sites."""
        stored = self.rows
        matrix = stored.digest() if isinstance(stored, ExtendedMatrix) else stored.reshape(-1).data
        digest = hashlib.blake2b(matrix, digest_size=16)
        # Adding zero turns -0.0 into 0.0: JSON of another program may not have the sign.
        digest.update((self.inputs.xy + 0.0).tobytes() + (self.outputs.xy + 0.0).tobytes())
        return f"Channel {digest.hexdigest()}"


class WorstCase(float):
    """A measured number, with the inputs where it is attained.

    Attributes
    ----------
    truth, other : int
        Numbers of the two inputs.
    report : int, optional
        Number of the output, where the number is about a single one.
    """

    truth: int
    other: int
    report: int | None

    def __new__(cls, value: float, truth: int, other: int, report: int | None = None) -> "WorstCase":
        """Return the number with its attributes."""
        self = super().__new__(cls, value)
        self.truth, self.other, self.report = truth, other, report
        return self

    def __reduce__(self) -> tuple[type["WorstCase"], tuple[float, int, int, int | None]]:
        return WorstCase, (float(self), self.truth, self.other, self.report)


def tight_epsilon(channel: Channel, distance: Distance = euclidean) -> WorstCase:
    """Return the smallest epsilon of the channel: the largest log-ratio per unit of distance.

    All pairs of inputs and all reports are compared, each entry over the sum of its row, with an error of at most
    6e-15 / distance (the sum is rounded), and 5e-14 / distance above 2 000 sites. It is infinite where a report is
    possible at one site and impossible at another. 2 500 sites take seconds, 10 000 some minutes. An
    `ExtendedMatrix` needs no comparison for its Euclidean epsilon; a bound of the rounding errors is included.

    Parameters
    ----------
    channel : Channel
    distance : Distance
        The metric of epsilon; it may be asymmetric, but must be finite and not negative.

    Returns
    -------
    WorstCase
        A float with `truth`, `other` and `report`: the report is `exp(epsilon * distance)` times as likely at
        `truth` as at `other`.

    Examples
    --------
    >>> from geoind import Grid
    >>> street = Grid(0, 0, cell=100, columns=2, rows=1)
    >>> coin = Channel(street, street, [[0.8, 0.2], [0.25, 0.75]])
    >>> worst = tight_epsilon(coin)
    >>> round(worst, 6), worst.truth, worst.other, worst.report
    (0.013218, 1, 0, 1)
    """
    if distance is euclidean and isinstance(channel.rows, ExtendedMatrix):
        return WorstCase(*channel.rows.steepest())
    apart = np.asarray(distance(channel.inputs.xy, channel.inputs.xy), dtype=np.float64)
    if apart.shape != (len(channel.inputs),) * 2 or not ((apart >= 0) & (apart < np.inf)).all():
        raise InvalidInputError("distance must return a finite, non-negative number for each pair of sites")
    return WorstCase(*steepest_ratio(_as_drawn(channel.matrix), apart))


def _as_drawn(matrix: FloatArray) -> FloatArray:
    """Return the probabilities that are drawn: entries over their row's sum."""
    sums = matrix.sum(axis=1, keepdims=True)
    return matrix if (sums == 1).all() else matrix / sums
