"""What several parts of one release share: the order of their rows, their digests and one charge."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from geoind import InvalidInputError, Ledger
from geoind.tables.columns import clock_columns
from geoind.tables.order import RowOrder
from geoind.tables.parts import Part, decide_release
from geoind.tables.recipe import Recipe
from geoind.tables.release import Release
from geoind.tables.table import Table

POINTS: dict[str, Any] = {"epsilon": 0.001, "person": "who", "id_column": "trip", "key": bytes(32)}
TRACES: dict[str, Any] = {"epsilon": 0.001, "person": "who", "time": "at", "method": "sparse", "key": bytes(32)}


def rows(size: int = 60) -> pa.RecordBatch:
    rng = np.random.default_rng(1)
    columns = {
        "trip": np.arange(size),
        "who": np.repeat(["ana", "ben"], size // 2),
        "at": np.tile(np.arange(size // 2) * 60.0, 2),
        "lon": rng.normal(2.3, 0.1, size),
        "lat": rng.normal(48.8, 0.1, size),
    }
    return pa.RecordBatch.from_pydict(columns)


def changed(batch: pa.RecordBatch, name: str, values: Any) -> pa.RecordBatch:
    return batch.set_column(batch.schema.get_field_index(name), name, pa.array(values))


def part_of(options: dict[str, Any], name: str = "") -> Part:
    return Part(Table(Recipe.of(**options), rows().schema), name=name)


def counted(part: Part) -> Release:
    return Release.of(part.table.recipe, part.count([rows()]), part.table)


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    with Ledger("sqlite://", budget=10.0) as made:
        yield made


def judged(parts: list[Any]) -> bool:
    total = RowOrder()
    for places in parts:
        order = RowOrder()
        order.add(places)
        total.merge(order)
    return total.is_sorted


def test_the_last_parts_do_not_stand_for_the_whole_table() -> None:
    rng = np.random.default_rng(0)
    country = rng.normal([5, 45], [8, 5], (60_000, 2))
    cells = np.floor(country[:, 0] * 4) * 1000 + np.floor(country[:, 1] * 4)
    grouped = np.array_split(country[np.argsort(cells)], 60)
    town = np.array_split(rng.normal([2.35, 48.86], 0.01, (40_000, 2)), 40)
    assert judged([*(part[rng.permutation(len(part))] for part in grouped), *town])
    both = np.concatenate([country, *town])
    assert not judged(np.array_split(both[rng.permutation(len(both))], 100))


def test_numbers_that_are_no_times_do_not_explain_an_order() -> None:
    curve = np.linspace(1e8, 4.2e9, 50).astype(np.uint32)
    assert clock_columns(pa.RecordBatch.from_pydict({"curve": curve, "at": np.linspace(1.7e9, 1.8e9, 50)})) == [
        "at"
    ]
    batch = changed(rows(), "trip", np.arange(60) + 1_700_000_000)
    assert part_of(POINTS).table.clocks(batch) == []


@pytest.mark.parametrize("options", [POINTS, TRACES], ids=["points", "traces"])
def test_a_part_is_drawn_in_any_order_of_rows_and_in_any_batches_but_with_no_other_row(
    options: dict[str, Any],
) -> None:
    release = counted(part_of(options))

    def drawn(*batches: pa.RecordBatch) -> int:
        # A new one, as in another process: a part may remember its rows.
        return sum(len(made) for made, _, _ in part_of(options, "partition 3").draw(batches, release))

    by_time = rows().take(np.argsort(rows()["at"].to_numpy(), kind="stable"))
    for batches in ([rows()], [rows().slice(0, 7), rows().slice(7)], [by_time]):
        assert drawn(*batches) == 60
    others = [
        changed(rows(), "who", ["ana"] * 30 + ["eva"] * 30),
        changed(rows(), "lon", rows()["lon"].to_numpy() + 1e-6),
        rows().slice(1),
        changed(rows(), "trip", np.arange(60)[::-1]),
        changed(rows(), "at", rows()["at"].to_numpy() + 1.0),
    ]
    for number, batch in enumerate(others):
        if number == (4 if options is POINTS else 3):
            continue
        with pytest.raises(InvalidInputError, match="partition 3 has other rows than when they were counted"):
            drawn(batch)
    assert drawn() == 0


def test_a_part_that_changed_is_not_charged(ledger: Ledger) -> None:
    release = counted(part_of(POINTS))
    for later in (rows().slice(1), changed(rows(), "who", ["ana"] * 60)):
        with pytest.raises(InvalidInputError, match="has other rows than when they were counted"):
            part_of(POINTS, "partition 3").tags([later], release)
    lost = part_of(POINTS).tags([rows()], release)
    lost.counts["ben"] -= 1
    with pytest.raises(InvalidInputError, match="input changed"):
        release.charge(ledger, lambda: [lost], "job")
    assert ledger.lifetime("ana") == ledger.lifetime("ben") == 0.0


def charged(parts: list[tuple[Part, pa.RecordBatch]], ledger: Ledger) -> None:
    decide_release(parts[0][0].table, lambda work: [work(part, [rows]) for part, rows in parts], ledger, "job")


@pytest.mark.parametrize("more", [{}, {"same_place": 100.0, "id_column": None}], ids=["points", "cells"])
def test_several_parts_are_charged_as_one_table(more: dict[str, Any], ledger: Ledger) -> None:
    options = {**POINTS, **more}
    whole, pieces = part_of(options), [part_of(options), part_of(options)]
    charged([(whole, rows())], ledger)
    once = [ledger.lifetime(person) for person in ("ana", "ben")]
    halves = [rows().slice(0, 31), rows().slice(31)]
    charged(list(zip(pieces, halves, strict=True)), ledger)
    assert [ledger.lifetime(person) for person in ("ana", "ben")] == once


def test_traces_of_persons_in_two_parts_are_charged_as_one_table(ledger: Ledger) -> None:
    whole, pieces = part_of(TRACES), [part_of(TRACES), part_of(TRACES)]
    charged([(whole, rows())], ledger)
    once = [ledger.lifetime(person) for person in ("ana", "ben")]
    charged([(part, rows().slice(at, 30)) for part, at in zip(pieces, (0, 30), strict=True)], ledger)
    assert [ledger.lifetime(person) for person in ("ana", "ben")] == once
