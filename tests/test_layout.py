"""Rules for every file: data never becomes a template, and no example leaves a folder with true locations."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import SLOW

ROOT = Path(__file__).resolve().parent.parent

SOURCES = sorted([*(ROOT / "geoind").rglob("*.py"), *(ROOT / "webdemo").glob("*.py")])


def test_an_example_removes_the_folder_it_makes() -> None:
    examples = [
        *(ROOT / "geoind").rglob("*.py"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "notebooks").glob("*.ipynb"),
    ]
    texts = {path.name: path.read_text(encoding="utf-8") for path in examples}
    assert [name for name, text in texts.items() if "mkdtemp" in text and "rmtree" not in text] == []


TEMPLATES = {"Element", "Template", "from_string", "fill", "Markup"}
"""Functions that compile their first argument as a template, or take it for HTML."""

ALLOWED = {
    # The only place that compiles the argument of `fill`; every call of `fill` is checked.
    "geoind/pictures/page.py": ["environment.from_string(template)", "Markup(_encodable("],
    # HTML that folium rendered.
    "geoind/maps/offline.py": ["Markup(root.html.render())"],
}


def is_fixed(value: ast.expr) -> bool:
    """Return whether a value is a literal of the program or a file of its package."""
    if isinstance(value, ast.Constant):
        return isinstance(value.value, str)
    called = value.func if isinstance(value, ast.Call) else None
    return (
        isinstance(called, ast.Attribute) and called.attr == "read_text" and "__package__" in ast.unparse(called)
    )


def templates_of_data(source: str) -> Iterator[str]:
    """Yield the calls that could make data a template or HTML."""
    tree = ast.parse(source)
    constants = {
        target.id: statement.value
        for statement in tree.body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func).rpartition(".")[2]
        first = node.args[0] if node.args else None
        if isinstance(first, ast.Name) and first.id.isupper():
            first = constants.get(first.id)
        if name in TEMPLATES and not (first is not None and is_fixed(first)):
            yield f"{node.lineno}: {ast.unparse(node)[:80]}"


def test_data_never_becomes_a_template() -> None:
    found = [
        f"{name}:{call}"
        for name, path in ((path.relative_to(ROOT).as_posix(), path) for path in SOURCES)
        for call in templates_of_data(path.read_text(encoding="utf-8"))
        if not call.partition(": ")[2].startswith((*ALLOWED.get(name, ()),))
    ]
    assert found == []


def test_exceptions_are_for_files_that_exist() -> None:
    assert all((ROOT / name).exists() for name in ALLOWED)


@pytest.mark.parametrize(
    "source",
    [
        "folium.Element(text)",
        "folium.Element(f'<b>{text}</b>')",
        "jinja2.Template(STYLE + text)",
        "environment.from_string(text.format(x))",
        "environment.from_string(source=text)",
        "fill(TEXT)",
        "TEXT = input()\nfill(TEXT)",
        "fill('<b>%s</b>' % text)",
        "Markup(f'<b>{text}</b>')",
        "Markup(text)",
    ],
)
def test_a_template_made_of_data_would_be_found(source: str) -> None:
    assert list(templates_of_data(source))


def test_no_template_declares_a_value_safe() -> None:
    for path in [*(ROOT / "webdemo").rglob("*.html"), *SOURCES]:
        text = path.read_text(encoding="utf-8")
        words = ("|safe", "| safe", "autoescape false", "autoescape=False")
        assert not [word for word in words if word in text], path


def test_the_files_that_are_listed_as_slow_exist() -> None:
    assert [name for name in SLOW if not (ROOT / "tests" / name).exists()] == []


WORDS = ("told", "whoever", "somebody", "nobody", "anybody")
"""Words that plain technical English does without."""


def words_in(text: str) -> list[str]:
    """Return the lines of a text that have one of the words."""
    # Also in names, whose words are separated by underscores.
    word = re.compile(rf"(?<![a-z])({'|'.join(WORDS)})(?![a-z])", re.IGNORECASE)
    return [line.strip() for line in text.splitlines() if word.search(line)]


def test_code_tests_and_documentation_are_written_in_plain_words() -> None:
    kinds = {"docs": "*.md", "geoind": "*.py*", "tests": "*.py", "benchmarks": "*.py", "webdemo": "*.[pj]*"}
    pages = [ROOT / "README.md", *(page for folder, kind in kinds.items() for page in (ROOT / folder).rglob(kind))]
    # The words themselves, and a user of Linux.
    other = ("test_layout.py", "postgres.py")
    texts = [page for page in pages if page.suffix in (".md", ".py", ".pyi", ".js") and page.name not in other]
    found = {page.relative_to(ROOT).as_posix(): words_in(page.read_text(encoding="utf-8")) for page in texts}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize("word", WORDS)
def test_a_word_that_is_not_plain_would_be_found(word: str) -> None:
    assert words_in(f"first line\n{word.capitalize()} reads this.") == [f"{word.capitalize()} reads this."]
