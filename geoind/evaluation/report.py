"""The evaluation as a self-contained HTML page, and as text for a terminal."""

import base64
import io
import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from markupsafe import Markup

from geoind.errors import plural
from geoind.evaluation import figures
from geoind.evaluation.comparison import CLAIMS, EQUAL, NOT_COMPARED, Evaluation
from geoind.evaluation.contenders import BUILT_IN
from geoind.evaluation.plain import MEASURES
from geoind.extras import require
from geoind.pictures.page import fill, html_page
from geoind.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

__all__ = [
    "WAYS",
    "evaluation_page",
    "findings",
    "html_figure",
    "html_heading",
    "html_table",
    "pictures",
    "pivot",
    "render_html",
    "report_files",
    "standings",
    "terminal_tables",
    "write_report",
]

PAPER_MECHANISMS = ("cloaking", "optimal for uniform", "planar Laplace", "optimal for the prior")
OTHER_MECHANISMS = (
    "planar Laplace",
    "planar geometric",
    "exponential",
    "randomised response",
    "Gaussian",
    "remapped Laplace",
    "optimal geo-ind",
)
WAYS = {
    "uniform": "the same expected distance under the uniform prior (as in the paper)",
    "evaluated": "the same expected distance under the evaluated prior",
}
PIXELS_PER_INCH = 110
MARKS = {"holds": "✓ holds", "fails": "✗ fails", "equal": "= equal", "depends on which optimum": "? depends"}


def pivot(table: "DataFrame", way: str, measure: str) -> "DataFrame":
    """Return one measure with a row per mechanism and a column per prior, in the order of the comparison."""
    part = table[table["equalised"] == way]
    wide = part.pivot(index="mechanism", columns="prior", values=measure)
    return wide.loc[list(dict.fromkeys(part["mechanism"])), list(dict.fromkeys(part["prior"]))]


def standings(table: "DataFrame", way: str) -> "DataFrame":
    """Return in how many priors each mechanism wins, loses and ties against each other one, such as "5-4-1".

    The mechanism of the row wins where it leaves more adversary error than that of the column; less than 0.05 m is
    a tie. Priors under which one of the two failed do not count.
    """
    wide = pivot(table, way, "adversary_error")
    wide = wide[[not name.startswith(NOT_COMPARED) for name in wide.index]]
    ahead = wide.to_numpy()[:, None] - wide.to_numpy()
    counts = [part.sum(axis=2) for part in (ahead > EQUAL, ahead < -EQUAL, np.abs(ahead) <= EQUAL)]
    cells = [["-".join(map(str, cell)) for cell in zip(*row, strict=True)] for row in zip(*counts, strict=True)]
    return pd.DataFrame(cells, index=wide.index, columns=list(wide.index))


def _notes(table: "DataFrame") -> list[str]:
    """Return one sentence for each note of a mechanism, with the priors that it is about."""
    noted = table[table["note"] != ""].groupby(["mechanism", "note"], sort=False)
    return [f"{name}: {note} ({', '.join(dict.fromkeys(part['prior']))})" for (name, note), part in noted]


def terminal_tables(evaluation: Evaluation) -> str:
    """Return the main tables as text."""
    lines = [f"Expected distance wanted: {evaluation.setting.loss:.3f} m."]
    for way, words in WAYS.items():
        lines += ["", f"Adversary's expected error in metres, at {words}:"]
        lines.append(pivot(evaluation.table, way, "adversary_error").to_string(float_format="%.1f", na_rep="-"))
    first = evaluation.table["prior"].iloc[0]
    part = _where(evaluation.table, equalised="uniform", prior=first).set_index("mechanism")
    lines += ["", f"Every measure under the {first} prior:"]
    lines.append(part[["parameter", *MEASURES]].to_string(float_format="%.4g", na_rep="-"))
    rows = ["planar Laplace", *_own(evaluation.table)]
    for way, words in WAYS.items():
        lines += ["", f"Priors in which the column has more error than the row, less, or the same, at {words}:"]
        lines.append(standings(evaluation.table, way).loc[rows].T.to_string())
    lines += ["", "Claims of the paper and the lectures:"]
    lines += [f"  {sentence}" for sentence in findings(evaluation)]
    if notes := _notes(evaluation.table):
        lines += ["", "Notes:", *(f"  {note}" for note in notes)]
    return "\n".join(line.rstrip() for line in "\n".join(lines).split("\n"))


def findings(evaluation: Evaluation) -> list[str]:
    """Return one sentence per claim and way of equalising: under which priors it holds and fails."""
    sentences = []
    for name, claim in CLAIMS.items():
        for way in WAYS:
            part = _where(evaluation.claims, claim=name, equalised=way)
            verdicts = part.groupby("verdict", sort=False)["prior"].agg(", ".join)
            found = "; ".join(f"{MARKS[str(verdict)]}: {priors}" for verdict, priors in verdicts.items())
            sentences.append(f"{claim.sentence} [equal under {way}] {found}")
    return sentences


def write_report(evaluation: Evaluation, path: Path) -> list[Path]:
    """Write the page, and every number as CSV files next to it; return the files written."""
    require("a page with figures", "matplotlib")
    page, *tables = files = report_files(Path(path))
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(render_html(evaluation), encoding="utf-8")
    for table, file in zip((evaluation.table, evaluation.curves, evaluation.claims), tables, strict=True):
        table.to_csv(file, index=False)
    return files


def report_files(page: Path) -> list[Path]:
    """Return the page and the CSV files next to it: all numbers, the curves, the claims."""
    numbers = page.with_suffix(".csv")
    return [page, numbers, *(numbers.with_stem(f"{numbers.stem}-{what}") for what in ("curves", "claims"))]


def _own(table: "DataFrame") -> list[str]:
    """Return the names of the mechanisms of the user's own."""
    return [name for name in dict.fromkeys(table["mechanism"]) if name not in BUILT_IN]


def pictures(evaluation: Evaluation) -> "dict[str, tuple[Figure, str]]":
    """Return every figure of the report and its caption, by name."""
    setting, claims, own = evaluation.setting, evaluation.claims, _own(evaluation.table)
    found = {
        "priors": (figures.draw_priors(setting), "Priors: darker is likelier; lines separate the cloaking zones.")
    }
    for way in WAYS:
        table = evaluation.table[evaluation.table["equalised"] == way]
        found[f"paper-{way}"] = (
            figures.draw_bars(table, mechanisms=PAPER_MECHANISMS, title=_cloaking_finding(claims, way)),
            "The mechanisms of the paper. Many mechanisms are optimal for the uniform prior; a whisker shows the "
            "range of their errors.",
        )
        found[f"others-{way}"] = (
            figures.draw_bars(table, mechanisms=(*OTHER_MECHANISMS, *own), title=_rival_finding(claims, way)),
            "Further mechanisms. The remapped Laplace and the optimal geo-ind mechanism were built for the prior "
            "that they are measured under.",
        )
        last = table["prior"].iloc[-1]
        wanted = [(way, last, name) for name in figures.styles_of(table["mechanism"]) if name != "dummies"]
        channels = {key[2]: evaluation.channels[key] for key in wanted if key in evaluation.channels}
        found[f"channels-{way}"] = (
            figures.draw_channels(
                channels, setting.prior(last), setting, title=f"Reports and posteriors of each mechanism ({last})"
            ),
            "Top: the distribution of reports of the middle cell. Bottom: the posterior after a report there.",
        )
    found["scatter"] = (
        figures.draw_scatter(evaluation.table, title="Cost and privacy of each mechanism, over all priors"),
        "Large marks: means over the priors. Small marks: single priors. On the line error and cost are equal.",
    )
    for prior, part in evaluation.curves.groupby("prior", sort=False):
        found[f"curves-{prior}".replace(" ", "-")] = (
            figures.draw_curves(part, title=_curve_finding(part)),
            f"Under the {prior} prior.",
        )
    return found


def render_html(evaluation: Evaluation) -> str:
    """Return the page as one string, without scripts, links or requests."""
    setting = evaluation.setting
    drawn = {name: html_figure(*picture) for name, picture in pictures(evaluation).items()}
    intro = fill(
        INTRODUCTION,
        cells=len(setting.grid),
        cell=f"{setting.grid.cell:g}",
        zone=setting.zone,
        loss=f"{setting.loss:.3f}",
    )
    parts = [html_heading(1, "Privacy and loss of each mechanism"), intro, drawn["priors"]]
    for way, words in WAYS.items():
        parts.append(html_heading(2, f"At {words}"))
        parts += [drawn[f"{name}-{way}"] for name in ("paper", "others", "channels")]
    parts += [html_heading(2, "Cost and privacy"), drawn["scatter"]]
    parts.append(html_heading(2, "Wins, losses and ties"))
    for way, words in WAYS.items():
        parts.append(html_heading(3, f"Row against column, priors with more, less and the same error; at {words}"))
        parts.append(html_table(standings(evaluation.table, way), ""))
    if notes := _notes(evaluation.table):
        parts += [html_heading(2, "Notes on mechanisms"), fill(NOTES, notes=notes)]
    parts.append(html_heading(2, "Cost and privacy against epsilon"))
    parts += [figure for name, figure in drawn.items() if name.startswith("curves")]
    parts += [html_heading(2, "Which claims hold"), _claims_table(evaluation.claims)]
    parts.append(html_heading(2, "Every number"))
    for way, words in WAYS.items():
        for measure, (title, unit, good) in MEASURES.items():
            shown = f"{title} ({unit})" if unit else title
            digits = "%.1f" if unit == "m" else "%.4f"
            wide = pivot(evaluation.table, way, measure)
            parts += [
                html_heading(3, f"{shown.capitalize()}, {good}; at {words}"),
                html_table(wide, digits),
            ]
    return evaluation_page(parts)


def evaluation_page(parts: list[Markup]) -> str:
    """Return a page of these parts."""
    return html_page("geoind evaluation", fill(BODY, parts=parts, version=__version__), styles=[STYLE])


def html_heading(level: int, words: str) -> Markup:
    """Return a heading."""
    return fill("<h{{ level }}>{{ words }}</h{{ level }}>", level=level, words=words)


def _cloaking_finding(claims: "DataFrame", way: str) -> str:
    part = _where(claims, claim="Laplace > cloaking", equalised=way)
    counts = part["verdict"].value_counts()
    return (
        "Planar Laplace against cloaking: more error under "
        f"{counts.get('holds', 0)} of {plural(len(part), 'prior')}, less under {counts.get('fails', 0)}, "
        f"the same under {counts.get('equal', 0)}"
    )


def _rival_finding(claims: "DataFrame", way: str) -> str:
    part = _where(claims, claim="Laplace best without the prior", equalised=way)
    beaten = int((part["verdict"] == "fails").sum())
    priors = plural(len(part), "prior")
    return f"Under {beaten} of {priors} a mechanism without the prior has more error than the planar Laplace"


def _curve_finding(part: "DataFrame") -> str:
    wide = part.pivot(index="epsilon", columns="mechanism", values="expected_loss")
    # Where the loss is about a quarter of its maximum: neither all noise nor none.
    at = (wide["planar Laplace"] - wide["planar Laplace"].max() / 4).abs().idxmin()
    saved = 1 - wide.loc[at, "optimal geo-ind"] / wide.loc[at, "planar Laplace"]
    return f"At epsilon {at:.3g}/m the optimum costs {saved:.0%} less than the planar Laplace"


def _claims_table(claims: "DataFrame") -> Markup:
    rows = [
        (claim.sentence, way, _where(claims, claim=name, equalised=way).to_dict("records"))
        for name, claim in CLAIMS.items()
        for way in WAYS
    ]
    return fill(CLAIMS_TABLE, priors=dict.fromkeys(claims["prior"]), rows=rows, marks=MARKS)


def html_table(wide: "DataFrame", digits: str) -> Markup:
    """Return a table that scrolls where it is wide, with floats in these digits."""

    def shown(value: object) -> str:
        if not isinstance(value, float):
            return str(value)
        return "∞" if value == math.inf else "–" if math.isnan(value) else digits % value

    rows = [
        (label if isinstance(label, tuple) else (label,), map(shown, row))
        for label, row in zip(wide.index, wide.itertuples(index=False), strict=True)
    ]
    return fill(TABLE, levels=wide.index.nlevels, columns=wide.columns, rows=rows)


def html_figure(figure: "Figure", caption: str) -> Markup:
    """Return a figure with its caption."""
    buffer = io.BytesIO()
    # Two dots per pixel, for high-resolution screens.
    figure.savefig(buffer, format="png", dpi=2 * PIXELS_PER_INCH)
    return fill(
        FIGURE,
        title=figure.get_suptitle(),
        width=round(PIXELS_PER_INCH * figure.get_figwidth()),
        data=base64.b64encode(buffer.getvalue()).decode("ascii"),
        caption=caption,
    )


def _where(table: "DataFrame", **wanted: str) -> "DataFrame":
    for column, value in wanted.items():
        table = table[table[column] == value]
    return table


# Wide content scrolls on small screens, by touch and keyboard.
BODY = """
<main>
{% for part in parts %}
{{ part }}
{% endfor %}
<footer>geoind {{ version }}</footer></main>
"""

INTRODUCTION = """
<p>{{ cells }} cells of {{ cell }} m, cloaking zones of {{ zone[0] }} x {{ zone[1] }} cells. Mechanisms are tuned
to an expected distance of {{ loss }} m between truth and report; privacy is the expected error of an adversary who
knows the prior and the mechanism and makes the optimal guess. Cloaking and dummies have no parameter, the
Shokri-optimal mechanisms have this loss under the prior that they are optimal for, and the optimal geo-ind
mechanism has the epsilon of the planar Laplace: the tables show their losses.</p>
"""

FIGURE = """
<figure><div class="wide" role="region" tabindex="0" aria-label="{{ title }}">
<img alt="{{ title }}" width="{{ width }}" src="data:image/png;base64,{{ data }}">
</div><figcaption>{{ caption }}</figcaption></figure>
"""

NOTES = """
<ul>{% for note in notes %}<li>{{ note }}</li>{% endfor %}</ul>
"""

TABLE = """
<div class="wide" role="region" tabindex="0" aria-label="Numbers"><table>
<tr>{% for _ in range(levels) %}<td></td>{% endfor %}
{% for column in columns %}<th>{{ column }}</th>{% endfor %}</tr>
{% for labels, values in rows %}
<tr>{% for label in labels %}<th>{{ label }}</th>{% endfor %}
{% for value in values %}<td>{{ value }}</td>{% endfor %}</tr>
{% endfor %}
</table></div>
"""

CLAIMS_TABLE = """
<div class="wide" role="region" tabindex="0" aria-label="Claims"><table class="claims">
<tr><td></td>{% for prior in priors %}<th>{{ prior }}</th>{% endfor %}</tr>
{% for sentence, way, verdicts in rows %}
<tr><th>{{ sentence }}<br><small>equal under {{ way }}</small></th>
{% for row in verdicts %}
<td class="{{ row.verdict.split()[0] }}" title="{{ row.detail }}">{{ marks[row.verdict] }}<br>
<small>{{ row.detail }}</small></td>
{% endfor %}
</tr>
{% endfor %}
</table></div>
"""

STYLE = """
:root { color-scheme: light dark; --ink: #222; --paper: #fff; --soft: #555; --rule: #ccc; --bad: #fbe3d6;
  --open: #fdf6d0 }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --paper: #16181c; --soft: #b0b0b0; --rule: #444;
  --bad: #4a2614; --open: #3d3714 } img { filter: invert(0.9) hue-rotate(180deg) } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 }
main { max-width: 70rem; margin: 0 auto; padding: 1rem }
h1, h2 { line-height: 1.2 } h2 { margin-top: 2.5rem; border-top: 1px solid var(--rule); padding-top: 1rem }
figure { margin: 1.5rem 0 } img { max-width: 100%; height: auto } figcaption, small, footer { color: var(--soft) }
.wide { overflow-x: auto } table { border-collapse: collapse; font-size: 0.85rem }
th, td { padding: 0.25rem 0.6rem; text-align: right; border-bottom: 1px solid var(--rule); white-space: nowrap }
th:first-child { text-align: left } .claims th:first-child { white-space: normal; min-width: 16rem }
@media (max-width: 60rem) { figure img { max-width: none } }
.claims td { text-align: left } .fails { background: var(--bad) } .depends { background: var(--open) }
"""
