"""Every engine takes the same declarations and makes the same reports: docs/engines.md, cell by cell."""

import re
import sys
import textwrap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, TypeAlias

import dask.dataframe as dd
import duckdb
import geopandas
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from geoind import BudgetExceededError, InvalidInputError, Ledger, TraceSession
from geoind.adapters import duckdb as on_duckdb
from geoind.adapters import polars as on_polars
from geoind.adapters.geopandas import obfuscate as obfuscate_frame
from geoind.tables import Recipe, ReleaseRecord, obfuscate, read_promise

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")

Request: TypeAlias = pytest.FixtureRequest
Made: TypeAlias = tuple[pd.DataFrame, ReleaseRecord]

PAGE = Path(__file__).parents[2] / "docs" / "engines.md"
RIDERS = ("ana", "ben", "cyd")
SIZE = 60
RNG = np.random.default_rng(5)
TRIPS = pd.DataFrame(
    {
        # Text: a CSV file has nothing else, and 7 is another record than "7".
        "trip": [f"t{number:03}" for number in range(SIZE)],
        "rider": [RIDERS[number % 10 % 3] for number in range(SIZE)],
        "at": np.arange(SIZE) * 60.0,
        "fare": np.arange(SIZE) / 4,
        "note": "SECRET",
        "lon": RNG.normal(2.3, 0.1, SIZE).round(6),
        "lat": RNG.normal(48.8, 0.1, SIZE).round(6),
    }
)
COUNTS = TRIPS["rider"].value_counts().to_dict()
EPSILON = 0.001
POINTS: dict[str, Any] = {"epsilon": EPSILON, "person": "rider", "id_column": "trip", "key": bytes(32)}
TRACES: dict[str, Any] = {"epsilon": EPSILON, "person": "rider", "time": "at", "key": bytes(32)}


def by_stream(trips: pd.DataFrame, _: Request, **options: Any) -> Made:
    reports = obfuscate(pa.Table.from_pandas(trips, preserve_index=False), **options).read_all()
    return reports.to_pandas(), ReleaseRecord.from_json(reports.schema.metadata[b"geoind"])


def by_pandas(trips: pd.DataFrame, _: Request, **options: Any) -> Made:
    reports = trips.geoind.obfuscate(**options)
    return reports, ReleaseRecord.from_json(reports.attrs["geoind"])


def by_geopandas(trips: pd.DataFrame, _: Request, **options: Any) -> Made:
    points = geopandas.GeoSeries.from_xy(trips["lon"], trips["lat"], crs=4326).where(trips["lon"].notna())
    reports = obfuscate_frame(geopandas.GeoDataFrame(trips, geometry=points), **options)
    record = ReleaseRecord.from_json(reports.attrs["geoind"])
    places = {"lon": reports.geometry.x, "lat": reports.geometry.y}
    return pd.DataFrame(reports).drop(columns="geometry").assign(**places), record


def by_polars(trips: pd.DataFrame, _: Request, **options: Any) -> Made:
    reports = on_polars.obfuscate(pl.from_pandas(trips), **options)
    return reports.to_pandas(), reports.geoind.record


def by_lazy_polars(trips: pd.DataFrame, _: Request, **options: Any) -> Made:
    reports = pl.from_pandas(trips).lazy().geoind.obfuscate(**options)
    return reports.collect().to_pandas(), reports.geoind.record


def by_duckdb(trips: pd.DataFrame, _: Request, **options: Any) -> Made:
    reports = on_duckdb.obfuscate(duckdb.connect().from_df(trips), **options)
    return reports.df(), on_duckdb.record_of(reports)


def by_csv(trips: pd.DataFrame, request: Request, **options: Any) -> Made:
    from geoind import obfuscate_file

    folder: Path = request.getfixturevalue("tmp_path")
    target = folder / f"{len(list(folder.iterdir()))}.csv"
    trips.to_csv(folder / "in.csv", index=False)
    obfuscate_file(folder / "in.csv", target, **options)
    return pd.read_csv(target), read_promise(target)


def by_parquet(trips: pd.DataFrame, request: Request, **options: Any) -> Made:
    from geoind import obfuscate_file

    folder: Path = request.getfixturevalue("tmp_path")
    target = folder / f"{len(list(folder.iterdir()))}.parquet"
    trips.to_parquet(folder / "in.parquet", index=False)
    obfuscate_file(folder / "in.parquet", target, **options)
    return pd.read_parquet(target), read_promise(target)


def by_dask(trips: pd.DataFrame, _: Request, **options: Any) -> Made:
    from geoind.adapters import dask as on_dask

    reports = on_dask.obfuscate(dd.from_pandas(trips, npartitions=3), **options).compute(scheduler="sync")
    return reports, ReleaseRecord.from_json(reports.attrs["geoind"])


def by_spark(trips: pd.DataFrame, request: Request, **options: Any) -> Made:
    from geoind.adapters import spark as on_spark

    folder: Path = request.getfixturevalue("tmp_path")
    trips.to_parquet(folder / "in.spark.parquet", index=False)
    frame = request.getfixturevalue("spark").read.parquet(str(folder / "in.spark.parquet")).repartition(3, "trip")
    reports = on_spark.obfuscate(frame, **options)
    return pd.DataFrame([row.asDict() for row in reports.collect()], columns=reports.columns), reports.geoind


ENGINES: dict[str, Callable[..., Made]] = {
    "Arrow stream": by_stream,
    "pandas": by_pandas,
    "geopandas": by_geopandas,
    "Polars": by_polars,
    "Polars, lazy": by_lazy_polars,
    "DuckDB": by_duckdb,
    "Dask": by_dask,
    "Spark": by_spark,
    "CSV file": by_csv,
    "Parquet file": by_parquet,
}


def ledger_of(request: Request, budget: float = 100.0) -> Ledger:
    return Ledger(f"sqlite:///{request.getfixturevalue('tmp_path')}/budgets {budget}.db", budget=budget)


def spent(ledger: Ledger) -> dict[str, float]:
    return {rider: ledger.lifetime(rider) for rider in RIDERS}


def by_trip(reports: pd.DataFrame) -> pd.DataFrame:
    return reports.sort_values("trip").reset_index(drop=True)


# The columns of the table


def check_unit(run: Callable[..., Made], request: Request) -> None:
    for person in ({}, {"person": None}):
        with pytest.raises(InvalidInputError, match="must say whose reports these are"):
            run(TRIPS, request, epsilon=EPSILON, id_column="trip", **person)
    reports, record = run(TRIPS, request, **POINTS, keep=["rider"])
    counts = reports["rider"].value_counts()
    assert record.busiest is not None
    assert record.median is not None
    assert (record.unit, record.persons) == ("column", len(counts))
    assert (record.busiest.reports, record.median.reports) == (counts.max(), counts.median())
    assert record.busiest.epsilon == pytest.approx(EPSILON * counts.max())
    with pytest.raises(InvalidInputError, match="the busiest person has"):
        run(TRIPS, request, **{**POINTS, "epsilon": 0.1})


def check_keep(run: Callable[..., Made], request: Request) -> None:
    reports, record = run(TRIPS, request, **POINTS, keep=["trip", "fare"])
    assert set(reports.columns) == {"trip", "fare", "lon", "lat"}
    assert by_trip(reports)["fare"].tolist() == TRIPS["fare"].tolist()
    assert record.kept == ("trip", "fare")
    assert "SECRET" not in reports.to_json()
    with pytest.raises(InvalidInputError, match="'twin' repeats true coordinates"):
        run(TRIPS.assign(twin=TRIPS["lat"]), request, **POINTS, keep=["twin"])


def check_bounding(run: Callable[..., Made], request: Request) -> None:
    options = {**POINTS, "keep": ["trip", "rider"], "reports_per_person": 4}
    reports, record = run(TRIPS, request, **options)
    wanted, _ = by_stream(TRIPS.sample(frac=1, random_state=1), request, **options)
    assert by_trip(reports)["trip"].tolist() == by_trip(wanted)["trip"].tolist()
    assert by_trip(reports)[["lon", "lat"]].equals(by_trip(wanted)[["lon", "lat"]])
    assert set(reports["rider"].value_counts()) == {4}
    assert record.busiest is not None
    assert record.busiest.reports == 4


def check_ledger(run: Callable[..., Made], request: Request) -> None:
    with ledger_of(request) as ledger:
        run(TRIPS, request, **POINTS, ledger=ledger, job="monday")
        assert spent(ledger) == pytest.approx({rider: EPSILON * count for rider, count in COUNTS.items()})
    with ledger_of(request, budget=EPSILON * (max(COUNTS.values()) - 1)) as small:
        with pytest.raises(BudgetExceededError):
            run(TRIPS, request, **POINTS, ledger=small, job="monday")
        assert set(spent(small).values()) == {0}


def check_once(run: Callable[..., Made], request: Request) -> None:
    with ledger_of(request) as ledger:
        charges = []
        for _ in range(2):
            run(TRIPS, request, **POINTS, ledger=ledger)
            charges.append(spent(ledger))
        assert charges[0] == charges[1]
        moved = TRIPS.assign(lat=TRIPS["lat"] + 0.1 * (TRIPS["rider"] == "ben"))
        run(moved, request, **POINTS, ledger=ledger)
        assert {rider for rider, paid in spent(ledger).items() if paid > charges[0][rider]} == {"ben"}


def check_traces(run: Callable[..., Made], request: Request) -> None:
    method = Recipe.of(**TRACES).method
    assert method is not None
    sessions = {rider: TraceSession(method, key=TRACES["key"], person_id=rider) for rider in RIDERS}
    answers = {}
    row: Any
    for row in TRIPS.itertuples():
        answer = sessions[row.rider].report(lat=row.lat, lon=row.lon, time=row.at)
        answers[row.rider, row.at] = (answer.lon, answer.lat)
    with ledger_of(request) as ledger:
        reports, record = run(TRIPS, request, **TRACES, ledger=ledger)
        assert set(reports.columns) == {"rider", "at", "lon", "lat"}
        rows = zip(reports["rider"], reports["at"], reports["lon"], reports["lat"], strict=True)
        assert {(rider, float(at)): (lon, lat) for rider, at, lon, lat in rows} == answers
        assert spent(ledger) == pytest.approx({rider: session.spent for rider, session in sessions.items()})
    assert record.busiest is not None
    assert record.busiest.epsilon == pytest.approx(max(session.spent for session in sessions.values()))


def check_promise(run: Callable[..., Made], request: Request) -> None:
    options = {**POINTS, "epsilon": None, "level": 0.2, "radius": 200, "keep": ["fare"]}
    _, record = run(TRIPS, request, **options)
    _, wanted = by_stream(TRIPS, request, **options)
    assert record.epsilon == EPSILON
    for name in ("mechanism", "level", "radius", "decimals", "kept", "unit", "persons", "busiest", "median"):
        assert getattr(record, name) == getattr(wanted, name), name


CHECKS: dict[str, Callable[[Callable[..., Made], Request], None]] = {
    "unit": check_unit,
    "keep": check_keep,
    "bounding": check_bounding,
    "ledger": check_ledger,
    "once": check_once,
    "traces": check_traces,
    "promise": check_promise,
}
NAMES = [pytest.param(name, marks=[pytest.mark.jvm] if name == "Spark" else []) for name in ENGINES]


@pytest.mark.parametrize("column", CHECKS)
@pytest.mark.parametrize("engine", NAMES)
def test_each_cell_of_the_table_of_engines_holds(engine: str, column: str, request: Request) -> None:
    CHECKS[column](ENGINES[engine], request)


def test_the_table_of_engines_has_the_cells_that_are_tested() -> None:
    lines = re.findall(r"^\| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    rows = [line.split(" | ") for line in lines]
    start = next(number for number, row in enumerate(rows) if row[0] == "engine")
    table = rows[start : start + len(ENGINES) + 2]
    assert table[0][1:] == [*CHECKS]
    assert [row[0] for row in table[2:]] == [*ENGINES]
    for row in table[2:]:
        assert len(row) == len(CHECKS) + 1
        assert all(cell.strip() not in ("", "no", "-") for cell in row), row[0]


# All engines together


@pytest.mark.parametrize("engine", NAMES)
def test_keyed_reports_are_the_same_on_every_path(engine: str, request: Request) -> None:
    for options in ({}, {"missing": "keep"}):
        trips = TRIPS.assign(lon=TRIPS["lon"].where(TRIPS["fare"] % 1 > 0)) if "missing" in options else TRIPS
        shared = {**POINTS, "keep": ["trip", "fare"], **options}
        made, wanted = (run(trips, request, **shared)[0] for run in (ENGINES[engine], by_stream))
        pd.testing.assert_frame_equal(
            by_trip(made)[wanted.columns], by_trip(wanted), check_dtype=False, check_exact=True
        )


@pytest.mark.jvm
@pytest.mark.parametrize("options", [{**POINTS, "reports_per_person": 2}, TRACES], ids=["points", "traces"])
def test_what_one_engine_paid_is_free_on_all_others(options: dict[str, Any], request: Request) -> None:
    with ledger_of(request) as ledger:
        charges = []
        for run in ENGINES.values():
            run(TRIPS, request, **options, ledger=ledger)
            charges.append(spent(ledger))
    assert min(charges[0].values()) > 0
    assert charges == [charges[0]] * len(ENGINES)


def test_two_runs_at_the_same_time_are_charged_once(request: Request) -> None:
    with ledger_of(request) as ledger:
        run = partial(by_stream, TRIPS, request, **POINTS)
        with ThreadPoolExecutor(4) as pool:
            made = list(pool.map(lambda _: run(ledger=ledger)[0], range(8)))
        assert spent(ledger) == pytest.approx({rider: EPSILON * count for rider, count in COUNTS.items()})
    assert all(reports.equals(made[0]) for reports in made)


# The files for dbt and Airflow on the page


def test_the_files_for_dbt_and_airflow_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (
        "dbt",
        "dbt.adapters",
        "dbt.adapters.duckdb",
        "dbt.adapters.duckdb.plugins",
        "airflow",
        "airflow.sdk",
    ):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setattr(sys.modules["dbt.adapters.duckdb.plugins"], "BasePlugin", object, raising=False)
    runs: list[str] = []

    def task(retries: int) -> Callable[..., Any]:
        assert retries
        return lambda function: lambda day: runs.append(f"{function.__name__} {day}")

    monkeypatch.setattr(sys.modules["airflow.sdk"], "task", task, raising=False)
    names: dict[str, Any] = {"__name__": "page"}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE):
        exec(block, names)
    for block in re.findall(r"(?:^    .*\n|^\n(?=\n*    ))+", PAGE.read_text().split("## dbt")[1], re.MULTILINE):
        if block.lstrip().startswith(("# geoind_plugin", "from airflow")):
            exec(textwrap.dedent(block), names)
    assert runs == ["release_day {{ ds }}"]
    connection = duckdb.connect()
    names["Plugin"]().configure_connection(connection)
    assert connection.sql("SELECT geoind_obfuscate(2.5, 48.5, 7)").fetchall()
    source = SimpleNamespace(ref=lambda _: connection.from_arrow(names["trips"]))
    assert names["model"](source, connection).columns == ["fare", "lon", "lat"]
    with Ledger("sqlite:///budgets.db", budget=1.0) as ledger:
        assert ledger.spent("ana") == pytest.approx(3 * 1.386 / 200), "the model has the records of the day"
