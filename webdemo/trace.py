"""A trace: a walk reported at each step, against the same walk within a budget."""

import math
import secrets

import numpy as np
from fastapi import APIRouter
from pydantic import BaseModel, Field

from geoind import Grid, InvalidInputError, TraceSession
from geoind.arrays import FloatArray
from geoind.traces import Independent, Mobility, Rationed, TraceMethod, trace_beliefs

from .requests import MAX_SEED, Point, Privacy, Promised
from .town import Town, to_latlon

__all__ = ["trace_router"]

MAX_STEPS = 500
PACE = 1.4
"""Metres that people walk in a second."""
CELLS = 40
"""Cells along the longer side of the observer's map."""
LONG = 10_000.0
"""Hours: longer than any walk."""


class TraceAsk(Privacy):
    """A path, the step of a naive app, and the number of reports that the budget pays for."""

    path: list[Point] = Field(min_length=2, max_length=100, description="Corners of the walk")
    step: float = Field(25.0, ge=5, le=200, description="Metres walked between two reports of the naive app")
    budget: int = Field(5, ge=1, le=50, description="Reports that the budget pays for during the whole walk")
    seed: int | None = Field(None, ge=0, le=MAX_SEED, description="Repeats the noise; for simulation only")


class Walk(BaseModel):
    """The reports of one method, their cost, and what they reveal."""

    reports: list[tuple[float, float]]
    guess: list[tuple[float, float]] = Field(description="The most likely path of the walker, given all reports")
    spent: float = Field(description="Sum of epsilons, per metre")
    factor: str = Field(description="Largest factor on the odds between two walks that are the radius apart")
    report_error: float = Field(description="Mean distance of the app's latest report from the walker, in metres")
    guess_error: float = Field(description="Mean distance of the observer's path from the walker, in metres")


class Trace(BaseModel):
    """The walk under both methods."""

    promise: Promised
    steps: list[tuple[float, float]]
    length: float
    naive: Walk
    budgeted: Walk


def trace_router(town: Town) -> APIRouter:
    """Return the tab's part of the API."""
    router = APIRouter(prefix="/api", tags=["A trace"])

    @router.post("/trace")
    def trace(ask: TraceAsk) -> Trace:
        """Report a walk with independent noise at each step, and within a budget."""
        corners = town.projection.to_xy(town.here(*ask.path))
        walk, length = steps_along(corners, ask.step)
        # Whole 1024ths of a second: every step then takes exactly as long as the others.
        times = np.arange(len(walk), dtype=np.float64) * (math.ceil(1024 * length / PACE / (len(walk) - 1)) / 1024)
        key = secrets.token_bytes(32) if ask.seed is None else ask.seed.to_bytes(32)
        each = Independent(ask.noise.epsilon)
        return Trace(
            promise=ask.promise,
            steps=to_latlon(town.projection.to_lonlat(walk)).tolist(),
            length=length,
            naive=_walk(town, each, ask.radius, walk, times, key),
            budgeted=_walk(town, lasting(each, ask.budget, times), ask.radius, walk, times, key),
        )

    return router


def steps_along(corners: FloatArray, step: float) -> tuple[FloatArray, float]:
    """Return the points every `step` metres along a path, with both ends, and the path's length."""
    travelled = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(corners, axis=0), axis=1))])
    length = float(travelled[-1])
    if not length > 0:
        raise InvalidInputError("the path must have two different corners")
    count = math.ceil(length / step) + 1
    if count > MAX_STEPS:
        raise InvalidInputError(f"the walk must have at most {MAX_STEPS} steps, got {count}: make the step longer")
    at = np.linspace(0, length, count)
    return np.column_stack([np.interp(at, travelled, corners[:, axis]) for axis in (0, 1)]), length


def lasting(each: Independent, budget: int, times: FloatArray) -> TraceMethod:
    """Return the method that spreads this many reports over all times."""
    if budget >= len(times):
        return each
    if budget == 1:
        return Rationed(each, each.epsilon / LONG, saved=LONG)  # the next one would come after a year and a half
    hours = (times[-1] - times[0]) / 3600
    # The budget of steps without a report is saved, too.
    saved = hours / (budget - 1) + hours / (len(times) - 1)
    return Rationed(each, (budget - 1) * each.epsilon / hours * (1 + 1e-9), saved=saved)


def observed(town: Town, reports: FloatArray, times: FloatArray, method: TraceMethod) -> FloatArray:
    """Return the most likely path for an observer who knows the noise and how people walk.

    Nothing but the reports and the public map is looked at.
    """
    sent = town.projection.to_xy(reports)
    west, south = np.minimum(town.extent[0], sent.min(axis=0))
    east, north = np.maximum(town.extent[1], sent.max(axis=0))
    cell = max(east - west, north - south) / CELLS
    columns, rows = (math.ceil(side / cell) + 1 for side in (east - west, north - south))
    grid = Grid(west, south, cell=cell, columns=columns, rows=rows)
    # The speed of people who walk, but at least one cell per step.
    speed = max(PACE * 3600, cell / (times[1] / 3600))
    mobility = Mobility(grid, town.projection, speed=speed, stay=0.0)
    beliefs = trace_beliefs(reports, times, method=method, mobility=mobility)
    return np.array([belief.ravel() @ grid.xy for belief in beliefs])


def _walk(town: Town, method: TraceMethod, radius: float, walk: FloatArray, times: FloatArray, key: bytes) -> Walk:
    session = TraceSession(method, key=key)
    answers, fresh = np.empty_like(walk), []
    for step, (lon, lat) in enumerate(town.projection.to_lonlat(walk).tolist()):
        before = session.spent
        answer = session.report(lat=lat, lon=lon, time=times[step])
        answers[step] = answer.lon, answer.lat
        fresh.append(session.spent > before)
    guess = observed(town, answers, times, method)
    return Walk(
        reports=to_latlon(answers[fresh]).tolist(),
        guess=to_latlon(town.projection.to_lonlat(guess)).tolist(),
        spent=session.spent,
        factor=_large(session.spent * radius),
        report_error=float(np.linalg.norm(town.projection.to_xy(answers) - walk, axis=1).mean()),
        guess_error=float(np.linalg.norm(guess - walk, axis=1).mean()),
    )


def _large(log: float) -> str:
    """Return e^log as text."""
    return f"{math.exp(log):,.0f}" if log < math.log(1e6) else f"10^{log / math.log(10):.0f}"
