"""A trace: a walk reported at each step, against the same walk within a budget."""

import math

import numpy as np
from fastapi import APIRouter
from pydantic import BaseModel, Field

from geoind import InvalidInputError, SphericalLaplace, obfuscate_lonlat
from geoind.arrays import FloatArray, IntArray

from .requests import MAX_SEED, Point, Privacy, Promised
from .town import Town, to_latlon

__all__ = ["trace_router"]

MAX_STEPS = 500


class TraceAsk(Privacy):
    """A path, how often a naive app reports, and what the budget pays for."""

    path: list[Point] = Field(min_length=2, max_length=100, description="Corners of the walk")
    step: float = Field(25.0, ge=5, le=200, description="Metres walked between two reports of the naive app")
    budget: int = Field(5, ge=1, le=50, description="Reports that the budget pays for during the whole walk")
    seed: int | None = Field(None, ge=0, le=MAX_SEED, description="Repeats the noise; for simulation only")


class Walk(BaseModel):
    """What one way of reporting sends, costs and gives away."""

    reports: list[tuple[float, float]]
    guess: list[tuple[float, float]] = Field(description="The path that an observer draws through the reports")
    spent: float = Field(description="Sum of epsilons, per metre")
    factor: str = Field(description="Two walks that are the radius apart can be told apart by this factor at most")
    report_error: float = Field(description="Mean distance of the app's latest report from the walker, in metres")
    guess_error: float = Field(description="Mean distance of the observer's path from the walker, in metres")


class Trace(BaseModel):
    """The walk and both ways of reporting it."""

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
        """Report a walk with independent noise at each step, and as rarely as a budget allows."""
        corners = town.projection.to_xy(town.here(*ask.path))
        walk, length = steps_along(corners, ask.step)
        noise = ask.noise
        everything = np.arange(len(walk), dtype=np.int64)
        allowed = np.unique(np.linspace(0, len(walk) - 1, min(ask.budget, len(walk))).round().astype(np.int64))
        truth = town.projection.to_lonlat(walk)
        reports = obfuscate_lonlat(truth, noise, rng=ask.seed)
        return Trace(
            promise=ask.promise,
            steps=to_latlon(truth).tolist(),
            length=length,
            naive=_walk(town, noise, ask.radius, walk, everything, reports),
            budgeted=_walk(town, noise, ask.radius, walk, allowed, reports[allowed]),
        )

    return router


def steps_along(corners: FloatArray, step: float) -> tuple[FloatArray, float]:
    """Return the points every `step` metres along a path, with both ends, and the path's length."""
    travelled = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(corners, axis=0), axis=1))])
    length = float(travelled[-1])
    if not length > 0:
        raise InvalidInputError("the path must lead somewhere: all its corners are one point")
    count = math.ceil(length / step) + 1
    if count > MAX_STEPS:
        raise InvalidInputError(f"the walk must have at most {MAX_STEPS} steps, got {count}: make the step longer")
    at = np.linspace(0, length, count)
    return np.column_stack([np.interp(at, travelled, corners[:, axis]) for axis in (0, 1)]), length


def smoothed(when: IntArray, places: FloatArray, times: IntArray, width: float) -> FloatArray:
    """Return the local average of places at other times: nearby reports count more, by a bell curve."""
    weights = np.exp(-0.5 * ((times[:, None] - when) / width) ** 2) + 1e-300
    return np.asarray(weights @ places / weights.sum(axis=1, keepdims=True))


def _walk(
    town: Town, noise: SphericalLaplace, radius: float, walk: FloatArray, when: IntArray, reports: FloatArray
) -> Walk:
    times = np.arange(len(walk), dtype=np.int64)
    sent = town.projection.to_xy(reports)
    latest = sent[np.searchsorted(when, times, side="right") - 1]
    # An observer who knows how people walk: of all widths the one that errs least.
    guesses = [smoothed(when, sent, times, width) for width in np.geomspace(0.5, 2 * len(walk), 16)]
    errors = [float(np.linalg.norm(guess - walk, axis=1).mean()) for guess in guesses]
    best = int(np.argmin(errors))
    spent = len(when) * noise.epsilon
    return Walk(
        reports=to_latlon(reports).tolist(),
        guess=to_latlon(town.projection.to_lonlat(guesses[best])).tolist(),
        spent=spent,
        factor=_large(spent * radius),
        report_error=float(np.linalg.norm(latest - walk, axis=1).mean()),
        guess_error=errors[best],
    )


def _large(log: float) -> str:
    """Return e^log for people."""
    return f"{math.exp(log):,.0f}" if log < math.log(1e6) else f"10^{log / math.log(10):.0f}"
