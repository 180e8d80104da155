"""Compute the figures and numbers of the evaluation and write them into the docs.

python3 dev.py bench figures

Writes the pictures docs/figures/evaluation-*.png that the pages show, the tables between the markers of
docs/benchmarks/evaluation.md, and geoind/evaluation/paper_comparison.json, which the demo shows.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

from geoind.cli.program import progress_line
from geoind.evaluation import PAPER_SETTING, as_plain_data, report, synthetic_city
from geoind.evaluation.comparison import CLAIMS, Evaluation, evaluate
from geoind.evaluation.plain import STORED
from geoind.evaluation.windows import busiest_window
from geoind.parallel import available_cores

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "docs" / "figures"
PAGE = ROOT / "docs" / "benchmarks" / "evaluation.md"


def markdown_table(header: list[str], rows: list[list[str]]) -> str:
    """Return a table for a page."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def errors(evaluation: Evaluation, way: str) -> str:
    """Return adversary errors in metres, mechanisms down, priors across."""
    wide = report.pivot(evaluation.table, way, "adversary_error")
    rows = [[str(name), *(f"{value:.1f}" for value in row)] for name, row in wide.iterrows()]
    return markdown_table(["", *map(str, wide.columns)], rows)


def measures(evaluation: Evaluation) -> str:
    """Return every measure under the uniform prior."""
    table = evaluation.table
    part = table[(table["equalised"] == "uniform") & (table["prior"] == "uniform")]
    header = [
        "",
        "expected distance",
        "adversary error",
        "measured epsilon",
        "worst case",
        "entropy",
        "exact guess",
    ]
    rows = [
        [
            str(row.mechanism),
            f"{row.expected_loss:.1f} m",
            f"{row.adversary_error:.1f} m",
            f"{row.measured_epsilon:.5f}".replace("inf", "∞"),
            f"{row.worst_case_loss:.0f} m",
            f"{row.posterior_entropy:.2f} bits",
            f"{row.bayes_vulnerability:.0%}",
        ]
        for row in part.itertuples()
    ]
    return markdown_table(header, rows)


def verdicts(evaluation: Evaluation) -> str:
    """Return under which priors each claim holds, fails or depends."""
    rows = []
    for name, claim in CLAIMS.items():
        for way in report.WAYS:
            part = evaluation.claims[
                (evaluation.claims["claim"] == name) & (evaluation.claims["equalised"] == way)
            ]
            priors = part.groupby("verdict")["prior"].agg(list)
            cells = [", ".join(priors.get(word, [])) or "–" for word in ("holds", "equal", "fails")]
            cells.append(", ".join(priors.get("depends on which optimum", [])) or "–")
            rows.append([claim.sentence, way, *cells])
    return markdown_table(["claim", "equal under", "holds", "equal", "fails", "depends on which optimum"], rows)


def anchors(evaluation: Evaluation) -> str:
    """Return the loss of cloaking and the epsilon of the planar Laplace with the same loss."""
    rows = evaluation.table.set_index(["equalised", "prior", "mechanism"]).to_dict("index")
    row = rows["uniform", "uniform", "planar Laplace"]
    return (
        f"Cloaking costs {evaluation.setting.loss:.3f} m; the planar Laplace of the same cost has epsilon "
        f"{row['parameter']:.6f}/m (the paper: 0.0162)."
    )


def fill(page: Path, parts: dict[str, str]) -> None:
    """Replace the text between `<!-- NAME -->` and `<!-- end NAME -->`."""
    text = page.read_text(encoding="utf-8")
    for name, part in parts.items():
        before, start, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- end {name} -->")
        if end:
            text = f"{before}{start}{part}\n{end}{after}"
    page.write_text(text, encoding="utf-8")


def main() -> None:
    """Compute once, write everything."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    mass = busiest_window(synthetic_city().prior, columns=9, rows=9).mass
    setting = replace(PAPER_SETTING, weights={**PAPER_SETTING.weights, "synthetic city": mass})
    start = time.perf_counter()
    with progress_line() as show:
        evaluation = evaluate(setting, workers=available_cores(), progress=show)
    print(f"evaluated in {time.perf_counter() - start:.0f} s")
    shown = PAGE.read_text(encoding="utf-8")
    for name, (figure, _) in report.pictures(evaluation).items():
        if (file := f"evaluation-{name}.png") in shown:
            figure.savefig(FIGURES / file, dpi=100)
    stored = json.dumps(as_plain_data(evaluation.table, setting), allow_nan=False, separators=(",", ":"))
    (ROOT / "geoind" / "evaluation" / STORED).write_text(stored + "\n", encoding="utf-8")
    parts = {
        "anchors": anchors(evaluation),
        "errors uniform": errors(evaluation, "uniform"),
        "errors evaluated": errors(evaluation, "evaluated"),
        "measures": measures(evaluation),
        "verdicts": verdicts(evaluation),
    }
    fill(PAGE, parts)


if __name__ == "__main__":
    main()
