"""Folders of any format: in several processes, whole or not at all, taken up again after a crash."""

import json
import logging
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from geoind import EACH_ROW, InvalidInputError, Ledger, obfuscate_file
from geoind.files import job, read_reports
from geoind.keys import Key
from geoind.tables import EACH_FILE, read_promise

KEY = bytes(range(32))
LONLAT = np.random.default_rng(0).normal([2.3, 48.8], 0.01, (40, 2)).round(6)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a folder with a file of each format that needs no process of GDAL."""
    place = tmp_path / "in"
    (place / "deep").mkdir(parents=True)
    rows = [f"p{row % 4},{lat:.6f},{lon:.6f}" for row, (lon, lat) in enumerate(LONLAT.tolist())]
    (place / "a.csv").write_text("\n".join(["who,lat,lon", *rows]))
    (place / "deep" / "b.tsv").write_text("\n".join(["who,lat,lon", *rows]).replace(",", "\t"))
    lines = [json.dumps({"who": "p1", "lat": lat, "lon": lon}) for lon, lat in LONLAT.tolist()]
    (place / "c.ndjson").write_text("\n".join(lines))
    pq.write_table(pa.table({"who": ["p1"] * 40, "lon": LONLAT[:, 0], "lat": LONLAT[:, 1]}), place / "d.parquet")
    return place


ROWS: dict[str, Any] = {"epsilon": 0.001, "person": EACH_ROW}
PERSONS: dict[str, Any] = {"epsilon": 0.001, "person": "who"}


def files_in(place: Path) -> list[str]:
    return sorted(path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file())


@pytest.mark.slow
def test_every_format_goes_through_several_processes(tmp_path: Path, source: Path) -> None:
    points = geopandas.points_from_xy(*LONLAT.T)
    frame = geopandas.GeoDataFrame({"who": ["p1"] * 40}, geometry=points, crs=4326)
    frame.to_file(source / "e.gpkg")
    frame.to_file(source / "f.geojson")
    seen: list[float | None] = []
    summary = obfuscate_file(
        [source], tmp_path / "out", progress=lambda _, share: seen.append(share), workers=2, **ROWS
    )
    assert summary.reports == 240
    assert seen == [number / 6 for number in range(1, 7)]
    reports = [name for name in files_in(tmp_path / "out") if not name.endswith("geoind.json")]
    assert reports == files_in(source)
    assert len(read_reports(tmp_path / "out").lonlat) == 240
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


@pytest.mark.slow
def test_an_error_in_another_process_names_its_file_and_leaves_nothing(tmp_path: Path, source: Path) -> None:
    (source / "deep" / "b.tsv").write_text("lat\tlon\n91\t2\n")
    with pytest.raises(InvalidInputError, match=r"^deep/b.tsv: row 1: latitude must be"):
        obfuscate_file([source], tmp_path / "out", workers=2, **ROWS)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    rejects = tmp_path / "bad"
    assert obfuscate_file([source], tmp_path / "out", rejects=rejects, workers=2, **ROWS).rejected == 1
    bad = rejects / "deep" / "b.tsv.rejects.ndjson"
    assert json.loads(bad.read_text())["row"] == 1
    assert all(stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 for path in (rejects, bad, bad.parent))


class Killed(BaseException):
    """What no handler of errors sees."""


def interrupted(source: Path, target: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
    """Run a job that is killed after two files."""
    write, count = job._File.write, iter(range(100))

    def write_two(*given: Any) -> Any:
        if next(count) == 2:
            raise Killed
        return write(*given)

    with monkeypatch.context() as patch:
        patch.setattr(job._File, "write", write_two)
        with pytest.raises(Killed):
            obfuscate_file([source], target, **options)


@pytest.mark.parametrize("keyed", [False, True])
def test_an_interrupted_job_is_continued_and_paid_once(
    tmp_path: Path,
    source: Path,
    keyed: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    shutil.copy(source / "a.csv", source / "z.csv")
    (source / "c.ndjson").unlink()
    with Ledger(f"sqlite:///{tmp_path}/budgets.db", budget=10.0) as ledger:
        options = {**PERSONS, "ledger": ledger, **({"key": KEY} if keyed else {})}
        interrupted(source, tmp_path / "out", monkeypatch, **options)
        spent = ledger.spent("p1")
        assert spent == pytest.approx(0.001 * 70)
        partial = tmp_path / ".out.partial"
        assert stat.S_IMODE(partial.stat().st_mode) == 0o700
        assert not (tmp_path / "out").exists()
        done = {name: (partial / "out" / name).read_bytes() for name in ("a.csv", "d.parquet")}
        with caplog.at_level(logging.WARNING):
            assert obfuscate_file([source], tmp_path / "out", **options).reports == 160
        assert "2 of 4 files were complete" in caplog.text
        assert ledger.spent("p1") == spent
    for name, text in done.items():
        assert (tmp_path / "out" / name).read_bytes() == text, "what was drawn once is not drawn again"
    assert not partial.exists()
    if keyed:
        obfuscate_file([source], tmp_path / "again", **PERSONS, key=KEY)
        assert contents(tmp_path / "out") == contents(tmp_path / "again")


def contents(place: Path) -> dict[str, bytes]:
    return {name: (place / name).read_bytes() for name in files_in(place)}


def test_another_job_does_not_continue_what_is_unfinished(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(source, tmp_path / "out", monkeypatch, **ROWS)
    with pytest.raises(InvalidInputError, match="begun by another job"):
        obfuscate_file([source], tmp_path / "out", keep=["who"], **ROWS)
    os.utime(source / "a.csv", (1, 1))
    with pytest.raises(InvalidInputError, match="begun by another job"):
        obfuscate_file([source], tmp_path / "out", **ROWS)
    assert (tmp_path / ".out.partial").exists(), "an error must not remove what another job is at work on"


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"reports_per_person": 5}, {"order": "shuffle"}])
def test_several_workers_give_the_bytes_of_one_under_a_key(
    tmp_path: Path, source: Path, options: dict[str, Any]
) -> None:
    made = []
    for workers in (1, 2):
        out = tmp_path / f"out {workers}"
        obfuscate_file([source], out, workers=workers, key=KEY, keep=["who"], **PERSONS, **options)
        made.append(contents(out))
    assert made[0] == made[1]
    other = tmp_path / "other"
    obfuscate_file([source], other, key=bytes(32), keep=["who"], **PERSONS, **options)
    assert contents(other) != made[0]


def test_small_folders_need_no_other_process(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "in_processes", None)
    assert obfuscate_file([source], tmp_path / "out", **ROWS).reports == 160


def test_a_kept_column_that_no_file_has_is_an_error_before_a_charge(tmp_path: Path, source: Path) -> None:
    with Ledger("sqlite://", budget=10.0) as ledger:
        with pytest.raises(InvalidInputError, match="column 'fare' of `keep=` exists in no file"):
            obfuscate_file([source], tmp_path / "out", ledger=ledger, keep=["who", "fare"], **PERSONS)
        assert ledger.history("p1") == []
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_a_file_of_a_folder_may_lack_a_kept_column(tmp_path: Path, source: Path) -> None:
    with_fares = pa.table({"who": ["p1"] * 40, "fare": range(40), "lon": LONLAT[:, 0], "lat": LONLAT[:, 1]})
    pq.write_table(with_fares, source / "d.parquet")
    obfuscate_file([source], tmp_path / "out", keep=["fare"], **PERSONS)
    assert pq.read_table(tmp_path / "out" / "d.parquet")["fare"].to_pylist() == list(range(40))
    assert pyarrow.csv.read_csv(tmp_path / "out" / "a.csv").column_names == ["lat", "lon"]


def test_a_single_file_must_have_its_kept_columns(tmp_path: Path, source: Path) -> None:
    with pytest.raises(InvalidInputError, match="'fare'"):
        obfuscate_file([source / "a.csv"], tmp_path / "out", keep=["fare"], **ROWS)


def test_each_file_is_a_person_with_its_path(tmp_path: Path, source: Path) -> None:
    with Ledger("sqlite://", budget=10.0) as ledger:
        summary = obfuscate_file([source], tmp_path / "out", ledger=ledger, epsilon=0.001, person=EACH_FILE)
        assert summary.record.persons == 4
        for name in files_in(source):
            assert ledger.spent(name) == pytest.approx(0.04)


def test_the_record_of_every_file_is_that_of_the_whole_release(tmp_path: Path, source: Path) -> None:
    summary = obfuscate_file([source], tmp_path / "out", **PERSONS)
    reports = [name for name in files_in(tmp_path / "out") if not name.endswith("geoind.json")]
    # p1 has ten rows of the first two files, and all of the two others.
    assert summary.record.busiest is not None
    assert summary.record.busiest.reports == 100
    assert {read_promise(tmp_path / "out" / name).busiest for name in reports} == {summary.record.busiest}


@pytest.mark.parametrize("rows", [[], ["p1,91,2"], ["p1,,"]])
def test_a_file_without_any_good_row_becomes_a_file_without_reports(
    tmp_path: Path, source: Path, rows: list[str]
) -> None:
    (source / "a.csv").write_text("\n".join(["who,lat,lon", *rows]) + "\n")
    summary = obfuscate_file([source], tmp_path / "out", rejects=tmp_path / "bad", **PERSONS)
    assert (summary.reports, summary.rejected) == (120, len(rows))
    assert (tmp_path / "out" / "a.csv").read_text() == "lat,lon\n"


@pytest.mark.parametrize(
    ("rejects", "why"),
    [
        ("taken", "Not a directory"),
        ("taken/deep", "Not a directory"),
        ("/proc/bad", "cannot write"),
        ("out", "must not be in that of the reports"),
        ("out/bad", "must not be in that of the reports"),
        ("in/bad", "is inside a source"),
        ("-", "`rejects=` holds true places"),
    ],
)
def test_nothing_is_charged_where_rejects_cannot_be_written(
    tmp_path: Path, source: Path, rejects: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("something else")
    with Ledger("sqlite://", budget=10.0) as ledger:
        with pytest.raises(InvalidInputError, match=why):
            obfuscate_file([source], "out", ledger=ledger, rejects=rejects, **PERSONS)
        assert ledger.history("p1") == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "taken"]
    assert len(files_in(source)) == 4


def test_a_file_in_the_way_of_one_files_rejects_is_found_before_a_charge(tmp_path: Path, source: Path) -> None:
    (tmp_path / "bad" / "deep" / "b.tsv.rejects.ndjson").mkdir(parents=True)
    with Ledger("sqlite://", budget=10.0) as ledger:
        with pytest.raises(InvalidInputError, match="regular file"):
            obfuscate_file([source], tmp_path / "out", ledger=ledger, rejects=tmp_path / "bad", **PERSONS)
        assert ledger.history("p1") == []
    assert not (tmp_path / "out").exists()


def test_the_current_folder_is_no_target(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for target in (".", "..", tmp_path / "here"):
        with pytest.raises(InvalidInputError, match="another folder than the current one"):
            obfuscate_file([source], target, **PERSONS)


def test_reports_and_rejects_are_not_put_where_the_next_run_would_find_them(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for inside in ("in/reports", "in/deep/reports"):
        with pytest.raises(InvalidInputError, match="is inside a source"):
            obfuscate_file(["in"], inside, **ROWS)
        with pytest.raises(InvalidInputError, match="is inside a source"):
            obfuscate_file(["in"], "../out", rejects=inside, **ROWS)
    assert len(files_in(source)) == 4


def test_reports_may_be_beside_files_that_are_named(source: Path) -> None:
    assert obfuscate_file([source / "a.csv"], source / "reports", **ROWS).reports == 40
    assert obfuscate_file([source / "a.csv"], source / "again", **ROWS).reports == 40


def test_no_key_is_written_over_by_rejects(tmp_path: Path, source: Path) -> None:
    (tmp_path / "bad").mkdir()
    key = Key.new_file(tmp_path / "bad" / "a.csv.rejects.ndjson")
    with pytest.raises(InvalidInputError, match=r"a\.csv\..* would be overwritten"):
        obfuscate_file([source], tmp_path / "out", rejects=tmp_path / "bad", key=key, **ROWS)
    assert key.read()


@pytest.mark.parametrize(
    "source", ["s3://bucket/trips.csv", Path("gs://bucket/trips"), ["in.csv", "https://a.example/b.csv"]]
)
def test_an_address_is_no_local_folder(tmp_path: Path, source: str | Path | list[str]) -> None:
    with pytest.raises(InvalidInputError, match="is an address, and only local files"):
        obfuscate_file(source, tmp_path / "out", person=EACH_ROW, epsilon=0.01)
    (tmp_path / "in.csv").write_text("lat,lon\n48.85,2.29\n")
    with pytest.raises(InvalidInputError, match="is an address"):
        obfuscate_file(tmp_path / "in.csv", "s3://bucket/out.csv", person=EACH_ROW, epsilon=0.01)
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]
