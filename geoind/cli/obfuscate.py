"""`geoind obfuscate`: a file of true places in, a file of reports out."""

import argparse
import signal
import sys
from pathlib import Path
from types import FrameType

from geoind.cli.parameters import add_privacy, privacy_of
from geoind.errors import GeoindError, InvalidInputError

__all__ = ["add_to"]


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    from geoind.files.formats import FORMATS

    parser = commands.add_parser(
        "obfuscate",
        help="a file of true places in, a file of reports out",
        description="Write a copy of a file in which every place is a report that keeps the promise of "
        "geo-indistinguishability. The output appears whole or not at all, and tells what was promised: in its "
        "Parquet metadata, or in OUT.geoind.json.",
    )
    parser.add_argument(
        "source",
        metavar="IN",
        help="CSV, TSV, NDJSON, GeoJSON, Parquet, ..., or a folder of Parquet; - is standard input",
    )
    parser.add_argument("target", metavar="OUT", help="a file of the same format; - is standard output")
    add_privacy(parser, reports=True)
    columns = parser.add_argument_group("where the places are")
    columns.add_argument("--lat", metavar="COLUMN", help="degrees [the column called lat or latitude]")
    columns.add_argument("--lon", metavar="COLUMN", help="degrees [the column called lon, lng, long or longitude]")
    columns.add_argument("--geometry", metavar="COLUMN", help="points in Parquet [what the file declares]")
    columns.add_argument("--crs", help="of --geometry, such as EPSG:4326, if the file does not declare it")
    columns.add_argument("--layer", metavar="NAME", help="of a GeoPackage and the like")
    columns.add_argument("--format", choices=FORMATS, help="where the names do not tell")
    columns.add_argument("--delimiter", metavar="CHARACTER", help="between the fields of a CSV file, or 'tab'")
    columns.add_argument(
        "--no-header", action="store_true", help="the first line is a record; --lat and --lon are numbers, from 1"
    )
    bad = parser.add_argument_group("bad records")
    bad.add_argument("--rejects", metavar="FILE", help="write them there, with true places, instead of stopping")
    bad.add_argument(
        "--missing", choices=("raise", "keep"), default="raise", help="records without a place [raise]"
    )
    keyed = parser.add_argument_group("the same noise again for the same record")
    keyed.add_argument("--key-file", metavar="FILE", help="holds the secret: 64 hexadecimal digits, or 32 bytes")
    keyed.add_argument("--id", metavar="COLUMN", help="tells records apart")
    parser.add_argument("--workers", type=int, metavar="N", help="processes, for a folder [one per core]")
    parser.add_argument("--quiet", action="store_true", help="no summary")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Obfuscate the file, or the folder."""
    if Path(options.source).is_dir():
        from geoind.cli.folder import run_folder

        run_folder(options)
        return
    if options.workers is not None:
        raise InvalidInputError("--workers is for a folder of Parquet files")
    from geoind.adapters.keys import Key
    from geoind.cli.progress import ProgressBar
    from geoind.files import obfuscate_file

    bar = ProgressBar("reports")
    # So that a job that is told to end cleans up, too.
    before = signal.signal(signal.SIGTERM, _end)
    try:
        summary = obfuscate_file(
            options.source,
            options.target,
            **privacy_of(options),
            lat=options.lat,
            lon=options.lon,
            geometry=options.geometry,
            crs=options.crs,
            layer=options.layer,
            format=options.format,
            delimiter={"tab": "\t", "\\t": "\t"}.get(options.delimiter, options.delimiter),
            header=not options.no_header,
            rejects=options.rejects,
            missing=options.missing,
            key=None if options.key_file is None else Key.in_file(options.key_file).read(),
            identity=options.id,
            progress=bar,
        )
    except BrokenPipeError:
        raise
    except OSError as error:
        # Not the error itself: what an operating system or a library says may quote what it was given.
        kept = "" if options.target == "-" else "; nothing was written"
        raise GeoindError(f"{error.strerror or 'input or output failed'}{kept}") from None
    finally:
        signal.signal(signal.SIGTERM, before)
        bar.clear()
    if not options.quiet:
        promise = summary.promise
        print(f"{summary.reports:,} reports, epsilon {promise.epsilon:.6g} per metre", file=sys.stderr)
        if summary.rejected:
            print(f"{summary.rejected:,} bad records are in {options.rejects}", file=sys.stderr)
        if summary.left:
            print(f"left as they are, do they tell places? {', '.join(summary.left)}", file=sys.stderr)


def _end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    raise SystemExit(128 + number)
