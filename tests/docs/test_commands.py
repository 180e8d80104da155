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

ROOT = Path(__file__).resolve().parents[2]
ENGINES = ("clusters.md", "engines.md", "spark.md")
PAGES = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in ENGINES)]
COMMANDS = ("obfuscate", "map", "estimate", "explain")


def commands(page: Path) -> list[tuple[str, str]]:
    """Return the commands of a page, and the line after each."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    texts = [block for kind, block in blocks if kind in ("", "console", "sh")]
    shown = [line.removeprefix("$ ") for block in texts for line in [*block.splitlines(), ""]]
    wanted = re.compile(rf"geoind ({'|'.join(COMMANDS)}) ")
    return [(line, after) for line, after in pairwise([*shown, ""]) if wanted.match(line)]


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
    for key in ("trips.key", "zones.key"):
        Path(key).write_text(secrets.token_hex(32))
        Path(key).chmod(0o600)
    Path("zones.csv").write_text("person,lat,lon\nr1,48.86,2.33\n")
    points = "".join(f'<trkpt lat="48.86" lon="2.33"><time>{moment}Z</time></trkpt>' for moment in at[::60])
    Path("walk.gpx").write_text(f"<gpx><trk><trkseg>{points}</trkseg></trk></gpx>")
    for day in ("monday", "tuesday"):
        obfuscate_file("people.csv", f"{day}.parquet", person=EACH_ROW, epsilon=0.01)
    return tmp_path


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=lambda page: page.name)
@pytest.mark.usefixtures("files")
def test_the_commands_of_a_page_run(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command, after in commands(page):
        if after.startswith("geoind: "):
            continue  # the error message of a bad record
        arguments = shlex.split(re.sub(r"\[.*?\]", "", command), comments=True)
        assert main(arguments[1:]) == 0, f"{command}\n{capsys.readouterr().err}"


def test_commands_are_found() -> None:
    assert sum(len(commands(page)) for page in PAGES) > 15
