"""Frames of points: `obfuscate_points`, and the accessor `frame.geoind.obfuscate`.

Importing this module adds the accessor to GeoDataFrame and GeoSeries.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from geoind.adapters.geoparquet import from_lonlat, to_lonlat
from geoind.arrays import FloatArray, as_lonlat
from geoind.budgets.persons import as_person
from geoind.errors import InvalidInputError
from geoind.mechanisms.protocol import Mechanism
from geoind.pipeline import Budget, choose_mechanism, obfuscate_lonlat
from geoind.randomness import KeyedRandomness, RandomnessLike

if TYPE_CHECKING:
    from geopandas import GeoDataFrame, GeoSeries

__all__ = ["obfuscate_points"]

Points: TypeAlias = "GeoSeries | GeoDataFrame"
Mask: TypeAlias = npt.NDArray[np.bool_]


def obfuscate_points(
    points: Points,
    *,
    epsilon: float | None = None,
    level: float | None = None,
    radius: float | None = None,
    mechanism: Mechanism | None = None,
    ledger: Budget | None = None,
    person: "str | Sequence[str] | pd.Series[Any] | None" = None,
    missing: Literal["raise", "keep"] = "raise",
    rng: RandomnessLike = None,
) -> Points:
    """Return the series or frame with a report in place of each true point.

    Index, name, CRS and the other columns stay as they are. The noise is made on the globe, whatever the
    CRS: in a geographic WGS84 frame reports are places of the public lattice (5 decimals); in any other CRS
    each report is such a place, re-projected. A report has no height, since heights tell places apart.

    Parameters
    ----------
    points : GeoSeries or GeoDataFrame
        True points, with a CRS. Of a frame the active geometry is replaced.
    epsilon, level, radius, mechanism
        As in `geoind.obfuscate`.
    ledger, person : Ledger, and a column of the frame or one name per row
        Whose budget pays for the reports: one report per row, all of them or none. Of a series `person`
        may also be one name, who pays for all.
    missing : {"raise", "keep"}
        What to do with missing and empty geometries: refuse, or leave them as they are. Shapes other than
        points are refused always, since leaving them would publish them.
    rng : RandomnessLike
        As in `geoind.obfuscate`; labels of a `KeyedRandomness` are one per row.

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
    """
    import geopandas

    chosen = choose_mechanism(epsilon=epsilon, level=level, radius=radius, mechanism=mechanism)
    if missing not in ("raise", "keep"):
        raise InvalidInputError(f"missing must be 'raise' or 'keep', got {missing!r}")
    if isinstance(points, geopandas.GeoDataFrame):
        truth = _active_geometry(points)
    elif isinstance(points, geopandas.GeoSeries):
        truth = points
    else:
        raise InvalidInputError(f"points must be a GeoSeries or a GeoDataFrame, got {type(points).__name__}")
    present = _present(truth, missing)
    lonlat = _lonlat_of(truth, present)
    if isinstance(points, geopandas.GeoDataFrame):
        _refuse_copies(points, lonlat, present)
    persons = _persons(points, person, present)
    if isinstance(rng, KeyedRandomness):
        rng = rng.only(present)
    reports = obfuscate_lonlat(lonlat, chosen, ledger=ledger, person=persons, rng=rng)
    shapes = truth.to_numpy(copy=True)
    shapes[present] = _shapes_of(reports, truth.crs)
    geometry = geopandas.GeoSeries(shapes, index=truth.index, name=truth.name, crs=truth.crs)
    if isinstance(points, geopandas.GeoSeries):
        return geometry
    frame = points.copy(deep=False)
    frame[truth.name] = geometry
    return frame


@pd.api.extensions.register_dataframe_accessor("geoind")
@pd.api.extensions.register_series_accessor("geoind")
class GeoindAccessor:
    """`frame.geoind` and `series.geoind`."""

    def __init__(self, points: Points) -> None:
        import geopandas

        if not isinstance(points, (geopandas.GeoDataFrame, geopandas.GeoSeries)):
            # The error that `hasattr` expects: pandas offers an accessor to every frame.
            raise AttributeError("only a GeoDataFrame or a GeoSeries has .geoind")
        self._points = points

    def obfuscate(self, **options: Any) -> Points:
        """Return `obfuscate_points(frame, **options)`."""
        return obfuscate_points(self._points, **options)


def _active_geometry(frame: "GeoDataFrame") -> "GeoSeries":
    if frame.active_geometry_name is None:
        raise InvalidInputError("the frame must have an active geometry: choose it with set_geometry")
    return frame.geometry


def _present(truth: "GeoSeries", missing: str) -> Mask:
    """Return which rows have a point, or raise."""
    import shapely

    if truth.crs is None:
        raise InvalidInputError("points must have a CRS: without one nobody knows what a metre is; use set_crs")
    if truth.crs.is_geocentric:
        raise InvalidInputError("points must have a geographic or projected CRS, got a geocentric one")
    shapes = truth.to_numpy()
    absent = np.asarray(shapely.is_missing(shapes) | shapely.is_empty(shapes))
    if missing == "raise" and absent.any():
        raise InvalidInputError(
            f"row {np.argmax(absent)} has no geometry ({np.count_nonzero(absent)} rows in all): "
            "drop such rows, or leave them as they are with missing='keep'"
        )
    other = ~absent & (shapely.get_type_id(shapes) != shapely.GeometryType.POINT)
    if other.any():
        row = int(np.argmax(other))
        raise InvalidInputError(f"geometries must be points, row {row} is a {shapes[row].geom_type}")
    return ~absent


def _lonlat_of(truth: "GeoSeries", present: Mask) -> FloatArray:
    """Return the (n, 2) degrees of the rows with a point, checked."""
    import pyproj
    import shapely

    coordinates = shapely.get_coordinates(truth.to_numpy()[present])
    # Checked among all rows, so that a message names the frame's row.
    rows = np.zeros((len(truth), 2))
    try:
        rows[present] = to_lonlat(coordinates, truth.crs.to_wkt())
    except pyproj.exceptions.ProjError:
        raise InvalidInputError(f"the CRS {truth.crs.name!r} cannot be brought to degrees on WGS84") from None
    return as_lonlat(rows, "points")[present]


def _shapes_of(reports: FloatArray, crs: Any) -> npt.NDArray[np.object_]:
    """Return points in the CRS: a function of the lattice's place alone."""
    import shapely

    coordinates = from_lonlat(reports, crs.to_wkt())
    if not np.isfinite(coordinates).all():
        raise InvalidInputError(
            f"the CRS {crs.name!r} has no coordinates for some reports: use one that covers them"
        )
    return np.asarray(shapely.points(coordinates), object)


def _refuse_copies(frame: "GeoDataFrame", lonlat: FloatArray, present: Mask) -> None:
    """Refuse a frame whose other columns would publish the truth beside the reports."""
    import shapely

    truth = frame.geometry.to_numpy()[present]
    if not len(truth):
        return
    coordinates = np.hstack([lonlat, shapely.get_coordinates(truth)])
    copied: dict[int, Any] = {}
    for name, column in frame.drop(columns=frame.active_geometry_name).items():
        if column.dtype == "geometry" and shapely.equals(column.to_numpy()[present], truth).all():
            raise InvalidInputError(f"the column {name!r} repeats the true points: drop it first")
        if pd.api.types.is_float_dtype(column.dtype):
            values = column.to_numpy(np.float64, na_value=np.nan)[present]
            copied |= {axis % 2: name for axis in range(4) if np.array_equal(values, coordinates[:, axis])}
    if len(set(copied.values())) == 2:
        names = " and ".join(map(repr, copied.values()))
        raise InvalidInputError(f"the columns {names} repeat the true coordinates: drop them first")


def _persons(points: Points, person: Any, present: Mask) -> str | list[str] | None:
    """Return who pays for each row with a point."""
    import geopandas

    if isinstance(person, str):
        if isinstance(points, geopandas.GeoSeries):
            return person
        if person not in points.columns:
            raise InvalidInputError(f"person must name a column of the frame, there is no {person!r}")
        person = points[person]
    elif person is None:
        return None
    if isinstance(person, pd.Series) and not person.index.equals(points.index):
        raise InvalidInputError("person must have the index of the points")
    names = np.asarray(person, object)
    if names.shape != (len(points),):
        raise InvalidInputError(f"person must be one name per row: {len(names)} for {len(points)}")
    nobody = np.asarray(pd.isna(names)) & present
    if nobody.any():
        raise InvalidInputError(f"person must be given for every report, row {np.argmax(nobody)} has none")
    return [as_person(name) for name in names[present]]
