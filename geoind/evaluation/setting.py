"""The setting of the comparison: a grid, cloaking zones, and priors."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, as_positive
from geoind.channels.formulas import cloaking
from geoind.channels.metrics import expected_loss
from geoind.channels.priors import Prior
from geoind.distances import Distance, euclidean
from geoind.errors import InvalidInputError
from geoind.evaluation.windows import window_of
from geoind.space.projection import Projection
from geoind.space.sites import Grid

if TYPE_CHECKING:
    from geopandas import GeoDataFrame, GeoSeries

__all__ = ["PAPER_SETTING", "REGIONS", "Setting", "from_picture"]

REGIONS = {
    "central zone": """
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . # # # . . .
        . . . # # # . . .
        . . . # # # . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .""",
    "corner zone": """
        # # # . . . . . .
        # # # . . . . . .
        # # # . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .""",
    "straddling zones": """
        . . . . . . . . .
        . # # # # . . . .
        . # # # # . . . .
        . # # # # . . . .
        . # # # # . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .""",
    "left columns": """
        # # # . . . . . .
        # # # . . . . . .
        # # # . . . . . .
        # # # . . . . . .
        # # # . . . . . .
        # # # . . . . . .
        # # # . . . . . .
        # # # . . . . . .
        # # # . . . . . .""",
    "middle row": """
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        # # # # # # # # #
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .""",
    "diagonal band": """
        # # . . . . . . .
        # # # . . . . . .
        . # # # . . . . .
        . . # # # . . . .
        . . . # # # . . .
        . . . . # # # . .
        . . . . . # # # .
        . . . . . . # # #
        . . . . . . . # #""",
    "zone centres": """
        . . . . . . . . .
        . # . . # . . # .
        . . . . . . . . .
        . . . . . . . . .
        . # . . # . . # .
        . . . . . . . . .
        . . . . . . . . .
        . # . . # . . # .
        . . . . . . . . .""",
    "four corners": """
        # . . . . . . . #
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        # . . . . . . . #""",
}
"""Regions of a 9x9 grid, north at the top, similar to those of the paper, whose masks were not published."""


def from_picture(picture: str) -> FloatArray:
    """Return 1 for each marked cell and 0 for the others, in the numbering of a `Grid`.

    Parameters
    ----------
    picture : str
        One line per row, north at the top; `#` marks a cell, `.` does not.

    Examples
    --------
    >>> from_picture('''
    ...     . #
    ...     . .''')
    array([0., 0., 0., 1.])
    """
    rows = [line.split() for line in picture.split("\n") if line.strip()]
    if not rows or any(len(row) != len(rows[0]) or set(row) - {"#", "."} for row in rows):
        raise InvalidInputError("a picture must have rows of equal length made of '#' and '.'")
    return np.array([[mark == "#" for mark in row] for row in reversed(rows)], dtype=np.float64).ravel()


@dataclass(frozen=True, eq=False)
class Setting:
    """Grid, zones and priors on which mechanisms are compared.

    Parameters
    ----------
    grid : Grid
        The possible true locations and reports.
    zone : (int, int)
        Columns and rows of a cloaking zone.
    weights : mapping from name to (len(grid),) array
        The priors, up to a factor; or masks, for priors that are uniform over the marked cells.
    wanted_loss : float, optional
        The expected distance between truth and report, in metres, that mechanisms are tuned to. Default: that of
        cloaking under the uniform prior.
    projections : mapping from name to Projection
        From degrees to the grid's metres, for priors of real places.
    metric : Distance
        Distance of truth and report, and of truth and the adversary's guess, in metres: for example along streets.
        Epsilon is per metre of the straight line.

    Examples
    --------
    Vary the paper's setting with `dataclasses.replace`:

    >>> from dataclasses import replace
    >>> coarse = replace(PAPER_SETTING, grid=Grid(0, 0, cell=500, columns=9, rows=9))
    >>> round(coarse.loss / PAPER_SETTING.loss, 6)
    5.0
    """

    grid: Grid
    _: KW_ONLY
    zone: tuple[int, int] = (3, 3)
    weights: Mapping[str, ArrayLike] = field(default_factory=dict)
    wanted_loss: float | None = None
    projections: Mapping[str, Projection] = field(default_factory=dict)
    metric: Distance = euclidean

    def __post_init__(self) -> None:
        columns, rows = self.zone
        if columns < 1 or rows < 1 or self.grid.columns % columns or self.grid.rows % rows:
            raise InvalidInputError(f"zone must divide the grid into whole zones, got {self.zone!r}")
        if self.wanted_loss is not None:
            as_positive(self.wanted_loss, "wanted_loss")
        if not callable(self.metric):
            raise InvalidInputError(f"metric must be a distance, got {type(self.metric).__name__}")
        masses = {name: _as_prior(self.grid, weights).mass for name, weights in self.weights.items()}
        object.__setattr__(self, "weights", MappingProxyType(masses))

    def __repr__(self) -> str:
        return f"Setting({self.grid!r}, zone={self.zone}, priors: {', '.join(self.weights)})"

    def __reduce__(self) -> tuple["partial[Setting]", tuple[Grid]]:
        # A mapping proxy cannot be pickled, and settings are sent to worker processes.
        again = partial(
            Setting,
            zone=self.zone,
            weights=dict(self.weights),
            wanted_loss=self.wanted_loss,
            projections=dict(self.projections),
            metric=self.metric,
        )
        return again, (self.grid,)

    @classmethod
    def of_places(
        cls,
        places: "Mapping[str, ArrayLike | GeoDataFrame | GeoSeries]",
        *,
        cell: float = 100.0,
        columns: int = 9,
        rows: int = 9,
    ) -> "Setting":
        """Return a setting whose priors are the busiest windows of real places.

        Parameters
        ----------
        places : mapping from name to (n, 2) array, GeoDataFrame or GeoSeries
            Past locations: degrees, longitude first, or points with a CRS.
        cell : float
            Side of a cell, in metres.
        columns, rows : int
            Size of a window in cells, in whole zones of three by three.

        Examples
        --------
        >>> trips = Setting.of_places({"trips": [[2.3501, 48.8601], [2.3502, 48.8602], [2.353, 48.862]]})
        >>> trips.lonlat("trips")[0].round(2)
        array([ 2.34, 48.85])
        """
        windows = {name: window_of(some, cell=cell, columns=columns, rows=rows) for name, some in places.items()}
        return cls(
            Grid(0, 0, cell=cell, columns=columns, rows=rows),
            weights={name: window.prior.mass for name, window in windows.items()},
            projections={name: window.projection for name, window in windows.items()},
        )

    def lonlat(self, name: str) -> FloatArray:
        """Return the centres of a prior's cells: (len(grid), 2) degrees, longitude first."""
        if name not in self.projections:
            raise InvalidInputError(f"the prior {name!r} has no projection")
        return self.projections[name].to_lonlat(self.grid.xy)

    @property
    def uniform(self) -> Prior:
        """The uniform prior."""
        return Prior.uniform(self.grid)

    @property
    def priors(self) -> dict[str, Prior]:
        """The priors by name, in the order given."""
        return {name: self.prior(name) for name in self.weights}

    def prior(self, name: str) -> Prior:
        """Return the prior of that name."""
        if name not in self.weights:
            raise InvalidInputError(f"prior must be one of {', '.join(self.weights)}, got {name!r}")
        return Prior(self.grid, self.weights[name])

    @property
    def loss(self) -> float:
        """The expected distance that mechanisms are tuned to, in metres.

        Examples
        --------
        >>> round(PAPER_SETTING.loss, 3)
        107.298
        """
        if self.wanted_loss is not None:
            return float(self.wanted_loss)
        return expected_loss(cloaking(self.grid, zone=self.zone), self.uniform, loss=self.metric)


def _as_prior(grid: Grid, weights: ArrayLike) -> Prior:
    """Return the prior of weights or of a mask."""
    masked = np.asarray(weights).dtype.kind == "b"
    return Prior.over(grid, weights) if masked else Prior.from_counts(grid, weights)


PAPER_SETTING = Setting(
    Grid(0, 0, cell=100, columns=9, rows=9),
    weights={"uniform": np.ones(81)} | {name: from_picture(picture) for name, picture in REGIONS.items()},
)
"""81 cells of 100 m, zones of 3x3 cells, the uniform prior and eight regions (after Andrés et al., CCS 2013)."""
