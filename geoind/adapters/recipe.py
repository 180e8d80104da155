"""What every engine carries to its workers: which noise, for which column, under which key, for which record."""

import logging
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict, Unpack

import numpy as np

from geoind.adapters.arrow import Missing, obfuscate_batch, obfuscated_schema, place_columns, reported
from geoind.adapters.keys import Key, KeyLike, as_key
from geoind.adapters.points import column_of
from geoind.errors import InvalidInputError
from geoind.mechanisms.protocol import Mechanism
from geoind.pipeline import choose_mechanism
from geoind.randomness import KEY_BYTES, KeyedRandomness

if TYPE_CHECKING:
    import pyarrow as pa

    from geoind.randomness import Labels

__all__ = ["Options", "Recipe", "labels_of"]

log = logging.getLogger("geoind")


class Options(TypedDict, total=False):
    """The keywords that every adapter understands."""

    epsilon: float | None
    level: float | None
    radius: float | None
    mechanism: Mechanism | None
    lon: str | None
    lat: str | None
    geometry: str | None
    crs: str | None
    missing: Missing
    id_column: str | None
    key: KeyLike | None


@dataclass(frozen=True)
class Recipe:
    """How to obfuscate any batch of a table, the same way on every machine and at every attempt.

    The noise of a record depends on the key, on the record's identity, on its true place and on the mechanism,
    and on nothing else: not on the engine, the partition or the attempt. Serialise it, print it, log it: it
    holds the key's place, never shows the key.

    Parameters
    ----------
    mechanism, lon, lat, geometry, crs, missing
        As in `geoind.adapters.arrow.obfuscate_batch`.
    key : Key
        The secret under which noise is drawn.
    id_column : str, optional
        The column that names the record: whole numbers, text or bytes, without nulls. One name for one record,
        not for one person: two rows with the same name and the same place get the same report.

    Examples
    --------
    >>> import pyarrow as pa
    >>> recipe = Recipe.of(epsilon=0.01, id_column="trip", key=bytes(32))
    >>> batch = pa.RecordBatch.from_pydict({"trip": [7, 8], "lon": [2.2945, 2.35], "lat": [48.8584, 48.86]})
    >>> recipe.obfuscate(batch).slice(1) == recipe.obfuscate(batch.slice(1))
    True
    """

    mechanism: Mechanism
    key: Key
    lon: str | None = None
    lat: str | None = None
    geometry: str | None = None
    crs: str | None = None
    missing: Missing = "keep"
    id_column: str | None = None

    @classmethod
    def of(cls, **options: Unpack[Options]) -> "Recipe":
        """Return the recipe that an adapter's keywords describe; without a key it makes one, in memory."""
        unknown = set(options) - Options.__optional_keys__
        if unknown:
            raise InvalidInputError(f"there is no option {sorted(unknown)[0]!r}")
        rest = {name: value for name, value in options.items() if name not in ("epsilon", "level", "radius")}
        mechanism = choose_mechanism(
            epsilon=options.get("epsilon"),
            level=options.get("level"),
            radius=options.get("radius"),
            mechanism=options.get("mechanism"),
        )
        given = options.get("key")
        key = Key(secrets.token_bytes(KEY_BYTES)) if given is None else as_key(given)
        if given is None:
            log.warning(
                "no key was given: made %r. It lives in this result alone: computing the result again repeats "
                "its reports, another call makes new ones, which are a second release. To repeat the reports "
                "later, give key=Key.new_file(path)",
                key,
            )
        return cls(**{**rest, "mechanism": mechanism, "key": key})  # type: ignore[arg-type]

    def obfuscate(self, batch: "pa.RecordBatch") -> "pa.RecordBatch":
        """Return the batch with reports in place of true locations; records are named by `id_column`."""
        if self.id_column is None:
            raise InvalidInputError("id_column must name the column that identifies a record")
        labels = labels_of(column_of(batch, self.id_column), self.id_column)
        return self._obfuscate(batch, KeyedRandomness(self.key.read(), labels))

    def obfuscate_rows(self, batch: "pa.RecordBatch", *, path: str, rows: "Labels") -> "pa.RecordBatch":
        """Return the batch with reports; records are named by file and row, unless there is an `id_column`.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
            Some rows of one file.
        path : str
            The file's path within its dataset, with forward slashes.
        rows : array of int
            The number of each row in its file.
        """
        if self.id_column is not None:
            return self.obfuscate(batch)
        return self._obfuscate(batch, KeyedRandomness(self.key.for_file(path), rows))

    def schema(self, schema: "pa.Schema") -> "pa.Schema":
        """Return the schema of the batches that the recipe makes."""
        return obfuscated_schema(schema, **self._where)

    def place_columns(self, schema: "pa.Schema") -> list[str]:
        """Return the names of the columns in which places are written."""
        return place_columns(schema, **self._where)

    def count_persons(self, batch: "pa.RecordBatch", column: str) -> dict[str, int]:
        """Return how many reports each person will be in; a bad place is refused, a missing one has no report."""
        import pyarrow as pa

        flags = reported(batch, **self._where, crs=self.crs, missing=self.missing)
        persons = column_of(batch, column).filter(pa.array(flags))
        if persons.null_count:
            raise InvalidInputError(f"column {column!r} must name a person for every report, some are null")
        counts = persons.value_counts()
        return {
            str(person): count
            for person, count in zip(*(part.to_pylist() for part in counts.flatten()), strict=True)
        }

    @property
    def _where(self) -> dict[str, str | None]:
        return {"lon": self.lon, "lat": self.lat, "geometry": self.geometry}

    def _obfuscate(self, batch: "pa.RecordBatch", rng: KeyedRandomness) -> "pa.RecordBatch":
        return obfuscate_batch(
            batch,
            self.mechanism,
            **self._where,
            crs=self.crs,
            missing=self.missing,
            rng=rng,
        )


def labels_of(column: "pa.Array", name: str) -> "Labels":
    """Return one label per record: an array of whole numbers, or a list of text or bytes."""
    import pyarrow as pa

    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise InvalidInputError(f"column {name!r} must name every record, row {row} is null")
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_integer(column.type):
        return np.asarray(column.to_numpy())
    kinds = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view", "fixed_size_binary")
    is_named = any(getattr(pa.types, f"is_{kind}")(column.type) for kind in kinds)
    # An empty column of Python objects has no type yet.
    if not (is_named or (pa.types.is_null(column.type) and not len(column))):
        raise InvalidInputError(f"column {name!r} must be whole numbers, text or bytes, got {column.type}")
    values: list[str] | list[bytes] = column.to_pylist()
    return values
