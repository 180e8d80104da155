"""docs/command-line.md agrees with the commands; test_docs.py and test_commands.py run its examples."""

import re
from pathlib import Path

import pytest

from geoind.cli import command_parsers, main

TEXT = Path(__file__).parents[2].joinpath("docs", "command-line.md").read_text()


def test_the_table_of_explain_is_the_one_it_prints(capsys: pytest.CaptureFixture[str]) -> None:
    shown = re.search(r"\$ geoind explain (.*?)\n(.*?)```", TEXT, re.DOTALL)
    assert shown is not None
    assert main(["explain", *shown[1].split()]) == 0
    assert capsys.readouterr().out == shown[2]


def test_the_page_lists_every_command_in_the_words_of_its_help(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = " ".join(capsys.readouterr().out.split())
    rows = re.findall(r"^\| `geoind ([a-z]+)` \| (.*?) \|", TEXT, re.MULTILINE)
    assert [name for name, _ in rows] == [*command_parsers()]
    for name, words in rows:
        assert f" {name} {words} " in shown


def test_the_help_begins_with_the_purpose_of_geoind(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert (
        capsys.readouterr().out.split("\n\n")[1].startswith("Publish approximate locations instead of true ones.")
    )


@pytest.mark.parametrize("name", command_parsers())
def test_each_command_says_in_a_sentence_what_it_does(name: str) -> None:
    description = command_parsers()[name].description or ""
    assert re.fullmatch(r"[A-Z].{30,}\.", description)
