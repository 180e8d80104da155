"""Spark frames with reports in place of true locations, and a function for SQL. Spark 3.5 or newer.

Spark runs a task again when an executor is lost, when another copy of it is slow, and whenever a frame that is
not cached is used twice. The noise is keyed by record, so every run gives the same reports.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from inspect import signature
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import unquote, urlsplit

import numpy as np
import pandas as pd
import pyarrow as pa

from geoind.adapters.traces import PERSON, charge_rows, costs_frame, label_of
from geoind.arrays import IntArray
from geoind.budgets.persons import PersonReports
from geoind.errors import InvalidInputError
from geoind.pipeline import Budget
from geoind.tables import LonLat, Options, Recipe, Table
from geoind.tables.places import column_of
from geoind.tables.promise import ATTRS_KEY
from geoind.tables.times import seconds_of
from geoind.tables.tracing import answered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql._typing import UserDefinedFunctionLike

__all__ = ["obfuscate", "register"]

FILE, ROW, TIME = "geoind file", "geoind row", "geoind time"
"""Columns that tell where a row was read, while the frame is on its way."""


def obfuscate(
    frame: "DataFrame",
    *,
    root: str | None = None,
    ledger: Budget | None = None,
    **options: Unpack[Options],
) -> "DataFrame":
    """Return the lazy frame with reports in place of true locations.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        With columns of degrees, or one of WKB (then `crs` says in which CRS).
    root : str, optional
        For a frame read from Parquet files that has no column of identities: the folder that it was read
        from, as a path on the driver or an address. A record then is its file's path within the folder and its
        row.
    ledger : Ledger, optional
        Whose budgets pay: those of the persons that `person_column` names. Their totals are computed and charged
        in one transaction, now. What is computed later, once or more often, is paid for.
    **options
        `epsilon`, or `level` and `radius`, or `mechanism`; `lon` and `lat`, or `geometry` and `crs`; `id_column`;
        `person_column`; `drop` and `keep`; `missing`; `order`; `key`: see `geoind.tables.Recipe`. Without `key`
        one is made; it lives in the returned frame alone. For people who move: `trace`, the columns of person and
        time, and `method`. Spark then brings each person's rows together, in the order of time; a ledger charges
        whole traces, and needs `key`.

    Notes
    -----
    >>> frame = spark.read.parquet("trips")  # doctest: +SKIP
    >>> obfuscate(frame, epsilon=0.01, id_column="trip").write.parquet("reports")  # doctest: +SKIP
    """
    recipe = Recipe.of(**options)
    if recipe.trace is not None:
        return _traces(frame, recipe, ledger)
    recipe = recipe.in_parts("use orderBy(rand()) on the reports, with order='keep' here").with_key()
    if (recipe.id_column is None) == (root is None):
        raise InvalidInputError("give id_column, or the root of a frame that was read from Parquet files")
    recipe.refuse_ledger_without_persons(ledger)
    table = _table(frame, recipe)
    rows = frame if root is None else _with_positions(frame)
    below = None if root is None else _path(root)
    if recipe.must_count(ledger):
        recipe.charge(ledger, _person_reports(rows, recipe, below), label="spark frame")
    reports = rows.mapInArrow(_obfuscated(recipe, below), frame.drop(*recipe.drop).schema)
    for place in table.places:
        # Spark writes the metadata of columns into its Parquet files.
        reports = reports.withMetadata(place.names[0], {ATTRS_KEY: table.promise.to_json()})
    return reports


def register(
    spark: "SparkSession", name: str = "geoind_obfuscate", **options: Unpack[Options]
) -> "UserDefinedFunctionLike":
    """Register `name(lon, lat, id)` for SQL, and return the pandas function for columns.

    It gives a struct of lon and lat. `id` identifies the record: a whole number or text.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        Where to register.
    name : str
        The function's name in SQL.
    **options
        `epsilon`, or `level` and `radius`, or `mechanism`; `missing`; `key`.

    Notes
    -----
    >>> register(spark, epsilon=0.01)  # doctest: +SKIP
    >>> query = "SELECT trip, geoind_obfuscate(lon, lat, trip) AS report FROM trips"  # doctest: +SKIP
    >>> spark.sql(f"SELECT trip, report.* FROM ({query})")  # doctest: +SKIP
    """
    from pyspark.sql.functions import pandas_udf

    recipe = replace(Recipe.of(**options).with_key(), places=(LonLat("lon", "lat"),), id_column="id")

    def reports(lon: pd.Series, lat: pd.Series, record: pd.Series) -> pd.DataFrame:
        return _reports(recipe, lon, lat, record)

    function = pandas_udf(reports, "lon double, lat double")
    registered: UserDefinedFunctionLike = spark.udf.register(name, function)
    return registered


Batches = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def _obfuscated(recipe: Recipe, root: str | None) -> Batches:
    def obfuscated(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part, path, rows in _parts(batches, root):
            yield recipe.table(part.schema).obfuscate(part, path=path, rows=rows).batch

    return obfuscated


def _parts(
    batches: Iterable[pa.RecordBatch], root: str | None
) -> Iterator[tuple[pa.RecordBatch, str | None, IntArray | None]]:
    """Yield batches; below a root, of one file each, with its path and the numbers of the rows in it."""
    for batch in batches:
        if root is None:
            yield batch, None, None
            continue
        plain = batch.drop_columns([FILE, ROW])
        rows = column_of(batch, ROW).to_numpy()
        # A task may read several small files one after the other.
        for file, part in _runs(column_of(batch, FILE)):
            yield plain.slice(part.start, part.stop - part.start), _path_within(root, file), rows[part]


def _runs(column: pa.Array) -> Iterator[tuple[str, slice]]:
    """Yield each value with the run of rows in which it stays the same."""
    codes = column.dictionary_encode()
    numbers = codes.indices.to_numpy()
    borders = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
    for start, stop in pairwise(borders):
        if start < stop:
            yield codes.dictionary[int(numbers[start])].as_py(), slice(start, stop)


def _with_positions(frame: "DataFrame") -> "DataFrame":
    from pyspark.errors import AnalysisException
    from pyspark.sql.functions import col

    try:
        return frame.select("*", col("_metadata.file_path").alias(FILE), col("_metadata.row_index").alias(ROW))
    except AnalysisException as error:
        raise InvalidInputError(
            "root needs a frame read straight from Parquet files: give id_column instead"
        ) from error


def _path(location: str) -> str:
    """Return the path of a URI or of a plain path, without what tells the file system."""
    parts = urlsplit(location)
    # One letter is a drive of Windows, not a file system.
    if len(parts.scheme) > 1:
        return unquote(parts.path).rstrip("/")
    return Path(os.path.abspath(location)).as_posix()  # noqa: PTH100 - without looking where links lead


def _path_within(root: str, file: str) -> str:
    path = _path(file)
    if not path.startswith(root + "/"):
        raise InvalidInputError(f"the file {path!r} is not below the root {root!r}")
    return path[len(root) + 1 :]


def _table(frame: "DataFrame", recipe: Recipe) -> Table:
    """Return the recipe for the frame; refuse at once what an empty batch would refuse in a task."""
    from pyspark.sql.pandas.types import to_arrow_schema

    # Newer ones ask for the zone in which times are shown; which one makes no difference here.
    zone = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
    schema = to_arrow_schema(frame.schema, **zone)
    table = recipe.table(schema)
    table.obfuscate(pa.RecordBatch.from_pylist([], schema=schema), path="", rows=np.arange(0))
    return table


def _traces(frame: "DataFrame", recipe: Recipe, ledger: Budget | None) -> "DataFrame":
    """Return the lazy frame with answers of sessions: a person's rows are in one partition, in order."""
    recipe.refuse_ledger_without_persons(ledger)
    recipe = recipe.with_key()
    table = _table(frame, recipe)
    together = _together(frame, recipe)
    if ledger is not None:
        columns = "person string, epsilon double, answers long, token string"
        rows = together.mapInArrow(_costs(recipe), columns).collect()
        charge_rows(ledger, [(row[0], row[1], row[2], row[3]) for row in rows], label="spark frame")
    reports = together.mapInArrow(_answered(recipe), frame.drop(*recipe.drop).schema)
    [place] = table.places
    return reports.withMetadata(place.names[0], {ATTRS_KEY: table.promise.to_json()})


def _together(frame: "DataFrame", recipe: Recipe) -> "DataFrame":
    from pyspark.sql.functions import col, pandas_udf

    if recipe.trace is None:
        raise InvalidInputError("there are no traces: give trace, the columns of person and time")

    def labels(persons: pd.Series) -> pd.Series:
        return persons.map(label_of)

    def seconds(times: pd.Series) -> pd.Series:
        return pd.Series(seconds_of(pa.array(times, pa.string()))[0])

    moment = col(f"`{recipe.trace.time}`")
    if dict(frame.dtypes)[recipe.trace.time] == "string":
        moment = pandas_udf(seconds, "double")(moment)
    person = pandas_udf(labels, "string")(col(f"`{recipe.trace.person}`").cast("string"))
    return frame.withColumn(PERSON, person).withColumn(TIME, moment).repartition(PERSON).sortWithinPartitions(TIME)


def _answered(recipe: Recipe) -> Batches:
    def answers(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sessions = recipe.sessions()
        for batch in batches:
            plain = batch.drop_columns([PERSON, TIME])
            table = recipe.table(plain.schema)
            yield table.report(table.examine(plain, sessions=sessions).raise_problems(), sessions=sessions).batch

    return answers


def _costs(recipe: Recipe) -> Batches:
    def costs(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sessions, persons = recipe.sessions(), PersonReports()
        for batch in batches:
            plain = batch.drop_columns([PERSON, TIME])
            table = recipe.table(plain.schema)
            looked_at = table.examine(plain, sessions=sessions).raise_problems()
            persons.update(table.person_reports(looked_at, reports=[answered(looked_at, sessions)]))
        yield pa.RecordBatch.from_pandas(costs_frame(sessions, persons), preserve_index=False)

    return costs


def _person_reports(frame: "DataFrame", recipe: Recipe, root: str | None) -> PersonReports:
    """Return the reports that each person will be in."""
    from pyspark.sql.functions import sum as total

    def counted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part, path, rows in _parts(batches, root):
            table = recipe.table(part.schema)
            examined = table.examine(part).raise_problems()
            counts = table.person_reports(examined, path=path, rows=rows).rows()
            yield pa.RecordBatch.from_pylist([dict(zip(names, row, strict=True)) for row in counts], schema)

    word = pa.decimal128(20)
    schema = pa.schema({"person": pa.string(), "reports": pa.int64(), "first": word, "second": word})
    names = schema.names
    columns = "person string, reports long, first decimal(20), second decimal(20)"
    counts = frame.mapInArrow(counted, columns).groupBy("person").agg(*map(total, names[1:]))
    return PersonReports.of_rows((row[0], row[1], row[2], row[3]) for row in counts.collect())


def _reports(recipe: Recipe, lon: Any, lat: Any, record: Any) -> "pd.DataFrame":
    """Return the columns lon and lat of one batch of SQL rows."""
    columns = {"id": record, "lon": lon.astype("float64"), "lat": lat.astype("float64")}
    batch = pa.RecordBatch.from_pandas(pd.DataFrame(columns), preserve_index=False)
    return pd.DataFrame(recipe.obfuscate(batch).to_pandas()[["lon", "lat"]])
