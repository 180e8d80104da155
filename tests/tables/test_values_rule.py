"""The rule by which a column repeats true places, told once more in plain loops: both give the same answers."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from geoind.tables.units import METRES, NAMES, NEAR, NEARNESS, in_every_unit
from geoind.tables.values import Sample
from tests.trials import trials

Pairs = list[tuple[float, int]]
"""Numbers that are there, and their rows."""


def improbable(agree: float, expected: float) -> bool:
    """Return whether a Poisson variable is as large once in ten million times at most, by Chernoff's bound."""
    if agree <= expected:
        return False
    return bool(math.exp(agree - expected) * (expected / agree) ** agree < 1e-7)


def targets_of(sample: Sample) -> list[list[float]]:
    rows = [list(row) for row in in_every_unit(sample.lonlat)]
    return rows if sample.own is None else [*rows, *(list(map(abs, axis)) for axis in sample.own.T)]


def tolerance_of(unit: int, target: float, largest: float) -> float:
    own = NEAR if largest <= 400 else METRES
    return min(NEARNESS[unit] if unit < len(NEARNESS) else own, 0.001 * target)


def copied(sample: Sample, values: Iterable[float], rows: Iterable[int]) -> str | None:
    """Return the unit in which values repeat a coordinate."""
    everything = zip((abs(float(value)) for value in values), map(int, rows), strict=True)
    pairs = [(value, row) for value, row in everything if not math.isnan(value)]
    largest = 0.0 if sample.own is None else float(np.nanmax(np.abs(sample.own), initial=0))
    targets = targets_of(sample)
    allowed = [[tolerance_of(unit, one, largest) for one in row] for unit, row in enumerate(targets)]
    often = [
        sum(abs(value - target[row]) <= near[row] for value, row in pairs)
        for target, near in zip(targets, allowed, strict=True)
    ]
    numbers = None if sample.numbers is None else [int(number) for number in sample.numbers]
    for unit in sorted(range(len(targets)), key=lambda unit: -often[unit])[:4]:
        for sharpness in (1e-3, 2e-5, 1e-6):
            sharp = [min(near, sharpness * one) for near, one in zip(allowed[unit], targets[unit], strict=True)]
            if often[unit] and repeats(targets[unit], sharp, pairs, numbers, sharpness):
                return NAMES[unit]
    return None


def repeats(
    target: Sequence[float], near: Sequence[float], pairs: Pairs, numbers: Sequence[int] | None, sharpness: float
) -> bool:
    """Return whether values repeat one coordinate, but for so little in each row."""
    hits = [(value, row) for value, row in pairs if abs(value - target[row]) <= near[row]]
    all_of, hit_of = Counter(value for value, _ in pairs), Counter(value for value, _ in hits)
    first = dict(reversed(hits))
    if len(all_of) < 8:
        first = {value: row for value, row in first.items() if 2 * hit_of[value] >= all_of[value]}
    else:
        if not beyond_chance(target, near, pairs, hits, sharpness):
            return False
        by_row = [value for value, _ in sorted(first.items(), key=lambda item: (item[1], item[0]))]
        steps = [later - earlier for earlier, later in pairwise(by_row)]
        one_way = len(steps) >= 4 and (all(step > 0 for step in steps) or all(step < 0 for step in steps))
        if one_way and 10 * len({row for _, row in hits}) < 9 * len({row for _, row in pairs}):
            return False
    evidence = []
    for value, row in sorted(first.items()):
        written = len(f"{value:.9g}".split("e")[0].replace(".", "").strip("0"))
        agree = -math.log10(max(abs(value - target[row]) / target[row], 1e-9)) if target[row] else 0.0
        if len(all_of) >= 8 or min(agree, written) >= 5:
            evidence.append(min(agree, written) - 1)
    if counts(first, numbers):
        evidence = sorted(evidence)[-2:]
    return sum(evidence) >= 4 + 2 * math.log10(len(all_of))


def beyond_chance(
    target: Sequence[float], near: Sequence[float], pairs: Pairs, hits: Pairs, sharpness: float
) -> bool:
    """Return whether values agree with their own rows more often than with others."""
    count = len(target)
    for shift in (count // 2, count // 3):
        strange = 0
        for value, row in pairs:
            other = (row + shift) % count
            moved = target[other] != target[row]
            strange += moved and abs(value - target[other]) <= near[other]
        if shift and len(hits) < 3 * strange + 3:
            return False
    same = Counter("none" if math.isnan(one) else repr(one) for one in target)
    meets = sum(
        one - room <= value <= one + room for value, _ in pairs for one, room in zip(target, near, strict=True)
    )
    strange = meets - sum(same[repr(target[row])] for _, row in hits)
    return improbable(len(hits), max(sharpness / 1e-3, strange) / max(1, count - max(same.values())))


def counts(first: dict[float, int], numbers: Sequence[int] | None) -> bool:
    """Return whether values go on by the same step from row to row, but for one step."""
    points = [(row if numbers is None else numbers[row], value) for value, row in sorted(first.items())]
    low, high = (end(points, key=lambda point: point[0]) for end in (min, max)) if points else ((0, 0), (0, 0))
    if len(points) < 3 or low[0] == high[0]:
        return False
    slope = (high[1] - low[1]) / (high[0] - low[0])
    return all(abs(low[1] + slope * (row - low[0]) - value) <= 1.01 * abs(slope) for row, value in points)


def axes_of(sample: Sample) -> list[list[float]]:
    """Return the sizes of longitudes and of latitudes of all rows around."""
    around = sample.lonlat if sample.around is None else np.vstack([sample.lonlat, sample.around])
    return [sorted({abs(float(one)) for one in axis if not math.isnan(one)}) for axis in around.T]


def among(known: Sequence[float], value: float, part: float) -> bool:
    return any(abs(one - value) <= part * value for one in known)


def fine(values: Iterable[float], decimals: int) -> list[float]:
    """Return the different sizes that may be degrees and have more decimals than so many."""
    sizes = {abs(float(value)) for value in values}
    more = 10**decimals
    return sorted(size for size in sizes if size <= 180 and abs(size * more - round(size * more)) > 1e-6)


def listed(sample: Sample, values: Iterable[float]) -> bool:
    """Return whether numbers are coordinates of rows, whichever."""
    sizes = fine(values, 3)
    for known in filter(None, axes_of(sample)):
        inside = [size for size in sizes if known[0] <= size <= known[-1]]
        step = 1e-4 * max(1, round(40 * (known[-1] - known[0])))
        moved = [size + step * move for size in inside for move in (-4, -3, -2, -1, 1, 2, 3, 4)]
        for part in (1e-9, 6e-8):
            agree, strange = (sum(among(known, one, part) for one in some) for some in (inside, moved))
            if improbable(agree, max(1, strange) / 8):
                return True
    return False


def named(sample: Sample, values: Iterable[float]) -> bool:
    """Return whether numbers are coordinates of many rows, or both of one."""
    values = list(values)
    sizes = fine(values, 4)
    around = sample.lonlat if sample.around is None else np.vstack([sample.lonlat, sample.around])
    near = (all(any(abs(abs(float(one)) - size) <= 5.1e-6 for size in sizes) for one in place) for place in around)
    return listed(sample, values) or (len(sizes) > 1 and any(near))


def suspected(sample: Sample, column: Sequence[float]) -> bool:
    """Return whether a column comes near a coordinate often enough for a closer look."""
    sizes = [abs(float(value)) for value in column]
    largest = 0.0 if sample.own is None else float(np.nanmax(np.abs(sample.own), initial=0))
    most = max(
        sum(abs(size - one) <= tolerance_of(unit, one, largest) for size, one in zip(sizes, target, strict=True))
        for unit, target in enumerate(targets_of(sample))
    )
    met = False
    for known in filter(None, axes_of(sample)):
        inside = [one for one in sizes[:64] if fine([one], 3) and known[0] <= one <= known[-1]]
        met |= sum(among(known, one, 6e-8) for one in inside) >= 4
    return most >= 3 or (most > 0 and len({size for size in sizes[:16] if not math.isnan(size)}) < 8) or met


def random_sample(rng: np.random.Generator) -> Sample:
    """Return places of a town, of the world, sorted, on a lattice, or few, some of them missing."""
    count = int(rng.choice([1, 2, 3, 5, 8, 9, 13, 24, 40]))
    centre = np.array([rng.uniform(-170, 170), rng.uniform(-70, 70)])
    spread = rng.choice([1e-3, 0.03, 1.0])
    town = rng.normal(centre, spread, (count, 2))
    places = [
        town,
        town[np.argsort(town[:, 1])],
        rng.normal(centre, spread, (3, 2))[rng.integers(0, 3, count)],
        centre + np.arange(count)[:, None] * rng.choice([1e-4, 1e-3]),
        centre + np.column_stack([np.arange(count) % 5, np.arange(count) // 5]) * 1e-3,
    ][int(rng.integers(5))]
    places = np.round(places, int(rng.integers(3, 8)))
    if rng.random() < 0.2:
        places[rng.random(count) < 0.2] = np.nan
    numbers = None if rng.random() < 0.5 else np.sort(rng.choice(500, count, replace=False))
    around = None if rng.random() < 0.5 else np.round(rng.normal(centre, spread, (20, 2)), 6)
    own = None
    if rng.random() < 0.3:
        own = places * rng.choice([1.1, 3000.0]) + 0.25
    return Sample(places, own, numbers, around)


def random_column(rng: np.random.Generator, sample: Sample, rows: Any) -> Any:
    """Return numbers of which some are those of their rows, or of others: rounded, in some unit, or moved."""
    count = len(rows)
    targets = np.array(targets_of(sample))
    unit = int(rng.choice([0, 1, 1, 1, 2, 3, 9, 12, 13, 23, 30, 41, len(targets) - 1]))
    own = targets[unit]
    middle = np.nanmedian(own) if np.isfinite(own).any() else 1.0
    others = [
        rng.normal(middle, 0.0005 * middle, count),
        rng.uniform(0.5, 2, count) * middle,
        np.sort(rng.uniform(0.99, 1.01, count)) * middle,
        np.full(count, middle * 1.01),
        middle + np.arange(count) * rng.choice([1e-4, 1e-3]),
        rng.choice(own, count),
        np.roll(own[rows], 1),
    ][int(rng.integers(7))]
    share = rng.choice([0.0, 0.05, 0.1, 0.2, 0.5, 0.85, 0.95, 1.0])
    column = np.where(rng.random(count) < share, own[rows] * rng.choice([1, 1, 1 + 1e-5]), others)
    if rng.random() < 0.7:
        digits = int(rng.integers(3, 10)) - 1 - math.floor(math.log10(middle)) if middle else 3
        column = np.round(column, digits)
    if rng.random() < 0.3:
        column = rng.choice(column[: int(rng.choice([2, 4, 7, 8]))], count)
    if rng.random() < 0.2:
        column = np.where(rng.random(count) < 0.3, np.nan, column)
    return column * rng.choice([1, -1])


def random_list(rng: np.random.Generator, sample: Sample) -> Any:
    """Return coordinates of some rows, whichever, or of nearly all, among others between them."""
    around = sample.lonlat if sample.around is None else np.vstack([sample.lonlat, sample.around])
    known = np.abs(around[:, int(rng.integers(2))])
    known = known[np.isfinite(known)]
    if not len(known):
        return np.array([1.23456, 2.34567])
    some = rng.choice(known, min(len(known), int(rng.integers(2, 12))), replace=False)
    some = [some, some.astype(np.float32).astype(float), some * (1 + rng.choice([5e-10, 2e-8, 5e-8, 9e-8]))][
        int(rng.integers(3))
    ]
    others = [
        rng.uniform(known.min(), known.max(), int(rng.integers(40))),
        known.min() + np.arange(int(rng.integers(40))) * 1e-4,
        rng.choice(known, int(rng.integers(20))) + 1e-4 * int(rng.integers(1, 5)),
        rng.uniform(0, 1e4, int(rng.integers(40))),
    ][int(rng.integers(4))]
    values = np.concatenate([some, np.round(others, int(rng.integers(3, 7)))])
    if rng.random() < 0.3:
        place = around[int(rng.integers(len(around)))]
        values = np.concatenate(
            [values[:3], np.round(place + rng.choice([0, 4e-6, -6e-6], 2), int(rng.integers(4, 8)))]
        )
    return rng.permutation(values) * rng.choice([1, -1], len(values))


CASES = trials(600)


@pytest.mark.parametrize("third", range(3))
def test_copies_of_random_places_are_those_of_the_plain_rule(third: int) -> None:
    answers: Counter[bool] = Counter()
    for seed in range(third, CASES, 3):
        rng = np.random.default_rng(seed)
        sample = random_sample(rng)
        count = len(sample.lonlat)
        several = rng.random() < 0.3
        rows = np.sort(rng.integers(0, count, 2 * count)) if several else np.arange(count)
        column = random_column(rng, sample, rows)
        wanted = copied(sample, column, rows)
        assert sample.copied_as(column, rows) == wanted, seed
        if not several:
            assert sample.suspects(column[None]).tolist() == [suspected(sample, column)], seed
        answers[wanted is not None] += 1
    assert CASES < 500 or min(answers.values()) > 0.2 * sum(answers.values())


@pytest.mark.parametrize("third", range(3))
def test_lists_of_random_places_are_those_of_the_plain_rule(third: int) -> None:
    answers: Counter[tuple[bool, bool]] = Counter()
    for seed in range(third, CASES, 3):
        rng = np.random.default_rng(10_000 + seed)
        sample = random_sample(rng)
        column = random_list(rng, sample)
        wanted = listed(sample, column), named(sample, column)
        assert (sample.lists_places(column), sample.names_place(column)) == wanted, seed
        answers[wanted] += 1
    assert CASES < 500 or (len(answers) == 3 and min(answers.values()) > 0.05 * sum(answers.values())), answers
