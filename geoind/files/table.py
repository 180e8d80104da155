"""Tables of Arrow batches: bad rows found and set aside, the rest obfuscated."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from geoind.adapters.arrow import Missing, located, obfuscate_batch, obfuscated_schema
from geoind.adapters.geoparquet import geometry_columns
from geoind.adapters.points import column_of
from geoind.adapters.recipe import labels_of
from geoind.errors import InvalidInputError
from geoind.files.columns import coordinate_columns, telling_columns
from geoind.files.rejects import Rejects
from geoind.files.textbatch import Problem
from geoind.mechanisms.protocol import Mechanism
from geoind.randomness import KeyedRandomness

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["BATCH_ROWS", "TableJob"]

BATCH_ROWS = 1 << 17

ROW = re.compile(r"\brow \d+\b")
"""In the message of an error about a single row, and in no other."""


@dataclass
class TableJob:
    """What is done to every batch of a table, and how it went so far.

    Parameters
    ----------
    mechanism, lon, lat, geometry, crs, missing
        As in `geoind.adapters.arrow.obfuscate_batch`.
    key, identity : bytes and str, optional
        The secret and the column with each record's identity, for keyed noise.
    rejects : Rejects
        Where bad rows go; rows are counted from 0.
    progress : callable
        Told the number of reports so far, and the share of the rows.
    """

    mechanism: Mechanism
    lon: str | None
    lat: str | None
    geometry: str | None
    crs: str | None
    missing: Missing
    key: bytes | None
    identity: str | None
    rejects: Rejects
    progress: Callable[[int, float | None], None]
    total: int = 0
    reports: int = 0
    rows: int = 0
    left: list[str] = field(default_factory=list)

    def find_columns(self, schema: "pa.Schema") -> "pa.Schema":
        """Find out where the places are, and return the schema of the obfuscated batches."""
        import pyarrow as pa

        if self.geometry is None and (
            self.lon is not None or self.lat is not None or not geometry_columns(schema)
        ):
            self.lon, self.lat = coordinate_columns(schema.names, self.lon, self.lat)
        # With no rows: whatever is wrong with the columns is wrong before the first row.
        self._obfuscated(pa.RecordBatch.from_pylist([], schema=schema))
        places = {self.lon, self.lat, self.geometry or next(iter(geometry_columns(schema)), None)}
        self.left = telling_columns([name for name in schema.names if name not in places])
        return obfuscated_schema(schema, **self._where)

    def batches(self, batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        """Return the obfuscated batches, without their bad rows."""
        for batch in batches:
            try:
                result = self._obfuscated(batch)
            except InvalidInputError:
                result = self._obfuscated(self._without_bad_rows(batch))
            self.reports += int(located(result, **self._where).sum())
            self.rows += len(batch)
            self.progress(self.reports, self.rows / self.total if self.total else None)
            yield result

    def _without_bad_rows(self, batch: "pa.RecordBatch") -> "pa.RecordBatch":
        import pyarrow as pa

        reasons = dict(self._bad_rows(batch, 0))
        for row, reason in reasons.items():
            self.rejects.add([Problem(self.rows + row, reason, _as_json(batch.slice(row, 1)))])
        return batch.filter(pa.array([row not in reasons for row in range(len(batch))], pa.bool_()))

    def _bad_rows(self, batch: "pa.RecordBatch", first_row: int) -> Iterator[tuple[int, str]]:
        """Return the bad rows and what is bad about each, found by halving; other errors go on."""
        try:
            self._obfuscated(batch)
        except InvalidInputError as error:
            reason = ROW.sub("it", str(error))
            if reason == str(error):
                raise
            if len(batch) == 1:
                yield first_row, reason
                return
            half = len(batch) // 2
            yield from self._bad_rows(batch.slice(0, half), first_row)
            yield from self._bad_rows(batch.slice(half), first_row + half)

    def _obfuscated(self, batch: "pa.RecordBatch") -> "pa.RecordBatch":
        rng = None
        if self.key is not None and self.identity is not None:
            rng = KeyedRandomness(self.key, labels_of(column_of(batch, self.identity), self.identity))
        return obfuscate_batch(batch, self.mechanism, **self._where, crs=self.crs, missing=self.missing, rng=rng)

    @property
    def _where(self) -> Any:
        return {"lon": self.lon, "lat": self.lat, "geometry": self.geometry}


def _as_json(batch: "pa.RecordBatch") -> bytes:
    def plain(value: Any) -> str:
        return value.hex() if isinstance(value, bytes) else str(value)

    return json.dumps(batch.to_pylist()[0], default=plain, ensure_ascii=False).encode()
