"""Compare: the stored 9 x 9 comparison."""

from typing import Any

import pandas as pd
from fastapi import APIRouter
from pydantic import BaseModel, Field

from geoind.evaluation import stored_comparison
from geoind.evaluation.contenders import EQUALISED
from geoind.evaluation.report import standings

__all__ = ["compare_router"]


class GridShape(BaseModel):
    """The town of the comparison."""

    cell: float
    columns: int
    rows: int


class Measure(BaseModel):
    """What is measured."""

    title: str
    unit: str
    good: str = Field(description="Which direction is good")


class Row(BaseModel):
    """One mechanism under one prior."""

    equalised: str = Field(description="The prior under which all mechanisms cost the same")
    prior: str
    mechanism: str
    knows_prior: bool = Field(description="Whether it was built for the prior under which it is measured")
    parameter: float | None
    expected_loss: float
    adversary_error: float
    measured_epsilon: float | None = Field(description="None is infinite: a report excludes a cell")
    worst_case_loss: float
    posterior_entropy: float
    bayes_vulnerability: float


class Tally(BaseModel):
    """In how many priors planar Laplace leaves a larger, smaller or equal adversary error than a rival."""

    equalised: str
    mechanism: str = Field(description="The rival")
    wins: int
    losses: int
    ties: int


class Comparison(BaseModel):
    """Every mechanism under every prior."""

    grid: GridShape
    zone: tuple[int, int]
    loss: float = Field(description="The expected loss of every mechanism, in metres")
    priors: dict[str, list[float]] = Field(description="Probability of each cell, from the south-west")
    measures: dict[str, Measure]
    mechanisms: list[str]
    rows: list[Row]
    tallies: list[Tally]


def compare_router() -> APIRouter:
    """Return the tab's part of the API."""
    router = APIRouter(prefix="/api", tags=["Compare"])
    found = stored_comparison()
    stored = Comparison.model_validate({**found, "tallies": _tallies(found["rows"])})

    @router.get("/compare")
    def compare() -> Comparison:
        """Return the comparison of mechanisms at equal cost on a grid of 9 x 9 cells."""
        return stored

    return router


def _tallies(rows: list[dict[str, Any]]) -> list[Tally]:
    """Return planar Laplace against the other mechanisms, for both ways of equalising costs."""
    table, found = pd.DataFrame(rows), []
    for way in EQUALISED:
        for rival, score in standings(table, way).loc["planar Laplace"].items():
            wins, losses, ties = map(int, score.split("-"))
            found.append(Tally(equalised=way, mechanism=str(rival), wins=wins, losses=losses, ties=ties))
    return found
