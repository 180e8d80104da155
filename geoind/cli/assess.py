"""A statement about a release: what it promises, and which attacks succeed.

Compare a file of reports with the true file that it was made from, run attacks on it, and write one page that the
owner of the data can file. With REPORTS alone, state what its release record says. The exit code is 1 if a rule of
--fail-if holds.
"""

import argparse
import hashlib
import sys
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geoind.cli.shared import add_reading, check_target, option, progress_line, reading_of
from geoind.errors import MOST_SAID, InvalidInputError, printable

if TYPE_CHECKING:
    from geoind.arrays import FloatArray
    from geoind.audits.attempts import Guess
    from geoind.files import Reading
    from geoind.tables import ReleaseRecord
    from geoind.tables.places import LonLat, Points

__all__ = ["add_options", "run"]

SUFFIXES = {".html": "html", ".htm": "html", ".md": "markdown", ".json": "json"}
SIDE = 51
"""Cells of the trace adversary's grid in each direction."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    option(parser, "files FILE", "TRUTH and REPORTS, or REPORTS alone", nargs="+", type=Path)
    text = "the statement: .html, .md or .json; may be repeated [statement.html]"
    option(parser, "--out FILE", text, action="append", type=Path)
    group = parser.add_argument_group("the true file")
    option(group, "--person COLUMN", "names the person; required if the release was made with --person")
    option(group, "--time COLUMN", "when; for homes, sequences and the trace adversary")
    text = "in both files, to match rows [their order]; required if rows were left out or shuffled"
    option(group, "--id COLUMN", text)
    group = parser.add_argument_group("what is stated")
    text = "stop a pipeline: exit code 1 if this holds, such as 'unique4 > 0.05'; may be repeated"
    option(group, "--fail-if RULE", text, action="append", default=[])
    option(group, "--k N", "counts of fewer persons are not shown [%(default)d]", type=int, default=10)
    text = "a distance that a law names; may be repeated, and replaces the usual ones"
    option(group, "--distance NAME=METRES", text, action="append", default=[])
    text = "places of people (points, or a raster: .tif, .asc), instead of the persons of the data"
    option(group, "--population FILE", text, type=Path)
    option(group, "--weight COLUMN", "people at each place of the population file [1]")
    option(group, "--sample N", "reports, and persons, that are attacked [%(default)d]", type=int, default=1000)
    option(group, "--seed N", "of the random choices [%(default)d]", type=int, default=0)
    add_reading(parser, "where the locations are")


def run(options: argparse.Namespace) -> int:
    """Write the statement, print the verdicts, and return the exit code."""
    from geoind.atomic import AtomicWriter
    from geoind.audits import LEGAL_DISTANCES, assess
    from geoind.audits.rules import parse_rule
    from geoind.tables import read_promise

    if len(options.files) > 2:
        raise InvalidInputError(f"give TRUTH and REPORTS, or REPORTS alone, not {len(options.files)} files")
    *before, reports = options.files
    targets = options.out or [Path("statement.html")]
    for file in [*options.files, *([] if options.population is None else [options.population])]:
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
        population = _population(options)
        keywords = _tables(options, before[0] if before else None, reports, record)
        result = assess(
            record=record,
            population=population,
            k=options.k,
            distances=distances,
            fail_if=options.fail_if,
            files={file.name: _digest(file) for file in options.files},
            guesses=_trace_adversary(record),
            sample=options.sample,
            seed=options.seed,
            progress=show,
            **keywords,
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
            found[name.strip()] = float(metres)
        except ValueError:
            raise InvalidInputError(f"--distance must be NAME=METRES, got {text!r}") from None
        if not name.strip():
            raise InvalidInputError(f"--distance must be NAME=METRES, got {text!r}")
    return found


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _tables(
    options: argparse.Namespace, truth: Path | None, reports: Path, record: "ReleaseRecord"
) -> dict[str, Any]:
    """Return the arrays of both files, row by row, as keywords of `assess`."""
    import numpy as np

    from geoind.files import Reading
    from geoind.tables.places import places_of

    about = reading_of(options)
    wanted = {"id": options.id} if truth is not None and options.id is not None else {}
    how = Reading(header=about["reading"].header)
    released = _read(reports, how if not how.header else Reading(), (), wanted)
    if truth is None:
        return {"reports": np.concatenate(released["places"])}
    if record.unit == "column" and options.person is None:
        raise InvalidInputError("the release record declares persons by a column: name it with --person COLUMN")
    if record.unit == "each file":
        raise InvalidInputError(
            "the release record says one person per file: a statement needs the persons in one file"
        )
    columns = {name: value for name in ("person", "time", "id") if (value := getattr(options, name)) is not None}
    given = places_of(about["lon"], about["lat"], about["geometry"], about["crs"])
    true = _read(truth, about["reading"], given, columns)
    if len(true["places"]) != len(released["places"]):
        raise InvalidInputError("truth and reports have different numbers of places in a row")
    rows = _matched(true, released, options.id)
    repeat = len(true["places"])
    public = {name for name in ("person", "time") if getattr(options, name) in record.kept or record.session}
    return {
        "reports": np.concatenate([_picked(places, rows) for places in released["places"]]),
        "truth": np.concatenate(true["places"]),
        "person": np.tile(true["person"], repeat) if "person" in true else np.tile(np.arange(len(rows)), repeat),
        "time": np.tile(true["time"], repeat) if "time" in true else None,
        "public": public,
    }


def _picked(places: "FloatArray", rows: Any) -> "FloatArray":
    """Return the places of rows, NaN where the row is -1."""
    import numpy as np

    return np.where((rows >= 0)[:, None], places[np.maximum(rows, 0)], np.nan) if len(places) else places


def _matched(true: Mapping[str, Any], released: Mapping[str, Any], column: str | None) -> Any:
    """Return for each row of the truth the row of its report, -1 for none."""
    import numpy as np

    rows, reports = len(true["places"][0]), len(released["places"][0])
    if column is None:
        if rows != reports:
            raise InvalidInputError(
                f"the true file has {rows:,} rows and the reports have {reports:,}: rows were left out. Keep a "
                "column that identifies the row (--keep COLUMN of `geoind obfuscate`) and name it here with --id "
                "COLUMN"
            )
        return np.arange(rows)
    numbers = {name: number for number, name in enumerate(released["id"])}
    if len(numbers) < reports or len(set(true["id"])) < rows:
        raise InvalidInputError(f"column {column!r} must identify the row: some values occur twice")
    found = np.array([numbers.get(name, -1) for name in true["id"]])
    if int((found >= 0).sum()) < reports:
        raise InvalidInputError(f"some reports have a value of {column!r} that the true file does not have")
    return found


def _read(
    path: Path, reading: "Reading", given: "tuple[LonLat | Points, ...]", columns: Mapping[str, str]
) -> dict[str, Any]:
    """Return the places of a file, NaN in rows without one, and named columns: person, time, id, weight.

    The places are the given ones, those of the record, or the usual names.
    """
    import numpy as np

    from geoind.files.places import read_rows

    parts = list(read_rows(path, reading, given, columns))
    if not sum(len(part["numbers"]) for part in parts):
        raise InvalidInputError(f"{path}: there are no rows")
    table = {name: np.concatenate([part[name] for part in parts]) for name in ("places", *columns)}
    if "person" in table:
        table["person"] = np.unique(table["person"].astype(str), return_inverse=True)[1]
    if "weight" in table and not (np.isfinite(table["weight"]) & (table["weight"] >= 0)).all():
        raise InvalidInputError(f"{path}: column {columns['weight']!r} must be numbers that are not negative")
    return table | {"places": list(table["places"].transpose(1, 0, 2))}


def _population(options: argparse.Namespace) -> "tuple[FloatArray, FloatArray] | None":
    import numpy as np

    from geoind.files import Reading
    from geoind.space.raster_files import RASTERS, read_raster

    if options.population is None:
        if options.weight is not None:
            raise InvalidInputError("--weight needs --population")
        return None
    if options.population.suffix.lower() in RASTERS:
        if options.weight is not None:
            raise InvalidInputError("--weight is for points: the pixels of a raster have their values")
        return read_raster(options.population)
    found = _read(options.population, Reading(), (), {} if options.weight is None else {"weight": options.weight})
    places = found["places"][0]
    weights = found.get("weight", np.ones(len(places)))
    present = ~np.isnan(places[:, 0])
    return places[present], weights[present]


def _trace_adversary(record: "ReleaseRecord") -> "dict[str, Guess]":
    """Return the Bayesian of `geoind.traces.home_beliefs` as a guess about a home, if the method is known."""
    import numpy as np

    from geoind.audits.attacks import weighted_median
    from geoind.audits.visits import at_night
    from geoind.mechanisms.spherical import SphericalLaplace
    from geoind.space.projection import Projection
    from geoind.space.sites import Grid
    from geoind.tables.recipe import METHODS, described, method_of
    from geoind.traces import Independent, Mobility, TraceMethod, home_beliefs

    if record.mechanism != "SphericalLaplace" and record.session is None:
        return {}
    noise = SphericalLaplace(record.epsilon if record.session is None else record.fresh or record.epsilon)
    known: dict[str | None, TraceMethod] = {None: Independent(noise.epsilon)}
    if record.session is not None:
        known |= {described(method): method for method in (method_of(name, noise) for name in METHODS)}
    if record.session not in known:
        return {}
    method = known[record.session]

    def guess(reports: "FloatArray", seconds: "FloatArray") -> "FloatArray":
        night = at_night(reports, seconds)
        night = night if night.any() else np.ones(len(reports), bool)
        plane, cell = Projection(*reports[night][0]), noise.reach(0.95) / 12
        xy = plane.to_xy(reports)
        centre = weighted_median(xy[night], np.full(night.sum(), 1 / night.sum()))
        west, south = centre - cell * (SIDE // 2)
        grid = Grid(west, south, cell=cell, columns=SIDE, rows=SIDE)
        # Nights elsewhere are not at home.
        here = night & (np.hypot(*(xy - centre).T) < cell * (SIDE // 2))
        # Times must increase: rows of the same second follow each other by a millisecond.
        times = seconds + 1e-3 * np.arange(len(seconds))
        beliefs = home_beliefs(reports, times, at_home=here, method=method, mobility=Mobility(grid, plane))
        try:
            [belief] = deque(beliefs, maxlen=1)
            best = weighted_median(grid.xy, belief.ravel())
        except InvalidInputError:
            # No cell of the grid explains the answers of a session.
            best = centre
        return np.asarray(plane.to_lonlat(best[None])[0])

    return {"trace adversary at night": guess}
