"""Use geoind as installed from a package, in an environment that has nothing else.

Without arguments the environment has no extras; with `demo` it has the demo's extra, and serves a page.
"""

import subprocess
import sys
import tempfile
import urllib.request
from importlib.util import find_spec
from pathlib import Path

import geoind
from geoind.cli import command_parsers

EXTRAS = ("matplotlib", "ot", "sqlalchemy", "psycopg", "fastapi", "uvicorn", "pyrosm", "dask", "pyspark")


def expect(true: bool, what: str) -> None:
    """Exit with a message unless the condition holds."""
    if not true:
        sys.exit(f"a plain install of geoind: {what}")


def command(*arguments: str, code: int = 0) -> str:
    """Return the output of `geoind` on both streams, if it ends with that exit code."""
    script = Path(sys.executable).with_name("geoind")
    done = subprocess.run(
        [script, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    expect(done.returncode == code, f"`geoind {' '.join(arguments)}` ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def try_demo() -> None:
    """Start the demo and request its pages and scripts."""
    script = Path(sys.executable).with_name("geoind")
    with subprocess.Popen(
        [script, "demo", "--port", "0", "--no-browser"], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            printed = server.stdout.readline() if server.stdout else ""
            expect("http://127.0.0.1:" in printed, f"`geoind demo` printed {printed!r}")
            root = printed.split()[4].removesuffix("story/")
            for path in ("", "story/", "story/town.js", "static/js/app.js", "assets/leaflet"):
                with urllib.request.urlopen(root + path, timeout=60) as answer:
                    expect(answer.status == 200 and len(answer.read()) > 1000, f"the demo has no /{path}")
        finally:
            server.terminate()
    print("geoind demo serves its page")


def try_plain() -> None:
    """Run one call, the example, files, and the help of every command."""
    there = [name for name in EXTRAS if find_spec(name)]
    expect(not there, f"the environment is not empty: {there}")

    report = geoind.obfuscate(lat=48.8584, lon=2.2945, level=1.386, radius=200)
    expect(0 < abs(report.lat - 48.8584) < 1, "a report is not near its place")

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command("example", "--out", str(folder / "example"))
        page = (folder / "example" / "map.html").read_text()
        expect(len(page) > 100_000 and "cdn" not in page, "the example's map loads files from elsewhere")
        places = folder / "places.csv"
        places.write_text("name,lat,lon\nEiffel,48.8584,2.2945\nMontparnasse,48.8421,2.3219\n")
        for target in ("reports.csv", "reports.parquet"):
            if target.endswith("parquet"):
                import pandas as pd

                places = folder / "places.parquet"
                pd.read_csv(folder / "places.csv").to_parquet(places)
            declared = ("--each-row-a-person", "--keep", "name", "--factor", "4", "--radius", "200")
            command("obfuscate", str(places), str(folder / target), *declared)
            command("map", str(folder / target), "--out", str(folder / "map.html"))
        lines = (folder / "reports.csv").read_text().splitlines()
        expect(len(lines) == 3 and lines[1].startswith("Eiffel,48."), "a CSV file has other rows or columns")
        command("extension", "--out", str(folder / "extension"))
        expect((folder / "extension" / "geoind.js").is_file(), "the extension has no noise")
        printed = command("demo", code=2)
        expect(
            printed.count("\n") == 1 and 'pip install ".[demo]"' in printed,
            f"the demo did not name its extra: {printed}",
        )

    for name in command_parsers():
        command(name, "--help")
    print(f"geoind {geoind.__version__} works without extras on Python {sys.version.split()[0]}")


if __name__ == "__main__":
    here = Path(geoind.__file__).parent
    expect("site-packages" in here.parts, f"geoind came from {here}, not from the package")
    try_demo() if "demo" in sys.argv else try_plain()
