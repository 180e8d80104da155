"""What somebody learns from many reports, with and without a model of how people move."""

import numpy as np
import pytest

from geoind import InvalidInputError, TraceSession
from geoind.space.projection import Projection
from geoind.space.sites import Grid
from geoind.traces import (
    Independent,
    Mobility,
    average,
    commuter,
    middle,
    most_likely_places,
    smooth,
    trace_adversary_error,
)
from geoind.traces.comparison import arc_length
from tests.traces.walks import KEY, LAT, LON, walk_north

PLANE = Projection(LON, LAT)


def test_many_reports_of_one_place_average_to_it() -> None:
    session = TraceSession(Independent(0.01), key=KEY)
    reports = walk_north(session, [0.0] * 600)
    for guess in (average(reports), middle(reports)):
        assert arc_length(LON, LAT, *guess.tolist()) < 35


def test_smoothing_takes_the_reports_around_each_moment_and_no_other() -> None:
    reports = np.column_stack((np.full(10, 2.0), 48 + np.arange(10) / 1000))
    found = smooth(reports, 60.0 * np.arange(10), window=60)
    np.testing.assert_allclose(found[1:-1, 1], reports[1:-1, 1], atol=1e-7)
    with pytest.raises(InvalidInputError, match="one per report"):
        smooth(reports, [1, 2])


def test_a_window_is_chosen_by_the_reports_alone() -> None:
    rng = np.random.default_rng(5)
    times = 60.0 * np.arange(400)
    still, moving = np.zeros((400, 2)), np.column_stack((3000 * np.sin(times / 1500), np.zeros(400)))
    for truth, noise in ((still, 300.0), (moving, 100.0)):
        reports = PLANE.to_lonlat(truth + rng.normal(0, noise, (400, 2)))
        errors = {
            window: np.hypot(*(PLANE.to_xy(smooth(reports, times, window=window)) - truth).T).mean()
            for window in (None, *np.geomspace(60, 24_000, 16).tolist())
        }
        assert errors[None] < 1.6 * min(errors.values())
        assert errors[None] < 0.6 * np.hypot(*(PLANE.to_xy(reports) - truth).T).mean()


def test_the_bayesian_who_knows_how_people_move_beats_the_reports_themselves() -> None:
    times, truth = commuter(days=1, every=1800.0)
    method = Independent.for_accuracy(1500)
    session = TraceSession(method, key=KEY)
    answers = [
        session.report(lat=lat, lon=lon, time=time)
        for time, (lon, lat) in zip(times.tolist(), truth.tolist(), strict=True)
    ]
    reports = [(answer.lon, answer.lat) for answer in answers]
    grid = Grid(-4000.0, -7000.0, cell=500.0, columns=30, rows=24)
    mobility = Mobility(grid, PLANE, stay=0.9)
    apart = np.hypot(*(PLANE.to_xy(np.array(reports)) - PLANE.to_xy(truth)).T)
    learned = trace_adversary_error(reports, truth, times=times, method=method, mobility=mobility)
    assert learned < 0.7 * apart.mean()
    path = PLANE.to_xy(most_likely_places(reports, times, method=method, mobility=mobility)) - PLANE.to_xy(truth)
    assert np.hypot(*path.T).mean() < 0.8 * apart.mean()
