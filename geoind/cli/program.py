"""The program `geoind`, and the options and the output that its commands share.

A command is a module of this folder with `add_options`, `run`, and its help as docstring. `geoind --help` imports
none of them.
"""

import argparse
import ast
import csv
import inspect
import math
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, NoReturn

from geoind.errors import MOST_SAID, GeoindError, InvalidInputError, plural, printable
from geoind.pipeline import LEAST_MEAN_ERROR, choose_mechanism
from geoind.version import __version__

FOLDER = Path(__file__).parent
COMMANDS = [each.name for each in iter_modules([str(FOLDER)]) if each.name != "program"]

DESCRIPTION = """
Publish approximate locations instead of true ones. geoind moves each location by random noise, with a promise in
metres: within a radius that you choose, a report changes the odds between two places by at most a factor that you
choose.
"""

EPILOG = """
Begin with `geoind example` for a map, `geoind explain --factor 4 --radius 200` for the meaning of the numbers, and
`geoind obfuscate IN.csv OUT.csv --each-row-a-person --factor 4 --radius 200` for a file of your own.
`geoind COMMAND --help` lists the options of a command.
"""

PHRASES = {
    r"`level=`": "--level (or --factor)",
    r"\bEACH_ROW\b": "--each-row-a-person",
    r"\bEACH_FILE\b": "--person-per-file",
    # Persons are declared already where a total is refused.
    r"a session \(`time=`\)": "a session (--trace TIME)",
    r"pass `mechanism=[^`]*`": "add --little-noise",
}
"""What other texts of the library are on the command line."""
STANDARD_ERROR = 2


LOGARITHM = re.compile(r"ln\s*([^\s()]+)|(?:ln|log)\s*\(\s*([^\s()]+)\s*\)", re.IGNORECASE)
"""A natural logarithm. `log` needs parentheses, because log10 is another logarithm."""
NOISE = ("epsilon", "level", "radius", "delta", "reports", "mechanism")
"""The parameters of the noise of a table."""
TRACE = ("person", "time", "lat", "lon")
NAMED = 10
"""At most this many files that were not read are named."""
TYPES: dict[str, type] = dict.fromkeys(["E", "M", "S", "P", "X", "WEST"], float) | {"N": int, "FILE": Path}
"""What the placeholders of options are: of probabilities and epsilons, metres, seconds, coordinates, ..."""
PAUSE = 0.1
"""Seconds between two updates of the progress line."""
WIDTH = 30


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, like all errors of the program; the options are in the help."""

    def error(self, message: str) -> NoReturn:
        """Print the message and exit."""
        self.exit(2, f"geoind: {printable(message, MOST_SAID)} ({self.prog} --help lists the options)\n")


def command_parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of each command, by its name."""
    return _parsers(COMMANDS)[1]


def _parsers(
    names: Iterable[str], *, complete: bool = True
) -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """Return the program's parser, and those of some commands: with their options, or for the program's help."""
    parser = _Parser(prog="geoind", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("--version", action="version", version=f"geoind {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in names:
        source = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
        text, _, description = (ast.get_docstring(ast.parse(source)) or "").partition("\n\n")
        added = commands.add_parser(name, help=text.rstrip("."), description=" ".join(description.split()))
        if complete:
            command = import_module(f"geoind.cli.{name}")
            command.add_options(added)
            added.set_defaults(run=command.run)
    return parser, dict(commands.choices)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code: 0, or 2 with one sentence on standard error."""
    _fill_closed_streams()
    if arguments is None:
        _exit_on_signals()
    given = sys.argv[1:] if arguments is None else arguments
    # One command does not wait for the modules of the others, and the help of the program for none.
    known = bool({*given[:1]} & {*COMMANDS})
    parser, commands = _parsers(given[:1] if known else COMMANDS, complete=known)
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        commands[given[0]].error(f"unknown arguments: {' '.join(unknown)}")
    try:
        return int(options.run(options) or 0)
    except GeoindError as error:
        reason = printable(_with_options(str(error), commands[given[0]]), MOST_SAID)
    except MemoryError:
        reason = "there is not enough memory"
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of the output has closed it, as in `geoind explain | head`. Python must not write at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        # Without the rest of its text, which may quote what the operating system or a library was given.
        name = "" if error.filename is None else f"{error.filename}: "
        unwritten = "; nothing was written" if getattr(options, "target", "-") != "-" else ""
        reason = f"{printable(name)}{error.strerror or 'input or output failed'}{unwritten}"
    print(f"geoind: {reason}", file=sys.stderr)
    return 2


def _with_options(message: str, parser: argparse.ArgumentParser) -> str:
    """Return a message of the library with the options of a command in place of parameters.

    Examples
    --------
    >>> parser = command_parsers()["obfuscate"]
    >>> _with_options("give `order='shuffle'`, or name the column with `lon=`", parser)
    'give --order shuffle, or name the column with --lon COLUMN'
    >>> _with_options("reports must be a number, got inf", parser)
    '--reports must be a number, got inf'
    """
    flags = {action.dest: action.option_strings[0] for action in parser._actions if action.option_strings}
    words = {action.dest: action.metavar or "" for action in parser._actions}

    def option(found: re.Match[str]) -> str:
        name, value = found[1], found[2].strip("'")
        usual = words.get(name, "")
        # Only words: a letter stands for a number, and several words for several numbers.
        usual = usual if isinstance(usual, str) and len(usual) > 1 else ""
        flag = flags.get(name, f"--{name.replace('_', '-')}")
        return f"{flag} {usual if value in ('', 'False') else value}".rstrip()

    for phrase, text in PHRASES.items():
        message = re.sub(phrase, text, message)
    message = re.sub(r"`(\w+)=([^`]*)`", option, message)
    subject, must, rest = message.partition(" must ")
    if must and all(name in flags for name in subject.split(" / ")):
        subject = " / ".join(flags[name] for name in subject.split(" / "))
    return f"{subject}{must}{rest}"


def _exit_on_signals() -> None:
    """Clean up after SIGTERM, SIGHUP and SIGQUIT as after an interrupt; ignored signals stay ignored (nohup)."""

    def leave(number: int, frame: object) -> None:  # noqa: ARG001
        raise SystemExit(128 + number)

    for number in (getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP", "SIGQUIT")):
        if number is not None and signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, leave)


def _fill_closed_streams() -> None:
    """Open the null device for closed standard streams, whose numbers an output file would get otherwise."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= STANDARD_ERROR:
        pass
    os.close(number)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123 - until the process ends


def option(parser: argparse._ActionsContainer, name: str, text: str, **settings: Any) -> None:
    """Add an argument, named as in a help text: `--radius M`, `--order raise|keep`, `--quiet`, `sources IN`.

    The placeholder is the type (`TYPES`), and a default is added to the text.
    """
    flag, _, value = name.partition(" ")
    if "|" in value:
        settings["choices"] = value.split("|")
    elif value:
        settings["metavar"] = tuple(value.split()) if " " in value else value
        settings.setdefault("type", TYPES.get(value.split()[0], str))
    elif flag.startswith("-"):
        settings.setdefault("action", "store_true")
    default = settings.get("default")
    shown = f" [{default:g}]" if isinstance(default, float) else f" [{default}]"
    parser.add_argument(flag, help=f"{text}{shown if default else ''}", **settings)


def add_privacy(parser: argparse.ArgumentParser, *, reports: bool = False, several: bool = False) -> None:
    """Add --epsilon, --level or --factor, and --radius.

    `reports=True`, for commands that draw noise, adds --little-noise; `several=True` adds --reports and --delta;
    both together add --mechanism.
    """
    text = "either --factor (or --level) and --radius, or --epsilon"
    group = parser.add_argument_group("how much privacy", text)
    level = group.add_mutually_exclusive_group()
    text = "a report changes the odds between two places by this factor at most, for example 4"
    option(level, "--factor F", text, type=_level_of_factor, dest="level")
    option(level, "--level L", "the logarithm of the factor: a number, ln4 or log(4)", type=level_of)
    option(group, "--radius M", "if the two places are at most this many metres apart, for example 200")
    option(group, "--epsilon E", "the level divided by the radius: privacy loss per metre")
    if reports:
        option(group, "--little-noise", "allow noise that moves reports by less than 10 metres on average")
    if several:
        group = parser.add_argument_group("several reports of a person", "with --level (or --factor) and --radius")
        option(group, "--reports N", "the level is that of this many reports together")
        option(group, "--delta P", "probability with which the level may be exceeded, for example 1e-5")
    if several and reports:
        text = (
            "a file of `geoind optimal`, whose noise is checked against --delta if that is given; or with --delta "
        )
        option(group, "--mechanism FILE", f"{text}best (the smaller noise), laplace or gaussian", type=str)


def level_of(text: str) -> float:
    """Return a level from a number or a natural logarithm: 1.386, ln4, ln 4, ln(4) or log(4)."""
    logarithm = LOGARITHM.fullmatch(text.strip())
    if logarithm is not None:
        return _level_of_factor(logarithm[1] or logarithm[2])
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError("must be a number, ln4 or log(4)") from None


def _level_of_factor(text: str) -> float:
    try:
        factor = float(text)
    except ValueError:
        factor = math.nan
    if not 1 < factor < math.inf:
        raise argparse.ArgumentTypeError("the factor must be greater than 1 and finite")
    return math.log(factor)


def privacy_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the noise that the options of a command that makes reports select, as keywords of a table."""
    promise = {name: given for name in NOISE[:-1] if (given := getattr(options, name, None)) is not None}
    family = getattr(options, "mechanism", None)
    if family not in (None, "best", "laplace", "gaussian"):
        from geoind.files import load_mechanism

        if not Path(family).is_file():
            raise InvalidInputError(f"--mechanism must be best, laplace, gaussian or a file, got {family!r}")
        mechanism = load_mechanism(family)
        if mechanism.space != "lonlat":
            raise InvalidInputError(
                f"--mechanism: {family} is a channel between places in metres; geoind optimal --bounds makes "
                "mechanisms for degrees"
            )
        most = 2 / LEAST_MEAN_ERROR
        if not (mechanism.epsilon <= most or options.little_noise):
            raise InvalidInputError(
                f"the mechanism of {family!r} has epsilon {mechanism.epsilon:.3g} per metre, more than {most:g}: "
                "--little-noise allows it"
            )
        return {**promise, "mechanism": mechanism}
    if family is not None and "delta" not in promise:
        raise InvalidInputError("--mechanism needs --delta, --level and --radius")
    noise = choose_mechanism(**promise, family=family, little_noise=options.little_noise)
    if "delta" in promise:
        return {**promise, "mechanism": noise}
    return {"mechanism": noise} if options.little_noise else promise


def epsilon_of(options: argparse.Namespace) -> float:
    """Return the epsilon that the options give, however large."""
    given = {name: getattr(options, name) for name in ("epsilon", "level", "radius")}
    return choose_mechanism(**given, little_noise=True).epsilon


def add_reading(parser: argparse.ArgumentParser, title: str) -> None:
    """Add the options for how a file is read and where its locations are."""
    from geoind.files.formats import FORMATS

    group = parser.add_argument_group(title)
    text = "column of latitudes in degrees [lat or latitude]; repeat it for a second location"
    option(group, "--lat COLUMN", text, action="append")
    text = "column of longitudes in degrees [lon, lng, long or longitude]; as often as --lat"
    option(group, "--lon COLUMN", text, action="append")
    option(group, "--geometry COLUMN", "column of points [the geometry column of the file]")
    option(
        group, "--crs CRS", "coordinate system of the points, such as EPSG:4326, if the file does not declare it"
    )
    option(group, "--layer NAME", "layer of a GeoPackage or another file with layers [the only one]")
    text = "format of the input, if its name does not show it; vector is any format of GDAL"
    option(group, f"--format {'|'.join(FORMATS)}", text)
    option(group, "--delimiter CHARACTER", "between the fields of a CSV file, or 'tab' [detected]")
    text = "the first line of a CSV file is a record; columns are numbers, from 1"
    option(group, "--no-header", text, dest="header", action="store_false")


def reading_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return how files are read and where their locations are, as keywords of the readers in `geoind.files`."""
    from geoind.files import Reading, read_places

    return {"reading": Reading(**given_to(Reading, options)), **given_to(read_places, options)}


def given_to(function: Callable[..., Any], options: argparse.Namespace) -> dict[str, Any]:
    """Return the options that were given and have the names of parameters of a function."""
    names = inspect.signature(function).parameters
    return {name: value for name, value in vars(options).items() if name in names and value is not None}


def columns_of(options: argparse.Namespace, file: object) -> dict[str, str]:
    """Return what the columns of a table of traces are called; there must be a file if they are given."""
    if options.columns is None:
        return {}
    names = next(csv.reader([options.columns]), [])
    if file is None or len(names) != len(TRACE) or not all(names):
        raise InvalidInputError("--columns must be PERSON,TIME,LAT,LON of a file of traces")
    return dict(zip(TRACE, names, strict=True))


def find_sources(sources: Sequence[str]) -> list[Path]:
    """Return the files of the sources; print which files of a folder are not read."""
    from geoind.files.folders import others_in, sources_in
    from geoind.tables.columns import named_path

    found = sources_in(sources)
    for folder in filter(Path.is_dir, map(Path, sources)):
        names = [named_path(file.relative_to(folder).as_posix()) for file in others_in(folder)]
        if names:
            shown = ", ".join([*names[:NAMED], "..."] if len(names) > NAMED else names)
            line = f"{folder}: {plural(len(names), 'file')} not read, because the suffix is not known: {shown}"
            print(printable(line, MOST_SAID), file=sys.stderr)
    return list(found.values())


def load_named(name: str) -> Any:
    """Return what MODULE:NAME names; its module is imported, which runs its code."""
    module, _, attribute = name.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), attribute)):
        raise InvalidInputError(f"a mechanism of your own must be MODULE:NAME, got {name!r}")
    # At the end, so that no file of this folder replaces an installed module.
    sys.path.append(str(Path.cwd()))
    with errors_of(f"{name} cannot be imported"):
        return getattr(import_module(module), attribute)


@contextmanager
def errors_of(what: str) -> Iterator[None]:
    """Raise errors of other people's code as `InvalidInputError`, also `sys.exit`."""
    try:
        yield
    except GeoindError:
        raise
    except (Exception, SystemExit) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise InvalidInputError(f"{what}: {reason}") from error


def import_demo(module: str) -> Any:
    """Return a module of the demo by its name, because the library must not depend on it."""
    # In a clone it is next to the library.
    return import_module(f"{'geoind.webdemo' if find_spec('geoind.webdemo') else 'webdemo'}.{module}")


def check_target(target: Path, inputs: Iterable[Path] = ()) -> None:
    """Raise if a file cannot be written, or is one of the inputs; called before anything is computed."""
    if not target.parent.is_dir() or target.is_dir():
        raise InvalidInputError(f"--out must be a file in a folder that exists, got {str(target)!r}")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise InvalidInputError(f"--out cannot be written: {str(target)!r}")
    if target.exists() and any(target.samefile(file) for file in inputs if file.exists()):
        raise InvalidInputError(f"--out would overwrite the input {str(target)!r}")


def print_rows(rows: Iterable[tuple[str, str]], *, labels: int, values: int = 0) -> None:
    """Print a label and a value per line; the value is right-aligned if a width is given."""
    for label, value in rows:
        print(f"  {label:<{labels}} {value.rjust(values)}")


@contextmanager
def progress_line() -> Iterator[Callable[..., None]]:
    """Yield a function that shows a text, and the share of the work that is done, in one line on a terminal.

    The line is on standard error. It is removed at the end. If standard error is not a terminal, nothing is shown.
    """
    last = -PAUSE

    def show(text: str, share: float | None = None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= PAUSE:
            last = now
            bar = "" if share is None else f"[{'#' * round(share * WIDTH):-<{WIDTH}}] {share:4.0%}  "
            draw(f"{bar}{text}")

    def draw(line: str) -> None:
        if sys.stderr.isatty():
            print(f"\r{line}\x1b[K", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        draw("")
