"""A private heat map by somebody who knows where everybody is."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from geoind.accounting.promise import PersonLevel
from geoind.arrays import ArrayLike, FloatArray, IntArray, as_count, as_unit
from geoind.channels.priors import Prior
from geoind.curator.contributions import Persons, as_contributors, as_person_level, bounded
from geoind.curator.whole_noise import GeometricNoise, as_fresh_randomness
from geoind.errors import InvalidInputError, plural
from geoind.estimate.inversion import nearest_distribution
from geoind.pictures.card import card
from geoind.pictures.cells import axes_or_new, draw_density, thumbnail
from geoind.randomness import RandomnessLike
from geoind.space.projection import points_xy
from geoind.space.sites import Grid, Outside, inside

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ReleasedCounts", "release_counts"]


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedCounts:
    """Noisy counts per cell. Everything here is public: nothing else about the table is kept.

    Attributes
    ----------
    grid : Grid
    counts : array of int
        One per cell, in the grid's numbering. Noise makes some negative; their sum has no bias.
    promise : PersonLevel
        The level per person, not per metre.
    reports_per_person : int
        How many reports of one person were counted at most.
    """

    grid: Grid
    counts: IntArray
    promise: PersonLevel
    reports_per_person: int

    def __repr__(self) -> str:
        return f"ReleasedCounts({self.grid!r}, {plural(len(self.counts), 'count')}, {self.promise!r})"

    def _repr_html_(self) -> str:
        facts = {
            "grid": repr(self.grid),
            "promise": f"level {self.promise.level:g} per person, not per metre",
            "reports per person that count": self.reports_per_person,
            "sum of the counts": int(self.counts.sum()),
            "noise of a cell, 95 %": f"within {self.margin(0.95)}",
        }
        return card("ReleasedCounts", facts, thumbnail(self.grid, self._shown) if self._shown.any() else None)

    def plot(self, axes: "Axes | None" = None, *, largest: float | None = None) -> "Axes":
        """Draw the count per hectare of each cell, brightness its root, and return the axes.

        Negative counts are as dark as nothing. `population()` is a `Prior`, which has a map (`explore`), too.

        Parameters
        ----------
        axes, largest
            As in `Prior.plot`.

        Examples
        --------
        >>> grid = Grid(0, 0, cell=100, columns=2, rows=1)
        >>> ReleasedCounts(grid, np.array([3, -1]), PersonLevel(1.0), 1).plot().get_xlabel()
        'km east'
        """
        axes = axes_or_new(axes)
        draw_density(self.grid, self._shown, axes, largest=largest)
        return axes

    @property
    def _shown(self) -> FloatArray:
        return np.maximum(self.counts, 0).astype(np.float64)

    def margin(self, confidence: float) -> int:
        """Return what the noise of a cell stays within with at least this probability.

        Examples
        --------
        >>> grid = Grid(0, 0, cell=100, columns=2, rows=1)
        >>> ReleasedCounts(grid, np.array([3, -1]), PersonLevel(1.0), 1).margin(0.95)
        3
        """
        outside = 1 - as_unit(confidence, "confidence")
        rate = self.promise.level / self.reports_per_person
        # P(|noise| > m) = 2 e^(-rate (m + 1)) / (1 + e^(-rate)).
        return max(0, math.ceil(-math.log(outside * (1 + math.exp(-rate)) / 2) / rate) - 1)

    def population(self) -> Prior:
        """Return the distribution over the grid that is closest to the shares of the counts.

        A step after the noise: it costs nothing. Cells of little more than noise become empty.

        Examples
        --------
        >>> grid = Grid(0, 0, cell=100, columns=3, rows=1)
        >>> ReleasedCounts(grid, np.array([60, 40, -5]), PersonLevel(1.0), 1).population().mass.round(3)
        array([0.605, 0.395, 0.   ])
        """
        total = self.counts.sum()
        if not total > 0:
            raise InvalidInputError("the released counts sum to nothing: too few people for so much noise")
        return Prior.from_counts(self.grid, nearest_distribution(self.counts / total))


def release_counts(
    points: ArrayLike,
    grid: Grid,
    *,
    epsilon: float,
    person: Persons,
    reports_per_person: int = 1,
    outside: Outside = "raise",
    rng: RandomnessLike = None,
) -> ReleasedCounts:
    """Return how many reports lie in each cell, with exact geometric noise: a heat map that may be published.

    For a **trusted curator** who knows the true points. The promise is a level *per person*, not per metre: the
    release is at most e^epsilon times as likely with all of a person's points as without them. Whoever publishes
    several releases about the same people adds their epsilons, or lets a ledger do so.

    Parameters
    ----------
    points : (n, 2) array
        True places, one per row, in metres of the grid's plane: `projection.to_xy` makes them of degrees, and of
        a frame with a CRS.
    grid : Grid
        Public: chosen without a look at the points.
    epsilon : float
        Level per person, without a unit; 1 is usual, at most 20.
    person : list of str or int, or Contributors
        Whose each point is. Where every row is somebody else: `range(len(points))`. `Contributors` also say which
        ledger charges them.
    reports_per_person : int
        How many points of one person count at most, the first ones in the table: one person changes the counts by
        so much, and the noise grows with it.
    outside : "raise" or "drop"
        What becomes of points outside of the grid: an error, or left out.
    rng : RandomnessLike
        None for cryptographic noise; a Generator or a seed for simulation only, since two tables with the same
        noise differ by a person. Keyed noise is refused.

    Examples
    --------
    >>> street = Grid(0, 0, cell=100, columns=2, rows=1)
    >>> homes = [[10, 5]] * 900 + [[95, 0]] * 100
    >>> released = release_counts(homes, street, epsilon=1.0, person=range(1000))
    >>> bool(abs(released.counts - [900, 100]).max() < 50)
    True
    """
    promise, source = as_person_level(epsilon), as_fresh_randomness(rng)
    most = as_count(reports_per_person, "reports_per_person")
    if not isinstance(grid, Grid):
        raise InvalidInputError(f"grid must be a Grid, got {type(grid).__name__}")
    xy = points_xy(points, None, "points")
    people = as_contributors(person, len(xy))
    rows = np.flatnonzero(inside(grid, xy, outside))
    counted = rows[bounded((people.names[row] for row in rows.tolist()), most)]
    noise = GeometricNoise(promise.level, most)
    people.charge(promise, "release_counts")
    truth = np.bincount(grid.nearest(xy[counted]), minlength=len(grid))
    counts = noise.added_to(truth, source)
    counts.flags.writeable = False
    return ReleasedCounts(grid, counts, promise, most)
