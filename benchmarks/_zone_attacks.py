"""Attacks on the home inside a private zone: by the times of leaving it, by measuring the home again and again."""

import numpy as np

from geoind import PlanarLaplace, TraceSession
from geoind.arrays import FloatArray
from geoind.channels.remap import geometric_median
from geoind.space.projection import Projection
from geoind.traces import Independent, PrivateZone, SparseVector
from geoind.traces.adversary import LEVELS
from geoind.traces.drives import HOME, answers_to
from geoind.traces.laws import has_left, laplace_quantile, shares

__all__ = ["jitter_attack", "zone_attack"]

PLANE = Projection(*HOME)
ACCURACY = 500.0
EPSILON = Independent.for_accuracy(ACCURACY).epsilon
SPEED, EVERY, STEPS = 5.0, 30.0, 60
"""Metres per second on the way, seconds between two positions, and positions of a way: 9 km."""
NIGHT, QUARTER = 40, 900.0
"""Positions of a night, and the seconds between them."""


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

    for _ in range(days):
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
    """
    rng, key = np.random.default_rng(person), person.to_bytes(32)
    homes = rng.normal(0, jitter, (measurements, 2))
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
