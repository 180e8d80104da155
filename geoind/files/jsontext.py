"""JSON text and where in it the values are, so that what passes keeps its bytes.

The parser of the standard library reads each value from its exact text and refuses whatever is not JSON. An object
becomes a tuple of its members, so that one that occurs twice is seen: which of them a reader takes is anybody's
guess.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

__all__ = [
    "BadRecordError",
    "NotJsonError",
    "Span",
    "cuts",
    "key_at",
    "members",
    "object_in",
    "refuse_half_characters",
    "sign_at",
    "spliced",
    "value_at",
    "values_at",
]

Span = tuple[int, int]
"""Where a part of a text begins and ends."""

WHITE = re.compile(r"[ \t\n\r]*")
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class BadRecordError(Exception):
    """A record that is no row; the message is the reason and never quotes the record."""


class NotJsonError(BadRecordError):
    """Text that is no JSON value, or not yet."""


def _refuse(constant: str) -> None:
    raise BadRecordError(f"{constant} is no number in JSON")


scan = json.JSONDecoder(parse_constant=_refuse, object_pairs_hook=tuple).scan_once  # type: ignore[attr-defined]


def value_at(text: str, at: int) -> tuple[Any, int]:
    """Return the value that begins at a position, objects as tuples of their members, and where it ends.

    Examples
    --------
    >>> value_at('[{"lat": 1.50}, 7]', 1)
    ((('lat', 1.5),), 14)
    """
    try:
        value: Any
        value, end = scan(text, at)
    except (StopIteration, ValueError):
        # Not the parser's message: it may quote the text.
        raise NotJsonError("not a JSON object") from None
    except RecursionError:
        raise BadRecordError("the values are nested too deeply") from None
    return value, end


def object_in(text: str) -> tuple[tuple[str, Any], ...]:
    """Return the members of the object that a text is, from its first character to its last."""
    value, end = value_at(text, 0)
    if type(value) is not tuple or end != len(text):
        raise NotJsonError("not a JSON object")
    return value


def members(pairs: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    """Return the members of an object by their names, each of which must be there once."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise BadRecordError("a member occurs twice in one object")
    return found


def refuse_half_characters(text: str, value: Any) -> None:
    """Refuse escapes for one half of a character, which no text in UTF-8 can hold."""
    if "\\u" in text and SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise BadRecordError("an escape stands for half a character") from None


def sign_at(text: str, at: int) -> tuple[str, int]:
    """Return the sign behind white space, "" at the end of the text, and what begins behind it."""
    spot = WHITE.match(text, at).end()  # type: ignore[union-attr]
    return text[spot : spot + 1], spot + 1


def key_at(text: str, at: int) -> tuple[str, int]:
    """Return the name of the member that begins at a position, and where its value does."""
    if text[at : at + 1] != '"':
        raise NotJsonError("not a JSON object")
    name, end = value_at(text, at)
    sign, after = sign_at(text, end)
    if sign != ":":
        raise NotJsonError("not a JSON object")
    return name, WHITE.match(text, after).end()  # type: ignore[union-attr]


class _Part(NamedTuple):
    """A member of an object, or an element of a list: where it begins, its value begins, and both end."""

    name: str
    start: int
    value: int
    end: int


def _parts(text: str, at: int) -> Iterator[_Part]:
    """Yield the members of an object, or the elements of a list, that begins at a position."""
    inside = text[at] == "{"
    spot = WHITE.match(text, at + 1).end()  # type: ignore[union-attr]
    sign = text[spot]
    while sign not in "}]":
        name, value = key_at(text, spot) if inside else ("", spot)
        end = value_at(text, value)[1]
        yield _Part(name, spot, value, end)
        sign, after = sign_at(text, end)
        spot = WHITE.match(text, after).end()  # type: ignore[union-attr]


def values_at(text: str, path: str, at: int = 0) -> list[Span]:
    """Return where the values of a path are: of a member of that name, and of members of members.

    Examples
    --------
    >>> values_at('{"at": {"lat": 1.50}, "at.lat": 2}', "at.lat")
    [(15, 19), (32, 33)]
    """
    found: list[Span] = []
    for part in _parts(text, at):
        if part.name == path:
            found.append((part.value, part.end))
        elif path.startswith(f"{part.name}.") and text[part.value] == "{":
            found += values_at(text, path[len(part.name) + 1 :], part.value)
    return found


def cuts(text: str, paths: Iterable[str], at: int = 0, path: str = "") -> list[Span]:
    """Return what to cut out of an object to leave out the members at some paths, with their commas.

    Examples
    --------
    >>> text = '{"id": 7, "at": {"lat": 1, "tags": ["a", "b"]}, "z": 0}'
    >>> spliced(text, [(*span, "") for span in cuts(text, ["id", "at.tags[]", "z"])])
    '{"at": {"lat": 1, "tags": []}}'
    """
    wanted = frozenset(paths)
    parts = list(_parts(text, at))
    inner = f"{path}[]" if text[at] == "[" else f"{path}." if path else ""
    found: list[Span] = []
    kept = False
    for number, part in enumerate(parts):
        own = inner + part.name
        if own in wanted:
            if kept:
                found.append((parts[number - 1].end, part.end))
            else:
                found.append((part.start, parts[number + 1].start if number + 1 < len(parts) else part.end))
            continue
        kept = True
        if text[part.value] in "{[" and any(name.startswith((f"{own}.", f"{own}[")) for name in wanted):
            found += cuts(text, wanted, part.value, own)
    return found


def spliced(text: str, changes: Iterable[tuple[int, int, str]]) -> str:
    """Return a text with other parts between some positions.

    Examples
    --------
    >>> spliced("a, b, c", [(6, 7, "z"), (0, 1, "x")])
    'x, b, z'
    """
    pieces: list[str] = []
    at = 0
    for start, end, new in sorted(changes):
        pieces += (text[at:start], new)
        at = end
    pieces.append(text[at:])
    return "".join(pieces)
