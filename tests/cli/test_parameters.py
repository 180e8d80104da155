import argparse

import pytest

from geoind import InvalidInputError, SphericalLaplace
from geoind.cli.parameters import add_privacy, add_together, epsilon_of, privacy_of


def options(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_privacy(parser, reports=True)
    add_together(parser, mechanism=True)
    return parser.parse_args(arguments)


def test_epsilon_is_given_or_level_over_radius() -> None:
    assert epsilon_of(options("--epsilon", "0.01")) == 0.01
    assert epsilon_of(options("--level", "2", "--radius", "400")) == 0.005


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--level", "2"],
        ["--radius", "2"],
        ["--epsilon", "0.01", "--level", "2", "--radius", "400"],
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


def test_little_noise_must_be_meant() -> None:
    with pytest.raises(InvalidInputError, match="adds --little-noise"):
        privacy_of(options("--epsilon", "1"))
    assert privacy_of(options("--epsilon", "1", "--little-noise")) == {"mechanism": SphericalLaplace(1.0)}
    together = ["--delta", "1e-5", "--level", "50", "--radius", "1", "--reports", "1"]
    with pytest.raises(InvalidInputError, match="adds --little-noise"):
        privacy_of(options(*together))
    assert "mechanism" in privacy_of(options(*together, "--little-noise"))


def test_the_noise_of_several_reports_is_of_the_family_asked_for() -> None:
    together = ["--delta", "1e-5", "--level", "2", "--radius", "200", "--reports", "30"]
    names = {
        family: type(privacy_of(options(*together, "--mechanism", family))["mechanism"]).__name__
        for family in ("laplace", "gaussian", "best")
    }
    assert names == {"laplace": "SphericalLaplace", "gaussian": "SphericalGaussian", "best": "SphericalGaussian"}
