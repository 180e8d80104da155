"""Frames of Polars: importing this module adds `frame.geoind.obfuscate(...)` to DataFrame and LazyFrame."""

from types import MethodType
from typing import Any, Unpack

from geoind.accounting.record import PARQUET_KEY, ReleaseRecord
from geoind.errors import InvalidInputError
from geoind.extras import require
from geoind.pipeline import Budget
from geoind.tables import stream
from geoind.tables.recipe import Options, Recipe, with_options

require("a Polars frame", "polars")

import polars as pl  # noqa: E402

__all__ = ["obfuscate"]


@with_options
def obfuscate(frame: Any, *, ledger: Budget | None = None, job: str = "frame", **options: Unpack[Options]) -> Any:
    """Return the frame with reports in place of true locations, and only the kept columns.

    `reports.geoind.record` is the record of the release. Frames that are made from the reports do not have it. An
    Enum becomes a Categorical, because its type lists entries that no row has.

    Parameters
    ----------
    frame : polars.DataFrame or polars.LazyFrame
        Of a LazyFrame the needed columns are collected once, in this call. The LazyFrame that is returned has the
        drawn reports: collecting it twice does not draw twice.
    ledger : Ledger, optional
        Charges all persons for their reports, or none. The same release again under the same key is free.
    job : str
        The label of the charge in the ledger.
    **options
        The keywords of `geoind.tables.Recipe.of`: `person` and one of `epsilon`, `level` and `radius`, `mechanism`
        are needed.

    Examples
    --------
    >>> places = {"lon": [2.2945, 2.3219], "lat": [48.8584, 48.8421]}
    >>> trips = pl.DataFrame({"rider": ["ana", "ben"], "fare": [7.5, 9.0], **places})
    >>> reports = trips.geoind.obfuscate(person="rider", keep=["fare"], epsilon=0.01)
    >>> reports.columns, reports.geoind.record.epsilon
    (['fare', 'lon', 'lat'], 0.01)
    >>> trips.lazy().geoind.obfuscate(person="rider", epsilon=0.01).collect().shape
    (2, 2)
    """
    rows = frame
    if isinstance(frame, pl.LazyFrame):
        types = {name: kind for name, kind in frame.collect_schema().items() if kind != pl.Object}
        names = stream.projected(Recipe.of(**options), pl.DataFrame(schema=types).to_arrow().schema)
        rows = frame.select(pl.selectors.by_name(names)).collect(engine="streaming")
    if not isinstance(rows, pl.DataFrame):
        raise InvalidInputError(f"frame must be a DataFrame or a LazyFrame of Polars, got {type(frame).__name__}")
    reader = stream.obfuscate(rows.select(pl.exclude(pl.Object)), ledger=ledger, job=job, **options)
    reports: Any = pl.DataFrame(reader.read_all())
    reports = reports.lazy() if isinstance(frame, pl.LazyFrame) else reports
    record = ReleaseRecord.from_json(reader.schema.metadata[PARQUET_KEY])
    reports.geoind = _Namespace(reports, record)
    return reports


@pl.api.register_dataframe_namespace("geoind")
@pl.api.register_lazyframe_namespace("geoind")
class _Namespace:
    """`frame.geoind`.

    Attributes
    ----------
    record : ReleaseRecord or None
        What was released, of a frame that `obfuscate` returned.
    """

    def __init__(self, frame: "pl.DataFrame | pl.LazyFrame", record: ReleaseRecord | None = None) -> None:
        self.obfuscate = MethodType(obfuscate, frame)
        self.record = record
