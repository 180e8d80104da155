"""Relations of DuckDB, and the function for SQL."""

import inspect
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import shapely

from geoind import EACH_ROW, InvalidInputError, Key, KeyedRandomness, SphericalLaplace
from geoind.adapters.duckdb import obfuscate, record_of, register
from geoind.tables import read_promise

SIZE = 60
RNG = np.random.default_rng(2)
LONLAT = RNG.uniform([2, 48], [3, 49], (SIZE, 2))
TRIPS = pa.table(
    {
        "trip": np.arange(SIZE),
        "rider": [f"rider {number % 4}" for number in range(SIZE)],
        "fare": np.arange(SIZE) / 4,
        "lon": LONLAT[:, 0],
        "lat": LONLAT[:, 1],
    }
)
KEY = bytes(range(32))
EACH: dict[str, Any] = {"epsilon": 0.01, "person": EACH_ROW, "key": KEY}
WANTED = SphericalLaplace(0.01).sample(LONLAT, rng=KeyedRandomness(KEY, np.arange(SIZE)))


@pytest.fixture
def connection() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    made.register("arrow_trips", TRIPS)
    made.execute("CREATE TABLE trips AS SELECT * FROM arrow_trips")
    return made


# Relations


def test_a_relation_has_reports_and_kept_columns_and_can_be_read_again(connection: Any) -> None:
    reports = obfuscate(connection.table("trips"), **EACH, id_column="trip", keep=["fare"])
    assert reports.columns == ["fare", "lon", "lat"]
    assert np.array(reports.fetchall())[:, 1:].tolist() == WANTED.tolist()
    assert reports.fetchall() == reports.fetchall()
    connection.sql("CREATE TABLE reports AS SELECT * FROM reports")
    assert connection.table("reports").aggregate("count(*)").fetchall() == [(SIZE,)]
    assert reports.filter("fare > 5").aggregate("count(*)").fetchall() == [(SIZE - 21,)]


def test_a_query_runs_once_and_only_needed_columns_travel(connection: Any) -> None:
    runs: list[str] = []

    def seen(value: int) -> int:
        runs.append("needed")
        return value

    def forbidden(_: int) -> int:
        raise AssertionError("a column that is not needed was computed")

    connection.create_function("seen", seen, ["BIGINT"], "BIGINT", side_effects=True)
    connection.create_function("forbidden", forbidden, ["BIGINT"], "BIGINT", side_effects=True)
    query = connection.sql("SELECT seen(trip) AS kept, forbidden(trip) AS other, lon, lat FROM trips")
    reports = obfuscate(query, **EACH, keep=["kept"])
    reports.fetchall()
    assert len(runs) == SIZE


def test_a_query_that_gives_other_rows_each_time_is_released_as_it_was_counted(connection: Any) -> None:
    query = connection.sql("SELECT *, random() AS turn FROM trips WHERE random() < 0.5 ORDER BY turn")
    reports = obfuscate(query, epsilon=0.001, person="rider", keep=["rider"])
    counts = [count for _, count in reports.aggregate("rider, count(*)").fetchall()]
    assert record_of(reports).busiest.reports == max(counts)  # type: ignore[union-attr]


def test_names_are_quoted_and_must_differ_by_more_than_case(connection: Any) -> None:
    odd = ['a"b', "a.b", "*", "select 1; --", "ü", "fare "]
    columns = ", ".join('fare AS "' + name.replace('"', '""') + '"' for name in odd)
    reports = obfuscate(connection.sql(f"SELECT {columns}, lon, lat FROM trips"), **EACH, keep=odd)
    assert reports.columns == [*odd, "lon", "lat"]
    for other in ("LAT", "FARE"):
        twice = connection.sql(f"SELECT fare, lon, lat, trip AS {other} FROM trips")
        with pytest.raises(InvalidInputError, match="several columns are called"):
            obfuscate(twice, **EACH, keep=["fare"])


def test_types_of_kept_columns_stay_and_an_enum_loses_unused_entries(connection: Any) -> None:
    query = connection.sql(
        "SELECT lon, lat, fare::DECIMAL(9, 2) AS price, DATE '2024-05-01' AS day, trip::UTINYINT AS small, "
        "[rider] AS riders, {'a': trip} AS pair, 'x'::ENUM ('x', 'SECRET') AS code FROM trips"
    )
    kept = [name for name in query.columns if name not in ("lon", "lat", "code")]
    reports = obfuscate(query, **EACH, keep=[*kept, "code"])
    names = ", ".join(kept)
    assert reports.project(names).types == query.project(names).types
    assert reports.project(names).fetchall() == query.project(names).fetchall()
    assert "SECRET" not in str(reports.types)
    assert reports.project("code").distinct().fetchall() == [("x",)]


def test_native_geometries_need_a_crs(connection: Any) -> None:
    query = connection.sql("SELECT format('POINT ({} {})', lon, lat)::GEOMETRY AS place FROM trips")
    with pytest.raises(InvalidInputError, match="must have a CRS"):
        obfuscate(query, **EACH)
    reports = obfuscate(query, **EACH, crs="EPSG:4326")
    assert [str(kind) for kind in reports.types] == ["GEOMETRY"]
    places = shapely.get_coordinates(shapely.from_wkb([place for (place,) in reports.fetchall()]))
    assert 0 < np.abs(places - LONLAT).max() < 1


def test_an_empty_relation_has_its_columns(connection: Any) -> None:
    reports = obfuscate(connection.table("trips").limit(0), **EACH, keep=["fare"])
    assert (reports.columns, reports.fetchall()) == (["fare", "lon", "lat"], [])


def test_the_record_belongs_to_the_reports_and_to_a_file(connection: Any, tmp_path: Path) -> None:
    reports = obfuscate(connection.table("trips"), epsilon=0.001, person="rider", keep=["fare"])
    record = record_of(reports)
    assert record.kept == ("fare",)
    for other in (connection.table("trips"), reports.filter("fare > 1"), reports.union(reports)):
        with pytest.raises(InvalidInputError, match="it has no record"):
            record_of(other)
    path = tmp_path / "reports.parquet"
    connection.execute(f"COPY reports TO '{path}' (KV_METADATA {{geoind: $record}})", {"record": record.to_json()})
    assert read_promise(path) == record


def test_a_table_of_the_same_name_does_not_take_the_place_of_the_reports(connection: Any) -> None:
    connection.execute("CREATE TABLE reports AS SELECT 1 AS secret; CREATE TABLE reader AS SELECT 1 AS secret")
    assert obfuscate(connection.table("trips"), **EACH).columns == ["lon", "lat"]
    connection.execute("CREATE TABLE geoind_reports_of_a_relation AS SELECT 1 AS secret")
    with pytest.raises(InvalidInputError, match="no table may be called"):
        obfuscate(connection.table("trips"), **EACH)


def test_what_is_no_relation_is_refused() -> None:
    for other in (TRIPS, TRIPS.to_pandas(), "trips"):
        with pytest.raises(InvalidInputError, match="relation must be one of DuckDB"):
            obfuscate(other, **EACH)


# The function for SQL

QUERY = (
    "SELECT trip, place.lon, place.lat FROM (SELECT trip, geoind_obfuscate(lon, lat, {id}) AS place FROM trips)"
)


@pytest.mark.parametrize(
    ("identity", "labels"),
    [
        ("trip", np.arange(SIZE)),
        ("trip::UTINYINT", np.arange(SIZE)),
        ("'t' || trip", [f"t{number}" for number in range(SIZE)]),
        ("('t' || trip)::BLOB", [f"t{number}".encode() for number in range(SIZE)]),
    ],
)
def test_the_function_gives_each_record_its_report(connection: Any, identity: str, labels: Any) -> None:
    register(connection, key=KEY, epsilon=0.01)
    rows = connection.sql(QUERY.format(id=identity)).fetchall()
    wanted = SphericalLaplace(0.01).sample(LONLAT, rng=KeyedRandomness(KEY, labels))
    assert {trip: (lon, lat) for trip, lon, lat in rows} == dict(enumerate(map(tuple, wanted.tolist())))


def test_the_function_is_the_same_in_every_connection_and_order(connection: Any) -> None:
    register(connection, "reported", key=Key(KEY), level=2.0, radius=200)
    query = "SELECT trip, reported(lon, lat, trip) FROM trips ORDER BY "
    by_turn = connection.sql(f"{query} hash(trip)").fetchall()
    assert by_turn != connection.sql(f"{query} trip").fetchall()
    assert sorted(by_turn) == connection.sql(f"{query} trip").fetchall()
    assert [(trip, {"lon": lon, "lat": lat}) for trip, (lon, lat) in enumerate(WANTED.tolist())] == sorted(by_turn)


def test_the_function_draws_many_vectors(connection: Any) -> None:
    register(connection, key=KEY, epsilon=0.01)
    connection.execute("CREATE TABLE many AS SELECT range AS id, range / 1000.0 AS lon FROM range(10000)")
    reports = connection.sql("SELECT id, geoind_obfuscate(lon, 48.5, id).lon FROM many ORDER BY id").fetchnumpy()
    truth = np.column_stack([np.arange(10000) / 1000, np.full(10000, 48.5)])
    wanted = SphericalLaplace(0.01).sample(truth, rng=KeyedRandomness(KEY, np.arange(10000)))
    assert (list(reports.values())[1] == wanted[:, 0]).all()


def test_rows_without_a_place_are_an_error_or_null(connection: Any) -> None:
    register(connection, key=KEY, epsilon=0.01)
    register(connection, "kept", key=KEY, epsilon=0.01, missing="keep")
    values = "FROM (VALUES (2.5, 48.5, 1), (NULL, 48.5, 2), (2.5, NULL, 3)) AS t(lon, lat, id)"
    with pytest.raises(duckdb.Error, match="longitude is empty"):
        connection.sql(f"SELECT geoind_obfuscate(lon, lat, id) {values}").fetchall()
    rows = connection.sql(f"SELECT kept(lon, lat, id) {values}").fetchall()
    assert [place is None for (place,) in rows] == [False, True, True]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("12.345, 98.5, 7", "latitude must be between -90 and 90"),
        ("12.345, 48.5, NULL::BIGINT", "identity is missing"),
        ("12.345, 48.5, 1.5", "must be whole numbers, text or bytes"),
        ("12, 48, 7", "must be float, decimal or text"),
        ("12.345, 48.5", "No function matches"),
    ],
)
def test_bad_arguments_are_refused_without_quoting_a_place(connection: Any, arguments: str, message: str) -> None:
    register(connection, key=KEY, epsilon=0.01)
    with pytest.raises(duckdb.Error, match=message) as refused:
        connection.sql(f"SELECT geoind_obfuscate({arguments})").fetchall()
    assert "12.345" not in str(refused.value)


def test_the_function_needs_a_key_and_takes_no_option_that_it_cannot_enforce(connection: Any) -> None:
    with pytest.raises(InvalidInputError, match="`key=` is needed"):
        register(connection, key=None, epsilon=0.01)  # type: ignore[arg-type]
    assert not {"person", "keep", "reports_per_person", "order", "ledger", "time"} & {
        *inspect.signature(register).parameters
    }
    with pytest.raises(InvalidInputError, match="epsilon"):
        register(connection, key=KEY, epsilon=1.0)


def test_the_key_is_in_no_plan(connection: Any) -> None:
    register(connection, key=KEY, epsilon=0.01)
    plan = connection.sql(QUERY.format(id="trip")).explain()
    (known,) = connection.sql("FROM duckdb_functions() WHERE function_name = 'geoind_obfuscate'").fetchall()
    for text in (plan, str(known)):
        assert KEY.hex() not in text
        assert str(KEY) not in text
