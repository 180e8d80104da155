"""Comparisons of noisy distances are those of real numbers."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from flint import arb, ctx
from scipy import stats

from geoind.traces.comparison import Noise, Quantity, arc_length, at_least, smallest

HERE = (2.2945, 48.8584)
WORD = 1 << 64


def random_words(seed: int) -> Iterator[int]:
    rng = np.random.default_rng(seed)
    return (int(rng.integers(0, 2**64, dtype=np.uint64, endpoint=False)) for _ in itertools.count())


def words(*first: int) -> Iterator[int]:
    return itertools.chain(first, random_words(0))


def noise(uniform: int, *, sign: int = 0, scale: float = 100.0) -> Noise:
    return Noise(words(sign, uniform), scale, signed=True)


def test_doubles_and_200_bits_agree_on_thousands_of_comparisons() -> None:
    rng = np.random.default_rng(0)
    for _ in range(3000):
        lon, lat, other_lon, other_lat = rng.uniform([-180, -90, -180, -90], [180, 90, 180, 90]).tolist()
        if rng.random() < 0.7:  # near each other, as places are
            other_lon, other_lat = lon + rng.normal() * 1e-3, max(-90, min(90, lat + rng.normal() * 1e-3))
        first_word, second_word = (int(word) for word in rng.integers(0, 2**64, 2, np.uint64, endpoint=False))
        distance = Quantity.distance(lon, lat, (other_lon, other_lat), noise(first_word))
        limit = Quantity(noise(second_word, sign=1), float(arc_length(lon, lat, other_lon, other_lat)))
        with ctx.workprec(200):
            # The first 64 bits of each number decide, but for one comparison in 1e15.
            difference = distance.ball() - limit.ball()
            expected = bool(difference > 0)
            assert difference > 0 or difference < 0
        assert at_least(distance, limit) is expected


def test_what_doubles_cannot_decide_is_decided_by_more_bits() -> None:
    outcomes = set()
    for low in range(40):
        # Equal in the first word: only the second one, drawn on demand, tells them apart.
        uniform = 0x9E3779B97F4A7C15
        first = Quantity(Noise(iter([0, uniform, low, 7, 7]), 100.0, signed=True), 500.0)
        second = Quantity(Noise(iter([0, uniform, 20, 9, 9]), 100.0, signed=True), 500.0)
        outcomes.add((low <= 20, at_least(first, second)))
    # -log falls: a smaller uniform number is a larger noise; at low == 20 the third word (7 < 9) decides.
    assert outcomes == {(True, True), (False, False)}


def test_the_tail_of_the_noise_is_drawn_and_not_cut_off() -> None:
    deep = Noise(words(0, 0, 1 << 40), 1.0, signed=True)
    assert deep.tail
    # Uniform number near 2^-88: noise of 88 ln 2 = 61 scales.
    assert at_least(Quantity(deep, 0.0), Quantity(None, 60.0))
    assert not at_least(Quantity(Noise(words(0, 0, 1 << 40), 1.0, signed=True)), Quantity(None, 62.0))


def test_the_arc_is_right_from_zero_to_the_antipode() -> None:
    for lon, lat in [
        (2.2945, 48.8584),
        (2.2945 + 1e-9, 48.8584),
        (-177.7055, -48.8584),
        (2.2945, 48.8584 + 1e-12),
        (-177.7055, -48.8583999),
    ]:
        with ctx.workprec(200):
            exact = Quantity.distance(*HERE, (lon, lat), None).ball()
        assert arc_length(*HERE, lon, lat) == pytest.approx(float(exact.mid()), rel=1e-12, abs=1e-8)
        assert float(exact.rad()) < 1e-20


def test_a_place_and_itself_are_compared_to_the_last_bit() -> None:
    tail = Noise(words(0, 0, 1 << 40), 1.0, signed=True)
    assert at_least(Quantity.distance(*HERE, HERE, tail), Quantity(None, 60.0))
    assert not at_least(Quantity.distance(*HERE, HERE, None), Quantity(None, 1e-9))


def test_near_the_antipode_exact_arithmetic_decides_what_the_arcsine_cannot() -> None:
    other = (HERE[0] - 180 + 1e-7, -HERE[1])
    with ctx.workprec(200):
        true = Quantity.distance(*HERE, other, None).ball()
    for offset in (-2e-8, 2e-8):
        limit = float((true + arb(offset)).mid())
        assert at_least(Quantity.distance(*HERE, other, None), Quantity(None, limit)) is (offset < 0)


def test_the_noise_is_laplace() -> None:
    source = random_words(1)
    values = np.array([Noise(source, 3.0, signed=True).value for _ in range(60_000)])
    assert stats.kstest(values, stats.laplace(scale=3.0).cdf).pvalue > 1e-3
    for wrong in (0.95, 1.05):
        assert stats.kstest(values, stats.laplace(scale=3.0 * wrong).cdf).pvalue < 1e-3


def test_the_smallest_of_many_is_found() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        numbers = rng.normal(size=7).tolist()
        assert smallest([Quantity(None, number) for number in numbers]) == numbers.index(min(numbers))
