"""A kept column that repeats the true coordinates of its rows is an error; ordinary columns are no alarm."""

import base64
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import geopandas
import numpy as np
import pyarrow as pa
import pytest
import shapely

from geoind import InvalidInputError
from geoind.arrays import FloatArray, IntArray
from geoind.space.crs import from_lonlat
from geoind.tables.columns import clock_columns
from geoind.tables.order import RowOrder
from geoind.tables.recipe import EACH_ROW
from geoind.tables.table import refuse_copies
from tests.tables.made_up import KEY, lonlat, released
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
    "WKB in a struct": lambda truth: [{"at": shape, "n": 1} for shape in shapely.to_wkb(shapely.points(truth))],
    "WKB in lists": lambda truth: [[shape] for shape in shapely.to_wkb(shapely.points(truth), hex=True)],
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


def serpentine(places: FloatArray) -> IntArray:
    band = np.floor(places[:, 1] / 0.02).astype(int)
    return np.lexsort((np.where(band % 2, -places[:, 0], places[:, 0]), band))


def grouped_by_cell(places: FloatArray) -> IntArray:
    _, cells = np.unique(np.floor(places / 0.04), axis=0, return_inverse=True)
    turns = np.random.default_rng(1).permutation(cells.max() + 1)
    return np.argsort(turns[cells.ravel()], kind="stable")


def from_the_middle(places: FloatArray) -> FloatArray:
    return np.asarray(places - places.mean(axis=0))


ORDERS: dict[str, Callable[[FloatArray], IntArray]] = {
    "latitude": lambda places: np.argsort(places[:, 1]),
    "longitude, falling": lambda places: np.argsort(-places[:, 0]),
    "x + y": lambda places: np.argsort(places.sum(axis=1)),
    "angle": lambda places: np.argsort(np.arctan2(*from_the_middle(places).T)),
    "radius": lambda places: np.argsort(np.hypot(*from_the_middle(places).T)),
    "serpentine": serpentine,
    "grouped by cell": grouped_by_cell,
    "hilbert": lambda places: np.argsort(geopandas.GeoSeries(shapely.points(places)).hilbert_distance()),
}


def is_sorted(
    *parts: FloatArray,
    size: int = 10**9,
    clocks: tuple[Any, ...] = (),
    persons: Any = None,
    shuffled: bool = False,
) -> bool:
    """Return the verdict about parts that come in batches."""
    total = RowOrder()
    for part in parts:
        order = RowOrder(shuffled=shuffled)
        for start in range(0, len(part), size):
            rows = slice(start, start + size)
            order.add(part[rows], [clock[rows] for clock in clocks], None if persons is None else persons[rows])
        total.merge(order)
    return total.is_sorted


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("count", [2000, 20_000])
def test_rows_in_an_order_that_follows_their_places_are_found(order: str, count: int) -> None:
    places = lonlat(count, 1)
    assert is_sorted(places[ORDERS[order](places)])
    assert not is_sorted(places)


@pytest.mark.parametrize("size", [1, 100, 4096, 5000])
def test_batches_do_not_change_the_verdict(size: int) -> None:
    places = lonlat(6000, 2)
    assert is_sorted(places[grouped_by_cell(places)], size=size)
    assert not is_sorted(places, size=size)


@pytest.mark.parametrize("order", ["latitude", "serpentine", "grouped by cell"])
@pytest.mark.parametrize("random", [slice(0, 512), slice(10_000, 20_000), slice(0, 16_000)])
def test_rows_that_are_sorted_in_a_part_of_the_table_only_are_found(order: str, random: slice) -> None:
    places = lonlat(20_000, 3)
    sorted_rows = np.ones(20_000, bool)
    sorted_rows[random] = False
    rest = places[sorted_rows]
    places[sorted_rows] = rest[ORDERS[order](rest)]
    assert is_sorted(places)
    assert is_sorted(places, size=1000)


@pytest.mark.parametrize("count", [60, 200])
@pytest.mark.parametrize("order", ["latitude", "longitude, falling"])
def test_a_small_table_sorted_by_a_coordinate_is_found(order: str, count: int) -> None:
    places = lonlat(count, 4)
    assert is_sorted(places[ORDERS[order](places)])


def wide(count: int, seed: int) -> FloatArray:
    """Return places of a region that is much wider than high: their distances say little of their latitudes."""
    return np.random.default_rng(seed).uniform([2.0, 48.8], [2.8, 48.9], (count, 2))


@pytest.mark.parametrize("seed", range(5))
def test_a_small_wide_table_sorted_by_the_short_side_is_found(seed: int) -> None:
    places, rng = wide(60, seed), np.random.default_rng(seed)
    assert not is_sorted(places)
    by_latitude = places[np.argsort(places[:, 1])]
    assert is_sorted(by_latitude)
    assert is_sorted(np.concatenate([part[np.argsort(part[:, 1])] for part in np.split(places, 6)]))
    some = np.flatnonzero(rng.random(60) < 0.15)
    by_latitude[some] = by_latitude[rng.permutation(some)]
    assert is_sorted(by_latitude)


@pytest.mark.parametrize("shuffled", [False, True])
def test_many_small_files_in_a_few_bands_are_found(shuffled: bool) -> None:
    """The sample of a table is of all its files, also if these have one row each."""
    places = lonlat(3000, 8)
    bands = np.argsort(np.digitize(places[:, 1], np.quantile(places[:, 1], [1 / 3, 2 / 3])), kind="stable")
    assert is_sorted(*places[bands][:, None], shuffled=shuffled)
    assert not is_sorted(*places[:, None], shuffled=shuffled)


@pytest.mark.parametrize("files", [4, 40, 400])
@pytest.mark.parametrize("shuffled", [False, True])
def test_files_that_are_ranges_of_place_are_found_although_rows_are_random_in_each(
    files: int, shuffled: bool
) -> None:
    places = lonlat(10_000, 5)
    by_range = np.array_split(places[np.argsort(places[:, 0])], files)
    rng = np.random.default_rng(6)
    assert is_sorted(*(rng.permutation(part) for part in by_range), shuffled=shuffled)
    assert not is_sorted(*np.array_split(places, files), shuffled=shuffled)


def test_shuffling_hides_the_order_in_a_file_and_not_the_file() -> None:
    places = lonlat(4000, 7)
    sorted_places = places[np.argsort(places[:, 1])]
    assert not is_sorted(sorted_places, shuffled=True)
    assert not is_sorted(sorted_places[::2], sorted_places[1::2], shuffled=True)
    halves = (
        pa.table({"lon": sorted_places[:2000, 0], "lat": sorted_places[:2000, 1]}),
        pa.table({"lon": sorted_places[2000:, 0], "lat": sorted_places[2000:, 1]}),
    )
    with pytest.raises(InvalidInputError, match="the file shows where they are, also in random order"):
        released(*halves, person=EACH_ROW, order="shuffle")
    released(halves[0], person=EACH_ROW, order="shuffle")
    released(*halves, person=EACH_ROW, order="keep")


def drive(count: int, seed: int = 0) -> FloatArray:
    """Return the places of a person who drives, and sometimes stays."""
    rng = np.random.default_rng(seed)
    steps = rng.normal([1e-4, 2e-4], 1e-4, (count, 2)) * (rng.random((count, 1)) < 0.8)
    return np.asarray(np.array([2.3, 48.8]) + np.cumsum(steps, axis=0))


BEGIN = datetime(2024, 5, 1, 8, tzinfo=UTC)
CLOCKS: dict[str, Callable[[int], pa.Array]] = {
    "timestamps": lambda count: pa.array([BEGIN + timedelta(seconds=row) for row in range(count)]),
    "texts": lambda count: pa.array([str(BEGIN + timedelta(seconds=row)) for row in range(count)]),
    "texts in a dictionary": lambda count: CLOCKS["texts"](count).dictionary_encode(),
    "seconds": lambda count: pa.array(1_700_000_000 + np.arange(count)),
    "milliseconds, the latest first": lambda count: pa.array(1_700_000_000_000 - 1000 * np.arange(count)),
}


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("count", [60, 9000])
def test_a_drive_with_times_is_not_a_sorted_table(clock: str, count: int) -> None:
    places, times = drive(count), CLOCKS[clock](count)
    table = pa.table({"at": times, "lon": places[:, 0], "lat": places[:, 1]})
    assert clock_columns(table.to_batches()[0]) == ["at"]
    assert released(table, size=1000, person=EACH_ROW)[0].reports == count
    with pytest.raises(InvalidInputError, match="the order of the rows shows where they are"):
        released(table.drop_columns("at"), person=EACH_ROW)


def test_traces_of_many_persons_one_after_the_other_are_not_a_sorted_table() -> None:
    rng = np.random.default_rng(3)
    homes = rng.normal([2.35, 48.86], 0.1, (50, 1, 2))
    places = (homes + np.cumsum(rng.normal(0, 3e-4, (50, 600, 2)), axis=1)).reshape(-1, 2)
    times = np.concatenate([1.7e9 + np.sort(rng.integers(0, 10**6, 600)) for _ in range(50)])
    assert not is_sorted(places, clocks=(pa.array(times),), persons=np.repeat(np.arange(50), 600))
    assert is_sorted(places)


def test_rows_sorted_by_station_and_then_by_time_are_sorted_by_place() -> None:
    rng = np.random.default_rng(4)
    stations = rng.normal([2.35, 48.86], 0.1, (80, 2))
    for rows in (50, 3000):
        places = np.repeat(stations, rows, axis=0)
        times = np.concatenate([1.7e9 + np.sort(rng.integers(0, 10**6, rows)) for _ in stations])
        assert is_sorted(places, clocks=(pa.array(times),))
        persons = rng.integers(0, 5000, len(places))
        assert is_sorted(places, clocks=(pa.array(times),), persons=persons)
        assert not is_sorted(places[np.argsort(times)], clocks=(pa.array(np.sort(times)),))


def test_rows_sorted_by_day_and_then_by_place_are_sorted_by_place() -> None:
    """The clock goes back in half of the steps, each time by less than a day."""
    rng = np.random.default_rng(9)
    times, places = 1.7e9 + np.sort(rng.integers(0, 86400 * 400, 2400)), wide(2400, 9)
    order = np.lexsort((places[:, 1], times // 86400))
    assert is_sorted(places[order], clocks=(pa.array(times[order]),))
    assert not is_sorted(places, clocks=(pa.array(times),))


def test_two_persons_who_move_together_are_not_a_sorted_table_but_rows_of_one_moment_may_be() -> None:
    times = np.repeat(np.arange(1500) * 5.0, 2)
    assert not is_sorted(np.repeat(drive(1500), 2, axis=0), clocks=(pa.array(times),))
    places, times = (
        np.random.default_rng(5).normal([2.3, 48.8], 0.1, (3000, 2)),
        np.repeat(np.arange(375) * 5.0, 8),
    )
    assert not is_sorted(places, clocks=(pa.array(times),))
    assert is_sorted(places[np.lexsort((places[:, 1], times))], clocks=(pa.array(times),))


def test_rows_sorted_in_turns_are_sorted_by_place() -> None:
    rng = np.random.default_rng(5)
    origins, destinations = (rng.normal([2.35, 48.86], 0.1, (2000, 2)) for _ in range(2))
    origins = origins[np.argsort(origins[:, 1])]
    assert is_sorted(np.stack([origins, destinations], axis=1).reshape(-1, 2))


def test_files_of_one_row_in_the_order_of_their_places_are_sorted() -> None:
    places = np.random.default_rng(6).normal([2.35, 48.86], 0.1, (300, 2))
    assert not is_sorted(*places[:, None])
    assert is_sorted(*places[np.argsort(places[:, 1])][:, None])


@pytest.mark.parametrize(
    "times",
    [
        np.full(2000, 1.7e9),
        1.7e9 + np.random.default_rng(0).permutation(2000),
        np.where(np.arange(2000) < 40, 1.7e9 + np.arange(2000), np.nan),
        1.7e9 + np.arange(2000) // 500,
    ],
    ids=["constant", "random", "mostly missing", "four different ones"],
)
def test_times_that_rows_do_not_follow_explain_nothing(times: FloatArray) -> None:
    places = lonlat(2000, 8)
    places = places[ORDERS["hilbert"](places)]
    assert is_sorted(places, clocks=(pa.array(times, from_pandas=True),))


def test_columns_of_times_are_known_by_their_values() -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "day": pa.array([date.date() for date in (BEGIN, BEGIN)]),
            "started_at": ["2024-05-01T08:00:00Z", None],
            "fare": [7.5, 9.0],
            "lat": ["48.85", "48.86"],
            "time": ["noon", "later"],
            "empty": pa.nulls(2),
            "since_epoch": [1.7e9, 1.7e9],
            "parcel": [1_700_000_000, 1_700_000_001],
            "snowflake": [2**62, 2**62 + 1],
            "raw": [b"2024-05-01", b"2024-05-01"],
        }
    )
    assert clock_columns(batch) == ["day", "started_at", "since_epoch"]


def laws(rng: np.random.Generator, count: int) -> FloatArray:
    """Return places of one of several laws, in random order."""
    kind = rng.integers(5)
    if kind == 0:
        return np.asarray(rng.normal([2.35, 48.86], 10.0 ** rng.uniform(-4, 0), (count, 2)))
    if kind == 1:
        return np.asarray(rng.uniform([-180, -90], [180, 90], (count, 2)))
    few = rng.normal([2.35, 48.86], 0.1, (rng.integers(2, 40), 2))
    places = few[rng.integers(0, len(few), count)]
    if kind == 2:
        return np.asarray(places)  # a few stations
    if kind == 3:
        return np.asarray(places + rng.normal(0, 1e-3, (count, 2)))
    return np.asarray(rng.choice(few, count, p=rng.dirichlet(np.full(len(few), 0.3))))


def test_a_random_order_is_no_alarm() -> None:
    alarms = []
    for seed in range(trials(400)):
        rng = np.random.default_rng(seed)
        parts = [laws(rng, int(10 ** rng.uniform(0, 3.5)))]
        if seed % 2:
            # The files of one table, of any sizes.
            cuts = np.sort(rng.integers(0, len(parts[0]) + 1, rng.integers(1, 30)))
            parts = np.split(parts[0], cuts)
        missing = rng.random(len(parts[0])) < 0.1
        parts[0][missing] = np.nan
        size = int(rng.integers(50, 5000))
        alarms += [(seed, way) for way in (False, True) if is_sorted(*parts, size=size, shuffled=way)]
    assert alarms == []


def test_rows_without_places_are_not_looked_at() -> None:
    places = lonlat(2000, 9)
    places = places[np.argsort(places[:, 0])]
    with_gaps = np.full((4000, 2), np.nan)
    with_gaps[::2] = places
    assert is_sorted(with_gaps)
    assert not is_sorted(np.full((4000, 2), np.nan))
    assert not RowOrder().is_sorted


def test_rows_across_the_antimeridian_are_near_each_other() -> None:
    rng = np.random.default_rng(10)
    # Each step crosses the line, and half of those of permuted rows do.
    lon = np.tile([179.999, -179.999], 2000) + rng.normal(0, 1e-4, 4000)
    lat = np.repeat([10.0, 50.0], 2000) + rng.normal(0, 1e-3, 4000)
    places = np.column_stack([lon, lat])
    assert is_sorted(places)
    assert not is_sorted(rng.permutation(places))


def test_shuffled_rows_keep_their_own_reports_and_values_in_an_order_of_their_own() -> None:
    places = lonlat(3000, 11)
    places = places[np.argsort(places[:, 0])]
    table = pa.table({"id": np.arange(3000), "lon": places[:, 0], "lat": places[:, 1]})
    options: dict[str, Any] = {"person": EACH_ROW, "keep": ["id"], "key": KEY, "id_column": "id"}
    [kept] = released(table, order="keep", **options)[1]
    [shuffled] = released(table, order="shuffle", **options)[1]
    assert not is_sorted(places[shuffled["id"].to_numpy()])
    assert shuffled.sort_by("id").to_pydict() == kept.to_pydict()
    [again] = released(table, order="shuffle", size=700, **options)[1]
    assert again.to_pydict() == shuffled.to_pydict()
    [fresh] = released(table, order="shuffle", **options | {"key": None, "id_column": None})[1]
    assert fresh["id"].to_pylist() != shuffled["id"].to_pylist()
