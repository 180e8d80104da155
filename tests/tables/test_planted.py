"""Random tables with a planted copy of the truth: it is refused, and dropped it is in no byte of the output."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from geoind import InvalidInputError
from geoind.tables import Recipe, table
from tests.trials import trials

UNITS = [1.0, np.pi / 180, 3600.0, 60.0, 1e5, 1e6, 1e7, 2**31 / 180]
TEMPLATES = ["{}", "N {}", "seen at {} today", '{{"a": [{}]}}', "x;{};y", "({}", "v={},0"]


@st.composite
def truths(draw: st.DrawFn) -> Any:
    """Draw places of a town anywhere, with five to seven decimals, in random order."""
    count = draw(st.integers(1, 80))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    centre = draw(st.floats(-170, 170)), draw(st.floats(-75, 75))
    spread = draw(st.sampled_from([0.01, 0.1, 1.0]))
    decimals = draw(st.integers(6, 7))
    return np.round(rng.normal(centre, spread, (count, 2)), decimals)


@st.composite
def copies(draw: st.DrawFn) -> tuple[Any, pa.Array]:
    """Draw places, and a column that tells one of their coordinates."""
    truth = draw(truths())
    # A coordinate near zero has too few digits for a single row to speak for itself.
    axis = draw(st.sampled_from([0, 1]))
    if np.abs(truth[:, axis]).min() < 1:
        truth = truth + np.where(np.arange(2) == axis, 5, 0)
    values = truth[:, axis] * draw(st.sampled_from(UNITS)) * draw(st.sampled_from([1, -1]))
    form = draw(st.sampled_from(["float", "float32", "text", "struct", "list", "gaps"]))
    if form == "text":
        template = draw(st.sampled_from(TEMPLATES))
        return truth, pa.array([template.format(repr(float(np.round(value, 8)))) for value in values])
    if form == "struct":
        return truth, pa.array([{"m": {"k": float(value), "t": "u"}} for value in values])
    if form == "list":
        return truth, pa.array([[0.5, float(value), 1.5] for value in values])
    if form == "gaps":
        return truth, pa.array([float(value) if row % 3 == 0 else None for row, value in enumerate(values)])
    return truth, pa.array(values, pa.float32() if form == "float32" else pa.float64())


def batch_of(truth: Any, column: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"lon": truth[:, 0], "lat": truth[:, 1], "remark": column})


def parquet_bytes(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_batches([batch]), sink, compression="none", use_dictionary=False)
    return bytes(sink.getvalue().to_pybytes())


def told(truth: Any, data: bytes) -> bool:
    """Return whether bytes hold a true coordinate, as a number or as digits.

    One with five decimals or fewer is a place of the lattice: its neighbour's report may be there.
    """
    own = [float(axis) for axis in truth.ravel() if axis != np.round(axis, 5)]
    return any(np.float64(axis).tobytes() in data or repr(axis).encode() in data for axis in own)


def check_copy(truth: Any, column: pa.Array) -> None:
    """Fail unless a copy is refused, and dropped it is in no byte."""
    batch = batch_of(truth, column)
    with pytest.raises(InvalidInputError, match="'remark'"):
        Recipe.of(epsilon=0.01, order="keep").obfuscate(batch)
    report = Recipe.of(epsilon=0.01, order="keep", drop=["remark"]).obfuscate(batch)
    assert not told(truth, parquet_bytes(report))


@settings(max_examples=trials(150), suppress_health_check=[HealthCheck.too_slow])
@given(copies())
def test_a_planted_copy_is_refused_and_when_dropped_in_no_byte(case: tuple[Any, pa.Array]) -> None:
    check_copy(*case)


def test_the_check_complains_and_the_search_finds_the_truth_when_the_policy_is_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(table, "refuse", lambda _: None)
    truth = np.array([[2.294512, 48.858412], [2.321934, 48.842117]])
    for column in (pa.array(truth[:, 1]), pa.array([f"at {lat}" for _, lat in truth])):
        with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
            check_copy(truth, column)
        report = Recipe.of(epsilon=0.01).obfuscate(batch_of(truth, column))
        assert told(truth, parquet_bytes(report))


def drawn(draw: Callable[[np.random.Generator, int], Any]) -> st.SearchStrategy[Callable[[int], Any]]:
    """Return columns of any length, drawn with any seed."""
    return st.integers(0, 2**62).map(lambda seed: lambda n: draw(np.random.default_rng(seed), n))


ORDINARY = st.one_of(
    drawn(lambda rng, n: rng.integers(0, 10**9, n)),
    drawn(lambda rng, n: rng.integers(0, 100, n)),
    drawn(lambda rng, n: rng.uniform(-200, 200, n)),
    drawn(lambda rng, n: rng.gamma(2, 10, n).round(2)),
    drawn(lambda rng, n: 1.7e9 + rng.uniform(0, 1e6, n)),
    drawn(lambda rng, n: [f"{value:08x}" for value in rng.integers(0, 2**32, n)]),
    st.floats(-180, 180).map(lambda value: lambda n: np.full(n, round(value, 2))),
    st.integers(1, 9).map(lambda step: lambda n: np.arange(n) * step),
)


@settings(max_examples=trials(300), suppress_health_check=[HealthCheck.too_slow])
@given(truths(), ORDINARY)
def test_an_ordinary_column_raises_no_alarm(truth: Any, column: Any) -> None:
    batch = batch_of(truth, pa.array(column(len(truth))))
    report = Recipe.of(epsilon=0.01, order="keep").obfuscate(batch)
    assert report["remark"] == batch["remark"]
