"""Arrow columns that hold places: a stable way to `geoind.tables.places`."""

from geoind.tables.places import GeometryColumn, LonLatColumns, PlaceColumns, column_of

__all__ = ["GeometryColumn", "LonLatColumns", "PlaceColumns", "column_of"]
