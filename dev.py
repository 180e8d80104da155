"""Set geoind up and run it, with nothing but Python 3.11+ and git on the machine.

python3 dev.py run      install into .venv and run the main job: a report and a map under output/
python3 dev.py test     install into .venv, then every check and every test
python3 dev.py check    ruff, mypy and import-linter only
python3 dev.py demo     the map demo in the browser
python3 dev.py bench    the benchmarks of benchmarks/, by name (none: list them)
"""

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
STAMP = VENV / "installed"
CORE = ["-e", "."]
EVERYTHING = ["-e", ".[all]", "--group", "dev"]

# What the tests use beside Python packages: the command to look for, and Debian's package for it.
DEBIAN_PACKAGES = {
    "chromium": "chromium",
    "java": "default-jre-headless",
}


def sh(*command: str | Path) -> None:
    """Run a command from the project's root and stop at its failure."""
    print("$", " ".join(map(str, command)), flush=True)
    done = subprocess.run([str(part) for part in command], cwd=ROOT, check=False)
    if done.returncode:
        sys.exit(done.returncode)


def install(packages: list[str]) -> None:
    """Make .venv and install the project, once per change of what it needs; everything holds the core, too."""
    wanted = hashlib.sha256(sys.version.encode())
    for name in ("pyproject.toml", "constraints.txt"):
        wanted.update((ROOT / name).read_bytes())
    stamps = [f"{wanted.hexdigest()} {' '.join(some)}" for some in (packages, EVERYTHING)]
    if STAMP.exists() and STAMP.read_text() in stamps:
        return
    if not PYTHON.exists():
        venv.create(VENV, with_pip=True)
    constrained = ["-c", "constraints.txt", *packages]
    with_uv = [PYTHON, "-m", "uv", "pip", "install", "--python", PYTHON, *constrained]
    subprocess.run([PYTHON, "-m", "pip", "install", "-q", "uv"], cwd=ROOT, check=False)
    print("$", *with_uv, flush=True)
    if subprocess.run(with_uv, cwd=ROOT, check=False).returncode:
        print("uv could not install; trying pip", flush=True)
        sh(PYTHON, "-m", "pip", "install", "-q", "--upgrade", "pip>=25.1")
        sh(PYTHON, "-m", "pip", "install", *constrained)
    STAMP.write_text(stamps[0])


def install_system() -> None:
    """Install the browser and the JVM that tests drive, where this user may; say loudly where not."""
    missing = {tool: package for tool, package in DEBIAN_PACKAGES.items() if not shutil.which(tool)}
    if missing and hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "update", "-q"], check=False, stdout=subprocess.DEVNULL)
        subprocess.run(
            ["apt-get", "install", "-q", "-y", "--no-install-recommends", *missing.values()],
            check=False,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            stdout=subprocess.DEVNULL,
        )
    for tool in missing:
        if not shutil.which(tool):
            print(f"!!! {tool} is not on this machine: the tests that need it WILL BE SKIPPED", flush=True)


def run() -> None:
    """Obfuscate the embedded example and draw it."""
    install(CORE)
    sh(PYTHON, "-m", "geoind", "example", "--out", "output")


def check() -> None:
    """Format, lint, types, layers."""
    install(EVERYTHING)
    sh(PYTHON, "-m", "ruff", "format", "--check", ".")
    sh(PYTHON, "-m", "ruff", "check", ".")
    sh(PYTHON, "-m", "mypy")
    sh(BIN / "lint-imports")


def test() -> None:
    """Every check, then every test."""
    install(EVERYTHING)
    install_system()
    check()
    sh(PYTHON, "-m", "pytest", "-n", "2", "--dist", "loadfile", *sys.argv[2:])


def demo() -> None:
    """Serve the map demo on this machine."""
    install(EVERYTHING)
    sh(PYTHON, "-m", "geoind", "demo", *sys.argv[2:])


def bench() -> None:
    """Run the named benchmark, or list what there is."""
    install(EVERYTHING)
    names = sorted(path.stem for path in (ROOT / "benchmarks").glob("[!_]*.py"))
    if len(sys.argv) < 3 or sys.argv[2] not in names:
        sys.exit("python3 dev.py bench NAME, one of: " + ", ".join(names))
    sh(PYTHON, ROOT / "benchmarks" / f"{sys.argv[2]}.py", *sys.argv[3:])


COMMANDS: dict[str, Callable[[], None]] = {
    "run": run,
    "test": test,
    "check": check,
    "demo": demo,
    "bench": bench,
}

if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036
        sys.exit("geoind needs Python 3.11 or newer")
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        sys.exit(__doc__)
    COMMANDS[sys.argv[1]]()
