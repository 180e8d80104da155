"""One recipe for tables of one schema: which columns are read, which leave, and what is wrong with a row.

A kept column that repeats true coordinates is found by the digits of coordinates in numbers and text, in a sample
of the rows. This is not the boundary of what leaves: that is the list of kept columns. A station's name or a
distance to a landmark shows the place, too, and passes here if its column is kept.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from geoind.arrays import FloatArray, IntArray
from geoind.budgets.persons import as_person
from geoind.errors import InvalidInputError
from geoind.keys import KeyedRandomness, as_key, key_of_place
from geoind.mechanisms.noise import DECIMALS
from geoind.mechanisms.protocol import accepted
from geoind.space.crs import LONLAT, from_lonlat, same_crs
from geoind.tables import columns as arrow
from geoind.tables.columns import NO_TIME, Flags, column_of, only_column, rows_of, sampled_rows, values_of
from geoind.tables.places import (
    EMPTY,
    LonLat,
    Points,
    crs_of,
    degrees_of,
    geometry_columns,
    places_in,
    published_schema,
)
from geoind.tables.recipe import EACH_FILE, EACH_ROW, Recipe

OUTSIDE = "the place lies outside the domain of the mechanism"
GEOMETRY = "holds geometries and cannot be kept next to a report"


@dataclass(frozen=True)
class Examined:
    """A batch without its bad rows, before anything is drawn or charged.

    Attributes
    ----------
    batch : pyarrow.RecordBatch
        The rows without a problem, with their true places.
    rows : (n,) array
        The number of each of them in the batch that was given.
    problems : mapping of int to str
        The other rows, in order, and why they cannot have reports. Never the place itself.
    truths : tuple of (n, 2) arrays
        Degrees, one array per place of a row, NaN where it has none.
    names, codes : list of str, and (n,) array
        The persons, and the number of each row's person; codes are None where each row is a person.
    times : (n,) array, optional
        Of traces: when, in seconds.
    keyed : KeyedRandomness, optional
        The randomness of the rows; None without a key.
    """

    batch: pa.RecordBatch = field(repr=False)
    rows: IntArray
    problems: Mapping[int, str]
    truths: tuple[FloatArray, ...] = field(repr=False)
    names: Sequence[str] = field(default=(), repr=False)
    codes: IntArray | None = field(default=None, repr=False)
    times: FloatArray | None = field(default=None, repr=False)
    keyed: KeyedRandomness | None = field(default=None, repr=False)

    def without(self, problems: Mapping[int, str]) -> "Examined":
        """Return this without further rows that have problems, by their numbers in the batch that was given."""
        if not problems:
            return self
        kept = self.only(~np.isin(self.rows, list(problems)))
        return replace(kept, problems=dict(sorted({**self.problems, **problems}.items())))

    def only(self, kept: Flags) -> "Examined":
        """Return some of the rows."""
        if kept.all():
            return self
        return replace(
            self,
            batch=rows_of(self.batch, np.flatnonzero(kept)),
            rows=self.rows[kept],
            truths=tuple(truth[kept] for truth in self.truths),
            codes=None if self.codes is None else self.codes[kept],
            times=None if self.times is None else self.times[kept],
            keyed=None if self.keyed is None else self.keyed.only(kept),
        )

    @cached_property
    def reports_per_row(self) -> IntArray:
        """How many reports each row makes: one for each place that it has."""
        return np.asarray(sum(~np.isnan(truth[:, 0]) for truth in self.truths), np.int64)

    @property
    def placed(self) -> "Examined":
        """The rows with a place."""
        return self.only(self.reports_per_row > 0)

    @property
    def source(self) -> KeyedRandomness:
        """The randomness of the rows."""
        if self.keyed is None:
            raise InvalidInputError("a key must be given or made before reports are drawn")
        return self.keyed

    @property
    def steps(self) -> tuple[Sequence[str], IntArray, FloatArray, FloatArray]:
        """The steps of traces: persons, whose each row is, times and places."""
        if self.codes is None or self.times is None:
            raise InvalidInputError("these rows are no steps of traces")
        return self.names, self.codes, self.times, self.truths[0]


def remedies(reason: str) -> list[str]:
    """Return the parameters with which a row that has such a problem is no error."""
    return ["`missing='keep'`"] if reason.endswith(EMPTY) else []


@dataclass(frozen=True)
class Table:
    """A recipe for tables of one schema.

    Parameters
    ----------
    recipe : Recipe
        What is done.
    schema : pyarrow.Schema
        The columns of the table.
    path : str
        The path of its file in a release of several. It names the records that have no `id_column`, and the person
        if each file is one.
    one_of_several : bool
        Whether a kept column may be missing here, because another file has it.
    position : str, optional
        The column with the number of each row in its file, from 0, where batches are not all of its rows.

    Examples
    --------
    >>> rows = {"fare": [7.5, 9.0], "lon": ["2.2945", "x"], "lat": ["48.8584", "48.86"]}
    >>> batch = pa.RecordBatch.from_pydict(rows)
    >>> table = Table(Recipe.of(epsilon=0.01, person=EACH_ROW), batch.schema)
    >>> table.examine(batch).problems
    {1: 'longitude must be a finite number'}
    >>> table.reported_schema.names
    ['lon', 'lat']
    """

    recipe: Recipe
    schema: pa.Schema
    path: str = ""
    one_of_several: bool = False
    position: str | None = None

    def __post_init__(self) -> None:
        recipe, names = self.recipe, self.schema.names
        needed = [*self._place_names, *recipe.named]
        for name in (*needed, *recipe.keep):
            if f"{name} (2)" in names:
                raise InvalidInputError(f"several columns are called {name!r}: rename them")
            if name in needed or name in names or not self.one_of_several:
                only_column(self.schema, name)
        for name in set(self._place_names) & {*recipe.named, *recipe.keep}:
            raise InvalidInputError(
                f"column {name!r} holds the true place: it cannot be kept, nor name persons, records or times"
            )
        for name in set(recipe.published) & set(names):
            if name in geometry_columns(self.schema):
                raise InvalidInputError(f"column {name!r} {GEOMETRY}")
            arrow.check_type(name, self.schema.field(name).type)
        if self.recipe.person is EACH_FILE:
            # Standard input is called "-".
            if self.path in ("", "-"):
                raise InvalidInputError(
                    "EACH_FILE is for files: `person=` must name a column here, or be EACH_ROW"
                )
            as_person(self.path)

    @cached_property
    def places(self) -> tuple[LonLat | Points, ...]:
        """Where the true places are."""
        return places_in(self.schema, self.recipe.places)

    @cached_property
    def left_out(self) -> list[str]:
        """The columns that do not leave."""
        gone = {*self._place_names, *self.recipe.published}
        return [name for name in self.schema.names if name not in gone]

    @property
    def needed(self) -> list[str]:
        """The columns that make the reports and leave with them."""
        wanted = {*self._place_names, *self.recipe.named, *self.recipe.published}
        return [name for name in self.schema.names if name in wanted]

    @cached_property
    def reported_schema(self) -> pa.Schema:
        """The schema of the batches of reports, without a record."""
        names = {*self._place_names, *self.recipe.published}
        return published_schema(self.schema, names, self.places)

    @property
    def decimals(self) -> int:
        """How many decimals of a degree a report has."""
        return int(getattr(self.recipe.mechanism, "decimals", DECIMALS))

    def clocks(self, batch: pa.RecordBatch) -> list[str]:
        """Return the columns of times in a batch that may explain the order of its rows."""
        if self.recipe.order != "raise" or self.recipe.time is not None:
            return []
        # The number of a record may lie in the range of times, and follow the places.
        others = {*self._place_names, self.recipe.id_column, self.recipe.person_column}
        return [name for name in arrow.clock_columns(batch) if name not in others]

    def read_from(self, batch: pa.RecordBatch) -> list[str]:
        """Return the columns to read of such batches: those needed, and times that may explain the row order."""
        clocks = [name for name in self.clocks(batch) if batch.schema.names.count(name) == 1]
        return list(dict.fromkeys([*self.needed, *clocks]))

    def exact_times(self, batch: pa.RecordBatch) -> list[str]:
        """Return the columns of times that leave as they are."""
        kept = [name for name in self.recipe.published if name in batch.schema.names]
        times = {*arrow.clock_columns(batch.select(kept)), self.recipe.time}
        return [name for name in kept if name in times and name not in self.recipe.steps]

    def examine(self, batch: pa.RecordBatch, first: int = 0) -> Examined:
        """Return the batch without its bad rows; nothing is drawn. Its first row has this number in its file."""
        truths, misplaced = degrees_of(self.places, batch, missing=self.recipe.missing == "keep")
        names, codes, times, unnamed = self._named_rows(batch)
        examined = Examined(batch, np.arange(len(batch)), {}, tuple(truths), names, codes, times)
        examined = examined.without(misplaced | unnamed)
        refused: dict[int, str] = {}
        for truth in examined.truths:
            there = np.flatnonzero(~np.isnan(truth[:, 0]))
            outside = there[~accepted(self.recipe.mechanism, truth[there])]
            refused |= dict.fromkeys(examined.rows[outside].tolist(), OUTSIDE)
        examined = examined.without(refused)
        return replace(examined, keyed=self._randomness(examined, first))

    def _randomness(self, examined: Examined, first: int) -> KeyedRandomness | None:
        """Return the randomness of examined rows, of a batch whose first row has this number in its file."""
        key, name = self.recipe.key, self.recipe.id_column
        if key is None:
            return None
        if name is not None:
            identities = values_of(examined.batch, name, names=True)
            return KeyedRandomness(key.read(), arrow.labels_of(identities, name))
        if self.position is not None:
            rows = column_of(examined.batch, self.position).to_numpy()
            return KeyedRandomness(key.for_file(self.path), rows)
        return KeyedRandomness(key.for_file(self.path), first + examined.rows)

    def reported(self, examined: Examined, reports: Sequence[FloatArray]) -> pa.RecordBatch:
        """Return the columns that leave, with reports in place of true locations, or without any places."""
        changed, schema, steps = dict[str, pa.Array](), self.reported_schema, self.recipe.steps
        for place, made in zip(self.places, reports, strict=False):
            changed |= place.written(examined.batch, made, self.decimals)
        if not reports:
            schema = pa.schema([field for field in schema if field.name not in self._place_names])
        for name in schema.names:
            if name not in changed:
                column = column_of(examined.batch, name)
                if name in steps:
                    column = arrow.floored(column, steps[name])
                # A file has the values of flat columns only, not their memory.
                flat = not reports and (pa.types.is_primitive(column.type) or arrow.is_text(column.type))
                changed[name] = column if flat else arrow.compacted(column)
        arrays = [changed[name] for name in schema.names]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def refuse_copies(self, examined: Examined) -> None:
        """Raise if a column that leaves repeats the true coordinates of its rows, in a sample of the rows."""
        names = [name for name in self.recipe.published if name in examined.batch.schema.names]
        chosen = sampled_rows(len(examined.rows))
        if not len(chosen) or not names:
            return
        places = []
        for place, truth in zip(self.places, examined.truths, strict=True):
            places.append((truth[chosen], 3))
            if isinstance(place, Points) and not same_crs(crs_of(place), LONLAT):
                places.append((from_lonlat(truth[chosen], crs_of(place)), 0))
        refuse_copies(rows_of(examined.batch.select(names), chosen), places)

    def refuse_outside_crs(self, reports: Sequence[FloatArray]) -> None:
        """Raise if some reports of points have no coordinates in the CRS of their column."""
        for place, made in zip(self.places, reports, strict=True):
            if isinstance(place, Points) and not same_crs(crs_of(place), LONLAT):
                place.wkb(made)

    @property
    def _place_names(self) -> list[str]:
        return [name for place in self.places for name in place.names]

    def _named_rows(
        self, batch: pa.RecordBatch
    ) -> tuple[list[str], IntArray | None, FloatArray | None, dict[int, str]]:
        """Return persons, the number of each row's person, and times, and which rows lack one, and why."""
        recipe, flaws = self.recipe, dict[int, str]()
        names, codes, times = list[str](), None, None
        if (name := recipe.id_column) is not None:
            missing_ids = np.flatnonzero(arrow.empty(values_of(batch, name))).tolist()
            flaws |= dict.fromkeys(missing_ids, f"identity is missing in column {name!r}")
        if (name := recipe.person_column) is not None:
            names, codes, nameless = arrow.persons_in(values_of(batch, name, names=True), name)
            flaws |= nameless
        elif recipe.person is not EACH_ROW:
            names, codes = [as_person(self.path)], np.zeros(len(batch), np.int64)
        if (name := recipe.time) is not None:
            times, missing, bad = arrow.seconds_of(values_of(batch, name))
            for row in np.flatnonzero(missing | bad).tolist():
                flaws.setdefault(row, f"time is missing in column {name!r}" if missing[row] else NO_TIME)
        for name in ({*recipe.steps} - {recipe.time}) & {*batch.schema.names}:
            _, _, bad = arrow.seconds_of(values_of(batch, name))
            flaws |= {row: NO_TIME for row in np.flatnonzero(bad).tolist() if row not in flaws}
        return names, codes, times, flaws


def key_of(source: KeyedRandomness, number: int) -> KeyedRandomness:
    """Return the randomness of the rows' place with this number: equal places of a row have their own reports."""
    return KeyedRandomness(key_of_place(as_key(source.key).read(), number), source.labels) if number else source


SHARE = 0.3
"""Share of the rows with a copy that makes a column one of coordinates. Chance gives less than 0.01."""
LEAST_DIGITS = 4
SMALLEST = 1.0
"""Thousandths of a degree, or metres: of smaller coordinates there are too few digits to look for."""
LEAST_WKB = 9
"""Bytes of the shortest geometry."""
HEX = re.compile(r"(?:\\x|0[xX])?((?:[0-9A-Fa-f]{2}){9,})$")


def refuse_copies(kept: pa.RecordBatch, places: Sequence[tuple[FloatArray, int]]) -> None:
    """Raise if a kept column repeats true coordinates of its rows.

    Parameters
    ----------
    kept : pyarrow.RecordBatch
        Some rows of the kept columns.
    places : sequence of ((n, 2) array, int)
        The true coordinates of these rows, and how many of their decimals are looked for: of degrees 3, of metres
        none.

    Examples
    --------
    >>> truth = np.array([[2.29448, 48.85837]])
    >>> refuse_copies(pa.RecordBatch.from_pydict({"note": ["seen at 48.858,2.294"]}), [(truth, 3)])
    Traceback (most recent call last):
    geoind.errors.InvalidInputError: column 'note' repeats true coordinates of its rows: it cannot be kept
    """
    digits = [_digits(values, decimals) for coordinates, decimals in places for values in coordinates.T]
    for name, column in zip(kept.schema.names, kept.columns, strict=True):
        if pa.types.is_temporal(column.type):
            continue
        values = [value for value in _listed(column) if value is not None]
        if values and sum(map(_holds_wkb, values)) >= SHARE * len(values):
            raise InvalidInputError(f"column {name!r} {GEOMETRY}")
        texts = _texts(column)
        if any(_repeats(texts, axis) for axis in digits):
            raise InvalidInputError(f"column {name!r} repeats true coordinates of its rows: it cannot be kept")


def _digits(values: FloatArray, decimals: int) -> list[tuple[str, ...]]:
    """Return the digits of each coordinate, cut off and rounded: so many decimals, or more where it is small."""
    found = []
    for value in (np.abs(values) * 10.0**decimals).tolist():
        while SMALLEST < value < 10 ** (LEAST_DIGITS - 1):
            value *= 10
        forms = {str(int(value)), str(round(value))} if value > SMALLEST else set()
        found.append(tuple(form for form in forms if len(form) >= LEAST_DIGITS))
    return found


def _texts(column: pa.Array) -> list[str]:
    """Return the values as text, without the signs between the digits of one number."""
    texts = ("" if value is None else str(value) for value in _listed(column))
    return [re.sub(r"(?<=\d)[.,](?=\d)", "", text) for text in texts]


def _listed(column: pa.Array) -> list[Any]:
    """Return the values of a column; those that Python does not know, such as the year 10000, cannot be kept."""
    try:
        return list(column.to_pylist())
    except (pa.ArrowException, OverflowError, ValueError):
        raise InvalidInputError(
            f"a kept column of type {column.type} has values that cannot be inspected"
        ) from None


def _repeats(texts: Sequence[str], digits: Sequence[tuple[str, ...]]) -> bool:
    asked = [(text, forms) for text, forms in zip(texts, digits, strict=True) if text and forms]
    copies = sum(any(_begins(form, text) for form in forms) for text, forms in asked)
    return bool(asked) and copies >= SHARE * len(asked) and copies >= min(len(asked), 2)


def _begins(form: str, text: str) -> bool:
    """Return whether digits begin a number in a text; zeros before them are of the same number."""
    return form in text and re.search(rf"(?<!\d)0*{form}", text) is not None


def _holds_wkb(value: object) -> bool:
    """Return whether a value, a member or an item begins like WKB or EWKB, as bytes or as hexadecimal digits."""
    if isinstance(value, dict):
        return any(map(_holds_wkb, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(_holds_wkb, value))
    if isinstance(value, str) and (digits := HEX.match(value)):
        value = bytes.fromhex(digits[1])
    if not isinstance(value, bytes) or len(value) < LEAST_WKB or value[0] > 1:
        return False
    code = int.from_bytes(value[1:5], "little" if value[0] else "big") & 0x0FFFFFFF
    return 1 <= code % 1000 <= 17 and code < 4000
