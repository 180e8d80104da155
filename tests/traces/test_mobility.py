"""Models of mobility: known roads, and public traces."""

import numpy as np
import pytest

from geoind import Grid, InvalidInputError, Prior, TraceSession
from geoind.space.projection import Projection
from geoind.traces import History, Independent, LearnedMobility, Mobility, Report, most_likely_path
from geoind.traces.drives import HOME

PLANE = Projection(*HOME)


@pytest.mark.slow
def test_somebody_who_knows_the_roads_errs_less() -> None:
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
