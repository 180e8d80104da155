"""What a table of text is made of, where nobody says it: its delimiter, its header, its decimal comma."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from geoind.errors import InvalidInputError
from geoind.files.scan import Dialect, first_record
from geoind.tables.names import coordinate_columns

__all__ = ["Guess", "Layout"]

DELIMITERS = (b",", b";", b"\t", b"|")

NUMBER = re.compile(r"\s*[+-]?\d+([.,]\d+)?\s*")
COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")

BOM = b"\xef\xbb\xbf"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")

Place = tuple[str | None, str | None]


@dataclass(frozen=True)
class Layout:
    """What the columns are called, where the coordinates are, and how fields and numbers are written.

    Parameters
    ----------
    names : sequence of str
        One per column, each only once.
    places : sequence of (str, str)
        The columns of longitude and latitude.
    dialect : Dialect
        What separates fields.
    decimal_comma : bool
        Whether coordinates are written with a comma.
    drop : frozenset of str
        The columns that are not written.
    needed : sequence of str
        The columns that batches hold.
    named : sequence of str
        The columns in which an empty field is none.
    spreadsheet_safe : bool
        Whether fields that a spreadsheet would run are written with a ' before them.
    """

    names: Sequence[str]
    places: Sequence[tuple[str, str]]
    dialect: Dialect
    decimal_comma: bool = False
    drop: frozenset[str] = frozenset()
    needed: Sequence[str] = ()
    named: Sequence[str] = ()
    spreadsheet_safe: bool = False

    @property
    def spots(self) -> list[int]:
        """The numbers of the columns with coordinates."""
        return [self.names.index(name) for place in self.places for name in place]


@dataclass(frozen=True)
class Guess:
    """What is known before the file is read.

    Parameters
    ----------
    delimiter : str, optional
        Between fields; by default what the first line suggests.
    quoting : bool, optional
        Whether double quotes may hide delimiters and line breaks; by default unless fields are between tabs.
    header : bool
        Whether the first record names the columns; otherwise columns are numbers, from 1.
    places : sequence of (str or None, str or None)
        Longitude and latitude of each place; None for the usual names.
    drop : frozenset of str
        Columns that are not written.
    named : sequence of str
        The columns of the record's identity and of the person, where an empty field is none.
    every_column : bool
        Whether batches hold more than the places and the named columns.
    spreadsheet_safe : bool
        Whether fields that a spreadsheet would run are written with a ' before them.
    """

    delimiter: str | None = None
    quoting: bool | None = None
    header: bool = True
    places: Sequence[Place] = ((None, None),)
    drop: frozenset[str] = frozenset()
    named: Sequence[str] = ()
    every_column: bool = True
    spreadsheet_safe: bool = False

    def layout(self, text: bytes) -> tuple[Layout, int]:
        r"""Return the layout of a text, and where its first row begins.

        Examples
        --------
        >>> layout, start = Guess().layout(b"name;lat;lon\nEiffel;48,8584;2,2945\n")
        >>> layout.dialect.delimiter, layout.decimal_comma, start
        (b';', True, 13)
        """
        if text.startswith(UTF_16) or b"\0" in text[:4]:
            raise InvalidInputError("line 1: the text must be UTF-8, not UTF-16")
        begin = len(BOM) if text.startswith(BOM) else 0
        text = text[begin:]
        if not text.strip(b"\r\n"):
            raise InvalidInputError("line 1: the file is empty, where a header should name the columns")
        dialect, fields, end = self._read(text)
        names = self._names(fields)
        places = self._found(names, fields)
        wanted = {*self.named, *(name for place in places for name in place)}
        needed = [name for name in names if self.every_column or name in wanted]
        layout = Layout(
            names,
            places,
            dialect,
            drop=self.drop,
            needed=needed,
            named=self.named,
            spreadsheet_safe=self.spreadsheet_safe,
        )
        row = text[end:] if self.header else text
        return replace(layout, decimal_comma=_has_comma(row, layout)), begin + (end if self.header else 0)

    def _read(self, text: bytes) -> tuple[Dialect, list[str], int]:
        """Return the dialect that was given, or the only one in which the first record makes sense."""
        if self.delimiter is not None:
            dialect = self._dialect(self.delimiter.encode(errors="replace")).checked()
            return dialect, *first_record(text, dialect)
        readable, sensible = [], []
        for delimiter in DELIMITERS:
            dialect = self._dialect(delimiter)
            try:
                readable.append((dialect, *first_record(text, dialect)))
                self._found(self._names(readable[-1][1]), readable[-1][1])
            except InvalidInputError:
                continue
            sensible.append(readable[-1])
        if len(sensible) > 1 and not self.header:
            # 48,85;2,35 has three fields between commas, and two numbers between semicolons.
            sensible = [found for found in sensible if all(map(NUMBER.fullmatch, self._places_in(found[1])))]
        if sensible:
            return sensible[0]
        if readable:
            # What is wrong is said of the likeliest one.
            return max(readable, key=lambda found: len(found[1]))
        usual = self._dialect(DELIMITERS[0])
        return usual, *first_record(text, usual)

    def _dialect(self, delimiter: bytes) -> Dialect:
        return Dialect(delimiter, delimiter != b"\t" if self.quoting is None else self.quoting)

    def _names(self, fields: Sequence[str]) -> list[str]:
        """Return a name for each column, and no name twice."""
        if not self.header:
            return [str(number) for number in range(1, len(fields) + 1)]
        seen: Counter[str] = Counter()
        names = []
        for name in fields:
            seen[name] += 1
            names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
        return names

    def _found(self, names: Sequence[str], fields: Sequence[str]) -> list[tuple[str, str]]:
        for place in self.places:
            for name in place:
                if name is not None and self.header and list(fields).count(name) > 1:
                    raise InvalidInputError(f"several columns are called {name!r}")
        try:
            return [coordinate_columns(names, *place) for place in self.places]
        except InvalidInputError as error:
            numbers = sum(1 for field in fields if field.strip() and not any(map(str.isalpha, field)))
            if self.header and numbers > 1:
                raise InvalidInputError(
                    f"{error}; the first line looks like a record: is there no header?"
                ) from None
            if len(fields) == 1:
                raise InvalidInputError(f"{error}; the first line is one field: what is the delimiter?") from None
            if not self.header:
                raise InvalidInputError(f"{error}; columns are numbers, from 1 to {len(fields)}") from None
            raise

    def _places_in(self, fields: Sequence[str]) -> list[str]:
        names = self._names(fields)
        return [fields[names.index(name)] for place in self._found(names, fields) for name in place]


def _has_comma(text: bytes, layout: Layout) -> bool:
    """Return whether the coordinates of the first row are written with a decimal comma."""
    if not text.strip(b"\r\n"):
        return False
    try:
        fields, _ = first_record(text.lstrip(b"\r\n"), layout.dialect)
    except InvalidInputError:
        return False
    if len(fields) != len(layout.names):
        return False
    return all(COMMA.fullmatch(fields[spot]) for spot in layout.spots)
