"""dev.py on machines where something is missing: one message, and the other steps still run."""

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
    assert [*dict.fromkeys(named)] == [*dev.COMMANDS]


def test_an_older_python_can_parse_it_and_print_that_it_is_too_old() -> None:
    ast.parse(Path(dev.__file__).read_text(), feature_version=(3, 7))


@pytest.mark.parametrize("root", [True, False])
def test_without_ensurepip_the_package_of_debian_is_installed_or_named(
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


def test_missing_programs_are_printed_and_nothing_fails(
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


@pytest.mark.parametrize(("arguments", "fast"), [(["--fast", "-x"], True), (["-x"], False)])
def test_the_fast_tests_are_those_that_are_not_slow(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], fast: bool
) -> None:
    ran: list[tuple[Any, ...]] = []
    monkeypatch.setenv("GEOIND_TRIALS", "1")
    monkeypatch.setattr(sys, "argv", ["dev.py", "test", *arguments])
    monkeypatch.setattr(dev, "sh", lambda *command, **_: ran.append(command))
    for step in ("install", "install_system", "install_javascript"):
        monkeypatch.setattr(dev, step, lambda *_: None)
    dev.test()
    [tests] = [command for command in ran if "pytest" in command]
    assert tests[-1] == "-x"
    assert ("not slow" in tests) == fast
    assert any("mypy" in command for command in ran) != fast
