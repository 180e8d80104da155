import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from geoind import (
    EACH_ROW,
    InvalidInputError,
    PlanarLaplace,
    Projected,
    Projection,
    SphericalLaplace,
    obfuscate_file,
)
from geoind.files import read_places, read_reports
from geoind.files.folders import files_in, others_in
from geoind.tables import ReleaseRecord, sidecar_of

EPSILON = 0.01
LONLAT = np.array([[2.35, 48.86], [2.36, 48.85], [-73.98, 40.75]])
PROMISE = ReleaseRecord.of(SphericalLaplace(EPSILON), unit="each row").to_json()


def text_of(name: str) -> str:
    pairs = [dict(zip(("lon", "lat"), place, strict=True)) for place in LONLAT.tolist()]
    features = [{"type": "Feature", "properties": {}, "geometry": point(place)} for place in LONLAT.tolist()]
    return {
        "csv": "id,lat,lon\n" + "".join(f"7,{lat},{lon}\n" for lon, lat in LONLAT),
        "tsv": "LNG\tLatitude\n" + "".join(f"{lon}\t{lat}\n" for lon, lat in LONLAT),
        "ndjson": "\n".join(map(json.dumps, pairs)),
        "geojsonl": "\n".join(map(json.dumps, features)),
        "geojson": json.dumps({"type": "FeatureCollection", "features": features}),
    }[name]


def point(place: list[float]) -> dict[str, object]:
    return {"type": "Point", "coordinates": place}


@pytest.mark.parametrize(("kind", "packed"), [("csv", False), ("tsv", True), ("ndjson", False), ("geojson", True)])
def test_text_files_and_their_sidecars(tmp_path: Path, kind: str, packed: bool) -> None:
    path = tmp_path / f"reports.{kind}{'.gz' if packed else ''}"
    text = text_of(kind).encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    sidecar_of(path).write_text(PROMISE)
    reports = read_reports(path)
    assert reports.lonlat == pytest.approx(LONLAT)
    assert reports.epsilon.tolist() == [EPSILON] * 3


def parquet(path: Path, epsilon: float = EPSILON) -> Path:
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table({"lon": LONLAT[:, 0], "lat": LONLAT[:, 1]})
    promise = ReleaseRecord.of(SphericalLaplace(epsilon), unit="each row").to_json()
    pyarrow.parquet.write_table(table.replace_schema_metadata({"geoind": promise}), path)
    return path


def test_parquet_holds_its_own_record(tmp_path: Path) -> None:
    reports = read_reports(parquet(tmp_path / "reports.parquet"))
    assert np.array_equal(reports.lonlat, LONLAT)
    assert reports.epsilon.tolist() == [EPSILON] * 3


def test_geoparquet_in_any_crs(tmp_path: Path) -> None:
    import geopandas

    frame = geopandas.GeoSeries.from_xy(*LONLAT[:2].T, crs=4326).to_crs(2154)
    path = tmp_path / "reports.geoparquet"
    geopandas.GeoDataFrame(geometry=frame).to_parquet(path)
    sidecar_of(path).write_text(PROMISE)
    assert read_reports(path).lonlat == pytest.approx(LONLAT[:2])


def test_files_and_folders_with_their_own_epsilons_add_up(tmp_path: Path) -> None:
    (tmp_path / "day").mkdir()
    parquet(tmp_path / "day" / "a.parquet", 0.01)
    parquet(tmp_path / "day" / "b.parquet", 0.02)
    other = parquet(tmp_path / "other.parquet", 0.03)
    assert read_reports(tmp_path / "day", other).epsilon.tolist() == [0.01] * 3 + [0.02] * 3 + [0.03] * 3


def test_columns_may_be_named_and_missing_places_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "reports.csv"
    path.write_text("a,b\n1.5,2.5\n,\n3.5,4.5\n")
    reports = read_reports(path, epsilon=0.5, lon="b", lat="a")
    assert reports.lonlat.tolist() == [[2.5, 1.5], [4.5, 3.5]]


def test_an_epsilon_that_is_not_the_files_own_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "reports.csv"
    path.write_text("lon,lat\n2.35,48.86\n")
    sidecar_of(path).write_text(ReleaseRecord.of(SphericalLaplace(0.01), unit="each row").to_json())
    assert read_reports(path, epsilon=0.01).epsilon == [0.01]
    with pytest.raises(InvalidInputError, match="was made with epsilon"):
        read_reports(path, epsilon=0.02)
    sidecar_of(path).write_text("{}")
    with pytest.raises(InvalidInputError, match=r"release record of .*: mechanism must be there"):
        read_reports(path, epsilon=0.01)


def test_what_is_not_known_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "reports.csv"
    path.write_text(text_of("csv"))
    with pytest.raises(InvalidInputError, match="give `epsilon=`"):
        read_reports(path)
    assert len(read_reports(path, epsilon=0.01).lonlat) == 3
    with pytest.raises(InvalidInputError, match="epsilon must be positive"):
        read_reports(path, epsilon=0.0)
    planar = Projected(PlanarLaplace(0.01), Projection(2.35, 48.86))
    sidecar_of(path).write_text(ReleaseRecord.of(planar, unit="each row").to_json())
    with pytest.raises(InvalidInputError, match="Projected"):
        read_reports(path)
    sidecar_of(path).write_text("{}")
    with pytest.raises(InvalidInputError, match=r"release record of .*: mechanism must be there"):
        read_reports(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "x,y\n1.25,2\n", "no column is called lon"),
        ("a.csv", "lon,lng,lat\n1.25,2,3\n", "several columns"),
        ("a.csv", "lon,lat\n1.25,91.25\n", "row 1"),
        ("a.csv", "lon,lat\n1.25,north\n", "row 1"),
        ("a.csv", "lon,lat\n", "no reports"),
        ("a.csv.gz", "lon,lat\n1.25,3\n", "compressed"),
        ("a.ndjson", "{1.25", "a JSON object per line"),
        ("a.geojson", "1.25", "a.geojson"),
        ("a.parquet", "1.25", "cannot be read"),
        ("a.gpkg", "1.25", "does not begin like a .gpkg file"),
    ],
)
def test_bad_files_are_refused_without_a_word_of_their_content(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(InvalidInputError, match=message) as caught:
        read_reports(path, epsilon=0.01)
    assert "1.25" not in str(caught.value)


def test_missing_files_and_empty_folders(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="no such file"):
        read_reports(tmp_path / "none.csv")
    with pytest.raises(InvalidInputError, match="no files of places"):
        read_reports(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "tsv", "ndjson", "geojson"])
def test_what_obfuscate_file_writes_is_read_with_its_promise(tmp_path: Path, kind: str) -> None:
    source, target = tmp_path / f"people.{kind}", tmp_path / f"reports.{kind}"
    source.write_text(text_of(kind))
    obfuscate_file(source, target, person=EACH_ROW, mechanism=SphericalLaplace(100.0))
    reports = read_reports(target)
    # A noise of two centimetres, on the lattice of a metre.
    assert reports.lonlat == pytest.approx(LONLAT, abs=2e-5)
    assert reports.epsilon.tolist() == [100.0] * 3


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
