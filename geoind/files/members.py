"""Where the members of a JSON object are in its text, so that one can be replaced and the rest left alone."""

import json
import re
from typing import Any, NamedTuple

__all__ = ["Member", "members_of"]

SPACE = re.compile(r"[ \t\n\r]*")
DECODER = json.JSONDecoder()


class Member(NamedTuple):
    """A member of an object: its name, its value, and where they are in the text."""

    name: str
    value: Any
    name_at: int
    value_at: int
    end: int


def members_of(text: str, at: int = 0) -> tuple[list[Member], int]:
    """Return the members of the object that starts at a position, and where the object ends.

    Raises json.JSONDecodeError, whose message never quotes the text.

    Examples
    --------
    >>> members, end = members_of('{"lat": 1.50, "tags": []}')
    >>> [(member.name, member.value) for member in members], end
    ([('lat', 1.5), ('tags', [])], 25)
    """
    at = _expect(text, at, "{")
    members: list[Member] = []
    at = _skip(text, at)
    if text[at : at + 1] == "}":
        return members, at + 1
    while True:
        name_at = at
        if text[at : at + 1] != '"':
            raise json.JSONDecodeError("Expecting a name", text, at)
        name, at = DECODER.raw_decode(text, at)
        value_at = _skip(text, _expect(text, _skip(text, at), ":"))
        value, end = DECODER.raw_decode(text, value_at)
        members.append(Member(name, value, name_at, value_at, end))
        at = _skip(text, end)
        if text[at : at + 1] == "}":
            return members, at + 1
        at = _skip(text, _expect(text, at, ","))


def _skip(text: str, at: int) -> int:
    match = SPACE.match(text, at)
    return match.end() if match else at


def _expect(text: str, at: int, sign: str) -> int:
    if text[at : at + 1] != sign:
        raise json.JSONDecodeError(f"Expecting {sign!r}", text, at)
    return at + 1
