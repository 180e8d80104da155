"""What is said about a whole table: the names of its columns, its metadata, its CRS, the path of its file."""

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from geoind.arrays import FloatArray
from geoind.errors import InvalidInputError
from geoind.tables.names import listed, tells_place
from geoind.tables.promise import PARQUET_KEY
from geoind.tables.reading import numbers_in
from geoind.tables.values import Sample, is_fine

__all__ = ["numbers_of_notes", "refuse_folders", "refuse_notes"]


def numbers_of_notes(
    schema: pa.Schema, *, keep: Collection[str], crs: Sequence[str], path: str
) -> dict[str, FloatArray]:
    """Return the numbers in all that goes with the reports and belongs to no row, by what they are in.

    Parameters
    ----------
    schema : pyarrow.Schema
        What is published.
    keep : collection of str
        Columns and entries that pass whatever they tell.
    crs : sequence of str
        In which coordinates are written.
    path : str
        Of the file in its folder, which its reports have, too.
    """
    numbers = {what: numbers_in([text])[0] for what, text in _texts(schema, keep, crs, path)}
    # A place has two coordinates of many decimals: most tables need no further look.
    return {what: values for what, values in numbers.items() if np.count_nonzero(is_fine(values)) > 1}


def refuse_notes(numbers: Mapping[str, FloatArray], samples: Sequence[Sample]) -> None:
    """Refuse a table about which something is said that tells the place of a row."""
    for what, values in numbers.items():
        if any(sample.names_place(values) for sample in samples):
            raise InvalidInputError(
                f"this would tell the place beside the report: coordinates of a row are in {what}. Change it, or "
                "leave it out with drop (--drop) where it is a column or an entry"
            )


def refuse_folders(path: str, keep: Collection[str]) -> None:
    """Refuse folders such as `lat=48.86/`, which readers of Parquet take for columns.

    Examples
    --------
    >>> refuse_folders("city=Paris/day=7/a.parquet", keep=())
    """
    for part in path.split("/")[:-1]:
        name, equals, _ = part.partition("=")
        if equals and name not in keep and tells_place(name):
            raise InvalidInputError(
                f"this would tell the place beside the report: the folder {name}=... tells a place by its name. "
                f"Rename it, or pass it on with keep={[name]} (--keep) if you know that it tells nothing"
            )


def _texts(schema: pa.Schema, keep: Collection[str], crs: Sequence[str], path: str) -> Iterator[tuple[str, str]]:
    passing = [field for field in schema if field.name not in keep]
    yield "the names of its columns", " ; ".join(f"{field.name} ; {field.type}" for field in passing)
    yield "its path", path
    yield "its CRS", " ; ".join(crs)
    for field in passing:
        if field.metadata:
            yield f"the metadata of column {listed([field.name])}", str(field.metadata)
    for entry, value in (schema.metadata or {}).items():
        name = entry.decode(errors="replace")
        if name not in keep and entry != PARQUET_KEY:
            yield f"entry {listed([name])} of its metadata", f"{name} ; {value.decode(errors='replace')}"
