"""JSON values flattened into columns, by their paths."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from geoind.files.jsontext import members

__all__ = ["as_columns", "chosen", "flattened", "is_number"]


def flattened(pairs: Iterable[tuple[str, Any]], path: str = "") -> dict[str, Any]:
    """Return the scalars of an object, and its lists of two to four numbers, by their paths.

    Examples
    --------
    >>> flattened((("id", 7), ("at", (("lat", 1), ("tags", ["a", "b"]))), ("home", [2, 48])))
    {'id': 7, 'at.lat': 1, 'at.tags[]': 'a b', 'home': [2, 48]}
    """
    found: dict[str, Any] = {}
    for name, inner in pairs:
        _flatten(inner, path + name, found)
    return found


def _flatten(value: Any, path: str, found: dict[str, Any]) -> None:
    if type(value) is tuple:
        for name, inner in members(value).items():
            _flatten(inner, f"{path}.{name}", found)
    elif type(value) is list and not (1 < len(value) < 5 and all(map(is_number, value))):
        for inner in value:
            _flatten(inner, f"{path}[]", found)
    elif path in found:
        # Members of a list, or {"a.b": 1, "a": {"b": 2}}: what one path stands for is looked at together.
        found[path] = f"{_text(found[path])} {_text(value)}"
    else:
        found[path] = value


def as_columns(records: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> dict[str, pa.Array]:
    """Return a column per path that any of some flattened records has: numbers, text, or lists of numbers.

    What is told about all of them is one more column each, the same in every row.
    """
    paths = dict.fromkeys(path for record in records for path in record)
    columns = {path: _column([value] * max(1, len(records)))[: len(records)] for path, value in about.items()}
    return columns | {path: _column([record.get(path) for record in records]) for path in paths}


def _column(values: list[Any]) -> pa.Array:
    kinds = set(map(type, values)) - {type(None)}
    try:
        if kinds <= {bool}:
            return pa.array(values, pa.bool_())
        if kinds == {str}:
            return pa.array(values, pa.string())
        if kinds == {int}:
            return pa.array(values, pa.int64())
        if kinds == {float} or kinds == {int, float}:
            return pa.array([None if value is None else _float(value) for value in values], pa.float64())
        if kinds == {list}:
            lists = [None if value is None else list(map(_float, value)) for value in values]
            return pa.array(lists, pa.list_(pa.float64()))
    except OverflowError:
        pass  # a number that is too long for a number is text
    return pa.array([None if value is None else str(value) for value in values], pa.string())


def _float(value: int | float) -> float:
    """Return a number as a float, unless that would be another number."""
    if float(value) != value:
        raise OverflowError
    return float(value)


def is_number(value: Any) -> bool:
    """Return whether a JSON value is a number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


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
