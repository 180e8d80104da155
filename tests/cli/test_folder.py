import hashlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from geoind.adapters.dataset import obfuscate_dataset
from geoind.cli import main
from tests.adapters.test_dataset import SIZES, read, write

KEY = hashlib.sha256(b"a key for tests").digest()
NOISE = ["--level", "2", "--radius", "200", "--missing", "keep", "--workers", "1"]


def refusal(capfd: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["obfuscate", *map(str, arguments)]) == 2
    return capfd.readouterr().err


def test_a_folder_becomes_a_folder_and_only_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = write(tmp_path / "in", SIZES)
    (tmp_path / "key").write_text(KEY.hex())
    (tmp_path / "key").chmod(0o600)
    command = ["obfuscate", str(source), str(tmp_path / "out"), *NOISE, "--key-file", str(tmp_path / "key")]
    assert main(command) == 0
    assert capfd.readouterr().err == "550 rows, epsilon 0.01 per metre\n"
    assert main(command) == 0
    assert "3 of 3 pieces were there already" in capfd.readouterr().err
    obfuscate_dataset(source, tmp_path / "same", epsilon=0.01, key=KEY, workers=1)
    assert read(tmp_path / "out") == read(tmp_path / "same")


def test_columns_are_found_by_their_usual_names(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").mkdir()
    table = pa.table({"Longitude": [2.3], "Latitude": [48.8], "home_address": ["7 rue X"]})
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    assert main(["obfuscate", str(tmp_path / "in"), str(tmp_path / "out"), *NOISE]) == 0
    said = capfd.readouterr().err
    assert "do they tell places? home_address" in said
    assert read(tmp_path / "out")["Latitude"] != table["Latitude"]
    assert (tmp_path / "out.key").exists()


def test_what_is_not_for_folders_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = write(tmp_path / "in", SIZES)
    assert "--rejects is not for a folder" in refusal(capfd, source, tmp_path / "out", *NOISE, "--rejects", "x")
    assert "not standard output" in refusal(capfd, source, "-", *NOISE)
    assert "at least 1" in refusal(capfd, source, tmp_path / "out", *NOISE[:-1], "0")
    assert "give --epsilon" in refusal(capfd, source, tmp_path / "out")
    csv = tmp_path / "places.csv"
    csv.write_text("lat,lon\n1,2\n")
    assert "--workers is for a folder" in refusal(capfd, csv, tmp_path / "out.csv", *NOISE)
    assert not (tmp_path / "out").exists()
