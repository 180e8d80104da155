"""`geoind obfuscate`: files of true places in, files of reports out."""

import argparse
import csv
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from geoind.cli.parameters import add_privacy, add_together, privacy_of
from geoind.cli.reading import add_reading, reading_of, sources_named, where_of
from geoind.errors import GeoindError, InvalidInputError

if TYPE_CHECKING:
    from datetime import timedelta

    from geoind.budgets.ledger import Ledger

__all__ = ["add_to"]

MOST_DAYS = 1_000_000
"""A longer window is as good as none."""

WHOSE = (
    "say whose reports these are: --person COLUMN names the person, --each-row-a-person says that no person has "
    "two rows, --person-per-file that each file is one person. The reports of one person add up, so the promise "
    "of a release is stated per person"
)


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = commands.add_parser(
        "obfuscate",
        help="a file of true places in, a file of reports out",
        description="Write a file in which each place is replaced by a report with the promise of "
        "geo-indistinguishability. Only the reports and the columns of --keep are written. The output appears "
        "whole or not at all. Its release record is in its Parquet metadata, or in OUT.geoind.json.",
    )
    parser.add_argument(
        "sources",
        nargs="+",
        metavar="IN",
        help="CSV, TSV, NDJSON, GeoJSON, GPX (each also .gz, .zst, .zip), Parquet, GeoPackage, GeoLife's .plt, "
        "Google's Records.json and Timeline.json, ...; - is standard input; several files, patterns or folders "
        "make a folder",
    )
    parser.add_argument("target", metavar="OUT", help="a file of any of these formats; - is standard output")
    add_privacy(parser, reports=True)
    add_together(parser, mechanism=True)
    _add_declarations(parser)
    add_reading(parser, "where the places are")
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
    keyed.add_argument(
        "--key-file",
        metavar="FILE",
        help="64 hexadecimal digits, or 32 bytes. Anyone who has this key can undo the noise. Keep it secret to "
        "resume; delete it when done.",
    )
    keyed.add_argument("--id", metavar="COLUMN", help="identifies the record [its file and row]")
    paid = parser.add_argument_group("budgets")
    paid.add_argument("--ledger", metavar="URL", help="charge the persons there, such as sqlite:///budgets.db")
    paid.add_argument("--budget", type=float, metavar="E", help="epsilon per metre that a person may spend")
    paid.add_argument("--days", type=float, metavar="N", help="within so many days [a lifetime]")
    paid.add_argument("--job", metavar="NAME", help="the label of the charge [the name of OUT]")
    parser.add_argument(
        "--cancel",
        action="store_true",
        help="remove the unfinished work for OUT, and do nothing else; charges stay",
    )
    parser.add_argument("--workers", type=int, metavar="N", help="processes, for a folder [one per core]")
    parser.add_argument("--quiet", action="store_true", help="no summary")
    parser.set_defaults(run=run)


def _add_declarations(parser: argparse.ArgumentParser) -> None:
    persons = parser.add_argument_group("whose reports they are (needed)")
    unit = persons.add_mutually_exclusive_group()
    unit.add_argument("--person", metavar="COLUMN", help="names the person")
    unit.add_argument("--each-row-a-person", action="store_true", help="no person has two rows")
    unit.add_argument(
        "--person-per-file", action="store_true", help="each file is one person, with the file's name"
    )
    persons.add_argument(
        "--reports-per-person",
        type=int,
        metavar="N",
        help="at most so many reports of each person, chosen at random; the others are left out",
    )
    persons.add_argument(
        "--same-place",
        type=float,
        nargs="?",
        const=100.0,
        metavar="METRES",
        help="the same report for rows of a person in the same cell of so many metres [100]",
    )
    persons.add_argument(
        "--allow-total",
        type=float,
        metavar="EPSILON",
        help="accept that the reports of one person add up to this much per metre",
    )
    moving = parser.add_argument_group("people who move")
    moving.add_argument(
        "--trace",
        metavar="PERSON,TIME",
        help="the columns that say who and when: rows are traces, in the order of time for each person, and a "
        "session per person answers them; with --person-per-file only TIME",
    )
    moving.add_argument(
        "--method",
        choices=("switching", "sparse", "predictive", "independent"),
        help="how a session answers: a person who stays pays nothing (sparse), and tests are given up for the "
        "rest of an hour with too many moves (switching); a tested prediction; or fresh noise [switching]",
    )
    leaves = parser.add_argument_group("what leaves with the reports")
    leaves.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="A,B,C",
        help="these columns; no other one, and of traces also person and time",
    )
    leaves.add_argument(
        "--order",
        choices=("raise", "shuffle", "keep"),
        default="raise",
        help="rows whose order shows where they are: an error, random order (all in memory), or as they are "
        "[raise]",
    )


def run(options: argparse.Namespace) -> None:
    """Obfuscate the file, or the folder."""
    if options.cancel:
        _cancel(options.target)
        return
    from geoind import obfuscate_file
    from geoind.cli.progress import Progress
    from geoind.files.job import is_several

    several = is_several(options.sources)
    if several and options.target == "-":
        raise InvalidInputError("several files become a folder, not standard output")
    if options.workers is not None and (not several or options.workers < 1):
        raise InvalidInputError("--workers is for a folder, and must be at least 1")
    keywords = _keywords(options)
    ledger = _ledger(options)
    try:
        with _cleaning_up(), Progress() as line:
            keywords |= {"ledger": ledger, "progress": lambda count, share: line.count(count, "reports", share)}
            if several:
                sources_named(options.sources)
            source = options.sources if several else options.sources[0]
            summary = obfuscate_file(source, options.target, workers=options.workers, **keywords)
    except BrokenPipeError:
        raise
    except OSError as error:
        # Without the rest of its text, which may quote what the operating system or a library was given.
        kept = "" if options.target == "-" else "; nothing was written"
        raise GeoindError(f"{error.strerror or 'input or output failed'}{kept}") from None
    finally:
        if ledger is not None:
            ledger.close()
    if not options.quiet:
        print(summary, file=sys.stderr)
        if summary.rejected:
            print(f"bad records are in {options.rejects}, with their true places", file=sys.stderr)


def _cancel(target: str) -> None:
    from geoind.files import cancel

    if cancel(target):
        print(f"removed the unfinished work for {target!r}; what was charged stays charged", file=sys.stderr)
    else:
        print(f"there is no unfinished work for {target!r}", file=sys.stderr)


def _keywords(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options of the command as keywords."""
    from geoind.keys import Key

    person, time = _person_and_time(options)
    return {
        **privacy_of(options),
        **where_of(options),
        "person": person,
        "time": time,
        "method": options.method,
        "keep": next(csv.reader([",".join(options.keep)]), []),
        "reports_per_person": options.reports_per_person,
        "same_place": options.same_place,
        "allow_total": options.allow_total,
        "missing": options.missing,
        "order": options.order,
        "key": None if options.key_file is None else Key.in_file(options.key_file),
        "id_column": options.id,
        "reading": reading_of(options),
        "rejects": options.rejects,
        "job": options.job,
        "spreadsheet_safe": options.spreadsheet_safe,
    }


def _person_and_time(options: argparse.Namespace) -> tuple[Any, str | None]:
    """Return whose reports they are, and the column of times of traces."""
    from geoind import EACH_ROW
    from geoind.tables import EACH_FILE

    person = options.person or (EACH_ROW if options.each_row_a_person else None)
    person = EACH_FILE if options.person_per_file else person
    if options.trace is None:
        if person is None:
            raise InvalidInputError(WHOSE)
        return person, None
    names = next(csv.reader([options.trace]), [])
    if person is None and len(names) == 2 and all(names):
        return names[0], names[1]
    if person is not None and len(names) == 1 and names[0]:
        return person, names[0]
    raise InvalidInputError(
        "--trace must be PERSON,TIME, the columns of the person and of the time; with --person or "
        "--person-per-file, TIME alone"
    )


def _ledger(options: argparse.Namespace) -> "Ledger | None":
    if options.ledger is None:
        if options.budget is not None or options.days is not None:
            raise InvalidInputError("--budget and --days go with --ledger")
        return None
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
    """Clean up after a signal to end, or when the terminal is closed, as after an interrupt."""
    names = [name for name in ("SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name)]
    # What is ignored stays so: nohup.
    caught = [number for name in names if signal.getsignal(number := signal.Signals[name]) != signal.SIG_IGN]
    before = {number: signal.signal(number, _end) for number in caught}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    raise SystemExit(128 + number)
