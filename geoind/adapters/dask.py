"""Dask frames, plain or of geometries, with reports in place of true locations.

Dask runs a partition again when a worker is lost, a result was dropped, or a lazy frame is used twice. The noise
is keyed by record, so every run gives the same reports. Rows are counted before anything is charged or drawn; a
partition with other rows than those counted gives no reports.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Unpack

import geopandas
import numpy as np
import pyarrow as pa

from geoind.adapters.geopandas import array_of, refuse_index, reported, table_of
from geoind.errors import InvalidInputError
from geoind.extras import require
from geoind.pipeline import Budget
from geoind.tables.columns import persons_in, plain, seconds_of
from geoind.tables.parts import Part, decide_release
from geoind.tables.places import Points
from geoind.tables.recipe import Options, Recipe, with_options
from geoind.tables.release import Release

if TYPE_CHECKING:
    import dask.dataframe as dd
    import pandas as pd

__all__ = ["obfuscate"]

PERSON = "geoind person"
"""A column by which the rows of a person are brought together."""

SHUFFLE = (
    "give `order='keep'` and shuffle the reports with `reports.reset_index(drop=True).shuffle(column)"
    ".map_partitions(lambda part: part.sample(frac=1))`"
)


@with_options
def obfuscate(
    frame: "dd.DataFrame", *, ledger: Budget | None = None, job: str = "dask frame", **options: Unpack[Options]
) -> "dd.DataFrame":
    """Return the lazy frame with reports in place of true locations, and only the kept columns.

    All rows are examined, and persons are charged, before this function returns. That computes the frame once,
    with a ledger twice. Reports are drawn whenever the result is computed, always the same ones. The record of the
    release is the attribute `geoind` of the result, and `attrs["geoind"]` of what it computes.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame or dask_geopandas.GeoDataFrame
        With columns of degrees, or with points as its active geometry. The index stays.
    ledger : Ledger, optional
        Charges all persons for their reports, or none. The same release again under the same key is free.
    job : str
        The label of the charge in the ledger.
    **options
        The keywords of `geoind.tables.Recipe.of`; `order` cannot be "shuffle". `id_column` is needed, except for
        traces (`time`): Dask brings the rows of each person together, in the order of time.

    Examples
    --------
    >>> import dask.dataframe as dd, pandas as pd
    >>> from geoind import EACH_ROW
    >>> trips = pd.DataFrame({"trip": [1, 2], "lon": [2.2945, 2.3219], "lat": [48.8584, 48.8421]})
    >>> frame = dd.from_pandas(trips, npartitions=2)
    >>> reports = obfuscate(frame, person=EACH_ROW, epsilon=0.01, id_column="trip", key=bytes(32))
    >>> bool((reports.compute(scheduler="sync") == reports.compute(scheduler="sync")).all(axis=None))
    True
    """
    if not (hasattr(frame, "map_partitions") and hasattr(frame, "columns")):
        kind = f"{type(frame).__module__.partition('.')[0]}.{type(frame).__name__}"
        raise InvalidInputError(f"frame must be a DataFrame of Dask, got {kind}")
    require("a Dask frame", "dask")
    import dask
    import dask.dataframe as dd
    from dask.dataframe.utils import clear_known_categories

    recipe = Recipe.of(**options).with_key()
    recipe.refuse_shuffle(SHUFFLE)
    if recipe.id_column is None and recipe.time is None:
        raise InvalidInputError(
            "`id_column=` must name the column that identifies a record: the number of a row depends on partitions"
        )
    table, batch = table_of(frame._meta, recipe)
    rows = _projected(frame, table.recipe, set(batch.schema.names))
    # Frozen: Dask would cut the frame otherwise, depending on what follows in a plan.
    parts = list(enumerate(rows.to_delayed()))

    def on_parts(work: Callable[[Part, list[pa.RecordBatch]], Any]) -> Any:
        sent = dask.delayed(work, traverse=False)
        return dask.compute(*(dask.delayed(_worked)(part, table.recipe, number, sent) for number, part in parts))

    release = decide_release(table, on_parts, ledger, job, SHUFFLE)
    small = dask.delayed(release.sent(), traverse=False)
    drawn = [dask.delayed(_drawn)(part, small, number) for number, part in parts]
    # Of categories, each partition has those of its own rows.
    meta = clear_known_categories(_drawn(rows._meta, release, 0))
    bounded = recipe.time is not None or recipe.reports_per_person is not None
    reports = dd.from_delayed(drawn, meta=meta, divisions=None if bounded else rows.divisions, verify_meta=False)
    reports.geoind = release.record
    return reports


def _projected(frame: Any, recipe: Recipe, needed: set[str]) -> Any:
    """Return the needed columns; of traces with each person in one partition."""
    rows = frame[[label for label in frame.columns if str(label) in needed]]
    if recipe.time is None:
        return rows
    for name in (recipe.person_column, recipe.time):
        if name not in rows.columns:
            raise InvalidInputError(f"{name!r} must be a column here: call reset_index() first")
    labels = rows[recipe.person_column].map_partitions(_labels, meta=(PERSON, "object"))
    return rows.assign(**{PERSON: labels}).shuffle(on=PERSON)


def _labels(persons: "pd.Series[Any]") -> "pd.Series[Any]":
    import pandas as pd

    name = str(persons.name)
    names, codes, _ = persons_in(plain(array_of(name, persons)), name)
    return pd.Series(np.array([*names, ""], object)[codes], index=persons.index, name=PERSON, dtype=object)


def _part(rows: Any, recipe: Recipe, number: int) -> tuple[Any, Part, pa.RecordBatch]:
    """Return the rows of a partition, of traces in the order of time, as a frame and as a part."""
    if recipe.time is not None and PERSON in rows.columns:
        rows = rows.drop(columns=PERSON)
        rows = rows.iloc[np.argsort(seconds_of(array_of(recipe.time, rows[recipe.time]))[0], kind="stable")]
        if recipe.places and isinstance(recipe.places[0], Points):
            # Dask's shuffle makes a plain frame of it.
            rows = geopandas.GeoDataFrame(rows, geometry=recipe.places[0].geometry)
    table, batch = table_of(rows, recipe)
    return rows, Part(table, name=f"partition {number}"), batch


def _worked(rows: Any, recipe: Recipe, number: int, work: Callable[[Part, list[pa.RecordBatch]], Any]) -> Any:
    rows, part, batch = _part(rows, recipe, number)
    found = work(part, [batch])
    refuse_index(rows, part.table, batch)
    return found


def _drawn(rows: Any, release: Release, number: int) -> Any:
    rows, part, batch = _part(rows, release.recipe, number)
    (made,) = part.draw([batch], release)
    return reported(rows, part.table, made)
