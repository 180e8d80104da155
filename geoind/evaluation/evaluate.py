"""Everything the report shows, computed in one go."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from geoind.channel import Channel
from geoind.evaluation.claims import check_claims
from geoind.evaluation.comparison import EQUALISED, Progress, contests, measured
from geoind.evaluation.curves import curves
from geoind.evaluation.setting import Setting

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["Evaluation", "evaluate"]

CURVE_POINTS = 8
CURVES_SHARE = 0.15
"""Share of the work that the curves are, for the progress shown."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The comparison, what it says about the claims, curves over epsilon, and the channels themselves.

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
        From (equalised, prior, mechanism) to the channel that was measured.
    """

    setting: Setting
    table: "DataFrame"
    claims: "DataFrame"
    curves: "DataFrame"
    channels: dict[tuple[str, str, str], Channel]


def evaluate(setting: Setting, *, progress: Progress | None = None) -> Evaluation:
    """Return the whole evaluation of a setting.

    Examples
    --------
    >>> from geoind import Grid
    >>> small = Setting(Grid(0, 0, cell=100, columns=3, rows=3), weights={"row": [0, 0, 0, 1, 1, 1, 0, 0, 0]})
    >>> evaluate(small).claims["verdict"].iloc[-1]
    'holds'
    """
    import pandas as pd

    names = list(setting.weights)
    ends = list(dict.fromkeys([names[0], names[-1]]))
    lines = []
    epsilons = np.geomspace(0.2, 10, CURVE_POINTS) / setting.grid.cell
    for name in ends:
        if progress is not None:
            progress(f"{name}, cost and privacy against epsilon", CURVES_SHARE * len(lines) / len(ends))
        lines.append(curves(setting, prior=name, epsilons=epsilons))

    def onwards(what: str, share: float) -> None:
        if progress is not None:
            progress(what, CURVES_SHARE + (1 - CURVES_SHARE) * share)

    channels, rows = {}, []
    for way, name, contender in contests(setting, priors=names, equalised=EQUALISED, progress=onwards):
        channels[way, name, contender.name] = contender.channel
        rows.append(measured(setting, way, name, contender))
    table = pd.DataFrame(rows)
    return Evaluation(setting, table, check_claims(table), pd.concat(lines, ignore_index=True), channels)
