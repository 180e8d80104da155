"""The pages of the documentation that are written by hand."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GENERATED = ("_build", "gallery/notebooks", "reference/api")
PAGES = [
    ROOT / "README.md",
    *(
        page
        for page in sorted((ROOT / "docs").rglob("*.md"))
        if not any(page.is_relative_to(ROOT / "docs" / folder) for folder in GENERATED)
    ),
]


def name_of(page: Path) -> str:
    """Return the path of a page in the repository, which is the name of its tests."""
    return page.relative_to(ROOT).as_posix()
