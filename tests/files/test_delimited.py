import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from geoind.errors import InvalidInputError
from geoind.files import delimited
from geoind.files.delimited import open_csv, open_plt, open_tsv
from geoind.files.formats import BadRecord, Bytes, Reading, Source


class Given(Bytes):
    """Bytes in memory, in place of those of a file."""

    def __init__(self, content: bytes) -> None:
        super().__init__("-")
        self.content = content

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        yield io.BytesIO(self.content)


def table(content: str | bytes, **reading: object) -> Source:
    data = Given(content if isinstance(content, bytes) else content.encode())
    return open_csv(data, Reading(**reading))  # type: ignore[arg-type]


def values(source: Source, columns: list[str] | None = None) -> list[list[str]]:
    return [list(row.values()) for rows in source.rows(columns) for row in rows.batch.to_pylist()]


def numbered(source: Source) -> dict[int, list[str] | str]:
    """The values of the rows and the reasons of bad ones, by number, in the order in which they come."""
    found: dict[int, list[str] | str] = {}
    for rows in source.rows():
        part: dict[int, list[str] | str] = {record.row: record.reason for record in rows.bad}
        part |= {
            int(number): list(row.values())
            for number, row in zip(rows.numbers, rows.batch.to_pylist(), strict=True)
        }
        found |= dict(sorted(part.items()))
    return found


CELLS = st.text(
    st.one_of(st.sampled_from("\",;\t| \r\n'a1.é€\U0001f600\u2028\x0b\0"), st.characters(codec="utf-8")),
    max_size=8,
)


@st.composite
def tables(draw: st.DrawFn) -> list[list[str]]:
    width = draw(st.integers(2, 5))
    return draw(st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1, max_size=12))


@pytest.mark.slow
@given(tables(), st.sampled_from("\t;|, "), st.sampled_from(["\n", "\r\n", "\r"]), st.booleans(), st.booleans())
@example([["a", 'x"y'], ["", ""]], ",", "\n", False, False)
def test_any_table_is_read_to_the_values_that_the_csv_module_reads(
    cells: list[list[str]], delimiter: str, newline: str, every: bool, small: bool
) -> None:
    text = io.StringIO(newline="")
    quoting: Literal[0, 1] = csv.QUOTE_ALL if every else csv.QUOTE_MINIMAL
    csv.writer(text, delimiter=delimiter, lineterminator=newline, quoting=quoting).writerows(
        [["k"] * len(cells[0]), *cells]
    )
    read = csv.reader(io.StringIO(text.getvalue(), newline=""), delimiter=delimiter)
    expected = [row for row in read if len(row) == len(cells[0])][1:]
    with pytest.MonkeyPatch.context() as patch:
        if small:
            # As if the table were longer than many blocks.
            patch.setattr(delimited, "BLOCK", 256)
        source = table(text.getvalue(), delimiter=delimiter)
        assert values(source) == expected
        assert values(source) == expected, "the second reading"


@given(st.text(st.sampled_from('",a1\n\r'), max_size=30))
def test_any_text_is_read_to_the_values_of_the_csv_module_or_refused(text: str) -> None:
    *expected, last = [record for record in csv.reader(io.StringIO(f"{text}\nend", newline="")) if record]
    if last != ["end"]:
        with pytest.raises(InvalidInputError, match="quote is not closed"):
            numbered(table("k,l\n" + text))
        return
    found = numbered(table("k,l\n" + text))
    assert [row for row in found.values() if isinstance(row, list)] == [
        record for record in expected if len(record) == 2
    ]
    assert list(found) == list(range(1, len(expected) + 1))


def test_a_line_feed_at_the_beginning_of_a_block_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "BLOCK", 64)
    for size in range(30, 58):
        rows = [["x" * size, "1"], ["a\r\nb", "2"], ["c", "3"]]
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\r\n").writerows([["name", "n"], *rows])
        assert values(table(text.getvalue())) == rows


@pytest.mark.parametrize("delimiter", ["\t", ";", "|", ",", " "])
def test_the_delimiter_is_detected_outside_quotes(delimiter: str) -> None:
    others = "".join({"\t", ";", "|", ",", " "} - {delimiter})
    lines = [["name", "lat", "lon"], *[[f'"{others}"', f"{n}.5", "2.5"] for n in range(30)]]
    source = table("\n".join(delimiter.join(line) for line in lines))
    assert (source.delimiter, source.decimal_comma) == (delimiter, False)
    assert values(source) == [[others, f"{n}.5", "2.5"] for n in range(30)]


def test_a_few_rows_of_another_length_do_not_change_the_delimiter() -> None:
    source = table("date time,lat,lon\n" + "1 Jan,1,2\n" * 5 + "2 Jan,1\n" + "3 Jan,1,2\n")
    assert source.schema.names == ["date time", "lat", "lon"]


def test_of_several_delimiters_that_fit_the_rarer_one_is_taken() -> None:
    for delimiter, other in ("\t;", ";|", "|,", ", "):
        source = table(f"lat{delimiter}lon{other}a\n1{delimiter}2{other}b\n")
        assert source.schema.names == ["lat", f"lon{other}a"]


def test_a_given_delimiter_wins() -> None:
    assert table("a;b,c\n1;2,3\n", delimiter=",").schema.names == ["a;b", "c"]
    for tab in ("tab", "\\t", "\t"):
        assert table("a,b\tc\n", delimiter=tab).schema.names == ["a,b", "c"]
    for delimiter in ("", "ab", "é", '"', "\n", "1"):
        with pytest.raises(InvalidInputError, match="delimiter must be one ASCII character"):
            table("a,b\n", delimiter=delimiter)


@pytest.mark.parametrize(
    ("text", "comma"),
    [
        ("name;lat;lon\nEiffel;48,8584;-2,2945\n", True),
        ("name;lat;lon\nEiffel;48.8584;2.2945\n", False),
        ("name;lat;lon;price\nEiffel;48.8584;2.2945;1,5\n", False),
        ('lat,lon\n"48,8584","2,2945"\n', False),
    ],
)
def test_a_decimal_comma_is_detected_from_two_fields_of_a_row(text: str, comma: bool) -> None:
    assert table(text).decimal_comma is comma


def test_every_value_stays_the_text_that_it_is() -> None:
    source = table("id,a,b,c\n007,1.50,,NULL\nnan,true, x ,1e5\n")
    assert values(source) == [["007", "1.50", "", "NULL"], ["nan", "true", " x ", "1e5"]]


def test_only_the_asked_columns_are_read_in_the_order_of_the_file() -> None:
    source = table("a,b,c\n1,2,3\n4,5,6\n")
    assert values(source, ["c", "a"]) == [["1", "3"], ["4", "6"]]
    assert [(rows.batch.num_rows, rows.batch.schema.names) for rows in source.rows([])] == [(2, [])]


def test_names_of_columns_are_unique() -> None:
    assert table("a,a,a (2),a,,\n").schema.names == ["a", "a (2)", "a (2) (2)", "a (3)", "", " (2)"]
    assert table("a (2),a,a\n").schema.names == ["a (2)", "a", "a (3)"]
    assert table("48.1,2.1\n48.2,2.2\n", header=False).schema.names == ["1", "2"]


def test_rows_with_another_number_of_fields_are_bad_and_counted() -> None:
    source = table("a,b,c\n1,2,3\n4,5\n\n6\n7,8,9\n1,2,3,4\n")
    short, one, long = (f"has {fields}, the header has 3" for fields in ("2 fields", "1 field", "4 fields"))
    assert numbered(source) == {1: ["1", "2", "3"], 2: short, 3: one, 4: ["7", "8", "9"], 5: long}
    assert BadRecord(2, short, "4,5") in [record for rows in source.rows() for record in rows.bad]
    first = numbered(table("1.5,2.5\n3.5\n", header=False))
    assert first == {1: ["1.5", "2.5"], 2: "has 1 field, the first row has 2"}


@given(st.lists(st.integers(0, 40), max_size=40), st.integers(0, 5))
def test_numbers_count_bad_rows_wherever_they_are(bad: list[int], seed: int) -> None:
    lines = ["1,2,3" if row in bad else f"{row},{seed}" for row in range(40)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "BLOCK", 32)
        found = numbered(table("\n".join(["a,b", *lines])))
    assert list(found) == list(range(1, 41))
    assert [isinstance(row, str) for row in found.values()] == [row in bad for row in range(40)]
    assert all(row[0] == str(number - 1) for number, row in found.items() if isinstance(row, list))


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_quote_that_is_not_closed_is_refused(end: str) -> None:
    for text in ('a,b\n1,2\n3,"4', 'a,b\n,,\n3,"4\n5,6\n,,', 'a\n"1\n2'):
        with pytest.raises(InvalidInputError, match="quote is not closed"):
            list(table(text + end).rows())


def test_a_row_that_looks_like_the_mark_at_the_end_is_a_bad_row() -> None:
    assert list(numbered(table("a,b\n,,\n1,2\n,,\n,,"))) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "the file is empty"),
        (b"\xef\xbb\xbf\r\n\n", "the file is empty"),
        (b"48.85,2.29,a\n48.86,2.30,b\n", "looks like a record: give `header=False`"),
        (b"48,2\n", "looks like a record"),
        ("lat,lon\n1,2\n".encode("utf-16"), "must be UTF-8"),
        ("lat,lon\n1,2\n".encode("utf-16-le"), "must be UTF-8"),
        ("größe,lat\n1,2\n".encode("latin-1"), "must be UTF-8"),
        (b"a" * (1 << 21), "longer than 1 MB"),
        (b"," * 20_000, "more than 16384 columns"),
    ],
)
def test_what_is_no_table_is_refused_at_once(content: bytes, sentence: str) -> None:
    with pytest.raises(InvalidInputError, match=sentence):
        table(content)


def test_numbers_may_be_names_of_columns() -> None:
    assert table("id,2019,2020,lat,lon\n1,2,3,4,5\n").schema.names[1] == "2019"


def test_text_that_is_not_utf8_anywhere_is_refused_without_quoting_it() -> None:
    start = b"lat,lon,name\n" + b"1,2,a\n" * 300_000
    for end in ("1,2,é\n", "1,2,é,bad row\n", "1,2,é"):
        with pytest.raises(InvalidInputError, match=r"^the text must be UTF-8, not UTF-16 or another encoding$"):
            list(table(start + end.encode("latin-1")).rows(["lat"]))


def test_a_byte_order_mark_is_no_part_of_the_first_name() -> None:
    source = table('\ufeff"lat",lon\n1,2\n')
    assert source.schema.names == ["lat", "lon"]
    assert values(source) == [["1", "2"]]
    assert values(table("\ufeff1.5,2.5\n", header=False)) == [["1.5", "2.5"]]


def test_a_row_longer_than_a_block_is_refused_without_quoting_it() -> None:
    with pytest.raises(InvalidInputError, match=r"^a row is longer than 4 MB: is a quote not closed\?$"):
        list(table(b"a,b\n1," + b"secret" * (2 << 20) + b"\n").rows())


def test_a_file_of_bad_rows_is_refused_before_it_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "MOST_BAD", 100)
    with pytest.raises(InvalidInputError, match="row 101 has 3 fields, the header has 2"):
        list(table("a,b\n" + "1,2,3\n" * 1000).rows())


def test_quotes_in_tsv_are_characters_like_others() -> None:
    source = open_tsv(Given(b'name\tlat\n"a\t1\nb"\t2\n"c"\t3\n'), Reading())
    assert values(source) == [['"a', "1"], ['b"', "2"], ['"c"', "3"]]
    # A CSV file of its reports has commas.
    assert (source.delimiter, source.decimal_comma) == (",", False)


def test_a_reading_that_is_left_leaves_nothing_open(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_bytes(b"lat,lon\n" + b"1,2\n" * 3_000_000)
    source = open_csv(Bytes(path), Reading())
    # A file that is collected without having been closed would warn, which is an error here.
    for _ in range(3):
        next(source.rows())
    pair = zip(source.rows(["lat"]), source.rows(["lon"]), strict=True)
    assert all(one.numbers[0] == other.numbers[0] for one, other in pair)


PLT = (
    "Geolife trajectory\r\nWGS 84\r\nAltitude is in Feet\r\nReserved 3\r\n0,2,255,My Track,0,0,2,8421376\r\n0\r\n"
    "39.984702,116.318417,0,492,39744.1201851852,2008-10-23,02:53:04\r\n"
    "39.984683,116.31845,0,-777,39744.1202546296\r\n"
    "39.984686,116.318417,0,492,39744.1203125,2008-10-23,02:53:15\r\n"
)


def test_points_of_a_geolife_file_have_place_altitude_and_time() -> None:
    source = open_plt(Given(PLT.encode()))
    assert numbered(source) == {
        1: ["39.984702", "116.318417", "492", "2008-10-23T02:53:04Z"],
        2: "has 5 fields, a point has 7",
        3: ["39.984686", "116.318417", "492", "2008-10-23T02:53:15Z"],
    }
    assert values(source, ["time", "lon"])[0] == ["116.318417", "2008-10-23T02:53:04Z"]
    assert source.unit == "point"
    for content in (b"", b"a\nb\n", PLT.replace("Geolife", "OziExplorer").encode()):
        with pytest.raises(InvalidInputError, match="6 header lines of GeoLife"):
            open_plt(Given(content))
