"""Models of mobility: known roads, and public traces."""

import numpy as np
import pytest

from geoind import Grid, InvalidInputError, Prior, TraceSession
from geoind.space.projection import Projection
from geoind.traces import History, Independent, LearnedMobility, Mobility, Report, most_likely_path
from geoind.traces.drives import HOME

PLANE = Projection(*HOME)


@pytest.mark.slow
def test_an_adversary_who_knows_the_roads_errs_less() -> None:
    times = 60.0 * np.arange(90)
    way = np.linspace([0, 0], [0.8 * 7616, -0.6 * 7616], 90)
    method = Independent.for_accuracy(1000)
    grid = Grid(-3000.0, -7500.0, cell=300.0, columns=40, rows=36)
    roads = Prior.over(grid, np.unique(grid.nearest(way)))
    models = [Mobility(grid, PLANE), Mobility(grid, PLANE, prior=roads)]
    errors = np.zeros((8, 2))
    for number in range(8):  # on average: of one trace the noise decides
        session = TraceSession(method, key=bytes([number]) * 32)
        reports = np.empty((90, 2))
        for step, (lon, lat) in enumerate(PLANE.to_lonlat(way).tolist()):
            answer = session.report(lat=lat, lon=lon, time=times[step])
            reports[step] = answer.lon, answer.lat
        for which, model in enumerate(models):
            path = most_likely_path(reports, times, method=method, mobility=model)
            errors[number, which] = np.hypot(*(PLANE.to_xy(path) - way).T).mean()
    without, knowing = errors.mean(axis=0)
    assert knowing < without < 400


@pytest.mark.parametrize("hours", [0.5, 1.0, 2.0])
def test_so_many_people_stay_and_the_others_go_as_far_as_their_speed(hours: float) -> None:
    grid = Grid(-6000.0, -6000.0, cell=200.0, columns=61, rows=61)
    belief = np.zeros((1, 61, 61))
    belief[0, 30, 30] = 1.0
    later = Mobility(grid, PLANE, speed=1000.0, stay=0.7).forward(belief, hours)[0]
    assert later.sum() == pytest.approx(1, abs=0.01)
    walked = later.ravel() @ (grid.xy**2).sum(axis=1)
    assert walked == pytest.approx((1 - 0.7**hours) * (1000.0 * hours) ** 2, rel=0.02)
    # Those who go arrive in any cell, their own included, by its distance.
    assert later[30, 30] - 0.7**hours == pytest.approx(
        (1 - 0.7**hours) * 200**2 / (np.pi * (1000 * hours) ** 2), rel=0.1
    )


def test_the_best_way_of_a_learned_model_is_a_part_of_all_ways() -> None:
    grid = Grid(0.0, 0.0, cell=400.0, columns=4, rows=1)
    cells = np.random.default_rng(1).integers(0, 4, 200)
    model = LearnedMobility.learn(
        PLANE.to_lonlat(grid.xy[cells]),
        persons=["ana"] * 200,
        times=300.0 * np.arange(200),
        grid=grid,
        projection=PLANE,
    )
    unit = np.eye(4).reshape(4, 1, 4)
    every = model.forward(unit, 300 / 3600).reshape(4, 4)
    with np.errstate(divide="ignore"):
        best, came = model.best(np.log(unit), 300 / 3600)
    known = np.maximum(0.99 * model.transitions.toarray(), 0.01 * model.visits)
    np.testing.assert_allclose(np.exp(best.reshape(4, 4)), known)
    assert (known < every).all()
    assert (came == np.arange(4)[:, None]).all()


def test_a_learned_model_predicts_where_the_public_went() -> None:
    grid = Grid(0.0, 0.0, cell=400.0, columns=6, rows=1)
    public = np.tile(PLANE.to_lonlat(grid.xy), (5, 1))
    times = (300.0 * np.arange(6) + 86_400.0 * np.arange(5)[:, None]).ravel()
    model = LearnedMobility.learn(public, persons=[1] * 30, times=times, grid=grid, projection=PLANE)
    here = PLANE.to_lonlat(np.array([[420.0, 10.0]]))[0]
    history = History(300.0, reports=(Report(0.0, here[0], here[1], fresh=True),))
    np.testing.assert_allclose(PLANE.to_xy([model.predict(history)])[0], [800.0, 0.0], atol=0.01)
    later = History(900.0, reports=history.reports)
    np.testing.assert_allclose(PLANE.to_xy([model.predict(later)])[0], [1600.0, 0.0], atol=0.01)
    end = PLANE.to_lonlat(grid.xy[[5]])[0]
    assert model.predict(History(300.0, reports=(Report(0.0, end[0], end[1], fresh=True),))) == tuple(end.tolist())
    with pytest.raises(InvalidInputError, match="no position"):
        LearnedMobility.learn([[9.0, 9.0]], persons=[1], times=[0], grid=grid, projection=PLANE)
    with pytest.raises(InvalidInputError, match="one per position"):
        LearnedMobility.learn(public, persons=[1], times=times, grid=grid, projection=PLANE)
