"""The columns that name a record, whose noise is keyed by it, and the person whose reports they are."""

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from geoind.arrays import IntArray
from geoind.budgets.persons import as_person
from geoind.errors import InvalidInputError
from geoind.randomness import Labels
from geoind.tables.places import Flags, column_of, is_text, nulls, without_views

__all__ = ["JSON_TEXT", "Persons", "empty", "labels_of", "persons_in", "plain", "values_of"]

JSON_TEXT = b"geoind:json"
WHOLE = re.compile("-?[0-9]+")
"""In the metadata of a field: its texts are JSON values."""


class Persons(NamedTuple):
    """Who each row is about."""

    names: Sequence[str]
    """Persons, as `as_person` returns them, each once."""
    codes: IntArray
    """The number of each row's person; -1 where the row names none."""

    def only(self, rows: IntArray) -> "Persons":
        """Return those of some rows."""
        return Persons(self.names, self.codes[rows])


def plain(column: pa.Array) -> pa.Array:
    """Return a column without dictionary and extension type, and text in one type."""
    if pa.types.is_dictionary(column.type):
        column = pa.DictionaryArray.from_arrays(
            column.indices, without_views(column.dictionary)
        ).dictionary_decode()
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    return column.cast(pa.large_string()) if is_text(column.type) else column


def empty(column: pa.Array) -> Flags:
    """Return which rows of a column in plain types are null, or empty text."""
    if not pa.types.is_large_string(column.type):
        return nulls(column)
    return np.asarray(pc.equal(column, "").fill_null(True).to_numpy(zero_copy_only=False), bool)


def values_of(batch: pa.RecordBatch, name: str, *, names: bool = False) -> pa.Array:
    """Return a column in plain types; texts that are JSON strings without their quotes.

    Of names of persons and records, JSON numbers must be whole: 7 and 7.0 would be two names.
    """
    column = plain(column_of(batch, name))
    if JSON_TEXT not in (batch.schema.field(name).metadata or {}):
        return column
    texts = column.to_pylist()
    if names and not all(text is None or text == "" or text[0] == '"' or WHOLE.fullmatch(text) for text in texts):
        raise InvalidInputError(f"column {name!r} must hold text or whole numbers")
    return pa.array([json.loads(text) if text and text[0] == '"' else text for text in texts], pa.large_string())


def labels_of(column: pa.Array, name: str) -> Labels:
    """Return one label per record: an array of whole numbers, or a list of text or bytes."""
    kind = column.type
    if pa.types.is_integer(kind):
        return np.asarray(column.to_numpy())
    tests = ("large_string", "binary", "large_binary", "binary_view", "fixed_size_binary")
    # An empty column of Python objects has no type yet.
    empty = pa.types.is_null(kind) and not len(column)
    if not (any(getattr(pa.types, f"is_{test}")(kind) for test in tests) or empty):
        raise InvalidInputError(f"column {name!r} must be whole numbers, text or bytes, got {kind}")
    values: list[str] | list[bytes] = column.to_pylist()
    return values


def persons_in(column: pa.Array, name: str) -> tuple[Persons, dict[int, str]]:
    """Return the persons of rows, and which rows name none, and why.

    Persons are text, in Unicode's NFC so that one name written in two ways is one person, or whole numbers.

    Parameters
    ----------
    column : pyarrow.Array
        One person per row, in plain types.
    name : str
        The column's name, for messages.

    Examples
    --------
    >>> persons_in(pa.array(["ana", "ben", None, "ana"]), "who")
    (Persons(names=['ana', 'ben'], codes=array([ 0,  1, -1,  0])), {2: "person is missing in column 'who'"})
    """
    kind = column.type
    # An empty column of Python objects has no type yet.
    empty = pa.types.is_null(kind) and not len(column)
    if not (is_text(kind) or pa.types.is_integer(kind) or empty):
        # 7.0 after a null would be another person than 7.
        raise InvalidInputError(f"column {name!r} must name persons in text or whole numbers, got {kind}")
    coded = column.dictionary_encode()
    names: dict[str, int] = {}
    numbers, reasons = [], {}
    for code, value in enumerate(coded.dictionary.to_pylist()):
        try:
            numbers.append(names.setdefault(as_person(value), len(names)))
        except InvalidInputError as error:
            reasons[code] = str(error)
            numbers.append(-1)
    raw = np.asarray(coded.indices.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)
    codes = np.append(np.array(numbers, np.int64), -1)[raw]
    missing = f"person is missing in column {name!r}"
    flaws = {row: reasons.get(int(raw[row]), missing) for row in np.flatnonzero(codes < 0).tolist()}
    return Persons(list(names), codes), flaws
