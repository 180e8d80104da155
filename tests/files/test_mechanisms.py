"""Saved mechanisms: what comes back, and files that promise too much, or are no mechanisms at all."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from geoind import (
    Channel,
    Grid,
    InvalidInputError,
    Places,
    PlanarLaplace,
    Prior,
    Projected,
    Projection,
    exponential,
    max_adversary_error_given_loss,
    min_loss_given_epsilon,
    planar_geometric,
)
from geoind.channels import Interpolated
from geoind.distances import euclidean, from_matrix, manhattan
from geoind.files import load_mechanism, save_mechanism

GRID = Grid(-200, -150, cell=100, columns=5, rows=4)
BOX = shapely.box(2.348, 48.859, 2.352, 48.861)
PARIS = Projection(2.35, 48.86)
CAFES = Places([[0.1, 1 / 3], [500.0, 1e-9], [0.0, 700.0]])
PRIOR = Prior(GRID, np.arange(20) / 190)
BEST = min_loss_given_epsilon(PRIOR, epsilon=0.01)
NAMES = "input output probability".split()  # noqa: SIM905


@pytest.fixture
def city(tmp_path: Path) -> Path:
    save_mechanism(tmp_path / "city.parquet", Projected(Interpolated(BEST), PARIS, domain=BOX), prior=PRIOR)
    return tmp_path / "city.parquet"


def changed(path: Path, entries: Any = None, **about: Any) -> Path:
    """Write the file again with other metadata, or with another table."""
    table = pq.read_table(path)
    text = json.dumps(json.loads(table.schema.metadata[b"geoind"]) | about)
    table = table if entries is None else entries(table)
    pq.write_table(table.replace_schema_metadata({"geoind": text}), path, compression="none", use_dictionary=False)
    return path


MECHANISMS = {
    "channel": planar_geometric(GRID, epsilon=0.01),
    "channel with a certificate": BEST,
    "other outputs": exponential(GRID, CAFES, epsilon=0.01),
    "places": Channel(CAFES, CAFES, [[1 / 3, 2 / 3, 0.0], [1e-300, 1.0, 0.0], [1.0, 0.0, 0.0]]),
    "records": Channel(Places([[0, 0, 0], [1, 2, 3]]), Places([[7.0], [8.0]]), [[0.5, 0.5], [0.25, 0.75]]),
    "without a promise": max_adversary_error_given_loss(PRIOR, max_loss=100),
    "interpolated": Interpolated(BEST),
    "triangles": Interpolated(exponential(CAFES, GRID, epsilon=0.01)),
    "projected": Projected(BEST, PARIS),
    "everything": Projected(Interpolated(BEST), PARIS, domain=BOX),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_saved_mechanism_comes_back_to_the_last_bit(name: str, tmp_path: Path) -> None:
    mechanism: Any = MECHANISMS[name]
    save_mechanism(tmp_path / "saved.parquet", mechanism)
    back: Any = load_mechanism(tmp_path / "saved.parquet")
    assert back.epsilon == mechanism.epsilon
    if isinstance(mechanism, Projected):
        assert (back.projection, back.domain) == (mechanism.projection, mechanism.domain)
        back, mechanism = back.mechanism, mechanism.mechanism
    if isinstance(mechanism, Interpolated):
        assert isinstance(back, Interpolated)
        back, mechanism = back.channel, mechanism.channel
    assert (back.matrix == mechanism.matrix).all()
    assert (back.inputs, back.outputs) == (mechanism.inputs, mechanism.outputs)
    assert getattr(back, "certificate", None) == getattr(mechanism, "certificate", None)
    with pytest.raises(ValueError, match="read-only"):
        back.matrix[0, 0] = 1


def test_the_file_is_a_table_for_any_reader(city: Path) -> None:
    table = pq.read_table(city).to_pandas()
    assert table.columns.tolist() == NAMES
    assert table.groupby("input").probability.sum().to_numpy() == pytest.approx(np.ones(20))


def test_empty_columns_take_no_room(tmp_path: Path) -> None:
    """An output that is never reported has no entry."""
    save_mechanism(tmp_path / "one.parquet", Channel.deterministic(GRID, GRID, np.zeros(20, int)))
    assert pq.read_table(tmp_path / "one.parquet").num_rows == 20


def test_a_channel_in_another_metric_is_measured_in_that_metric(tmp_path: Path) -> None:
    best = min_loss_given_epsilon(PRIOR, epsilon=0.01, distance=manhattan)
    save_mechanism(tmp_path / "streets.parquet", best, epsilon=0.01, distance=manhattan)
    assert load_mechanism(tmp_path / "streets.parquet", distance=manhattan).epsilon > 0.01
    for metric in (euclidean, from_matrix(1.01 * manhattan(GRID.xy, GRID.xy))):
        with pytest.raises(InvalidInputError, match="metric"):
            load_mechanism(tmp_path / "streets.parquet", distance=metric)
    with pytest.raises(InvalidInputError, match="distance"):
        save_mechanism(tmp_path / "no.parquet", Interpolated(best), distance=manhattan)


def test_a_file_is_for_one_prior(city: Path) -> None:
    assert load_mechanism(city, prior=Prior(GRID, PRIOR.mass)).epsilon > 0
    with pytest.raises(InvalidInputError, match="not made for this prior"):
        load_mechanism(city, prior=Prior.uniform(GRID))


def test_a_promise_below_what_is_measured_is_refused(city: Path) -> None:
    mechanism: Any = load_mechanism(city)
    with pytest.raises(InvalidInputError, match="at least the measured"):
        save_mechanism(city, mechanism, epsilon=mechanism.epsilon * (1 - 1e-9))
    save_mechanism(city, mechanism, epsilon=0.05)
    assert load_mechanism(city).epsilon < 0.05
    with pytest.raises(InvalidInputError, match=r"promises epsilon 0\.\d+, but 0\.\d+ was measured"):
        load_mechanism(changed(city, epsilon=mechanism.epsilon * (1 - 1e-9)))


def test_a_changed_entry_is_measured(city: Path) -> None:
    """Three times the probability of one report at one site, taken from another: the row still sums to 1."""

    def moved(table: pa.Table) -> pa.Table:
        values = table["probability"].to_numpy().copy()
        row = np.flatnonzero(table["input"].to_numpy() == 7)
        small, large = row[np.argsort(values[row])[[0, -1]]]
        values[large] -= 2 * values[small]
        values[small] *= 3
        return table.set_column(2, "probability", pa.array(values))

    with pytest.raises(InvalidInputError, match="was measured"):
        load_mechanism(changed(city, moved))


def column(name: str, change: Any) -> Any:
    at = NAMES.index(name)
    return lambda table: table.set_column(at, name, change(table[name]))


def entry(name: str, value: Any) -> Any:
    def change(values: Any) -> Any:
        listed = values.to_pylist()
        listed[3] = value
        return pa.array(listed, values.type)

    return column(name, change)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (lambda table: table.drop_columns("output"), "columns must be"),
        (lambda table: table.append_column("more", table["input"]), "columns must be"),
        (column("input", lambda values: values.cast(pa.int64())), "columns must be"),
        (column("probability", lambda values: values.cast(pa.float32())), "columns must be"),
        (column("probability", lambda values: values.cast(pa.string())), "columns must be"),
        (lambda table: table.slice(0, 19), "at least one entry"),
        (lambda table: pa.concat_tables([table, table]), "at most one for each pair"),
        (lambda table: pa.concat_tables([table.slice(1, 30), table.slice(0, 1)]), "in order, each once"),
        (lambda table: pa.concat_tables([table.slice(0, 30), table.slice(29, 30)]), "in order, each once"),
        (entry("input", -1), "in order, each once"),
        (entry("output", 20), "in order, each once"),
        (entry("output", 2**31 - 1), "in order, each once"),
        (entry("probability", math.nan), "probabilities"),
        (entry("probability", -0.1), "probabilities"),
        (entry("probability", math.inf), "sum to 1"),
        (entry("probability", 0.5), "sum to 1"),
        (entry("probability", None), "missing"),
        (lambda table: table.slice(25), "sum to 1"),
    ],
)
def test_a_table_that_is_no_matrix_is_refused(entries: Any, message: str, city: Path) -> None:
    with pytest.raises(InvalidInputError, match=f"is not a mechanism saved by geoind: .*({message})"):
        load_mechanism(changed(city, entries))


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"format": "geoind mechanism 2"}, "metadata"),
        ({"more": 1}, "metadata"),
        ({"interpolated": 1}, "metadata"),
        ({"inputs": [0, 0, 100, 5, 4.5]}, "whole numbers"),
        ({"inputs": [0, 0, 0, 5, 4]}, "cell must be positive"),
        ({"inputs": [0, 0, 100, 1e8, 1e8]}, "may have"),
        ({"inputs": [0, 0, 100, 1e9, 1e9]}, "whole numbers"),
        ({"outputs": [0, 0, 100, 1e100, 1e100]}, "whole numbers"),
        ({"inputs": [0, 0, 100, 1 << 27, 1]}, "may have"),
        ({"inputs": [0, 0, 100, 5, 5]}, "sum to 1"),
        ({"inputs": [0, 0, 100, 50, 50], "outputs": [0, 0, 100, 5, 4]}, "at least one entry"),
        ({"inputs": [[0, 0], [1]]}, "2 numbers"),
        ({"inputs": [[]]}, "inputs|xy"),
        ({"inputs": [[0, 1e200]] * 20}, "finite"),
        ({"projection": [2.35, 91]}, "lat"),
        ({"projection": None}, "without a projection"),
        ({"domain": [2.3, 48.8, 2.4]}, "4 numbers"),
        ({"domain": [-170, -10, 170, 10]}, "domain"),
        ({"epsilon": -0.1}, "promises epsilon"),
        ({"epsilon": 10**400}, "finite|valid JSON"),
        ({"certificate": {}}, "certificate must have"),
        ({"certificate": "best"}, "certificate must have"),
        ({"prior": "0" * 64}, "not made for this prior"),
        ({"metric": "taxi"}, "metric"),
    ],
)
def test_metadata_that_is_not_valid_is_refused(about: dict[str, Any], message: str, city: Path) -> None:
    with pytest.raises(InvalidInputError, match=message):
        load_mechanism(changed(city, **about), prior=PRIOR)


ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)
ABOUT = json.loads(
    '{"format": 0, "interpolated": 0, "inputs": 0, "outputs": 0, "projection": 0, "domain": 0, "epsilon": 0,'
    ' "metric": 0, "prior": 0, "certificate": 0}'
)
CERTIFICATE = "objective bound gap epsilon repair iterations seconds method optimal".split()  # noqa: SIM905
reused = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def loads_or_raises(path: Path) -> None:
    """A mechanism with a finite promise that holds, or one error that names the file."""
    reason = ""
    try:
        mechanism: Any = load_mechanism(path)
        assert mechanism.epsilon >= 0
    except InvalidInputError as error:
        reason = str(error)
    assert not reason or (str(path) in reason and "\n" not in reason)


@reused
@given(st.sampled_from(sorted(ABOUT)), ANY_JSON)
def test_any_metadata_gives_a_mechanism_or_one_error(city: Path, name: str, value: Any) -> None:
    loads_or_raises(changed(city, **{name: value}))


@reused
@given(st.sampled_from(CERTIFICATE), ANY_JSON)
def test_any_certificate_gives_a_mechanism_or_one_error(city: Path, name: str, value: Any) -> None:
    about = json.loads(pq.read_table(city).schema.metadata[b"geoind"])
    loads_or_raises(changed(city, certificate=about["certificate"] | {name: value}))


@reused
@given(st.binary(max_size=300))
def test_any_bytes_give_one_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "any.parquet"
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match="is not a mechanism saved by geoind"):
        load_mechanism(path)


@reused
@given(st.data())
def test_changed_bytes_of_a_file_give_a_mechanism_or_one_error(city: Path, data: st.DataObject) -> None:
    content = bytearray(city.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        # Most often in the footer, where the metadata of Parquet are.
        start = data.draw(st.sampled_from([0, len(content) - 2000, len(content) - 300]))
        content[data.draw(st.integers(start, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = city.with_name("changed.parquet")
    path.write_bytes(content[: data.draw(st.sampled_from([len(content), len(content) - 1, 500]))])
    loads_or_raises(path)


def test_what_is_compressed_or_pickled_is_refused(city: Path) -> None:
    """A small compressed page can become gigabytes."""
    pq.write_table(pq.read_table(city), city, compression="zstd", use_dictionary=False)
    with pytest.raises(InvalidInputError, match="must not be compressed"):
        load_mechanism(city)
    np.savez(city.with_suffix(".npz"), matrix=np.array([object()]))
    with pytest.raises(InvalidInputError, match="cannot be read"):
        load_mechanism(city.with_suffix(".npz"))


@pytest.mark.parametrize(
    ("mechanism", "message"),
    [
        (PlanarLaplace(0.01), "must be a Channel"),
        (Projected(PlanarLaplace(0.01), PARIS), "must be a Channel"),
        (Projected(BEST, PARIS, domain=shapely.Point(2.35, 48.86).buffer(0.01)), "box"),
        (Projected(BEST, Projection.from_crs("EPSG:2154"), domain=BOX), "local"),
    ],
)
def test_what_cannot_be_saved_is_one_error_and_no_file(mechanism: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=message):
        save_mechanism(tmp_path / "no.parquet", mechanism)
    assert not list(tmp_path.iterdir())
