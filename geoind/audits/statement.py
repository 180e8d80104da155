"""The statement of an assessment: sections of sentences, tables and figures, as a page or Markdown."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from geoind.audits.assessment import Assessment
from geoind.audits.attempts import Attack
from geoind.audits.promised import DELTA, HUGE, RADII, Promised, noise_of, share_within
from geoind.audits.rules import Verdict
from geoind.audits.wording import (
    count_text,
    date_text,
    factor_text,
    interval_text,
    is_hidden,
    metres_text,
    number_text,
    percent_text,
    value_text,
)
from geoind.errors import plural
from geoind.pictures.charts import bars, curves, intervals, squares
from geoind.pictures.document import Rows, Sections, as_html, as_markdown, figure

__all__ = ["TITLE", "html_of", "markdown_of", "quantiles_of"]

Parts: TypeAlias = Iterator[str | Rows]

TITLE = "Privacy statement of a release"
MOST_PLACES = 10
KEYS = {
    "given": "given by the owner of the data; it can undo the noise: delete it when the release is final",
    "discarded": "none: made for this release, and discarded",
    None: "not in the record; if the noise was drawn with a key, the key can undo it: delete it",
}
"""What the statement says for `ReleaseRecord.key`."""

ADVERSARIES = {
    "bayes": (
        "One report, with the prior of the data",
        "The adversary sees one report, knows the mechanism, and knows how often each cell of 50 m is visited in "
        "the true data. No adversary who sees one report and knows this much about the population, but nothing "
        "about the person, does better on average.",
    ),
    "home": (
        "Home and workplace from repeated reports",
        "The adversary knows which reports belong to one person{linked}, and guesses where that person usually "
        "is. Home is the most visited cell of 100 m{night}, visited twice at least; persons without one or with a "
        "single report do not count. The first two rows of home and of workplace are the best of the attempts "
        "below them.",
    ),
    "unique": (
        "Persons who are unique by a few known visits",
        "The adversary knows some true visits of a person (the place{hour}) and which reports belong to one person"
        "{linked}. A person is unique if exactly one person of the release has a report within {radius} of each "
        "known place{during}, and it is the right one. Without noise, the place is a cell of 100 m.{huge}",
    ),
    "match": (
        "Matching attacks, as defined by scikit-mobility",
        "The adversary knows two visits or places of a person, in up to seven ways, and which reports belong to "
        "one person{linked}. The number is the probability to name the right person: one over the number of "
        "persons who fit, 0 if the right one does not. Frequencies fit within a tenth.",
    ),
    "nearest": (
        "The nearest report",
        "The adversary knows one true place of a person, and takes the report nearest to it for the report of "
        "that person.",
    ),
}
"""The title of each group of attacks, and how strong the adversary is."""


def html_of(found: Assessment) -> str:
    """Return the statement as one page that loads nothing."""
    verdict = "" if not found.verdicts else "failed" if found.failed else "passed"
    return as_html(TITLE, _sections(found), verdict=verdict)


def markdown_of(found: Assessment) -> str:
    """Return the statement as Markdown, without figures."""
    return as_markdown(TITLE, _sections(found))


def _sections(found: Assessment) -> Sections:
    return {
        "In short": list(_summary(found)),
        "What leaves": list(_leaves(found)),
        "What is promised to each person": list(_promise(found)),
        "How far reports are from the truth": list(_distances(found)),
        "How many people share the place": list(_sharing(found)),
        "Attacks, run on this release": list(_attacks(found)),
        "What this statement does not say": list(_limits(found)),
    }


def _summary(found: Assessment) -> Parts:
    who = found.persons if found.persons is not None else found.record.persons
    _, measured, said = found.quantiles[0]
    distance = said if measured is None else measured
    text = plural(found.reports, "report") + ("" if who is None else f" of {plural(who, 'person')}")
    yield text + (
        "." if distance is None else f"; half of them are within {metres_text(distance)} of the true place."
    )
    named = {attack.name: attack for attack in found.attacks}
    for name, sentence in SUMMARY.items():
        if name in named:
            attack = named[name]
            before, now = value_text(attack.without_noise, found.k), value_text(attack.release, found.k)
            yield f"{sentence}: {now}, and {before} without noise."
    if not found.verdicts:
        yield "No thresholds were set: --fail-if sets them."
        return
    rows = [
        (
            verdict.rule,
            "not computed" if verdict.found is None else _found(verdict, found),
            "FAILED" if verdict.failed else "passed",
        )
        for verdict in found.verdicts
    ]
    yield ("Checks", ("check", "found", "result"), rows, "")


SUMMARY = {
    "bayes_found": "True places that an adversary with the prior of the data finds within 100 m from one report",
    "home_found": "Homes found within 100 m from all reports of a person",
    "unique4": "Persons named by 4 known visits",
}


def _found(verdict: Verdict, found: Assessment) -> str:
    """Return the value of a verdict; a share that stands for fewer than k persons is not shown."""
    for attack in found.attacks:
        for name, estimate in ((attack.name, attack.release), (f"{attack.name}_before", attack.without_noise)):
            if verdict.measure and name == verdict.measure and estimate is not None:
                return value_text(estimate, found.k)
    if verdict.measure == "few" and found.sharing is not None:
        return value_text(found.sharing.few, found.k)
    return f"{verdict.found:.4g}"


def _leaves(found: Assessment) -> Parts:
    record = found.record
    places = "; ".join(" and ".join(place) for place in record.places) or "the geometry of the file"
    persons = found.persons if found.persons is not None else record.persons
    unit = {"column": "the person of a column", "each row": "each row is a person, as declared"}
    rows = [
        ("Rows of true data", f"{found.rows:,}" if found.with_truth else "not given"),
        ("Reports", f"{found.reports:,}"),
        ("Persons", "not counted" if persons is None else f"{persons:,}"),
        ("Whose reports", unit.get(record.unit, "each file is a person, as declared")),
        ("Period", "no times given" if found.period is None else " to ".join(map(date_text, found.period))),
        ("Columns of reports", places),
        ("Columns kept", ", ".join(record.kept) or "none"),
        ("Mechanism", record.mechanism + ("" if record.session is None else f", session {record.session}")),
        ("Epsilon", "none (Gaussian noise)" if record.epsilon == math.inf else f"{record.epsilon:.6g} per metre"),
        *([("Sigma", f"{record.sigma:g} m")] if record.sigma is not None else []),
        ("Lattice", f"{record.decimals} decimals of a degree"),
        ("Key", KEYS[record.key]),
        ("Made by", f"geoind {record.version}"),
        *((f"SHA-256 of {name}", digest) for name, digest in found.files.items()),
    ]
    yield ("The release", ("", ""), rows, "")
    if record.kept:
        yield "The promise is about the reports. It does not cover the columns kept, which leave unchanged."
    if "time" in found.public and found.period is not None:
        yield "Times leave unchanged: everyone who knows when a person was recorded can find the row by its time."


def _promise(found: Assessment) -> Parts:
    one, *totals = found.promised
    busiest = totals[-1] if totals else None
    if one.levels[200.0] == math.inf:
        yield f"The record of {found.record.mechanism} states no epsilon: no bound on the odds is known."
    else:
        factor = factor_text(one.levels[200.0])
        text = f"Odds between two places 200 m apart change by at most a factor of {factor} for one report"
        if busiest is not None and busiest.reports > 1:
            text += (
                f", and by at most {factor_text(busiest.levels[200.0])} for the busiest person's "
                f"{plural(busiest.reports, 'report')} together"
            )
        delta = any(total.levels != total.sums for total in found.promised)
        yield f"{text}{f', except with probability {DELTA:g}' if delta else ''}."
    if found.record.unit == "each row":
        yield "No person has two rows, as declared. If that is wrong, the reports of a person add up."
    yield (
        f"Level: the logarithm of the largest change of odds (delta {DELTA:g} where several reports are added)",
        (
            "whose",
            "reports",
            "epsilon per metre",
            *(f"level within {radius:,.0f} m" for radius in RADII),
            "factor within 200 m",
        ),
        [_promised_row(promised) for promised in found.promised],
        "",
    )
    yield (
        "Not promised: that a report is wrong. It hides places near each other, not the town; it does not hide "
        "that a person is in the data; and a level above 5 (a factor of 150) protects little. Further "
        "releases about the same persons add up."
    )


def _promised_row(promised: Promised) -> tuple[str, ...]:
    levels = (promised.levels[radius] for radius in RADII)
    return (
        promised.who,
        f"{promised.reports:,}",
        number_text(promised.epsilon, ".4g"),
        *(number_text(level, ".3g") for level in levels),
        factor_text(promised.levels[200.0]),
    )


def _distances(found: Assessment) -> Parts:
    rows = [
        (f"{share:.0%} of reports within", metres_text(measured), metres_text(said))
        for share, measured, said in found.quantiles
    ]
    if found.quantiles[0][1:] == (None, None):
        yield "Not known: the record does not describe it, and the true locations were not given."
        return
    yield ("Distance between truth and report", ("share", "measured", "promised"), rows, "")
    share = found.measures.get("within_median")
    if share is not None and found.reports >= 100 and share > 0.5 + 4 / math.sqrt(found.reports) + 0.01:
        yield f"{share:.1%} of the reports are within the promised median: there is less noise than promised."
    noise = noise_of(found.record) if found.record.session is None else None
    measured = {"measured": [(at, share) for share, at in found.curve]} if found.curve else {}
    if noise is not None:
        most = 1.2 * float(noise.reach(0.99))
        measured["promised"] = [(most * step / 60, share_within(noise, most * step / 60)) for step in range(61)]
    if measured:
        most = max(at for points in measured.values() for at, _ in points) or 1.0
        title = "Share of reports within a distance from the truth"
        yield figure(curves(measured, title=title, x="metres", most=most), title)
    laws = [
        (name, metres_text(limit), percent_text(seen), percent_text(said))
        for name, limit, seen, said in found.within
    ]
    if laws:
        yield (
            "Share of reports within distances that laws name",
            ("law", "distance", "measured", "promised"),
            laws,
            "",
        )
        yield "Arithmetic, not legal advice."


def _sharing(found: Assessment) -> Parts:
    sharing, k = found.sharing, found.k
    if sharing is None:
        yield "Not computed: this needs the true locations, or a population file (--population)."
        return
    counts = sharing.counts
    below, tenth, half = (count_text(value, k) for value in (counts.min(), *quantiles_of(counts, (0.1, 0.5))))
    yield (
        f"95 % of the reports are within {metres_text(sharing.radius)} of the true place. Within this distance of "
        f"a report there are {half} {sharing.whose} at the median report; a tenth of the reports have at most "
        f"{tenth}, and the report with the fewest has {below} ({plural(len(counts), 'report')} examined)."
    )
    yield f"Share of reports with fewer than {k}: {interval_text(sharing.few, k)}."
    edges = [0, k, 10 * k, 100 * k, 1000 * k, math.inf]
    labels = [
        f"under {k:,}",
        *(f"{low:,} to {10 * low - 1:,}" for low in edges[1:4]),
    ]
    labels.append(f"{edges[4]:,} or more")
    shares = [
        (
            label,
            _suppressed(float(((counts >= low) & (counts < high)).sum()), len(counts), k),
            "low" if not low else "",
        )
        for label, low, high in zip(labels, edges[:-1], edges[1:], strict=True)
    ]
    title = f"Reports by the number of {sharing.whose} within {metres_text(sharing.radius)}"
    yield figure(bars(shares, title=title), f"{title}. Bars of fewer than {k} reports are not drawn.")
    drawn = [(column, row, _class(fewest, k)) for column, row, fewest, _ in sharing.cells]
    side = sharing.side[1] * 111.2
    scale = 10 ** math.floor(math.log10(max(side * 8, 1e-3)))
    names = f"orange: fewer than {k}; pale to dark: at least {k:,}, {10 * k:,}, {100 * k:,}"
    title = f"Cells of {side:.2g} km with reports, by the fewest {sharing.whose} around a report ({names})"
    outside = f" {plural(sharing.outside, 'examined report')} outside of the map." if sharing.outside else ""
    unit = f"{scale:g} km"
    yield figure(
        squares(drawn, title=title, scale=scale / side, unit=unit), f"{title}. The map shows reports.{outside}"
    )
    few = sorted((cell for cell in sharing.cells if cell[2] < k), key=lambda cell: -cell[3])
    if few:
        rows = []
        for column, row, _, _ in few[:MOST_PLACES]:
            lon, lat = (
                sharing.corner[axis] + (at + 0.5) * sharing.side[axis] for axis, at in enumerate((column, row))
            )
            rows.append((f"{lat:.2f}", f"{lon:.2f}", f"fewer than {k}"))
        yield (
            f"Cells of reports with fewer than {k} {sharing.whose} around a report: {len(few):,} in all"
            + (f", the {MOST_PLACES} with the most reports" if len(few) > MOST_PLACES else ""),
            ("latitude", "longitude", "persons"),
            rows,
            "",
        )


def _attacks(found: Assessment) -> Parts:
    if not found.attacks:
        yield "No attacks were run: they need the true locations."
        return
    yield (
        "Each attack was run on this release, and on two controls made from the same true data: one without "
        f"noise, and one with {HUGE:g} times the noise. An attack is a good one if it succeeds without noise; the "
        f"noise protects against it if its success is near that on huge noise. Values have 95 % confidence "
        f"intervals; seed {found.seed}."
    )
    shares = [attack for attack in found.attacks if attack.name and not math.isnan(attack.release.hits)]
    marks = [(attack.title.partition(" (")[0], list(_marks(attack, found.k))) for attack in shares]
    title = "Success of the attacks: this release (filled), without noise (ring), huge noise (grey)"
    yield figure(intervals(marks, title=title), title)
    noise = noise_of(found.record) if found.record.session is None else None
    for group, adversary in ADVERSARIES.items():
        some = [attack for attack in found.attacks if attack.group == group]
        if not some:
            continue
        title, sentence = adversary
        timed = "time" in found.public and found.period is not None
        note = sentence.format(
            linked="" if "person" in found.public else ", although the release does not show it",
            night=" at night (21 to 6 h, local solar time)" if found.period is not None else "",
            hour=" and the hour" if timed else "",
            during=" in that hour" if timed else "",
            huge=" Success on huge noise means that the times identify the person, not the places."
            if timed
            else "",
            radius="the usual error" if noise is None else metres_text(noise.reach(0.99)),
        )
        head = ("attack", "this release", "without noise", "huge noise", "tried on")
        noun = "report" if group in ("bayes", "nearest") else "person"
        rows = [
            (
                attack.title,
                interval_text(attack.release, found.k),
                *(value_text(control, found.k) for control in (attack.without_noise, attack.huge_noise)),
                plural(attack.release.trials, noun),
            )
            for attack in some
        ]
        yield (title, head, rows, note)
    for what, why in found.skipped.items():
        yield f"Not run: {what}, because {why}."


def _marks(attack: Attack, k: int) -> Iterator[tuple[str, float, float, float]]:
    for kind, estimate in (("huge", attack.huge_noise), ("none", attack.without_noise), ("now", attack.release)):
        if estimate is not None and is_hidden(estimate, k):
            yield kind, math.nan, 0.0, min(1.0, k / estimate.trials)
        elif estimate is not None:
            yield kind, estimate.value, estimate.low, estimate.high


def _limits(found: Assessment) -> Parts:
    yield (
        "Attacks show what these adversaries find; they prove nothing about others. The promise of the mechanism "
        "holds against every adversary, however much they know."
    )
    if found.with_truth:
        yield (
            "The numbers of this statement are exact aggregates of the true data. Counts of fewer than "
            f"{found.k} persons are not shown, and no true location. It is meant for the files of the owner of "
            "the data, not for publication."
        )
    else:
        yield "The true locations were not given: distances and attacks on this release were not measured."
    yield "Other files, other columns and later releases about the same persons are not part of it."


def quantiles_of(counts: Any, shares: Sequence[float]) -> list[float]:
    """Return the counts that some shares of the reports do not exceed."""
    ordered = sorted(counts.tolist())
    return [ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in shares]


def _class(fewest: float, k: int) -> str:
    return "low" if fewest < k else "few" if fewest < 10 * k else "some" if fewest < 100 * k else "many"


def _suppressed(hits: float, count: int, k: int) -> float:
    return 0.0 if hits < k else hits / count
