import gc
import gzip
import zipfile
from pathlib import Path

import numpy as np
import pytest

from geoind.errors import InvalidInputError
from geoind.files import obfuscate_file
from tests.files.test_delimited import SHARP, reason
from tests.full_disk import full_disk


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_compressed_files_in_and_out(tmp_path: Path, suffix: str) -> None:
    import pyarrow as pa

    codec = {"gz": "gzip", "zst": "zstd"}[suffix]
    source, target, plain = tmp_path / f"in.csv.{suffix}", tmp_path / f"out.csv.{suffix}", tmp_path / "plain.csv"
    with pa.CompressedOutputStream(str(source), codec) as file:
        file.write(b"lat,lon\n" + b"1,2\n" * 1000)
    assert obfuscate_file(source, target, mechanism=SHARP).reports == 1000
    with pa.CompressedInputStream(str(target), codec) as file:
        assert file.read() == b"lat,lon\n" + b"1.00000,2.00000\n" * 1000
    obfuscate_file(target, plain, mechanism=SHARP)
    assert plain.read_bytes().startswith(b"lat,lon\n1.00000")


def test_a_damaged_compressed_file_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(b"lat,lon\n" + b"1,2\n" * 100_000)
    assert "compressed" in reason(tmp_path, whole[: len(whole) // 2], "in.csv.gz")
    assert "compressed" in reason(tmp_path, b"lat,lon\n1,2\n", "in.csv.gz")


def test_a_zip_archive_of_one_file_goes_in_and_out(tmp_path: Path) -> None:
    for name in ("in.zip", "in.csv.zip"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("trips.csv", "lat,lon\n1,2\n")
        obfuscate_file(tmp_path / name, tmp_path / f"out-{name}", mechanism=SHARP)
        with zipfile.ZipFile(tmp_path / f"out-{name}") as archive:
            assert archive.read(archive.namelist()[0]) == b"lat,lon\n1.00000,2.00000\n"
    with zipfile.ZipFile(tmp_path / "two.csv.zip", "w") as archive:
        archive.writestr("a.csv", "lat,lon\n")
        archive.writestr("b.csv", "lat,lon\n")
    with pytest.raises(InvalidInputError, match="holds 2"):
        obfuscate_file(tmp_path / "two.csv.zip", tmp_path / "out.csv", mechanism=SHARP)


@pytest.mark.parametrize("suffix", [".gz", ".zst", ".zip"])
def test_a_refused_file_leaves_no_compression_open(tmp_path: Path, suffix: str) -> None:
    source = tmp_path / "places.csv"
    source.write_text("lat,lon\n48.8584,2.2945\ninf,2.3\n")
    with pytest.raises(InvalidInputError):
        obfuscate_file(source, tmp_path / f"reports.csv{suffix}", epsilon=0.01)
    # What is collected without having been closed would warn, which is an error here.
    gc.collect()
    assert [path.name for path in tmp_path.iterdir()] == ["places.csv"]


@pytest.mark.parametrize(
    ("source", "target", "sentence"),
    [
        ("trips.csv", "reports", "csv can only become csv, tsv, ndjson, parquet"),
        ("trips.csv", "reports.gpkg", "csv can only become"),
        ("trips.geojson", "reports.csv", "geojson can only stay geojson"),
        ("trips.json", "reports.ndjson", "--format ndjson"),
        ("trips.gpkg", "reports.csv", "another of its formats, such as .gpkg"),
        ("trips.zip", "reports.csv", "an archive must hold one file of text"),
    ],
)
def test_a_format_that_a_file_cannot_become_is_refused_with_those_that_it_can(
    tmp_path: Path, source: str, target: str, sentence: str
) -> None:
    with zipfile.ZipFile(tmp_path / source, "w") as archive:
        archive.writestr("a.csv", "lat,lon\n")
        archive.writestr("b.csv", "lat,lon\n")
    with pytest.raises(InvalidInputError, match=sentence) as caught:
        obfuscate_file(tmp_path / source, tmp_path / target, epsilon=0.01)
    assert f"got '{target}'" in str(caught.value)
    assert not (tmp_path / target).exists()


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.csv.zst", "out.csv.zip", "out.parquet"])
@pytest.mark.filterwarnings("error")
def test_a_full_disk_leaves_nothing_of_any_format_open_or_behind(tmp_path: Path, name: str) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{lat},{lon},{note}" for lat, lon, note in rng.uniform(1, 80, (20_000, 3))]
    (tmp_path / "in.csv").write_text("\n".join(["lat,lon,note", *rows]))
    with full_disk(), pytest.raises(OSError, match="large"):
        obfuscate_file(tmp_path / "in.csv", tmp_path / name, mechanism=SHARP)
    gc.collect()
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]
