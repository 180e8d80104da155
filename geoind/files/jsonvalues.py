"""JSON values: read without loss, flattened into columns, written again."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

__all__ = [
    "BadRecordError",
    "Digits",
    "as_columns",
    "chosen",
    "flattened",
    "is_number",
    "loaded",
    "number_text",
    "without",
    "writer",
]


class BadRecordError(Exception):
    """A record that is no row; the message is the reason and never quotes the record."""


class Digits(str):
    """A number, by its own text."""

    __slots__ = ()


def loaded(text: bytes) -> dict[str, Any]:
    """Return the object that a text is, its numbers with the digits that they have.

    Examples
    --------
    >>> loaded(b'{"lat": 1.50}')
    {'lat': Decimal('1.50')}
    """
    try:
        value = DECODER.decode(text.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        # Not the parser's message: it may quote the text.
        raise BadRecordError("not a JSON object") from None
    if not isinstance(value, dict):
        raise BadRecordError("not a JSON object")
    return value


def _refuse(constant: str) -> None:
    raise BadRecordError(f"{constant} is no number in JSON")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        # Which of them a reader takes is anybody's guess.
        raise BadRecordError("a member occurs twice in one object")
    return members


DECODER = json.JSONDecoder(parse_float=Decimal, parse_constant=_refuse, object_pairs_hook=_members)


def flattened(value: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Return the scalars of an object, and its lists of two to four numbers, by their paths.

    Examples
    --------
    >>> flattened({"id": 7, "at": {"lat": 1, "tags": ["a", "b"]}, "home": [2, 48]})
    {'id': 7, 'at.lat': 1, 'at.tags[]': 'a b', 'home': [2, 48]}
    """
    found: dict[str, Any] = {}
    for name, inner in value.items():
        _flatten(inner, path + name, found)
    return found


def _flatten(value: Any, path: str, found: dict[str, Any]) -> None:
    if isinstance(value, dict):
        for name, inner in value.items():
            _flatten(inner, f"{path}.{name}", found)
    elif isinstance(value, list) and not (1 < len(value) < 5 and all(map(is_number, value))):
        for inner in value:
            _flatten(inner, f"{path}[]", found)
    elif path in found:
        # Members of a list, or {"a.b": 1, "a": {"b": 2}}: what one path stands for is looked at together.
        found[path] = f"{_text(found[path])} {_text(value)}"
    else:
        found[path] = value


def as_columns(records: Sequence[Mapping[str, Any]]) -> dict[str, pa.Array]:
    """Return a column per path that any of some flattened records has: numbers, text, or lists of numbers."""
    paths = dict.fromkeys(path for record in records for path in record)
    return {path: _column([record.get(path) for record in records]) for path in paths}


def _column(values: list[Any]) -> pa.Array:
    kinds = set(map(type, values)) - {type(None)}
    try:
        if kinds <= {bool}:
            return pa.array(values, pa.bool_())
        if kinds == {str}:
            return pa.array(values, pa.string())
        if kinds == {int}:
            return pa.array(values, pa.int64())
        if kinds == {Decimal} or kinds == {int, Decimal}:
            return pa.array([None if value is None else float(value) for value in values], pa.float64())
        if kinds == {list}:
            lists = [None if value is None else list(map(float, value)) for value in values]
            return pa.array(lists, pa.list_(pa.float64()))
    except OverflowError:
        pass  # a number that is too long for a number is text
    return pa.array([None if value is None else _text(value) for value in values], pa.string())


def without(value: Any, paths: frozenset[str], path: str = "") -> Any:
    """Return an object without the members at some paths.

    Examples
    --------
    >>> without({"id": 7, "at": {"lat": 1, "tags": ["a", "b"]}}, frozenset(["at.lat", "at.tags[]"]))
    {'id': 7, 'at': {'tags': []}}
    """
    if isinstance(value, dict):
        inside = f"{path}." if path else ""
        return {
            name: without(inner, paths, inside + name)
            for name, inner in value.items()
            if inside + name not in paths
        }
    if isinstance(value, list):
        return [without(inner, paths, f"{path}[]") for inner in value if f"{path}[]" not in paths]
    return value


def number_text(value: Any) -> str | None:
    """Return a coordinate as text: a number, or text that may be one; whatever else is none."""
    if value is None or isinstance(value, str):
        return value
    return str(value) if is_number(value) else "none"


def writer(*, compact: bool = False, ascii_only: bool = False) -> Callable[[Any], str]:
    """Return what writes JSON values, numbers with all their digits.

    Examples
    --------
    >>> writer()({"lat": Decimal("1.50"), "tags": ["é", None, True]})
    '{"lat": 1.50, "tags": ["é", null, true]}'
    """
    quoted: Callable[[str], str] = (
        json.encoder.encode_basestring_ascii if ascii_only else json.encoder.encode_basestring
    )
    comma, colon = (",", ":") if compact else (", ", ": ")

    def write(value: Any) -> str:
        kind = type(value)
        if kind is str:
            return quoted(value)
        if kind is dict:
            return "{" + comma.join([quoted(name) + colon + write(inner) for name, inner in value.items()]) + "}"
        if kind is list:
            return "[" + comma.join([write(inner) for inner in value]) + "]"
        return CONSTANTS[value] if value is None or kind is bool else str(value)

    return write


CONSTANTS = {None: "null", True: "true", False: "false"}


def is_number(value: Any) -> bool:
    """Return whether a JSON value is a number."""
    return isinstance(value, (int, Decimal)) and not isinstance(value, bool)


def _text(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def chosen(names: Iterable[str], wanted: Iterable[str]) -> list[str]:
    """Return the paths that are, or lie below, some wanted ones.

    Examples
    --------
    >>> chosen(["id", "at.lat", "at.tags[]"], ["at"])
    ['at.lat', 'at.tags[]']
    """
    roots = list(wanted)
    return [
        name for name in names if any(name == root or name.startswith((f"{root}.", f"{root}[")) for root in roots)
    ]
