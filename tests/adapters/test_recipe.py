import hashlib
import logging
import uuid

import numpy as np
import pyarrow as pa
import pytest

from geoind import InvalidInputError, KeyedRandomness, SphericalLaplace
from geoind.adapters.keys import Key
from geoind.adapters.recipe import Recipe
from geoind.tables import Problem
from geoind.tables.identities import labels_of

KEY = hashlib.sha256(b"a key for tests").digest()
SIZE = 60
LONLAT = np.random.default_rng(4).uniform([-170, -80], [170, 80], (SIZE, 2))


def batch_with(ids: object) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"id": ids, "lon": LONLAT[:, 0], "lat": LONLAT[:, 1]})


def lonlat(batch: pa.RecordBatch) -> np.ndarray:
    return np.column_stack([batch["lon"].to_numpy(), batch["lat"].to_numpy()])


NUMBERS = np.arange(SIZE) * 7
WORDS = [f"trip {number}" for number in range(SIZE)]
UUIDS = [uuid.UUID(int=number).bytes for number in range(SIZE)]


@pytest.mark.parametrize(
    ("ids", "labels"),
    [
        (pa.array(NUMBERS, pa.int64()), NUMBERS),
        (pa.array(NUMBERS, pa.uint16()), NUMBERS),
        (pa.array(WORDS), WORDS),
        (pa.array(WORDS, pa.large_string()), WORDS),
        (pa.array(WORDS, pa.string_view()), WORDS),
        (pa.array(WORDS).dictionary_encode(), WORDS),
        (pa.array(UUIDS, pa.binary(16)), UUIDS),
        (pa.array(UUIDS, pa.uuid()), UUIDS),
    ],
)
def test_the_report_depends_on_the_name_not_on_its_arrow_type(ids: pa.Array, labels: object) -> None:
    recipe = Recipe.of(epsilon=0.01, id_column="id", key=KEY)
    wanted = SphericalLaplace(0.01).sample(LONLAT, rng=KeyedRandomness(KEY, labels))  # type: ignore[arg-type]
    np.testing.assert_array_equal(lonlat(recipe.obfuscate(batch_with(ids))), wanted)


def test_order_and_company_of_records_do_not_matter() -> None:
    recipe = Recipe.of(epsilon=0.01, id_column="id", key=KEY)
    whole = recipe.obfuscate(batch_with(NUMBERS))
    order = np.random.default_rng(1).permutation(SIZE)
    shuffled = recipe.obfuscate(batch_with(NUMBERS).take(pa.array(order)))
    assert shuffled.equals(whole.take(pa.array(order)))


def test_records_at_one_place_never_share_noise() -> None:
    size = 2000
    batch = pa.RecordBatch.from_pydict({"id": np.arange(size), "lon": np.zeros(size), "lat": np.zeros(size)})
    recipe = Recipe.of(epsilon=1e-4, id_column="id", key=KEY)
    files = [recipe.obfuscate(batch)]
    by_row = Recipe.of(epsilon=1e-4, key=KEY).table(batch.schema)
    files += [by_row.obfuscate(batch, path=path, rows=np.arange(size)).batch for path in ("a", "b")]
    found = np.vstack([lonlat(file) for file in files])
    # Noise of 20 km on a lattice of 11 m: about one pair of these 6000 records falls on one place by chance.
    assert len(np.unique(found, axis=0)) > len(found) - 8


def test_an_id_column_wins_over_file_and_row() -> None:
    recipe = Recipe.of(epsilon=0.01, id_column="id", key=KEY)
    batch = batch_with(NUMBERS)
    by_row = recipe.table(batch.schema).obfuscate(batch, path="a", rows=np.arange(SIZE))
    assert by_row.batch == recipe.obfuscate(batch)


def test_another_key_or_epsilon_gives_unrelated_noise() -> None:
    batch = batch_with(NUMBERS)
    first = lonlat(Recipe.of(epsilon=0.01, id_column="id", key=KEY).obfuscate(batch)) - LONLAT
    for other in (
        Recipe.of(epsilon=0.01, id_column="id", key=bytes(32)),
        Recipe.of(epsilon=0.005, id_column="id", key=KEY),
    ):
        second = lonlat(other.obfuscate(batch)) - LONLAT
        assert abs(np.corrcoef(first[:, 1], second[:, 1])[0, 1]) < 0.5


def test_without_a_key_one_is_made_and_said_where_it_went(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "geoind"):
        first, second = (Recipe.of(epsilon=0.01, id_column="id").with_key() for _ in range(2))
    assert first.key != second.key
    assert "no key was given: made Key(fingerprint=" in caplog.text
    assert "kept in memory" in caplog.text
    assert first.key is not None
    assert first.key.read().hex() not in caplog.text


def test_a_recipe_prints_without_its_secret() -> None:
    text = repr(Recipe.of(epsilon=0.01, id_column="id", key=KEY))
    assert "SphericalLaplace" in text
    assert KEY.hex() not in text
    assert repr(KEY) not in text


def test_persons_are_counted_where_there_is_a_place() -> None:
    batch = pa.RecordBatch.from_pydict(
        {"who": [1, 2, 1, None], "lon": [0.0, 0.0, 1.0, None], "lat": [0.0, None, 1.0, 0.0]}
    )
    table = Recipe.of(epsilon=0.01, person_column="who", missing="keep").table(batch.schema)
    examined = table.examine(batch)
    assert table.count_persons(examined) == {"1": 2}
    assert examined.problems == (Problem(3, "there is no person in column 'who'"),)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (pa.array([1.0, 2.0]), "whole numbers, text or bytes"),
        (pa.array([True, False]), "whole numbers, text or bytes"),
    ],
)
def test_a_record_without_a_name_is_refused(ids: pa.Array, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        labels_of(ids, "id")


def test_options_are_checked() -> None:
    with pytest.raises(InvalidInputError, match="there is no option 'ids'"):
        Recipe.of(epsilon=0.01, ids="id")  # type: ignore[call-arg]
    nameless = batch_with(pa.array([None, *NUMBERS[1:]]))
    with pytest.raises(InvalidInputError, match="row 0: there is no identity in column 'id'"):
        Recipe.of(epsilon=0.01, key=KEY, id_column="id").obfuscate(nameless)
    with pytest.raises(InvalidInputError, match="id_column must name"):
        Recipe.of(epsilon=0.01, key=Key(KEY)).obfuscate(batch_with(NUMBERS))
