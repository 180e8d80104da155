import gzip
import pickle
from pathlib import Path

import geopandas
import numpy as np
import pytest

from geoind import Grid, InvalidInputError, Prior
from geoind.evaluation import PAPER_SETTING, Setting, compare, synthetic_city
from geoind.evaluation.checkins import (
    busiest_window,
    load_geolife,
    load_places,
    load_snap,
    prior_from_lonlat,
    window_of,
)

SNAP = """0\t2010-10-12T00:21:28Z\t40.5\t-73.75\t23261
7\t2010-10-11T20:21:20Z\t40.75\t-73.5\tab12
7\t2010-10-11T20:21:20Z\t0.0\t0.0\t00000
8\t2010-10-11T20:21:20Z\t\t\t
"""
PLT = """Geolife trajectory
WGS 84
Altitude is in Feet
Reserved 3
0,2,255,My Track,0,0,2,8421376
0
39.906631,116.385564,0,492,40097.5864583333,2009-10-11,14:04:30
400.166667,116.385564,0,492,40097.5864583333,2009-10-11,14:04:31
39.906554,116.385625,0,492,40097.5865162037,2009-10-11,14:04:35
"""


def test_snap_check_ins_are_read_plain_and_compressed(tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text(SNAP)
    with gzip.open(tmp_path / "packed.txt.gz", "wt") as file:
        file.write(SNAP)
    for name in ("plain.txt", "packed.txt.gz"):
        table = load_snap(tmp_path / name)
        assert table["person"].tolist() == ["0", "7"]
        assert table[["lat", "lon"]].to_numpy().tolist() == [[40.5, -73.75], [40.75, -73.5]]
        assert table["venue"].tolist() == ["23261", "ab12"]
        assert str(table["time"].iloc[0]) == "2010-10-12 00:21:28+00:00"


def test_geolife_folders_are_read_with_the_person_from_the_folder(tmp_path: Path) -> None:
    for person in ("000", "153"):
        folder = tmp_path / "Data" / person / "Trajectory"
        folder.mkdir(parents=True)
        (folder / "20091011140430.plt").write_text(PLT)
    table = load_geolife(tmp_path)
    assert table["person"].tolist() == ["000", "000", "153", "153"]
    assert table["lat"].iloc[0] == 39.906631
    assert str(table["time"].iloc[1]) == "2009-10-11 14:04:35+00:00"
    assert load_places(tmp_path / "Data" / "153")["person"].unique().tolist() == ["153"]


def test_what_is_no_data_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("once upon a time\n")
    with pytest.raises(InvalidInputError, match="SNAP"):
        load_snap(tmp_path / "notes.txt")
    with pytest.raises(InvalidInputError, match=r"no \.plt"):
        load_places(tmp_path)
    with pytest.raises(InvalidInputError, match="does not exist"):
        load_places(tmp_path / "missing")
    (tmp_path / "bad.plt").write_text(PLT.replace("39.906554", "north"))
    with pytest.raises(InvalidInputError, match="trajectory"):
        load_geolife(tmp_path)


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
    with pytest.raises(InvalidInputError, match="where on Earth"):
        PAPER_SETTING.lonlat("uniform")
