"""`geoind demo`: one command, one sentence when it cannot, and this machine only."""

import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from geoind.cli import main


def test_the_command_serves_the_demo_on_this_machine_and_stops_after_an_interrupt(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "geoind", "demo", "--port", "0", "--no-browser", "--online-tiles"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env={**os.environ}
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("The demo is at http://127.0.0.1:")
        story = httpx.URL(line.split()[4])
        for address in (story, story.join("../")):
            page = httpx.get(address, timeout=60, trust_env=False)
            assert page.status_code == 200
            assert "{{" not in page.text
        # The story has no tiles.
        assert "tile.openstreetmap.org" in page.headers["content-security-policy"]
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert "sees your address and which streets you look at" in errors


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--basemap", "nowhere.gpkg"], "does not exist"),
        (["--port", "70000"], "between 0 and 65535"),
        (["--static", "story", "--online-tiles"], "leave out --online-tiles"),
        (["--static", str(Path(__file__).parent)], "must be a new or an empty folder"),
    ],
)
def test_a_bad_option_gets_one_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--no-browser", *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_the_story_is_written_into_a_folder_and_nothing_is_served(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    town = {"type": "LineString", "coordinates": [[2.29, 48.85], [2.30, 48.86], [2.31, 48.85]]}
    basemap = tmp_path / "town.geojson"
    basemap.write_text(json.dumps({"type": "Feature", "geometry": town, "properties": {}}))
    folder = tmp_path / "of" / "mine"
    assert main(["demo", "--static", str(folder), "--basemap", str(basemap)]) == 0
    assert str(folder / "index.html") in capsys.readouterr().out
    data = json.loads(folder.joinpath("town.js").read_text("utf-8").removeprefix("const TOWN = ").rstrip(";\n"))
    assert data["name"] == "town"
    # Without buildings people may be anywhere: each cell is a place of its own.
    assert len(data["shapes"]["buildings"]["rings"]) == len(data["homes"]["building"]) > 1000
    for name in re.findall(r'(?:src|href)="([^"#]+)"', folder.joinpath("index.html").read_text("utf-8")):
        assert folder.joinpath(name).is_file(), name


def test_a_port_that_is_taken_gets_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["demo", "--no-browser", "--port", str(port)]) == 2
    assert "is not free" in capsys.readouterr().err


def test_a_base_map_that_is_no_map_gets_one_sentence_and_the_callers_logging_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Watched(logging.Handler):
        closed = False

        def close(self) -> None:
            self.closed = True
            super().close()

    handler = Watched()
    letter = tmp_path / "letter.gpkg"
    letter.write_text("Dear reader")
    assert main(["demo", "--no-browser", "--port", "0", "--basemap", str(letter)]) == 2
    assert not handler.closed
    assert "does not begin like a .gpkg file" in capsys.readouterr().err
