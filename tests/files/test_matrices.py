"""Files of extended matrices: what comes back, and what is refused."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from geoind import Channel, Grid, InvalidInputError, Projected, Projection
from geoind.channels import Interpolated
from geoind.channels.extended import ExtendedMatrix
from geoind.files import load_mechanism, save_mechanism
from geoind.optimal import Certificate, OptimalChannel
from tests.channels.extensions import extended

EPSILON = 0.01
GRID = Grid(-500, -300, cell=100, columns=11, rows=7)
MATRIX = extended(GRID, len(GRID), EPSILON, report=30)
CHANNEL = Channel(GRID, GRID, MATRIX)
CERTIFICATE = Certificate(80.0, 79.0, 0.0125, CHANNEL.epsilon, 0.0, 9, 1.5, "neighbourhoods", optimal=True)
MECHANISMS: dict[str, Any] = {
    "channel": CHANNEL,
    "with a certificate": OptimalChannel(GRID, GRID, MATRIX, CERTIFICATE),
    "interpolated": Interpolated(CHANNEL),
    "projected": Projected(Interpolated(CHANNEL), Projection(2.35, 48.86)),
}


@pytest.fixture
def city(tmp_path: Path) -> Path:
    save_mechanism(tmp_path / "city.parquet", CHANNEL)
    return tmp_path / "city.parquet"


def about(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(pq.read_schema(path).metadata[b"geoind"])
    return found


def changed(path: Path, entries: Any = None, **members: Any) -> Path:
    """Write the file again with other metadata, or with another table of the three columns."""
    table = pq.read_table(path)
    text = json.dumps(about(path) | members)
    if entries is not None:
        columns = entries(*(column.to_numpy().copy() for column in table.columns))
        table = pa.table(list(columns), schema=table.schema)
    pq.write_table(table.replace_schema_metadata({"geoind": text}), path, compression="none", use_dictionary=False)
    return path


@pytest.mark.parametrize("name", MECHANISMS)
def test_what_is_saved_comes_back_to_the_last_bit(name: str, tmp_path: Path) -> None:
    mechanism, path = MECHANISMS[name], tmp_path / "saved.parquet"
    save_mechanism(path, mechanism)
    again: Any = load_mechanism(path)
    assert again.epsilon == mechanism.epsilon
    assert mechanism.epsilon < about(path)["epsilon"] <= mechanism.epsilon * (1 + 2e-10)
    points = [[2.35, 48.86]] * 50 if name == "projected" else [[33.0, 44.0]] * 50
    np.testing.assert_array_equal(again.sample(points, rng=3), mechanism.sample(points, rng=3))
    while not isinstance(again, Channel):
        again = again.mechanism if isinstance(again, Projected) else again.channel
    assert isinstance(again.rows, ExtendedMatrix)
    assert again.purpose == CHANNEL.purpose
    np.testing.assert_array_equal(again.matrix, CHANNEL.matrix)
    assert getattr(again, "certificate", None) == getattr(mechanism, "certificate", None)


def test_a_file_has_the_kept_entries_and_one_column(city: Path) -> None:
    table = pq.read_table(city)
    assert table.num_rows == len(MATRIX.value) + len(GRID) < len(GRID) ** 2 / 2
    assert about(city)["extension"] == {"epsilon": EPSILON, "report": 30}
    dense = city.with_name("dense.parquet")
    save_mechanism(dense, Channel(GRID, GRID, MATRIX[:]))
    assert about(dense)["extension"] is None
    assert city.stat().st_size < dense.stat().st_size / 2


def test_a_file_for_devices_has_all_entries(tmp_path: Path) -> None:
    for name, matrix in (("sparse", MATRIX), ("dense", MATRIX[:])):
        mechanism = Projected(Interpolated(Channel(GRID, GRID, matrix)), Projection(2.35, 48.86))
        save_mechanism(tmp_path / f"{name}.json", mechanism, epsilon=0.05)
    assert (tmp_path / "sparse.json").read_bytes() == (tmp_path / "dense.json").read_bytes()
    again: Any = load_mechanism(tmp_path / "sparse.json")
    np.testing.assert_array_equal(again.mechanism.channel.matrix, CHANNEL.matrix)


def at(change: Any) -> Any:
    """Change the probabilities, given the numbers of the entries of the column and of the others."""

    def entries(rows: Any, outputs: Any, values: Any) -> Any:
        change(values, np.flatnonzero(outputs == 30), np.flatnonzero(outputs != 30))
        return rows, outputs, values

    return entries


def assign(where: str, value: Any) -> Any:
    def change(values: Any, column: Any, kept: Any) -> None:
        values[{"column": column, "kept": kept}[where][5]] = value

    return at(change)


def without(output: int, first: int = 0) -> Any:
    """Drop the entries of an output, from an input on."""

    def entries(rows: Any, outputs: Any, values: Any) -> Any:
        left = (outputs != output) | (rows < first)
        return rows[left], outputs[left], values[left]

    return entries


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (without(30, len(GRID) - 1), "an entry for each input"),
        (without(30), "an entry for each input"),
        (without(12), "an entry for each of the other outputs"),
        (assign("kept", 0.0), "kept must hold probabilities"),
        (assign("kept", -0.1), "kept must hold probabilities"),
        (assign("kept", math.nan), "kept must hold probabilities"),
        (assign("kept", 1e-250), "kept must hold probabilities"),
        (assign("column", math.inf), "column must hold probabilities"),
        (assign("column", 0.0), "column must hold probabilities"),
        (assign("kept", 0.9), "sum to 1"),
        (assign("column", 0.9), "sum to 1"),
        (lambda rows, outputs, values: (rows[::-1], outputs[::-1], values[::-1]), "in order, each once"),
    ],
)
def test_a_table_that_is_no_extended_matrix_is_refused(entries: Any, message: str, city: Path) -> None:
    with pytest.raises(InvalidInputError, match=f"is not a mechanism saved by geoind: .*({message})"):
        load_mechanism(changed(city, entries))


@pytest.mark.parametrize(
    ("extension", "message"),
    [
        (None, "sum to 1"),
        ({}, "extension"),
        ([EPSILON, 30], "extension"),
        ({"epsilon": EPSILON, "report": 30, "more": 1}, "extension"),
        ({"epsilon": EPSILON, "report": 29}, "an entry for each input"),
        ({"epsilon": EPSILON, "report": 77}, "an entry for each input"),
        ({"epsilon": EPSILON, "report": -1}, "extension.report"),
        ({"epsilon": EPSILON, "report": True}, "extension.report"),
        ({"epsilon": EPSILON, "report": "30"}, "extension.report"),
        ({"epsilon": "0.01", "report": 30}, "extension.epsilon"),
        ({"epsilon": 0, "report": 30}, "epsilon must be positive"),
        ({"epsilon": -EPSILON, "report": 30}, "epsilon must be positive"),
        ({"epsilon": 1e100, "report": 30}, "sum to 1"),
        ({"epsilon": 1e-300, "report": 30}, "sum to 1"),
        ({"epsilon": 2 * EPSILON, "report": 30}, "sum to 1"),
    ],
)
def test_a_rule_that_is_not_that_of_the_entries_is_refused(extension: Any, message: str, city: Path) -> None:
    with pytest.raises(InvalidInputError, match=message):
        load_mechanism(changed(city, extension=extension))


def test_a_promise_that_is_too_small_is_refused(city: Path) -> None:
    load_mechanism(changed(city, epsilon=CHANNEL.epsilon))
    with pytest.raises(InvalidInputError, match=r"promises epsilon 0\.01, but 0\.01 was measured"):
        load_mechanism(changed(city, epsilon=EPSILON * (1 - 1e-9)))


def test_a_column_that_is_not_private_is_measured(city: Path) -> None:
    """A kept entry falls to almost nothing, and the column takes its part of every row."""
    value = MATRIX.value.copy()
    largest = int(np.argmax(value))
    value[largest] /= 1000
    kept = MATRIX.input, MATRIX.output, value
    lower = ExtendedMatrix(GRID, len(GRID), EPSILON, kept, 30, MATRIX.column)
    column = MATRIX.column + (1 - lower.sums)
    other = ExtendedMatrix(GRID, len(GRID), EPSILON, kept, 30, column)
    epsilon = Channel(GRID, GRID, other[:]).epsilon
    save_mechanism(city, Channel(GRID, GRID, other))
    load_mechanism(city)
    with pytest.raises(InvalidInputError, match="was measured"):
        load_mechanism(changed(city, epsilon=epsilon * (1 - 1e-6)))


def test_a_file_of_too_many_entries_is_refused(city: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("geoind.files.mechanisms.MOST_KEPT", pq.read_metadata(city).num_rows - 1)
    with pytest.raises(InvalidInputError, match="may have"):
        load_mechanism(city)


ANY = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.lists(st.integers())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(st.fixed_dictionaries({"epsilon": ANY, "report": ANY | st.just(30)}))
def test_any_rule_gives_a_mechanism_or_one_error(city: Path, extension: dict[str, Any]) -> None:
    original, reason = city.read_bytes(), ""
    try:
        load_mechanism(changed(city, extension=extension))
    except InvalidInputError as error:
        reason = str(error)
    city.write_bytes(original)
    assert "is not a mechanism saved by geoind" in reason or extension == {"epsilon": EPSILON, "report": 30}
