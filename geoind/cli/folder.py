"""`geoind obfuscate FOLDER OUT`: several files, in several processes, to be taken up again after a crash."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from geoind.cli.reading import reading_of, sources_named
from geoind.errors import InvalidInputError

if TYPE_CHECKING:
    from geoind.cli.progress import Progress
    from geoind.files import Summary
    from geoind.pipeline import Budget
    from geoind.tables import Options

__all__ = ["run_folder"]


def run_folder(
    options: argparse.Namespace, named: "Options", ledger: "Budget | None", line: "Progress"
) -> "Summary | None":
    """Obfuscate the files, and return a summary; None where there was nothing left to do."""
    from geoind.files.folder import obfuscate_files
    from geoind.files.formats import kind_of
    from geoind.files.job import Job
    from geoind.tables import Recipe

    if options.target == "-":
        raise InvalidInputError("several files become a folder, not standard output")
    if options.workers is not None and options.workers < 1:
        raise InvalidInputError(f"--workers must be at least 1, got {options.workers}")
    reading = reading_of(options)
    kinds = {kind_of(path, reading.format) for path in sources_named(options.sources).values()}
    one_folder = len(options.sources) == 1 and Path(options.sources[0]).is_dir()
    # A person's trace may go from one file to the next, so its files are read in order, by one process.
    in_parts = one_folder and options.rejects is None and options.trace is None
    if in_parts and {kind.format for kind in kinds if kind} == {"parquet"}:
        for kind in kinds:
            reading.fit(kind) if kind else None
        return _run_parquet(options, named, ledger, line)
    job = Job(
        recipe=Recipe.of(**named),
        reading=reading,
        rejects=options.rejects,
        ledger=ledger,
        progress=lambda count, share: line.count(count, "reports", share),
    )
    return obfuscate_files(options.sources, options.target, job, workers=options.workers)


def _run_parquet(
    options: argparse.Namespace, named: "Options", ledger: "Budget | None", line: "Progress"
) -> "Summary | None":
    """Obfuscate a folder of Parquet files in parallel; run again, it finishes what is missing."""
    from geoind.adapters.dataset import obfuscate_dataset

    done = obfuscate_dataset(
        options.sources[0],
        options.target,
        workers=options.workers,
        ledger=ledger,
        progress=lambda count, share: line.count(count, "reports", share),
        **named,
    )
    if done.found and not options.quiet:
        print(
            f"{done.found:,} of {done.pieces:,} pieces were complete; the summary counts the others",
            file=sys.stderr,
        )
    return done.summary
