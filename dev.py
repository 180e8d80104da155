"""Set geoind up and run it, with nothing but Python 3.11+ and git on the machine.

python3 dev.py run      install into .venv and run the example: reports and a map under output/
python3 dev.py test     install into .venv, then every check and every test
python3 dev.py test --fast    the tests that are not marked `slow`, with a fifth of the random trials; no checks
python3 dev.py check    ruff, mypy and import-linter; Biome and tsc for the JavaScript
python3 dev.py demo     the map demo in the browser
python3 dev.py bench    the benchmarks of benchmarks/, by name (without a name: list them)
python3 dev.py notebooks  run the notebooks and store them with their pictures
python3 dev.py docs     build the documentation as a site: docs/_build/html/index.html
python3 dev.py mutants  change the named files at random places and count the changes that the tests detect
python3 dev.py ci       run in a new clone, the built wheel, every test; on the newest Python the fast tests,
                        on other Pythons the examples of the library

More arguments of `test` go to pytest: python3 dev.py test tests/mechanisms -x
"""

# Older Pythons must be able to parse this file, to print that they are too old.
from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
STAMP = VENV / "installed"
NODE_STAMP = ROOT / "node_modules" / "installed"
CORE = ["-e", "."]
EVERYTHING = ["-e", ".[all]", "--group", "dev"]
ALL_BUT_SPARK = ["-e", ".[postgres,estimate,demo,dask,polars,duckdb,opendp,h3,raster]", "--group", "dev"]
"""For the fast tests on other Pythons, which start no JVM: Spark is half a gigabyte."""
# tests/conftest.py puts the slow files first: no worker is left with a long file at the end. Three workers for two
# cores, because tests wait for browsers, servers and the JVM; four take longer.
TESTS = ["-m", "pytest", "-n", "3", "--dist", "loadfile", "--no-loadscope-reorder"]
# The fast tests compute and seldom wait, and a worker's imports and collection take as long as 600 of them.
FAST = ["-n", str(min(os.cpu_count() or 2, 4)), "-m", "not slow"]
SITE = ["-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", "-j", "auto"]
COLLECT = ["-m", "pytest", "--collect-only", "-qqq"]
"""In a new environment no module is compiled, and workers that collect at once would each compile all of them."""
ON_OTHERS = ["-n", FAST[1], "--assert=plain"]
"""Rewriting the asserts of all test files takes each worker 20 s; a failure is run again without this option."""
EXAMPLES = ["geoind"]
"""The doctests: every public name has one, and a Python between two that are tested needs no more."""
COVERAGE = ["--cov=geoind", "--cov-report=term:skip-covered", "--cov-fail-under=96"]

# Behind a proxy with its own certificates: pip uses those of the system, uv only with this variable.
os.environ.setdefault("UV_SYSTEM_CERTS", "true")
os.environ.setdefault("PIP_DISABLE_PIP_VERSION_CHECK", "1")
# Without stored bytecode each of the many processes that tests start would compile every package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

DEBIAN_PACKAGES = {
    "chromium": "chromium",
    "java": "default-jre-headless",
    "node": "nodejs",
    "npm": "npm",
}
"""Commands that the tests use, and the packages of Debian that have them."""


def sh(*command: str | Path, folder: Path = ROOT, collect: bool = False) -> None:
    """Run a command in a folder of the project and exit if it fails; print its output, or collect it first."""
    shown = f"$ {' '.join(map(str, command))}"
    if not collect:
        print(shown, flush=True)
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        check=False,
        text=True,
        stdout=subprocess.PIPE if collect else None,
        stderr=subprocess.STDOUT if collect else None,
    )
    if collect:
        print(f"{shown}\n{done.stdout}", end="", flush=True)
    if done.returncode:
        sys.exit(f"failed: {shown}")


def apt_install(packages: list[str]) -> None:
    """Install packages of Debian, as root on Debian; elsewhere do nothing."""
    if not (hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get")):
        return
    apt = ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=300"]
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for step in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
        subprocess.run([*apt, *step], check=False, env=quiet, stdout=subprocess.DEVNULL)


def make_venv() -> None:
    """Make .venv unless it exists, is complete, and is of this Python."""
    if PYTHON.exists():
        whole: list[str | Path] = [PYTHON, "-c", "import pip, sys; print(sys.version)"]
        if subprocess.run(whole, capture_output=True, text=True, check=False).stdout.strip() == sys.version:
            return
    # Debian and Ubuntu have a part of the standard library in a separate package.
    debian = f"python3.{sys.version_info.minor}-venv"
    if find_spec("ensurepip") is None:
        apt_install([debian])
    # In a new process: this one has cached that the module was missing.
    if subprocess.run(
        [sys.executable, "-c", "import venv, ensurepip"], capture_output=True, check=False
    ).returncode:
        sys.exit(f"this Python cannot make a virtual environment: install the package {debian} (as root) first")
    sh(sys.executable, "-m", "venv", "--clear", VENV)


def install(packages: list[str]) -> None:
    """Make .venv and install the project, unless these requirements are installed already."""
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
    """Install the browser and the JVM for the tests if possible, and print what is missing otherwise."""
    missing = {tool: package for tool, package in DEBIAN_PACKAGES.items() if not shutil.which(tool)}
    if missing:
        apt_install([*missing.values()])
    for tool in missing:
        if not shutil.which(tool):
            print(f"!!! {tool} is not on this machine: the tests that need it WILL BE SKIPPED", flush=True)


def install_javascript() -> bool:
    """Install the tools that package.json names into node_modules; return whether they are there."""
    if not (shutil.which("node") and shutil.which("npm")):
        apt_install([DEBIAN_PACKAGES["node"], DEBIAN_PACKAGES["npm"]])
    npm = shutil.which("npm")
    if not npm:
        print("!!! npm is not on this machine: THE JAVASCRIPT WAS NOT CHECKED", flush=True)
        return False
    wanted = hashlib.sha256((ROOT / "package.json").read_bytes()).hexdigest()
    if not (NODE_STAMP.exists() and NODE_STAMP.read_text() == wanted):
        sh(npm, "install", "--no-package-lock", "--no-audit", "--no-fund", "--silent")
        NODE_STAMP.write_text(wanted)
    return True


def run() -> None:
    """Obfuscate the example data and draw a map."""
    install(CORE)
    sh(PYTHON, "-m", "geoind", "example", "--out", "output")


def check(*, collect: bool = False) -> None:
    """Check format, lint, types and layers, and the JavaScript."""
    install(EVERYTHING)
    sh(PYTHON, "-m", "ruff", "format", "--check", ".", collect=collect)
    sh(PYTHON, "-m", "ruff", "check", ".", collect=collect)
    sh(PYTHON, "-m", "mypy", collect=collect)
    sh(BIN / "lint-imports", collect=collect)
    if install_javascript():
        for tool in (["biome", "ci", "--error-on-warnings"], ["tsc"], ["tsc", "-p", "webdemo/static"]):
            sh("npm", "exec", "--offline", "--", *tool, collect=collect)


def test() -> None:
    """Run every check and every test side by side; with --fast only the tests that are not slow."""
    install(EVERYTHING)
    arguments = sys.argv[2:]
    if "--fast" in arguments:
        arguments.remove("--fast")
        os.environ.setdefault("GEOIND_TRIALS", "0.2")
        sh(PYTHON, *TESTS, *FAST, *arguments)
        return
    install_system()
    install_javascript()
    with ThreadPoolExecutor(1) as side:
        checked = side.submit(check, collect=True)
        sh(PYTHON, *TESTS, *arguments)
        checked.result()


def demo() -> None:
    """Serve the map demo on this machine."""
    install(EVERYTHING)
    sh(PYTHON, "-m", "geoind", "demo", *sys.argv[2:])


def bench() -> None:
    """Run the named benchmark, or list all."""
    install(EVERYTHING)
    names = sorted(path.stem for path in (ROOT / "benchmarks").glob("[!_]*.py"))
    if len(sys.argv) < 3 or sys.argv[2] not in names:
        sys.exit("python3 dev.py bench NAME, one of: " + ", ".join(names))
    sh(PYTHON, ROOT / "benchmarks" / f"{sys.argv[2]}.py", *sys.argv[3:])


def notebooks() -> None:
    """Run the notebooks, all or those named, and store them with their pictures."""
    install(EVERYTHING)
    sh(PYTHON, ROOT / "notebooks" / "refresh.py", *sys.argv[2:])


def docs() -> None:
    """Build the documentation as a site, with warnings as errors."""
    install(EVERYTHING)
    sh(PYTHON, *SITE, "-d", "docs/_build/doctrees", "docs", "docs/_build/html")
    print(f"open {ROOT / 'docs' / '_build' / 'html' / 'index.html'}")


def ci() -> None:
    """Run a new clone, the built wheel, every test, and on other Pythons the fast tests or the examples."""
    # Packages that are installed elsewhere must not be found.
    for variable in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"):
        os.environ.pop(variable, None)
    began = time.monotonic()

    def done(what: str) -> None:
        print(f"=== {what}: passed, {time.monotonic() - began:.0f} s after the start\n", flush=True)

    with tempfile.TemporaryDirectory(prefix="geoind-ci-") as name, ThreadPoolExecutor(1) as side:
        folder = Path(name)
        first_command(folder / "clone")
        done("python3 dev.py run in a new clone")
        install(EVERYTHING)
        # Installing waits for disk and network, while the tests compute.
        built = side.submit(try_packages, folder)
        others = {
            version: side.submit(make_environment, python, folder / version)
            for version, python in other_pythons().items()
        }
        sh(PYTHON, *COLLECT)
        test()
        done("python3 dev.py test")
        built.result()
        done("the built wheel, without extras and with the demo's")

        for version in promised_pythons() - {*others, f"{sys.version_info.major}.{sys.version_info.minor}"}:
            print(f"!!! Python {version} is not on this machine: NOTHING WAS TESTED ON IT", flush=True)
        # From 3.12 on counting lines costs almost nothing.
        os.environ["COVERAGE_CORE"] = "sysmon"
        # Random draws do not depend on the interpreter: a fifth of the trials is enough.
        os.environ["GEOIND_TRIALS"] = "0.2"
        newest = max(others, key=_numbers, default="")
        for version, made in others.items():
            counted = COVERAGE if _numbers(version) > (3, 11) else []
            what, tests = ("fast tests", [*FAST, *counted]) if version == newest else ("examples", EXAMPLES)
            sh(made.result(), *TESTS, *ON_OTHERS, *tests)
            done(f"the {what} on Python {version}")
        # Built wheels of earlier runs are not removed by themselves and would fill the disk.
        subprocess.run([PYTHON, "-m", "uv", "cache", "prune", "-q"], check=False)


def first_command(clone: Path) -> None:
    """Run the first command of the README in a new clone, and check its files."""
    sh("git", "clone", "-q", ROOT, clone)
    sh(sys.executable, "dev.py", "run", folder=clone)
    for made in ("reports.csv", "reports.csv.geoind.json", "truth.csv", "map.html"):
        if not (clone / "output" / made).stat().st_size:
            sys.exit(f"python3 dev.py run wrote an empty {made}")


def try_packages(folder: Path) -> None:
    """Build the packages of the clone, and use the wheel in an empty environment, alone and with the demo's extra.

    uv builds the wheel from the source package, so the wheel proves both.
    """
    uv: list[str | Path] = [PYTHON, "-m", "uv"]
    sh(*uv, "build", "-q", "--out-dir", folder / "dist", folder=folder / "clone", collect=True)
    packages = sorted((folder / "dist").glob("geoind-*"))
    sh(PYTHON, "-m", "twine", "check", "--strict", *packages, collect=True)
    [wheel] = [package for package in packages if package.suffix == ".whl"]
    empty = folder / "empty"
    python = empty / PYTHON.relative_to(VENV)
    sh(*uv, "venv", "-q", "--python", sys.executable, empty, collect=True)
    for wanted, part in ((str(wheel), []), (f"{wheel}[demo]", ["demo"])):
        sh(*uv, "pip", "install", "-q", "--python", python, "-c", ROOT / "constraints.txt", wanted, collect=True)
        sh(python, "-I", ROOT / ".ci" / "installed.py", *part, folder=folder, collect=True)


def make_environment(python: str, folder: Path) -> Path:
    """Return the interpreter of a new environment of another Python, with what the fast tests need."""
    uv: list[str | Path] = [PYTHON, "-m", "uv"]
    made = folder / PYTHON.relative_to(VENV)
    sh(*uv, "venv", "-q", "--python", python, folder, collect=True)
    sh(*uv, "pip", "install", "-q", "--python", made, "-c", "constraints.txt", *ALL_BUT_SPARK, collect=True)
    return made


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def promised_pythons() -> set[str]:
    """Return the versions that pyproject.toml names."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {name.rsplit(" ", 1)[1] for name in project["classifiers"] if ":: Python :: 3." in name}


def other_pythons() -> dict[str, str]:
    """Return an interpreter of each other Python from 3.11 on that is installed."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    on_path = [shutil.which(f"python3.{minor}") for minor in range(11, 30)]
    found: dict[str, str] = {}
    for python in [*map(str, sorted(pyenv.glob("versions/*/bin/python"))), *filter(None, on_path)]:
        ask = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        version = subprocess.run(ask, capture_output=True, text=True, check=False).stdout.strip()
        # A shim of pyenv for a version that is not selected prints no version.
        if version and (3, 11) <= _numbers(version) != sys.version_info[:2]:
            found[version] = python
    return found


def mutants() -> None:
    """Change the named files, one place at a time, and run their tests."""
    install(EVERYTHING)
    sh(PYTHON, ROOT / "benchmarks" / "mutants.py", *sys.argv[2:])


COMMANDS: dict[str, Callable[[], None]] = {
    "run": run,
    "test": test,
    "check": check,
    "demo": demo,
    "bench": bench,
    "notebooks": notebooks,
    "docs": docs,
    "mutants": mutants,
    "ci": ci,
}

if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036
        sys.exit("geoind needs Python 3.11 or newer")
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        sys.exit(__doc__)
    COMMANDS[sys.argv[1]]()
