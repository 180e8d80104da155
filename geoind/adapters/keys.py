"""Keys that say where they are kept, and never what they are."""

from geoind.tables.keys import VARIABLE, Key, KeyLike, as_key

__all__ = ["VARIABLE", "Key", "KeyLike", "as_key"]
