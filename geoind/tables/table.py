"""One recipe for tables of one schema: which columns are read, which leave, and what is wrong with a row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from geoind.arrays import FloatArray, IntArray
from geoind.errors import InvalidInputError
from geoind.mechanisms.protocol import check_truths
from geoind.randomness import KeyedRandomness
from geoind.space.crs import LONLAT, as_crs, from_lonlat, same_crs, to_lonlat
from geoind.space.lattice import DECIMALS
from geoind.tables.copies import refuse_copies, refuse_geometries, sampled_rows
from geoind.tables.geoparquet import declared_crs, geometry_columns, published_schema
from geoind.tables.identities import Persons, labels_of, persons_in, values_of
from geoind.tables.keys import key_of_place
from geoind.tables.names import coordinate_columns, listed
from geoind.tables.order import clock_columns
from geoind.tables.places import Flags, GeometryColumn, LonLatColumns, column_of, finite, nulls, rows_of
from geoind.tables.recipe import EACH_FILE, EACH_ROW, Recipe
from geoind.tables.times import NO_TIME, seconds_of
from geoind.tables.where import LonLat, Points
from geoind.traces.many import Positions

__all__ = ["Examined", "Problem", "Table"]


class Problem(NamedTuple):
    """A row that cannot have a report: its number in the batch, and why. Never the place itself."""

    row: int
    reason: str


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
        return np.asarray(np.sum([~np.isnan(truth[:, 0]) for truth in self.truths], axis=0), np.int64)

    @property
    def steps(self) -> Positions:
        """The steps of traces."""
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

    def __post_init__(self) -> None:
        names = self.schema.names
        needed = [*self._place_names, *self.recipe.named]
        for name in (*needed, *self.recipe.keep):
            missing = 0 if self.one_of_several and name not in needed else 1
            if not missing <= names.count(name) <= 1:
                raise InvalidInputError(f"column {name!r} must exist once, the columns are {listed(names)}")
        for name in set(self._place_names) & {*self.recipe.named, *self.recipe.keep}:
            raise InvalidInputError(f"column {name!r} holds the true place: it cannot be kept, nor name anything")
        refuse_geometries(self.schema, self.recipe.published)
        if self.recipe.person is EACH_FILE and not self.path:
            raise InvalidInputError("EACH_FILE is for files: `person=` must name a column here, or be EACH_ROW")

    @cached_property
    def places(self) -> tuple[LonLat | Points, ...]:
        """Where the true places are."""
        given = self.recipe.places
        declared = geometry_columns(self.schema)
        if not given and not declared:
            return (LonLat(*coordinate_columns(self.schema.names)),)
        if not given or given[0] == Points(None, getattr(given[0], "crs", None)):
            if not declared:
                raise InvalidInputError("`crs=` is the CRS of a geometry, and no column is declared to be one")
            given = (Points(declared[0], given[0].crs if given and isinstance(given[0], Points) else None),)
        return tuple(
            Points(place.geometry, self._crs_of(place)) if isinstance(place, Points) else place for place in given
        )

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
        return published_schema(self.schema, names, self._place_names)

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
        columns = [self._columns(batch, place) for place in self.places]
        truths = [self._truth(place, column) for place, column in zip(self.places, columns, strict=True)]
        persons, times, unnamed = self._named_rows(batch)
        problems = self._problems(batch, columns, truths, unnamed)
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
            return KeyedRandomness(self.recipe.key.read(), labels_of(values_of(examined.batch, name), name))
        rows = first + examined.rows
        if self.position is not None:
            rows = column_of(examined.batch, self.position).to_numpy()
        return KeyedRandomness(self.recipe.key.for_file(self.path), rows)

    def reported(self, examined: Examined, reports: Sequence[FloatArray]) -> pa.RecordBatch:
        """Return the columns that leave, with reports in place of true locations."""
        changed: dict[str, pa.Array] = {}
        for place, made in zip(self.places, reports, strict=True):
            coordinates = from_lonlat(made, _crs(place))
            if np.isinf(coordinates).any():
                raise InvalidInputError("the CRS has no coordinates for some reports: use one that covers them")
            changed |= self._columns(examined.batch, place).written(coordinates, self.decimals)
        schema = self.reported_schema
        arrays = [changed[name] if name in changed else _used(examined.batch, name) for name in schema.names]
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
            if not same_crs(_crs(place), LONLAT):
                places.append((from_lonlat(truth[chosen], _crs(place)), 0))
        refuse_copies(rows_of(examined.batch.select(names), chosen), places)

    @cached_property
    def _place_names(self) -> list[str]:
        return [name for place in self.places for name in place.names]

    def _crs_of(self, place: Points) -> str:
        if place.geometry is None or place.geometry not in self.schema.names:
            raise InvalidInputError(
                f"column {place.geometry!r} must exist once, the columns are {listed(self.schema.names)}"
            )
        declared = declared_crs(self.schema, place.geometry)
        crs = as_crs(declared or place.crs, f"column {place.geometry!r}")
        if place.crs is not None and not same_crs(crs, as_crs(place.crs, "crs")):
            raise InvalidInputError(f"column {place.geometry!r} declares another CRS than `crs=`")
        return crs

    def _columns(self, batch: pa.RecordBatch, place: LonLat | Points) -> LonLatColumns | GeometryColumn:
        if isinstance(place, LonLat):
            return LonLatColumns(batch, place.lon, place.lat)
        return GeometryColumn(batch, place.geometry or "")

    def _truth(self, place: LonLat | Points, column: LonLatColumns | GeometryColumn) -> FloatArray:
        if isinstance(column, LonLatColumns):
            return column.coordinates
        crs = _crs(place)
        if any(not same_crs(crs, f"EPSG:{srid}") for srid in column.srids):
            raise InvalidInputError(f"column {column.name!r} has another CRS than its own geometries")
        return to_lonlat(column.coordinates, crs)

    def _named_rows(self, batch: pa.RecordBatch) -> tuple[Persons | None, FloatArray | None, dict[int, str]]:
        """Return persons and times of a batch, and which rows lack one, and why."""
        recipe, flaws = self.recipe, dict[int, str]()
        persons, times = None, None
        if recipe.person_column is not None:
            persons, flaws = persons_in(values_of(batch, recipe.person_column), recipe.person_column)
        elif recipe.person is not EACH_ROW:
            persons = Persons([self.path], np.zeros(len(batch), np.int64))
        if recipe.time is not None:
            times, missing, bad = seconds_of(values_of(batch, recipe.time))
            for row in np.flatnonzero(missing | bad).tolist():
                flaws.setdefault(row, f"time is missing in column {recipe.time!r}" if missing[row] else NO_TIME)
        return persons, times, flaws

    def _problems(
        self,
        batch: pa.RecordBatch,
        columns: Sequence[LonLatColumns | GeometryColumn],
        truths: Sequence[FloatArray],
        unnamed: Mapping[int, str],
    ) -> dict[int, str]:
        found: list[tuple[Flags, str]] = []
        for place, column, truth in zip(self.places, columns, truths, strict=True):
            which = f"{' and '.join(place.names)}: " if len(columns) > 1 else ""
            flaws = list(column.problems())
            if self.recipe.missing == "raise":
                flaws.append((column.missing, "location is missing (`missing='keep'` keeps such rows)"))
            if isinstance(place, Points):
                lost = finite(column.coordinates) & ~_on_earth(truth)
                flaws.append((lost, "point must lie on Earth in its CRS"))
            found += [(rows, which + reason) for rows, reason in flaws]
        if (name := self.recipe.id_column) is not None:
            found.append((nulls(column_of(batch, name)), f"identity is missing in column {name!r}"))
        reasons = dict(unnamed)
        for flags, reason in found:
            for row in np.flatnonzero(flags).tolist():
                reasons.setdefault(row, reason)
        return dict(sorted(reasons.items()))


def key_of(source: KeyedRandomness, number: int) -> KeyedRandomness:
    """Return the randomness of the rows' place with this number: equal places of a row have independent reports."""
    return KeyedRandomness(key_of_place(source.key, number), source.labels) if number else source


def _used(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Return a column; of a dictionary only the entries that rows use, in their order."""
    column = batch.column(batch.schema.get_field_index(name))
    if not pa.types.is_dictionary(column.type):
        return column
    used = np.zeros(len(column.dictionary), bool)
    used[column.indices.drop_null().to_numpy()] = True
    entries = column.dictionary.filter(pa.array(used))
    indices = pa.array(np.cumsum(used) - 1).take(column.indices).cast(column.type.index_type)
    return pa.DictionaryArray.from_arrays(indices, entries, ordered=column.type.ordered)


def _crs(place: LonLat | Points) -> str:
    return place.crs or LONLAT if isinstance(place, Points) else LONLAT


def _on_earth(lonlat: FloatArray) -> Flags:
    return np.asarray((np.abs(lonlat[:, 0]) <= 180) & (np.abs(lonlat[:, 1]) <= 90))
