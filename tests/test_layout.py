"""What holds for every file: tests are where a module's name says, and no example leaves true places behind."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

NOTHING_TO_TEST = {
    "__main__.py": "calls the command line, which tests/cli tests",
    "version.py": "a number",
    "errors.py": "names of errors, and how they show text, which test_hostile_text.py tests",
    "adapters/geoparquet.py": "another name of tables/geoparquet.py",
    "adapters/keys.py": "another name of tables/keys.py",
    "adapters/points.py": "another name of tables/places.py",
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
