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
import pyarrow.parquet as pq
import pytest
from geoind.files.folder import obfuscate_files

from geoind import InvalidInputError, Ledger, SphericalLaplace
from geoind.files import folder, job, read_reports
from geoind.files.job import Job
from geoind.tables import Recipe
from geoind.tables.keys import Key

LONLAT = np.random.default_rng(0).normal([2.3, 48.8], 0.01, (40, 2)).round(6)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a folder with a file of each kind."""
    place = tmp_path / "in"
    (place / "deep").mkdir(parents=True)
    rows = [f"p{row % 4},{lat:.6f},{lon:.6f}" for row, (lon, lat) in enumerate(LONLAT.tolist())]
    (place / "a.csv").write_text("\n".join(["who,lat,lon", *rows]))
    (place / "deep" / "b.tsv").write_text("\n".join(["who,lat,lon", *rows]).replace(",", "\t"))
    lines = [json.dumps({"who": "p1", "lat": lat, "lon": lon}) for lon, lat in LONLAT.tolist()]
    (place / "c.ndjson").write_text("\n".join(lines))
    pq.write_table(pa.table({"who": ["p1"] * 40, "lon": LONLAT[:, 0], "lat": LONLAT[:, 1]}), place / "d.parquet")
    points = geopandas.points_from_xy(*LONLAT.T)
    frame = geopandas.GeoDataFrame({"who": ["p1"] * 40}, geometry=points, crs=4326)
    frame.to_file(place / "e.gpkg")
    frame.to_file(place / "f.geojson")
    return place


def job_of(**options: Any) -> Job:
    more = {name: options.pop(name) for name in ("rejects", "ledger", "progress") if name in options}
    return Job(recipe=Recipe.of(epsilon=0.01, **options), **more)


def files_in(place: Path) -> list[str]:
    return sorted(path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file())


def test_every_format_goes_through_several_processes(tmp_path: Path, source: Path) -> None:
    seen: list[float | None] = []
    summary = obfuscate_files(
        [source], tmp_path / "out", job_of(progress=lambda _, share: seen.append(share)), workers=2
    )
    assert summary.reports == 240
    assert seen == [number / 6 for number in range(1, 7)]
    reports = [name for name in files_in(tmp_path / "out") if not name.endswith("geoind.json")]
    assert reports == files_in(source)
    assert len(read_reports(tmp_path / "out").lonlat) == 240
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


def test_an_error_in_another_process_names_its_file_and_leaves_nothing(tmp_path: Path, source: Path) -> None:
    (source / "deep" / "b.tsv").write_text("lat\tlon\n91\t2\n")
    with pytest.raises(InvalidInputError, match=r"^deep/b.tsv: line 2: .latitude. must be at most 90$"):
        obfuscate_files([source], tmp_path / "out", job_of(), workers=2)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    rejects = tmp_path / "bad"
    assert obfuscate_files([source], tmp_path / "out", job_of(rejects=rejects), workers=2).rejected == 1
    bad = rejects / "deep" / "b.tsv.rejects.ndjson"
    assert json.loads(bad.read_text())["line"] == 2
    assert all(stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 for path in (rejects, bad, bad.parent))


class Killed(BaseException):
    """What no handler of errors sees."""


def interrupted(source: Path, target: Path, made: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a job that ends after two files, as if somebody had pulled the plug."""
    write, count = job.Work.write, iter(range(100))

    def write_two(work: job.Work, outputs: job.Outputs) -> None:
        if next(count) == 2:
            raise Killed
        write(work, outputs)

    with monkeypatch.context() as patch:
        patch.setattr(job.Work, "write", write_two)
        with pytest.raises(Killed):
            obfuscate_files([source], target, made, workers=1)


def test_an_interrupted_job_is_taken_up_again_and_pays_once(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copy(source / "a.csv", source / "z.csv")
    for name in ("e.gpkg", "f.geojson"):
        (source / name).unlink()
    with Ledger(f"sqlite:///{tmp_path}/budgets.db", budget=10.0) as ledger:
        paying = job_of(person_column="who", ledger=ledger)
        interrupted(source, tmp_path / "out", paying, monkeypatch)
        spent = ledger.spent("p1")
        assert spent == pytest.approx(0.01 * 110)
        partial = tmp_path / ".out.partial"
        assert stat.S_IMODE(partial.stat().st_mode) == 0o700
        assert not (tmp_path / "out").exists()
        done = {name: (partial / "out" / name).read_bytes() for name in ("a.csv", "c.ndjson")}
        with caplog.at_level(logging.WARNING):
            assert obfuscate_files([source], tmp_path / "out", paying).reports == 120
        assert "2 of 5 files were complete" in caplog.text
        assert ledger.spent("p1") == spent
    for name, text in done.items():
        assert (tmp_path / "out" / name).read_bytes() == text, "what was drawn once is not drawn again"
    assert not partial.exists()


def test_another_job_does_not_take_up_what_is_unfinished(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(source, tmp_path / "out", job_of(), monkeypatch)
    with pytest.raises(InvalidInputError, match="begun by another job"):
        obfuscate_files([source], tmp_path / "out", job_of(keep=["who"]))
    os.utime(source / "a.csv", (1, 1))
    with pytest.raises(InvalidInputError, match="begun by another job"):
        obfuscate_files([source], tmp_path / "out", job_of())
    assert (tmp_path / ".out.partial").exists(), "an error must not remove what another job is at work on"


def test_small_folders_need_no_other_process(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "in_processes", None)
    recipe = Recipe.of(mechanism=SphericalLaplace(0.01))
    assert obfuscate_files([source], tmp_path / "out", Job(recipe=recipe)).reports == 240


@pytest.mark.parametrize(
    ("rejects", "why"),
    [
        ("taken", "Not a directory"),
        ("taken/deep", "Not a directory"),
        ("/proc/bad", "cannot write"),
        ("out", "must not be in that of the reports"),
        ("out/bad", "must not be in that of the reports"),
        ("in/bad", "is inside a source"),
        ("-", "rejects hold true places"),
    ],
)
def test_nobody_pays_where_rejects_cannot_be_written(
    tmp_path: Path, source: Path, rejects: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("something else")
    with Ledger("sqlite://", budget=10.0) as ledger:
        with pytest.raises(InvalidInputError, match=why):
            obfuscate_files([source], "out", job_of(person_column="who", ledger=ledger, rejects=rejects))
        assert ledger.history("p1") == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "taken"]
    assert len(files_in(source)) == 6


def test_a_file_in_the_way_of_one_files_rejects_is_found_before_anybody_pays(tmp_path: Path, source: Path) -> None:
    (tmp_path / "bad" / "deep" / "b.tsv.rejects.ndjson").mkdir(parents=True)
    with Ledger("sqlite://", budget=10.0) as ledger:
        with pytest.raises(InvalidInputError, match="regular file"):
            obfuscate_files(
                [source], tmp_path / "out", job_of(person_column="who", ledger=ledger, rejects=tmp_path / "bad")
            )
        assert ledger.history("p1") == []
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("pattern", ["in", "in/**/*.csv", "i?", "**/*.csv"])
def test_reports_and_rejects_are_not_put_where_the_next_run_would_find_them(
    tmp_path: Path, source: Path, pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for inside in ("in/reports", "in/deep/reports"):
        with pytest.raises(InvalidInputError, match="is inside a source"):
            obfuscate_files([pattern], inside, job_of())
        with pytest.raises(InvalidInputError, match="is inside a source"):
            obfuscate_files([pattern], "../out", job_of(rejects=inside))
    assert len(files_in(source)) == 6


def test_reports_may_be_beside_the_files_that_a_pattern_names(source: Path) -> None:
    assert obfuscate_files([source / "*.csv"], source / "reports", job_of()).reports == 40
    assert obfuscate_files([source / "*.csv"], source / "again", job_of()).reports == 40


def test_no_key_is_written_over_by_rejects(tmp_path: Path, source: Path) -> None:
    (tmp_path / "bad").mkdir()
    key = Key.new_file(tmp_path / "bad" / "a.csv.rejects.ndjson")
    with pytest.raises(InvalidInputError, match=r"a\.csv: .* would be overwritten"):
        obfuscate_files([source], tmp_path / "out", job_of(rejects=tmp_path / "bad", key=key, id_column="who"))
    assert key.read()
