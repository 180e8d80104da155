"""Small files with quotes, brackets, delimiters, line breaks and bytes in random places.

What is written has a row for each row that another reader sees in the source, with the same kept values, and no
true coordinate or column that was not kept. Otherwise the file was refused, and nothing was written.
"""

import csv
import io
import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from geoind import EACH_ROW, obfuscate_file
from geoind.errors import InvalidInputError
from geoind.files import Reading
from tests.trials import trials

FILES = 600
"""Of each format."""

TEXT = ['"', '"', '""', ",", "\n", "\r", "\r\n", "\t", ";", " ", "a", "é", "\\", "\0", "'", '"a\nb"', '",']
JSON = [
    '"',
    "\\",
    "\\\\",
    "{",
    "}",
    "[",
    "]",
    "[]",
    ",",
    ":",
    "\n",
    "\r\n",
    " ",
    "a",
    "é",
    "7",
    "-",
    "null",
    "NaN",
]
JSON += ['\\"', "\\u0061", "\\ud83d", "\ufeff", "\x1e", "//", ",7", '"lat":1,', '"lat"', '"l\\u0061t":1,']
JSON += ['"coordinates":[1,2],', '"geometry":null,', '"bbox":[1,2,3,4],', '"note":"x",', '"extra":"x",']
ENCODINGS = ["utf-8", "utf-8", "utf-8", "utf-8-sig", "latin-1", "utf-16"]
FORMATS = ("csv", "tsv", "ndjson", "geojson")
SECRET = "planted"


def random_file(rng: random.Random, name: str) -> tuple[bytes, list[str]]:
    """Return a file with some tokens where they may not belong, and its true coordinates."""
    ending = rng.choice(["\n", "\r\n", "\n"])
    places = [(f"{rng.uniform(1, 179):.6f}7", f"{rng.uniform(1, 89):.6f}7") for _ in range(rng.randint(1, 5))]
    rows = []
    for number, (lon, lat) in enumerate(places):
        if name in ("csv", "tsv"):
            rows.append(("\t" if name == "tsv" else ",").join([f"n{number}", lat, lon, SECRET]))
        elif name == "ndjson":
            rows.append(f'{{"note": "n{number}", "lat": {lat},"lon":{lon}, "secret": "{SECRET}" }}')
        else:
            point = f'{{"type":"Point", "coordinates": [{lon},{lat}]}}'
            about = f'{{"note":"n{number}", "secret": "{SECRET}"}}'
            rows.append(f'{{"type": "Feature", "properties": {about}, "geometry": {point}}}')
    text = ("," + ending if name == "geojson" else ending).join(rows) + rng.choice(["", ending])
    tokens = TEXT if name in ("csv", "tsv") else JSON
    for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 3])):
        commas = [at + 1 for at, sign in enumerate(text) if sign == ","]
        at = rng.choice(commas) if commas and rng.random() < 0.3 else rng.randint(0, len(text))
        text = text[:at] + rng.choice(tokens) + text[at:]
    if name == "geojson":
        text = f'{{"type": "FeatureCollection", "features": [{text}], "n": "{SECRET}"}}{ending}'
    elif name in ("csv", "tsv"):
        text = ("note,lat,lon,secret" if name == "csv" else "note\tlat\tlon\tsecret") + ending + text
    coordinates = [value for place in places for value in place]
    return text.encode(rng.choice(ENCODINGS), "replace"), coordinates


def seen(data: bytes, name: str) -> list[tuple[Any, list[Any]]]:
    """Return note and place of each row, as the standard library reads it."""
    text = data.decode("utf-8-sig")
    if name == "csv":
        rows = [row for row in csv.DictReader(io.StringIO(text, newline="")) if any(row.values())]
        return [(row["note"], [row["lon"], row["lat"]]) for row in rows]
    if name == "tsv":
        lines = [line.split("\t") for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n") if line]
        where = {column: number for number, column in enumerate(lines[0])}
        return [(line[where["note"]], [line[where["lon"]], line[where["lat"]]]) for line in lines[1:]]
    if name == "ndjson":
        records = [json.loads(line) for line in text.split("\n") if line.strip()]
        return [(record.get("note"), [record["lon"], record["lat"]]) for record in records]
    # GDAL takes line breaks inside of texts, and leaves out members that are not called features.
    features = [each for each in json.loads(text, strict=False)["features"] if each.get("type") == "Feature"]
    return [((each.get("properties") or {}).get("note"), each["geometry"]["coordinates"]) for each in features]


def check(folder: Path, data: bytes, coordinates: list[str], name: str) -> bool:
    """Obfuscate a file and check what becomes of it; return whether it was not refused."""
    source, target = folder / f"in.{name}", folder / f"out.{name}"
    source.write_bytes(data)
    reading = Reading(delimiter="," if name == "csv" else None)
    try:
        obfuscate_file(
            source, target, epsilon=0.001, person=EACH_ROW, keep=["note"], order="keep", reading=reading
        )
    except InvalidInputError as error:
        assert [path.name for path in folder.iterdir()] == [source.name]
        message = str(error)
        assert not any(value in message for value in coordinates)
        return False
    made = target.read_bytes()
    sidecar = Path(f"{target}.geoind.json")
    before, after = seen(data, name), seen(made, name)
    assert [note for note, _ in before] == [note for note, _ in after], (data, made)
    assert all(math.isfinite(float(value)) for _, place in after for value in place), (data, made)
    kept = repr([note for note, _ in before])
    written = (made + sidecar.read_bytes()).decode()
    # A quote that is not closed makes the rest of a row part of its note, which is kept.
    for hidden in (SECRET, *coordinates):
        assert hidden in kept or hidden not in written, (data, made)
    target.unlink()
    sidecar.unlink()
    return True


@pytest.mark.parametrize("name", FORMATS)
def test_what_comes_out_has_the_rows_and_the_kept_values_of_the_source_and_no_truth(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Waiting for the disk would take longer than all the rest.
    monkeypatch.setattr("os.fsync", lambda _: None)
    # GDAL runs in another process for each reading.
    rng, files = random.Random(7), trials(FILES // 30 if name == "geojson" else FILES)
    passed = sum(check(tmp_path, *random_file(rng, name), name) for _ in range(files))
    # Of a few files, all may be of one kind.
    assert 0.1 * files < passed < 0.9 * files or files < 20
