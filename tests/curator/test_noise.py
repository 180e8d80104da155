import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from geoind import InvalidInputError, KeyedRandomness
from geoind.curator.noise import GeometricNoise, as_fresh_randomness, uniform_number
from tests.given_words import GivenWords, pairs_of
from tests.goodness import counts_fit


def steps_of(number: int, words: int, epsilon: float, sensitivity: int) -> int:
    """The whole part of -ln(U) / rate with 400 digits."""
    with mpmath.workdps(400):
        nats = -mpmath.log(mpmath.mpf(2 * number + 1) / mpmath.mpf(2) ** (64 * words + 1))
        return int(mpmath.floor(nats * sensitivity / mpmath.mpf(epsilon)))


@pytest.mark.parametrize(
    ("epsilon", "sensitivity"), [(1.0, 1), (0.3, 7), (20.0, 1), (1e-3, 1000), (math.log(2), 1)]
)
def test_every_draw_is_that_of_the_real_number(epsilon: float, sensitivity: int) -> None:
    draws = np.random.default_rng(1).integers(0, 2**63, size=(200, 2)).tolist()
    # Words next to where a number changes, and words in the tail, which their first 64 bits do not decide.
    with mpmath.workdps(60):
        borders = [int(mpmath.exp(-mpmath.mpf(epsilon) * m / sensitivity) * 2**64) for m in range(1, 20)]
    draws += [[border, border - 1] for border in borders if 1 < border < 2**64] + [[0, 1], [5, 2**64 - 1]]
    numbers = [(first << 128 | 3 << 64 | 9, second << 128 | 7 << 64 | 5) for first, second in draws]
    source = GivenWords([pairs_of(first, second, 3) for first, second in numbers])
    found = GeometricNoise(epsilon, sensitivity).pairs(len(numbers), source)
    expected = [[steps_of(number, 3, epsilon, sensitivity) for number in pair] for pair in numbers]
    assert found.tolist() == expected
    assert source.asked, "no draw was hard"


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(2)])
def test_the_noise_has_the_two_sided_geometric_law_and_no_other(rate: Fraction) -> None:
    count = 200_000
    noise = GeometricNoise(float(rate.numerator), rate.denominator)
    drawn = noise.added_to(np.zeros(count, np.int64), as_fresh_randomness(3))
    values = np.arange(-60, 61)
    counts = np.array([(drawn == value).sum() for value in values], dtype=np.float64)

    def law(scale: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return count * math.tanh(scale * rate / 2) * np.exp(-scale * float(rate) * np.abs(values))

    assert counts_fit(counts, law(1))
    assert not counts_fit(counts, law(1.05))
    assert not counts_fit(counts, law(0.95))


def test_the_enumerated_law_keeps_epsilon_between_neighbouring_counts() -> None:
    # Both uniform numbers run through 512 equal steps each: a quarter of a million draws are the law up to a step.
    epsilon, size = 0.7, 512
    middles = (np.arange(size, dtype=np.uint64) * np.uint64(2**55)) + np.uint64(2**54)
    first, second = (part.ravel().tolist() for part in np.meshgrid(middles, middles))
    source = GivenWords([(a, b, 1, 1, 1, 1) for a, b in zip(first, second, strict=True)])
    noise = GeometricNoise(epsilon, 1).added_to(np.zeros(size * size, np.int64), source)
    shares = np.bincount(noise + 40, minlength=81)[36:45] / size**2
    assert np.abs(shares - math.tanh(epsilon / 2) * np.exp(-epsilon * np.abs(np.arange(-4, 5)))).max() < 2e-3
    measured = np.abs(np.diff(np.log(shares))).max()
    assert epsilon * 0.95 < measured < epsilon * 1.05


def test_a_uniform_number_is_uniform() -> None:
    source = as_fresh_randomness(5)
    counts = np.bincount([uniform_number(7, source) for _ in range(7000)], minlength=7)
    assert stats.chisquare(counts).pvalue > 1e-4


def test_a_uniform_number_refuses_the_words_that_would_favour_some() -> None:
    source = GivenWords([(2**64 - 1, 0, 4, 0)], first=0)
    assert uniform_number(3, source) == 1


def test_noise_that_repeats_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="cancels out"):
        as_fresh_randomness(KeyedRandomness(bytes(32), [1]))


def test_noise_without_end_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="too small"):
        GeometricNoise(1e-13, 1)
