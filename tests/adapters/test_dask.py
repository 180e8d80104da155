"""Dask gives the reports of the Arrow path, charges them once, and refuses what it cannot protect."""

import hashlib
import logging
import os
import signal
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import dask_geopandas
import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from distributed import Client, LocalCluster, wait

from geoind import EACH_ROW, BudgetExceededError, InvalidInputError, Key, Ledger
from geoind.adapters.dask import obfuscate
from geoind.tables import ReleaseRecord, read_promise, write_sidecar
from geoind.tables import obfuscate as on_arrow

# Dask's own, in its reader and writer of Parquet.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")

KEY = hashlib.sha256(b"a key for tests").digest()
SIZE = 400
PERSONS = ("ana", "ben", "eva")
OPTIONS: dict[str, Any] = {"epsilon": 0.0005, "id_column": "trip", "person": "who", "missing": "keep", "key": KEY}


def trips(size: int = SIZE) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "trip": rng.permutation(size),
            "who": rng.choice(PERSONS, size, p=[0.6, 0.3, 0.1]),
            "fare": rng.uniform(3, 60, size).round(2),
            "lon": rng.uniform(-170, 170, size),
            "lat": rng.uniform(-80, 80, size),
            "secret": [f"secret {number}" for number in range(size)],
        },
        index=pd.Index(np.arange(size), name="row"),
    )
    frame.loc[7, "lon"] = np.nan
    return frame


def lazy(partitions: int = 3) -> Any:
    return dd.from_pandas(trips(), npartitions=partitions)


def counts() -> dict[str, int]:
    return dict(trips().dropna()["who"].value_counts())


def of_arrow(table: pd.DataFrame, **options: Any) -> set[tuple[Any, ...]]:
    made = on_arrow(pa.Table.from_pandas(table, preserve_index=False), **options).read_all()
    return set(zip(*(made[name].to_pylist() for name in sorted(made.column_names)), strict=True))


def of_dask(frame: Any, scheduler: Any = "sync") -> set[tuple[Any, ...]]:
    made = frame.compute(scheduler=scheduler)
    values = (made[name].astype(object).where(made[name].notna(), None) for name in sorted(made.columns))
    return set(zip(*(column.tolist() for column in values), strict=True))


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with dask.config.set(scheduler="sync"):
        yield


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(f"sqlite:///{tmp_path}/budgets.db", budget=1.0) as made:
        yield made


def spent(ledger: Ledger) -> list[float]:
    return [ledger.lifetime(person) for person in PERSONS]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Client]:
    """Two worker processes that come back when they are killed."""
    with (
        # On a busy machine a worker takes long to start, and to answer.
        dask.config.set(
            {
                "distributed.scheduler.allowed-failures": 20,
                "distributed.comm.timeouts.connect": "120s",
                "distributed.comm.timeouts.tcp": "120s",
            }
        ),
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as local,
        Client(local, set_as_default=False) as client,
    ):
        yield client


CASES: dict[str, dict[str, Any]] = {
    "rows without persons": {"person": EACH_ROW},
    "kept columns": {"keep": ["trip", "fare"]},
    "bounded": {"keep": ["trip"], "reports_per_person": 20},
    "one report per cell": {"keep": ["trip"], "same_place": 1e5, "epsilon": 1e-4},
    "several reports together": {"epsilon": None, "level": 2.0, "radius": 200, "reports": 300, "delta": 1e-6},
}


@pytest.mark.parametrize("case", CASES)
def test_reports_are_those_of_the_arrow_path_bit_by_bit(case: str) -> None:
    options: dict[str, Any] = {**OPTIONS, **CASES[case]}
    wanted = of_arrow(trips(), **options)
    record = on_arrow(pa.Table.from_pandas(trips(), preserve_index=False), **options).schema.metadata[b"geoind"]
    shuffled = dd.from_pandas(trips().sample(frac=1, random_state=1), npartitions=7, sort=False)
    for frame in (lazy(1), lazy(4), shuffled):
        reports = obfuscate(frame, **options)
        assert of_dask(reports) == wanted
        assert reports.geoind == ReleaseRecord.from_json(record)
        assert reports.compute().attrs == {"geoind": record.decode()}


def test_a_cluster_changes_no_report(cluster: Client) -> None:
    with dask.config.set(scheduler=cluster.get):
        reports = obfuscate(lazy(4), keep=["trip"], **OPTIONS)
        assert of_dask(reports, cluster) == of_arrow(trips(), keep=["trip"], **OPTIONS)


def slow_partition(number: int, notes: str) -> pd.DataFrame:
    """Leave a note of this run, so that runs can be counted."""
    (Path(notes) / f"{number} {time.monotonic_ns()}").touch()
    time.sleep(0.1)
    return trips().iloc[40 * number : 40 * number + 40]


@pytest.mark.skipif(os.name == "nt", reason="NOT RUN: this system has no SIGKILL")
def test_a_worker_killed_in_the_middle_changes_no_report_and_no_charge(
    cluster: Client, tmp_path: Path, ledger: Ledger
) -> None:
    source = dd.from_map(slow_partition, range(10), notes=str(tmp_path / "notes"), meta=trips().iloc[:0])
    (tmp_path / "notes").mkdir()
    reports = obfuscate(source, ledger=ledger, keep=["trip"], **OPTIONS)
    once, before = spent(ledger), len(list((tmp_path / "notes").iterdir()))
    with cluster.as_current():
        kept = reports.persist(scheduler=cluster)
        deadline = time.monotonic() + 60
        while len(list((tmp_path / "notes").iterdir())) < before + 5 and time.monotonic() < deadline:
            time.sleep(0.02)
        # The worker that holds results dies with them: its partitions must run again.
        holders = [worker for worker, keys in cluster.has_what().items() if keys]
        victim = holders[0] if holders else next(iter(cluster.scheduler_info()["workers"]))
        os.kill(cluster.run(os.getpid, workers=[victim])[victim], signal.SIGKILL)
        wait(kept)
        assert of_dask(kept, cluster) == of_arrow(trips(), keep=["trip"], **OPTIONS)
    assert len(list((tmp_path / "notes").iterdir())) > before + 10
    obfuscate(lazy(), ledger=ledger, **OPTIONS)
    assert spent(ledger) == once == pytest.approx([0.0005 * counts()[person] for person in PERSONS])


def test_the_same_reports_are_charged_once_and_other_ones_again(ledger: Ledger) -> None:
    on_arrow(pa.Table.from_pandas(trips()), ledger=ledger, **OPTIONS)
    once = spent(ledger)
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(obfuscate, lazy(5), ledger=ledger, **OPTIONS) for _ in range(2)]:
            reports = done.result()
    reports.compute()
    assert spent(ledger) == once == pytest.approx([0.0005 * counts()[person] for person in PERSONS])
    moved = trips().assign(lat=lambda rows: rows["lat"] + 0.1 * (rows["who"] == "ben"))
    obfuscate(dd.from_pandas(moved, npartitions=2), ledger=ledger, job="moved", **OPTIONS)
    assert spent(ledger) == pytest.approx([once[0], 2 * once[1], once[2]])
    assert ledger.history("ben")[-1].label == "moved"
    with pytest.raises(BudgetExceededError):
        obfuscate(lazy(), ledger=ledger, **{**OPTIONS, "epsilon": 0.006, "allow_total": 2.0})
    with pytest.raises(InvalidInputError, match="a ledger needs `person=`"):
        obfuscate(lazy(), ledger=ledger, **{**OPTIONS, "person": EACH_ROW})
    assert spent(ledger) == pytest.approx([once[0], 2 * once[1], once[2]])


def read_again(number: int, path: str) -> pd.DataFrame:
    return pd.read_parquet(path).iloc[100 * number : 100 * number + 100]


def test_rows_that_change_after_they_were_counted_are_not_released(tmp_path: Path, ledger: Ledger) -> None:
    path = tmp_path / "a.parquet"
    source = dd.from_map(read_again, range(4), path=str(path), meta=trips().iloc[:0])
    trips().to_parquet(path)
    reports = obfuscate(source, ledger=ledger, **OPTIONS)
    once = spent(ledger)
    assert len(reports.compute()) == SIZE
    grown = pd.concat([trips().iloc[:350], trips().iloc[:50].assign(trip=lambda rows: rows["trip"] + 1000)])
    of_others = trips().assign(who=trips()["who"].replace("ana", "ben"))
    for changed in (grown, of_others, trips().assign(lat=0.0)):
        changed.to_parquet(path)
        with pytest.raises(InvalidInputError, match=r"partition \d has other rows than when they were counted"):
            reports.compute()
    named = obfuscate(
        lazy().map_partitions(lambda part: part.assign(trip=[uuid.uuid4().hex for _ in range(len(part))])),
        **OPTIONS,
    )
    for action in (named.compute, named.head):
        with pytest.raises(InvalidInputError, match="has other rows than when they were counted"):
            action()
    assert spent(ledger) == once


def test_a_source_that_changes_before_the_charge_is_not_charged(tmp_path: Path, ledger: Ledger) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()

    def moving(part: pd.DataFrame) -> pd.DataFrame:
        (runs / uuid.uuid4().hex).touch()
        return part.assign(lat=part["lat"] / len(list(runs.iterdir())))

    with pytest.raises(InvalidInputError, match="has other rows than when they were counted"):
        obfuscate(lazy().map_partitions(moving, meta=trips().iloc[:0]), ledger=ledger, **OPTIONS)
    assert spent(ledger) == [0.0, 0.0, 0.0]


def near_paris(size: int = 2000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    places = rng.normal([2.35, 48.86], 0.05, (size, 2))
    return pd.DataFrame({"trip": np.arange(size), "lon": places[:, 0], "lat": places[:, 1]})


def in_partitions(frame: pd.DataFrame, number: int) -> Any:
    rows = np.array_split(np.arange(len(frame)), number)
    return dd.from_map(lambda some: frame.iloc[some], rows, meta=frame.iloc[:0])


def test_rows_in_the_order_of_their_places_are_refused_across_partitions() -> None:
    options: dict[str, Any] = {"epsilon": 0.01, "id_column": "trip", "person": EACH_ROW, "key": KEY}
    frame = near_paris()
    by_lat = frame.sort_values("lat")
    within = pd.concat(part.sample(frac=1, random_state=1) for _, part in by_lat.groupby(np.arange(2000) // 500))
    sorted_parts = pd.concat(part.sort_values("lon") for _, part in frame.groupby(np.arange(2000) // 25))
    assert len(obfuscate(in_partitions(frame, 4), **options)) == 2000
    for rows, number in ((within, 4), (by_lat, 3), (sorted_parts, 80)):
        with pytest.raises(
            InvalidInputError, match="shows where they are: give `order='keep'` and shuffle the rep"
        ):
            obfuscate(in_partitions(rows, number), **options)
    points = geopandas.GeoDataFrame(
        frame[["trip"]], geometry=geopandas.points_from_xy(frame["lon"], frame["lat"]), crs=4326
    )
    with pytest.raises(InvalidInputError, match="shows where they are"):
        obfuscate(dask_geopandas.from_geopandas(points, npartitions=4).spatial_shuffle(), **options)
    with pytest.raises(InvalidInputError, match="`order='shuffle'` needs all rows in one process: give"):
        obfuscate(in_partitions(frame, 4), **{**options, "order": "shuffle"})
    # The remedy of the message.
    kept = obfuscate(in_partitions(within, 4), keep=["trip"], **{**options, "order": "keep"})
    shuffled = kept.reset_index(drop=True).shuffle("trip").map_partitions(lambda part: part.sample(frac=1))
    order = frame.set_index("trip").loc[shuffled.compute()["trip"]].reset_index()
    assert len(obfuscate(in_partitions(order, 4), **options)) == 2000
    # A drive is in the order of its places because it is in the order of its times.
    drive = by_lat.assign(at=pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(2000), "s"))
    assert list(obfuscate(in_partitions(drive, 4), **options).columns) == ["lon", "lat"]


@pytest.mark.parametrize("where", ["sync", "cluster"])
def test_traces_are_answered_as_on_the_arrow_path_and_charged_once(
    where: str, ledger: Ledger, request: pytest.FixtureRequest
) -> None:
    rng = np.random.default_rng(2)
    times = np.tile(np.arange(40) * 60.0, 3)
    walk = pd.DataFrame(
        {
            "who": np.repeat(["ana", "Zoe\u0301", "Zo\u00e9"], 40),
            "at": np.where(np.arange(120) < 80, times, times + 3600),
            "lon": 2.3 + rng.normal(0, 1e-3, 120).cumsum(),
            "lat": 48.8 + rng.normal(0, 1e-3, 120).cumsum(),
        }
    )
    options: dict[str, Any] = {"person": "who", "time": "at", "epsilon": 0.001, "method": "sparse", "key": KEY}
    on_arrow(walk, ledger=ledger, **options)
    once = [ledger.lifetime(person) for person in ("ana", "Zo\u00e9")]
    wanted = of_arrow(walk, **options)
    frame = in_partitions(walk.sample(frac=1, random_state=1), 5)
    scheduler: Any = "sync" if where == "sync" else request.getfixturevalue("cluster")
    with dask.config.set(scheduler="sync" if where == "sync" else scheduler.get):
        reports = obfuscate(frame, ledger=ledger, **options)
        assert of_dask(reports, scheduler) == wanted
        assert of_dask(reports.partitions[0], scheduler) <= wanted
    assert [ledger.lifetime(person) for person in ("ana", "Zo\u00e9")] == once
    assert (reports.geoind.persons, reports.geoind.busiest.epsilon) == (2, pytest.approx(max(once)))
    if where == "cluster":
        return
    points = geopandas.GeoDataFrame(
        walk[["who", "at"]], geometry=geopandas.points_from_xy(walk["lon"], walk["lat"]), crs=4326
    )
    answered = obfuscate(dask_geopandas.from_geopandas(points, npartitions=4), **options).compute()
    rows = zip(answered["at"], answered.geometry.y, answered.geometry.x, answered["who"], strict=True)
    assert set(rows) == wanted
    with pytest.raises(InvalidInputError, match=r"partition \d, row \d+: .*person '"):
        obfuscate(frame.assign(at=0), **options)
    with pytest.raises(InvalidInputError, match=r"no column|must be a column here"):
        obfuscate(frame.set_index("at"), **options)


def points(crs: object = 4326) -> geopandas.GeoDataFrame:
    frame = trips()
    shapes = geopandas.points_from_xy(frame["lon"] / 100 + 2, frame["lat"] / 100 + 48)
    result = geopandas.GeoDataFrame(frame[["trip", "who"]], geometry=shapes, crs=4326)
    result.loc[7, "geometry"] = None
    return result.to_crs(crs)


@pytest.mark.parametrize("crs", [4326, 2154])
def test_frames_of_points_get_the_same_reports(crs: int) -> None:
    frame = dask_geopandas.from_geopandas(points(crs), npartitions=3)
    frame.calculate_spatial_partitions()
    reports = obfuscate(frame, keep=["trip"], **OPTIONS)
    assert reports.spatial_partitions is None
    found = reports.compute()
    assert found.crs == crs
    assert list(np.flatnonzero(found.geometry.isna())) == [7]
    truth = points(crs).to_crs(4326)
    degrees = pd.DataFrame(truth[["trip", "who"]]).assign(lon=truth.geometry.x, lat=truth.geometry.y)
    wanted = {trip: (lon, lat) for lat, lon, trip in of_arrow(degrees, keep=["trip"], **OPTIONS)}
    reported = found.to_crs(4326).dropna()
    np.testing.assert_allclose(
        np.column_stack([reported.geometry.x, reported.geometry.y]),
        [wanted[trip] for trip in reported["trip"]],
        atol=0 if crs == 4326 else 1e-9,
    )


def test_types_and_index_stay_and_nothing_but_the_kept_columns_leaves() -> None:
    words = pd.Categorical(["a"] * 200 + ["b"] * 150 + ["c"] * 50, categories=["c", "b", "a", "48.85 2.29"])
    frame = (
        trips().astype({"lat": "float32", "trip": "uint16"}).assign(word=words, when=pd.Timestamp("2026-01-01"))
    )
    frame.attrs = {"note": "48.85 2.29"}
    reports = obfuscate(dd.from_pandas(frame, npartitions=2), keep=["trip", "word", "when"], **OPTIONS)
    assert not reports["word"].cat.known
    found = reports.compute()
    assert list(found.columns) == ["trip", "lon", "lat", "word", "when"]
    assert found.index.equals(frame.index)
    assert found["word"].tolist() == words.tolist()
    assert set(found["word"].cat.categories) == {"a", "b", "c"}
    types = ["trip", "lat", "when"]
    assert found.dtypes[types].equals(frame.dtypes[types])
    assert list(found.attrs) == ["geoind"]
    assert found["lon"].isna().sum() == found["lat"].isna().sum() == 1


def test_partitions_stay_as_they_were_counted_whatever_follows(tmp_path: Path) -> None:
    # Dask merges small files where few of their columns are read, but not under every plan.
    for number in range(10):
        wide = trips().iloc[40 * number : 40 * number + 40]
        wide.assign(**{f"more {n}": range(40) for n in range(40)}).to_parquet(tmp_path / f"{number}.parquet")
    reports = obfuscate(dd.read_parquet(tmp_path), keep=["trip"], **OPTIONS)
    wanted = of_arrow(trips(), keep=["trip"], **OPTIONS)
    assert of_dask(reports) == wanted
    assert of_dask(reports.partitions[1]) < wanted
    assert len(reports[["lon"]].head(5)) == 5
    assert reports["lon"].count().compute() == SIZE - 1


def test_the_record_is_next_to_a_folder_and_not_with_other_rows(tmp_path: Path) -> None:
    reports = obfuscate(lazy(), keep=["trip"], **OPTIONS)
    assert dd.concat([reports, lazy()[["trip", "lon", "lat"]]]).compute().attrs == {}
    reports.to_parquet(tmp_path / "reports")
    write_sidecar(tmp_path / "reports", reports.geoind)
    assert read_promise(tmp_path / "reports") == reports.geoind
    assert reports.geoind.busiest.reports == max(counts().values())


def test_the_key_is_in_no_name_plan_error_or_log(
    cluster: Client, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG), dask.config.set({"scheduler": cluster.get}):
        reports = obfuscate(lazy(2), **OPTIONS)
        reports.compute(scheduler=cluster)
        bad = trips()
        bad.loc[300, "lat"] = 91.123456
        with pytest.raises(InvalidInputError, match="partition 1, row 100: latitude must be between") as caught:
            obfuscate(dd.from_pandas(bad, npartitions=2), **OPTIONS)
    reports.pprint()
    seen = [
        caplog.text,
        repr(reports),
        str(reports.expr.operands),
        str(dict(reports.dask)),
        str(list(reports.dask)),
    ]
    seen += [str(cluster.get_worker_logs()), str(cluster.get_scheduler_logs()), str(capfd.readouterr())]
    seen += [reports._name, str(reports.expr.tree_repr()), str(caught.value)]
    for text in seen:
        assert not any(form in text for form in (KEY.hex(), repr(KEY), str(list(KEY))[1:-1], "91.123"))


def pickled_tasks(frame: Any) -> bytes:
    from distributed.protocol import pickle

    return bytes(pickle.dumps(dict(frame.dask)))


def test_a_key_in_a_file_is_not_even_in_the_serialised_tasks(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(KEY.hex())
    (tmp_path / "key").chmod(0o600)
    assert KEY in pickled_tasks(obfuscate(lazy(), **OPTIONS))
    reports = obfuscate(lazy(), **{**OPTIONS, "key": Key.in_file(tmp_path / "key")})
    sent = pickled_tasks(reports)
    assert KEY not in sent
    assert KEY.hex().encode() not in sent
    assert of_dask(reports) == of_arrow(trips(), **OPTIONS)


def test_without_a_key_a_frame_repeats_itself_and_no_other() -> None:
    first, second = (obfuscate(lazy(), **{**OPTIONS, "key": None}) for _ in range(2))
    assert of_dask(first) == of_dask(first)
    assert not of_dask(first) & of_dask(second) - {(None, None)}


def test_what_cannot_be_protected_is_refused_at_once() -> None:
    def refused(match: str, rows: Any = None, **changed: Any) -> None:
        with pytest.raises(InvalidInputError, match=match):
            obfuscate(lazy() if rows is None else rows, **{**OPTIONS, **changed})

    frame, shapes = lazy(), dask_geopandas.from_geopandas(points(), npartitions=2)
    refused("frame must be a DataFrame of Dask, got pandas.DataFrame", trips())
    refused("frame must be a DataFrame of Dask, got pyarrow.Table", pa.table({"lon": [1.0]}))
    refused("`person=` must say whose reports these are", person=None)
    refused("`id_column=` must name the column", id_column=None)
    refused("no column 'x'", lon="x", lat="lat")
    refused("no column 'x'", keep=["x"])
    refused("must be whole numbers, text or bytes", frame.assign(trip=frame["trip"] / 2))
    refused("'lat' holds the true place", id_column="lat")
    refused(r"the busiest person has 2\d\d reports that add up to epsilon", epsilon=0.01)
    refused("'copy' repeats true coordinates", frame.assign(copy=frame["lon"]), keep=["copy"])
    refused(r"partition \d, row 7: (location|longitude) is (missing|empty)", missing="raise")
    refused("must have a CRS", shapes.set_crs(None, allow_override=True))
    refused(
        "repeats true coordinates of its rows: call reset_index", frame.set_index("lat", drop=False), order="keep"
    )
    both = shapes.assign(lon=shapes.geometry.x, lat=shapes.geometry.y)
    refused("'geometry' holds geometries", both, lon="lon", lat="lat", keep=["geometry"])


def test_a_frame_without_rows_gives_a_frame_without_rows(ledger: Ledger) -> None:
    frame = lazy()
    reports = obfuscate(frame[frame["fare"] < 0], ledger=ledger, keep=["trip"], **OPTIONS)
    assert reports.compute().shape == (0, 3)
    assert reports.geoind.persons == 0
    half = obfuscate(frame[frame["trip"] < 2], keep=["trip"], **OPTIONS)
    assert sorted(half.compute()["trip"]) == [0, 1]
