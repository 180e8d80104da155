"""The documentation as a site: `python3 dev.py docs` writes docs/_build/html and loads nothing from elsewhere."""

import argparse
import ast
import importlib
import inspect
import re
import shutil
import sys
from itertools import pairwise
from pathlib import Path

import latex2mathml.converter
from docutils import nodes
from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT))

import geoind  # noqa: E402
from geoind.cli import command_parsers  # noqa: E402
from geoind.version import __version__  # noqa: E402

project = "geoind"
author = "The geoind authors"
copyright = author  # noqa: A001
release = version = __version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "myst_nb"]
exclude_patterns = ["_build"]
# A name in single backticks, as docstrings have it, is a link if it is a public name, else code.
default_role = "py:obj"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
# The stored output of notebooks is shown; `python3 dev.py notebooks` runs them.
nb_execution_mode = "off"

autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
python_use_unqualified_type_names = True
add_module_names = False
# Each name has a heading of its own.
toc_object_entries = False

html_theme = "pydata_sphinx_theme"
html_title = f"geoind {__version__}"
html_static_path = ["_static"]
html_css_files = ["geoind.css"]
html_context = {"default_mode": "auto"}
html_copy_source = False
html_show_sourcelink = False
# Summaries of search results are fetched, which a browser refuses to a page that is opened from a disk.
html_show_search_summary = False
html_math_renderer = "mathml"
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "navigation_depth": 3,
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

ENGINES = ("geopandas", "polars", "duckdb", "dask", "spark")
SUBJECTS = (*vars(geoind)["SUBJECTS"], *(f"adapters.{engine}" for engine in ENGINES))
PLACES = ["geoind", *(f"geoind.{subject}" for subject in SUBJECTS)]
"""Every module that users import from; its `__all__` is its page of the reference."""


def copy_notebooks() -> None:
    """Copy the notebooks into the folder of the pages, with links that lead to pages of the site."""
    folder = DOCS / "gallery" / "notebooks"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        text = notebook.read_text(encoding="utf-8").replace("](../docs/", "](../../")
        (folder / notebook.name).write_text(text, encoding="utf-8")


def comment_of(constant: str) -> str:
    """Return the text below the assignment of a constant, wherever in the library it is assigned."""
    for path in sorted((ROOT / "geoind").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if re.search(rf"^{constant}\b.*=", text, re.MULTILINE):
            for assigned, after in pairwise(ast.parse(text).body):
                if re.match(rf"{constant}\b.*=", ast.unparse(assigned)) and isinstance(after, ast.Expr):
                    return " ".join(str(ast.literal_eval(after.value)).split())
    raise ValueError(f"{constant} has no description below its assignment")


def write_api() -> None:
    """Write a page for each module that users import from: a table of its names, and the docstring of each."""
    folder = DOCS / "reference" / "api"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for place in PLACES:
        module = importlib.import_module(place)
        names = [name for name in module.__all__ if name != "__version__"]
        table = [
            name for name in names if inspect.isclass(value := getattr(module, name)) or inspect.isroutine(value)
        ]
        lines = [place, "=" * len(place), "", f".. automodule:: {place}", "   :no-members:", ""]
        lines += [f".. currentmodule:: {place}", "", ".. autosummary::", "   :nosignatures:", ""]
        lines += [*(f"   {name}" for name in table), ""]
        for name in names:
            value = getattr(module, name)
            lines += [name, "-" * len(name), ""]
            if inspect.isclass(value):
                lines += [f".. autoclass:: {name}", "   :members:", ""]
            elif name in table:
                lines += [f".. autofunction:: {name}", ""]
            else:
                lines += [f".. py:data:: {name}", "", f"   {comment_of(name)}", ""]
        (folder / f"{place}.rst").write_text("\n".join(lines), encoding="utf-8")


def options_of_commands() -> str:
    """Return the options of every command, from its parser."""
    lines = []
    for name, parser in command_parsers().items():
        lines += [f"## geoind {name}", "", parser.description or "", "", "| option | meaning |", "| --- | --- |"]
        formatter = parser._get_formatter()
        for action in parser._actions:
            if action.help != argparse.SUPPRESS:
                written = formatter._format_action_invocation(action)
                meaning = formatter._expand_help(action).replace("|", r"\|")
                lines += [f"| `{written}` | {meaning} |"]
        lines += [""]
    return "\n".join(lines)


def fill_in(_: Sphinx, name: str, source: list[str]) -> None:
    """Put the options in the place of their comment, and let links to notebooks lead to their pages."""
    if name == "command-line":
        source[0] = source[0].replace("<!-- the options of every command -->", options_of_commands())
    copies = "../" * name.count("/") + "gallery/notebooks/"
    source[0] = re.sub(r"\]\((\.\./)+notebooks/", f"]({copies}", source[0])


def visit_inline(self: object, node: nodes.math) -> None:
    """Write a formula of a line as MathML, which browsers show without a script."""
    self.body.append(latex2mathml.converter.convert(node.astext()))  # type: ignore[attr-defined]
    raise nodes.SkipNode


def visit_block(self: object, node: nodes.math_block) -> None:
    """Write a formula of its own as MathML."""
    formula = latex2mathml.converter.convert(node.astext(), display="block")
    self.body.append(f'<div class="formula" tabindex="0">{formula}</div>')  # type: ignore[attr-defined]
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Prepare what is generated."""
    copy_notebooks()
    write_api()
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    app.connect("source-read", fill_in)
