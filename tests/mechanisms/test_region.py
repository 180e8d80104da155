import numpy as np
import pytest
import shapely

from geoind import ClosestIn, InvalidInputError, PlanarLaplace, PostProcessed, SphericalLaplace

CRESCENT = shapely.Point(0, 0).buffer(500).difference(shapely.Point(200, 0).buffer(400))


def test_every_report_ends_inside_and_inner_ones_stay() -> None:
    raw = PlanarLaplace(0.005).sample(np.zeros((2000, 2)), rng=1)
    moved = ClosestIn(CRESCENT)(raw)
    assert shapely.distance(CRESCENT, shapely.points(moved)).max() < 1e-9
    inside = shapely.contains_xy(CRESCENT, raw)
    np.testing.assert_array_equal(moved[inside], raw[inside])


def test_a_report_moves_by_its_distance_to_the_region() -> None:
    raw = PlanarLaplace(0.005).sample(np.zeros((500, 2)), rng=2)
    moved = ClosestIn(CRESCENT)(raw)
    np.testing.assert_allclose(
        np.hypot(*(moved - raw).T), shapely.distance(CRESCENT, shapely.points(raw)), atol=1e-9
    )


def test_truncation_is_a_step() -> None:
    mechanism = PostProcessed(PlanarLaplace(0.005), ClosestIn(shapely.box(0, 0, 100, 100)))
    reports = mechanism.sample([[50, 50]] * 300)
    assert reports.min() >= 0
    assert reports.max() <= 100


@pytest.mark.parametrize("region", [shapely.Polygon(), None, shapely.Polygon([(0, 0), (1, 1), (1, 0), (0, 1)])])
def test_a_region_is_valid_and_not_empty(region: object) -> None:
    with pytest.raises(InvalidInputError, match="region must"):
        ClosestIn(region)  # type: ignore[arg-type]


def test_a_region_in_degrees_says_so_and_holds_degrees() -> None:
    paris = shapely.box(2.2, 48.8, 2.5, 48.9)
    reports = PostProcessed(SphericalLaplace(0.0001), ClosestIn(paris, space="lonlat")).sample(
        [[2.3, 48.85]] * 200
    )
    assert shapely.intersects_xy(paris, reports).all()
    with pytest.raises(InvalidInputError, match="longitude"):
        ClosestIn(shapely.box(0, 0, 5000, 5000), space="lonlat")
    with pytest.raises(TypeError):
        ClosestIn(paris, "lonlat")  # type: ignore[call-arg]
    with pytest.raises(InvalidInputError, match="space must be"):
        ClosestIn(paris, space="degrees")  # type: ignore[arg-type]
