import gc
import gzip
import io
import json
import os
import sys
import tempfile
import threading
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from geoind.errors import InvalidInputError
from geoind.files.formats import (
    FORMATS,
    NAMED,
    Bytes,
    Kind,
    Reading,
    Source,
    compressed,
    is_known,
    kind_of,
    open_source,
)
from tests.files.test_delimited import PLT
from tests.files.test_google import ANDROID, IOS, RECORDS

COMPRESSIONS = {"gzip": ".gz", "zstd": ".zst", "zip": ".zip"}


def packed(folder: Path, content: bytes, compression: str, name: str = "trips.csv") -> Path:
    path = folder / f"{name}{COMPRESSIONS.get(compression, '')}"
    with path.open("wb") as file:
        with compressed(file, Kind("csv", compression), str(path)) as stream:
            stream.write(content)
        assert not file.closed
    return path


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.csv", ("csv", "")),
        ("A.TXT.GZ", ("csv", "gzip")),
        ("a.b.tsv.zst", ("tsv", "zstd")),
        ("a.jsonl.zip", ("ndjson", "zip")),
        ("a.json", ("geojson", "")),
        ("a.geojson.gz", ("geojson", "gzip")),
        ("a.gpx", ("gpx", "")),
        ("a.pq", ("parquet", "")),
        ("a.plt", ("plt", "")),
        ("a.gpkg", ("vector", "")),
        ("a.zip", ("vector", "")),
        ("a.shp", ("vector", "")),
        ("a.osm.pbf", ("vector", "")),
    ],
)
def test_the_name_gives_format_and_compression(name: str, kind: tuple[str, str]) -> None:
    assert kind_of(name) == Kind(*kind)
    assert kind_of(Path("folder.csv", name)) == Kind(*kind)
    assert kind[0] in FORMATS


def test_a_chosen_format_wins_over_the_name() -> None:
    assert kind_of("a.txt.gz", "ndjson") == Kind("ndjson", "gzip")
    assert kind_of("a.dat", "csv") == Kind("csv", "")
    assert kind_of("-", "gpx") == Kind("gpx", "")


@pytest.mark.parametrize(
    ("name", "chosen", "sentence"),
    [
        ("a.csv", "ogr", "`format=` must be one of csv, tsv"),
        ("a.dat", None, "'a.dat' must end in one of .csv, .*, .gpkg"),
        ("a", None, "must end in one of"),
        ("a.vrt", "vector", "must end in one of"),
        ("a.gpkg.gz", None, "must end in one of"),
        ("a.parquet.gz", None, "cannot be compressed"),
        ("-", None, "give `format=`"),
    ],
)
def test_a_name_without_a_format_is_refused(name: str, chosen: str | None, sentence: str) -> None:
    with pytest.raises(InvalidInputError, match=sentence):
        kind_of(name, chosen)


@pytest.mark.parametrize("compression", ["", *COMPRESSIONS])
def test_location_histories_of_google_are_recognised_by_their_first_bytes(
    tmp_path: Path, compression: str
) -> None:
    for history in (RECORDS, ANDROID, IOS):
        for indent in (None, 2):
            path = packed(tmp_path, json.dumps(history, indent=indent).encode(), compression, "Timeline.json")
            assert kind_of(path) == Kind("google", compression)
    path = packed(tmp_path, b'\xef\xbb\xbf {"locations" : []}', compression, "Timeline.json")
    assert kind_of(path).format == "google"
    assert kind_of(path, "geojson").format == "geojson"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"type": "FeatureCollection", "features": [], "locations": [{"latitudeE7": 1}]}',
        b'{"type": "Feature", "properties": {"startTime": 1, "semanticSegments": []}}',
        b'{"locations": "everywhere", "type": "FeatureCollection"}',
    ],
)
def test_other_json_files_are_geojson(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "places.json"
    path.write_bytes(content)
    assert kind_of(path) == Kind("geojson", "")


def test_an_archive_is_what_its_only_member_is(tmp_path: Path) -> None:
    path = tmp_path / "all.zip"

    def archive(*names: str) -> Kind:
        with zipfile.ZipFile(path, "w") as file:
            for name in names:
                file.writestr(name, json.dumps(RECORDS))
        return kind_of(path)

    assert archive("trips.csv") == Kind("csv", "zip")
    assert archive("data/", "data/trips.tsv", "__MACOSX/._trips.tsv") == Kind("tsv", "zip")
    assert archive("Takeout/Records.json") == Kind("google", "zip")
    assert archive("a.shp", "a.dbf") == Kind("vector", "")
    assert archive("a.shp") == Kind("vector", "")
    path.write_bytes(b"no archive")
    with pytest.raises(InvalidInputError, match="compressed"):
        kind_of(path)


def test_files_of_a_folder_are_known_by_their_suffix() -> None:
    known = ["a.csv", "a.CSV.GZ", "a.plt", "a.gpkg", "a.json.zst", "a.zip"]
    assert [name for name in [*known, "a.gpkg.gz", "a.md", "a", "a.gz"] if is_known(Path(name))] == known[:-1]


@pytest.mark.parametrize("compression", ["", *COMPRESSIONS])
def test_bytes_are_the_same_at_each_reading(tmp_path: Path, compression: str) -> None:
    content = b"lat,lon\n" + os.urandom(300_000)
    data = Bytes(packed(tmp_path, content, compression), compression)
    for _ in range(2):
        with data.opened() as stream:
            assert stream.read(10) == content[:10]
        with data.opened() as stream:
            assert stream.read() == content


def test_compressed_files_do_not_hold_the_name_or_the_time_of_their_input(tmp_path: Path) -> None:
    path = packed(tmp_path, b"x", "gzip", "secret.csv")
    assert b"secret" not in path.read_bytes()
    assert path.read_bytes()[4:8] == bytes(4)
    with zipfile.ZipFile(packed(tmp_path, b"x", "zip")) as archive:
        assert [(part.filename, part.date_time) for part in archive.infolist()] == [
            ("trips.csv", (1980, 1, 1, 0, 0, 0))
        ]
    with (tmp_path / "trips.zip").open("wb") as file, compressed(file, Kind("csv", "zip"), file.name) as stream:
        stream.write(b"x")
    assert zipfile.ZipFile(tmp_path / "trips.zip").namelist() == ["trips.csv"]


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_damaged_compressed_bytes_are_refused(tmp_path: Path, compression: str) -> None:
    path = packed(tmp_path, os.urandom(100_000), compression)
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], whole[:-1], b"lat,lon\n1,2\n"):
        path.write_bytes(content)
        with (
            pytest.raises(InvalidInputError, match="damaged, incomplete or not compressed"),
            Bytes(path, compression).opened() as stream,
        ):
            stream.read()
    gc.collect()


def test_archives_that_are_not_one_plain_file_are_refused(tmp_path: Path) -> None:
    def refusal(method: int, *names: str, flags: int = 0) -> str:
        path = tmp_path / "a.csv.zip"
        with zipfile.ZipFile(path, "w", method) as archive:
            for name in names:
                archive.writestr(name, "lat,lon\n")
        content = bytearray(path.read_bytes())
        content[content.find(b"PK\1\2") + 8] |= flags
        path.write_bytes(content)
        with pytest.raises(InvalidInputError) as caught, Bytes(path, "zip").opened():
            pass
        return str(caught.value)

    assert "holds 2" in refusal(zipfile.ZIP_DEFLATED, "a.csv", "b.csv")
    assert "without a password" in refusal(zipfile.ZIP_DEFLATED, "a.csv", flags=1)
    assert "deflate" in refusal(zipfile.ZIP_LZMA, "a.csv")


@pytest.mark.parametrize("name", ["missing.csv", "a\0.csv", "x" * 5000 + ".json", "."])
def test_a_file_that_cannot_be_opened_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInputError, match="cannot read"), Bytes(tmp_path / name).opened():
        pass
    if name != ".":
        assert kind_of(tmp_path / name).compression == ""


def test_standard_input_is_read_several_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"lat,lon\n1,2\n")))
    data = Bytes("-")
    for _ in range(3):
        with data.opened() as stream:
            assert stream.read() == b"lat,lon\n1,2\n"
    del data
    # A copy that is collected without having been closed would warn, which is an error here.
    gc.collect()
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InvalidInputError, match="standard input is closed"), Bytes("-").opened():
        pass


def test_a_named_pipe_is_read_several_times(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.csv.gz"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(gzip.compress(b"lat,lon\n1,2\n"),))
    writer.start()
    data = Bytes(pipe, "gzip")
    for _ in range(2):
        with data.opened() as stream:
            assert stream.read() == b"lat,lon\n1,2\n"
    writer.join()


def test_an_error_of_the_reader_passes_through(tmp_path: Path) -> None:
    path = packed(tmp_path, b"x", "")
    with pytest.raises(OSError, match="full"), Bytes(path).opened():
        raise OSError("full")
    with pytest.raises(pa.ArrowInvalid), Bytes(packed(tmp_path, b"x", "gzip"), "gzip").opened():
        raise pa.ArrowInvalid("other")


TEXT = {
    "csv": b'lat,lon,note\n48.85,2.29,"a\nb"\n48.86,2.30,c\n1,2\n',
    "tsv": b"lat\tlon\n48.85\t2.29\n",
    "ndjson": b'{"lat": 48.85, "lon": 2.29}\n{"lat": NaN}\n',
    "plt": PLT.encode(),
    "google": json.dumps(IOS).encode(),
}
GEOJSON = b'{"type": "Feature", "properties": {"a": "x"}, "geometry": {"type": "Point", "coordinates": [2, 48]}}'
SUFFIXES = {name: suffixes[0] for name, suffixes in NAMED.items()} | {"google": ".json"}


def records(source: Source) -> list[object]:
    """All that a source gives, after a check of what is true of every source."""
    found: list[object] = []
    number = 0
    for rows in source.rows():
        assert rows.batch.schema.equals(source.schema, check_metadata=True)
        assert len(rows.numbers) == rows.batch.num_rows
        rows.batch.validate(full=True)
        numbers = sorted([*map(int, rows.numbers), *(record.row for record in rows.bad)])
        assert all(one < other for one, other in zip([number, *numbers], numbers, strict=False))
        number = numbers[-1] if numbers else number
        found += [*rows.batch.to_pylist(), *rows.bad]
    return found


@pytest.mark.parametrize("name", TEXT)
def test_a_file_gives_the_same_compressed_or_from_standard_input_and_at_each_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    plain = tmp_path / f"in{SUFFIXES[name]}"
    plain.write_bytes(TEXT[name])
    expected = records(open_source(plain, Reading()))
    assert expected
    zipped = tmp_path / f"in{SUFFIXES[name]}.gz"
    zipped.write_bytes(gzip.compress(TEXT[name]))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT[name])))
    for source in (open_source(zipped, Reading()), open_source("-", Reading(format=name))):
        assert records(source) == expected
        assert records(source) == expected


@pytest.mark.slow
def test_geojson_is_read_compressed_and_from_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = tmp_path / "temporary"
    folders.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folders))
    zipped = tmp_path / "in.geojson.gz"
    zipped.write_bytes(gzip.compress(GEOJSON))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GEOJSON)))
    for source in (open_source(zipped, Reading()), open_source("-", Reading(format="geojson"))):
        assert [row.get("a") for row in records(source) if isinstance(row, dict)] == ["x"]
        assert records(source) == records(source)
    del source
    gc.collect()
    # The copy with the true locations is removed together with the source.
    assert list(folders.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "reading"),
    [
        ("a.ndjson", Reading(delimiter=";")),
        ("a.gpx", Reading(header=False)),
        ("a.csv", Reading(layer="a")),
        ("a.plt", Reading(header=False)),
        ("a.gpkg", Reading(delimiter=",")),
    ],
)
def test_an_option_of_another_format_is_refused(name: str, reading: Reading) -> None:
    with pytest.raises(InvalidInputError, match=f"is not for {kind_of(name).format} files"):
        open_source(name, reading)


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXT)
@given(data=st.data())
def test_any_bytes_give_records_or_an_error_of_ours(name: str, data: st.DataObject) -> None:
    suffix = data.draw(st.sampled_from(["", ".gz"]))
    content = bytearray(gzip.compress(TEXT[name]) if suffix == ".gz" else TEXT[name])
    for _ in range(data.draw(st.integers(0, 5))):
        at = data.draw(st.integers(0, len(content)))
        content[at : at + data.draw(st.integers(0, 3))] = data.draw(
            st.one_of(
                st.binary(max_size=4),
                st.sampled_from([b'"', b"\r", b"\n", b"\0", b"\xff", b"{", b"]", b",", b"\\u"]),
            )
        )
    _read_or_refused(bytes(content), name, suffix)


@given(st.binary(max_size=200), st.sampled_from(list(TEXT)), st.sampled_from(["", ".gz", ".zst", ".zip"]))
@example(b"\r", "csv", "")
@example(b"a\r", "csv", "")
@example(b"PK\5\6" + bytes(18), "csv", ".zip")
def test_random_bytes_give_records_or_an_error_of_ours(content: bytes, name: str, suffix: str) -> None:
    _read_or_refused(content, name, suffix)


def _read_or_refused(content: bytes, name: str, suffix: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"in{SUFFIXES[name]}{suffix}")
        path.write_bytes(content)
        try:
            source = open_source(path, Reading(format=name))
            assert records(source) == records(source)
        except InvalidInputError:
            pass
