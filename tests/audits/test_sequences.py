import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from geoind import (
    Grid,
    InvalidInputError,
    Mechanism,
    PlanarGaussian,
    PlanarLaplace,
    SphericalGaussian,
    SphericalLaplace,
    level_of_reports,
    planar_geometric,
)
from geoind.accounting import Promise
from geoind.arrays import ArrayLike, FloatArray
from geoind.audits import audit_reports
from geoind.mechanisms.protocol import RandomnessLike, Space

GRID = Grid(-400, -400, cell=100, columns=9, rows=9)
MECHANISMS = [
    PlanarLaplace(0.005),
    PlanarGaussian(300.0),
    SphericalLaplace(0.005),
    SphericalGaussian(300.0),
    planar_geometric(GRID, epsilon=0.005),
]


def accounted(mechanism: Mechanism, reports: int, *, radius: float) -> Promise:
    """Return what the accountant says that the reports keep together."""
    level = level_of_reports(mechanism, reports=reports, radius=radius, delta=1e-3)
    return Promise(level=level, radius=radius, delta=1e-3, reports=reports)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: type(mechanism).__name__)
@pytest.mark.parametrize("reports", [1, 4, 30])
def test_what_is_seen_never_exceeds_what_the_accountant_says_and_comes_near(
    mechanism: Mechanism, reports: int
) -> None:
    promise = accounted(mechanism, reports, radius=100)
    found = audit_reports(mechanism, promise, sequences=4000, rng=3)
    assert not found.refuted
    assert found.level <= promise.level
    # 4000 sequences show rare events badly, and a level of 6 at most.
    assert found.level > min(0.2 * promise.level, 2.5)


def test_places_that_are_far_apart_differ_by_what_lies_closer() -> None:
    noise = PlanarLaplace(0.005)
    found = audit_reports(noise, accounted(noise, 4, radius=400), sequences=20_000, rng=3)
    # 7.5 by the accountant; by what lies behind alone 4.6.
    assert found.level > 5.3


@dataclass(frozen=True)
class Careless:
    """Says that its noise is twice as wide as it is."""

    epsilon: float
    space: Space = "xy"

    def reach(self, confidence: float) -> float:
        return PlanarLaplace(self.epsilon).reach(confidence)

    def sample(self, points: ArrayLike, *, rng: RandomnessLike = None) -> FloatArray:
        return PlanarLaplace(2 * self.epsilon).sample(points, rng=rng)


def test_noise_that_is_too_small_is_found() -> None:
    promise = accounted(PlanarLaplace(0.002), 20, radius=100)
    assert audit_reports(Careless(0.002), promise, sequences=4000, rng=4).refuted


def test_noise_that_starts_afresh_in_every_report_of_a_sequence_is_found() -> None:
    """The same noise n times is one report, not n: the sum of the scores is n times as far apart."""

    @dataclass(frozen=True)
    class Repeating:
        epsilon: float = 0.005
        space: Space = "xy"

        def reach(self, confidence: float) -> float:
            return PlanarLaplace(self.epsilon).reach(confidence)

        def sample(self, points: ArrayLike, *, rng: RandomnessLike = None) -> FloatArray:  # noqa: ARG002
            return np.asarray(points) + np.random.default_rng(0).normal(0, 100, np.shape(points))

    promise = accounted(PlanarLaplace(0.005), 2, radius=300)
    assert audit_reports(Repeating(), promise, sequences=4000).refuted


class Sparing:
    """Answers with fewer reports than it was given places."""

    epsilon = 0.01
    space: Space = "xy"

    def reach(self, confidence: float) -> float:
        return PlanarLaplace(self.epsilon).reach(confidence)

    def sample(self, points: ArrayLike, *, rng: RandomnessLike = None) -> FloatArray:
        return PlanarLaplace(self.epsilon).sample(points, rng=rng)[1:]


@pytest.mark.parametrize(
    "arguments",
    [
        {"promise": Promise(level=1.0, radius=100, delta=1e-5)},
        {"promise": 0.01},
        {"sequences": 0},
        {"confidence": 1},
        {"place": (math.nan, 0)},
        {"rng": -1},
        {"mechanism": Sparing()},
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any]) -> None:
    promise = Promise(level=1.0, radius=100, delta=1e-5, reports=2)
    usual: dict[str, Any] = {"mechanism": PlanarLaplace(0.01), "promise": promise, "sequences": 10}
    with pytest.raises(InvalidInputError):
        audit_reports(**(usual | arguments))
