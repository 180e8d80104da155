"""The matrix of a channel as a Parquet table.

The table has the positive entries, in the columns `input`, `output` and `probability`, ordered by input and
output. Of an `ExtendedMatrix` it has the kept entries and the column that is stored as it is. It is not
compressed: the digits of probabilities are random, and what is not compressed cannot expand.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from geoind.arrays import FloatArray, IntArray
from geoind.atomic import AtomicWriter
from geoind.channels.extended import ExtendedMatrix
from geoind.channels.rows import parts_of
from geoind.errors import InvalidInputError
from geoind.space.sites import Sites

__all__ = ["SCHEMA", "read_matrix", "write_matrix"]

SCHEMA = pa.schema({"input": pa.int32(), "output": pa.int32(), "probability": pa.float64()})
GROUP = 1 << 20
"""Rows that are written, and at most read, at a time."""
MOST_KEPT = 1 << 24
"""Most stored entries of an `ExtendedMatrix`: each is compared with all inputs."""


def write_matrix(path: str | Path, matrix: FloatArray | ExtendedMatrix, metadata: str) -> None:
    """Write what is stored of a matrix, with the metadata `geoind`."""
    schema = SCHEMA.with_metadata({"geoind": metadata})
    encoding = {"input": "DELTA_BINARY_PACKED", "output": "DELTA_BINARY_PACKED", "probability": "PLAIN"}
    with (
        AtomicWriter() as writer,
        pq.ParquetWriter(
            writer.open(path),
            schema,
            compression="none",
            use_dictionary=False,
            column_encoding=encoding,
            write_page_checksum=True,
        ) as file,
    ):
        for inputs, outputs, values in _entries(matrix):
            columns = [inputs.astype(np.int32), outputs.astype(np.int32), values]
            file.write_table(pa.table(columns, schema=schema), GROUP)


def read_matrix(
    file: pq.ParquetFile, inputs: Sites, outputs: int, extension: tuple[float, int] | None
) -> FloatArray | ExtendedMatrix:
    """Return the matrix of a file; `extension` has epsilon and report of an `ExtendedMatrix`."""
    shape = len(inputs), outputs
    if extension is None:
        matrix = np.zeros(shape)
        for at, values in _read(file, shape):
            matrix.reshape(-1)[at] = values
        matrix.flags.writeable = False
        return matrix
    if file.metadata.num_rows > MOST_KEPT:
        raise InvalidInputError(f"a matrix that is extended may have {MOST_KEPT:,} stored entries")
    numbers, value = (np.concatenate(parts) for parts in zip(*_read(file, shape), strict=True))
    row, column = np.divmod(numbers, outputs)
    epsilon, report = extension
    whole = column == report
    if not np.array_equal(row[whole], np.arange(len(inputs))):
        raise InvalidInputError("the output extension.report must have an entry for each input")
    order = np.lexsort((row, column))
    order = order[~whole[order]]
    return ExtendedMatrix(
        inputs, outputs, epsilon, (row[order], column[order], value[order]), report, value[whole]
    )


def _entries(matrix: FloatArray | ExtendedMatrix) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
    """Yield inputs, outputs and probabilities of the stored entries, in order."""
    if isinstance(matrix, ExtendedMatrix):
        inputs = np.concatenate([matrix.input, np.arange(len(matrix.column))])
        outputs = np.concatenate([matrix.output, np.full(len(matrix.column), matrix.report)])
        order = np.lexsort((outputs, inputs))
        yield inputs[order], outputs[order], np.concatenate([matrix.value, matrix.column])[order]
        return
    for part, rows in parts_of(matrix):
        inputs, outputs = np.nonzero(rows)
        yield inputs + part.start, outputs, rows[inputs, outputs]


def _read(file: Any, shape: tuple[int, int]) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield the numbers of the entries of a file, which are in order, each at most once, and their values."""
    before = -1
    if not shape[0] <= file.metadata.num_rows <= math.prod(shape):
        raise InvalidInputError("it must have at least one entry for each input, and at most one for each pair")
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    if any(group.column(at).compression != "UNCOMPRESSED" for group in groups for at in range(3)):
        raise InvalidInputError("it must not be compressed")
    for batch in file.iter_batches(GROUP):
        batch.validate(full=True)
        if any(column.null_count for column in batch.columns):
            raise InvalidInputError("no value may be missing")
        inputs, outputs, values = (column.to_numpy(zero_copy_only=False) for column in batch.columns)
        numbers: IntArray = inputs.astype(np.int64) * shape[1] + outputs
        in_range = (inputs >= 0) & (inputs < shape[0]) & (outputs >= 0) & (outputs < shape[1])
        if not in_range.all() or not (np.diff(numbers, prepend=before) > 0).all():
            raise InvalidInputError("its entries must be those of sites, in order, each once")
        yield numbers, values
        before = int(numbers[-1]) if len(numbers) else before
