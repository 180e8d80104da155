from typing import Any

import numpy as np
import pytest

from geoind import Grid, InvalidInputError, PlanarLaplace, Prior, estimate_population, randomised_response
from geoind.estimate import PopulationEstimate, bootstrap_intervals
from geoind.evaluation import synthetic_city

CHANNEL = randomised_response(5, epsilon=2.0)
TRUTH = np.array([0.4, 0.3, 0.15, 0.1, 0.05])


def estimated(seed: int, people: int = 4000) -> PopulationEstimate:
    rng = np.random.default_rng(seed)
    truth = CHANNEL.inputs.xy[rng.choice(5, size=people, p=TRUTH)]
    reports = CHANNEL.sample(truth, rng=rng)
    return estimate_population(reports, CHANNEL, CHANNEL.inputs, stopping="converged")


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    held = np.zeros(5)
    for seed in range(60):
        low, high = bootstrap_intervals(estimated(seed), confidence=0.8, replicates=60, rng=seed, workers=1)
        held += (low <= TRUTH) & (high >= TRUTH)
    # 300 intervals at 80 %, five and five dependent: three standard deviations.
    assert 0.72 < held.sum() / 300 < 0.88


def test_more_people_mean_narrower_intervals() -> None:
    every = (bootstrap_intervals(estimated(1, people), replicates=60) for people in (1000, 16_000))
    few, many = ((high - low).mean() for low, high in every)
    assert few == pytest.approx(4 * many, rel=0.3)


def test_more_confidence_means_wider_intervals() -> None:
    found = estimated(2)
    narrow, wide = (bootstrap_intervals(found, confidence=share) for share in (0.5, 0.95))
    assert (narrow[0] >= wide[0]).all()
    assert (narrow[1] <= wide[1]).all()


def test_the_seed_decides_and_not_the_number_of_workers() -> None:
    found = estimated(3)
    alone, together = (bootstrap_intervals(found, replicates=30, rng=7, workers=workers) for workers in (1, 3))
    other = bootstrap_intervals(found, replicates=30, rng=8)
    assert np.array_equal(alone, together)
    assert not np.array_equal(alone, other)


def test_noise_on_a_grid_with_an_open_border_has_intervals_too() -> None:
    city, noise = synthetic_city(16), PlanarLaplace(0.01)
    reports = noise.sample(city.sample_xy(5000, rng=1), rng=2)
    middle = Grid(city.grid.x + 1600, city.grid.y + 1600, cell=400, columns=8, rows=8)
    found = estimate_population(reports, noise, middle, open_border=True, smoothing=200.0)
    steps = []
    low, high = bootstrap_intervals(found, replicates=40, progress=lambda done, _: steps.append(done))
    assert steps == list(range(1, 41))
    assert ((low <= found.mass) & (found.mass <= high)).mean() > 0.9
    assert Prior.from_counts(middle, high).mass.shape == (64,)


@pytest.mark.parametrize(
    "options", [{"confidence": 1.0}, {"confidence": 0.99, "replicates": 50}, {"replicates": 0}, {"workers": 0}]
)
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        bootstrap_intervals(estimated(4), **options)
