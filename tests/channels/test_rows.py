import itertools
import math
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from mpmath import mp, mpf

from geoind import (
    Channel,
    Grid,
    PlanarLaplace,
    Projected,
)
from geoind.arrays import FloatArray
from geoind.channels.rows import choose, choose_exactly, choose_one, reach_of_rows, steepest_ratio, steepest_slope
from geoind.distances import euclidean
from tests.mechanisms.ground import EPSILON, PARIS

ONES = 2**64 - 1


@pytest.mark.parametrize(
    ("more", "output"), [((0, 0), 0), ((ONES // 3, 0), 0), ((ONES // 3 + 1, 0), 1), ((ONES, ONES), 1)]
)
def test_a_border_within_the_first_word_is_decided_by_the_next_ones(more: tuple[int, int], output: int) -> None:
    """One part of three: the border, 0.010101..., is inside the interval of the first word."""
    row = np.array([5e-324, 1e-323])
    assert choose_exactly(row, 2**64 // 3, lambda number: more if number == 0 else (0, 0)) == output


def test_bits_that_change_nothing_are_not_drawn() -> None:
    def never(number: int) -> tuple[int, int]:
        raise AssertionError(number)

    row = np.array([0.25, 0.5, 0.25])
    assert [choose_exactly(row, eighth << 61, never) for eighth in range(8)] == [0, 0, 1, 1, 1, 1, 2, 2]


def test_impossible_outputs_are_never_chosen() -> None:
    row = np.array([0.0, 0.5, 0.0, 0.5, 0.0])
    assert choose_exactly(row, 0, lambda _: (0, 0)) == 1
    assert choose_exactly(row, 2**63, lambda _: (0, 0)) == 3
    assert choose_exactly(row, ONES, lambda _: (ONES, ONES)) == 3


def test_doubles_leave_what_is_next_to_a_border() -> None:
    cumulative = np.array([0.25, 0.75, 1.0])
    words = np.array([2**62 - 1, 2**62, 2**62 + 2**17, 2**61, 2**63, ONES, 0], np.uint64)
    outputs, undecided = choose(cumulative, words)
    assert undecided.tolist() == [0, 1, 5]
    assert outputs[[2, 3, 4, 6]].tolist() == [1, 0, 1, 0]


def test_a_source_that_repeats_itself_for_ever_is_an_error() -> None:
    # Two thirds of the way, 0.101010..., is the border itself.
    twos = ONES // 3 * 2
    with pytest.raises(RuntimeError, match="always returns the same bits"):
        choose_exactly(np.array([1.0, 0.5]), twos, lambda _: (twos, twos))


def test_doubles_decide_nothing_that_exact_sums_decide_in_another_way() -> None:
    """Words on both sides of every border of a long row, from one bit away to the largest error of the sums."""
    row = np.random.default_rng(3).dirichlet(np.ones(400))
    cumulative = np.cumsum(row)
    cumulative /= cumulative[-1]
    borders = list(accumulate(Fraction(entry) for entry in row.tolist()))
    words, outputs = [], []
    for number, border in enumerate(borders[:-1]):
        word = int(border / borders[-1] * 2**64)
        for bits in range(15):
            words += [word - 2**bits, word + 2**bits]
            outputs += [number, number + 1]
    found, undecided = choose(cumulative, np.array(words, np.uint64))
    alone = [choose_one(cumulative, word) for word in words]
    left = set(undecided.tolist())
    assert alone == [None if row in left else output for row, output in enumerate(found.tolist())]
    wrong = np.flatnonzero(found != outputs)
    assert len(wrong) > 100, "doubles alone would choose another output"
    assert set(wrong) <= set(undecided)
    # Not all is left to exact sums: random words hardly ever are.
    _, rare = choose(cumulative, np.random.default_rng(4).integers(0, 2**64, 10_000, np.uint64))
    assert len(rare) == 0


def test_a_channel_has_its_exact_quantile() -> None:
    street = Grid(0, 0, cell=100, columns=3, rows=1)
    channel = Channel(street, street, [[0.9, 0.1, 0.0], [0.05, 0.9, 0.05], [0.0, 0.2, 0.8]])
    half = 100 / math.sqrt(2)
    snap = Projected(PlanarLaplace(EPSILON), PARIS).reach(0.5) - report_planar(0.5)
    assert Projected(channel, PARIS).reach(0.8) == pytest.approx(0 + half + snap)
    assert Projected(channel, PARIS).reach(0.9) == pytest.approx(100 + half + snap)
    assert Projected(channel, PARIS).reach(0.999) == pytest.approx(100 + half + snap)


def report_planar(confidence: float) -> float:
    noise = PlanarLaplace(EPSILON)
    quantile = float(noise.radius_quantile(confidence)) * noise.epsilon / noise.noise_epsilon
    return quantile + noise.lattice_step / math.sqrt(2)


def test_a_row_that_sums_to_a_little_less_than_the_confidence_reaches_its_farthest_report() -> None:
    street = Grid(0, 0, cell=100, columns=2, rows=1)
    rows = np.array([[0.5, 0.5 - 1e-12], [0.5 - 1e-12, 0.5]])
    assert reach_of_rows(rows, street, street, 1 - 1e-13) == pytest.approx(100 + street.cell_radius)


def exact_rate(matrix: FloatArray, apart: FloatArray) -> float:
    """Every triple, in 50 digits."""
    mp.dps = 50
    worst = mpf(0)
    for x, y in itertools.permutations(range(len(matrix)), 2):
        for z in range(matrix.shape[1]):
            ratio = mp.log(mpf(float(matrix[x, z])) / mpf(float(matrix[y, z]))) / mpf(float(apart[x, y]))
            worst = max(worst, ratio)
    return float(worst)


@pytest.mark.parametrize("many", [1e10, 0])
@pytest.mark.parametrize("smallest", [1, 1e-40, 1e-300, 1e-320])
def test_the_rate_is_that_of_every_triple_in_fifty_digits(
    smallest: float, many: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("geoind.channels.rows.MANY", many)
    rng = np.random.default_rng(1)
    points = rng.normal(size=(9, 2))
    matrix = rng.uniform(0.5, 1, (9, 7)) * smallest ** rng.random((9, 7))
    apart = euclidean(points, points)
    assert steepest_ratio(matrix, apart).rate == pytest.approx(exact_rate(matrix, apart), rel=1e-14)


def test_nearly_equal_rows_keep_their_digits() -> None:
    matrix = np.array([[0.5, 0.5], [0.5 + 2.0**-40, 0.5 - 2.0**-40]])
    apart = np.array([[0, 2.0], [2.0, 0]])
    assert steepest_ratio(matrix, apart).rate == pytest.approx(exact_rate(matrix, apart), rel=1e-15)


def test_the_triple_attains_the_rate() -> None:
    rng = np.random.default_rng(2)
    points, matrix = rng.normal(size=(30, 2)), rng.random((30, 50))
    apart = euclidean(points, points)
    rate, x, y, z = steepest_ratio(matrix, apart)
    assert math.log(matrix[x, z] / matrix[y, z]) / apart[x, y] == pytest.approx(rate, rel=1e-14)


@pytest.mark.parametrize("seed", range(5))
def test_many_pairs_are_searched_by_logarithms(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    points, matrix = rng.normal(size=(50, 2)), rng.random((50, 40))
    apart = euclidean(points, points)
    expected = steepest_ratio(matrix, apart)
    for name, number in {"MANY": 0, "TALL": 7, "WIDE": 11}.items():
        monkeypatch.setattr(f"geoind.channels.rows.{name}", number)
    assert steepest_ratio(matrix, apart) == expected


@pytest.mark.parametrize("tile", [1, 37, 1000])
def test_the_size_of_a_tile_does_not_matter(tile: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    points, matrix = rng.normal(size=(23, 2)), rng.random((23, 11))
    apart = euclidean(points, points)
    expected = steepest_ratio(matrix, apart)
    monkeypatch.setattr("geoind.channels.rows.TILE", tile)
    assert steepest_ratio(matrix, apart) == expected


def test_the_direction_of_an_asymmetric_distance_counts() -> None:
    matrix = np.array([[0.9, 0.1], [0.5, 0.5]])
    forth = steepest_ratio(matrix, np.array([[0, 1.0], [1e9, 0]]))
    back = steepest_ratio(matrix, np.array([[0, 1e9], [1.0, 0]]))
    assert forth.rate == pytest.approx(math.log(1.8))
    assert back.rate == pytest.approx(math.log(5))


def test_a_zero_next_to_a_positive_entry_is_infinite_and_two_zeros_are_not() -> None:
    apart = np.array([[0, 1.0], [1.0, 0]])
    assert steepest_ratio(np.array([[1.0, 0.0], [1 - 1e-320, 1e-320]]), apart) == (math.inf, 1, 0, 1)
    assert steepest_ratio(np.array([[0.4, 0.0, 0.6], [0.5, 0.0, 0.5]]), apart).rate == pytest.approx(
        math.log(1.25)
    )


def test_equal_rows_cost_nothing_even_at_no_distance() -> None:
    assert steepest_ratio(np.full((3, 3), 1 / 3), np.zeros((3, 3))).rate == 0
    assert steepest_ratio(np.full((3, 7), 1 / 7), np.full((3, 3), 1e-9)).rate == 0


def test_different_rows_at_no_distance_are_infinite() -> None:
    assert steepest_ratio(np.array([[0.4, 0.6], [0.6, 0.4]]), np.zeros((2, 2))).rate == math.inf
    assert steepest_slope(np.array([[0.4], [0.6]]), np.zeros((2, 2))).rate == math.inf


def test_a_slope_is_the_largest_difference_per_distance() -> None:
    table = np.array([[0.0, 5.0], [3.0, 4.0], [-2.0, 4.5]])
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 10.0]])
    assert steepest_slope(table, euclidean(points, points)) == (3.0, 1, 0, 0)


def test_the_smallest_double_is_a_probability_too() -> None:
    """A ratio that no double can hold has a logarithm that one can."""
    street = Grid(0, 0, cell=100, columns=2, rows=1)
    channel = Channel(street, street, [[1.0, 5e-324], [0.5, 0.5]])
    assert channel.epsilon == pytest.approx((math.log(0.5) - math.log(5e-324)) / 100)
