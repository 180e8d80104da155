"""A matrix of extended columns is the dense matrix that it stands for: entries, draws, epsilon and measures."""

import math
import pickle
from fractions import Fraction
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
import pytest

from geoind import (
    Channel,
    Grid,
    InvalidInputError,
    KeyedRandomness,
    Places,
    Prior,
    adversary_error,
    bayes_remap,
    expected_loss,
    tight_epsilon,
)
from geoind.accounting import tight_delta
from geoind.arrays import FloatArray
from geoind.channels import Interpolated
from geoind.channels.extended import ExtendedMatrix
from geoind.distances import euclidean, manhattan
from geoind.errors import NotStochasticError, SitesMismatchError
from geoind.space.sites import Sites
from tests.channels.extensions import expanded, extended
from tests.goodness import counts_fit

EPSILON = 0.01
GRID = Grid(0, 0, cell=70, columns=12, rows=9)
TOWNS = Places(np.random.default_rng(7).uniform(0, 1500, (60, 2)))
SITES: dict[str, Sites] = {"grid": GRID, "places": TOWNS}
PRIOR = Prior.from_counts(GRID, np.random.default_rng(3).random(len(GRID)))


def both(sites: Sites = GRID, *, epsilon: float = EPSILON, seed: int = 0) -> tuple[Channel, Channel]:
    """A channel of extended columns, and the dense one."""
    matrix = extended(sites, len(sites), epsilon, seed=seed, report=seed)
    return Channel(sites, sites, matrix), Channel(sites, sites, matrix[:])


@pytest.mark.parametrize("name", SITES)
def test_entries_are_those_of_the_rule_to_the_last_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sites = SITES[name]
    matrix = extended(sites, 40, EPSILON, report=5)
    wanted = expanded(sites, 40, EPSILON, (matrix.input, matrix.output, matrix.value))
    wanted[:, 5] = matrix.column
    np.testing.assert_array_equal(matrix[:], wanted)
    np.testing.assert_array_equal(matrix[3:17], wanted[3:17])
    np.testing.assert_array_equal([matrix[row] for row in range(len(sites))], wanted)
    monkeypatch.setattr("geoind.channels.extended.TILE", 7 * len(sites))
    monkeypatch.setattr("geoind.channels.extended.CHUNK", 50)
    np.testing.assert_array_equal(matrix[:], wanted)
    assert not matrix[:].flags.writeable


@pytest.mark.parametrize("tail", [1e-4, 0.2, 1.0])
def test_draws_are_those_of_the_dense_matrix(tail: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if a fifth of the draws, or most, need the whole row."""
    monkeypatch.setattr("geoind.channels.extended.TAIL", tail)
    sparse, dense = both(epsilon=0.03)
    truth = np.random.default_rng(1).integers(0, len(GRID), 20_000)
    np.testing.assert_array_equal(sparse.sample_indices(truth, rng=4), dense.sample_indices(truth, rng=4))
    for word in np.random.default_rng(2).integers(0, 2**64, 300, dtype=np.uint64).tolist():
        assert sparse.sample_index(17, word) == dense.sample_index(17, word)


def test_larger_entries_are_drawn_without_their_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """On 600 cells a row has 600 entries, of which most are in the tail."""
    grid = Grid(0, 0, cell=300, columns=30, rows=20)
    matrix = extended(grid, 600, 0.02, share=0.01)
    channel, asked = Channel(grid, grid, matrix), []
    compute = ExtendedMatrix.__getitem__

    def counted(self: ExtendedMatrix, row: int) -> FloatArray:
        asked.append(row)
        return compute(self, row)

    monkeypatch.setattr(ExtendedMatrix, "__getitem__", counted)
    channel.sample_indices(np.full(20_000, 311), rng=5)
    assert len(asked) <= 1
    words = np.random.default_rng(6).integers(0, 2**64, 20_000, dtype=np.uint64).tolist()
    for word in words:
        channel.sample_index(311, word)
    assert len(asked) < 20
    assert matrix.nbytes < 0.5 * matrix[:].nbytes


@pytest.mark.parametrize("site", [0, 40, 107])
def test_numbers_next_to_every_border_have_the_output_of_the_rational_sums(site: int) -> None:
    channel, _ = both()
    row = [Fraction(entry) for entry in channel.rows[site].tolist()]
    for output, border in enumerate(list(accumulate(row))[:-1]):
        first = math.ceil(border / sum(row) * 2**192)
        # The border is between the last number of the one output and the first of the other.
        for number, wanted in ((first - 2, output), (first, output + 1)):
            word, *more = (number >> shift & 2**64 - 1 for shift in (128, 64, 0))
            further: Any = partial(lambda more, _: tuple(more), more)
            assert channel.sample_index(site, word, further) == wanted


def test_frequencies_are_the_probabilities() -> None:
    channel, dense = both(TOWNS)
    drawn = channel.sample_indices(np.full(50_000, 33), rng=8)
    assert counts_fit(np.bincount(drawn, minlength=60).astype(float), 50_000 * dense.matrix[33])
    assert not counts_fit(np.bincount(drawn, minlength=60).astype(float), 50_000 * dense.matrix[32])


def assert_same_epsilon(sparse: Channel, dense: Channel) -> float:
    """The stated epsilon is at least the measured one, at most a billionth more, and attained where it says."""
    stated, measured = tight_epsilon(sparse), tight_epsilon(dense)
    assert measured <= stated <= measured * (1 + 1e-9)
    assert sparse.epsilon == stated
    if 0 < stated < math.inf and stated.report is not None:
        drawn = dense.matrix / dense.matrix.sum(axis=1, keepdims=True)
        gain = math.log(drawn[stated.truth, stated.report] / drawn[stated.other, stated.report])
        apart = euclidean(dense.inputs.xy[[stated.truth]], dense.inputs.xy[[stated.other]])[0, 0]
        assert gain / apart == pytest.approx(stated, rel=1e-9)
    return float(stated)


@pytest.mark.parametrize("name", SITES)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("epsilon", [0.001, 0.01, 0.1])
def test_epsilon_is_that_of_the_expanded_matrix(name: str, seed: int, epsilon: float) -> None:
    """At 0.1 per metre some ratios are as small as they may be."""
    stated = assert_same_epsilon(*both(SITES[name], epsilon=epsilon, seed=seed))
    assert stated == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_a_kept_entry_that_is_too_large_is_found(seed: int) -> None:
    """By the rule its column is still private, but no longer the column that takes the rest."""
    rows = np.sort(np.random.default_rng(seed).choice(len(GRID), (2, 5), replace=False), axis=1)
    output, outputs = np.repeat([0, 2], 5), Places([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])

    def channels(value: FloatArray) -> tuple[Channel, Channel]:
        kept = rows.ravel(), output, value
        column = 1 - expanded(GRID, 3, EPSILON, kept).sum(axis=1)
        matrix = ExtendedMatrix(GRID, 3, EPSILON, kept, 1, column)
        return Channel(GRID, outputs, matrix), Channel(GRID, outputs, matrix[:])

    value = np.full(10, 0.2)
    assert assert_same_epsilon(*channels(value)) < EPSILON * (1 + 1e-9)
    value[seed] = 0.7
    assert assert_same_epsilon(*channels(value)) > EPSILON * 1.1
    column = channels(np.full(10, 0.2))[1].matrix[:, 1]
    raised = ExtendedMatrix(GRID, 3, EPSILON, (rows.ravel(), output, value), 1, column)
    with pytest.raises(NotStochasticError, match="sum to 1"):
        Channel(GRID, outputs, raised)


def test_a_rule_that_no_entry_attains_is_not_the_epsilon() -> None:
    """All inputs are kept, and columns are flatter than the rule allows."""
    flat = extended(TOWNS, 8, EPSILON / 3)[:]
    output, row = (some.ravel() for some in np.mgrid[1:8, 0:60])
    matrix = ExtendedMatrix(TOWNS, 8, EPSILON, (row, output, flat[row, output]), 0, flat[:, 0])
    outputs = Places(np.arange(16.0).reshape(8, 2))
    stated = assert_same_epsilon(Channel(TOWNS, outputs, matrix), Channel(TOWNS, outputs, flat))
    assert stated < EPSILON / 2


def test_row_sums_that_are_not_one_count() -> None:
    """The whole row of one input is larger by 5e-10, which is within the tolerance of a channel."""
    matrix = extended(GRID, len(GRID), EPSILON)
    column = matrix.column.copy()
    column[50] += 5e-10
    kept = matrix.input, matrix.output, matrix.value
    other = ExtendedMatrix(GRID, len(GRID), EPSILON, kept, 0, column)
    stated, measured = (tight_epsilon(Channel(GRID, GRID, some)) for some in (other, other[:]))
    assert EPSILON * (1 + 1e-11) < measured <= stated <= measured + 6e-10 / GRID.cell


def test_two_sites_at_one_place_must_have_equal_rows() -> None:
    twice = Places([[0.0, 0.0], [100.0, 0.0], [100.0, 0.0]])
    kept = [1], [0], [0.5]
    column = 1 - 0.5 * np.exp(-EPSILON * np.array([100.0, 0.0, 0.0]))
    outputs = Places([[0.0, 0.0], [1.0, 0.0]])
    assert Channel(twice, outputs, ExtendedMatrix(twice, 2, EPSILON, kept, 1, column)).epsilon < 0.011
    column[2] -= 1e-10
    assert Channel(twice, outputs, ExtendedMatrix(twice, 2, EPSILON, kept, 1, column)).epsilon == math.inf


def test_other_distances_are_measured_on_the_expanded_matrix() -> None:
    sparse, dense = both()
    assert tight_epsilon(sparse, manhattan) == tight_epsilon(dense, manhattan) < EPSILON * 1.01


VALID: dict[str, Any] = {
    "outputs": 3,
    "epsilon": EPSILON,
    "kept": ([0, 1, 5], [0, 2, 2], [0.2, 0.1, 0.1]),
    "report": 1,
    "column": np.full(len(GRID), 0.7),
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"report": 3}, "report"),
        ({"report": -1}, "report"),
        ({"report": 0}, "an entry for each of the other outputs"),
        ({"outputs": 4}, "an entry for each of the other outputs"),
        ({"outputs": 1, "kept": ([], [], []), "report": 0}, "an entry for each of the other outputs"),
        ({"column": np.full(5, 0.7)}, "one entry for each input"),
        ({"column": np.zeros(len(GRID))}, "column must hold probabilities"),
        ({"column": np.full(len(GRID), math.nan)}, "column must hold probabilities"),
        ({"kept": ([0, 1], [0, 2, 2], [0.2, 0.1, 0.1])}, "equal length"),
        ({"kept": ([0, 1, 5], [0, 2, 2], [0.2, 0.1, -0.1])}, "kept must hold probabilities"),
        ({"kept": ([0, 1, 5], [0, 2, 2], [0.2, 0.1, 1e-300])}, "kept must hold probabilities"),
        ({"kept": ([0, 1, 5], [0, 2, 2], [0.2, 0.1, math.inf])}, "kept must hold probabilities"),
        ({"kept": ([0, 5, 1], [0, 2, 2], [0.2, 0.1, 0.1])}, "ordered by output and input"),
        ({"kept": ([0, 5, 5], [0, 2, 2], [0.2, 0.1, 0.1])}, "each once"),
        ({"kept": ([0, 1, len(GRID)], [0, 2, 2], [0.2, 0.1, 0.1])}, "entries of the matrix"),
        ({"kept": ([-1, 1, 5], [0, 2, 2], [0.2, 0.1, 0.1])}, "entries of the matrix"),
    ],
)
def test_what_is_no_extended_matrix_is_refused(change: dict[str, Any], message: str) -> None:
    ExtendedMatrix(GRID, **VALID)
    with pytest.raises(InvalidInputError, match=message):
        ExtendedMatrix(GRID, **(VALID | change))


def test_the_smallest_entry_is_allowed_and_no_smaller_one() -> None:
    def stored(smallest: float) -> FloatArray:
        kept = ([0, 1, 5], [0, 2, 2], [0.2, 0.1, smallest])
        return ExtendedMatrix(GRID, **(VALID | {"kept": kept})).value

    assert stored(1e-200)[2] == 1e-200
    with pytest.raises(InvalidInputError, match="from 1e-200 to 1"):
        stored(0.999e-200)


def test_the_allowance_for_rounding_grows_with_the_coordinates_of_a_place() -> None:
    # The same distances, computed with more roundings.
    records = [Places(np.pad(GRID.xy, ((0, 0), (0, more)))) for more in (0, 3, 30)]
    margins = [ExtendedMatrix(sites, **VALID).margin for sites in records]
    assert 0 < margins[0] < margins[1] < margins[2]


def test_a_channel_needs_the_sites_of_the_matrix() -> None:
    matrix = extended(GRID, len(GRID), EPSILON)
    with pytest.raises(SitesMismatchError, match="shape"):
        Channel(GRID, TOWNS, matrix)
    with pytest.raises(SitesMismatchError, match="extended over the inputs"):
        Channel(Grid(1, 0, cell=70, columns=12, rows=9), GRID, matrix)


MEASURES: dict[str, Any] = {
    "expected loss": lambda channel: expected_loss(channel, PRIOR),
    "loss of a table": lambda channel: expected_loss(channel, PRIOR, loss=manhattan),
    "adversary error": lambda channel: adversary_error(channel, PRIOR),
    "reports": lambda channel: channel.reports(PRIOR).mass,
    "posterior": lambda channel: channel.posterior(PRIOR),
    "remap": lambda channel: (channel @ bayes_remap(channel, PRIOR)).matrix,
    "reach": lambda channel: channel.reach(0.9),
    "delta": lambda channel: tight_delta(channel, level=0.5, radius=200),
    "reach everywhere": lambda channel: Interpolated(channel).reach(0.9),
    "mean radius everywhere": lambda channel: Interpolated(channel).mean_radius,
    "epsilon everywhere": lambda channel: Interpolated(channel).epsilon,
}


@pytest.mark.parametrize("name", MEASURES)
def test_measures_are_those_of_the_dense_matrix(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("geoind.channels.rows.ROWS", 20 * len(GRID))
    sparse, dense = both()
    assert MEASURES[name](sparse) == pytest.approx(MEASURES[name](dense), rel=1e-13)


@pytest.mark.parametrize("name", SITES)
def test_an_interpolated_channel_has_the_same_epsilon_and_reports(name: str) -> None:
    sparse, dense = (Interpolated(channel) for channel in both(SITES[name]))
    assert sparse.epsilon == dense.epsilon
    points = np.random.default_rng(1).uniform(100, 600, (2000, 2))
    np.testing.assert_array_equal(sparse.sample(points, rng=2), dense.sample(points, rng=2))


def test_keyed_reports_repeat_and_belong_to_what_is_stored() -> None:
    channel, _ = both()
    rng = KeyedRandomness(bytes(range(32)), list(range(500)))
    points = np.random.default_rng(1).uniform(0, 700, (500, 2))
    again = pickle.loads(pickle.dumps(channel))
    np.testing.assert_array_equal(channel.sample(points, rng=rng), again.sample(points, rng=rng))
    assert both()[0].purpose == channel.purpose == again.purpose
    assert both(seed=1)[0].purpose != channel.purpose
