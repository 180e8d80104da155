import base64
import csv
import gzip
import io
import json
import zipfile
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyogrio.raw
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from geoind.arrays import FloatArray
from geoind.errors import InvalidInputError
from geoind.files.formats import Bytes, Kind, kind_of
from geoind.files.gpx import open_gpx
from geoind.files.parquet import open_parquet
from geoind.files.vector import open_vector
from geoind.files.writers import Layout, check_writable, write
from geoind.space.crs import from_lonlat
from geoind.tables.places import LonLat, Points

LONLAT = [LonLat("lon", "lat")]
JSON = {b"geoind:json": b"1"}
ROWS: list[dict[str, Any]] = [
    {"name": "Ana", "code": "007", "n": 2**53 + 1, "x": 0.1, "ok": True, "o": {"a": [1, "é"], "b": None}},
    {"name": 'a,"b";|c', "code": "2024/05/02", "n": -1, "x": 1.5, "ok": False, "o": {"a": "\\u"}},
    {"name": "= é 😀", "code": "1.50", "n": None, "x": None, "ok": None, "o": None},
]
REPORTS = np.array([[2.345678, -48.1], [np.nan, np.nan], [-179.99999, 0.000004]])
PLACES = [(2.34568, -48.1), None, (-179.99999, 0.0)]
SUFFIXES = ["csv", "tsv", "ndjson", "geojson", "geojsonl", "parquet", "gpkg", "fgb", "shp"]
ONE_PLACE = SUFFIXES[3:5] + SUFFIXES[6:]
WAYS = ["csv", "ndjson", "geojson", "parquet", "gpkg"]
"""One format of each way of writing."""


def as_text(value: Any) -> str:
    """Return the text of a value in a format without types."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{Decimal(str(value)).normalize():f}"
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def text_columns() -> pa.Table:
    columns = {name: [as_text(row[name]) for row in ROWS] for name in ROWS[0]}
    return pa.table(columns | {"lon": [""] * 3, "lat": [""] * 3})


def json_columns() -> pa.Table:
    columns = {
        name: [None if row[name] is None else json.dumps(row[name], ensure_ascii=name == "name") for row in ROWS]
        for name in ROWS[0]
    }
    table = pa.table(columns | {"lon": ["1.5"] * 3, "lat": ["1.5"] * 3})
    return table.cast(pa.schema([field.with_metadata(JSON) for field in table.schema]))


def typed_columns() -> pa.Table:
    columns = {name: [row[name] for row in ROWS] for name in ROWS[0] if name != "o"}
    objects = [json.dumps(row["o"]) if row["o"] else None for row in ROWS]
    table = pa.table(columns | {"o": objects, "lon": [1.5] * 3, "lat": [1.5] * 3})
    return table.set_column(5, pa.field("o", pa.string(), metadata=JSON), table["o"])


def geometry_columns(tmp_path: Path) -> pa.Table:
    features = [
        {"type": "Feature", "properties": row, "geometry": {"type": "Point", "coordinates": [1, 2]}}
        for row in ROWS
    ]
    (tmp_path / "source.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    source = open_vector(tmp_path / "source.geojson")
    table = pa.Table.from_batches([rows.batch for rows in source.rows()])
    shapes = [
        None if np.isnan(point[0]) else shapely.to_wkb(shapely.Point(point)) for point in np.round(REPORTS, 5)
    ]
    return table.set_column(6, table.schema.field(6), pa.array(shapes, pa.binary()))


SOURCES: dict[str, Callable[[Path], pa.Table]] = {
    "text": lambda _: text_columns(),
    "json": lambda _: json_columns(),
    "typed": lambda _: typed_columns(),
    "geometry": geometry_columns,
}


def parts_of(
    table: pa.Table, reports: FloatArray = REPORTS
) -> Iterator[tuple[pa.RecordBatch, Sequence[FloatArray]]]:
    """Yield the rows one by one, with reports as numbers where true coordinates were text, as a table has them."""
    for axis, name in enumerate(("lon", "lat")):
        if name in table.schema.names and pa.types.is_string(table.schema.field(name).type):
            number = table.schema.get_field_index(name)
            table = table.set_column(number, name, pa.array(reports[:, axis], from_pandas=True))
    for at in range(len(table)):
        yield table.slice(at, 1).combine_chunks().to_batches()[0], [reports[at : at + 1]]


def written(
    path: Path, table: pa.Table, places: Any = LONLAT, reports: FloatArray = REPORTS, **options: Any
) -> Path:
    parts = list(parts_of(table, reports))
    schema = parts[0][0].schema.with_metadata(table.schema.metadata) if parts else table.schema
    check_writable(path.name, Layout(kind_of(path.name), schema, places))
    write(path, iter(parts), Layout(kind_of(path.name), schema, places, **options))
    return path


def read_back(path: Path) -> tuple[list[dict[str, Any]], list[tuple[float, float] | None]]:
    """Return the kept values and the places of a file, by other readers, or GDAL's."""
    suffix = path.suffix.lstrip(".")
    rows: list[dict[str, Any]]
    if suffix in ("csv", "tsv"):
        options: Any = {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if suffix == "tsv" else {}
        rows = list(csv.DictReader(io.StringIO(path.read_text(), newline=""), **options))
    elif suffix == "ndjson":
        rows = list(map(json.loads, path.read_text().splitlines()))
    elif suffix == "parquet":
        rows = pq.read_table(path).to_pylist()
    elif suffix in ("geojson", "geojsonl"):
        text = path.read_text()
        features = (
            json.loads(text)["features"] if suffix == "geojson" else list(map(json.loads, text.splitlines()))
        )
        shapes = [one["geometry"] and shapely.Point(one["geometry"]["coordinates"]) for one in features]
        rows = [one["properties"] | {"geometry": shape} for one, shape in zip(features, shapes, strict=True)]
    else:
        source = open_vector(path)
        batches = [part.batch for part in source.rows()]
        names = [*source.schema.names[:-1], "geometry"]
        rows = pa.Table.from_batches(batches, source.schema).rename_columns(names).to_pylist()
    places = []
    for row in rows:
        shape: Any = row.pop("geometry", None)
        shape = shapely.from_wkb(shape) if isinstance(shape, bytes) else shape
        lon, lat = (shape.x, shape.y) if shape else (row.pop("lon", None), row.pop("lat", None))
        places.append(None if lon in (None, "") else (float(lon), float(lat)))
    return rows, places


@pytest.mark.parametrize(
    ("source", "suffix"),
    [(source, suffix) for source in SOURCES for suffix in (SUFFIXES if source == "typed" else WAYS)],
)
def test_kept_values_are_equal_from_every_format_to_every_format(tmp_path: Path, source: str, suffix: str) -> None:
    table = SOURCES[source](tmp_path)
    places = [Points("geometry", "EPSG:4326")] if source == "geometry" else LONLAT
    reports = np.round(REPORTS, 5)
    rows, found = read_back(written(tmp_path / f"out.{suffix}", table, places, reports))
    assert found == [place if place is None else pytest.approx(place, abs=1e-12) for place in PLACES]
    typed = suffix in ("ndjson", "geojson", "geojsonl") and source != "text"
    for row, expected in zip(rows, ROWS, strict=True):
        if typed:
            assert {name: (row[name], type(row[name])) for name in expected} == {
                name: (value, type(value)) for name, value in expected.items()
            }
        else:
            objects = json.loads(row.pop("o") or "null")
            assert objects == expected["o"]
            assert {name: as_text(row[name]) for name in row.keys() & expected} == {
                name: as_text(value) for name, value in expected.items() if name != "o"
            }


def test_points_of_a_gpx_file_become_every_format_and_back(tmp_path: Path) -> None:
    (tmp_path / "in.gpx").write_text(
        '<gpx><wpt lat="1" lon="2"><time>2024-05-01T08:00:00Z</time><name>A &lt;&amp;"</name></wpt>'
        '<trk><name>B</name><trkseg><trkpt lat="1" lon="2"/>'
        '<trkpt lat="1" lon="2"><time>2024</time></trkpt></trkseg></trk>'
        "<trk><trkseg><trkpt lat='1' lon='2'/></trkseg></trk></gpx>"
    )
    reports = np.array([[1.0, 2.0], [3.0, 4.0], [np.nan, np.nan], [5.0, 6.0]])
    table = pa.Table.from_batches(
        rows.batch for rows in open_gpx(Bytes(tmp_path / "in.gpx")).rows(["lat", "lon", "time", "name"])
    )
    for suffix in WAYS:
        rows, places = read_back(written(tmp_path / f"out.{suffix}", table, LONLAT, reports))
        assert places == [(1, 2), (3, 4), None, (5, 6)]
        assert [row["name"] or None for row in rows] == ['A <&"', "B", "B", None]
        assert [row["time"] or None for row in rows] == ["2024-05-01T08:00:00Z", None, "2024", None]
    again = open_gpx(Bytes(written(tmp_path / "out.gpx", table, LONLAT, reports)))
    points = [row for rows in again.rows(["lat", "lon", "time", "name"]) for row in rows.batch.to_pylist()]
    assert points == [
        {"lat": "2.00000", "lon": "1.00000", "time": "2024-05-01T08:00:00Z", "name": 'A <&"'},
        {"lat": "4.00000", "lon": "3.00000", "time": None, "name": "B"},
        {"lat": "6.00000", "lon": "5.00000", "time": None, "name": None},
    ]


def test_gpx_has_a_track_per_run_of_equal_names_or_waypoints_without_times(tmp_path: Path) -> None:
    table = pa.table({"person": list("aabb"), "time": list("1234"), "lon": [""] * 4, "lat": [""] * 4})
    root = ElementTree.parse(written(tmp_path / "a.gpx", table, reports=np.ones((4, 2)))).getroot()
    assert [[len(segment) for segment in track if segment.tag.endswith("trkseg")] for track in root] == [[2], [2]]
    names = table.select(["person", "lon", "lat"])
    root = ElementTree.parse(written(tmp_path / "b.gpx", names, reports=np.ones((4, 2)))).getroot()
    assert [point.tag.rpartition("}")[2] for point in root] == ["wpt"] * 4
    with pytest.raises(InvalidInputError, match="not 'age', 'shoe'"):
        check_writable(
            "c.gpx",
            Layout(Kind("gpx", ""), pa.schema([*names.schema, ("age", pa.int8()), ("shoe", pa.int8())]), LONLAT),
        )


TEXTS = st.lists(st.tuples(st.text(max_size=8), st.text('a," \t\r\n;|\\=-1', max_size=6)), max_size=5)


@given(
    rows=TEXTS,
    names=st.tuples(st.text(max_size=4), st.text('a,"\n;', max_size=4)),
    delimiter=st.sampled_from(",;\t| "),
)
def test_any_text_in_a_csv_file_is_read_back_by_the_csv_module(
    rows: list[tuple[str, str]], names: tuple[str, str], delimiter: str
) -> None:
    if len({*names, "lon", "lat"}) < 4:
        return
    columns = [pa.array([row[at] for row in rows], pa.string()) for at in range(2)]
    nothing = pa.nulls(len(rows), pa.string())
    batch = pa.record_batch([*columns, nothing, nothing], [*names, "lon", "lat"])
    reports = np.full((len(rows), 2), 1.5)
    file = io.BytesIO()
    write(
        file,
        iter([(batch, [reports])]),
        Layout(Kind("csv", ""), batch.schema, LONLAT, decimals=2, delimiter=delimiter),
    )
    text = file.getvalue().decode()
    found = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    assert found == [[*names, "lon", "lat"], *([*row, "1.50", "1.50"] for row in rows)]
    minimal = io.StringIO(newline="")
    csv.writer(minimal, delimiter=delimiter, lineterminator="\n").writerows(found)
    # The csv module of Python 3.11 does not quote \r.
    assert text == minimal.getvalue() or "\r" in text


@given(
    rows=TEXTS,
    values=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=5,
    ),
)
def test_any_text_and_any_json_in_an_ndjson_file_is_read_back_by_the_json_module(
    rows: list[tuple[str, str]], values: Any
) -> None:
    texts = None if values is None else json.dumps(values)
    schema = pa.schema(
        [
            ("a", pa.string()),
            ("a.b", pa.string()),
            pa.field("c.d", pa.string(), metadata=JSON),
            ("lon", pa.string()),
            ("lat", pa.string()),
        ]
    )
    count = len(rows)
    arrays = [[row[0] for row in rows], [row[1] for row in rows], [texts] * count, [None] * count, [None] * count]
    batch = pa.record_batch([pa.array(array, pa.string()) for array in arrays], schema=schema)
    for form in ("ndjson", "geojson"):
        file = io.BytesIO()
        write(
            file, iter([(batch, [np.full((count, 2), 1.5)])]), Layout(Kind(form, ""), schema, LONLAT, decimals=1)
        )
        if form == "ndjson":
            lines = file.getvalue().decode().split("\n")
            assert lines.pop() == ""
            assert list(map(json.loads, lines)) == [
                {"a": a, "a.b": b, "c": {"d": values}, "lon": 1.5, "lat": 1.5} for a, b in rows
            ]
        else:
            found = [one["properties"] for one in json.loads(file.getvalue())["features"]]
            assert found == [{"a": a, "a.b": b, "c.d": values} for a, b in rows]


def test_reports_have_the_decimals_and_the_decimal_comma_of_the_file(tmp_path: Path) -> None:
    table = text_columns().select(["lon", "code", "lat"])
    path = written(tmp_path / "out.csv", table, decimals=3, delimiter=";", decimal_comma=True)
    assert path.read_text() == "lon;code;lat\n2,346;007;-48,100\n;2024/05/02;\n-180,000;1.50;0,000\n"
    path = written(tmp_path / "out.csv", table, decimals=0, decimal_comma=True)
    assert path.read_text() == "lon,code,lat\n2,007,-48\n,2024/05/02,\n-180,1.50,0\n"
    path = written(tmp_path / "out.tsv", table, decimals=0, delimiter=";", decimal_comma=True)
    assert path.read_text() == "lon\tcode\tlat\n2\t007\t-48\n\t2024/05/02\t\n-180\t1.50\t0\n"
    path = written(tmp_path / "out.ndjson", table, decimals=2)
    assert path.read_text().splitlines()[0] == '{"lon": 2.35, "code": "007", "lat": -48.10}'
    path = written(tmp_path / "out.geojson", table, decimals=1)
    assert '"geometry": {"type": "Point", "coordinates": [2.3, -48.1]}' in path.read_text()


def test_several_places_are_several_columns_and_no_features(tmp_path: Path) -> None:
    batch = pa.record_batch({name: pa.array([0.5]) for name in ("a", "b", "c", "d")})
    places = [LonLat("a", "b"), LonLat("c", "d")]
    parts = iter([(batch, [np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]])])])
    write(tmp_path / "out.csv", parts, Layout(Kind("csv", ""), batch.schema, places, decimals=0))
    assert (tmp_path / "out.csv").read_text() == "a,b,c,d\n1,2,3,4\n"
    for suffix in (*ONE_PLACE, "gpx"):
        with pytest.raises(InvalidInputError, match="one location per record, and the reports have 2"):
            check_writable(f"out.{suffix}", Layout(kind_of(f"out.{suffix}"), batch.schema, places))


def test_members_of_nested_objects_are_nested_again() -> None:
    names = ["home.lon", "id", "home.lat", "home.note.text", "x", "x.y", "." * 100]
    schema = pa.schema([pa.field(name, pa.string(), metadata=JSON) for name in names])
    batch = pa.record_batch(
        [pa.array([text], pa.string()) for text in ("1", '"7"', "2", '"n"', "3", "4", "5")], schema=schema
    )
    rows = [
        (batch, [np.array([[1.0, 2.0]])]),
        (pa.record_batch([pa.nulls(1, pa.string())] * 7, schema=schema), [np.full((1, 2), np.nan)]),
    ]
    file = io.BytesIO()
    write(file, iter(rows), Layout(Kind("ndjson", ""), schema, [LonLat("home.lon", "home.lat")], decimals=0))
    first, second = map(json.loads, file.getvalue().splitlines())
    others = {"x": 3, "x.y": 4, "." * 100: 5}
    assert first == {"home": {"lon": 1, "lat": 2, "note": {"text": "n"}}, "id": "7", **others}
    nothing = {"lon": None, "lat": None, "note": {"text": None}}
    assert second == {"home": nothing, "id": None, **dict.fromkeys(others)}


def test_values_of_other_types_keep_their_meaning_as_text_and_json(tmp_path: Path) -> None:
    moment = datetime(2024, 5, 1, 8, 0, 0, 123456, tzinfo=UTC)
    table = pa.table(
        {
            "paris": pa.array([moment], pa.timestamp("us", "Europe/Paris")),
            "naive": pa.array([moment.replace(tzinfo=None)], pa.timestamp("ns")),
            "day": [date(2024, 5, 1)],
            "money": [Decimal("1.10")],
            "big": pa.array([2**64 - 1], pa.uint64()),
            "kind": pa.array(["x"]).dictionary_encode(),
            "list": [[1, None]],
            "struct": [{"a": [date(2024, 5, 1)]}],
            "half": pa.array([1.5], pa.float16()),
            "view": pa.array(["v"], pa.string_view()),
            "nan": [np.nan],
            "gap": pa.nulls(1),
            "lon": [1.0],
            "lat": [1.0],
        }
    )
    as_json = {
        "paris": "2024-05-01T08:00:00.123456Z",
        "naive": "2024-05-01T08:00:00.123456000",
        "day": "2024-05-01",
        "money": 1.1,
        "big": 2**64 - 1,
        "kind": "x",
        "list": [1, None],
        "struct": {"a": ["2024-05-01"]},
        "half": 1.5,
        "view": "v",
        "nan": None,
        "gap": None,
    }
    rows, _ = read_back(written(tmp_path / "out.ndjson", table, reports=np.ones((1, 2))))
    assert rows == [as_json]
    rows, _ = read_back(written(tmp_path / "out.geojson", table, reports=np.ones((1, 2))))
    assert rows == [as_json]
    rows, _ = read_back(written(tmp_path / "out.csv", table, reports=np.ones((1, 2))))
    text = {name: as_text(value) for name, value in as_json.items()}
    assert rows == [text | {"money": "1.10", "nan": "nan"}]
    rows, _ = read_back(written(tmp_path / "out.fgb", table, reports=np.ones((1, 2))))
    assert {name: as_text(value) for name, value in rows[0].items()} == text | {
        "money": "1.10",
        "nan": "NaN",
        "gap": "",
    }


@pytest.mark.parametrize("suffix", ["csv", "tsv", "ndjson", "geojson", "gpx", "shp", "fgb"])
@pytest.mark.parametrize(
    "kind", [pa.binary(), pa.large_binary(), pa.binary(4), pa.struct({"a": pa.list_(pa.binary())})]
)
def test_bytes_are_refused_where_a_format_cannot_hold_them(suffix: str, kind: pa.DataType) -> None:
    schema = pa.schema({"name": kind, "lon": pa.float64(), "lat": pa.float64()})
    with pytest.raises(InvalidInputError, match="column 'name' holds bytes"):
        check_writable(f"x.{suffix}", Layout(kind_of(f"x.{suffix}"), schema, LONLAT))


def test_tabs_and_line_breaks_are_refused_in_tsv_and_control_characters_in_gpx(tmp_path: Path) -> None:
    for suffix, text in (("tsv", "a\tb"), ("tsv", "a\nb"), ("gpx", "a\x00b"), ("gpx", "\uffff")):
        table = pa.table({"name": [text], "lon": ["1"], "lat": ["1"]})
        with pytest.raises(InvalidInputError, match="column 'name' holds") as caught:
            written(tmp_path / f"out.{suffix}", table, reports=np.ones((1, 2)))
        assert text not in str(caught.value)
    with pytest.raises(InvalidInputError, match="holds tabs or line breaks"):
        check_writable(
            "x.tsv",
            Layout(
                Kind("tsv", ""), pa.schema({"a\tb": pa.string(), "lon": pa.string(), "lat": pa.string()}), LONLAT
            ),
        )


def test_text_for_spreadsheets_has_no_formulas(tmp_path: Path) -> None:
    texts = [
        "=1+1",
        "-1.5",
        "-A1",
        '"@SUM(A1)"',
        "a=b",
        "\u200b=1",
        "＝1",
        "+33 1",
        "1e5",
        "\t=1",
        None,
        "",
        "-1,5",
    ]
    table = pa.table({"=name": texts, "lon": [""] * len(texts), "lat": [""] * len(texts)})
    path = written(tmp_path / "out.csv", table, reports=np.full((len(texts), 2), -1.0), spreadsheet_safe=True)
    rows = list(csv.reader(io.StringIO(path.read_text(), newline="")))
    assert rows[0] == ["'=name", "lon", "lat"]
    safe = [
        "'=1+1",
        "-1.5",
        "'-A1",
        '"\'@SUM(A1)"',
        "a=b",
        "'\u200b=1",
        "'＝1",
        "'+33 1",
        "1e5",
        "'\t=1",
        "",
        "",
        "-1,5",
    ]
    assert [row[0] for row in rows[1:]] == safe
    assert {tuple(row[1:]) for row in rows[1:]} == {("-1.00000", "-1.00000")}


@pytest.mark.parametrize("suffix", ["parquet", "gpkg", "fgb", "shp"])
def test_a_projected_geometry_keeps_its_crs(tmp_path: Path, suffix: str) -> None:
    reports = np.array([[2.35, 48.85], [np.nan, np.nan], [2.4, 48.8]])
    xy = from_lonlat(reports, "EPSG:2154")
    shapes = [None if np.isnan(point[0]) else shapely.to_wkb(shapely.Point(point)) for point in xy]
    notes = {"ARROW:extension:name": "geoarrow.wkb", "ARROW:extension:metadata": json.dumps({"crs": "EPSG:2154"})}
    schema = pa.schema([("n", pa.int64()), pa.field("geom", pa.binary(), metadata=notes)])
    path = written(
        tmp_path / f"out.{suffix}",
        pa.table([[1, 2, 3], shapes], schema=schema),
        [Points("geom", "EPSG:2154")],
        reports,
    )
    found = geopandas.read_parquet(path) if suffix == "parquet" else geopandas.read_file(path)
    assert found.crs == 2154
    assert found["n"].tolist() == [1, 2, 3]
    assert found.geometry.isna().tolist() == [False, True, False]
    degrees = found.to_crs(4326).geometry[[0, 2]]
    assert np.allclose(np.column_stack([degrees.x, degrees.y]), reports[[0, 2]], atol=1e-8)


def test_a_geometry_of_geoarrow_coordinates_becomes_wkb(tmp_path: Path) -> None:
    notes = {
        "ARROW:extension:name": "geoarrow.point",
        "ARROW:extension:metadata": json.dumps({"crs": "EPSG:2154"}),
    }
    kind = pa.struct({"x": pa.float64(), "y": pa.float64()})
    table = pa.table(
        [pa.array([{"x": 1.0, "y": 1.0}], kind)], schema=pa.schema([pa.field("at", kind, metadata=notes)])
    )
    for suffix in ("parquet", "gpkg"):
        path = written(tmp_path / f"out.{suffix}", table, [Points("at", "EPSG:2154")], np.array([[2.35, 48.85]]))
        found = (geopandas.read_parquet(path) if suffix == "parquet" else geopandas.read_file(path)).to_crs(4326)
        assert np.allclose([found.geometry.x[0], found.geometry.y[0]], [2.35, 48.85], atol=1e-8)


@pytest.mark.parametrize("suffix", [*SUFFIXES, "gpx"])
def test_no_metadata_but_the_record_is_written(tmp_path: Path, suffix: str) -> None:
    about = {"encoding": "WKB", "geometry_types": [], "bbox": [9.87654321] * 4, "SECRET": 1}
    geo = json.dumps({"version": "1.1.0", "primary_column": "at", "columns": {"at": about}})
    note = {"k": "SECRET"}
    schema = pa.schema(
        [pa.field("name", pa.string(), metadata=note), pa.field("at", pa.binary(), metadata=note)],
        {"note": "SECRET", "geo": geo, "pandas": '{"SECRET": 1}', "geoind": "RECORD"},
    )
    table = pa.table([["Ana"], [shapely.to_wkb(shapely.Point(1, 1))]], schema=schema)
    written(tmp_path / f"out.{suffix}", table, [Points("at")], np.ones((1, 2)))
    for file in tmp_path.iterdir():
        text = file.read_bytes()
        if suffix == "parquet":
            metadata = pq.ParquetFile(file).metadata.metadata
            assert metadata[b"geoind"] == b"RECORD"
            text += base64.b64decode(metadata[b"ARROW:schema"])
        assert b"SECRET" not in text
        assert b"9.87654321" not in text
        assert (b"RECORD" in text) == (suffix == "parquet")


def test_compressed_text_is_the_same_text(tmp_path: Path) -> None:
    table = text_columns()
    plain = written(tmp_path / "out.csv", table).read_bytes()
    assert gzip.decompress(written(tmp_path / "out.csv.gz", table).read_bytes()) == plain
    assert pa.input_stream(written(tmp_path / "out.csv.zst", table), "zstd").read() == plain
    with zipfile.ZipFile(written(tmp_path / "out.csv.zip", table)) as archive:
        assert archive.namelist() == ["out.csv"]
        assert archive.read("out.csv") == plain


def test_no_rows_are_a_file_without_rows(tmp_path: Path) -> None:
    table = typed_columns().slice(0, 0)
    for suffix in SUFFIXES:
        rows, places = read_back(written(tmp_path / f"out.{suffix}", table))
        assert (rows, places) == ([], [])


@pytest.mark.parametrize("name", ["out.plt", "Records.json", "out.zip", "out.osm.pbf", "out.mif", "out.kml"])
def test_a_format_that_is_only_read_is_refused(name: str) -> None:
    kind = Kind({"out.plt": "plt", "Records.json": "google"}.get(name, "vector"), "")
    with pytest.raises(InvalidInputError, match=r"not written: choose one of .csv, "):
        check_writable(name, Layout(kind, text_columns().schema, LONLAT))


@pytest.mark.parametrize("name", ["out!x.gpkg", "a.zip!b.gpkg", "-"])
def test_a_name_that_gdal_does_not_write_is_refused(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInputError):
        check_writable(name, Layout(Kind("vector", ""), text_columns().schema, LONLAT))
    assert not list(tmp_path.iterdir())


def test_names_and_values_that_a_format_would_change_are_refused(tmp_path: Path) -> None:
    places = {"lon": pa.float64(), "lat": pa.float64()}
    with pytest.raises(InvalidInputError, match="cannot hold all names and values"):
        check_writable(
            "x.shp", Layout(Kind("vector", ""), pa.schema({"a_long_column": pa.int32(), **places}), LONLAT)
        )
    for column in (pa.array(["é" * 200]), pa.array([1e300])):
        table = pa.table({"a": column, "lon": [1.0], "lat": [1.0]})
        with pytest.raises(InvalidInputError, match="cannot hold all names and values"):
            written(tmp_path / "out.shp", table, reports=np.ones((1, 2)))
    for suffix in ("shp", "gpkg", "fgb"):
        with pytest.raises(InvalidInputError, match="column 'a' holds null characters"):
            written(
                tmp_path / f"out.{suffix}", table.set_column(0, "a", pa.array(["x\0y"])), reports=np.ones((1, 2))
            )


@pytest.mark.parametrize(("suffix", "kind"), [("gpkg", pa.binary()), ("fgb", pa.string()), ("shp", pa.int64())])
def test_no_column_is_taken_for_the_geometry_or_the_number_of_a_feature(
    tmp_path: Path, suffix: str, kind: pa.DataType
) -> None:
    value = {pa.string(): "abc", pa.binary(): b"abc", pa.int64(): 7}[kind]
    for name in ("Geometry", "wkb_geom", "FID", "ogc_fid", ""):
        table = pa.table({name: pa.array([value, value], kind), "lon": [1.0] * 2, "lat": [1.0] * 2})
        path = tmp_path / f"{name}.{suffix}"
        try:
            source = open_vector(written(path, table, reports=np.ones((2, 2))))
        except InvalidInputError:
            continue
        (rows,) = source.rows()
        values, shapes = rows.batch.columns
        assert rows.batch.schema.names[0] == name
        assert values.to_pylist() == [value, value]
        assert shapes.to_pylist() == [shapely.to_wkb(shapely.Point(1, 1))] * 2
    notes = {"ARROW:extension:name": "geoarrow.wkb"}
    schema = pa.schema([("AT", kind), pa.field("at", pa.binary(), metadata=notes)])
    with pytest.raises(InvalidInputError, match=r"cannot hold the columns \['at'\]"):
        check_writable(f"x.{suffix}", Layout(Kind("vector", ""), schema, [Points("at")]))


def test_two_columns_of_one_name_are_refused() -> None:
    twice = pa.schema([("a", pa.string()), ("a", pa.string()), ("lon", pa.string()), ("lat", pa.string())])
    clash = pa.schema(
        [("lon", pa.string()), pa.field("at", pa.binary(), metadata={"ARROW:extension:name": "geoarrow.wkb"})]
    )
    for suffix in SUFFIXES:
        with pytest.raises(InvalidInputError, match=r"two columns 'a'|cannot hold the columns \['a'\]"):
            check_writable(f"x.{suffix}", Layout(kind_of(f"x.{suffix}"), twice, LONLAT))
    for suffix in ("csv", "tsv", "ndjson"):
        with pytest.raises(InvalidInputError, match="two columns 'lon'"):
            check_writable(f"x.{suffix}", Layout(kind_of(f"x.{suffix}"), clash, [Points("at")]))
    check_writable("x.gpkg", Layout(Kind("vector", ""), clash, [Points("at")]))
    places = pa.schema([(name, pa.float64()) for name in ("lon", "lon", "lat")])
    for suffix in SUFFIXES:
        with pytest.raises(InvalidInputError, match="two columns 'lon'"):
            check_writable(f"x.{suffix}", Layout(kind_of(f"x.{suffix}"), places, LONLAT))


@pytest.mark.parametrize("suffix", [*SUFFIXES, "gpx"])
def test_an_error_of_the_parts_passes_unchanged(tmp_path: Path, suffix: str) -> None:
    class OwnError(Exception):
        pass

    def parts() -> Iterator[Any]:
        yield pa.record_batch({"name": ["a"], "lon": [1.0], "lat": [1.0]}), [np.ones((1, 2))]
        raise OwnError("reason")

    schema = pa.schema({"name": pa.string(), "lon": pa.float64(), "lat": pa.float64()})
    with pytest.raises(OwnError, match="reason"):
        write(tmp_path / f"out.{suffix}", parts(), Layout(kind_of(f"out.{suffix}"), schema, LONLAT))


def test_the_layer_of_a_geopackage_has_the_name_of_the_file(tmp_path: Path) -> None:
    path = written(tmp_path / "out.gpkg", text_columns())
    assert pyogrio.list_layers(path)[:, 0].tolist() == ["out"]


def test_what_is_read_from_a_parquet_file_can_be_written(tmp_path: Path) -> None:
    frame = geopandas.GeoDataFrame({"n": [1]}, geometry=[shapely.Point(700_000, 6_600_000)], crs=2154)
    frame.to_parquet(tmp_path / "in.parquet")
    source = open_parquet(Bytes(tmp_path / "in.parquet"))
    table = pa.Table.from_batches([rows.batch for rows in source.rows()], source.schema)
    path = written(tmp_path / "out.fgb", table, [Points("geometry", "EPSG:2154")], np.array([[3.0, 46.5]]))
    assert geopandas.read_file(path).crs == 2154
