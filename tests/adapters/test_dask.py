import hashlib
import logging
import os
import signal
import time
from collections.abc import Iterator
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
from geoind.adapters.dataset import obfuscate_dataset, parquet_files
from geoind.adapters.keys import Key

from geoind import BudgetExceededError, InvalidInputError, KeyedRandomness, Ledger, SphericalLaplace
from geoind.adapters import dask as door
from tests.adapters.test_dataset import SIZES, read, write
from tests.tables.test_keys import shown

KEY = hashlib.sha256(b"a key for tests").digest()
SIZE = 400


def obfuscate(frame: Any, **options: Any) -> Any:
    return door.obfuscate(frame, **{"missing": "keep", **options})


def trips(size: int = SIZE) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "trip": rng.permutation(size),
            "who": rng.choice(["ana", "ben"], size),
            "lon": rng.uniform(-180, 180, size),
            "lat": rng.uniform(-85, 85, size),
        },
        index=pd.Index(np.arange(size), name="row"),
    )
    frame.loc[7, "lon"] = np.nan
    return frame


def expected(frame: pd.DataFrame, epsilon: float = 0.01) -> pd.DataFrame:
    result = frame.copy()
    places = frame["lon"].notna() & frame["lat"].notna()
    labels = KeyedRandomness(KEY, frame["trip"][places].to_numpy())
    result.loc[~places, ["lon", "lat"]] = np.nan
    result.loc[places, ["lon", "lat"]] = SphericalLaplace(epsilon).sample(
        frame.loc[places, ["lon", "lat"]].to_numpy(), rng=labels
    )
    return result


def equal(found: pd.DataFrame, wanted: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(found.astype({"who": "str"}), wanted.astype({"who": "str"}), check_exact=True)


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
        Client(local) as client,
    ):
        yield client


def test_partitions_and_schedulers_change_no_report(cluster: Client) -> None:
    frame = trips()
    for partitions, scheduler in ((1, "sync"), (7, "threads"), (4, cluster)):
        lazy = obfuscate(dd.from_pandas(frame, npartitions=partitions), epsilon=0.01, id_column="trip", key=KEY)
        equal(lazy.compute(scheduler=scheduler), expected(frame))
    shuffled = dd.from_pandas(frame.sample(frac=1, random_state=1), npartitions=5, sort=False)
    lazy = obfuscate(shuffled, epsilon=0.01, id_column="trip", key=KEY)
    equal(lazy.compute(scheduler="sync").sort_index(), expected(frame))


def slow_partition(number: int, notes: str) -> pd.DataFrame:
    """Leave a note of this run, so that runs can be counted."""
    (Path(notes) / f"{number} {time.monotonic_ns()}").touch()
    time.sleep(0.2)
    return trips().iloc[40 * number : 40 * number + 40]


@pytest.mark.skipif(os.name == "nt", reason="NOT RUN: this system has no SIGKILL")
def test_a_worker_killed_in_the_middle_changes_no_report(cluster: Client, tmp_path: Path) -> None:
    source = dd.from_map(slow_partition, range(10), notes=str(tmp_path), meta=trips().iloc[:0])
    lazy = obfuscate(source, epsilon=0.01, id_column="trip", key=KEY)
    kept = lazy.persist()
    deadline = time.monotonic() + 60
    while len(list(tmp_path.iterdir())) < 5 and time.monotonic() < deadline:
        time.sleep(0.02)
    # The worker that holds results dies with them: its partitions must run again.
    holders = [worker for worker, keys in cluster.has_what().items() if keys]
    victim = holders[0] if holders else next(iter(cluster.scheduler_info()["workers"]))
    os.kill(cluster.run(os.getpid, workers=[victim])[victim], signal.SIGKILL)
    wait(kept)
    equal(kept.compute(), expected(trips()))
    assert len(list(tmp_path.iterdir())) > 10


def test_the_key_is_in_no_name_plan_or_log(
    cluster: Client, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    frame = dd.from_pandas(trips(), npartitions=2)
    lazy = obfuscate(frame, epsilon=0.01, id_column="trip", key=KEY)
    bad = trips()
    bad.loc[300, "lat"] = 91.123456
    broken = obfuscate(dd.from_pandas(bad, npartitions=2), epsilon=0.01, id_column="trip", key=KEY)
    with caplog.at_level(logging.DEBUG), dask.config.set({"distributed.worker.log-format": "%(message)s"}):
        lazy.compute()
        with pytest.raises(InvalidInputError, match=r"row 100: \|latitude\| must be"):
            broken.compute()
    lazy.pprint()
    seen = [caplog.text, repr(lazy), str(lazy.expr.operands), str(dict(lazy.dask)), str(list(lazy.dask))]
    seen += [str(cluster.get_worker_logs()), str(cluster.get_scheduler_logs()), str(capfd.readouterr())]
    seen += [lazy._name, str(lazy.expr.tree_repr())]
    for text in seen:
        assert not any(form in text for form in shown(KEY))


def pickled_tasks(lazy: Any) -> bytes:
    from distributed.protocol import pickle

    return bytes(pickle.dumps(dict(lazy.dask)))


@pytest.mark.usefixtures("cluster")
def test_a_key_in_a_file_is_not_even_in_the_serialised_tasks(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(KEY.hex())
    (tmp_path / "key").chmod(0o600)
    frame = dd.from_pandas(trips(), npartitions=2)
    # Dask keeps plans by their token: the plan with the key in memory must not stand in for the other.
    twin = obfuscate(frame, epsilon=0.01, id_column="trip", key=KEY)
    assert KEY in pickled_tasks(twin)
    lazy = obfuscate(frame, epsilon=0.01, id_column="trip", key=Key.in_file(tmp_path / "key"))
    sent = pickled_tasks(lazy)
    assert KEY not in sent
    assert KEY.hex().encode() not in sent
    equal(lazy.compute(), expected(trips()))


def test_without_a_key_a_frame_repeats_itself_and_no_other(caplog: pytest.LogCaptureFixture) -> None:
    frame = dd.from_pandas(trips(), npartitions=2)
    first, second = (obfuscate(frame, epsilon=0.01, id_column="trip") for _ in range(2))
    equal(first.compute(scheduler="sync"), first.compute(scheduler="threads"))
    assert not first.compute(scheduler="sync")["lat"].equals(second.compute(scheduler="sync")["lat"])
    assert "no key was given" in caplog.text


def test_records_at_one_place_never_share_noise() -> None:
    frame = trips(2000).assign(lon=0.0, lat=0.0)
    lazy = obfuscate(dd.from_pandas(frame, npartitions=5), epsilon=1e-4, id_column="trip", key=KEY)
    assert len(lazy.compute(scheduler="sync")[["lon", "lat"]].drop_duplicates()) >= 1998


def test_types_index_and_other_columns_survive() -> None:
    frame = (
        trips()
        .astype({"lat": "float32", "trip": "uint16"})
        .assign(when=pd.Timestamp("2026-01-01"), what=pd.Series([[1]] * SIZE))
    )
    lazy = obfuscate(dd.from_pandas(frame, npartitions=3), epsilon=0.01, id_column="trip", key=KEY)
    report = lazy.compute(scheduler="sync")
    assert list(report.columns) == list(frame.columns)
    assert report.dtypes[["trip", "lat", "when"]].equals(frame.dtypes[["trip", "lat", "when"]])
    assert report.index.equals(frame.index)
    assert report["lon"].isna().sum() == report["lat"].isna().sum() == 1


def points(crs: object = 4326) -> geopandas.GeoDataFrame:
    frame = trips()
    shapes = geopandas.points_from_xy(frame["lon"] / 100 + 2, frame["lat"] / 100 + 48)
    result = geopandas.GeoDataFrame(frame[["trip", "who"]], geometry=shapes, crs=4326)
    result.loc[7, "geometry"] = None
    return result.to_crs(crs)


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("crs", [4326, 2154])
def test_frames_of_points_get_the_same_reports(crs: int) -> None:
    lazy = dask_geopandas.from_geopandas(points(crs), npartitions=3)
    lazy.calculate_spatial_partitions()
    reports = obfuscate(lazy, epsilon=0.01, id_column="trip", key=KEY)
    assert reports.spatial_partitions is None
    found = reports.compute()
    assert found.crs == crs
    places = found.geometry.notna()
    assert list(np.flatnonzero(~places)) == [7]
    truth = points(crs)[places].to_crs(4326).geometry
    labels = KeyedRandomness(KEY, points()["trip"][places].to_numpy())
    wanted = SphericalLaplace(0.01).sample(np.column_stack([truth.x, truth.y]), rng=labels)
    degrees = found[places].to_crs(4326).geometry
    np.testing.assert_allclose(np.column_stack([degrees.x, degrees.y]), wanted, atol=0 if crs == 4326 else 1e-9)


@pytest.mark.usefixtures("cluster")
def test_a_folder_of_parquet_gets_the_reports_of_the_dataset_job(tmp_path: Path) -> None:
    source = write(tmp_path / "in", SIZES)
    obfuscate_dataset(source, tmp_path / "out", epsilon=0.01, key=KEY, workers=1, missing="keep")
    lazy = door.obfuscate_parquet(source, epsilon=0.01, key=KEY, missing="keep")
    assert lazy.npartitions == len(parquet_files(source))
    found = pa.Table.from_pandas(lazy.compute(), preserve_index=False)
    assert found.select(["trip", "lon", "lat"]) == read(tmp_path / "out").select(["trip", "lon", "lat"])


def test_totals_of_all_persons_are_charged_before_any_report(tmp_path: Path) -> None:
    frame = dd.from_pandas(trips(), npartitions=3)
    counts = trips().drop(index=7)["who"].value_counts()
    options: dict[str, Any] = {"epsilon": 0.01, "id_column": "trip", "key": KEY, "person_column": "who"}
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    with dask.config.set(scheduler="sync"), Ledger(url, budget=4.0) as ledger:
        reports = obfuscate(frame, ledger=ledger, **options)
        spent = {person: ledger.spent(person) for person in ("ana", "ben")}
        assert spent == {person: pytest.approx(0.01 * counts[person]) for person in ("ana", "ben")}
        for _ in range(2):
            reports.compute(scheduler="sync")
        assert ledger.spent("ana") == spent["ana"]
        with pytest.raises(BudgetExceededError):
            obfuscate(frame, ledger=ledger, **{**options, "epsilon": 0.02})
        assert ledger.spent("ben") == spent["ben"]
        with pytest.raises(InvalidInputError, match="a ledger needs person_column"):
            obfuscate(frame, ledger=ledger, epsilon=0.01, id_column="trip", key=KEY)


def test_a_doubt_is_an_error_at_once() -> None:
    frame = dd.from_pandas(trips(), npartitions=2)
    lazy = dask_geopandas.from_geopandas(points(), npartitions=2)
    options: dict[str, Any] = {"epsilon": 0.01, "key": KEY}
    with pytest.raises(InvalidInputError, match="frame must be one of Dask, got DataFrame"):
        obfuscate(pd.DataFrame({"lon": [2.0], "lat": [48.0]}), epsilon=0.01, id_column="trip")
    with pytest.raises(InvalidInputError, match="id_column must name"):
        obfuscate(frame, **options)
    with pytest.raises(InvalidInputError, match="column 'x' must be there once"):
        obfuscate(frame, id_column="trip", lon="x", lat="lat", **options)
    with pytest.raises(InvalidInputError, match="whole numbers, text or bytes"):
        obfuscate(frame.assign(trip=frame["trip"] / 2), id_column="trip", **options)
    with pytest.raises(InvalidInputError, match="'hilbert_distance' tells a place by its name"):
        obfuscate(
            dask_geopandas.from_geopandas(points().drop(index=7), npartitions=2).spatial_shuffle(),
            id_column="trip",
            **options,
        )
    with pytest.raises(InvalidInputError, match="must have a CRS"):
        obfuscate(lazy.set_crs(None, allow_override=True), id_column="trip", **options)
    copied = obfuscate(lazy.assign(a=lazy.geometry.x), id_column="trip", **options)
    with pytest.raises(InvalidInputError, match="'a' repeats the longitude"):
        copied.compute(scheduler="sync")
    both = lazy.assign(lon=lazy.geometry.x, lat=lazy.geometry.y)
    with pytest.raises(InvalidInputError, match="'geometry' holds geometries"):
        obfuscate(both, lon="lon", lat="lat", id_column="trip", **options)
    with pytest.raises(InvalidInputError, match="order='shuffle' needs the whole table"):
        obfuscate(frame, id_column="trip", order="shuffle", **options)


def test_each_partition_has_the_categories_of_its_own_rows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(door, "BATCH_ROWS", 70)
    words = pd.Categorical(["a"] * 200 + ["b"] * 150 + ["c"] * 50, categories=["c", "b", "a", "48.85 2.29"])
    frame = trips().assign(word=words)
    lazy = obfuscate(dd.from_pandas(frame, npartitions=2), epsilon=0.01, id_column="trip", key=KEY)
    assert not lazy["word"].cat.known
    first, second = (part.compute(scheduler="sync") for part in lazy.partitions)
    assert [set(part["word"].cat.categories) for part in (first, second)] == [{"a"}, {"b", "c"}]
    whole = lazy.compute(scheduler="sync")
    assert set(whole["word"].cat.categories) == {"a", "b", "c"}
    assert whole["word"].tolist() == words.tolist()
    frame.to_parquet(tmp_path / "trips.parquet", row_group_size=100)
    read = door.obfuscate_parquet(tmp_path, epsilon=0.01, key=KEY, missing="keep")
    assert not read["word"].cat.known
    assert read.compute(scheduler="sync")["word"].tolist() == words.tolist()
