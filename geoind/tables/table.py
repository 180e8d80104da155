"""One recipe for tables of one schema: which columns are read, which leave, and what is wrong with a row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from geoind.arrays import FloatArray, IntArray
from geoind.atomic import STANDARD
from geoind.budgets.persons import as_person
from geoind.errors import InvalidInputError
from geoind.keys import as_key, key_of_place
from geoind.mechanisms.protocol import accepted
from geoind.randomness import KeyedRandomness
from geoind.space.crs import LONLAT, from_lonlat, same_crs
from geoind.space.lattice import DECIMALS
from geoind.tables.checks import clock_columns, refuse_copies, refuse_geometries, sampled_rows
from geoind.tables.columns import (
    NO_TIME,
    check_type,
    column_of,
    compacted,
    empty,
    floored,
    is_text,
    labels_of,
    only_column,
    persons_in,
    rows_of,
    seconds_of,
    values_of,
)
from geoind.tables.places import EMPTY, LonLat, Points, crs_of, degrees_of, places_in, published_schema
from geoind.tables.recipe import EACH_FILE, EACH_ROW, Recipe

OUTSIDE = "the place lies outside the domain of the mechanism"


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
    """

    batch: pa.RecordBatch = field(repr=False)
    rows: IntArray
    problems: Mapping[int, str]
    truths: tuple[FloatArray, ...] = field(repr=False)
    names: Sequence[str] = field(default=(), repr=False)
    codes: IntArray | None = field(default=None, repr=False)
    times: FloatArray | None = field(default=None, repr=False)

    def without(self, problems: Mapping[int, str]) -> "Examined":
        """Return this without some more rows, by their numbers in this batch, which have problems."""
        if not problems:
            return self
        bad = {int(self.rows[row]): reason for row, reason in problems.items()}
        kept = self.only(np.delete(np.arange(len(self.rows)), list(problems)))
        return replace(kept, problems=dict(sorted({**self.problems, **bad}.items())))

    def only(self, rows: IntArray) -> "Examined":
        """Return some of the rows."""
        if len(rows) == len(self.rows):
            return self
        return replace(
            self,
            batch=rows_of(self.batch, rows),
            rows=self.rows[rows],
            truths=tuple(truth[rows] for truth in self.truths),
            codes=None if self.codes is None else self.codes[rows],
            times=None if self.times is None else self.times[rows],
        )

    @cached_property
    def reports_per_row(self) -> IntArray:
        """How many reports each row makes: one for each place that it has."""
        total = np.zeros(len(self.rows), np.int64)
        for truth in self.truths:
            total += ~np.isnan(truth[:, 0])
        return total

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
        names = self.schema.names
        needed = [*self._place_names, *self.recipe.named]
        for name in (*needed, *self.recipe.keep):
            if f"{name} (2)" in names:
                raise InvalidInputError(f"several columns are called {name!r}: rename them")
            if name in needed or name in names or not self.one_of_several:
                only_column(self.schema, name)
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
        return [name for name in clock_columns(batch) if name not in others]

    def exact_times(self, batch: pa.RecordBatch) -> list[str]:
        """Return the columns of times that leave as they are."""
        kept = [name for name in self.recipe.published if name in batch.schema.names]
        times = {*clock_columns(batch.select(kept)), self.recipe.time}
        return [name for name in kept if name in times and name not in self.recipe.steps]

    def examine(self, batch: pa.RecordBatch) -> Examined:
        """Return the batch without its bad rows; nothing is drawn."""
        truths, misplaced = degrees_of(self.places, batch, missing=self.recipe.missing == "keep")
        names, codes, times, unnamed = self._named_rows(batch)
        examined = Examined(batch, np.arange(len(batch)), {}, tuple(truths), names, codes, times)
        examined = examined.without(misplaced | unnamed)
        refused: dict[int, str] = {}
        for truth in examined.truths:
            there = np.flatnonzero(~np.isnan(truth[:, 0]))
            outside = there[~accepted(self.recipe.mechanism, truth[there])]
            refused |= dict.fromkeys(outside.tolist(), OUTSIDE)
        return examined.without(refused)

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
                    column = floored(column, steps[name])
                # A file has the values of flat columns only, not their memory.
                flat = not reports and (pa.types.is_primitive(column.type) or is_text(column.type))
                changed[name] = column if flat else compacted(column)
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
            missing_ids = np.flatnonzero(empty(values_of(batch, name))).tolist()
            flaws |= dict.fromkeys(missing_ids, f"identity is missing in column {name!r}")
        if (name := recipe.person_column) is not None:
            names, codes, nameless = persons_in(values_of(batch, name, names=True), name)
            flaws |= nameless
        elif recipe.person is not EACH_ROW:
            names, codes = [as_person(self.path)], np.zeros(len(batch), np.int64)
        if (name := recipe.time) is not None:
            times, missing, bad = seconds_of(values_of(batch, name))
            for row in np.flatnonzero(missing | bad).tolist():
                flaws.setdefault(row, f"time is missing in column {name!r}" if missing[row] else NO_TIME)
        for name in ({*recipe.steps} - {recipe.time}) & {*batch.schema.names}:
            _, _, bad = seconds_of(values_of(batch, name))
            flaws |= {row: NO_TIME for row in np.flatnonzero(bad).tolist() if row not in flaws}
        return names, codes, times, flaws


def key_of(source: KeyedRandomness, number: int) -> KeyedRandomness:
    """Return the randomness of the rows' place with this number: equal places of a row have their own reports."""
    return KeyedRandomness(key_of_place(as_key(source.key).read(), number), source.labels) if number else source
