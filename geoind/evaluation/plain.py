"""A comparison as plain data, for JSON; that of the paper's setting is stored."""

import json
import math
from importlib import resources
from typing import TYPE_CHECKING, Any, TypedDict

from geoind.evaluation.setting import Setting

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["MEASURES", "STORED", "as_plain_data", "stored_comparison"]

MEASURES = {
    "adversary_error": ("adversary error", "m", "higher is more private"),
    "expected_loss": ("expected distance", "m", "lower is more useful"),
    "measured_epsilon": ("measured epsilon", "1/m", "lower is more private"),
    "worst_case_loss": ("worst-case distance", "m", "lower is more useful"),
    "posterior_entropy": ("posterior entropy", "bits", "higher is more private"),
    "bayes_vulnerability": ("chance of an exact guess", "", "lower is more private"),
}
"""Title, unit and interpretation of each measure."""


class _PlainComparison(TypedDict):
    """A comparison in the types of JSON."""

    grid: dict[str, float]
    zone: list[int]
    loss: float
    priors: dict[str, list[float]]
    measures: dict[str, dict[str, str]]
    mechanisms: list[str]
    rows: list[dict[str, str | float | bool | None]]


STORED = "paper_comparison.json"
DIGITS = 8


def as_plain_data(table: "DataFrame", setting: Setting) -> _PlainComparison:
    """Return a comparison as dictionaries, lists, strings and numbers, for JSON.

    `rows` has one entry per row of the table; an infinite epsilon and a missing number are None. An empty note is
    left out.

    Examples
    --------
    >>> from geoind import Grid
    >>> from geoind.evaluation import compare
    >>> small = Setting(Grid(0, 0, cell=100, columns=3, rows=3), weights={"uniform": [1] * 9})
    >>> as_plain_data(compare(small), small)["mechanisms"][0]
    'cloaking'
    """
    grid = setting.grid
    return {
        "grid": {"cell": grid.cell, "columns": grid.columns, "rows": grid.rows},
        "zone": list(setting.zone),
        "loss": _plain(setting.loss),
        "priors": {name: [_plain(mass) for mass in prior.mass] for name, prior in setting.priors.items()},
        "measures": {
            name: {"title": title, "unit": unit, "good": good} for name, (title, unit, good) in MEASURES.items()
        },
        "mechanisms": list(dict.fromkeys(table["mechanism"])),
        "rows": [
            {str(key): _plain(value) for key, value in row.items() if (key, value) != ("note", "")}
            for row in table.to_dict("records")
        ],
    }


def stored_comparison() -> _PlainComparison:
    """Return the stored comparison on `PAPER_SETTING` as plain data.

    `python3 dev.py bench figures` writes it; a test compares it with a fresh run.

    Examples
    --------
    >>> stored_comparison()["grid"]
    {'cell': 100.0, 'columns': 9, 'rows': 9}
    """
    text = resources.files("geoind.evaluation").joinpath(STORED).read_text(encoding="utf-8")
    stored: _PlainComparison = json.loads(text)
    return stored


def _plain(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
