import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from geoind import InvalidInputError
from geoind.files import obfuscate_file
from geoind.tables.promise import read_promise
from tests.files.test_delimited import SHARP


def test_csv_becomes_parquet_and_parquet_csv(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    (tmp_path / "in.csv").write_text('id,lat,lon,note\n007,1,2,"a, b"\n008,3,4,\n')
    obfuscate_file(tmp_path / "in.csv", tmp_path / "a.parquet", mechanism=SHARP)
    table = pq.read_table(tmp_path / "a.parquet")
    assert table.column("lat").to_pylist() == [1.0, 3.0]
    assert table.column("id").to_pylist() == ["007", "008"]
    assert read_promise(tmp_path / "a.parquet").epsilon == 1000
    obfuscate_file(tmp_path / "a.parquet", tmp_path / "b.csv", mechanism=SHARP)
    assert (tmp_path / "b.csv").read_text() == 'id,lat,lon,note\n007,1,2,"a, b"\n008,3,4,\n'
    obfuscate_file(tmp_path / "a.parquet", tmp_path / "d.tsv", mechanism=SHARP)
    assert (tmp_path / "d.tsv").read_text() == "id\tlat\tlon\tnote\n007\t1\t2\ta, b\n008\t3\t4\t\n"
    obfuscate_file(tmp_path / "a.parquet", tmp_path / "c.ndjson.gz", mechanism=SHARP)
    with gzip.open(tmp_path / "c.ndjson.gz") as file:
        assert json.loads(file.readline()) == {"id": "007", "lat": 1.0, "lon": 2.0, "note": "a, b"}


def test_a_column_that_changes_its_kind_further_down_is_refused_as_parquet_and_nothing_is_left(
    tmp_path: Path,
) -> None:
    places = np.random.default_rng(1).uniform(40, 50, (30_000, 2)).tolist()
    fares = [1] * 29_000 + [1.5] * 1_000
    lines = [
        json.dumps({"fare": fare, "lat": lat, "lon": lon}) for fare, (lat, lon) in zip(fares, places, strict=True)
    ]
    (tmp_path / "in.ndjson").write_text("\n".join(lines))
    with pytest.raises(InvalidInputError, match="'fare' is int64 in the first rows and double in later ones"):
        obfuscate_file(tmp_path / "in.ndjson", tmp_path / "out.parquet", mechanism=SHARP)
    assert [path.name for path in tmp_path.iterdir()] == ["in.ndjson"]
    assert obfuscate_file(tmp_path / "in.ndjson", tmp_path / "out.csv", mechanism=SHARP).reports == 30_000
