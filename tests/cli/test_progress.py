import sys
from types import SimpleNamespace

import pytest
from geoind.cli.progress import Progress

from geoind.cli import progress


def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(progress, "PAUSE", -1.0)


def test_a_terminal_sees_what_is_done_and_an_empty_line_at_the_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_a_terminal(monkeypatch)
    with Progress() as line:
        line.show("begun", 0.0)
        line.show("half", 0.5)
        line.count(1200, "reports")
    shown = capsys.readouterr().err.split("\r")[1:]
    assert shown[0] == f"[{'-' * 30}]   0%  begun\x1b[K"
    assert shown[1] == f"[{'#' * 15}{'-' * 15}]  50%  half\x1b[K"
    assert shown[2].startswith("1,200 reports, ")
    assert shown[3] == "\x1b[K"


def test_the_line_is_gone_after_an_error_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_a_terminal(monkeypatch)

    def fail() -> None:
        with Progress() as line:
            line.show("begun")
            raise ValueError("told")

    with pytest.raises(ValueError, match="told"):
        fail()
    assert capsys.readouterr().err == "\rbegun\x1b[K\r\x1b[K"


def test_pictures_that_follow_too_fast_are_left_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    clock = SimpleNamespace(monotonic=iter([0.0, 0.0, 0.05, 0.11]).__next__)
    monkeypatch.setattr(progress, "time", clock)
    line = Progress()
    for what in ("first", "too soon", "later"):
        line.show(what)
    shown = capsys.readouterr().err
    assert "first" in shown
    assert "later" in shown
    assert "too soon" not in shown


def test_nobody_who_redirects_it_sees_anything(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress() as line:
        line.show("begun", 0.5)
        line.count(7, "reports", 1.0)
    assert capsys.readouterr().err == ""
