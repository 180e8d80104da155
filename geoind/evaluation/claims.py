"""What the paper and the lectures say about these mechanisms, held against the numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import pandas as pd

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["CLAIMS", "Claim", "check_claims"]

EQUAL = 0.05
"""Metres of adversary error that count as the same."""

Errors: TypeAlias = dict[str, float]
Verdict: TypeAlias = tuple[str, str]

LEAST, MOST = "optimal for uniform, least error", "optimal for uniform, most error"
NOT_COMPARED = ("optimal for uniform,", "dummies")
"""The extremes stand for a choice nobody makes; dummies pay in traffic instead of distance."""


@dataclass(frozen=True)
class Claim:
    """A sentence, and how one round of the comparison decides it."""

    sentence: str
    decide: Callable[[Errors, set[str]], Verdict]


def _against_cloaking(errors: Errors, _knowing: set[str]) -> Verdict:
    return _larger(errors["planar Laplace"], errors["cloaking"])


def _against_optimal_for_uniform(errors: Errors, _knowing: set[str]) -> Verdict:
    laplace, least, most = errors["planar Laplace"], errors[LEAST], errors[MOST]
    detail = f"{laplace:.1f} m against {least:.1f} to {most:.1f} m"
    if least + EQUAL < laplace < most - EQUAL:
        return "depends on which optimum", detail
    return _larger(laplace, most if laplace >= most - EQUAL else least)[0], detail


def _best_without_the_prior(errors: Errors, knowing: set[str]) -> Verdict:
    rivals = {
        name: error
        for name, error in errors.items()
        if name not in knowing and name != "planar Laplace" and not name.startswith(NOT_COMPARED)
    }
    best = max(rivals, key=lambda name: rivals[name])
    verdict, detail = _larger(errors["planar Laplace"], rivals[best])
    return verdict, f"{detail} of {best}"


def _best_with_the_prior(errors: Errors, _knowing: set[str]) -> Verdict:
    rivals = {name: error for name, error in errors.items() if not name.startswith(NOT_COMPARED)}
    own = rivals.pop("optimal for the prior")
    best = max(rivals, key=lambda name: rivals[name])
    verdict, detail = _larger(own, rivals[best])
    return verdict, f"{detail} of {best}"


def _some_error_is_left(errors: Errors, _knowing: set[str]) -> Verdict:
    return ("holds" if errors["planar Laplace"] > EQUAL else "fails"), f"{errors['planar Laplace']:.1f} m"


def _larger(mine: float, other: float) -> Verdict:
    detail = f"{mine:.1f} m against {other:.1f} m"
    if abs(mine - other) <= EQUAL:
        return "equal", detail
    return ("holds" if mine > other else "fails"), detail


CLAIMS = {
    "Laplace > cloaking": Claim("The planar Laplace leaves more error than cloaking.", _against_cloaking),
    "Laplace > optimal for uniform": Claim(
        "The planar Laplace leaves more error than the mechanism that is optimal for the uniform prior.",
        _against_optimal_for_uniform,
    ),
    "Laplace best without the prior": Claim(
        "No mechanism that ignores the prior leaves more error than the planar Laplace.", _best_without_the_prior
    ),
    "optimal for the prior is best": Claim(
        "The mechanism that is optimal for the prior leaves the most error.", _best_with_the_prior
    ),
    "Laplace never disclosed": Claim("The planar Laplace always leaves some error.", _some_error_is_left),
}
"""Said by Andrés et al. (CCS 2013, section 6 and abstract) or in lectures on it; adversary error in metres."""


def check_claims(table: "DataFrame") -> "DataFrame":
    """Return for each round of a comparison which claims hold, fail, or depend on which optimum is taken.

    Parameters
    ----------
    table : DataFrame
        From `compare`.

    Returns
    -------
    DataFrame
        Columns: `equalised`, `prior`, `claim`, `verdict` ("holds", "equal", "fails", "depends on which optimum"),
        `detail`.
    """
    rows = []
    for (way, prior), part in table.groupby(["equalised", "prior"], sort=False):
        errors = dict(zip(part["mechanism"], part["adversary_error"], strict=True))
        knowing = set(part.loc[part["knows_prior"], "mechanism"])
        for name, claim in CLAIMS.items():
            verdict, detail = claim.decide(errors, knowing)
            rows.append({"equalised": way, "prior": prior, "claim": name, "verdict": verdict, "detail": detail})
    return pd.DataFrame(rows)
