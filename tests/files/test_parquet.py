import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from geoind.errors import InvalidInputError
from geoind.files.formats import Bytes
from geoind.files.parquet import open_parquet

TABLE = pa.table(
    {
        "id": pa.array(range(300_000)),
        "name": pa.array(["007", None, "é"] * 100_000),
        "at": pa.repeat(pa.scalar({"lat": 1.5, "lon": 2.5}), 300_000),
        "at.lat": pa.array(["secret"] * 300_000),
    }
)


def written(path: Path, table: pa.Table = TABLE) -> Path:
    pq.write_table(table, path)
    return path


def test_all_rows_come_in_their_types_with_their_numbers_any_number_of_times(tmp_path: Path) -> None:
    source = open_parquet(Bytes(written(tmp_path / "in.parquet")))
    assert source.schema == TABLE.schema
    for _ in range(2):
        parts = list(source.rows())
        assert pa.Table.from_batches([part.batch for part in parts]) == TABLE
        assert np.concatenate([part.numbers for part in parts]).tolist() == list(range(1, 300_001))


@pytest.mark.parametrize("columns", [["name"], ["name", "id"], ["at"], ["at.lat"], []])
def test_only_the_columns_that_are_asked_for_are_read(tmp_path: Path, columns: list[str]) -> None:
    source = open_parquet(Bytes(written(tmp_path / "in.parquet")))
    first = next(iter(source.rows(columns)))
    assert first.batch.schema.names == [name for name in TABLE.schema.names if name in columns]
    assert len(first.batch) == len(first.numbers)


def test_a_file_that_is_cut_off_or_changed_is_refused_without_its_content(tmp_path: Path) -> None:
    whole = written(tmp_path / "in.parquet", TABLE.slice(0, 1000)).read_bytes()
    rng = np.random.default_rng(0)
    for number in range(100):
        data = bytearray(whole[: rng.integers(len(whole))] if number % 2 else whole)
        for at in rng.integers(len(data), size=4) if data else ():
            data[at] ^= 0xFF
        (tmp_path / "bad.parquet").write_bytes(data)
        message = ""
        try:
            for part in open_parquet(Bytes(tmp_path / "bad.parquet")).rows():
                part.batch.to_pylist()
        except InvalidInputError as error:
            message = str(error)
        assert "secret" not in message


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    bad = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff\xfe"]).buffers())
    file = io.BytesIO()
    pq.write_table(pa.table({"name": bad}), file)
    (tmp_path / "in.parquet").write_bytes(file.getvalue())
    with pytest.raises(InvalidInputError, match="the Parquet file cannot be read"):
        list(open_parquet(Bytes(tmp_path / "in.parquet")).rows())


def test_a_column_that_claims_to_be_json_is_refused(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("name", pa.string(), metadata={"geoind:json": "1"})])
    path = written(tmp_path / "in.parquet", pa.table([['1, "injected": 2']], schema=schema))
    with pytest.raises(InvalidInputError, match="column 'name' must not have the metadata geoind:json"):
        list(open_parquet(Bytes(path)).rows())
