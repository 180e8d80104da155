"""The measures of an assessment, and rules over them that stop a pipeline."""

import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from geoind.errors import InvalidInputError

__all__ = ["MEASURES", "Verdict", "parse_rule", "verdict_on"]

MEASURES: Mapping[str, str] = {
    "busiest_reports": "reports of the person with the most",
    "busiest_level": "level of the busiest person's reports within 200 m (delta 1e-6)",
    "within_median": "share of reports within the promised median distance; 0.5 is promised",
    "few": "share of reports with fewer than k persons within the reach",
    "bayes_error": "mean error of the best guess about one report, in metres",
    "bayes_found": "share of reports whose true place is found within 100 m",
    "home_error": "median error about homes, in metres",
    "home_found": "share of homes found within 100 m",
    "work_error": "median error about workplaces, in metres",
    "work_found": "share of workplaces found within 100 m",
    **{f"unique{p}": f"share of persons who are unique by {p} known visit{'s' * (p > 1)}" for p in range(1, 6)},
    **{f"unique{p}_before": f"the same before the noise, {p} known" for p in range(1, 6)},
    "location": "probability to name a person by two known places",
    "sequence": "the same by two known places in their order",
    "time": "the same by two known places with the hour",
    "frequency": "the same by the number of visits to two known places",
    "probability": "the same by the share of visits to two known places",
    "proportion": "the same by the proportion of visits to two known places",
    "home_work": "the same by the two most visited places",
    "nearest": "probability that the report nearest to a known true place is its own",
}
"""The measures that `fail_if` may name."""

RULE = re.compile(
    r"\s*([a-z_0-9]{1,40})\s*(<=|>=|<|>)\s*([+-]?[0-9.]{1,20}(?:e[+-]?[0-9]{1,3})?)\s*", re.IGNORECASE
)
COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


class Verdict(NamedTuple):
    """A check: what it says, the value that was found, whether it failed, and the measure that it is about."""

    rule: str
    found: float | None
    failed: bool
    measure: str = ""


def parse_rule(text: str) -> tuple[str, str, float]:
    """Return the measure, the comparison and the number of a rule such as `unique4 > 0.05`.

    Examples
    --------
    >>> parse_rule("unique4 > 0.05")
    ('unique4', '>', 0.05)
    """
    found = RULE.fullmatch(text)
    try:
        number = float(found[3]) if found else math.nan
    except ValueError:
        number = math.nan
    if found is None or math.isnan(number):
        raise InvalidInputError(
            f"a rule must be a measure, one of < > <= >=, and a number, such as 'unique4 > 0.05', got {text!r}"
        )
    if found[1] not in MEASURES:
        raise InvalidInputError(f"there is no measure {found[1]!r}; the measures are {', '.join(MEASURES)}")
    return found[1], found[2], number


def verdict_on(rule: str, measures: Mapping[str, float | None]) -> Verdict:
    """Return the verdict of a rule. A measure that was not computed fails, too: a check must not pass unseen.

    Examples
    --------
    >>> [verdict_on("unique4 > 0.05", {"unique4": share}).failed for share in (0.01, 0.1, None)]
    [False, True, True]
    """
    name, comparison, limit = parse_rule(rule)
    value = measures[name]
    return Verdict(f"fail if {rule.strip()}", value, value is None or COMPARISONS[comparison](value, limit), name)
