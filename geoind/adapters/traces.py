"""Frames of traces: a session per person, whatever carries the rows.

Pandas, geopandas and MovingPandas give a frame at once; Dask and Spark bring each person's rows together first.
"""

import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from geoind.adapters.frames import examined, reported, table_of
from geoind.budgets.persons import PersonReports
from geoind.errors import InvalidInputError
from geoind.pipeline import Budget
from geoind.tables import Recipe, Table
from geoind.tables.promise import ATTRS_KEY
from geoind.tables.summary import Tally
from geoind.tables.times import seconds_of
from geoind.traces.many import TraceSessions

if TYPE_CHECKING:
    from geopandas import GeoDataFrame

__all__ = [
    "PERSON",
    "answered_frame",
    "as_frame",
    "charge_rows",
    "costs_frame",
    "in_time",
    "label_of",
]

PERSON = "geoind person"
"""A column that brings a person's rows together, while a frame is on its way."""


def as_frame(traces: object) -> "pd.DataFrame | GeoDataFrame":
    """Return a frame as it is, or the points of MovingPandas' trajectories, whose index is the time."""
    if isinstance(traces, pd.DataFrame):
        return traces
    if hasattr(traces, "to_point_gdf"):
        points: GeoDataFrame = traces.to_point_gdf()
        return points
    raise InvalidInputError(
        f"traces must be a frame, or trajectories of MovingPandas, got {type(traces).__name__}"
    )


def label_of(person: object) -> str:
    """Return what brings a person's rows together; whether it is a name is looked at later."""
    return unicodedata.normalize("NFC", str(person))


def in_time(frame: Any, time: str) -> Any:
    """Return the rows of a frame in the order of their times."""
    column = frame[time] if time in frame.columns else frame.index.get_level_values(time)
    array = pa.array(column, from_pandas=True)
    seconds, _, _ = seconds_of(array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array)
    return frame.iloc[np.argsort(seconds, kind="stable")]


def answered_frame(frame: Any, recipe: Recipe, ledger: Budget | None = None) -> tuple[Any, Tally, Table]:
    """Return a frame of whole persons with the answers of their sessions, paid for, and what was counted."""
    table, sessions = table_of(frame, recipe), recipe.sessions()
    looked_at = examined(frame, table).raise_problems()
    made = table.report(looked_at, sessions=sessions)
    if ledger is not None:
        persons = table.person_reports(looked_at, reports=made.reports)
        recipe.charge(ledger, persons, label="frame", costs=sessions.costs)
    tally = Tally()
    tally.add(table, looked_at, made)
    result = reported(frame, table, made)
    result.attrs = {ATTRS_KEY: table.promise.for_traces(sessions.spent.values()).to_json()}
    return result, tally, table


def costs_frame(sessions: TraceSessions, persons: PersonReports) -> pd.DataFrame:
    """Return the charges of each person, one row per epsilon, as a frame."""
    tokens = persons.tokens or {}
    rows = [
        (name, cost, count, tokens[str(name)])
        for name, counts in sessions.costs.items()
        for cost, count in counts.items()
    ]
    frame = pd.DataFrame(rows, columns=["person", "epsilon", "answers", "token"])
    return frame.astype({"person": "str", "epsilon": "float64", "answers": "int64", "token": "str"})


def charge_rows(ledger: Budget, rows: Iterable[tuple[str, float, int, str]], *, label: str) -> None:
    """Charge the rows of such frames: all persons or none; persons with a stored token are not charged."""
    costs: dict[str, dict[float, int]] = {}
    tokens: dict[str, str] = {}
    for person, epsilon, answers, token in rows:
        of_person = costs.setdefault(person, {})
        of_person[epsilon] = of_person.get(epsilon, 0) + answers
        tokens[person] = token
    ledger.charge_all(costs, label=label, once=tokens)
