"""Places packed into bytes: as geometries, numbers or text; also bytes in hexadecimal digits or in base64."""

import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile

import numpy as np
import pyarrow as pa
import shapely

from geoind.arrays import IntArray
from geoind.tables.places import is_text
from geoind.tables.values import Sample

__all__ = ["bytes_in", "telling_bytes", "text_in"]

LOOKED_AT = 64
"""So many values of a column."""

HEXADECIMAL = re.compile(r"(?:\\x|0x)?((?:[0-9a-fA-F]{2}){8,})")
BASE64 = re.compile(r"(?:[A-Za-z0-9+/_-]{4}){2,}(?:[A-Za-z0-9+/_-]{2,4}={0,2})?")

SCALES = (1e5, 1e6, 1e7)
"""Degrees as whole numbers."""


def bytes_in(column: pa.Array, rows: IntArray) -> tuple[pa.Array, IntArray] | None:
    """Return the bytes that a column holds, and the row of each; None where it holds none.

    Databases write geometries in hexadecimal digits, and JSON knows bytes in base64 alone.

    Examples
    --------
    >>> bytes_in(pa.array(["3030303030303030"]), np.arange(1))[0].to_pylist()
    [b'00000000']
    """
    some = column.slice(0, LOOKED_AT)
    if _is_binary(column.type):
        return some, rows[:LOOKED_AT]
    if not is_text(column.type):
        return None
    texts = some.to_pylist()
    filled = [number for number, text in enumerate(texts) if text]
    for read in (_from_hexadecimal, _from_base64):
        found = list(takewhile(lambda value: value is not None, (read(texts[number]) for number in filled)))
        if found and len(found) == len(filled):
            return pa.array(found, pa.binary()), rows[filled]
    return None


def text_in(column: pa.Array) -> pa.Array | None:
    """Return the text that bytes are, None where they are none."""
    try:
        return pa.array([None if value is None else value.decode() for value in column.to_pylist()], pa.string())
    except UnicodeDecodeError:
        return None


def telling_bytes(samples: Sequence[Sample], column: pa.Array, rows: IntArray) -> str | None:
    """Return how bytes tell a place: as WKB, or with a true coordinate among them."""
    found = [(value, int(row)) for value, row in zip(column.to_pylist(), rows, strict=True) if value is not None]
    if not found:
        return None
    shapes = shapely.from_wkb(np.array([value for value, _ in found], object), on_invalid="ignore")
    if np.mean(~np.asarray(shapely.is_missing(shapes))) > 0.5:
        return "holds geometries"
    for sample in samples:
        long = [any(form in value for form in _forms(sample.lonlat[row], "d")) for value, row in found]
        # Four bytes agree by chance now and then.
        short = [any(form in value for form in _forms(sample.lonlat[row], "f")) for value, row in found]
        if any(long) or 2 * sum(short) > len(short):
            return "holds the bytes of a true coordinate"
    return None


def _forms(lonlat: Sequence[float], kind: str) -> Iterator[bytes]:
    """Yield the bytes in which coordinates are stored: in eight bytes, or in four."""
    for axis in lonlat:
        if not np.isfinite(axis) or axis == np.rint(axis):
            continue
        for order in "<>":
            yield np.array(axis, f"{order}f{8 if kind == 'd' else 4}").tobytes()
            for scale in SCALES if kind == "f" else ():
                yield np.array(np.rint(axis * scale), f"{order}i4").tobytes()


def _from_hexadecimal(text: str) -> bytes | None:
    match = HEXADECIMAL.fullmatch(text)
    return bytes.fromhex(match[1]) if match else None


def _from_base64(text: str) -> bytes | None:
    # Digits alone are a number.
    if text.isdigit() or not BASE64.fullmatch(text):
        return None
    # More signs of the end than are needed do no harm.
    return b64decode(text + "==", b"-_")


def _is_binary(kind: pa.DataType) -> bool:
    tests: tuple[Callable[[pa.DataType], bool], ...] = (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_binary_view,
        pa.types.is_fixed_size_binary,
    )
    return any(test(kind) for test in tests)
