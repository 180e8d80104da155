"""Every report on the globe is that of the whole real numbers, however close they come to a border."""

import math
from dataclasses import replace

import numpy as np
import pytest

from geoind import SphericalGaussian, SphericalLaplace
from geoind.mechanisms.globe import POLAR_FACTOR, TEMPERATE_FACTOR, GlobeDraws, error_of
from tests.given_words import GivenWords
from tests.mechanisms.draws import GLOBES, globe_draws, polar_draws, source_of


@pytest.mark.parametrize("globe", GLOBES, ids=repr)
@pytest.mark.parametrize("hunted", [False, True], ids=["random", "hunted"])
def test_reports_on_the_globe_are_those_of_a_hundred_digits(
    globe: SphericalLaplace | SphericalGaussian, hunted: bool
) -> None:
    points, draws, reports = zip(*globe_draws(globe, 30, hunted=hunted), strict=True)
    source = source_of(list(draws))
    assert list(map(tuple, globe.sample(points, rng=source).tolist())) == list(reports)
    assert (len(set(source.asked)) > 0.3 * len(points)) == hunted
    if hunted:
        error_free = replace(globe)
        object.__setattr__(error_free, "_draws", replace(error_free._draws, error=0.0))
        assert list(map(tuple, error_free.sample(points, rng=source_of(list(draws))).tolist())) != list(reports)


@pytest.mark.parametrize("globe", GLOBES[:1], ids=repr)
def test_reports_that_doubles_cannot_decide_go_to_their_own_rows_in_every_block(
    globe: SphericalLaplace | SphericalGaussian, monkeypatch: pytest.MonkeyPatch
) -> None:
    points, draws, reports = zip(*globe_draws(globe, 30, hunted=True), strict=True)
    monkeypatch.setattr("geoind.parallel.BLOCK", 7)
    assert list(map(tuple, globe.sample(points, rng=source_of(list(draws))).tolist())) == list(reports)


@pytest.mark.parametrize(("scales", "decimals"), [(20.0, 0), (1e3, 3), (1e6, 5)])
def test_the_error_that_is_allowed_for_is_the_proven_one(scales: float, decimals: int) -> None:
    """2 * 2^-36 / k + 2^-43 radians, as docs/exact-draws.md has it."""
    radians = 2 * 2.0**-36 / scales + 2.0**-43
    assert error_of(scales, decimals) == pytest.approx(math.degrees(radians) * 10**decimals, rel=1e-12)
    gaussian = SphericalGaussian(400_000.0)
    radians = 2 * 2.0**-36 * gaussian.noise_arc + 2.0**-43
    assert gaussian._draws.error == pytest.approx(math.degrees(radians) * 1e5, rel=1e-12)


@pytest.mark.parametrize("globe", GLOBES, ids=repr)
def test_reports_next_to_a_border_near_a_pole_are_those_of_a_hundred_digits(
    globe: SphericalLaplace | SphericalGaussian,
) -> None:
    points, draws, reports = zip(*polar_draws(globe, 30), strict=True)
    source = source_of(list(draws))
    assert list(map(tuple, globe.sample(points, rng=source).tolist())) == list(reports)
    assert len(set(source.asked)) > 0.3 * len(points)


@pytest.mark.parametrize("globe", GLOBES, ids=repr)
def test_one_place_gets_the_report_that_it_gets_among_others(globe: SphericalLaplace | SphericalGaussian) -> None:
    rng = np.random.default_rng(8)
    words = rng.integers(0, 1 << 64, size=(800, 2), dtype=np.uint64)
    points = np.column_stack([rng.uniform(-180, 180, 800), rng.uniform(-90, 90, 800)])
    points[:5] = np.array([[180, 90], [-180, -90], [0, 89.99999], [180, 0], [-180, 79.9999]])
    together = globe.sample(points, rng=GivenWords([tuple(pair) for pair in words.tolist()]))
    apart = [globe._draws.report(*p, *w) for p, w in zip(points.tolist(), words.tolist(), strict=True)]
    assert list(map(tuple, together.tolist())) == apart
    exactly = [
        globe._draws.exactly(p[0], p[1], w[0], w[1], GivenWords([tuple(w)]), 0)
        for p, w in zip(points[:200].tolist(), words[:200].tolist(), strict=True)
    ]
    assert exactly == apart[:200]


@pytest.mark.parametrize(
    ("lat", "factor"),
    [(60.0, TEMPERATE_FACTOR), (83.0, POLAR_FACTOR), (-85.0, POLAR_FACTOR), (89.5, POLAR_FACTOR)],
)
def test_longitudes_are_left_to_exact_arithmetic_as_near_to_a_border_as_their_bound_says(
    lat: float, factor: float
) -> None:
    """With a bound wide enough to be counted: that share of the steps of a row is undecided, on both sides."""
    wide = replace(SphericalLaplace(0.05)._draws, error=0.02)
    points = np.column_stack([np.random.default_rng(1).uniform(-180, 180, 20_000), np.full(20_000, lat)])
    words = np.random.default_rng(2).integers(0, 1 << 64, (20_000, 2), np.uint64)
    undecided = wide._block(points, words, np.empty_like(points))
    decided = (1 - 2 * wide.error) * (1 - 2 * factor * wide.error)
    assert 1 - len(undecided) / len(points) == pytest.approx(decided, abs=0.015)


def test_a_single_place_is_left_to_exact_arithmetic_as_often_as_a_row_of_an_array(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wide = replace(SphericalLaplace(0.05)._draws, error=0.02)
    words = np.random.default_rng(2).integers(0, 1 << 64, (10_000, 2), np.uint64)
    undecided = []
    monkeypatch.setattr(GlobeDraws, "exactly", lambda *drawn: undecided.append(drawn))
    for first, second in words.tolist():
        wide.report(24.94, 60.0, first, second)
    decided = (1 - 2 * wide.error) * (1 - 2 * TEMPERATE_FACTOR * wide.error)
    assert 1 - len(undecided) / len(words) == pytest.approx(decided, abs=0.015)


@pytest.mark.parametrize("decimals", [0, 3, 5])
def test_next_to_nothing_is_left_to_exact_arithmetic(decimals: int) -> None:
    """About nine reports in a million, with five decimals."""
    points = np.tile([24.94, 60.17], (200_000, 1))
    words = np.random.default_rng(1).integers(0, 1 << 64, (200_000, 2), np.uint64)
    undecided = SphericalLaplace(0.01, decimals=decimals)._draws._block(points, words, np.empty_like(points))
    assert len(undecided) <= 12


@pytest.mark.parametrize("globe", GLOBES, ids=repr)
def test_a_single_place_takes_its_further_words_from_the_source_it_is_given(
    globe: SphericalLaplace | SphericalGaussian,
) -> None:
    asked = 0
    for (lon, lat), draw, report in globe_draws(globe, 15, hunted=True):
        source = source_of([draw])
        first, second = source.words(np.array([[lon, lat]]), 2, "").tolist()[0]
        assert globe._draws.report(lon, lat, first, second, source) == report
        asked += len(source.asked)
    assert asked
