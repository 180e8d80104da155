from pathlib import Path

import pytest

from geoind.errors import InvalidInputError
from geoind.files.formats import Bytes
from geoind.files.gpx import open_gpx

NAMES = (
    'xmlns="http://www.topografix.com/GPX/1/1" xmlns:t="http://www.garmin.com/xmlschemas/TrackPointExtension/v1"'
)
BODY = """
<metadata><name>Secret</name><bounds minlat="48" minlon="2" maxlat="49" maxlon="3"/>
<time>2020-01-01T00:00:00Z</time></metadata>
<wpt lat="48.1" lon="2.1"><ele>35.5</ele><time> 2024-05-01T08:00:00Z
</time><name>A &amp; <![CDATA[B]]></name><cmt>note</cmt></wpt>
<wpt lat="48.2" lon="2.2"/>
<rte><name>Way</name><rtept lat="48.3" lon="2.3"><name>corner</name></rtept></rte>
<trk><name>Run</name><extensions><t:x><name>no</name></t:x></extensions>
<trkseg><trkpt lat="48.4" lon="2.4"><time>2024-05-01T09:00:00Z</time>
<extensions><t:hr>88</t:hr><time>no</time></extensions></trkpt></trkseg>
<trkseg><trkpt lat="48.5"><ele/></trkpt></trkseg></trk>
<trk><trkseg><trkpt lat="48.6" lon="2.6"></trkpt></trkseg></trk>
<extensions><wpt lat="1" lon="1"/></extensions>
"""
ROWS = [
    ("48.1", "2.1", "2024-05-01T08:00:00Z", "A & B", "35.5"),
    ("48.2", "2.2", None, None, None),
    ("48.3", "2.3", None, "Way", None),
    ("48.4", "2.4", "2024-05-01T09:00:00Z", "Run", None),
    ("48.5", None, None, "Run", ""),
    ("48.6", "2.6", None, None, None),
]


def gpx(path: Path, body: str = BODY, head: str = '<?xml version="1.0"?>') -> Path:
    path.write_text(f'{head}<gpx version="1.1" creator="watch" {NAMES}>{body}</gpx>')
    return path


def rows(path: Path, columns: list[str] | None = None) -> list[tuple[str | None, ...]]:
    source = open_gpx(Bytes(path))
    parts = list(source.rows(columns))
    numbers = [number for part in parts for number in part.numbers.tolist()]
    assert numbers == list(range(1, len(numbers) + 1))
    return [tuple(row.values()) for part in parts for row in part.batch.to_pylist()]


def test_waypoints_routes_and_tracks_are_rows_in_the_order_of_the_document(tmp_path: Path) -> None:
    path = gpx(tmp_path / "in.gpx")
    assert open_gpx(Bytes(path)).schema.names == ["lat", "lon", "time", "name", "ele"]
    assert rows(path) == ROWS
    assert rows(path, ["time", "lon"]) == [(row[1], row[2]) for row in ROWS]


def test_a_long_file_is_read_in_parts_to_the_same_rows(tmp_path: Path) -> None:
    points = "".join(f'<trkpt lat="{i % 90}" lon="{i % 180}"/>\n' for i in range(40_000))
    path = gpx(tmp_path / "in.gpx", f"<trk><name>Run</name><trkseg>{points}</trkseg></trk>")
    assert len(list(open_gpx(Bytes(path)).rows())) > 1
    assert rows(path) == [(str(i % 90), str(i % 180), None, "Run", None) for i in range(40_000)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<gpx><wpt lat='12.345' lon='1'></gpx>", "line 1: invalid XML"),
        ("<gpx>\n<wpt lat='12.345' lon='1'/>", "line 2: invalid XML"),
        ("", "invalid XML"),
        ("<kml/>", "its first element must be gpx"),
        ('<!DOCTYPE gpx [<!ENTITY a "12.345">]><gpx>&a;</gpx>', "must not have a document type"),
        ('<!DOCTYPE gpx SYSTEM "file:///etc/passwd"><gpx/>', "must not have a document type"),
        ("<gpx>" + "<a>" * 100 + "</a>" * 100 + "</gpx>", "more than 64 nested elements"),
        (f"<gpx><wpt lat='1' lon='1'><name>{'a' * (1 << 21)}</name></wpt></gpx>", "more than 1048576 characters"),
        ('<?xml version="1.0" encoding="nonsense"?><gpx/>', "invalid XML"),
        ('<?xml version="1.0" encoding="utf-7"?><gpx/>', "invalid XML"),
    ],
)
def test_a_hostile_document_is_refused_without_its_content(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "in.gpx").write_text(text)
    with pytest.raises(InvalidInputError, match=message) as caught:
        rows(tmp_path / "in.gpx")
    assert "12.345" not in str(caught.value)
