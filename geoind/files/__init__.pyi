from .formats import Reading as Reading
from .job import cancel as cancel
from .places import FileReports as FileReports
from .places import read_lonlat as read_lonlat
from .places import read_places as read_places
from .places import read_reports as read_reports
from .places import read_traces as read_traces
from .places import read_zones as read_zones
