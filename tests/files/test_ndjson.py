import json
from pathlib import Path

import pytest

from geoind.files import obfuscate_file
from geoind.files.ndjson import BATCH_BYTES
from tests.files.test_delimited import SHARP, obfuscated, reason
from tests.files.test_geojson import feature


def test_every_byte_of_a_line_but_its_coordinates_stays(tmp_path: Path) -> None:
    text = (
        '\ufeff{"lat": 48.8584000 ,"lon":2.2945, "big": 12345678901234567.10,"t":  "é", "x": [1, {"y": null}]}\r\n'
        "\n"
        '\t{ "lon" : "2.5", "tags":{"colour":true , "n": 1.50e+2}, "lat"\t: 1e1, "t": "\\u00e9\\/\\"lat\\""}\n'
        '{"l\\u0061t":1,"lon":2,"note":"\\"lat","lat2":{"lat":"x"}}'
    )
    made = obfuscated(tmp_path, text, "in.ndjson", keep=["lat2"]).decode()
    assert made == (
        text.replace("48.8584000", "48.85840")
        .replace(":2.2945", ":2.29450")
        .replace('"2.5"', '"2.50000"')
        .replace(": 1e1", ": 10.00000")
        .replace(":1,", ":1.00000,")
        .replace(":2,", ":2.00000,")
    )


def test_a_member_that_comes_late_can_be_dropped(tmp_path: Path) -> None:
    line = json.dumps({"lat": 1.5, "lon": 2.5, "n": "x" * 500})
    lines = [line] * (2 * BATCH_BYTES // len(line))
    text = "\n".join([*lines, '{"lat": 1.5, "lon": 2.5, "n": 1, "address": "x"}'])
    assert b"address" not in obfuscated(tmp_path, text, "in.ndjson", drop=["address"])
    assert b"address" in obfuscated(tmp_path, text, "in.ndjson", keep=["address"])


def test_lines_may_be_features_and_have_record_separators(tmp_path: Path) -> None:
    lines = [json.dumps(feature(2.5, 1.5, name="a")), "\x1e" + json.dumps(feature(-2.5, 3, name="b"))]
    result = obfuscated(tmp_path, "\n".join(lines) + "\n", "in.geojsonl").decode().split("\n")
    assert result[1].startswith("\x1e{")
    read = [json.loads(line.strip("\x1e")) for line in result[:2]]
    assert [one["geometry"]["coordinates"] for one in read] == [[2.5, 1.5], [-2.5, 3.0]]
    assert [one["properties"] for one in read] == [{"name": "a"}, {"name": "b"}]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("12.345", "not a JSON object"),
        ("[12.345]", "not a JSON object"),
        ('{"lat": 12.345', "not a JSON object"),
        ('{"lat": 12.345, "lon": 2} {"lat": 1, "lon": 2}', "not a JSON object"),
        ('{"lat": 12.345}', "the member 'lon' is missing"),
        ('{"lat": 12.345, "lon": 2, "lat": 12.345}', "a member occurs twice in one object"),
        ('{"lat": 12.345, "lon": null}', "there is no place"),
        ('{"lat": 12.345, "lon": true}', "the longitude must be a finite number"),
        ('{"lat": 12.345, "lon": "12_3"}', "the longitude must be a finite number"),
        ('{"lat": NaN, "lon": 12.345}', "NaN is no number in JSON"),
        ('{"lat": 1e999, "lon": 12.345}', "the latitude must be a finite number"),
        ('{"lat": ' + "9" * 400 + ', "lon": 12.345}', "the latitude must be a finite number"),
        ('{"lat": 91, "lon": 12.345}', "|latitude| must be at most 90"),
        ('{"lat": 12.345, "lon": ' + "[" * 100_000, "the values are nested too deeply"),
    ],
)
def test_a_bad_line_stops_with_its_number_and_the_reason_and_no_coordinate(
    tmp_path: Path, line: str, why: str
) -> None:
    assert reason(tmp_path, f'{{"lat": 1, "lon": 2}}\n\n{line}\n', "in.ndjson") == f"line 3: {why}"


def test_lines_without_coordinates_stay_when_asked_for(tmp_path: Path) -> None:
    text = '{"lat": null, "lon": null}\n{"lat": 1, "lon": 2}\n'
    assert reason(tmp_path, text, "in.ndjson") == "line 1: there is no place"
    kept = obfuscated(tmp_path, text, "in.ndjson", missing="keep")
    assert kept == b'{"lat": null, "lon": null}\n{"lat": 1.00000, "lon": 2.00000}\n'
    half = obfuscated(tmp_path, text.replace('"lon": null', '"lon": 2.5'), "in.ndjson", missing="keep")
    assert half == kept, "half a place is none, and not a place that may stay"


def test_an_empty_file_of_lines_gives_an_empty_file(tmp_path: Path) -> None:
    assert obfuscated(tmp_path, "", "in.ndjson") == b""


def test_bad_lines_go_to_the_rejects(tmp_path: Path) -> None:
    source, target, rejects = tmp_path / "in.ndjson", tmp_path / "out.ndjson", tmp_path / "rejects"
    source.write_bytes(b'{"lat": 1, "lon": 2}\n{"lat": \xff}\n{"lat": 3, "lon": 4}')
    assert obfuscate_file(source, target, mechanism=SHARP, rejects=rejects).rejected == 1
    assert target.read_bytes() == b'{"lat": 1.00000, "lon": 2.00000}\n{"lat": 3.00000, "lon": 4.00000}'
    assert json.loads(rejects.read_bytes())["line"] == 2


def test_half_a_character_is_no_text(tmp_path: Path) -> None:
    line = '{"lat": 1, "lon": 2, "t": "\\ud83d"}'
    assert reason(tmp_path, line, "in.ndjson") == "line 1: an escape stands for half a character"
