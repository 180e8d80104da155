import math
from collections.abc import Callable
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from geoind import (
    Channel,
    Grid,
    InvalidInputError,
    Places,
    PlanarLaplace,
    Prior,
    discretise,
    estimate_population,
    geometric,
    randomised_response,
)
from geoind.arrays import FloatArray
from geoind.estimate import invert_population, total_variation
from geoind.estimate.convolution import Convolution, window_around
from geoind.estimate.inversion import _deconvolve, nearest_distribution

GRID = Grid(0, 0, cell=150, columns=5, rows=4)
CHANNELS = [
    randomised_response(20, epsilon=1.0),
    geometric(20, epsilon=0.4),
    discretise(PlanarLaplace(0.012), GRID),
]


def expected_reports(channel: Channel, mass: FloatArray, count: int = 10**7) -> FloatArray:
    return np.repeat(channel.outputs.xy, np.rint(mass @ channel.matrix * count).astype(int), axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("repair", ["project", "clip"])
@pytest.mark.parametrize("channel", CHANNELS)
def test_expected_reports_give_the_population_back(channel: Channel, repair: Literal["project", "clip"]) -> None:
    truth = np.random.default_rng(1).dirichlet(np.ones(20))
    found = invert_population(expected_reports(channel, truth), channel, channel.inputs, repair=repair)
    assert found.mass == pytest.approx(truth, abs=2e-4)


def test_the_inverse_of_randomised_response_is_its_formula() -> None:
    channel, counts = randomised_response(6, epsilon=1.2), np.array([40, 30, 20, 10, 50, 50])
    off = 1 / (5 + math.exp(1.2))
    by_hand = (counts / 200 - off) / (off * (math.exp(1.2) - 1))
    found = invert_population(
        np.repeat(channel.outputs.xy, counts, axis=0), channel, channel.inputs, repair="clip"
    )
    clipped = np.maximum(by_hand, 0)
    assert found.mass == pytest.approx(clipped / clipped.sum())
    projected = invert_population(np.repeat(channel.outputs.xy, counts, axis=0), channel, channel.inputs)
    assert projected.mass == pytest.approx(nearest_distribution(by_hand))


@pytest.mark.slow
def test_more_outputs_than_inputs_are_solved_by_least_squares() -> None:
    inputs, outputs = Grid(0, 0, cell=1, columns=3, rows=1), Grid(0, 0, cell=1, columns=5, rows=1)
    channel = Channel(inputs, outputs, np.random.default_rng(2).dirichlet(np.ones(5), size=3))
    truth = np.array([0.2, 0.5, 0.3])
    assert invert_population(expected_reports(channel, truth), channel, inputs).mass == pytest.approx(
        truth, abs=1e-5
    )


def test_singular_channels_are_refused() -> None:
    line = Grid(0, 0, cell=1, columns=3, rows=1)
    blind = Channel(line, line, np.full((3, 3), 1 / 3))
    with pytest.raises(InvalidInputError, match="singular"):
        invert_population(line.xy, blind, line)
    fewer = Channel(line, Grid(0, 0, cell=1, columns=2, rows=1), [[1.0, 0], [0.5, 0.5], [0.0, 1]])
    with pytest.raises(InvalidInputError, match="singular"):
        invert_population(line.xy[:2], fewer, line)


def test_noise_is_undone_on_the_grid() -> None:
    grid = Grid(0, 0, cell=200, columns=9, rows=7)
    window = window_around(grid, 0.01)
    mass = np.random.default_rng(3).dirichlet(np.full(63, 0.3))
    [image] = Convolution.between(grid, window, [0.01], periodic=True).spread(mass)
    found = _deconvolve(Convolution.between(grid, window, [0.01], periodic=True), image.ravel())
    assert found == pytest.approx(mass, abs=1e-12)


def test_noisy_reports_of_few_cells_are_undone_too() -> None:
    grid, noise = Grid(0, 0, cell=400, columns=6, rows=6), PlanarLaplace(0.01)
    truth = Prior.from_counts(grid, np.arange(36.0) ** 2)
    rng = np.random.default_rng(4)
    people = grid.xy[rng.choice(36, size=100_000, p=truth.mass)] + 400 * (rng.random((100_000, 2)) - 0.5)
    found = invert_population(noise.sample(people, rng=5), noise, grid)
    assert total_variation(found, truth) < 0.03


def test_the_iterative_update_wins_where_the_channel_is_ill_conditioned() -> None:
    channel = geometric(30, epsilon=0.3)
    truth = Prior.from_counts(channel.inputs, np.exp(-((np.arange(30) - 11.0) ** 2) / 30))
    people = channel.inputs.xy[np.random.default_rng(6).choice(30, size=100_000, p=truth.mass)]
    reports = channel.sample(people, rng=7)
    iterated = total_variation(estimate_population(reports, channel, channel.inputs), truth)
    for repair in ("project", "clip"):
        inverted = invert_population(reports, channel, channel.inputs, repair=repair)
        assert iterated < 0.6 * total_variation(inverted, truth)


@settings(deadline=None)
@given(arrays(float, st.integers(1, 12), elements=st.floats(-3, 3)), st.integers(0, 10**6))
def test_no_distribution_is_closer_than_the_projection(weights: FloatArray, seed: int) -> None:
    projected = nearest_distribution(weights)
    assert projected.sum() == pytest.approx(1)
    assert (projected >= 0).all()
    other = np.random.default_rng(seed).dirichlet(np.ones(len(weights)))
    assert ((projected - weights) ** 2).sum() <= ((other - weights) ** 2).sum() + 1e-9


def test_a_distribution_stays_as_it_is() -> None:
    mass = np.random.default_rng(8).dirichlet(np.ones(9))
    assert nearest_distribution(mass) == pytest.approx(mass)


def test_bad_input_is_refused() -> None:
    channel = randomised_response(3, epsilon=1.0)
    with pytest.raises(InvalidInputError, match="repair"):
        invert_population(channel.outputs.xy, channel, channel.inputs, repair="hope")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="one mechanism"):
        invert_population([[0, 0], [1, 1]], [0.1, 0.2], GRID)
    with pytest.raises(InvalidInputError, match="empty"):
        invert_population([], channel, channel.inputs)
    with pytest.raises(InvalidInputError, match="grid must be the inputs"):
        invert_population(channel.outputs.xy, channel, GRID)


@pytest.mark.parametrize("estimator", [invert_population, estimate_population])
def test_a_population_of_records_is_estimated_from_records(estimator: Callable[..., Prior]) -> None:
    days = Places([[0, 0, 0], [1, 0, 2], [4, 4, 4]])
    flat = randomised_response(3, epsilon=2.0).matrix
    channel = Channel(days, days, flat)
    people = np.repeat(days.xy, [3000, 6000, 1000], axis=0)
    found = estimator(channel.sample(people, rng=1), channel, days)
    assert found.mass == pytest.approx([0.3, 0.6, 0.1], abs=0.05)
    with pytest.raises(InvalidInputError, match="shape"):
        estimator(people[:, :2], channel, days)
