import json
from pathlib import Path
from typing import Any

import pytest

from tests.files.test_delimited import obfuscated, reason
from tests.files.test_geojson import collection, feature

KEYED: dict[str, Any] = {"epsilon": 0.01, "key": bytes(range(32)), "id_column": "id"}


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


def test_a_place_may_lie_inside_a_member(tmp_path: Path) -> None:
    result = obfuscated(tmp_path, '{"at": {"y": 1.5, "x": 2.5}, "n": 7}', "in.ndjson", lat="at.y", lon="at.x")
    assert json.loads(result) == {"at": {"y": 1.5, "x": 2.5}, "n": 7}
    assert b"1.50000" in result


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


def test_names_are_text_or_whole_numbers_not_both(tmp_path: Path) -> None:
    lines = "\n".join(json.dumps({"id": name, "lat": 1, "lon": 2}) for name in (7, "7"))
    assert "'id' must be text in all records or whole numbers" in reason(tmp_path, lines, "in.ndjson", **KEYED)


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


def test_a_coordinate_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    record = '{"at": {"y": 1.5, "x": 2.5}, "at.y": 1.5}'
    assert (
        reason(tmp_path, record, "in.ndjson", lat="at.y", lon="at.x") == "line 1: the member 'at.y' is there twice"
    )
    twice = '{"features": [{"geometry": {"type": "Point", "coordinates": [1, 2], "coordinates": [3, 4]}}]}'
    (tmp_path / "in.ndjson").unlink()
    assert reason(tmp_path, twice, "in.geojson") == "feature 1: a member occurs twice in one object"


@pytest.mark.parametrize("name", ["in.ndjson", "in.geojson"])
def test_shuffled_records_are_still_records(tmp_path: Path, name: str) -> None:
    lines = [
        json.dumps(feature(2.5, 1.5, n=row) if name == "in.geojson" else {"n": row, "lat": 1, "lon": 2})
        for row in range(9)
    ]
    text = "\n".join(lines) if name == "in.ndjson" else '{"features": [' + ",\n".join(lines) + "]}"
    made = obfuscated(tmp_path, text, name, order="shuffle").decode()
    if name == "in.ndjson":
        found = [json.loads(line)["n"] for line in made.splitlines()]
    else:
        found = [one["properties"]["n"] for one in json.loads(made)["features"]]
    assert sorted(found) == list(range(9)) != found
