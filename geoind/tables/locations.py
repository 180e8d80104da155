"""The columns of a table's places: found by the schema, read to degrees, written with other places."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from geoind.arrays import FloatArray
from geoind.errors import InvalidInputError
from geoind.space.crs import LONLAT, as_crs, from_lonlat, same_crs, to_lonlat
from geoind.tables.geoparquet import declared_crs, geometry_columns
from geoind.tables.names import coordinate_columns, listed
from geoind.tables.places import Flags, GeometryColumn, LonLatColumns, finite
from geoind.tables.where import LonLat, Points

__all__ = ["EMPTY", "Locations", "crs_of"]

EMPTY = " is empty"
"""The end of the reason why a row has no place."""


@dataclass(frozen=True)
class Locations:
    """Where the places of a table are.

    Examples
    --------
    >>> batch = pa.RecordBatch.from_pydict({"lat": ["48.86", "x"], "lon": ["2.35", "2.35"]})
    >>> truths, problems = Locations.of(batch.schema, ()).read(batch)
    >>> truths[0][0].tolist(), problems
    ([2.35, 48.86], {1: 'latitude must be a finite number'})
    """

    places: tuple[LonLat | Points, ...]

    @classmethod
    def of(cls, schema: pa.Schema, given: tuple[LonLat | Points, ...]) -> "Locations":
        """Return the given columns, or those that the schema declares, or those with the usual names."""
        declared = geometry_columns(schema)
        if not given and not declared:
            return cls((LonLat(*coordinate_columns(schema.names)),))
        if not given or given[0] == Points(None, getattr(given[0], "crs", None)):
            if not declared:
                raise InvalidInputError("`crs=` is the CRS of a geometry, and no column is declared to be one")
            given = (Points(declared[0], given[0].crs if given and isinstance(given[0], Points) else None),)
        return cls(
            tuple(
                Points(place.geometry, _crs(schema, place)) if isinstance(place, Points) else place
                for place in given
            )
        )

    @property
    def names(self) -> list[str]:
        """The columns."""
        return [name for place in self.places for name in place.names]

    def read(self, batch: pa.RecordBatch, *, missing: bool = False) -> tuple[list[FloatArray], dict[int, str]]:
        """Return (n, 2) degrees for each place of a row, and which rows are bad, and why.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
            At least the columns of the places.
        missing : bool
            Whether rows without a place are good.
        """
        truths, reasons = [], dict[int, str]()
        for place in self.places:
            column = _column(batch, place)
            truth = _degrees(place, column)
            truths.append(truth)
            which = f"{' and '.join(place.names)}: " if len(self.places) > 1 else ""
            flaws = list(column.problems())
            if not missing:
                flaws += [(rows, what + EMPTY) for rows, what in column.gaps()]
            if isinstance(place, Points):
                flaws.append(
                    (finite(column.coordinates) & ~_on_earth(truth), "point must lie on Earth in its CRS")
                )
            for rows, reason in flaws:
                for row in np.flatnonzero(rows).tolist():
                    reasons.setdefault(row, which + reason)
        return truths, reasons

    def written(
        self, batch: pa.RecordBatch, reports: Sequence[FloatArray], decimals: int | None
    ) -> dict[str, pa.Array]:
        """Return the columns, in their own types, with other places; without decimals, numbers instead of text."""
        columns: dict[str, pa.Array] = {}
        for place, made in zip(self.places, reports, strict=True):
            coordinates = from_lonlat(made, crs_of(place))
            if np.isinf(coordinates).any():
                raise InvalidInputError("the CRS has no coordinates for some reports: use one that covers them")
            columns |= _column(batch, place).written(coordinates, decimals)
        return columns


def crs_of(place: LonLat | Points) -> str:
    """Return the CRS of a place's columns."""
    return place.crs or LONLAT if isinstance(place, Points) else LONLAT


def _crs(schema: pa.Schema, place: Points) -> str:
    if place.geometry is None or schema.names.count(place.geometry) != 1:
        raise InvalidInputError(
            f"column {place.geometry!r} must exist once, the columns are {listed(schema.names)}"
        )
    crs = as_crs(declared_crs(schema, place.geometry) or place.crs, f"column {place.geometry!r}")
    if place.crs is not None and not same_crs(crs, as_crs(place.crs, "crs")):
        raise InvalidInputError(f"column {place.geometry!r} declares another CRS than `crs=`")
    return crs


def _column(batch: pa.RecordBatch, place: LonLat | Points) -> LonLatColumns | GeometryColumn:
    if isinstance(place, LonLat):
        return LonLatColumns(batch, place.lon, place.lat)
    return GeometryColumn(batch, place.geometry or "")


def _degrees(place: LonLat | Points, column: LonLatColumns | GeometryColumn) -> FloatArray:
    if isinstance(column, LonLatColumns):
        return column.coordinates
    if any(not same_crs(crs_of(place), f"EPSG:{srid}") for srid in column.srids):
        raise InvalidInputError(f"column {column.name!r} has another CRS than its own geometries")
    return to_lonlat(column.coordinates, crs_of(place))


def _on_earth(lonlat: FloatArray) -> Flags:
    return np.asarray((np.abs(lonlat[:, 0]) <= 180) & (np.abs(lonlat[:, 1]) <= 90))
