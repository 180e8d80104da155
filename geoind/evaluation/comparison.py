"""The comparison itself: every mechanism under every prior, at equal quality loss, as a tidy table."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Literal, TypeAlias

from geoind.errors import InvalidInputError
from geoind.evaluation.setting import PAPER_SETTING, Setting
from geoind.metrics import (
    adversary_error,
    bayes_vulnerability,
    expected_loss,
    posterior_entropy,
    worst_case_loss,
)

if TYPE_CHECKING:
    from pandas import DataFrame

    from geoind.evaluation.contenders import Contender

__all__ = ["EQUALISED", "Progress", "compare", "contests", "measured"]

Equalised: TypeAlias = Literal["uniform", "evaluated"]
EQUALISED: tuple[Equalised, ...] = ("uniform", "evaluated")
"""The prior under which expected distances are made equal: the uniform one (as the paper), or the one at hand."""

Progress: TypeAlias = Callable[[str, float], None]
"""Told what is being done and which share of the work is done."""


def compare(
    setting: Setting = PAPER_SETTING,
    *,
    priors: Iterable[str] | None = None,
    equalised: Iterable[Equalised] = EQUALISED,
    progress: Progress | None = None,
) -> "DataFrame":
    """Return the comparison as a tidy table: one row per way of equalising, prior and mechanism.

    Parameters
    ----------
    setting : Setting
        Grid, cloaking zones, priors and the wanted loss.
    priors : iterable of str, optional
        Names of the setting's priors; all by default.
    equalised : iterable of "uniform" and "evaluated"
        Under which prior mechanisms are tuned to the same expected distance.
    progress : callable, optional
        Called with what is being done and the share done.

    Returns
    -------
    DataFrame
        Columns: `equalised`, `prior`, `mechanism`, `knows_prior` (built for this prior), `parameter` (epsilon per
        metre it was built with), `expected_loss` (m), `adversary_error` (m), `measured_epsilon` (per metre),
        `worst_case_loss` (m), `posterior_entropy` (bits), `bayes_vulnerability`.

    Examples
    --------
    >>> from geoind import Grid
    >>> small = Setting(Grid(0, 0, cell=100, columns=3, rows=3), weights={"uniform": [1] * 9})
    >>> table = compare(small, equalised=["uniform"])
    >>> table.set_index("mechanism").loc["cloaking", "expected_loss"].round(3)
    np.float64(107.298)
    """
    import pandas as pd

    names = list(setting.weights) if priors is None else list(priors)
    found = contests(setting, priors=names, equalised=equalised, progress=progress)
    return pd.DataFrame([measured(setting, way, name, contender) for way, name, contender in found])


def contests(
    setting: Setting,
    *,
    priors: Iterable[str],
    equalised: Iterable[Equalised] = EQUALISED,
    progress: Progress | None = None,
) -> Iterator[tuple[Equalised, str, "Contender"]]:
    """Yield every mechanism to be measured: how its loss was made equal, the prior's name, the mechanism."""
    from geoind.evaluation.contenders import Lineup

    lineup = Lineup(setting)
    rounds = [(way, name) for way in equalised for name in priors]
    for done, (way, name) in enumerate(rounds):
        if way not in EQUALISED:
            raise InvalidInputError(f"equalised must be 'uniform' or 'evaluated', got {way!r}")
        if progress is not None:
            progress(f"{name}, loss equal under the {way} prior", done / len(rounds))
        for contender in lineup.against(setting.prior(name), tuned_to_prior=way == "evaluated"):
            yield way, name, contender
    if progress is not None:
        progress("done", 1.0)


def measured(setting: Setting, way: str, name: str, contender: "Contender") -> dict[str, object]:
    """Return a row of the table: what a mechanism is worth under a prior."""
    prior, channel = setting.prior(name), contender.channel
    return {
        "equalised": way,
        "prior": name,
        "mechanism": contender.name,
        "knows_prior": contender.knows_prior,
        "parameter": contender.parameter,
        "expected_loss": expected_loss(channel, prior),
        "adversary_error": adversary_error(channel, prior),
        "measured_epsilon": float(channel.epsilon),
        "worst_case_loss": worst_case_loss(channel, prior),
        "posterior_entropy": posterior_entropy(channel, prior),
        "bayes_vulnerability": bayes_vulnerability(channel, prior),
    }
