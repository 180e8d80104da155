"""Tables of true places in, tables of reports out: the owner declares whose rows they are and which columns leave.

>>> import pyarrow as pa
>>> from geoind import EACH_ROW
>>> from geoind.tables import obfuscate
>>> trips = pa.table({"fare": [7.5, 9.0], "lon": [2.2945, 2.35], "lat": [48.8584, 48.86]})
>>> obfuscate(trips, person=EACH_ROW, keep=["fare"], level=1.386, radius=200).read_all().column_names
['fare', 'lon', 'lat']
"""

from geoind.accounting.record import PersonTotal, ReleaseRecord, sidecar_of
from geoind.tables.recipe import EACH_FILE, Options, Recipe
from geoind.tables.release import Summary
from geoind.tables.sidecars import read_promise, write_sidecar
from geoind.tables.stream import obfuscate

__all__ = [
    "EACH_FILE",
    "Options",
    "PersonTotal",
    "Recipe",
    "ReleaseRecord",
    "Summary",
    "obfuscate",
    "read_promise",
    "sidecar_of",
    "write_sidecar",
]
