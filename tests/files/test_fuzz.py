"""Ten thousand small files with quotes, delimiters, line breaks and bytes in random places.

Whatever comes out was parsed as rows by another strict reader too, and each of its rows holds a report.
"""

import csv
import io
import random
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pytest

from geoind.errors import InvalidInputError
from geoind.files import scan
from geoind.files.delimited import delimited_rows
from geoind.files.dialects import Guess
from geoind.tables import Recipe, Table

FILES = 10_000

TOKENS = ['"', '"', '"', '""', ",", "\n", "\r", "\r\n", "\t", ";", " ", "a", "é", "\\", "\0", "'", '"a\nb"', '",']
ENCODINGS = ["utf-8", "utf-8", "utf-8", "utf-8-sig", "latin-1", "utf-16"]
RECIPE = Recipe.of(epsilon=0.001, lon="lon", lat="lat", order="keep")


@lru_cache
def table_of(*names: str) -> Table:
    return RECIPE.table(pa.schema([(name, pa.string()) for name in names]))


def random_file(rng: random.Random) -> bytes:
    """Return a table of text with some tokens where they may not belong."""
    ending = rng.choice(["\n", "\r\n", "\n"])
    rows = [f"n{row},{rng.uniform(-89, 89):.6f},{rng.uniform(-179, 179):.6f}" for row in range(rng.randint(1, 5))]
    text = ending.join(rows) + rng.choice(["", ending])
    for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 5])):
        at = rng.randint(0, len(text))
        text = text[:at] + rng.choice(TOKENS) + text[at:]
    return ("note,lat,lon" + ending + text).encode(rng.choice(ENCODINGS))


def obfuscated(text: bytes, quoting: bool) -> bytes | None:
    """Return what becomes of a file, None if it is refused."""
    made = []
    try:
        for rows in delimited_rows(io.BytesIO(text), Guess(delimiter=",", quoting=quoting)):
            if rows.problems:
                return None
            table = table_of(*rows.schema.names)
            examined = table.examine(rows.batch, beside=rows.beside)
            if examined.problems:
                return None
            report = table.report(examined)
            made.append(rows.written(report.batch, report.rows))
    except InvalidInputError:
        return None
    return b"".join(made)


def read(text: bytes, quoting: bool) -> list[list[str]]:
    """Return the rows that another reader sees, which takes every line break for one."""
    if not quoting:
        lines = text.decode("latin-1").replace("\r\n", "\n").replace("\r", "\n").split("\n")
        return [line.split(",") for line in lines if line]
    source = io.StringIO(text.decode("latin-1"), newline="")
    return [row for row in csv.reader(source, strict=True) if row]


def complaints(files: int = FILES) -> Iterator[str]:
    """Yield what is wrong with what comes out, file by file."""
    rng = random.Random(7)
    for number in range(files):
        quoting = number % 4 != 0
        text = random_file(rng)
        made = obfuscated(text, quoting)
        if made is None:
            continue
        try:
            before, after = read(text, quoting), read(made, quoting)
        except csv.Error:
            yield f"{text!r} is no proper table, and became {made!r}"
            continue
        if len(before) != len(after) or before[0] != after[0]:
            yield f"{text!r} became {made!r}"
            continue
        for truth, report in zip(before[1:], after[1:], strict=True):
            moved = len(report) == 3 and truth[0] == report[0] and truth[1] != report[1] and truth[2] != report[2]
            numbers = moved and all(np.isfinite(float(value)) for value in report[1:])
            if not numbers:
                yield f"the row {truth!r} became {report!r}"


def test_every_row_that_comes_out_was_a_row_and_holds_a_report() -> None:
    assert list(complaints()) == []


def test_most_clean_files_and_some_unusual_ones_come_out() -> None:
    rng = random.Random(7)
    passed = sum(obfuscated(random_file(rng), quoting=True) is not None for _ in range(1000))
    assert 100 < passed < 900


def blind_to_quotes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "_misplaced", lambda *_: None)


def blind_to_carriage_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    part = scan._part

    def without_strays(*arguments: object) -> object:
        return part(*arguments)._replace(stray=np.empty(0, np.int64))  # type: ignore[arg-type]

    monkeypatch.setattr(scan, "_part", without_strays)


@pytest.mark.parametrize("blind", [blind_to_quotes, blind_to_carriage_returns])
def test_the_check_sees_a_reader_that_is_less_strict(blind: object, monkeypatch: pytest.MonkeyPatch) -> None:
    blind(monkeypatch)  # type: ignore[operator]
    assert next(complaints(2000), None) is not None
