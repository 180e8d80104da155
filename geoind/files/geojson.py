"""GeoJSON feature collections, read and written some features at a time."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import ijson

from geoind.errors import InvalidInputError
from geoind.files.jsonrows import FEATURE_PLACE, Form, JsonRows
from geoind.files.jsonvalues import flattened, without, writer

__all__ = ["geojson_rows"]

CHUNK = 1 << 16
"""Bytes read at once."""

BATCH_FEATURES = 1 << 13
"""Features handled at once."""

LONGEST = 64 << 20
"""No feature, and no other member of the collection, may be longer."""

DEEPEST = 200
"""So many objects and lists may lie inside each other."""

WGS84_NAMES = ("crs84", "epsg::4326", "epsg:4326")

BOM = b"\xef\xbb\xbf"

write = writer()


def geojson_rows(
    stream: BinaryIO,
    *,
    drop: frozenset[str] = frozenset(),
    named: Sequence[str] = (),
    times: Sequence[str] = (),
    size: int = BATCH_FEATURES,
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
        Features handled at once; -1 for all.

    Examples
    --------
    >>> import io
    >>> text = b'{"features": [{"geometry": {"type": "Point", "coordinates": [2, 48.5]}, "id": 7}]}'
    >>> [rows.batch.column("id").to_pylist() for rows in geojson_rows(io.BytesIO(text))]
    [[7]]
    """
    document = _Document(drop, named, times)
    rows = document.rows()
    for number, feature in enumerate(_features(stream, document), start=1):
        rows.add(number, feature)
        if 0 <= size < len(rows.records) + len(rows.problems):
            yield rows
            rows = document.rows()
    document.finish()
    yield rows


def _features(stream: BinaryIO, document: "_Document") -> Iterator[dict[str, Any]]:
    """Yield the features, while the document learns its other members."""
    events = ijson.sendable_list()
    parser = ijson.basic_parse_coro(events)
    count, size = 0, 0
    try:
        text = stream.read(CHUNK).removeprefix(BOM)
        while text:
            parser.send(text)
            size += len(text)
            for feature in document.features_in(events):
                count, size = count + 1, 0
                yield feature
            if size > LONGEST:
                raise InvalidInputError(f"feature {count + 1} is too long")
            del events[:]
            text = stream.read(CHUNK)
        parser.close()
        yield from document.features_in(events)
    except (ijson.JSONError, UnicodeDecodeError):
        count += sum(1 for _ in document.features_in(events))
        # Not its message: that quotes the document.
        raise InvalidInputError(f"this is no proper JSON, behind feature {count}") from None


@dataclass(eq=False)
class _Document:
    """What is known of a collection so far: the members before the features, and those after them."""

    drop: frozenset[str]
    named: Sequence[str]
    times: Sequence[str]
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)
    ended: bool = False
    _stack: list[tuple[Any, str]] = field(default_factory=list)
    _container: Any = None
    _key: str = ""
    _features: list[Any] | None = None
    _started: bool = False
    _written: int = 0

    def features_in(self, events: Iterable[tuple[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield the features that some events of the parser complete."""
        container, key, stack, features = self._container, self._key, self._stack, self._features
        for event, value in events:
            if event == "map_key":
                key = value
                continue
            if event in ("start_map", "start_array"):
                stack.append((container, key))
                container, key = {} if event == "start_map" else [], ""
                if len(stack) < 3 or len(stack) > DEEPEST:
                    features = self._check_beginning(container, stack)
                continue
            if event in ("end_map", "end_array"):
                value = container
                container, key = stack.pop()
                if value is features:
                    continue
            if container is features and container is not None:
                if not isinstance(value, dict):
                    raise InvalidInputError("a feature must be an object")
                yield value
            elif len(stack) == 1:
                self._learn(key, value)
            elif type(container) is dict:
                container[key] = value
            elif container is not None:
                container.append(value)
            elif not isinstance(value, dict):
                raise InvalidInputError("a GeoJSON file must be a FeatureCollection")
        self._container, self._key = container, key

    def _check_beginning(self, container: Any, stack: list[tuple[Any, str]]) -> list[Any] | None:
        """Return the list of features, if it has begun; refuse a document that has another form."""
        if len(stack) > DEEPEST:
            raise InvalidInputError("the values are nested too deeply")
        if len(stack) == 1 and not isinstance(container, dict):
            raise InvalidInputError("a GeoJSON file must be a FeatureCollection")
        if len(stack) == 2 and stack[-1][1] == "features":
            if self._features is not None or not isinstance(container, list):
                raise InvalidInputError("a GeoJSON file must have one list of features")
            self._features = container
        return self._features

    def _learn(self, name: str, value: Any) -> None:
        if name == "crs":
            _check_crs(value)
        # The collection's box is made of true places.
        if name != "bbox":
            (self.before if self._features is None else self.after)[name] = value

    def finish(self) -> None:
        """Note that the document has ended."""
        if self._features is None:
            raise InvalidInputError("a GeoJSON file must be a FeatureCollection, this one has no features")
        self.ended = True

    def rows(self) -> JsonRows:
        """Return an empty batch of features."""
        form = Form([FEATURE_PLACE], feature=True)
        rows = JsonRows(form, drop=self.drop, named=self.named, times=self.times, about=self._about)
        rows.frame = self._framed
        return rows

    def _about(self) -> dict[str, Any]:
        told = {**self.before, **self.after}
        return flattened(
            {name: value for name, value in told.items() if name not in ("type", "crs")}, "collection."
        )

    def _framed(self, rows: list[int], objects: list[dict[str, Any]]) -> bytes:  # noqa: ARG002
        """Return features as text, with the beginning of the document before the first, its end after the last."""
        parts = []
        if not self._started:
            self._started = True
            opening = write(self._kept(self.before))[:-1]
            parts.append(f'{opening}{", " if len(opening) > 1 else ""}"features": [\n')
        for record in objects:
            parts.append(",\n" if self._written else "")
            parts.append(write(record))
            self._written += 1
        if self.ended:
            closing = write(self._kept(self.after))[1:]
            parts.append(f"\n]{', ' if len(closing) > 1 else ''}{closing}\n")
        return "".join(parts).encode()

    def _kept(self, members: dict[str, Any]) -> dict[str, Any]:
        kept: dict[str, Any] = without({"collection": members}, self.drop).get("collection", {})
        return kept


def _check_crs(crs: Any) -> None:
    """Refuse a collection that says, as GeoJSON did before 2016, that it is not in degrees on WGS84."""
    name = str(crs["properties"].get("name")) if isinstance(crs, dict) and "properties" in crs else "crs84"
    if not name.lower().endswith(WGS84_NAMES):
        raise InvalidInputError("the GeoJSON file has a crs other than WGS84: re-project it first")
