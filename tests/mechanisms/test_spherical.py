"""Every report on the globe is that of the whole real numbers, however close they come to a border."""

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from flint import arb, arb_series, ctx
from pyproj import Geod

from geoind import InvalidInputError, KeyedRandomness, SphericalGaussian, SphericalLaplace
from geoind.arrays import FloatArray
from geoind.distances import EARTH_RADIUS, haversine
from geoind.mechanisms import snap_lonlat
from geoind.mechanisms.noise import ARRAYS, SCALARS, half_diagonal, polynomial
from geoind.mechanisms.spherical import (
    FLAT,
    LARGEST_SIGMA,
    LEAST_SCALES,
    POLAR_FACTOR,
    TEMPERATE_FACTOR,
    WGS84_FACTOR,
    error_of,
    travel,
)
from tests.given_words import GivenWords
from tests.goodness import counts_fit, fits, is_uniform
from tests.mechanisms.draws import GLOBES, globe_draws, polar_draws, source_of
from tests.mechanisms.ground import CONFIDENCE, DRAWS, EPSILON, share_within


@pytest.mark.slow
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
    monkeypatch.setattr("geoind.mechanisms.noise.BLOCK", 7)
    assert list(map(tuple, globe.sample(points, rng=source_of(list(draws))).tolist())) == list(reports)


@pytest.mark.parametrize(("scales", "decimals"), [(20.0, 0), (1e3, 3), (1e6, 5)])
def test_the_error_that_is_allowed_for_is_the_proven_one(scales: float, decimals: int) -> None:
    """2 * 2^-36 / k + 2^-43 radians, as docs/exact-draws.md has it."""
    radians = 2 * 2.0**-36 / scales + 2.0**-43
    assert error_of(scales, decimals) == pytest.approx(math.degrees(radians) * 10**decimals, rel=1e-12)
    gaussian = SphericalGaussian(400_000.0)
    radians = 2 * 2.0**-36 * gaussian.noise_arc + 2.0**-43
    assert gaussian._draws.error == pytest.approx(math.degrees(radians) * 1e5, rel=1e-12)


@pytest.mark.slow
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
    monkeypatch.setattr(type(wide), "exactly", lambda *drawn: undecided.append(drawn))
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


@pytest.mark.slow
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


PLACES = {
    "equator": (10.0, 0.0),
    "Paris": (2.2945, 48.8584),
    "60 N": (24.9, 60.0),
    "85 N": (-45.0, 85.0),
    "antimeridian": (180.0, -16.5),
    "near the pole": (13.0, 89.9995),
    "south pole": (0.0, -90.0),
}


def draw(epsilon: float, place: tuple[float, float], n: int = 100_000, seed: int = 7) -> FloatArray:
    return SphericalLaplace(epsilon).sample(np.tile(place, (n, 1)), rng=seed)


def metres(place: tuple[float, float], reports: FloatArray) -> FloatArray:
    return np.asarray(haversine(np.array([place]), reports)[0])


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("epsilon", [EPSILON, 2e-4, 4e-6])
def test_distances_fit_and_five_percent_more_or_less_is_seen(epsilon: float, place: tuple[float, float]) -> None:
    globe = SphericalLaplace(epsilon)
    # The distributions are 0.027 apart in the sense of Kolmogorov; 25,000 draws see 0.014.
    radius = metres(place, draw(epsilon, place, 25_000))
    assert fits(radius, globe.radius_cdf)
    assert not fits(1.05 * radius, globe.radius_cdf)
    assert not fits(0.95 * radius, globe.radius_cdf)


@pytest.mark.parametrize("name", ["equator", "Paris", "60 N", "85 N", "antimeridian"])
def test_bearings_are_uniform(name: str) -> None:
    lon, lat = PLACES[name]
    reports = draw(1e-3, (lon, lat))
    far = reports[metres((lon, lat), reports) > 200]  # near ones show the lattice
    bearing, *_ = Geod(a=EARTH_RADIUS, b=EARTH_RADIUS).inv(np.full(len(far), lon), np.full(len(far), lat), *far.T)
    assert is_uniform(np.radians(bearing))


def test_longitudes_around_a_pole_are_uniform() -> None:
    reports = draw(1e-3, PLACES["south pole"])
    assert is_uniform(np.radians(reports[metres(PLACES["south pole"], reports) > 200][:, 0]))


def tangent(place: tuple[float, float], reports: FloatArray) -> FloatArray:
    """Metres east and north of a place, exact in distance and bearing from it."""
    n = len(reports)
    bearing, _, distance = Geod(ellps="WGS84").inv(np.full(n, place[0]), np.full(n, place[1]), *reports.T)
    return np.column_stack([distance * np.sin(np.radians(bearing)), distance * np.cos(np.radians(bearing))])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["equator", "60 N", "85 N", "antimeridian", "near the pole"])
@pytest.mark.parametrize("bearing", [0, 60])
def test_histograms_of_two_neighbours_stay_within_the_promise(name: str, bearing: float) -> None:
    """Both neighbours' reports in cells of the ground: no ratio beyond e^(epsilon d) but by chance."""
    apart = 1.5 / EPSILON
    here = PLACES[name]
    lon, lat, _ = Geod(ellps="WGS84").fwd(*here, bearing, apart)
    edges = np.linspace(-5, 5, 11) / EPSILON
    counts = [
        np.histogram2d(east, north, bins=[edges, edges])[0]
        for place, seed in ((here, 1), ((lon, lat), 2))
        for east, north in [tangent(here, draw(EPSILON, place, 400_000, seed)).T]
    ]
    enough = (counts[0] > 100) & (counts[1] > 100)
    ratio = np.log(counts[0][enough] / counts[1][enough])
    deviation = np.sqrt(1 / counts[0][enough] + 1 / counts[1][enough])
    assert enough.sum() > 30
    assert (np.abs(ratio) - 5 * deviation).max() <= EPSILON * apart
    # The same cells must see a promise that is 10 % smaller be broken, or the test shows nothing.
    assert np.abs(ratio).max() > 0.9 * EPSILON * apart


def test_great_circles_never_exceed_geodesics_by_more_than_the_factor() -> None:
    rng = np.random.default_rng(0)
    a = np.column_stack([rng.uniform(-180, 180, 200_000), np.degrees(np.arcsin(rng.uniform(-1, 1, 200_000)))])
    bearing, step = rng.uniform(0, 360, 200_000), rng.uniform(1, 3000, 200_000)
    lon, lat, _ = Geod(ellps="WGS84").fwd(a[:, 0], a[:, 1], bearing, step)
    phi, psi = np.radians(a[:, 1]), np.radians(lat)
    half = np.sin((psi - phi) / 2) ** 2 + np.cos(phi) * np.cos(psi) * np.sin(np.radians(lon - a[:, 0]) / 2) ** 2
    ratio = 2 * EARTH_RADIUS * np.arcsin(np.sqrt(half)) / step
    assert 1.005 < ratio.max() <= WGS84_FACTOR


@pytest.mark.parametrize("epsilon", [3e-6, 1e-5, 3e-4, 4e-3, 0.05])
def test_the_arc_solves_its_equation(epsilon: float) -> None:
    globe = SphericalLaplace(epsilon)
    k = globe._scales
    radii = np.array([1e-6, 0.1, 1.0, 5.0, 20.0, 56.0])
    for r, arc in zip(radii, globe._arc(radii, radii - np.log1p(radii), ARRAYS), strict=True):
        with mpmath.workdps(40):
            target = (1 + mpmath.mpf(r)) * mpmath.exp(-mpmath.mpf(r))
            exact = mpmath.findroot(
                lambda s, t=target: mpmath.log(mpmath.cos(s / k) + k * mpmath.sin(s / k)) - s - mpmath.log(t),
                float(arc * k),
            )
        assert arc * k == pytest.approx(float(exact), rel=1e-11, abs=1e-9)
        assert globe._arc(float(r), float(r - np.log1p(r)), SCALARS) * k == pytest.approx(
            arc * k, rel=1e-11, abs=1e-9
        )
    assert globe._arc(np.zeros(1), np.zeros(1), ARRAYS)[0] == 0


def test_travelling_meets_an_independent_geodesic_on_the_sphere() -> None:
    rng = np.random.default_rng(2)
    lon, lat = rng.uniform(-180, 180, 1000), rng.uniform(-90, 90, 1000)
    arc, bearing = rng.uniform(0, 3, 1000), rng.uniform(0, 2 * math.pi, 1000)
    north, east = np.sin(arc) * np.cos(bearing), np.sin(arc) * np.sin(bearing)
    turned, risen = travel(lat, np.cos(arc), north, east, ARRAYS)
    there = np.column_stack([lon + turned, risen])
    wanted = Geod(a=EARTH_RADIUS, b=EARTH_RADIUS).fwd(lon, lat, np.degrees(bearing), arc * EARTH_RADIUS)
    turn = np.radians(there[:, 0] - wanted[0])
    np.testing.assert_allclose(there[:, 1], wanted[1], atol=1e-9)
    np.testing.assert_allclose(np.sin(turn / 2) * np.cos(np.radians(wanted[1])), 0, atol=1e-11)


def test_the_mean_and_the_quantile_describe_the_reports() -> None:
    globe = SphericalLaplace(EPSILON)
    radius = metres(PLACES["Paris"], draw(EPSILON, PLACES["Paris"], 300_000))
    assert radius.mean() == pytest.approx(globe.mean_radius, rel=0.005)
    assert np.quantile(radius, 0.95) == pytest.approx(globe.radius_quantile(0.95), rel=0.01)
    assert globe.radius_quantile([[0.5]]).shape == (1, 1)


@pytest.mark.parametrize("decimals", range(6))
def test_a_coarser_lattice_rounds_the_same_draws(decimals: int) -> None:
    globe = SphericalLaplace(EPSILON, decimals=decimals)
    reports = globe.sample(np.tile(PLACES["Paris"], (100, 1)), rng=3)
    fine = SphericalLaplace(EPSILON).sample(np.tile(PLACES["Paris"], (100, 1)), rng=3)
    np.testing.assert_array_equal(reports, np.round(reports, decimals))
    assert np.abs(reports - fine).max() <= 0.5 * 10.0**-decimals + 0.5e-5
    assert globe.radius_quantile(0.5) == SphericalLaplace(EPSILON).radius_quantile(0.5)


def test_cells_of_a_coarse_lattice_are_hit_as_often_as_the_density_says() -> None:
    globe = SphericalLaplace(0.01, decimals=3)
    lon, lat = 24.9003, 60.0004
    reports = globe.sample(np.tile([lon, lat], (300_000, 1)), rng=11)
    rows, columns = np.arange(-8, 9), np.arange(-16, 17)
    parts = (np.arange(40) + 0.5) / 40 - 0.5
    fine_lat = 60.0 + (rows[:, None] + parts).ravel() / 1000
    fine_lon = 24.9 + (columns[:, None] + parts).ravel() / 1000
    there = np.stack(np.meshgrid(fine_lon, fine_lat), axis=-1).reshape(-1, 2)
    k = globe.noise_epsilon * EARTH_RADIUS
    area = np.cos(np.radians(there[:, 1])) * math.radians(1 / 40_000) ** 2
    density = (1 + k * k) / (2 * math.pi) * np.exp(-globe.noise_epsilon * metres((lon, lat), there)) * area
    expected = density.reshape(len(rows), 40, len(columns), 40).sum(axis=(1, 3)) * len(reports)
    edges = [np.append(lines - 0.5, lines[-1] + 0.5) for lines in (rows, columns)]
    counts, *_ = np.histogram2d((reports[:, 1] - 60) * 1000, (reports[:, 0] - 24.9) * 1000, bins=edges)
    assert counts_fit(counts.ravel(), expected.ravel())
    assert not counts_fit(np.roll(counts, 1, axis=1).ravel(), expected.ravel())


@pytest.mark.parametrize("decimals", [-1, 6, 2.5, "3", None, math.nan])
def test_decimals_are_a_whole_number_up_to_five(decimals: object) -> None:
    with pytest.raises(InvalidInputError, match="decimals must be"):
        SphericalLaplace(EPSILON, decimals=decimals)  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [0.1, EPSILON, 1e-3, 4e-6])
def test_only_the_ellipsoid_costs_epsilon(epsilon: float) -> None:
    assert SphericalLaplace(epsilon).noise_epsilon == epsilon / WGS84_FACTOR


@pytest.mark.parametrize("lat", [89.9999, -89.9999, 89.99999, 90.0])
def test_around_a_pole_every_place_has_its_one_name(lat: float) -> None:
    reports = draw(0.1, (13.0, lat), 200_000)
    assert (reports[:, 0] > -180).all()
    assert (reports[:, 0] <= 180).all()
    assert not reports[np.abs(reports[:, 1]) == 90, 0].any()
    assert len(np.unique(reports[np.abs(reports[:, 1]) == 89.99999, 0])) == 36
    np.testing.assert_array_equal(reports, snap_lonlat(reports))


def test_a_report_does_not_depend_on_its_neighbours() -> None:
    globe = SphericalLaplace(1e-4)
    rng = np.random.default_rng(4)
    points = np.column_stack([rng.uniform(-180, 180, 5000), rng.uniform(-80, 80, 5000)])
    key = KeyedRandomness(bytes(32), np.arange(5001))
    alone = globe.sample(points, rng=KeyedRandomness(bytes(32), np.arange(5000)))
    with_one_across_the_pole = globe.sample(np.vstack([points, [[0.0, 90.0]]]), rng=key)[:-1]
    np.testing.assert_array_equal(alone, with_one_across_the_pole)


def test_no_radius_holds_every_report() -> None:
    globe = SphericalLaplace(EPSILON)
    for p in (1.0, [0.5, 1.0]):
        with pytest.raises(InvalidInputError, match="p must be less than 1"):
            globe.radius_quantile(p)


def test_a_huge_epsilon_reports_the_nearest_place_of_the_lattice() -> None:
    assert draw(1e9, (2.2945, 48.8584), 5).tolist() == [[2.2945, 48.8584]] * 5


@pytest.mark.parametrize("epsilon", [1e-9, 2.8e-6])
def test_noise_that_would_reach_round_the_earth_is_refused(epsilon: float) -> None:
    with pytest.raises(InvalidInputError, match=r"at least 2.9e-06.*round the Earth"):
        SphericalLaplace(epsilon)


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, "0.1", None])
def test_epsilon_must_be_positive_and_finite(epsilon: object) -> None:
    with pytest.raises(InvalidInputError, match="epsilon must be"):
        SphericalLaplace(epsilon)  # type: ignore[arg-type]


@pytest.mark.parametrize("lat", [-90.0, -60.0, 0.0, 48.86, 85.0])
@pytest.mark.parametrize("epsilon", [1e-5, EPSILON, 0.5])
def test_on_the_globe_the_promise_holds_in_wgs84_metres_and_is_hardly_wasteful(lat: float, epsilon: float) -> None:
    mechanism = SphericalLaplace(epsilon)
    reach = mechanism.reach(CONFIDENCE)
    # 4.5 standard deviations of a binomial share: a right radius fails once in 300 000.
    tolerance = 4.5 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / DRAWS)
    assert share_within(mechanism, 30.0, lat, reach) >= CONFIDENCE - tolerance
    assert share_within(mechanism, 30.0, lat, 0.95 * (reach - 2 * half_diagonal(mechanism.decimals))) < CONFIDENCE


SMALLEST_RADIUS, LARGEST_RADIUS = 6.8e-4, 19.2
"""Planar radii, in units of the noise's scale, that doubles decide."""


def radii() -> Iterator[tuple[float, float]]:
    """Intervals that cover all of them."""
    low = SMALLEST_RADIUS
    while low < LARGEST_RADIUS:
        yield low, (low := low + min(0.1, low / 10))


def residual_of_the_series(r: Fraction) -> tuple[Fraction, Fraction]:
    """Return the coefficients of h and h^2, where h = 1 / k^2, of what the series leaves of the law's equation.

    With T = k tan(arc) the law is atan(T sqrt h) / sqrt h - ln(1 + T) + ln(1 + h T^2) / 2 = r - ln(1 + r).
    """
    first = r * (r**2 / 3 - r / 6 - Fraction(1, 2))
    second = r * (
        Fraction(2, 15) * r**4
        - Fraction(31, 180) * r**3
        - Fraction(17, 36) * r**2
        + Fraction(5, 24) * r
        + Fraction(3, 8)
    )
    log_first, log_second = first / (1 + r), second / (1 + r) - (first / (1 + r)) ** 2 / 2
    return (
        first - r**3 / 3 - log_first + r**2 / 2,
        second - r**2 * first + r**5 / 5 - log_second + r * first - r**4 / 4,
    )


def test_the_series_for_near_reports_has_a_certificate() -> None:
    """The tangent of the arc is off by less than 2e-12 of the noise's scale, for every k from `FLAT` on: a proof.

    Both coefficients are polynomials of degree 8 at most over (1 + r)^2; they vanish at more places than that. So
    the residual is h^3 times an enclosure of its third coefficient; the slope of the law is at least
    T / (1 + T) / 1.1.
    """
    for n in range(1, 21):
        assert not any(residual_of_the_series(Fraction(n, 3)))
    r, k = 1.7, 3000.0
    coefficients = SphericalLaplace(k * WGS84_FACTOR / EARTH_RADIUS)._tangent
    h = k**-2
    series = (1 + h * (r**2 / 3 - r / 6 - 1 / 2)) + h**2 * (
        2 / 15 * r**4 - 31 / 180 * r**3 - 17 / 36 * r**2 + 5 / 24 * r + 3 / 8
    )
    assert k * polynomial(coefficients, r) == pytest.approx(series, rel=1e-15)
    largest = FLAT**-2
    cap, ctx.cap = ctx.cap, 4
    try:
        with ctx.workprec(128):
            for low, high in radii():
                radius = arb((low + high) / 2, 0.5001 * (high - low))
                step = arb_series([arb(largest / 2, 0.5001 * largest), 1], prec=4)
                factor = (
                    step * (radius**2 / 3 - radius / 6 - arb(1) / 2)
                    + step**2
                    * (
                        arb(2) / 15 * radius**4
                        - arb(31) / 180 * radius**3
                        - arb(17) / 36 * radius**2
                        + arb(5) / 24 * radius
                        + arb(3) / 8
                    )
                    + 1
                )
                tangent = factor * radius
                square = step * tangent * tangent
                # The arc tangent's series, with an error far below: its argument is at most 0.01.
                arc = arb_series([arb(0)], prec=4)
                for power in range(12, -1, -1):
                    arc = arc * -square + arb(1) / (2 * power + 1)
                residual = tangent * arc - ((1 + tangent) / (1 + radius)).log() + (1 + square).log() / 2 - radius
                bound = abs(residual[3]) * arb(largest) ** 3 + arb(1e-40)
                assert 1.1 * bound * (1 + radius) / radius < 2e-12
    finally:
        ctx.cap = cap


def test_the_search_for_far_reports_has_a_certificate() -> None:
    """Four steps of Newton's method end within 1e-30 of the arc, but for rounding, for k below `FLAT`: a proof.

    f(s) = s - ln(cos a + k sin a) - excess, s = k a, is increasing and convex: f' = T (1 + h) / (1 + T) and
    f'' = (1 + h) (1 + h T^2) / (1 + T)^2 with T = k tan a >= s. The start leaves h^2 times the second coefficient
    of the residual, since the first vanishes; an error e becomes f'' / (2 f') e^2 at most.
    """
    for r in (Fraction(n, 3) for n in range(1, 9)):
        assert r * (r + 3) / 6 * (1 + r) == r**2 / 2 + r**3 / 6 + r * (r + 3) / 6
    cap, ctx.cap = ctx.cap, 3
    try:
        with ctx.workprec(128):
            for largest in np.geomspace(FLAT**-2, 1.0001 * LEAST_SCALES**-2, 12)[1:].tolist():
                for low, high in radii():
                    radius = arb((low + high) / 2, 0.5001 * (high - low))
                    h = arb_series([arb(largest / 2, 0.5001 * largest), 1], prec=3)
                    start = radius - h * (radius * (radius + 3) / 6)
                    square = h * start * start
                    cos, sinc = arb_series([arb(0)], prec=3), arb_series([arb(0)], prec=3)
                    for power in range(14, -1, -1):
                        cos = cos * -square + 1 / arb(math.factorial(2 * power))
                        sinc = sinc * -square + 1 / arb(math.factorial(2 * power + 1))
                    left = start - ((cos + start * sinc) / (1 + radius)).log() - radius
                    residual = float(abs(left[2]).abs_upper()) * largest**2 + 1e-30
                    nearest = low - largest * high * (high + 3) / 6
                    error = 1.2 * residual * (1 + nearest) / nearest
                    least = nearest - error
                    assert residual < error * least / (1 + least)
                    bend = 1 + math.tan((high + error) * math.sqrt(largest)) ** 2
                    for _ in range(4):
                        error = bend * (1 + error) / (2 * least * (1 + least)) * error**2
                    assert error < 1e-30
    finally:
        ctx.cap = cap


TRUTH = np.array([[24.93, 60.17]])


@pytest.mark.parametrize("sigma", [800.0, 300_000.0])
@pytest.mark.parametrize(("factor", "right"), [(1.0, True), (1.05, False), (0.95, False)])
def test_the_arc_is_rayleigh_with_the_promised_scale(sigma: float, factor: float, right: bool) -> None:
    noise = SphericalGaussian(sigma)
    reports = noise.sample(np.repeat(TRUTH, 20_000, axis=0), rng=4)
    away = haversine(TRUTH, reports)[0]
    scale = factor * sigma * WGS84_FACTOR
    assert fits(away, lambda metres: 1 - np.exp(-((np.asarray(metres) / scale) ** 2) / 2)) is right
    assert away.mean() == pytest.approx(noise.mean_radius, rel=0.02)


def test_every_bearing_is_as_likely_as_any_other() -> None:
    reports = SphericalGaussian(800.0).sample(np.repeat(TRUTH, 20_000, axis=0), rng=5)
    east, north = ((reports - TRUTH) * [math.cos(math.radians(TRUTH[0, 1])), 1.0]).T
    assert is_uniform(np.arctan2(north, east))


def test_the_scale_is_that_of_wgs84_metres_and_not_less() -> None:
    noise = SphericalGaussian(1000.0)
    assert noise.noise_arc * EARTH_RADIUS == pytest.approx(1000.0 * 1.0057)
    assert noise.epsilon == math.inf


def test_its_reach_is_the_rayleigh_quantile_and_the_lattice() -> None:
    noise = SphericalGaussian(1000.0)
    quantile = 1005.7 * math.sqrt(-2 * math.log(0.05))
    assert 0 < noise.reach(0.95) - quantile < 0.01 * quantile
    coarse = SphericalGaussian(1000.0, decimals=2)
    assert coarse.reach(0.95) - noise.reach(0.95) == pytest.approx(790, abs=10)


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.nan, 500_001.0, True])
def test_a_sigma_that_is_no_noise_or_goes_round_the_earth_is_refused(sigma: float) -> None:
    with pytest.raises(InvalidInputError, match="sigma must be"):
        SphericalGaussian(sigma)


def test_a_whole_number_of_metres_is_the_same_noise() -> None:
    key = KeyedRandomness(bytes(32), [7])
    assert SphericalGaussian(800).sample(TRUTH, rng=key).tolist() == (
        SphericalGaussian(800.0).sample(TRUTH, rng=key).tolist()
    )


@pytest.mark.parametrize("decimals", [-1, 6, 2.5, "5"])
def test_decimals_are_those_of_the_lattice(decimals: Any) -> None:
    with pytest.raises(InvalidInputError, match="decimals"):
        SphericalGaussian(100.0, decimals=decimals)


def test_noise_may_reach_as_far_as_the_earth_allows_and_no_farther() -> None:
    assert SphericalGaussian(LARGEST_SIGMA).sigma == LARGEST_SIGMA
    with pytest.raises(InvalidInputError, match="round the Earth"):
        SphericalGaussian(math.nextafter(LARGEST_SIGMA, math.inf))
