"""Spark frames with reports in place of true locations, and a function for SQL. Spark 3.5 or newer.

Spark runs a task again when an executor is lost, when another copy of it is slow, and whenever a frame that is
not cached is used twice. The noise is keyed by record, so every run gives the same reports.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import unquote, urlsplit

import numpy as np

from geoind.adapters.points import column_of
from geoind.adapters.recipe import Options, Recipe
from geoind.errors import InvalidInputError
from geoind.pipeline import Budget

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["obfuscate", "register"]

FILE, ROW = "geoind file", "geoind row"
"""Columns that tell where a row was read, while the frame is on its way."""


def obfuscate(
    frame: "DataFrame",
    *,
    root: str | None = None,
    ledger: Budget | None = None,
    person_column: str | None = None,
    **options: Unpack[Options],
) -> "DataFrame":
    """Return the lazy frame with reports in place of true locations.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        With two columns of degrees, or one of WKB (then `crs` says in which CRS).
    root : str, optional
        For a frame read from Parquet files that has no column of identities: the folder that it was read
        from. A record then is its file's path within the folder and its row.
    ledger, person_column : Ledger and str, optional
        Whose budget pays: the totals of all persons are computed and charged in one transaction, now. What
        is computed later, once or more often, is paid for.
    **options
        `epsilon`, or `level` and `radius`, or `mechanism`; `lon` and `lat`, or `geometry` and `crs`; `id_column`;
        `missing`; `key`: see `geoind.adapters.recipe.Recipe`. Without `key` one is made; it lives in the returned
        frame alone.

    Notes
    -----
    >>> frame = spark.read.parquet("trips")  # doctest: +SKIP
    >>> obfuscate(frame, epsilon=0.01, id_column="trip").write.parquet("reports")  # doctest: +SKIP
    """
    recipe = Recipe.of(**options)
    if (recipe.id_column is None) == (root is None):
        raise InvalidInputError("give id_column, or the root of a frame that was read from Parquet files")
    if (ledger is None) != (person_column is None):
        raise InvalidInputError("ledger and person_column go together: give both or neither")
    _check_columns(frame, recipe)
    if ledger is not None and person_column is not None:
        _charge(frame, recipe, ledger, person_column)
    if root is None:
        return frame.mapInArrow(_by_name(recipe), frame.schema)
    return _with_positions(frame).mapInArrow(_by_position(recipe, _path(root)), frame.schema)


def register(spark: "SparkSession", name: str = "geoind_obfuscate", **options: Unpack[Options]) -> Any:
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
    >>> spark.sql("SELECT trip, geoind_obfuscate(lon, lat, trip).* FROM trips")  # doctest: +SKIP
    """
    import pandas as pd
    from pyspark.sql.functions import pandas_udf

    recipe = replace(Recipe.of(**options), lon="lon", lat="lat", id_column="id")

    def reports(lon: pd.Series, lat: pd.Series, record: pd.Series) -> pd.DataFrame:
        return _reports(recipe, lon, lat, record)

    function = pandas_udf(reports, "lon double, lat double")
    return spark.udf.register(name, function)


Batches = Callable[["Iterable[pa.RecordBatch]"], "Iterator[pa.RecordBatch]"]


def _by_name(recipe: Recipe) -> Batches:
    def obfuscated(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        yield from map(recipe.obfuscate, batches)

    return obfuscated


def _by_position(recipe: Recipe, root: str) -> Batches:
    def obfuscated(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
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


def _runs(column: "pa.Array") -> Iterator[tuple[str, slice]]:
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
    return unquote(parts.path).rstrip("/") if parts.scheme else location.rstrip("/")


def _path_within(root: str, file: str) -> str:
    path = _path(file)
    if not path.startswith(root + "/"):
        raise InvalidInputError(f"the file {path!r} is not below the root {root!r}")
    return path[len(root) + 1 :]


def _check_columns(frame: "DataFrame", recipe: Recipe) -> None:
    """Refuse at once what an empty batch of the frame's types would refuse in a task."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    empty = pa.RecordBatch.from_pylist([], schema=to_arrow_schema(frame.schema))
    recipe.obfuscate_rows(empty, path="", rows=np.arange(0))


def _charge(frame: "DataFrame", recipe: Recipe, ledger: Budget, person_column: str) -> None:
    import pyarrow as pa
    from pyspark.sql.functions import sum as total

    def counted(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        for batch in batches:
            counts = recipe.count_persons(batch, person_column)
            yield pa.RecordBatch.from_pydict({"person": list(counts), "reports": list(counts.values())}, schema)

    schema = pa.schema({"person": pa.string(), "reports": pa.int64()})
    if person_column not in frame.columns:
        raise InvalidInputError(f"column {person_column!r} must be there once, the columns are {frame.columns}")
    counts = frame.mapInArrow(counted, "person string, reports long").groupBy("person").agg(total("reports"))
    reports = {row[0]: int(row[1]) for row in counts.collect()}
    ledger.charge_counts(reports, recipe.mechanism, label="spark frame")


def _reports(recipe: Recipe, lon: Any, lat: Any, record: Any) -> "pd.DataFrame":
    """Return the columns lon and lat of one batch of SQL rows."""
    import pandas as pd
    import pyarrow as pa

    columns = {"id": record, "lon": lon.astype("float64"), "lat": lat.astype("float64")}
    batch = pa.RecordBatch.from_pandas(pd.DataFrame(columns), preserve_index=False)
    return pd.DataFrame(recipe.obfuscate(batch).to_pandas()[["lon", "lat"]])
