"""The story as files. test_story.py opens them in a browser, from a disk."""

from pathlib import Path

import pytest

from geoind import InvalidInputError
from webdemo.static_build import write_static


def test_the_folder_holds_the_story_and_nothing_that_asks_a_server(static_folder: Path) -> None:
    names = {path.name for path in static_folder.iterdir()}
    assert {"index.html", "story.js", "story.css"} <= names
    for path in static_folder.glob("*.js"):
        text = path.read_text(encoding="utf-8")
        assert "fetch(" not in text, path.name
        assert "http://" not in text.replace("http://www.w3.org/", ""), path.name


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("!")
    for taken in (tmp_path, tmp_path / "thesis.txt"):
        with pytest.raises(InvalidInputError, match="must be a new or an empty folder"):
            write_static(taken)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
