"""The evaluation as a self-contained HTML page, and as text for a terminal."""

import base64
import html
import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from geoind.evaluation import figures
from geoind.evaluation.claims import CLAIMS
from geoind.evaluation.evaluate import Evaluation
from geoind.evaluation.plain import MEASURES
from geoind.extras import require
from geoind.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

__all__ = [
    "WAYS",
    "Picture",
    "findings",
    "html_figure",
    "html_page",
    "html_table",
    "pictures",
    "pivot",
    "render_html",
    "report_files",
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
    "uniform": "the same expected distance under the uniform prior (as the paper)",
    "evaluated": "the same expected distance under the prior at hand",
}
PIXELS_PER_INCH = 110
MARKS = {"holds": "✓ holds", "fails": "✗ fails", "equal": "= equal", "depends on which optimum": "? depends"}


class Picture(NamedTuple):
    """A figure and what to read in it."""

    figure: "Figure"
    caption: str


def pivot(table: "DataFrame", way: str, measure: str) -> "DataFrame":
    """Return one measure with a row per mechanism and a column per prior, in the order of the comparison."""
    part = table[table["equalised"] == way]
    wide = part.pivot(index="mechanism", columns="prior", values=measure)
    return wide.loc[list(dict.fromkeys(part["mechanism"])), list(dict.fromkeys(part["prior"]))]


def terminal_tables(evaluation: Evaluation) -> str:
    """Return the main tables as text."""
    lines = [f"Expected distance wanted: {evaluation.setting.loss:.3f} m."]
    for way, words in WAYS.items():
        lines += ["", f"Adversary's expected error in metres, at {words}:"]
        lines.append(pivot(evaluation.table, way, "adversary_error").to_string(float_format="%.1f"))
    first = evaluation.table["prior"].iloc[0]
    part = _where(evaluation.table, equalised="uniform", prior=first).set_index("mechanism")
    lines += ["", f"Every measure under the {first} prior:"]
    lines.append(part[["parameter", *MEASURES]].to_string(float_format="%.4g", na_rep="-"))
    lines += ["", "Claims of the paper and the lectures:"]
    lines += [f"  {sentence}" for sentence in findings(evaluation)]
    return "\n".join(line.rstrip() for line in "\n".join(lines).split("\n"))


def findings(evaluation: Evaluation) -> list[str]:
    """Return one sentence per claim and way of equalising: under which priors it holds and fails."""
    sentences = []
    for name, claim in CLAIMS.items():
        for way in WAYS:
            part = _where(evaluation.claims, claim=name, equalised=way)
            verdicts = part.groupby("verdict", sort=False)["prior"].agg(", ".join)
            told = "; ".join(f"{MARKS[str(verdict)]}: {priors}" for verdict, priors in verdicts.items())
            sentences.append(f"{claim.sentence} [equal under {way}] {told}")
    return sentences


def write_report(evaluation: Evaluation, path: Path) -> list[Path]:
    """Write the page, and every number as CSV beside it; return the files written."""
    require("a page with figures", "matplotlib")
    page, *tables = files = report_files(Path(path))
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(render_html(evaluation), encoding="utf-8")
    for table, file in zip((evaluation.table, evaluation.curves, evaluation.claims), tables, strict=True):
        table.to_csv(file, index=False)
    return files


def report_files(page: Path) -> list[Path]:
    """Return the page and the CSV files that stand beside it: all numbers, the curves, the claims."""
    numbers = page.with_suffix(".csv")
    return [page, numbers, *(numbers.with_stem(f"{numbers.stem}-{what}") for what in ("curves", "claims"))]


def pictures(evaluation: Evaluation) -> dict[str, Picture]:
    """Return every figure of the report by name."""
    setting, claims = evaluation.setting, evaluation.claims
    found = {
        "priors": Picture(
            figures.draw_priors(setting), "Priors: darker is likelier; lines separate the cloaking zones."
        )
    }
    for way in WAYS:
        table = evaluation.table[evaluation.table["equalised"] == way]
        found[f"paper-{way}"] = Picture(
            figures.draw_bars(table, mechanisms=PAPER_MECHANISMS, title=_cloaking_finding(claims, way)),
            "The mechanisms of the paper. Whiskers: the mechanism that is optimal for the uniform prior is not "
            "one mechanism; all that a whisker spans are optimal for the uniform prior.",
        )
        found[f"others-{way}"] = Picture(
            figures.draw_bars(table, mechanisms=OTHER_MECHANISMS, title=_rival_finding(claims, way)),
            "Further mechanisms. The last two were built for the prior that they are measured under.",
        )
        last = table["prior"].iloc[-1]
        wanted = [name for name in figures.STYLES if name != "dummies"]
        channels = {name: evaluation.channels[way, last, name] for name in wanted}
        found[f"channels-{way}"] = Picture(
            figures.draw_channels(
                channels, setting.prior(last), setting, title=f"The same task, very different reports ({last})"
            ),
            "Top: where reports of the middle cell go. Bottom: what the adversary believes after a report there.",
        )
    for prior, part in evaluation.curves.groupby("prior", sort=False):
        found[f"curves-{prior}".replace(" ", "-")] = Picture(
            figures.draw_curves(part, title=_curve_finding(part)), f"Under the {prior} prior."
        )
    return found


def render_html(evaluation: Evaluation) -> str:
    """Return the page as one string: no script, no link, no request."""
    setting = evaluation.setting
    drawn = {name: html_figure(picture) for name, picture in pictures(evaluation).items()}
    parts = [
        "<h1>What each mechanism gives, and what it costs</h1>",
        f"<p>{len(setting.grid)} cells of {setting.grid.cell:g} m, cloaking zones of {setting.zone[0]} x "
        f"{setting.zone[1]} cells. Mechanisms are tuned to an expected distance of {setting.loss:.3f} m between "
        "truth and report; privacy is the expected error of an adversary who knows the prior and the mechanism "
        "and guesses as well as anyone can. Cloaking and dummies have nothing to tune, the Shokri-optimal "
        "mechanisms meet the loss under the prior that they are optimal for, and the optimal geo-ind "
        "mechanism runs at the epsilon of the planar Laplace: what they cost is in the tables.</p>",
        drawn["priors"],
    ]
    for way, words in WAYS.items():
        parts += [f"<h2>At {words}</h2>", *(drawn[f"{name}-{way}"] for name in ("paper", "others", "channels"))]
    parts += ["<h2>Cost and privacy against epsilon</h2>"]
    parts += [figure for name, figure in drawn.items() if name.startswith("curves")]
    parts += ["<h2>Which claims hold</h2>", _claims_table(evaluation.claims), "<h2>Every number</h2>"]
    for way, words in WAYS.items():
        for measure, (title, unit, good) in MEASURES.items():
            shown = f"{title} ({unit})" if unit else title
            digits = "%.1f" if unit == "m" else "%.4f"
            wide = pivot(evaluation.table, way, measure)
            parts.append(f"<h3>{shown.capitalize()}, {good}; at {words}</h3>" + html_table(wide, digits))
    return html_page(parts)


def html_page(parts: list[str]) -> str:
    """Return a page of these parts."""
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>geoind evaluation</title><style>{STYLE}</style></head>\n<body><main>\n{body}\n"
        f"<footer>geoind {__version__}</footer></main></body></html>\n"
    )


def _cloaking_finding(claims: "DataFrame", way: str) -> str:
    part = _where(claims, claim="Laplace > cloaking", equalised=way)
    counts = part["verdict"].value_counts()
    return (
        f"Planar Laplace against cloaking: more error under {counts.get('holds', 0)} of {len(part)} priors, "
        f"less under {counts.get('fails', 0)}"
    )


def _rival_finding(claims: "DataFrame", way: str) -> str:
    part = _where(claims, claim="Laplace best without the prior", equalised=way)
    beaten = int((part["verdict"] == "fails").sum())
    return (
        f"Under {beaten} of {len(part)} priors something that ignores the prior leaves more error than the Laplace"
    )


def _curve_finding(part: "DataFrame") -> str:
    wide = part.pivot(index="epsilon", columns="mechanism", values="expected_loss")
    # Where the noise costs about a quarter of what it can: neither all noise nor none.
    at = (wide["planar Laplace"] - wide["planar Laplace"].max() / 4).abs().idxmin()
    saved = 1 - wide.loc[at, "optimal geo-ind"] / wide.loc[at, "planar Laplace"]
    return f"At epsilon {at:.3g}/m the optimum costs {saved:.0%} less than the planar Laplace"


def _claims_table(claims: "DataFrame") -> str:
    rows = []
    for name, claim in CLAIMS.items():
        for way in WAYS:
            part = _where(claims, claim=name, equalised=way).set_index("prior")
            cells = "".join(
                f'<td class="{row["verdict"].split()[0]}" title="{html.escape(row["detail"])}">'
                f"{MARKS[row['verdict']]}<br><small>{html.escape(row['detail'])}</small></td>"
                for _, row in part.iterrows()
            )
            rows.append(
                f"<tr><th>{html.escape(claim.sentence)}<br><small>equal under {way}</small></th>{cells}</tr>"
            )
    head = "".join(f"<th>{html.escape(str(prior))}</th>" for prior in dict.fromkeys(claims["prior"]))
    return _scrolled("Claims", f'<table class="claims"><tr><td></td>{head}</tr>{"".join(rows)}</table>')


def html_table(wide: "DataFrame", digits: str) -> str:
    """Return a table that scrolls where it is wide."""

    def shown(value: float) -> str:
        return "∞" if value == math.inf else digits % value

    wide = wide.rename_axis([None] * wide.index.nlevels).rename_axis(None, axis=1)
    return _scrolled("Numbers", wide.to_html(float_format=shown, border=0))


def html_figure(picture: Picture) -> str:
    """Return a figure with its caption."""
    buffer = io.BytesIO()
    # Twice as many dots as pixels, for screens that have them.
    picture.figure.savefig(buffer, format="png", dpi=2 * PIXELS_PER_INCH)
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    title = html.escape(picture.figure.get_suptitle())
    width = round(PIXELS_PER_INCH * picture.figure.get_figwidth())
    image = f'<img alt="{title}" width="{width}" src="data:image/png;base64,{data}">'
    return f"<figure>{_scrolled(title, image)}<figcaption>{picture.caption}</figcaption></figure>"


def _scrolled(name: str, content: str) -> str:
    """Return what keeps its size on a phone, and is moved there by a finger or by keys."""
    return f'<div class="wide" role="region" tabindex="0" aria-label="{name}">{content}</div>'


def _where(table: "DataFrame", **wanted: str) -> "DataFrame":
    for column, value in wanted.items():
        table = table[table[column] == value]
    return table


STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; background: #fff; margin: 0 }
main { max-width: 70rem; margin: 0 auto; padding: 1rem }
h1, h2 { line-height: 1.2 } h2 { margin-top: 2.5rem; border-top: 1px solid #ccc; padding-top: 1rem }
figure { margin: 1.5rem 0 } img { max-width: 100%; height: auto } figcaption, small, footer { color: #555 }
.wide { overflow-x: auto } table { border-collapse: collapse; font-size: 0.85rem }
th, td { padding: 0.25rem 0.6rem; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap }
th:first-child { text-align: left } .claims th:first-child { white-space: normal; min-width: 16rem }
@media (max-width: 60rem) { figure img { max-width: none } }
.claims td { text-align: left } .fails { background: #fbe3d6 } .depends { background: #fdf6d0 }
"""
