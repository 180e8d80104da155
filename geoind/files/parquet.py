"""Parquet and GeoParquet, a batch of rows at a time."""

from typing import IO, BinaryIO

from geoind.errors import InvalidInputError
from geoind.files.table import BATCH_ROWS, TableJob
from geoind.tables.promise import PARQUET_KEY, Promise

__all__ = ["obfuscate_parquet"]


def obfuscate_parquet(source: BinaryIO, target: IO[bytes], job: TableJob, promise: Promise) -> None:
    """Write a Parquet file with reports in place of the truth, and the promise in its metadata."""
    import pyarrow.parquet

    try:
        file = pyarrow.parquet.ParquetFile(source, pre_buffer=False)
        schema = job.find_columns(file.schema_arrow)
        told = {**(schema.metadata or {}), PARQUET_KEY: promise.to_json().encode()}
        schema = schema.with_metadata(told)
        job.total = file.metadata.num_rows
        groups = file.metadata.num_row_groups
        codec = file.metadata.row_group(0).column(0).compression if groups else "SNAPPY"
        with pyarrow.parquet.ParquetWriter(
            target, schema, compression="NONE" if codec == "UNCOMPRESSED" else codec
        ) as writer:
            for batch in job.batches(file.iter_batches(BATCH_ROWS)):
                writer.write_batch(batch.replace_schema_metadata(told))
    except pyarrow.ArrowException as error:
        # Not its message: that may quote what the file holds.
        raise InvalidInputError(f"the Parquet file cannot be read or written ({type(error).__name__})") from None
