"""Files of true places in, files of reports out."""

from geoind.files.job import obfuscate_file, obfuscate_files
from geoind.files.places import read_places
from geoind.files.source import Reading
from geoind.tables.unfinished import cancel

__all__ = ["Reading", "cancel", "obfuscate_file", "obfuscate_files", "read_places"]
