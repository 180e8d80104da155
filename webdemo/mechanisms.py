"""Four mechanisms of the same cost for one location, on 9 x 9 cells of the town."""

import math
import threading
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from fastapi import APIRouter
from pydantic import BaseModel, Field

from geoind import (
    Channel,
    Grid,
    Prior,
    adversary_error,
    cloaking,
    expected_loss,
    max_adversary_error_given_loss,
    min_loss_given_epsilon,
)
from geoind.arrays import FloatArray
from geoind.evaluation.contenders import FAMILIES, epsilon_for_loss

from .requests import MAX_SEED, Point
from .town import Town, to_latlon

__all__ = ["Lineup", "mechanisms_router"]

SIDE, ZONE, CELL = 9, 3, 100.0

CLOSE = 0.005
"""The optimal mechanism is solved again until its cost differs from that of the others by less than this share."""


class MechanismsAsk(Point):
    """A location."""

    seed: int | None = Field(None, ge=0, le=MAX_SEED, description="Repeats the noise; for simulation only")


class OnMap(BaseModel):
    """One mechanism: the distribution of its reports, and the posterior of an observer."""

    name: str
    reports: list[float] = Field(description="Probability of a report in each cell, from the south-west")
    report: list[int] = Field(description="The cells that were reported this time: one, or a zone")
    belief: list[float] = Field(description="Probability of each cell after that report")
    excluded: list[int] = Field(description="The cells of people that the report rules out for certain")
    cost: float = Field(description="Expected loss over the town, in metres")
    adversary_error: float = Field(description="Adversary error, in metres")
    epsilon: float | None = Field(description="Measured, per metre; None: a report excludes a cell")


class Mechanisms(BaseModel):
    """One location under four mechanisms."""

    columns: int
    rows: int
    corners: tuple[tuple[float, float], tuple[float, float]] = Field(description="South-west and north-east")
    truth: int = Field(description="The cell of the place")
    inside: bool = Field(description="Whether the place lies on the grid; else its nearest cell was taken")
    mechanisms: list[OnMap]


@dataclass(frozen=True, eq=False)
class Lineup:
    """The mechanisms in the centre of a town, with the expected loss of cloaking."""

    town: Town

    @cached_property
    def grid(self) -> Grid:
        """The cells, around the centre of the prior."""
        lat, lon = self.town.home
        [[x, y]] = self.town.projection.to_xy([[lon, lat]])
        west, south = x - CELL * (SIDE - 1) / 2, y - CELL * (SIDE - 1) / 2
        return Grid(west, south, cell=CELL, columns=SIDE, rows=SIDE)

    @cached_property
    def prior(self) -> Prior:
        """The prior on the cells."""
        places = self.town.prior.sites.xy
        cells = self.grid.nearest(places)
        here = (np.abs(places - self.grid.xy[cells]) <= CELL / 2).all(axis=1)
        return Prior.from_counts(self.grid, np.bincount(cells[here], self.town.prior.mass[here], SIDE**2))

    @cached_property
    def channels(self) -> dict[str, Channel]:
        """Each mechanism; the optimal ones are solved here, which takes some seconds."""
        zones = cloaking(self.grid, zone=(ZONE, ZONE))
        wanted = expected_loss(zones, self.prior)
        laplace = partial(FAMILIES["planar Laplace"], self.grid)
        epsilon = epsilon_for_loss(laplace, self.prior, loss=wanted)
        return {
            "cloaking": zones,
            "optimal for the prior": max_adversary_error_given_loss(self.prior, max_loss=wanted),
            "planar Laplace": laplace(epsilon),
            "optimal geo-ind": self._optimal(epsilon, wanted),
        }

    def _optimal(self, epsilon: float, wanted: float) -> Channel:
        # For the same cost the optimum affords a smaller epsilon; its cost falls about as epsilon^-1.3.
        epsilon *= 0.8
        for _ in range(4):
            best = min_loss_given_epsilon(self.prior, epsilon=epsilon, tolerance=1e-3)
            cost = expected_loss(best, self.prior)
            if abs(cost / wanted - 1) < CLOSE:
                break
            epsilon *= (cost / wanted) ** (1 / 1.3)
        return best

    def show(self, name: str, truth: int, rng: np.random.Generator) -> OnMap:
        """Return the reports and the posterior of a mechanism for a cell."""
        channel = self.channels[name]
        row = channel.matrix[truth]
        drawn = int(rng.choice(len(row), p=row / row.sum()))
        # A zone is all its cells: each cell belongs to the report that is nearest.
        report_of = channel.outputs.nearest(self.grid.xy)
        sizes = np.bincount(report_of, minlength=len(row))
        joint = self.prior.mass * channel.matrix[:, drawn]
        epsilon = float(channel.epsilon)
        return OnMap(
            name=name,
            reports=_plain(row[report_of] / sizes[report_of]),
            report=np.flatnonzero(report_of == drawn).tolist(),
            belief=_plain(joint / joint.sum()),
            excluded=np.flatnonzero((self.prior.mass > 0) & (channel.matrix[:, drawn] == 0)).tolist(),
            cost=expected_loss(channel, self.prior),
            adversary_error=adversary_error(channel, self.prior),
            epsilon=epsilon if math.isfinite(epsilon) else None,
        )


def mechanisms_router(town: Town) -> APIRouter:
    """Return the tab's part of the API."""
    router = APIRouter(prefix="/api", tags=["Compare"])
    lineup, solving = Lineup(town), threading.Lock()

    @router.post("/mechanisms")
    def mechanisms(ask: MechanismsAsk) -> Mechanisms:
        """Return the reports of four mechanisms of the same cost; the first request solves the optimal one."""
        place = town.projection.to_xy(town.here(ask))
        [truth] = lineup.grid.nearest(place).tolist()
        half = CELL / 2
        corners = to_latlon(town.projection.to_lonlat([lineup.grid.xy[0] - half, lineup.grid.xy[-1] + half]))
        rng = np.random.default_rng(ask.seed)
        with solving:
            names = list(lineup.channels)
        (south, west), (north, east) = corners.tolist()
        return Mechanisms(
            columns=SIDE,
            rows=SIDE,
            corners=((south, west), (north, east)),
            truth=truth,
            inside=bool((np.abs(place - lineup.grid.xy[truth]) <= half).all()),
            mechanisms=[lineup.show(name, truth, rng) for name in names],
        )

    return router


def _plain(shares: FloatArray) -> list[float]:
    return [round(share, 6) for share in shares.tolist()]
