import os
import shutil
import stat
import sys
from pathlib import Path

import pytest

from geoind.errors import InvalidInputError
from geoind.files.writers import AtomicWriter, private_folder
from tests.full_disk import full_disk


def test_files_appear_together_at_the_end_the_one_opened_first_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    replace = Path.replace

    def noted(self: Path, target: Path) -> Path:
        order.append(Path(target).name)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", noted)
    with AtomicWriter() as delivery:
        for name in ("reports.csv", "reports.csv.geoind.json", "rejects"):
            delivery.open(tmp_path / name).write(b"x")
        assert not [path for path in tmp_path.iterdir() if path.name[0] != "."]
    assert order == ["rejects", "reports.csv.geoind.json", "reports.csv"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(order)


def test_companions_of_a_file_come_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    replace = Path.replace

    def noted(self: Path, target: Path) -> Path:
        order.append(Path(target).name)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", noted)
    with AtomicWriter() as delivery:
        main = delivery.path(tmp_path / "homes.shp")
        for suffix in (".shp", ".dbf", ".shx"):
            main.with_suffix(suffix).write_bytes(b"x")
    assert order[-1] == "homes.shp"
    assert len(order) == 3


def test_after_an_error_nothing_is_left_and_what_was_there_stays(tmp_path: Path) -> None:
    (tmp_path / "reports.csv").write_text("old")

    def fail() -> None:
        with AtomicWriter() as delivery:
            delivery.open(tmp_path / "reports.csv").write(b"new")
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        fail()
    assert [path.name for path in tmp_path.iterdir()] == ["reports.csv"]
    assert (tmp_path / "reports.csv").read_text() == "old"


def test_what_holds_true_places_is_its_owners_alone_and_so_is_everything_unfinished(tmp_path: Path) -> None:
    with AtomicWriter() as delivery:
        delivery.open(tmp_path / "rejects", private=True).write(b"x")
        [aside] = tmp_path.iterdir()
        assert stat.S_IMODE(aside.stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "rejects").stat().st_mode) & 0o077 == 0
    made = private_folder(tmp_path / "deep" / "er")
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in (made, made.parent)] == [0o700, 0o700]


@pytest.mark.parametrize("count", [2, 3])
def test_an_older_file_is_never_beside_the_promise_of_a_newer_one(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("reports.csv", "reports.csv.geoind.json", "rejects")[:count]
    for name in names:
        (tmp_path / name).write_text("old")
    seen: list[set[str]] = []
    replace = Path.replace

    def noted(self: Path, target: Path) -> Path:
        moved = replace(self, target)
        seen.append({(tmp_path / name).read_text() for name in names[:2] if (tmp_path / name).exists()})
        return moved

    monkeypatch.setattr(Path, "replace", noted)
    with AtomicWriter() as delivery:
        for name in names:
            delivery.open(tmp_path / name).write(b"new")
    assert seen[-2:] == [{"new"}, {"new"}]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)


def test_standard_output_gets_everything_at_the_end_or_nothing(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with AtomicWriter() as delivery:
        delivery.open("-").write(b"lon,lat\n")
        assert capfdbinary.readouterr().out == b""
    assert capfdbinary.readouterr().out == b"lon,lat\n"


def test_what_is_no_regular_file_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="regular file"):
        AtomicWriter().open(tmp_path)
    with pytest.raises(InvalidInputError, match="cannot write"):
        AtomicWriter().open(tmp_path / "nowhere" / "reports.csv")


@pytest.mark.skipif(os.name != "posix", reason="only POSIX has such modes")
def test_a_file_is_as_open_as_any_other_unless_it_holds_true_places(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    with AtomicWriter() as delivery:
        delivery.open(tmp_path / "reports").write(b"lon,lat")
        delivery.open(tmp_path / "rejects", private=True).write(b"lon,lat")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"usual": modes["usual"], "reports": modes["usual"], "rejects": 0o600}


def test_standard_output_is_through_when_the_context_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "out").open("w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        with AtomicWriter() as delivery:
            delivery.open("-").write(b"lon,lat")
        assert (tmp_path / "out").read_bytes() == b"lon,lat"


def test_what_appears_is_whole_and_on_the_disk_although_it_was_not_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[int] = set()
    appeared: dict[str, bytes] = {}
    replace = Path.replace

    def noted(self: Path, target: Path) -> Path:
        assert self.stat().st_ino in synced
        appeared[self.name] = self.read_bytes()
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", lambda number: synced.add(os.fstat(number).st_ino))
    monkeypatch.setattr(Path, "replace", noted)
    with AtomicWriter() as delivery:
        files = [delivery.open(tmp_path / name) for name in ("a", "b")]
        for file in files:
            file.write(b"lon,lat")
    assert appeared == {"a": b"lon,lat", "b": b"lon,lat"}
    assert all(file.closed for file in files)


def test_a_file_alone_takes_the_place_of_the_older_one_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "reports.csv").write_text("old")
    replace, before = Path.replace, []

    def noted(self: Path, target: Path) -> Path:
        before.append(Path(target).read_text())
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", noted)
    with AtomicWriter() as delivery:
        delivery.open(tmp_path / "reports.csv").write(b"new")
    assert before == ["old"]
    assert (tmp_path / "reports.csv").read_text() == "new"


def test_after_an_error_every_file_is_closed_and_the_error_is_the_one_there_was(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    opened = []

    def fail() -> None:
        with AtomicWriter() as delivery:
            opened.extend([delivery.open(tmp_path / "a"), delivery.open("-")])
            for file in opened:
                file.write(b"lon,lat")
            # Another process removes files.
            for aside in tmp_path.iterdir():
                shutil.rmtree(aside)
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        fail()
    assert [file.closed for file in opened] == [True, True]
    assert capfdbinary.readouterr().out == b""
    with AtomicWriter() as delivery:
        opened.append(delivery.open("-"))
    assert opened[-1].closed


def test_a_file_to_write_can_be_read_again_before_it_appears(tmp_path: Path) -> None:
    with AtomicWriter() as delivery:
        for name in (str(tmp_path / "a"), "-"):
            file = delivery.open(name)
            file.write(b"lon,lat")
            file.seek(4)
            assert file.read() == b"lat"


def test_a_folder_that_another_process_makes_meanwhile_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "made"
    made.mkdir()
    is_dir, asked = Path.is_dir, []

    def late(self: Path, **options: bool) -> bool:
        asked.append(self)
        return asked.count(made) > 1 and is_dir(self, **options) if self == made else is_dir(self, **options)

    monkeypatch.setattr(Path, "is_dir", late)
    assert private_folder(made) == made


def test_a_full_disk_leaves_nothing_not_even_what_waits_to_be_written(tmp_path: Path) -> None:
    def fill() -> None:
        with AtomicWriter() as delivery:
            file = delivery.open(tmp_path / "reports.csv")
            for _ in range(100):
                file.write(bytes(1000))

    with full_disk(), pytest.raises(OSError, match="too large"):
        fill()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_standard_stream_is_not_replaced_whatever_its_name(tmp_path: Path, number: int) -> None:
    with (tmp_path / "job.log").open("w") as log:
        before = os.dup(number)
        os.dup2(log.fileno(), number)
        try:
            for name in (tmp_path / "job.log", f"/dev/fd/{number}"):
                with pytest.raises(InvalidInputError, match="no standard stream"):
                    AtomicWriter().open(name)
        finally:
            os.dup2(before, number)
            os.close(before)


def test_standard_output_that_is_closed_is_refused_before_anything_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(InvalidInputError, match="standard output is closed"):
        AtomicWriter().open("-")


def test_an_end_right_after_the_hidden_folder_was_made_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Path.mkdir

    def made_and_interrupted(path: Path, mode: int = 0o777) -> None:
        made(path, mode)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "mkdir", made_and_interrupted)
    with pytest.raises(KeyboardInterrupt), AtomicWriter() as delivery:
        delivery.open(tmp_path / "reports.csv")
    assert list(tmp_path.iterdir()) == []
