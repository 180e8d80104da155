"""Speed and memory of `geoind obfuscate`, next to a plain copy of the same file by pyarrow and to the noise alone.

python3 dev.py bench files                       1e6 rows; prints the table and writes docs/benchmarks/files.md
python3 dev.py bench files 1000000 10000000      other sizes

Every number includes the start of Python, except that of the noise.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

OUT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks" / "files.md"
BLOCK = 1_000_000
KEPT = "id,time,note"

COPY = {
    "csv": """
import sys
from pyarrow import csv
csv.write_csv(csv.read_csv(sys.argv[1]), sys.argv[2])
""",
    "parquet": """
import sys
import pyarrow.parquet as pq
pq.write_table(pq.read_table(sys.argv[1]), sys.argv[2])
""",
}
NOISE = """
import sys, time
import numpy as np
from geoind import SphericalLaplace
places = np.random.default_rng(0).uniform([2.2, 48.8], [2.4, 48.9], (int(sys.argv[1]), 2))
mechanism = SphericalLaplace(0.01)
mechanism.sample(places[:1000])
wall, used = time.perf_counter(), time.process_time()
mechanism.sample(places)
print(time.perf_counter() - wall, time.process_time() - used)
"""
MEASURE = """
import resource, subprocess, sys, time
begun = time.perf_counter()
subprocess.run(sys.argv[1:], check=True)
wall = time.perf_counter() - begun
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(wall, used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


def write_places(path: Path, rows: int) -> None:
    """Write a CSV or Parquet file of five columns with places around a city, a million rows at a time."""
    rng = np.random.default_rng(0)
    schema = pa.schema(
        [("id", "int64"), ("time", "string"), ("lat", "float64"), ("lon", "float64"), ("note", "string")]
    )
    writer = pq.ParquetWriter(path, schema) if path.suffix == ".parquet" else pa.csv.CSVWriter(path, schema)
    with writer:
        for start in range(0, rows, BLOCK):
            count = min(BLOCK, rows - start)
            lat, lon = rng.uniform(48.8, 48.9, count).round(6), rng.uniform(2.2, 2.4, count).round(6)
            texts = [pa.repeat(text, count) for text in ("2026-01-01T00:00:00Z", "some text")]
            columns = [np.arange(start, start + count), texts[0], lat, lon, texts[1]]
            writer.write_table(pa.table(columns, schema=schema))


def measured(*command: str) -> tuple[float, float, float]:
    """Return seconds, processor seconds and peak megabytes of a command and its start."""
    run = subprocess.run([sys.executable, "-c", MEASURE, *command], capture_output=True, check=True, text=True)
    wall, seconds, kilobytes = map(float, run.stdout.split())
    return wall, seconds, kilobytes * (1 if sys.platform != "darwin" else 1 / 1024) / 1024


def line(name: str, rows: int) -> str:
    """Return one line of the table."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, f"places.{name}"), Path(folder, f"reports.{name}")
        write_places(source, rows)
        copy = measured(sys.executable, "-c", COPY[name], str(source), str(target))
        target.unlink()
        options = ["--each-row-a-person", "--keep", KEPT, "--epsilon", "0.01", "--quiet"]
        work = measured(sys.executable, "-m", "geoind", "obfuscate", str(source), str(target), *options)
        size = source.stat().st_size / 1e6
    run = subprocess.run([sys.executable, "-c", NOISE, str(rows)], capture_output=True, check=True, text=True)
    noise = tuple(map(float, run.stdout.split()))
    ratio = work[1] / (copy[1] + noise[1])
    cells = [f"{wall:.2f} s ({used:.2f} s)" for wall, used in (work[:2], copy[:2], noise)]
    return f"| {name} | {rows:,} | {size:,.0f} MB | {' | '.join(cells)} | {ratio:.1f} x | {work[2]:.0f} MB |"


def main() -> None:
    """Measure and write the table."""
    sizes = [int(size) for size in sys.argv[1:]] or [1_000_000]
    lines = [line(name, rows) for name in COPY for rows in sizes]
    text = "\n".join(
        [
            "# Files",
            "",
            "The same format out as in, five columns of which three are kept, secure randomness. Seconds, and in",
            f"brackets seconds of processor; {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}.",
            "The copy is made by pyarrow: the file is read and written. Both include the start of Python; the",
            "noise, drawn for an array, does not. The ratio is that of processor seconds, to copy and noise",
            "together.",
            "",
            "| format | rows | file | `geoind obfuscate` | copy | noise alone | ratio | peak memory |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
            *lines,
            "",
        ]
    )
    OUT.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
