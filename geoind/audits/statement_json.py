"""The numbers of a statement as JSON, for programs."""

import json
import math
from typing import Any

from geoind.audits.assessment import Assessment
from geoind.audits.attempts import Estimate
from geoind.audits.promised import DELTA
from geoind.audits.rules import MEASURES
from geoind.audits.statement import TITLE, quantiles_of
from geoind.audits.wording import date_text, is_hidden
from geoind.errors import printable
from geoind.version import __version__

__all__ = ["json_of"]


def json_of(found: Assessment) -> str:
    """Return the numbers of the statement as JSON; shares of fewer than k persons are null."""

    def shown(estimate: Estimate | None) -> dict[str, float | int | None] | None:
        if estimate is None:
            return None
        if is_hidden(estimate, found.k):
            return {"value": None, "below": min(1.0, found.k / estimate.trials), "count": estimate.trials}
        return {
            "value": estimate.value,
            "low": estimate.low,
            "high": estimate.high,
            "count": estimate.trials,
        }

    def named(text: str) -> str:
        return printable(text).encode("utf-8", "replace").decode()

    hidden = {attack.name for attack in found.attacks if is_hidden(attack.release, found.k)}
    hidden |= {
        f"{a.name}_before" for a in found.attacks if a.without_noise and is_hidden(a.without_noise, found.k)
    }
    hidden |= {"few"} if found.sharing is not None and is_hidden(found.sharing.few, found.k) else set()
    sharing = found.sharing
    content: dict[str, Any] = {
        "title": TITLE,
        "version": __version__,
        "failed": found.failed,
        "verdicts": [{"rule": verdict.rule, "failed": verdict.failed} for verdict in found.verdicts],
        "measures": {name: None if name in hidden else value for name, value in found.measures.items()},
        "meaning": dict(MEASURES),
        "files": {named(name): digest for name, digest in found.files.items()},
        "rows": found.rows if found.with_truth else None,
        "reports": found.reports,
        "persons": found.persons if found.persons is not None else found.record.persons,
        "period": None if found.period is None else [*map(date_text, found.period)],
        "kept": [named(name) for name in found.record.kept],
        "mechanism": found.record.mechanism,
        "epsilon": _finite(found.record.epsilon),
        "key": found.record.key,
        "promised": [
            {
                "who": promised.who,
                "reports": promised.reports,
                "epsilon": _finite(promised.epsilon),
                "delta": DELTA if promised.levels != promised.sums else 0.0,
                "levels": {f"{radius:g} m": _finite(level) for radius, level in promised.levels.items()},
            }
            for promised in found.promised
        ],
        "distances": [
            {"share": share, "measured": seen, "promised": said} for share, seen, said in found.quantiles
        ],
        "within": [
            {"name": named(name), "metres": limit, "measured": seen, "promised": said}
            for name, limit, seen, said in found.within
        ],
        "sharing": None
        if sharing is None
        else {
            "whose": sharing.whose,
            "radius": sharing.radius,
            "few": shown(sharing.few),
            "median": _at_least(float(quantiles_of(sharing.counts, (0.5,))[0]), found.k),
        },
        "attacks": [
            {
                "measure": attack.name or None,
                "title": attack.title,
                "release": shown(attack.release),
                "without_noise": shown(attack.without_noise),
                "huge_noise": shown(attack.huge_noise),
            }
            for attack in found.attacks
        ],
        "skipped": dict(found.skipped),
        "k": found.k,
        "seed": found.seed,
    }
    return json.dumps(content, indent=1, allow_nan=False)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _at_least(value: float, k: int) -> float | None:
    return value if value >= k else None
