"""Frames of traces: each person's own session answers, whatever carries the rows."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dask.dataframe as dd
import dask_geopandas
import geopandas
import numpy as np
import pandas as pd
import pytest

from geoind import BudgetExceededError, InvalidInputError, Ledger, TraceSession
from geoind.adapters import dask as dask_door
from geoind.adapters import spark as spark_door
from geoind.adapters.geopandas import obfuscate_points, obfuscate_traces
from geoind.tables import Recipe, TablePromise

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEY = bytes(range(32))
OPTIONS: dict[str, Any] = {"epsilon": 0.01, "key": KEY}


def walks(persons: int = 5, steps: int = 30) -> pd.DataFrame:
    """Return people between two places, mixed by time."""
    rng = np.random.default_rng(1)
    rows = [
        (f"p{person}", pd.Timestamp("2024-05-01", tz="UTC") + pd.Timedelta(minutes=7 * step), *place)
        for step in range(steps)
        for person in range(persons)
        for place in [np.add((2.35, 48.9) if step // 8 % 2 else (2.29, 48.85), rng.normal(0, 1e-4, 2))]
    ]
    return pd.DataFrame(rows, columns=["who", "when", "lon", "lat"])


def points(frame: pd.DataFrame, crs: int = 4326) -> geopandas.GeoDataFrame:
    geometry = geopandas.points_from_xy(frame["lon"], frame["lat"], crs=4326)
    return geopandas.GeoDataFrame(frame.drop(columns=["lon", "lat"]), geometry=geometry).to_crs(crs)


def degrees(frame: geopandas.GeoDataFrame) -> geopandas.GeoDataFrame:
    return frame.assign(lon=frame.geometry.x, lat=frame.geometry.y)


def alone(frame: pd.DataFrame) -> tuple[dict[tuple[str, float], tuple[float, float]], dict[str, float]]:
    """Return what each person's own session answers, by person and time, and what it cost."""
    trace = Recipe.of(epsilon=0.01, trace="who,when").trace
    assert trace is not None
    sessions: dict[str, TraceSession] = {}
    answers = {}
    for who, when, lon, lat in frame.sort_values("when").itertuples(index=False):
        session = sessions.setdefault(who, TraceSession(trace.method, key=KEY, person=who))
        answer = session.report(lat=lat, lon=lon, time=when.timestamp())
        answers[who, when.timestamp()] = (answer.lon, answer.lat)
    return answers, {who: session.spent for who, session in sessions.items()}


def told(frame: Any) -> dict[tuple[str, float], tuple[float, float]]:
    rows = zip(frame["who"], frame["when"], frame["lon"], frame["lat"], strict=True)
    return {(who, pd.Timestamp(when).timestamp()): (lon, lat) for who, when, lon, lat in rows}


def test_a_plain_frame_gets_what_sessions_answer_and_keeps_its_order_and_index() -> None:
    frame = walks().set_index(pd.Index(range(1000, 1150)))
    reports = obfuscate_traces(frame, person="who", time="when", **OPTIONS)
    answers, spent = alone(frame)
    assert told(reports) == answers
    assert reports.index.equals(frame.index)
    assert reports["when"].equals(frame["when"])
    promise = TablePromise.from_json(reports.attrs["geoind"])
    assert promise.epsilon == pytest.approx(max(spent.values()))
    assert promise.mechanism == "Switching"


@pytest.mark.parametrize("crs", [4326, 2154])
def test_points_of_a_geodataframe_get_the_same_answers_in_their_crs(crs: int) -> None:
    frame = walks()
    reports = obfuscate_traces(points(frame, crs), person="who", time="when", **OPTIONS)
    assert isinstance(reports, geopandas.GeoDataFrame)
    assert reports.crs == crs
    # A place that was projected and back is another one by nanometres, and has other noise.
    if crs == 4326:
        assert told(degrees(reports)) == alone(frame)[0]
    assert len(reports) == len(frame)


@dataclass
class Trajectories:
    """What MovingPandas' TrajectoryCollection and Trajectory offer: the frame of their points, by time."""

    frame: geopandas.GeoDataFrame

    def to_point_gdf(self) -> geopandas.GeoDataFrame:
        return self.frame


def test_trajectories_of_movingpandas_have_their_times_in_the_index() -> None:
    frame = points(walks()).set_index("when").tz_localize(None)
    frame.index.name = "t"
    reports = obfuscate_traces(Trajectories(frame), person="who", time="t", **OPTIONS)
    assert isinstance(reports, geopandas.GeoDataFrame)
    assert told(degrees(reports.tz_localize("UTC").reset_index(names="when"))) == alone(walks())[0]
    assert reports.index.equals(frame.index)


FLAWS: dict[str, tuple[str, Any, str]] = {
    "back": ("when", pd.Timestamp("2020-01-01", tz="UTC"), "row 100: the time goes back for person 'p0'"),
    "twice": ("when", pd.Timestamp("2024-05-01T02:13Z"), "row 100: person 'p0' is at two places at the same time"),
    "no time": ("when", pd.NaT, "row 100: there is no time"),
    "no person": ("who", None, "row 100: there is no person"),
    "space": ("who", "p0 ", "row 100: person must be a name without space"),
    "NaN": ("lat", np.nan, "row 100: there is no place"),
    "off the globe": ("lat", 91.0, "row 100"),
}


@pytest.mark.parametrize("case", FLAWS)
def test_a_bad_row_of_a_frame_is_named_and_nothing_is_charged(case: str) -> None:
    column, value, message = FLAWS[case]
    frame = walks()
    frame.loc[100, column] = value
    with Ledger("sqlite://", budget=1) as ledger:
        with pytest.raises(InvalidInputError, match=message):
            obfuscate_traces(frame, person="who", time="when", ledger=ledger, **OPTIONS)
        assert ledger.spent("p0") == 0


def test_persons_of_a_frame_pay_for_their_whole_traces_all_or_none() -> None:
    frame, spent = walks(), alone(walks())[1]
    with Ledger("sqlite://", budget=1) as ledger:
        obfuscate_traces(frame, person="who", time="when", ledger=ledger, **OPTIONS)
        assert {who: ledger.spent(who) for who in spent} == pytest.approx(spent)
    with Ledger("sqlite://", budget=max(spent.values()) - 0.001) as ledger:
        with pytest.raises(BudgetExceededError):
            obfuscate_traces(frame, person="who", time="when", ledger=ledger, **OPTIONS)
        assert [ledger.spent(who) for who in spent] == [0] * len(spent)
    with Ledger("sqlite://", budget=1) as ledger, pytest.raises(InvalidInputError, match="needs key"):
        obfuscate_traces(frame, person="who", time="when", ledger=ledger, epsilon=0.01)


def test_what_is_no_frame_and_columns_that_tell_the_way_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="must be a frame"):
        obfuscate_traces([1, 2], person="who", time="when", **OPTIONS)
    with pytest.raises(InvalidInputError, match="'speed' tells how somebody moved"):
        obfuscate_traces(walks().assign(speed=3.0), person="who", time="when", **OPTIONS)
    with pytest.raises(InvalidInputError, match="trace needs a person's rows together"):
        obfuscate_points(points(walks()), trace="who,when", **OPTIONS)


@pytest.mark.parametrize("partitions", [1, 3])
def test_dask_brings_persons_together_whatever_the_partitions(partitions: int) -> None:
    frame = walks().sample(frac=1, random_state=0)
    parts = dd.from_pandas(frame, npartitions=partitions, sort=False)
    reports = dask_door.obfuscate(parts, trace=("who", "when"), **OPTIONS)
    once, again = (reports.compute(scheduler="sync") for _ in range(2))
    assert told(once) == told(again) == alone(walks())[0]
    assert list(once.columns) == list(reports.columns) == ["who", "when", "lon", "lat"]
    assert sorted(once.index) == sorted(frame.index)


def test_dask_points_get_the_same_answers_and_lose_their_outlines() -> None:
    parts = dask_geopandas.from_geopandas(points(walks()), npartitions=3)
    parts.calculate_spatial_partitions()
    reports = dask_door.obfuscate(parts, trace=("who", "when"), **OPTIONS)
    made = reports.compute(scheduler="sync")
    assert told(degrees(made)) == alone(walks())[0]
    assert getattr(reports, "spatial_partitions", None) is None


def test_one_person_typed_in_two_ways_is_one_person_of_dask_too() -> None:
    frame = walks(2)
    frame["who"] = np.where(np.arange(len(frame)) % 4 < 2, "Zoe\u0308", "Zo\u00eb")
    frame["when"] = pd.Timestamp("2024-05-01", tz="UTC") + pd.to_timedelta(np.arange(len(frame)), unit="min")
    with Ledger("sqlite://", budget=10) as ledger:
        parts = dd.from_pandas(frame, npartitions=3)
        dask_door.obfuscate(parts, trace=("who", "when"), method="independent", ledger=ledger, **OPTIONS)
        assert ledger.spent("Zo\u00eb") == pytest.approx(0.01 * len(frame))


def test_dask_charges_whole_traces_once_all_or_none() -> None:
    parts, spent = dd.from_pandas(walks(), npartitions=2), alone(walks())[1]
    with Ledger("sqlite://", budget=1) as ledger:
        reports = dask_door.obfuscate(parts, trace=("who", "when"), ledger=ledger, **OPTIONS)
        assert told(reports.compute(scheduler="sync")) == alone(walks())[0]
        assert {who: ledger.spent(who) for who in spent} == pytest.approx(spent)
    with Ledger("sqlite://", budget=max(spent.values()) - 0.001) as ledger:
        with pytest.raises(BudgetExceededError):
            dask_door.obfuscate(parts, trace=("who", "when"), ledger=ledger, **OPTIONS)
        assert [ledger.spent(who) for who in spent] == [0] * len(spent)


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
def test_spark_brings_persons_together_and_charges_whole_traces(spark: "SparkSession") -> None:
    frame = walks().sample(frac=1, random_state=0)
    answers, spent = alone(walks())
    texts = frame.assign(when=[when.isoformat() for when in frame["when"]])
    rows = spark.createDataFrame(texts.to_dict("records"), "who string, when string, lon double, lat double")
    with Ledger("sqlite://", budget=1) as ledger:
        reports = spark_door.obfuscate(rows.repartition(4), trace=("who", "when"), ledger=ledger, **OPTIONS)
        assert {who: ledger.spent(who) for who in spent} == pytest.approx(spent)
    assert told(pd.DataFrame([row.asDict() for row in reports.collect()])) == answers
    moments = rows.selectExpr("who", "to_timestamp(when) AS when", "lon", "lat")
    made = spark_door.obfuscate(moments.repartition(2), trace=("who", "when"), **OPTIONS)
    seconds = made.selectExpr("who", "unix_seconds(when) AS when", "lon", "lat").collect()
    assert {(row[0], float(row[1])): (row[2], row[3]) for row in seconds} == answers


@pytest.mark.parametrize("columns", [("lat", "when"), ("who", "lat")])
def test_a_coordinate_is_neither_a_person_nor_a_time(columns: tuple[str, str]) -> None:
    frame = walks().astype({"lat": str})
    with pytest.raises(InvalidInputError, match="column 'lat' holds the place"):
        obfuscate_traces(frame, person=columns[0], time=columns[1], **OPTIONS)
    with pytest.raises(InvalidInputError, match="column 'lat' holds the place"):
        dask_door.obfuscate(dd.from_pandas(frame, npartitions=2), trace=columns, **OPTIONS)
