"""A statement about a release: what it promises, and which attacks succeed.

Compare a file of reports with the true file that it was made from, run attacks on it, and write one page that the
owner of the data can file. With REPORTS alone, state what its release record says. The exit code is 1 if a rule of
--fail-if holds.
"""

import argparse
import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from geoind.arrays import FloatArray
from geoind.audits import LEGAL_DISTANCES, assess
from geoind.audits.rules import parse_rule
from geoind.cli.program import add_reading, check_target, option, progress_line, reading_of
from geoind.errors import MOST_SAID, InvalidInputError, printable
from geoind.files import Reading
from geoind.files.places import read_rows
from geoind.files.writers import AtomicWriter
from geoind.space.raster_files import RASTERS, read_raster
from geoind.tables import ReleaseRecord, read_promise
from geoind.tables.places import LonLat, Points, places_of
from geoind.traces.adversary import home_guesses

SUFFIXES = {".html": "html", ".htm": "html", ".md": "markdown", ".json": "json"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    option(parser, "files FILE", "TRUTH and REPORTS, or REPORTS alone", nargs="+")
    text = "the statement: .html, .md or .json; may be repeated [statement.html]"
    option(parser, "--out FILE", text, action="append")
    group = parser.add_argument_group("the true file")
    option(group, "--person COLUMN", "names the person; required if the release was made with --person")
    option(group, "--time COLUMN", "when; for homes, sequences and the trace adversary")
    text = "in both files, to match rows [their order]; required if rows were left out or shuffled"
    option(group, "--id COLUMN", text, dest="id_column")
    group = parser.add_argument_group("what is stated")
    text = "stop a pipeline: exit code 1 if this holds, such as 'unique4 > 0.05'; may be repeated"
    option(group, "--fail-if RULE", text, action="append", default=[])
    option(group, "--k N", "counts of fewer persons are not shown", default=10)
    text = "a distance that a law names; may be repeated, and replaces the usual ones"
    option(group, "--distance NAME=METRES", text, action="append", default=[])
    text = "places of people (points, or a raster: .tif, .asc), instead of the persons of the data"
    option(group, "--population FILE", text)
    option(group, "--weight COLUMN", "people at each place of the population file [1]")
    option(group, "--sample N", "reports, and persons, that are attacked", default=1000)
    option(group, "--seed N", "of the random choices [0]", default=0)
    add_reading(parser, "where the locations are")


def run(options: argparse.Namespace) -> int:
    """Write the statement, print the verdicts, and return the exit code."""
    if len(options.files) > 2:
        raise InvalidInputError(f"give TRUTH and REPORTS, or REPORTS alone, not {len(options.files)} files")
    *before, reports = options.files
    targets = options.out or [Path("statement.html")]
    for file in filter(None, [*options.files, options.population]):
        if not file.is_file():
            raise InvalidInputError(f"no such file: {str(file)!r}")
    for target in targets:
        if target.suffix.lower() not in SUFFIXES:
            raise InvalidInputError(f"--out must end in {', '.join(SUFFIXES)}, got {target.name!r}")
        check_target(target, options.files)
    for rule in options.fail_if:
        parse_rule(rule)
    distances = _distances(options.distance) or LEGAL_DISTANCES
    record = read_promise(reports)
    with progress_line() as show:
        show("reading", 0.0)
        result = assess(
            **_tables(options, before[0] if before else None, reports, record),
            record=record,
            population=_population(options),
            k=options.k,
            distances=distances,
            fail_if=options.fail_if,
            files={file.name: _digest(file) for file in options.files},
            guesses=home_guesses(record),
            sample=options.sample,
            seed=options.seed,
            progress=show,
        )
    with AtomicWriter() as writer:
        for target in targets:
            content: str = getattr(result, SUFFIXES[target.suffix.lower()])
            writer.open(target).write(content.encode())
    for verdict in result.verdicts:
        line = f"{'FAILED' if verdict.failed else 'passed'}: {verdict.rule}"
        print(printable(line, MOST_SAID), file=sys.stderr)
    print(f"written: {', '.join(map(str, targets))}", file=sys.stderr)
    return int(result.failed)


def _distances(given: list[str]) -> dict[str, float]:
    found = {}
    for text in given:
        name, _, metres = text.rpartition("=")
        try:
            found[name.strip()] = float(metres if name.strip() else "")
        except ValueError:
            raise InvalidInputError(f"--distance must be NAME=METRES, got {text!r}") from None
    return found


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _tables(
    options: argparse.Namespace, truth: Path | None, reports: Path, record: ReleaseRecord
) -> dict[str, Any]:
    """Return the arrays of both files, row by row, as keywords of `assess`."""
    identity = {} if options.id_column is None else {"id": options.id_column}
    released = _read(reports, Reading(header=options.header), (), identity if truth is not None else {})
    if truth is None:
        return {"reports": _each_place(released["places"])}
    if record.unit == "column" and options.person is None:
        raise InvalidInputError("the release record declares persons by a column: name it with --person COLUMN")
    if record.unit == "each file":
        raise InvalidInputError(
            "the release record says one person per file: a statement needs the persons in one file"
        )
    columns = {name: value for name in ("person", "time") if (value := getattr(options, name)) is not None}
    given = places_of(options.lon, options.lat, options.geometry, options.crs)
    true = _read(truth, reading_of(options)["reading"], given, columns | identity)
    repeat = true["places"].shape[1]
    if repeat != released["places"].shape[1]:
        raise InvalidInputError("truth and reports have different numbers of places in a row")
    rows = _matched(true, released, options.id_column)
    # The row of no report is -1, the last one.
    matched = np.concatenate([released["places"], np.full((1, repeat, 2), np.nan)])[rows]
    return {
        "reports": _each_place(matched),
        "truth": _each_place(true["places"]),
        "person": np.tile(true.get("person", np.arange(len(rows))), repeat),
        "time": np.tile(true["time"], repeat) if "time" in true else None,
        "public": {name for name in ("person", "time") if getattr(options, name) in record.kept or record.session},
    }


def _each_place(places: FloatArray) -> FloatArray:
    """Return the first places of all rows, then the second ones."""
    return places.transpose(1, 0, 2).reshape(-1, 2)


def _matched(true: Mapping[str, Any], released: Mapping[str, Any], column: str | None) -> Any:
    """Return for each row of the truth the row of its report, -1 for none."""
    rows, reports = len(true["places"]), len(released["places"])
    if column is None:
        if rows != reports:
            raise InvalidInputError(
                f"the true file has {rows:,} rows and the reports have {reports:,}: rows were left out. Keep a "
                "column that identifies the row (--keep COLUMN of `geoind obfuscate`) and name it here with --id "
                "COLUMN"
            )
        return np.arange(rows)
    names, known = pd.Index(true["id"]), pd.Index(released["id"])
    if not (names.is_unique and known.is_unique):
        raise InvalidInputError(f"column {column!r} must identify the row: some values occur twice")
    if not known.isin(names).all():
        raise InvalidInputError(f"some reports have a value of {column!r} that the true file does not have")
    return known.get_indexer(names)


def _read(
    path: Path, reading: Reading, given: tuple[LonLat | Points, ...], columns: Mapping[str, str]
) -> dict[str, Any]:
    """Return the places of a file, NaN in rows without one, and named columns: person, time, id, weight."""
    parts = list(read_rows(path, reading, given, columns))
    if not sum(len(part["numbers"]) for part in parts):
        raise InvalidInputError(f"{path}: there are no rows")
    return {name: np.concatenate([part[name] for part in parts]) for name in ("places", *columns)}


def _population(options: argparse.Namespace) -> tuple[FloatArray, FloatArray] | None:
    pixels = options.population is not None and options.population.suffix.lower() in RASTERS
    if options.weight is not None and (pixels or options.population is None):
        raise InvalidInputError("--weight needs --population FILE with points: pixels have their own")
    if options.population is None:
        return None
    if pixels:
        return read_raster(options.population)
    column = {} if options.weight is None else {"weight": options.weight}
    found = _read(options.population, Reading(), (), column)
    places = found["places"][:, 0]
    present = ~np.isnan(places[:, 0])
    return places[present], found.get("weight", np.ones(len(places)))[present]
