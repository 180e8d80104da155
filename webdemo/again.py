"""Ask again: repeated reports of one location, charged to a ledger until it refuses."""

import math
import secrets
from pathlib import Path
from typing import Any, Literal

import numpy as np
from fastapi import APIRouter
from pydantic import BaseModel, Field

from geoind import BudgetExceededError, Location, SamePlace, level_of_reports, obfuscate
from geoind.budgets.ledger import Ledger
from geoind.errors import plural

from .requests import MAX_SEED, Point, Privacy, Promised
from .town import Town, to_latlon

__all__ = ["again_router"]

CELL = 25.0
"""Side of the cells that share a report, in metres."""

DELTA = 1e-5
"""The probability with which an accounted level may be exceeded."""


class AgainAsk(Point, Privacy):
    """A location, a person, and the kind of report."""

    person: str = Field(
        pattern=r"^[a-z0-9]{8,40}$", description="A pseudonym that the page generates; a new one has a new budget"
    )
    budget: int = Field(40, ge=1, le=1000, description="Reports that the budget pays for")
    answer: Literal["fresh", "same"] = Field("fresh", description="Fresh noise each time, or the same report")
    count: int = Field(1, ge=1, le=200, description="How many times to ask")
    seed: int | None = Field(None, ge=0, le=MAX_SEED, description="Repeats the noise; for simulation only")


class Answers(BaseModel):
    """The reports that the budget paid for."""

    promise: Promised
    reports: list[tuple[float, float]]
    errors: list[float] = Field(description="Metres between each report and the true location")
    refused: str | None = Field(description="Why the rest was refused")
    remaining: float = Field(description="Share of the budget that is left")
    spent: float = Field(description="Sum of epsilons, per metre")
    together: str = Field(description="The level of all paid reports together, in words")


def again_router(town: Town, database: Path) -> APIRouter:
    """Return the tab's part of the API; the ledger is kept in a file."""
    router = APIRouter(prefix="/api", tags=["Ask again"])
    memory = SamePlace(secrets.token_bytes(32), cell=CELL)
    url = f"sqlite:///{database}"

    def remembered(ask: AgainAsk, who: dict[str, Any]) -> Location[float]:
        report = memory.obfuscate(**who)
        if ask.seed is None:
            return report
        # Paid above; a seed gives every pseudonym, and so every run, the same report.
        repeated = SamePlace(ask.seed.to_bytes(32), cell=CELL)
        return repeated.obfuscate(**{**who, "ledger": None, "person_id": "anyone"})

    @router.post("/again")
    def again(ask: AgainAsk) -> Answers:
        """Ask for reports of one place, one after the other, until the budget is spent."""
        truth = town.here(ask)
        epsilon = ask.noise.epsilon
        reports, refused = [], None
        with Ledger(url, budget=ask.budget * epsilon) as ledger:
            who: dict[str, Any] = {
                "lat": ask.lat,
                "lon": ask.lon,
                "epsilon": epsilon,
                "person_id": ask.person,
                "ledger": ledger,
            }
            try:
                # Each answer has its own stream, so that one request or many give the same answers.
                first = round(ledger.spent(ask.person) / epsilon)
                for number in range(first, first + ask.count):
                    rng = None if ask.seed is None else np.random.default_rng([ask.seed, number])
                    report = remembered(ask, who) if ask.answer == "same" else obfuscate(**who, rng=rng)
                    reports.append([report.lon, report.lat])
            except BudgetExceededError:
                refused = (
                    f"Refused: the budget of {plural(ask.budget, 'report')} is spent, and no noise was drawn."
                )
            spent = ledger.spent(ask.person)
            remaining = ledger.remaining(ask.person)
        drawn = np.array(reports).reshape(-1, 2)
        return Answers(
            promise=ask.promise,
            reports=to_latlon(drawn).tolist(),
            errors=town.distance(np.repeat(truth, len(drawn), axis=0), drawn).round(1).tolist(),
            refused=refused,
            remaining=remaining / (ask.budget * epsilon),
            spent=spent,
            together=_together(ask, round(spent / epsilon)),
        )

    return router


def _together(ask: AgainAsk, paid: int) -> str:
    """Return the level of this many reports within the radius, by the sum and by the accountant, as a sentence."""
    if not paid:
        return ""
    added = paid * math.log(ask.factor)
    counted = level_of_reports(ask.noise, reports=paid, radius=ask.radius, delta=DELTA)
    reports = "the answer changes" if paid == 1 else f"the {paid} paid answers together change"
    return (
        f"Within {ask.radius:g} m, {reports} the odds by a factor of e^{added:.1f} at most; "
        f"e^{counted:.1f}, except with probability 1 in 100 000."
    )
