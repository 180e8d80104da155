from pathlib import Path

import pytest

from geoind.files.delimited import BATCH_BYTES
from tests.files.test_delimited import obfuscated, reason


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
