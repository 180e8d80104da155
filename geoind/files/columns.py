"""Which columns hold the coordinates."""

import re
from collections.abc import Sequence

from geoind.errors import InvalidInputError

__all__ = ["coordinate_columns", "telling_columns"]

LAT_NAMES = ("lat", "latitude")
LON_NAMES = ("lon", "lng", "long", "longitude")

TELLING = re.compile(
    r"(^|[_. ])(lat|latitude|lon|lng|long|longitude|coordinates?|geom|geometry|wkt|wkb|geohash|h3|s2"
    r"|address|street|postcode|zip)($|[_. ])",
    re.IGNORECASE,
)


def coordinate_columns(names: Sequence[str], lon: str | None, lat: str | None) -> tuple[str, str]:
    """Return the names of the longitude and the latitude: as chosen, or the only ones that look like it.

    Examples
    --------
    >>> coordinate_columns(["id", "Latitude", "Longitude"], None, None)
    ('Longitude', 'Latitude')
    """
    chosen_lon = _choose(names, lon, LON_NAMES, "--lon")
    chosen_lat = _choose(names, lat, LAT_NAMES, "--lat")
    if chosen_lon == chosen_lat:
        raise InvalidInputError("--lon and --lat must be two columns")
    return chosen_lon, chosen_lat


def _choose(names: Sequence[str], chosen: str | None, usual: Sequence[str], option: str) -> str:
    found = [name for name in names if (name.strip().lower() in usual if chosen is None else name == chosen)]
    if len(found) == 1:
        return found[0]
    if chosen is not None:
        raise InvalidInputError(
            f"{option}: there {'is no' if not found else 'are several'} {chosen!r} in the file"
        )
    problem = "no column is" if not found else "several columns are"
    raise InvalidInputError(f"{problem} called {', '.join(usual[:-1])} or {usual[-1]}: choose it with {option}")


def telling_columns(names: Sequence[str]) -> list[str]:
    """Return the names that sound as if their columns told a place, too.

    Examples
    --------
    >>> telling_columns(["name", "home_address", "dropoff_latitude", "platform"])
    ['home_address', 'dropoff_latitude']
    """
    return [name for name in names if TELLING.search(name)]
