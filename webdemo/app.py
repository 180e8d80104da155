"""The demo as a web application, for this machine only."""

import atexit
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware

from geoind import GeoindError, Ledger, __version__
from geoind.maps.basemap import read_basemap

from .again import again_router
from .compare import compare_router
from .docs import docs_router
from .explore import explore_router
from .mechanisms import mechanisms_router
from .near import near_router
from .observer import best_guess
from .page import page_router, security_headers
from .requests import BodyLimit, Privacy
from .story import story_router
from .town import Town
from .trace import trace_router

__all__ = ["create_app", "from_environment"]


class Refusal(BaseModel):
    """The reason for which a request was refused."""

    detail: str


MOST_BYTES = 65_536
"""Longest request body; a walk of 100 corners, the longest request, has about 6,000 bytes."""
LOOPBACK = ["127.0.0.1", "localhost", "[::1]"]


def create_app(basemap: str | Path | None = None, *, online_tiles: bool = False) -> FastAPI:
    """Return the application for a town; without a file, for the centre of Helsinki."""
    town = Town(read_basemap(basemap))
    _warm_up(town)
    folder = Path(tempfile.mkdtemp(prefix="geoind-demo-"))
    # Also removed if the application is never served.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        shutil.rmtree(folder, ignore_errors=True)

    app = FastAPI(
        title="geoind demo",
        version=__version__,
        summary="See and feel what epsilon means",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        responses={400: {"model": Refusal}, 422: {"model": Refusal}},
    )
    app.state.town = town
    app.add_middleware(BodyLimit, most=MOST_BYTES)
    # The map of a town is half a megabyte of text.
    app.add_middleware(GZipMiddleware, minimum_size=4096, compresslevel=4)
    # DNS rebinding: another site's host name that resolves to this machine must not be served.
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=LOOPBACK)
    headers = security_headers(online_tiles=online_tiles)

    @app.middleware("http")
    async def secure(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
        response = await answer(request)
        for name, value in headers.items():
            response.headers.setdefault(name, value)
        # Browsers fetch the icon anew whenever the address changes, as it does here with every control.
        lasting = request.url.path.endswith(".svg")
        response.headers.setdefault("Cache-Control", "max-age=86400" if lasting else "no-cache")
        return response

    app.add_exception_handler(GeoindError, _refuse)
    app.add_exception_handler(RequestValidationError, _refuse_invalid)
    routers = [
        explore_router(town),
        near_router(town),
        again_router(town, folder / "budgets.db"),
        trace_router(town),
        compare_router(),
        mechanisms_router(town),
        docs_router(app),
        story_router(town),
        page_router(town, online_tiles=online_tiles),
    ]
    for router in routers:
        app.include_router(router)
    for folder_name in ("static", "device"):
        with as_file(files(__package__).joinpath(folder_name)) as served:
            app.mount(f"/{folder_name}", StaticFiles(directory=served))
    return app


def from_environment() -> FastAPI:
    """Return the application for the environment variables that `geoind demo` sets."""
    return create_app(
        os.environ.get("GEOIND_DEMO_BASEMAP") or None, online_tiles=bool(os.environ.get("GEOIND_DEMO_TILES"))
    )


def _warm_up(town: Town) -> None:
    """Compute and import in advance what the first click needs."""
    centre = town.projection.to_lonlat([[0.0, 0.0]])
    best_guess(town, Privacy(factor=4, radius=100).noise, centre)
    _ = town.prior_latlon
    Ledger("sqlite://", budget=1).close()


def _refuse(_: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(error)}, status_code=400)


def _named(problem: dict[str, Any]) -> tuple[str | int, ...]:
    known: tuple[str | int, ...] = problem["loc"][1:]
    return known[:-1] if problem["type"] == "extra_forbidden" else known


def _refuse_invalid(_: Request, error: Exception) -> JSONResponse:
    # The answer of the framework would quote the input, and so a location. The name of an
    # unknown member could contain one, too.
    if not isinstance(error, RequestValidationError):
        raise error
    problems = [
        f"{'.'.join(map(str, _named(problem))) or 'the request'}: {problem['msg'].lower()}"
        for problem in error.errors()
    ]
    return JSONResponse({"detail": "; ".join(problems)}, status_code=422)
