"""The index of the lectures: each name exists, and the section of the notebook that it names uses it."""

import re
from pathlib import Path

import nbformat
import pytest

import geoind

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "lectures.md").read_text()
ROWS = re.findall(r"^\| (.+?) \| (.+?) \| (\d+) \|$", PAGE, re.MULTILINE)


ELSEWHERE = re.findall(r"^\| (.+?) \| (.+?) \| notebook (\d\d) \|$", PAGE, re.MULTILINE)


def is_public(name: str) -> bool:
    """Whether the top level or a subject offers the name."""
    return any(
        hasattr(module, name) for module in (geoind, *(getattr(geoind, one) for one in vars(geoind)["SUBJECTS"]))
    )


def sections() -> dict[str, str]:
    """The code of each numbered section of the notebook."""
    [path] = re.findall(r"\]\(\.\./(notebooks/[^)]+)\)", PAGE)
    code: dict[str, str] = {}
    section = "0"
    for cell in nbformat.read(ROOT / path, as_version=4).cells:
        heading = re.match(r"## (\d+)\. ", cell.source)
        section = heading[1] if heading else section
        if cell.cell_type == "code":
            code[section] = code.get(section, "") + cell.source
    return code


def test_the_index_covers_every_section_in_the_lectures_order() -> None:
    numbers = [int(section) for _, _, section in ROWS]
    assert numbers == sorted(numbers)
    assert {str(number) for number in numbers} == set(sections()) - {"0"}


@pytest.mark.parametrize(("definition", "names", "section"), ROWS, ids=[row[0] for row in ROWS])
def test_each_name_of_the_index_exists_and_is_used_where_it_says(
    definition: str, names: str, section: str
) -> None:
    code = sections()[section]
    assert code, definition
    for name in re.findall(r"`(\w+)`", names):
        assert is_public(name)
        assert re.search(rf"\b{name}\b", code)


@pytest.mark.parametrize(("definition", "names", "number"), ELSEWHERE, ids=[row[0] for row in ELSEWHERE])
def test_each_name_with_a_notebook_of_its_own_exists_and_is_used_there(
    definition: str, names: str, number: str
) -> None:
    [path] = (ROOT / "notebooks").glob(f"{number}-*.ipynb")
    cells = nbformat.read(path, as_version=4).cells
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    for name in re.findall(r"`(\w+)`", names):
        assert is_public(name), definition
        assert re.search(rf"\b{name}\b", code), definition


def test_every_row_of_the_page_is_looked_at() -> None:
    rows = re.findall(r"^\| (?!---|definition)", PAGE, re.MULTILINE)
    assert len(rows) == len(ROWS) + len(ELSEWHERE)
    assert len(ELSEWHERE) >= 9
