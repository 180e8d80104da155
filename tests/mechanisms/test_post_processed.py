import numpy as np
import pytest
import shapely

from geoind import (
    ClosestIn,
    Grid,
    InvalidInputError,
    Places,
    PlanarLaplace,
    PosteriorRemap,
    PostProcessed,
    Prior,
    SphericalLaplace,
)
from geoind.arrays import FloatArray

NOISE = PlanarLaplace(0.01)
GRID = Grid(0, 0, cell=100, columns=9, rows=9)


def test_a_step_that_loses_reports_is_refused() -> None:
    def lose(reports: FloatArray) -> FloatArray:
        return reports[1:]

    with pytest.raises(InvalidInputError, match="step must return"):
        PostProcessed(PlanarLaplace(1.0), lose).sample(np.zeros((3, 2)))


def test_a_step_that_measures_in_metres_does_not_follow_degrees() -> None:
    for step in (GRID.snap, PosteriorRemap(Prior.uniform(Places(GRID.xy)), NOISE)):
        with pytest.raises(InvalidInputError, match="SphericalLaplace speaks degrees, not metres"):
            PostProcessed(SphericalLaplace(0.01), step)
    assert PostProcessed(SphericalLaplace(0.01), ClosestIn(shapely.box(0, 0, 1, 1))).space == "lonlat"


def test_what_is_no_mechanism_and_no_step_is_refused_when_they_are_combined() -> None:
    with pytest.raises(InvalidInputError, match="step must be callable, got Grid"):
        PostProcessed(NOISE, GRID)  # type: ignore[arg-type]
    for step in (GRID.snap, ClosestIn(shapely.box(0, 0, 1, 1))):
        with pytest.raises(InvalidInputError, match="mechanism must have"):
            PostProcessed("noise", step)  # type: ignore[arg-type]


def test_a_step_of_the_user_may_tell_how_far_it_moves_a_report() -> None:
    class North:
        space = "lonlat"

        def __call__(self, reports: FloatArray) -> FloatArray:
            return np.asarray(reports + np.array([0, 0.001]))

        def reach_after(self, reach: float) -> float:
            return reach + 112

    globe = SphericalLaplace(0.01)
    assert PostProcessed(globe, North()).reach(0.9) == globe.reach(0.9) + 112


def test_equal_parts_make_equal_mechanisms() -> None:
    assert PostProcessed(NOISE, GRID.snap) == PostProcessed(
        PlanarLaplace(0.01), Grid(0, 0, cell=100, columns=9, rows=9).snap
    )
