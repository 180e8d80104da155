"""The program, in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import runpy, sys
try:
    runpy.run_module("geoind", run_name="__main__", alter_sys=True)
except SystemExit as end:
    print(end.code, *sys.modules)
"""


@pytest.mark.parametrize(
    ("source", "target", "heavy"),
    [
        ("in.csv", "out.parquet", {"pandas", "scipy", "pyproj", "shapely"}),
        ("in.ndjson", "out.gpkg", {"pandas", "scipy"}),
    ],
)
def test_the_program_obfuscates_files_without_loading_heavy_packages(
    tmp_path: Path, source: str, target: str, heavy: set[str]
) -> None:
    texts = {"in.csv": "who,lat,lon\nana,48.86,2.35\n", "in.ndjson": '{"who": "ana", "lat": 48.86, "lon": 2.35}\n'}
    (tmp_path / source).write_text(texts[source])
    options = ["--each-row-a-person", "--keep", "who", "--epsilon", "0.01", "--missing", "keep"]
    line = ["obfuscate", str(tmp_path / source), str(tmp_path / target), *options]
    done = subprocess.run([sys.executable, "-c", PROGRAM, *line], capture_output=True, text=True, check=True)
    code, *loaded = done.stdout.split()
    assert code == "0"
    assert not heavy & {*loaded}
    assert (tmp_path / target).exists()
