"""A coordinate is found by its values, and what meets one now and then, or rises with the rows, is none."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from geoind.tables.policy import telling_values
from geoind.tables.values import AROUND, Sample, sampled_rows
from tests.trials import trials

TABLES = trials(2_000)
SIZES = [1, 2, 3, 5, 8, 12, 20, 40, 60, 100, 200, 256, 300]


def random_places(rng: np.random.Generator) -> Any:
    """Return places of a town, of the world, along a line, on a lattice, sorted ones, those that begin at zero."""
    count = int(rng.choice(SIZES))
    rows = np.arange(count)
    centre = np.array([rng.uniform(-170, 170), rng.uniform(-70, 70)])
    town = rng.normal(centre, rng.choice([0.005, 0.05]), (count, 2))
    side = max(1, int(np.sqrt(count)))
    places = [
        town,
        town[np.argsort(town[:, int(rng.integers(2))])],
        np.column_stack([rng.uniform(-180, 180, count), rng.uniform(-75, 75, count)]),
        centre + rows[:, None] * rng.choice([1e-5, 1e-4, 1e-3, 0.00123], 2) * rng.choice([1, -1, 0], 2),
        centre + np.column_stack([rows % side, rows // side]) * rng.choice([0.001, 0.01, 0.1]),
        centre + np.cumsum(rng.normal(0, 0.0005, (count, 2)), axis=0),
        rng.normal(centre, 0.05, (3, 2))[rng.integers(0, 3, count)],
        rng.normal([0, 51.5], [0.01, 0.02], (count, 2)),
    ][int(rng.integers(8))]
    if rng.random() < 0.2:
        places = places - places[0]
    places = np.column_stack([(places[:, 0] + 180) % 360 - 180, np.clip(places[:, 1], -89, 89)])
    return np.round(places, int(rng.integers(4, 8)))


def ordinary_columns(rng: np.random.Generator, count: int) -> Iterator[tuple[str, Any]]:
    """Yield columns that tell no place: counters, times, prices, codes, numbers of any size."""
    rows = np.arange(count)
    start, size = int(rng.integers(0, 10 ** int(rng.integers(1, 8)))), 10 ** int(rng.integers(2, 10))
    yield "ids", [f"id-{row:06}" for row in rows]
    yield "more ids", [f"trip{row + start}" for row in rows]
    yield "counter", rows * int(rng.integers(1, 10)) + start
    yield "row", rows + 1
    yield "backwards", (count - rows).astype(float)
    yield "epoch", 1_700_000_000 + np.sort(rng.integers(0, 86400 * 30, count))
    yield "milliseconds", 1_700_000_000_000 + np.cumsum(rng.integers(0, 60000, count))
    yield "seconds of the day", np.sort(rng.integers(0, 86400, count))
    yield "times", [f"2024-{1 + row % 12:02}-{1 + row % 28:02}T{row % 24:02}:07.{row % 1000:03}Z" for row in rows]
    yield "clock", [f"{row // 60 % 24:02}:{row % 60:02}" for row in rows]
    yield "prices", rng.gamma(2, 10, count).round(2)
    yield "prices in text", [f"{price:.2f} EUR" for price in rng.gamma(2, 20, count)]
    yield "speeds", rng.uniform(0, 130, count)
    yield "headings", rng.uniform(0, 360, count).round(int(rng.integers(0, 3)))
    yield "numbers", rng.uniform(-200, 200, count)
    yield "close numbers", rng.normal(rng.uniform(-100, 100), rng.choice([0.01, 0.1, 1, 10]), count)
    yield "shares", rng.uniform(0, 1, count)
    yield "ages", rng.integers(18, 90, count)
    yield "large numbers", rng.integers(0, 2**62, count)
    yield "digits", rng.integers(size // 10, size, count)
    yield "sorted digits", np.sort(rng.integers(size // 10, size, count))
    yield "sums", np.cumsum(rng.gamma(2, 10.0 ** int(rng.integers(-2, 4)), count)).round(2)
    yield "rising", rows * rng.uniform(0, 2) + rng.uniform(0, 100)
    yield "hexadecimal", [f"{number:08x}" for number in rng.integers(0, 2**32, count)]
    yield "one", np.full(count, round(float(rng.uniform(-180, 180)), int(rng.integers(0, 4))))
    yield "two", rng.choice(rng.uniform(0, 90, 2), count).round(2)
    yield "codes", ["".join(code) for code in rng.choice(list("0123456789bcdefghjkmnpqrstuvwxyz"), (count, 6))]
    yield "notes", [f"order {a} at table {b}" for a, b in zip(*rng.integers(1, 99999, (2, count)), strict=True)]


def told(truth: Any, columns: dict[str, Any]) -> dict[str, str]:
    chosen = sampled_rows(len(truth))
    batch = pa.RecordBatch.from_pydict({name: pa.array(column) for name, column in columns.items()})
    sample = Sample(truth[chosen], numbers=chosen, around=truth[:AROUND])
    return telling_values([sample], batch.take(pa.array(chosen)), list(columns))


@pytest.mark.parametrize("quarter", range(4))
def test_ordinary_columns_of_two_thousand_random_tables_raise_no_alarm(quarter: int) -> None:
    for seed in range(quarter, TABLES, 4):
        rng = np.random.default_rng(seed)
        truth = random_places(rng)
        columns = list(ordinary_columns(rng, len(truth)))
        some = dict(columns[at] for at in rng.choice(len(columns), 6, replace=False))
        assert told(truth, some) == {}, seed


def test_ids_that_follow_places_along_a_line_tell_what_the_order_tells() -> None:
    # With this step the geocentric y in metres is the row's number, nearly.
    rows = np.arange(1024)
    step = np.degrees(1 / (6_378_137 * np.cos(np.radians(26.5))))
    truth = np.column_stack([rows * step, np.full(1024, 26.5)])
    assert told(truth, {"id": [f"id-{row:06}" for row in rows], "row": rows, "time": 60.0 * rows}) == {}


@pytest.mark.parametrize("order", ["as it was", "sorted", "a walk", "a line"])
def test_copies_are_found_in_whatever_order_rows_are(order: str) -> None:
    rng = np.random.default_rng(1)
    truth = rng.normal([12.345678, 45.678912], 0.03, (300, 2))
    if order == "sorted":
        truth = truth[np.argsort(truth[:, 1])]
    elif order == "a walk":
        truth = truth[0] + np.cumsum(rng.normal(0, 0.0005, (300, 2)), axis=0)
    elif order == "a line":
        truth = truth[0] + np.arange(300)[:, None] * 1e-4
    truth = np.round(truth, 6)
    lat = truth[:, 1]
    copies = {
        "exact": lat,
        "single precision": lat.astype(np.float32),
        "integers": np.rint(lat * 1e7).astype(np.int64),
        "text": [f"at {value}" for value in lat],
        "among others": [f"order {rng.integers(1000, 99999)} at {value}" for value in lat],
        "radians": np.radians(lat),
    }
    assert told(truth, copies).keys() == copies.keys()


def test_one_place_south_or_west_is_named_by_both_of_its_coordinates() -> None:
    sample = Sample(np.array([[-71.058912, -42.360134], [-71.1, -42.4]]))
    assert sample.names_place(np.array([-71.058912, -42.360134]))
    assert sample.names_place(np.array([71.058912, 42.360134]))
    assert not sample.names_place(np.array([-71.058912, -42.4]))
