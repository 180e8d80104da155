"""The filter and the most likely path against all paths, one by one; simple attacks on many reports."""

import itertools

import numpy as np
import pytest

from geoind import Grid, InvalidInputError, Prior, TraceSession
from geoind.arrays import FloatArray
from geoind.space.projection import Projection
from geoind.traces import (
    Cached,
    Independent,
    LearnedMobility,
    Mobility,
    Predictive,
    Rationed,
    SparseVector,
    Switching,
    TraceMethod,
    average,
    commuter,
    middle,
    most_likely_path,
    most_likely_places,
    smooth,
    straight_on,
    trace_adversary_error,
    trace_beliefs,
)
from geoind.traces.adversary import COARSE, LEVELS, _Observed, home_beliefs
from geoind.traces.drives import HOME
from geoind.traces.mobility import MobilityModel
from geoind.traces.questions import arc_length
from tests.traces.walks import KEY, LAT, LON, walk_north

PLANE = Projection(*HOME)
GRID = Grid(0.0, 0.0, cell=400.0, columns=3, rows=2)
TIMES = [0.0, 300.0, 900.0, 1200.0]
ROAD = Prior(GRID, [0.3, 0.3, 0.2, 0.0, 0.2, 0.0])


def learned() -> LearnedMobility:
    rng = np.random.default_rng(2)
    xy = GRID.xy[rng.integers(0, 6, 80)]
    persons = np.repeat(["ana", "ben"], 40)
    times = np.tile(300.0 * np.arange(40), 2)
    return LearnedMobility.learn(PLANE.to_lonlat(xy), persons=persons, times=times, grid=GRID, projection=PLANE)


MOBILITIES: list[MobilityModel] = [
    Mobility(GRID, PLANE, speed=3000.0),
    Mobility(GRID, PLANE, speed=3000.0, stay=0.9, prior=ROAD),
    learned(),
]
METHODS: list[TraceMethod] = [
    Independent(0.003),
    Predictive(0.003, 0.004, 500.0),
    SparseVector(0.004, 0.005, 500.0, 0.003),
    Rationed(SparseVector(0.004, 0.005, 500.0), 0.009, 1.1),
    Cached(0.004, minutes=12.0),
]


def reports_of(method: TraceMethod) -> FloatArray:
    session = TraceSession(method, key=bytes(32))
    truth = PLANE.to_lonlat(GRID.xy[[0, 0, 5, 4]])
    answers = [
        session.report(lat=lat, lon=lon, time=time) for time, (lon, lat) in zip(TIMES, truth.tolist(), strict=True)
    ]
    return np.array([(answer.lon, answer.lat) for answer in answers])


def every_path(
    method: TraceMethod, mobility: MobilityModel, levels: FloatArray
) -> dict[tuple[int, ...], FloatArray]:
    """Return for each path of cells its joint probability with the reports, for each way to draw the levels."""
    answers = _Observed.of(reports_of(method), TIMES, method, mobility, levels)
    count, size = len(answers.levels), len(GRID)
    given = [answers.likelihood(step).reshape(count, size) for step in range(len(TIMES))]
    unit = np.eye(size).reshape(size, GRID.rows, GRID.columns)
    moves = [mobility.forward(unit, hours).reshape(size, size) for hours in answers.hours]
    # The level of each step: drawn anew after a step that began a run.
    blocks = np.concatenate(([0], np.cumsum(answers.begins[:-1])))
    found = {}
    for path in itertools.product(range(size), repeat=len(TIMES)):
        steps = zip(moves, itertools.pairwise(path), strict=True)
        chance = mobility.mass.ravel()[path[0]] * np.prod([move[here, there] for move, (here, there) in steps])
        of_blocks = [
            np.prod([given[step][:, path[step]] for step in np.flatnonzero(blocks == block)], axis=0)
            for block in np.unique(blocks)
        ]
        of_blocks[0] = chance * of_blocks[0]
        found[path] = np.array(of_blocks)
    return found


@pytest.mark.parametrize(
    "method",
    [*METHODS, Predictive(0.05, 0.05, 300.0, straight_on), Switching(SparseVector.for_accuracy(200))],
    ids=lambda method: type(method).__name__,
)
def test_the_adversary_sees_the_past_that_the_session_looks_at(method: TraceMethod) -> None:
    session = TraceSession(method, key=bytes(32))
    times = [300.0 * step for step in range(120)]
    answers = [session.report(lat=48.0 + 0.01 * step, lon=2.0, time=time) for step, time in enumerate(times[:-1])]
    kept = TraceSession.resume(session.state(), method, key=bytes(32))._history
    answers.append(session.report(lat=50.0, lon=2.0, time=times[-1]))
    places = [(answer.lon, answer.lat) for answer in answers]
    seen = _Observed.of(places, times, method, MOBILITIES[0], LEVELS).histories[-1]
    assert kept is not None
    assert seen == kept._replace(
        time=times[-1], spent=seen.spent, counted=seen.counted, used_until=seen.used_until
    )
    assert (seen.spent, seen.counted) == pytest.approx((kept.spent, kept.counted))


@pytest.mark.parametrize("mobility", MOBILITIES, ids=["walk", "road", "learned"])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_the_beliefs_are_sums_over_all_paths(method: TraceMethod, mobility: MobilityModel) -> None:
    expected = np.zeros((len(TIMES), len(GRID)))
    for path, chances in every_path(method, mobility, LEVELS).items():
        for step, cell in enumerate(path):
            expected[step, cell] += np.prod(chances.mean(axis=1))
    expected /= expected.sum(axis=1, keepdims=True)
    beliefs = trace_beliefs(reports_of(method), TIMES, method=method, mobility=mobility)
    found = [belief.ravel() for belief in beliefs]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("mobility", MOBILITIES, ids=["walk", "road", "learned"])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_no_path_is_likelier_than_the_most_likely_one(method: TraceMethod, mobility: MobilityModel) -> None:
    if isinstance(mobility, LearnedMobility):
        mobility = LearnedMobility(GRID, PLANE, 600.0, mobility.transitions, mobility.visits)  # one step a gap
    paths = {path: np.prod(chances.max(axis=1)) for path, chances in every_path(method, mobility, COARSE).items()}
    found = most_likely_path(reports_of(method), TIMES, method=method, mobility=mobility)
    path = tuple(GRID.nearest(PLANE.to_xy(found)).tolist())
    # A step that was not in the data and one that was are two ways between the same cells: the better one counts.
    slack = 0.98 if isinstance(mobility, LearnedMobility) else 1 - 1e-9
    assert paths[path] >= slack * max(paths.values())


def test_reports_that_the_model_cannot_explain_are_an_error() -> None:
    far = PLANE.to_lonlat(np.array([[0.0, 0.0], [900_000.0, 0.0]]))
    model = MOBILITIES[0]
    with pytest.raises(InvalidInputError, match="explains"):
        list(trace_beliefs(far, [0, 60], method=Independent(0.01), mobility=model))
    with pytest.raises(InvalidInputError, match="explains"):
        most_likely_path(far, [0, 60], method=Independent(0.01), mobility=model)
    with pytest.raises(InvalidInputError, match="increase"):
        list(trace_beliefs(far, [60, 0], method=Independent(0.01), mobility=MOBILITIES[0]))


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_the_belief_about_a_home_is_the_product_of_what_each_run_reveals(method: TraceMethod) -> None:
    mobility = MOBILITIES[1]
    reports = reports_of(method)
    answers = _Observed.of(reports, TIMES, method, mobility, LEVELS)
    blocks = np.concatenate(([0], np.cumsum(answers.begins[:-1])))
    at_home = [True, True, False, True]
    expected = mobility.mass.ravel()
    for block in np.unique(blocks):
        steps = [step for step in np.flatnonzero(blocks == block).tolist() if at_home[step]]
        given = [answers.likelihood(step).reshape(len(answers.levels), -1) for step in steps]
        expected = expected * np.prod(given, axis=0).mean(axis=0) if given else expected
    *_, found = home_beliefs(reports, TIMES, at_home=at_home, method=method, mobility=mobility)
    np.testing.assert_allclose(found.ravel(), expected / expected.sum(), rtol=1e-9, atol=1e-14)


def test_a_bayesian_finds_the_home_that_fresh_noise_hides_badly() -> None:
    method = Independent(0.004)
    session = TraceSession(method, key=bytes(32))
    times = 600.0 * np.arange(60)
    lon, lat = PLANE.to_lonlat(GRID.xy[[4]])[0]
    answers = [session.report(lat=lat, lon=lon, time=time) for time in times.tolist()]
    reports = [(answer.lon, answer.lat) for answer in answers]
    beliefs = list(
        home_beliefs(reports, times, at_home=np.ones(60), method=method, mobility=Mobility(GRID, PLANE))
    )
    assert beliefs[-1].argmax() == 4
    assert beliefs[-1].max() > 0.9 > beliefs[0].max()
    with pytest.raises(InvalidInputError, match="at_home"):
        list(home_beliefs(reports, times, at_home=[True], method=method, mobility=Mobility(GRID, PLANE)))


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
