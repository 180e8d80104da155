import os
from pathlib import Path
from typing import Any

import geopandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from geoind.tables.promise import read_promise

from geoind import InvalidInputError, Ledger
from geoind.files import Reading, obfuscate_file
from geoind.tables.keys import Key
from tests.files.test_delimited import obfuscated, reason

ROWS = {"rider": ["ana", "ben"], "lon": [2.3, 2.4], "lat": [48.8, 48.9]}


@pytest.mark.parametrize(
    ("text", "options", "why"),
    [
        ("", {}, "line 1: the file is empty"),
        ("a,b\n1,2\n", {}, "say which with lon"),
        ("lon,b\n1,2\n", {}, "say which with lat"),
        ("lat,lon,lng\n1,2,3\n", {}, "several columns"),
        ("lat,lon\n1,2\n", {"lat": "y", "lon": "lon"}, "lat: column 'y' must be there once"),
        ("lat,lon,lat\n1,2,3\n", {"lat": "lat", "lon": "lon"}, "several columns are called 'lat'"),
        ("lat,lon\n1,2\n", {"lat": "lon", "lon": "lon"}, "different columns"),
        ("lat,lon\n1,2\n", {"header": False}, "say which with lon"),
        ("lat,lon\n1,2\n".encode("utf-16"), {}, "UTF-16"),
        ("lat,lon\n1,2\n", {"delimiter": "ab"}, "single character"),
        ("lat,lon\n1,2\n", {"delimiter": '"'}, "single character"),
        ("lat,lon\n1,2\n", {"missing": "drop"}, "missing must be"),
        ("lat,lon\n1,2\n", {"format": "xml"}, "format must be one of"),
        ("lat,lon\n1,2\n", {"epsilon": float("nan")}, "epsilon must be positive"),
        ("lat,lon\n1,2\n", {"epsilon": 1e-9}, "reach round the Earth"),
        ("lat,lon\n1,2\n", {"key": bytes(32)}, "go together"),
        ("lat,lon\n1,2\n", {"id_column": "lat"}, "go together"),
        ("lat,lon\n1,2\n", {"id_column": "who", "key": bytes(32)}, "column 'who' must be there once"),
        ("id,lat,lon\n,1,2\n", {"id_column": "id", "key": bytes(32)}, "line 2: there is no identity"),
        ("id,lat,lon\na,1,2\n", {"id_column": "id", "key": b"short"}, "32 bytes"),
    ],
)
def test_bad_requests_are_refused_and_nothing_is_written(
    tmp_path: Path, text: bytes | str, options: dict[str, Any], why: str
) -> None:
    assert why in reason(tmp_path, text, **options)


def test_the_sidecar_tells_the_promise_and_neither_key_nor_truth(tmp_path: Path) -> None:
    key = bytes(range(32))
    obfuscated(
        tmp_path, "id,lat,lon\na,48.8584,2.2945\n", epsilon=None, level=2.0, radius=200, key=key, id_column="id"
    )
    promise = read_promise(tmp_path / "out-in.csv")
    assert (promise.epsilon, promise.level, promise.radius, promise.decimals) == (0.01, 2.0, 200, 5)
    text = (tmp_path / "out-in.csv.geoind.json").read_text()
    assert "48.8584" not in text
    assert key.hex() not in text


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """Return a folder with tables of two riders, and things that are no files."""
    (tmp_path / "a.csv").write_text("rider,lat,lon\nana,48.8,2.3\nben,48.9,2.4\n")
    (tmp_path / "a.ndjson").write_text('{"rider": "ana", "lat": 48.8, "lon": 2.3}\n')
    (tmp_path / "a.geojson").write_text(
        '{"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {"rider": "ana"}, '
        '"geometry": {"type": "Point", "coordinates": [2.3, 48.8]}}]}'
    )
    (tmp_path / "a.gpx").write_text(
        '<gpx version="1.1" creator="x"><trk><trkseg><trkpt lat="48.8" lon="2.3"><time>2026-01-01T00:00:00Z</time>'
        "</trkpt></trkseg></trk></gpx>"
    )
    pq.write_table(pa.table({**ROWS, "note": [b"x", b"y"]}), tmp_path / "bytes.parquet")
    pq.write_table(pa.table({**ROWS, "note": ["x\ty", "z"]}), tmp_path / "tabs.parquet")
    pq.write_table(pa.table({**ROWS, "trip": [1.5, 2.5]}), tmp_path / "floats.parquet")
    points = geopandas.points_from_xy(ROWS["lon"], ROWS["lat"])
    geopandas.GeoDataFrame({"rider": ["ana", "ben"]}, geometry=points, crs=4326).to_file(tmp_path / "a.gpkg")
    (tmp_path / "folder.csv").mkdir()
    os.mkfifo(tmp_path / "pipe.csv")
    return tmp_path


KEYED = {"key": bytes(32)}


@pytest.mark.parametrize(
    ("source", "target", "options", "why"),
    [
        ("a.csv", "missing/out.csv", {}, "cannot write"),
        ("a.csv", "folder.csv", {}, "regular file"),
        ("a.csv", "pipe.csv", {}, "regular file"),
        ("a.csv", "/proc/out.csv", {}, "cannot write"),
        ("a.csv", "out.csv", {"rejects": "missing/bad"}, "cannot write"),
        ("a.csv", "out.csv", {"rejects": "folder.csv"}, "regular file"),
        ("a.csv", "out.csv", {"rejects": "pipe.csv"}, "regular file"),
        ("a.ndjson", "out.ndjson", {"drop": ["nosuch"]}, "no member 'nosuch'"),
        ("a.geojson", "out.geojson", {"drop": ["nosuch"]}, "no member 'nosuch'"),
        ("a.gpx", "out.gpx", {"drop": ["nosuch"], "trace": "ana,time", **KEYED}, "no member 'nosuch'"),
        ("a.gpkg", "out.svg", {}, "must end in one of"),
        ("a.gpkg", "out.dxf", {}, "GDAL cannot write this"),
        ("a.gpkg", "out.xlsx", {}, "must end in one of"),
        ("a.gpkg", "out.mvt", {}, "must end in one of"),
        ("bytes.parquet", "out.csv", {}, "holds bytes"),
        ("tabs.parquet", "out.tsv", {}, "holds tabs"),
        ("floats.parquet", "out.parquet", {"id_column": "trip", **KEYED}, "must be whole numbers"),
    ],
)
def test_nobody_pays_for_what_cannot_be_written(
    tables: Path, source: str, target: str, options: dict[str, Any], why: str
) -> None:
    before = sorted(path.name for path in tables.iterdir())
    if "trace" not in options:
        options = {**options, "person_column": "rider"}
    if "rejects" in options:
        options = {**options, "rejects": tables / options["rejects"]}
    with Ledger("sqlite://", budget=1.0) as ledger:
        with pytest.raises(InvalidInputError, match=why):
            obfuscate_file(tables / source, tables / target, epsilon=0.01, ledger=ledger, **options)
        assert ledger.history("ana") == []
    assert sorted(path.name for path in tables.iterdir()) == before


@pytest.mark.parametrize(
    ("source", "target"),
    [("a.gpkg", "out.gpkg"), ("a.gpkg", "out.shp"), ("bytes.parquet", "out.ndjson"), ("tabs.parquet", "out.csv")],
)
def test_what_can_be_written_is_paid_for_once(tables: Path, source: str, target: str) -> None:
    drop = ["note"] if source == "bytes.parquet" else []
    with Ledger("sqlite://", budget=1.0) as ledger:
        obfuscate_file(
            tables / source, tables / target, epsilon=0.01, ledger=ledger, person_column="rider", drop=drop
        )
        assert ledger.spent("ana") == 0.01
    assert (tables / target).exists()


def test_rejects_never_go_to_standard_output(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text("lat,lon\n91,2\n1,2\n")
    for target in ("-", tmp_path / "out.csv"):
        with pytest.raises(InvalidInputError, match="rejects hold true places"):
            obfuscate_file(tmp_path / "a.csv", target, epsilon=0.01, rejects="-")
    assert capfd.readouterr().out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


@pytest.mark.parametrize("name", ["budgets.sqlite", "budgets.sqlite-wal", "key", "linked"])
def test_neither_key_nor_ledger_is_written_over(tables: Path, name: str) -> None:
    file = tables / "budgets.sqlite"
    key = Key.new_file(tables / "key")
    with Ledger(f"sqlite:///{file}", budget=1.0) as ledger:
        os.link(file, tables / "linked")
        before = file.read_bytes(), key.read()
        rows: dict[str, Any] = {"ledger": ledger, "person_column": "rider", "epsilon": 0.01}
        tried: list[tuple[Path, dict[str, Any]]] = [
            (tables / "out.csv", {"rejects": tables / name}),
            (tables / name, {"reading": Reading(format="csv")}),
        ]
        for target, options in tried:
            with pytest.raises(InvalidInputError, match="would be overwritten"):
                obfuscate_file(tables / "a.csv", target, key=key, id_column="rider", **rows, **options)
        if name == "budgets.sqlite":
            with pytest.raises(InvalidInputError, match="would be overwritten"):
                obfuscate_file(tables / "a.gpkg", file, **rows)
        assert (file.read_bytes(), key.read()) == before
        assert ledger.history("ana") == []


def test_no_promise_is_written_over_a_key(tables: Path) -> None:
    key = Key.new_file(tables / "out.csv.geoind.json")
    with pytest.raises(InvalidInputError, match="would be overwritten"):
        obfuscate_file(tables / "a.csv", tables / "out.csv", epsilon=0.01, key=key, id_column="rider")
    assert key.read()
