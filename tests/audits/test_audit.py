"""The audit finds each classical mistake, and accuses nobody who keeps the promise."""

import math

import numpy as np
import pytest

from geoind import (
    Grid,
    InvalidInputError,
    PlanarGaussian,
    PlanarLaplace,
    PostProcessed,
    Projected,
    Projection,
    SphericalLaplace,
    audit,
)

EPSILON = math.log(4) / 200
SCALE = 1 / EPSILON
DRAWS = 30_000


def polar(radius, rng):
    angle = rng.uniform(0, 2 * np.pi, len(radius))
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def per_axis(rng):
    return lambda points: points + rng.laplace(scale=SCALE, size=points.shape)


def exponential_radius(rng):
    return lambda points: points + polar(rng.exponential(SCALE, len(points)), rng)


def metres_as_equal_degrees(rng):
    return lambda points: points + polar(rng.gamma(2, SCALE, len(points)), rng) / 111_195


def degrees_for_metres(rng):
    return lambda points: points + polar(rng.gamma(2, SCALE, len(points)), rng) * 1e-6


def redrawn_until_inside(rng):
    noise = PlanarLaplace(EPSILON)

    def sample(points):
        reports = noise.sample(points, rng=rng)
        while (outside := ((reports < 0) | (reports > 900)).any(axis=1)).any():
            reports[outside] = noise.sample(points[outside], rng=rng)
        return reports

    return sample


def fixed_seed(_):
    return lambda points: PlanarLaplace(EPSILON).sample(points, rng=42)


def one_angle_for_all(rng):
    def sample(points):
        angle = rng.uniform(0, 2 * np.pi, len(points)).round()
        radius = rng.gamma(2, SCALE, len(points))
        return points + np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])

    return sample


def truncated_radius(rng):
    return lambda points: points + polar(np.minimum(rng.gamma(2, SCALE, len(points)), 1.5 * SCALE), rng)


@pytest.mark.parametrize(
    ("mistake", "options", "at_least"),
    [
        (per_axis, {}, 1.3),
        (exponential_radius, {}, 1.8),
        (metres_as_equal_degrees, {"lonlat": True, "places": [[10.0, 60.0]]}, 1.7),
        (degrees_for_metres, {"lonlat": True, "places": [[10.0, 60.0]]}, 1.5),
        (redrawn_until_inside, {"places": [[0.0, 0.0]]}, 1.05),
        (fixed_seed, {}, 5),
        (one_angle_for_all, {}, 1.5),
        (truncated_radius, {}, 1.5),
    ],
)
def test_a_classical_mistake_is_found(mistake, options, at_least):
    result = audit(mistake(np.random.default_rng(1)), epsilon=EPSILON, draws=DRAWS, **options)
    assert result.refuted
    assert result.epsilon > at_least * EPSILON
    assert "BROKEN" in str(result)


@pytest.mark.parametrize(
    ("mechanism", "options"),
    [
        (PlanarLaplace(EPSILON), {}),
        (PlanarLaplace(EPSILON), {"places": [[448_262.25, 5_411_932.7]]}),
        (SphericalLaplace(EPSILON), {"places": [[2.35, 48.86], [179.9999, 80.0]]}),
        (Projected(PlanarLaplace(EPSILON), Projection(2.35, 48.86)), {"places": [[2.4, 48.9]]}),
        (PostProcessed(PlanarLaplace(EPSILON), Grid(0, 0, cell=100, columns=9, rows=9).snap), {}),
        (PostProcessed(SphericalLaplace(EPSILON), lambda reports: reports), {"places": [[2.35, 48.86]]}),
    ],
)
def test_nobody_who_keeps_the_promise_is_accused_and_most_of_it_is_seen(mechanism, options):
    result = audit(mechanism, draws=DRAWS, rng=1, **options)
    assert not result.refuted
    assert result.claimed == pytest.approx(EPSILON, rel=5e-5)
    assert result.epsilon > 0.8 * EPSILON


def test_accusations_are_as_rare_as_the_confidence_says():
    results = [audit(PlanarLaplace(EPSILON), draws=400, confidence=0.9, rng=seed) for seed in range(12)]
    assert sum(result.refuted for result in results) <= 2


@pytest.mark.parametrize(("draws", "least"), [(10_000, 0.8), (100_000, 0.9)])
def test_more_draws_see_more(draws, least):
    result = audit(PlanarLaplace(EPSILON), draws=draws, rng=3)
    assert least < result.epsilon / EPSILON < 1
    assert 1 < result.smallest_visible / EPSILON < 1 / least


def test_what_is_called_visible_is_seen():
    small = audit(PlanarLaplace(EPSILON), draws=DRAWS, rng=1).smallest_visible
    assert audit(PlanarLaplace(small * 1.05), epsilon=EPSILON, draws=DRAWS, rng=4).refuted


def test_bounds_of_several_places_share_the_confidence():
    once = audit(PlanarLaplace(EPSILON), draws=5000, rng=1)
    often = audit(PlanarLaplace(EPSILON), draws=5000, rng=1, places=np.zeros((6, 2)))
    assert len(often.findings) == 6 * len(once.findings)
    assert often.smallest_visible > once.smallest_visible


def test_the_result_says_what_it_could_not_have_seen():
    text = str(audit(PlanarLaplace(EPSILON), draws=2000, rng=1))
    assert "not refuted" in text
    assert "could not have seen" in text


def test_noise_without_a_promise_needs_one_to_be_tested_against():
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
def test_bad_arguments_are_refused(mechanism, options):
    with pytest.raises(InvalidInputError):
        audit(mechanism, **options)
