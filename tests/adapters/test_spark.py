import hashlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from geoind import BudgetExceededError, InvalidInputError, KeyedRandomness, Ledger, SphericalLaplace
from geoind.adapters import spark as door
from geoind.adapters.dataset import obfuscate_dataset
from geoind.adapters.keys import VARIABLE, Key
from geoind.tables import read_promise
from tests.adapters.test_dataset import SIZES, read, write
from tests.spark_session import OTHER
from tests.tables.test_keys import shown

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")

KEY = hashlib.sha256(b"a key for tests").digest()
SIZE = 300


def obfuscate(frame: Any, **options: Any) -> Any:
    return door.obfuscate(frame, **{"missing": "keep", **options})


def register(spark: Any, **options: Any) -> Any:
    return door.register(spark, **{"missing": "keep", **options})


def trips(size: int = SIZE) -> pa.Table:
    rng = np.random.default_rng(5)
    lon = pa.array(rng.uniform(-180, 180, size), mask=np.arange(size) == 7)
    columns = {"trip": rng.permutation(size), "who": rng.choice(["ana", "ben"], size), "lon": lon}
    return pa.table({**columns, "lat": rng.uniform(-85, 85, size)})


@pytest.fixture(scope="module")
def frame(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> "DataFrame":
    folder = tmp_path_factory.mktemp("trips")
    for number in range(3):
        pq.write_table(trips().slice(100 * number, 100), folder / f"{number}.parquet")
    return spark.read.parquet(str(folder))


def expected(table: pa.Table, key: bytes = KEY, epsilon: float = 0.01) -> pa.Table:
    places = table["lon"].is_valid().to_numpy()
    truth = np.column_stack([table["lon"].to_numpy(), table["lat"].to_numpy()])
    reports = np.full_like(truth, np.nan)
    labels = KeyedRandomness(key, table["trip"].to_numpy()[places])
    reports[places] = SphericalLaplace(epsilon).sample(truth[places], rng=labels)
    for number, name in enumerate(("lon", "lat")):
        column = pa.array(reports[:, number], mask=~places)
        table = table.set_column(table.schema.names.index(name), name, column)
    return table.sort_by("trip")


def rows(frame: "DataFrame") -> pa.Table:
    # Not toArrow, which Spark 3.5 does not have.
    return pa.Table.from_pylist([row.asDict() for row in frame.collect()]).sort_by("trip")


def noting(folder: Path) -> Any:
    """Return a step that leaves a note of every run, so that runs can be counted."""

    def note(batches: Any) -> Any:
        (folder / str(time.monotonic_ns())).touch()
        yield from batches

    return note


def test_a_frame_that_is_not_cached_gives_the_same_rows_twice(frame: "DataFrame", tmp_path: Path) -> None:
    noted = frame.mapInArrow(noting(tmp_path), frame.schema)
    lazy = obfuscate(noted, epsilon=0.01, id_column="trip", key=KEY)
    assert lazy.dtypes == frame.dtypes
    first = rows(lazy)
    runs = len(list(tmp_path.iterdir()))
    assert rows(lazy) == first == expected(trips())
    assert len(list(tmp_path.iterdir())) == 2 * runs > 0


@pytest.mark.parametrize("partitions", [1, 5])
def test_partitions_change_no_report(frame: "DataFrame", partitions: int) -> None:
    lazy = obfuscate(frame.repartition(partitions, "lat"), epsilon=0.01, id_column="trip", key=KEY)
    assert rows(lazy) == expected(trips())


def dying_once(batches: Any) -> Any:
    """Use up some reports and die, at the first attempt of every task."""
    from pyspark import TaskContext

    batches = iter(batches)
    yield next(batches)
    context = TaskContext.get()
    if context is not None and context.attemptNumber() == 0:
        os._exit(1)
    yield from batches


def test_a_worker_that_dies_in_the_middle_changes_no_report(frame: "DataFrame") -> None:
    lazy = obfuscate(frame.repartition(2), epsilon=0.01, id_column="trip", key=KEY)
    assert rows(lazy.mapInArrow(dying_once, lazy.schema)) == expected(trips())


def test_file_and_row_name_a_record_as_in_the_dataset_job(spark: "SparkSession", tmp_path: Path) -> None:
    # Spark reads no file beside folders of the form name=value.
    sizes = {path: size for path, size in SIZES.items() if "=" in path}
    source = write(tmp_path / "in put", sizes)
    obfuscate_dataset(source, tmp_path / "out", epsilon=0.01, key=KEY, workers=1, missing="keep")
    wanted = [(row["trip"], row["lon"], row["lat"]) for row in read(tmp_path / "out").to_pylist()]
    for root in (str(source), os.path.relpath(source), source.as_uri() + "/"):
        lazy = obfuscate(spark.read.parquet(str(source)), epsilon=0.01, key=KEY, root=root)
        found = [(row["trip"], row["lon"], row["lat"]) for row in lazy.collect()]
        assert sorted(map(str, found)) == sorted(map(str, wanted))


def test_sql_gives_the_same_reports(spark: "SparkSession", frame: "DataFrame") -> None:
    register(spark, epsilon=0.01, key=KEY)
    frame.createOrReplaceTempView("trips")
    places = "(SELECT *, geoind_obfuscate(lon, lat, trip) AS place FROM trips)"
    assert rows(spark.sql(f"SELECT trip, who, place.lon, place.lat FROM {places}")) == expected(trips())


def test_the_promise_travels_with_the_parquet_that_spark_writes(frame: "DataFrame", tmp_path: Path) -> None:
    reports = obfuscate(frame.drop("who"), level=2.0, radius=200, id_column="trip", key=KEY)
    reports.write.parquet(str(tmp_path / "reports"))
    for path in (tmp_path / "reports").glob("*.parquet"):
        promise = read_promise(path)
        assert (promise.epsilon, promise.level, promise.places) == (0.01, 2.0, (("lon", "lat"),))


def test_wkb_gets_the_same_reports(spark: "SparkSession", tmp_path: Path) -> None:
    truth = trips().drop_columns(["who"]).filter(trips()["lon"].is_valid())
    points = shapely.to_wkb(shapely.points(np.column_stack([truth["lon"], truth["lat"]])))
    pq.write_table(pa.table({"trip": truth["trip"], "place": pa.array(points)}), tmp_path / "a.parquet")
    lazy = obfuscate(
        spark.read.parquet(str(tmp_path)),
        epsilon=0.01,
        id_column="trip",
        key=KEY,
        geometry="place",
        crs="OGC:CRS84",
    )
    found = shapely.get_coordinates(shapely.from_wkb(rows(lazy)["place"].to_pylist()))
    wanted = expected(truth)
    np.testing.assert_array_equal(found, np.column_stack([wanted["lon"], wanted["lat"]]))


def test_records_at_one_place_never_share_noise(spark: "SparkSession", tmp_path: Path) -> None:
    zeros = pa.table({"trip": np.arange(2000), "lon": np.zeros(2000), "lat": np.zeros(2000)})
    pq.write_table(zeros, tmp_path / "a.parquet")
    pq.write_table(zeros, tmp_path / "b.parquet")
    frame = spark.read.parquet(str(tmp_path))
    by_name = obfuscate(frame.limit(2000), epsilon=1e-4, id_column="trip", key=KEY)
    by_row = obfuscate(frame, epsilon=1e-4, root=str(tmp_path), key=KEY)
    assert by_name.select("lon", "lat").distinct().count() >= 1997
    assert by_row.select("lon", "lat").distinct().count() >= 3995


def test_a_key_in_a_variable_is_read_on_the_worker(frame: "DataFrame", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, OTHER.hex())
    lazy = obfuscate(frame, epsilon=0.01, id_column="trip", key=Key.in_variable())
    assert rows(lazy) == expected(trips(), key=OTHER)


def test_the_key_is_in_no_plan_error_or_event_log(
    spark: "SparkSession", frame: "DataFrame", events: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.errors import PySparkException

    monkeypatch.setenv(VARIABLE, OTHER.hex())
    seen = []
    for key in (Key(KEY), Key.in_variable()):
        lazy = obfuscate(frame, epsilon=0.01, id_column="trip", key=key)
        lazy.collect()
        seen.append(lazy._jdf.queryExecution().toString())
    bad = frame.coalesce(1).withColumn("lat", frame["lat"] + 180.0)
    with pytest.raises(PySparkException, match="latitude") as caught:
        obfuscate(bad, epsilon=0.01, id_column="trip", key=KEY).collect()
    seen.append(str(caught.value))
    register(spark, epsilon=0.01, key=KEY)
    frame.createOrReplaceTempView("trips")
    sql = spark.sql("SELECT geoind_obfuscate(lon, lat, trip).lon FROM trips")
    sql.collect()
    seen.append(sql._jdf.queryExecution().toString())
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    logs = [path for path in events.rglob("*") if path.is_file()]
    assert logs
    seen += [path.read_bytes().decode("latin-1") for path in logs]
    assert any("MapInArrow" in text for text in seen)
    for text in seen:
        assert not any(form in text for secret in (KEY, OTHER) for form in shown(secret))


def test_totals_of_all_persons_are_charged_before_any_report(frame: "DataFrame", tmp_path: Path) -> None:
    persons = trips().filter(trips()["lon"].is_valid())["who"].to_numpy(zero_copy_only=False)
    options: dict[str, Any] = {"epsilon": 0.01, "id_column": "trip", "key": KEY, "person_column": "who"}
    with Ledger(f"sqlite:///{tmp_path / 'ledger.db'}", budget=3.0) as ledger:
        obfuscate(frame, ledger=ledger, **options).count()
        for person in ("ana", "ben"):
            assert ledger.spent(person) == pytest.approx(0.01 * (persons == person).sum())
        spent = ledger.spent("ana")
        with pytest.raises(BudgetExceededError):
            obfuscate(frame, ledger=ledger, **{**options, "epsilon": 0.02})
        assert ledger.spent("ana") == spent
        with pytest.raises(InvalidInputError, match="'whom' must be there once"):
            obfuscate(frame, ledger=ledger, **{**options, "person_column": "whom"})


def test_a_doubt_is_an_error_at_once(frame: "DataFrame", spark: "SparkSession") -> None:
    options: dict[str, Any] = {"epsilon": 0.01, "key": KEY}
    with pytest.raises(InvalidInputError, match="give id_column, or the root"):
        obfuscate(frame, **options)
    with pytest.raises(InvalidInputError, match="column 'x' must be there once"):
        obfuscate(frame, id_column="trip", lon="x", lat="lat", **options)
    with pytest.raises(InvalidInputError, match="whole numbers, text or bytes"):
        obfuscate(frame.withColumn("half", frame["trip"] / 2), id_column="half", **options)
    with pytest.raises(InvalidInputError, match="'lat' holds the place: it cannot say which record"):
        obfuscate(frame, id_column="lat", **options)
    with pytest.raises(InvalidInputError, match="'lat' holds the place"):
        obfuscate(frame, id_column="trip", person_column="lat", **options)
    with pytest.raises(InvalidInputError, match="order='shuffle' needs the whole table"):
        obfuscate(frame, id_column="trip", order="shuffle", **options)
    with pytest.raises(InvalidInputError, match="'street' tells a place by its name"):
        obfuscate(frame.withColumn("street", frame["who"]), id_column="trip", **options)
    with pytest.raises(InvalidInputError, match="read straight from Parquet files"):
        obfuscate(spark.sql("SELECT 1.0D AS lon, 2.0D AS lat"), root="/data", **options)
