"""The statement of an assessment: sections of sentences, tables and figures, as a page, Markdown and JSON."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from markupsafe import Markup

from geoind.audits.assessment import DELTA, MEASURES, RADII, Assessment, Attack, Estimate, Promised, noise_of
from geoind.errors import plural, printable
from geoind.pictures.charts import CHART_STYLE, bars, curves, intervals, squares
from geoind.pictures.page import fill, html_page
from geoind.version import __version__

__all__ = ["html_of", "json_of", "markdown_of"]

TITLE = "Privacy statement of a release"
MOST_FACTOR = 1000.0
MOST_PLACES = 10

ADVERSARIES = {
    "bayes": "Bayesian attack on one report. The adversary sees one report, and knows the mechanism and how often each "
    "cell of 50 m is visited in the true data. This is the strongest adversary who sees one report and has "
    "no knowledge about the person.",
    "home": "Home and workplace from repeated reports. The adversary knows which reports belong to one person"
    "{linked}, and guesses the most visited place. Home is the most visited cell of 100 m{night}; only persons "
    "with such a place and at least two reports count. The first two rows of each kind are the best of the "
    "attempts below them.",
    "unique": "Uniqueness. The adversary knows some true visits of a person (the place{hour}) and which reports belong "
    "to one person{linked}. A person is unique if exactly one person of the release has reports that fit "
    "(within {radius} of each known place), and it is the right one.",
    "match": "Matching attacks, with the definitions of scikit-mobility. The adversary knows two places of a person, in "
    "seven ways, and which reports belong to one person{linked}. The number is the probability to name the "
    "right person: one over the number of persons who fit.",
    "nearest": "Nearest report. The adversary knows one true place of a person, and takes the report nearest to it for "
    "the report of that person.",
}
"""How strong each adversary is."""


class Table(NamedTuple):
    """Rows of text under a head."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


class Figure(NamedTuple):
    """A picture with its caption."""

    svg: Markup
    caption: str


class Section(NamedTuple):
    """A heading and what follows: sentences, tables and figures."""

    title: str
    parts: Sequence[str | Table | Figure]


def _sections(found: Assessment) -> Iterator[Section]:
    yield Section("Verdict", list(_verdict(found)))
    yield Section("What leaves", list(_leaves(found)))
    yield Section("What is promised to each person", list(_promise(found)))
    yield Section("How far reports are from the truth", list(_distances(found)))
    yield Section("How many people share the place", list(_sharing(found)))
    yield Section("Attacks, run on this release", list(_attacks(found)))
    yield Section("What this statement does not say", list(_limits(found)))


def _verdict(found: Assessment) -> Iterator[str | Table | Figure]:
    if not found.verdicts:
        yield "No thresholds were set. The rules of --fail-if decide here whether a release passes."
        return
    yield "At least one check failed." if found.failed else "All checks passed."
    rows = [
        (
            verdict.rule,
            "not computed" if verdict.found is None else _plain(verdict, found),
            "FAILED" if verdict.failed else "passed",
        )
        for verdict in found.verdicts
    ]
    yield Table("Checks", ("check", "found", "result"), rows)


def _plain(verdict: Any, found: Assessment) -> str:
    """Return the value of a verdict; a share that stands for fewer than k persons is not shown."""
    for attack in found.attacks:
        if attack.name and re.search(rf"\b{attack.name}\b", verdict.rule):
            return _value(attack.release, found.k)
    return f"{verdict.found:.4g}"


def _leaves(found: Assessment) -> Iterator[str | Table | Figure]:
    record = found.record
    places = "; ".join(" and ".join(place) for place in record.places) or "the geometry of the file"
    persons = found.persons if found.persons is not None else record.persons
    unit = {"column": "the person of a column", "each row": "each row is a person, as declared"}
    rows = [
        ("Rows of true data", f"{found.rows:,}" if found.with_truth else "not given"),
        ("Reports", f"{found.reports:,}"),
        ("Persons", "not counted" if persons is None else f"{persons:,}"),
        ("Whose reports", unit.get(record.unit, "each file is a person, as declared")),
        ("Period", "no times given" if found.period is None else " to ".join(map(_date, found.period))),
        ("Columns of reports", places),
        ("Columns kept", ", ".join(record.kept) or "none"),
        ("Mechanism", record.mechanism + ("" if record.session is None else f", session {record.session}")),
        ("Epsilon", "none (Gaussian noise)" if record.epsilon == math.inf else f"{record.epsilon:.6g} per metre"),
        *([("Sigma", f"{record.sigma:g} m")] if record.sigma is not None else []),
        ("Lattice", f"{record.decimals} decimals of a degree"),
        ("Key", "not in the record; if the noise was drawn with a key, the key can undo it: delete it"),
        ("Made by", f"geoind {record.version}"),
        *((f"SHA-256 of {name}", digest) for name, digest in found.files.items()),
    ]
    yield Table("The release", ("", ""), rows)
    if record.kept:
        yield "The promise is about the reports. It does not cover the columns kept, which leave unchanged."
    if "time" in found.public and found.period is not None:
        yield "Times leave unchanged: everyone who knows when a person was recorded can find the row by its time."


def _promise(found: Assessment) -> Iterator[str | Table | Figure]:
    one, *totals = found.promised
    busiest = totals[-1] if totals else None
    if one.levels[200.0] == math.inf:
        yield f"One report: the record of {found.record.mechanism} states no epsilon, so no bound on the odds is known."
    else:
        text = f"Odds between two places 200 m apart change by at most a factor of {_factor(one.levels[200.0])} for one report"
        if busiest is not None and busiest.reports > 1:
            text += (
                f", and by at most {_factor(busiest.levels[200.0])} for the busiest person's "
                f"{plural(busiest.reports, 'report')} together"
            )
        delta = any(total.levels != total.sums for total in found.promised)
        yield f"{text}{f', except with probability {DELTA:g}' if delta else ''}."
    if found.record.unit == "each row":
        yield "No person has two rows, as declared. If that is wrong, the reports of a person add up, and this page is wrong."
    yield Table(
        f"Level: the logarithm of the largest change of odds (delta {DELTA:g} where several reports are added)",
        (
            "",
            "reports",
            "epsilon per metre",
            *(f"level within {radius:,.0f} m" for radius in RADII),
            "factor within 200 m",
        ),
        [_promised_row(promised) for promised in found.promised],
    )
    yield (
        "Not promised: that a report is wrong. It hides places near each other, not the town; it does not hide that a "
        "person is in the data; and a level above about 5 (a factor of 150) is no protection on its own. Further "
        "releases about the same persons add up."
    )


def _promised_row(promised: Promised) -> tuple[str, ...]:
    levels = (promised.levels[radius] for radius in RADII)
    return (
        promised.who,
        f"{promised.reports:,}",
        _number(promised.epsilon, ".4g"),
        *(_number(level, ".3g") for level in levels),
        _factor(promised.levels[200.0]),
    )


def _distances(found: Assessment) -> Iterator[str | Table | Figure]:
    rows = [
        (f"{share:.0%} of reports within", _metres(measured), _metres(said))
        for share, measured, said in found.quantiles
    ]
    yield Table("Distance between truth and report", ("", "measured", "promised"), rows)
    share = found.measures.get("within_median")
    if share is not None and found.reports >= 100 and share > 0.5 + 4 / math.sqrt(found.reports) + 0.01:
        yield f"{share:.1%} of the reports are within the promised median distance. There is less noise than promised."
    noise = noise_of(found.record)
    measured = {"measured": [(at, share) for share, at in found.curve]} if found.curve else {}
    if noise is not None and noise.exact:
        most = 1.2 * float(noise.mechanism.reach(0.99))
        measured["promised"] = [(most * step / 60, noise.share_within(most * step / 60)) for step in range(61)]
    if measured:
        most = max(at for points in measured.values() for at, _ in points) or 1.0
        title = "Share of reports within a distance from the truth"
        yield Figure(curves(measured, title=title, x="metres", most=most), title)
    rows = [(name, _metres(limit), _percent(seen), _percent(said)) for name, limit, seen, said in found.within]
    if rows:
        yield Table(
            "Share of reports within distances that laws name", ("", "distance", "measured", "promised"), rows
        )
        yield "Arithmetic, not legal advice."


def _sharing(found: Assessment) -> Iterator[str | Table | Figure]:
    sharing, k = found.sharing, found.k
    if sharing is None:
        yield "Not computed: this needs the true locations, or a population file (--population)."
        return
    counts = sharing.counts
    below, tenth, half = (_count(value, k) for value in (counts.min(), *_quantile(counts, (0.1, 0.5))))
    yield (
        f"95 % of the reports are within {_metres(sharing.radius)} of the true place. Within this distance of a report "
        f"there are {half} {sharing.whose} at the median report, {tenth} at the report with fewer than 90 % of the "
        f"others, and {below} at the report with the fewest ({plural(len(counts), 'report')} examined)."
    )
    yield f"Share of reports with fewer than {k}: {_interval(sharing.few, k)}."
    edges = [0, k, 10 * k, 100 * k, 1000 * k, math.inf]
    labels = [
        f"under {k:,}",
        *(f"{low:,} to {high - 1:,}" for low, high in zip(edges[1:4], edges[2:5], strict=True)),
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
    title = f"Reports by the number of {sharing.whose} within {_metres(sharing.radius)}"
    yield Figure(bars(shares, title=title), f"{title}. Bars of fewer than {k} reports are not drawn.")
    drawn = [(column, row, _class(fewest, k)) for column, row, fewest, _ in sharing.cells]
    side = sharing.side[1] * 111.2
    scale = 10 ** math.floor(math.log10(max(side * 8, 1e-3)))
    names = f"orange: fewer than {k}; pale to dark: at least {k:,}, {10 * k:,}, {100 * k:,}"
    title = f"Cells of {side:.2g} km with reports, by the fewest {sharing.whose} around a report ({names})"
    outside = f" {plural(sharing.outside, 'examined report')} outside of the map." if sharing.outside else ""
    unit = f"{scale:g} km"
    yield Figure(
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
        yield Table(
            f"Cells of reports with fewer than {k} {sharing.whose} around a report: {len(few):,} in all"
            + (f", the {MOST_PLACES} with the most reports" if len(few) > MOST_PLACES else ""),
            ("latitude", "longitude", "persons"),
            rows,
        )


def _attacks(found: Assessment) -> Iterator[str | Table | Figure]:
    if not found.attacks:
        yield "No attacks were run: they need the true locations."
        return
    yield (
        "Each attack was run on this release, and on two controls made from the same true data: one without noise, "
        f"and one with {100} times the noise. The attack works if it succeeds without noise; the noise protects if "
        f"its success is near that of huge noise. Values have 95 % confidence intervals; seed {found.seed}."
    )
    shares = [attack for attack in found.attacks if attack.name and not math.isnan(attack.release.hits)]
    marks = [(attack.title.partition(" (")[0], list(_marks(attack))) for attack in shares]
    title = "Success of the attacks: this release (filled), without noise (ring), huge noise (grey)"
    yield Figure(intervals(marks, title=title), title)
    for group, adversary in ADVERSARIES.items():
        some = [attack for attack in found.attacks if attack.group == group]
        if not some:
            continue
        radius = noise_of(found.record)
        reach = _metres(radius.mechanism.reach(0.99)) if radius is not None and radius.exact else "the usual error"
        timed = "time" in found.public and found.period is not None
        yield adversary.format(
            linked="" if "person" in found.public else ", although the release does not show it",
            night=" at night (21 to 6 h, local solar time)" if found.period is not None else "",
            hour=" and the hour" if timed else "",
            radius=reach,
        )
        head = ("attack", "this release", "without noise", "huge noise", "tried on")
        noun = "report" if group in ("bayes", "nearest") else "person"
        rows = [
            (
                attack.title,
                _interval(attack.release, found.k),
                *(_value(control, found.k) for control in (attack.without_noise, attack.huge_noise)),
                plural(attack.release.count, noun),
            )
            for attack in some
        ]
        yield Table(adversary.partition(".")[0], head, rows)
    for what, why in found.skipped.items():
        yield f"Not run: {what}, because {why}."


def _marks(attack: Attack) -> Iterator[tuple[str, float, float, float]]:
    for kind, estimate in (("huge", attack.huge_noise), ("none", attack.without_noise), ("now", attack.release)):
        if estimate is not None:
            yield kind, estimate.value, estimate.low, estimate.high


def _limits(found: Assessment) -> Iterator[str | Table | Figure]:
    yield (
        "Attacks show what these adversaries find; they prove nothing about others. The promise of the mechanism holds "
        "against every adversary, however much they know."
    )
    if found.with_truth:
        yield (
            "The numbers of this statement are exact aggregates of the true data. Counts of fewer than "
            f"{found.k} persons are not shown, and no true location. It is meant for the files of the owner of the data, "
            "not for publication."
        )
    else:
        yield "The true locations were not given: distances and attacks on this release were not measured."
    yield "Other files, other columns and later releases about the same persons are not part of it."


def html_of(found: Assessment) -> str:
    """Return the statement as one page that loads nothing."""
    sections = [(section.title, [_html(part) for part in section.parts]) for section in _sections(found)]
    verdict = "" if not found.verdicts else "failed" if found.failed else "passed"
    body = fill(BODY, title=TITLE, sections=sections, version=__version__, verdict=verdict)
    return html_page(TITLE, body, styles=[STYLE, CHART_STYLE])


def _html(part: str | Table | Figure) -> Markup:
    if isinstance(part, Table):
        return fill(TABLE, table=part._replace(rows=[[printable(cell) for cell in row] for row in part.rows]))
    if isinstance(part, Figure):
        return fill("<figure>{{ svg }}<figcaption>{{ caption }}</figcaption></figure>", **part._asdict())
    return fill("<p>{{ text }}</p>", text=part)


def markdown_of(found: Assessment) -> str:
    """Return the statement as Markdown, without figures."""
    lines = [f"# {TITLE}"]
    for section in _sections(found):
        lines += ["", f"## {section.title}"]
        for part in section.parts:
            if isinstance(part, Table):
                lines += ["", f"{_escaped(part.caption)}:", "", _row(part.head), _row(["---"] * len(part.head))]
                lines += [_row([_escaped(cell) for cell in row]) for row in part.rows]
            elif isinstance(part, str):
                lines += ["", _escaped(part)]
    return "\n".join([*lines, "", f"geoind {__version__}", ""])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    """Return text that Markdown shows as it is."""
    return re.sub(r"([\\`*_{}\[\]<>#|!~$])", r"\\\1", printable(text).encode("utf-8", "replace").decode())


def json_of(found: Assessment) -> str:
    """Return the numbers of the statement as JSON; shares of fewer than k persons are null."""

    def shown(estimate: Estimate | None) -> dict[str, float | int | None] | None:
        if estimate is None:
            return None
        value = None if _hidden(estimate, found.k) else estimate.value
        return {
            "value": value,
            "low": None if value is None else estimate.low,
            "high": estimate.high,
            "count": estimate.count,
        }

    def named(text: str) -> str:
        return printable(text).encode("utf-8", "replace").decode()

    hidden = {attack.name for attack in found.attacks if _hidden(attack.release, found.k)}
    hidden |= {f"{a.name}_before" for a in found.attacks if a.without_noise and _hidden(a.without_noise, found.k)}
    hidden |= {"few"} if found.sharing is not None and _hidden(found.sharing.few, found.k) else set()
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
        "period": None if found.period is None else [*map(_date, found.period)],
        "kept": [named(name) for name in found.record.kept],
        "mechanism": found.record.mechanism,
        "epsilon": _finite(found.record.epsilon),
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
            "median": _at_least(float(_quantile(sharing.counts, (0.5,))[0]), found.k),
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


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


def _number(value: float, digits: str) -> str:
    return "no bound" if value == math.inf else f"{value:{digits}}"


def _factor(level: float) -> str:
    if level == math.inf:
        return "no bound"
    return f"{math.exp(level):.3g}" if level < math.log(MOST_FACTOR) else f"10^{math.ceil(level / math.log(10))}"


def _metres(value: float | None) -> str:
    if value is None:
        return "not known"
    return f"{value:,.0f} m" if value >= 10 else f"{value:.2g} m"


def _percent(share: float | None) -> str:
    return "not known" if share is None else f"{100 * share:.1f} %"


def _quantile(counts: Any, shares: Sequence[float]) -> list[float]:
    ordered = sorted(counts.tolist())
    return [ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in shares]


def _count(value: float, k: int) -> str:
    return f"fewer than {k}" if value < k else f"{value:,.0f}"


def _class(fewest: float, k: int) -> str:
    return "low" if fewest < k else "few" if fewest < 10 * k else "some" if fewest < 100 * k else "many"


def _suppressed(hits: float, count: int, k: int) -> float:
    return 0.0 if hits < k else hits / count


def _hidden(estimate: Estimate, k: int) -> bool:
    """Return whether a share stands for some, but fewer than k."""
    return 0 < estimate.hits < k


def _value(estimate: Estimate | None, k: int) -> str:
    if estimate is None:
        return "-"
    if math.isnan(estimate.hits):
        return "no guess" if estimate.value == math.inf else _metres(estimate.value)
    if _hidden(estimate, k):
        return f"under {100 * k / estimate.count:.2g} %" if k < estimate.count else f"fewer than {k} persons"
    return _percent(estimate.value)


def _interval(estimate: Estimate, k: int) -> str:
    text = _value(estimate, k)
    if math.isnan(estimate.hits):
        return (
            f"{text} ({_metres(estimate.low)} to {_metres(estimate.high)})" if estimate.high < math.inf else text
        )
    if _hidden(estimate, k):
        return text
    return f"{text} ({100 * estimate.low:.1f} to {100 * estimate.high:.1f} %)"


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

TABLE = """
<div class="wide" role="region" tabindex="0" aria-label="{{ table.caption }}"><table>
<caption>{{ table.caption }}</caption>
{% if table.head | join %}
<thead><tr>{% for cell in table.head %}<th scope="col">{{ cell }}</th>{% endfor %}</tr></thead>
{% endif %}
<tbody>
{% for row in table.rows %}
<tr>{% for cell in row %}{% if loop.first %}<th scope="row">{{ cell }}</th>{% else %}<td>{{ cell }}</td>{% endif %}
{% endfor %}</tr>
{% endfor %}
</tbody></table></div>
"""

STYLE = """
:root { --ink: #222; --paper: #fff; --soft: #555; --rule: #ccc; --one: #0072b2; --two: #d55e00; --few: #cfe3f1;
  --some: #7fb2d9; --grey: #888; --good: #e2f2e6; --bad: #fbe3d6 }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --paper: #16181c; --soft: #b0b0b0; --rule: #444;
  --one: #56b4e9; --two: #f0913a; --few: #1f3a4d; --some: #2f6d94; --grey: #999; --good: #1d3b26; --bad: #4a2614 } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 }
main { max-width: 56rem; margin: 0 auto; padding: 1rem }
h1, h2 { line-height: 1.2 } h2 { margin-top: 2rem; border-top: 1px solid var(--rule); padding-top: 1rem }
.verdict { font-weight: 600; padding: 0.5rem 1rem } .passed { background: var(--good) } .failed { background: var(--bad) }
figure { margin: 1.2rem 0 } figcaption, footer { color: var(--soft); font-size: 0.9rem }
.wide { overflow-x: auto; margin: 1rem 0 } table { border-collapse: collapse; font-size: 0.9rem }
caption { text-align: left; font-weight: 600; padding-bottom: 0.3rem }
th, td { padding: 0.25rem 0.8rem 0.25rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--rule);
  overflow-wrap: anywhere; min-width: 5rem }
tbody th { font-weight: 400; min-width: 11rem }
@media print { :root { --ink: #000; --paper: #fff; --soft: #333; --rule: #999; --one: #005a8e; --two: #b34700;
  --few: #cfe3f1; --some: #7fb2d9; --grey: #777; --good: #fff; --bad: #fff } body { font-size: 10.5pt }
  main { max-width: none; padding: 0 } figure, tr { break-inside: avoid } h2, caption { break-after: avoid }
  .wide { overflow: visible } .verdict { border: 1px solid #000 } }
"""
