"""A job is paid once, whatever interrupts it, and nothing is charged that is not published."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import shapely

from geoind import (
    BudgetExceededError,
    GeoindError,
    InvalidInputError,
    Ledger,
    PlanarLaplace,
    PostProcessed,
    Projected,
    Projection,
    SphericalLaplace,
    obfuscate_file,
)
from geoind.cli import main
from geoind.errors import LedgerError
from geoind.files import cancel
from geoind.mechanisms.protocol import RandomnessLike
from geoind.parallel import in_processes
from geoind.tables import EACH_FILE, obfuscate
from tests.full_disk import full_disk
from tests.trials import trials

KEY = bytes(range(32))
ROWS = 400
PERSONS = ("p0", "p1", "p2", "p3")


def rows(seed: int = 0) -> pa.Table:
    """Return places of four persons at increasing times."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "trip": np.arange(ROWS) + seed * ROWS,
            "who": [PERSONS[row % len(PERSONS)] for row in range(ROWS)],
            "at": (np.arange(ROWS) + seed * ROWS) * 60,
            "lon": rng.normal(2.3, 0.1, ROWS).round(6),
            "lat": rng.normal(48.8, 0.1, ROWS).round(6),
        }
    )


def write(path: Path, seed: int = 0) -> Path:
    path.parent.mkdir(exist_ok=True)
    table = rows(seed)
    pq.write_table(table, path, row_group_size=100) if path.suffix == ".parquet" else pyarrow.csv.write_csv(
        table, path
    )
    return path


POINTS: dict[str, Any] = {"epsilon": 0.001, "person": "who", "keep": ["who"], "allow_total": 1000}
KEYED: dict[str, Any] = {**POINTS, "key": KEY, "id_column": "trip"}
TRACES: dict[str, Any] = {**POINTS, "time": "at", "method": "independent", "key": KEY}
OPTIONS: dict[str, dict[str, Any]] = {
    "fresh": POINTS,
    "keyed": KEYED,
    "by row": {**POINTS, "key": KEY},
    "bounded": {**KEYED, "reports_per_person": 30},
    "same place": {**POINTS, "same_place": 20_000, "key": KEY},
    "trace": TRACES,
    "each file": {**POINTS, "person": EACH_FILE, "key": KEY},
}


def one_file(tmp_path: Path, options: dict[str, Any], **more: Any) -> Path:
    """Obfuscate a CSV file and return the reports."""
    source = tmp_path / "in.csv"
    if not source.exists():
        write(source)
    obfuscate_file(source, tmp_path / "out.csv", **options, **more)
    return tmp_path / "out.csv"


def folder(tmp_path: Path, options: dict[str, Any], **more: Any) -> Path:
    """Obfuscate a folder of a CSV and a Parquet file and return the folder of reports."""
    source = tmp_path / "in"
    if not source.exists():
        write(source / "a.csv", 1)
        write(source / "b.parquet", 2)
    obfuscate_file([source], tmp_path / "out", **options, **more)
    return tmp_path / "out"


KINDS: dict[str, tuple[Callable[..., Path], dict[str, Any]]] = {
    f"{name}, {case}": (run, options)
    for name, run in (("file", one_file), ("folder", folder))
    for case, options in OPTIONS.items()
}


def content(place: Path) -> dict[str, bytes]:
    """Return the files of reports."""
    paths = [place] if place.is_file() else [path for path in place.rglob("*") if path.is_file()]
    return {path.name: path.read_bytes() for path in paths}


def due(place: Path, options: dict[str, Any]) -> dict[str, int]:
    """Return how many reports each person is in, counted in the output: one per cell with `same_place`."""
    found: dict[str, list[tuple[float, float]]] = {}
    files = [place] if place.is_file() else sorted(place.glob("*.csv")) + sorted(place.glob("*.parquet"))
    for file in files:
        table = pq.read_table(file) if file.suffix == ".parquet" else pyarrow.csv.read_csv(file)
        each_file = options["person"] is EACH_FILE
        for row in table.to_pylist():
            person = ("in.csv" if place.is_file() else file.name) if each_file else row["who"]
            found.setdefault(person, []).append((row["lon"], row["lat"]))
    return {who: len(set(made) if "same_place" in options else made) for who, made in found.items()}


def charged(ledger: Ledger) -> dict[str, int]:
    """Return how many reports each person was charged for."""
    persons = (*PERSONS, "in.csv", "a.csv", "b.parquet")
    counts = {who: sum(charge.reports for charge in ledger.history(who)) for who in persons}
    return {who: count for who, count in counts.items() if count}


def each(reports: float) -> dict[str, int]:
    """Return so many reports of each person."""
    return dict.fromkeys(PERSONS, int(reports))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """A ledger in SQLite; test_paid_model.py has the same laws in PostgreSQL."""
    with Ledger(f"sqlite:///{tmp_path}/ledger.db", budget=100.0) as made:
        yield made


class Killed(BaseException):
    """An end that no handler of errors catches."""


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), Killed()])
@pytest.mark.parametrize("kind", KINDS)
def test_a_job_that_ends_after_the_payment_is_finished_without_another(
    kind: str, error: BaseException, tmp_path: Path, ledger: Ledger
) -> None:
    run, options = KINDS[kind]

    def stop(_count: int, _share: float | None) -> None:
        raise error

    for _ in range(2):
        with pytest.raises((type(error), GeoindError)):
            run(tmp_path, options, ledger=ledger, progress=stop)
        paid = charged(ledger)
        assert paid
        assert not (tmp_path / "out").exists()
        assert not (tmp_path / "out.csv").exists()
    made = run(tmp_path, options, ledger=ledger)
    assert charged(ledger) == paid == due(made, options)
    assert not list(tmp_path.rglob("*.partial"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_release_is_paid_unless_a_key_repeats_its_bytes(
    kind: str, tmp_path: Path, ledger: Ledger
) -> None:
    run, options = KINDS[kind]
    made = run(tmp_path, options, ledger=ledger)
    first, once = content(made), due(made, options)
    assert charged(ledger) == once
    made.rename(tmp_path / "first")
    second = content(run(tmp_path, options, ledger=ledger))
    if "key" in options:
        assert second == first
        assert charged(ledger) == once
    else:
        assert second != first
        assert charged(ledger) == {who: 2 * count for who, count in once.items()}


@pytest.mark.parametrize("case", [case for case in OPTIONS if case != "fresh"])
@pytest.mark.parametrize("run", [one_file, folder])
def test_a_person_whose_rows_changed_pays_again_and_no_other(
    run: Callable[..., Path], case: str, tmp_path: Path, ledger: Ledger
) -> None:
    options = OPTIONS[case]
    run(tmp_path, options, ledger=ledger).rename(tmp_path / "first")
    before = charged(ledger)
    source = tmp_path / "in.csv" if run is one_file else tmp_path / "in" / "a.csv"
    lines = source.read_text().splitlines()
    # All places of a person, since a limit per person may leave any one of them out.
    for number in range(2, len(lines), len(PERSONS)):
        lines[number] = lines[number][: lines[number].rindex(",")] + f",{50 + number / 1e4:.4f}"
    source.write_text("\n".join(lines) + "\n")
    after = due(run(tmp_path, options, ledger=ledger), options)
    changed = source.name if options["person"] is EACH_FILE else "p1"
    assert charged(ledger) == {**before, changed: before[changed] + after[changed]}


@pytest.mark.parametrize("case", ["fresh", "keyed", "trace"])
def test_a_full_disk_is_paid_once(case: str, tmp_path: Path) -> None:
    many = pa.concat_tables([rows(seed) for seed in range(40)])
    pyarrow.csv.write_csv(many, tmp_path / "in.csv")
    with Ledger(f"sqlite:///{tmp_path}/budgets.db", budget=100.0) as ledger:
        with pytest.raises(OSError, match="File too large"), full_disk(200_000):
            one_file(tmp_path, OPTIONS[case], ledger=ledger)
        assert charged(ledger) == each(40 * ROWS / 4)
        one_file(tmp_path, OPTIONS[case], ledger=ledger)
        assert charged(ledger) == each(40 * ROWS / 4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_budget_that_does_not_suffice_leaves_nothing_charged_written_or_kept(kind: str, tmp_path: Path) -> None:
    run, options = KINDS[kind]
    who = "p2"
    if options["person"] is EACH_FILE:
        who = "in.csv" if run is one_file else "b.parquet"
    url = f"sqlite:///{tmp_path}/budgets.db"
    with Ledger(url, budget=100.0) as ledger:
        ledger.charge(who, 1.0)
    with Ledger(url, budget=1.0009) as ledger:
        with pytest.raises(BudgetExceededError):
            run(tmp_path, options, ledger=ledger)
        assert charged(ledger) == {who: 1}
    assert not [path for path in tmp_path.iterdir() if "out" in path.name]


class Unsure:
    """A ledger whose confirmation is lost, before or after the charge is written."""

    def __init__(self, ledger: Ledger, *, written: bool) -> None:
        self._ledger, self._written = ledger, written

    def charge_counts(self, *given: Any, **more: Any) -> None:
        self._lose(self._ledger.charge_counts, *given, **more)

    def charge_all(self, *given: Any, **more: Any) -> None:
        self._lose(self._ledger.charge_all, *given, **more)

    def _lose(self, charge: Callable[..., None], *given: Any, **more: Any) -> None:
        if self._written:
            charge(*given, **more)
        raise LedgerError("the connection was lost")


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_charge_without_confirmation_is_not_made_twice(
    kind: str, written: bool, tmp_path: Path, ledger: Ledger
) -> None:
    run, options = KINDS[kind]
    with pytest.raises(LedgerError):
        run(tmp_path, options, ledger=Unsure(ledger, written=written))
    made = run(tmp_path, options, ledger=ledger)
    assert charged(ledger) == due(made, options)


def test_what_a_planted_file_says_of_a_payment_counts_for_nothing(tmp_path: Path) -> None:
    with Ledger(f"sqlite:///{tmp_path}/budgets.db", budget=100.0) as ledger:
        with pytest.raises(Killed):
            folder(tmp_path, POINTS, ledger=Raising(Killed()))
        state = tmp_path / ".out.partial" / "job.json"
        assert charged(ledger) == {}
        planted = json.loads(state.read_text())
        state.write_text(json.dumps({**planted, "paid": "yes"}))
        with pytest.raises(GeoindError, match="begun by another job"):
            folder(tmp_path, POINTS, ledger=ledger)
        state.write_text(json.dumps(planted))
        folder(tmp_path, POINTS, ledger=ledger)
        assert charged(ledger) == each(2 * ROWS / 4)


class Raising:
    """A ledger that ends the job."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def charge_counts(self, *_given: Any, **_more: Any) -> None:
        raise self._error


class Alike:
    """A mechanism whose `repr` and epsilon do not tell what it draws."""

    epsilon, space = 0.001, "lonlat"

    def __init__(self, sign: int) -> None:
        self._sign = sign

    def __repr__(self) -> str:
        return "Alike()"

    def reach(self, confidence: float) -> float:
        return SphericalLaplace(self.epsilon).reach(confidence)

    def sample(self, points: Any, *, rng: RandomnessLike = None) -> Any:
        places = np.asarray(points)
        return places + self._sign * (SphericalLaplace(self.epsilon).sample(places, rng=rng) - places)


def test_two_mechanisms_that_look_alike_are_two_releases(tmp_path: Path, ledger: Ledger) -> None:
    charges = []
    for sign in (1, -1, 1):
        one_file(tmp_path, {**KEYED, "epsilon": None, "mechanism": Alike(sign)}, ledger=ledger)
        charges.append(charged(ledger)["p0"])
    assert charges == [100, 200, 200]


def test_a_method_with_a_function_is_continued_in_another_process(tmp_path: Path) -> None:
    (key := tmp_path / "key").write_text(KEY.hex())
    key.chmod(0o600)
    write(tmp_path / "in" / "a.csv")
    write(tmp_path / "in" / "b.csv", 1)
    more = ["--trace", "who,at", "--method", "predictive", "--key-file", str(key)]
    line = command(tmp_path, tmp_path / "in", "out", *more)
    killed = subprocess.run([sys.executable, "-c", KILLED_AFTER_ONE_FILE.format(line=line)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert main(line) == 0


KILLED_AFTER_ONE_FILE = """
import os, signal, sys
from geoind.cli import main
from geoind.files import job

write = job._File.write

def once(*given):
    write(*given)
    os.kill(os.getpid(), signal.SIGKILL)

job._File.write = once
sys.exit(main({line!r}))
"""


def test_a_place_measured_again_is_another_draw_although_its_coarse_report_is_equal(ledger: Ledger) -> None:
    coarse = PostProcessed(SphericalLaplace(0.002), lambda reports: reports.round(0))
    for day in range(5):
        home = pd.DataFrame({"who": ["p0"], "id": ["home"], "lon": [2.3 + day / 1e5], "lat": [48.8]})
        options: dict[str, Any] = {"mechanism": coarse, "person": "who", "id_column": "id", "key": KEY}
        obfuscate(home, ledger=ledger, **options)
        obfuscate(home, ledger=ledger, **options)
        assert charged(ledger) == {"p0": day + 1}


@pytest.mark.parametrize("small", [False, True])
def test_rows_that_change_after_the_charge_are_not_published(
    small: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Changing(Ledger):
        def charge_counts(self, *given: Any, **more: Any) -> None:
            super().charge_counts(*given, **more)
            write(tmp_path / "in" / "b.parquet", 7)

    options = {**POINTS, "keep": ["who", "trip"]}
    with Changing(f"sqlite:///{tmp_path}/budgets.db", budget=100.0) as changing:
        if small:
            # The rows that were counted are still in memory.
            folder(tmp_path, options, ledger=changing)
            assert pq.read_table(tmp_path / "out" / "b.parquet")["trip"] == rows(2)["trip"]
            return
        monkeypatch.setattr("geoind.files.job.FEW_BYTES", 0)
        with pytest.raises(InvalidInputError, match=r"b\.parquet: the input changed after the persons"):
            folder(tmp_path, options, ledger=changing, workers=1)
    assert not (tmp_path / "out").exists()


def test_a_place_outside_the_domain_is_refused_before_the_charge(ledger: Ledger) -> None:
    paris = Projected(PlanarLaplace(0.002), Projection(2.35, 48.86))
    frame = pd.DataFrame({"who": ["p0", "p1"], "lon": [2.3, 12.0], "lat": [48.8, 40.0]})
    with pytest.raises(InvalidInputError, match="domain"):
        obfuscate(frame, mechanism=paris, person="who", ledger=ledger)
    assert charged(ledger) == {}


def test_unfinished_work_of_another_folder_is_not_continued(tmp_path: Path, ledger: Ledger) -> None:
    def stop(_count: int, _share: float | None) -> None:
        raise Killed

    for name in ("may", "june"):
        for seed, file in enumerate("ab"):
            write(tmp_path / name / f"{file}.csv", seed)
            os.utime(tmp_path / name / f"{file}.csv", (1, 1))
    with pytest.raises(Killed):
        obfuscate_file([tmp_path / "may"], tmp_path / "out", ledger=ledger, progress=stop, **POINTS)
    with pytest.raises(InvalidInputError, match="begun by another job"):
        obfuscate_file([tmp_path / "june"], tmp_path / "out", ledger=ledger, **POINTS)


def command(tmp_path: Path, source: Path, target: str, *more: str) -> list[str]:
    ledger = ["--ledger", f"sqlite:///{tmp_path}/budgets.db", "--budget", "1000"]
    return [
        "obfuscate",
        str(source),
        str(tmp_path / target),
        "--epsilon",
        "0.001",
        "--allow-total",
        "1000",
        *ledger,
        *more,
    ]


def long_file(tmp_path: Path) -> Path:
    """Write a file that takes a second or two."""
    path = tmp_path / "long.csv"
    pyarrow.csv.write_csv(pa.concat_tables([rows(seed) for seed in range(1500)]), path)
    return path


def wait_for(found: Callable[[], object]) -> None:
    limit = time.monotonic() + 120
    while not found():
        assert time.monotonic() < limit
        time.sleep(0.01)


def test_two_runs_at_once_are_one_release_and_the_second_says_so(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    line = command(tmp_path, long_file(tmp_path), "out.csv", "--person", "who")
    with subprocess.Popen([sys.executable, "-m", "geoind", *line]) as first:
        wait_for((tmp_path / ".out.csv.partial").exists)
        assert main(line) == 2
        assert "another process is working in" in capfd.readouterr().err
        assert main([*line, "--cancel"]) == 2
        assert first.wait(120) == 0
    with Ledger(f"sqlite:///{tmp_path}/budgets.db", budget=1000.0) as ledger:
        assert charged(ledger) == each(1500 * ROWS / 4)
    assert sorted(path.name for path in tmp_path.iterdir() if "out" in path.name) == [
        "out.csv",
        "out.csv.geoind.json",
    ]


LATE = pa.array([[2**62 if row == 7 else 0] for row in range(ROWS)], pa.list_(pa.timestamp("us")))
UNWRITABLE: dict[str, tuple[str, Any, str]] = {
    "a nested time after the year 9999": ("out.csv", LATE, "the year 10000"),
    "NaN in a list": ("out.ndjson", [[float("nan") if row == 7 else 0.0] for row in range(ROWS)], "NaN in lists"),
    "a tab": ("out.tsv", ["a\tb" if row == 7 else "a" for row in range(ROWS)], "holds tabs"),
    "a null character": ("out.gpkg", ["a\0b" if row == 7 else "a" for row in range(ROWS)], "null characters"),
}


@pytest.mark.parametrize("case", UNWRITABLE)
def test_a_value_that_the_format_cannot_hold_is_found_before_a_charge(tmp_path: Path, case: str) -> None:
    name, values, reason = UNWRITABLE[case]
    source, target = tmp_path / "in.parquet", tmp_path / name
    pq.write_table(rows().append_column("note", pa.array(values)), source)
    with Ledger("sqlite://", budget=1000.0) as ledger:
        with pytest.raises(InvalidInputError, match=reason):
            obfuscate_file(source, target, **{**POINTS, "keep": ["note"]}, ledger=ledger)
        assert charged(ledger) == {}
    assert not target.exists()


@pytest.mark.parametrize("keyed", [False, True])
def test_the_same_command_again_is_refused_without_a_key_and_free_with_it(tmp_path: Path, keyed: bool) -> None:
    options = KEYED if keyed else POINTS
    with Ledger("sqlite://", budget=1000.0) as ledger:
        first = one_file(tmp_path, options, ledger=ledger).read_bytes()
        if keyed:
            one_file(tmp_path, options, ledger=ledger)
        else:
            with pytest.raises(InvalidInputError, match="a second release would be charged again"):
                one_file(tmp_path, options, ledger=ledger)
        assert (tmp_path / "out.csv").read_bytes() == first
        assert charged(ledger) == each(ROWS / 4)
    assert not list(tmp_path.glob(".out*"))


@pytest.mark.parametrize("keyed", [False, True])
def test_a_killed_command_is_continued_and_paid_once(tmp_path: Path, keyed: bool) -> None:
    (key := tmp_path / "key").write_text(KEY.hex())
    key.chmod(0o600)
    more = ["--trace", "who,at", "--key-file", str(key)] if keyed else ["--person", "who"]
    source = tmp_path / "in"
    write(source / "a.csv")
    write(source / "b.parquet", 1)
    line = command(tmp_path, source, "out", *more)
    killed = subprocess.run([sys.executable, "-c", KILLED_AFTER_ONE_FILE.format(line=line)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / ".out.partial" / "out" / "a.csv").exists()
    with Ledger(f"sqlite:///{tmp_path}/budgets.db", budget=1000.0) as ledger:
        spent = [ledger.spent(person) for person in PERSONS]
        assert min(spent) > 0
        assert main(line) == 0
        assert [ledger.spent(person) for person in PERSONS] == spent
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "a.csv",
        "a.csv.geoind.json",
        "b.parquet",
    ]


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_command_that_is_killed_at_random_moments_is_paid_once(kind: str, tmp_path: Path) -> None:
    names = ["a.csv", "b.parquet", "c.csv", "d.parquet", "e.csv", "f.parquet"]
    files = [write(tmp_path / "in" / name, seed) for seed, name in enumerate(names)]
    source, count = (files[0], 1) if kind == "file" else (tmp_path / "in", len(files))
    line = command(tmp_path, source, "out.csv" if kind == "file" else "out", "--person", "who")
    if kind != "file":
        line += ["--workers", "2"]
    rng, out = random.Random(kind), tmp_path / line[2]
    for _ in range(trials(8)):
        with subprocess.Popen([sys.executable, "-m", "geoind", *line], stderr=subprocess.DEVNULL) as job:
            # From the moment of its first trace on: a process that is still loading modules has done nothing.
            wait_for(lambda: job.poll() is not None or list(tmp_path.glob(".out*")))
            time.sleep(rng.uniform(0, 0.4))
            job.kill()
        if out.exists():
            break
    # What is complete is refused, and what the kill left of its job is removed.
    whole = out.exists() and (kind == "folder" or not list(tmp_path.glob(".out*/job.json")))
    assert main(line) == (2 if whole else 0)
    assert out.exists()
    assert not list(tmp_path.glob(".out*"))
    with Ledger(f"sqlite:///{tmp_path}/budgets.db", budget=1000.0) as ledger:
        assert charged(ledger) == each(count * ROWS / 4)


def test_cancel_gives_the_work_up_and_says_that_the_payment_stays(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path}/budgets.db"
    with Ledger(url, budget=1000.0) as ledger:
        with pytest.raises(OSError, match="disk"):
            one_file(tmp_path, POINTS, ledger=ledger, progress=lambda *_: (_ for _ in ()).throw(OSError("disk")))
        line = command(tmp_path, tmp_path / "in.csv", "out.csv", "--person", "who", "--cancel")
        assert main(line) == 0
        assert "what was charged stays charged" in capfd.readouterr().err
        assert main(line) == 0
        assert "no unfinished work" in capfd.readouterr().err
        assert charged(ledger) == each(ROWS / 4)
        one_file(tmp_path, POINTS, ledger=ledger)
        assert charged(ledger) == each(2 * ROWS / 4)
    assert not cancel(tmp_path / "out.csv")


def test_a_killed_worker_is_one_sentence() -> None:
    with pytest.raises(GeoindError, match="a worker process ended before its work was done"):
        list(in_processes(2, _kill_workers, [(os.getpid(),)] * 4))


def _kill_workers(parent: int) -> None:
    if os.getpid() == parent:
        time.sleep(1)
    else:
        os.kill(os.getpid(), signal.SIGKILL)


HORIZON = "+proj=ortho +lat_0=0 +lon_0=0 +R=6371000"
OVER_THE_HORIZON: dict[str, dict[str, Any]] = {
    "points": {**POINTS, "epsilon": 1e-4},
    "keyed": {**KEYED, "epsilon": 1e-4},
    "trace": {**TRACES, "epsilon": 1e-4},
    "same place": {**OPTIONS["same place"], "epsilon": 1e-4},
    # The reports have coordinates, and the centres of their cells may have none.
    "cells": {**KEYED, "epsilon": 1e-4, "cells": "geohash:2"},
}


def at_the_edge(path: Path) -> pa.Table:
    """Write points of four persons near the edge of the half of the Earth that a CRS covers."""
    places = geopandas.GeoSeries([shapely.Point(89.9, 0.01 * number) for number in range(40)], crs=4326)
    columns = {name: rows().column(name).to_pylist()[:40] for name in ("trip", "who", "at")}
    geopandas.GeoDataFrame(columns, geometry=places.to_crs(HORIZON)).to_parquet(path)
    return pq.read_table(path)


@pytest.mark.parametrize("name", OVER_THE_HORIZON)
def test_reports_that_have_no_coordinates_in_the_crs_are_an_error_before_the_charge(
    tmp_path: Path, name: str
) -> None:
    source, options = tmp_path / "in.parquet", {**OVER_THE_HORIZON[name], "order": "keep"}
    table = at_the_edge(source)
    with Ledger(f"sqlite:///{tmp_path / 'budgets.db'}", budget=100) as ledger:
        for target in ("out.parquet", "out.gpkg"):
            with pytest.raises(InvalidInputError, match="no coordinates for some reports"):
                obfuscate_file(source, tmp_path / target, ledger=ledger, **options)
        if name != "cells":
            with pytest.raises(InvalidInputError, match="no coordinates for some reports"):
                obfuscate(table, ledger=ledger, **options)
        assert ledger.spent("p0") == 0
        assert not list(tmp_path.glob("*out*"))
        # Degrees need no CRS.
        assert obfuscate_file(source, tmp_path / "out.csv", ledger=ledger, **options).reports == 40
        assert ledger.spent("p0") > 0
