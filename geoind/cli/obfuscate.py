"""`geoind obfuscate`: files of true places in, files of reports out."""

import argparse
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from geoind.cli.parameters import add_privacy, add_together, privacy_of
from geoind.cli.reading import add_reading, reading_of, where_of
from geoind.errors import GeoindError, InvalidInputError

if TYPE_CHECKING:
    from datetime import timedelta

    from geoind.budgets.ledger import Ledger
    from geoind.tables import Options

__all__ = ["add_to"]

MOST_DAYS = 1_000_000
"""Longer than that is for ever."""


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = commands.add_parser(
        "obfuscate",
        help="a file of true places in, a file of reports out",
        description="Write a copy of a file in which every place is a report that keeps the promise of "
        "geo-indistinguishability. The output appears whole or not at all, and tells what was promised: in its "
        "Parquet metadata, or in OUT.geoind.json. A column that tells the place beside the report is an error: "
        "--drop it, or --keep it if you know better.",
    )
    parser.add_argument(
        "sources",
        nargs="+",
        metavar="IN",
        help="CSV, TSV, NDJSON, GeoJSON, GPX (each also .gz, .zst, .zip), Parquet, GeoPackage, ...; - is standard "
        "input; several files, patterns or folders make a folder",
    )
    parser.add_argument(
        "target",
        metavar="OUT",
        help="a file: CSV, TSV, NDJSON and Parquet may become each other; - is standard output",
    )
    add_privacy(parser, reports=True)
    add_together(parser, mechanism=True)
    add_reading(parser, "where the places are")
    beside = parser.add_argument_group("what may stand beside a report")
    beside.add_argument(
        "--drop", action="append", default=[], metavar="COLUMN", help="leave it out; may be repeated"
    )
    beside.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="COLUMN",
        help="pass it on although it seems to tell the place",
    )
    beside.add_argument(
        "--order",
        choices=("raise", "shuffle", "keep"),
        default="raise",
        help="rows that are sorted by place: an error, in random order (all in memory), or as they are [raise]",
    )
    parser.add_argument(
        "--spreadsheet-safe",
        action="store_true",
        help="in CSV and TSV, put a ' before texts that a spreadsheet would run: those with =, +, - or @ first",
    )
    bad = parser.add_argument_group("bad records")
    bad.add_argument("--rejects", metavar="FILE", help="write them there, with true places, instead of stopping")
    bad.add_argument(
        "--missing", choices=("raise", "keep"), default="raise", help="records without a place [raise]"
    )
    keyed = parser.add_argument_group("the same noise again for the same record")
    keyed.add_argument("--key-file", metavar="FILE", help="holds the secret: 64 hexadecimal digits, or 32 bytes")
    keyed.add_argument("--id", metavar="COLUMN", help="tells records apart")
    persons = parser.add_argument_group("whose reports they are")
    persons.add_argument(
        "--person", metavar="COLUMN", help="names the person: the summary says who has most reports"
    )
    persons.add_argument(
        "--ledger", metavar="URL", help="charge their budgets there first, such as sqlite:///budgets.db"
    )
    persons.add_argument("--budget", type=float, metavar="E", help="epsilon per metre that a person may spend")
    persons.add_argument("--days", type=float, metavar="N", help="within so many days [a lifetime]")
    moving = parser.add_argument_group("people who move")
    moving.add_argument(
        "--trace",
        metavar="PERSON,TIME",
        help="the columns that say who and when: rows are traces, in the order of time for each person, and a "
        "session per person answers them; of a GPX file the person's name, and time",
    )
    moving.add_argument(
        "--method",
        choices=("switching", "sparse", "predictive", "independent"),
        help="how a session answers: nothing is paid while somebody stays (sparse), and tests are given up for "
        "the rest of an hour with too many moves (switching); a tested prediction; or fresh noise [switching]",
    )
    parser.add_argument(
        "--cancel",
        action="store_true",
        help="remove the unfinished work for OUT, and do nothing else; charges stay",
    )
    parser.add_argument("--workers", type=int, metavar="N", help="processes, for a folder [one per core]")
    parser.add_argument("--quiet", action="store_true", help="no summary")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Obfuscate the file, or the folder."""
    from geoind.cli.folder import run_folder
    from geoind.cli.progress import Progress
    from geoind.files import obfuscate_file
    from geoind.files.folder import is_several

    if options.cancel:
        _cancel(options.target)
        return
    named = _named(options)
    ledger = _ledger(options)
    try:
        with _cleaning_up(), Progress() as line:
            if is_several(options.sources):
                summary = run_folder(options, named, ledger, line)
            elif options.workers is not None:
                raise InvalidInputError("--workers is for a folder")
            else:
                summary = obfuscate_file(
                    options.sources[0],
                    options.target,
                    reading=reading_of(options),
                    rejects=options.rejects,
                    ledger=ledger,
                    progress=lambda count, share: line.count(count, "reports", share),
                    **named,
                )
    except BrokenPipeError:
        raise
    except OSError as error:
        # Not the error itself: what an operating system or a library says may quote what it was given.
        kept = "" if options.target == "-" else "; nothing was written"
        raise GeoindError(f"{error.strerror or 'input or output failed'}{kept}") from None
    finally:
        if ledger is not None:
            ledger.close()
    if summary is not None and not options.quiet:
        print(summary, file=sys.stderr)
        if summary.rejected:
            print(f"they are in {options.rejects}, with their true places", file=sys.stderr)


def _cancel(target: str) -> None:
    from geoind.files import cancel

    if cancel(target):
        print(f"removed the unfinished work for {target!r}; what was charged stays charged", file=sys.stderr)
    else:
        print(f"there is no unfinished work for {target!r}", file=sys.stderr)


def _named(options: argparse.Namespace) -> "Options":
    """Return the options of the command as keywords for any table."""
    from geoind.tables.keys import Key

    return {
        **privacy_of(options),
        **where_of(options),
        "drop": options.drop,
        "keep": options.keep,
        "missing": options.missing,
        "order": options.order,
        "key": None if options.key_file is None else Key.in_file(options.key_file),
        "id_column": options.id,
        "person_column": options.person,
        "trace": options.trace,
        "method": options.method,
    }


def _ledger(options: argparse.Namespace) -> "Ledger | None":
    if options.ledger is None:
        if options.budget is not None or options.days is not None:
            raise InvalidInputError("--budget and --days go with --ledger")
        return None
    if options.person is None and options.trace is None:
        raise InvalidInputError("--ledger needs --person, the column that names whose budget pays")
    if (options.budget is None) == (options.delta is None):
        raise InvalidInputError(
            "--ledger needs either --budget, the epsilon per metre that a person may spend, or --delta: then a "
            "person may spend --level within --radius"
        )
    from geoind.accounting.promise import Promise
    from geoind.budgets.ledger import Ledger

    level, radius, delta = options.level, options.radius, options.delta
    ledger = Ledger(
        options.ledger,
        budget=options.budget if delta is None else Promise(level=level, radius=radius, delta=delta),
        window=None if options.days is None else _window(options.days),
    )
    if ledger.in_memory:
        ledger.close()
        raise InvalidInputError(
            "--ledger names a database in memory, which forgets what was spent: give it a file, such as "
            "sqlite:///budgets.db"
        )
    return ledger


def _window(days: float) -> "timedelta":
    from datetime import timedelta

    if not 0 < days <= MOST_DAYS:
        raise InvalidInputError(f"--days must be positive and at most {MOST_DAYS:,}, got {days!r}")
    return timedelta(days=days)


@contextmanager
def _cleaning_up() -> Iterator[None]:
    """Let a job that is told to end, or whose terminal is closed, clean up as after an interrupt."""
    names = [name for name in ("SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name)]
    # What is ignored stays so: somebody said nohup.
    told = [number for name in names if signal.getsignal(number := signal.Signals[name]) != signal.SIG_IGN]
    before = {number: signal.signal(number, _end) for number in told}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    raise SystemExit(128 + number)
