import gzip
import json
from pathlib import Path

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
