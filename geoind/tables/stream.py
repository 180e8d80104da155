"""The entry for any Arrow stream: pyarrow, Polars, DuckDB, pandas, Ibis."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Unpack

import pyarrow as pa

from geoind.accounting.record import PARQUET_KEY
from geoind.arrays import FloatArray
from geoind.errors import InvalidInputError
from geoind.keys import KeyLike
from geoind.pipeline import Budget
from geoind.tables.parts import Part, decide_release, drawn, refuse_row
from geoind.tables.recipe import EACH_ROW, Options, Recipe, with_options
from geoind.tables.table import Table

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
        names = list[str]()
        for batch in joined(filter(len, _reader(source))):
            names = names or table.read_from(batch)
            yield batch.select(names)

    release = decide_release(table, lambda work: [work(part, batches())], ledger, job)
    schema = table.reported_schema
    schema = schema.with_metadata({**(schema.metadata or {}), PARQUET_KEY: release.record.to_json().encode()})
    made = (batch for batch, _, _ in part.draw(batches(), release))
    return pa.RecordBatchReader.from_batches(schema, made)


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
    return Table(recipe, schema).read_from(pa.RecordBatch.from_pylist([], schema=plain))


def joined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield consecutive batches as few larger ones: each has a fixed cost, and its persons are looked up once."""
    waiting, rows = list[pa.RecordBatch](), 0
    for batch in chain(batches, [None]):
        if batch is not None:
            waiting.append(batch)
            rows += len(batch)
        if waiting and (batch is None or rows >= BATCH_ROWS):
            several = len(waiting) > 1
            yield from pa.Table.from_batches(waiting).combine_chunks().to_batches() if several else waiting
            waiting, rows = [], 0


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


def sql_function(*, key: KeyLike, **noise: Any) -> Callable[[pa.RecordBatch], FloatArray]:
    """Return a function for SQL: the reports of batches with the columns lon, lat and id, NaN without a place.

    The noise, and `missing`, are keywords of `Recipe.of`.
    Nothing is counted or charged, and nothing is known of other batches.
    """
    if key is None:
        raise InvalidInputError("`key=` is needed: the same record must have the same report in every query")
    recipe = Recipe.of(person=EACH_ROW, order="keep", lon="lon", lat="lat", id_column="id", key=key, **noise)

    def reports(batch: pa.RecordBatch) -> FloatArray:
        table = Table(recipe, batch.schema)
        examined = table.examine(batch)
        if examined.problems:
            refuse_row(examined.problems, next(iter(examined.problems)))
        return drawn(examined.truths[0], recipe.mechanism, examined.source)

    return reports
