"""One recipe for tables of one schema: record batch in, record batch out."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa

from geoind.arrays import FloatArray, IntArray
from geoind.budgets.persons import PersonReports
from geoind.errors import InvalidInputError
from geoind.mechanisms.protocol import check_truths
from geoind.randomness import KeyedRandomness, RandomnessLike
from geoind.space.crs import LONLAT, as_crs, from_lonlat, same_crs, to_lonlat
from geoind.tables.dictionaries import used_only
from geoind.tables.drawing import drawn, permutation, randomness_of, tags_of
from geoind.tables.geoparquet import (
    box_columns,
    covering_of,
    declared_crs,
    geometry_columns,
    published_field,
    published_metadata,
)
from geoind.tables.identities import count_persons, person_reports, persons_in
from geoind.tables.names import coordinate_columns, listed
from geoind.tables.notes import numbers_of_notes, refuse_folders, refuse_notes
from geoind.tables.order import refuse_sorted
from geoind.tables.places import Flags, GeometryColumn, LonLatColumns, column_of, finite, nulls, rows_of
from geoind.tables.policy import refuse, telling_entries, telling_schema, telling_values
from geoind.tables.promise import PARQUET_KEY, TablePromise, refuse_more_reports
from geoind.tables.rows import Beside, Examined, Obfuscated, Problem
from geoind.tables.tracing import answered, in_order, steps_of
from geoind.tables.values import Sample, sampled_rows
from geoind.tables.where import LonLat, Points
from geoind.traces.many import Positions, TraceSessions
from geoind.traces.table import tags_of_answers

if TYPE_CHECKING:
    from geoind.tables.recipe import Recipe

__all__ = ["Table"]


@dataclass(frozen=True)
class Table:
    """A recipe for tables of one schema. `Recipe.table` makes it; columns that tell the place are refused then.

    Parameters
    ----------
    recipe : Recipe
        What is done.
    schema : pyarrow.Schema
        The columns of the table.
    open_ended : bool
        Whether it is one file of several: what is dropped or kept may be a column of another one.
    path : str
        Where its file is in a folder, if that is where its reports will be in theirs.

    Examples
    --------
    >>> from geoind.tables import Recipe
    >>> rows = {"fare": [7.5, 9.0], "lon": ["2.2945", "x"], "lat": ["48.8584", "48.86"]}
    >>> batch = pa.RecordBatch.from_pydict(rows)
    >>> table = Recipe.of(epsilon=0.01).table(batch.schema)
    >>> examined = table.examine(batch)
    >>> examined.problems
    (Problem(row=1, reason='the longitude must be a finite number'),)
    >>> table.report(examined).batch.schema == batch.schema
    True
    """

    recipe: "Recipe"
    schema: pa.Schema
    open_ended: bool = False
    path: str = ""

    def __post_init__(self) -> None:
        names = self.schema.names
        named = self.recipe.named
        # Of two columns of one name only one would be looked at.
        for name in (*self._place_names, *named, *self.passing):
            if names.count(name) != 1:
                raise InvalidInputError(f"column {name!r} must be there once, the columns are {listed(names)}")
        entries = {entry.decode(errors="replace") for entry in self.schema.metadata or {}}
        entries |= {part.partition("=")[0] for part in self.path.split("/") if "=" in part}
        for name in () if self.open_ended else (*self.recipe.drop, *self.recipe.keep):
            if name not in names and name not in entries:
                raise InvalidInputError(
                    f"there is no column {name!r} to drop or keep, the columns are {listed(names)}"
                )
        lost = set(self.recipe.drop) & {*self._place_names, *named}
        if lost:
            raise InvalidInputError(f"column {min(map(str, lost))!r} is needed: it cannot be dropped")
        for name in named:
            # Messages quote persons, ledgers store them, and times are public.
            if name not in self.passing:
                raise InvalidInputError(
                    f"column {name!r} holds the place: it cannot say which record, who or when, too"
                )
        refuse_folders(self.path, self.recipe.keep)
        refuse(
            telling_schema(self.schema, self.checked, moving=self.recipe.trace is not None)
            | telling_entries(self.schema, self.recipe.drop, self.recipe.keep)
        )

    @cached_property
    def places(self) -> tuple[LonLat | Points, ...]:
        """Where the true places are."""
        told = self.recipe.places
        declared = [name for name in geometry_columns(self.schema) if name not in self.recipe.drop]
        if not told and not declared:
            names = [name for name in self.schema.names if name not in self.recipe.drop]
            return (LonLat(*coordinate_columns(names, None, None)),)
        if not told or told[0] == Points(None, getattr(told[0], "crs", None)):
            if not declared:
                raise InvalidInputError("crs belongs to a geometry, and no column is declared to be one")
            told = (Points(declared[0], told[0].crs if told and isinstance(told[0], Points) else None),)
        return tuple(
            Points(place.geometry, self._crs_of(place)) if isinstance(place, Points) else place for place in told
        )

    @cached_property
    def passing(self) -> list[str]:
        """The columns that stay as they are."""
        boxes = {covering_of(self.schema, name) for name in self._place_names if name in self.schema.names}
        gone = {*self._place_names, *self.recipe.drop, *boxes}
        return [name for name in self.schema.names if name not in gone]

    @cached_property
    def checked(self) -> list[str]:
        """The columns that stay as they are unless they tell the place."""
        return [name for name in self.passing if name not in self.recipe.keep]

    @cached_property
    def promise(self) -> TablePromise:
        """What the reports promise."""
        promise = TablePromise.of(
            self.recipe.mechanism,
            level=self.recipe.level,
            radius=self.recipe.radius,
            delta=self.recipe.delta,
            reports=self.recipe.reports,
            trace=self.recipe.trace,
        )
        return replace(promise, places=tuple(place.names for place in self.places), kept=tuple(self.recipe.keep))

    @cached_property
    def reported_schema(self) -> pa.Schema:
        """The schema of the batches of reports: without dropped columns and true boxes, with the promise."""
        return self._published(self.schema)

    def examine(
        self, batch: pa.RecordBatch, *, beside: Beside | None = None, sessions: TraceSessions | None = None
    ) -> Examined:
        """Return the batch without its bad rows; refuse it where a column repeats true coordinates.

        Nothing is drawn.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
            At least the columns of the places, the identity and the person.
        beside : callable, optional
            From row numbers to those rows of all columns that pass, where the batch does not hold them: a few
            hundred rows are looked at. By default the batch's own columns.
        sessions : TraceSessions, optional
            Of a table of traces that comes in batches: what answered the batches before.
        """
        columns = [self._columns(batch, place) for place in self.places]
        truths = [self._truth(place, column) for place, column in zip(self.places, columns, strict=True)]
        steps, unnamed = self._named_rows(batch, truths[0])
        problems = self._problems(batch, columns, truths, unnamed)
        rows = np.arange(len(batch))
        if problems:
            rows = np.delete(rows, [problem.row for problem in problems])
            batch = rows_of(batch, rows)
            truths = [truth[rows] for truth in truths]
            steps = None if steps is None else steps.only(rows)
        for truth in truths:
            check_truths(self.recipe.mechanism, truth[~np.isnan(truth[:, 0])])
        self._refuse_telling(batch, rows, truths, beside)
        examined = Examined(batch, rows, problems, tuple(truths), steps)
        if self.recipe.must_count(None):
            # All of a batch are known now; who has more in several batches is known to those who bring them.
            refuse_more_reports(self.recipe.reports, self.count_persons(examined))
        return examined if steps is None else in_order(examined, sessions or self.recipe.sessions())

    def report(
        self,
        examined: Examined,
        *,
        path: str | None = None,
        rows: IntArray | None = None,
        rng: RandomnessLike = None,
        sessions: TraceSessions | None = None,
    ) -> Obfuscated:
        """Return the examined batch with reports in place of true locations.

        Parameters
        ----------
        examined : Examined
            What `examine` returned.
        path, rows : str and array of int, optional
            Where there is a key and no `id_column`: the file's path within its dataset and the number of each
            row that was given to `examine`, which name the records.
        rng : RandomnessLike
            Where the recipe has no key: None for fresh noise; labels of a `KeyedRandomness` are one per row that
            was given to `examine`.
        sessions : TraceSessions, optional
            Of a table of traces that comes in batches: what answered the batches before. They go on.
        """
        if self.recipe.trace is None:
            source = randomness_of(self.recipe, examined, path, rows, rng)
            reports = self._drawn(examined, source)
        else:
            source, reports = None, [answered(examined, sessions or self.recipe.sessions())]
        batch = examined.batch
        changed: dict[str, pa.Array] = {}
        for place, made in zip(self.places, reports, strict=True):
            coordinates = from_lonlat(made, _crs(place))
            if np.isinf(coordinates).any():
                raise InvalidInputError("the CRS has no coordinates for some reports: use one that covers them")
            changed |= self._columns(batch, place).written(coordinates, self.promise.decimals)
            if isinstance(place, Points) and place.geometry is not None:
                changed |= box_columns(batch, place.geometry, coordinates)
        schema = self._published(batch.schema)
        stay = [name for name in schema.names if name not in changed]
        arrays = changed | {name: used_only(batch.column(batch.schema.get_field_index(name))) for name in stay}
        made_batch = pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)
        result = Obfuscated(made_batch, examined.rows, examined.problems, tuple(reports))
        if self.recipe.order != "shuffle":
            return result
        turn = permutation(source, len(made_batch))
        return replace(
            result,
            batch=rows_of(made_batch, turn),
            rows=examined.rows[turn],
            reports=tuple(part[turn] for part in reports),
        )

    def obfuscate(
        self,
        batch: pa.RecordBatch,
        *,
        beside: Beside | None = None,
        path: str | None = None,
        rows: IntArray | None = None,
        rng: RandomnessLike = None,
    ) -> Obfuscated:
        """Return the batch with reports in place of true locations; the first bad row is an error."""
        examined = self.examine(batch, beside=beside).raise_problems()
        return self.report(examined, path=path, rows=rows, rng=rng)

    def count_persons(self, examined: Examined, persons: pa.Array | None = None) -> Counter[str]:
        """Return how many reports each person will be in.

        Parameters
        ----------
        examined : Examined
            What `examine` returned.
        persons : pyarrow.Array, optional
            Who each of its rows is about, where no column says it.
        """
        column, name = self._persons(examined, persons)
        return count_persons(column, examined.reports_per_row, name)

    def _persons(self, examined: Examined, persons: pa.Array | None) -> tuple[pa.Array, str]:
        """Return who each row is about, and what that column is called."""
        if persons is not None:
            self._refuse_telling_persons(examined, persons)
            return persons, "person"
        name = self.recipe.person_column
        if name is None:
            raise InvalidInputError("person_column must name the column of persons")
        return column_of(examined.batch, name), name

    def person_reports(
        self,
        examined: Examined,
        *,
        path: str | None = None,
        rows: IntArray | None = None,
        persons: pa.Array | None = None,
        reports: Sequence[FloatArray] | None = None,
    ) -> PersonReports:
        """Return how many reports each person will be in and, under a key, which.

        Parameters
        ----------
        examined : Examined
            What `examine` returned.
        path, rows : str and array of int, optional
            As in `report`.
        persons : pyarrow.Array, optional
            As in `count_persons`.
        reports : sequence of (n, 2) arrays, optional
            The reports, one array per place of a row; of traces, what the sessions answered. Under a key they are
            a function of the key and the rows; without this argument they are computed, and only their tags are
            kept.
        """
        recipe = self.recipe
        if recipe.key is None:
            return PersonReports(self.count_persons(examined, persons))
        if examined.steps is not None and reports is not None:
            tags = tags_of_answers(examined.steps, reports[0], recipe.key.read())
        else:
            source = cast("KeyedRandomness", randomness_of(recipe, examined, path, rows, None))
            reports = reports or self._drawn(examined, source)
            tags = tags_of(examined.truths, reports, recipe.mechanism, source)
        column, name = self._persons(examined, persons)
        return person_reports(column, examined.reports_per_row, name, tags)

    def _drawn(self, examined: Examined, source: RandomnessLike) -> list[FloatArray]:
        """Return the reports of each place that a row has."""
        return [
            drawn(truth, self.recipe.mechanism, source, number) for number, truth in enumerate(examined.truths)
        ]

    @property
    def _place_names(self) -> list[str]:
        return [name for place in self.places for name in place.names]

    @cached_property
    def _notes(self) -> dict[str, FloatArray]:
        crs = [place.crs for place in self.places if isinstance(place, Points) and place.crs is not None]
        return numbers_of_notes(self.reported_schema, keep=self.recipe.keep, crs=crs, path=self.path)

    def _crs_of(self, place: Points) -> str:
        if place.geometry is None or place.geometry not in self.schema.names:
            raise InvalidInputError(
                f"column {place.geometry!r} must be there once, the columns are {listed(self.schema.names)}"
            )
        declared = declared_crs(self.schema, place.geometry)
        crs = as_crs(declared or place.crs, f"column {place.geometry!r}")
        if place.crs is not None and not same_crs(crs, as_crs(place.crs, "crs")):
            raise InvalidInputError(f"column {place.geometry!r} declares another CRS than crs")
        return crs

    def _published(self, schema: pa.Schema) -> pa.Schema:
        names = [name for name in schema.names if name not in self.recipe.drop]
        # What traces cost is known when all are answered: who writes the table tells it then.
        told = {} if self.recipe.trace else {PARQUET_KEY: self.promise.to_json().encode()}
        places = set(self._place_names)
        fields = [schema.field(schema.get_field_index(name)) for name in names]
        fields = [published_field(field) if field.name in places else field for field in fields]
        metadata = published_metadata(schema, names, self.recipe.drop)
        return pa.schema(fields, {**metadata, **told})

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

    def _named_rows(self, batch: pa.RecordBatch, lonlat: FloatArray) -> tuple[Positions | None, dict[int, str]]:
        """Return the steps of a batch's rows, if they are some, and which rows name no person or time, and why."""
        if self.recipe.trace is not None:
            return steps_of(batch, self.recipe.trace, lonlat)
        name = self.recipe.person_column
        return None, {} if name is None else persons_in(column_of(batch, name), name)[2]

    def _problems(
        self,
        batch: pa.RecordBatch,
        columns: Sequence[LonLatColumns | GeometryColumn],
        truths: Sequence[FloatArray],
        unnamed: Mapping[int, str],
    ) -> tuple[Problem, ...]:
        found: list[tuple[Flags, str]] = []
        for place, column, truth in zip(self.places, columns, truths, strict=True):
            which = f"{' and '.join(place.names)}: " if len(columns) > 1 else ""
            flaws = list(column.problems())
            if self.recipe.missing == "raise":
                flaws.append((column.missing, "there is no place"))
            if isinstance(place, Points):
                lost = finite(column.coordinates) & ~_on_earth(truth)
                flaws.append((lost, "the point must lie on Earth in its CRS"))
            found += [(rows, which + reason) for rows, reason in flaws]
        if (name := self.recipe.id_column) is not None:
            found.append((nulls(column_of(batch, name)), f"there is no identity in column {name!r}"))
        reasons = dict(unnamed)
        for flags, reason in found:
            for row in np.flatnonzero(flags).tolist():
                reasons.setdefault(row, reason)
        return tuple(Problem(row, reasons[row]) for row in sorted(reasons))

    def _refuse_telling(
        self, batch: pa.RecordBatch, rows: IntArray, truths: Sequence[FloatArray], beside: Beside | None
    ) -> None:
        chosen = sampled_rows(len(batch))
        if not len(chosen):
            return
        samples = self._samples(truths, chosen)

        def some(numbers: IntArray) -> pa.RecordBatch:
            if beside is not None:
                return beside(rows[numbers])
            present = set(batch.schema.names)
            return rows_of(batch.select([name for name in self.passing if name in present]), numbers)

        refuse(telling_values(samples, some(chosen), self.checked))
        refuse_notes(self._notes, samples)
        # The rows of a trace are in the order of time, which is public.
        if self.recipe.order == "raise" and self.recipe.trace is None:
            for truth in truths:
                refuse_sorted(truth, some)

    def _samples(self, truths: Sequence[FloatArray], chosen: IntArray) -> list[Sample]:
        """Return the true places of some rows, one sample per place that a row has."""
        samples = []
        for place, truth in zip(self.places, truths, strict=True):
            true = truth[chosen]
            own = None if same_crs(_crs(place), LONLAT) else from_lonlat(true, _crs(place))
            samples.append(Sample(true, own, chosen, truth))
        return samples

    def _refuse_telling_persons(self, examined: Examined, persons: pa.Array) -> None:
        """Refuse names that tell the place: they are no column that passes, but messages and ledgers hold them."""
        chosen = sampled_rows(len(persons))
        names = pa.RecordBatch.from_arrays([persons.take(pa.array(chosen))], names=["person"])
        for how in telling_values(self._samples(examined.truths, chosen), names, ["person"]).values():
            raise InvalidInputError(f"person must not tell the place, and it {how}")


def _crs(place: LonLat | Points) -> str:
    return place.crs or LONLAT if isinstance(place, Points) else LONLAT


def _on_earth(lonlat: FloatArray) -> Flags:
    return np.asarray((np.abs(lonlat[:, 0]) <= 180) & (np.abs(lonlat[:, 1]) <= 90))
