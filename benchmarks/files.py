"""Speed and memory of `geoind obfuscate`, against a copy of the same file by Python's csv or json module.

python3 dev.py bench files           1e5, 1e6 and 1e7 rows; prints the table and writes docs/benchmarks/files.md
python3 dev.py bench files 100000    other sizes
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

OUT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks" / "files.md"
BLOCK = 100_000

LARGEST_GEOJSON = 1_000_000
"""The json module, which holds all of a file, would need too much memory for more."""

COPY = {
    "csv": """
import csv, sys
with open(sys.argv[1], newline="") as source, open(sys.argv[2], "w", newline="") as target:
    csv.writer(target).writerows(csv.reader(source))
""",
    "geojson": """
import json, sys
with open(sys.argv[1]) as source, open(sys.argv[2], "w") as target:
    json.dump(json.load(source), target)
""",
}
MEASURE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


def write_places(path: Path, rows: int) -> None:
    """Write a CSV or GeoJSON file of `rows` places around a city, a hundred thousand at a time."""
    rng = np.random.default_rng(0)
    feature = (
        '{{"type": "Feature", "properties": {{"id": {}, "time": "2026-01-01T00:00:00Z", "note": "some text"}}, '
        '"geometry": {{"type": "Point", "coordinates": [{:.6f}, {:.6f}]}}}}'
    )
    with path.open("w") as file:
        file.write(
            "id,time,lat,lon,note\n" if path.suffix == ".csv" else '{"type": "FeatureCollection", "features": ['
        )
        for start in range(0, rows, BLOCK):
            count = min(BLOCK, rows - start)
            lat, lon = rng.uniform(48.8, 48.9, count).tolist(), rng.uniform(2.2, 2.4, count).tolist()
            if path.suffix == ".csv":
                file.writelines(
                    f"{start + i},2026-01-01T00:00:00Z,{lat[i]:.6f},{lon[i]:.6f},some text\n" for i in range(count)
                )
            else:
                texts = [feature.format(start + i, lon[i], lat[i]) for i in range(count)]
                file.write((",\n" if start else "\n") + ",\n".join(texts))
        file.write("" if path.suffix == ".csv" else "\n]}\n")


def measured(*command: str) -> tuple[float, float]:
    """Return processor seconds and peak megabytes of a command and its start."""
    run = subprocess.run([sys.executable, "-c", MEASURE, *command], capture_output=True, check=True, text=True)
    seconds, kilobytes = map(float, run.stdout.split())
    return seconds, kilobytes * (1 if sys.platform != "darwin" else 1 / 1024) / 1024


def main() -> None:
    """Measure and write the table."""
    sizes = [int(size) for size in sys.argv[1:]] or [100_000, 1_000_000, 10_000_000]
    lines = [
        "| format | rows | file | `geoind obfuscate` | rows per second | against a copy | peak memory |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, rows in [(name, rows) for name in COPY for rows in sizes]:
        if name == "geojson" and rows > LARGEST_GEOJSON:
            continue
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder, f"places.{name}"), Path(folder, f"reports.{name}")
            write_places(source, rows)
            copy, _ = measured(sys.executable, "-c", COPY[name], str(source), str(target))
            noise = ["--epsilon", "0.01", "--quiet"]
            work, memory = measured(sys.executable, "-m", "geoind", "obfuscate", str(source), str(target), *noise)
            size = source.stat().st_size / 1e6
        lines.append(
            f"| {name} | {rows:,} | {size:,.0f} MB | {work:.1f} s | {rows / work:,.0f} "
            f"| {work / copy:.1f} x | {memory:.0f} MB |"
        )
    text = "\n".join(
        [
            "# Files",
            "",
            "The same format out as in, secure randomness, one process, processor time with the start of Python.",
            "The copy is made by Python's own `csv` or `json` module:",
            "",
            *lines,
            "",
        ]
    )
    OUT.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
