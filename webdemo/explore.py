"""Explore: one report, a cloud of reports, their distances, and the posterior of an observer."""

import numpy as np
import shapely
from fastapi import APIRouter
from pydantic import BaseModel, Field

from geoind import obfuscate_lonlat
from geoind.arrays import FloatArray
from geoind.mechanisms.noise import METRES_PER_DEGREE

from .observer import Odds, Region, best_guess, by_shape, likeliest_region, odds_between, posterior
from .requests import MAX_SEED, Point, Privacy, Promised
from .town import Town, to_latlon

__all__ = ["explore_router"]

RINGS = (0.5, 0.9, 0.95, 0.99)

VISIBLE = 1e-3
"""Buildings that are less likely than this share of the likeliest one are not drawn."""


class ExploreAsk(Point, Privacy):
    """A location, a level and a radius, and the number of reports to draw."""

    cloud: int = Field(200, ge=0, le=2000, description="Reports in the cloud")
    there: Point | None = Field(None, description="Another place, to compare the odds with")
    belief: bool = Field(False, description="Whether to return the posterior of an observer")
    seed: int | None = Field(
        None,
        ge=0,
        le=MAX_SEED,
        description="Repeats the noise while a slider moves; for simulation only. Without it: fresh noise",
    )


class Ring(BaseModel):
    """A circle that contains a share of all reports."""

    share: float
    radius: float


class Spot(BaseModel):
    """A place and its distance from the true location, in metres."""

    lat: float
    lon: float
    error: float


class Belief(BaseModel):
    """The posterior of an observer who knows the buildings of the town."""

    buildings: list[tuple[int, float]] = Field(description="Number, as in /api/town, and probability")
    half: Region
    most: Region
    sentence: str


class Building(BaseModel):
    """A building, or a cell of a map without buildings."""

    rings: list[list[list[tuple[float, float]]]]
    inside: tuple[float, float] = Field(description="A place in it")


class TownMap(BaseModel):
    """The buildings of the town, in the order of their numbers in answers."""

    buildings: list[Building]


class Exploration(BaseModel):
    """The content of the tab."""

    promise: Promised
    rings: list[Ring]
    report: Spot
    remapped: Spot = Field(
        description="The report moved to the place of least expected error, given the buildings"
    )
    odds: Odds | None = Field(description="How the report changes the odds between two places")
    belief: Belief | None
    cloud: list[tuple[float, float]]
    lattice: float = Field(description="Step of the public lattice, in degrees")
    lattice_metres: float = Field(description="The same in metres, from south to north")


def explore_router(town: Town) -> APIRouter:
    """Return the tab's part of the API."""
    router = APIRouter(prefix="/api", tags=["Explore"])
    known = _known(town)

    @router.post("/explore")
    def explore(ask: ExploreAsk) -> Exploration:
        """Draw reports of one location, and return the posterior of an observer after the first."""
        truth = town.here(ask)
        noise = ask.noise
        reports = obfuscate_lonlat(np.repeat(truth, ask.cloud + 1, axis=0), noise, rng=ask.seed)
        there = None if ask.there is None else town.here(ask.there)
        guess = best_guess(town, noise, reports[:1])
        step = 10.0**-noise.decimals
        return Exploration(
            promise=ask.promise,
            rings=[Ring(share=share, radius=float(noise.radius_quantile(share))) for share in RINGS],
            report=_spot(town, truth, reports[:1]),
            remapped=_spot(town, truth, town.projection.to_lonlat(guess[None])),
            odds=None if there is None else odds_between(town, noise, reports[:1], truth, there),
            belief=_belief(town, posterior(town, noise, reports[:1])) if ask.belief else None,
            cloud=to_latlon(reports[1:]).tolist(),
            lattice=step,
            lattice_metres=METRES_PER_DEGREE * step,
        )

    @router.get("/town")
    def buildings() -> TownMap:
        """Return the town's buildings."""
        return known

    @router.post("/promise")
    def promise(ask: Privacy) -> Promised:
        """Return what a factor within a radius means."""
        return ask.promise

    return router


def _known(town: Town) -> TownMap:
    shapes = shapely.simplify(town.shapes, 0.3)
    inside = to_latlon(town.projection.to_lonlat(shapely.get_coordinates(shapely.point_on_surface(town.shapes))))
    return TownMap(
        buildings=[
            Building(rings=town.degrees(shape), inside=(lat, lon))
            for shape, (lat, lon) in zip(shapes, inside.tolist(), strict=True)
        ]
    )


def _spot(town: Town, truth: FloatArray, lonlat: FloatArray) -> Spot:
    [[lat, lon]] = to_latlon(lonlat).tolist()
    return Spot(lat=lat, lon=lon, error=float(town.distance(truth, lonlat)[0]))


def _belief(town: Town, weights: FloatArray) -> Belief:
    likely = by_shape(town, weights)
    half, most = (likeliest_region(town, likely, share) for share in (0.5, 0.9))
    seen = np.flatnonzero(likely >= VISIBLE * likely.max())
    what = "building" if town.has_buildings else "cell"
    return Belief(
        buildings=[(number, chance) for number, chance in zip(seen.tolist(), likely[seen].tolist(), strict=True)],
        half=half,
        most=most,
        sentence=f"90 % sure: {_one_of(most.count, what)}. 50 % sure: {_one_of(half.count, what)}.",
    )


def _one_of(count: int, what: str) -> str:
    return f"this {what}" if count == 1 else f"one of these {count} {what}s"
