import bisect
import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from geoind import (
    Channel,
    Grid,
    InvalidInputError,
    KeyedRandomness,
    Mechanism,
    Places,
    PosteriorRemap,
    Prior,
    adversary_error,
    discretise,
    distances,
    planar_geometric,
    tight_epsilon,
)
from geoind.arrays import ArrayLike, FloatArray
from geoind.channels import Dummies
from geoind.channels import channel as channel_module
from geoind.errors import NotStochasticError, SitesMismatchError
from geoind.mechanisms.planar import PlanarLaplace
from tests.given_words import GivenWords

STREET = Grid(0, 0, cell=100, columns=2, rows=1)
COIN = Channel(STREET, STREET, [[0.75, 0.25], [0.25, 0.75]])


@st.composite
def channels(draw: st.DrawFn, inputs: int = 4, outputs: int = 3) -> Channel:
    weights = draw(arrays(np.float64, (inputs, outputs), elements=st.floats(1e-3, 1)))
    before, after = (Grid(0, 0, cell=1, columns=count, rows=1) for count in (inputs, outputs))
    return Channel(before, after, weights / weights.sum(axis=1, keepdims=True))


@pytest.mark.parametrize(
    ("matrix", "error", "message"),
    [
        ([[1.2, -0.2], [0, 1]], NotStochasticError, "negative"),
        ([[math.nan, 1], [0, 1]], NotStochasticError, "not a number"),
        ([[math.inf, 1], [0, 1]], NotStochasticError, "sum to 1"),
        ([[0.5, 0.4], [0, 1]], NotStochasticError, "row 0 sums to 0.9"),
        ([[1, 0]], SitesMismatchError, r"shape \(2, 2\), inputs by outputs, got \(1, 2\)"),
        ([["a", "b"], ["c", "d"]], InvalidInputError, "numbers"),
    ],
)
def test_a_bad_matrix_is_refused(matrix: ArrayLike, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Channel(STREET, STREET, matrix)


def test_the_matrix_is_a_copy_that_cannot_be_written() -> None:
    matrix = np.eye(2)
    channel = Channel(STREET, STREET, matrix)
    matrix[0, 0] = 0
    assert channel.matrix[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        channel.matrix[0, 0] = 0


def test_a_channel_is_a_mechanism() -> None:
    assert isinstance(COIN, Mechanism)
    assert COIN.epsilon == pytest.approx(math.log(3) / 100, rel=1e-15)


def test_draws_follow_the_row_and_would_notice_five_percent() -> None:
    count = 200_000
    line = Grid(0, 0, cell=1, columns=4, rows=1)
    matrix = np.array([[0.1, 0.2, 0.3, 0.4], [0.7, 0.0, 0.2, 0.1], [0, 0, 0, 1], [0.25] * 4])
    channel = Channel(line, line, matrix)
    truth = np.random.default_rng(5).integers(0, 4, count)
    reports = channel.sample_indices(truth, rng=6)
    seen = np.zeros((4, 4))
    np.add.at(seen, (truth, reports), 1)

    def misfit(expected: FloatArray) -> float:
        wanted = np.bincount(truth)[:, None] * expected
        possible = wanted > 0
        assert not seen[~possible].any()
        return float(((seen - wanted)[possible] ** 2 / wanted[possible]).sum())

    # 99.99 % quantile of chi-square with 3 + 2 + 0 + 3 degrees of freedom.
    assert misfit(matrix) < 31.8
    skewed = matrix * [1.05, 1, 1, 1]
    assert misfit(skewed / skewed.sum(axis=1, keepdims=True)) > 31.8


def test_sample_reports_places_for_the_closest_site() -> None:
    swap = Channel.deterministic(STREET, Places([[5, 5], [7, 7]]), [1, 0])
    assert swap.sample([[-30, 40], [90, -999], [3, 3]]).tolist() == [[7, 7], [5, 5], [7, 7]]
    assert swap.sample(np.empty((0, 2))).shape == (0, 2)


@pytest.mark.parametrize("word", [0, 2**64 - 1])
def test_the_first_and_the_last_random_word_find_a_possible_report(word: int) -> None:
    line = Grid(0, 0, cell=1, columns=4, rows=1)
    channel = Channel(STREET, line, [[0, 0.3, 0.7, 0], [0, 1 / 3, 2 / 3, 0]])
    assert channel.sample_indices([0, 1], rng=GivenWords([(word,) * 9] * 2)).tolist() == [1 + (word > 0)] * 2


def test_entries_are_drawn_over_the_sum_of_their_row() -> None:
    # A sum of 1 + 9e-10 is allowed; cumulative sums not divided by it would report the first output twice.
    line = Grid(0, 0, cell=1, columns=2, rows=1)
    channel = Channel(line, line, [[0.5 + 9e-10, 0.5], [0.5, 0.5]])
    border = 2**64 * (0.5 + 9e-10) / (1 + 9e-10)
    words = [(int(border * (1 + share)),) for share in (-1e-12, 1e-12)]
    assert channel.sample_indices([0, 0], rng=GivenWords(words)).tolist() == [0, 1]


def test_epsilon_is_that_of_what_is_drawn() -> None:
    exact = [[0.75, 0.25], [0.25, 0.75]]
    loose = [[0.75 * (1 + 9e-10), 0.25 * (1 + 9e-10)], [0.25 * (1 - 9e-10), 0.75 * (1 - 9e-10)]]
    assert Channel(STREET, STREET, loose).epsilon == pytest.approx(
        Channel(STREET, STREET, exact).epsilon, rel=1e-14
    )


def test_the_least_likely_report_is_drawn_too() -> None:
    """With 53 bits a report of 1e-17 never came, while another place may promise it with certainty."""
    line = Grid(0, 0, cell=1, columns=3, rows=1)
    channel = Channel(line, line, [[1 - 1e-300, 5e-300, 1e-300], [0, 0, 1.0], [0.2, 0.3, 0.5]])
    ones = 2**64 - 1
    # 1 - 2^-1024 is beyond 1 - 1e-300, 1 - 2^-995 is within the six before the end.
    last, second = (ones,) * 17, (ones,) * 15 + (ones - 2**29, 0)
    assert channel.sample_indices([0, 0, 1], rng=GivenWords([last, second, last])).tolist() == [2, 1, 2]


@pytest.mark.parametrize("n", [1, 2, 7, 300])
def test_exact_draws_agree_with_fractions(n: int) -> None:
    rng = np.random.default_rng(n)
    row = rng.dirichlet(np.full(n, 0.2))
    line = Grid(0, 0, cell=1, columns=n, rows=1)
    channel = Channel(Grid(0, 0, cell=1, columns=1, rows=1), line, [row])
    borders = list(itertools.accumulate(map(Fraction, row.tolist())))
    numbers = [int.from_bytes(rng.bytes(24)) for _ in range(50)]
    numbers += [int(border / borders[-1] * 2**192) + off for border in borders[:-1] for off in (-1, 1)]
    numbers = [number for number in numbers if 0 <= number < 2**192]
    words = [(number >> 128, number >> 64 & 2**64 - 1, number & 2**64 - 1) for number in numbers]
    wanted = [bisect.bisect(borders, Fraction(2 * number + 1, 2**193) * borders[-1]) for number in numbers]
    assert channel.sample_indices([0] * len(numbers), rng=GivenWords(words)).tolist() == wanted


def test_every_input_is_drawn_from_its_own_row_whatever_else_is_asked() -> None:
    line = Grid(0, 0, cell=1, columns=5, rows=1)
    targets = np.array([3, 0, 4, 1, 2])
    channel = Channel.deterministic(line, line, targets)
    for count in range(4):
        for truth in itertools.product(range(5), repeat=count):
            rows = np.array(truth, dtype=np.int64)
            assert channel.sample_indices(rows).tolist() == targets[rows].tolist()
    assert channel.sample_indices([]).tolist() == []


def test_equal_inputs_get_different_noise() -> None:
    assert len(np.unique(COIN.sample(np.zeros((64, 2))), axis=0)) == 2


def test_a_keyed_draw_repeats_for_the_same_site_and_not_for_another_channel() -> None:
    grid = Grid(0, 0, cell=100, columns=9, rows=9)
    rng = KeyedRandomness(bytes(32), list(range(50)))
    channel = discretise(PlanarLaplace(0.01), grid)
    first = channel.sample(np.full((50, 2), 400.0), rng=rng)
    assert (first == channel.sample(np.full((50, 2), 410.0), rng=rng)).all()
    assert (first != discretise(PlanarLaplace(0.011), grid).sample(np.full((50, 2), 400.0), rng=rng)).any()


def test_two_channels_share_no_keyed_draw_however_alike_they_are() -> None:
    here, there = (Grid(x, 0, cell=100, columns=9, rows=9) for x in (0.0, 0.5))
    rng = KeyedRandomness(bytes(32), list(range(400)))
    first = discretise(PlanarLaplace(0.01), here)
    others = [
        discretise(PlanarLaplace(0.01 * (1 + 1e-9)), here),
        Channel(there, here, first.matrix),
        Channel(here, there, first.matrix),
    ]
    truth = np.full(400, 40)
    drawn = first.sample_indices(truth, rng=rng)
    assert (drawn == Channel(here, here, first.matrix).sample_indices(truth, rng=rng)).all()
    # Independent draws agree as often as the row's own collision probability says.
    chance = float((first.matrix[40] ** 2).sum())
    for other in others:
        assert (drawn == other.sample_indices(truth, rng=rng)).mean() < chance + 0.1


def test_rows_may_miss_one_by_rounding_and_no_more() -> None:
    for off in (0.9e-9, -0.9e-9):
        assert Channel(STREET, STREET, [[0.5 + off, 0.5], [0.5, 0.5]]).matrix.shape == (2, 2)
    for off in (1.1e-9, -1.1e-9):
        with pytest.raises(NotStochasticError, match="row 0"):
            Channel(STREET, STREET, [[0.5 + off, 0.5], [0.5, 0.5]])


@pytest.mark.parametrize(
    "truth", [[2], [-1], [0.5], [[0]], "x", np.ma.array([0, 1], mask=[False, True])], ids=repr
)
def test_numbers_of_inputs_are_checked(truth: ArrayLike) -> None:
    with pytest.raises(InvalidInputError):
        COIN.sample_indices(truth)


@pytest.mark.parametrize("targets", [[0], [0, 2], [-1, 0], [0.0, 1.0]])
def test_targets_are_checked(targets: ArrayLike) -> None:
    with pytest.raises(InvalidInputError):
        Channel.deterministic(STREET, STREET, targets)


def test_the_posterior_is_bayes_rule_and_an_impossible_report_says_nothing() -> None:
    line = Grid(0, 0, cell=1, columns=3, rows=1)
    channel = Channel(STREET, line, [[0.5, 0.5, 0], [0.1, 0.9, 0]])
    posterior = channel.posterior(Prior(STREET, [0.2, 0.8]))
    assert posterior == pytest.approx(np.array([[0.1 / 0.18, 0.08 / 0.18], [0.1 / 0.82, 0.72 / 0.82], [0.2, 0.8]]))


def test_other_peoples_priors_are_refused() -> None:
    with pytest.raises(SitesMismatchError):
        COIN.posterior(Prior.uniform(Grid(0, 0, cell=99, columns=2, rows=1)))


def test_the_same_places_under_another_name_are_welcome() -> None:
    assert COIN.joint(Prior.uniform(Places(STREET.xy))).sum() == pytest.approx(1)


@given(channels(4, 3), channels(3, 5), channels(5, 2))
def test_composition_is_associative(a: Channel, b: Channel, c: Channel) -> None:
    assert ((a @ b) @ c).matrix == pytest.approx((a @ (b @ c)).matrix, abs=1e-14)


@given(channels(4, 3), channels(3, 5))
def test_post_processing_never_raises_epsilon(channel: Channel, step: Channel) -> None:
    assert (channel @ step).epsilon <= channel.epsilon * (1 + 1e-12) + 1e-14


def test_channels_that_do_not_fit_are_refused() -> None:
    with pytest.raises(SitesMismatchError):
        COIN @ Channel(Grid(1, 1, cell=100, columns=2, rows=1), STREET, np.eye(2))
    with pytest.raises(TypeError):
        COIN @ np.eye(2)


def test_draws_do_not_depend_on_what_is_kept_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = np.random.default_rng(1).integers(0, 25, 3000)
    grid = Grid(0, 0, cell=100, columns=5, rows=5)
    reports = []
    for kept in (1 << 23, 60, 0):
        monkeypatch.setattr("geoind.channels.channel.KEPT", kept)
        reports.append(planar_geometric(grid, epsilon=0.01).sample_indices(truth, rng=4))
    assert (reports[0] == reports[1]).all()
    assert (reports[0] == reports[2]).all()


def test_a_matrix_that_its_maker_made_read_only_is_shared_and_others_are_copied() -> None:
    mine = np.full((2, 2), 0.5)
    view = mine[:]
    view.flags.writeable = False
    assert Channel(STREET, STREET, mine).matrix is not mine
    assert not np.shares_memory(Channel(STREET, STREET, view).matrix, mine)
    mine.flags.writeable = False
    assert Channel(STREET, STREET, mine).matrix is mine


def test_tight_epsilon_names_the_worst_triple_and_survives_pickling() -> None:
    worst = tight_epsilon(Channel(STREET, STREET, [[0.8, 0.2], [0.25, 0.75]]))
    assert worst == pytest.approx(math.log(3.75) / 100)
    assert (worst.truth, worst.other, worst.report) == (1, 0, 1)
    assert pickle.loads(pickle.dumps(worst)).report == 1


def test_the_metric_of_the_promise_can_be_chosen() -> None:
    assert tight_epsilon(COIN, distances.discrete) == pytest.approx(math.log(3))
    assert tight_epsilon(COIN, distances.from_matrix([[0, 50], [50, 0]])) == pytest.approx(math.log(3) / 50)
    with pytest.raises(InvalidInputError, match="distance"):
        tight_epsilon(COIN, lambda a, b: np.full((len(a), len(b)), np.nan))


def test_a_report_possible_at_one_site_only_is_infinitely_bad() -> None:
    assert Channel(STREET, STREET, [[1.0, 0], [0.5, 0.5]]).epsilon == math.inf


DAYS = Places([[0, 0, 0], [1, 0, 0], [1, 2, 4]])


@pytest.mark.parametrize("reports", [DAYS, Places([[7.0], [8.0], [9.0]])])
def test_records_with_any_number_of_columns_are_inputs_and_outputs(reports: Places) -> None:
    channel = Channel(DAYS, reports, np.eye(3)[[1, 2, 0]])
    assert (channel.sample(DAYS.xy) == reports.xy[[1, 2, 0]]).all()
    with pytest.raises(InvalidInputError, match="shape"):
        channel.sample([[0.0, 0.0]])


def test_keyed_draws_repeat_for_records_and_differ_between_them() -> None:
    inputs = Places(np.eye(3))
    channel = Channel(inputs, Places(np.arange(1000.0)[:, None]), np.full((3, 1000), 1e-3))
    labels = KeyedRandomness(bytes(32), list(range(20)))
    first, again, other = (channel.sample_indices(np.full(20, row), rng=labels) for row in (0, 0, 1))
    assert (first == again).all()
    assert (first != other).sum() > 10


def test_what_is_about_the_plane_refuses_records() -> None:
    days = Prior.uniform(DAYS)
    with pytest.raises(InvalidInputError, match="plane"):
        adversary_error(Channel(DAYS, DAYS, np.eye(3)), days, guesses="plane")
    with pytest.raises(InvalidInputError, match="plane"):
        PosteriorRemap(days, PlanarLaplace(0.01))
    with pytest.raises(InvalidInputError, match="plane"):
        Dummies(days, k=2)
    with pytest.raises(InvalidInputError, match="plane"):
        days.plot()
    assert "3 places" in days._repr_html_()


@pytest.mark.parametrize("more", [1e-13, -1e-13])
def test_epsilon_is_that_of_entries_over_their_rows_sum_however_little_it_differs_from_one(more: float) -> None:
    """Both rows are drawn alike, though no sum of a thousand entries has to be so close to 1."""
    outputs = Grid(0, 0, cell=1, columns=1000, rows=1)
    street = Grid(0, 0, cell=1, columns=2, rows=1)
    channel = Channel(street, outputs, [np.full(1000, 0.001), np.full(1000, 0.001 * (1 + more))])
    assert channel.epsilon < 6e-15


@pytest.mark.parametrize(("quick", "listed"), [(80, False), (81, True), (82, True)])
def test_a_notebook_shows_epsilon_up_to_a_size_only(
    quick: int, listed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = discretise(PlanarLaplace(0.01), Grid(0, 0, cell=100, columns=3, rows=3))
    monkeypatch.setattr(channel_module, "QUICK", quick)
    shown = channel._repr_html_()
    assert ("measured epsilon" in shown) is listed
    assert (f"{channel.epsilon:.6g} per metre" in shown) is listed
    assert "input 4, the one in the middle" in shown


def test_a_plot_marks_the_input_whose_reports_it_shows() -> None:
    grid = Grid(500, -300, cell=100, columns=3, rows=5)
    channel = discretise(PlanarLaplace(0.01), grid)
    for axes, number in ((channel.plot(11), 11), (channel.plot(), 7), (channel.plot(0), 0)):
        assert axes.get_title() == f"reports of input {number}"
        [mark] = axes.lines
        assert np.asarray(mark.get_xydata()) == pytest.approx(grid.xy[[number]] / 1000)
    with pytest.raises(InvalidInputError, match="numbers of inputs, 0 to 14"):
        channel.plot(15)
