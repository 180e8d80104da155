"""A kept column that repeats the true coordinates of its rows is an error; ordinary columns are no alarm."""

import base64
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely

from geoind import InvalidInputError
from geoind.arrays import FloatArray
from geoind.space.crs import from_lonlat
from geoind.tables.copies import refuse_copies
from geoind.tables.recipe import EACH_ROW
from tests.tables.made_up import lonlat, released
from tests.trials import trials

COPIES: dict[str, Callable[[FloatArray], Any]] = {
    "degrees": lambda truth: truth[:, 1],
    "degrees in single precision": lambda truth: truth[:, 0].astype(np.float32),
    "rounded degrees": lambda truth: truth[:, 1].round(4),
    "rounded degrees with the other sign": lambda truth: -truth[:, 0].round(4),
    "text": lambda truth: [f"seen at {lat:.5f}" for _, lat in truth],
    "text with decimal commas": lambda truth: [f"{lon:.6f}".replace(".", ",") for lon, _ in truth],
    "both in a text": lambda truth: [f"({lat:.4f} {lon:.4f})" for lon, lat in truth],
    "half of the rows": lambda truth: [lat if row % 2 else None for row, lat in enumerate(truth[:, 1])],
    "whole numbers, E7": lambda truth: (truth[:, 1] * 1e7).round().astype(np.int64),
    "whole numbers, E6 as text": lambda truth: [str(round(lon * 1e6)) for lon in truth[:, 0]],
    "WKT": lambda truth: shapely.to_wkt(shapely.points(truth)),
    "WKB": lambda truth: pa.array(shapely.to_wkb(shapely.points(truth))),
    "WKB of a fixed size": lambda truth: pa.array(shapely.to_wkb(shapely.points(truth)), pa.binary(21)),
    "WKB in hexadecimal digits": lambda truth: shapely.to_wkb(shapely.points(truth), hex=True),
    "EWKB in hexadecimal digits": lambda truth: shapely.to_wkb(
        shapely.set_srid(shapely.points(truth), 4326), hex=True, include_srid=True
    ),
    "GeoJSON": lambda truth: shapely.to_geojson(shapely.points(truth)),
    "a list": lambda truth: truth.tolist(),
    "a struct": lambda truth: [{"y": lat, "x": lon} for lon, lat in truth.tolist()],
    "a dictionary": lambda truth: pa.array([f"{lat:.5f}" for _, lat in truth]).dictionary_encode(),
}


def with_column(truth: FloatArray, column: Any) -> pa.Table:
    values = column if isinstance(column, pa.Array) else pa.array(column)
    return pa.table({"note": values, "lon": truth[:, 0], "lat": truth[:, 1]})


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("middle", [(2.35, 48.86), (-0.12, 51.5), (-70.65, -33.45), (179.5, 0.3)])
def test_a_kept_column_that_repeats_coordinates_is_refused(copy: str, middle: tuple[float, float]) -> None:
    truth = np.random.default_rng(0).normal(middle, 0.05, (200, 2)).round(6)
    table = with_column(truth, COPIES[copy](truth))
    with pytest.raises(InvalidInputError, match=r"'note' (repeats true coordinates|holds geometries)") as caught:
        released(table, person=EACH_ROW, keep=["note"])
    assert not any(f"{value:.3f}" in str(caught.value) for value in truth.ravel().tolist())
    released(table, person=EACH_ROW)


def test_a_kept_column_that_repeats_coordinates_in_the_tables_crs_is_refused() -> None:
    truth = lonlat(200)
    metres = from_lonlat(truth, "EPSG:2154")
    notes = {b"ARROW:extension:name": b"geoarrow.wkb", b"ARROW:extension:metadata": b'{"crs": "EPSG:2154"}'}
    for column in (metres[:, 0], [f"{y:.1f}" for y in metres[:, 1]], truth[:, 0]):
        place = pa.field("place", pa.binary(), metadata=notes)
        table = pa.table(
            [pa.array(column), pa.array(shapely.to_wkb(shapely.points(metres)))],
            schema=pa.schema([pa.field("note", pa.array(column).type), place]),
        )
        with pytest.raises(InvalidInputError, match="'note' repeats true coordinates"):
            released(table, person=EACH_ROW, keep=["note"])


def test_every_place_of_a_row_is_looked_for() -> None:
    first, second = lonlat(100, 1), lonlat(100, 2)
    table = pa.table(
        {
            "note": [f"to {lat:.4f}" for lat in second[:, 1]],
            "a": first[:, 0],
            "b": first[:, 1],
            "c": second[:, 0],
            "d": second[:, 1],
        }
    )
    with pytest.raises(InvalidInputError, match="'note' repeats true coordinates"):
        released(table, person=EACH_ROW, keep=["note"], lon=["a", "c"], lat=["b", "d"])


def test_a_column_that_is_declared_a_geometry_cannot_be_kept() -> None:
    truth = lonlat(20)
    notes = {b"ARROW:extension:name": b"geoarrow.polygon"}
    schema = pa.schema(
        [pa.field("area", pa.binary(), metadata=notes), ("lon", pa.float64()), ("lat", pa.float64())]
    )
    table = pa.table([pa.nulls(20, pa.binary()), *truth.T.copy()], schema=schema)
    with pytest.raises(InvalidInputError, match="'area' holds geometries"):
        released(table, person=EACH_ROW, keep=["area"], lon="lon", lat="lat")


def test_a_trace_does_not_publish_persons_or_times_that_are_coordinates() -> None:
    truth = lonlat(50)
    table = pa.table(
        {
            "who": [f"{lat:.5f}" for lat in truth[:, 1]],
            "at": 1.7e9 + np.arange(50),
            "lon": truth[:, 0],
            "lat": truth[:, 1],
        }
    )
    with pytest.raises(InvalidInputError, match="'who' repeats true coordinates"):
        released(table, person="who", time="at")
    released(table, person="who", reports_per_person=1)


def test_a_copy_that_begins_in_a_later_batch_is_found() -> None:
    truth = lonlat(1000)
    note = [f"{lat:.5f}" if row >= 300 else "x" for row, lat in enumerate(truth[:, 1])]
    with pytest.raises(InvalidInputError, match="'note' repeats true coordinates"):
        released(with_column(truth, note), size=100, person=EACH_ROW, keep=["note"])


ORDINARY: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "numbers of rows": lambda rng, count: np.arange(count) + int(rng.integers(10**6)),
    "identities": lambda rng, count: [f"{word:032x}" for word in map(int, rng.integers(0, 2**63, count))],
    "bytes": lambda rng, count: [rng.bytes(21) for _ in range(count)],
    "base64": lambda rng, count: [base64.b64encode(rng.bytes(24)).decode() for _ in range(count)],
    "digests": lambda rng, count: [rng.bytes(32).hex() for _ in range(count)],
    "phone numbers": lambda rng, count: [f"+33 1 {number:08d}" for number in rng.integers(0, 10**8, count)],
    "fares": lambda rng, count: rng.gamma(2, 8, count).round(2),
    "prices": lambda rng, count: rng.gamma(2, 200_000, count).round(),
    "house numbers": lambda rng, count: [f"{number} bis" for number in rng.integers(1, 300, count)],
    "times": lambda rng, count: 1.7e9 + rng.integers(0, 10**7, count),
    "dates": lambda rng, count: [f"2024-05-{day:02d} 08:00" for day in rng.integers(1, 29, count)],
    "coordinates of other rows": lambda rng, count: rng.permutation(lonlat(count))[:, 0],
    "nothing": lambda rng, count: pa.nulls(count),  # noqa: ARG005
    "words": lambda rng, count: rng.choice(["Gare du Nord", "Bastille", "Nation"], count),
}


@pytest.mark.parametrize("kind", ORDINARY)
def test_an_ordinary_column_is_no_alarm(kind: str) -> None:
    for seed in range(trials(20)):
        rng = np.random.default_rng(seed)
        count = int(rng.integers(5, 400))
        table = with_column(rng.normal([2.35, 48.86], 0.08, (count, 2)), ORDINARY[kind](rng, count))
        column = table.select(["note"]).combine_chunks().to_batches()[0]
        refuse_copies(column, [(np.column_stack([table["lon"], table["lat"]]), 3)])
