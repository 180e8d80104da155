from .job import cancel as cancel
from .job import obfuscate_files as obfuscate_files
from .places import read_places as read_places
from .reports import FileReports as FileReports
from .reports import read_reports as read_reports
from .source import Reading as Reading
