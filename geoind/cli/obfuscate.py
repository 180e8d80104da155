"""A file of true locations in, a file of reports out.

Write a file in which each true location is replaced by a report with the promise of geo-indistinguishability. Only
the reports and the columns of --keep are written. The output is complete or does not exist. Its release record is
in its Parquet metadata, or in OUT.geoind.json. Example: geoind obfuscate trips.csv reports.csv --person rider
--factor 4 --radius 200.
"""

import argparse
import csv
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from geoind.cli.shared import add_privacy, add_reading, find_sources, option, privacy_of, progress_line, reading_of
from geoind.errors import InvalidInputError

if TYPE_CHECKING:
    from geoind.budgets.ledger import Ledger

SAME_NAME = ("method", "reports_per_person", "same_place", "allow_total", "missing", "order", "rejects", "job")
"""Options with the name of their parameter in `obfuscate_file`."""
MOST_DAYS = 1_000_000


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    text = (
        "CSV, TSV, NDJSON, GeoJSON, GPX (each also .gz, .zst, .zip), Parquet, GeoPackage, GeoLife's .plt, "
        "Google's Records.json and Timeline.json, ...; - is standard input; several files or folders make a folder"
    )
    option(parser, "sources IN", text, nargs="+")
    option(parser, "target OUT", "a file of any of these formats; - is standard output")
    add_privacy(parser, reports=True, several=True)
    _add_declarations(parser)
    add_reading(parser, "where the locations are")
    option(parser, "--spreadsheet-safe", "in CSV and TSV, put a ' before texts that begin with =, +, - or @")
    group = parser.add_argument_group("bad records")
    text = "write them to this file, with their true locations, instead of stopping"
    option(group, "--rejects FILE", text, type=str)
    option(group, "--missing raise|keep", "records without a location: an error, or kept without", default="raise")
    group = parser.add_argument_group("the same noise again for the same record")
    text = "a secret of 64 hexadecimal digits or 32 bytes; anyone who has it can undo the noise"
    option(group, "--key-file FILE", text)
    option(group, "--id COLUMN", "column that identifies a record [its file and row]")
    group = parser.add_argument_group("budgets")
    option(group, "--ledger URL", "charge the persons in this database, such as sqlite:///budgets.db")
    option(group, "--budget E", "epsilon per metre that a person may spend")
    option(group, "--days N", "the budget is for this many days [for ever]", type=float)
    option(group, "--job NAME", "the label of the charge [the name of OUT]")
    option(parser, "--cancel", "remove the unfinished work for OUT, and do nothing else; charges stay")
    option(parser, "--workers N", "number of processes, for a folder [one per core]")
    option(parser, "--quiet", "print no summary")


def _add_declarations(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("whose reports they are (required)")
    unit = group.add_mutually_exclusive_group()
    option(unit, "--person COLUMN", "this column names the person of a row")
    option(unit, "--each-row-a-person", "no person has two rows")
    option(unit, "--person-per-file", "each file is one person, with the file's name")
    group = parser.add_argument_group("if the reports of a person reveal too much together")
    option(group, "--reports-per-person N", "use at most this many rows of each person, chosen at random")
    text = "one report for all rows of a person in the same square of this many metres [100]"
    option(group, "--same-place M", text, nargs="?", const=100.0)
    option(group, "--allow-total E", "accept this total epsilon per metre of one person")
    group = parser.add_argument_group("people who move")
    text = "these columns make traces of the rows, in order of time; with --person-per-file only TIME"
    option(group, "--trace PERSON,TIME", text)
    text = "sparse: free while a person stays; switching: with fewer tests; independent: fresh noise [switching]"
    option(group, "--method switching|sparse|predictive|independent", text)
    group = parser.add_argument_group("which columns are released with the reports")
    option(
        group, "--keep A,B,C", "these, unchanged [none; of traces person and time]", action="append", default=[]
    )
    text = "if the order of the rows shows where they are: an error, random order (in memory), or as it is"
    option(group, "--order raise|shuffle|keep", text, default="raise")


def run(options: argparse.Namespace) -> None:
    """Obfuscate the file, or the folder."""
    from geoind import obfuscate_file
    from geoind.files import cancel
    from geoind.files.job import is_several

    if options.cancel:
        removed = cancel(options.target)
        text = "unfinished work removed; what was charged stays charged" if removed else "no unfinished work"
        print(f"{options.target!r}: {text}", file=sys.stderr)
        return
    several = is_several(options.sources)
    if several and options.target == "-":
        raise InvalidInputError("several files become a folder, not standard output")
    keywords = _keywords(options)
    ledger, start = _ledger(options), time.monotonic()
    with ledger or nullcontext(), _cleaning_up(), progress_line() as show:

        def progress(count: int, share: float | None) -> None:
            speed = count / max(time.monotonic() - start, 1e-3)
            show(f"{count:,} reports, {speed:,.0f} per second", share)

        keywords |= {"ledger": ledger, "progress": progress}
        if several:
            find_sources(options.sources)
        source = options.sources if several else options.sources[0]
        summary = obfuscate_file(source, options.target, workers=options.workers, **keywords)
    if not options.quiet:
        print(summary, file=sys.stderr)
        if summary.rejected:
            print(f"bad records are in {options.rejects}, with their true locations", file=sys.stderr)


def _keywords(options: argparse.Namespace) -> dict[str, Any]:
    """Return the keywords of `obfuscate_file`."""
    from geoind.keys import Key

    person, time_column = _person_and_time(options)
    return {
        **privacy_of(options),
        **reading_of(options),
        **{name: getattr(options, name) for name in SAME_NAME},
        "person": person,
        "time": time_column,
        "keep": next(csv.reader([",".join(options.keep)]), []),
        "key": None if options.key_file is None else Key.in_file(options.key_file),
        "id_column": options.id,
        "spreadsheet_safe": options.spreadsheet_safe,
    }


def _person_and_time(options: argparse.Namespace) -> tuple[Any, str | None]:
    """Return the declared persons, and the time column of traces."""
    from geoind import EACH_ROW
    from geoind.tables import EACH_FILE

    person = options.person or (EACH_ROW if options.each_row_a_person else None)
    person = EACH_FILE if options.person_per_file else person
    if options.trace is None:
        return person, None
    names = next(csv.reader([options.trace]), [])
    if person is None and len(names) == 2 and all(names):
        return names[0], names[1]
    if person is not None and len(names) == 1 and names[0]:
        return person, names[0]
    raise InvalidInputError("--trace must be PERSON,TIME; with --person or --person-per-file, TIME alone")


def _ledger(options: argparse.Namespace) -> "Ledger | None":
    if options.ledger is None:
        if options.budget is not None or options.days is not None:
            raise InvalidInputError("--budget and --days need --ledger")
        return None
    if (options.budget is None) == (options.delta is None):
        raise InvalidInputError("--ledger needs a limit per person: --budget, or --delta, --level and --radius")
    if options.days is not None and not 0 < options.days <= MOST_DAYS:
        raise InvalidInputError(f"--days must be positive and at most {MOST_DAYS:,}, got {options.days!r}")
    from geoind.accounting.promise import Promise
    from geoind.budgets.ledger import Ledger

    level, radius, delta = options.level, options.radius, options.delta
    ledger = Ledger(
        options.ledger,
        budget=options.budget if delta is None else Promise(level=level, radius=radius, delta=delta),
        window=None if options.days is None else timedelta(days=options.days),
    )
    if ledger.in_memory:
        ledger.close()
        raise InvalidInputError("--ledger is a database in memory: give a file, such as sqlite:///budgets.db")
    return ledger


@contextmanager
def _cleaning_up() -> Iterator[None]:
    """Clean up after SIGTERM, SIGHUP and SIGQUIT as after an interrupt; ignored signals stay ignored (nohup)."""
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name)]
    caught = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, _exit) for number in caught}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _exit(number: int, frame: object) -> None:  # noqa: ARG001
    raise SystemExit(128 + number)
