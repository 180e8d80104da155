import json
from pathlib import Path

import pytest

from geoind.files import obfuscate_file
from geoind.files.delimited import BATCH_BYTES
from geoind.files.scan import MISPLACED
from tests.files.test_delimited import SHARP, obfuscated, reason


def test_line_numbers_count_lines_inside_quotes(tmp_path: Path) -> None:
    text = 'name,lat,lon\n"a\nb\nc",1,2\nx,1,2\nbad,91,2\n'
    assert reason(tmp_path, text).startswith("line 6: ")


def test_line_numbers_are_right_far_into_a_file(tmp_path: Path) -> None:
    count = 3 * BATCH_BYTES // 100
    text = "name,lat,lon\n" + ("x" * 100 + ",1,2\n") * count
    assert reason(tmp_path, text + "bad,91,2\n").startswith(f"line {count + 2}: ")


@pytest.mark.parametrize(
    "text",
    [
        "id,lat,lon\r\n1,1.0,2.0\n2,1.0,2.0\r\n3,1.0,2.0\n",
        "id,lat,lon\n1,1.0,2.0\r\n2,1.0,2.0\n",
        'id,lat,lon\n"a\rb",1.0,2.0\n"c\r\n",1.0,2.0\n',
    ],
)
def test_line_breaks_may_be_mixed(tmp_path: Path, text: str) -> None:
    assert obfuscated(tmp_path, text).decode() == text.replace("1.0,2.0", "1.00000,2.00000")


def test_the_first_bad_line_is_told_first(tmp_path: Path) -> None:
    text = 'name,lat,lon\nx "y,1,2\nz,1,2\n"a,1,2\nb,1,2\n'
    assert reason(tmp_path, text) == f"line 2: {MISPLACED}"
    assert reason(tmp_path, text.replace(' "', "")) == "line 4: a quote is never closed"


def test_an_unclosed_quote_costs_its_line_and_no_other(tmp_path: Path) -> None:
    source, target, rejects = tmp_path / "in.csv", tmp_path / "out.csv", tmp_path / "rejects"
    source.write_text('name,lat,lon\nx "y,1,2\nz,1,2\n"a,1,2\nb,1,2\n')
    assert obfuscate_file(source, target, mechanism=SHARP, rejects=rejects).rejected == 2
    assert target.read_text() == "name,lat,lon\nz,1.00000,2.00000\nb,1.00000,2.00000\n"
    assert [json.loads(line)["line"] for line in rejects.read_text().splitlines()] == [2, 4]
