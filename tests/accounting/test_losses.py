import math
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import pytest
import shapely
from scipy.integrate import quad
from scipy.special import k0e, k1e

from geoind import (
    Channel,
    Grid,
    InvalidInputError,
    Places,
    PlanarGaussian,
    PlanarLaplace,
    PostProcessed,
    Projected,
    Projection,
    SphericalGaussian,
    SphericalLaplace,
    planar_geometric,
    randomised_response,
)
from geoind.accounting.accountant import delta_of_reports, level_bounds, level_of_reports
from geoind.accounting.losses import Loss, bounded_loss, excess, loss_of
from geoind.arrays import ArrayLike, FloatArray
from geoind.distances import EARTH_RADIUS
from geoind.mechanisms.protocol import RandomnessLike, Space
from geoind.mechanisms.spherical import WGS84_FACTOR
from tests.accounting.test_accountant import LN4, NOISE


def laplace(size: float) -> Loss:
    return loss_of(PlanarLaplace(size), 1.0)


def gaussian(ratio: float) -> Loss:
    return loss_of(PlanarGaussian(1 / ratio), 1.0)


def globe(scales: float, arc: float) -> Loss:
    noise = SphericalLaplace(scales * WGS84_FACTOR / EARTH_RADIUS)
    return loss_of(noise, arc * EARTH_RADIUS / WGS84_FACTOR)


def drawn_losses(size: float, draws: int = 400_000) -> FloatArray:
    rng = np.random.default_rng(5)
    radius, angle = rng.gamma(2, 1, draws), rng.uniform(0, 2 * math.pi, draws)
    return np.hypot(radius * np.cos(angle) - size, radius * np.sin(angle)) - radius


@pytest.mark.parametrize("size", [0.01, 1.0, math.log(4), 6.0, 40.0])
def test_the_laplace_loss_has_the_distribution_of_drawn_reports(size: float) -> None:
    losses = np.sort(drawn_losses(size))
    at, masses, _ = laplace(size).atoms(size / 7, above=True)
    # At multiples of half a step no cell is cut.
    halves = np.array([k * size / 14 for k in range(-13, 14)])
    exact = np.array([masses[at <= edge].sum() for edge in halves])
    assert np.abs(np.searchsorted(losses, halves) / len(losses) - exact).max() < 2.2 / math.sqrt(len(losses))


@pytest.mark.parametrize("size", [1e-6, 0.3, 5.0, 300.0])
def test_masses_agree_with_twenty_five_digits(size: float) -> None:
    with mpmath.workdps(25):
        w = mpmath.mpf(size) / 2
        first, second = mpmath.besselk(0, w), mpmath.besselk(1, w) / w

        def density(angle: mpmath.mpf) -> mpmath.mpf:
            bessel = first * mpmath.sin(angle) ** 2 + second
            return w**2 / mpmath.pi * mpmath.exp(w * mpmath.cos(angle)) * bessel

        level = size / 3
        turn = mpmath.acos(mpmath.mpf(1) / 3)
        points = mpmath.linspace(0, turn, 9)
        exact = mpmath.quad(
            lambda angle: density(angle) * (1 - mpmath.exp(level - size * mpmath.cos(angle))), points
        )
        assert mpmath.almosteq(mpmath.quad(density, mpmath.linspace(0, mpmath.pi, 17)), 1, 1e-15)
    assert laplace(size).delta(level, above=True) == pytest.approx(float(exact), rel=2e-14 + 1e-15 / size)


@pytest.mark.parametrize("loss", [laplace(0.7), laplace(30.0), gaussian(0.2), gaussian(5.0)])
@pytest.mark.parametrize("step", [0.003, 0.5])
def test_the_other_place_sees_a_distribution_as_well(loss: Loss, step: float) -> None:
    losses, masses, _ = loss.atoms(step, above=True)
    assert (masses >= 0).all()
    assert masses.sum() == pytest.approx(1, abs=1e-13)
    assert (masses * np.exp(-losses)).sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("loss", [laplace(1.4), gaussian(0.7), bounded_loss(1.4)])
@pytest.mark.parametrize("level", [0.0, 0.3, 1.2])
def test_delta_is_the_excess_of_the_atoms(loss: Loss, level: float) -> None:
    fine = excess(loss.atoms(0.001, above=True), level)
    assert loss.delta(level, above=True) == pytest.approx(fine, rel=1e-3)


def test_an_infinite_loss_counts_at_every_level() -> None:
    atoms = (np.array([-1.0, 2.0]), np.array([0.3, 0.6]), 0.1)
    assert excess(atoms, 50.0) == pytest.approx(0.1)
    assert excess(atoms, 0.0) == pytest.approx(0.1 + 0.6 * (1 - math.exp(-2)))


def test_a_bounded_loss_is_the_worst_of_its_size_and_may_be_nothing() -> None:
    for level in (0.0, 0.5, 1.0):
        worst = bounded_loss(1.4).delta(level, above=True)
        assert worst >= laplace(1.4).delta(level, above=True)
        assert worst == pytest.approx((math.exp(1.4) - math.exp(level)) / (1 + math.exp(1.4)))
        assert bounded_loss(1.4).delta(level, above=False) == 0


def globe_density(scales: float, arc: float, half: float) -> float:
    """Density of half the difference of the arcs to two places on the unit sphere, by integration of its sum."""

    def along(x: float) -> float:
        # u = arc / 2 + x^2 takes the singularity at the nearer end away.
        u = arc / 2 + x * x
        top = 2 * math.sin(u - half) * math.sin(u + half)
        return (
            2
            * math.exp(-scales * (u - half))
            * top
            / math.sqrt(2 * math.sin(arc + x * x) * math.sin(x * x) / x**2)
        )

    end = math.sqrt(min(math.pi - arc, 60 / scales) * (1 - 1e-12))
    integral = quad(along, 1e-300, end, epsabs=0, epsrel=1e-12, limit=500)[0]
    constant = (1 + scales**2) / (2 * math.pi * (1 + math.exp(-math.pi * scales)))
    return 2 * constant * integral / math.sqrt(2 * math.sin(arc / 2 + half) * math.sin(arc / 2 - half))


def plane_density(scales: float, arc: float, half: float) -> float:
    w, cos = scales * arc / 2, 2 * half / arc
    density = w * w / math.pi * math.exp(-w * (1 - cos)) * (k0e(w) * (1 - cos**2) + k1e(w) / w)
    return density / math.sqrt(arc**2 / 4 - half**2)


@pytest.mark.parametrize(("scales", "arc"), [(20, 0.3), (20, 0.01), (100, 0.02), (100, 0.49), (1000, 0.004)])
def test_the_globes_loss_is_the_planes_within_the_doubt(scales: int, arc: float) -> None:
    doubt = globe(scales, arc).doubt
    halves = arc / 2 * np.array([-0.99, -0.6, 0.0, 0.5, 0.97])
    ratios = [globe_density(scales, arc, half) / plane_density(scales, arc, half) for half in halves]
    assert np.abs(np.log(ratios)).max() < doubt
    assert np.abs(np.log(ratios)).max() > arc**2 / 100  # the curvature is seen


@pytest.mark.parametrize(("sigma", "radius"), [(500.0, 200.0), (50_000.0, 200.0), (400_000.0, 3e6), (2e5, 4e4)])
def test_gaussian_losses_on_the_globe_are_the_planes_within_their_bounds(sigma: float, radius: float) -> None:
    noise = SphericalGaussian(sigma)
    loss: Any = loss_of(noise, radius)
    rng = np.random.default_rng(9)
    ways = np.concatenate([rng.rayleigh(1, 100_000), rng.uniform(0, 12, 100_000)]) * noise.noise_arc
    angle, apart = rng.uniform(0, math.pi, ways.size), loss.ratio * noise.noise_arc
    # Haversines of the third side: exact for small ones, too.
    third = 2 * np.arcsin(
        np.sqrt(np.sin((ways - apart) / 2) ** 2 + np.sin(ways) * math.sin(apart) * np.sin(angle / 2) ** 2)
    )
    plane = (apart**2 - 2 * apart * ways * np.cos(angle)) / (2 * noise.noise_arc**2)
    areas = np.log(ways / np.sin(ways)) - np.log(third / np.sin(third))
    globe = (third**2 - ways**2) / (2 * noise.noise_arc**2) + areas
    rounding = 1e-12 * np.abs(plane).max() + 1e-13
    assert (globe - plane).max() <= loss.more + rounding
    assert (plane - globe).max() <= loss.less + rounding
    assert loss.more < 0.05 * loss.ratio


def test_the_loss_on_the_globe_lies_between_its_bounds() -> None:
    round_earth, plane = globe(30.0, 0.05), laplace(1.5)
    for level in (0.0, 0.7):
        truth = plane.delta(level, above=True)
        assert round_earth.delta(level, above=False) < truth < round_earth.delta(level, above=True)


@pytest.mark.parametrize(("scales", "arc"), [(20.0, 0.3), (20.0, 0.01), (20.0, 0.49)])
def test_the_mass_of_far_reports_on_the_globe_is_bounded_and_not_wasted(scales: float, arc: float) -> None:
    def density(angle: float) -> float:
        return math.exp(-scales * angle) * math.sin(angle)

    far = quad(density, 2 - arc, math.pi, epsabs=0)[0] / quad(density, 0, math.pi, epsabs=0)[0]
    _, _, bound = globe(scales, arc).atoms(0.1, above=True)
    assert far <= bound < 5 * far
    assert globe(scales, arc).atoms(0.1, above=False)[2] == 0


@pytest.mark.parametrize("above", [True, False])
@pytest.mark.parametrize(("sigma", "radius"), [(500.0, 200.0), (400_000.0, 400_000.0)])
def test_gaussian_atoms_on_the_globe_have_the_delta_of_one_report(
    sigma: float, radius: float, above: bool
) -> None:
    loss = loss_of(SphericalGaussian(sigma), radius)
    plane = gaussian(radius / sigma)
    for level in (0.0, 0.5):
        exact = loss.delta(level, above=above)
        assert excess(loss.atoms(0.001, above=above), level) == pytest.approx(exact, rel=1e-3)
        assert exact > plane.delta(level, above=True) if above else exact < plane.delta(level, above=True)


def test_what_is_done_to_reports_costs_nothing_and_the_globe_costs_what_the_plane_does() -> None:
    plane = level_of_reports(NOISE, reports=50, radius=200, delta=1e-5)
    snapped = PostProcessed(NOISE, Grid(0, 0, cell=100, columns=9, rows=9).snap)
    assert level_of_reports(snapped, reports=50, radius=200, delta=1e-5) == plane
    paris = Projected(NOISE, Projection(2.35, 48.86))
    ground = level_of_reports(paris, reports=50, radius=200, delta=1e-5)
    assert plane < ground == pytest.approx(plane, rel=1e-4)
    web = Projected(PlanarGaussian(800), Projection.from_crs("EPSG:3857"), domain=shapely.box(10, 59.8, 11, 60.2))
    stretched = level_of_reports(PlanarGaussian(400), reports=50, radius=200, delta=1e-5)
    assert level_of_reports(web, reports=50, radius=200, delta=1e-5) == pytest.approx(stretched, rel=0.02)
    lower, upper = level_bounds(SphericalLaplace(NOISE.epsilon), reports=50, radius=200, delta=1e-5)
    assert upper == pytest.approx(plane, rel=1e-6)
    assert upper >= plane
    assert 0.999 * plane < lower < plane
    flat = level_of_reports(PlanarGaussian(700.0), reports=50, radius=200, delta=1e-5)
    lower, upper = level_bounds(SphericalGaussian(700.0), reports=50, radius=200, delta=1e-5)
    assert flat < upper == pytest.approx(flat, rel=1e-5)
    assert 0.98 * flat < lower < flat


def test_of_an_unknown_mechanism_only_its_epsilon_counts() -> None:
    @dataclass(frozen=True)
    class Own:
        epsilon: float = NOISE.epsilon
        space: Space = "xy"

        def reach(self, confidence: float) -> float:
            return confidence

        def sample(self, points: ArrayLike, *, rng: RandomnessLike = None) -> FloatArray:  # noqa: ARG002
            return np.asarray(points)

    lower, upper = level_bounds(Own(), reports=100, radius=200, delta=1e-5)
    assert lower == 0
    assert level_of_reports(NOISE, reports=100, radius=200, delta=1e-5) < upper < 100 * LN4
    # Randomised response is the worst that there is.
    coin = randomised_response(2, epsilon=LN4)
    assert upper == pytest.approx(level_of_reports(coin, reports=100, radius=1, delta=1e-5), rel=1e-4)


def test_a_channel_on_the_ground_also_loses_what_moving_truths_to_sites_does() -> None:
    """Two truths a metre apart at a border of cells have the rows of two sites."""
    grid = Grid(0, 0, cell=300, columns=3, rows=3)
    channel = planar_geometric(grid, epsilon=0.005)
    city = Projected(channel, Projection(2.35, 48.86))
    here, there = channel.matrix[grid.nearest([[149.5, 149.5], [150.5, 150.5]])]
    for level in (0.1, 0.5):
        apart = float(np.maximum(here - math.exp(level) * there, 0).sum())
        assert delta_of_reports(city, reports=1, radius=2, level=level) >= apart > 0.1
    level = level_of_reports(city, reports=1, radius=2, delta=1e-9)
    assert np.log(here / there).max() <= level <= city.epsilon * 2 + city.off_site_level + 1e-6
    cafes = Places(grid.xy + 1.0)
    anywhere = Projected(Channel(cafes, cafes, channel.matrix), Projection(2.35, 48.86))
    with pytest.raises(InvalidInputError, match="not sites of the mechanism"):
        delta_of_reports(anywhere, reports=1, radius=2, level=0.5)
