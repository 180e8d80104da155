"""Attacks on a home: by the reports of the nights, by the times of leaving a zone, by repeated measurements."""

from collections.abc import Callable
from itertools import cycle
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from geoind.arrays import FloatArray, as_count, as_positive
from geoind.budgets.same_place import SamePlace
from geoind.channels.remap import geometric_median
from geoind.evaluation.figures import new_figure
from geoind.mechanisms.planar import PlanarLaplace
from geoind.space.projection import Projection
from geoind.space.sites import Grid
from geoind.traces.adversary import LEVELS, average, home_beliefs, middle
from geoind.traces.drives import HOME, answers_to, commuter
from geoind.traces.laws import has_left, laplace_quantile, shares
from geoind.traces.methods import Independent, TraceMethod
from geoind.traces.mobility import Mobility
from geoind.traces.predictive import Predictive
from geoind.traces.session import TraceSession
from geoind.traces.sparse import SparseVector
from geoind.traces.zones import PrivateZone

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

__all__ = ["DEFENCES", "days_until_home_is_known", "homes_figure", "jitter_attack", "zone_attack"]

PLANE = Projection(*HOME)
KNOWN = 100.0
"""Metres within which a home is known."""
SIMPLE = ("mean", "geometric median", "mean of distinct ones", "geometric median of distinct ones")
BAYESIAN = "Bayesian"
NEIGHBOURHOOD = Mobility(Grid(-1513.0, -1491.0, cell=60.0, columns=51, rows=51), PLANE)
"""Where a Bayesian looks for the home, which is in the middle of no cell."""
ACCURACY = 500.0
EPSILON = Independent.for_accuracy(ACCURACY).epsilon
SPEED, EVERY, STEPS = 5.0, 30.0, 60
"""Metres per second on the way, seconds between two positions, and positions of a way: 9 km."""
NIGHT, QUARTER = 40, 900.0
"""Positions of a night, and the seconds between them."""


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


def zone_attack(person: int, *, days: int = 30) -> dict[str, FloatArray]:
    """Return the errors, in metres, of maximum-likelihood estimates of a home after each day.

    Each morning the person leaves home at a time, with a speed and in a direction that the observer knows, and
    returns in the evening. The observer sees the answers and their times, and knows the centre of the zone.

    Parameters
    ----------
    person : int
        Number of the simulated person: key and directions.
    days : int
        How many departures.

    Returns
    -------
    dict
        From what the observer uses to (days,) errors.

    Examples
    --------
    >>> errors = zone_attack(1, days=2)
    >>> sorted(errors)[0], errors["centre alone"].shape
    ('centre alone', (2,))
    """
    key, rng = person.to_bytes(32), np.random.default_rng(person)
    lon, lat = HOME
    zone = PrivateZone.around(lat=lat, lon=lon, epsilon=EPSILON, key=key)
    session = TraceSession(SparseVector.for_accuracy(ACCURACY), key=key, zone=zone)
    [centre] = PLANE.to_xy([(zone.lon, zone.lat)])
    coarse, fine = (_cells_around(centre, cell) for cell in (40.0, 10.0))
    prior = -EPSILON * np.hypot(*(coarse - centre).T)
    circle, times, everything = np.zeros(len(fine)), prior.copy(), prior.copy()
    now = 0.0
    found: dict[str, list[float]] = {}

    def answers(xy: FloatArray, every: float) -> FloatArray:
        nonlocal now
        times = now + every * np.arange(1.0, len(xy) + 1)
        now = float(times[-1])
        return answers_to((times, PLANE.to_lonlat(xy)), session.report)

    for _ in range(as_count(days, "days")):
        angle = rng.uniform(0, 2 * np.pi)
        way = np.arange(1, STEPS + 1)[:, None] * SPEED * EVERY * np.array([np.cos(angle), np.sin(angle)])
        began = _is_centre(answers(np.zeros((NIGHT, 2)), QUARTER), zone)[-1]
        seen = answers(way, EVERY)
        if began and not (silent := _is_centre(seen, zone)).all():
            step = int(np.argmin(silent))
            law = _leaving(zone, coarse[:, None] + way[: step + 1] - centre)
            times += law
            [report] = PLANE.to_xy(seen[step : step + 1])
            everything += law - EPSILON * np.hypot(*(coarse + way[step] - report).T)
        answers(way[::-1], EVERY)
        circle += _crossing(zone.radius, fine, way, centre)
        for name, guess in {
            "centre alone": centre,
            "exact circle, times of leaving": fine[circle == circle.max()].mean(axis=0),
            "private zone, times of leaving": coarse[times.argmax()],
            "private zone, times and reports": coarse[everything.argmax()],
        }.items():
            found.setdefault(name, []).append(float(np.hypot(*guess)))
    return {name: np.array(errors) for name, errors in found.items()}


def jitter_attack(person: int, *, measurements: int = 30, jitter: float = 8.0) -> dict[str, float]:
    """Return the errors, in metres, of the median of a zone's centres, whose home is measured again and again.

    Parameters
    ----------
    person : int
        Number of the simulated person.
    measurements : int
        How often the home is measured.
    jitter : float
        Standard deviation of a measurement in each direction, in metres.

    Examples
    --------
    >>> sorted(jitter_attack(1, measurements=3))
    ['a centre per measurement', 'private zone']
    """
    rng, key = np.random.default_rng(person), person.to_bytes(32)
    homes = rng.normal(0, jitter, (as_count(measurements, "measurements"), 2))
    fresh = PlanarLaplace(EPSILON).sample(homes, rng=rng)
    zones = {
        PrivateZone.around(lat=lat, lon=lon, epsilon=EPSILON, key=key)
        for lon, lat in PLANE.to_lonlat(homes).tolist()
    }
    ours = PLANE.to_xy(np.array([(zone.lon, zone.lat) for zone in zones]))
    return {"a centre per measurement": _median_error(fresh), "private zone": _median_error(ours)}


def _cells_around(centre: FloatArray, cell: float) -> FloatArray:
    """Return the places of a grid where a home may be."""
    side = np.arange(-1200.0, 1201.0, cell)
    return np.asarray(np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2) + centre)


def _is_centre(reports: FloatArray, zone: PrivateZone) -> FloatArray:
    return np.asarray((reports == (zone.lon, zone.lat)).all(axis=1))


def _leaving(zone: PrivateZone, away: FloatArray) -> FloatArray:
    """Return the log-likelihood of leaving at the last of (homes, steps, 2) places around the centre."""
    for_limit, for_tests = shares(zone.test)
    bars = zone.limit + laplace_quantile(LEVELS[:, None], 1 / for_limit)
    apart = np.hypot(away[..., 0], away[..., 1])
    left = has_left(bars, apart.ravel(), 2 / for_tests).reshape(len(LEVELS), *apart.shape)
    law = (1 - left[..., :-1]).prod(axis=-1) * left[..., -1]
    return np.asarray(np.log(np.maximum(law.mean(axis=0), 1e-300)))


def _crossing(radius: float, homes: FloatArray, way: FloatArray, centre: FloatArray) -> FloatArray:
    """Return for which homes a circle would be left at the step at which it is left from the true home."""
    outside = np.hypot(*(way - centre).T) > radius
    step = int(np.argmax(outside))
    before = way[step - 1] if step else np.zeros(2)
    after = np.hypot(*(homes + way[step] - centre).T) > radius
    return np.asarray((after & (np.hypot(*(homes + before - centre).T) <= radius)).astype(float))


def _median_error(centres: FloatArray) -> float:
    weights = np.full((1, len(centres)), 1 / len(centres))
    return float(np.hypot(*geometric_median(centres, weights, tolerance=0.1)[0]))
