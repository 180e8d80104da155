"""Compare: the stored 9 x 9 comparison."""

from fastapi import APIRouter
from pydantic import BaseModel, Field

from geoind.evaluation import stored_comparison

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


class Comparison(BaseModel):
    """Every mechanism under every prior."""

    grid: GridShape
    zone: tuple[int, int]
    loss: float = Field(description="The expected loss of every mechanism, in metres")
    priors: dict[str, list[float]] = Field(description="Probability of each cell, from the south-west")
    measures: dict[str, Measure]
    mechanisms: list[str]
    rows: list[Row]


def compare_router() -> APIRouter:
    """Return the tab's part of the API."""
    router = APIRouter(prefix="/api", tags=["Compare"])
    stored = Comparison.model_validate(stored_comparison())

    @router.get("/compare")
    def compare() -> Comparison:
        """Return the comparison of mechanisms at equal cost on a grid of 9 x 9 cells."""
        return stored

    return router
