"""What every engine carries to its workers: a stable way to `geoind.tables.Recipe`."""

from geoind.tables.recipe import Options, Recipe

__all__ = ["Options", "Recipe"]
