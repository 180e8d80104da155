"""Dask frames, plain or of geometries, with reports in place of true locations.

Dask runs a partition again when a worker is lost or a result was dropped. The noise is keyed by record, so the
second run gives the same reports.
"""

from collections.abc import Hashable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from geoind.adapters.dataset import BATCH_ROWS, Piece, parquet_files, pieces_of, read_piece
from geoind.adapters.recipe import Options, Recipe
from geoind.errors import InvalidInputError
from geoind.extras import require
from geoind.pipeline import Budget

if TYPE_CHECKING:
    import dask.dataframe as dd
    import pandas as pd
    import pyarrow as pa

__all__ = ["obfuscate", "obfuscate_parquet"]

SPATIAL_INDEXES = {"hilbert_distance", "morton_distance", "geohash"}
"""Indexes that `spatial_shuffle` makes from the true places."""


def obfuscate(
    frame: "dd.DataFrame",
    *,
    ledger: Budget | None = None,
    person_column: str | None = None,
    **options: Unpack[Options],
) -> "dd.DataFrame":
    """Return the lazy frame with reports in place of true locations.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame or dask_geopandas.GeoDataFrame
        With two columns of degrees, or with points as its active geometry, and a column that names each record.
    ledger, person_column : Ledger and str, optional
        Whose budget pays: the totals of all persons are computed and charged in one transaction, now. What
        is computed later, once or more often, is paid for.
    **options
        `epsilon`, or `level` and `radius`, or `mechanism`; `lon` and `lat`; `id_column`, which is needed here;
        `missing`; `key`: see `geoind.adapters.recipe.Recipe`. Without `key` one is made; it lives in the returned
        frame alone.

    Examples
    --------
    >>> import dask.dataframe as dd, pandas as pd
    >>> trips = pd.DataFrame({"trip": [1, 2], "lon": [2.2945, 2.3219], "lat": [48.8584, 48.8421]})
    >>> frame = dd.from_pandas(trips, npartitions=2)
    >>> reports = obfuscate(frame, epsilon=0.01, id_column="trip", key=bytes(32))
    >>> bool((reports.compute(scheduler="sync") == reports.compute(scheduler="sync")).all(axis=None))
    True
    """
    recipe = Recipe.of(**options)
    if recipe.id_column is None:
        raise InvalidInputError(
            "id_column must name the column that identifies a record, whatever the partitions; files without one "
            "can be read by obfuscate_parquet"
        )
    if (ledger is None) != (person_column is None):
        raise InvalidInputError("ledger and person_column go together: give both or neither")
    if frame.index.name in SPATIAL_INDEXES:
        raise InvalidInputError(
            f"the index {frame.index.name!r} tells the true places: reset_index(drop=True) first"
        )
    recipe = _with_geometry(frame._meta, recipe)
    # The empty frame meets every check of columns, types and CRS.
    _obfuscate_partition(frame._meta, recipe)
    if ledger is not None and person_column is not None:
        _charge(frame, recipe, ledger, person_column)
    reports = frame.map_partitions(_obfuscate_partition, recipe, meta=frame._meta)
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
    >>> folder = Path(tempfile.mkdtemp())
    >>> pd.DataFrame({"lon": [2.2945], "lat": [48.8584]}).to_parquet(folder / "day.parquet")
    >>> obfuscate_parquet(folder, epsilon=0.01, key=bytes(32)).compute(scheduler="sync").shape
    (1, 2)
    """
    require("a Dask frame", "dask")
    import dask.dataframe as dd
    import pyarrow as pa
    import pyarrow.parquet as pq

    recipe = Recipe.of(**options)
    root = str(Path(folder).absolute())
    pieces = [piece for path in parquet_files(root) for piece in pieces_of(root, path)]
    empty = pa.RecordBatch.from_pylist([], schema=pq.read_schema(Path(root) / pieces[0].path))
    meta = recipe.obfuscate_rows(empty, path="", rows=np.arange(0)).to_pandas()
    return dd.from_map(_read_partition, pieces, folder=root, recipe=recipe, meta=meta, label="obfuscate-parquet")


def _read_partition(piece: Piece, folder: str, recipe: Recipe) -> "pd.DataFrame":
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = recipe.schema(pq.read_schema(Path(folder) / piece.path))
    frame: pd.DataFrame = pa.Table.from_batches(read_piece(folder, piece, recipe), schema=schema).to_pandas()
    return frame


def _with_geometry(meta: Any, recipe: Recipe) -> Recipe:
    """Return the recipe with the column of points and its CRS, where the frame has one."""
    if recipe.lon is not None or recipe.lat is not None or not hasattr(meta, "active_geometry_name"):
        return recipe
    name = meta.active_geometry_name
    if name is None or recipe.geometry not in (None, name):
        raise InvalidInputError("the points must be the active geometry: choose them with set_geometry")
    if meta.crs is None:
        raise InvalidInputError("points must have a CRS: without one nobody knows what a metre is; use set_crs")
    return replace(recipe, geometry=name, crs=meta.crs.to_wkt())


def _obfuscate_partition(part: "pd.DataFrame", recipe: Recipe) -> "pd.DataFrame":
    """Return a partition with reports; only the columns that matter go to Arrow and back."""
    import pandas as pd

    batch = _batch(part, recipe, [recipe.id_column])
    kinds = {
        name: object if name == recipe.geometry else np.float64 for name in recipe.place_columns(batch.schema)
    }
    reports = {name: np.empty(len(batch), kind) for name, kind in kinds.items()}
    # In slices that fit the processor's cache; the first also when the partition is empty.
    for start in range(0, max(len(batch), 1), BATCH_ROWS):
        done = recipe.obfuscate(batch.slice(start, BATCH_ROWS))
        for name, values in reports.items():
            values[start : start + BATCH_ROWS] = done[name].to_numpy(zero_copy_only=False)
    frame = part.copy(deep=False)
    for name, values in reports.items():
        if name == recipe.geometry:
            frame[name] = _shapes(values, part[name])
        else:
            frame[name] = pd.Series(values, index=part.index, copy=False).astype(part[name].dtype)
    return frame


def _batch(part: "pd.DataFrame", recipe: Recipe, others: "list[Any]") -> "pa.RecordBatch":
    """Return the columns of places and names, and every column of numbers: they might repeat the places."""
    import pyarrow as pa
    import shapely

    twice = part.columns[part.columns.duplicated()]
    if len(twice):
        raise InvalidInputError(f"column {twice[0]!r} must be there once")
    wanted: set[Hashable] = {*others, recipe.lon or "lon", recipe.lat or "lat"}
    chosen = [
        name
        for name in part.columns
        if name != recipe.geometry and (name in wanted or part[name].dtype.kind == "f")
    ]
    # One thread: a task is one core.
    batch = pa.RecordBatch.from_pandas(part[chosen], preserve_index=False, nthreads=1)
    if recipe.geometry is None:
        return batch
    shapes = part[recipe.geometry].to_numpy()
    if (shapely.get_coordinate_dimension(shapes) > 2).any():
        raise InvalidInputError(f"column {recipe.geometry!r} must hold points of x and y only: use force_2d first")
    return batch.append_column(recipe.geometry, pa.array(shapely.to_wkb(shapes), pa.binary()))


def _shapes(wkb: Any, like: Any) -> Any:
    import geopandas

    return geopandas.GeoSeries.from_wkb(wkb, index=like.index, crs=like.crs)


def _charge(frame: "dd.DataFrame", recipe: Recipe, ledger: Budget, person_column: str) -> None:
    import pandas as pd

    meta = pd.DataFrame({"person": pd.Series(dtype="str"), "reports": pd.Series(dtype="int64")})
    counts = frame.map_partitions(_count_persons, recipe, person_column, meta=meta)
    totals = counts.groupby("person")["reports"].sum().compute()
    reports = {str(person): int(count) for person, count in totals.items()}
    ledger.charge_counts(reports, recipe.mechanism, label="dask frame")


def _count_persons(part: "pd.DataFrame", recipe: Recipe, person_column: str) -> "pd.DataFrame":
    import pandas as pd

    counts = recipe.count_persons(_batch(part, recipe, [person_column]), person_column)
    frame = pd.DataFrame({"person": list(counts), "reports": list(counts.values())})
    return frame.astype({"person": "str", "reports": "int64"})
