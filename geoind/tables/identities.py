"""Who a row is about: the record's own name, which noise is keyed by, and the person whose budget pays."""

from collections import Counter

import numpy as np
import pyarrow as pa

from geoind.arrays import IntArray
from geoind.budgets.persons import PersonReports, as_person
from geoind.errors import InvalidInputError
from geoind.randomness import Labels, Words
from geoind.tables.places import is_text

__all__ = ["count_persons", "labels_of", "person_reports", "persons_in", "plain"]


def plain(column: pa.Array) -> pa.Array:
    """Return a column without dictionary and extension type, and text in one type."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    return column.cast(pa.large_string()) if is_text(column.type) else column


def labels_of(column: pa.Array, name: str) -> Labels:
    """Return one label per record: an array of whole numbers, or a list of text or bytes."""
    column = plain(column)
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


def count_persons(column: pa.Array, reports: np.ndarray, name: str) -> Counter[str]:
    r"""Return how many reports each person is in.

    Persons are text, in Unicode's NFC so that one name written in two ways is one person, or whole numbers.

    Parameters
    ----------
    column : pyarrow.Array
        One person per row.
    reports : (n,) array of int
        How many reports each row makes.
    name : str
        The column's name, for messages.

    Examples
    --------
    >>> count_persons(pa.array(["Zoe\u0308", "Zoë", "Ana"]), np.array([1, 2, 0]), "person")
    Counter({'Zoë': 3})
    """
    return person_reports(column, reports, name, None).counts


def person_reports(column: pa.Array, reports: np.ndarray, name: str, tags: Words | None) -> PersonReports:
    """Return how many reports each person is in and, with (n, 2) tags of the rows, which."""
    used = np.flatnonzero(reports)
    names, codes, flaws = persons_in(plain(column).take(pa.array(used)), name)
    for reason in flaws.values():
        raise InvalidInputError(reason)
    return PersonReports.of(names, codes, reports[used], None if tags is None else tags[used])


def persons_in(column: pa.Array, name: str) -> tuple[list[str], IntArray, dict[int, str]]:
    """Return who there is, the number of each row's person, and which rows name nobody, and why.

    Parameters
    ----------
    column : pyarrow.Array
        One person per row.
    name : str
        The column's name, for messages.

    Examples
    --------
    >>> persons_in(pa.array(["ana", "ben", None, "ana"]), "who")
    (['ana', 'ben'], array([ 0,  1, -1,  0]), {2: "there is no person in column 'who'"})
    """
    column = plain(column)
    kind = column.type
    # An empty column of Python objects has no type yet.
    empty = pa.types.is_null(kind) and not len(column)
    if not (pa.types.is_large_string(kind) or pa.types.is_integer(kind) or empty):
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
    nobody = f"there is no person in column {name!r}"
    flaws = {row: reasons.get(int(raw[row]), nobody) for row in np.flatnonzero(codes < 0).tolist()}
    return list(names), codes, flaws
