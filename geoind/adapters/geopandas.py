"""Frames of pandas, geopandas and MovingPandas: `obfuscate`, and the accessor `frame.geoind.obfuscate`.

Importing this module adds the accessor to DataFrame, GeoDataFrame and GeoSeries.
"""

import logging
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

import geopandas
import pandas as pd

from geoind.adapters.frames import refuse_index, reported, table_of
from geoind.errors import InvalidInputError
from geoind.pipeline import Budget
from geoind.tables.parts import Part, corners_of
from geoind.tables.recipe import Options, Recipe, with_options

if TYPE_CHECKING:
    from geopandas import GeoDataFrame, GeoSeries

__all__ = ["obfuscate"]

log = logging.getLogger("geoind")

Frame: TypeAlias = "GeoSeries | GeoDataFrame | pd.DataFrame"


@with_options
def obfuscate(frame: Any, *, ledger: Budget | None = None, job: str = "frame", **options: Unpack[Options]) -> Any:
    """Return the frame with reports in place of true points, and only the kept columns.

    The index stays, so that reports can be joined to the frame; a level that repeats coordinates is an error. Kept
    columns have their own pandas types. Reports are in the CRS of the frame: in a geographic WGS84 frame they are
    places of the public lattice (5 decimals), in any other CRS such places, re-projected. A report has no height.
    `attrs["geoind"]` is the record of the release.

    Parameters
    ----------
    frame : GeoDataFrame, DataFrame, GeoSeries, or a Trajectory or TrajectoryCollection of MovingPandas
        True points, with a CRS, or columns of degrees. Of a GeoDataFrame the active geometry is replaced unless
        columns are named. A GeoSeries has no columns: its `person` is EACH_ROW. Of trajectories the frame of their
        points is returned, whose index is the time.
    ledger : Ledger, optional
        Charges all persons for their reports, or none. The same release again under the same key is free.
    job : str
        The label of the charge in the ledger.
    **options
        The keywords of `geoind.tables.Recipe.of`: `person` and one of `epsilon`, `level` and `radius`, `mechanism`
        are needed. `person`, `time`, `id_column` and `keep` may name levels of the index. With `time` the rows of
        a person must be in the order of time.

    Examples
    --------
    >>> from geoind import EACH_ROW
    >>> towers = geopandas.GeoDataFrame(
    ...     {"name": ["Eiffel", "Montparnasse"], "height": [330, 210]},
    ...     geometry=geopandas.points_from_xy([2.2945, 2.3219], [48.8584, 48.8421]),
    ...     crs=4326,
    ... )
    >>> reports = obfuscate(towers, person=EACH_ROW, keep=["height"], level=1.386, radius=200)
    >>> list(reports.columns), reports.crs == towers.crs
    (['height', 'geometry'], True)
    >>> plain = pd.DataFrame({"rider": ["ana", "ana"], "lon": [2.29, 2.3219], "lat": [48.86, 48.8421]})
    >>> plain.geoind.obfuscate(person="rider", epsilon=0.01).columns.tolist()
    ['lon', 'lat']
    """
    recipe = Recipe.of(**options).with_key()
    points = _points(frame)
    table, batch = table_of(points, recipe)
    refuse_index(points, table, batch)
    part = Part(table)
    release = part.released(lambda: [batch], ledger, job)
    (made,) = part.draw([batch], release)
    log.info("%s", release.summary(corners_of(made[2]), table.left_out, charged=ledger is not None))
    reports = reported(points, table, made)
    if not isinstance(frame, geopandas.GeoSeries):
        return reports
    series, record = reports.geometry.rename(frame.name), reports.attrs
    series.attrs = record
    return series


def _points(frame: Any) -> Any:
    """Return a frame with the points of a frame, a series, or trajectories."""
    if isinstance(frame, pd.DataFrame):
        return frame
    if isinstance(frame, geopandas.GeoSeries):
        return frame.to_frame("geometry")
    if hasattr(frame, "to_point_gdf"):
        return frame.to_point_gdf()
    raise InvalidInputError(
        f"frame must be a DataFrame, a GeoDataFrame, a GeoSeries or trajectories, got {type(frame).__name__}"
    )


@pd.api.extensions.register_dataframe_accessor("geoind")
@pd.api.extensions.register_series_accessor("geoind")
class _Accessor:
    """`frame.geoind` and `series.geoind`."""

    def __init__(self, frame: Frame) -> None:
        if not isinstance(frame, (pd.DataFrame, geopandas.GeoSeries)):
            # The error that `hasattr` expects: pandas offers an accessor to every series.
            raise AttributeError("only a frame or a GeoSeries has .geoind")
        self.obfuscate = MethodType(obfuscate, frame)
