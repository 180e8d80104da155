"""GeoJSON feature collections, read and written some features at a time.

A document is the members before its features, the features, and the members after them: each is parsed from its
exact text, and nothing but white space and commas may stand between them.
"""

import codecs
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, BinaryIO

from geoind.errors import InvalidInputError
from geoind.files.jsonrows import FEATURE_PLACE, Form, JsonRows
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
)
from geoind.files.jsonvalues import flattened

__all__ = ["geojson_rows"]

CHUNK = 1 << 20
"""Bytes read at once."""

LONGEST = 64 << 20
"""No feature, and no other member of the collection, may be longer."""

WGS84_NAMES = ("crs84", "epsg::4326", "epsg:4326")

NO_FEATURES = (
    "a GeoJSON file must be a FeatureCollection, this one has no features; an object per line is NDJSON (--format "
    "ndjson)"
)
LIST = '{"features": ['

BOM = "\ufeff"


def geojson_rows(
    stream: BinaryIO,
    *,
    drop: frozenset[str] = frozenset(),
    named: Sequence[str] = (),
    times: Sequence[str] = (),
    size: int = CHUNK,
) -> Iterator[JsonRows]:
    """Yield the features of a GeoJSON document (RFC 7946), with the other members of the collection around them.

    Those members are constant columns of each batch, called `collection.` and their path.

    Parameters
    ----------
    stream : binary file
        The document.
    drop : frozenset of str
        The paths of members that are not written.
    named : sequence of str
        The paths of the record's identity and of the person.
    times : sequence of str
        The paths of times.
    size : int
        Bytes handled at once; -1 for all.

    Examples
    --------
    >>> import io
    >>> text = b'{"features": [{"geometry": {"type": "Point", "coordinates": [2, 48.5]}, "id": 7}]}'
    >>> [rows.batch.column("id").to_pylist() for rows in geojson_rows(io.BytesIO(text))]
    [[7]]
    """
    document = _Document(_Text(stream, size), partial(JsonRows, drop=drop, named=named, times=times), drop)
    try:
        yield from document.batches()
    except (NotJsonError, UnicodeDecodeError):
        raise InvalidInputError(f"this is no proper JSON, behind feature {document.count}") from None
    except BadRecordError as error:
        raise InvalidInputError(f"behind feature {document.count}: {error}") from None


class _Text:
    """A text that comes piece by piece; what is understood goes."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream = stream
        self._size = size
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._ended = False
        self.text = ""
        self.at = 0

    def more(self) -> bool:
        """Read on, and return whether there was more; the position stays at the same sign."""
        if self._ended:
            return False
        rest = self.text[self.at :]
        if len(rest) > LONGEST:
            raise InvalidInputError("a feature, or another member of the collection, is too long")
        # Twice as much each time, where no end comes: then reading from the beginning again costs little.
        data = self._stream.read(max(self._size, len(rest)) if self._size > 0 else -1)
        self._ended = not data
        self.text, self.at = rest + self._decoder.decode(data, final=self._ended), 0
        return True


class _Document:
    """A collection: the members before the features, the features, and the members after them."""

    def __init__(self, source: _Text, rows: Callable[[Form], JsonRows], drop: frozenset[str]) -> None:
        self.count = 0
        self._source = source
        self._rows = rows
        self._drop = drop
        self._names: set[str] = set()
        self._about: dict[str, Any] = {}
        self._opening, self._closing = "", ""
        self._ended = False
        self._written = 0

    def batches(self) -> Iterator[JsonRows]:
        """Yield the features, in at least one batch; the last one knows the members after them."""
        source = self._source
        while not (begin := _features_begin(source.text)):
            self._read_on()
        self._open(source.text[:begin])
        source.at = begin
        while not self._ended:
            gaps: list[str] = []
            rows = self._rows(Form([FEATURE_PLACE], feature=True))
            rows.frame = partial(self._framed, gaps)
            rows.about = self._told
            if self._take(rows, gaps):
                while source.more():
                    pass
                self._close(source.text[source.at :])
                yield rows
                return
            if gaps or rows.problems:
                yield rows
            self._read_on()

    def _read_on(self) -> None:
        if not self._source.more():
            raise NotJsonError("the document has no end")

    def _take(self, rows: JsonRows, gaps: list[str]) -> bool:
        """Add the features that the text holds, each with what stands before it, and return whether they end.

        A feature counts when it is known what follows: another, or the end of the list. So the last batch has one.
        """
        text, at = self._source.text, self._source.at
        sign, after = sign_at(text, at)
        while sign != "]":
            if self.count and sign not in (",", ""):
                raise InvalidInputError(f"this is no proper JSON, behind feature {self.count}")
            start = sign_at(text, after)[1] - 1 if self.count else after - 1
            try:
                value, end = value_at(text, start)
            except NotJsonError:
                return False  # not yet, or never
            sign, after = sign_at(text, end)
            if not sign:
                return False
            if type(value) is not tuple:
                raise InvalidInputError("a feature must be an object")
            self.count += 1
            if rows.add(self.count, text[start:end], value):
                gaps.append(text[at:start])
            self._source.at = at = end
        return True

    def _open(self, text: str) -> None:
        """Take in what stands before the features."""
        start = text.index("{")
        self._opening = text[:start] + self._learnt(text[start:] + "]}")[:-2]

    def _close(self, text: str) -> None:
        """Take in what stands behind the features, from their last on."""
        document = text.rstrip(" \t\n\r")
        self._closing = self._learnt(LIST + document)[len(LIST) :] + text[len(document) :]
        self._ended = True

    def _learnt(self, text: str) -> str:
        """Return the text of a collection without its features, as it is to be written."""
        pairs = object_in(text)
        refuse_half_characters(text, pairs)
        told = members(pairs)
        del told["features"]
        if self._names & set(told):
            raise BadRecordError("a member occurs twice in one object")
        self._names |= set(told)
        if "crs" in told:
            _check_crs(told["crs"])
        # The collection's box is made of true places.
        judged = [pair for pair in told.items() if pair[0] != "bbox" and pair != ("type", "FeatureCollection")]
        self._about = self._about | flattened(judged, "collection.")
        drop = {name.removeprefix("collection.") for name in self._drop if name.startswith("collection.")}
        return spliced(text, [(*span, "") for span in cuts(text, {*drop, "bbox"} - {"features"})])

    def _told(self) -> dict[str, Any]:
        return self._about

    def _framed(self, gaps: list[str], rows: list[int], texts: list[str]) -> bytes:
        """Return features as text, with the beginning of the document before the first, its end after the last."""
        pieces = [self._opening]
        self._opening = ""
        for row, text in zip(rows, texts, strict=True):
            gap = gaps[row]
            if not self._written:
                gap = gap.replace(",", "", 1)
            elif "," not in gap:
                gap = f",{gap}"
            pieces += (gap, text)
            self._written += 1
        if self._ended:
            pieces.append(self._closing)
        return "".join(pieces).encode()


def _features_begin(text: str) -> int:
    """Return where the first feature may begin, behind the bracket; 0 where the text does not go so far."""
    sign, after = sign_at(text, len(BOM) if text.startswith(BOM) else 0)
    if sign not in ("{", ""):
        hint = "; a list of records must become NDJSON, an object per line, first" if sign == "[" else ""
        raise InvalidInputError(f"a GeoJSON file must be a FeatureCollection{hint}")
    try:
        while sign:
            first, behind = sign_at(text, after)
            if first == "}":
                raise InvalidInputError(NO_FEATURES)
            name, value = key_at(text, behind - 1)
            if name == "features" and text[value : value + 1] == "[":
                return value + 1
            sign, after = sign_at(text, value_at(text, value)[1])
            if sign == "}":
                raise InvalidInputError(NO_FEATURES)
            if sign not in (",", ""):
                raise InvalidInputError("this is no proper JSON, before the features")
    except NotJsonError:
        pass  # not yet, or never
    return 0


def _check_crs(crs: Any) -> None:
    """Refuse a collection that says, as GeoJSON did before 2016, that it is not in degrees on WGS84."""
    about = dict(crs).get("properties") if type(crs) is tuple else None
    name = dict(about).get("name", "crs84") if type(about) is tuple else "crs84"
    if not str(name).lower().endswith(WGS84_NAMES):
        raise InvalidInputError("the GeoJSON file has a crs other than WGS84: re-project it first")
