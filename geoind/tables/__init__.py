"""The one way a table is obfuscated: record batch in, record batch out.

>>> import pyarrow as pa
>>> from geoind.tables import Recipe
>>> batch = pa.RecordBatch.from_pydict({"fare": [7.5, 9.0], "lon": [2.2945, 2.35], "lat": [48.8584, 48.86]})
>>> table = Recipe.of(level=1.386, radius=200).table(batch.schema)
>>> table.report(table.examine(batch)).batch.num_rows
2

`Recipe` says what is done, `Recipe.table(schema)` refuses columns that tell the place by name or type,
`Table.examine(batch)` finds bad rows and refuses columns that repeat the truth, `Table.report(examined)` draws.
"""

from geoind.tables.promise import TablePromise, read_promise, sidecar_of
from geoind.tables.recipe import Missing, Options, Order, Recipe
from geoind.tables.rows import Beside, Examined, Obfuscated, Problem
from geoind.tables.table import Table
from geoind.tables.where import LonLat, Points, places_of

__all__ = [
    "Beside",
    "Examined",
    "LonLat",
    "Missing",
    "Obfuscated",
    "Options",
    "Order",
    "Points",
    "Problem",
    "Recipe",
    "Table",
    "TablePromise",
    "places_of",
    "read_promise",
    "sidecar_of",
]
