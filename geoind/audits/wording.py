"""Numbers as text: distances, shares with their intervals, factors; counts below k are not shown."""

import math
from datetime import UTC, datetime

from geoind.audits.attempts import Estimate

__all__ = [
    "count_text",
    "date_text",
    "factor_text",
    "interval_text",
    "is_hidden",
    "metres_text",
    "number_text",
    "percent_text",
    "value_text",
]

MOST_FACTOR = 1000.0


def date_text(seconds: float) -> str:
    """Return the date of a time in seconds since 1970, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


def number_text(value: float, digits: str) -> str:
    """Return a number in a format, or that there is no bound."""
    return "no bound" if value == math.inf else f"{value:{digits}}"


def factor_text(level: float) -> str:
    """Return the factor e^level: as a power of ten, rounded up, where it is large."""
    if level == math.inf:
        return "no bound"
    return f"{math.exp(level):.3g}" if level < math.log(MOST_FACTOR) else f"10^{math.ceil(level / math.log(10))}"


def metres_text(value: float | None) -> str:
    """Return a distance."""
    if value is None:
        return "not known"
    return f"{value:,.0f} m" if value >= 10 else f"{value:.2g} m"


def percent_text(share: float | None) -> str:
    """Return a share."""
    return "not known" if share is None else f"{100 * share:.1f} %"


def count_text(value: float, k: int) -> str:
    """Return a number of persons, or that it is below k."""
    return f"fewer than {k}" if value < k else f"{value:,.0f}"


def is_hidden(estimate: Estimate, k: int) -> bool:
    """Return whether a share stands for some, but fewer than k."""
    return 0 < estimate.hits < k


def value_text(estimate: Estimate | None, k: int) -> str:
    """Return a share or a distance; a share of fewer than k persons is not shown."""
    if estimate is None:
        return "-"
    if math.isnan(estimate.hits):
        return "no guess" if estimate.value == math.inf else metres_text(estimate.value)
    if is_hidden(estimate, k):
        return f"under {100 * k / estimate.trials:.2g} %" if k < estimate.trials else f"fewer than {k} persons"
    return percent_text(estimate.value)


def interval_text(estimate: Estimate, k: int) -> str:
    """Return the value with its confidence interval."""
    text = value_text(estimate, k)
    if math.isnan(estimate.hits):
        return (
            f"{text} ({metres_text(estimate.low)} to {metres_text(estimate.high)})"
            if estimate.high < math.inf
            else text
        )
    if is_hidden(estimate, k):
        return text
    return f"{text} ({100 * estimate.low:.1f} to {100 * estimate.high:.1f} %)"
