"""What holds for every file: tests are where a module's name says, and no example leaves true places behind."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

NOTHING_TO_TEST = {
    "__main__.py": "calls the command line, which tests/cli tests",
    "version.py": "a number",
    "errors.py": "names of errors, and how they show text, which test_hostile_text.py tests",
    "maps/colours.py": "colours",
    "space/gdal_process.py": "runs in a process of its own, which test_vector_files.py starts",
    "optimal/certificate.py": "a value; test_optimum.py measures what it says",
}
"""Modules without logic of their own, and why."""


def modules() -> list[str]:
    found = [path.relative_to(ROOT / "geoind").as_posix() for path in (ROOT / "geoind").rglob("*.py")]
    found += [path.relative_to(ROOT).as_posix() for path in (ROOT / "webdemo").glob("*.py")]
    return sorted(name for name in found if not name.endswith("__init__.py"))


def own_test(name: str) -> Path:
    path = Path(name)
    return ROOT / "tests" / path.parent / f"test_{path.name}"


@pytest.mark.parametrize("name", modules())
def test_a_module_has_its_tests_where_its_name_says_or_a_reason_why_not(name: str) -> None:
    if own_test(name).exists():
        assert name not in NOTHING_TO_TEST
    else:
        assert name in NOTHING_TO_TEST, f"write {own_test(name).relative_to(ROOT)}"


def test_exceptions_are_for_modules_that_are_there() -> None:
    assert set(NOTHING_TO_TEST) <= set(modules())


def test_an_example_removes_the_folder_it_makes() -> None:
    examples = [
        *(ROOT / "geoind").rglob("*.py"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "notebooks").glob("*.ipynb"),
    ]
    texts = {path.name: path.read_text(encoding="utf-8") for path in examples}
    assert [name for name, text in texts.items() if "mkdtemp" in text and "rmtree" not in text] == []


TEMPLATES = {"Element", "Template", "from_string", "fill", "Markup"}
"""What compiles its first argument as a template, or takes it for HTML."""

ALLOWED = {
    # The one place that compiles what `fill` is given; every call of `fill` is checked.
    "pictures/page.py": ["environment.from_string(template)", "Markup(_encodable("],
    # What folium wrote.
    "maps/offline.py": ["Markup(root.html.render())"],
}


def is_fixed(value: ast.expr) -> bool:
    """Whether a value is text of the program: written in it, or a file of its package."""
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


@pytest.mark.parametrize("name", modules())
def test_data_never_becomes_a_template(name: str) -> None:
    path = ROOT / name if name.startswith("webdemo/") else ROOT / "geoind" / name
    found = templates_of_data(path.read_text(encoding="utf-8"))
    assert [call for call in found if not call.partition(": ")[2].startswith((*ALLOWED.get(name, ()),))] == []


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
    pages = [
        *(ROOT / "webdemo").rglob("*.html"),
        *(ROOT / "geoind").rglob("*.py"),
        *(ROOT / "webdemo").glob("*.py"),
    ]
    for path in pages:
        text = path.read_text(encoding="utf-8")
        assert not [
            word for word in ("|safe", "| safe", "autoescape false", "autoescape=False") if word in text
        ], path
