"""Spark frames with reports in place of true locations, and a function for SQL. Spark 3.5 or newer.

Spark runs a task again when an executor is lost, when another copy of it is slow, and whenever a frame that is
not cached is used twice. The noise is keyed by record, so every run gives the same reports.
"""

import os
from collections import Counter
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

from geoind.adapters.traces import PERSON, costs_frame, costs_of, label_of
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
    if recipe.must_count(ledger):
        recipe.charge(ledger, _persons(frame, recipe), label="spark frame")
    schema = frame.drop(*recipe.drop).schema
    if root is None:
        reports = frame.mapInArrow(_by_name(recipe), schema)
    else:
        reports = _with_positions(frame).mapInArrow(_by_position(recipe, _path(root)), schema)
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


def _by_name(recipe: Recipe) -> Batches:
    def obfuscated(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from map(recipe.obfuscate, batches)

    return obfuscated


def _by_position(recipe: Recipe, root: str) -> Batches:
    def obfuscated(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            plain = batch.drop_columns([FILE, ROW])
            rows = column_of(batch, ROW).to_numpy()
            # A task may read several small files one after the other.
            for file, part in _runs(column_of(batch, FILE)):
                size = part.stop - part.start
                yield recipe.obfuscate_rows(
                    plain.slice(part.start, size), path=_path_within(root, file), rows=rows[part]
                )

    return obfuscated


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
        rows = together.mapInArrow(_costs(recipe), "person string, epsilon double, answers long").collect()
        ledger.charge_all(costs_of([(row[0], row[1], row[2]) for row in rows]), label="spark frame")
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
        sessions = recipe.sessions()
        for batch in batches:
            plain = batch.drop_columns([PERSON, TIME])
            looked_at = recipe.table(plain.schema).examine(plain, sessions=sessions).raise_problems()
            answered(looked_at, sessions)
        yield pa.RecordBatch.from_pandas(costs_frame(sessions), preserve_index=False)

    return costs


def _persons(frame: "DataFrame", recipe: Recipe) -> Counter[str]:
    """Return how many reports each person will be in."""
    from pyspark.sql.functions import sum as total

    def counted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            table = recipe.table(batch.schema)
            counts = table.count_persons(table.examine(batch).raise_problems())
            yield pa.RecordBatch.from_pydict({"person": list(counts), "reports": list(counts.values())}, schema)

    schema = pa.schema({"person": pa.string(), "reports": pa.int64()})
    counts = frame.mapInArrow(counted, "person string, reports long").groupBy("person").agg(total("reports"))
    return Counter({row[0]: int(row[1]) for row in counts.collect()})


def _reports(recipe: Recipe, lon: Any, lat: Any, record: Any) -> "pd.DataFrame":
    """Return the columns lon and lat of one batch of SQL rows."""
    columns = {"id": record, "lon": lon.astype("float64"), "lat": lat.astype("float64")}
    batch = pa.RecordBatch.from_pandas(pd.DataFrame(columns), preserve_index=False)
    return pd.DataFrame(recipe.obfuscate(batch).to_pandas()[["lon", "lat"]])
