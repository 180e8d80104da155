"""Spark gives the reports of the Arrow path, charges them once, and refuses what it cannot protect."""

import hashlib
import os
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from geoind import EACH_ROW, BudgetExceededError, InvalidInputError, Key, Ledger
from geoind.adapters.spark import obfuscate, register, sink
from geoind.keys import VARIABLE
from geoind.tables import EACH_FILE, Recipe, ReleaseRecord, read_promise, write_sidecar
from geoind.tables import obfuscate as on_arrow
from geoind.tables.parts import Part
from geoind.tables.release import Release
from geoind.tables.table import Table
from tests.spark_session import OTHER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")

KEY = hashlib.sha256(b"a key for tests").digest()
SIZE = 300
OPTIONS: dict[str, Any] = {"epsilon": 0.001, "id_column": "trip", "person": "who", "missing": "keep", "key": KEY}


def trips(size: int = SIZE, seed: int = 5) -> pa.Table:
    rng = np.random.default_rng(seed)
    columns = {
        "trip": rng.permutation(size),
        "who": rng.choice(["ana", "ben", "eva"], size, p=[0.6, 0.3, 0.1]),
        "fare": rng.uniform(3, 60, size).round(2),
        "lon": pa.array(rng.uniform(-170, 170, size), mask=np.arange(size) == 7),
        "lat": rng.uniform(-80, 80, size),
        "secret": [f"secret {number}" for number in range(size)],
    }
    return pa.table(columns)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("trips")
    for number in range(3):
        pq.write_table(trips().slice(100 * number, 100), made / f"{number}.parquet")
    return made


@pytest.fixture(scope="module")
def frame(spark: "SparkSession", folder: Path) -> "DataFrame":
    return spark.read.parquet(str(folder))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(f"sqlite:///{tmp_path}/budgets.db", budget=1.0) as made:
        yield made


def spent(ledger: Ledger) -> list[float]:
    return [ledger.lifetime(person) for person in ("ana", "ben", "eva")]


def of_arrow(table: pa.Table, **options: Any) -> set[tuple[Any, ...]]:
    made = on_arrow(table, **options).read_all()
    return set(zip(*(made[name].to_pylist() for name in sorted(made.column_names)), strict=True))


def of_spark(frame: "DataFrame") -> set[tuple[Any, ...]]:
    return {tuple(row[name] for name in sorted(frame.columns)) for row in frame.collect()}


CASES: dict[str, dict[str, Any]] = {
    "rows without persons": {"person": EACH_ROW},
    "kept columns": {"keep": ["trip", "fare"]},
    "bounded": {"keep": ["trip"], "reports_per_person": 20},
    "one report per cell": {"keep": ["trip"], "same_place": 1e5, "epsilon": 1e-4},
    "several reports together": {"epsilon": None, "level": 2.0, "radius": 200, "reports": 200, "delta": 1e-6},
}


@pytest.mark.parametrize("case", CASES)
def test_reports_are_those_of_the_arrow_path_bit_by_bit(frame: "DataFrame", case: str) -> None:
    options: dict[str, Any] = {**OPTIONS, **CASES[case]}
    reports = frame.repartition(4).transform(obfuscate, **options)
    assert of_spark(reports) == of_arrow(trips(), **options)
    record = on_arrow(trips(), **options).schema.metadata[b"geoind"]
    assert reports.geoind == ReleaseRecord.from_json(record)


def test_only_the_kept_columns_and_no_metadata_leave(frame: "DataFrame") -> None:
    from pyspark.sql.functions import col, struct

    noted = frame.select("*", col("fare").alias("price", metadata={"note": "48.85 2.29"}))
    noted = noted.withColumn("both", struct(col("price"), col("fare"))).withColumn("a.`b", col("fare"))
    reports = obfuscate(noted, keep=["price", "both", "a.`b"], **OPTIONS)
    assert reports.columns == ["lon", "lat", "price", "both", "a.`b"]
    assert {row["a.`b"] for row in reports.collect()} == set(trips()["fare"].to_pylist())
    assert "note" not in reports.schema.json()
    assert "note" in noted.schema.json()


def noting(folder: Path) -> Any:
    """Return a step that leaves a note of every run, so that runs can be counted."""

    def note(batches: Any) -> Any:
        (folder / str(time.monotonic_ns())).touch()
        yield from batches

    return note


def test_a_frame_that_is_not_cached_is_drawn_twice_with_the_same_reports(
    frame: "DataFrame", tmp_path: Path, ledger: Ledger
) -> None:
    noted = frame.mapInArrow(noting(tmp_path), frame.schema).persist()
    reports = obfuscate(noted, ledger=ledger, keep=["trip"], **OPTIONS)
    once, first, runs = spent(ledger), of_spark(reports), len(list(tmp_path.iterdir()))
    # The cache is evicted.
    noted.unpersist()
    assert of_spark(reports) == first == of_arrow(trips(), keep=["trip"], **OPTIONS)
    assert len(list(tmp_path.iterdir())) > runs > 0
    assert spent(ledger) == once


def dying_once(batches: Any) -> Any:
    """Use up some reports and die, at the first attempt of every task."""
    from pyspark import TaskContext

    batches = iter(batches)
    yield next(batches)
    context = TaskContext.get()
    if context is not None and context.attemptNumber() == 0:
        os._exit(1)
    yield from batches


def test_tasks_that_die_in_every_pass_change_no_report_and_no_charge(frame: "DataFrame", ledger: Ledger) -> None:
    dying = frame.coalesce(1).mapInArrow(dying_once, frame.schema)
    reports = obfuscate(dying, ledger=ledger, keep=["trip"], **OPTIONS)
    assert of_spark(reports.mapInArrow(dying_once, reports.schema)) == of_arrow(trips(), keep=["trip"], **OPTIONS)
    counts = trips().filter(trips()["lon"].is_valid())["who"].value_counts().to_pylist()
    wanted = {count["values"]: 0.001 * count["counts"] for count in counts}
    assert spent(ledger) == pytest.approx([wanted[person] for person in ("ana", "ben", "eva")])


def test_the_same_reports_are_charged_once_and_other_ones_again(frame: "DataFrame", ledger: Ledger) -> None:
    from pyspark.sql.functions import col, when

    on_arrow(trips(), ledger=ledger, **OPTIONS)
    once = spent(ledger)
    failed: list[BaseException] = []

    def run() -> None:
        try:
            obfuscate(frame.repartition(3), ledger=ledger, **OPTIONS)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert spent(ledger) == once
    moved = frame.withColumn("lat", when(col("who") == "ben", col("lat") + 0.1).otherwise(col("lat")))
    obfuscate(moved, ledger=ledger, job="moved", **OPTIONS)
    assert spent(ledger) == pytest.approx([once[0], 2 * once[1], once[2]])
    assert ledger.history("ben")[-1].label == "moved"
    with pytest.raises(BudgetExceededError):
        obfuscate(frame, ledger=ledger, **{**OPTIONS, "epsilon": 0.006, "allow_total": 2.0})
    with pytest.raises(InvalidInputError, match="a ledger needs `person=`"):
        obfuscate(frame, ledger=ledger, **{**OPTIONS, "person": EACH_ROW})
    assert spent(ledger) == pytest.approx([once[0], 2 * once[1], once[2]])


def test_a_later_stage_that_fails_costs_nothing_more(frame: "DataFrame", ledger: Ledger, tmp_path: Path) -> None:
    from pyspark.errors import PySparkException
    from pyspark.sql.functions import expr

    reports = obfuscate(frame, ledger=ledger, keep=["trip"], **OPTIONS)
    once = spent(ledger)
    with pytest.raises(PySparkException, match="too late"):
        reports.withColumn("bad", expr("raise_error('too late')")).write.parquet(str(tmp_path / "out"))
    again = obfuscate(frame, ledger=ledger, keep=["trip"], **OPTIONS)
    assert of_spark(again) == of_spark(reports)
    assert spent(ledger) == once


def fresh(batches: Any) -> Any:
    """Give each row a new identity at every run, without a word in the plan."""
    for batch in batches:
        names = [uuid.uuid4().hex for _ in range(len(batch))]
        yield batch.append_column("name", pa.array(names))


def test_rows_that_change_after_they_were_counted_are_not_released(
    spark: "SparkSession", frame: "DataFrame", tmp_path: Path
) -> None:
    from pyspark.errors import PySparkException
    from pyspark.sql.functions import expr, rand
    from pyspark.sql.types import StringType, StructType

    schema = StructType([*frame.schema]).add("name", StringType())
    named = obfuscate(frame.mapInArrow(fresh, schema), **{**OPTIONS, "id_column": "name"})
    for action in (named.collect, named.limit(1).collect):
        with pytest.raises(PySparkException, match=r"partition \d has other rows than when they were counted"):
            action()
    for random in (frame.filter(rand() < 0.5), frame.withColumn("trip", expr("uuid()"))):
        with pytest.raises(InvalidInputError, match="plan of the frame is not deterministic"):
            obfuscate(random, **OPTIONS)
    stored = frame.withColumn("trip", expr("uuid()")).localCheckpoint()
    assert obfuscate(stored, **OPTIONS).count() == SIZE
    pq.write_table(trips(), tmp_path / "a.parquet")
    changing = obfuscate(spark.read.parquet(str(tmp_path)), keep=["trip"], **OPTIONS)
    assert len(changing.limit(5).collect()) == 5
    others = trips().set_column(1, "who", pa.array(["eva"] * SIZE))
    pq.write_table(others, tmp_path / "a.parquet")
    with pytest.raises(PySparkException, match="has other rows than when they were counted"):
        changing.collect()


def test_rows_in_the_order_of_their_places_are_refused_across_partitions(spark: "SparkSession") -> None:
    rng = np.random.default_rng(0)
    size = 1000
    places = rng.normal([2.35, 48.86], 0.05, (size, 2))
    table = pd.DataFrame({"trip": np.arange(size), "lon": places[:, 0], "lat": places[:, 1]})
    frame = spark.createDataFrame(table).repartition(4, "trip")
    options: dict[str, Any] = {"epsilon": 0.01, "id_column": "trip", "person": EACH_ROW, "key": KEY}
    reports = obfuscate(frame, **options)
    for sorted_rows in (
        frame.repartitionByRange(4, "lat"),
        frame.repartitionByRange(40, "lon").sortWithinPartitions("lat"),
        frame.sortWithinPartitions("lon"),
    ):
        with pytest.raises(
            InvalidInputError, match=r"shows where they are: give `order='keep'` and shuffle the rep"
        ):
            obfuscate(sorted_rows, **options)
    # Stored, because Spark samples the borders of ranges at every run.
    stored = frame.repartitionByRange(4, "lat").localCheckpoint()
    assert of_spark(obfuscate(stored, **{**options, "order": "keep"})) == of_spark(reports)
    with pytest.raises(InvalidInputError, match=r"`order='shuffle'` needs all rows in one process: .*orderBy"):
        obfuscate(frame, **{**options, "order": "shuffle"})
    # A drive is in the order of its places because it is in the order of its times.
    from pyspark.sql.functions import col, timestamp_seconds

    drive = frame.repartitionByRange(2, "lon").sortWithinPartitions("lon")
    timed = drive.withColumn("at", timestamp_seconds(col("lon") * 1e6))
    assert obfuscate(timed, **options).columns == ["lon", "lat"]


def test_file_and_row_name_a_record(spark: "SparkSession", tmp_path: Path, ledger: Ledger) -> None:
    source = tmp_path / "in put"
    sizes = {"day=1/a b.parquet": 150, "day=1/b%20c.parquet": 3, "day=2/c.parquet": 40}
    options: dict[str, Any] = {**OPTIONS, "id_column": None, "person": EACH_FILE, "keep": ["trip"]}
    recipe = Recipe.of(**options)
    files = {path: trips(size, seed) for seed, (path, size) in enumerate(sizes.items())}
    parts = [(Part(Table(recipe, table.schema, path)), table.to_batches()) for path, table in files.items()]
    for path, table in files.items():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, source / path, row_group_size=64)
    count = parts[0][0].count(parts[0][1])
    for part, batches in parts[1:]:
        count.merge(part.count(batches), None)
    release = Release.of(recipe, count, parts[0][0].table)
    made = pa.Table.from_batches(made for part, batches in parts for made, _, _ in part.draw(batches, release))
    wanted = set(zip(*(made[name].to_pylist() for name in sorted(made.column_names)), strict=True))
    frame = spark.read.parquet(str(source))
    for root in (str(source), os.path.relpath(source), source.as_uri() + "/"):
        reports = obfuscate(frame, root=root, ledger=ledger, **options)
        assert of_spark(reports) == wanted
        assert reports.geoind == release.record
    assert ledger.lifetime("day=2/c.parquet") == pytest.approx(0.040 - 0.001)
    few = obfuscate(frame.filter("fare > 30"), root=str(source), **options)
    assert 0 < few.count() < len(wanted)
    assert of_spark(few) < wanted
    with pytest.raises(InvalidInputError, match="`root=` must be the folder of all files"):
        obfuscate(frame, root=str(source / "day=1"), **options)
    with pytest.raises(
        InvalidInputError,
        match=r"partition \d+, file 'day=2/c.parquet', row 7: (location|longitude) is (missing|empty)",
    ):
        obfuscate(frame.filter("day = 2 AND lat > 0"), root=str(source), **{**options, "missing": "raise"})


def test_traces_are_answered_as_on_the_arrow_path_and_charged_once(spark: "SparkSession", ledger: Ledger) -> None:
    rng = np.random.default_rng(2)
    times = np.tile(np.arange(40) * 60.0, 3)
    walk = {
        "who": np.repeat(["ana", "Zoe\u0301", "Zo\u00e9"], 40),
        "at": np.where(np.arange(120) < 80, times, times + 3600),
        "lon": 2.3 + rng.normal(0, 1e-3, 120).cumsum(),
        "lat": 48.8 + rng.normal(0, 1e-3, 120).cumsum(),
    }
    table = pa.table(walk)
    options: dict[str, Any] = {"person": "who", "time": "at", "epsilon": 0.001, "method": "sparse", "key": KEY}
    frame = spark.createDataFrame(table.to_pandas()).repartition(5)
    on_arrow(table, ledger=ledger, **options)
    once = [ledger.lifetime(person) for person in ("ana", "Zo\u00e9")]
    for rows in (frame, frame.withColumn("at", frame["at"].cast("string"))):
        reports = obfuscate(rows, ledger=ledger, **options)
        assert [ledger.lifetime(person) for person in ("ana", "Zo\u00e9")] == once
        assert reports.geoind.busiest.epsilon == pytest.approx(max(once))
        assert reports.geoind.persons == 2
        found = {(row.who, float(row.at), row.lon, row.lat) for row in reports.collect()}
        made = on_arrow(table, **options).read_all().to_pydict()
        assert found == set(zip(made["who"], made["at"], made["lon"], made["lat"], strict=True))
    with pytest.raises(InvalidInputError, match=r"partition \d, row \d+: .*person '"):
        obfuscate(frame.withColumn("at", frame["at"] * 0), **options)


def test_the_record_does_not_travel_to_other_rows(frame: "DataFrame", tmp_path: Path) -> None:
    reports = obfuscate(frame, keep=["trip"], **OPTIONS)
    target = tmp_path / "reports"
    reports.unionByName(frame.select("trip", "lon", "lat")).write.parquet(str(target))
    for path in (target, next(target.glob("*.parquet"))):
        with pytest.raises(InvalidInputError, match="no release record"):
            read_promise(path)
    reports.write.mode("overwrite").parquet(str(target))
    assert write_sidecar(target, reports.geoind).name == "reports.geoind.json"
    record = read_promise(target)
    assert record == reports.geoind
    assert (record.kept, record.persons, record.places) == (("trip",), 3, (("lon", "lat"),))
    counts = trips().filter(trips()["lon"].is_valid())["who"].value_counts().to_pylist()
    assert record.busiest is not None
    assert record.busiest.reports == max(count["counts"] for count in counts)


def test_points_get_the_same_reports_as_degrees(spark: "SparkSession") -> None:
    from pyspark.sql.functions import expr

    truth = trips().filter(trips()["lon"].is_valid())
    points = shapely.to_wkb(shapely.points(np.column_stack([truth["lon"], truth["lat"]])))
    table = pd.DataFrame({"trip": truth["trip"], "who": truth["who"].to_pylist(), "place": points})
    wkb = spark.createDataFrame(table)
    options: dict[str, Any] = {**OPTIONS, "keep": ["trip"]}
    wanted = {(row[2], row[1], row[0]) for row in of_arrow(truth, **options)}

    def found(reports: "DataFrame", column: str) -> set[tuple[Any, ...]]:
        rows = reports.select("trip", expr(column).alias("place")).collect()
        degrees = shapely.get_coordinates(shapely.from_wkb([bytes(row.place) for row in rows]))
        return {(row.trip, *place) for row, place in zip(rows, degrees.tolist(), strict=True)}

    reports = obfuscate(wkb, geometry="place", crs="OGC:CRS84", **options)
    assert found(reports, "place") == {(trip, lon, lat) for trip, lon, lat in wanted}
    if not hasattr(__import__("pyspark.sql.types").sql.types, "GeometryType"):
        return
    for made in ("st_setsrid(st_geomfromwkb(place), 4326)", "st_geogfromwkb(place)"):
        native = wkb.withColumn("place", expr(made))
        reports = obfuscate(native, **options)
        assert dict(reports.dtypes)["place"] == dict(native.dtypes)["place"]
        assert found(reports, "st_asbinary(place)") == {(trip, lon, lat) for trip, lon, lat in wanted}
        both = native.withColumn("lon", expr("1.5D")).withColumn("lat", expr("2.5D"))
        for kept in (both, both.withColumn("place", expr("array(place)"))):
            with pytest.raises(InvalidInputError, match="'place' holds geometries and cannot be kept"):
                obfuscate(kept, lon="lon", lat="lat", **{**options, "keep": ["place"]})


def test_sql_gives_the_same_reports(spark: "SparkSession", frame: "DataFrame") -> None:
    register(spark, epsilon=0.001, key=KEY, missing="keep")
    frame.createOrReplaceTempView("trips")
    places = "(SELECT *, geoind_obfuscate(lon, lat, trip) AS place FROM trips)"
    found = of_spark(spark.sql(f"SELECT place.lon, place.lat FROM {places}").fillna(999.0))
    wanted = of_arrow(trips(), **{**OPTIONS, "person": EACH_ROW})
    assert found == {tuple(999.0 if value is None else value for value in row) for row in wanted}
    untyped: Any = register
    for options in ({"epsilon": 0.01}, {"epsilon": 0.01, "key": KEY, "order": "shuffle"}):
        with pytest.raises(TypeError, match=r"key|order"):
            untyped(spark, **options)
    with pytest.raises(InvalidInputError, match="`key=` is needed"):
        untyped(spark, epsilon=0.01, key=None)


def test_a_key_is_read_on_the_worker_and_is_in_no_plan_error_or_event_log(
    spark: "SparkSession", frame: "DataFrame", events: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.errors import PySparkException

    monkeypatch.setenv(VARIABLE, OTHER.hex())
    seen = []
    for key, secret in ((Key(KEY), KEY), (Key.in_variable(), OTHER)):
        reports = obfuscate(frame, **{**OPTIONS, "key": key})
        assert of_spark(reports) == of_arrow(trips(), **{**OPTIONS, "key": secret})
        seen.append(reports._jdf.queryExecution().toString())
    with pytest.raises(InvalidInputError, match=r"partition \d, row \d+: latitude must be between") as caught:
        obfuscate(frame.coalesce(1).withColumn("lat", frame["lat"] + 180.0), **OPTIONS)
    seen.append(str(caught.value))
    register(spark, epsilon=0.01, key=KEY)
    frame.createOrReplaceTempView("trips")
    sql = spark.sql("SELECT geoind_obfuscate(lon, lat, trip).lon FROM trips")
    with pytest.raises(PySparkException, match=r"is (missing|empty)") as failed:
        sql.collect()
    seen += [str(failed.value), sql._jdf.queryExecution().toString()]
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    logs = [path for path in events.rglob("*") if path.is_file()]
    assert logs
    seen += [path.read_bytes().decode("latin-1") for path in logs]
    assert any("MapInArrow" in text for text in seen)
    for text in seen:
        for secret in (KEY, OTHER):
            assert not any(form in text for form in (secret.hex(), repr(secret), str(list(secret))[1:-1]))


def test_a_stream_is_charged_once_for_each_batch_also_after_a_restart(
    spark: "SparkSession", frame: "DataFrame", tmp_path: Path, ledger: Ledger
) -> None:
    from pyspark.errors import StreamingQueryException

    source = tmp_path / "in"
    source.mkdir()
    stream = spark.readStream.schema(frame.schema).option("maxFilesPerTrigger", 1).parquet(str(source))
    options: dict[str, Any] = {**OPTIONS, "keep": ["trip"]}
    fails, records = {"once"}, []

    def write(reports: "DataFrame", batch: int) -> None:
        reports.write.mode("overwrite").parquet(str(tmp_path / "out" / f"batch={batch}"))
        if batch == 1 and fails:
            fails.clear()
            raise RuntimeError("the disk is full")
        records.append(reports.geoind)

    def run() -> None:
        batches = stream.writeStream.foreachBatch(sink(write, ledger=ledger, job="trips", **options))
        query = batches.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True).start()
        query.awaitTermination()

    for number in range(2):
        pq.write_table(trips().slice(150 * number, 150), source / f"{number}.parquet")
    with pytest.raises(StreamingQueryException, match="the disk is full"):
        run()
    run()
    assert of_spark(spark.read.parquet(str(tmp_path / "out")).drop("batch")) == of_arrow(trips(), **options)
    counts = trips().filter(trips()["lon"].is_valid())["who"].value_counts().to_pylist()
    wanted = {count["values"]: 0.001 * count["counts"] for count in counts}
    assert spent(ledger) == pytest.approx([wanted[person] for person in ("ana", "ben", "eva")])
    labels = [entry.label for entry in ledger.history("ana")]
    assert len(labels) == 2
    assert all(label.startswith("trips, query ") for label in labels)
    assert [label.rpartition(", ")[2] for label in labels] == ["batch 0", "batch 1"]
    assert sum(record.busiest.reports for record in records) == pytest.approx(1000 * wanted["ana"])
    with pytest.raises(InvalidInputError, match=r"give `sink\(...\)` to foreachBatch"):
        obfuscate(stream, **options)
    for bad in ({"key": None}, {"id_column": None}, {"id_column": None, "time": "fare"}):
        with pytest.raises(InvalidInputError, match="a stream needs `id_column=` and `key=`"):
            sink(write, **{**options, **bad})


def test_what_cannot_be_protected_is_refused_at_once(frame: "DataFrame", spark: "SparkSession") -> None:
    def refused(match: str, rows: Any = frame, **changed: Any) -> None:
        with pytest.raises(InvalidInputError, match=match):
            obfuscate(rows, **{**OPTIONS, **changed})

    refused("frame must be a DataFrame of Spark, got pandas.DataFrame", trips().to_pandas())
    refused("`person=` must say whose reports these are", person=None)
    refused("`id_column=` must name the column that identifies a record", id_column=None)
    refused("`id_column=` must name the column that identifies a record", root="/data")
    refused("no column 'x'", lon="x", lat="lat")
    refused("no column 'x'", keep=["x"])
    refused("must be whole numbers, text or bytes", frame.withColumn("trip", frame["trip"] / 2))
    refused("'lat' holds the true place", id_column="lat")
    refused("'lat' holds the true place", person="lat")
    refused("EACH_FILE is for files", person=EACH_FILE)
    refused(r"the busiest person has 1\d\d reports that add up to epsilon", epsilon=0.01)
    refused(
        "'copy' repeats true coordinates", frame.withColumn("copy", frame["lon"].cast("string")), keep=["copy"]
    )
    refused(r"partition \d, row 7: (location|longitude) is (missing|empty)", missing="raise")
    refused(
        "`root=` needs a frame read from Parquet files",
        spark.sql("SELECT 'ana' AS who, 1.0D AS lon, 2.0D AS lat"),
        root="/data",
        id_column=None,
    )


def test_a_frame_without_rows_gives_a_frame_without_rows(frame: "DataFrame", ledger: Ledger) -> None:
    reports = obfuscate(frame.filter("fare < 0"), ledger=ledger, keep=["trip"], **OPTIONS)
    assert reports.collect() == []
    assert (reports.columns, reports.geoind.persons) == (["trip", "lon", "lat"], 0)
