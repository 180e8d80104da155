from pathlib import Path

import pytest

from geoind.cli import main

PRIVACY = ["--level", "1.386", "--radius", "200", "--draws", "4000"]


@pytest.mark.parametrize("mechanism", [[], ["globe", "--place", "2.35", "48.86"], ["plane"]])
def test_our_own_mechanisms_keep_their_promise(mechanism: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", *mechanism, *PRIVACY]) == 0
    assert "not refuted" in capsys.readouterr().out


def test_any_callable_can_be_audited_and_a_broken_one_makes_the_exit_code_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "homemade.py").write_text(
        "import numpy as np\n"
        "def noise(points):\n"
        "    return points + np.random.default_rng().laplace(scale=200 / 1.386, size=points.shape)\n"
        "class Careful:\n"
        "    @staticmethod\n"
        "    def sample(points):\n"
        "        return noise(points) * 0\n"
    )
    monkeypatch.chdir(tmp_path)
    assert main(["audit", "homemade:noise", *PRIVACY]) == 1
    assert "BROKEN" in capsys.readouterr().out
    assert main(["audit", "homemade:Careful", *PRIVACY]) == 0
    assert main(["audit", "homemade:noise", *PRIVACY, "--lonlat", "--place", "10", "60"]) == 2


@pytest.mark.parametrize(
    "body",
    [
        "raise ZeroDivisionError('broken')",
        "raise SystemExit(1)",
        "import sys; sys.exit(0)",
        "return points[1:]",
        "return points.tolist()[0]",
        "return None",
        "return points * float('nan')",
        "raise MemoryError",
    ],
)
def test_what_crashes_is_not_called_broken(
    body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"crash{abs(hash(body))}"
    (tmp_path / f"{name}.py").write_text(f"def noise(points):\n    {body}\n")
    monkeypatch.chdir(tmp_path)
    assert main(["audit", f"{name}:noise", *PRIVACY]) == 2
    error = capsys.readouterr().err
    assert error.startswith("geoind: ")
    assert error.count("\n") == 1


@pytest.mark.parametrize("body", ["1 / 0", "raise SystemExit(0)", "import no_such_module", "this is no Python"])
def test_a_module_that_crashes_is_not_called_broken(
    body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"module{abs(hash(body))}"
    (tmp_path / f"{name}.py").write_text(f"{body}\n")
    monkeypatch.chdir(tmp_path)
    assert main(["audit", f"{name}:noise", *PRIVACY]) == 2
    assert capsys.readouterr().err.startswith(f"geoind: {name}:noise cannot be imported")


@pytest.mark.parametrize(
    "arguments",
    [
        ["somewhere", *PRIVACY],
        ["no_such_module:noise", *PRIVACY],
        ["math:no_such_thing", *PRIVACY],
        ["plane"],
        ["plane", "--epsilon", "0"],
        ["plane", *PRIVACY, "--confidence", "2"],
        ["globe", *PRIVACY, "--place", "0", "95"],
    ],
)
def test_bad_arguments_give_one_sentence(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("geoind: ")
    assert error.count("\n") == 1
