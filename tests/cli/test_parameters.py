import argparse
import math

import pytest
from geoind.cli.parameters import add_together

from geoind import InvalidInputError, SphericalLaplace
from geoind.cli import command_parsers
from geoind.cli.shared import add_privacy, epsilon_of, privacy_of

FACTORS = ["1", "0.5", "0", "inf", "nan", "four", "1.00000000000000001"]
NO_LEVELS = [
    "",
    "four",
    "ln",
    "ln()",
    "log4",
    "log10(4)",
    "log(4",
    "ln4)",
    "ln(ln(4))",
    "2*ln4",
    "\x1b[2J",
    "9" * 10**5 + "x",
]


def options(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_privacy(parser, reports=True)
    add_together(parser, mechanism=True)
    return parser.parse_args(arguments)


def test_epsilon_is_given_or_level_over_radius() -> None:
    assert epsilon_of(options("--epsilon", "0.01")) == 0.01
    assert epsilon_of(options("--level", "2", "--radius", "400")) == 0.005


@pytest.mark.parametrize(
    "given",
    [
        ["--level", "ln4"],
        ["--level", "ln 4"],
        ["--level", " LN ( 4.0 ) "],
        ["--level", "ln(4)"],
        ["--level", "log(4)"],
        ["--level", "log(4e0)"],
        ["--level", repr(math.log(4))],
        ["--factor", "4"],
        ["--level=ln4"],
        ["--factor=4.0"],
    ],
    ids=str,
)
def test_a_level_may_be_a_logarithm_or_a_factor(given: list[str]) -> None:
    assert epsilon_of(options(*given, "--radius", "200")) == math.log(4) / 200
    assert privacy_of(options(*given, "--radius", "200"))["level"] == math.log(4)
    together = privacy_of(options(*given, "--radius", "200", "--delta", "1e-5", "--reports", "2"))
    assert together["level"] == math.log(4)


@pytest.mark.parametrize("command", ["obfuscate", "explain", "audit", "optimal", "example"])
def test_every_command_with_a_level_takes_a_factor_instead(command: str) -> None:
    files = {"obfuscate": ["in.csv", "out.csv"], "optimal": ["--columns=2", "--rows=2", "--cell=9", "--out=o.npz"]}
    parser = command_parsers()[command]
    given = parser.parse_args([*files.get(command, []), "--factor", "4", "--radius", "200"])
    assert given.level == math.log(4)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--level", "ln4", "--factor", "4"], "not allowed with argument"),
        (["--factor", "4", "--level", "1"], "not allowed with argument"),
        *((["--factor", factor], "the factor must be greater than 1") for factor in FACTORS),
        *((["--level", f"ln({factor})"], "the factor must be greater than 1") for factor in FACTORS),
        *((["--level", text], "must be a number, ln4 or log(4)") for text in NO_LEVELS),
    ],
    ids=lambda value: str(value)[:40],
)
def test_no_other_text_is_a_level(capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str) -> None:
    with pytest.raises(SystemExit) as exit_code:
        options(*arguments, "--radius", "200")
    assert exit_code.value.code == 2
    said = capsys.readouterr().err
    assert reason in said
    assert "\x1b" not in said
    assert len(said) < 3000


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--level", "2"],
        ["--radius", "2"],
        ["--epsilon", "0.01", "--level", "2", "--radius", "400"],
        ["--epsilon", "0.01", "--factor", "4"],
        ["--factor", "4"],
        ["--level", "inf", "--radius", "400"],
        ["--level", "1e-320", "--radius", "1e300"],
        ["--epsilon", "0"],
        ["--epsilon", "nan"],
        ["--level", "-1", "--radius", "400"],
        ["--reports", "3", "--level", "2", "--radius", "400"],
        ["--mechanism", "laplace", "--epsilon", "0.01"],
        ["--delta", "1e-5", "--epsilon", "0.01"],
        ["--delta", "1e-5", "--level", "2"],
        ["--delta", "2", "--level", "2", "--radius", "400"],
    ],
)
def test_half_a_promise_and_two_of_them_are_refused(arguments: list[str]) -> None:
    with pytest.raises(InvalidInputError):
        privacy_of(options(*arguments))


def test_little_noise_needs_its_option() -> None:
    with pytest.raises(InvalidInputError, match="add --little-noise"):
        privacy_of(options("--epsilon", "1"))
    assert privacy_of(options("--epsilon", "1", "--little-noise")) == {"mechanism": SphericalLaplace(1.0)}
    together = ["--delta", "1e-5", "--level", "50", "--radius", "1", "--reports", "1"]
    with pytest.raises(InvalidInputError, match="add --little-noise"):
        privacy_of(options(*together))
    assert "mechanism" in privacy_of(options(*together, "--little-noise"))


def test_the_noise_of_several_reports_is_of_the_family_asked_for() -> None:
    together = ["--delta", "1e-5", "--level", "2", "--radius", "200", "--reports", "30"]
    names = {
        family: type(privacy_of(options(*together, "--mechanism", family))["mechanism"]).__name__
        for family in ("laplace", "gaussian", "best")
    }
    assert names == {"laplace": "SphericalLaplace", "gaussian": "SphericalGaussian", "best": "SphericalGaussian"}
