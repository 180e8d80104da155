from pathlib import Path
from typing import Any

import pytest

from tests.files.test_delimited import obfuscated, reason


def test_tabs_and_other_delimiters(tmp_path: Path) -> None:
    assert obfuscated(tmp_path, "lat\tlon\n1\t2\n", name="in.tsv") == b"lat\tlon\n1.00000\t2.00000\n"
    for delimiter in ";|\t":
        text = f"lat{delimiter}lon\n1{delimiter}2\n"
        for chosen in (delimiter, None):
            result = obfuscated(tmp_path, text, delimiter=chosen).decode()
            assert result == f"lat{delimiter}lon\n1.00000{delimiter}2.00000\n"
    assert obfuscated(tmp_path, "lat:lon\n1:2\n", delimiter=":") == b"lat:lon\n1.00000:2.00000\n"


def test_decimal_commas_stay_commas(tmp_path: Path) -> None:
    assert obfuscated(tmp_path, "lat;lon\n1,5;-2,25\n") == b"lat;lon\n1,50000;-2,25000\n"
    assert obfuscated(tmp_path, 'lat,lon\n"1,5","2,25"\n') == b'lat,lon\n"1,50000","2,25000"\n'


def test_what_is_missing_is_hinted_at(tmp_path: Path) -> None:
    assert "is there no header?" in reason(tmp_path, "1.5,2.5\n3.5,4.5\n")
    assert "what is the delimiter?" in reason(tmp_path, "lat:lon\n1:2\n")


def test_quotes_in_a_tsv_file_are_plain_text_unless_asked_for(tmp_path: Path) -> None:
    text = 'lat\tlon\tnote\n1\t2\t5" pipe\n1\t2\t"open\n3\t4\tclosed"\n'
    expected = text.replace("1\t2", "1.00000\t2.00000").replace("3\t4", "3.00000\t4.00000")
    assert obfuscated(tmp_path, text, name="in.tsv").decode() == expected
    (tmp_path / "out-in.tsv").unlink()
    (tmp_path / "out-in.tsv.geoind.json").unlink()
    assert reason(tmp_path, text, name="in.tsv", quoting=True).startswith("line 2: a quote")
    assert obfuscated(tmp_path, text, name="in.txt").decode() == expected, (
        "tabs make a TSV file, whatever its name"
    )


def test_without_a_header_columns_are_numbers(tmp_path: Path) -> None:
    result = obfuscated(tmp_path, "7,1,2\n8,3,4\n", header=False, lat="2", lon="3")
    assert result == b"7,1.00000,2.00000\n8,3.00000,4.00000\n"
    assert obfuscated(tmp_path, '"a\nb",1,2\n', header=False, lat="2", lon="3") == b'"a\nb",1.00000,2.00000\n'


@pytest.mark.parametrize("options", [{}, {"lat": "2", "lon": "3"}, {"lat": "lat", "lon": "lon"}])
def test_a_missing_header_is_hinted_at_and_no_coordinate_is_repeated(tmp_path: Path, options: Any) -> None:
    for text in ("7,48.8584,2.2945\n", "7;48,8584;2,2945\n", "a,48 51.504N,2 17.67E\n"):
        said = reason(tmp_path, text, **options)
        assert not any(part in said for part in ("8584", "2945", "51.5", "17.67"))
        assert "is there no header?" in said or "N" in text
