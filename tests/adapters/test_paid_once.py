"""The same reports under the same key are charged once, whichever engine makes them and however often."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask.dataframe as dd
import geopandas
import numpy as np
import pandas as pd
import pytest

from geoind import Ledger
from geoind.adapters import dask
from geoind.adapters import spark as on_spark
from geoind.adapters.dataset import obfuscate_dataset
from geoind.adapters.geopandas import obfuscate_points, obfuscate_traces
from geoind.files import obfuscate_file
from geoind.mechanisms.sphere import SphericalLaplace
from geoind.tables.tracing import tracing_of
from geoind.traces import table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")

PERSONS = ("ana", "ben", "cyd")
EACH = 20
RNG = np.random.default_rng(5)
FRAME = pd.DataFrame(
    {
        "trip": [f"t{number}" for number in range(len(PERSONS) * EACH)],
        "who": PERSONS * EACH,
        "at": np.arange(len(PERSONS) * EACH) * 60.0,
        "lon": RNG.normal(2.3, 0.1, len(PERSONS) * EACH).round(6),
        "lat": RNG.normal(48.8, 0.1, len(PERSONS) * EACH).round(6),
    }
)
POINTS: dict[str, Any] = {"epsilon": 0.001, "person_column": "who", "id_column": "trip", "key": bytes(32)}
TRACES: dict[str, Any] = {"epsilon": 0.001, "trace": "who,at", "method": "sparse", "key": bytes(32)}


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(f"sqlite:///{tmp_path}/budgets.db", budget=100.0) as made:
        yield made


def spent(ledger: Ledger) -> list[float]:
    return [ledger.lifetime(person) for person in PERSONS]


def by_file(frame: pd.DataFrame, ledger: Ledger, tmp_path: Path, **options: Any) -> None:
    frame.to_csv(tmp_path / "in.csv", index=False)
    obfuscate_file(tmp_path / "in.csv", tmp_path / "out.csv", ledger=ledger, **options)


def by_dataset(frame: pd.DataFrame, ledger: Ledger, tmp_path: Path, **options: Any) -> None:
    (tmp_path / "in").mkdir(exist_ok=True)
    frame.to_parquet(tmp_path / "in" / "a.parquet")
    number = len(list(tmp_path.iterdir()))
    obfuscate_dataset(tmp_path / "in", tmp_path / f"out {number}", ledger=ledger, workers=1, **options)


def by_frame(frame: pd.DataFrame, ledger: Ledger, _: Path, **options: Any) -> None:
    if "trace" in options:
        options.pop("trace")
        obfuscate_traces(frame, person="who", time="at", ledger=ledger, **options)
    else:
        obfuscate_points(frame, ledger=ledger, **options)


def by_geoframe(frame: pd.DataFrame, ledger: Ledger, tmp_path: Path, **options: Any) -> None:
    points = geopandas.points_from_xy(frame["lon"], frame["lat"])
    plain = frame.drop(columns=["lon", "lat"])
    by_frame(geopandas.GeoDataFrame(plain, geometry=points, crs=4326), ledger, tmp_path, **options)


def by_dask(frame: pd.DataFrame, ledger: Ledger, _: Path, **options: Any) -> None:
    dask.obfuscate(dd.from_pandas(frame, npartitions=3), ledger=ledger, **options)


def by_arrays(frame: pd.DataFrame, ledger: Ledger, _: Path, **options: Any) -> None:
    method = tracing_of("who,at", options["method"], SphericalLaplace(options["epsilon"])).method
    table.obfuscate_traces(
        frame[["lon", "lat"]].to_numpy(),
        persons=frame["who"].tolist(),
        times=frame["at"].to_numpy(),
        method=method,
        key=options["key"],
        ledger=ledger,
    )


ENGINES: dict[str, tuple[Callable[..., None], dict[str, Any]]] = {
    "file": (by_file, POINTS),
    "dataset": (by_dataset, POINTS),
    "frame": (by_frame, POINTS),
    "geoframe": (by_geoframe, POINTS),
    "dask": (by_dask, POINTS),
    "traces in a file": (by_file, TRACES),
    "traces in a frame": (by_frame, TRACES),
    "traces in dask": (by_dask, TRACES),
    "traces in arrays": (by_arrays, TRACES),
}


@pytest.mark.parametrize("engine", ENGINES)
def test_the_same_call_is_charged_once_and_another_release_again(
    engine: str, ledger: Ledger, tmp_path: Path
) -> None:
    run, options = ENGINES[engine]
    for _ in range(2):
        run(FRAME, ledger, tmp_path, **options)
        once = spent(ledger)
        assert min(once) > 0
        if options is POINTS:
            assert once == pytest.approx([0.001 * EACH] * 3)
    moved = FRAME.assign(lat=FRAME["lat"] + 0.1 * (FRAME["who"] == "ben"))
    run(moved, ledger, tmp_path, **options)
    assert spent(ledger)[0] == once[0]
    assert spent(ledger)[1] > once[1]
    assert spent(ledger)[2] == once[2]


@pytest.mark.parametrize("options", [POINTS, TRACES], ids=["points", "traces"])
def test_engines_know_each_others_payments(options: dict[str, Any], ledger: Ledger, tmp_path: Path) -> None:
    runs = {name: run for name, (run, own) in ENGINES.items() if own is options}
    charges = []
    for run in runs.values():
        run(FRAME, ledger, tmp_path, **options)
        charges.append(spent(ledger))
    assert charges == [charges[0]] * len(runs)


def test_spark_knows_what_was_paid(spark: "SparkSession", ledger: Ledger, tmp_path: Path) -> None:
    FRAME.to_parquet(tmp_path / "frame.parquet")
    frame = spark.read.parquet(str(tmp_path / "frame.parquet")).repartition(4)
    for options in (POINTS, TRACES):
        by_frame(FRAME, ledger, tmp_path, **options)
        once = spent(ledger)
        for _ in range(2):
            on_spark.obfuscate(frame, ledger=ledger, **options)
            assert spent(ledger) == once
    on_spark.obfuscate(frame, ledger=ledger, **{**POINTS, "key": bytes(range(32))})
    assert min(np.subtract(spent(ledger), once)) > 0, "another key is another release"


def test_rows_of_files_are_paid_once_on_spark_and_in_a_dataset(
    spark: "SparkSession", ledger: Ledger, tmp_path: Path
) -> None:
    by_row = {name: value for name, value in POINTS.items() if name != "id_column"}
    by_dataset(FRAME, ledger, tmp_path, **by_row)
    once = spent(ledger)
    frame = spark.read.parquet(str(tmp_path / "in"))
    on_spark.obfuscate(frame, root=str(tmp_path / "in"), ledger=ledger, **by_row)
    assert spent(ledger) == once


def test_without_a_key_each_call_on_a_frame_is_charged(ledger: Ledger) -> None:
    for calls in (1, 2):
        obfuscate_points(FRAME, ledger=ledger, epsilon=0.001, person_column="who")
        assert spent(ledger) == pytest.approx([0.001 * EACH * calls] * 3)
