import math

import mpmath
import numpy as np
import pytest
from pyproj import Geod

from geoind import InvalidInputError, SphericalLaplace
from geoind.arrays import FloatArray
from geoind.distances import EARTH_RADIUS, haversine
from geoind.mechanisms.sphere import WGS84_FACTOR, _sin_cos, _travel
from geoind.space.functions import ARRAYS, SCALARS
from tests.goodness import fits, is_uniform

EPSILON = math.log(4) / 200
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
    return haversine(np.array([place]), reports)[0]


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("epsilon", [EPSILON, 2e-4, 4e-6])
def test_distances_fit_and_five_percent_more_or_less_is_seen(epsilon: float, place: tuple[float, float]) -> None:
    globe = SphericalLaplace(epsilon)
    radius = metres(place, draw(epsilon, place))
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


@pytest.mark.parametrize("name", ["equator", "60 N", "85 N", "antimeridian", "near the pole"])
@pytest.mark.parametrize("bearing", [0, 60])
def test_histograms_of_two_neighbours_stay_within_the_promise(name: str, bearing: float) -> None:
    """Both neighbours' reports in cells of the ground: no ratio beyond e^(epsilon d) but by chance."""
    apart = 1.5 / EPSILON
    here = PLACES[name]
    lon, lat, _ = Geod(ellps="WGS84").fwd(*here, bearing, apart)
    edges = np.linspace(-5, 5, 11) / EPSILON
    counts = [
        np.histogram2d(*tangent(here, draw(EPSILON, place, 400_000, seed)).T, bins=[edges, edges])[0]
        for place, seed in ((here, 1), ((lon, lat), 2))
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
    lon, lat, _ = Geod(ellps="WGS84").fwd(*a.T, bearing, step)
    phi, psi = np.radians(a[:, 1]), np.radians(lat)
    half = np.sin((psi - phi) / 2) ** 2 + np.cos(phi) * np.cos(psi) * np.sin(np.radians(lon - a[:, 0]) / 2) ** 2
    ratio = 2 * EARTH_RADIUS * np.arcsin(np.sqrt(half)) / step
    assert 1.005 < ratio.max() <= WGS84_FACTOR


@pytest.mark.parametrize("epsilon", [3e-6, 1e-5, 3e-4, 4e-3, 0.05])
def test_the_arc_solves_its_equation(epsilon: float) -> None:
    globe = SphericalLaplace(epsilon)
    k = globe._scales
    radii = np.array([1e-6, 0.1, 1.0, 5.0, 20.0, 56.0])
    for r, arc in zip(radii, globe._arc(radii, ARRAYS), strict=True):
        with mpmath.workdps(40):
            target = (1 + mpmath.mpf(r)) * mpmath.exp(-mpmath.mpf(r))
            exact = mpmath.findroot(
                lambda s, t=target: mpmath.log(mpmath.cos(s / k) + k * mpmath.sin(s / k)) - s - mpmath.log(t),
                float(arc * k),
            )
        assert arc * k == pytest.approx(float(exact), rel=1e-11, abs=1e-9)
        assert globe._arc(float(r), SCALARS) * k == pytest.approx(arc * k, rel=1e-11, abs=1e-9)
    assert globe._arc(np.zeros(1), ARRAYS)[0] == 0


@pytest.mark.parametrize("epsilon", [EPSILON, 1e-5])
def test_scalars_and_arrays_make_the_same_report_of_the_same_words(epsilon: float) -> None:
    globe = SphericalLaplace(epsilon)
    rng = np.random.default_rng(5)
    words = rng.integers(0, 1 << 64, size=(500, 2), dtype=np.uint64)
    points = np.column_stack([rng.uniform(-180, 180, 500), rng.uniform(-90, 90, 500)])
    points[:4] = [[180, 90], [-180, -90], [0, 89.99999], [180, 0]]

    class Fixed:
        def words(self, points: FloatArray, count: int, purpose: str) -> object:  # noqa: ARG002
            return words

    together = globe.sample(points, rng=Fixed())  # type: ignore[arg-type]
    one_by_one = [
        globe.sample_one(*p, *w)
        for p, w in zip(points.tolist(), words.tolist(), strict=True)  # type: ignore[arg-type]
    ]
    np.testing.assert_allclose(together, one_by_one, atol=2.1 * 10.0**-globe.decimals)
    assert (together == one_by_one).mean() > 0.99


def test_travelling_meets_an_independent_geodesic_on_the_sphere() -> None:
    rng = np.random.default_rng(2)
    lon, lat = rng.uniform(-180, 180, 1000), rng.uniform(-90, 90, 1000)
    arc, bearing = rng.uniform(0, 3, 1000), rng.uniform(0, 2 * math.pi, 1000)
    there = np.column_stack(_travel(lon, lat, arc, bearing, ARRAYS))
    wanted = Geod(a=EARTH_RADIUS, b=EARTH_RADIUS).fwd(lon, lat, np.degrees(bearing), arc * EARTH_RADIUS)
    turn = np.radians(there[:, 0] - wanted[0])
    np.testing.assert_allclose(there[:, 1], wanted[1], atol=1e-9)
    np.testing.assert_allclose(np.sin(turn / 2) * np.cos(np.radians(wanted[1])), 0, atol=1e-11)


def test_half_angle_sines_and_cosines_are_those_of_the_angle() -> None:
    angles = np.linspace(-2 * math.pi, 2 * math.pi, 10_001)
    sin, cos = _sin_cos(angles, ARRAYS)
    np.testing.assert_allclose(sin, np.sin(angles), atol=4e-16)
    np.testing.assert_allclose(cos, np.cos(angles), atol=4e-16)


def test_the_mean_and_the_quantile_describe_the_reports() -> None:
    globe = SphericalLaplace(EPSILON)
    radius = metres(PLACES["Paris"], draw(EPSILON, PLACES["Paris"], 300_000))
    assert radius.mean() == pytest.approx(globe.mean_radius, rel=0.005)
    assert np.quantile(radius, 0.95) == pytest.approx(globe.radius_quantile(0.95), rel=0.01)
    assert globe.radius_quantile([[0.5]]).shape == (1, 1)


@pytest.mark.parametrize(
    ("epsilon", "decimals"), [(0.1, 5), (EPSILON, 5), (1e-3, 5), (5e-4, 4), (5e-5, 3), (4e-6, 2)]
)
def test_wider_noise_has_a_coarser_lattice_and_gives_up_little(epsilon: float, decimals: int) -> None:
    globe = SphericalLaplace(epsilon)
    assert globe.decimals == decimals
    assert 0.99 < globe.noise_epsilon * WGS84_FACTOR / epsilon < 1
    reports = draw(epsilon, PLACES["Paris"], 100)
    np.testing.assert_array_equal(reports, np.round(reports, decimals))


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
