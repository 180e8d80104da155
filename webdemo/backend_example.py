"""An example: a backend that finds places near a person without sending the true location to the provider.

Two applications. The *provider* stands for a third-party service that knows places and is not trusted. The
*backend* is yours: it gets true locations from your app, asks the provider privately, refines the answer, and
keeps each person's privacy budget. Both run under any number of worker processes:

    GEOIND_PLACES=places.parquet \
        uvicorn --factory webdemo.backend_example:provider_from_environment --port 8001
    GEOIND_KEY=$(python -c "import secrets; print(secrets.token_hex(32))") \
    GEOIND_LEDGER=sqlite:///budgets.db GEOIND_PROVIDER=http://127.0.0.1:8001/search \
        uvicorn --factory webdemo.backend_example:backend_from_environment --port 8000 --workers 4
    curl -H 'X-Person: ana' --json '{"lat": 48.8584, "lon": 2.2945}' http://127.0.0.1:8000/nearby
"""

import math
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Annotated, Any

import httpx
from fastapi import FastAPI, Header, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field, StrictFloat, TypeAdapter, ValidationError

from geoind import (
    BudgetExceededError,
    InvalidInputError,
    Ledger,
    SamePlace,
    TraceSession,
    epsilon_for,
    private_query,
)
from geoind.errors import LedgerError
from geoind.queries import PointsOfInterest
from geoind.traces import SparseVector

from .requests import BodyLimit

__all__ = ["backend_from_environment", "create_backend", "create_provider", "provider_from_environment"]

EPSILON = epsilon_for(level=math.log(4), radius=200)
RADIUS = 300.0
"""Metres around the person. A constant of the app: a radius that depended on the true location would leak it."""
CONFIDENCE = 0.95
BUDGET = 20 * EPSILON
WINDOW = timedelta(days=1)
MOVING = SparseVector.for_accuracy(1200)
"""How a delivery shares its position: an hour on the road fits into the budget, and waiting costs nothing."""
TIMEOUT = 10.0
"""Seconds that the ledger has, and the provider for its whole answer, unless GEOIND_TIMEOUT says otherwise."""
MOST_BYTES = 5_000_000
"""No answer is longer."""
MOST_ASKED = 4096
"""Longest request body in bytes; a place needs less than 100."""

Person = Annotated[str, Header(alias="X-Person", description="from your session; never from the app's word")]


class Truth(BaseModel):
    """Where a person is, in degrees. In a body, not in an address: addresses end in logs."""

    lat: StrictFloat
    lon: StrictFloat


class Place(BaseModel):
    """What the provider may answer; anything else is not passed on."""

    name: str
    lat: float = Field(strict=True, ge=-90, le=90)
    lon: float = Field(strict=True, ge=-180, le=180)


Answer = TypeAdapter(list[Place])


class ProviderError(Exception):
    """The provider did not answer as it should; the message says how, without a coordinate."""


def create_provider(places: PointsOfInterest) -> FastAPI:
    """Return the third party: everything within a radius of a centre, as Foursquare's place search takes them."""
    app = FastAPI(title="A provider that is not trusted", docs_url=None, redoc_url=None)

    @app.get("/search")
    def search(ll: str, radius: float) -> list[dict[str, Any]]:
        lat, lon = map(float, ll.split(","))
        found = places.around(lat=lat, lon=lon, radius=radius)
        return [
            {"name": name, "lat": point.y, "lon": point.x}
            for name, point in zip(found["name"], found.geometry, strict=True)
        ]

    return app


def create_backend(ledger: Ledger, memory: SamePlace, provider: str, *, timeout: float = TIMEOUT) -> FastAPI:
    """Return the trusted side.

    The endpoints are plain functions, which FastAPI runs in threads: while one waits for the ledger or for the
    provider, the event loop serves the others. In an `async def`, write
    `await asyncio.to_thread(private_query, ...)` to the same effect.
    """
    # The provider is not trusted: it may not send the query on to an address of its choice.
    client = httpx.Client(timeout=timeout, follow_redirects=False)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        client.close()

    # FastAPI's own documentation pages load scripts from the network.
    app = FastAPI(title="Places near you, privately", lifespan=lifespan, docs_url=None, redoc_url=None)
    app.add_middleware(BodyLimit, most=MOST_ASKED)

    @app.post("/nearby")
    def nearby(truth: Truth, person: Person) -> dict[str, Any]:
        query = private_query(
            lat=truth.lat,
            lon=truth.lon,
            radius=RADIUS,
            confidence=CONFIDENCE,
            epsilon=EPSILON,
            same_place=memory,
            ledger=ledger,
            person_id=person,
        )
        found = ask(client, provider, query.as_params("foursquare"), time.monotonic() + timeout)
        places = query.refine([place.model_dump() for place in found])
        return {"places": places, "confidence": query.confidence, "remaining": ledger.remaining(person)}

    @app.post("/track")
    def track(truth: Truth, person: Person) -> dict[str, float]:
        # The server's clock: an app that could choose the time could ask about one moment again and again.
        session = TraceSession(MOVING, key=memory.key, ledger=ledger, person_id=person)
        report = session.report(lat=truth.lat, lon=truth.lon, time=time.time())
        return {"lat": report.lat, "lon": report.lon, "remaining": ledger.remaining(person)}

    @app.get("/budget")
    def budget(person: Person) -> dict[str, float]:
        return {"remaining": ledger.remaining(person), "lifetime": ledger.lifetime(person)}

    @app.exception_handler(BudgetExceededError)
    def exhausted(_: Request, error: Exception) -> JSONResponse:
        remaining = error.remaining if isinstance(error, BudgetExceededError) else 0.0
        return JSONResponse(
            {"detail": "the rest of the privacy budget does not pay for this answer", "remaining": remaining}, 429
        )

    @app.exception_handler(InvalidInputError)
    def invalid(_: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, 422)

    @app.exception_handler(RequestValidationError)
    def unreadable(_: Request, error: Exception) -> JSONResponse:
        # FastAPI's own answer repeats the input, and answers are logged.
        problems = error.errors() if isinstance(error, RequestValidationError) else []
        return JSONResponse({"detail": [{"loc": one["loc"], "msg": one["msg"]} for one in problems]}, 422)

    @app.exception_handler(LedgerError)
    def no_ledger(_: Request, _error: Exception) -> JSONResponse:
        return JSONResponse({"detail": "the ledger does not answer, and without it nothing is sent"}, 503)

    @app.exception_handler(ProviderError)
    def no_provider(_: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"detail": f"the provider {error}"}, 502)

    return app


def ask(client: httpx.Client, provider: str, params: dict[str, Any], deadline: float) -> list[Place]:
    """Return the provider's places, or say what is wrong with its answer."""
    body = bytearray()
    try:
        with client.stream("GET", provider, params=params) as answer:
            if answer.is_redirect:
                raise ProviderError("wants to send the query elsewhere")
            if answer.status_code != httpx.codes.OK:
                raise ProviderError(f"answered with status {answer.status_code}")
            for some in answer.iter_bytes():
                body += some
                if len(body) > MOST_BYTES:
                    raise ProviderError("answered too much")
                if time.monotonic() > deadline:
                    raise ProviderError("is too slow")
    except httpx.TimeoutException as error:
        raise ProviderError("is too slow") from error
    except httpx.HTTPError as error:
        raise ProviderError("does not answer") from error
    try:
        return Answer.validate_json(bytes(body))
    except ValidationError as error:
        raise ProviderError("did not answer with places") from error


def provider_from_environment() -> FastAPI:
    """Return the provider for the places in the file that GEOIND_PLACES names."""
    return create_provider(PointsOfInterest.read(os.environ["GEOIND_PLACES"]))


def backend_from_environment() -> FastAPI:
    """Return the backend for GEOIND_LEDGER, GEOIND_KEY (64 hexadecimal digits) and GEOIND_PROVIDER."""
    timeout = float(os.environ.get("GEOIND_TIMEOUT", TIMEOUT))
    return create_backend(
        Ledger(os.environ["GEOIND_LEDGER"], budget=BUDGET, window=WINDOW, timeout=timeout),
        SamePlace(bytes.fromhex(os.environ["GEOIND_KEY"]), cell=100),
        os.environ["GEOIND_PROVIDER"],
        timeout=timeout,
    )
