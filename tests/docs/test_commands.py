"""The commands of the pages run, in the order of each page, on made-up files of the names that they use."""

import re
import secrets
import shlex
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from geoind import EACH_ROW, obfuscate_file
from geoind.cli import main
from tests.docs.pages import PAGES, ROOT, name_of

COMMANDS = ("obfuscate", "map", "estimate", "explain", "assess", "audit", "optimal", "extension", "demo --static")

ELSEWHERE = {
    "python3 dev.py run": "dev.py",
    "python3 dev.py test": "dev.py",
    "pip install": "tests/test_extras.py",
    "geoind demo": "tests/cli/test_demo.py",
    "geoind evaluate": "tests/cli/test_evaluate.py",
    "curl -s http://127.0.0.1:8765/api/explore": "tests/webdemo/test_app.py",
    "curl -H 'X-Person: ana'": "tests/webdemo/test_backend_example.py",
    "cat reports.csv.geoind.json": "tests/tables/test_record.py",
    "(umask 077": "tests/test_keys.py",
}
"""Commands that install, serve, need data of other people or take long, and the file that runs the same."""


def lines_of(page: Path) -> list[str]:
    """Return the lines of the console blocks of a page, an empty one after each block."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    texts = [block for kind, block in blocks if kind in ("", "console")]
    return [line.removeprefix("$ ") for block in texts for line in [*block.splitlines(), ""]]


def is_run(line: str) -> bool:
    """Return whether a line is a command that this file runs."""
    return re.match(rf"geoind ({'|'.join(COMMANDS)})( |$)", line) is not None


def commands(page: Path) -> list[tuple[str, str]]:
    """Return the commands of a page that run here, and the line after each."""
    return [(line, after) for line, after in pairwise([*lines_of(page), ""]) if is_run(line)]


SAMPLER = """
import geoind

def sample(points):
    degrees = abs(points - [10, 60]).max() < 5
    return (geoind.SphericalLaplace if degrees else geoind.PlanarLaplace)(0.01).sample(points)
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the pages name."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    lon, lat, to_lon, to_lat = rng.normal([[2.33], [48.86]] * 2, 0.004, (4, 300)).round(5)
    at = [f"2024-05-{1 + day:02}T08:00:00" for day in range(5) for _ in range(60)]
    who = [f"r{number}" for _ in range(5) for number in range(60)]
    trips = pd.DataFrame(
        {"trip": range(300), "rider": who, "person": who, "started_at": at, "time": at, "fare": 7.5, "note": "x"}
    )
    places = {"lat": lat, "lon": lon, "pickup_lat": lat, "pickup_lon": lon, "dropoff_lat": to_lat}
    trips = trips.assign(**places, dropoff_lon=to_lon)
    trips.to_csv("trips.csv", index=False)
    trips.to_parquet("trips.parquet")
    Path("trips").mkdir()
    trips.to_csv("trips/may.csv", index=False)
    pd.DataFrame({"name": [f"p{n}" for n in range(300)], "age": 36, "lat": lat, "lon": lon}).to_csv(
        "people.csv", index=False
    )
    pd.DataFrame({"lat": lat, "lon": lon}).to_csv("places.csv", index=False)
    for key in ("trips.key", "zones.key"):
        Path(key).write_text(secrets.token_hex(32))
        Path(key).chmod(0o600)
    Path("zones.csv").write_text("person,lat,lon\nr1,48.86,2.33\n")
    np.savetxt("counts.csv", np.ones((9, 9)), delimiter=",")
    Path("mypackage").mkdir()
    Path("mypackage/noise.py").write_text(SAMPLER)
    monkeypatch.syspath_prepend(tmp_path)
    points = "".join(f'<trkpt lat="48.86" lon="2.33"><time>{moment}Z</time></trkpt>' for moment in at[::60])
    Path("walk.gpx").write_text(f"<gpx><trk><trkseg>{points}</trkseg></trk></gpx>")
    for day in ("monday", "tuesday"):
        obfuscate_file("people.csv", f"{day}.parquet", person=EACH_ROW, epsilon=0.01)
    return tmp_path


@pytest.mark.parametrize("document", [page for page in PAGES if commands(page)], ids=name_of)
@pytest.mark.usefixtures("files")
def test_the_commands_of_a_page_run(document: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command, after in commands(document):
        if after.startswith("geoind: "):
            continue  # the error message of a bad record
        arguments = shlex.split(re.sub(r"\[.*?\]", "", command), comments=True)
        # A rule that holds is exit code 1, on whatever data.
        allowed = {0, 1} if "--fail-if" in arguments else {0}
        assert main(arguments[1:]) in allowed, f"{command}\n{capsys.readouterr().err}"


def test_every_command_of_a_page_runs_here_or_in_a_test_that_is_named() -> None:
    command = re.compile(r"(geoind|python3|pip|curl|cat|\(umask)[ :]?")
    missing = [
        f"{name_of(page)}: {line}"
        for page in PAGES
        for line in lines_of(page)
        if command.match(line) and not line.startswith("geoind: ") and not is_run(line)
        if not line.startswith(tuple(ELSEWHERE))
    ]
    assert missing == []
    assert [file for file in ELSEWHERE.values() if not (ROOT / file).exists()] == []


def test_commands_are_found() -> None:
    assert sum(len(commands(page)) for page in PAGES) > 15
