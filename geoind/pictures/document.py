"""A document of sections, with sentences, tables and figures, as an HTML page or as Markdown."""

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from markupsafe import Markup

from geoind.errors import printable
from geoind.pictures.charts import CHART_STYLE
from geoind.pictures.page import fill, html_page
from geoind.version import __version__

__all__ = ["Rows", "Sections", "as_html", "as_markdown", "figure"]


Rows: TypeAlias = tuple[str, Sequence[str], Sequence[Sequence[str]], str]
"""A table: its caption, its head, its rows of text, and a note below the caption, or nothing."""

Sections: TypeAlias = Mapping[str, Sequence[str | Rows]]
"""From a heading to what follows: sentences, tables, and figures as `Markup`."""


def figure(svg: Markup, caption: str) -> Markup:
    """Return a picture with its caption."""
    return fill(FIGURE, svg=svg, caption=caption)


def as_html(title: str, sections: Sections, *, verdict: str = "") -> str:
    """Return a page that loads nothing, for screens and for print.

    Parameters
    ----------
    title : str
    sections : mapping of str to sequences of str, Rows and Markup
        What stands below each heading.
    verdict : {"", "passed", "failed"}
        Shown below the title.

    Examples
    --------
    >>> page = as_html("Statement", {"Persons": ["1 < 2"]})
    >>> "<p>1 &lt; 2</p>" in page, "http" in page.replace("http-equiv", "")
    (True, False)
    """
    drawn = [(heading, [_html(part) for part in parts]) for heading, parts in sections.items()]
    body = fill(BODY, title=title, sections=drawn, version=__version__, verdict=verdict)
    return html_page(title, body, styles=[STYLE, CHART_STYLE])


def _html(part: str | Rows) -> Markup:
    if isinstance(part, tuple):
        caption, head, rows, note = part
        shown = [[printable(cell) for cell in row] for row in rows]
        return fill(TABLE, caption=caption, head=head, rows=shown, note=note)
    return part if isinstance(part, Markup) else fill("<p>{{ text }}</p>", text=part)


def as_markdown(title: str, sections: Sections) -> str:
    r"""Return Markdown, without figures.

    Examples
    --------
    >>> print(as_markdown("Statement", {"Persons": ["1 < 2"]}).split("geoind")[0].strip())
    # Statement
    <BLANKLINE>
    ## Persons
    <BLANKLINE>
    1 \< 2
    """
    lines = [f"# {title}"]
    for heading, parts in sections.items():
        lines += ["", f"## {heading}"]
        for part in parts:
            if isinstance(part, tuple):
                caption, head, rows, note = part
                lines += ["", f"**{_escaped(caption)}**"]
                lines += ["", _escaped(note)] if note else []
                lines += ["", _row(head), _row(["---"] * len(head))]
                lines += [_row([_escaped(cell) for cell in row]) for row in rows]
            elif not isinstance(part, Markup):
                lines += ["", _escaped(part)]
    return "\n".join([*lines, "", f"geoind {__version__}", ""])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    """Return text that Markdown shows as it is."""
    return re.sub(r"([\\`*_{}\[\]<>#|!~$])", r"\\\1", printable(text).encode("utf-8", "replace").decode())


BODY = """
<main>
<h1>{{ title }}</h1>
{% if verdict %}<p class="verdict {{ verdict }}">Checks {{ verdict }}</p>{% endif %}
{% for title, parts in sections %}
<section><h2>{{ title }}</h2>
{% for part in parts %}
{{ part }}
{% endfor %}
</section>
{% endfor %}
<footer>geoind {{ version }}</footer>
</main>
"""

FIGURE = """
<figure><div class="wide" role="region" tabindex="0" aria-label="{{ caption }}">{{ svg }}</div>
<figcaption>{{ caption }}</figcaption></figure>
"""

TABLE = """
<h3>{{ caption }}</h3>
{% if note %}<p>{{ note }}</p>{% endif %}
<div class="wide" role="region" tabindex="0" aria-label="{{ caption }}"><table>
{% if head | join %}
<thead><tr>{% for cell in head %}<th scope="col">{{ cell }}</th>{% endfor %}</tr></thead>
{% endif %}
<tbody>
{% for row in rows %}
<tr>{% for cell in row %}{% if loop.first %}<th scope="row">{{ cell }}</th>{% else %}<td>{{ cell }}</td>{% endif %}
{% endfor %}</tr>
{% endfor %}
</tbody></table></div>
"""

STYLE = """
:root { color-scheme: light dark; --ink: #222; --paper: #fff; --soft: #555; --rule: #ccc; --one: #0072b2;
  --two: #d55e00; --few: #cfe3f1; --some: #7fb2d9; --grey: #888; --good: #e2f2e6; --bad: #fbe3d6 }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --paper: #16181c; --soft: #b0b0b0; --rule: #444;
  --one: #56b4e9; --two: #f0913a; --few: #1f3a4d; --some: #2f6d94; --grey: #999;
  --good: #1d3b26; --bad: #4a2614 } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 }
main { max-width: 56rem; margin: 0 auto; padding: 1rem }
h1, h2 { line-height: 1.2 } h2 { margin-top: 2rem; border-top: 1px solid var(--rule); padding-top: 1rem }
.verdict { font-weight: 600; padding: 0.5rem 1rem }
.passed { background: var(--good) } .failed { background: var(--bad) }
figure { margin: 1.2rem 0 } figcaption, footer { color: var(--soft); font-size: 0.9rem }
.wide { overflow-x: auto; margin: 0.5rem 0 1rem } table { border-collapse: collapse; font-size: 0.9rem }
h3 { font-size: 1rem; margin: 1.2rem 0 0.3rem } h3 + p { margin: 0 }
th, td { padding: 0.25rem 0.8rem 0.25rem 0; text-align: left; vertical-align: top; overflow-wrap: anywhere;
  border-bottom: 1px solid var(--rule); min-width: 5rem }
tbody th { font-weight: 400; min-width: 11rem }
@media print { :root { --ink: #000; --paper: #fff; --soft: #333; --rule: #999; --one: #005a8e; --two: #b34700;
  --few: #cfe3f1; --some: #7fb2d9; --grey: #777; --good: #fff; --bad: #fff } body { font-size: 10.5pt }
  main { max-width: none; padding: 0 } figure, tr { break-inside: avoid } h2, h3 { break-after: avoid }
  .wide { overflow: visible } .verdict { border: 1px solid #000 } }
"""
