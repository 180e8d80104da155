"""A coordinate is found by its values, and what meets one now and then, or rises with the rows, is none."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from geoind.arrays import FloatArray
from geoind.tables.policy import telling_values
from geoind.tables.units import METRES, NAMES, NEAR, NEARNESS, in_every_unit
from geoind.tables.values import (
    Sample,
    _agreement,
    _apart,
    _counts_rows,
    _is_among,
    _rises,
    _unlikely,
    _written,
    is_fine,
    sampled_rows,
)
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
    sample = Sample(truth[chosen], numbers=chosen, around=truth)
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


@pytest.mark.parametrize("count", [0, 1, 255, 256, 257, 300, 1000, 1_000_000])
def test_rows_to_look_at_are_all_or_the_first_ones_and_some_spread_evenly_to_the_last(count: int) -> None:
    rows = sampled_rows(count)
    assert len(rows) == min(count, 256)
    assert rows[:64].tolist() == list(range(min(count, 64)))
    if count > 256:
        steps = np.diff(rows[64:])
        assert (rows[64], rows[-1]) == (64, count - 1)
        assert np.all(np.abs(steps - (count - 65) / 191) < 1)


def test_places_of_the_first_512_rows_are_looked_for_in_every_column() -> None:
    truth = np.round(np.random.default_rng(6).uniform([0, 40], [10, 50], (100_000, 2)), 6)
    for first, found in ((506, True), (507, False)):
        assert bool(told(truth, {"note": [" ".join(map(str, truth[first : first + 6, 1]))] * 100_000})) == found


@pytest.mark.parametrize("expected", [1e-4, 0.125, 1.0, 3.5, 20.0, 400.0])
def test_as_many_agreements_are_unlikely_as_chernoff_says(expected: float) -> None:
    def bound(agree: int) -> float:
        return agree - expected + agree * math.log(expected / agree)

    least = next(agree for agree in range(1, 10_000) if agree > expected and bound(agree) < math.log(1e-7))
    assert [_unlikely(agree, expected) for agree in (0, 1, least - 1, least, least + 1)][2:] == [False, True, True]
    assert not _unlikely(0, expected)
    assert not _unlikely(int(expected / 10), expected)


def test_a_column_rises_or_falls_with_the_rows_from_five_values_on() -> None:
    rows = np.array([7, 3, 9, 1, 5])
    assert _rises(rows, 10.0 * rows)
    assert _rises(rows, -10.0 * rows)
    assert not _rises(rows[:4], 10.0 * rows[:4])
    assert not _rises(rows, np.array([7.0, 3.0, 9.0, 1.0, 3.0]))
    assert not _rises(rows, np.array([-7.0, -3.0, -9.0, -1.0, -3.0]))
    assert not _rises(rows, np.arange(5.0))


def test_a_counter_goes_on_by_one_step_a_row_but_for_a_step() -> None:
    rows = np.array([9, 2, 4, 3])
    for factor, start in ((1.0, 0.0), (-0.5, 48.0), (7.0, 100.0)):
        values = start + factor * rows
        assert _counts_rows(rows, values)
        for more, counts in ((1.0, True), (-1.0, True), (1.02, False), (-1.02, False), (1.9, False)):
            assert _counts_rows(rows, values + factor * more * (rows == 4)) == counts
    assert _counts_rows(rows[:3], 3.0 * rows[:3])
    assert not _counts_rows(rows[:2], 3.0 * rows[:2])
    assert not _counts_rows(np.array([4, 4, 4]), np.array([1.0, 2.0, 3.0]))
    assert _counts_rows(rows, np.full(4, 5.0))


@pytest.mark.parametrize(
    ("value", "true", "digits"),
    [(101.0, 100.0, 2), (99.0, 100.0, 2), (5.0, 5.0, 9), (2e-3, 1e-3, 0), (1.0, 0.0, 0)],
)
def test_digits_of_agreement_are_those_of_the_part_by_which_numbers_differ(
    value: float, true: float, digits: float
) -> None:
    assert _agreement(value, true) == pytest.approx(digits)


@pytest.mark.parametrize(
    ("value", "digits"),
    [(48.8584, 6), (48.0, 2), (1200.0, 2), (0.005, 1), (1.5e-12, 2), (488_584_123.0, 9), (1 / 3, 9), (2e20, 1)],
)
def test_a_number_has_as_many_digits_as_must_be_written(value: float, digits: int) -> None:
    assert _written(value) == digits


def test_fine_numbers_may_be_degrees_and_have_more_decimals_than_three_or_as_many_as_are_asked_for() -> None:
    sizes = np.array([48.8584, 48.858, 48.00125, 179.9999, 180.0, 180.0001, 4e4, np.nan, np.inf, 7.0, 0.00051])
    wanted = [True, False, True, True, False, False, False, False, False, False, True]
    assert is_fine(sizes).tolist() == wanted
    assert is_fine(np.array([48.8584, 48.85841, 48.858412]), 4).tolist() == [False, True, True]
    # Rounding makes no decimals.
    assert is_fine(np.array([48.858 + 0.7e-9, 48.858 + 1.5e-9])).tolist() == [False, True]


def test_how_far_the_nearest_is_agrees_with_looking_at_all() -> None:
    rng = np.random.default_rng(2)
    for count in (1, 2, 3, 10):
        known = np.sort(rng.uniform(0, 1, count))
        values = np.concatenate([rng.uniform(-1, 2, 50), known])
        wanted = np.abs(values[:, None] - known).min(axis=1)
        np.testing.assert_array_equal(_apart(known, values), wanted)
    near = _is_among(np.array([48.0]), np.array([48.00001, 48.0005, 48.0, 47.9999]), 1e-6)
    assert near.tolist() == [True, False, True, False]
    assert _is_among(np.array([2.0]), np.array([1.0]), 1.0).tolist() == [True]


def test_a_copy_may_be_half_a_kilometre_away_and_three_digits_must_agree() -> None:
    lonlat = np.array([[2.25, 48.5], [np.nan, np.nan], [-0.001, 60.0]])
    for largest, near in ((1.0, NEAR), (400.0, NEAR), (400.5, METRES), (5e6, METRES)):
        own = np.array([[largest, -largest / 2], [np.nan, np.nan], [1.0, 0.5]])
        sample = Sample(lonlat, own)
        targets = np.vstack([in_every_unit(lonlat), np.abs(own.T)])
        room = np.minimum(np.array([*NEARNESS, near, near])[:, None], 0.001 * targets)
        np.testing.assert_array_equal(sample._targets, targets)
        np.testing.assert_array_equal(sample._tolerance, room)
        low, high = sample._ranges
        np.testing.assert_array_equal(low, np.nanmin(targets - room, axis=1))
        np.testing.assert_array_equal(high, np.nanmax(targets + room, axis=1))


def copied(truth: Any, column: Any) -> str | None:
    return Sample(truth).copied_as(column, np.arange(len(truth)))


def single(value: float, truth: float = 48.8580012) -> str | None:
    return copied(np.array([[2.0, truth]]), np.array([value]))


def test_one_value_needs_five_digits() -> None:
    assert single(48.858) == single(-48.858) == "the latitude in degrees"
    assert single(48.86) is None
    assert single(48.8592) is None
    assert single(48.858, truth=48.8594) is None


def test_a_value_among_seven_needs_seven_digits_and_among_eight_there_must_be_more() -> None:
    rng = np.random.default_rng(3)
    truth = np.round(rng.uniform([10, 40], [20, 50], (8, 2)), 7)
    others = rng.uniform(1000, 2000, 8)
    for count, decimals, found in ((7, 4, False), (7, 5, True), (8, 5, False)):
        column = others[:count].copy()
        column[3] = np.round(truth[3, 1], decimals)
        answer = copied(truth[:count], column)
        assert answer == ("the latitude in degrees" if found else None), (count, decimals)


def test_a_value_that_stays_is_a_copy_where_it_is_right_in_half_of_its_rows() -> None:
    places = np.array([[2.345678, 48.876543], [2.456789, 48.765432], [2.567891, 48.654321]])
    for rows, found in (([0, 0, 1, 2], True), ([0, 1, 1], False), ([0, 1], True), ([0, 1, 2], False)):
        answer = copied(places[rows], np.full(len(rows), places[0, 1]))
        assert (answer is not None) == found, rows


@pytest.mark.parametrize(("share", "found"), [(16, False), (18, True), (20, True)])
def test_a_column_that_rises_with_sorted_places_must_meet_nine_of_ten(share: int, found: bool) -> None:
    truth = np.column_stack([np.full(20, 2.0), 48 + np.cumsum(np.random.default_rng(4).uniform(0.01, 0.05, 20))])
    column = np.where(np.arange(20) < share, truth[:, 1], 1000.0 + np.arange(20))
    assert (copied(truth, column) is not None) == found
    # In another order the same numbers are a copy.
    mixed = np.random.default_rng(5).permutation(20)
    assert copied(truth[mixed], column[mixed]) == "the latitude in degrees"


def test_values_with_gaps_are_few_however_many_gaps_there_are() -> None:
    truth = np.round(np.random.default_rng(7).uniform([10, 40], [20, 50], (30, 2)), 6)
    column = np.full(30, np.nan)
    column[[2, 9]] = truth[[2, 9], 1]
    assert Sample(truth).suspects(column[None]).tolist() == [True]
    assert copied(truth, column) == "the latitude in degrees"


def spread_places(count: int = 40) -> Any:
    return np.round(np.random.default_rng(8).uniform([10, 40], [20, 50], (count, 2)), 6) + 1e-7


def test_six_coordinates_of_other_rows_are_a_list_the_first_and_the_last_one_included() -> None:
    truth = spread_places()
    lat = np.sort(truth[:, 1])
    for chosen, found in (([0, 1, 2, 3, 4, 39], True), ([0, 35, 36, 37, 38, 39], True), ([0, 1, 2, 3, 39], False)):
        assert Sample(truth).lists_places(lat[chosen]) == found
        # In single precision, but not with less.
        assert Sample(truth).lists_places(lat[chosen] * (1 + 5e-8 * np.sign(45 - lat[chosen]))) == found
        assert not Sample(truth).lists_places(lat[chosen] * (1 + 1e-7 * np.sign(45 - lat[chosen])))


def test_a_column_with_four_coordinates_of_other_rows_is_looked_at_closer() -> None:
    truth = spread_places()
    lat = truth[:, 1]
    ends = [int(np.argmin(lat)), int(np.argmax(lat))]
    inner = [row for row in range(40) if row not in ends][:2]
    column = 1000.0 + np.arange(40)
    for count, part, found in ((4, 0.0, True), (4, 5e-8, True), (4, 1e-7, False), (3, 0.0, False)):
        some = lat[[*ends, *inner]][:count]
        wanted = column.copy()
        # Not in their own rows.
        at = [(row + 20) % 40 for row in [*ends, *inner]][:count]
        wanted[at] = some * (1 + part * np.sign(45 - some))
        assert Sample(truth).suspects(np.vstack([column, wanted])).tolist() == [False, found], (count, part)


@pytest.mark.parametrize("spread", [0.01, 0.1])
def test_numbers_of_as_many_decimals_as_the_places_of_a_small_town_are_no_list(spread: float) -> None:
    rng = np.random.default_rng(9)
    truth = np.round(rng.uniform([10, 40], [10 + spread, 40 + spread], (round(6000 * spread), 2)), 4)
    for _ in range(5):
        assert not Sample(truth).lists_places(np.round(rng.uniform(40, 40 + spread, 60), 4))
        assert not Sample(truth).lists_places(np.round(rng.uniform(10, 10 + spread, 60), 4))


def test_three_of_many_values_with_all_their_digits_are_a_copy_and_two_are_none() -> None:
    truth = spread_places()
    for count, found in ((2, False), (3, True)):
        # The others are larger than a coordinate is in any unit.
        column = 1e12 + 1e9 * np.random.default_rng(1).permutation(40)
        column[[5, 30, 17][:count]] = truth[[5, 30, 17][:count], 1]
        assert copied(truth, column) == ("the latitude in degrees" if found else None)
        near = 1e12 + 1e9 * np.arange(40)
        near[[5, 30, 17][:count]] = np.round(truth[[5, 30, 17][:count], 1], 2)
        assert Sample(truth).suspects(np.vstack([column, near])).tolist() == [found, found]


@pytest.mark.parametrize("laps", [1, 2, 3])
def test_numbers_that_fit_another_lap_as_well_as_their_own_prove_nothing(laps: int) -> None:
    rng = np.random.default_rng(10)
    lap = rng.uniform([10, 40], [20, 50], (60 // laps, 2))
    truth = np.tile(lap, (laps, 1)) + rng.uniform(-1e-6, 1e-6, (60, 2))
    unit, everything = NAMES.index("the latitude in degrees"), np.ones(60, bool)
    sample = Sample(truth)
    assert sample._beyond_chance(everything, unit, truth[:, 1], np.arange(60), 1e-3) == (laps == 1)


@pytest.mark.parametrize(
    ("lats", "agree", "sharpness", "told"),
    [
        # Of 100 places, three that agree to a thousandth may be chance, and to a hundred-thousandth not.
        (np.linspace(10, 60, 100), 3, 1e-3, False),
        (np.linspace(10, 60, 100), 3, 2e-5, True),
        (np.linspace(10, 60, 300), 3, 1e-3, True),
        # Rows of one place count once.
        (np.r_[np.linspace(10, 60, 50), np.full(250, 70.0)], 3, 1e-3, False),
        (np.full(40, 48.85), 10, 1e-3, False),
        (np.full(40, 48.85), 11, 1e-3, True),
    ],
)
def test_how_many_must_agree_depends_on_the_places_and_on_how_closely_it_was_looked(
    lats: FloatArray, agree: int, sharpness: float, told: bool
) -> None:
    sample = Sample(np.column_stack((np.full(len(lats), 2.35), lats)))
    values = np.where(np.arange(len(lats)) < agree, lats, np.nan)
    unit = NAMES.index("the latitude in degrees")
    assert sample._beyond_chance(~np.isnan(values), unit, values, np.arange(len(lats)), sharpness) == told
