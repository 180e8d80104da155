"""Write the browser extension as an unpacked folder.

Pages that ask for the location get a report, and never the true location. Load the folder in the browser's page of
extensions (docs/extension.md).
"""

import argparse
from pathlib import Path

from geoind.cli.program import import_demo, option


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    option(parser, "--out FOLDER", "a new or an empty folder", type=Path, required=True)
    option(parser, "--browser chromium|firefox", "which browser the manifest is for", default="chromium")


def run(options: argparse.Namespace) -> None:
    """Write the extension."""
    written = import_demo("extension_build").write_extension(options.out, options.browser)
    page = "chrome://extensions" if options.browser == "chromium" else "about:debugging"
    print(f"Wrote {len(written)} files: open {page} and load {options.out}")
