"""The entry for any Arrow stream: pyarrow, Polars, DuckDB, pandas, Ibis."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Unpack

import pyarrow as pa

from geoind.budgets.persons import PersonReports
from geoind.errors import InvalidInputError
from geoind.pipeline import Budget
from geoind.tables.order import SHUFFLE
from geoind.tables.recipe import Options, Recipe, with_options
from geoind.tables.record import PARQUET_KEY
from geoind.tables.release import Count, Part, Release
from geoind.tables.table import Table

__all__ = ["decided", "obfuscate", "projected", "released"]

BATCH_ROWS = 1 << 16
"""Rows that are examined and drawn at once, or more where a source has larger batches."""


@with_options
def obfuscate(
    stream: Any, *, ledger: Budget | None = None, job: str = "stream", **options: Unpack[Options]
) -> pa.RecordBatchReader:
    """Return the stream with reports in place of true locations, and only the kept columns.

    All rows are examined, and persons are charged, before this function returns. Reports are drawn while the
    returned reader is read. The record of the release is in the schema's metadata under `geoind`.

    Parameters
    ----------
    stream : object with `__arrow_c_stream__`
        A pyarrow Table, RecordBatch or RecordBatchReader, a frame of Polars, pandas or Ibis, a relation of DuckDB.
        It is read twice; a reader, which can be read once, is held in memory.
    ledger : Ledger, optional
        Charges all persons for their reports, or none. The same release again under the same key is free.
    job : str
        The label of the charge in the ledger.
    **options
        The keywords of `geoind.tables.Recipe.of`: `person` and one of `epsilon`, `level` and `radius`, `mechanism`
        are needed.

    Examples
    --------
    >>> from geoind import EACH_ROW
    >>> trips = pa.table({"fare": [7.5, 9.0], "lon": [2.2945, 2.35], "lat": [48.8584, 48.86]})
    >>> reports = obfuscate(trips, person=EACH_ROW, keep=["fare"], epsilon=0.01)
    >>> reports.schema.names, reports.read_all().num_rows
    (['fare', 'lon', 'lat'], 2)
    """
    recipe = Recipe.of(**options).with_key()
    source = _repeatable(stream)
    table = Table(recipe, _reader(source).schema)
    part = Part(table)

    def batches() -> Iterator[pa.RecordBatch]:
        names, waiting, rows = list[str](), list[pa.RecordBatch](), 0
        for batch in filter(len, _reader(source)):
            names = names or _needed(table, batch)
            waiting.append(batch.select(names))
            rows += len(batch)
            if rows >= BATCH_ROWS:
                yield from _joined(waiting)
                waiting, rows = [], 0
        yield from _joined(waiting)

    release = released(recipe, [(part, batches)], ledger, job)
    schema = table.reported_schema
    schema = schema.with_metadata({**(schema.metadata or {}), PARQUET_KEY: release.record.to_json().encode()})
    made = (made.batch for made in part.draw(batches(), release))
    return pa.RecordBatchReader.from_batches(schema, made)


def released(recipe: Recipe, parts: "list[tuple[Part, Any]]", ledger: Budget | None, label: str) -> Release:
    """Return the decisions about a release of parts, each with a function that gives its batches, and charge."""
    counts = (part.count(batches(), charged=ledger is not None) for part, batches in parts)

    def tags(release: Release) -> Iterator[PersonReports]:
        return (part.tags(batches(), release) for part, batches in parts)

    return decided(recipe, parts[0][0].table, counts, tags, ledger, label)


def decided(
    recipe: Recipe,
    table: Table,
    counts: Iterable[Count],
    tags: Callable[[Release], Iterable[PersonReports]],
    ledger: Budget | None,
    label: str,
    shuffle: str = SHUFFLE,
) -> Release:
    """Return the decisions about a release from the counts of its parts, and charge for their tags."""
    if ledger is not None:
        recipe.require_person_column("a ledger")
    total = Count()
    for count in counts:
        total.merge(count, recipe.most_rows)
    release = Release.of(recipe, total, table, shuffle)
    if ledger is None:
        return release
    persons = release.persons
    if recipe.time is None and recipe.same_place is None:
        persons = PersonReports()
        for more in tags(release):
            persons.update(more)
    release.charge(ledger, persons, label)
    return release


def projected(recipe: Recipe, schema: pa.Schema) -> list[str]:
    """Return the columns that an engine needs to read: what makes reports, what leaves, and columns of times.

    Examples
    --------
    >>> from geoind import EACH_ROW
    >>> schema = pa.schema({"lon": "float64", "lat": "float64", "note": "string", "at": pa.timestamp("us")})
    >>> projected(Recipe.of(epsilon=0.01, person=EACH_ROW), schema)
    ['lon', 'lat', 'at']
    """
    # No clock is nested, and Arrow makes no empty columns of some types.
    plain = pa.schema([field for field in schema if not pa.types.is_nested(field.type)])
    return _needed(Table(recipe, schema), pa.RecordBatch.from_pylist([], schema=plain))


def _joined(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Return consecutive batches as few larger ones: a person is looked up once for each batch."""
    if len(batches) < 2:
        return batches
    joined: list[pa.RecordBatch] = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return joined


def _needed(table: Table, batch: pa.RecordBatch) -> list[str]:
    clocks = [name for name in table.clocks(batch) if batch.schema.names.count(name) == 1]
    return list(dict.fromkeys([*table.needed, *clocks]))


def _repeatable(stream: Any) -> Any:
    """Return a stream that can be read again; a reader is read to memory."""
    if isinstance(stream, pa.RecordBatchReader):
        return stream.read_all()
    if isinstance(stream, pa.RecordBatch):
        return pa.Table.from_batches([stream])
    if not hasattr(stream, "__arrow_c_stream__"):
        raise InvalidInputError(
            f"stream must be a table with __arrow_c_stream__ (pyarrow, Polars, DuckDB, pandas), got "
            f"{type(stream).__name__}"
        )
    return stream


def _reader(stream: Any) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_stream(stream)
