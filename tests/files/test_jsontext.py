"""Values of JSON text and where they stand: what the standard library reads, and what is cut leaves the rest."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoind.files.jsontext import (
    BadRecordError,
    NotJsonError,
    cuts,
    key_at,
    members,
    object_in,
    refuse_half_characters,
    sign_at,
    spliced,
    value_at,
    values_at,
)

NAMES = st.sampled_from(["a", "b", "lat", 'quo"te', "é", "a b"])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3)
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=4)
SPACED = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n\t", "\r\n: ")])


def plain(value: Any) -> Any:
    """Objects, which are tuples of pairs here, as dictionaries."""
    if isinstance(value, tuple):
        return {name: plain(inner) for name, inner in value}
    return [plain(inner) for inner in value] if isinstance(value, list) else value


@given(VALUES, SPACED, st.booleans())
def test_values_are_those_of_the_standard_library_and_end_where_they_end(
    value: Any, spaced: tuple[str, str], ascii_only: bool
) -> None:
    text = json.dumps(value, separators=spaced, ensure_ascii=ascii_only)
    found, end = value_at(f"[{text} ,1]", 1)
    # The text once more, since 1 == True == 1.0.
    assert json.dumps(plain(found)) == json.dumps(value)
    assert end == 1 + len(text)


@given(OBJECTS, SPACED)
def test_what_is_cut_out_is_gone_and_the_rest_is_as_it_was(value: dict[str, Any], spaced: tuple[str, str]) -> None:
    text = json.dumps(value, separators=spaced)
    for gone in (set(), {next(iter(value), "")}, set(list(value)[1:]), set(value)):
        left = spliced(text, [(*span, "") for span in cuts(text, gone)])
        assert json.loads(left) == {name: inner for name, inner in value.items() if name not in gone}


@pytest.mark.parametrize(
    "gone", [["at.lat"], ["at.lon"], ["stops[].lat"], ["at.lat", "at.lon", "stops[].lat", "id"]]
)
def test_members_of_members_and_of_lists_are_cut_with_their_commas(gone: list[str]) -> None:
    text = '{"id": 7, "at": {"lat": 1.50, "n": {}, "lon": 2}, "stops": [{"lat": 1}, {"x": [3], "lat": 2}, "lat"]}'
    wanted = json.loads(text)
    for path in gone:
        inner, _, name = path.rpartition(".")
        for record in wanted["stops"] if inner == "stops[]" else [wanted[inner] if inner else wanted]:
            if isinstance(record, dict):
                record.pop(name, None)
    left = spliced(text, [(*span, "") for span in cuts(text, gone)])
    assert json.loads(left) == wanted
    # What stays keeps its digits.
    assert ("1.50" in left) == ("at.lat" not in gone)


@given(OBJECTS, SPACED)
def test_the_text_of_a_member_is_where_it_is_said_to_be(value: dict[str, Any], spaced: tuple[str, str]) -> None:
    text = json.dumps(value, separators=spaced)
    for name, inner in value.items():
        found = [json.dumps(json.loads(text[start:end])) for start, end in values_at(text, name)]
        assert found == [json.dumps(inner)]


def test_a_path_may_name_a_member_and_a_member_of_a_member() -> None:
    text = '{"a": {"b": 1, "c": {"d": 2}}, "a.b": 3, "a.c.d": 4, "a.c": {"d": 5}}'
    assert [text[start:end] for start, end in values_at(text, "a.b")] == ["1", "3"]
    assert [text[start:end] for start, end in values_at(text, "a.c.d")] == ["2", "4", "5"]
    assert values_at(text, "a.b.c") == []


@pytest.mark.parametrize(
    "text",
    ["", "7", "[]", '{"a": 1', '{"a": 1} ', '{"a": 1}{}', ' {"a": 1}', "{'a': 1}", '{"a": 01}', '{"a": 1,}'],
)
def test_what_is_not_one_object_is_refused(text: str) -> None:
    with pytest.raises(NotJsonError, match=r"^not a JSON object$"):
        object_in(text)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_what_only_other_parsers_take_for_a_number_is_refused(constant: str) -> None:
    with pytest.raises(BadRecordError, match=f"^{constant} is no number in JSON$"):
        object_in('{"lat": ' + constant + "}")


def test_an_abyss_of_lists_is_refused() -> None:
    with pytest.raises(BadRecordError, match=r"^the values are nested too deeply$"):
        value_at("[" * 1_000_000, 0)


def test_a_member_that_occurs_twice_is_refused() -> None:
    assert members(object_in('{"a": 1, "b": 2}')) == {"a": 1, "b": 2}
    with pytest.raises(BadRecordError, match=r"^a member occurs twice in one object$"):
        members(object_in('{"a": 1, "b": 2, "a": 1}'))


@pytest.mark.parametrize(
    ("escape", "whole"), [(r"\ud83d\ude00", True), (r"\uD83D", False), (r"\ude00\ud83d", False)]
)
def test_half_a_character_is_refused(escape: str, whole: bool) -> None:
    text = f'{{"note": "{escape}"}}'
    if whole:
        refuse_half_characters(text, json.loads(text))
        return
    with pytest.raises(BadRecordError, match=r"^an escape stands for half a character$"):
        refuse_half_characters(text, json.loads(text))


def test_a_sign_is_found_behind_white_space_and_nothing_at_the_end() -> None:
    assert sign_at("1 \t\r\n, 2", 1) == (",", 6)
    assert sign_at("1  ", 1)[0] == ""


@pytest.mark.parametrize("text", ["a: 1", '"a" 1', '"a"', "7: 1", ""])
def test_a_member_needs_a_name_in_quotes_and_a_colon(text: str) -> None:
    with pytest.raises(NotJsonError):
        key_at(text, 0)
    assert key_at('"a b" :\n 1', 0) == ("a b", 9)
