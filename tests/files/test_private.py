"""What holds true places is its owner's alone, from the first byte, whatever ends the work."""

import os
import random
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

import geoind
from geoind.files import obfuscate_file
from geoind.tables.delivery import Delivery

ROWS = 400_000


@pytest.fixture(autouse=True)
def _generous() -> object:
    """Let new files be everybody's, unless somebody sees to it."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def open_to_others(folder: Path, known: set[Path]) -> list[str]:
    """Return what is left in a folder that others can read, beside what was there before."""
    found = []
    for root, names, files in os.walk(folder):
        # Nobody else gets into a folder that is its owner's alone.
        names[:] = [name for name in names if mode(Path(root, name)) & 0o077]
        found += [str(Path(root, name)) for name in [*names, *files] if mode(Path(root, name)) & 0o077]
    return [path for path in found if Path(path) not in known]


def test_rejects_are_their_owners_alone_and_reports_are_not(tmp_path: Path) -> None:
    source, target, rejects = tmp_path / "in.csv", tmp_path / "out.csv", tmp_path / "rejects"
    source.write_text("lat,lon\n1,2\n91,2\n")
    rejects.write_text("an older file that everybody can read")
    obfuscate_file(source, target, mechanism=geoind.SphericalLaplace(1000), rejects=rejects)
    assert mode(rejects) == 0o600
    assert mode(target) == 0o666
    assert sorted(open_to_others(tmp_path, {source})) == [str(target), f"{target}.geoind.json"]


def test_unfinished_files_are_their_owners_alone(tmp_path: Path) -> None:
    with Delivery() as delivery:
        delivery.open(tmp_path / "reports").write(b"x")
        delivery.open(tmp_path / "rejects", private=True).write(b"y")
        (delivery.path(tmp_path / "places.gpkg")).write_bytes(b"z")
        assert len(list(tmp_path.rglob("*"))) == 6
        assert open_to_others(tmp_path, set()) == []


@pytest.mark.parametrize("folder", [False, True])
def test_what_a_killed_job_leaves_is_whole_or_its_owners_alone(tmp_path: Path, folder: bool) -> None:
    source, target, rejects = tmp_path / "in", tmp_path / "out", tmp_path / "rejects"
    source.mkdir()
    text = "id,lat,lon\n" + "".join(f"{row},48.858412,2.294512\n" for row in range(ROWS)) + "bad,91,2.294512\n"
    (source / "a.csv").write_text(text)
    if not folder:
        source, target = source / "a.csv", tmp_path / "out.csv"
    run = ["obfuscate", str(source), str(target), "--epsilon", "0.001", "--rejects", str(rejects), "--quiet"]
    known = {tmp_path / "in", tmp_path / "in" / "a.csv"}
    rng = random.Random(3)
    for _ in range(4):
        job = subprocess.Popen([sys.executable, "-m", "geoind", *run])
        while job.poll() is None and not list(tmp_path.rglob("*.partial")):
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.6))
        job.send_signal(signal.SIGKILL)
        job.wait()
        reports = target / "a.csv" if folder else target
        if reports.exists():
            assert len(reports.read_text().splitlines()) == ROWS + 1
            known |= {target, reports, Path(f"{reports}.geoind.json")}
            assert Path(f"{reports}.geoind.json").exists()
        # A sidecar may come before its file, and holds no place.
        known |= {Path(f"{reports}.geoind.json")}
        assert open_to_others(tmp_path, known) == []
        for left in (path for path in tmp_path.rglob("*") if path.is_file() and path not in known):
            assert mode(left) == 0o600 or any(part.endswith(".partial") for part in left.parts)
        if target.exists():
            break
