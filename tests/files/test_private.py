"""Files with true places can be read by their owner only, from the first byte, however the work ends."""

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
from geoind import EACH_ROW, obfuscate_file
from geoind.files.writers import AtomicWriter

ROWS = 400_000


@pytest.fixture(autouse=True)
def _generous() -> object:
    """Let new files be readable by all users, unless their mode is set."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def open_to_others(folder: Path, known: set[Path]) -> list[str]:
    """Return what is left in a folder that others can read, without what was there before."""
    found = []
    for root, names, files in os.walk(folder):
        # Other users cannot enter a folder of mode 0700.
        names[:] = [name for name in names if mode(Path(root, name)) & 0o077]
        found += [str(Path(root, name)) for name in [*names, *files] if mode(Path(root, name)) & 0o077]
    return [path for path in found if Path(path) not in known]


def test_rejects_are_their_owners_alone_and_reports_are_not(tmp_path: Path) -> None:
    source, target, rejects = tmp_path / "in.csv", tmp_path / "out.csv", tmp_path / "rejects"
    source.write_text("lat,lon\n1,2\n91,2\n")
    rejects.write_text("an older file that all users can read")
    obfuscate_file(source, target, person=EACH_ROW, mechanism=geoind.SphericalLaplace(1000), rejects=rejects)
    assert mode(rejects) == 0o600
    assert mode(target) == 0o666
    assert sorted(open_to_others(tmp_path, {source})) == [str(target), f"{target}.geoind.json"]


def test_unfinished_files_are_their_owners_alone(tmp_path: Path) -> None:
    with AtomicWriter() as delivery:
        delivery.open(tmp_path / "reports").write(b"x")
        delivery.open(tmp_path / "rejects", private=True).write(b"y")
        (delivery.path(tmp_path / "places.gpkg")).write_bytes(b"z")
        assert len(list(tmp_path.rglob("*"))) == 6
        assert open_to_others(tmp_path, set()) == []


def killed_job(tmp_path: Path, *, folder: bool, before: str = "", moment: float = 0) -> list[str]:
    """Kill a job some time after it began to write, and return what is wrong with what is left.

    Parameters
    ----------
    before : str
        Python to run before the job.
    moment : float
        Seconds to wait.
    """
    source, target, rejects = tmp_path / "in", tmp_path / "out", tmp_path / "rejects"
    if not source.exists():
        source.mkdir()
        text = "id,lat,lon\n" + "".join(f"{row},48.858412,2.294512\n" for row in range(ROWS)) + "bad,91,2.294512\n"
        (source / "a.csv").write_text(text)
    known = {source, source / "a.csv"}
    if not folder:
        source, target = source / "a.csv", tmp_path / "out.csv"
    run = ["obfuscate", str(source), str(target), "--epsilon", "0.001", "--each-row-a-person"]
    run += ["--rejects", str(rejects), "--quiet"]
    start = f"import sys\n{before}\nfrom geoind.cli import main\nsys.exit(main({run!r}))"
    job = subprocess.Popen([sys.executable, "-c", start])
    while job.poll() is None and not list(tmp_path.rglob("*.partial")):
        time.sleep(0.005)
    time.sleep(moment)
    job.send_signal(signal.SIGKILL)
    job.wait()
    reports = target / "a.csv" if folder else target
    # A sidecar may come before its file, and holds no place.
    known |= {Path(f"{reports}.geoind.json")}
    wrong = []
    if reports.exists():
        known |= {target, reports}
        if len(reports.read_text().splitlines()) != ROWS + 1 or not Path(f"{reports}.geoind.json").exists():
            wrong.append("the reports are not whole")
    wrong += open_to_others(tmp_path, known)
    for left in (path for path in tmp_path.rglob("*") if path.is_file() and path not in known):
        if mode(left) != 0o600 and not any(part.endswith(".partial") for part in left.parts):
            wrong.append(f"{left} is left")
    return wrong


@pytest.mark.parametrize("folder", [False, True])
def test_what_a_killed_job_leaves_is_whole_or_its_owners_alone(tmp_path: Path, folder: bool) -> None:
    rng = random.Random(3)
    for _ in range(4):
        assert killed_job(tmp_path, folder=folder, moment=rng.uniform(0, 0.6)) == []
        if (tmp_path / ("out" if folder else "out.csv")).exists():
            break


MODES_OFF = """
import os
made, opened = os.mkdir, os.open
os.mkdir = lambda path, mode=0o777, **more: made(path, 0o777, **more)
os.open = lambda path, flags, mode=0o777, **more: opened(path, flags, 0o666, **more)
"""


@pytest.mark.parametrize("folder", [False, True])
def test_the_check_complains_when_files_are_made_for_everybody(tmp_path: Path, folder: bool) -> None:
    assert killed_job(tmp_path, folder=folder, before=MODES_OFF) != []
