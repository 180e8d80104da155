"""Names of columns and files: which columns are coordinates, and what a message may show of a name."""

import re
from collections.abc import Iterable, Sequence

from geoind.errors import InvalidInputError

__all__ = ["coordinate_columns", "listed", "named_path"]

LAT_NAMES = ("lat", "latitude")
LON_NAMES = ("lon", "lng", "long", "longitude")


def coordinate_columns(names: Sequence[str]) -> tuple[str, str]:
    """Return the names of the longitude and the latitude: the only columns with one of the usual names.

    Examples
    --------
    >>> coordinate_columns(["id", "Latitude", "Longitude"])
    ('Longitude', 'Latitude')
    """
    return _only(names, LON_NAMES, "lon"), _only(names, LAT_NAMES, "lat")


def _only(names: Sequence[str], usual: Sequence[str], option: str) -> str:
    found = [name for name in names if name.strip().lower().rpartition(".")[2] in usual]
    if len(found) == 1:
        return found[0]
    problem = "no column is" if not found else "several columns are"
    raise InvalidInputError(
        f"{problem} called {', '.join(usual[:-1])} or {usual[-1]}: name the column with `{option}=`; "
        f"the columns are {listed(names)}"
    )


def listed(names: Iterable[str]) -> str:
    """Return names for a message, without those that may be values: where a header is missing, true places.

    Examples
    --------
    >>> listed(["trip", "lat", "h3_9"]), listed(["7", "48.8584", "2.2945"])
    ('trip, lat, h3_9', '7, ..., ...')
    """
    return ", ".join("..." if sum(map(str.isdigit, str(name))) > 2 else str(name) for name in names)


def named_path(path: str) -> str:
    """Return a path for a message, without what may be a coordinate.

    Examples
    --------
    >>> named_path("2024-05/trips.csv"), named_path("48.8584_2.2945/trips.csv")
    ('2024-05/trips.csv', '..._.../trips.csv')
    """
    return re.sub(r"\d+[.,]\d{3,}", "...", path)
