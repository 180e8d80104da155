"""The promise of sessions, by computation: every answer sequence of short traces, and its probabilities.

On a line, in metres. A published place is (x, 0); traces are never more than D apart; the probabilities come from
`likelihood`, integrated over the noise that a run shares.
"""

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest

from geoind.arrays import FloatArray
from geoind.traces import (
    AboveThreshold,
    History,
    Independent,
    Predictive,
    Report,
    SparseVector,
    Switching,
    TraceMethod,
)
from geoind.traces.laws import laplace_density, laplace_exceeds, laplace_quantile, shares
from geoind.traces.methods import Distances

D = 200.0
PLACES = ((-900.0, 0.0), (0.0, 0.0), (700.0, 0.0))
Place = tuple[float, float]
Truth = tuple[float, float]
"""Where two persons are at one step, on the line."""

# Quantiles of the shared noise and their weights: Gauss-Legendre between kinks, far into both tails.
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
CUTS = np.array([0, 1e-9, 1e-6, 1e-4, 1e-2, 0.1, 0.25, 0.4, 0.5])
CUTS = np.concatenate((CUTS, 1 - CUTS[-2::-1]))
HIDDEN = np.concatenate([(a + b + (b - a) * NODES) / 2 for a, b in itertools.pairwise(CUTS)])
MASS = np.concatenate([(b - a) / 2 * WEIGHTS for a, b in itertools.pairwise(CUTS)])


def price(method: TraceMethod, before: tuple[Place, ...], report: Place) -> float:
    """Return the documented price of an answer after earlier ones, computed without the library."""
    if isinstance(method, Independent):
        return method.epsilon
    if isinstance(method, Predictive):  # it predicts the last answer
        if not before:
            return method.fresh
        return method.test if report == before[-1] else method.test + method.fresh
    if isinstance(method, Switching):
        moves = sum(here != there for here, there in itertools.pairwise(before))
        return method.stays.fresh if moves >= method.moves else price(method.stays, before, report)
    if not isinstance(method, SparseVector):
        raise TypeError(type(method).__name__)
    if before and report == before[-1]:
        return 0.0
    others = {place for place in before if method.choice and place != before[-1]}
    choice = method.choice if others else 0.0
    return choice + method.test + (0.0 if report in others else method.fresh)


def paths(method: TraceMethod, truths: list[Truth]) -> Iterator[tuple[tuple[Place, ...], FloatArray, float]]:
    """Yield every answer sequence, its probability (or density) for both traces, and what it cost."""
    cache: dict[tuple[object, ...], FloatArray] = {}

    def law(history: History, report: Place, truth: Truth) -> FloatArray:
        """Return (levels, 2) probabilities of the answer."""
        key = (history.anchors, history.reports, report, truth)
        if key not in cache:

            def apart(place: Place) -> FloatArray:
                return np.abs(np.array(truth) - place[0])

            found = method.likelihood(history, report, apart, HIDDEN[:, None])
            cache[key] = np.broadcast_to(found, (len(HIDDEN), 2))
        return cache[key]

    def follow(
        history: History, step: int, run: FloatArray, done: FloatArray, answers: tuple[Place, ...], cost: float
    ) -> Iterator[tuple[tuple[Place, ...], FloatArray, float]]:
        if step == len(truths):
            yield answers, done * (MASS @ run), cost
            return
        predicted: tuple[Place, ...] = ()
        if isinstance(method, Predictive) and history.reports:
            predicted = (method.predictor(history),)
        for report in dict.fromkeys((*PLACES, *predicted)):
            after, _ = method.seen(history, report)
            paid = price(method, answers, report)
            given = law(history, report, truths[step])
            after = history.published(after, report, method.remembered, 0.0)._replace(time=step + 1.0)
            if after.runs != history.runs:
                yield from follow(
                    after,
                    step + 1,
                    np.ones_like(run),
                    done * (MASS @ (run * given)),
                    (*answers, report),
                    cost + paid,
                )
            else:
                yield from follow(after, step + 1, run * given, done, (*answers, report), cost + paid)

    yield from follow(History(0.0), 0, np.ones((len(HIDDEN), 2)), np.ones(2), (), 0.0)


METHODS: list[TraceMethod] = [
    Independent(0.004),
    Predictive(0.003, 0.004, 500.0),
    SparseVector(0.004, 0.005, 500.0),
    SparseVector(0.004, 0.005, 500.0, 0.003),
    Switching(SparseVector(0.004, 0.005, 500.0, 0.003), 2),
]
TRACES: list[list[Truth]] = [
    [(0.0, D), (0.0, D), (0.0, D), (0.0, D)],
    [(0.0, D), (D, 0.0), (D, 0.0), (600.0, 600.0 + D)],
    [(-300.0, -300.0 - D), (100.0, 100.0), (900.0 + D, 900.0), (-900.0, -900.0 + D)],
]


def worst(method: TraceMethod, truths: list[Truth]) -> float:
    """Return the largest loss of any answer sequence, as a share of what it paid for."""
    losses = [0.0]
    for _, (here, there), cost in paths(method, truths):
        if here > 0 and there > 0:
            losses.append(abs(math.log(here / there)) / (cost * D))
        elif here + there > 0:
            losses.append(math.inf)
    return max(losses)


@pytest.mark.parametrize("truths", TRACES)
@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_no_answer_sequence_gives_away_more_than_was_paid_for(method: TraceMethod, truths: list[Truth]) -> None:
    assert worst(method, truths) <= 1 + 1e-9


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_an_observer_computes_the_price_of_every_answer_sequence(method: TraceMethod) -> None:
    for answers in itertools.product(PLACES, repeat=4):
        history = History(0.0)
        for step, report in enumerate(answers):
            after, paid = method.seen(history, report)
            assert paid == pytest.approx(price(method, answers[:step], report))
            history = history.published(after, report, method.remembered, 0.0)._replace(time=step + 1.0)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_the_price_is_nearly_attained(method: TraceMethod) -> None:
    assert max(worst(method, truths) for truths in TRACES) > 0.6


def long_run(method: SparseVector, quiet: int) -> float:
    """Return the loss of one run that ends after many silent tests, over its price; the fresh reports left out."""
    silent, yes = np.array([[100.0, 100.0 + D], [300.0 + D, 300.0]])
    run = AboveThreshold(0, method.test, (0.0, 0.0))
    history = History(1.0, reports=(Report(0.0, 0.0, 0.0, fresh=True),), run=run)

    def law(report: Place, truth: FloatArray) -> FloatArray:
        return method.likelihood(history, report, lambda _: np.abs(truth), HIDDEN[:, None])

    moved = law((1.0, 0.0), yes) / laplace_density(np.abs(yes), method.fresh)
    here, there = MASS @ (law((0.0, 0.0), silent) ** quiet * moved)
    return abs(math.log(here / there)) / (method.test * D)


def test_silence_is_free_however_long_and_the_price_of_a_run_is_what_it_takes() -> None:
    method = SparseVector(0.004, 0.02, 300.0)
    losses = [long_run(method, quiet) for quiet in (0, 1, 10, 100, 1000)]
    assert max(losses) <= 1
    assert max(losses) > 0.85


class NoiselessTests(SparseVector):
    """A limit with noise, tests without: a known wrong sparse vector (Lyu, Su and Li, VLDB 2017)."""

    def likelihood(self, history: History, report: Place, apart: Distances, hidden: FloatArray) -> FloatArray:
        if not history.reports:
            return laplace_density(apart(report), self.fresh)
        bar = self.limit + laplace_quantile(hidden, 1 / shares(self.test)[0])
        left = (apart(history.last.place) >= bar).astype(float)
        return 1 - left if report == history.last.place else left * laplace_density(apart(report), self.fresh)


class HalfTheNoise(SparseVector):
    """Tests with the noise of a single question, as if silence and yes could not both reveal."""

    def likelihood(self, history: History, report: Place, apart: Distances, hidden: FloatArray) -> FloatArray:
        if not history.reports:
            return laplace_density(apart(report), self.fresh)
        for_limit, for_tests = shares(self.test)
        bar = self.limit + laplace_quantile(hidden, 1 / for_limit)
        left = laplace_exceeds(bar - apart(history.last.place), 1 / for_tests)
        return 1 - left if report == history.last.place else left * laplace_density(apart(report), self.fresh)


def test_tests_without_fresh_noise_are_caught() -> None:
    crossing = [(0.0, 0.0), (400.0, 400.0 + D), (400.0 + D, 400.0)]
    assert worst(NoiselessTests(0.004, 0.005, 500.0), crossing) == math.inf
    assert worst(SparseVector(0.004, 0.005, 500.0), crossing) <= 1


def test_tests_with_half_the_noise_are_caught() -> None:
    assert long_run(HalfTheNoise(0.004, 0.02, 300.0), 100) > 1.1
