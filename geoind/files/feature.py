"""GeoJSON features: the geometry is replaced, a bounding box removed, the rest stays as it is."""

from collections.abc import Sequence
from typing import Any

from geoind.files.columns import telling_columns
from geoind.files.members import Member
from geoind.files.textbatch import BadRecordError, TextBatch, place

__all__ = ["add_feature", "identity_of", "is_number", "telling_properties"]

SHAPES = ("LineString", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon", "GeometryCollection")


SPOTS = (2, 4)


def add_feature(
    batch: TextBatch,
    text: str,
    start: int,
    end: int,
    members: Sequence[Member],
    *,
    keep_missing: bool,
    identity: str | None,
) -> None:
    """Add the feature that `text[start:end]` is to a batch."""
    geometry = _only(members, "geometry")
    if geometry is None:
        raise BadRecordError("the feature has no geometry")
    coordinates = _coordinates(geometry.value)
    if not coordinates:
        if not keep_missing:
            raise BadRecordError("the feature has no place")
        batch.add_text(text[start:end].encode())
        return
    truth = place(coordinates[0], coordinates[1])
    properties = next((member.value for member in members if member.name == "properties"), None)
    _refuse_copies(properties if isinstance(properties, dict) else {}, truth)
    if identity is not None:
        batch.labels.append(_identity(members, properties, identity))
    before, after = _without_box(text, start, end, members, geometry)
    pieces = [before, b'{"type": "Point", "coordinates": [', b"", b", ", b"", b"]}", after]
    batch.add_place(pieces, SPOTS, *truth)


def telling_properties(members: Sequence[Member]) -> list[str]:
    """Return the properties that sound as if they told a place, too."""
    properties = next((member.value for member in members if member.name == "properties"), None)
    return telling_columns(list(properties)) if isinstance(properties, dict) else []


def is_number(value: Any) -> bool:
    """Return whether a JSON value is a number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _only(members: Sequence[Member], name: str) -> Member | None:
    found = [member for member in members if member.name == name]
    if len(found) > 1:
        # Which of them a reader takes is anybody's guess, and the other one would stay.
        raise BadRecordError(f"the member {name!r} occurs twice")
    return found[0] if found else None


def _coordinates(geometry: Any) -> list[float]:
    """Return the coordinates of a point; none if it is null or empty."""
    if geometry is None:
        return []
    kind = geometry.get("type") if isinstance(geometry, dict) else None
    if kind != "Point":
        raise BadRecordError(f"the geometry must be a Point, not a {kind}" if kind in SHAPES else "not a Point")
    coordinates = geometry.get("coordinates")
    if not isinstance(coordinates, list) or len(coordinates) == 1 or not all(map(is_number, coordinates)):
        raise BadRecordError("the coordinates must be numbers")
    return coordinates


def _refuse_copies(properties: dict[str, Any], truth: tuple[float, float]) -> None:
    """Refuse properties that would publish the truth beside the report: converters from CSV make them."""
    if all(float(value).is_integer() for value in truth):
        return
    copies = [
        next(
            (name for name, value in properties.items() if isinstance(value, float) and value == coordinate), None
        )
        for coordinate in truth
    ]
    if None not in copies:
        raise BadRecordError(
            f"the properties {copies[0]!r} and {copies[1]!r} repeat the true place: drop them first"
        )


def _identity(members: Sequence[Member], properties: Any, name: str) -> str:
    value = properties.get(name) if isinstance(properties, dict) else None
    if value is None and name == "id":
        value = next((member.value for member in members if member.name == "id"), None)
    return identity_of(value)


def identity_of(value: Any) -> str:
    """Return the label of a record that JSON names."""
    if isinstance(value, bool) or not isinstance(value, (int, str)) or value == "":
        raise BadRecordError("the id must be a text or a whole number")
    return str(value)


def _without_box(
    text: str, start: int, end: int, members: Sequence[Member], geometry: Member
) -> tuple[bytes, bytes]:
    """Return the text before and after the geometry, without a bounding box: a point's box is the point."""
    kept = [member for member in members if member.name != "bbox"]
    if len(kept) == len(members):
        return text[start : geometry.value_at].encode(), text[geometry.end : end].encode()
    at = kept.index(geometry)
    parts = [text[member.name_at : member.end] for member in kept]
    parts[at] = text[geometry.name_at : geometry.value_at]
    before = "{" + ", ".join(parts[: at + 1])
    return before.encode(), "".join([", " + part for part in parts[at + 1 :]] + ["}"]).encode()
