"""A file of true locations in, a file of reports out.

Write a file in which each true location is replaced by a report with the promise of geo-indistinguishability. Only
the reports and the columns of --keep are written. The output is complete or does not exist. Its release record is
in its Parquet metadata, or in OUT.geoind.json. Example: geoind obfuscate trips.csv reports.csv --person rider
--factor 4 --radius 200.
"""

import argparse
import csv
import math
import re
import sys
import time
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import geoind
from geoind import accounting, files, traces
from geoind.cli.program import (
    NOISE,
    add_privacy,
    add_reading,
    find_sources,
    given_to,
    level_of,
    option,
    privacy_of,
    progress_line,
    reading_of,
)
from geoind.errors import InvalidInputError
from geoind.files.job import cancel, is_several, obfuscate_file
from geoind.pipeline import choose_mechanism
from geoind.tables.recipe import EACH_FILE, EACH_ROW, method_of

MOST_DAYS = 1_000_000
STEPS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
STEP = re.compile(rf"(\d{{1,6}})\s*({'|'.join(STEPS)})")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    text = (
        "CSV, TSV, NDJSON, GeoJSON, GPX (each also .gz, .zst, .zip), Parquet, GeoPackage, GeoLife's .plt, "
        "Google's Records.json and Timeline.json, ...; - is standard input; several files or folders make a folder"
    )
    option(parser, "sources IN", text, nargs="+")
    option(parser, "target OUT", "a file of these formats, except GeoLife's and Google's; - is standard output")
    add_privacy(parser, reports=True, several=True)
    _add_declarations(parser)
    add_reading(parser, "where the locations are")
    option(parser, "--spreadsheet-safe", "in CSV and TSV, put a ' before texts that begin with =, +, - or @")
    option(parser, "--cells KIND:N", "write each report as its cell, in a column cell: h3:9, geohash:7")
    group = parser.add_argument_group("bad records")
    text = "write them to this file, with their true locations, instead of stopping"
    option(group, "--rejects FILE", text, type=str)
    option(group, "--missing raise|keep", "records without a location: an error, or kept without", default="raise")
    group = parser.add_argument_group("the same noise again for the same record")
    text = "a secret of 64 hexadecimal digits or 32 bytes; anyone who has it can undo the noise"
    option(group, "--key-file FILE", text, dest="key")
    option(group, "--id COLUMN", "column that identifies a record [its file and row]", dest="id_column")
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
    each = {"dest": "unit", "action": "store_const"}
    option(unit, "--each-row-a-person", "no person has two rows", const=EACH_ROW, **each)
    option(unit, "--person-per-file", "each file is one person, with the file's name", const=EACH_FILE, **each)
    group = parser.add_argument_group("if the reports of a person reveal too much together")
    option(group, "--reports-per-person N", "use at most this many rows of each person, chosen at random")
    text = "one report for all rows of a person in the same square of this many metres [100]"
    option(group, "--same-place M", text, nargs="?", const=100.0)
    option(group, "--allow-total E", "accept this total epsilon per metre of one person")
    group = parser.add_argument_group("people who move")
    text = "these columns make traces of the rows, in order of time; with --person-per-file only TIME"
    option(group, "--trace PERSON,TIME", text, dest="time")
    text = (
        "sparse: a step is free while the person stays; switching: as sparse, but fresh noise in hours of many "
        "moves; predictive: a step near the prediction costs a test; independent: fresh noise at every step "
        "[switching]"
    )
    option(group, "--method switching|sparse|predictive|independent", text)
    text = (
        "a person spends at most this level within this radius per hour, such as 2/200/hour; what is not "
        "spent is saved for up to 24 hours"
    )
    option(group, "--rate LEVEL/RADIUS/hour", text)
    text = (
        "a table of homes (person, lat, lon, optionally margin and epsilon): near a home the centre of its zone "
        "is reported"
    )
    option(group, "--zones FILE", text)
    text = "key of the zones in all releases, not that of a release: the same home has the same centre"
    option(group, "--zones-key FILE", text)
    group = parser.add_argument_group("what is released with the reports")
    option(
        group, "--keep A,B,C", "these, unchanged [none; of traces person and time]", action="append", default=[]
    )
    text = "if the order of the rows shows where they are: an error, random order (in memory), or as it is"
    option(group, "--order raise|shuffle|keep", text, default="raise")
    text = (
        "round times that are released down to multiples of 15min, 30s, 1h or 1d; COLUMN=15min for a kept column"
    )
    option(group, "--time-step STEP", text, action="append", default=[])


def run(options: argparse.Namespace) -> None:
    """Obfuscate the file, or the folder."""
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
    with ledger or nullcontext(), progress_line() as show:

        def progress(count: int, share: float | None) -> None:
            speed = count / max(time.monotonic() - start, 1e-3)
            show(f"{count:,} reports, {speed:,.0f} per second", share)

        if several:
            find_sources(options.sources)
        source = options.sources if several else options.sources[0]
        summary = obfuscate_file(source, **keywords | {"ledger": ledger, "progress": progress})
    if not options.quiet:
        print(summary, file=sys.stderr)
        if summary.rejected:
            print(f"bad records are in {options.rejects}, with their true locations", file=sys.stderr)


def _keywords(options: argparse.Namespace) -> dict[str, Any]:
    """Return the keywords of `obfuscate_file`."""
    privacy = privacy_of(options)
    changed = {
        **dict.fromkeys(NOISE),
        **_person_and_time(options),
        **privacy,
        **reading_of(options),
        "keep": next(csv.reader([",".join(options.keep)]), []),
        "key": None if options.key is None else geoind.Key.in_file(options.key),
    }
    changed["time_step"] = _time_steps(options.time_step, changed["time"])
    changed |= _moving(options, privacy, changed["time"])
    return given_to(obfuscate_file, options) | changed


def _moving(options: argparse.Namespace, privacy: dict[str, Any], time_column: str | None) -> dict[str, Any]:
    """Return the rationed method and the private zones of traces."""
    if options.rate is None and options.zones is None and options.zones_key is None:
        return {}
    if time_column is None or (options.zones is None) != (options.zones_key is None):
        raise InvalidInputError("--rate and --zones need --trace, and --zones needs --zones-key")

    mechanism, made = choose_mechanism(**privacy), dict[str, Any]()
    if options.rate is not None:
        made["method"] = traces.Rationed(method_of(options.method, mechanism), _rate(options.rate))
    if options.zones is not None:
        for used in (options.zones, options.zones_key):
            if used.exists() and Path(options.target).exists() and used.samefile(options.target):
                raise InvalidInputError("OUT would overwrite --zones or --zones-key")
        key = geoind.Key.in_file(options.zones_key)
        made["zones"] = files.read_zones(options.zones, key=key, epsilon=mechanism.epsilon)
    return made


def _rate(text: str) -> float:
    """Return epsilon per metre and hour of a text such as 2/200/hour."""
    level, *rest = text.split("/")
    try:
        radius, unit = float(rest[0]), rest[1:]
        rate = level_of(level) / radius
    except (ArithmeticError, IndexError, ValueError, argparse.ArgumentTypeError):
        rate, unit = math.nan, []
    if not 0 < rate < math.inf or unit != ["hour"]:
        raise InvalidInputError("--rate must be LEVEL/RADIUS/hour, such as 2/200/hour or ln4/200/hour")
    return rate


def _time_steps(texts: list[str], time_column: str | None) -> dict[str, float] | None:
    """Return the seconds of each column of --time-step."""
    steps: dict[str, float] = {}
    for text in texts:
        column, _, step = text.rpartition("=")
        column, found = column or time_column or "", STEP.fullmatch(step)
        if not column or found is None or column in steps:
            raise InvalidInputError(
                "--time-step must be 15min for the time of --trace, or COLUMN=15min, once each"
            )
        steps[column] = int(found[1]) * STEPS[found[2]]
    return steps or None


def _person_and_time(options: argparse.Namespace) -> dict[str, Any]:
    """Return the declared persons, and the time column of traces."""
    person = options.person or options.unit
    names = [None] if options.time is None else next(csv.reader([options.time]), [])
    if options.time is not None and (len(names) != 1 + (person is None) or not all(names)):
        raise InvalidInputError("--trace must be PERSON,TIME; with --person or --person-per-file, TIME alone")
    return {"person": person or names[0], "time": names[-1]}


def _ledger(options: argparse.Namespace) -> "geoind.Ledger | None":
    if options.ledger is None:
        if options.budget is not None or options.days is not None:
            raise InvalidInputError("--budget and --days need --ledger")
        return None
    if (options.budget is None) == (options.delta is None):
        raise InvalidInputError("--ledger needs a limit per person: --budget, or --delta, --level and --radius")
    if options.days is not None and not 0 < options.days <= MOST_DAYS:
        raise InvalidInputError(f"--days must be positive and at most {MOST_DAYS:,}, got {options.days!r}")

    level, radius, delta = options.level, options.radius, options.delta
    ledger = geoind.Ledger(
        options.ledger,
        budget=options.budget if delta is None else accounting.Promise(level=level, radius=radius, delta=delta),
        window=None if options.days is None else timedelta(days=options.days),
    )
    if ledger.in_memory:
        ledger.close()
        raise InvalidInputError("--ledger is a database in memory: give a file, such as sqlite:///budgets.db")
    return ledger
