"""Everything the report shows, computed in one go."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from geoind.arrays import FloatArray
from geoind.channels.channel import Channel
from geoind.evaluation.claims import check_claims
from geoind.evaluation.comparison import as_table, contests
from geoind.evaluation.curves import curves
from geoind.evaluation.setting import Setting
from geoind.parallel import OnShare, in_processes

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["Evaluation", "evaluate"]

CURVE_POINTS = 8


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
