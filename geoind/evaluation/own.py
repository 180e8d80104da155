"""Mechanisms of one's own in the comparison: made into channels, tuned to the wanted loss, and checked."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaincinv

from geoind.arrays import FloatArray, IntArray, as_points, as_positive
from geoind.channels.channel import Channel
from geoind.channels.discretise import discretise
from geoind.channels.metrics import expected_loss
from geoind.channels.priors import Prior
from geoind.distances import euclidean
from geoind.errors import InvalidInputError, SitesMismatchError, printable
from geoind.evaluation.contenders import BUILT_IN, EQUALISED, Equalised, Tuned
from geoind.evaluation.setting import Setting
from geoind.mechanisms.planar import PlanarLaplace
from geoind.mechanisms.protocol import Mechanism, is_mechanism, space_of
from geoind.space.projection import Projection
from geoind.space.sites import same_sites

__all__ = ["Contender", "Contending", "as_contenders", "own_entries"]

Contending: TypeAlias = "Contender | Mechanism | Channel | Callable[..., Mechanism | Channel]"

DRAWS = 10_000
"""Reports drawn at each cell for a mechanism whose matrix is not known."""
RISK = 1e-3
"""Probability with which the lower bound of a drawn mechanism's epsilon is wrong, at most."""
PRECISION = 1e-7
"""Relative precision of a tuned parameter."""
LONGEST = 40
"""Characters of a name, as much as a legend has room for."""
MOST_NOTED = 300


@dataclass(frozen=True, eq=False)
class Contender:
    """A mechanism of one's own, to be compared.

    Parameters
    ----------
    name : str
        As tables and figures show it.
    mechanism : Channel, Mechanism or function
        A channel between the cells of the grid; a mechanism, whose matrix is estimated from draws unless it is a
        `PlanarLaplace`; or a function from a `Prior` to one of the two. With `tune` it is a function of the prior
        and of a parameter.
    tune : (float, float), optional
        Smallest and largest parameter, both positive. The parameter is searched at which the expected distance is
        the wanted one.

    Examples
    --------
    >>> from geoind import Grid, exponential
    >>> mine = Contender("mine", lambda prior, rate: exponential(prior.sites, prior.sites, epsilon=rate),
    ...                  tune=(0.001, 1))
    >>> from geoind.evaluation import Setting, compare
    >>> small = Setting(Grid(0, 0, cell=100, columns=3, rows=3), weights={"uniform": [1] * 9})
    >>> table = compare(small, contenders=[mine]).set_index("mechanism")
    >>> table.loc["mine", "expected_loss"].round(3).tolist()
    [107.298, 107.298]
    """

    name: str
    mechanism: "Mechanism | Channel | Callable[..., Mechanism | Channel]"
    tune: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        text = isinstance(self.name, str) and 0 < len(self.name) <= LONGEST and self.name.isprintable()
        # A legend leaves out labels that start with an underscore.
        if not text or not self.name[0].isalnum():
            raise InvalidInputError(
                f"the name of a contender must be up to {LONGEST} characters and start with a letter or a digit, "
                f"got {self.name!r}: use Contender(name, mechanism)"
            )
        if not callable(self.mechanism) and not is_mechanism(self.mechanism):
            kind = type(self.mechanism).__name__
            raise InvalidInputError(f"{self.name!r} must be a Mechanism, a Channel or a function, got {kind}")
        if self.tune is not None:
            if not self.is_function:
                raise InvalidInputError(f"{self.name!r}: tune needs a function of a prior and a parameter")
            low, high = (as_positive(end, "tune") for end in self.tune)
            if not low < high:
                raise InvalidInputError(f"{self.name!r}: tune must be (lowest, highest), got {self.tune!r}")

    @property
    def is_function(self) -> bool:
        """Whether the mechanism is made for a prior."""
        return isinstance(self.mechanism, type) or not is_mechanism(self.mechanism)

    def made(self, prior: Prior, parameter: float) -> object:
        """Return what the user's function returns for a prior, or the mechanism itself."""
        if not self.is_function:
            return self.mechanism
        function: Callable[..., object] = self.mechanism  # type: ignore[assignment]
        return function(prior) if self.tune is None else function(prior, parameter)


def as_contenders(given: "Iterable[Contending]") -> list[Contender]:
    """Return contenders with different names, none of which is the name of a mechanism of the comparison."""
    found = [
        one if isinstance(one, Contender) else Contender(getattr(one, "__name__", type(one).__name__), one)
        for one in given
    ]
    names = [contender.name for contender in found]
    for name in names:
        if names.count(name) > 1 or name in BUILT_IN:
            raise InvalidInputError(f"two mechanisms are called {name!r}: use Contender(name, mechanism)")
    return found


def own_entries(
    contender: Contender, setting: Setting, names: list[str]
) -> Iterator[tuple[Equalised, str, Tuned]]:
    """Yield a contender under each prior and way of equalising; one that fails has a note and no channel."""
    own = _Own(contender, setting)
    for name in names:
        for way in EQUALISED:
            try:
                entry = own.tuned(name, way)
            except Exception as error:
                note = printable(f"{type(error).__name__}: {error}", MOST_NOTED)
                entry = Tuned(contender.name, None, note=note)
            yield way, name, entry


@dataclass
class _Own:
    """A contender on a setting."""

    contender: Contender
    setting: Setting
    _drawn: dict[Projection, IntArray] = field(default_factory=dict)

    @cached_property
    def for_uniform(self) -> tuple[float, str]:
        """The parameter under the uniform prior, and a note."""
        place = next(iter(self.setting.projections.values()), Projection(0, 0))
        return self._parameter(self.setting.uniform, place)

    def tuned(self, name: str, way: Equalised) -> Tuned:
        """Return the contender for a prior, with the wanted loss under the uniform prior or under this one."""
        prior = self.setting.prior(name)
        place = self.setting.projections.get(name, Projection(0, 0))
        parameter, note = self.for_uniform if way == "uniform" else self._parameter(prior, place)
        channel, mechanism, counts = self._channel(prior, parameter, place)
        uniform, _, _ = self._channel(self.setting.uniform, parameter, place)
        notes = [note] if note else []
        if counts is None:
            epsilon = channel.epsilon
        else:
            epsilon, stated = _least_epsilon(counts, self.setting.grid.xy), float(mechanism.epsilon)
            notes.append(f"estimated from {DRAWS:,} draws at each cell; its measured epsilon is a lower bound")
            if not epsilon <= stated:
                notes.append(f"the stated epsilon is {stated:.4g}, which the draws refute")
            elif stated == math.inf:
                notes.append("its stated epsilon is infinite")
        if epsilon == math.inf:
            notes.append("its epsilon is infinite: a report is possible in one cell and impossible in another")
        return Tuned(
            self.contender.name,
            channel,
            parameter,
            knows_prior=not np.array_equal(channel.matrix, uniform.matrix),
            epsilon=epsilon,
            note="; ".join(notes),
        )

    def _parameter(self, prior: Prior, place: Projection) -> tuple[float, str]:
        """Return the parameter with the wanted loss under a prior, or the closest one and a note."""
        if self.contender.tune is None:
            return math.nan, ""
        wanted, (low, high) = self.setting.loss, map(math.log, self.contender.tune)

        def excess(logarithm: float) -> float:
            channel, _, _ = self._channel(prior, math.exp(logarithm), place)
            return expected_loss(channel, prior, loss=self.setting.metric) / wanted - 1

        ends = [excess(low), excess(high)]
        if ends[0] * ends[1] > 0:
            least, most = sorted((1 + end) * wanted for end in ends)
            note = f"not at equal cost: tune gives {least:.1f} to {most:.1f} m, wanted are {wanted:.1f} m"
            return self.contender.tune[int(np.argmin(np.abs(ends)))], note
        return math.exp(brentq(excess, low, high, xtol=PRECISION, rtol=PRECISION)), ""

    def _channel(
        self, prior: Prior, parameter: float, place: Projection
    ) -> tuple[Channel, Mechanism, IntArray | None]:
        """Return the channel between the cells, the mechanism, and its drawn reports if it was estimated."""
        grid, made = self.setting.grid, self.contender.made(prior, parameter)
        if isinstance(made, Channel):
            if not same_sites(made.inputs, grid):
                raise SitesMismatchError("the inputs of the channel must be the cells of the grid")
            return made, made, None
        if isinstance(made, PlanarLaplace):
            channel = discretise(made, grid)
            return channel, channel, None
        if isinstance(made, type) or not is_mechanism(made):
            raise InvalidInputError(f"it must return a Channel or a Mechanism, got {type(made).__name__}")
        counts = self._drawn.get(place)
        if counts is None:
            counts = _draw(made, self.setting, place)
        if not self.contender.is_function:
            self._drawn[place] = counts
        return Channel(grid, grid, counts / DRAWS), made, counts


def _draw(mechanism: Mechanism, setting: Setting, place: Projection) -> IntArray:
    """Return how many of the reports drawn at each cell lie in each cell; those outside go to the border."""
    grid, rng = setting.grid, np.random.default_rng(0)
    degrees = space_of(mechanism) == "lonlat"
    centres = place.to_lonlat(grid.xy) if degrees else grid.xy
    counts = np.empty((len(grid), len(grid)), dtype=np.int64)
    for cell, centre in enumerate(centres):
        reports = as_points(mechanism.sample(np.tile(centre, (DRAWS, 1)), rng=rng), "reports")
        if len(reports) != DRAWS:
            raise InvalidInputError(f"sample must return one report per point, got {len(reports)} for {DRAWS}")
        places = grid.nearest(place.to_xy(reports) if degrees else reports)
        counts[cell] = np.bincount(places, minlength=len(grid))
    return counts


def _least_epsilon(counts: IntArray, xy: FloatArray) -> float:
    """Return a lower bound of epsilon, from intervals of Clopper and Pearson for all probabilities together."""
    risk = RISK / (2 * counts.size)
    low = np.where(counts > 0, betaincinv(np.maximum(counts, 1), DRAWS - counts + 1, risk), 0)
    high = np.where(counts < DRAWS, betaincinv(counts + 1, np.maximum(DRAWS - counts, 1), 1 - risk), 1)
    apart = euclidean(xy, xy)
    np.fill_diagonal(apart, np.inf)
    with np.errstate(divide="ignore"):
        gains, losses = np.log(low), np.log(high)
    return max(0.0, *(float(((gain - losses).max(axis=1) / apart[here]).max()) for here, gain in enumerate(gains)))
