"""Explore: one report, a cloud of reports, how far they fall, and what an observer makes of the one."""

import numpy as np
from fastapi import APIRouter
from pydantic import BaseModel, Field

from geoind import obfuscate_lonlat
from geoind.arrays import FloatArray
from geoind.space.lattice import METRES_PER_DEGREE

from .observer import best_guess, credible_radius, posterior
from .requests import MAX_SEED, Point, Privacy, Promised
from .town import Town, to_latlon

__all__ = ["explore_router"]

RINGS = (0.5, 0.9, 0.95, 0.99)

VISIBLE = 1e-3
"""Places that are less likely than this share of the likeliest one are not drawn."""


class ExploreAsk(Point, Privacy):
    """A place, the privacy wanted, and how many reports to draw."""

    cloud: int = Field(200, ge=0, le=2000, description="Reports in the cloud")
    seed: int | None = Field(
        None,
        ge=0,
        le=MAX_SEED,
        description="Repeats the noise while a slider moves; for simulation only. Without it: fresh noise",
    )


class Ring(BaseModel):
    """A circle that a share of all reports falls into."""

    share: float
    radius: float


class Spot(BaseModel):
    """A place and how far it is from the truth, in metres."""

    lat: float
    lon: float
    error: float


class Belief(BaseModel):
    """What an observer who knows the town's buildings believes after the report."""

    places: list[tuple[float, float, float]] = Field(description="lat, lon and probability, largest is 1")
    nearby: float = Field(description="Probability of the truth's surroundings: the promise's radius")
    nearby_before: float = Field(description="The same before the report")
    area: float = Field(description="Radius within which the observer finds the truth in 9 of 10 cases")


class Exploration(BaseModel):
    """All that the tab shows."""

    promise: Promised
    rings: list[Ring]
    report: Spot
    remapped: Spot = Field(description="The report moved to where it errs least, given the buildings")
    belief: Belief
    cloud: list[tuple[float, float]]
    lattice: float = Field(description="Step of the public lattice, in degrees")
    lattice_metres: float = Field(description="The same in metres, from south to north")


def explore_router(town: Town) -> APIRouter:
    """Return the tab's part of the API."""
    router = APIRouter(prefix="/api", tags=["Explore"])

    @router.post("/explore")
    def explore(ask: ExploreAsk) -> Exploration:
        """Draw reports of one place, and show what an observer can conclude from the first."""
        truth = town.here(ask)
        noise = ask.noise
        reports = obfuscate_lonlat(np.repeat(truth, ask.cloud + 1, axis=0), noise, rng=ask.seed)
        weights = posterior(town, noise, reports[:1])
        guess = best_guess(town, noise, reports[:1])
        step = 10.0**-noise.decimals
        return Exploration(
            promise=ask.promise,
            rings=[Ring(share=share, radius=float(noise.radius_quantile(share))) for share in RINGS],
            report=_spot(town, truth, reports[:1]),
            remapped=_spot(town, truth, town.projection.to_lonlat(guess[None])),
            belief=_belief(town, truth, guess, weights, ask.radius),
            cloud=to_latlon(reports[1:]).tolist(),
            lattice=step,
            lattice_metres=METRES_PER_DEGREE * step,
        )

    return router


def _spot(town: Town, truth: FloatArray, lonlat: FloatArray) -> Spot:
    [[lat, lon]] = to_latlon(lonlat).tolist()
    return Spot(lat=lat, lon=lon, error=float(town.distance(truth, lonlat)[0]))


def _belief(town: Town, truth: FloatArray, guess: FloatArray, weights: FloatArray, radius: float) -> Belief:
    near = np.linalg.norm(town.prior.sites.xy - town.projection.to_xy(truth), axis=1) <= radius
    seen = weights >= VISIBLE * weights.max()
    heat = np.column_stack([town.prior_latlon[seen], (weights[seen] / weights.max()).round(4)])
    return Belief(
        places=heat.tolist(),
        nearby=float(weights[near].sum()),
        nearby_before=float(town.prior.mass[near].sum()),
        area=credible_radius(town, weights, guess, 0.9),
    )
