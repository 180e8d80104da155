"""What a schema says about its places: a stable way to `geoind.tables.geoparquet`."""

from geoind.space.crs import LONLAT, from_lonlat, to_lonlat
from geoind.tables.geoparquet import declared_crs, geometry_columns

__all__ = ["LONLAT", "declared_crs", "from_lonlat", "geometry_columns", "to_lonlat"]
