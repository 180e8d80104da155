"""Ten thousand small files with quotes, brackets, delimiters, line breaks and bytes in random places.

Each comes in by the front door. Whatever goes out is read by another strict reader, too: it has a row for each row
of its source, all is as it was but for the place, which is another, and no true coordinate is left. Otherwise the
file was refused, and nothing was left.
"""

import csv
import io
import itertools
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ijson
import numpy as np
import pytest

import geoind
from geoind.errors import InvalidInputError
from geoind.files import Reading, jsonrows, jsontext, obfuscate_file, scan
from geoind.tables import table
from tests.trials import trials

FILES = 2_500
"""Of each format."""

NOISE = geoind.SphericalLaplace(0.001)

TEXT = ['"', '"', '"', '""', ",", "\n", "\r", "\r\n", "\t", ";", " ", "a", "é", "\\", "\0", "'", '"a\nb"', '",']
JSON = [
    *(
        '"',
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
    ),
    *(
        '\\"',
        "\\u0061",
        "\\ud83d",
        "\ufeff",
        "\x1e",
        "\0",
        "//",
        ",7",
        '"lat":1,',
        '"lat"',
        '"coordinates":[1,2],',
    ),
    *(
        '"geometry":null,',
        '"l\\u0061t":1,',
        '"x\\"coordinates":[1,2,3],',
        '"bbox":[1,2,3,4],',
        '"note":"x",',
        '"note":"x",',
        '"note":"x",',
    ),
]
ENCODINGS = ["utf-8", "utf-8", "utf-8", "utf-8-sig", "latin-1", "utf-16"]

Row = tuple[Any, list[Any]]
"""All of a row but its place, and its place."""


def random_file(rng: random.Random, name: str) -> bytes:
    """Return a file with some tokens where they may not belong; now and then one that tells the place."""
    ending = rng.choice(["\n", "\r\n", "\n"])
    places = [(rng.uniform(-179, 179), rng.uniform(-89, 89)) for _ in range(rng.randint(1, 5))]
    tells = rng.random() < 0.1
    notes = [f"at {lat:.6f}" if tells else f"n{row}" for row, (_, lat) in enumerate(places)]
    rows = []
    for note, (lon, lat) in zip(notes, places, strict=True):
        if name == "csv" or name == "tsv":
            rows.append(("\t" if name == "tsv" else ",").join([note, f"{lat:.6f}", f"{lon:.6f}"]))
        elif name == "ndjson":
            rows.append(f'{{"note": "{note}", "lat": {lat:.6f},"lon":{lon:.6f} }}')
        else:
            point = f'{{"type":"Point", "coordinates": [{lon:.6f},{lat:.6f}]}}'
            rows.append(f'{{"type": "Feature", "properties": {{"note":"{note}"}}, "geometry": {point}}}')
    text = ("," + ending if name == "geojson" else ending).join(rows) + rng.choice(["", ending])
    tokens = TEXT if name in ("csv", "tsv") else JSON
    for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 3])):
        commas = [at + 1 for at, sign in enumerate(text) if sign == ","]
        at = rng.choice(commas) if commas and rng.random() < 0.3 else rng.randint(0, len(text))
        text = text[:at] + rng.choice(tokens) + text[at:]
    if name == "geojson":
        text = f'{{"type": "FeatureCollection", "features": [{text}], "n": 1}}{ending}'
    elif name in ("csv", "tsv"):
        text = ("note,lat,lon" if name == "csv" else "note\tlat\tlon") + ending + text
    return text.encode(rng.choice(ENCODINGS), "replace")


def delimited(text: bytes, name: str) -> list[Row]:
    """Return the rows that another reader sees, which takes every line break for one; the header is the first."""
    if name == "tsv":
        lines = text.decode("latin-1").replace("\r\n", "\n").replace("\r", "\n").split("\n")
        rows = [line.split("\t") for line in lines if line]
    else:
        source = io.StringIO(text.decode("latin-1"), newline="")
        rows = [row for row in csv.reader(source, strict=True) if row]
    return [((row[0], *row[3:]), row[1:3]) for row in rows]


def tree(events: Iterator[tuple[str, Any]]) -> Any:
    """Return the next value of a parser, an object as a list of its members: each as often as it is there."""
    event, value = next(events)
    if event == "start_map":
        pairs: list[tuple[str, Any]] = []
        for event, name in events:
            if event == "end_map":
                return ("object", pairs)
            pairs.append((name, tree(events)))
    if event == "start_array":
        values: list[Any] = []
        for first in events:
            if first[0] == "end_array":
                return values
            values.append(tree(itertools.chain([first], events)))
    return value


def parsed(text: bytes) -> Any:
    """Return the one value that a text is."""
    events = ijson.basic_parse(io.BytesIO(text))
    value = tree(events)
    if list(events):
        raise ijson.JSONError("more than one value")
    return value


def without_place(record: Any, *, inside: tuple[str, ...]) -> Row:
    """Return an object without its place, and its place: each member of those names."""
    rest, place = [], []
    for name, value in record[1]:
        if name == "geometry" and inside == FEATURE:
            point = [pair for pair in value[1] if pair[0] == "coordinates"]
            place += [number for _, numbers in point for number in numbers[:2]]
            rest.append((name, [pair for pair in value[1] if pair[0] == "type"]))
        elif name.strip().lower() in inside and inside != FEATURE:
            place.append(value)
        elif name != "bbox":
            rest.append((name, value))
    return rest, place


FEATURE = ("geometry",)


def objects(text: bytes, name: str) -> list[Row]:
    """Return the objects that ijson sees."""
    if name == "ndjson":
        lines = text.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        bodies = [body for line in lines if (body := line.strip(b" \t\r\x1e"))]
        trees = [parsed(body) for body in bodies]
        return [without_place(record, inside=("lat", "lon")) for record in trees]
    document = parsed(text.removeprefix(b"\xef\xbb\xbf"))
    features = [value for member, value in document[1] if member == "features"]
    around = [(member, value) for member, value in document[1] if member != "features"]
    return [(around, []), *(without_place(record, inside=FEATURE) for record in features[0])]


def complaint(folder: Path, text: bytes, name: str) -> str | None:
    """Return what is wrong with what becomes of a file, None if nothing is."""
    source, target = folder / f"in.{name}", folder / f"out.{name}"
    source.write_bytes(text)
    try:
        obfuscate_file(source, target, mechanism=NOISE, order="keep", reading=READING.get(name))
    except InvalidInputError:
        left = [path.name for path in folder.iterdir() if path != source]
        return f"{text!r} was refused, and left {left}" if left else None
    made = target.read_bytes()
    for path in (target, Path(f"{target}.geoind.json")):
        path.unlink()
    read = delimited if name in ("csv", "tsv") else objects
    try:
        before, after = read(text, name), read(made, name)
    except (csv.Error, ijson.JSONError, UnicodeDecodeError, StopIteration, TypeError, IndexError):
        return f"{text!r} is no proper {name}, and became {made!r}"
    if [rest for rest, _ in before] != [rest for rest, _ in after]:
        return f"{text!r} became {made!r}"
    for number, ((_, truth), (_, report)) in enumerate(zip(before, after, strict=True)):
        if not number and name != "ndjson":
            continue
        # Both of them: one coordinate with a last 0 is met by chance, by one report in some thousands.
        if len(report) != 2 or all(one == other for one, other in zip(truth, report, strict=True)):
            return f"the row {truth!r} became {report!r}"
        if not all(np.isfinite(float(value)) for value in report):
            return f"the row {truth!r} became {report!r}"
        if any(
            f"{float(value):.6f}".encode() in made for value in truth if float(value) != round(float(value), 5)
        ):
            return f"{text!r} became {made!r}, with a true coordinate"
    return None


READING = {"csv": Reading(delimiter=",")}

FORMATS = ("csv", "tsv", "ndjson", "geojson")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files be lost when the machine stops: waiting for the disk takes longer than all the rest."""
    monkeypatch.setattr("os.fsync", lambda _: None)


def complaints(folder: Path, name: str, files: int) -> Iterator[str]:
    """Yield what is wrong, file by file."""
    rng = random.Random(7)
    for _ in range(files):
        found = complaint(folder, random_file(rng, name), name)
        if found is not None:
            yield found
            shutil.rmtree(folder)
            folder.mkdir()


@pytest.mark.parametrize("name", FORMATS)
def test_every_row_that_comes_out_was_a_row_and_holds_a_report(tmp_path: Path, name: str) -> None:
    assert list(complaints(tmp_path, name, trials(FILES))) == []


@pytest.mark.parametrize("name", FORMATS)
def test_most_clean_files_and_some_unusual_ones_come_out(tmp_path: Path, name: str) -> None:
    rng = random.Random(7)
    passed = 0
    for _ in range(200):
        (tmp_path / f"in.{name}").write_bytes(random_file(rng, name))
        try:
            obfuscate_file(
                tmp_path / f"in.{name}",
                tmp_path / f"out.{name}",
                mechanism=NOISE,
                order="keep",
                reading=READING.get(name),
            )
        except InvalidInputError:
            continue
        passed += 1
    assert 20 < passed < 180


def blind_to_quotes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "_misplaced", lambda *_: None)


def blind_to_carriage_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    part = scan._part

    def without_strays(*arguments: object) -> object:
        return part(*arguments)._replace(stray=np.empty(0, np.int64))  # type: ignore[arg-type]

    monkeypatch.setattr(scan, "_part", without_strays)


def blind_to_repetitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonrows, "members", dict)
    monkeypatch.setattr("geoind.files.jsonvalues.members", dict)


def blind_to_what_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    def first_object(text: str) -> Any:
        return jsontext.object_in(text[: jsontext.value_at(text, 0)[1]])

    monkeypatch.setattr(jsonrows, "object_in", first_object)


def without_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "refuse", lambda _: None)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("csv", blind_to_quotes),
        ("csv", blind_to_carriage_returns),
        ("tsv", blind_to_carriage_returns),
        ("ndjson", blind_to_what_follows),
        ("geojson", blind_to_repetitions),
        *((name, without_the_policy) for name in FORMATS),
    ],
)
def test_the_check_sees_a_reader_that_is_less_strict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, fault: Callable[[pytest.MonkeyPatch], None]
) -> None:
    fault(monkeypatch)
    assert next(complaints(tmp_path, name, FILES), None) is not None


def test_the_check_sees_a_member_that_hides_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = b'{"k": {"note": "at 48.858412", "note": "x"}, "lat": 48.858412, "lon": 2.294512}'
    assert complaint(tmp_path, text, "ndjson") is None
    blind_to_repetitions(monkeypatch)
    assert "with a true coordinate" in (complaint(tmp_path, text, "ndjson") or "")
