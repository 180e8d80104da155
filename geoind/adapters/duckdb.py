"""DuckDB: `obfuscate` for relations, and a function for SQL that `register` adds to a connection."""

from typing import TYPE_CHECKING, Any, Unpack
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from geoind.accounting.record import PARQUET_KEY, ReleaseRecord
from geoind.errors import InvalidInputError
from geoind.extras import require
from geoind.keys import KeyLike
from geoind.mechanisms.protocol import Mechanism
from geoind.pipeline import Budget
from geoind.tables import stream
from geoind.tables.recipe import Missing, Options, Recipe, with_options

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

__all__ = ["obfuscate", "record_of", "register"]

_records: "WeakKeyDictionary[Any, ReleaseRecord]" = WeakKeyDictionary()


@with_options
def obfuscate(
    relation: "DuckDBPyRelation",
    *,
    ledger: Budget | None = None,
    job: str = "relation",
    **options: Unpack[Options],
) -> "DuckDBPyRelation":
    """Return a relation of reports in place of true locations, and only the kept columns.

    The query of the relation runs once, for the needed columns. The reports are in memory, and are not drawn again
    when the returned relation is read again. `record_of(reports)` is the record of the release.

    Parameters
    ----------
    relation : duckdb.DuckDBPyRelation
        What `connection.sql(...)` or `connection.table(...)` returns. Places are columns of degrees, or a GEOMETRY
        or WKB with `crs`.
    ledger : Ledger, optional
        Charges all persons for their reports, or none. The same release again under the same key is free.
    job : str
        The label of the charge in the ledger.
    **options
        The keywords of `geoind.tables.Recipe.of`: `person` and one of `epsilon`, `level` and `radius`, `mechanism`
        are needed. A query without ORDER BY may give its rows in another order at the next run: with a `key` name
        `id_column`, too, so that the same records have the same reports.

    Examples
    --------
    >>> import duckdb
    >>> connection = duckdb.connect()
    >>> trips = connection.sql("SELECT 'ana' AS rider, 7.5 AS fare, 2.2945 AS lon, 48.8584 AS lat")
    >>> reports = obfuscate(trips, person="rider", keep=["fare"], epsilon=0.01)
    >>> reports.columns, record_of(reports).epsilon
    (['fare', 'lon', 'lat'], 0.01)
    """
    if not hasattr(relation, "to_arrow_table") or not hasattr(relation, "project"):
        raise InvalidInputError(f"relation must be one of DuckDB, got {type(relation).__name__}")
    names = stream.projected(Recipe.of(**options), relation.limit(0).to_arrow_table().schema)
    folded = [name.casefold() for name in relation.columns]
    for name in names:
        if folded.count(name.casefold()) > 1:
            raise InvalidInputError(f"several columns are called {name!r}, as DuckDB ignores case: rename them")
    quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    rows = relation.project(quoted).to_arrow_table()
    reader = stream.obfuscate(rows, ledger=ledger, job=job, **options)
    geoind_reports_of_a_relation = reader.read_all()
    # DuckDB finds the variable by its name, unless a table is called so.
    reports = relation.query("geoind_relation", "SELECT * FROM geoind_reports_of_a_relation")
    if reports.columns != geoind_reports_of_a_relation.column_names:
        raise InvalidInputError("no table may be called geoind_reports_of_a_relation")
    _records[reports] = ReleaseRecord.from_json(reader.schema.metadata[PARQUET_KEY])
    return reports


def record_of(reports: "DuckDBPyRelation") -> ReleaseRecord:
    """Return the record of a relation that `obfuscate` returned, for the metadata of a file, for example.

    Examples
    --------
    >>> import duckdb
    >>> record_of(duckdb.sql("SELECT 1"))
    Traceback (most recent call last):
    geoind.errors.InvalidInputError: obfuscate did not return this relation: it has no record
    """
    if reports not in _records:
        raise InvalidInputError("obfuscate did not return this relation: it has no record")
    return _records[reports]


def register(
    connection: "DuckDBPyConnection",
    name: str = "geoind_obfuscate",
    *,
    key: KeyLike,
    epsilon: float | None = None,
    level: float | None = None,
    radius: float | None = None,
    mechanism: Mechanism | None = None,
    missing: Missing = "raise",
) -> None:
    """Add a function to SQL: `geoind_obfuscate(lon, lat, id)` is a STRUCT(lon DOUBLE, lat DOUBLE), a report.

    The function has one row at a time. It cannot enforce what `obfuscate` does: whose reports they are, how many a
    person has and what they add up to, which columns leave, the order of the rows, or a budget. The query decides
    that. Use it for pipelines in SQL whose queries are reviewed.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        The connection whose queries have the function.
    name : str
        The name of the function.
    key : Key or bytes
        The secret under which the noise is drawn: the same record has the same report in every query. It is needed
        here, because a key of its own for each connection would draw every record again.
    epsilon, level, radius, mechanism : optional
        How much noise, as in `geoind.tables.Recipe.of`.
    missing : {"raise", "keep"}
        A row without a place is an error, or has NULL for a report.

    Examples
    --------
    >>> import duckdb
    >>> connection = duckdb.connect()
    >>> register(connection, key=bytes(32), epsilon=0.01)
    >>> query = "SELECT place.lon, place.lat FROM (SELECT geoind_obfuscate(2.2945, 48.8584, 7) AS place)"
    >>> connection.sql(query).fetchall() == connection.sql(query).fetchall()
    True
    """
    require("a function of DuckDB", "duckdb")
    import duckdb

    reports_of = stream.sql_function(
        epsilon=epsilon, level=level, radius=radius, mechanism=mechanism, missing=missing, key=key
    )

    def report(lon: pa.ChunkedArray, lat: pa.ChunkedArray, identity: pa.ChunkedArray) -> pa.StructArray:
        (batch,) = pa.table({"lon": lon, "lat": lat, "id": identity}).combine_chunks().to_batches()
        reports = reports_of(batch)
        return pa.StructArray.from_arrays(reports.T.copy(), ["lon", "lat"], mask=pa.array(np.isnan(reports[:, 0])))

    place = duckdb.struct_type({"lon": "DOUBLE", "lat": "DOUBLE"})
    connection.create_function(name, report, None, place, type="arrow", null_handling="special")
