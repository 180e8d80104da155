import math
from typing import Any, TypedDict

import pytest

from geoind import (
    InvalidInputError,
    Mechanism,
    PlanarGaussian,
    PlanarLaplace,
    SphericalGaussian,
    SphericalLaplace,
    level_of_reports,
)
from geoind.accounting import delta_of_reports
from geoind.accounting.calibration import Family, mechanism_for_reports


class OneOf(TypedDict):
    """A promise about any number of reports."""

    level: float
    radius: float
    delta: float


PROMISE: OneOf = {"level": math.log(4), "radius": 200.0, "delta": 1e-5}


@pytest.mark.parametrize("family", ["laplace", "gaussian"])
@pytest.mark.parametrize("reports", [1, 7, 300])
@pytest.mark.parametrize("level", [0.1, 6.0])
def test_it_is_the_least_noise_that_keeps_the_promise(family: Family, reports: int, level: float) -> None:
    noise = mechanism_for_reports(reports=reports, level=level, radius=200, delta=1e-5, family=family)
    assert delta_of_reports(noise, reports=reports, radius=200, level=level) <= 1e-5
    assert level_of_reports(noise, reports=reports, radius=200, delta=1e-5) <= level * (1 + 1e-9)
    if isinstance(noise, PlanarLaplace):
        less: Mechanism = PlanarLaplace(noise.epsilon * 1.001)
    else:
        assert isinstance(noise, PlanarGaussian)
        less = PlanarGaussian(noise.sigma / 1.001)
    assert delta_of_reports(less, reports=reports, radius=200, level=level) > 1e-5


def test_gaussian_noise_is_the_one_of_the_analytic_calibration_times_the_root_of_the_reports() -> None:
    one = PlanarGaussian.calibrated(epsilon=PROMISE["level"] / 200, delta=1e-5, radius=200)
    many = mechanism_for_reports(reports=25, **PROMISE, family="gaussian")
    assert isinstance(many, PlanarGaussian)
    assert many.sigma == pytest.approx(5 * one.sigma, rel=1e-9)


@pytest.mark.parametrize(("family", "kind"), [("laplace", SphericalLaplace), ("gaussian", SphericalGaussian)])
@pytest.mark.parametrize("reports", [1, 40])
def test_on_the_globe_the_promise_is_kept_with_hardly_more_noise(
    family: Family, kind: type[Mechanism], reports: int
) -> None:
    plane, globe = (
        mechanism_for_reports(reports=reports, **PROMISE, family=family, space=space) for space in ("xy", "lonlat")
    )
    assert type(globe) is kind
    assert delta_of_reports(globe, reports=reports, radius=200, level=PROMISE["level"]) <= 1e-5
    # 0.57 % for the ellipsoid, and little for the curvature.
    assert 1.0056 * plane.mean_radius < globe.mean_radius < 1.0058 * plane.mean_radius


def test_the_best_is_the_smaller_mean_error_and_changes_with_the_number_of_reports() -> None:
    def error(reports: int, family: Family) -> float:
        return mechanism_for_reports(reports=reports, **PROMISE, family=family).mean_radius

    for reports in (1, 5, 6, 9, 10, 50):
        assert error(reports, "best") == min(error(reports, "laplace"), error(reports, "gaussian"))
    summed = [2 * 200 * reports / PROMISE["level"] for reports in range(1, 10)]
    smaller = [n for n, metres in enumerate(summed, start=1) if error(n, "gaussian") < metres]
    assert smaller[0] == 6  # from the sixth report on Gaussian noise is smaller than the plain sum's
    assert type(mechanism_for_reports(reports=7, **PROMISE)) is PlanarLaplace
    assert type(mechanism_for_reports(reports=10, **PROMISE)) is PlanarGaussian


def test_many_reports_need_noise_that_grows_like_their_root() -> None:
    errors = [mechanism_for_reports(reports=n, **PROMISE, family="laplace").mean_radius for n in (100, 400, 1600)]
    assert 1.9 < errors[1] / errors[0] < 2.1
    assert 1.95 < errors[2] / errors[1] < 2.05


@pytest.mark.parametrize(
    "arguments",
    [
        {"reports": 0},
        {"level": 0},
        {"delta": 0},
        {"delta": 1},
        {"radius": -1},
        {"family": "cauchy"},
        {"space": "utm"},
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any]) -> None:
    usual: dict[str, Any] = {"reports": 5, **PROMISE}
    with pytest.raises(InvalidInputError):
        mechanism_for_reports(**usual | arguments)
