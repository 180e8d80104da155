import gzip
from pathlib import Path

import pytest

from geoind import InvalidInputError
from geoind.files import read_lonlat, read_traces

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
        table = read_traces(tmp_path / name)
        assert table["person"].tolist() == ["0", "7"]
        assert table[["lat", "lon"]].to_numpy().tolist() == [[40.5, -73.75], [40.75, -73.5]]
        assert str(table["time"].iloc[0]) == "2010-10-12 00:21:28+00:00"


def test_geolife_folders_are_read_with_the_person_from_the_folder(tmp_path: Path) -> None:
    for person in ("000", "153"):
        folder = tmp_path / "Data" / person / "Trajectory"
        folder.mkdir(parents=True)
        (folder / "20091011140430.plt").write_text(PLT)
    table = read_traces(tmp_path)
    assert table["person"].tolist() == ["000", "000", "153", "153"]
    assert table["lat"].iloc[0] == 39.906631
    assert str(table["time"].iloc[1]) == "2009-10-11 14:04:35+00:00"
    assert read_traces(tmp_path / "Data" / "153")["person"].unique().tolist() == ["153"]


def test_what_is_no_data_is_refused(tmp_path: Path) -> None:
    (tmp_path / "zeros.txt").write_text("7\t2010-10-11T20:21:20Z\t0.0\t0.0\t00000\n")
    with pytest.raises(InvalidInputError, match="no positions"):
        read_traces(tmp_path / "zeros.txt")
    with pytest.raises(InvalidInputError, match=r"no \.plt"):
        read_traces(tmp_path)
    with pytest.raises(InvalidInputError, match="does not exist"):
        read_traces(tmp_path / "missing")
    (tmp_path / "bad.plt").write_text(PLT.replace("39.906554", "north"))
    with pytest.raises(InvalidInputError, match=r"bad\.plt"):
        read_traces(tmp_path)


def test_positions_of_check_ins_of_a_folder_and_of_any_other_file_are_read(tmp_path: Path) -> None:
    (tmp_path / "snap.txt").write_text(SNAP)
    (tmp_path / "plain.csv").write_text("y,x\n40.5,-73.75\n40.75,-73.5\n")
    truth = [[-73.75, 40.5], [-73.5, 40.75]]
    assert read_lonlat(tmp_path / "snap.txt").tolist() == truth
    assert read_lonlat(tmp_path / "plain.csv", lon="x", lat="y").tolist() == truth
    (tmp_path / "walk").mkdir()
    (tmp_path / "walk" / "walk.plt").write_text(PLT)
    assert len(read_lonlat(tmp_path / "walk")) == 2
