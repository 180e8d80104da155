"""`geoind obfuscate IN_DIR OUT_DIR`: a folder of Parquet files."""

import argparse
import sys
from pathlib import Path

from geoind.adapters.dataset import obfuscate_dataset, parquet_files
from geoind.adapters.geoparquet import geometry_columns
from geoind.adapters.keys import Key
from geoind.cli.parameters import privacy_of
from geoind.cli.progress import ProgressBar
from geoind.errors import InvalidInputError
from geoind.files.columns import coordinate_columns, telling_columns
from geoind.pipeline import choose_mechanism

__all__ = ["run_folder"]


def run_folder(options: argparse.Namespace) -> None:
    """Obfuscate the folder; run again, it finishes what is missing."""
    import pyarrow.parquet as pq

    unfit = [name for name in ("format", "delimiter", "no_header", "rejects") if getattr(options, name)]
    if unfit:
        raise InvalidInputError(f"--{unfit[0].replace('_', '-')} is not for a folder of Parquet files")
    if options.target == "-":
        raise InvalidInputError("a folder becomes a folder, not standard output")
    if options.workers is not None and options.workers < 1:
        raise InvalidInputError(f"--workers must be at least 1, got {options.workers}")
    mechanism = choose_mechanism(**privacy_of(options))
    schema = pq.read_schema(Path(options.source) / parquet_files(options.source)[0])
    points = geometry_columns(schema) if options.lon is options.lat is None else []
    lon, lat = (None, None) if points else coordinate_columns(schema.names, options.lon, options.lat)
    bar = ProgressBar("pieces")
    try:
        done = obfuscate_dataset(
            options.source,
            options.target,
            workers=options.workers,
            progress=lambda count, total: bar(count, count / total),
            mechanism=mechanism,
            lon=lon,
            lat=lat,
            missing=options.missing,
            id_column=options.id,
            key=None if options.key_file is None else Key.in_file(options.key_file),
        )
    finally:
        bar.clear()
    if not options.quiet:
        found = f", {done.found:,} of {done.pieces:,} pieces were there already" if done.found else ""
        print(f"{done.rows:,} rows, epsilon {mechanism.epsilon:.6g} per metre{found}", file=sys.stderr)
        left = [name for name in telling_columns(schema.names) if name not in (lon, lat, *points)]
        if left:
            print(f"left as they are, do they tell places? {', '.join(left)}", file=sys.stderr)
