"""The noise of a row comes from its identity under the key, or from what was given; each place has its own."""

import numpy as np
import pyarrow as pa
import pytest

from geoind import InvalidInputError, KeyedRandomness, SphericalLaplace
from geoind.tables import Recipe
from geoind.tables.drawing import drawn, permutation
from geoind.tables.keys import Key, key_of_place
from tests.tables import cases

KEY = bytes(range(32))
NOISE = SphericalLaplace(0.01)
TRUTH = cases.lonlat(12)
GOOD = [0, 1, 2, 4, 5, 7, 8, 9, 10, 11]


def batch() -> pa.RecordBatch:
    """Return twelve rows, of which the fourth and the seventh have no place."""
    lon = [None if row in (3, 6) else float(lon) for row, (lon, _) in enumerate(TRUTH)]
    return pa.RecordBatch.from_pydict({"id": [f"r{row}" for row in range(12)], "lon": lon, "lat": TRUTH[:, 1]})


def reports(recipe: Recipe, **options: object) -> np.ndarray:
    table = recipe.table(batch().schema)
    return table.report(table.examine(batch()), **options).reports[0]  # type: ignore[arg-type]


def test_labels_that_are_given_are_those_of_the_rows_before_bad_ones_were_taken_out() -> None:
    labels = np.arange(100, 112)
    found = reports(Recipe.of(epsilon=0.01), rng=KeyedRandomness(KEY, labels))
    wanted = NOISE.sample(TRUTH[GOOD], rng=KeyedRandomness(KEY, labels[GOOD]))
    np.testing.assert_array_equal(found, wanted)


def test_with_a_key_records_are_named_by_their_column_or_else_by_file_and_row() -> None:
    found = reports(Recipe.of(epsilon=0.01, key=KEY, id_column="id"), path="a", rows=np.arange(12))
    wanted = NOISE.sample(TRUTH[GOOD], rng=KeyedRandomness(KEY, [f"r{row}" for row in GOOD]))
    np.testing.assert_array_equal(found, wanted)
    rows = np.arange(500, 512)
    found = reports(Recipe.of(epsilon=0.01, key=KEY), path="day=1/b.parquet", rows=rows)
    wanted = NOISE.sample(TRUTH[GOOD], rng=KeyedRandomness(Key(KEY).for_file("day=1/b.parquet"), rows[GOOD]))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("options", [{}, {"path": "a"}, {"rows": np.arange(12)}])
def test_a_key_needs_names_of_records(options: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError, match="id_column must name"):
        reports(Recipe.of(epsilon=0.01, key=KEY), **options)


def test_names_of_records_need_a_key() -> None:
    for rng in (None, 7, KeyedRandomness(KEY, np.arange(12))):
        with pytest.raises(
            InvalidInputError, match="id_column names records whose reports a key repeats: give key"
        ):
            reports(Recipe.of(epsilon=0.01, id_column="id"), rng=rng)


def test_a_key_and_other_randomness_are_too_much() -> None:
    with pytest.raises(InvalidInputError, match="a key or rng, not both"):
        reports(Recipe.of(epsilon=0.01, key=KEY, id_column="id"), rng=7)


@pytest.mark.parametrize("seed", [7, np.int64(7)])
def test_a_seed_repeats_the_reports_and_nothing_else_does(seed: int) -> None:
    recipe = Recipe.of(epsilon=0.01)
    first = reports(recipe, rng=seed)
    np.testing.assert_array_equal(first, reports(recipe, rng=seed))
    np.testing.assert_array_equal(first, reports(recipe, rng=np.random.default_rng(7)))
    assert (first != reports(recipe, rng=8)).any()
    assert (reports(recipe) != reports(recipe)).any()


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("hole", [False, True])
def test_each_place_of_a_row_has_a_key_of_its_own_and_a_missing_one_changes_no_other(
    number: int, hole: bool
) -> None:
    truth, labels = TRUTH.copy(), np.arange(12)
    present = np.ones(12, bool)
    if hole:
        present[[2, 5]] = False
        truth[~present] = np.nan
    key = key_of_place(KEY, number) if number else KEY
    wanted = NOISE.sample(TRUTH, rng=KeyedRandomness(key, labels))
    found = drawn(truth, NOISE, KeyedRandomness(KEY, labels), number)
    np.testing.assert_array_equal(found[present], wanted[present])
    assert np.isnan(found[~present]).all()


def test_the_order_of_rows_follows_their_names_alone() -> None:
    labels = np.arange(1000)
    turn = permutation(KeyedRandomness(KEY, labels), 1000)
    assert sorted(turn.tolist()) == labels.tolist()
    backwards = permutation(KeyedRandomness(KEY, labels[::-1]), 1000)
    assert labels[::-1][backwards].tolist() == labels[turn].tolist()
    assert abs(np.corrcoef(labels, turn)[0, 1]) < 0.2
    assert permutation(None, 1000).tolist() != permutation(None, 1000).tolist()


def test_the_order_of_rows_under_a_key_is_frozen() -> None:
    """Known answers: the same rows in another order would be a second release of their order."""
    assert permutation(KeyedRandomness(KEY, np.arange(10)), 10).tolist() == [1, 4, 9, 2, 7, 3, 5, 0, 8, 6]
    assert permutation(KeyedRandomness(KEY, list("abcdef")), 6).tolist() == [2, 0, 4, 3, 5, 1]
    assert permutation(KeyedRandomness(KEY, [7, 7, 7]), 3).tolist() == [0, 1, 2]
    assert permutation(7, 5).tolist() == permutation(np.random.default_rng(7), 5).tolist()


def test_labels_that_fit_the_rows_are_taken_as_they_are() -> None:
    whole = batch().take(pa.array(GOOD))
    table = Recipe.of(epsilon=0.01).table(whole.schema)
    labels = [f"r{row}" for row in GOOD]
    found = table.report(table.examine(whole), rng=KeyedRandomness(KEY, labels)).reports[0]
    np.testing.assert_array_equal(found, NOISE.sample(TRUTH[GOOD], rng=KeyedRandomness(KEY, labels)))


def test_a_generator_draws_for_the_places_that_are_there_alone() -> None:
    truth = TRUTH.copy()
    truth[[2, 5]] = np.nan
    present = ~np.isnan(truth[:, 0])
    for number in (0, 1):
        found = drawn(truth, NOISE, np.random.default_rng(3), number)
        wanted = NOISE.sample(TRUTH[present], rng=np.random.default_rng(3))
        np.testing.assert_array_equal(found[present], wanted)
        assert np.isnan(found[~present]).all()
