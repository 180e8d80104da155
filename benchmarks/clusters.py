"""Seconds of every engine for one table, next to the same engine without geoind.

python3 dev.py bench clusters                1e6 rows; writes docs/benchmarks/clusters.md
python3 dev.py bench clusters --rows 1e5     fewer rows, for a trial; prints the page only

An engine reads the same Parquet file or frame in both cases, and its result is read to the end. All runs take
turns in one process, so that a busy machine slows all of them.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from geoind import EACH_ROW
from geoind.tables import obfuscate as on_arrow

ROWS = 1_000_000
LARGE, SMALL = 65_536, 2_000
"""Rows of a batch."""
OPTIONS: dict[str, Any] = {"epsilon": 0.0005, "id_column": "trip", "keep": ["fare"], "key": bytes(range(32))}
OUT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks" / "clusters.md"

Job = Callable[[], object]
Pair = tuple[Job, Callable[[], Job]]
"""The engine without geoind; and what counts the rows and returns what draws and reads the reports."""


def trips(rows: int) -> pa.Table:
    """Return trips of persons who have ten each."""
    rng = np.random.default_rng(1)
    columns = {
        "trip": np.arange(rows),
        "rider": rng.integers(0, max(rows // 10, 1), rows),
        "fare": rng.gamma(3, 6, rows).round(2),
        "lon": rng.normal(2.35, 0.1, rows),
        "lat": rng.normal(48.86, 0.05, rows),
    }
    return pa.table(columns)


def arrow(table: pa.Table, size: int, **options: Any) -> Pair:
    """Return Arrow batches of so many rows, read to the end."""
    batches = table.to_batches(size)

    def stream() -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(table.schema, iter(batches))

    def counted() -> Job:
        made = on_arrow(pa.Table.from_batches(batches), **{**OPTIONS, **options})
        return lambda: made.read_all()

    return lambda: stream().read_all(), counted


def frames(table: pa.Table) -> Iterator[tuple[str, Pair]]:
    """Yield the engines of one process: what is copied is what leaves."""
    import duckdb
    import polars

    from geoind.adapters import duckdb as on_duckdb
    from geoind.adapters import geopandas as on_pandas
    from geoind.adapters import polars as on_polars

    kept, options = ["fare", "lon", "lat"], {**OPTIONS, "person": EACH_ROW}
    pandas = table.to_pandas()
    yield "pandas", (lambda: pandas[kept].copy(), lambda: lambda: on_pandas.obfuscate(pandas, **options))
    lazy = polars.from_arrow(table).lazy()
    yield "Polars", (lambda: lazy.select(kept).collect(), lambda: on_polars.obfuscate(lazy, **options).collect)
    relation = duckdb.connect().from_arrow(table)
    yield (
        "DuckDB",
        (
            lambda: relation.select(*kept).fetch_arrow_table(),
            lambda: on_duckdb.obfuscate(relation, **options).fetch_arrow_table,
        ),
    )


def dask(table: pa.Table, **options: Any) -> Pair:
    """Return a Dask frame of eight partitions, computed by threads."""
    import dask.dataframe as dd

    from geoind.adapters.dask import obfuscate

    frame = dd.from_pandas(table.to_pandas(), npartitions=8)
    same = frame[["fare", "lon", "lat"]].map_partitions(lambda part: part.copy())
    return same.compute, lambda: obfuscate(frame, **{**OPTIONS, **options}).compute


def spark_session() -> Any:
    """Return a local Spark with two task slots."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def spark(session: Any, folder: Path, size: int, **options: Any) -> Pair:
    """Return a Spark frame of Parquet files, through Python and to a writer that keeps nothing."""
    from geoind.adapters.spark import obfuscate

    def sized() -> Any:
        session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(size))
        return session.read.parquet(str(folder))

    def written(frame: Any) -> None:
        frame.write.format("noop").mode("overwrite").save()

    def same() -> None:
        frame = sized().select("fare", "lon", "lat")
        written(frame.mapInArrow(lambda batches: batches, frame.schema))

    def counted() -> Job:
        reports = obfuscate(sized(), **{**OPTIONS, **options})
        return lambda: written(reports)

    return same, counted


def measured(pairs: dict[str, Pair], rounds: int) -> dict[str, tuple[float, float, float]]:
    """Return the median seconds of the engine alone, of the passes before the draw, and of the draw."""
    times: dict[str, list[tuple[float, float, float]]] = {name: [] for name in pairs}
    for number in range(rounds + 1):
        for name, (same, counted) in pairs.items():
            begin = time.perf_counter()
            same()
            alone = time.perf_counter()
            draw = counted()
            ready = time.perf_counter()
            draw()
            # The first round starts workers and compilers.
            if number:
                times[name].append((alone - begin, ready - alone, time.perf_counter() - ready))
            print(f"{name}: {time.perf_counter() - begin:.2f} s", file=sys.stderr, flush=True)
    return {
        name: (
            statistics.median(run[0] for run in runs),
            statistics.median(run[1] for run in runs),
            statistics.median(run[2] for run in runs),
        )
        for name, runs in times.items()
    }


def page(rows: int, rounds: int) -> str:
    """Measure everything and return the page."""
    load, table = os.getloadavg()[0], trips(rows)
    by_person = {"person": "rider"}
    with tempfile.TemporaryDirectory(prefix="geoind-bench-") as name:
        for number in range(4):
            some = table.slice(number * rows // 4, (number + 1) * rows // 4 - number * rows // 4)
            pq.write_table(some, Path(name) / f"{number}.parquet")
        session = spark_session()
        pairs: dict[str, Pair] = {
            "Arrow": arrow(table, LARGE, person=EACH_ROW),
            f"Arrow, batches of {SMALL:,}": arrow(table, SMALL, person=EACH_ROW),
            "Arrow, persons": arrow(table, LARGE, **by_person),
            **dict(frames(table)),
            "Dask": dask(table, person=EACH_ROW),
            "Dask, persons": dask(table, **by_person),
            "Dask, five reports per person": dask(table, reports_per_person=5, **by_person),
            "Spark": spark(session, Path(name), 10_000, person=EACH_ROW),
            f"Spark, batches of {SMALL:,}": spark(session, Path(name), SMALL, person=EACH_ROW),
            "Spark, persons": spark(session, Path(name), 10_000, **by_person),
            "Spark, five reports per person": spark(
                session, Path(name), 10_000, reports_per_person=5, **by_person
            ),
        }
        found = measured(pairs, rounds)
        session.stop()
    lines = [
        "# Engines: measured",
        "",
        f"`python3 dev.py bench clusters`: {rows:,} rows, {os.cpu_count()} cores, load average {load:.1f} when it",
        f"began. Seconds of the clock, medians of {rounds} rounds in turns. *Alone*: the engine copies the",
        "columns that leave. *Count*: the pass that examines all rows. *Draw*: the reports, read to the end;",
        "pandas does both at once. *Persons*: a tenth as many persons as rows; without it each row is a person.",
        "",
        "| engine | alone, s | count, s | draw, s | ns per row over alone |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for engine, (alone, count, draw) in found.items():
        over = (count + draw - alone) / rows * 1e9
        first = "" if count < 1e-3 else f"{count:.2f}"
        lines.append(f"| {engine} | {alone:.3f} | {first} | {draw:.2f} | {over:,.0f} |")
    per_batch = [
        1e3 * (sum(found[f"{engine}, batches of {SMALL:,}"][1:]) - sum(found[engine][1:])) / (rows / SMALL)
        for engine in ("Arrow", "Spark")
    ]
    lines += [
        "",
        f"A batch of {SMALL:,} rows costs {per_batch[0]:.2f} ms on Arrow and {per_batch[1]:.2f} ms on Spark more",
        "than the same rows in large batches, both passes together.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=float, default=ROWS)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    made = page(int(options.rows), options.rounds)
    print(made)
    if options.rows == ROWS:
        OUT.write_text(made)


if __name__ == "__main__":
    main()
