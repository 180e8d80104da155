"""The audit finds each classical mistake, and does not refute mechanisms that are right."""

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

from geoind import (
    Grid,
    InvalidInputError,
    Mechanism,
    PlanarGaussian,
    PlanarLaplace,
    PostProcessed,
    Projected,
    Projection,
    SphericalLaplace,
    audit,
    discretise,
)
from geoind.arrays import ArrayLike, FloatArray
from geoind.audits.trials import Finding
from geoind.mechanisms.protocol import RandomnessLike, Space

EPSILON = math.log(4) / 200
SCALE = 1 / EPSILON
DRAWS = 20_000
FEW = 100
"""For tests of what an audit does, not of what it finds."""

Sampler: TypeAlias = Callable[[FloatArray], FloatArray]
Mistake: TypeAlias = Callable[[np.random.Generator], Sampler]


def thousandths(lonlat: FloatArray) -> FloatArray:
    return np.round(lonlat, 3)


def polar(radius: FloatArray, rng: np.random.Generator) -> FloatArray:
    angle = rng.uniform(0, 2 * np.pi, len(radius))
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def right_noise(count: int, rng: np.random.Generator) -> FloatArray:
    """Planar Laplace noise without a lattice, so that it can be added to a truth."""
    return polar(rng.gamma(2, SCALE, count), rng)


def per_axis(rng: np.random.Generator) -> Sampler:
    return lambda points: points + rng.laplace(scale=SCALE, size=points.shape)


def exponential_radius(rng: np.random.Generator) -> Sampler:
    return lambda points: points + polar(rng.exponential(SCALE, len(points)), rng)


def metres_as_equal_degrees(rng: np.random.Generator) -> Sampler:
    return lambda points: points + polar(rng.gamma(2, SCALE, len(points)), rng) / 111_195


def degrees_for_metres(rng: np.random.Generator) -> Sampler:
    return lambda points: points + polar(rng.gamma(2, SCALE, len(points)), rng) * 1e-6


def redrawn_until_inside(rng: np.random.Generator) -> Sampler:
    noise = PlanarLaplace(EPSILON)

    def sample(points: FloatArray) -> FloatArray:
        reports = noise.sample(points, rng=rng)
        while (outside := ((reports < 0) | (reports > 900)).any(axis=1)).any():
            reports[outside] = noise.sample(points[outside], rng=rng)
        return reports

    return sample


def fixed_seed(_: np.random.Generator) -> Sampler:
    return lambda points: PlanarLaplace(EPSILON).sample(points, rng=42)


def one_angle_for_all(rng: np.random.Generator) -> Sampler:
    def sample(points: FloatArray) -> FloatArray:
        angle = rng.uniform(0, 2 * np.pi, len(points)).round()
        radius = rng.gamma(2, SCALE, len(points))
        return points + np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])

    return sample


def truncated_radius(rng: np.random.Generator) -> Sampler:
    return lambda points: points + polar(np.minimum(rng.gamma(2, SCALE, len(points)), 1.5 * SCALE), rng)


def cut_far_away(rng: np.random.Generator) -> Sampler:
    def sample(points: FloatArray) -> FloatArray:
        radius = rng.gamma(2, SCALE, len(points))
        while (beyond := radius > 9 * SCALE).any():
            radius[beyond] = rng.gamma(2, SCALE, int(beyond.sum()))
        return points + polar(radius, rng)

    return sample


def clipped_far_away(rng: np.random.Generator) -> Sampler:
    return lambda points: points + polar(np.minimum(rng.gamma(2, SCALE, len(points)), 9 * SCALE), rng)


def noise_on_a_lattice_of_its_own(step: float) -> Mistake:
    def mistake(rng: np.random.Generator) -> Sampler:
        return lambda points: points + step * np.rint(polar(rng.gamma(2, SCALE, len(points)), rng) / step)

    return mistake


def last_digits_of_the_truth(rng: np.random.Generator) -> Sampler:
    def sample(points: FloatArray) -> FloatArray:
        reports = PlanarLaplace(EPSILON).sample(points, rng=rng)
        return np.rint(reports) + np.mod(points, 1.0)

    return sample


def degrees_with_the_digits_of_the_truth(rng: np.random.Generator) -> Sampler:
    def sample(points: FloatArray) -> FloatArray:
        reports = SphericalLaplace(EPSILON).sample(points, rng=rng)
        return np.round(reports, 3) + np.mod(points, 1e-3)

    return sample


def rounded_truth(cell: float) -> Mistake:
    def mistake(rng: np.random.Generator) -> Sampler:
        return lambda points: PlanarLaplace(EPSILON).sample(cell * np.floor(points / cell), rng=rng)

    return mistake


def one_noise_for_a_call(rng: np.random.Generator) -> Sampler:
    return lambda points: points + right_noise(1, rng)


def neighbours_share_noise(rng: np.random.Generator) -> Sampler:
    def sample(points: FloatArray) -> FloatArray:
        noise = right_noise(len(points) // 2 + 1, rng)
        return points + np.repeat(noise, 2, axis=0)[: len(points)]

    return sample


def every_thousand_rows_again(rng: np.random.Generator) -> Sampler:
    def sample(points: FloatArray) -> FloatArray:
        noise = right_noise(1000, rng)
        return points + np.resize(noise, points.shape)

    return sample


def opposite_noise_for_neighbours(rng: np.random.Generator) -> Sampler:
    def sample(points: FloatArray) -> FloatArray:
        noise = right_noise(len(points) // 2 + 1, rng)
        both = np.stack([noise, -noise], axis=1).reshape(-1, 2)
        return points + both[: len(points)]

    return sample


def the_clock_as_a_seed(rng: np.random.Generator) -> Sampler:
    calls = iter(range(10**9))

    def sample(points: FloatArray) -> FloatArray:
        # Some calls fall into the same second.
        return points + right_noise(len(points), np.random.default_rng(next(calls) // 40))

    del rng
    return sample


@pytest.mark.parametrize(
    ("mistake", "options", "at_least", "shown_by"),
    [
        (per_axis, {}, 1.25, ""),
        (exponential_radius, {}, 1.8, "right at the truth"),
        (metres_as_equal_degrees, {"lonlat": True, "places": [[10.0, 60.0]]}, 1.7, ""),
        (degrees_for_metres, {"lonlat": True, "places": [[10.0, 60.0]]}, 1.5, ""),
        (redrawn_until_inside, {"places": [[0.0, 0.0]], "draws": 40_000}, 1.02, ""),
        (fixed_seed, {}, 5, "two calls"),
        (one_angle_for_all, {}, 1.5, ""),
        (truncated_radius, {}, 1.5, ""),
        (cut_far_away, {"draws": 100_000}, 1.01, "out of the other place's reach"),
        (clipped_far_away, {"draws": 100_000}, 1.01, "out of the other place's reach"),
        (noise_on_a_lattice_of_its_own(10.0), {"places": [[448_262.25, 5_411_932.7]]}, 1.5, "remainder"),
        (noise_on_a_lattice_of_its_own(1 / 1024), {}, 1.5, "remainder"),
        (last_digits_of_the_truth, {}, 1.5, "remainder"),
        (degrees_with_the_digits_of_the_truth, {"lonlat": True, "places": [[2.35, 48.86]]}, 1.5, "remainder"),
        (rounded_truth(0.3 * SCALE), {}, 5, "where reports jump"),
        (rounded_truth(SCALE), {"places": [[448_262.25, 5_411_932.7]]}, 10, "where reports jump"),
        (rounded_truth(20 * SCALE), {}, 10, "where reports jump"),
        (one_noise_for_a_call, {}, 1.5, "two rows"),
        (neighbours_share_noise, {}, 1.5, "two rows 1 apart, one minus the other"),
        (every_thousand_rows_again, {}, 1.5, "two rows 1000 apart, one minus the other"),
        (opposite_noise_for_neighbours, {}, 1.5, "two rows 1 apart, added"),
        (the_clock_as_a_seed, {}, 1.5, "two calls"),
    ],
)
def test_a_classical_mistake_is_found(
    mistake: Mistake, options: dict[str, Any], at_least: float, shown_by: str
) -> None:
    result = audit(mistake(np.random.default_rng(1)), epsilon=EPSILON, **{"draws": DRAWS, **options})
    assert result.refuted
    assert result.epsilon > at_least * EPSILON
    assert "BROKEN" in str(result)
    assert any(shown_by in finding.event for finding in result.findings if finding.epsilon > EPSILON)


@pytest.mark.parametrize(
    "mistake", [one_noise_for_a_call, neighbours_share_noise, opposite_noise_for_neighbours, the_clock_as_a_seed]
)
def test_noise_that_is_right_alone_is_not_accused_alone(mistake: Mistake) -> None:
    result = audit(mistake(np.random.default_rng(2)), epsilon=EPSILON, draws=DRAWS)
    shown = [finding.event for finding in result.findings if finding.epsilon > 1.2 * EPSILON]
    assert shown
    if mistake is not one_noise_for_a_call:
        assert all("two rows" in event or "two calls" in event for event in shown)


class Recorder:
    """A mechanism that remembers the randomness it was handed."""

    epsilon = EPSILON
    space: Space = "xy"

    def __init__(self) -> None:
        self.handed: list[RandomnessLike] = []

    def reach(self, confidence: float) -> float:
        return PlanarLaplace(EPSILON).reach(confidence)

    def sample(self, points: ArrayLike, *, rng: RandomnessLike = None) -> FloatArray:
        self.handed.append(rng)
        return PlanarLaplace(EPSILON).sample(points, rng=rng)


def test_the_callers_randomness_reaches_the_mechanism_and_goes_on_from_call_to_call() -> None:
    mine, recorder = np.random.default_rng(5), Recorder()
    before = mine.bit_generator.state
    audit(recorder, draws=FEW, rng=mine)
    assert all(handed is mine for handed in recorder.handed)
    assert mine.bit_generator.state != before
    alone = Recorder()
    audit(alone, draws=FEW)
    assert set(alone.handed) == {None}


def test_a_seed_repeats_an_audit_and_another_one_does_not() -> None:
    def findings(rng: RandomnessLike) -> tuple[Finding, ...]:
        return audit(PlanarLaplace(EPSILON), draws=FEW, rng=rng).findings

    once = findings(1)
    assert once == findings(np.random.default_rng(1))
    assert once != findings(2)
    assert findings(None) != findings(None)


def test_a_channel_is_refuted_only_by_what_it_reveals_beyond_its_sites() -> None:
    grid = Grid(-500, -500, cell=100, columns=11, rows=11)
    channel = discretise(PlanarLaplace(EPSILON), grid)
    assert not audit(channel, draws=DRAWS, rng=1).refuted
    # As noise for any place, rather than for sites, it promises less than its epsilon.
    assert audit(lambda points: channel.sample(points, rng=None), epsilon=EPSILON, draws=DRAWS).refuted


@pytest.mark.parametrize(
    ("mechanism", "options"),
    [
        (PlanarLaplace(EPSILON), {}),
        (SphericalLaplace(EPSILON), {"places": [[2.35, 48.86], [179.9999, 80.0]]}),
        (Projected(PlanarLaplace(EPSILON), Projection(2.35, 48.86)), {"places": [[2.4, 48.9]]}),
        (PostProcessed(PlanarLaplace(EPSILON), Grid(0, 0, cell=100, columns=9, rows=9).snap), {}),
        (PostProcessed(SphericalLaplace(EPSILON), thousandths), {"places": [[2.35, 48.86]]}),
    ],
)
def test_a_mechanism_that_keeps_its_promise_is_not_refuted_and_most_of_its_loss_is_found(
    mechanism: Mechanism, options: dict[str, Any]
) -> None:
    result = audit(mechanism, draws=DRAWS, rng=1, **options)
    assert not result.refuted
    assert result.claimed == pytest.approx(EPSILON, rel=5e-5)
    assert result.epsilon > 0.8 * EPSILON


def test_accusations_are_as_rare_as_the_confidence_says() -> None:
    results = [audit(PlanarLaplace(EPSILON), draws=400, confidence=0.9, rng=seed) for seed in range(6)]
    assert sum(result.refuted for result in results) <= 1


@pytest.mark.parametrize(("draws", "least"), [(10_000, 0.8), (100_000, 0.9)])
def test_more_draws_see_more(draws: int, least: float) -> None:
    result = audit(PlanarLaplace(EPSILON), draws=draws, rng=3)
    assert least < result.epsilon / EPSILON < 1
    assert 1 < result.smallest_visible / EPSILON < 1 / least


def test_what_is_called_visible_is_seen() -> None:
    small = audit(PlanarLaplace(EPSILON), draws=DRAWS, rng=1).smallest_visible
    assert audit(PlanarLaplace(small * 1.05), epsilon=EPSILON, draws=DRAWS, rng=4).refuted


def test_bounds_of_several_places_share_the_confidence() -> None:
    once = audit(PlanarLaplace(EPSILON), draws=2000, rng=1)
    often = audit(PlanarLaplace(EPSILON), draws=2000, rng=1, places=np.zeros((3, 2)))
    assert len(often.findings) == 3 * len(once.findings)
    assert often.smallest_visible > once.smallest_visible


def test_the_result_says_what_it_could_not_have_seen() -> None:
    text = str(audit(PlanarLaplace(EPSILON), draws=FEW, rng=1))
    assert "not refuted" in text
    assert "could not have seen" in text


def test_noise_without_a_promise_needs_one_to_be_tested_against() -> None:
    with pytest.raises(InvalidInputError, match="epsilon"):
        audit(PlanarGaussian(100))
    assert audit(PlanarGaussian(100), epsilon=EPSILON, draws=DRAWS, rng=1).refuted


@pytest.mark.parametrize(
    ("mechanism", "options"),
    [
        (lambda points: points, {}),
        (PlanarLaplace(1), {"draws": 0}),
        (PlanarLaplace(1), {"confidence": 1}),
        (PlanarLaplace(1), {"epsilon": -1}),
        (PlanarLaplace(1), {"places": [[math.nan, 0]]}),
        (SphericalLaplace(1), {"places": [[0, 91]]}),
        (lambda points: points[1:], {"epsilon": 1}),
        (lambda points: points * math.nan, {"epsilon": 1}),
        ("planar", {"epsilon": 1}),
    ],
)
def test_bad_arguments_are_refused(mechanism: Any, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        audit(mechanism, **options)
