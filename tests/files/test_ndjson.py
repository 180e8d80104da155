import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoind.errors import InvalidInputError
from geoind.files import ndjson
from geoind.files.formats import Source
from geoind.files.ndjson import open_ndjson
from tests.files.test_delimited import Given


def objects(text: str | bytes) -> Source:
    return open_ndjson(Given(text.encode() if isinstance(text, str) else text))


def rows_of(source: Source, columns: list[str] | None = None) -> list[dict[str, str | None]]:
    return [row for rows in source.rows(columns) for row in rows.batch.to_pylist()]


def reasons(source: Source) -> dict[int, str]:
    return {record.row: record.reason for rows in source.rows() for record in rows.bad}


LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=6,
)
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="."), max_size=5)


@pytest.mark.slow
@given(st.lists(st.dictionaries(NAMES, VALUES, max_size=4), min_size=1, max_size=6), st.booleans())
def test_every_value_can_be_parsed_back_from_its_column(records: list[dict[str, Any]], escaped: bool) -> None:
    source = objects("\n".join(json.dumps(record, ensure_ascii=escaped) for record in records))
    found = rows_of(source)
    assert len(found) == len(records)
    for row, record in zip(found, records, strict=True):
        for name, value in record.items():
            if isinstance(value, dict) and value:
                continue
            text = row[name]
            assert value is None if text is None else json.loads(text) == value


def test_numbers_keep_their_digits_and_strings_their_quotes() -> None:
    source = objects(
        '{"a": 1.50, "b": 12345678901234567890123, "c": "x\\"\\u00e9", "d": [1.0, {"e": -0}], "f": true}\n'
        '{"a": null}\n'
    )
    first = {"a": "1.50", "b": "12345678901234567890123", "c": '"x\\"é"', "d": '[1.0,{"e":-0}]', "f": "true"}
    assert rows_of(source) == [first, dict.fromkeys(first)]
    assert all(field.metadata == {b"geoind:json": b"1"} for field in source.schema)
    assert all(field.metadata == {b"geoind:json": b"1"} for rows in source.rows() for field in rows.batch.schema)


def test_members_of_nested_objects_have_dotted_names() -> None:
    source = objects('{"home": {"lon": 2.5, "at": {"x": 1}}, "none": {}}\n{"home": 7}\n')
    assert rows_of(source, ["home", "home.lon", "none"]) == [
        {"home.lon": "2.5", "none": "{}", "home": None},
        {"home.lon": None, "none": None, "home": "7"},
    ]
    assert source.schema.names == ["home.lon", "home.at.x", "none", "home"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"[1]", "not a JSON object"),
        (b"x", "not a JSON object"),
        (b'{"a": 1} {"a": 2}', "not a JSON object"),
        (b'{"a": "\xff"}', "not a JSON object"),
        (b'{"a": "\\ud83d"}', "not a JSON object"),
        (b'{"\\ud83d": 1}', "not a JSON object"),
        (b'{"a": NaN}', "NaN and Infinity"),
        (b'{"a": [-Infinity]}', "NaN and Infinity"),
        (b'{"a": 1, "a": 1}', "occurs twice"),
        (b'{"a": [{"b": 1, "b": 2}]}', "occurs twice"),
        (b'{"a": {"b": 1}, "a.b": 2}', "occurs twice"),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
        (b'{"' + b"x" * 2000 + b'": {"a": 1}}', "too long names"),
        (b'{"a": {' + b",".join(b'"%d":1' % n for n in range(20_000)) + b"}}", "too many members"),
    ],
)
def test_a_line_that_is_no_record_is_bad_and_counted(line: bytes, reason: str) -> None:
    source = objects(b'\xef\xbb\xbf{"a": 1}\r\n\r\n' + line + b'\n{"a": 2}')
    assert [int(number) for rows in source.rows() for number in rows.numbers] == [1, 4]
    found = reasons(source)
    assert list(found) == [3]
    assert reason in found[3]


def test_a_member_that_occurs_only_after_the_first_lines_is_no_column() -> None:
    lines = ['{"a": 1}'] * 999 + ['{"b": 2}'] + ['{"a": "%s"}' % ("x" * 1000)] * 1100 + ['{"c": 3}']
    source = objects("\n".join(lines))
    assert source.schema.names == ["a", "b"]
    assert sum(rows.batch.num_rows for rows in source.rows()) == len(lines)


def test_many_lines_come_in_several_batches_with_their_numbers() -> None:
    source = objects("".join(f'{{"n": {number}, "text": "{"x" * 500}"}}\n\n' for number in range(10_000)))
    batches = list(source.rows(["n"]))
    assert len(batches) > 2
    numbers = [int(number) for rows in batches for number in rows.numbers]
    assert numbers == list(range(1, 20_000, 2))
    assert [row["n"] for rows in batches for row in rows.batch.to_pylist()] == [str(n) for n in range(10_000)]


def test_what_is_not_ndjson_is_refused_without_quoting_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for content in (b"", b"\n\n", b"secret\n", b'[\n"secret"\n]\n', '{"secret": 1}'.encode("utf-16")):
        with pytest.raises(InvalidInputError, match="must have a JSON object per line") as caught:
            objects(content)
        assert "secret" not in str(caught.value)
    with pytest.raises(InvalidInputError, match="more than 16384 different members"):
        objects("".join(f'{{"{number}": 1}}\n' for number in range(20_000)))
    monkeypatch.setattr(ndjson, "LONGEST", 100)
    with pytest.raises(InvalidInputError, match="line 2: the line is longer than"):
        objects('{"a": 1}\n{"a": "' + "x" * 100 + '"}\n')
