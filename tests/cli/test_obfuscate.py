import io
import os
import pty
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from geoind import Ledger
from geoind.cli import main
from geoind.tables.promise import read_promise

PLACES = "name,lat,lon\nEiffel,48.8584,2.2945\nMontparnasse,48.8421,2.3219\n"
SHARP = ["--epsilon", "1000", "--little-noise"]


@pytest.fixture
def places(tmp_path: Path) -> Path:
    path = tmp_path / "places.csv"
    path.write_text(PLACES)
    return path


def refusal(capfd: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["obfuscate", *map(str, arguments)]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("geoind: ")
    assert err.count("\n") == 1
    return err


def test_noise_below_ten_metres_is_refused_unless_it_is_meant(
    places: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    target = places.with_name("out.csv")
    message = refusal(capfd, places, target, "--level", "1.386", "--radius", "0.2")
    assert "moves reports by 0.29 m on average" in message
    assert "add --little-noise" in message
    assert not target.exists()
    assert main(["obfuscate", str(places), str(target), "--epsilon", "5", "--little-noise", "--quiet"]) == 0


def test_a_file_becomes_a_file_of_reports_with_a_sidecar(places: Path, capfd: pytest.CaptureFixture[str]) -> None:
    target = places.with_name("reports.csv")
    assert main(["obfuscate", str(places), str(target), "--level", "1.386", "--radius", "200"]) == 0
    out, err = capfd.readouterr()
    assert out == ""
    said = err.splitlines()
    assert said[0] == "2 reports, epsilon 0.00693 per metre: 290 m from the truth on average, 95 % within 692 m"
    assert said[1].startswith("the reports lie between 2.")
    rows = target.read_text().splitlines()
    assert [row.split(",")[0] for row in rows] == ["name", "Eiffel", "Montparnasse"]
    assert "48.8584," not in target.read_text()
    assert read_promise(target).level == 1.386
    assert sorted(path.name for path in places.parent.iterdir()) == [
        "places.csv",
        "reports.csv",
        "reports.csv.geoind.json",
    ]


@pytest.mark.parametrize(
    ("chosen", "mechanism"),
    [("gaussian", "SphericalGaussian"), ("laplace", "SphericalLaplace"), (None, "SphericalGaussian")],
)
def test_several_reports_keep_a_level_together_up_to_delta(
    places: Path, capfd: pytest.CaptureFixture[str], chosen: str | None, mechanism: str
) -> None:
    target = places.with_name("reports.csv")
    options = ["--level", "1.386", "--radius", "200", "--reports", "20", "--delta", "1e-5"]
    options += [] if chosen is None else ["--mechanism", chosen]
    assert main(["obfuscate", str(places), str(target), *options]) == 0
    said = capfd.readouterr().err.splitlines()
    assert said[0].startswith("2 reports, level 1.386 within 200 m, 20 reports together, up to delta 1e-05: 3,")
    promise = read_promise(target)
    assert (promise.mechanism, promise.level, promise.radius) == (mechanism, 1.386, 200)
    assert (promise.reports, promise.delta) == (20, 1e-5)


def test_a_ledger_lets_a_person_spend_the_level_up_to_delta(
    places: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    promise = ["--level", "1.386", "--radius", "200", "--reports", "4", "--delta", "1e-5"]
    ledger = ["--ledger", f"sqlite:///{tmp_path}/budgets.db", "--person", "name"]
    run = ["obfuscate", str(places), str(places.with_name("reports.csv")), "--quiet", *promise, *ledger]
    for _ in range(4):
        assert main(run) == 0
    assert "budget" in refusal(capfd, *run[1:])
    assert "--budget" in refusal(capfd, *run[1:], "--budget", "1")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--epsilon", "0.01", "--delta", "1e-5"], "--delta goes with --level and --radius"),
        (["--level", "1", "--radius", "200", "--reports", "5"], "go with --delta"),
        (["--epsilon", "0.01", "--mechanism", "gaussian"], "go with --delta"),
        (["--level", "1", "--radius", "200", "--delta", "1"], "--delta must lie strictly between"),
        (["--level", "1", "--radius", "200", "--delta", "0.1", "--reports", "0"], "--reports must be"),
        (["--level", "1", "--radius", "0.2", "--delta", "0.1"], "add --little-noise"),
    ],
)
def test_promises_that_do_not_fit_together_are_refused(
    places: Path, capfd: pytest.CaptureFixture[str], options: list[str], reason: str
) -> None:
    assert reason in refusal(capfd, places, places.with_name("out.csv"), *options)
    assert not places.with_name("out.csv").exists()


def test_quiet_says_nothing(places: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["obfuscate", str(places), str(places.with_name("r.csv")), *SHARP, "--quiet"]) == 0
    assert capfd.readouterr() == ("", "")


def test_every_option_reaches_the_work(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source, target, key, rejects = (tmp_path / name for name in ("in", "out", "key", "rejects"))
    source.write_text("7;1;2\n8;;\n9;91;2\n")
    key.write_text(secrets.token_hex(32) + "\n")
    key.chmod(0o600)
    options = [
        "--format",
        "csv",
        "--delimiter",
        ";",
        "--no-header",
        "--lat",
        "2",
        "--lon",
        "3",
        "--missing",
        "keep",
    ]
    keyed = ["--key-file", str(key), "--id", "1", "--rejects", str(rejects)]
    for _ in range(2):
        assert main(["obfuscate", str(source), str(target), "--epsilon", "0.01", *options, *keyed]) == 0
    first = target.read_text()
    main(["obfuscate", str(source), str(target), "--epsilon", "0.01", *options, *keyed])
    assert target.read_text() == first
    assert first.splitlines()[1] == "8;;"
    assert '"line": 3' in rejects.read_text()
    assert f"they are in {rejects}" in capfd.readouterr().err


def test_telling_columns_are_refused_dropped_or_kept(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.csv").write_text("lat,lon,address\n1,2,3\n")
    run = ["obfuscate", str(tmp_path / "in.csv"), str(tmp_path / "out.csv"), *SHARP]
    assert main(run) == 2
    assert "'address'" in capfd.readouterr().err
    assert main([*run, "--drop", "address"]) == 0
    assert (tmp_path / "out.csv").read_text().startswith("lat,lon\n")
    assert main([*run, "--keep", "address"]) == 0
    assert "address" in capfd.readouterr().err
    assert read_promise(tmp_path / "out.csv").kept == ("address",)


def test_persons_pay_before_anything_is_drawn_and_the_busiest_is_told(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in.csv").write_text("who,lat,lon\nana,1,2\nana,3,4\nbo,5,6\n")
    run = [
        "obfuscate",
        str(tmp_path / "in.csv"),
        str(tmp_path / "out.csv"),
        "--epsilon",
        "0.01",
        "--person",
        "who",
    ]
    paid = [*run, "--ledger", f"sqlite:///{tmp_path}/budgets.db", "--budget", "0.025"]
    assert main(paid) == 0
    assert "2 reports: epsilon 0.02 per metre" in capfd.readouterr().err
    first = (tmp_path / "out.csv").read_bytes()
    assert main(paid) == 2
    assert "'ana'" in capfd.readouterr().err
    assert (tmp_path / "out.csv").read_bytes() == first
    assert main([*run, "--ledger", "sqlite://"]) == 2
    assert main([*run, "--budget", "1"]) == 2
    assert main([*paid[:-6], *paid[-4:]]) == 2


def test_an_id_that_names_several_records_is_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.csv").write_text("trip,lat,lon\na,1,2\na,3,4\nb,5,6\n")
    (tmp_path / "key").write_text(secrets.token_hex(32))
    (tmp_path / "key").chmod(0o600)
    keyed = ["--epsilon", "0.01", "--id", "trip", "--key-file", str(tmp_path / "key")]
    assert main(["obfuscate", str(tmp_path / "in.csv"), str(tmp_path / "out.csv"), *keyed]) == 0
    assert "1 identities name more than one record" in capfd.readouterr().err


def test_a_key_file_repeats_the_noise(places: Path, capfd: pytest.CaptureFixture[str]) -> None:
    key = places.with_name("key")
    key.write_text(secrets.token_hex(32))
    key.chmod(0o600)
    run = ["obfuscate", str(places), "-", "--epsilon", "0.01", "--key-file", str(key), "--id", "name", "--quiet"]
    assert main(run) == 0
    assert main(run) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[:3] == lines[3:]


def test_bad_key_files_are_refused_without_a_word_of_the_key(
    places: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    key, target = places.with_name("key"), places.with_name("out.csv")
    key.write_text("secret")
    key.chmod(0o600)
    keyed = [places, target, *SHARP, "--id", "name", "--key-file"]
    message = refusal(capfd, *keyed, key)
    assert "64 hexadecimal digits" in message
    assert "secret" not in message
    assert "cannot be read" in refusal(capfd, *keyed, places.with_name("nowhere"))
    assert "go together" in refusal(capfd, places, target, *SHARP, "--id", "name")
    assert not target.exists()


def test_standard_input_and_output(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(PLACES.encode())))
    assert main(["obfuscate", "-", "-", "--format", "csv", *SHARP]) == 0
    out, err = capfd.readouterr()
    assert out == PLACES.replace("48.8584,2.2945", "48.85840,2.29450").replace(
        "48.8421,2.3219", "48.84210,2.32190"
    )
    assert err.startswith("2 reports")


def test_nothing_reaches_standard_output_when_a_later_row_is_bad(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    text = PLACES + "x,1,2\n" * 200_000 + "bad,91,12.345\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert "line 200004" in refusal(capfd, "-", "-", "--format", "csv", *SHARP)


def test_a_stream_takes_its_format_from_the_other_file(
    places: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["obfuscate", str(places), "-", *SHARP]) == 0
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"lat\tlon\n1\t2\n")))
    target = places.with_name("out.tsv")
    assert main(["obfuscate", "-", str(target), *SHARP]) == 0
    assert target.read_bytes() == b"lat\tlon\n1.00000\t2.00000\n"
    capfd.readouterr()
    assert "give format" in refusal(capfd, "-", "-", *SHARP)


def test_no_input_is_overwritten(places: Path, capfd: pytest.CaptureFixture[str]) -> None:
    link, hard = places.with_name("link.csv"), places.with_name("hard.csv")
    link.symlink_to(places)
    os.link(places, hard)
    other = places.with_name("other.csv")
    for target in (places, places.parent / "." / places.name, link, hard):
        assert "would be overwritten" in refusal(capfd, places, target, *SHARP)
        assert "would be overwritten" in refusal(capfd, places, other, *SHARP, "--rejects", target)
    assert "would be overwritten" in refusal(capfd, places, other, *SHARP, "--rejects", other)
    assert places.read_text() == PLACES
    assert not other.exists()


@pytest.mark.parametrize("target", ["/dev/null", "."])
def test_only_regular_files_are_replaced(places: Path, target: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert "regular file" in refusal(capfd, places, target, "--format", "csv", *SHARP)
    assert Path("/dev/null").is_char_device()


def test_missing_files_and_folders_are_told(places: Path, capfd: pytest.CaptureFixture[str]) -> None:
    message = refusal(capfd, places.with_name("no.csv"), places.with_name("out.csv"), *SHARP)
    assert "cannot read" in message
    assert "No such file" in message
    assert "cannot write" in refusal(capfd, places, places.parent / "no" / "out.csv", *SHARP)


def test_an_existing_output_stays_as_it_is_after_an_error(places: Path, capfd: pytest.CaptureFixture[str]) -> None:
    target = places.with_name("out.csv")
    target.write_text("old")
    places.write_text(PLACES + "bad,91,2\n")
    refusal(capfd, places, target, *SHARP)
    assert target.read_text() == "old"
    assert sorted(path.name for path in places.parent.iterdir()) == ["out.csv", "places.csv"]


def test_an_output_that_is_a_link_keeps_being_one(places: Path) -> None:
    real, link = places.with_name("real.csv"), places.with_name("link.csv")
    real.write_text("old")
    link.symlink_to(real)
    assert main(["obfuscate", str(places), str(link), *SHARP, "--quiet"]) == 0
    assert link.is_symlink()
    assert real.read_text().startswith("name,lat,lon\nEiffel,")


def test_a_full_disk_is_an_error_and_leaves_nothing(
    places: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left on device" in refusal(capfd, places, places.with_name("out.csv"), *SHARP)
    assert [path.name for path in places.parent.iterdir()] == ["places.csv"]


ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


@contextmanager
def long_job(folder: Path) -> "Iterator[subprocess.Popen[bytes]]":
    """A job that has begun to write and is far from done."""
    source = folder.with_name("long.csv")
    source.write_bytes(b"lat,lon\n" + b"1,2\n" * 5_000_000)
    run = [sys.executable, "-m", "geoind", "obfuscate", str(source), str(folder / "out.csv"), "--epsilon", "0.1"]
    with subprocess.Popen(run, preexec_fn=hear_every_signal) as job:
        limit = time.monotonic() + 60
        while not any(path.name.startswith(".out.csv.") for path in folder.iterdir()):
            assert time.monotonic() < limit, "the job never began to write"
            time.sleep(0.05)
        yield job
    source.unlink()


def hear_every_signal() -> None:
    """Undo what a run in the background of a shell, or under nohup, ignores: its children would, too."""
    for number in ENDING:
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("number", ENDING)
def test_a_job_that_is_told_to_end_leaves_nothing(folder: Path, number: int) -> None:
    with long_job(folder) as job:
        job.send_signal(number)
        assert job.wait(60) == 128 + number
    assert list(folder.iterdir()) == []


def test_a_killed_job_leaves_no_output(folder: Path) -> None:
    with long_job(folder) as job:
        job.kill()
    assert not (folder / "out.csv").exists()


def test_progress_is_shown_on_a_terminal_only(places: Path) -> None:
    places.write_text("lat,lon\n" + "1,2\n" * 400_000)
    run = [sys.executable, "-m", "geoind", "obfuscate", str(places), str(places.with_name("o.csv")), *SHARP]
    ours, theirs = pty.openpty()
    job = subprocess.Popen(run, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while data := os.read(ours, 4096):
            shown += data
    except OSError:
        pass  # What Linux says when the other end of a terminal is closed.
    os.close(ours)
    assert job.wait() == 0
    assert b"\r[####" in shown
    assert b" reports, " in shown
    places.write_text(PLACES)
    quiet = subprocess.run(run, stderr=subprocess.PIPE, check=True)
    assert quiet.stderr.startswith(b"2 reports, epsilon 1000 per metre: ")
    assert b"\r" not in quiet.stderr


def test_a_reader_who_has_enough_is_not_told_that_nothing_was_written(places: Path) -> None:
    places.write_text("lat,lon\n" + "1,2\n" * 100_000)
    run = [sys.executable, "-m", "geoind", "obfuscate", str(places), "-", *SHARP]
    job = subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert job.stdout is not None
    assert job.stderr is not None
    assert job.stdout.readline() == b"lat,lon\n"
    job.stdout.close()
    assert job.stderr.read() == b""
    assert job.wait() == 141
    job.stderr.close()


def test_a_full_standard_output_is_an_error_that_does_not_claim_that_nothing_was_written(places: Path) -> None:
    run = [sys.executable, "-m", "geoind", "obfuscate", str(places), "-", *SHARP]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(run, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert done.stderr == b"geoind: No space left on device\n"


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite:///file::memory:?uri=true"]
)
def test_a_ledger_that_forgets_is_refused(places: Path, capfd: pytest.CaptureFixture[str], url: str) -> None:
    paid = ["--person", "name", "--ledger", url, "--budget", "1"]
    assert "forgets" in refusal(capfd, places, places.with_name("out.csv"), "--epsilon", "0.01", *paid)
    assert [path.name for path in places.parent.iterdir()] == ["places.csv"]


@pytest.mark.parametrize("days", ["nan", "inf", "1e30", "9e8", "0", "-1"])
def test_a_window_that_is_no_time_is_refused(places: Path, capfd: pytest.CaptureFixture[str], days: str) -> None:
    paid = ["--person", "name", "--ledger", f"sqlite:///{places.parent}/l.db", "--budget", "1", f"--days={days}"]
    assert "--days must be positive" in refusal(
        capfd, places, places.with_name("out.csv"), "--epsilon", "0.01", *paid
    )


def closed(numbers: tuple[int, ...], *arguments: object) -> "subprocess.CompletedProcess[bytes]":
    """Run the command with some of its standard streams closed."""
    run = [sys.executable, "-m", "geoind", "obfuscate", *map(str, arguments), "--epsilon", "0.01"]

    def close() -> None:
        for number in numbers:
            os.close(number)

    return subprocess.run(run, preexec_fn=close, capture_output=True, check=False)


def test_closed_streams_are_one_sentence_and_nobody_pays(places: Path) -> None:
    url = f"sqlite:///{places.parent}/budgets.db"
    (key := places.with_name("key")).write_text("00" * 32)
    key.chmod(0o600)
    paid = ["--person", "name", "--ledger", url, "--budget", "1"]
    done = closed((1,), places, "-", *paid, "--key-file", key, "--id", "name")
    assert done.returncode == 2
    assert done.stderr == b"geoind: standard output is closed: nothing can be written there\n"
    done = closed((), places, "-", *paid)
    assert done.returncode == 2
    assert done.stderr.startswith(b"geoind: standard output with a ledger needs")
    done = closed((0,), "-", places.with_name("out.csv"))
    assert done.returncode == 2
    assert done.stderr == b"geoind: standard input is closed: nothing can be read there\n"
    with Ledger(url, budget=1.0) as ledger:
        assert ledger.history("Eiffel") == []


def test_a_summary_that_nobody_hears_goes_nowhere(places: Path) -> None:
    done = closed((2,), places, "-")
    assert done.returncode == 0
    assert [row.split(b",")[0] for row in done.stdout.splitlines()] == [b"name", b"Eiffel", b"Montparnasse"]
    for numbers in ((2,), (1, 2), (0, 1, 2)):
        assert closed(numbers, places, places.with_name("out.csv")).returncode == 0
        rows = places.with_name("out.csv").read_text().splitlines()
        assert [row.split(",")[0] for row in rows] == ["name", "Eiffel", "Montparnasse"]


def test_no_true_place_reaches_standard_output_or_what_it_goes_to(places: Path) -> None:
    places.write_text(PLACES + "bad,91.123,2\n")
    log = places.with_name("job.log")
    out = places.with_name("out.csv")
    for rejects in ("-", "/dev/stdout", str(log)):
        run = [sys.executable, "-m", "geoind", "obfuscate", str(places), str(out), *SHARP, "--rejects", rejects]
        with log.open("wb") as said:
            done = subprocess.run(run, stdout=said, stderr=subprocess.PIPE, check=False)
        assert done.returncode == 2
        assert log.read_bytes() == b""
    assert sorted(path.name for path in places.parent.iterdir()) == ["job.log", "places.csv"]


def test_too_little_memory_is_said(
    places: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("geoind.files.obfuscate_file", full)
    assert "not enough memory" in refusal(capfd, places, places.with_name("out.csv"), *SHARP)
