"""The command line: one module per command, with `add_options`, `run`, and the help as docstring."""

import argparse
import os
import re
import signal
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import NoReturn

from geoind.errors import MOST_SAID, GeoindError, printable
from geoind.version import __version__

COMMANDS = [module.name for module in iter_modules(__path__) if module.name != "shared"]

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


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, like all errors of the program; the options are in the help."""

    def error(self, message: str) -> NoReturn:
        """Print the message and exit."""
        self.exit(2, f"geoind: {printable(message, MOST_SAID)} ({self.prog} --help lists the options)\n")


def command_parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of each command, by its name."""
    return _parsers(COMMANDS)[1]


def _parsers(names: Iterable[str]) -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """Return the program's parser, and those of some commands."""
    parser = _Parser(prog="geoind", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("--version", action="version", version=f"geoind {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in names:
        command = import_module(f"geoind.cli.{name}")
        text, _, description = (command.__doc__ or "").partition("\n\n")
        added = commands.add_parser(name, help=text.rstrip("."), description=" ".join(description.split()))
        command.add_options(added)
        added.set_defaults(run=command.run)
    return parser, dict(commands.choices)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code: 0, or 2 with one sentence on standard error."""
    _fill_closed_streams()
    if arguments is None:
        _exit_on_signals()
    given = sys.argv[1:] if arguments is None else arguments
    # One command does not wait for the modules of the others.
    parser, commands = _parsers(given[:1] if {*given[:1]} & {*COMMANDS} else COMMANDS)
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
