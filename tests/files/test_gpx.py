"""GPX in, GPX out: reports in place of points, and nothing else that tells where."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from geoind import InvalidInputError, Ledger, TraceSession
from geoind.files import obfuscate_file, read_places
from geoind.files.folder import obfuscate_files
from geoind.files.job import Job
from geoind.tables import Recipe, read_promise
from geoind.traces import Independent

KEY = bytes(range(32))
SPACE = "{http://www.topografix.com/GPX/1/1}"
NAMES = (
    'xmlns="http://www.topografix.com/GPX/1/1" xmlns:t="http://www.garmin.com/xmlschemas/TrackPointExtension/v1"'
)
WALK = [
    ("48.85841", "2.29451", 0),
    ("48.85852", "2.29462", 5),
    ("48.90003", "2.35224", 30),
    ("48.90001", "2.35221", 59),
]


def point(lat: str, lon: str, minute: int, more: str = "", element: str = "trkpt") -> str:
    return f'<{element} lat="{lat}" lon="{lon}"><time>2024-05-01T08:{minute:02}:00Z</time>{more}</{element}>'


def track(*points: str) -> str:
    return f"<trk><name>To 7 rue Vide</name><trkseg>{''.join(points)}</trkseg></trk>"


def gpx(path: Path, body: str, head: str = "") -> Path:
    about = (
        '<metadata><name>Home</name><bounds minlat="48.85841" minlon="2.29451" maxlat="49" maxlon="3"/></metadata>'
    )
    path.write_text(
        f'<?xml version="1.0"?>{head}\n<gpx version="1.1" creator="watch" {NAMES}>\n{about}\n{body}\n</gpx>\n'
    )
    return path


def places(path: Path, element: str = "trkpt") -> list[tuple[float, float]]:
    found = ElementTree.parse(path).iter(f"{SPACE}{element}")
    return [(float(one.attrib["lon"]), float(one.attrib["lat"])) for one in found]


def test_a_track_gets_what_its_persons_session_answers_and_keeps_its_segments_and_times(tmp_path: Path) -> None:
    halves = [point(*step) for step in WALK]
    body = f"<trk><trkseg>\n{halves[0]}\n{halves[1]}</trkseg><trkseg>{halves[2]}</trkseg></trk>{track(halves[3])}"
    source, target = gpx(tmp_path / "in.gpx", body), tmp_path / "out.gpx"
    obfuscate_file(source, target, epsilon=0.01, trace="ana,time", key=KEY)
    recipe = Recipe.of(epsilon=0.01, trace="ana,time")
    assert recipe.trace is not None
    session = TraceSession(recipe.trace.method, key=KEY, person="ana")
    begin = 1714550400.0
    answers = [session.report(lat=float(lat), lon=float(lon), time=begin + 60 * at) for lat, lon, at in WALK]
    assert places(target) == [(answer.lon, answer.lat) for answer in answers]
    root = ElementTree.parse(target).getroot()
    assert [len(segment) for segment in root.iter(f"{SPACE}trkseg")] == [2, 1, 1]
    assert [time.text for time in root.iter(f"{SPACE}time")][-1] == "2024-05-01T08:59:00Z"
    assert read_promise(target).epsilon == pytest.approx(session.spent)
    assert np.concatenate(list(read_places(target))).tolist() == [[a.lon, a.lat] for a in answers]


def test_no_byte_of_the_output_was_said_about_the_place(tmp_path: Path) -> None:
    more = "<ele>35.25</ele><name>bench</name><extensions><t:hr>88</t:hr></extensions>"
    body = track(*(point(*step, more) for step in WALK)) + "<!-- at home --><extensions>far</extensions>"
    source, target = gpx(tmp_path / "in.gpx", body), tmp_path / "out.gpx"
    obfuscate_file(source, target, epsilon=0.01, trace="ana,time", drop=["ele", "name", "extensions"], key=KEY)
    text = target.read_text()
    for said in (
        "35.25",
        "bench",
        "88",
        "Home",
        "rue",
        "bounds",
        "home",
        "far",
        "watch",
        *sum((s[:2] for s in WALK), ()),
    ):
        assert said not in text


@pytest.mark.parametrize(
    "more",
    [
        "<ele>35.25</ele>",
        "<name>bench</name>",
        "<desc>bench</desc>",
        "<cmt>bench</cmt>",
        "<speed>3</speed>",
        "<course>270</course>",
        "<magvar>1.2</magvar>",
        "<geoidheight>44</geoidheight>",
        '<link href="https://example.org"><text>here</text></link>',
        "<extensions><t:hr>88</t:hr></extensions>",
        "<t:unknown>88</t:unknown>",
    ],
)
def test_what_may_tell_the_place_is_refused_until_it_is_dropped(tmp_path: Path, more: str) -> None:
    name = more[1:].split(">")[0].split()[0].removeprefix("t:")
    source, target = gpx(tmp_path / "in.gpx", track(point(*WALK[0], more))), tmp_path / "out.gpx"
    with pytest.raises(InvalidInputError, match=f"'{name}' .*--drop"):
        obfuscate_file(source, target, epsilon=0.01, trace="ana,time")
    assert not target.exists()
    obfuscate_file(source, target, epsilon=0.01, trace="ana,time", drop=[name])
    assert name not in target.read_text()


def test_what_is_kept_is_passed_on_and_told_and_what_has_elements_inside_cannot_be(tmp_path: Path) -> None:
    source, target = tmp_path / "in.gpx", tmp_path / "out.gpx"
    gpx(source, track(point(*WALK[0], "<ele>35.25</ele><speed>3</speed>")))
    obfuscate_file(source, target, epsilon=0.01, trace="ana,time", keep=["ele", "speed"])
    assert "<ele>35.25</ele>" in target.read_text()
    assert "<extensions><speed>3</speed></extensions>" in target.read_text()
    assert read_promise(target).kept == ("ele", "speed")
    gpx(source, track(point(*WALK[0], "<extensions><t:hr>88</t:hr></extensions>")))
    with pytest.raises(InvalidInputError, match="drop it"):
        obfuscate_file(source, target, epsilon=0.01, trace="ana,time", keep=["extensions"])
    for wrong in ({"drop": ["elevation"]}, {"keep": ["elevation"]}):
        gpx(source, track(point(*WALK[0])))
        with pytest.raises(InvalidInputError, match="'elevation'"):
            obfuscate_file(source, target, epsilon=0.01, trace="ana,time", **wrong)  # type: ignore[arg-type]


def test_waypoints_are_independent_points_and_tracks_need_a_person(tmp_path: Path) -> None:
    waypoints = "".join(point(*step, element="wpt") for step in WALK)
    source, target = gpx(tmp_path / "in.gpx", waypoints), tmp_path / "out.gpx"
    summary = obfuscate_file(source, target, epsilon=0.01)
    assert summary.reports == len(places(target, "wpt")) == 4
    assert read_promise(target).session is None
    gpx(source, waypoints + track(point(*WALK[0])))
    with pytest.raises(InvalidInputError, match="line 4: a route or track is many reports of one person"):
        obfuscate_file(source, target, epsilon=0.01)
    obfuscate_file(source, target, epsilon=0.01, drop=["trk"])
    assert len(places(target, "wpt")) == 4
    assert not places(target)


def test_bad_points_go_to_the_rejects_and_the_rest_stays_in_its_track(tmp_path: Path) -> None:
    back = '<trkpt lat="48.86" lon="2.3"><time>2023-05-01T08:00:00Z</time></trkpt>'
    lost = '<trkpt lat="48.86"><time>2024-05-01T08:31:00Z</time></trkpt>'
    source = gpx(
        tmp_path / "in.gpx", track(*("\n" + part for part in (point(*WALK[0]), back, lost, point(*WALK[3]))))
    )
    with pytest.raises(InvalidInputError, match="line 6: the time goes back for person 'ana'"):
        obfuscate_file(source, tmp_path / "out.gpx", epsilon=0.01, trace="ana,time", missing="keep")
    obfuscate_file(source, tmp_path / "out.gpx", epsilon=0.01, trace="ana,time", rejects=tmp_path / "bad.ndjson")
    assert len(places(tmp_path / "out.gpx")) == 2
    told = [json.loads(line) for line in (tmp_path / "bad.ndjson").read_text().splitlines()]
    assert [row["line"] for row in told] == [6, 7]


def test_a_folder_of_tracks_is_one_persons_and_the_ledger_pays_for_all(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    gpx(tmp_path / "in" / "a.gpx", track(point(*WALK[0]), point(*WALK[1])))
    gpx(tmp_path / "in" / "b.gpx", track(point(*WALK[2])))
    recipe = Recipe.of(epsilon=0.01, trace="ana,time", method="independent", key=KEY)
    with Ledger("sqlite://", budget=1) as ledger:
        obfuscate_files([tmp_path / "in"], tmp_path / "out", Job(recipe=recipe, ledger=ledger))
        assert ledger.spent("ana") == 0.03
    assert len(places(tmp_path / "out" / "b.gpx")) == 1


def test_small_batches_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = gpx(tmp_path / "in.gpx", track(*(point(*step) for step in WALK)))
    options: Any = {"trace": "ana,time", "method": Independent(0.01), "epsilon": 0.01, "key": KEY}
    obfuscate_file(source, tmp_path / "whole.gpx", **options)
    monkeypatch.setattr("geoind.files.gpx.CHUNK", 7)
    monkeypatch.setattr(
        "geoind.files.gpx.gpx_rows.__kwdefaults__",
        {"drop": frozenset(), "person": None, "moving": False, "size": 0},
    )
    obfuscate_file(source, tmp_path / "parts.gpx", **options)
    assert (tmp_path / "parts.gpx").read_bytes() == (tmp_path / "whole.gpx").read_bytes()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('<!DOCTYPE gpx [<!ENTITY a "aaaa">]><gpx><wpt lat="&a;" lon="1"/></gpx>', "document type"),
        ('<!DOCTYPE gpx SYSTEM "file:///etc/passwd"><gpx/>', "document type"),
        ("<kml/>", "no GPX file"),
        ("<gpx><wpt lat='1' lon='2'>", "line 1: this is no proper XML"),
        ("lat,lon\n1,2\n", "line 1: this is no proper XML"),
        ("<gpx><wpt lat='1' lon='2'>" + "<a>" * 100, "nested too deeply"),
        (f"<gpx><wpt lat='1' lon='2'><sym>{'a' * (2 << 20)}</sym></wpt></gpx>", "too long"),
        ("<gpx><wpt lat='91' lon='2'/></gpx>", "line 1: "),
        ("<gpx><wpt lon='2'/></gpx>", "line 1: there is no place"),
        ("", "line 1: this is no proper XML"),
        (
            "<gpx>\n<wpt lat='1' lon='2'><lat>3</lat></wpt></gpx>",
            "line 2: a point's lat and lon are its attributes",
        ),
        ("<gpx><wpt lat='1' lon='2'><a:lon xmlns:a='b'>3</a:lon></wpt></gpx>", "lat and lon are its attributes"),
    ],
    ids=range(12),
)
def test_what_is_no_safe_gpx_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "in.gpx").write_text(text)
    with pytest.raises(InvalidInputError, match=message):
        obfuscate_file(tmp_path / "in.gpx", tmp_path / "out.gpx", epsilon=0.01)
    assert not (tmp_path / "out.gpx").exists()


@pytest.mark.parametrize("trace", ["time,time", "ele,time", "ana,when"])
def test_a_gpx_file_has_no_columns_of_persons_and_times(tmp_path: Path, trace: str) -> None:
    source = gpx(tmp_path / "in.gpx", track(point(*WALK[0])))
    with pytest.raises(InvalidInputError, match=r"NAME,time|a name of your choice|two columns"):
        obfuscate_file(source, tmp_path / "out.gpx", epsilon=0.01, trace=trace)
