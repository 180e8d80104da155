"""The comparison itself: every mechanism under every prior, at equal quality loss, as a tidy table."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import pandas as pd

from geoind.arrays import as_count
from geoind.channels.metrics import (
    adversary_error,
    bayes_vulnerability,
    expected_loss,
    posterior_entropy,
    worst_case_loss,
)
from geoind.evaluation.contenders import Lineup
from geoind.evaluation.setting import PAPER_SETTING, Setting
from geoind.parallel import OnShare, in_processes
from geoind.space.sites import Grid

if TYPE_CHECKING:
    from pandas import DataFrame

    from geoind.evaluation.contenders import Contender, Equalised

__all__ = ["Contest", "as_table", "compare", "contests"]

Contest: TypeAlias = "tuple[Equalised, str, Contender]"
"""Under which prior losses were made equal, the prior's name, and the mechanism."""


def compare(
    setting: Setting = PAPER_SETTING,
    *,
    priors: Iterable[str] | None = None,
    workers: int = 1,
    progress: OnShare | None = None,
) -> "DataFrame":
    """Return the comparison as a tidy table: one row per way of equalising, prior and mechanism.

    Parameters
    ----------
    setting : Setting
        Grid, cloaking zones, priors and the wanted loss.
    priors : iterable of str, optional
        Names of the setting's priors; all by default.
    workers : int
        Processes to share the priors among, this one among them. With more than one, a script must protect its
        entry point with `if __name__ == "__main__"`, as for `multiprocessing`.
    progress : callable, optional
        Called with what was done and the share done.

    Returns
    -------
    DataFrame
        Columns: `equalised` ("uniform": mechanisms are tuned to the wanted loss under the uniform prior, as in the
        paper; "evaluated": under the prior at hand), `prior`, `mechanism`, `knows_prior` (built for this prior),
        `parameter` (epsilon per metre it was built with), `expected_loss` (m), `adversary_error` (m),
        `measured_epsilon` (per metre), `worst_case_loss` (m), `posterior_entropy` (bits), `bayes_vulnerability`.

    Examples
    --------
    >>> from geoind import Grid
    >>> small = Setting(Grid(0, 0, cell=100, columns=3, rows=3), weights={"uniform": [1] * 9})
    >>> table = compare(small)
    >>> table.set_index("mechanism").loc["cloaking", "expected_loss"].round(3).tolist()
    [107.298, 107.298]
    """
    names = list(setting.weights) if priors is None else list(priors)
    return as_table(setting, contests(setting, priors=names, workers=workers, progress=progress))


def contests(
    setting: Setting, *, priors: list[str], workers: int = 1, progress: OnShare | None = None
) -> Iterator[Contest]:
    """Yield every mechanism to be measured, prior by prior."""
    workers = as_count(workers, "workers")
    for name in priors:
        setting.prior(name)
    if progress is not None:
        progress("started", 0.0)
    done: dict[str, list[tuple[Equalised, Contender]]] = {}
    # The last ones first: real populations have no symmetry and take longest.
    for name, contenders in in_processes(workers, _round, [(setting, name) for name in reversed(priors)]):
        done[name] = contenders
        if progress is not None:
            progress(name, len(done) / len(priors))
    for name in priors:
        for way, contender in done[name]:
            yield way, name, contender


def as_table(setting: Setting, found: Iterable[Contest]) -> "DataFrame":
    """Return what each mechanism is worth under its prior, one row each, ordered by way of equalising."""
    table = pd.DataFrame([_measured(setting, *contest) for contest in found])
    return table.sort_values("equalised", ascending=False, kind="stable", ignore_index=True)


def _round(setting: Setting, name: str) -> "tuple[str, list[tuple[Equalised, Contender]]]":
    lineup = _lineup(setting.grid, setting.zone, setting.wanted_loss)
    return name, list(lineup.against(setting.prior(name)))


@lru_cache(maxsize=1)
def _lineup(grid: Grid, zone: tuple[int, int], wanted_loss: float | None) -> Lineup:
    """Return what all priors of a setting meet: each process builds it once."""
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
