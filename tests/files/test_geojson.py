import json
from pathlib import Path
from typing import Any

import pytest

import geoind
from geoind.files import obfuscate_file
from geoind.files.geojson import CHUNK
from tests.files.test_delimited import SHARP, obfuscated, reason


def feature(lon: object, lat: object, /, **properties: object) -> dict[str, object]:
    return {"type": "Feature", "properties": properties, "geometry": {"type": "Point", "coordinates": [lon, lat]}}


def collection(*features: dict[str, object], **members: object) -> str:
    return json.dumps({"type": "FeatureCollection", **members, "features": list(features)})


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


def test_every_byte_of_a_collection_but_its_places_and_boxes_stays(tmp_path: Path) -> None:
    text = """\ufeff {"type" : "FeatureCollection","name":"\\u00e9 \\/", "crs": null,
      "bbox": [1, 2, 3, 4], "features" :[ \t
        {"id":1.50, "type": "Feature","geometry":{ "coordinates" : [ 2.5 ,\t1.5 , 324.5 ], "type":"Point"}} ,
        {"type":"Feature", "bbox": [3, 4, 3, 4], "properties":{"coordinates": "x", "é": "\\ud83d\\ude00"},
         "geometry": {"bbox": [3, 4], "type": "Point", "coordinates":[3,4], "note": {"a": 9} }},{
         "geometry": {"type":"Point","coordin\\u0061tes":[5,6]}, "properties": {"x\\"coordinates": [9, 8, 7]}}

    ] , "x" : [ 1 ], "n": 12345678901234567.10\r\n}
    """
    made = obfuscated(tmp_path, text, "in.geojson", keep=["properties"], drop=["collection.x"]).decode()
    wanted = text
    for before, after in {
        ',\n      "bbox": [1, 2, 3, 4]': "",
        "[ 2.5 ,\t1.5 , 324.5 ]": "[ 2.50000 ,\t1.50000 ]",
        ', "bbox": [3, 4, 3, 4]': "",
        '{"bbox": [3, 4], "type"': '{"type"',
        "[3,4]": "[3.00000,4.00000]",
        ', "note": {"a": 9}': "",
        "[5,6]": "[5.00000,6.00000]",
        ' , "x" : [ 1 ]': "",
    }.items():
        assert wanted.count(before) == 1
        wanted = wanted.replace(before, after)
    assert made == wanted


@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("features", [0, 3])
def test_members_of_a_collection_are_judged_wherever_they_are(tmp_path: Path, place: str, features: int) -> None:
    told = '"home_address": "x"'
    inside = ", ".join([json.dumps(feature(2.5, 1.5))] * features)
    parts = {"before": f'{{{told}, "features": [{inside}]}}', "after": f'{{"features": [{inside}], {told}}}'}
    assert "'collection.home_address' tells a place" in reason(tmp_path, parts[place], "in.geojson")
    made = obfuscated(tmp_path, parts[place], "in.geojson", drop=["collection.home_address"])
    assert list(json.loads(made)) == ["features"]


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
        ("[]", "must be a FeatureCollection; a list of records must become NDJSON, an object per line, first"),
        ("7", "must be a FeatureCollection"),
        ('{"type": "Feature"}', "must be a FeatureCollection"),
        ('{"type": "FeatureCollection",\n"features": [\n', "no proper JSON"),
        ('{"features": [' + json.dumps(feature(1, 2)) + ', {"a": tru]}', "no proper JSON, behind feature 1"),
        ('{"features": [{"a": "b]}', "no proper JSON"),
        ('{"features": [\n12.345]}', "a feature must be an object"),
        ('{"features": []} {"features": []}', "no proper JSON"),
        ('{"features": [], "features": []}', "a member occurs twice"),
        ('{"name": "a", "features": [], "name": "b"}', "a member occurs twice"),
        ('{"features": [], "x": [NaN]}', "NaN is no number in JSON"),
        ('{"features": [' + json.dumps(feature(1, 2)) + ",]}", "no proper JSON, behind feature 1"),
        ('{"features": [' + json.dumps(feature(1, 2)) + " 7]}", "no proper JSON, behind feature 1"),
        ('{"features": [' + json.dumps(feature(1, 2)) + "], 7}", "no proper JSON, behind feature 1"),
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


def test_reports_end_on_the_lattice(tmp_path: Path) -> None:
    read = json.loads(obfuscated(tmp_path, collection(*[feature(2.5, 1.5)] * 100), "in.geojson", epsilon=0.01))
    places = [one["geometry"]["coordinates"] for one in read["features"]]
    assert (geoind.snap_lonlat(places) == places).all()
    assert len({tuple(place) for place in places}) > 90
