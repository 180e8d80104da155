"""Near me: query a circle around the report, and keep what is near the true location."""

from typing import TYPE_CHECKING, Literal

import shapely
from fastapi import APIRouter
from pydantic import BaseModel, Field

from geoind import private_query
from geoind.queries.points_of_interest import PointsOfInterest

from .requests import MAX_SEED, Point, Privacy, Promised
from .town import Town, to_latlon

if TYPE_CHECKING:
    from geopandas import GeoDataFrame

__all__ = ["near_router"]


class NearAsk(Point, Privacy):
    """A location, an area of interest, and a confidence."""

    interest: float = Field(150.0, ge=10, le=2000, description="Radius of the area of interest, in metres")
    confidence: float = Field(0.95, ge=0.01, le=0.999, description="Probability that nothing is missed")
    kind: Literal["food", "shop", "sight", "any"] = "food"
    seed: int | None = Field(None, ge=0, le=MAX_SEED, description="Repeats the noise; for simulation only")


class Found(BaseModel):
    """A point of interest that the service returned or missed."""

    lat: float
    lon: float
    name: str
    label: str
    distance: float = Field(description="Metres from the true location")


class Nearby(BaseModel):
    """The query, its results, and its cost."""

    promise: Promised
    guarantee: str
    covered: bool = Field(description="Whether the area of retrieval holds the area of interest this time")
    centre: tuple[float, float] = Field(description="The report: the centre of the area of retrieval")
    retrieval_radius: float
    overhead: float = Field(description="Area of retrieval over area of interest")
    outside: float = Field(description="Share of the area of retrieval outside this map, which is not counted")
    retrieved: list[tuple[float, float]] = Field(description="lat and lon of all results")
    kept: list[Found] = Field(description="The results in the area of interest, closest first")
    missed: list[Found]


def near_router(town: Town) -> APIRouter:
    """Return the tab's part of the API."""
    router = APIRouter(prefix="/api", tags=["Near me"])
    places = town.basemap.places
    kinds = {kind: PointsOfInterest(places[places["kind"] == kind]) for kind in ("food", "shop", "sight")}
    kinds["any"] = PointsOfInterest(places)

    @router.post("/near")
    def nearby(ask: NearAsk) -> Nearby:
        """Run a private query, and return its results and its cost."""
        town.here(ask)
        query = private_query(
            lat=ask.lat,
            lon=ask.lon,
            radius=ask.interest,
            confidence=ask.confidence,
            mechanism=ask.noise,
            rng=ask.seed,
        )
        wanted = kinds[ask.kind]
        # The service sees the query only; the phone refines. Only a demo knows what was missed.
        retrieved = wanted.around(lat=query.lat, lon=query.lon, radius=query.radius)
        really_near = wanted.around(lat=ask.lat, lon=ask.lon, radius=ask.interest)
        return Nearby(
            promise=ask.promise,
            guarantee=query.guarantee,
            covered=query.covered,
            centre=(query.lat, query.lon),
            retrieval_radius=query.radius,
            overhead=(query.radius / ask.interest) ** 2,
            outside=_outside(town, query.lat, query.lon, query.radius),
            retrieved=to_latlon(shapely.get_coordinates(retrieved.geometry.to_numpy())).tolist(),
            kept=_found(query.refine(retrieved)),
            missed=_found(really_near[~really_near.index.isin(retrieved.index)]),
        )

    return router


def _outside(town: Town, lat: float, lon: float, radius: float) -> float:
    """Return the share of a circle that lies outside the map."""
    asked = shapely.buffer(shapely.Point(town.projection.to_xy([[lon, lat]])[0]), radius, quad_segs=32)
    mapped = shapely.box(*town.extent.ravel())
    return 1 - float(shapely.area(shapely.intersection(asked, mapped)) / shapely.area(asked))


def _found(frame: "GeoDataFrame") -> list[Found]:
    latlon = to_latlon(shapely.get_coordinates(frame.geometry.to_numpy())).tolist()
    return [
        Found(lat=lat, lon=lon, name=name, label=label, distance=round(distance, 1))
        for (lat, lon), name, label, distance in zip(
            latlon, frame["name"], frame["label"], frame["distance"], strict=True
        )
    ]
