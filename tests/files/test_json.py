import json
from pathlib import Path
from typing import Any

import pytest

import geoind
from geoind.errors import InvalidInputError
from geoind.files import obfuscate_file
from geoind.files.geojson import CHUNK
from geoind.files.ndjson import BATCH_BYTES
from tests.files.test_delimited import SHARP, obfuscated, reason

KEYED: dict[str, Any] = {"epsilon": 0.01, "key": bytes(range(32)), "id_column": "id"}


def feature(lon: object, lat: object, /, **properties: object) -> dict[str, object]:
    return {"type": "Feature", "properties": properties, "geometry": {"type": "Point", "coordinates": [lon, lat]}}


def collection(*features: dict[str, object], **members: object) -> str:
    return json.dumps({"type": "FeatureCollection", **members, "features": list(features)})


def test_every_value_of_an_object_but_the_coordinates_stays_with_all_its_digits(tmp_path: Path) -> None:
    text = (
        '{"lat": 48.8584000, "lon": 2.2945, "big": 12345678901234567.10, "t": "é", "x": [1, {"y": null}]}\r\n'
        "\n"
        '  {"lon": "2.5", "tags": {"colour": true, "n": 1.50}, "lat": 1e1}'
    )
    assert obfuscated(tmp_path, text, "in.ndjson").decode() == (
        '{"lat": 48.85840, "lon": 2.29450, "big": 12345678901234567.10, "t": "é", "x": [1, {"y": null}]}\r\n'
        "\n"
        '  {"lon": "2.50000", "tags": {"colour": true, "n": 1.50}, "lat": 10.00000}'
    )
    compact = '{"lat":1,"lon":2,"t":"\\u00e9"}\n'
    assert obfuscated(tmp_path, compact, "in.ndjson").decode() == compact.replace(
        '"lat":1,"lon":2', '"lat":1.00000,"lon":2.00000'
    )


def test_members_of_members_and_of_later_records_are_looked_at(tmp_path: Path) -> None:
    lines = ['{"lat": 1.5, "lon": 2.5, "n": 1}'] * 3
    for more in (
        '"home": {"address": "x"}',
        '"stops": [{"lat": 1.5}, {"lat": 1.6}]',
        '"geometry": {"type": "Point", "coordinates": [2.5, 1.5]}',
        '"at": [2.5, 1.5]',
    ):
        text = "\n".join([*lines, '{"lat": 1.5, "lon": 2.5, ' + more + "}"])
        assert "would tell the place" in reason(tmp_path, text, "in.ndjson"), more
        name = more.split('"')[1]
        assert f'"{name}"' not in obfuscated(tmp_path, text, "in.ndjson", drop=[name]).decode()
        kept = obfuscated(tmp_path, text, "in.ndjson", keep=[name]).decode()
        assert json.loads(kept.splitlines()[-1])[name] == json.loads("{" + more + "}")[name]
        for left in ("out-in.ndjson", "out-in.ndjson.geoind.json"):
            (tmp_path / left).unlink()


def test_a_member_that_comes_late_can_be_dropped(tmp_path: Path) -> None:
    lines = ['{"lat": 1.5, "lon": 2.5, "n": 1}'] * (2 * BATCH_BYTES // 30)
    text = "\n".join([*lines, '{"lat": 1.5, "lon": 2.5, "n": 1, "address": "x"}'])
    assert b"address" not in obfuscated(tmp_path, text, "in.ndjson", drop=["address"])
    assert b"address" in obfuscated(tmp_path, text, "in.ndjson", keep=["address"])


def test_a_place_may_lie_inside_a_member(tmp_path: Path) -> None:
    result = obfuscated(tmp_path, '{"at": {"y": 1.5, "x": 2.5}, "n": 7}', "in.ndjson", lat="at.y", lon="at.x")
    assert json.loads(result) == {"at": {"y": 1.5, "x": 2.5}, "n": 7}
    assert b"1.50000" in result


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
        ('{"lat": 12.345, "lon": ' + "[" * 100_000, "not a JSON object"),
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


def test_a_collection_keeps_everything_but_places_and_boxes(tmp_path: Path) -> None:
    features = [
        feature(2.5, 1.5, name="é", value=1.10) | {"id": 7, "bbox": [2.5, 1.5, 2.5, 1.5]},
        {"bbox": [3, 4, 3, 4]} | feature(3, 4),
        feature(180, -90) | {"geometry": {"type": "Point", "coordinates": [180, -80, 324.5]}},
    ]
    text = collection(*features, name="places", bbox=[2.5, -90, 180, 4], crs=None)
    read = json.loads(obfuscated(tmp_path, text, "in.geojson"))
    assert list(read) == ["type", "name", "crs", "features"]
    assert (read["type"], read["name"]) == ("FeatureCollection", "places")
    assert read["features"][0] == {
        "type": "Feature",
        "properties": {"name": "é", "value": 1.1},
        "geometry": {"type": "Point", "coordinates": [2.5, 1.5]},
        "id": 7,
    }
    assert read["features"][1] == feature(3.0, 4.0)
    assert len(read["features"][2]["geometry"]["coordinates"]) == 2
    assert "324.5" not in json.dumps(read)


def test_members_may_come_in_any_order_and_the_collection_may_be_empty(tmp_path: Path) -> None:
    text = '{"features": [], "type": "FeatureCollection", "bbox": [1, 2, 3, 4]}'
    assert json.loads(obfuscated(tmp_path, text, "in.geojson")) == {"features": [], "type": "FeatureCollection"}


def test_a_long_collection_is_read_in_pieces(tmp_path: Path) -> None:
    count = 4 * CHUNK // 200
    features = [feature(i % 170 + 0.5, i % 80 + 0.25, note='"}],é' * 12, i=i) for i in range(count)]
    text = collection(*features).replace("}, {", "},\n {")
    assert len(text) > 3 * CHUNK
    read = json.loads(obfuscated(tmp_path, text, "in.geojson", order="keep"))
    assert read["features"] == features


def test_a_feature_longer_than_a_piece_is_read_whole(tmp_path: Path) -> None:
    long = feature(1.5, 2.5, note="x" * 3 * CHUNK)
    read = json.loads(obfuscated(tmp_path, collection(long, feature(3.5, 4.5)), "in.geojson"))
    assert read["features"] == [long, feature(3.5, 4.5)]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({"type": "Feature", "properties": {}}, "the feature has no geometry"),
        (feature(0, 0) | {"geometry": None}, "there is no place"),
        (feature(0, 0) | {"geometry": {"type": "Point", "coordinates": []}}, "there is no place"),
        (feature(0, 0) | {"geometry": {"type": "Polygon", "coordinates": [[[12.345, 1]]]}}, "not a Polygon"),
        (feature(0, 0) | {"geometry": {"type": "12.345"}}, "not a Point"),
        (feature(0, 0) | {"geometry": [12.345, 1]}, "not a Point"),
        (feature("12.345", 0), "the coordinates must be numbers"),
        (feature(None, 12.345), "the coordinates must be numbers"),
        (feature(12.345, 90.5), "|latitude| must be at most 90"),
    ],
)
def test_a_bad_feature_stops_with_its_number_and_the_reason_and_no_coordinate(
    tmp_path: Path, bad: dict[str, Any], why: str
) -> None:
    features = ",\n".join(map(json.dumps, [feature(1, 2), bad]))
    message = reason(tmp_path, '{"type": "FeatureCollection", "features": [\n' + features + "\n]}", "in.geojson")
    assert message.startswith("feature 2: ")
    assert why in message
    assert "12.345" not in message


def test_bad_features_go_to_the_rejects_and_commas_stay_right(tmp_path: Path) -> None:
    source, target, rejects = tmp_path / "in.geojson", tmp_path / "out.geojson", tmp_path / "rejects"
    source.write_text(collection(feature(0, 91), feature(1, 2), feature(0, 91), feature(3, 4), feature(0, 91)))
    assert obfuscate_file(source, target, mechanism=SHARP, rejects=rejects).rejected == 3
    assert json.loads(target.read_text())["features"] == [feature(1.0, 2.0), feature(3.0, 4.0)]
    told = [json.loads(line) for line in rejects.read_text().splitlines()]
    assert [json.loads(one["record"]) for one in told] == [feature(0, 91)] * 3


def test_features_without_a_place_stay_when_asked_for(tmp_path: Path) -> None:
    nowhere = feature(0, 0) | {"geometry": None}
    read = json.loads(obfuscated(tmp_path, collection(nowhere, feature(1, 2)), "in.geojson", missing="keep"))
    assert read["features"] == [nowhere, feature(1.0, 2.0)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no proper JSON, behind feature 0"),
        ("[]", "must be a FeatureCollection"),
        ("7", "must be a FeatureCollection"),
        ('{"type": "Feature"}', "must be a FeatureCollection"),
        ('{"type": "FeatureCollection",\n"features": [\n', "no proper JSON"),
        ('{"features": [' + json.dumps(feature(1, 2)) + ', {"a": tru]}', "no proper JSON, behind feature 1"),
        ('{"features": [{"a": "b]}', "no proper JSON"),
        ('{"features": [\n12.345]}', "a feature must be an object"),
        ('{"features": []} {"features": []}', "no proper JSON"),
        ('{"features": [], "features": []}', "one list of features"),
        ('{"features": 12.345}', "has no features"),
        ('{"features": [' + '{"a":' * 100_000, "nested too deeply"),
        ('{"crs": {"type": "name", "properties": {"name": "EPSG:2154"}}, "features": []}', "crs other than WGS84"),
        (b'{"name": "\xff", "features": []}', "no proper JSON"),
    ],
)
def test_a_broken_document_is_refused(tmp_path: Path, text: bytes | str, why: str) -> None:
    message = reason(tmp_path, text, "in.geojson")
    assert why in message
    assert "12.345" not in message


@pytest.mark.parametrize("name", ["urn:ogc:def:crs:OGC:1.3:CRS84", "urn:ogc:def:crs:EPSG::4326", "EPSG:4326"])
def test_a_crs_that_is_wgs84_is_fine(tmp_path: Path, name: str) -> None:
    crs = {"type": "name", "properties": {"name": name}}
    assert json.loads(obfuscated(tmp_path, collection(feature(1, 2), crs=crs), "in.geojson"))["crs"] == crs


def test_a_key_gives_csv_lines_and_features_the_same_noise(tmp_path: Path) -> None:
    csv = obfuscated(tmp_path, "id,lat,lon\n7,1.5,2.5\n", **KEYED).decode().splitlines()[1].split(",")
    line = json.loads(obfuscated(tmp_path, '{"id": 7, "lat": 1.5, "lon": 2.5}', "in.ndjson", **KEYED))
    by_property = json.loads(obfuscated(tmp_path, collection(feature(2.5, 1.5, id="7")), "a.geojson", **KEYED))
    by_own_id = json.loads(obfuscated(tmp_path, collection(feature(2.5, 1.5) | {"id": 7}), "b.geojson", **KEYED))
    report = [float(csv[2]), float(csv[1])]
    assert [line["lon"], line["lat"]] == report
    for read in (by_property, by_own_id):
        assert read["features"][0]["geometry"]["coordinates"] == report


@pytest.mark.parametrize("identity", [None, "", True, 1.5, [1]])
def test_an_id_must_be_text_or_a_whole_number(tmp_path: Path, identity: object) -> None:
    line = json.dumps({"id": identity, "lat": 1, "lon": 2})
    assert reason(tmp_path, line, "in.ndjson", **KEYED) == "line 1: there is no identity in column 'id'"
    text = collection(feature(2.5, 1.5, id=identity))
    assert "there is no identity" in reason_again(tmp_path, text)


def reason_again(tmp_path: Path, text: str) -> str:
    (tmp_path / "in.ndjson").unlink()
    return reason(tmp_path, text, "in.geojson", **KEYED)


def test_properties_and_members_that_tell_are_refused_dropped_or_kept(tmp_path: Path) -> None:
    text = collection(feature(2.5, 1.5, address="x", name="y") | {"centre": [2.5, 1.5]}, where=[2.5, 1.5])
    drop = ["address", "centre", "collection.where"]
    for name in drop:
        others = [other for other in drop if other != name]
        assert f"{name}' " in reason(tmp_path, text, "in.geojson", drop=others)
    read = json.loads(obfuscated(tmp_path, text, "in.geojson", drop=drop))
    assert read == json.loads(collection(feature(2.5, 1.5, name="y")))
    for left in ("out-in.geojson", "out-in.geojson.geoind.json"):
        (tmp_path / left).unlink()
    assert "no member 'nobody'" in reason(tmp_path, text, "in.geojson", drop=[*drop, "nobody"])
    kept = json.loads(obfuscated(tmp_path, text, "in.geojson", keep=["properties.address", *drop[1:]]))
    assert kept["features"][0]["properties"] == {"address": "x", "name": "y"}


def test_reports_end_on_the_lattice(tmp_path: Path) -> None:
    read = json.loads(obfuscated(tmp_path, collection(*[feature(2.5, 1.5)] * 100), "in.geojson", epsilon=0.01))
    places = [one["geometry"]["coordinates"] for one in read["features"]]
    assert (geoind.snap_lonlat(places) == places).all()
    assert len({tuple(place) for place in places}) > 90


def test_formats_must_not_change_on_the_way(tmp_path: Path) -> None:
    (tmp_path / "in.geojson").write_text(collection())
    with pytest.raises(InvalidInputError, match="the input is geojson and the output csv"):
        obfuscate_file(tmp_path / "in.geojson", tmp_path / "out.csv", epsilon=0.1)
