"""Record batch in, record batch out: problems as values, text, several places, order, persons, summaries."""

import hashlib
import json
from typing import TypedDict

import numpy as np
import pyarrow as pa
import pytest
import shapely

from geoind import InvalidInputError, KeyedRandomness, SphericalLaplace
from geoind.tables import Obfuscated, Problem, Recipe, Table
from geoind.tables.identities import count_persons
from geoind.tables.keys import Key, key_of_place
from geoind.tables.order import is_sorted_by_place
from geoind.tables.summary import Tally
from tests.tables import cases

KEY = bytes(range(32))
NOISE = SphericalLaplace(0.01)


def made(batch: pa.RecordBatch, recipe: Recipe) -> tuple[Table, Obfuscated]:
    table = recipe.table(batch.schema)
    return table, table.report(table.examine(batch))


def test_each_bad_row_is_a_value_and_the_others_get_reports() -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "id": [1, 2, 3, 4, None, 6, 7],
            "lon": ["2.35", "x", "181", "2.36", "2.37", "", "1_0"],
            "lat": ["48.85", "48.85", "48.85", "nan", "48.85", "48.85", "1"],
        }
    )
    recipe = Recipe.of(epsilon=0.01, key=KEY, id_column="id")
    table = recipe.table(batch.schema)
    examined = table.examine(batch)
    assert dict(examined.problems) == {
        1: "the longitude must be a finite number",
        2: "|longitude| must be at most 180",
        3: "the latitude must be a finite number",
        4: "there is no identity in column 'id'",
        5: "there is no place",
        6: "the longitude must be a finite number",
    }
    assert all(isinstance(problem, Problem) for problem in examined.problems)
    result = table.report(examined)
    assert result.rows.tolist() == [0]
    wanted = NOISE.sample([[2.35, 48.85]], rng=KeyedRandomness(KEY, [1]))[0]
    assert (result.batch["lon"][0].as_py(), result.batch["lat"][0].as_py()) == (
        f"{wanted[0]:.5f}",
        f"{wanted[1]:.5f}",
    )
    with pytest.raises(InvalidInputError, match=r"row 1: the longitude must be .* \(6 such rows\)"):
        recipe.obfuscate(batch)


def test_text_and_numbers_of_the_same_places_get_the_same_reports() -> None:
    truth = cases.lonlat(300)
    numbers = pa.RecordBatch.from_pydict({"id": np.arange(300), "lon": truth[:, 0], "lat": truth[:, 1]})
    texts = {name: [repr(float(value)) for value in truth[:, at]] for at, name in enumerate(("lon", "lat"))}
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        columns = {name: pa.array(values, kind) for name, values in texts.items()}
        written = pa.RecordBatch.from_pydict({"id": np.arange(300), **columns})
        recipe = Recipe.of(epsilon=0.01, key=KEY, id_column="id")
        _, by_text = made(written, recipe)
        _, by_number = made(numbers, recipe)
        np.testing.assert_array_equal(by_text.reports[0], by_number.reports[0])
        assert by_text.batch["lon"].type == kind
        found = [float(value) for value in by_text.batch["lon"].to_pylist()]
        assert found == by_number.batch["lon"].to_pylist()


class Columns(TypedDict):
    """Where the places of a row are."""

    lon: list[str]
    lat: list[str]


def test_several_places_of_a_row_have_noise_of_their_own() -> None:
    truth = cases.lonlat(500)
    columns = {"lon": truth[:, 0], "lat": truth[:, 1], "to_lon": truth[:, 0], "to_lat": truth[:, 1]}
    batch = pa.RecordBatch.from_pydict({"id": np.arange(500), **columns})
    places: Columns = {"lon": ["lon", "to_lon"], "lat": ["lat", "to_lat"]}
    for recipe, rng in (
        (Recipe.of(epsilon=0.01, **places), None),
        (Recipe.of(epsilon=0.01, **places), 7),
        (Recipe.of(epsilon=0.01, **places), np.random.default_rng(7)),
        (Recipe.of(epsilon=0.01, **places), KeyedRandomness(KEY, np.arange(500))),
        (Recipe.of(epsilon=0.01, key=KEY, id_column="id", **places), None),
    ):
        first, second = recipe.table(batch.schema).obfuscate(batch, rng=rng).reports
        assert (first != second).any(axis=1).mean() > 0.99
        noise = np.hstack([first - truth, second - truth])
        correlations = np.corrcoef(noise.T)[:2, 2:]
        assert np.abs(correlations).max() < 0.2
    alone = Recipe.of(epsilon=0.01, key=KEY, id_column="id", lon="lon", lat="lat", drop=["to_lon", "to_lat"])
    np.testing.assert_array_equal(alone.table(batch.schema).obfuscate(batch).reports[0], first)


def test_a_place_that_is_missing_leaves_the_other_of_its_row() -> None:
    batch = pa.RecordBatch.from_pydict(
        {"a_lon": [2.3, None], "a_lat": [48.8, 48.9], "b_lon": [2.4, 2.5], "b_lat": [48.7, 48.6]}
    )
    options: Columns = {"lon": ["a_lon", "b_lon"], "lat": ["a_lat", "b_lat"]}
    table, result = made(batch, Recipe.of(epsilon=0.01, missing="keep", **options))
    assert result.batch["a_lat"].null_count == 1
    assert result.batch["b_lat"].null_count == 0
    assert table.examine(batch).reports_per_row.tolist() == [2, 1]
    assert Recipe.of(epsilon=0.01, **options).table(batch.schema).examine(batch).problems == (
        Problem(1, "a_lon and a_lat: there is no place"),
    )


@pytest.mark.parametrize("way", ["longitude", "latitude", "hilbert"])
def test_rows_sorted_by_place_are_refused_kept_or_shuffled(way: str) -> None:
    import geopandas

    truth = cases.lonlat(600)
    keys = {
        "longitude": truth[:, 0],
        "latitude": -truth[:, 1],
        "hilbert": geopandas.GeoSeries(shapely.points(truth)).hilbert_distance(),
    }
    truth = truth[np.argsort(keys[way])]
    assert is_sorted_by_place(truth)
    batch = pa.RecordBatch.from_pydict({"id": np.arange(600), "lon": truth[:, 0], "lat": truth[:, 1]})
    with pytest.raises(InvalidInputError, match="sorted by place"):
        made(batch, Recipe.of(epsilon=0.01))
    assert made(batch, Recipe.of(epsilon=0.01, order="keep"))[1].rows.tolist() == list(range(600))
    for recipe in (
        Recipe.of(epsilon=0.01, order="shuffle"),
        Recipe.of(epsilon=0.01, order="shuffle", key=KEY, id_column="id"),
    ):
        result = made(batch, recipe)[1]
        assert sorted(result.rows) == list(range(600))
        assert not is_sorted_by_place(truth[result.rows])
        assert result.batch["id"].to_pylist() == result.rows.tolist()
    # The order depends on the identities alone, not on the order that was given.
    turn = np.random.default_rng(1).permutation(600)
    other = made(batch.take(pa.array(turn)), recipe)
    assert other[1].batch["id"].to_pylist() == result.batch["id"].to_pylist()


def test_a_drive_is_not_a_sorted_table() -> None:
    steps = np.random.default_rng(2).normal([1e-4, 3e-4], 1e-4, (400, 2))
    truth = np.array([2.3, 48.8]) + np.cumsum(steps, axis=0)
    columns = {"lon": truth[:, 0], "lat": truth[:, 1]}
    for times in (
        pa.array(np.arange(400) * 10**9, pa.timestamp("ns")),
        pa.array([f"2024-05-01T08:{second // 60:02}:{second % 60:02}" for second in range(400)]),
        pa.array(np.arange(400) + 1_700_000_000),
    ):
        batch = pa.RecordBatch.from_pydict({"time": times, **columns})
        assert made(batch, Recipe.of(epsilon=0.01))[1].batch.num_rows == 400
    with pytest.raises(InvalidInputError, match="sorted by place"):
        made(pa.RecordBatch.from_pydict(columns), Recipe.of(epsilon=0.01))


def test_traces_of_many_persons_one_after_the_other_are_not_a_sorted_table() -> None:
    rng = np.random.default_rng(3)
    homes = rng.normal([2.35, 48.86], 0.1, (50, 1, 2))
    truth = (homes + np.cumsum(rng.normal(0, 3e-4, (50, 600, 2)), axis=1)).reshape(-1, 2)
    # The latest first, as some services export them.
    times = np.concatenate([np.sort(rng.integers(0, 10**6, 600))[::-1] for _ in range(50)])
    columns = {"person": np.repeat(np.arange(50), 600), "lon": truth[:, 0], "lat": truth[:, 1]}
    batch = pa.RecordBatch.from_pydict({"time": times, **columns})
    assert made(batch, Recipe.of(epsilon=0.01))[1].batch.num_rows == 30_000


def test_persons_are_text_or_whole_numbers_and_a_repeated_dictionary_entry_is_one() -> None:
    one = np.ones(4, np.int64)
    repeated = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 1]), pa.array(["ana", "ben", "ana"]))
    assert count_persons(repeated, one, "who") == {"ana": 2, "ben": 2}
    accents = pa.array(["Zoe\u0308", "Zo\u00eb", "Zo\u00eb", "x"])
    assert count_persons(accents, one, "who") == {"Zo\u00eb": 3, "x": 1}
    assert count_persons(pa.array([7, 7, 8, 9], pa.uint8()), one, "who") == {"7": 2, "8": 1, "9": 1}
    for bad in (pa.array([7.0, 7.0, 8.0, None]), pa.array([True] * 4), pa.array([b"a"] * 4)):
        with pytest.raises(InvalidInputError, match="'who' must name persons"):
            count_persons(bad, one, "who")


def test_a_summary_tells_what_helps_to_notice_a_mistake() -> None:
    truth = cases.lonlat(100)
    batch = pa.RecordBatch.from_pydict(
        {"id": np.arange(100) % 40, "who": ["ana"] * 70 + ["ben"] * 30, "lon": truth[:, 0], "lat": truth[:, 1]}
    )
    recipe = Recipe.of(epsilon=0.01, key=KEY, id_column="id", person_column="who")
    table = recipe.table(batch.schema)
    parts = []
    for start in (0, 50):
        examined = table.examine(batch.slice(start, 50))
        tally = Tally()
        tally.add(table, examined, table.report(examined))
        parts.append((tally, table.report(examined).reports[0]))
    parts[0][0].merge(parts[1][0].settled())
    summary = parts[0][0].summary(recipe.mechanism, table.promise)
    reports = np.vstack([part for _, part in parts])
    assert summary.reports == 100
    assert summary.busiest == 70
    assert summary.busiest_epsilon == pytest.approx(0.7)
    assert summary.bounds == (*reports.min(axis=0), *reports.max(axis=0))
    assert summary.repeated == 40
    assert summary.mean_error == pytest.approx(200, rel=0.02)
    text = str(summary)
    for said in ("100 reports", "95 % within", "busiest person or record has 70", "name more than one record"):
        assert said in text


def test_a_stale_box_and_gone_columns_leave_the_metadata() -> None:
    truth = cases.lonlat(20)
    about = {"encoding": "WKB", "geometry_types": ["Point"], "bbox": [2, 48, 3, 49], "centre": [2.3, 48.8]}
    geo = {
        "version": "1.1.0",
        "primary_column": "place",
        "columns": {"place": about, "gone": dict(about)},
        "bbox": [2],
    }
    pandas = {"index_columns": ["cell"], "columns": [{"field_name": "cell"}, {"field_name": "place"}]}
    batch = pa.RecordBatch.from_pydict({"place": shapely.to_wkb(shapely.points(truth)), "cell": ["a"] * 20})
    batch = batch.replace_schema_metadata(
        {"geo": json.dumps(geo), "pandas": json.dumps(pandas), "PANDAS_ATTRS": '{"centre": [2.3, 48.8]}'}
    )
    told = made(batch, Recipe.of(epsilon=0.01, drop=["cell"]))[1].batch.schema.metadata
    assert json.loads(told[b"geo"])["columns"] == {"place": {"encoding": "WKB", "geometry_types": ["Point"]}}
    assert json.loads(told[b"pandas"]) == {"index_columns": [], "columns": [{"field_name": "place"}]}
    assert b"48" not in b"".join(value for name, value in told.items() if name != b"geoind")


def test_the_keys_of_files_and_places_are_frozen() -> None:
    """Known answers: another key for a file or a place would be a second release of the same records."""
    secret = hashlib.sha256(b"a key for tests").digest()
    assert Key(secret).for_file("day=1/b.parquet").hex() == FILE_KEY
    assert key_of_place(secret, 1).hex() == PLACE_KEY
    words = KeyedRandomness(Key(secret).for_file("day=1/b.parquet"), [0, 1]).words(
        np.array([[2.2945, 48.8584]] * 2), 2, "known answers"
    )
    assert [[f"{word:016x}" for word in row] for row in words.tolist()] == WORDS


FILE_KEY = "80a00cf28dbe3d36bd138b5b33e1d507af9891670e2db3e7d8408038fa0ad867"
PLACE_KEY = "b7cd2315c63f835ad50b21fbfa4a5ec033909ee20aa790fae56fd615ba9cbd0e"
WORDS = [["754829b6fd5c37d0", "b24e841b9ab44916"], ["e4548141d4d9340e", "15716213c8a20d96"]]
