from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest

from geoind.channels.draws import choose, choose_exactly

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
    wrong = np.flatnonzero(found != outputs)
    assert len(wrong) > 100, "doubles alone would choose another output"
    assert set(wrong) <= set(undecided)
    # Not all is left to exact sums: random words hardly ever are.
    _, rare = choose(cumulative, np.random.default_rng(4).integers(0, 2**64, 10_000, np.uint64))
    assert len(rare) == 0
