"""The comparison: every mechanism under every prior at equal quality loss, curves over epsilon, and claims."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from geoind import min_loss_given_epsilon
from geoind.arrays import FloatArray, as_count, as_positive
from geoind.channels.channel import Channel
from geoind.channels.metrics import (
    adversary_error,
    bayes_vulnerability,
    expected_loss,
    posterior_entropy,
    worst_case_loss,
)
from geoind.channels.remap import bayes_remap
from geoind.evaluation.contenders import FAMILIES, TOLERANCE, Lineup
from geoind.evaluation.setting import PAPER_SETTING, Setting
from geoind.parallel import OnShare, in_processes
from geoind.space.sites import Grid

if TYPE_CHECKING:
    from pandas import DataFrame

    from geoind.channels.channel import Channel
    from geoind.evaluation.contenders import Contender, Equalised

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

Contest: TypeAlias = "tuple[Equalised, str, Contender]"
"""The prior under which losses are equal, the name of the prior of the measurement, and the mechanism."""


def compare(
    setting: Setting | None = None,
    *,
    priors: Iterable[str] | None = None,
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
        `measured_epsilon` (per metre), `worst_case_loss` (m), `posterior_entropy` (bits), `bayes_vulnerability`.

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
    return as_table(setting, contests(setting, priors=names, workers=workers, progress=progress))


def contests(
    setting: Setting, *, priors: list[str], workers: int = 1, progress: OnShare | None = None
) -> Iterator[Contest]:
    """Yield all mechanisms to be measured, prior by prior."""
    workers = as_count(workers, "workers")
    for name in priors:
        setting.prior(name)
    if progress is not None:
        progress("started", 0.0)
    done: dict[str, list[tuple[Equalised, Contender]]] = {}
    # The last ones first, because real populations have no symmetry and take longest.
    for name, contenders in in_processes(workers, _round, [(setting, name) for name in reversed(priors)]):
        done[name] = contenders
        if progress is not None:
            progress(name, len(done) / len(priors))
    for name in priors:
        for way, contender in done[name]:
            yield way, name, contender


def as_table(setting: Setting, found: Iterable[Contest]) -> "DataFrame":
    """Return the measures of each mechanism under its prior, one row each, ordered by way of equalising."""
    table = pd.DataFrame([_measured(setting, *contest) for contest in found])
    return table.sort_values("equalised", ascending=False, kind="stable", ignore_index=True)


def _round(setting: Setting, name: str) -> "tuple[str, list[tuple[Equalised, Contender]]]":
    lineup = _lineup(setting.grid, setting.zone, setting.wanted_loss)
    return name, list(lineup.against(setting.prior(name)))


@lru_cache(maxsize=1)
def _lineup(grid: Grid, zone: tuple[int, int], wanted_loss: float | None) -> Lineup:
    """Return the mechanisms for all priors of a setting; each process builds them once."""
    return Lineup(Setting(grid, zone=zone, wanted_loss=wanted_loss))


def _measured(setting: Setting, way: str, name: str, contender: "Contender") -> dict[str, object]:
    prior, channel = setting.prior(name), contender.channel
    return {
        "equalised": way,
        "prior": name,
        "mechanism": contender.name,
        "knows_prior": contender.knows_prior,
        "parameter": contender.parameter,
        "expected_loss": 0.0 if contender.exact_answer else expected_loss(channel, prior),
        "adversary_error": adversary_error(channel, prior, guesses=setting.grid),
        "measured_epsilon": float(channel.epsilon),
        "worst_case_loss": 0.0 if contender.exact_answer else worst_case_loss(channel, prior),
        "posterior_entropy": posterior_entropy(channel, prior),
        "bayes_vulnerability": bayes_vulnerability(channel, prior),
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
    laplace = lineup.family("planar Laplace")

    def remapped(epsilon: float) -> "Channel":
        channel = laplace(epsilon)
        return channel @ bayes_remap(channel, known)

    makers: dict[str, Callable[[float], Channel]] = {name: lineup.family(name) for name in FAMILIES}
    makers["remapped Laplace"] = remapped
    makers["optimal geo-ind"] = lambda epsilon: min_loss_given_epsilon(known, epsilon=epsilon, tolerance=TOLERANCE)
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
                    "expected_loss": expected_loss(channel, known),
                    "adversary_error": adversary_error(channel, known),
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
        From (equalised, prior, mechanism) to the measured channel.
    """

    setting: Setting
    table: "DataFrame"
    claims: "DataFrame"
    curves: "DataFrame"
    channels: dict[tuple[str, str, str], Channel]


def evaluate(setting: Setting, *, workers: int = 1, progress: OnShare | None = None) -> Evaluation:
    """Return the whole evaluation of a setting; `workers` and `progress` as for `compare`.

    Examples
    --------
    >>> from geoind import Grid
    >>> small = Setting(Grid(0, 0, cell=100, columns=3, rows=3), weights={"row": [0, 0, 0, 1, 1, 1, 0, 0, 0]})
    >>> evaluate(small).claims["verdict"].iloc[-1]
    'holds'
    """
    names = list(setting.weights)
    ends = list(dict.fromkeys([names[0], names[-1]]))
    epsilons = np.geomspace(0.2, 5, CURVE_POINTS) / setting.grid.cell
    found = list(contests(setting, priors=names, workers=workers, progress=progress))
    drawn = dict(in_processes(workers, _curves, [(setting, name, epsilons) for name in ends]))
    shown = pd.concat([drawn[name] for name in ends], ignore_index=True)
    channels: dict[tuple[str, str, str], Channel] = {
        (way, name, contender.name): contender.channel for way, name, contender in found
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
    for (way, prior), part in table.groupby(["equalised", "prior"], sort=False):
        errors = dict(zip(part["mechanism"], part["adversary_error"], strict=True))
        knowing = set(part.loc[part["knows_prior"], "mechanism"])
        for name, claim in CLAIMS.items():
            verdict, detail = claim.decide(errors, knowing)
            rows.append({"equalised": way, "prior": prior, "claim": name, "verdict": verdict, "detail": detail})
    return pd.DataFrame(rows)
