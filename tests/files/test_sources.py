import io
from pathlib import Path

import pytest

from geoind.errors import InvalidInputError
from geoind.files.formats import Kind
from geoind.files.sources import Bytes, Reading


def test_a_file_can_be_read_from_the_beginning_again_and_tells_how_much_was_read(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(b"0123456789")
    source = Bytes(str(file))
    assert source.share() is None
    for _ in range(2):
        with source.opened() as stream:
            assert stream.read(5) == b"01234"
            assert source.share() == 0.5


def test_standard_input_can_be_read_again_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    stdin = type("Stdin", (), {"buffer": Pipe(b"lat,lon\n1,2\n")})()
    monkeypatch.setattr("sys.stdin", stdin)
    source = Bytes("-", again=True)
    for _ in range(2):
        with source.opened() as stream:
            assert stream.read() == b"lat,lon\n1,2\n"
    stream.close()


@pytest.mark.parametrize(
    ("reading", "format"),
    [
        (Reading(delimiter=";"), "ndjson"),
        (Reading(quoting=True), "parquet"),
        (Reading(header=False), "geojson"),
        (Reading(layer="homes"), "csv"),
    ],
)
def test_what_makes_no_sense_for_a_format_is_refused(reading: Reading, format: str) -> None:  # noqa: A002
    with pytest.raises(InvalidInputError, match=f"is not for {format} files"):
        reading.fit(Kind(format, ""))


def test_what_makes_sense_for_a_format_is_taken() -> None:
    for reading, kind in (
        (Reading(delimiter=";", quoting=False, header=False), "csv"),
        (Reading(delimiter=";"), "tsv"),
        (Reading(layer="homes"), "ogr"),
        (Reading(), "parquet"),
    ):
        assert reading.fit(Kind(kind, "")) is reading
