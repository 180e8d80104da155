"""Files of places: read, obfuscated and written a batch at a time."""

from geoind.files.job import Summary, obfuscate_file
from geoind.files.reports import FileReports, read_reports

__all__ = ["FileReports", "Summary", "obfuscate_file", "read_reports"]
