"""Places are found in bytes, and in texts that write bytes; bytes by chance are none."""

import base64
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely

from geoind.tables.packed import bytes_in, telling_bytes, text_in
from geoind.tables.values import Sample
from tests.tables.cases import lonlat

TRUTH = lonlat(100)
ROWS = 1000 + np.arange(100)
BLOBS = [np.random.default_rng(row).bytes(12) for row in range(100)]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(12)], ids=str)
def test_the_first_bytes_of_a_column_are_looked_at(kind: pa.DataType) -> None:
    found = bytes_in(pa.array(BLOBS, kind), ROWS)
    assert found is not None
    assert found[0].to_pylist() == BLOBS[:64]
    assert found[1].tolist() == ROWS[:64].tolist()


@pytest.mark.parametrize("length", range(8, 24))
def test_texts_that_write_bytes_are_bytes_and_gaps_are_left_out(length: int) -> None:
    blobs = [b"\xff" + np.random.default_rng(row).bytes(length - 1) for row in range(6)]
    coded = [base64.b64encode(blob).decode() for blob in blobs]
    for texts in (
        [blob.hex() for blob in blobs],
        [blob.hex().upper() for blob in blobs],
        ["0x" + blob.hex() for blob in blobs],
        ["\\x" + blob.hex() for blob in blobs],
        coded,
        [text.rstrip("=") for text in coded],
        [text.replace("+", "-").replace("/", "_") for text in coded],
    ):
        column = pa.array([texts[0], None, "", *texts[1:]])
        found = bytes_in(column, ROWS)
        assert found is not None
        assert found[0].to_pylist() == blobs
        assert found[1].tolist() == [1000, 1003, 1004, 1005, 1006, 1007]
        assert bytes_in(pa.array([*texts, "tree"]), ROWS) is None
        assert bytes_in(pa.array(["tree", *texts]), ROWS) is None
        late = bytes_in(pa.array(texts * 10 + [*texts[:4], "tree"]), ROWS)
        assert late is not None
        assert len(late[0]) == len(late[1]) == 64


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 2]),
        pa.array(["12345678", "87654321"]),
        pa.array(["tree", "house"]),
        pa.array([None, ""]),
        pa.array([], pa.string()),
    ],
    ids=str,
)
def test_what_writes_no_bytes_has_none(column: pa.Array) -> None:
    assert bytes_in(column, ROWS) is None


def test_bytes_are_text_where_all_of_them_are() -> None:
    text = text_in(pa.array([b"at 48.8", None, "Straße".encode()]))
    assert text is not None
    assert text.to_pylist() == ["at 48.8", None, "Straße"]
    assert text_in(pa.array([b"at 48.8", b"\xff\xfe"])) is None


def told(values: list[Any], truth: Any = TRUTH, rows: Any = None) -> str | None:
    numbers = np.arange(len(values)) if rows is None else rows
    # A row has two places, and this is the second.
    return telling_bytes([Sample(truth + 3.3), Sample(truth)], pa.array(values, pa.binary()), numbers)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("order", "<>")
def test_one_double_or_most_of_the_singles_and_whole_numbers_tell(axis: int, order: str) -> None:
    def coded(kind: str, factor: float = 1) -> list[bytes]:
        values = TRUTH[:10, axis] * factor
        return [
            b"ab" + struct.pack(order + kind, round(value) if kind == "i" else value) + b"c" for value in values
        ]

    how = "holds the bytes of a true coordinate"
    assert told([*BLOBS[:9], coded("d")[9]]) == how
    for short in (coded("f"), coded("i", 1e5), coded("i", 1e6), coded("i", 1e7)):
        assert told(short) == how
        assert told([*short[:6], *BLOBS[6:10]]) == how
        assert told([*short[:5], *BLOBS[5:10]]) is None
        assert told(short, rows=np.arange(10)[::-1]) is None
        assert told(short[::-1], rows=np.arange(10)[::-1]) == how
        assert told([None, *short[1:6], None, *BLOBS[7:9]]) == how
    assert told(coded("i", 1e4)) is None
    assert told(coded("i", 1e8 if axis == 0 else 1e3)) is None
    assert told(BLOBS[:10]) is None


def test_geometries_tell_where_they_are_more_than_half() -> None:
    shapes = [shapely.Point(-place).wkb for place in TRUTH[:10]]
    assert told(shapes) == told([*shapes[:6], *BLOBS[6:10]]) == told([None, *shapes]) == "holds geometries"
    assert told([*shapes[:5], *BLOBS[5:10]]) is None
    assert told([None] * 5) is None


def test_a_whole_or_missing_coordinate_is_in_many_bytes() -> None:
    truth = np.array([[2.0, 48.0], [np.nan, np.nan], [-7.0, 0.0]])
    values = [struct.pack("<dd", *place) for place in truth]
    assert told(values, truth) is None
    assert told([struct.pack("<ff", *place) for place in truth], truth) is None
    truth[2, 1] = 0.5
    assert told([*values[:2], struct.pack("<dd", -7.0, 0.5)], truth) == "holds the bytes of a true coordinate"


def test_whole_numbers_reach_the_ends_of_the_world() -> None:
    truth = np.array([[-179.9999999, 89.9999999], [179.9999999, -89.9999999]])
    values = [struct.pack(">i", round(lon * 1e7)) for lon, _ in truth]
    assert told(values, truth) == "holds the bytes of a true coordinate"
