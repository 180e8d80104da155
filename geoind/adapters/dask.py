"""Dask frames, plain or of geometries, with reports in place of true locations.

Dask runs a partition again when a worker is lost or a result was dropped. The noise is keyed by record, so the
second run gives the same reports.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import geopandas
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from geoind.adapters.dataset import BATCH_ROWS, Piece, count_reports, parquet_files, pieces_of, read_piece
from geoind.adapters.frames import examined, placed, reported, table_of
from geoind.adapters.traces import (
    PERSON,
    answered_frame,
    charge_rows,
    costs_frame,
    in_time,
    label_of,
)
from geoind.budgets.persons import PersonReports
from geoind.errors import InvalidInputError
from geoind.extras import require
from geoind.pipeline import Budget
from geoind.tables import Options, Points, Recipe
from geoind.tables.promise import ATTRS_KEY
from geoind.tables.tracing import answered

if TYPE_CHECKING:
    import dask.dataframe as dd

__all__ = ["obfuscate", "obfuscate_parquet"]

SHUFFLE = "use Dask's own shuffle on the reports, with order='keep' here"


def obfuscate(
    frame: "dd.DataFrame", *, ledger: Budget | None = None, **options: Unpack[Options]
) -> "dd.DataFrame":
    """Return the lazy frame with reports in place of true locations.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame or dask_geopandas.GeoDataFrame
        With columns of degrees, or with points as its active geometry, and a column that names each record.
    ledger : Ledger, optional
        Whose budgets pay: those of the persons that `person_column` names. Their totals are computed and charged
        in one transaction, now. What is computed later, once or more often, is paid for.
    **options
        `epsilon`, or `level` and `radius`, or `mechanism`; `lon` and `lat`; `id_column`, which is needed here;
        `person_column`; `drop` and `keep`; `missing`; `order`; `key`: see `geoind.tables.Recipe`. Without `key`
        one is made; it lives in the returned frame alone. For people who move: `trace`, the columns of person and
        time, and `method`. Dask then brings each person's rows together, in the order of time; a ledger charges
        whole traces, and needs `key`.

    Examples
    --------
    >>> import dask.dataframe as dd, pandas as pd
    >>> trips = pd.DataFrame({"trip": [1, 2], "lon": [2.2945, 2.3219], "lat": [48.8584, 48.8421]})
    >>> frame = dd.from_pandas(trips, npartitions=2)
    >>> reports = obfuscate(frame, epsilon=0.01, id_column="trip", key=bytes(32))
    >>> bool((reports.compute(scheduler="sync") == reports.compute(scheduler="sync")).all(axis=None))
    True
    """
    if not hasattr(frame, "map_partitions"):
        raise InvalidInputError(f"frame must be one of Dask, got {type(frame).__name__}")
    recipe = Recipe.of(**options)
    if recipe.trace is not None:
        return _traces(frame, recipe, ledger)
    recipe = recipe.in_parts(SHUFFLE)
    if recipe.id_column is None:
        raise InvalidInputError(
            "id_column must name the column that identifies a record, whatever the partitions; files without one "
            "can be read by obfuscate_parquet"
        )
    recipe.refuse_ledger_without_persons(ledger)
    recipe = placed(frame._meta, recipe.with_key())
    # The empty frame meets every check of columns, names, types and CRS.
    meta = _meta(_obfuscate_partition(frame._meta, recipe))
    if recipe.must_count(ledger):
        recipe.charge(ledger, _reports(frame, recipe), label="dask frame")
    reports = frame.map_partitions(_obfuscate_partition, recipe, meta=meta)
    if not meta.index.equals(frame._meta.index) or type(meta.index) is not type(frame._meta.index):
        # Where the partitions began in an index that is dropped.
        reports = reports.clear_divisions()
    if getattr(reports, "spatial_partitions", None) is not None:
        # The outlines of the partitions' true places.
        reports.spatial_partitions = None
    return reports


def obfuscate_parquet(folder: str | Path, **options: Unpack[Options]) -> "dd.DataFrame":
    """Return a lazy frame of a folder of Parquet files, with reports in place of true locations.

    Without `id_column` a record is its file's path within the folder and its row, so the reports are those of
    `geoind.adapters.dataset.obfuscate_dataset` and of Spark's `obfuscate(frame, root=folder)`. Each worker
    must see the folder under the same path.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pd.DataFrame({"lon": [2.2945], "lat": [48.8584]}).to_parquet(Path(folder) / "day.parquet")
    ...     obfuscate_parquet(folder, epsilon=0.01, key=bytes(32)).compute(scheduler="sync").shape
    (1, 2)
    """
    require("a Dask frame", "dask")
    import dask.dataframe as dd

    recipe = Recipe.of(**options).in_parts(SHUFFLE).with_key()
    root = str(Path(folder).absolute())
    pieces = [piece for path in parquet_files(root) for piece in pieces_of(root, path)]
    if recipe.must_count(None):
        recipe.charge(None, count_reports(root, pieces, recipe)[0], label="")
    schema = recipe.table(pq.read_schema(Path(root) / pieces[0].path)).reported_schema
    meta = _meta(_frame(pa.Table.from_pylist([], schema=schema)))
    return dd.from_map(_read_partition, pieces, folder=root, recipe=recipe, meta=meta, label="obfuscate-parquet")


def _read_partition(piece: Piece, folder: str, recipe: Recipe) -> "pd.DataFrame":
    schema = recipe.table(pq.read_schema(Path(folder) / piece.path), open_ended=True).reported_schema
    return _frame(pa.Table.from_batches(read_piece(folder, piece, recipe), schema=schema))


def _frame(table: pa.Table) -> "pd.DataFrame":
    frame: pd.DataFrame = table.to_pandas()
    frame.attrs = {ATTRS_KEY: table.schema.metadata[b"geoind"].decode()}
    return frame


def _meta(empty: Any) -> Any:
    """Return the empty frame of the reports: of categories each partition has those of its own rows."""
    from dask.dataframe.utils import clear_known_categories

    return clear_known_categories(empty)


def _obfuscate_partition(part: "pd.DataFrame", recipe: Recipe) -> Any:
    """Return a partition with reports, in slices that fit the processor's cache."""
    # Unlike pandas' own it brings categories together.
    from dask.dataframe.dispatch import concat

    table = table_of(part, recipe)
    done = []
    # The first also when the partition is empty.
    for start in range(0, max(len(part), 1), BATCH_ROWS):
        some = part.iloc[start : start + BATCH_ROWS] if len(part) > BATCH_ROWS else part
        made = table.report(examined(some, table).raise_problems())
        done.append(reported(some, table, made))
    return done[0] if len(done) == 1 else concat(done)


def _traces(frame: "dd.DataFrame", recipe: Recipe, ledger: Budget | None) -> "dd.DataFrame":
    """Return the lazy frame with answers of sessions, each person's rows in one partition."""
    trace = recipe.trace
    if trace is None:
        raise InvalidInputError("there are no traces: give trace, the columns of person and time")
    recipe.refuse_ledger_without_persons(ledger)
    recipe = placed(frame._meta, recipe.with_key())
    meta = _meta(_answered(frame._meta.assign(**{PERSON: pd.Series(dtype="object")}), recipe))
    labels = frame[trace.person].map(label_of, meta=(PERSON, "object"))
    together = frame.assign(**{PERSON: labels}).shuffle(on=PERSON)
    if ledger is not None:
        empty = costs_frame(recipe.sessions(), PersonReports())
        costs = together.map_partitions(_costs, recipe, meta=empty).compute()
        charge_rows(ledger, costs.itertuples(index=False, name=None), label="dask frame")
    reports = together.map_partitions(_answered, recipe, meta=meta)
    if getattr(reports, "spatial_partitions", None) is not None:
        # The outlines of the partitions' true places.
        reports.spatial_partitions = None
    return reports


def _answered(part: "pd.DataFrame", recipe: Recipe) -> Any:
    """Return a partition of whole persons with the answers of their sessions."""
    return answered_frame(_rows(part, recipe), recipe)[0]


def _rows(part: "pd.DataFrame", recipe: Recipe) -> Any:
    """Return a partition in the order of time; points are a GeoDataFrame again, which Dask's shuffle forgets."""
    rows: Any = part.drop(columns=PERSON)
    if recipe.places and isinstance(recipe.places[0], Points):
        rows = geopandas.GeoDataFrame(rows, geometry=recipe.places[0].geometry)
    return rows if recipe.trace is None else in_time(rows, recipe.trace.time)


def _costs(part: "pd.DataFrame", recipe: Recipe) -> "pd.DataFrame":
    """Return what the answers to a partition of whole persons cost."""
    sessions, part = recipe.sessions(), _rows(part, recipe)
    table = table_of(part, recipe)
    looked_at = examined(part, table).raise_problems()
    return costs_frame(sessions, table.person_reports(looked_at, reports=[answered(looked_at, sessions)]))


COUNTS = {"person": "str", "reports": "int64", "first": "uint64", "second": "uint64"}


def _reports(frame: "dd.DataFrame", recipe: Recipe) -> PersonReports:
    """Return the reports that each person will be in."""
    meta = pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in COUNTS.items()})
    counts = frame.map_partitions(_count_reports, recipe, meta=meta)
    # Sums of unsigned words wrap around, as sums of tags do.
    totals = counts.groupby("person").sum().compute()
    return PersonReports.of_rows(totals.itertuples(name=None))


def _count_reports(part: "pd.DataFrame", recipe: Recipe) -> "pd.DataFrame":
    table = table_of(part, recipe)
    counts = table.person_reports(examined(part, table).raise_problems())
    return pd.DataFrame(counts.rows(), columns=list(COUNTS)).astype(COUNTS)
