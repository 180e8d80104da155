"""GeoJSON feature collections, read and written a few features at a time."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from geoind.errors import InvalidInputError
from geoind.files.feature import add_feature, telling_properties
from geoind.files.jsontext import JsonText
from geoind.files.textbatch import BATCH_BYTES, BadRecordError, Problem, TextBatch

__all__ = ["FeatureCollection"]

WGS84_NAMES = ("crs84", "epsg::4326", "epsg:4326")


@dataclass
class FeatureCollection:
    """A GeoJSON document (RFC 7946) of point features.

    Parameters
    ----------
    identity : str, optional
        The property, or "id" for the feature's own id, that is the record's identity for keyed noise.
    keep_missing : bool
        Whether a feature with a null or empty geometry stays as it is.
    """

    identity: str | None = None
    keep_missing: bool = False
    left: list[str] = field(default_factory=list)

    def batches(self, stream: BinaryIO) -> Iterator[TextBatch]:
        """Return the document's text in batches of features."""
        text = JsonText(stream)
        text.take("{")
        opening, features = "{", False
        while text.peek() != "}":
            name, _ = text.value()
            text.take(":")
            if name == "features":
                features = True
                yield from self._features(text, opening)
                opening = ", "
            else:
                value, raw = text.value()
                if name == "crs":
                    _check_crs(value)
                # The collection's box is made of true places.
                if name != "bbox":
                    yield _plain(f"{opening}{json.dumps(name)}: {raw}")
                    opening = ", "
            if text.peek() != "}":
                text.take(",")
        text.take("}")
        text.finish()
        if not features:
            raise InvalidInputError("a GeoJSON file must be a FeatureCollection, this one has no features")
        yield _plain("}\n")

    def _features(self, text: JsonText, opening: str) -> Iterator[TextBatch]:
        batch = _plain(f'{opening}"features": [\n')
        text.take("[")
        separator = b""
        first = True
        while text.peek() != "]":
            members, start, end = text.members()
            if first:
                self.left = telling_properties(members)
                first = False
            count = len(batch.records)
            batch.add_text(separator)
            try:
                add_feature(
                    batch,
                    text.buffer,
                    start,
                    end,
                    members,
                    keep_missing=self.keep_missing,
                    identity=self.identity,
                )
                separator = b",\n"
            except BadRecordError as error:
                batch.drop_from(count)
                batch.problems.append(Problem(text.line_at(start), str(error), text.buffer[start:end].encode()))
            batch.size += end - start
            if batch.size > BATCH_BYTES:
                yield batch
                batch = TextBatch()
            if text.peek() != "]":
                text.take(",")
        text.take("]")
        batch.add_text(b"\n]")
        yield batch


def _plain(text: str) -> TextBatch:
    batch = TextBatch()
    batch.add_text(text.encode())
    return batch


def _check_crs(crs: Any) -> None:
    """Refuse a collection that says, as GeoJSON did before 2016, that it is not in degrees on WGS84."""
    name = str(crs["properties"].get("name")) if isinstance(crs, dict) and "properties" in crs else "crs84"
    if not name.lower().endswith(WGS84_NAMES):
        raise InvalidInputError("the GeoJSON file has a crs other than WGS84: re-project it first")
