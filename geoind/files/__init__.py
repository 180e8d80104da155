"""Files of places: read, obfuscated and written a batch at a time."""

from geoind.files.job import Summary, obfuscate_file

__all__ = ["Summary", "obfuscate_file"]
