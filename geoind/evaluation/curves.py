"""What privacy costs: loss and adversary error against epsilon."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import pandas as pd

from geoind import min_loss_given_epsilon
from geoind.arrays import as_positive
from geoind.channels.metrics import adversary_error, expected_loss
from geoind.channels.remap import bayes_remap
from geoind.evaluation.contenders import FAMILIES, TOLERANCE, Lineup
from geoind.evaluation.setting import Setting

if TYPE_CHECKING:
    from pandas import DataFrame

    from geoind.channels.channel import Channel

__all__ = ["curves"]


def curves(setting: Setting, *, prior: str, epsilons: Iterable[float]) -> "DataFrame":
    """Return loss and adversary error of each mechanism for a list of epsilons, as a tidy table.

    Parameters
    ----------
    setting : Setting
    prior : str
        Name of one of the setting's priors.
    epsilons : iterable of float
        Per metre; what each mechanism is built with. (The exponential one keeps a smaller epsilon than that,
        Gaussian noise a larger one: plot against `measured_epsilon`.)

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
