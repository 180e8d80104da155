import math
from typing import Any

import numpy as np
import pytest

from geoind import (
    Channel,
    Grid,
    InvalidInputError,
    Places,
    PlanarLaplace,
    PostProcessed,
    Prior,
    Projected,
    SphericalLaplace,
    discretise,
    estimate_population,
    geometric,
    randomised_response,
)
from geoind.arrays import ArrayLike, FloatArray
from geoind.errors import SitesMismatchError
from geoind.evaluation import synthetic_city

EPSILON = 0.003
CITY = synthetic_city(32)
TRUTH = CITY.sample_xy(60_000, rng=1)
NOISE = PlanarLaplace(EPSILON)
REPORTS = NOISE.sample(TRUTH, rng=2)


def apart(estimate: Prior, prior: Prior = CITY.prior) -> float:
    return 0.5 * float(np.abs(estimate.mass - prior.mass).sum())


def naive(reports: FloatArray = REPORTS, grid: Grid = CITY.grid) -> Prior:
    return Prior.from_counts(grid, np.bincount(grid.nearest(reports), minlength=len(grid)))


def test_the_estimate_is_far_closer_to_the_truth_than_the_reports_are() -> None:
    found = estimate_population(REPORTS, NOISE, CITY.grid)
    assert apart(found) < 0.8 * apart(naive())
    assert found.reports + found.left_out == len(REPORTS)
    assert isinstance(found, Prior)


def test_the_trace_rises_and_ends_with_the_estimate() -> None:
    found = estimate_population(REPORTS, NOISE, CITY.grid)
    assert (np.diff(found.log_likelihood) >= 0).all()
    assert len(found.log_likelihood) == found.steps + 1
    with pytest.raises(ValueError, match="read-only"):
        found.log_likelihood[0] = 0


def test_stopping_by_held_out_reports_beats_the_most_likely_population() -> None:
    early = estimate_population(REPORTS, NOISE, CITY.grid)
    top = estimate_population(REPORTS, NOISE, CITY.grid, stopping="converged", max_steps=300)
    assert top.log_likelihood[-1] > early.log_likelihood[-1]
    assert apart(early) < 0.5 * apart(top)


def test_converged_means_that_nothing_is_likelier() -> None:
    grid = Grid(0, 0, cell=150, columns=6, rows=6)
    truth = Prior.from_counts(grid, np.arange(1.0, 37.0))
    people = grid.xy[np.random.default_rng(1).choice(36, size=5000, p=truth.mass)]
    found = estimate_population(NOISE.sample(people, rng=2), NOISE, grid, stopping="converged", max_steps=5000)
    assert found.gap * found.reports <= 1.0
    assert found.steps < 5000


def crowd_at_one_point(epsilon: float) -> tuple[float, float]:
    """Return how likely, and how wide in metres, people at one point seem if epsilon were their noise."""
    grid = Grid(0, 0, cell=50, columns=41, rows=41)
    reports = PlanarLaplace(0.02).sample(np.tile([[1000.0, 1000.0]], (20_000, 1)), rng=15)
    found = estimate_population(reports, epsilon, grid, stopping="converged", max_steps=300)
    middle = found.mass @ grid.xy
    return found.log_likelihood[-1] * 20_000, math.sqrt(found.mass @ ((grid.xy - middle) ** 2).sum(axis=1) / 2)


def test_a_noise_five_percent_too_wide_or_too_narrow_is_noticed() -> None:
    likely, width = crowd_at_one_point(0.02)
    assert width < 12
    assert crowd_at_one_point(0.02 * 0.95)[0] < likely - 50
    assert crowd_at_one_point(0.02 * 1.05)[1] > 18


def test_the_dense_and_the_matrix_free_way_agree() -> None:
    # People in the middle of the grid, so that the channel's truncation at the border plays no role.
    grid = Grid(0, 0, cell=60, columns=24, rows=24)
    mass = np.zeros((24, 24))
    mass[9:15, 10:14] = np.arange(1.0, 25.0).reshape(6, 4)
    people = grid.xy[np.random.default_rng(3).choice(576, size=40_000, p=mass.ravel() / mass.sum())]
    noise = PlanarLaplace(0.03)
    reports = noise.sample(people, rng=4)
    inside = reports[((reports > -30) & (reports < 24 * 60 - 30)).all(axis=1)]
    dense = estimate_population(inside, discretise(noise, grid), grid)
    free = estimate_population(inside, noise, grid)
    assert apart(dense, free) < 0.06
    assert apart(dense, naive(inside, grid)) > 0.2


@pytest.mark.parametrize("channel", [randomised_response(12, epsilon=2.0), geometric(12, epsilon=0.5)])
def test_any_finite_channel_will_do(channel: Channel) -> None:
    truth = Prior.from_counts(channel.inputs, [1, 2, 3, 9, 1, 1, 1, 0, 5, 5, 5, 1])
    people = channel.inputs.xy[np.random.default_rng(5).choice(12, size=100_000, p=truth.mass)]
    found = estimate_population(channel.sample(people, rng=6), channel, channel.inputs)
    assert apart(found, truth) < 0.06


def test_exact_shares_give_the_truth_back() -> None:
    channel = randomised_response(5, epsilon=1.0)
    truth = np.array([0.5, 0.2, 0.1, 0.1, 0.1])
    counts = np.rint(truth @ channel.matrix * 10**6).astype(int)
    reports = np.repeat(channel.outputs.xy, counts, axis=0)
    found = estimate_population(reports, channel, channel.inputs, stopping="converged", tolerance=1e-4)
    assert found.mass == pytest.approx(truth, abs=1e-4)


def test_degrees_from_the_globe() -> None:
    lonlat = SphericalLaplace(EPSILON).sample(CITY.projection.to_lonlat(TRUTH), rng=7)
    found = estimate_population(lonlat, SphericalLaplace(EPSILON), CITY.grid, projection=CITY.projection)
    by_number = estimate_population(lonlat, EPSILON, CITY.grid, projection=CITY.projection)
    assert apart(found) < 0.8 * apart(naive())
    assert np.array_equal(found.mass, by_number.mass)


def test_a_projected_mechanism_brings_its_projection() -> None:
    mechanism = Projected(NOISE, CITY.projection)
    lonlat = mechanism.sample(CITY.projection.to_lonlat(TRUTH[:20_000]), rng=8)
    found = estimate_population(lonlat, mechanism, CITY.grid)
    assert apart(found) < 0.8 * apart(naive())
    with pytest.raises(InvalidInputError, match="projection differs"):
        estimate_population(lonlat, mechanism, CITY.grid, projection=type(CITY.projection)(2.0, 48.0))


def test_frames_of_points_with_a_crs() -> None:
    import geopandas

    lonlat = SphericalLaplace(EPSILON).sample(CITY.projection.to_lonlat(TRUTH[:5000]), rng=9)
    frame = geopandas.GeoDataFrame(geometry=geopandas.points_from_xy(*lonlat.T), crs=4326)
    expected = estimate_population(lonlat, EPSILON, CITY.grid, projection=CITY.projection)
    for reports in (frame, frame.geometry, frame.to_crs(2154)):
        found = estimate_population(reports, EPSILON, CITY.grid, projection=CITY.projection)
        assert apart(found, expected) < 0.01
    with pytest.raises(InvalidInputError, match="must have a CRS"):
        estimate_population(
            frame.set_crs(None, allow_override=True), EPSILON, CITY.grid, projection=CITY.projection
        )
    with pytest.raises(InvalidInputError, match="projection"):
        estimate_population(frame, EPSILON, CITY.grid)


def test_every_report_counts_with_its_own_epsilon() -> None:
    epsilons = np.where(np.arange(len(TRUTH)) % 2, EPSILON / 2, 2 * EPSILON)
    sharp = epsilons > EPSILON
    reports = np.where(
        sharp[:, None],
        PlanarLaplace(2 * EPSILON).sample(TRUTH, rng=10),
        PlanarLaplace(EPSILON / 2).sample(TRUTH, rng=11),
    )
    together = estimate_population(reports, epsilons, CITY.grid)
    alone = estimate_population(reports[sharp], 2 * EPSILON, CITY.grid)
    wrong = estimate_population(reports, EPSILON, CITY.grid, open_border=True)
    assert apart(together) < apart(alone)
    assert apart(together) < 0.7 * apart(wrong)
    listed = [PlanarLaplace(epsilon) for epsilon in epsilons[:2000]]
    by_object = estimate_population(reports[:2000], listed, CITY.grid)
    by_number = estimate_population(reports[:2000], epsilons[:2000], CITY.grid)
    assert by_object.mass == pytest.approx(by_number.mass)


def test_channels_and_noise_add_up() -> None:
    grid = Grid(0, 0, cell=200, columns=8, rows=8)
    channel, noise = discretise(PlanarLaplace(0.01), grid), PlanarLaplace(0.02)
    truth = Prior.from_counts(grid, np.arange(64.0) ** 2)
    people = grid.xy[np.random.default_rng(12).choice(64, size=20_000, p=truth.mass)]
    reports = np.vstack([channel.sample(people[:10_000], rng=13), noise.sample(people[10_000:], rng=14)])
    found = estimate_population(reports, [channel] * 10_000 + [noise] * 10_000, grid)
    assert apart(found, truth) < 0.12


def test_people_outside_the_grid_are_not_pressed_into_it_when_the_border_is_open() -> None:
    middle = Grid(CITY.grid.x + 8 * 200, CITY.grid.y + 8 * 200, cell=200, columns=16, rows=16)
    inside = CITY.prior.mass.reshape(32, 32)[8:24, 8:24].ravel()
    truth = Prior.from_counts(middle, inside)
    opened = estimate_population(REPORTS, NOISE, middle, open_border=True)
    assert apart(opened, truth) < 0.25
    pressed = estimate_population(REPORTS, NOISE, middle)
    edge = np.ones((16, 16), dtype=bool)
    edge[1:-1, 1:-1] = False
    assert opened.mass[edge.ravel()].sum() < 1.2 * truth.mass[edge.ravel()].sum()
    assert pressed.mass[edge.ravel()].sum() > 2 * truth.mass[edge.ravel()].sum()


def test_smoothing_widens_what_is_sharp_and_keeps_the_likelihood_rising() -> None:
    grid = Grid(0, 0, cell=50, columns=41, rows=41)
    reports = PlanarLaplace(0.02).sample(np.tile([[1000.0, 1000.0]], (20_000, 1)), rng=15)

    def spread(smoothing: float) -> float:
        found = estimate_population(reports, 0.02, grid, smoothing=smoothing, stopping="converged", max_steps=150)
        assert (np.diff(found.log_likelihood) >= 0).all()
        middle = found.mass @ grid.xy
        return math.sqrt(found.mass @ ((grid.xy - middle) ** 2).sum(axis=1) / 2)

    assert spread(0.0) < 35
    assert spread(120.0) == pytest.approx(120, rel=0.1)


def test_progress_is_called_for_every_step() -> None:
    steps = []
    estimate_population(REPORTS[:500], NOISE, CITY.grid, progress=lambda step, value: steps.append((step, value)))
    assert len(steps) > 3
    assert all(value < 0 for _, value in steps)


def test_the_same_reports_give_the_same_map() -> None:
    first, again = (estimate_population(REPORTS[:5000], NOISE, CITY.grid) for _ in range(2))
    assert first.mass == pytest.approx(again.mass, rel=1e-9)


def test_one_report_gives_the_posterior_of_one_person() -> None:
    found = estimate_population([[0.0, 0.0]], NOISE, CITY.grid)
    assert CITY.grid.xy[np.argmax(found.mass)] == pytest.approx([0, 0], abs=200)


@pytest.mark.parametrize(
    ("reports", "mechanism", "message"),
    [
        (np.empty((0, 2)), NOISE, "empty"),
        (REPORTS[:5], None, "must be known"),
        (REPORTS[:5], "0.01", "must be known"),
        (REPORTS[:5], -0.01, "epsilon must be positive"),
        (REPORTS[:5], float("nan"), "epsilon must be positive"),
        (REPORTS[:5], [EPSILON] * 4, "one per report"),
        (REPORTS[:200], np.linspace(0.01, 0.02, 200), "round the epsilons"),
        (REPORTS + 90_000, NOISE, "60,000 of 60,000 reports are too far away"),
        (REPORTS * 3, NOISE, "are too far away for people in the grid"),
        ([[0.0, np.nan]], NOISE, "finite"),
        (REPORTS[:5], SphericalLaplace(EPSILON), "pass projection="),
        (REPORTS[:5], PostProcessed(NOISE, CITY.grid.snap), "channel of its outputs"),
    ],
)
def test_reports_and_mechanisms_that_cannot_be_are_refused(
    reports: ArrayLike, mechanism: Any, message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        estimate_population(reports, mechanism, CITY.grid)


@pytest.mark.parametrize("smoothing", [-1.0, float("nan")])
def test_a_smoothing_out_of_range_is_refused(smoothing: float) -> None:
    with pytest.raises(InvalidInputError, match="smoothing"):
        estimate_population(REPORTS[:5], NOISE, CITY.grid, smoothing=smoothing)


def test_channels_refuse_reports_they_cannot_have_made() -> None:
    channel = geometric(4, epsilon=1.0)
    with pytest.raises(InvalidInputError, match="the channel's outputs do not cover 1 of 1 report:"):
        estimate_population([[99.0, 0.0]], channel, channel.inputs)
    never = Channel(channel.inputs, channel.outputs, np.eye(4)[[0, 1, 2, 2]])
    with pytest.raises(InvalidInputError, match="no input of the channel can give 1 of 2 reports"):
        estimate_population(channel.outputs.xy[[0, 3]], never, channel.inputs)
    with pytest.raises(InvalidInputError, match="open_border"):
        estimate_population(channel.outputs.xy, channel, channel.inputs, open_border=True)


@pytest.mark.parametrize(
    "grid",
    [
        Grid(0, 0, cell=1, columns=5, rows=1),
        Grid(0, 0, cell=1, columns=2, rows=2),
        Grid(7, 0, cell=1, columns=4, rows=1),
        Places([[3, 0], [2, 0], [1, 0], [0, 0]]),
    ],
)
def test_people_can_only_be_where_the_channel_says(grid: Grid | Places) -> None:
    channel = geometric(4, epsilon=1.0)
    with pytest.raises(SitesMismatchError, match="inputs"):
        estimate_population(channel.outputs.xy, channel, grid)
    same = Places(channel.inputs.xy)
    expected = estimate_population(channel.outputs.xy, channel, channel.inputs).mass
    assert estimate_population(channel.outputs.xy, channel, same).mass == pytest.approx(expected)


def test_noise_needs_cells() -> None:
    with pytest.raises(InvalidInputError, match="must be a Grid"):
        estimate_population(REPORTS[:5], NOISE, Places(CITY.grid.xy))
    places = Channel(Places([[0, 0], [9, 9]]), Places([[0, 0], [9, 9]]), [[0.9, 0.1], [0.1, 0.9]])
    assert estimate_population([[0, 0], [9, 9]], places, places.inputs).mass.shape == (2,)
    with pytest.raises(InvalidInputError, match="smoothing needs a Grid"):
        estimate_population([[0, 0]], places, places.inputs, smoothing=1.0)


def test_messages_never_quote_a_coordinate() -> None:
    with pytest.raises(InvalidInputError) as caught:
        estimate_population(REPORTS + 123_456, NOISE, CITY.grid)
    assert "123" not in str(caught.value)


def test_a_converged_climb_ends_at_the_same_population_from_any_start() -> None:
    channel = randomised_response(5, epsilon=1.0)
    people = np.repeat(channel.inputs.xy, [5000, 2500, 1500, 800, 200], axis=0)
    reports = channel.sample(people, rng=3)
    how: dict[str, Any] = {"stopping": "converged", "tolerance": 1e-6, "max_steps": 5000}
    found = estimate_population(reports, channel, channel.inputs, **how)
    for mass in ([0.96, 0.01, 0.01, 0.01, 0.01], [1e-6, 0.1, 0.2, 0.3, 0.399999]):
        start = Prior(channel.inputs, mass)
        again = estimate_population(reports, channel, channel.inputs, start=start, **how)
        assert again.mass == pytest.approx(found.mass, abs=1e-4)
        assert again.log_likelihood[0] < found.log_likelihood[0] < again.log_likelihood[-1]


def test_a_start_that_is_the_answer_needs_no_steps() -> None:
    early = estimate_population(REPORTS, NOISE, CITY.grid)
    again = estimate_population(REPORTS, NOISE, CITY.grid, start=early, stopping="converged", max_steps=1)
    assert again.log_likelihood[0] == pytest.approx(early.log_likelihood[-1], abs=1e-9)
    assert again.fit.start is not None
    np.testing.assert_array_equal(again.fit.start, early.mass)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"stopping": "soon"}, "stopping must be 'held-out' or 'converged', got 'soon'"),
        ({"max_steps": 0}, "max_steps must"),
        ({"max_steps": 2.5}, "max_steps must"),
        ({"tolerance": 0.0}, "tolerance must"),
        ({"tolerance": float("nan")}, "tolerance must"),
        ({"start": [0.5, 0.5]}, "start must be a Prior, got list"),
        ({"start": Prior.over(CITY.grid, [0])}, "start must be positive"),
        ({"progress": "bar"}, "progress must be callable"),
    ],
)
def test_an_invalid_parameter_of_the_ascent_is_an_error(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        estimate_population(REPORTS[:5], NOISE, CITY.grid, **wrong)


def test_bad_starts_are_refused() -> None:
    channel = randomised_response(3, epsilon=1.0)
    reports, everywhere = channel.inputs.xy, Prior.uniform(CITY.grid)
    with pytest.raises(SitesMismatchError, match="start"):
        estimate_population(reports, channel, channel.inputs, start=everywhere)
    with pytest.raises(SitesMismatchError, match="open_border=False"):
        estimate_population(REPORTS, NOISE, CITY.grid, start=everywhere, open_border=True)
