"""Convergence of the iterative Bayesian update: plain, with SQUAREM, and with geoind's momentum.

python3 dev.py bench estimate_acceleration      prints the table, writes docs/benchmarks/estimate_acceleration.md

The measure is the number of evaluations of the model (two convolutions each), which take most of the time.
"""

import math
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import cast

import numpy as np

from geoind import PlanarLaplace, estimate_population
from geoind.arrays import FloatArray
from geoind.estimate.ascent import ascend
from geoind.estimate.observation import Observation
from geoind.evaluation import synthetic_city

OUT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks" / "estimate_acceleration.md"
EVALUATIONS = 400
MISSING = (1000, 300, 100, 30, 10)
"""Nats below the largest likelihood of the three methods."""


class Counted:
    """An observation that counts its evaluations."""

    def __init__(self, observation: Observation) -> None:
        self.counts, self.sensitivity = observation.counts, observation.sensitivity
        self.explain = observation.explain
        self._predict = observation.predict
        self.evaluations = 0

    def predict(self, mass: FloatArray) -> FloatArray:
        """Return the predictions of the observation."""
        self.evaluations += 1
        return self._predict(mass)

    def update(self, mass: FloatArray) -> tuple[float, FloatArray]:
        """Return the log-likelihood of all reports, and the population after a plain step."""
        predicted = self.predict(mass)
        pulled = mass * self.explain(self.counts / predicted) / self.sensitivity
        return float(self.counts @ np.log(predicted)), self.scaled(pulled)

    def scaled(self, mass: FloatArray) -> FloatArray:
        """Return a positive population, on the scale on which likelihoods can be compared."""
        mass = np.maximum(mass, 1e-8 * mass.mean())
        return mass / (self.sensitivity @ mass)


def plain(reports: Counted) -> Iterator[float]:
    """Yield the log-likelihoods of expectation-maximisation."""
    mass = reports.scaled(np.ones(len(reports.sensitivity)))
    while True:
        value, mass = reports.update(mass)
        yield value


def squarem(reports: Counted) -> Iterator[float]:
    """Yield the log-likelihoods of SQUAREM with step S3 (Varadhan and Roland, 2008), kept monotone."""
    start = reports.scaled(np.ones(len(reports.sensitivity)))
    _, once = reports.update(start)
    longest = 4.0
    while True:
        value, twice = reports.update(once)
        first = once - start
        second = twice - once - first
        length = min(longest, max(1.0, float(np.linalg.norm(first) / np.linalg.norm(second))))
        ahead = reports.scaled(np.maximum(start + 2 * length * first + length**2 * second, 0.1 * twice))
        reached, image = reports.update(ahead)
        if reached < value:
            longest = max(4.0, length / 2)
            ahead = twice
            reached, image = reports.update(twice)
        elif length == longest:
            longest *= 4
        start, once = ahead, image
        yield reached


def momentum(reports: Counted) -> Iterator[float]:
    """Yield the log-likelihoods of geoind."""
    for step in ascend(cast("Observation", reports), reports.counts, lambda mass: mass):
        yield step.log_likelihood * float(reports.counts.sum())


METHODS = {"plain update": plain, "SQUAREM": squarem, "momentum (geoind)": momentum}


def main() -> None:
    """Measure, print and write."""
    lines = [
        "# Evaluations until the likelihood is close to its maximum",
        "",
        "Written by `python3 dev.py bench estimate_acceleration`: the synthetic city, 64 x 64 cells of 100 m;",
        "evaluations of the model until at most so many nats are missing to the best of the three after",
        f"{EVALUATIONS} evaluations.",
        "",
        "| epsilon | reports | method | " + " | ".join(f"{nats}" for nats in MISSING) + " |",
        "| --- " * (3 + len(MISSING)) + "|",
    ]
    for level, reports in (("ln 2 / 400 m", 100_000), ("ln 4 / 200 m", 100_000), ("ln 4 / 200 m", 1_000_000)):
        top, radius = level.removeprefix("ln ").removesuffix(" m").split(" / ")
        noise, city = PlanarLaplace(math.log(int(top)) / int(radius)), synthetic_city(64)
        sent = noise.sample(city.sample_xy(reports, rng=1), rng=2)
        observation = estimate_population(sent, noise, city.grid).fit.observation
        traces = {}
        for name, method in METHODS.items():
            counted = Counted(observation)
            steps = ((counted.evaluations, value) for value in method(counted))
            traces[name] = list(takewhile(lambda step: step[0] <= EVALUATIONS, steps))
        best = max(value for trace in traces.values() for _, value in trace)
        for name, trace in traces.items():
            reached = [next((str(at) for at, value in trace if value >= best - nats), "-") for nats in MISSING]
            lines.append(f"| {level} | {reports:,} | {name} | " + " | ".join(reached) + " |")
            print(lines[-1], flush=True)
    OUT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
