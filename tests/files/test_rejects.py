import json
from pathlib import Path

from geoind.files import obfuscate_file
from tests.files.test_delimited import SHARP, obfuscated


def test_rejects_take_the_bad_rows_and_the_rest_goes_on(tmp_path: Path) -> None:
    text = 'name,lat,lon\na,1,2\nbad,91,2\n"q",1,2\nworse,"é\n\n'.replace('"é', "é")
    source, target, rejects = tmp_path / "in.csv", tmp_path / "out.csv", tmp_path / "rejects.ndjson"
    source.write_text(text)
    summary = obfuscate_file(source, target, mechanism=SHARP, rejects=rejects)
    assert (summary.reports, summary.rejected) == (2, 2)
    assert target.read_text() == 'name,lat,lon\na,1.00000,2.00000\n"q",1.00000,2.00000\n'
    told = [json.loads(line) for line in rejects.read_text().splitlines()]
    assert told == [
        {"line": 3, "reason": "|latitude| must be at most 90", "record": "bad,91,2"},
        {"line": 5, "reason": "2 fields, where the first line has 3", "record": "worse,é"},
    ]


def test_rejects_without_bad_rows_are_an_empty_file(tmp_path: Path) -> None:
    obfuscated(tmp_path, "lat,lon\n1,2\n", rejects=tmp_path / "rejects")
    assert (tmp_path / "rejects").read_bytes() == b""
