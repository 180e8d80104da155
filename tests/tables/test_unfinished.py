"""Unfinished work: continued by the same job only, private to its owner, one process at a time."""

import json
import os
import shutil
import stat
from pathlib import Path

import pytest

from geoind import GeoindError, InvalidInputError
from geoind.errors import BudgetExceededError, LedgerError
from geoind.keys import Key
from geoind.tables.unfinished import WorkFolder, cancel

JOB = {"source": "trips"}


class Killed(BaseException):
    """An end that no handler of errors catches."""


def begun(target: Path, error: BaseException, *, during: str = "work", key: Key | None = None) -> Key:
    """Begin work that ends with an error, before, during or after the charge; return the key of its noise."""
    keys: list[Key] = []

    def work() -> None:
        with WorkFolder(target, JOB, key) as unfinished:
            keys.append(unfinished.key)
            (unfinished.folder / "a.csv").write_text("lon,lat")
            if during == "count":
                raise error
            with unfinished.charging():
                if during == "charge":
                    raise error
            raise error

    with pytest.raises(type(error)):
        work()
    return keys[0]


def left(target: Path) -> Path:
    return target.parent / f".{target.name}.partial"


POOR = BudgetExceededError("ana", 1.0, 0.0)


@pytest.mark.parametrize(
    ("error", "during"),
    [
        (InvalidInputError("x"), "count"),
        (OSError("x"), "count"),
        (POOR, "charge"),
        (InvalidInputError("x"), "charge"),
    ],
)
def test_work_that_is_surely_not_paid_is_removed(tmp_path: Path, error: Exception, during: str) -> None:
    begun(tmp_path / "out", error, during=during)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "during"),
    [
        (InvalidInputError("x"), "work"),
        (OSError("x"), "work"),
        (LedgerError("x"), "charge"),
        (MemoryError(), "charge"),
        (Killed(), "count"),
    ],
)
def test_work_that_is_paid_or_may_be_is_continued_with_its_key_and_files(
    tmp_path: Path, error: BaseException, during: str, caplog: pytest.LogCaptureFixture
) -> None:
    target = tmp_path / "out"
    key = begun(target, error, during=during)
    assert "out' is not finished" in caplog.text
    assert stat.S_IMODE(left(target).stat().st_mode) == 0o700
    with WorkFolder(target, JOB) as work:
        assert work.key == key
        assert (work.folder / "a.csv").read_text() == "lon,lat"
        work.publish()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert [path.name for path in target.iterdir()] == ["a.csv"]


def test_an_error_in_continued_work_keeps_it(tmp_path: Path) -> None:
    key = begun(tmp_path / "out", Killed())
    assert begun(tmp_path / "out", InvalidInputError("x"), during="count") == key
    assert left(tmp_path / "out").exists()


def test_another_job_does_not_continue_it(tmp_path: Path) -> None:
    target = tmp_path / "out"
    begun(target, Killed())
    for identity, key in (({"source": "others"}, None), (JOB, Key(bytes(32)))):
        with (
            pytest.raises(InvalidInputError, match="begun by another job"),
            WorkFolder(target, identity, key),
        ):
            pass
    for text in ("", "7", "[]", "{}", '{"source": "trips", "secret": 7}', '{"source": "trips", "secret": "zz"}'):
        (left(target) / "job.json").write_text(text)
        with pytest.raises(InvalidInputError, match="begun by another job"), WorkFolder(target, JOB):
            pass
    assert left(target).exists()


def test_a_given_key_is_not_written(tmp_path: Path) -> None:
    key = Key(bytes(range(32)))
    assert begun(tmp_path / "out", Killed(), key=key) == key
    assert json.loads((left(tmp_path / "out") / "job.json").read_text())["secret"] == ""
    with WorkFolder(tmp_path / "out", JOB, key) as work:
        assert work.key == key


def test_one_process_at_a_time_works_on_a_target(tmp_path: Path) -> None:
    with WorkFolder(tmp_path / "out", JOB) as work:
        for second in (lambda: WorkFolder(tmp_path / "out", JOB).__enter__(), lambda: cancel(tmp_path / "out")):
            with pytest.raises(GeoindError, match="another process is working in"):
                second()
        assert work.folder.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_others_could_have_written_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "out"
    planted = left(target)
    planted.mkdir(mode=0o700)
    (planted / "job.json").write_text(json.dumps({**JOB, "secret": "00" * 32}))
    for mode in (0o755, 0o770, 0o701):
        planted.chmod(mode)
        with (
            pytest.raises(InvalidInputError, match="must belong to this user and have mode 0700"),
            WorkFolder(target, JOB),
        ):
            pass
    elsewhere = planted.rename(tmp_path / "elsewhere")
    elsewhere.chmod(0o700)
    planted.symlink_to(elsewhere)
    with pytest.raises(InvalidInputError, match="is not a folder of unfinished work"), WorkFolder(target, JOB):
        pass
    planted.unlink()
    planted.write_text("a file")
    with pytest.raises(InvalidInputError, match="is not a folder of unfinished work"), WorkFolder(target, JOB):
        pass


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="NOT RUN: only root gives files away")
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    begun(tmp_path / "out", Killed())
    os.chown(left(tmp_path / "out"), 12345, 12345)
    with pytest.raises(InvalidInputError, match="must belong to this user"), WorkFolder(tmp_path / "out", JOB):
        pass


def test_a_folder_without_a_state_is_begun_anew(tmp_path: Path) -> None:
    left(tmp_path / "out").mkdir(mode=0o700)
    (left(tmp_path / "out") / "job.json.new").write_text("{")
    with WorkFolder(tmp_path / "out", JOB) as work:
        work.publish()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_files_without_a_state_are_not_published(tmp_path: Path) -> None:
    planted = left(tmp_path / "out") / "out"
    planted.mkdir(parents=True)
    planted.parent.chmod(0o700)
    (planted / "truth.csv").write_text("48.8584,2.2945")
    with WorkFolder(tmp_path / "out", JOB) as work:
        assert list(work.folder.iterdir()) == []


def test_a_copy_of_unfinished_work_is_not_continued(tmp_path: Path) -> None:
    begun(tmp_path / "out", Killed())
    shutil.copytree(left(tmp_path / "out"), tmp_path / "copy")
    shutil.rmtree(left(tmp_path / "out"))
    (tmp_path / "copy").rename(left(tmp_path / "out"))
    with pytest.raises(InvalidInputError, match="different: folder"), WorkFolder(tmp_path / "out", JOB):
        pass


def test_work_whose_folder_is_gone_is_continued(tmp_path: Path) -> None:
    key = begun(tmp_path / "out", Killed())
    shutil.rmtree(left(tmp_path / "out") / "out")
    with WorkFolder(tmp_path / "out", JOB) as work:
        assert work.key == key
        assert list(work.folder.iterdir()) == []


def test_a_folder_with_an_inherited_group_is_one_to_work_in(tmp_path: Path) -> None:
    tmp_path.chmod(0o2775)
    begun(tmp_path / "out", Killed())
    assert cancel(tmp_path / "out")


def test_cancel_removes_the_work_and_says_whether_there_was_any(tmp_path: Path) -> None:
    begun(tmp_path / "out", Killed())
    assert cancel(tmp_path / "out")
    assert not cancel(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="cannot write"), WorkFolder(tmp_path / "no" / "out", JOB):
        pass


@pytest.mark.parametrize("kind", ["file", "folder"])
@pytest.mark.parametrize("rest", ["nothing", "an empty folder", "a state"])
def test_a_complete_target_is_refused_and_the_rest_of_its_job_is_removed(
    tmp_path: Path, kind: str, rest: str
) -> None:
    target, job = tmp_path / "out", left(tmp_path / "out")
    begun(target, Killed())
    shutil.rmtree(job / "out")
    if rest == "an empty folder":
        (job / "job.json").unlink()
    elif rest == "nothing":
        shutil.rmtree(job)
    if kind == "folder":
        target.mkdir()
    (target / "a.csv" if kind == "folder" else target).write_text("lon,lat")
    refusal = "must be a new or an empty folder" if kind == "folder" else "would be charged again"
    with pytest.raises(InvalidInputError, match=refusal), WorkFolder(target, JOB):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_empty_folder_and_a_file_under_a_given_key_may_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with WorkFolder(tmp_path / "folder", JOB) as work:
        work.publish()
    (tmp_path / "file").write_text("lon,lat")
    with WorkFolder(tmp_path / "file", JOB, Key(bytes(range(32)))):
        pass


def test_work_for_a_folder_that_was_filled_meanwhile_is_kept(tmp_path: Path) -> None:
    begun(tmp_path / "out", Killed())
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "other.csv").write_text("lon,lat")
    with pytest.raises(InvalidInputError, match="must be a new"), WorkFolder(tmp_path / "out", JOB):
        pass
    assert (left(tmp_path / "out") / "out" / "a.csv").exists()
