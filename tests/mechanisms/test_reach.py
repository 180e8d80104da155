import math

import numpy as np
import pyproj
import pytest
import shapely

from geoind import (
    Channel,
    ClosestIn,
    Grid,
    InvalidInputError,
    Mechanism,
    Places,
    PlanarLaplace,
    PostProcessed,
    Projected,
    Projection,
    SphericalLaplace,
    discretise,
)
from geoind.arrays import FloatArray
from geoind.distances import GEODESIC_STRETCH
from geoind.mechanisms.protocol import check_inside
from geoind.space.lattice import half_diagonal

EPSILON = math.log(4) / 200
PARIS = Projection(2.35, 48.86)
GEOD = pyproj.Geod(ellps="WGS84")
CONFIDENCE = 0.9
DRAWS = 40_000


def share_within(mechanism: Mechanism, lon: float, lat: float, reach: float) -> float:
    """The share of reports within a WGS84 distance of the truth."""
    truth = np.tile([lon, lat], (DRAWS, 1))
    reports = mechanism.sample(truth, rng=1)
    return float(np.mean(apart(truth, reports) <= reach))


def apart(truth: FloatArray, reports: FloatArray) -> FloatArray:
    return np.asarray(GEOD.inv(truth[:, 0], truth[:, 1], reports[:, 0], reports[:, 1])[2])


@pytest.mark.parametrize("lat", [-90.0, -60.0, 0.0, 48.86, 85.0])
@pytest.mark.parametrize("epsilon", [1e-5, EPSILON, 0.5])
def test_on_the_globe_the_promise_holds_in_wgs84_metres_and_is_hardly_wasteful(lat: float, epsilon: float) -> None:
    mechanism = SphericalLaplace(epsilon)
    reach = mechanism.reach(CONFIDENCE)
    # 4.5 standard deviations of a binomial share: a right radius fails once in 300 000.
    tolerance = 4.5 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / DRAWS)
    assert share_within(mechanism, 30.0, lat, reach) >= CONFIDENCE - tolerance
    assert share_within(mechanism, 30.0, lat, 0.95 * (reach - 2 * half_diagonal(mechanism.decimals))) < CONFIDENCE


def test_no_wgs84_distance_is_longer_than_the_stretched_great_circle() -> None:
    rng = np.random.default_rng(5)
    lon, lat = rng.uniform(-180, 180, (2, 200_000)), np.degrees(np.arcsin(rng.uniform(-1, 1, (2, 200_000))))
    lat[0, :1000], lat[1, :1000] = 90.0, 90 - np.linspace(1e-3, 5, 1000)  # the stretch is largest at the poles
    sphere = pyproj.Geod(a=6_371_008.8, b=6_371_008.8)
    great = np.asarray(sphere.inv(lon[0], lat[0], lon[1], lat[1])[2])
    true = np.asarray(GEOD.inv(lon[0], lat[0], lon[1], lat[1])[2])
    ratio = true[great > 1] / great[great > 1]
    assert 1.0044 < ratio.max() < GEODESIC_STRETCH


def mechanisms() -> list[tuple[str, Mechanism, float]]:
    noise = PlanarLaplace(EPSILON)
    grid = Grid(-2000, -2000, cell=400, columns=11, rows=11)
    ell = shapely.Polygon([(-600, -600), (600, -600), (600, -400), (-400, -400), (-400, 600), (-600, 600)])
    return [
        ("local plane", Projected(noise, PARIS), 0.9),
        ("national grid", Projected(noise, Projection.from_crs("EPSG:2154")), 0.9),
        ("grid", Projected(PostProcessed(noise, grid.snap), PARIS), 0.3),
        ("convex", Projected(PostProcessed(noise, ClosestIn(shapely.box(-700, -700, 700, 700))), PARIS), 0.3),
        ("L-shaped", Projected(PostProcessed(noise, ClosestIn(ell)), PARIS), 0.1),
        ("channel", Projected(discretise(noise, grid), PARIS), 0.3),
    ]


def test_truncation_to_a_region_with_a_gap_can_double_the_error_and_is_allowed_for() -> None:
    """An island in a ring: a report that falls half way between them moves to the ring."""
    noise = PlanarLaplace(EPSILON)
    quantile = float(noise.radius_quantile(CONFIDENCE))
    island, sea = shapely.Point(0, 0).buffer(5), shapely.Point(0, 0).buffer(1.1 * quantile, quad_segs=64)
    region = island.union(shapely.Point(0, 0).buffer(5 * quantile).difference(sea))
    mechanism = Projected(PostProcessed(noise, ClosestIn(region)), PARIS)
    assert share_within(mechanism, 2.35, 48.86, 1.05 * quantile) < CONFIDENCE - 0.1
    assert share_within(mechanism, 2.35, 48.86, mechanism.reach(CONFIDENCE)) >= CONFIDENCE


@pytest.mark.parametrize(("name", "mechanism", "tight"), mechanisms(), ids=lambda value: str(value)[:15])
def test_planar_mechanisms_keep_the_promise_wherever_the_truth_is(
    name: str, mechanism: Mechanism, tight: float
) -> None:
    reach = mechanism.reach(CONFIDENCE)
    tolerance = 4.5 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / DRAWS)
    for x, y in [(0, 0), (-590, -590), (590, -590), (-590, 590), (190, -590)]:
        if name == "L-shaped" and (x, y) == (0, 0):
            continue
        [[lon, lat]] = PARIS.to_lonlat([[x, y]])
        check_inside(mechanism, np.array([[lon, lat]]))
        assert share_within(mechanism, lon, lat, reach) >= CONFIDENCE - tolerance
        # Not vacuous: a much smaller radius would not do at the centre.
        if (x, y) == (0, 0):
            assert share_within(mechanism, lon, lat, tight * reach) < CONFIDENCE


def test_a_channel_has_its_exact_quantile() -> None:
    street = Grid(0, 0, cell=100, columns=3, rows=1)
    channel = Channel(street, street, [[0.9, 0.1, 0.0], [0.05, 0.9, 0.05], [0.0, 0.2, 0.8]])
    half = 100 / math.sqrt(2)
    snap = Projected(PlanarLaplace(EPSILON), PARIS).reach(0.5) - report_planar(0.5)
    assert Projected(channel, PARIS).reach(0.8) == pytest.approx(0 + half + snap)
    assert Projected(channel, PARIS).reach(0.9) == pytest.approx(100 + half + snap)
    assert Projected(channel, PARIS).reach(0.999) == pytest.approx(100 + half + snap)


def report_planar(confidence: float) -> float:
    noise = PlanarLaplace(EPSILON)
    quantile = float(noise.radius_quantile(confidence)) * noise.epsilon / noise.noise_epsilon
    return quantile + noise.lattice_step / math.sqrt(2)


@pytest.mark.parametrize(
    "mechanism",
    [
        PostProcessed(SphericalLaplace(EPSILON), lambda reports: reports),
        PostProcessed(SphericalLaplace(EPSILON), ClosestIn(shapely.box(-1, -1, 1, 1))),
        Projected(PostProcessed(PlanarLaplace(EPSILON), lambda reports: reports), PARIS),
        Projected(Channel(Places([[0, 0]]), Places([[0, 0]]), [[1.0]]), PARIS),
    ],
    ids=["own step", "closest in degrees", "own planar step", "places"],
)
def test_a_mechanism_without_a_known_bound_is_refused(mechanism: Mechanism) -> None:
    with pytest.raises(InvalidInputError, match="report_reach"):
        mechanism.reach(0.95)


def test_a_truth_outside_the_region_is_refused_without_naming_it() -> None:
    box = ClosestIn(shapely.box(-700, -700, 700, 700))
    grid = Grid(0, 0, cell=100, columns=9, rows=9)
    noise = PlanarLaplace(EPSILON)
    for inner in (PostProcessed(noise, box), PostProcessed(noise, grid.snap), discretise(noise, grid)):
        with pytest.raises(InvalidInputError, match=r"outside the (region|grid)") as caught:
            check_inside(Projected(inner, PARIS), np.array([[2.5, 48.9]]))
        assert "2.5" not in str(caught.value)
    check_inside(SphericalLaplace(EPSILON), np.array([[2.5, 48.9]]))


def test_the_lattice_of_degrees_and_the_cell_are_part_of_the_reach() -> None:
    """Cells of a metre and no noise: how far a report is depends on the cell and the lattice alone."""
    grid = Grid(0, 0, cell=1.0, columns=50, rows=50)
    mechanism = Projected(Channel.deterministic(grid, grid, np.arange(len(grid))), PARIS)
    truth = PARIS.to_lonlat(np.random.default_rng(0).uniform(-0.5, 49.5, (20_000, 2)))
    farthest = apart(truth, mechanism.sample(truth)).max()
    assert 0.8 * mechanism.reach(0.5) < farthest <= mechanism.reach(0.5)


@pytest.mark.parametrize("epsilon", [1e-4, 2e-5])
def test_a_report_that_leaves_the_domain_is_within_reach_too(epsilon: float) -> None:
    """To the south of Oslo a metre of Web Mercator is worth more ground than anywhere in Oslo."""
    web = Projection.from_crs("EPSG:3857")
    mechanism = Projected(PlanarLaplace(epsilon), web, domain=shapely.box(10, 59.8, 11.5, 60.2))
    truth = np.array([[10.5, 59.8]])
    south = web.to_lonlat(web.to_xy(truth) - [[0.0, PlanarLaplace(epsilon).reach(0.9)]])
    assert apart(truth, south)[0] < mechanism.reach(0.9) < 1.3 * apart(truth, south)[0]
