"""The comparison: every mechanism under every prior at equal quality loss, curves over epsilon, and claims."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from geoind.arrays import FloatArray, as_count, as_positive
from geoind.channels.channel import Channel
from geoind.channels.metrics import (
    adversary_error,
    bayes_vulnerability,
    expected_loss,
    posterior_entropy,
    worst_case_loss,
)
from geoind.distances import Distance
from geoind.evaluation.contenders import FAMILIES, Equalised, Lineup, Tuned
from geoind.evaluation.own import Contender, Contending, as_contenders, own_entries
from geoind.evaluation.plain import MEASURES
from geoind.evaluation.setting import PAPER_SETTING, Setting
from geoind.parallel import OnShare, in_processes
from geoind.space.sites import Grid

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = [
    "CLAIMS",
    "Contest",
    "Evaluation",
    "as_table",
    "check_claims",
    "compare",
    "contests",
    "curves",
    "evaluate",
]

Contest: TypeAlias = tuple[Equalised, str, Tuned]
"""The prior under which losses are equal, the name of the prior of the measurement, and the mechanism."""


def compare(
    setting: Setting | None = None,
    *,
    priors: Iterable[str] | None = None,
    contenders: Iterable[Contending] = (),
    workers: int = 1,
    progress: OnShare | None = None,
) -> "DataFrame":
    """Return the comparison as a tidy table: one row per way of equalising, prior and mechanism.

    Parameters
    ----------
    setting : Setting, optional
        Grid, cloaking zones, priors and the wanted loss; default: `PAPER_SETTING`.
    priors : iterable of str, optional
        Names of the setting's priors; default: all.
    contenders : iterable of Contender, Mechanism, Channel or function
        Mechanisms of one's own: see `Contender`. They are evaluated in this process. One that fails has NaN in its
        rows, and the reason in `note`.
    workers : int
        Number of processes, including this one. With more than one, a script must protect its entry point with
        `if __name__ == "__main__"`, as for `multiprocessing`.
    progress : callable, optional
        Called with the name of each finished prior and the share of the work done.

    Returns
    -------
    DataFrame
        Columns: `equalised` ("uniform": mechanisms are tuned to the wanted loss under the uniform prior, as in the
        paper; "evaluated": under the row's prior), `prior`, `mechanism`, `knows_prior` (built for this prior),
        `parameter` (its epsilon per metre), `expected_loss` (m), `adversary_error` (m),
        `measured_epsilon` (per metre), `worst_case_loss` (m), `posterior_entropy` (bits), `bayes_vulnerability`,
        `note` (what is wrong with a mechanism of one's own, or how its numbers were found; otherwise empty).

    Examples
    --------
    >>> from geoind import Grid
    >>> small = Setting(Grid(0, 0, cell=100, columns=3, rows=3), weights={"uniform": [1] * 9})
    >>> table = compare(small)
    >>> table.set_index("mechanism").loc["cloaking", "expected_loss"].round(3).tolist()
    [107.298, 107.298]
    """
    setting = PAPER_SETTING if setting is None else setting
    names = list(setting.weights) if priors is None else list(priors)
    own = as_contenders(contenders)
    return as_table(setting, contests(setting, priors=names, own=own, workers=workers, progress=progress))


def contests(
    setting: Setting,
    *,
    priors: list[str],
    own: Iterable[Contender] = (),
    workers: int = 1,
    progress: OnShare | None = None,
) -> Iterator[Contest]:
    """Yield all mechanisms to be measured, prior by prior."""
    workers = as_count(workers, "workers")
    for name in priors:
        setting.prior(name)
    if progress is not None:
        progress("started", 0.0)
    done: dict[str, list[Contest]] = {}
    # The last ones first, because real populations have no symmetry and take longest.
    for name, found in in_processes(workers, _round, [(setting, name) for name in reversed(priors)]):
        done[name] = found
        if progress is not None:
            progress(name, len(done) / len(priors))
    # In this process, because a function of the user's own may not be picklable.
    for contender in own:
        for contest in own_entries(contender, setting, priors):
            done[contest[1]].append(contest)
    for name in priors:
        yield from done[name]


def as_table(setting: Setting, found: Iterable[Contest]) -> "DataFrame":
    """Return the measures of each mechanism under its prior, one row each, ordered by way of equalising."""
    table = pd.DataFrame([_measured(setting, *contest) for contest in found])
    return table.sort_values("equalised", ascending=False, kind="stable", ignore_index=True)


def _round(setting: Setting, name: str) -> tuple[str, list[Contest]]:
    lineup = _lineup(setting.grid, setting.zone, setting.wanted_loss, setting.metric)
    return name, [(way, name, tuned) for way, tuned in lineup.against(setting.prior(name))]


@lru_cache(maxsize=1)
def _lineup(grid: Grid, zone: tuple[int, int], wanted_loss: float | None, metric: Distance) -> Lineup:
    """Return the mechanisms for all priors of a setting; each process builds them once."""
    return Lineup(Setting(grid, zone=zone, wanted_loss=wanted_loss, metric=metric))


def _measured(setting: Setting, way: str, name: str, tuned: Tuned) -> dict[str, object]:
    prior, channel, loss = setting.prior(name), tuned.channel, setting.metric
    measures = dict.fromkeys(MEASURES, math.nan)
    if channel is not None:
        measures = {
            "expected_loss": 0.0 if tuned.exact_answer else expected_loss(channel, prior, loss=loss),
            "adversary_error": adversary_error(channel, prior, loss=loss, guesses=setting.grid),
            "measured_epsilon": float(channel.epsilon) if tuned.epsilon is None else tuned.epsilon,
            "worst_case_loss": 0.0 if tuned.exact_answer else worst_case_loss(channel, prior, loss=loss),
            "posterior_entropy": posterior_entropy(channel, prior),
            "bayes_vulnerability": bayes_vulnerability(channel, prior),
        }
    return {
        "equalised": way,
        "prior": name,
        "mechanism": tuned.name,
        "knows_prior": tuned.knows_prior,
        "parameter": tuned.parameter,
        **measures,
        "note": tuned.note,
    }


def curves(setting: Setting, *, prior: str, epsilons: Iterable[float]) -> "DataFrame":
    """Return loss and adversary error of each mechanism for a list of epsilons, as a tidy table.

    Parameters
    ----------
    setting : Setting
    prior : str
        Name of one of the setting's priors.
    epsilons : iterable of float
        Parameters of the mechanisms, per metre. (The measured epsilon of the exponential mechanism is smaller,
        that of Gaussian noise larger: plot against `measured_epsilon`.)

    Examples
    --------
    >>> from geoind import Grid
    >>> small = Setting(Grid(0, 0, cell=100, columns=3, rows=3), weights={"uniform": [1] * 9})
    >>> table = curves(small, prior="uniform", epsilons=[0.01, 0.02])
    >>> best = table[table["mechanism"] == "optimal geo-ind"]
    >>> best["expected_loss"].round(2).tolist()
    [88.39, 39.54]
    """
    known, lineup = setting.prior(prior), Lineup(setting)
    makers: dict[str, Callable[[float], Channel]] = {name: lineup.family(name) for name in FAMILIES}
    makers["remapped Laplace"] = lambda epsilon: lineup.remapped(epsilon, known)
    makers["optimal geo-ind"] = lambda epsilon: lineup.least_loss(epsilon, known)
    rows = []
    for epsilon in epsilons:
        as_positive(epsilon, "epsilon")
        for name, make in makers.items():
            channel = make(epsilon)
            rows.append(
                {
                    "prior": prior,
                    "mechanism": name,
                    "epsilon": epsilon,
                    "measured_epsilon": float(channel.epsilon),
                    "expected_loss": expected_loss(channel, known, loss=setting.metric),
                    "adversary_error": adversary_error(channel, known, loss=setting.metric),
                }
            )
    return pd.DataFrame(rows).sort_values(["mechanism", "epsilon"], kind="stable", ignore_index=True)


CURVE_POINTS = 8


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The comparison, the verdicts on the claims, curves over epsilon, and the channels.

    Attributes
    ----------
    setting : Setting
    table : DataFrame
        As `compare` returns it.
    claims : DataFrame
        As `check_claims` returns it.
    curves : DataFrame
        As `curves` returns it, for the first and the last prior.
    channels : dict
        From (equalised, prior, mechanism) to the measured channel, without mechanisms that failed.
    """

    setting: Setting
    table: "DataFrame"
    claims: "DataFrame"
    curves: "DataFrame"
    channels: dict[tuple[str, str, str], Channel]


def evaluate(
    setting: Setting,
    *,
    contenders: Iterable[Contending] = (),
    workers: int = 1,
    progress: OnShare | None = None,
) -> Evaluation:
    """Return the whole evaluation of a setting; `contenders`, `workers` and `progress` as for `compare`.

    Examples
    --------
    >>> from geoind import Grid
    >>> small = Setting(Grid(0, 0, cell=100, columns=3, rows=3), weights={"row": [0, 0, 0, 1, 1, 1, 0, 0, 0]})
    >>> evaluate(small).claims["verdict"].iloc[-1]
    'holds'
    """
    own = as_contenders(contenders)
    names = list(setting.weights)
    ends = list(dict.fromkeys([names[0], names[-1]]))
    epsilons = np.geomspace(0.2, 5, CURVE_POINTS) / setting.grid.cell
    found = list(contests(setting, priors=names, own=own, workers=workers, progress=progress))
    drawn = dict(in_processes(workers, _curves, [(setting, name, epsilons) for name in ends]))
    shown = pd.concat([drawn[name] for name in ends], ignore_index=True)
    channels: dict[tuple[str, str, str], Channel] = {
        (way, name, tuned.name): tuned.channel for way, name, tuned in found if tuned.channel is not None
    }
    table = as_table(setting, found)
    return Evaluation(setting, table, check_claims(table), shown, channels)


def _curves(setting: Setting, name: str, epsilons: FloatArray) -> "tuple[str, DataFrame]":
    return name, curves(setting, prior=name, epsilons=epsilons)


EQUAL = 0.05
"""Metres of adversary error that count as the same."""

Errors: TypeAlias = dict[str, float]
Verdict: TypeAlias = tuple[str, str]

LEAST, MOST = "optimal for uniform, least error", "optimal for uniform, most error"
NOT_COMPARED = ("optimal for uniform,", "dummies")
"""The extremes are not a choice in practice; dummies cost traffic instead of distance."""


@dataclass(frozen=True)
class _Claim:
    """A sentence, and the function that decides it for one prior and way of equalising."""

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
    "Laplace > cloaking": _Claim("The planar Laplace leaves more error than cloaking.", _against_cloaking),
    "Laplace > optimal for uniform": _Claim(
        "The planar Laplace leaves more error than the mechanism that is optimal for the uniform prior.",
        _against_optimal_for_uniform,
    ),
    "Laplace best without the prior": _Claim(
        "No mechanism that ignores the prior leaves more error than the planar Laplace.", _best_without_the_prior
    ),
    "optimal for the prior is best": _Claim(
        "The mechanism that is optimal for the prior leaves the most error.", _best_with_the_prior
    ),
    "Laplace never disclosed": _Claim("The planar Laplace always leaves some error.", _some_error_is_left),
}
"""Claims of Andrés et al. (CCS 2013, section 6 and abstract) or of lectures on it; adversary error in metres."""


def check_claims(table: "DataFrame") -> "DataFrame":
    """Return for each prior and way of equalising which claims hold, fail, or depend on the chosen optimum.

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
    for (way, prior), part in table.dropna(subset="adversary_error").groupby(["equalised", "prior"], sort=False):
        errors = dict(zip(part["mechanism"], part["adversary_error"], strict=True))
        knowing = set(part.loc[part["knows_prior"], "mechanism"])
        for name, claim in CLAIMS.items():
            verdict, detail = claim.decide(errors, knowing)
            rows.append({"equalised": way, "prior": prior, "claim": name, "verdict": verdict, "detail": detail})
    return pd.DataFrame(rows)
