from typing import Any

import numpy as np
import pytest

from geoind import InvalidInputError
from geoind.evaluation.synthetic import synthetic_city


def test_a_city_is_the_same_every_time() -> None:
    first, again = synthetic_city(32), synthetic_city(32)
    assert np.array_equal(first.prior.mass, again.prior.mass)
    assert np.array_equal(first.sample_lonlat(50, rng=3), again.sample_lonlat(50, rng=3))


def test_a_finer_grid_shows_the_same_city() -> None:
    coarse, fine = synthetic_city(32), synthetic_city(128)
    merged = fine.prior.mass.reshape(32, 4, 32, 4).sum(axis=(1, 3)).ravel()
    np.testing.assert_allclose(merged, coarse.prior.mass, atol=1e-12)
    assert coarse.grid.bounds == pytest.approx(fine.grid.bounds)


def test_the_river_is_empty_and_crowds_stand_out() -> None:
    mass = synthetic_city(64).prior.mass
    assert (mass == 0).sum() > 50
    assert mass.max() > 20 * np.median(mass)


def test_samples_follow_the_mass_and_fill_their_cells() -> None:
    city = synthetic_city(16)
    points = city.sample_xy(200_000, rng=7)
    cells = city.grid.nearest(points)
    share = np.bincount(cells, minlength=256) / len(points)
    assert 0.5 * np.abs(share - city.prior.mass).sum() < 0.02
    within = (points - city.grid.xy[cells]) / city.grid.cell
    assert np.abs(within).max() <= 0.5
    assert within.var(axis=0) == pytest.approx([1 / 12, 1 / 12], rel=0.02)


def test_degrees_and_metres_are_the_same_people() -> None:
    city = synthetic_city(16, lon=-73.98, lat=40.75)
    xy = city.projection.to_xy(city.sample_lonlat(100, rng=5))
    np.testing.assert_allclose(xy, city.sample_xy(100, rng=5), atol=1e-3)


@pytest.mark.parametrize("bad", [{"cells": 0}, {"side": -1.0}, {"side": float("nan")}, {"lat": 91.0}])
def test_bad_parameters_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        synthetic_city(**bad)
