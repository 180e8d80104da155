from pathlib import Path
from typing import Any

import numpy as np
import pytest

from geoind import EACH_ROW, obfuscate_file
from geoind.errors import InvalidInputError
from geoind.files import read_places
from geoind.files.folders import others_in
from geoind.files.places import files_in


def places(path: Path, **where: Any) -> list[list[float]]:
    return np.concatenate(list(read_places(path, **where))).tolist()  # type: ignore[no-any-return]


def test_places_come_as_they_are_and_rows_without_one_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("lat,lon,home_lat,home_lon,address\n1.5,2.5,5,6,x\n,,7,8,y\n3.5,4.5,,,z\n")
    assert places(file, lat="lat", lon="lon") == [[2.5, 1.5], [4.5, 3.5]]
    assert places(file, lat="home_lat", lon="home_lon") == [[6.0, 5.0], [8.0, 7.0]]


def test_a_bad_row_is_refused_with_its_file_and_number_and_no_coordinate(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("lat,lon\n1.5,2.5\n12.345,north\n")
    with pytest.raises(InvalidInputError, match=r"a\.csv: row 2") as caught:
        places(file)
    assert "12.345" not in str(caught.value)


def test_the_columns_of_a_release_are_those_of_its_record(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("from_y,from_x,to_y,to_x\n1.5,2.5,5,6\n3.5,4.5,7,8\n")
    where: dict[str, Any] = {"lon": ["from_x", "to_x"], "lat": ["from_y", "to_y"]}
    obfuscate_file(file, tmp_path / "out.csv", epsilon=0.01, person=EACH_ROW, **where)
    found = sorted(places(tmp_path / "out.csv"))
    assert np.abs(np.subtract(found, [[2.5, 1.5], [4.5, 3.5], [6.0, 5.0], [8.0, 7.0]])).max() < 0.1


def test_a_folder_stands_for_its_files_of_places(tmp_path: Path) -> None:
    for name in ("b.csv", "a.ndjson", "note.md", "a.ndjson.geoind.json", "_half.csv", ".hidden.csv"):
        (tmp_path / name).write_text("")
    assert [file.name for file in files_in([tmp_path])] == ["a.ndjson", "b.csv"]
    assert [file.name for file in others_in(tmp_path)] == ["note.md"]
    with pytest.raises(InvalidInputError, match="no such file"):
        files_in([tmp_path / "nowhere.csv"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInputError, match="holds no files of places"):
        files_in([tmp_path / "empty"])
