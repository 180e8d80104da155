"""One recipe for tables of one schema: which columns are read, which leave, and what is wrong with a row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from geoind.arrays import FloatArray, IntArray
from geoind.atomic import STANDARD
from geoind.budgets.persons import as_person
from geoind.errors import InvalidInputError
from geoind.keys import as_key, key_of_place
from geoind.mechanisms.protocol import check_truths
from geoind.randomness import KeyedRandomness
from geoind.space.crs import LONLAT, from_lonlat, same_crs
from geoind.space.lattice import DECIMALS
from geoind.tables.checks import clock_columns, refuse_copies, refuse_geometries, sampled_rows
from geoind.tables.columns import (
    NO_TIME,
    Persons,
    check_type,
    column_of,
    compacted,
    empty,
    is_text,
    labels_of,
    persons_in,
    rows_of,
    seconds_of,
    values_of,
)
from geoind.tables.places import EMPTY, Locations, crs_of, published_schema
from geoind.tables.recipe import EACH_FILE, EACH_ROW, LonLat, Points, Recipe, listed

if TYPE_CHECKING:
    from geoind.traces.many import Positions

__all__ = ["Examined", "Problem", "Table"]


class Problem(NamedTuple):
    """A row that cannot have a report: its number in the batch, and why. Never the place itself."""

    row: int
    reason: str

    @property
    def remedies(self) -> list[str]:
        """The parameters with which such a row is no error."""
        return ["`missing='keep'`"] if self.reason.endswith(EMPTY) else []


@dataclass(frozen=True)
class Examined:
    """A batch without its bad rows, before anything is drawn or charged.

    Attributes
    ----------
    batch : pyarrow.RecordBatch
        The rows without a problem, with their true places.
    rows : (n,) array
        The number of each of them in the batch that was given.
    problems : tuple of Problem
        The other rows.
    truths : tuple of (n, 2) arrays
        Degrees, one array per place of a row, NaN where it has none.
    persons : Persons, optional
        Who each row is about; None where each row is a person.
    times : (n,) array, optional
        Of traces: when, in seconds.
    """

    batch: pa.RecordBatch = field(repr=False)
    rows: IntArray
    problems: tuple[Problem, ...]
    truths: tuple[FloatArray, ...] = field(repr=False)
    persons: Persons | None = field(repr=False)
    times: FloatArray | None = field(repr=False)

    def without(self, problems: Mapping[int, str]) -> "Examined":
        """Return this without some more rows, by their numbers in this batch, which have problems."""
        if not problems:
            return self
        bad = [Problem(int(self.rows[row]), reason) for row, reason in problems.items()]
        kept = self.only(np.delete(np.arange(len(self.rows)), list(problems)))
        return Examined(
            kept.batch, kept.rows, tuple(sorted([*self.problems, *bad])), kept.truths, kept.persons, kept.times
        )

    def only(self, rows: IntArray) -> "Examined":
        """Return some of the rows."""
        if len(rows) == len(self.rows):
            return self
        return Examined(
            rows_of(self.batch, rows),
            self.rows[rows],
            self.problems,
            tuple(truth[rows] for truth in self.truths),
            None if self.persons is None else self.persons.only(rows),
            None if self.times is None else self.times[rows],
        )

    @property
    def reports_per_row(self) -> IntArray:
        """How many reports each row makes: one for each place that it has."""
        total = np.zeros(len(self.rows), np.int64)
        for truth in self.truths:
            total += ~np.isnan(truth[:, 0])
        return total

    @property
    def steps(self) -> "Positions":
        """The steps of traces."""
        from geoind.traces.many import Positions

        if self.persons is None or self.times is None:
            raise InvalidInputError("these rows are no steps of traces")
        return Positions(self.persons.names, self.persons.codes, self.times, self.truths[0])


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
    numbers : bool
        Whether coordinates that are text become numbers, because a writer formats them.

    Examples
    --------
    >>> rows = {"fare": [7.5, 9.0], "lon": ["2.2945", "x"], "lat": ["48.8584", "48.86"]}
    >>> batch = pa.RecordBatch.from_pydict(rows)
    >>> table = Table(Recipe.of(epsilon=0.01, person=EACH_ROW), batch.schema)
    >>> table.examine(batch).problems
    (Problem(row=1, reason='longitude must be a finite number'),)
    >>> table.reported_schema.names
    ['lon', 'lat']
    """

    recipe: Recipe
    schema: pa.Schema
    path: str = ""
    one_of_several: bool = False
    position: str | None = None
    numbers: bool = False

    def __post_init__(self) -> None:
        names = self.schema.names
        needed = [*self._place_names, *self.recipe.named]
        for name in (*needed, *self.recipe.keep):
            if f"{name} (2)" in names:
                raise InvalidInputError(f"several columns are called {name!r}: rename them")
            missing = 0 if self.one_of_several and name not in needed else 1
            if not missing <= names.count(name) <= 1:
                raise InvalidInputError(f"column {name!r} must exist once, the columns are {listed(names)}")
        for name in set(self._place_names) & {*self.recipe.named, *self.recipe.keep}:
            raise InvalidInputError(
                f"column {name!r} holds the true place: it cannot be kept, nor name persons, records or times"
            )
        refuse_geometries(self.schema, self.recipe.published)
        for name in set(self.recipe.published) & set(names):
            check_type(name, self.schema.field(name).type)
        if self.recipe.person is EACH_FILE:
            if self.path in ("", STANDARD):
                raise InvalidInputError(
                    "EACH_FILE is for files: `person=` must name a column here, or be EACH_ROW"
                )
            as_person(self.path)

    @cached_property
    def locations(self) -> Locations:
        """The columns of the true places."""
        return Locations.of(self.schema, self.recipe.places)

    @property
    def places(self) -> tuple[LonLat | Points, ...]:
        """Where the true places are."""
        return self.locations.places

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
        schema = published_schema(self.schema, names, self._place_names)
        for number, column in enumerate(schema if self.numbers else ()):
            if column.name in self._place_names and is_text(column.type):
                schema = schema.set(number, pa.field(column.name, pa.float64()))
        return schema

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
        return [name for name in clock_columns(batch) if name not in others]

    def examine(self, batch: pa.RecordBatch) -> Examined:
        """Return the batch without its bad rows; nothing is drawn."""
        truths, misplaced = self.locations.read(batch, missing=self.recipe.missing == "keep")
        persons, times, unnamed = self._named_rows(batch)
        problems = dict(sorted((misplaced | unnamed).items()))
        examined = Examined(batch, np.arange(len(batch)), (), tuple(truths), persons, times).without(problems)
        for truth in examined.truths:
            check_truths(self.recipe.mechanism, truth[~np.isnan(truth[:, 0])])
        return examined

    def randomness(self, examined: Examined, first: int) -> KeyedRandomness:
        """Return the randomness of the examined rows.

        Parameters
        ----------
        examined : Examined
            What `examine` returned.
        first : int
            The number in its file of the first row that was given to `examine`, from 0.
        """
        if self.recipe.key is None:
            raise InvalidInputError("a key must be given or made before reports are drawn")
        name = self.recipe.id_column
        if name is not None:
            return KeyedRandomness(
                self.recipe.key.read(), labels_of(values_of(examined.batch, name, names=True), name)
            )
        rows = first + examined.rows
        if self.position is not None:
            rows = column_of(examined.batch, self.position).to_numpy()
        return KeyedRandomness(self.recipe.key.for_file(self.path), rows)

    def reported(self, examined: Examined, reports: Sequence[FloatArray]) -> pa.RecordBatch:
        """Return the columns that leave, with reports in place of true locations."""
        changed = self.locations.written(examined.batch, reports, None if self.numbers else self.decimals)
        schema = self.reported_schema
        arrays = [
            changed[name] if name in changed else compacted(column_of(examined.batch, name))
            for name in schema.names
        ]
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
            if not same_crs(crs_of(place), LONLAT):
                places.append((from_lonlat(truth[chosen], crs_of(place)), 0))
        refuse_copies(rows_of(examined.batch.select(names), chosen), places)

    @property
    def _place_names(self) -> list[str]:
        return self.locations.names

    def _named_rows(self, batch: pa.RecordBatch) -> tuple[Persons | None, FloatArray | None, dict[int, str]]:
        """Return persons and times of a batch, and which rows lack one, and why."""
        recipe, flaws = self.recipe, dict[int, str]()
        persons, times = None, None
        if (name := recipe.id_column) is not None:
            missing_ids = np.flatnonzero(empty(values_of(batch, name))).tolist()
            flaws |= dict.fromkeys(missing_ids, f"identity is missing in column {name!r}")
        if recipe.person_column is not None:
            persons, nameless = persons_in(
                values_of(batch, recipe.person_column, names=True), recipe.person_column
            )
            flaws |= nameless
        elif recipe.person is not EACH_ROW:
            persons = Persons([as_person(self.path)], np.zeros(len(batch), np.int64))
        if recipe.time is not None:
            times, missing, bad = seconds_of(values_of(batch, recipe.time))
            for row in np.flatnonzero(missing | bad).tolist():
                flaws.setdefault(row, f"time is missing in column {recipe.time!r}" if missing[row] else NO_TIME)
        return persons, times, flaws


def key_of(source: KeyedRandomness, number: int) -> KeyedRandomness:
    """Return the randomness of the rows' place with this number: equal places of a row have their own reports."""
    return KeyedRandomness(key_of_place(as_key(source.key).read(), number), source.labels) if number else source
