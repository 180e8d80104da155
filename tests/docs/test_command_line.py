"""What docs/command-line.md shows is what happens."""

import re
from pathlib import Path

from geoind.cli import main

TEXT = Path(__file__).parents[2].joinpath("docs", "command-line.md").read_text()


def test_the_python_examples_run() -> None:
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(block, {})


def test_the_table_of_explain_is_the_one_it_prints(capsys) -> None:
    shown = re.search(r"\$ geoind explain (.*?)\n(.*?)```", TEXT, re.DOTALL)
    assert shown is not None
    assert main(["explain", *shown[1].split()]) == 0
    assert capsys.readouterr().out == shown[2]
