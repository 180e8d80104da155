"""Hostile text in every name and value that reaches a page, a message or a file."""

import contextlib
import io
import json
from collections.abc import Callable
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import geopandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import geoind
from geoind import EACH_ROW, Ledger, SamePlace, SphericalLaplace, obfuscate_file
from geoind.adapters.geopandas import obfuscate
from geoind.cli import main
from geoind.errors import GeoindError, InvalidInputError
from geoind.files import Reading
from geoind.maps import read_basemap
from geoind.pictures.card import card
from geoind.queries.points_of_interest import PointsOfInterest
from geoind.tables import EACH_FILE, ReleaseRecord, sidecar_of
from tests.apart import apart

HOSTILE = {
    "template": "zq{{31*37}}qz",
    "block": "zq{% for i in [3, 4] %}{{ i }}{% endfor %}qz",
    "tag": "<img src=zq onerror=alert(1337)>",
    "quote": '" onload="alert(1337)" x="',
    "apostrophe": "' onload='alert(1337)",
    "script": "</title></style></script><script>alert(1337)</script>",
    "rtl": "zq\u202e\u2066\u200fqz",
    "long": "zq" * 500_000,
    "nul": "zq\0qz",
    "ansi": "zq\x1b[2J\x1b]0;title\x07qz",
    "lines": "zq\nqz\r\tqz",
    "surrogate": "zq\ud800qz",
}
SHOWN = [HOSTILE[name] for name in ("template", "tag", "quote", "script")]
"""For pages that take long to make and have a quicker one like them."""
FEW = [HOSTILE[name] for name in ("template", "long", "nul", "ansi", "surrogate")]
"""For files that take a process of GDAL."""
EVALUATED = ("zq1147qz", "zq34qz")
LONGEST = 4000
"""Characters of a message."""
ON_A_TERMINAL = 1000
"""Characters of a line on a terminal."""
MANY_LINES = 20

NOISE = ("--each-row-a-person", "--epsilon", "0.01")

Entry = Callable[[str, Path], str | None]
"""Feeds a text somewhere, and returns the page or the messages that come of it; None where that cannot be."""


class Scripts(HTMLParser):
    """What of a page a browser would run, or would load as an image."""

    def __init__(self) -> None:
        super().__init__()
        self.attributes: list[tuple[str, str, str]] = []
        self.scripts: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self._inside = tag == "script"
        if self._inside:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag != "script"

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.scripts[-1] += data


def assert_page_is_safe(page: str) -> None:
    assert not any(text in page for text in EVALUATED)
    parser = Scripts()
    parser.feed(page)
    for tag, name, value in parser.attributes:
        assert not (name.startswith("on") and "1337" in value), (tag, name, value[:100])
        assert (tag, name, value) != ("img", "src", "zq")
    # Inside a string of a script the text is data; on its own it is code.
    assert not any(script.strip().startswith("alert(1337)") for script in parser.scripts)


def assert_messages_are_safe(messages: str) -> None:
    assert not any(text in messages for text in EVALUATED)
    lines = messages.split("\n")
    assert len(lines) <= MANY_LINES
    for line in lines:
        assert line.isprintable(), repr(line[:200])
        assert len(line) <= LONGEST


def run(*arguments: object) -> str:
    """Return what a command says on both streams; its exit code is 0 or 2, and a traceback is neither."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        assert main([str(argument) for argument in arguments]) in (0, 2)
    assert all(len(line) <= ON_A_TERMINAL for line in err.getvalue().split("\n"))
    return err.getvalue()


def reports(path: Path, **changed: Any) -> Path:
    path.write_text("lon,lat\n2.35,48.86\n2.36,48.85\n")
    record = json.loads(ReleaseRecord.of(SphericalLaplace(0.01), level=2.0, radius=200.0, unit="column").to_json())
    sidecar_of(path).write_text(json.dumps(record | changed))
    return path


def map_of(source: Path, *more: object) -> str:
    """Return the page of a file, or "" where the command refuses it in a message that is safe."""
    out = source.parent / "page.html"
    out.unlink(missing_ok=True)
    assert_messages_are_safe(run("map", source, "--out", out, *more))
    return out.read_text() if out.exists() else ""


def town(path: Path, **properties: Any) -> Path:
    shapes = [shapely.box(2.3, 48.8, 2.31, 48.81), shapely.LineString([(2.3, 48.8), (2.4, 48.9)])]
    features = [
        {"type": "Feature", "properties": {"name": "a"} | properties, "geometry": shape.__geo_interface__}
        for shape in shapes
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


def as_file(folder: Path, text: str, suffix: str) -> Path | None:
    """Return a path whose name is the text, where a file system has such names."""
    name = f"{text}{suffix}"
    return None if "/" in name or "\0" in name or "\ud800" in name or len(name) > 200 else folder / name


def page_of_a_file_name(text: str, folder: Path) -> str | None:
    path = as_file(folder, text, ".csv")
    return None if path is None else map_of(reports(path))


def page_of_a_file_without_a_record(text: str, folder: Path) -> str | None:
    path = as_file(folder, text, ".csv")
    if path is None:
        return None
    sidecar_of(reports(path)).unlink()
    return map_of(path)


def page_of_a_folder_name(text: str, folder: Path) -> str | None:
    inside = as_file(folder, text, "")
    if inside is None:
        return None
    inside.mkdir()
    return map_of(reports(inside / "r.csv"))


def page_of_a_base_map_name(text: str, folder: Path) -> str | None:
    path = as_file(folder, text, ".geojson")
    return (
        None if path is None or text not in SHOWN else map_of(reports(folder / "r.csv"), "--basemap", town(path))
    )


def page_of_base_map_values(text: str, folder: Path) -> str | None:
    path = town(folder / "town.geojson", building=text, highway=text, amenity=text, name=text)
    return map_of(reports(folder / "r.csv"), "--basemap", path)


def pages_of_the_record(text: str, folder: Path) -> str | None:
    members: dict[str, dict[str, Any]] = {
        "mechanism": {"mechanism": text},
        "version": {"version": text},
        "session": {"session": text, "fresh": 0.01},
        "unit": {"unit": text},
        "level": {"level": text},
        "places": {"places": [{"lon": text, "lat": "lat"}]},
        "kept": {"kept": [text]},
        "person": {"unit": text},
        "count": {"unit": "column", "persons": text},
        "total": {"busiest": {"reports": text, "epsilon": text}},
        "unknown": {"unknown": text},
    }
    return "\n".join(map_of(reports(folder / f"{name}.csv", **changed)) for name, changed in members.items())


def page_of_parquet_metadata(text: str, folder: Path) -> str | None:
    record = json.dumps(
        json.loads(ReleaseRecord.of(SphericalLaplace(0.01), unit="column").to_json()) | {"mechanism": text}
    )
    table = pa.table({"lon": [2.35], "lat": [48.86]}).replace_schema_metadata({"geoind": record})
    pq.write_table(table, folder / "r.parquet")
    return map_of(folder / "r.parquet")


def page_of_column_names(text: str, folder: Path) -> str | None:
    with contextlib.suppress(UnicodeError):
        table = pa.table({text: ["a", "b"], "lon": [2.35, 2.36], "lat": [48.86, 48.85]})
        record = ReleaseRecord.of(SphericalLaplace(0.01), unit="column").to_json()
        pq.write_table(table.replace_schema_metadata({"geoind": record}), folder / "r.parquet")
        return map_of(folder / "r.parquet")
    return None


def page_of_an_estimate(text: str, folder: Path) -> str | None:
    path = as_file(folder, text, ".csv")
    if path is None or text not in SHOWN:
        return None
    out = folder / "page.html"
    assert_messages_are_safe(run("estimate", reports(path), "--grid", 500, "--out", out))
    return out.read_text() if out.exists() else None


def page_of_a_notebook(text: str, _: Path) -> str | None:
    return card(text, {text: text})


def page_of_the_demo(text: str, folder: Path) -> str | None:
    import asyncio

    import httpx

    from webdemo.app import create_app

    path = as_file(folder, text, ".geojson")
    if path is None or text not in SHOWN:
        return None
    try:
        app = create_app(town(path, amenity=text, name=text))
    except InvalidInputError as error:
        assert_messages_are_safe(str(error))
        return ""
    transport = httpx.ASGITransport(app)

    async def asked() -> str:
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return (await client.get("/")).text

    page: str = apart(asyncio.run, asked())
    return page


PAGES: list[Entry] = [
    page_of_a_file_name,
    page_of_a_file_without_a_record,
    page_of_a_folder_name,
    page_of_a_base_map_name,
    page_of_base_map_values,
    pages_of_the_record,
    page_of_parquet_metadata,
    page_of_column_names,
    page_of_an_estimate,
    page_of_a_notebook,
    page_of_the_demo,
]


def refused(call: Callable[[], object]) -> str | None:
    """Return the message of an error of geoind's own; every other error is a failure."""
    try:
        call()
    except GeoindError as error:
        return str(error)
    return None


def obfuscated(text: str, folder: Path, *more: object) -> str:
    (folder / "in.csv").write_bytes(text.encode("utf-8", "surrogatepass"))
    return run("obfuscate", folder / "in.csv", folder / "out.csv", *NOISE, *more)


def frame_of(text: str) -> geopandas.GeoDataFrame:
    return geopandas.GeoDataFrame({text: ["a"]}, geometry=[shapely.Point(2.35, 48.86)], crs=4326)


def message_of_a_missing_file(text: str, folder: Path) -> str | None:
    path = as_file(folder, text, ".csv")
    return None if path is None else run("obfuscate", path, folder / "out.csv", *NOISE)


def message_of_a_suffix(text: str, folder: Path) -> str | None:
    path = as_file(folder, "x.", text)
    if path is None:
        return None
    path.write_text("x")
    return run("obfuscate", path, folder / "out.csv", *NOISE)


def message_of_a_folder_of_files(text: str, folder: Path) -> str | None:
    path = as_file(folder, text, "")
    if path is None:
        return None
    path.mkdir()
    (path / "a.csv").write_text("lon,lat\nx,y\n")
    other = as_file(path, text, ".other")
    if other is not None:
        other.write_text("x")
    return run("obfuscate", path, folder / "out", *NOISE, "--workers", "1")


def message_of_column_names(text: str, folder: Path) -> str | None:
    return obfuscated(f'"{text.replace(chr(34), chr(34) * 2)}",x\n1,2\n', folder)


def message_of_a_cell(text: str, folder: Path) -> str | None:
    return obfuscated(f'lon,lat\n"{text.replace(chr(34), chr(34) * 2)}",48.86\n', folder)


def message_of_options(text: str, folder: Path) -> str | None:
    path = reports(folder / "in.csv")
    options: list[dict[str, Any]] = [
        {"lon": text, "lat": "lat"},
        {"keep": [text]},
        {"person": text},
        {"order": text},
        {"missing": text},
        {"person": "lon", "time": text},
        {"reports_per_person": text},
        {"same_place": text},
        {"allow_total": text},
        {"geometry": text, "crs": text},
        {"reading": Reading(format=text)},
        {"reading": Reading(delimiter=text)},
        {"reading": Reading(layer=text)},
        {"person": "lon", "time": "lat", "method": text},
        {"key": bytes(32), "id_column": text},
    ]
    usual: dict[str, Any] = {"epsilon": 0.01, "person": EACH_ROW}
    found = [refused(partial(obfuscate_file, path, folder / "out.csv", **usual | one)) for one in options]
    return "\n".join(message for message in found if message is not None)


def message_of_persons(text: str, folder: Path) -> str | None:
    """Persons by a column and by the names of files, whose times do not increase."""
    quoted = f'"{text.replace(chr(34), chr(34) * 2)}"'
    rows = f"who,at,lon,lat\n{quoted},2,2.35,48.86\n{quoted},1,2.36,48.86\n"
    messages = ""
    path = as_file(folder, text, ".csv")
    for source, person in ((folder / "in.csv", "who"), (path, EACH_FILE)):
        if source is not None:
            source.write_bytes(rows.encode("utf-8", "surrogatepass"))
            options: dict[str, Any] = {"epsilon": 0.01, "person": person, "time": "at"}
            messages += f"\n{refused(lambda: obfuscate_file(source, folder / 'out.csv', **options))}"  # noqa: B023
    return messages


def message_of_left_out_columns(text: str, folder: Path) -> str | None:
    return obfuscated(f'"{text.replace(chr(34), chr(34) * 2)}",lon,lat\n1,2.35,48.86\n', folder)


def message_of_members(text: str, folder: Path) -> str | None:
    (folder / "in.ndjson").write_text(json.dumps({text: 1, "lat": text, "lon": text}) + "\n")
    feature = {"type": text, "properties": {text: text}, "geometry": {"type": text, "coordinates": [text]}}
    (folder / "in.geojson").write_text(json.dumps({"type": "FeatureCollection", text: 1, "features": [feature]}))
    kinds = ("ndjson", "geojson") if text in FEW else ("ndjson",)
    return "".join(run("obfuscate", folder / f"in.{kind}", folder / f"out.{kind}", *NOISE) for kind in kinds)


def message_of_layers(text: str, folder: Path) -> str | None:
    path = folder / "in.gpkg"
    try:
        for layer in (text, "other"):
            frame_of("a").to_file(path, layer=layer)
    except Exception:
        # GDAL has no layers of that name.
        return None
    return run("obfuscate", path, folder / "out.gpkg", *NOISE)


def message_of_a_crs(text: str, folder: Path) -> str | None:
    if text not in FEW:
        return refused(lambda: geoind.Projection.from_crs(text))
    (folder / "in.geojson").write_text(
        json.dumps({**json.loads(frame_of("a").to_json()), "crs": {"type": "name", "properties": {"name": text}}})
    )
    messages = [
        refused(lambda: PointsOfInterest.read(folder / "in.geojson")),
        refused(lambda: read_basemap(folder / "in.geojson")),
        refused(lambda: geoind.Projection.from_crs(text)),
    ]
    return "\n".join(message for message in messages if message is not None)


def message_of_a_person(text: str, folder: Path) -> str | None:
    with contextlib.closing(Ledger(f"sqlite:///{folder}/budgets.db", budget=0.01)) as ledger:
        messages = [
            refused(lambda: ledger.charge(text, 1.0, label=text)),
            refused(lambda: geoind.obfuscate(lat=48.0, lon=2.0, epsilon=0.02, ledger=ledger, person_id=text)),
            refused(lambda: SamePlace(text, cell=100)),  # type: ignore[arg-type]
        ]
    return "\n".join(message for message in messages if message is not None)


def message_of_a_mechanism(text: str, folder: Path) -> str | None:
    try:
        own = type(text, (SphericalLaplace,), {})
    except (ValueError, UnicodeError):
        return None
    target = folder / "out.csv"
    source = reports(folder / "in.csv")
    message = refused(lambda: obfuscate_file(source, target, mechanism=own(0.01), person=EACH_ROW))
    return message if message is not None else str(ReleaseRecord.of(own(0.01), unit="column"))


def message_of_frames(text: str, _: Path) -> str | None:
    try:
        frame = frame_of(text)
    except UnicodeError:
        return None
    messages = [
        refused(lambda: obfuscate(frame, epsilon=0.01, person=EACH_ROW, keep=[f"{text}?"])),
        refused(lambda: obfuscate(frame.assign(**{text: 48.86}), epsilon=0.01, person=EACH_ROW, keep=[text])),
        refused(lambda: obfuscate(frame, epsilon=0.01, person=text)),
        refused(lambda: ReleaseRecord.from_json(text, text)),
    ]
    return "\n".join(message for message in messages if message is not None)


MESSAGES: list[Entry] = [
    message_of_a_missing_file,
    message_of_a_suffix,
    message_of_a_folder_of_files,
    message_of_column_names,
    message_of_a_cell,
    message_of_options,
    message_of_persons,
    message_of_left_out_columns,
    message_of_members,
    message_of_layers,
    message_of_a_crs,
    message_of_a_person,
    message_of_a_mechanism,
    message_of_frames,
]


@pytest.mark.parametrize("entry", PAGES, ids=lambda entry: entry.__name__)
def test_no_page_runs_what_a_text_says(entry: Entry, tmp_path: Path) -> None:
    made = 0
    for name, text in HOSTILE.items():
        folder = tmp_path / name
        folder.mkdir()
        page = entry(text, folder)
        if page is not None:
            made += 1
            assert_page_is_safe(page)
    assert made


@pytest.mark.parametrize("entry", MESSAGES, ids=lambda entry: entry.__name__)
def test_no_message_repeats_control_characters_or_megabytes(entry: Entry, tmp_path: Path) -> None:
    made = 0
    for name, text in HOSTILE.items():
        folder = tmp_path / name
        folder.mkdir()
        messages = entry(text, folder)
        if messages is not None:
            made += 1
            assert_messages_are_safe(messages)
    assert made


@pytest.mark.parametrize("suffix", ["csv", "ndjson", "geojson", "parquet", "gpkg"])
def test_kept_texts_pass_unchanged_and_their_file_can_be_read(tmp_path: Path, suffix: str) -> None:
    # GDAL ends a text at its first NUL.
    refused_here = {"surrogate"} | ({"nul"} if suffix in ("gpkg", "geojson") else set())
    texts = [text for name, text in HOSTILE.items() if name not in {"long", *refused_here}]
    lon = [2.35 + 0.01 * (5 * row % 7) for row in range(len(texts))]
    places = geopandas.points_from_xy(lon, [48.86] * len(texts))
    frame = geopandas.GeoDataFrame({"note": texts}, geometry=places, crs=4326)
    source, target = tmp_path / f"in.{suffix}", tmp_path / f"out.{suffix}"
    if suffix == "csv":
        frame.assign(lon=lon, lat=48.86).drop(columns="geometry").to_csv(source, index=False)
    elif suffix == "ndjson":
        rows = [{"note": text, "lon": x, "lat": 48.86} for text, x in zip(texts, lon, strict=True)]
        source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif suffix == "parquet":
        frame.to_parquet(source)
    elif suffix == "geojson":
        source.write_text(frame.to_json())
    else:
        frame.to_file(source)
    obfuscate_file(source, target, epsilon=0.01, person=EACH_ROW, keep=["note"])
    ReleaseRecord.from_json(sidecar_of(target).read_bytes() if suffix != "parquet" else promise_in(target))
    assert noted(target, suffix) == texts


def promise_in(path: Path) -> bytes:
    return bytes(pq.read_metadata(path).metadata[b"geoind"])


def noted(path: Path, suffix: str) -> list[str]:
    if suffix == "csv":
        import csv

        with path.open(newline="") as file:
            return [row[0] for row in csv.reader(file)][1:]
    if suffix == "ndjson":
        return [json.loads(line)["note"] for line in path.read_text().splitlines()]
    if suffix == "parquet":
        return [str(note) for note in pq.read_table(path)["note"].to_pylist()]
    if suffix == "geojson":
        return [feature["properties"]["note"] for feature in json.loads(path.read_text())["features"]]
    return [str(note) for note in geopandas.read_file(path)["note"]]


def test_the_checks_of_this_module_find_what_they_look_for() -> None:
    for page in (
        "<p>zq1147qz</p>",
        "<p><img src=zq onerror=alert(1337)></p>",
        '<p title="" onload="alert(1337)" x="">',
        "<title></title></style></script><script>alert(1337)</script>",
    ):
        with pytest.raises(AssertionError):
            assert_page_is_safe(page)
    for message in ("a\x1b[2J", "a\u202e", "x" * 5001, "zq34qz"):
        with pytest.raises(AssertionError):
            assert_messages_are_safe(message)
    assert_page_is_safe("<script>var a = '&lt;img src=zq onerror=alert(1337)>'</script>")
