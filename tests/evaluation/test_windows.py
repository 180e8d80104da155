import pickle

import geopandas
import numpy as np
import pytest

from geoind import Grid, InvalidInputError, Prior
from geoind.evaluation import PAPER_SETTING, Setting, compare, synthetic_city
from geoind.evaluation.windows import busiest_window, prior_from_lonlat, window_of


def test_the_busiest_window_holds_the_most_mass_of_all_windows() -> None:
    rng = np.random.default_rng(1)
    wide = Prior.from_counts(Grid(0, 0, cell=10, columns=12, rows=7), rng.random(84) ** 4)
    table = wide.mass.reshape(7, 12)
    window = busiest_window(wide, columns=3, rows=2)
    sums = {(r, c): table[r : r + 2, c : c + 3].sum() for r in range(6) for c in range(10)}
    row, column = max(sums, key=lambda corner: sums[corner])
    assert isinstance(window.sites, Grid)
    assert (window.sites.x, window.sites.y) == (10 * column, 10 * row)
    assert window.mass == pytest.approx(table[row : row + 2, column : column + 3].ravel() / sums[row, column])


def test_a_window_larger_than_the_grid_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="window"):
        busiest_window(Prior.uniform(Grid(0, 0, cell=1, columns=3, rows=3)), columns=4, rows=1)


@pytest.mark.parametrize("lon", [2.35, 179.999])
def test_data_is_binned_where_most_of_it_lies(lon: float) -> None:
    rng = np.random.default_rng(2)
    crowd = np.array([lon, 48.86]) + rng.normal(0, 0.001, (2000, 2))
    crowd[:, 0] = (crowd[:, 0] + 180) % 360 - 180
    elsewhere = np.column_stack([rng.uniform(-180, 180, 500), rng.uniform(-80, 80, 500)])
    prior = prior_from_lonlat(np.vstack([elsewhere, crowd]))
    middle = prior.sites.xy.mean(axis=0)
    near = np.hypot(*(prior.sites.xy - middle).T) < 250
    assert prior.mass[near].sum() > 0.8
    assert len(prior.mass) == 81


@pytest.mark.slow
def test_the_cells_of_the_prior_are_the_cells_of_the_city() -> None:
    city = synthetic_city(64)
    truth = busiest_window(city.prior, columns=9, rows=9)
    found = prior_from_lonlat(city.sample_lonlat(200_000, rng=3), cell=city.grid.cell)
    assert np.abs(np.sort(found.mass) - np.sort(truth.mass)).sum() < 0.2


def test_no_data_at_all_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="at least one"):
        prior_from_lonlat(np.empty((0, 2)))


def test_a_window_knows_where_on_earth_it_is() -> None:
    rng = np.random.default_rng(4)
    crowd = np.array([24.94, 60.17]) + rng.normal(0, 0.001, (1000, 2))
    window = window_of(crowd)
    west, south, east, north = window.bounds
    inside = (crowd[:, 0] > west) & (crowd[:, 0] < east) & (crowd[:, 1] > south) & (crowd[:, 1] < north)
    # The window's edges are lines of the plane, not meridians.
    assert inside.sum() == pytest.approx(window.positions, abs=20)
    assert window.positions > 800


def test_a_setting_of_ones_own_places_goes_back_to_degrees() -> None:
    rng = np.random.default_rng(5)
    crowd = np.array([24.94, 60.17]) + rng.normal(0, 0.001, (1000, 2))
    frame = geopandas.GeoSeries.from_xy(*crowd.T, crs=4326).to_crs(3067)
    setting = Setting.of_places({"array": crowd, "frame": frame}, columns=3, rows=3)
    assert setting.prior("array").mass == pytest.approx(setting.prior("frame").mass, abs=0.02)
    lonlat = setting.lonlat("frame")
    assert lonlat.mean(axis=0) == pytest.approx([24.94, 60.17], abs=0.002)
    assert pickle.loads(pickle.dumps(setting)).lonlat("frame") == pytest.approx(lonlat)
    assert set(compare(setting)["prior"]) == {"array", "frame"}
    with pytest.raises(InvalidInputError, match="has no projection"):
        PAPER_SETTING.lonlat("uniform")
