"""Where the noise of a row comes from, and the reports that it makes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from geoind.arrays import FloatArray, IntArray
from geoind.errors import InvalidInputError
from geoind.mechanisms.protocol import Mechanism
from geoind.pipeline import obfuscate_lonlat
from geoind.randomness import KeyedRandomness, RandomnessLike, Words, as_randomness
from geoind.tables.identities import labels_of
from geoind.tables.keys import key_of_place
from geoind.tables.places import column_of
from geoind.tables.rows import Examined
from geoind.tables.unfinished import description

if TYPE_CHECKING:
    from geoind.tables.recipe import Recipe

__all__ = ["drawn", "permutation", "randomness_of", "tags_of"]


def randomness_of(
    recipe: "Recipe", examined: Examined, path: str | None, rows: IntArray | None, rng: RandomnessLike
) -> RandomnessLike:
    """Return the randomness of the examined rows: the recipe's key with their identities, or what was given."""
    if recipe.key is not None:
        if rng is not None:
            raise InvalidInputError("give a key or rng, not both")
        if recipe.id_column is not None:
            column = column_of(examined.batch, recipe.id_column)
            return KeyedRandomness(recipe.key.read(), labels_of(column, recipe.id_column))
        if path is None or rows is None:
            raise InvalidInputError("id_column must name the column that identifies a record")
        return KeyedRandomness(recipe.key.for_file(path), np.asarray(rows)[examined.rows])
    recipe.refuse_identity_without_key()
    if isinstance(rng, KeyedRandomness) and len(rng.labels) != len(examined.rows):
        flags = np.zeros(len(rng.labels), bool)
        flags[examined.rows] = True
        return rng.only(flags)
    if isinstance(rng, (int, np.integer)):
        # One generator for all places of a row: a seed used twice would give them the same noise.
        return as_randomness(rng, len(examined.rows))
    return rng


def drawn(truth: FloatArray, mechanism: Mechanism, source: RandomnessLike, number: int) -> FloatArray:
    """Return reports for one of the rows' places, NaN where it is missing.

    Equal places of a row have independent reports: the second place has a key of its own.
    """
    if isinstance(source, KeyedRandomness):
        source = _of_place(source, number)
    present = ~np.isnan(truth[:, 0])
    if present.all():
        return obfuscate_lonlat(truth, mechanism, rng=source)
    if isinstance(source, KeyedRandomness):
        source = source.only(present)
    reports = np.full_like(truth, np.nan)
    reports[present] = obfuscate_lonlat(truth[present], mechanism, rng=source)
    return reports


def tags_of(
    truths: Sequence[FloatArray], reports: Sequence[FloatArray], mechanism: Mechanism, source: KeyedRandomness
) -> Words:
    """Return (n, 2) words per row that stand for its record, its places and their reports under a key.

    The truth is part of it, and what draws the noise: a coarse report of another place, or of another mechanism,
    may be equal and is another draw.
    """
    tags = np.zeros((len(reports[0]), 2), np.uint64)
    name = description(mechanism) + str(getattr(_innermost(mechanism), "purpose", ""))
    for number, (truth, report) in enumerate(zip(truths, reports, strict=True)):
        present = ~np.isnan(report[:, 0])
        keyed = _of_place(source, number).only(present)
        tags[present] += keyed.words(truth[present], 2, f"tag of a place, {name}")
        tags[present] += keyed.words(report[present], 2, f"tag of a report, {name}")
    return tags


def _innermost(mechanism: object) -> object:
    inner = getattr(mechanism, "mechanism", None)
    return mechanism if inner is None else _innermost(inner)


def _of_place(source: KeyedRandomness, number: int) -> KeyedRandomness:
    """Return the randomness of the rows' place with this number."""
    return KeyedRandomness(key_of_place(source.key, number), source.labels) if number else source


def permutation(source: RandomnessLike, count: int) -> IntArray:
    """Return an order of rows that depends on key and identities alone; a fresh one without a key."""
    tags = as_randomness(source, count).words(np.zeros((count, 2)), 1, "order of rows")
    return np.argsort(tags[:, 0], kind="stable")
