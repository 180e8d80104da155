"""Compare geoind with other libraries, each in its own virtual environment; writes docs/benchmarks/race.md.

python3 dev.py bench race [--peers qif privkit ...] [--limit SECONDS] [--venvs FOLDER] [--out FILE]

Tasks that a library does not support are blank; failures and timeouts are shown as such.
"""

import argparse
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import geoind

RACERS = Path(__file__).parent / "racers"
sys.path.insert(0, str(RACERS))
import table  # noqa: E402

PEERS = {
    "qif": ["qif"],
    "GeoPrivacy": ["GeoPrivacy"],
    "trasgodp": ["trasgodp"],
    # privkit 0.5.1 does not import with the open3d that its own requirement installs today.
    "privkit": ["privkit", "open3d<0.20"],
}
TASKS = ("throughput", "latency", "promise", "laplace", "optimal 5", "optimal 7", "optimal 9")


FUNCTIONS = {
    "throughput": "sample",
    "latency": "one",
    "promise": "reports",
    "laplace": "laplace_matrix",
    "optimal": "optimal_matrix",
}
"""The function that a library's file must define for each task."""


@dataclass
class Racer:
    """A library, its interpreter and its results."""

    name: str
    module: str
    python: Path | None
    version: str = ""
    install: str = ""
    results: dict[str, dict[str, Any]] = field(default_factory=dict)


def size_of(folder: Path) -> int:
    """Return the bytes of a folder, in which files may come and go."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += (Path(parent) / name).lstat().st_size
    return total


def run_limited(
    command: list[str],
    *,
    limit: float,
    grows: Path | None = None,
    most: float = math.inf,
    env: dict[str, str] | None = None,
) -> tuple[int | str, str]:
    """Return (exit code, output) of a command that may take `limit` seconds and fill `grows` to `most` bytes."""
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=env, start_new_session=True, text=True
        )
        end, why = time.monotonic() + limit, ""
        while process.poll() is None and not why:
            try:
                process.wait(timeout=2 if grows else min(limit, 0.5))
            except subprocess.TimeoutExpired:
                if time.monotonic() > end:
                    why = f"stopped after {limit:.0f} s"
                elif grows and size_of(grows) > most:
                    why = f"stopped at {most / 1e9:.0f} GB"
        if why:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        return (why or process.returncode), output.read()


def install(name: str, venvs: Path, limit: float, most: float) -> Racer:
    """Make the peer's environment, within a time and a size."""
    folder = venvs / name
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    uv = [sys.executable, "-m", "uv"]
    print(f"{name}: installing", flush=True)
    if not python.exists():
        subprocess.run([*uv, "venv", "-q", "--python", sys.executable, str(folder)], check=True)
    code, output = run_limited(
        [*uv, "pip", "install", "-q", "--python", str(python), *PEERS[name]], limit=limit, grows=folder, most=most
    )
    racer = Racer(name, f"with_{name}", python if code == 0 else None)
    if code:
        racer.install = f"{code}" if isinstance(code, str) else last_line(output)
        return racer
    racer.install = f"{size_of(folder) / 1e9:.1f} GB"
    asked = f"import importlib.metadata as m; print(m.version({name!r}))"
    racer.version = subprocess.run([str(python), "-c", asked], capture_output=True, text=True).stdout.strip()
    return racer


def last_line(output: str) -> str:
    """Return the last line of a failed program's output, shortened."""
    lines = [line.strip() for line in output.splitlines() if line.strip()] or ["no message"]
    message = lines[-1].split("Error: ", 1)[-1].split("; visit")[0]
    return f"fails: {message[:80]}"


def race(racer: Racer, task: str, limit: float, home: Path) -> dict[str, Any]:
    """Return the measurements of a library's process, with its matrix or reports, or its failure."""
    if f"def {FUNCTIONS[task.split()[0]]}(" not in (RACERS / f"{racer.module}.py").read_text():
        return {"failed": table.MISSING}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.npz"
        kind, *extra = task.split()
        command = [str(racer.python), str(RACERS / "track.py"), racer.module, kind, str(out), *extra]
        environment = {**os.environ, "HOME": str(home), "TF_CPP_MIN_LOG_LEVEL": "3"}
        code, output = run_limited(command, limit=limit, env=environment)
        if code:
            return {"failed": code if isinstance(code, str) else last_line(output)}
        result: dict[str, Any] = json.loads(
            next(line for line in output.splitlines() if line.startswith("RESULT "))[7:]
        )
        if out.exists():
            with np.load(out) as stored:
                result.update({"arrays": dict(stored)})
        return result


def main() -> None:
    """Install, run and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--limit", type=float, default=600, help="seconds for one task")
    parser.add_argument("--install-limit", type=float, default=900, help="seconds for one installation")
    parser.add_argument("--install-size", type=float, default=12, help="GB for one installation")
    parser.add_argument("--venvs", type=Path, default=Path(tempfile.gettempdir()) / "geoind-race")
    parser.add_argument("--keep", action="store_true", help="keep the environments for the next run")
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent.parent / "docs" / "benchmarks" / "race.md"
    )
    options = parser.parse_args()
    options.venvs.mkdir(parents=True, exist_ok=True)
    racers = [
        Racer("geoind, globe", "with_geoind", Path(sys.executable), geoind.__version__),
        Racer("geoind, plane", "with_geoind_plane", Path(sys.executable), geoind.__version__),
    ]
    try:
        most = options.install_size * 1e9
        racers += [install(name, options.venvs, options.install_limit, most) for name in options.peers]
        for task in TASKS:
            for racer in racers:
                if racer.python is not None:
                    print(f"{task}: {racer.name}", end=" ", flush=True)
                    racer.results[task] = race(racer, task, options.limit, options.venvs)
                    shown = {key: value for key, value in racer.results[task].items() if key != "arrays"}
                    print(shown, flush=True)
    finally:
        if not options.keep:
            shutil.rmtree(options.venvs, ignore_errors=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(table.markdown(racers))
    print(f"written: {options.out}")


if __name__ == "__main__":
    main()
