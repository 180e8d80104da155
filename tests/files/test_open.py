import gc
import gzip
import io
import json
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from geoind.errors import InvalidInputError
from geoind.files import Reading
from geoind.files.formats import NAMED, Source, kind_of, open_source
from tests.files.test_delimited import PLT
from tests.files.test_google import IOS

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


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst", ".zip"])
@pytest.mark.parametrize("name", TEXT)
@given(data=st.data())
def test_any_bytes_give_records_or_an_error_of_ours(name: str, suffix: str, data: st.DataObject) -> None:
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
