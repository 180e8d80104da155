"""How long the reports of the nights keep a home unknown, for several defences."""

from collections.abc import Callable
from itertools import cycle
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from geoind.arrays import FloatArray, as_count, as_positive
from geoind.budgets.same_place import SamePlace
from geoind.channels.remap import geometric_median
from geoind.evaluation.figures import new_figure
from geoind.space.projection import Projection
from geoind.space.sites import Grid
from geoind.traces.adversary import average, home_beliefs, middle
from geoind.traces.drives import HOME, answers_to, commuter
from geoind.traces.methods import Independent, TraceMethod
from geoind.traces.mobility import Mobility
from geoind.traces.predictive import Predictive
from geoind.traces.session import TraceSession
from geoind.traces.sparse import SparseVector
from geoind.traces.zones import PrivateZone

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

__all__ = ["DEFENCES", "days_until_home_is_known", "homes_figure"]

PLANE = Projection(*HOME)
KNOWN = 100.0
"""Metres within which a home is known."""
SIMPLE = ("mean", "geometric median", "mean of distinct ones", "geometric median of distinct ones")
BAYESIAN = "Bayesian"
NEIGHBOURHOOD = Mobility(Grid(-1513.0, -1491.0, cell=60.0, columns=51, rows=51), PLANE)
"""Where a Bayesian looks for the home, which is in the middle of no cell."""


class _Defence(NamedTuple):
    """A way to answer: places from (number of the person, times, truth), and the method if a session answers."""

    answer: Callable[[int, FloatArray, FloatArray], FloatArray]
    method: TraceMethod | None = None


def _session(method: TraceMethod, *, epsilon: float | None = None) -> _Defence:
    def answer(person: int, times: FloatArray, truth: FloatArray) -> FloatArray:
        key = person.to_bytes(32)
        lon, lat = HOME
        zone = None if epsilon is None else PrivateZone.around(lat=lat, lon=lon, epsilon=epsilon, key=key)
        return answers_to((times, truth), TraceSession(method, key=key, zone=zone).report)

    return _Defence(answer, method if epsilon is None else None)


def _same_place(epsilon: float) -> _Defence:
    def answer(person: int, _times: FloatArray, truth: FloatArray) -> FloatArray:
        memory = SamePlace(person.to_bytes(32))
        places = [
            memory.obfuscate(lat=lat, lon=lon, epsilon=epsilon, person_id=person) for lon, lat in truth.tolist()
        ]
        return np.array([(place.lon, place.lat) for place in places])

    return _Defence(answer)


def _cloaked(error: float) -> _Defence:
    cell = error / 0.3826  # mean distance of a uniform place from the centre of its square

    def answer(person: int, _times: FloatArray, truth: FloatArray) -> FloatArray:
        # Each person's home has another place in its cell.
        shift = np.random.default_rng(person).uniform(0, cell, 2)
        return PLANE.to_lonlat((np.floor((PLANE.to_xy(truth) + shift) / cell) + 0.5) * cell - shift)

    return _Defence(answer)


def _drifting(error: float, hours: float = 6.0) -> _Defence:
    def answer(person: int, times: FloatArray, truth: FloatArray) -> FloatArray:
        generator = np.random.default_rng(person)
        spread = error / np.sqrt(np.pi / 2)
        offsets = generator.normal(0, spread, (len(times), 2))
        for step in range(1, len(times)):
            kept = np.exp(-(times[step] - times[step - 1]) / (hours * 3600))
            offsets[step] = kept * offsets[step - 1] + np.sqrt(1 - kept**2) * offsets[step]
        return PLANE.to_lonlat(PLANE.to_xy(truth) + offsets)

    return _Defence(answer)


def defences(accuracy: float) -> dict[str, _Defence]:
    """Return the defences, each with about the mean error of fresh reports of this accuracy."""
    fresh = Independent.for_accuracy(accuracy)
    error = 2 / fresh.epsilon
    return {
        "fresh noise per report": _session(fresh),
        "the same report for the same place": _same_place(fresh.epsilon),
        "predictive session": _session(Predictive.for_accuracy(accuracy)),
        "sparse vector session": _session(SparseVector.for_accuracy(accuracy)),
        "session with a private zone": _session(SparseVector.for_accuracy(accuracy), epsilon=fresh.epsilon),
        "cloaking to a grid": _cloaked(error),
        "an offset that drifts": _drifting(error),
    }


DEFENCES = tuple(defences(500.0))


def homes_figure(table: "DataFrame") -> "Figure":
    """Return the errors about home over the days, from the table of `days_until_home_is_known`.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"defence": ["fresh noise per report"], "errors": [[300.0, 90.0, 40.0]]})
    >>> homes_figure(table).axes[0].get_xlabel()
    'days of reports'
    """
    figure = new_figure(9.5, 4.5, "Fresh noise reveals a home in a day, a fixed offset within days")
    axes = figure.add_subplot(xlabel="days of reports", ylabel="error about home, m (median person)")
    styles = ("-", "--", "-.", "-", ":", "--", "-.")
    for style, name, errors in zip(cycle(styles), table["defence"], table["errors"], strict=False):
        axes.plot(range(1, len(errors) + 1), errors, style, label=name)
    axes.axhline(KNOWN, color="grey", linewidth=0.8)
    axes.set_ylim(0)
    figure.legend(loc="outside right upper", fontsize="small")
    return figure


def days_until_home_is_known(
    *, persons: int = 12, days: int = 30, every: float = 600.0, accuracy: float = 500.0
) -> "DataFrame":
    """Return how long the homes of synthetic commuters stay unknown, for each defence.

    The attacker knows the defence and the nights, and uses the attack that does best against all persons: an
    average of four kinds or, where a session answers, the Bayesian of `home_beliefs`.

    Returns
    -------
    DataFrame
        For each defence: the best attack, the median day from which on its error stays within 100 m, how many
        homes became known, the median error at the end, and the median person's errors after each day.

    Examples
    --------
    >>> found = days_until_home_is_known(persons=1, days=1, every=7200)
    >>> tuple(found["defence"]) == DEFENCES
    True
    """
    rows = []
    traces = [
        commuter(days=days, every=as_positive(every, "every"), rng=person)
        for person in range(as_count(persons, "persons"))
    ]
    for name, defence in defences(accuracy).items():
        every_error = np.array(
            [
                _home_errors(defence, defence.answer(person, times, truth), times)
                for person, (times, truth) in enumerate(traces)
            ]
        )
        best = int(every_error[:, :, -1].mean(axis=0).argmin())
        until = np.array([_until_known(errors) for errors in every_error[:, best]])
        errors = np.median(every_error[:, best], axis=0)
        rows.append(
            {
                "defence": name,
                "attack": (*SIMPLE, BAYESIAN)[best],
                "days": float(np.median(until)),
                "known": int(np.isfinite(until).sum()),
                "error": float(errors[-1]),
                "errors": errors,
            }
        )
    return pd.DataFrame(rows)


def _home_errors(defence: _Defence, reports: FloatArray, times: FloatArray) -> FloatArray:
    """Return the error about home after each day, (attacks, days), from what was reported at night."""
    night = (times / 3600 % 24 < 7) | (times / 3600 % 24 > 20)
    ends = np.flatnonzero(np.diff(times // 86_400, append=np.inf) > 0)
    errors = []
    for end in ends:
        seen = reports[: end + 1][night[: end + 1]]
        distinct = np.unique(seen, axis=0)
        guesses = np.array([average(seen), middle(seen), average(distinct), middle(distinct)])
        errors.append(np.hypot(*PLANE.to_xy(guesses).T))
    found = np.array(errors).T
    if defence.method is None:
        return found
    beliefs = home_beliefs(reports, times, at_home=night, method=defence.method, mobility=NEIGHBOURHOOD)
    daily = np.array([belief.ravel() for step, belief in enumerate(beliefs) if step in set(ends.tolist())])
    guessed = geometric_median(NEIGHBOURHOOD.grid.xy, daily, tolerance=1.0)
    return np.vstack((found, np.hypot(*guessed.T)))


def _until_known(errors: FloatArray) -> float:
    """Return the first day from which on a guess stays within 100 m; infinite if there is none."""
    wrong = np.flatnonzero(errors > KNOWN)
    day = 1 if not len(wrong) else int(wrong[-1]) + 2
    return float(day) if day <= len(errors) else np.inf
