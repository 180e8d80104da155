"""Set geoind up and run it, with nothing but Python 3.11+ and git on the machine.

python3 dev.py run      install into .venv and run the main job: a report and a map under output/
python3 dev.py test     install into .venv, then every check and every test
python3 dev.py check    ruff, mypy and import-linter only
python3 dev.py demo     the map demo in the browser
python3 dev.py bench    the benchmarks of benchmarks/, by name (none: list them)
python3 dev.py notebooks  run the notebooks and store them with their pictures
python3 dev.py mutants  break the named files at random places and see whether the tests notice
python3 dev.py ci       the first two as a newcomer has them, the built packages, and the tests on other Pythons
"""

# An older Python reads this file, too, and is told that it is too old.
from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
STAMP = VENV / "installed"
CORE = ["-e", "."]
EVERYTHING = ["-e", ".[all]", "--group", "dev"]
ALL_BUT_SPARK = ["-e", ".[postgres,estimate,demo,dask,polars,duckdb,opendp]", "--group", "dev"]
"""What the tests on other Pythons need: Spark is half a gigabyte, built anew each time, and they have no JVM."""
TESTS = ["-m", "pytest", "-n", "2", "--dist", "loadfile"]
COVERAGE = ["--cov=geoind", "--cov-report=term:skip-covered", "--cov-fail-under=97"]
EVERYWHERE = "not browser and not jvm and not notebook"
"""The tests that run on every Python."""

# Behind a company's proxy the certificates are those of the system: pip takes them, uv when told so.
os.environ.setdefault("UV_SYSTEM_CERTS", "true")
os.environ.setdefault("PIP_DISABLE_PIP_VERSION_CHECK", "1")
# Without stored bytecode each of the many processes that tests start would compile every package anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# What the tests use beside Python packages: the command to look for, and Debian's package for it.
DEBIAN_PACKAGES = {
    "chromium": "chromium",
    "java": "default-jre-headless",
}


def sh(*command: str | Path, folder: Path = ROOT) -> None:
    """Run a command in a folder of the project and stop at its failure."""
    print("$", " ".join(map(str, command)), flush=True)
    done = subprocess.run([str(part) for part in command], cwd=folder, check=False)
    if done.returncode:
        sys.exit(done.returncode)


def apt_install(packages: list[str]) -> None:
    """Install Debian's packages where this user may; elsewhere do nothing."""
    if not (hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get")):
        return
    apt = ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=300"]
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for step in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
        subprocess.run([*apt, *step], check=False, env=quiet, stdout=subprocess.DEVNULL)


def make_venv() -> None:
    """Make .venv unless it is there, whole, and of this Python."""
    if PYTHON.exists():
        whole: list[str | Path] = [PYTHON, "-c", "import pip, sys; print(sys.version)"]
        if subprocess.run(whole, capture_output=True, text=True, check=False).stdout.strip() == sys.version:
            return
    # Debian and Ubuntu keep a part of Python's own library in a package of its own.
    debian = f"python3.{sys.version_info.minor}-venv"
    if find_spec("ensurepip") is None:
        apt_install([debian])
    # Asked of a new process: this one remembers what it did not find.
    venv = [sys.executable, "-m", "venv", "--clear", str(VENV)]
    if subprocess.run(
        [sys.executable, "-c", "import venv, ensurepip"], capture_output=True, check=False
    ).returncode:
        sys.exit(f"this Python cannot make a virtual environment: install the package {debian} (as root) first")
    sh(*venv)


def install(packages: list[str]) -> None:
    """Make .venv and install the project, once per change of what it needs; everything holds the core, too."""
    wanted = hashlib.sha256(sys.version.encode())
    for name in ("pyproject.toml", "constraints.txt"):
        wanted.update((ROOT / name).read_bytes())
    stamps = [f"{wanted.hexdigest()} {' '.join(some)}" for some in (packages, EVERYTHING)]
    if STAMP.exists() and STAMP.read_text() in stamps:
        return
    make_venv()
    constrained = ["-c", "constraints.txt", *packages]
    with_uv: list[str | Path] = [PYTHON, "-m", "uv", "pip", "install", "--python", PYTHON, *constrained]
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
    if missing:
        apt_install([*missing.values()])
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
    sh(PYTHON, *TESTS, *sys.argv[2:])


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


def notebooks() -> None:
    """Run the notebooks, all or those named, and store them with their pictures."""
    install(EVERYTHING)
    sh(PYTHON, ROOT / "notebooks" / "refresh.py", *sys.argv[2:])


def ci() -> None:
    """Prove both commands where nothing is installed, the built packages, and the other Pythons."""
    # What is installed elsewhere must not help.
    for variable in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"):
        os.environ.pop(variable, None)
    began = time.monotonic()

    def done(what: str) -> None:
        print(f"=== {what}: proven, {time.monotonic() - began:.0f} s after the start\n", flush=True)

    with tempfile.TemporaryDirectory(prefix="geoind-ci-") as name:
        folder = Path(name)
        clone = folder / "clone"
        sh("git", "clone", "-q", ROOT, clone)
        sh(sys.executable, "dev.py", "run", folder=clone)
        for made in ("reports.csv", "reports.csv.geoind.json", "truth.csv", "map.html"):
            if not (clone / "output" / made).stat().st_size:
                sys.exit(f"python3 dev.py run wrote an empty {made}")
        done("python3 dev.py run in a new clone")

        uv: list[str | Path] = [clone / PYTHON.relative_to(ROOT), "-m", "uv"]
        # What earlier runs built is not removed by itself and would fill the disk.
        subprocess.run([*uv, "cache", "prune", "-q"], check=False)
        sh(*uv, "build", "-q", "--out-dir", folder / "dist", folder=clone)
        for package in sorted((folder / "dist").glob("geoind-*")):
            empty = folder / f"empty-{package.suffix[1:]}"
            plain = empty / PYTHON.relative_to(VENV)
            sh(*uv, "venv", "-q", "--python", sys.executable, empty)
            sh(*uv, "pip", "install", "-q", "--python", plain, "-c", ROOT / "constraints.txt", package)
            sh(plain, "-I", ROOT / ".ci" / "installed.py", folder=folder)
            done(f"{package.name} without extras")
            sh(*uv, "pip", "install", "-q", "--python", plain, "-c", ROOT / "constraints.txt", f"{package}[demo]")
            sh(plain, "-I", ROOT / ".ci" / "installed.py", "demo", folder=folder)
            done(f"the demo of {package.name}")

    test()
    done("python3 dev.py test")

    with tempfile.TemporaryDirectory(prefix="geoind-ci-") as name:
        uv = [PYTHON, "-m", "uv"]
        found = other_pythons()
        # Coverage is measured once, by the newest: from 3.12 on Python counts lines almost for nothing.
        os.environ["COVERAGE_CORE"] = "sysmon"
        # Chance does not depend on the interpreter: a fifth of the random trials will do.
        os.environ["GEOIND_TRIALS"] = "0.2"
        newest = max(found, default="")
        ours = f"{sys.version_info.major}.{sys.version_info.minor}"
        for version in promised_pythons() - {*found, ours}:
            print(f"!!! Python {version} is not on this machine: NOTHING WAS TESTED ON IT", flush=True)
        for version, python in found.items():
            own = Path(name) / version
            its_python = own / PYTHON.relative_to(VENV)
            sh(*uv, "venv", "-q", "--python", python, own)
            sh(*uv, "pip", "install", "-q", "--python", its_python, "-c", "constraints.txt", *ALL_BUT_SPARK)
            sh(its_python, *TESTS, "-m", EVERYWHERE, *(COVERAGE if version == newest > "3.11" else []))
            done(f"the tests on Python {version} ({EVERYWHERE})")


def promised_pythons() -> set[str]:
    """Return the versions that pyproject.toml names."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {name.rsplit(" ", 1)[1] for name in project["classifiers"] if ":: Python :: 3." in name}


def other_pythons() -> dict[str, str]:
    """Return one interpreter for each Python from 3.11 on that is neither this one nor absent."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    on_path = [shutil.which(f"python3.{minor}") for minor in range(11, 30)]
    found: dict[str, str] = {}
    for python in [*map(str, sorted(pyenv.glob("versions/*/bin/python"))), *filter(None, on_path)]:
        ask = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        version = subprocess.run(ask, capture_output=True, text=True, check=False).stdout.strip()
        # pyenv has a python3.13 in the path that only tells which versions to choose from.
        if version and (3, 11) <= tuple(map(int, version.split("."))) != sys.version_info[:2]:
            found[version] = python
    return found


def mutants() -> None:
    """Break the named files, one place at a time, and run the tests that belong to them."""
    install(EVERYTHING)
    sh(PYTHON, ROOT / "benchmarks" / "mutants.py", *sys.argv[2:])


COMMANDS: dict[str, Callable[[], None]] = {
    "run": run,
    "test": test,
    "check": check,
    "demo": demo,
    "bench": bench,
    "notebooks": notebooks,
    "mutants": mutants,
    "ci": ci,
}

if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036
        sys.exit("geoind needs Python 3.11 or newer")
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        sys.exit(__doc__)
    COMMANDS[sys.argv[1]]()
