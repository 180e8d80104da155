"""The first command on machines that lack something: one sentence, and the rest goes on."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dev


def test_its_help_names_every_command() -> None:
    assert dev.__doc__ is not None
    named = [line.split()[2] for line in dev.__doc__.splitlines() if line.startswith("python3 dev.py ")]
    assert named == [*dev.COMMANDS]


def test_an_older_python_can_read_it_and_be_told_that_it_is_too_old() -> None:
    ast.parse(Path(dev.__file__).read_text(), feature_version=(3, 7))


@pytest.mark.parametrize("root", [True, False])
def test_a_python_without_ensurepip_asks_for_debians_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, root: bool
) -> None:
    ran: list[list[str]] = []

    def fail(command: list[str], **_: Any) -> "subprocess.CompletedProcess[str]":
        ran.append(command)
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr(dev, "PYTHON", tmp_path / "python")
    monkeypatch.setattr(dev, "find_spec", lambda _: None)
    monkeypatch.setattr(os, "geteuid", lambda: 0 if root else 1000)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(subprocess, "run", fail)
    package = f"python3.{sys.version_info.minor}-venv"
    with pytest.raises(SystemExit, match=f"install the package {package}"):
        dev.make_venv()
    assert any(command[0] == "apt-get" and command[-1] == package for command in ran) == root


def test_what_a_machine_lacks_is_said_and_nothing_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    dev.install_system()
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in said] == [*dev.DEBIAN_PACKAGES]
    assert all("WILL BE SKIPPED" in line for line in said)


def test_an_environment_of_this_python_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = subprocess.CompletedProcess([], 0, stdout=f"{sys.version}\n")
    monkeypatch.setattr(dev, "PYTHON", Path(sys.executable))
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: whole)
    monkeypatch.setattr(dev, "sh", lambda *_: pytest.fail("made again"))
    dev.make_venv()
