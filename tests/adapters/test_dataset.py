import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from geoind import BudgetExceededError, InvalidInputError, KeyedRandomness, Ledger, SphericalLaplace
from geoind.adapters import dataset
from geoind.adapters.dataset import Done
from geoind.adapters.keys import Key
from geoind.pipeline import Costs
from geoind.tables import TablePromise

KEY = hashlib.sha256(b"a key for tests").digest()
NOISE = SphericalLaplace(0.01)


def obfuscate_dataset(source: Path, target: Path, **options: Any) -> Done:
    return dataset.obfuscate_dataset(source, target, **{"workers": 1, "missing": "keep", **options})


def table_of(size: int, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    lon = pa.array(rng.uniform(-180, 180, size), mask=rng.random(size) < 0.1)
    columns = {"who": rng.integers(0, 5, size), "lon": lon, "lat": rng.uniform(-85, 85, size)}
    table = pa.table({"trip": np.arange(size), **columns})
    return table.replace_schema_metadata({"owner": "us"})


def write(folder: Path, sizes: Mapping[str, int], *, group: int = 50) -> Path:
    for seed, (path, size) in enumerate(sizes.items()):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table_of(size, seed), folder / path, row_group_size=group, compression="zstd")
    return folder


def read(folder: Path) -> pa.Table:
    return pa.concat_tables([pq.read_table(folder / path) for path in dataset.parquet_files(folder)])


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "PIECE_ROWS", 100)
    monkeypatch.setattr(dataset, "BATCH_ROWS", 32)


SIZES = {"a.parquet": 30, "day=1/b.parquet": 420, "day=2/b.parquet": 100}


@pytest.mark.usefixtures("small_pieces")
def test_each_row_gets_the_report_of_its_file_and_position(tmp_path: Path) -> None:
    source = write(tmp_path / "in", SIZES)
    done = obfuscate_dataset(source, tmp_path / "out", epsilon=0.01, key=KEY)
    assert done == Done(rows=550, pieces=7, found=0)
    names = dataset.parquet_files(tmp_path / "out")
    assert names == ["a.parquet", *(f"day=1/b.{number:04}.parquet" for number in range(5)), "day=2/b.parquet"]
    for path in SIZES:
        truth = pq.read_table(source / path)
        parts = [name for name in names if name.startswith(path.removesuffix(".parquet"))]
        report = pa.concat_tables([pq.read_table(tmp_path / "out" / part) for part in parts])
        assert report.schema.equals(truth.schema)
        assert report.schema.metadata[b"owner"] == b"us"
        assert TablePromise.from_json(report.schema.metadata[b"geoind"]).epsilon == 0.01
        assert report.drop_columns(["lon", "lat"]) == truth.drop_columns(["lon", "lat"])
        places = truth["lon"].is_valid().to_numpy()
        lonlat = np.column_stack([truth["lon"].to_numpy(), truth["lat"].to_numpy()])[places]
        labels = np.arange(len(truth))[places]
        wanted = NOISE.sample(lonlat, rng=KeyedRandomness(Key(KEY).for_file(path), labels))
        np.testing.assert_array_equal(
            np.column_stack([report["lon"].drop_null().to_numpy(), report["lat"].drop_null().to_numpy()]), wanted
        )
        assert report["lat"].is_null() == truth["lon"].is_null()
    assert pq.ParquetFile(tmp_path / "out" / "a.parquet").metadata.row_group(0).column(0).compression == "ZSTD"


def test_workers_and_row_groups_change_no_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    once = obfuscated = None
    for number, (group, piece, workers) in enumerate([(50, 1 << 20, 1), (50, 100, 2), (7, 64, 1)]):
        monkeypatch.setattr(dataset, "PIECE_ROWS", piece)
        source = write(tmp_path / f"in{number}", SIZES, group=group)
        obfuscate_dataset(source, tmp_path / f"out{number}", epsilon=0.01, key=KEY, workers=workers)
        obfuscated = read(tmp_path / f"out{number}")
        once = once or obfuscated
        assert obfuscated == once


def test_an_id_column_makes_files_and_order_irrelevant(tmp_path: Path) -> None:
    table = table_of(300)
    order = np.random.default_rng(2).permutation(300)
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    pq.write_table(table, tmp_path / "one" / "all.parquet")
    pq.write_table(table.take(order[:100]), tmp_path / "two" / "x.parquet")
    pq.write_table(table.take(order[100:]), tmp_path / "two" / "y.parquet")
    results = []
    for name in ("one", "two"):
        obfuscate_dataset(tmp_path / name, tmp_path / f"{name} out", epsilon=0.01, key=KEY, id_column="trip")
        results.append(read(tmp_path / f"{name} out").sort_by("trip"))
    assert results[0] == results[1]


JOB = """
import os, signal, sys
from geoind.adapters import dataset

def stop(reports, share):
    if share >= 3 / 18:
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    dataset.PIECE_ROWS = 100
    options = {"epsilon": 0.01, "key": bytes.fromhex(sys.argv[3]), "missing": "keep"}
    options |= {"workers": 2, "progress": stop}
    dataset.obfuscate_dataset(sys.argv[1], sys.argv[2], **options)
"""


@pytest.mark.skipif(os.name == "nt", reason="NOT RUN: this system has no SIGKILL")
@pytest.mark.usefixtures("small_pieces")
def test_a_killed_job_finishes_only_what_is_missing(tmp_path: Path) -> None:
    source = write(tmp_path / "in", {f"{number}.parquet": 300 for number in range(6)})
    (tmp_path / "job.py").write_text(JOB)
    out = tmp_path / "out"
    killed = subprocess.run([sys.executable, tmp_path / "job.py", source, out, KEY.hex()], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert not out.exists()
    pieces = tmp_path / ".out.partial" / "out"
    there = {path.name: path.stat().st_ino for path in pieces.glob("*.parquet")}
    assert 3 <= len(there) < 18
    (pieces / ".5.0002.parquet.12345678.partial").mkdir()
    (pieces / ".5.0002.parquet.12345678.partial" / "5.0002.parquet").write_bytes(b"half a piece")
    done = obfuscate_dataset(source, out, epsilon=0.01, key=KEY)
    # A worker may have renamed one more piece while the job was dying.
    assert len(there) <= done.found <= len(there) + 2
    assert {name: (out / name).stat().st_ino for name in there} == there
    assert not list(tmp_path.rglob("*.partial"))
    obfuscate_dataset(source, tmp_path / "never killed", epsilon=0.01, key=KEY)
    assert read(out) == read(tmp_path / "never killed")


def test_records_of_two_files_never_share_noise(tmp_path: Path) -> None:
    zeros = pa.table({"lon": np.zeros(3000), "lat": np.zeros(3000)})
    (tmp_path / "in").mkdir()
    for name in ("a.parquet", "b.parquet"):
        pq.write_table(zeros, tmp_path / "in" / name)
    obfuscate_dataset(tmp_path / "in", tmp_path / "out", epsilon=1e-4, key=KEY)
    report = read(tmp_path / "out")
    assert len(np.unique(np.column_stack([report["lon"], report["lat"]]), axis=0)) >= 5999


def test_without_a_key_every_job_has_one_of_its_own_and_deletes_it(tmp_path: Path) -> None:
    source = write(tmp_path / "in", SIZES)
    for name in ("one", "two"):
        obfuscate_dataset(source, tmp_path / name, epsilon=0.01)
    assert read(tmp_path / "one") != read(tmp_path / "two")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "one", "two"]


def test_a_folder_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    source = write(tmp_path / "in", SIZES)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("!")
    with pytest.raises(InvalidInputError, match="must be a new or an empty folder"):
        obfuscate_dataset(source, tmp_path / "mine", epsilon=0.01, key=KEY)
    for inside in (source, source / "out", tmp_path):
        with pytest.raises(InvalidInputError, match="none inside the other"):
            obfuscate_dataset(source, inside, epsilon=0.01, key=KEY)


class Account:
    """A ledger that writes down what it is asked to charge."""

    def __init__(self, budget: float = np.inf) -> None:
        self.budget = budget
        self.charges: list[tuple[dict[str, int], float]] = []

    def charge_all(self, costs: Costs, *, label: str = "", once: Mapping[str, str] | None = None) -> None:
        raise AssertionError(f"these are no traces: {costs} {label} {once}")

    def charge_counts(
        self,
        reports: Mapping[str, int],
        cost: SphericalLaplace,
        *,
        label: str = "",
        once: Mapping[str, str] | None = None,
    ) -> None:
        assert label
        assert once is not None, "a job has a key"
        epsilon = cost.epsilon
        for person, count in reports.items():
            if count * epsilon > self.budget:
                raise BudgetExceededError(person, count * epsilon, self.budget)
        self.charges.append((dict(reports), epsilon))


@pytest.mark.usefixtures("small_pieces")
def test_totals_of_all_persons_are_charged_once(tmp_path: Path) -> None:
    source = write(tmp_path / "in", SIZES)
    truth = read(source)
    persons = truth["who"].filter(truth["lon"].is_valid()).to_numpy()
    wanted = {str(person): int((persons == person).sum()) for person in np.unique(persons)}
    with Ledger("sqlite://", budget=100.0) as ledger:
        for name in ("one", "two"):
            obfuscate_dataset(source, tmp_path / name, epsilon=0.01, key=KEY, ledger=ledger, person_column="who")
            charged = {person: [charge.reports for charge in ledger.history(person)] for person in wanted}
            assert charged == {person: [count] for person, count in wanted.items()}
        obfuscate_dataset(source, tmp_path / "more", epsilon=0.02, key=KEY, ledger=ledger, person_column="who")
        assert len(ledger.history("0")) == 2, "another epsilon is another release"


def test_an_exhausted_budget_stops_the_job_before_any_report(tmp_path: Path) -> None:
    source = write(tmp_path / "in", SIZES)
    with pytest.raises(BudgetExceededError):
        obfuscate_dataset(
            source, tmp_path / "out", epsilon=0.01, key=KEY, ledger=Account(0.05), person_column="who"
        )
    assert not list((tmp_path / "out").rglob("*.parquet"))
    with pytest.raises(InvalidInputError, match="a ledger needs person_column"):
        obfuscate_dataset(source, tmp_path / "out", epsilon=0.01, key=KEY, ledger=Account(0.05))


def test_a_bad_place_in_the_middle_is_refused_before_anybody_is_charged(tmp_path: Path) -> None:
    source = write(tmp_path / "in", SIZES)
    table = read(source)
    table = table.slice(0, 40).set_column(
        table.schema.get_field_index("lon"), "lon", pa.array([2.0] * 39 + [np.nan])
    )
    pq.write_table(table, source / "bad.parquet")
    account = Account()
    with pytest.raises(InvalidInputError, match="finite"):
        obfuscate_dataset(
            source, tmp_path / "out", epsilon=0.01, key=KEY, ledger=account, person_column="who", workers=1
        )
    assert account.charges == []
    assert not list((tmp_path / "out").rglob("*.parquet"))


def test_a_folder_in_which_a_refused_job_made_nothing_is_gone_and_the_next_may_have_its_name(
    tmp_path: Path,
) -> None:
    source = write(tmp_path / "in", SIZES)
    for path in source.rglob("*.parquet"):
        table = pq.read_table(path)
        pq.write_table(table.append_column("note", table["lat"]), path)
    account = Account()
    job: dict[str, Any] = {"epsilon": 0.01, "key": KEY, "ledger": account, "person_column": "who", "workers": 1}
    for ledger in (account, None):
        with pytest.raises(InvalidInputError, match="'note'"):
            obfuscate_dataset(source, tmp_path / "out", **{**job, "ledger": ledger})
        assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]
    assert obfuscate_dataset(source, tmp_path / "out", **job, drop=["note"]).found == 0
    assert len(account.charges) == 1


def test_an_error_in_a_later_file_leaves_no_piece_of_the_earlier_ones(tmp_path: Path) -> None:
    source = write(tmp_path / "in", {"a.parquet": 40, "b.parquet": 40})
    pq.write_table(pa.table({"lon": [2.0] * 39 + [np.nan], "lat": [48.0] * 40}), source / "c.parquet")
    with pytest.raises(InvalidInputError, match=r"c.parquet: row 39: .* finite"):
        obfuscate_dataset(source, tmp_path / "out", epsilon=0.01, key=KEY)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]


def test_a_file_counts_whatever_case_its_suffix_has_and_a_folder_of_such_a_name_is_a_folder(
    tmp_path: Path,
) -> None:
    source = write(tmp_path / "in", {"a.parquet": 30, "B.PARQUET": 30, "trips.parquet/c.Pq": 30})
    assert obfuscate_dataset(source, tmp_path / "out", epsilon=0.01, key=KEY).rows == 90
    assert read(tmp_path / "out").num_rows == 90


def test_geoparquet_loses_the_box_of_its_true_places(tmp_path: Path) -> None:
    points = shapely.to_wkb(shapely.points(np.column_stack([np.linspace(2, 3, 20), np.linspace(48, 49, 20)])))
    column = {"encoding": "WKB", "geometry_types": ["Point"], "bbox": [2, 48, 3, 49]}
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}
    table = pa.table({"geometry": pa.array(points)}).replace_schema_metadata({"geo": json.dumps(geo)})
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "places.parquet")
    obfuscate_dataset(tmp_path / "in", tmp_path / "out", epsilon=0.01, key=KEY)
    metadata = json.loads(pq.read_schema(tmp_path / "out" / "places.parquet").metadata[b"geo"])
    assert metadata["columns"]["geometry"] == {"encoding": "WKB", "geometry_types": ["Point"]}
    assert pq.read_table(tmp_path / "out" / "places.parquet")["geometry"] != table["geometry"]


BAD = {
    "latitude 91": (
        pa.table({"lon": [0.0, 1.0], "lat": [0.0, 91.0]}),
        "bad.parquet: column 'lat' must stay within 90",
    ),
    "no latitude": (pa.table({"lon": [0.0]}), "bad.parquet: no column is called lat or latitude"),
    "whole numbers": (
        pa.table({"lon": [0], "lat": [1]}),
        "bad.parquet: column 'lon' must be float",
    ),
    "an address": (pa.table({"lon": [0.0], "lat": [1.0], "street": ["Rue"]}), "bad.parquet: .*'street' tells"),
    "other kinds of persons": (pa.table({"lon": [0.0], "lat": [1.0], "who": ["7"]}), "one kind in all files"),
    "persons as floats": (pa.table({"lon": [0.0], "lat": [1.0], "who": [7.0]}), "'who' must name persons"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_before_anything_is_made(name: str, tmp_path: Path) -> None:
    source = write(tmp_path / "in", SIZES)
    table, message = BAD[name]
    pq.write_table(table, source / "bad.parquet")
    with pytest.raises(InvalidInputError, match=message):
        obfuscate_dataset(
            source, tmp_path / "out", epsilon=0.01, person_column="who" if "person" in name else None
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]


def test_what_is_not_parquet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(InvalidInputError, match="there are none"):
        obfuscate_dataset(tmp_path / "in", tmp_path / "out", epsilon=0.01)
    (tmp_path / "in" / "a.parquet").write_text("lon,lat")
    with pytest.raises(InvalidInputError, match="is not a Parquet file"):
        obfuscate_dataset(tmp_path / "in", tmp_path / "out", epsilon=0.01)


def test_an_empty_file_stays_a_file(tmp_path: Path) -> None:
    source = write(tmp_path / "in", {"a.parquet": 0})
    assert obfuscate_dataset(source, tmp_path / "out", epsilon=0.01, key=KEY) == Done(rows=0, pieces=1, found=0)
    assert read(tmp_path / "out") == read(source)
