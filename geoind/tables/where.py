"""Where the places of a table are: the names of their columns."""

from collections.abc import Sequence
from dataclasses import dataclass

from geoind.errors import InvalidInputError

__all__ = ["LonLat", "Points", "column_names", "places_of"]


@dataclass(frozen=True)
class LonLat:
    """A place in two columns of degrees."""

    lon: str
    lat: str

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return (self.lon, self.lat)


@dataclass(frozen=True)
class Points:
    """A place in one column of points: the one that the schema declares, or this one, and its CRS."""

    geometry: str | None = None
    crs: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The column."""
        return () if self.geometry is None else (self.geometry,)


def places_of(
    lon: str | Sequence[str] | None, lat: str | Sequence[str] | None, geometry: str | None, crs: str | None
) -> tuple[LonLat | Points, ...]:
    """Return where the places are, as keywords name it; nothing where they do not."""
    if geometry is not None and (lon is not None or lat is not None):
        raise InvalidInputError("give `lon=` and `lat=`, or `geometry=`, not both")
    if crs is not None and (lon is not None or lat is not None):
        raise InvalidInputError("`crs=` is the CRS of a geometry: lon and lat are degrees")
    if geometry is not None or crs is not None:
        return (Points(geometry, crs),)
    lons, lats = column_names(lon, "lon"), column_names(lat, "lat")
    if len(lons) != len(lats):
        raise InvalidInputError(
            f"`lon=` and `lat=` must be given together: got {len(lons)} and {len(lats)} columns"
        )
    names = (*lons, *lats)
    if len(set(names)) < len(names):
        raise InvalidInputError("`lon=` and `lat=` must be different columns")
    return tuple(LonLat(*pair) for pair in zip(lons, lats, strict=True))


def column_names(names: str | Sequence[str] | None, what: str) -> tuple[str, ...]:
    """Return the names of columns that were given as none, one or several."""
    result = () if names is None else (names,) if isinstance(names, str) else tuple(names)
    if not all(isinstance(name, str) for name in result):
        raise InvalidInputError(f"`{what}=` must be names of columns")
    return tuple(dict.fromkeys(result)) if what == "keep" else result
