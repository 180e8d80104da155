"""Frames of points: `obfuscate_points`, and the accessor `frame.geoind.obfuscate`.

Importing this module adds the accessor to GeoDataFrame and GeoSeries, and to pandas' own frames, whose places are
in columns of degrees.
"""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, Unpack, cast

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa

from geoind.adapters.frames import examined, reported, table_of
from geoind.adapters.traces import answered_frame, as_frame
from geoind.budgets.persons import PersonReports
from geoind.errors import InvalidInputError
from geoind.pipeline import Budget
from geoind.randomness import RandomnessLike
from geoind.tables import Options, Recipe, TablePromise
from geoind.tables.promise import ATTRS_KEY
from geoind.tables.summary import Tally

if TYPE_CHECKING:
    from geopandas import GeoDataFrame, GeoSeries

__all__ = ["obfuscate_points", "obfuscate_traces"]

log = logging.getLogger("geoind")

Frame: TypeAlias = "GeoSeries | GeoDataFrame | pd.DataFrame"
Given = TypeVar("Given", bound=Frame)


def obfuscate_points(
    points: Given,
    *,
    ledger: Budget | None = None,
    person: "str | Sequence[str] | pd.Series[Any] | None" = None,
    rng: RandomnessLike = None,
    **options: Unpack[Options],
) -> Given:
    """Return the series or frame with a report in place of each true point.

    Index, name, CRS and the other columns stay as they are; one that tells the place is an error. The noise is
    made on the globe, whatever the CRS: in a geographic WGS84 frame reports are places of the public lattice
    (5 decimals); in any other CRS each report is such a place, re-projected. A report has no height, since heights
    tell places apart. `attrs["geoind"]` holds the promise.

    Parameters
    ----------
    points : GeoSeries, GeoDataFrame or DataFrame
        True points, with a CRS. Of a frame the active geometry is replaced, or the columns `lon` and `lat`; in a
        frame of pandas those called lon, lng, long or longitude, and lat or latitude, need no naming.
    ledger, person : Ledger, and a column of the frame or one name per row
        Whose budget pays for the reports: one report per row, all of them or none. Of a series `person`
        may also be one name, who pays for all.
    rng : RandomnessLike
        As in `geoind.obfuscate`; labels of a `KeyedRandomness` are one per row.
    **options
        `epsilon`, or `level` and `radius`, or `mechanism`; `drop` and `keep`; `missing`; `order`; `key` and
        `id_column`; `person_column`: see `geoind.tables.Recipe`.

    Examples
    --------
    >>> import geopandas
    >>> towers = geopandas.GeoDataFrame(
    ...     {"name": ["Eiffel", "Montparnasse"]},
    ...     geometry=geopandas.points_from_xy([2.2945, 2.3219], [48.8584, 48.8421]),
    ...     crs=4326,
    ... )
    >>> reports = obfuscate_points(towers, level=1.386, radius=200)
    >>> list(reports.columns), reports.crs == towers.crs
    (['name', 'geometry'], True)
    >>> towers.geoind.obfuscate(epsilon=0.01).shape
    (2, 2)
    >>> plain = pd.DataFrame({"name": ["Eiffel"], "lon": [2.2945], "lat": [48.8584]})
    >>> plain.geoind.obfuscate(epsilon=0.01).columns.tolist()
    ['name', 'lon', 'lat']
    """
    if isinstance(points, geopandas.GeoSeries):
        frame = points.to_frame(points.name if isinstance(points.name, str) else "geometry")
    elif isinstance(points, pd.DataFrame):
        frame = points
    else:
        raise InvalidInputError(f"points must be a GeoSeries or a frame, got {type(points).__name__}")
    if person is not None and options.get("person_column") is not None:
        raise InvalidInputError("person and person_column both say who pays: give one of them")
    if isinstance(person, str) and frame is points:
        options, person = {**options, "person_column": person}, None
    recipe = Recipe.of(**options)
    recipe.refuse_traces()
    recipe.refuse_identity_without_key()
    table = table_of(frame, recipe)
    looked_at = examined(frame, table).raise_problems()
    counts = PersonReports()
    if person is not None or table.recipe.person_column is not None:
        counts = table.person_reports(looked_at, persons=None if person is None else _names(points, person))
    elif ledger is not None:
        raise InvalidInputError("a ledger needs person: a column, or the names of the persons to charge")
    if ledger is None and person is not None:
        raise InvalidInputError("ledger and person go together: give both or neither")
    recipe.charge(ledger, counts, label="frame")
    made = table.report(looked_at, rng=rng)
    tally = Tally()
    tally.add(table, looked_at, made)
    log.info("%s", tally.summary(table.recipe.mechanism, table.promise))
    result = reported(frame, table, made)
    return cast("Given", result if frame is points else result.geometry.rename(points.name))


def obfuscate_traces(
    traces: object,
    *,
    person: str,
    time: str,
    ledger: Budget | None = None,
    **options: Unpack[Options],
) -> "pd.DataFrame | GeoDataFrame":
    """Return a frame of traces with what a session of each person answers in place of each true point.

    Rows of one person must be in the order of time; persons may be mixed. `attrs["geoind"]` holds the promise:
    its epsilon is that of a person's whole trace, the largest among all persons.

    Parameters
    ----------
    traces : GeoDataFrame, DataFrame, or a Trajectory or TrajectoryCollection of MovingPandas
        True points with a CRS, or columns of degrees. Of trajectories the frame of all their points is returned.
    person, time : str
        The columns, or levels of the index, that say who and when. Times without a zone are taken as UTC.
    ledger : Ledger, optional
        Pays for all persons' whole traces, or for none; then `key` is needed, too.
    **options
        `epsilon`, or `level` and `radius`, of one fresh report; `method`, "switching" (the default), "sparse",
        "predictive", "independent" or a `TraceMethod`; `lon` and `lat`; `drop` and `keep`; `missing`; `key`: see
        `geoind.tables.Recipe`.

    Examples
    --------
    >>> import pandas
    >>> walk = pandas.DataFrame({"who": ["ana"] * 2, "at": [0, 60], "lon": [2.29, 2.2901], "lat": [48.86, 48.86]})
    >>> reports = obfuscate_traces(walk, person="who", time="at", level=1.386, radius=200)
    >>> list(reports.columns), len(reports)
    (['who', 'at', 'lon', 'lat'], 2)
    """
    options["trace"] = (person, time)
    recipe = Recipe.of(**options)
    recipe.refuse_ledger_without_persons(ledger)
    result, tally, table = answered_frame(as_frame(traces), recipe, ledger)
    promise = TablePromise.from_json(result.attrs[ATTRS_KEY])
    log.info("%s", tally.summary(table.recipe.mechanism, promise))
    return result


@pd.api.extensions.register_dataframe_accessor("geoind")
@pd.api.extensions.register_series_accessor("geoind")
class GeoindAccessor:
    """`frame.geoind` and `series.geoind`."""

    def __init__(self, points: Frame) -> None:
        if not isinstance(points, (pd.DataFrame, geopandas.GeoSeries)):
            # The error that `hasattr` expects: pandas offers an accessor to every series.
            raise AttributeError("only a frame or a GeoSeries has .geoind")
        self._points = points

    def obfuscate(
        self,
        *,
        ledger: Budget | None = None,
        person: "str | Sequence[str] | pd.Series[Any] | None" = None,
        rng: RandomnessLike = None,
        **options: Unpack[Options],
    ) -> Frame:
        """Return `obfuscate_points(frame, ...)`."""
        return obfuscate_points(self._points, ledger=ledger, person=person, rng=rng, **options)


def _names(points: Frame, person: Any) -> pa.Array:
    """Return who pays for each row."""
    if isinstance(person, str):
        person = [person] * len(points)
    if isinstance(person, pd.Series) and not person.index.equals(points.index):
        raise InvalidInputError("person must have the index of the points")
    names = np.asarray(person, object)
    if names.shape != (len(points),):
        raise InvalidInputError(f"person must be one name per row: {len(names)} for {len(points)}")
    try:
        column = pa.array(names, from_pandas=True)
    except pa.ArrowException:
        raise InvalidInputError("person must be text or whole numbers, got several kinds") from None
    if column.null_count:
        row = int(np.argmax(pd.isna(names)))
        raise InvalidInputError(f"person must be given for every report, row {row} has none")
    return column
