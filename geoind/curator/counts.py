"""A private heat map, released by a curator who knows all true locations."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, IntArray, as_count, as_unit
from geoind.channels.priors import Prior
from geoind.curator.contributions import Persons, as_level, as_names, bounded, charge_release
from geoind.curator.noise import GeometricNoise, as_fresh_randomness
from geoind.errors import InvalidInputError, plural
from geoind.estimate.inversion import nearest_distribution
from geoind.mechanisms.protocol import RandomnessLike
from geoind.pictures.card import card
from geoind.pictures.cells import axes_or_new, draw_density, thumbnail
from geoind.space.cells import CellSites
from geoind.space.crs import points_lonlat
from geoind.space.projection import points_xy
from geoind.space.sites import Grid, Outside, inside, inside_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from geoind.budgets.ledger import Ledger

__all__ = ["ReleasedCounts", "release_counts"]


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedCounts:
    """Noisy counts per cell. All attributes may be published; nothing else about the table is stored.

    Attributes
    ----------
    grid : Grid or CellSites
    counts : array of int
        One per cell, in the grid's numbering. Without `at_least` noise makes some negative, and their sum has no
        bias.
    level : float
        The epsilon of the release, per person and not per metre.
    reports_per_person : int
        Largest number of counted reports of one person.
    at_least : int, optional
        Noisy counts below this number were suppressed: they are 0.
    """

    grid: Grid | CellSites
    counts: IntArray
    level: float
    reports_per_person: int
    at_least: int | None = None

    def __repr__(self) -> str:
        below = "" if self.at_least is None else f", those below {self.at_least} suppressed"
        return f"ReleasedCounts({self.grid!r}, {plural(len(self.counts), 'count')}, level={self.level:g}{below})"

    def _repr_html_(self) -> str:
        facts = {
            "grid": repr(self.grid),
            "level": f"{self.level:g} per person, not per metre",
            "reports per person that count": self.reports_per_person,
            "sum of the counts": int(self.counts.sum()),
            "noise of a cell, 95 %": f"within {self.margin(0.95)}",
        }
        if self.at_least is not None:
            facts["suppressed, shown as 0"] = f"noisy counts below {self.at_least}"
        drawn = isinstance(self.grid, Grid) and self._shown.any()
        return card("ReleasedCounts", facts, thumbnail(self._plane, self._shown) if drawn else None)

    def plot(self, axes: "Axes | None" = None, *, largest: float | None = None) -> "Axes":
        """Draw the count per hectare of each cell, brightness its root, and return the axes.

        Negative counts are drawn as 0. `population()` is a `Prior`, which also has a map (`explore`).

        Parameters
        ----------
        axes, largest
            As in `Prior.plot`.

        Examples
        --------
        >>> grid = Grid(0, 0, cell=100, columns=2, rows=1)
        >>> ReleasedCounts(grid, np.array([3, -1]), 1.0, 1).plot().get_xlabel()
        'km east'
        """
        axes = axes_or_new(axes)
        draw_density(self._plane, self._shown, axes, largest=largest)
        return axes

    @property
    def _plane(self) -> Grid:
        if not isinstance(self.grid, Grid):
            raise InvalidInputError("pictures and populations need counts on a Grid, not on cells of H3")
        return self.grid

    @property
    def _shown(self) -> FloatArray:
        return np.maximum(self.counts, 0).astype(np.float64)

    def margin(self, confidence: float) -> int:
        """Return a bound of the noise of a cell that holds with at least this probability.

        Examples
        --------
        >>> grid = Grid(0, 0, cell=100, columns=2, rows=1)
        >>> ReleasedCounts(grid, np.array([3, -1]), 1.0, 1).margin(0.95)
        3
        """
        outside = 1 - as_unit(confidence, "confidence")
        rate = self.level / self.reports_per_person
        # P(|noise| > m) = 2 e^(-rate (m + 1)) / (1 + e^(-rate)).
        return max(0, math.ceil(-math.log(outside * (1 + math.exp(-rate)) / 2) / rate) - 1)

    def population(self) -> Prior:
        """Return the distribution over the grid that is closest to the shares of the counts.

        It is post-processing and costs nothing. Cells with little more than noise become empty.

        Examples
        --------
        >>> grid = Grid(0, 0, cell=100, columns=3, rows=1)
        >>> ReleasedCounts(grid, np.array([60, 40, -5]), 1.0, 1).population().mass.round(3)
        array([0.605, 0.395, 0.   ])
        """
        grid, total = self._plane, self.counts.sum()
        if not total > 0:
            raise InvalidInputError("the released counts have no positive sum: too few people for this noise")
        return Prior.from_counts(grid, nearest_distribution(self.counts / total))


def release_counts(
    points: ArrayLike,
    grid: Grid | CellSites,
    *,
    epsilon: float,
    person: Persons,
    reports_per_person: int = 1,
    at_least: int | None = None,
    outside: Outside = "raise",
    ledger: "Ledger | None" = None,
    label: str = "release_counts",
    rng: RandomnessLike = None,
) -> ReleasedCounts:
    """Return the number of reports in each cell, with exact geometric noise: a heat map that may be published.

    For a **trusted curator** who knows the true points. Epsilon is a level *per person*, not per metre: the
    release is at most e^epsilon times as likely with all of a person's points as without them. The epsilons of
    several releases about the same persons add up; a ledger limits the sum.

    Parameters
    ----------
    points : (n, 2) array
        True locations, one per row, in metres of the grid's plane: `projection.to_xy` converts degrees, and frames
        with a CRS. For named cells: degrees, longitude first, or a frame with a CRS.
    grid : Grid or CellSites
        Public: chosen independently of the points.
    epsilon : float
        Level per person, without a unit; 1 is usual, at most 20.
    person : list of str or int
        The person of each point; `range(len(points))` if each row is another person.
    reports_per_person : int
        Largest number of points of one person that count, the first ones in the table. The noise is proportional
        to it.
    at_least : int, optional
        Noisy counts below this number are published as 0, which then means "below". It is applied after the noise,
        so it costs nothing and hides no one: the guarantee is that of epsilon. Sums of the counts are then too
        small.
    outside : "raise" or "drop"
        Whether points outside of the grid are an error or left out.
    ledger : Ledger, optional
        With `budget=PersonLevel(...)`: each person in the table is charged once, before anything is drawn.
    label : str
        Purpose, for the ledger's history.
    rng : RandomnessLike
        None for cryptographic noise; a Generator or a seed for simulation only, since the difference of two
        releases with the same noise reveals a person. Keyed noise is refused.

    Examples
    --------
    >>> street = Grid(0, 0, cell=100, columns=2, rows=1)
    >>> homes = [[10, 5]] * 900 + [[95, 0]] * 100
    >>> released = release_counts(homes, street, epsilon=1.0, person=range(1000))
    >>> bool(abs(released.counts - [900, 100]).max() < 50)
    True
    """
    level, source = as_level(epsilon), as_fresh_randomness(rng)
    most = as_count(reports_per_person, "reports_per_person")
    least = None if at_least is None else as_count(at_least, "at_least")
    if isinstance(grid, CellSites):
        cells = grid.numbers(points_lonlat(points, "points"))
        covered = inside_of(cells >= 0, outside)
    elif isinstance(grid, Grid):
        xy = points_xy(points, None, "points")
        cells, covered = grid.nearest(xy), inside(grid, xy, outside)
    else:
        raise InvalidInputError(f"grid must be a Grid or CellSites, got {type(grid).__name__}")
    names = as_names(person, len(cells))
    rows = np.flatnonzero(covered)
    counted = rows[bounded((names[row] for row in rows.tolist()), most)]
    noise = GeometricNoise(level, most)
    charge_release(ledger, names, level, label)
    truth = np.bincount(cells[counted], minlength=len(grid))
    counts = noise.added_to(truth, source)
    if least is not None:
        counts[counts < least] = 0
    counts.flags.writeable = False
    return ReleasedCounts(grid, counts, level, most, least)
