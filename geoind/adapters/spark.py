"""Spark frames with reports in place of true locations, a sink of streams, a function for SQL: Spark 3.5 or newer.

Spark runs a task again when an executor is lost, when another copy of it is slow, and whenever a frame that is not
cached is used twice. The noise is keyed by record, so every run gives the same reports. Rows are counted before
anything is charged or drawn; a partition with other rows than those counted gives no reports.
"""

import contextlib
import json
import os
import pickle
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, Unpack
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa

from geoind.errors import GeoindError, InvalidInputError
from geoind.keys import KeyLike
from geoind.mechanisms.protocol import Mechanism
from geoind.pipeline import Budget
from geoind.tables.columns import column_of, named_path, persons_in, seconds_of, values_of
from geoind.tables.parts import Part, decide_release
from geoind.tables.recipe import Missing, Options, Recipe, with_options
from geoind.tables.release import Release
from geoind.tables.stream import joined, sql_function
from geoind.tables.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql._typing import UserDefinedFunctionLike

__all__ = ["obfuscate", "register", "sink"]

FILE, ROW, PERSON, TIME = "geoind file", "geoind row", "geoind person", "geoind time"
"""Columns that name a row's file, its number there, its person and its moment, between two steps of a plan."""

SHUFFLE = "give `order='keep'` and shuffle the reports with `reports.orderBy(rand())`"

Batches: TypeAlias = Iterable[pa.RecordBatch]
Parts: TypeAlias = Callable[[Batches], Iterator[tuple[Part, Batches]]]
Result = TypeVar("Result")


@with_options
def obfuscate(
    frame: "DataFrame",
    *,
    root: str | None = None,
    ledger: Budget | None = None,
    job: str = "spark frame",
    **options: Unpack[Options],
) -> "DataFrame":
    """Return the lazy frame with reports in place of true locations, and only the kept columns.

    All rows are examined, and persons are charged, before this function returns. That runs the frame's plan once,
    with a ledger twice. Reports are drawn whenever the result is computed, always the same ones. The attribute
    `geoind` of the result is the record of the release.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        With columns of degrees, one of WKB (then `crs` names its CRS), or one of type GEOMETRY or GEOGRAPHY.
    root : str, optional
        For a frame read from Parquet files that has no column of identities: the folder that it was read from, a
        path on the driver or an address such as `s3://bucket/trips`. A record then is its file's path within the
        folder and its row.
    ledger : Ledger, optional
        Charges all persons for their reports, or none. The same release again under the same key is free.
    job : str
        The label of the charge in the ledger.
    **options
        The keywords of `geoind.tables.Recipe.of`; `order` cannot be "shuffle". `id_column` or `root` is needed,
        except for traces (`time`): Spark brings the rows of each person together, in the order of time.

    Notes
    -----
    >>> trips = spark.read.parquet("trips")  # doctest: +SKIP
    >>> reports = trips.transform(obfuscate, person="rider", epsilon=0.01, id_column="trip")  # doctest: +SKIP
    >>> print(reports.geoind.busiest)  # doctest: +SKIP
    """
    if not hasattr(frame, "mapInArrow"):
        kind = f"{type(frame).__module__.partition('.')[0]}.{type(frame).__name__}"
        raise InvalidInputError(f"frame must be a DataFrame of Spark, got {kind}")
    if frame.isStreaming:
        raise InvalidInputError("the rows of a stream cannot be counted: give `sink(...)` to foreachBatch")
    recipe = Recipe.of(**options).with_key()
    recipe.refuse_shuffle(SHUFFLE)
    if (recipe.id_column is None and recipe.time is None) == (root is None):
        raise InvalidInputError(
            "`id_column=` must name the column that identifies a record, or `root=` the folder of the Parquet "
            "files that the frame was read from; traces need neither"
        )
    # Spark Connect does not show the plan; what changes between two runs is then found by the digests only.
    plan = getattr(frame, "_jdf", None)
    if plan is not None and not plan.queryExecution().analyzed().deterministic():
        raise InvalidInputError(
            "the plan of the frame is not deterministic (rand, uuid, ...), so every run has other rows: write it "
            "to Parquet and read it again, or give `frame.checkpoint()`"
        )
    below = None if root is None else _path(root)
    table = Table(recipe, _schema(frame), path=below or "")
    table = replace(table, recipe=replace(recipe, places=table.places))
    recipe = table.recipe
    rows, names = _projected(frame, table, below)
    if recipe.time is not None:
        rows, names = _together(rows, names, recipe)
    parts = _parts_of(recipe, below, names)

    def on_parts(work: Callable[[Part, Batches], Result]) -> Iterator[Result]:
        # Of a frame without partitions the columns are known, too.
        return chain([work(Part(table), ())], _collected(rows, parts, work))

    release = decide_release(table, on_parts, ledger, job, SHUFFLE)
    reports = _drawn(rows, names, parts, release.sent(), frame)
    # Not in the metadata of columns, which a union with other rows would keep.
    reports.geoind = release.record
    return reports


@with_options
def sink(
    write: "Callable[[DataFrame, int], object]",
    *,
    ledger: Budget | None = None,
    job: str = "spark stream",
    **options: Unpack[Options],
) -> "Callable[[DataFrame, int], None]":
    """Return a function for `foreachBatch` that obfuscates each batch of a stream and passes the reports on.

    A batch that runs again after a failure or a restart has the same reports, and the ledger does not charge them
    again. Each batch is a release with a record of its own: totals and `reports_per_person` are per batch, and
    only a ledger bounds the sum over batches.

    Parameters
    ----------
    write : callable
        Takes the frame of reports and the number of the batch, and writes it. After a restart it may be called
        again with the number of a batch that it wrote.
    ledger : Ledger, optional
        Charges all persons of a batch for their reports, or none; then the query fails.
    job : str
        The label of the charges in the ledger, to which the ids of query and batch are added.
    **options
        As in `obfuscate`, without `time`. `id_column` and `key` are needed.

    Notes
    -----
    >>> def write(reports, batch):
    ...     reports.write.mode("append").parquet("reports")
    >>> to_files = sink(write, person="rider", epsilon=0.01, id_column="trip", key=bytes(32))
    >>> stream.writeStream.foreachBatch(to_files).option("checkpointLocation", "state").start()  # doctest: +SKIP
    """
    recipe = Recipe.of(**options)
    recipe.refuse_shuffle(SHUFFLE)
    if recipe.key is None or recipe.id_column is None or recipe.time is not None:
        raise InvalidInputError(
            "a stream needs `id_column=` and `key=`, so that a batch that runs again repeats its reports, and "
            "cannot have `time=`: a trace goes on in the next batch"
        )

    def obfuscated(batch: "DataFrame", number: int) -> None:
        context = getattr(batch.sparkSession, "sparkContext", None)
        query = None if context is None else context.getLocalProperty("sql.streaming.queryId")
        # Without it every pass would read the source again.
        kept = batch.persist()
        try:
            write(obfuscate(kept, ledger=ledger, job=f"{job}, query {query}, batch {number}", **options), number)
        finally:
            kept.unpersist()

    return obfuscated


def register(
    spark: "SparkSession",
    name: str = "geoind_obfuscate",
    *,
    key: KeyLike,
    epsilon: float | None = None,
    level: float | None = None,
    radius: float | None = None,
    mechanism: Mechanism | None = None,
    missing: Missing = "raise",
) -> "UserDefinedFunctionLike":
    """Register `name(lon, lat, id)` for SQL, which gives a struct of lon and lat, and return it for columns.

    The function has three columns of a batch. It cannot enforce what `obfuscate` does: it does not know persons
    and totals, charges no ledger, and checks neither the other columns of the query nor the order of its rows.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        Where to register.
    name : str
        The function's name in SQL.
    key : Key or bytes
        The secret under which the noise is drawn. A key made here would make every registration a new release.
    epsilon, level, radius, mechanism, missing
        As in `geoind.tables.Recipe.of`. `id` identifies the record: a whole number or text.

    Notes
    -----
    >>> register(spark, epsilon=0.01, key=Key.in_variable())  # doctest: +SKIP
    >>> query = "SELECT fare, geoind_obfuscate(lon, lat, trip) AS report FROM trips"  # doctest: +SKIP
    >>> spark.sql(f"SELECT fare, report.* FROM ({query})")  # doctest: +SKIP
    """
    import pandas as pd
    from pyspark.sql.functions import pandas_udf

    reports_of = sql_function(
        epsilon=epsilon, level=level, radius=radius, mechanism=mechanism, missing=missing, key=key
    )

    def reports(lon: pd.Series, lat: pd.Series, record: pd.Series) -> pd.DataFrame:
        given = pd.DataFrame({"id": record, "lon": lon.astype("float64"), "lat": lat.astype("float64")})
        batch = pa.RecordBatch.from_pandas(given, preserve_index=False)
        return pd.DataFrame(reports_of(batch), columns=["lon", "lat"])

    function = pandas_udf(reports, "lon double, lat double")
    registered: UserDefinedFunctionLike = spark.udf.register(name, function)
    return registered


def _schema(frame: "DataFrame") -> pa.Schema:
    """Return the names of a frame's columns, and which are geometries or times; tasks know the other types."""
    fields = []
    for field in frame.schema:
        srid = getattr(field.dataType, "srid", 0)
        crs = json.dumps({"crs": f"EPSG:{srid}" if srid > 0 else None})
        about = {"ARROW:extension:name": "geoarrow.wkb", "ARROW:extension:metadata": crs}
        timed = field.dataType.typeName().startswith(("date", "timestamp"))
        kind = pa.timestamp("us") if timed else pa.binary()
        fields.append(pa.field(field.name, kind, metadata=about if _is_geometry(field) else None))
    return pa.schema(fields)


def _is_geometry(field: Any) -> bool:
    """Return whether a field has a type of geometries, or one that contains it."""
    return re.search(r'"geo(metry|graphy)\(', field.dataType.json()) is not None


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _projected(frame: "DataFrame", table: Table, root: str | None) -> "tuple[DataFrame, list[str]]":
    """Return the columns that are needed, with geometries as WKB, and where each row was read; and their names.

    In the frame they are numbered: `mapInArrow` does not take names with a dot.
    """
    from pyspark.errors import AnalysisException
    from pyspark.sql.functions import col, expr

    names = table.read_from(pa.RecordBatch.from_pylist([], schema=table.schema))
    points = {field.name: getattr(field.dataType, "srid", -1) for field in frame.schema if _is_geometry(field)}
    columns = []
    for name in names:
        if points.get(name, 0) < 0:
            raise InvalidInputError(f"column {name!r} must be a geometry with one SRID, as in GEOMETRY(4326)")
        columns.append(expr(f"st_asbinary({_quoted(name)})") if name in points else col(_quoted(name)))
    if root is not None:
        names, columns = [*names, FILE, ROW], [*columns, col("_metadata.file_path"), col("_metadata.row_index")]
    try:
        return frame.select(*(column.alias(f"c{number}") for number, column in enumerate(columns))), names
    except AnalysisException as error:
        if root is None:
            raise
        raise InvalidInputError("`root=` needs a frame read from Parquet files: give `id_column=`") from error


def _together(rows: "DataFrame", names: list[str], recipe: Recipe) -> "tuple[DataFrame, list[str]]":
    """Return the rows of traces with each person in one partition, in the order of time."""
    from pyspark.sql.types import DoubleType, StringType, StructField, StructType

    person, time = recipe.person_column or "", recipe.time or ""

    def labelled(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            named, labels = batch.rename_columns(names), np.full(len(batch), "", object)
            with contextlib.suppress(InvalidInputError):  # a type that names no persons: the count refuses it
                known, codes, _ = persons_in(values_of(named, person), person)
                labels = np.array([*known, ""], object)[codes]
            seconds = pa.array(seconds_of(values_of(named, time))[0])
            yield batch.append_column(PERSON, pa.array(labels, pa.string())).append_column(TIME, seconds)

    # A given number: Spark merges small partitions otherwise, and not always the same ones.
    many = str(rows.sparkSession.conf.get("spark.sql.shuffle.partitions"))
    number = [int(many)] if many.isdigit() else []
    schema = StructType([*rows.schema, StructField(PERSON, StringType()), StructField(TIME, DoubleType())])
    together = rows.mapInArrow(labelled, schema).repartition(*number, PERSON).sortWithinPartitions(TIME)
    return together, [*names, PERSON, TIME]


def _parts_of(recipe: Recipe, root: str | None, names: list[str]) -> Parts:
    """Return a function that gives the parts of a partition: one, or below a root one for each file."""

    def parts(batches: Batches) -> Iterator[tuple[Part, Batches]]:
        from pyspark import TaskContext

        context = TaskContext.get()
        name = "partition" if context is None else f"partition {context.partitionId()}"
        named = (batch.rename_columns(names) for batch in joined(batches))
        for path, group in groupby(_runs(named, root), key=lambda run: run[0]):
            runs = (batch for _, batch in group)
            first = next(runs)
            table = Table(recipe, first.schema, path=path, position=None if root is None else ROW)
            where = name if root is None else f"{name}, file {named_path(path)!r}"
            yield Part(table, name=where), chain([first], runs)

    return parts


def _runs(batches: Batches, root: str | None) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield batches; below a root, the rows of one file each, with its path."""
    for batch in batches:
        if root is None:
            yield "", batch
            continue
        # A task may read several small files one after the other.
        files = column_of(batch, FILE).dictionary_encode()
        numbers = files.indices.to_numpy()
        borders = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
        for start, stop in pairwise(borders):
            path = _path(files.dictionary[int(numbers[start])].as_py())
            if not path.startswith(root + "/"):
                raise InvalidInputError("`root=` must be the folder of all files that the frame was read from")
            yield path[len(root) + 1 :], batch.slice(start, stop - start)


def _path(location: str) -> str:
    """Return the path of a URI or of a plain path, without scheme and host."""
    parts = urlsplit(location)
    # One letter is a drive of Windows, not a file system.
    if len(parts.scheme) > 1:
        return unquote(parts.path).rstrip("/")
    return Path(os.path.abspath(location)).as_posix()  # noqa: PTH100 - links are not followed


def _collected(rows: "DataFrame", parts: Parts, work: Callable[[Part, Batches], Result]) -> Iterator[Result]:
    """Yield what is found in each part, as it comes from the tasks."""

    def step(batches: Batches) -> Iterator[pa.RecordBatch]:
        found: list[Result] | GeoindError
        try:
            found = [work(part, some) for part, some in parts(batches)]
        except GeoindError as error:
            # Not raised here: Spark would run the task again, and wrap the error.
            found = error
        yield pa.RecordBatch.from_pydict({"found": pa.array([pickle.dumps(found)], pa.binary())})

    for row in rows.mapInArrow(step, "found binary").collect():
        found = pickle.loads(row.found)
        if isinstance(found, GeoindError):
            raise found
        yield from found


def _drawn(rows: "DataFrame", names: list[str], parts: Parts, release: Release, frame: "DataFrame") -> "DataFrame":
    """Return the lazy frame of reports, without the metadata of columns, and geometries in their own type."""
    from pyspark.sql.functions import expr
    from pyspark.sql.types import StructField, StructType

    def draw(batches: Batches) -> Iterator[pa.RecordBatch]:
        # All of a partition before its first row leaves: only the last one shows that it has not changed.
        yield from [made for part, some in parts(batches) for made, _, _ in part.draw(some, release)]

    wanted = {*release.recipe.published, *(name for place in release.recipe.places for name in place.names)}
    types = [(name, field) for name, field in zip(names, rows.schema, strict=True) if name in wanted]
    schema = StructType([StructField(name, field.dataType, field.nullable) for name, field in types])
    bare = json.loads(schema.json(), object_hook=lambda members: members | {"metadata": {}})
    reports = rows.mapInArrow(draw, StructType.fromJson(bare))
    for field in frame.schema:
        if _is_geometry(field) and field.name in wanted:
            wkb, srid = _quoted(field.name), getattr(field.dataType, "srid", 0)
            geography = field.dataType.typeName() == "geography"
            made = f"st_geogfromwkb({wkb})" if geography else f"st_setsrid(st_geomfromwkb({wkb}), {srid})"
            reports = reports.withColumn(field.name, expr(made))
    return reports
