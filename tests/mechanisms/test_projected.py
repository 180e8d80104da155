import math

import numpy as np
import pyproj
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from geoind import (
    Channel,
    ClosestIn,
    Grid,
    InvalidInputError,
    Ledger,
    Mechanism,
    PlanarGaussian,
    PlanarLaplace,
    PostProcessed,
    Projected,
    Projection,
    SphericalLaplace,
    audit,
    discretise,
    obfuscate,
    private_query,
)
from geoind.mechanisms.protocol import check_inside
from tests.mechanisms.ground import CONFIDENCE, DRAWS, EPSILON, PARIS, apart, share_within
from tests.trials import trials

GEOD = pyproj.Geod(ellps="WGS84")
NOISE = PlanarLaplace(0.01)
WEB = Projection.from_crs("EPSG:3857")
OSLO = shapely.box(10, 59.8, 11.5, 60.2)


@pytest.mark.slow
def test_web_mercator_says_what_it_gives_on_the_ground() -> None:
    oslo = Projected(NOISE, WEB, domain=OSLO)
    assert oslo.epsilon == pytest.approx(0.01 / math.cos(math.radians(60.2)), rel=0.003)
    result = audit(oslo, places=[[10.75, 59.91]], draws=20_000, rng=1)
    assert not result.refuted
    # The planar claim would be refuted: this is what the factor is for.
    assert result.epsilon > 0.01


def test_everything_that_asks_for_epsilon_gets_the_one_on_the_ground() -> None:
    oslo, ledger = Projected(NOISE, WEB, domain=OSLO), Ledger("sqlite://", budget=1)
    obfuscate(lat=59.91, lon=10.75, mechanism=oslo, ledger=ledger, person_id="ola")
    assert oslo.epsilon > 0.0199
    assert ledger.spent("ola") == pytest.approx(oslo.epsilon)
    assert private_query(lat=59.91, lon=10.75, radius=300, mechanism=oslo).epsilon == oslo.epsilon


def test_the_whole_web_mercator_has_no_epsilon() -> None:
    """Two neighbours on both sides of the antimeridian are 40 000 km apart in the plane."""
    with pytest.raises(InvalidInputError, match="pass a narrower domain"):
        Projected(NOISE, WEB)


@pytest.mark.parametrize(
    ("mechanism", "lat", "lon"),
    [
        (Projected(NOISE, WEB, domain=OSLO), 59.0, 10.5),
        (Projected(NOISE, PARIS), 45.76, 4.84),
        (Projected(NOISE, Projection.from_crs("EPSG:2154")), 52.52, 13.4),
    ],
    ids=["box", "100 km", "area of use"],
)
def test_places_outside_the_domain_are_refused_before_anything_is_charged(
    mechanism: Projected, lat: float, lon: float
) -> None:
    ledger = Ledger("sqlite://", budget=1)
    with pytest.raises(InvalidInputError, match="row 0 lies outside the domain") as caught:
        obfuscate(lat=lat, lon=lon, mechanism=mechanism, ledger=ledger, person_id="ana")
    assert ledger.spent("ana") == 0
    assert str(lat) not in str(caught.value)
    with pytest.raises(InvalidInputError, match="outside the domain"):
        private_query(lat=lat, lon=lon, radius=300, mechanism=mechanism)


@settings(max_examples=trials(60), deadline=None)
@given(
    st.sampled_from(["local", "EPSG:2154", "EPSG:27700", "EPSG:2193", "EPSG:3035", "EPSG:3031", "oslo"]),
    st.integers(0, 2**32 - 1),
)
def test_no_two_places_of_the_domain_are_farther_apart_in_the_plane_than_epsilon_says(
    name: str, seed: int
) -> None:
    """The law behind the promise: planar distance is at most scale times WGS84 distance, for every pair."""
    rng = np.random.default_rng(seed)
    if name == "local":
        mechanism = Projected(NOISE, PARIS)
        angle, radius = rng.uniform(0, 2 * math.pi, 400), 100_000 * np.sqrt(rng.uniform(0, 1, 400))
        lonlat = PARIS.to_lonlat(np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]))
    else:
        web = name == "oslo"
        mechanism = Projected(NOISE, WEB, domain=OSLO) if web else Projected(NOISE, Projection.from_crs(name))
        bounds = OSLO.bounds if web else mechanism.projection.area_of_use
        assert bounds is not None
        west, south, east, north = bounds
        width = (east - west) % 360 or 360
        lonlat = np.column_stack([west + width * rng.uniform(0, 1, 400), rng.uniform(south, north, 400)])
        lonlat[::4, 1], lonlat[1::4, 1] = north, south  # corners and borders, where it is hardest
        lonlat[:, 0] = (lonlat[:, 0] + 180) % 360 - 180
    here, there = lonlat[:200], lonlat[200:]
    close = here + rng.normal(0, 1e-4, here.shape)
    close[:, 1] = np.clip(close[:, 1], -90, 90)
    close[:, 0] = np.clip(close[:, 0], -180, 180)
    for other in (there, close):
        ground = np.asarray(GEOD.inv(here[:, 0], here[:, 1], other[:, 0], other[:, 1])[2])
        apart = np.hypot(*(mechanism.projection.to_xy(here) - mechanism.projection.to_xy(other)).T)
        assert (apart <= mechanism.epsilon / NOISE.epsilon * ground * (1 + 1e-9) + 1e-3).all()


def test_a_channel_says_what_it_promises_between_truths_that_are_not_sites() -> None:
    grid = Grid(0, 0, cell=100, columns=5, rows=5)
    channel = discretise(NOISE, grid)
    projected = Projected(channel, PARIS)
    assert projected.off_site_level == pytest.approx(channel.epsilon * 100 * math.sqrt(2))
    assert "1.41 more where a truth is not one of the mechanism's sites" in projected.guarantee
    assert "more" not in Projected(NOISE, PARIS).guarantee
    # The law: any two truths, a metre apart or far, taken for their sites.
    rng = np.random.default_rng(0)
    truth, other = rng.uniform(-50, 450, (2, 500, 2))
    other[:250] = truth[:250] + rng.normal(0, 1, (250, 2))
    one, two = (channel.matrix[grid.nearest(points)] for points in (truth, other))
    loss = np.abs(np.log(one) - np.log(two)).max(axis=1)
    allowed = channel.epsilon * np.hypot(*(truth - other).T) + channel.off_site_level
    assert (loss <= allowed * (1 + 1e-9)).all()
    assert (loss[:250] > channel.epsilon * np.hypot(*(truth - other)[:250].T)).any()


def test_the_promise_names_its_number_and_place_or_says_that_there_is_none() -> None:
    oslo = Projected(NOISE, WEB, domain=OSLO)
    assert oslo.guarantee.startswith(f"A privacy loss of at most {oslo.epsilon:.6g} per metre on the ground, ")
    assert oslo.guarantee.endswith(".")
    none = "No bound on the privacy loss per metre: PlanarGaussian has no epsilon."
    assert Projected(PlanarGaussian(150), PARIS).guarantee == none


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((SphericalLaplace(0.01), PARIS), "takes degrees, not metres"),
        ((NOISE, "EPSG:2154"), "projection must be a Projection"),
        (("noise", PARIS), "mechanism must have"),
    ],
    ids=str,
)
def test_what_does_not_fit_together_is_refused_once_at_the_start(
    arguments: tuple[object, object], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Projected(*arguments)  # type: ignore[arg-type]


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


@pytest.mark.slow
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


@pytest.mark.slow
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


def test_a_reach_is_refused_where_the_scale_falls_too_fast_around_the_domain() -> None:
    """Seen from the North Pole, a metre near the other pole is many in the plane, and soon far fewer."""
    arctic, south = Projection.from_crs("EPSG:3995"), shapely.box(10, -61, 12, -60)
    assert Projected(PlanarLaplace(1e-5), arctic, domain=south).reach(0.9) > 0
    with pytest.raises(InvalidInputError, match="varies too much where reports may fall"):
        Projected(PlanarLaplace(1e-6), arctic, domain=south).reach(0.9)
