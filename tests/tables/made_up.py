"""Made-up tables, and what is released of them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from geoind.arrays import FloatArray
from geoind.tables.parts import Part
from geoind.tables.recipe import Recipe
from geoind.tables.release import Release
from geoind.tables.table import Table

KEY = bytes(range(32))


def lonlat(count: int, seed: int = 0) -> FloatArray:
    """Return places around Paris, in random order."""
    return np.random.default_rng(seed).normal([2.35, 48.86], [0.08, 0.05], (count, 2)).round(6)


def table_of(count: int, seed: int = 0, **columns: Any) -> pa.Table:
    """Return a table of places and some more columns."""
    places = lonlat(count, seed)
    return pa.table({**columns, "lon": places[:, 0], "lat": places[:, 1]})


def in_batches(table: pa.Table, size: int | None = None) -> Iterator[pa.RecordBatch]:
    yield from table.combine_chunks().to_batches(size)


def released(
    *tables: pa.Table, size: int | None = None, paths: tuple[str, ...] = ("a", "b", "c", "d"), **options: Any
) -> tuple[Release, list[pa.Table]]:
    """Return the decisions about tables that are the parts of one release, and the reports of each."""
    usual = {} if {"mechanism", "level"} & options.keys() else {"epsilon": 0.001}
    recipe = Recipe.of(**{**usual, **options}).with_key()
    parts = [
        Part(Table(recipe, table.schema, path, len(tables) > 1))
        for table, path in zip(tables, paths, strict=False)
    ]
    total = parts[0].count(in_batches(tables[0], size))
    for part, table in zip(parts[1:], tables[1:], strict=True):
        total.merge(part.count(in_batches(table, size)), recipe.most_rows)
    release = Release.of(recipe, total, parts[0].table)
    made = []
    for part, table in zip(parts, tables, strict=True):
        batches = [batch for batch, _, _ in part.draw(in_batches(table, size), release)]
        schema = part.table.reported_schema
        made.append(pa.Table.from_batches(batches) if batches else schema.empty_table())
    return release, made
