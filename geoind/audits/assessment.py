"""What a release promises, how far off its reports are, who shares a place, and which attacks succeed."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from geoind.accounting.record import ReleaseRecord
from geoind.arrays import ArrayLike, FloatArray, as_count, as_floats, as_positive
from geoind.audits.attempts import CELL, Attack, Attempts, Guess, Progress, Results, some_of
from geoind.audits.matched import as_places, as_population, match_rows
from geoind.audits.promised import Noise, Promised, noise_of, promised_by, share_within, wider
from geoind.audits.rules import MEASURES, Verdict, parse_rule, verdict_on
from geoind.audits.sharing import Sharing, sharing_of
from geoind.audits.visits import Visits, snapped
from geoind.errors import InvalidInputError
from geoind.mechanisms.spherical import SphericalLaplace
from geoind.space.geodesy import geodesic_lengths

__all__ = ["LEGAL_DISTANCES", "Assessment", "assess"]

LEGAL_DISTANCES: Mapping[str, float] = {
    "precise geolocation in California (1,850 feet)": 564.0,
    "precise geolocation in Connecticut, Utah and Virginia (1,750 feet)": 533.0,
}
"""Distances that laws name, in metres. Arithmetic, not legal advice."""

QUANTILES = (0.5, 0.9, 0.95, 0.99)
FEWEST = 2


@dataclass(frozen=True, eq=False)
class Assessment:
    """What a release means for the persons in it. Write it as a page (`html`), Markdown or JSON.

    Attributes
    ----------
    record : ReleaseRecord
        The release record.
    files : mapping of str to str
        SHA-256 of each file, by its name.
    rows, reports, persons : int
        Rows of the truth, reports, and persons.
    period : (float, float), optional
        First and last time, in seconds since 1970.
    public : frozenset of str
        Which of "person" and "time" leave with the reports.
    promised : tuple of Promised
        Of one report, of the median and of the busiest person.
    quantiles : tuple of (share, measured, promised)
        Distances between truth and report, in metres; None where one is not known.
    within : tuple of (name, metres, measured, promised)
        Shares of reports within the distances that laws name.
    curve : tuple of (share, metres)
        The measured quantiles from 2 to 98 %, for the figure.
    sharing : Sharing, optional
    attacks : tuple of Attack
    skipped : mapping of str to str
        Attacks that were not run, and why.
    measures : mapping of str to float or None
        Every measure of `MEASURES`; None where it was not computed.
    verdicts : tuple of Verdict
    k : int
        Counts of persons below this are not shown.
    seed : int

    Examples
    --------
    >>> from geoind import SphericalLaplace
    >>> from geoind.tables import ReleaseRecord
    >>> noise = SphericalLaplace(0.01)
    >>> truth = np.random.default_rng(1).uniform([2.34, 48.85], [2.36, 48.87], (60, 2))
    >>> record = ReleaseRecord.of(noise, unit="each row")
    >>> found = assess(noise.sample(truth, rng=1), record, truth=truth, fail_if=["nearest > 0.9"])
    >>> found.failed, found.markdown.splitlines()[0]
    (False, '# Privacy statement of a release')
    """

    record: ReleaseRecord
    files: Mapping[str, str]
    rows: int
    reports: int
    persons: int | None
    period: tuple[float, float] | None
    public: frozenset[str]
    promised: tuple[Promised, ...]
    quantiles: tuple[tuple[float, float | None, float | None], ...]
    within: tuple[tuple[str, float, float | None, float | None], ...]
    curve: tuple[tuple[float, float], ...]
    sharing: Sharing | None
    attacks: tuple[Attack, ...]
    skipped: Mapping[str, str]
    measures: Mapping[str, float | None]
    verdicts: tuple[Verdict, ...]
    with_truth: bool
    k: int
    seed: int

    @property
    def failed(self) -> bool:
        """Whether a verdict failed."""
        return any(verdict.failed for verdict in self.verdicts)

    @property
    def html(self) -> str:
        """The statement as one page that loads nothing."""
        from geoind.audits.statement import html_of

        return html_of(self)

    @property
    def markdown(self) -> str:
        """The statement as Markdown, without figures."""
        from geoind.audits.statement import markdown_of

        return markdown_of(self)

    @property
    def json(self) -> str:
        """The numbers of the statement as JSON."""
        from geoind.audits.statement_json import json_of

        return json_of(self)


def assess(
    reports: ArrayLike,
    record: ReleaseRecord,
    *,
    truth: ArrayLike | None = None,
    person: ArrayLike | None = None,
    time: ArrayLike | None = None,
    public: Collection[str] = ("person", "time"),
    population: tuple[ArrayLike, ArrayLike] | None = None,
    k: int = 10,
    distances: Mapping[str, float] = LEGAL_DISTANCES,
    fail_if: Sequence[str] = (),
    files: Mapping[str, str] | None = None,
    guesses: Mapping[str, Guess] | None = None,
    sample: int = 1000,
    seed: int = 0,
    progress: Progress | None = None,
) -> Assessment:
    """Return what a release promises and what attacks find out, as one value that can be written as a page.

    The result holds aggregates of the truth. It is for the files of the owner of the data: it is not itself a
    private release.

    Parameters
    ----------
    reports : (n, 2) array
        Degrees, longitude first; NaN in rows that got no report.
    record : ReleaseRecord
        What `geoind.tables.read_promise` returns.
    truth : (n, 2) array, optional
        The true places, row by row. Without it the statement is about the record alone.
    person : (n,) array, optional
        Whose row it is. By default each row is a person.
    time : (n,) array, optional
        Seconds since 1970.
    public : collection of str
        Which of "person" and "time" leave with the reports; the default is the stronger adversary.
    population : ((m, 2) array, (m,) array), optional
        Places and how many people live there, instead of the persons of the data.
    k : int
        At least 2. Counts of persons below this are not shown, and fewer persons are an error.
    distances : mapping of str to float
        Metres by name, for the share of reports within them.
    fail_if : sequence of str
        Rules such as "unique4 > 0.05" over `MEASURES`: a rule that holds, or whose measure could not be computed,
        fails.
    files : mapping of str to str, optional
        Names of the files and their SHA-256.
    guesses : mapping of str to callable, optional
        More attacks on homes: from the reports and the times of one person to a guess, in degrees.
    sample : int
        Number of reports, and of persons, that each attack is tried on.
    seed : int
        Of the random choices.
    progress : callable, optional
        Takes a text and the share of the work that is done.

    Examples
    --------
    >>> from geoind import SphericalLaplace
    >>> from geoind.tables import ReleaseRecord
    >>> noise = SphericalLaplace(0.01)
    >>> truth = np.random.default_rng(1).uniform([2.34, 48.85], [2.36, 48.87], (60, 2))
    >>> record = ReleaseRecord.of(noise, unit="each row")
    >>> assess(noise.sample(truth, rng=1), record, truth=truth).measures["nearest"] < 0.5
    True
    """
    for rule in fail_if:
        parse_rule(rule)
    k, sample = as_count(k, "k"), as_count(sample, "sample")
    if k < FEWEST:
        raise InvalidInputError(f"k must be at least {FEWEST}, got {k}")
    metres = {str(name): as_positive(value, f"distance {name!r}") for name, value in distances.items()}
    show = progress or _silent
    given = as_places(reports, "reports")
    rng, noise = np.random.default_rng(seed), noise_of(record)
    if not (~np.isnan(given[:, 0])).any():
        raise InvalidInputError("there are no reports")
    known = None if population is None else as_population(*population)
    common: dict[str, Any] = {"record": record, "files": dict(files or {}), "public": frozenset(public)}
    if truth is None:
        done = _of_record(given, time, noise, known, k=k, sample=sample, rng=rng)
    else:
        done = _of_truth(
            *match_rows(given, truth, person, time, k),
            record,
            noise,
            known,
            timed="time" in public,
            guesses=guesses or {},
            sample=sample,
            k=k,
            rng=rng,
            seed=seed,
            show=show,
        )
    promised = promised_by(record, noise, done.pop("counts", None))
    exact = noise if record.session is None else None
    done |= _distances(done.pop("apart", None), exact, metres)
    measures: dict[str, float | None] = dict.fromkeys(MEASURES)
    measures |= done.pop("measures") | _of_busiest(promised)
    verdicts = [*done.pop("checks", ())]
    verdicts += [verdict_on(rule, measures) for rule in fail_if]
    show("done", 1.0)
    return Assessment(
        **common,
        **done,
        promised=promised,
        measures=measures,
        verdicts=tuple(verdicts),
        with_truth=truth is not None,
        k=k,
        seed=seed,
    )


def _silent(text: str, share: float) -> None:
    """Show no progress."""


def _from(show: Progress, start: float, share: float) -> Progress:
    """Return the progress of a part of the work."""
    return lambda text, done: show(text, start + share * done)


def _of_busiest(promised: Sequence[Promised]) -> dict[str, float | None]:
    level = promised[-1].levels[200.0]
    return {"busiest_reports": float(promised[-1].reports), "busiest_level": level if level < math.inf else None}


def _distances(apart: FloatArray | None, noise: Noise | None, metres: Mapping[str, float]) -> dict[str, Any]:
    """Return quantiles of the distances and shares within the named ones, measured and promised."""
    quantiles = tuple(
        (
            share,
            None if apart is None else float(np.quantile(apart, share)),
            None if noise is None else float(noise.reach(share)),
        )
        for share in QUANTILES
    )
    within = tuple(
        (
            name,
            limit,
            None if apart is None else float((apart <= limit).mean()),
            None if noise is None else share_within(noise, limit),
        )
        for name, limit in metres.items()
    )
    curve = () if apart is None else tuple((n / 50, float(np.quantile(apart, n / 50))) for n in range(1, 50))
    return {"quantiles": quantiles, "within": within, "curve": curve}


def _of_record(
    reports: FloatArray,
    time: ArrayLike | None,
    noise: Noise | None,
    population: tuple[FloatArray, FloatArray] | None,
    *,
    k: int,
    sample: int,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Return what can be said without the truth."""
    present = reports[~np.isnan(reports[:, 0])]
    sharing = None
    if population is not None and noise is not None:
        rows = some_of(len(present), 2 * sample, rng)
        sharing = sharing_of(present[rows], population, noise.reach(0.95), k)
    return {
        "rows": len(reports),
        "reports": len(present),
        "persons": None,
        "period": _period(None if time is None else as_floats(time, "time")),
        "sharing": sharing,
        "attacks": (),
        "skipped": {"attacks": "they need the true locations"},
        "measures": {} if sharing is None else {"few": sharing.few.value},
    }


def _period(time: FloatArray | None) -> tuple[float, float] | None:
    known = None if time is None else time[~np.isnan(time)]
    return None if known is None or not len(known) else (float(known.min()), float(known.max()))


def _of_truth(
    truth: Visits,
    reports: Visits,
    everything: Visits,
    rows: int,
    record: ReleaseRecord,
    noise: Noise | None,
    population: tuple[FloatArray, FloatArray] | None,
    *,
    timed: bool,
    guesses: Mapping[str, Guess],
    sample: int,
    k: int,
    rng: np.random.Generator,
    seed: int,
    show: Progress,
) -> dict[str, Any]:
    """Return everything that needs the truth."""
    show("distances", 0.0)
    apart = geodesic_lengths(truth.lonlat, reports.lonlat)
    # Of a session or another mechanism, the law of the noise is fitted to the mean distance.
    exact = noise is not None and record.session is None
    if noise is None:
        noise = SphericalLaplace(max(3e-6, 2 / max(float(apart.mean()), 1e-3)))
    elif exact and float(np.median(apart)) > noise.reach(0.999):
        raise InvalidInputError(
            "truth and reports do not match: half of the reports are farther from the truth of their row than the "
            "noise allows. The order of the rows differs: give `id_column=`"
        )
    radius = {share: noise.reach(share) if exact else float(np.quantile(apart, share)) for share in (0.95, 0.99)}
    show("persons within the reach", 0.05)
    people = population or (truth.lonlat, None)
    chosen = some_of(len(apart), 2 * sample, rng)
    sharing = sharing_of(reports.lonlat[chosen], people, radius[0.95], k, person=truth.person)
    # The same seed for the release and the controls: the same persons, and the same knowledge about them.
    places = Visits(snapped(truth.lonlat, CELL), truth.person, truth.time)
    seen, wide = truth.time if timed else None, wider(noise)
    versions = {
        "release": (reports.lonlat, noise, radius[0.99]),
        "without_noise": (places.lonlat, None, 0.0),
        "huge_noise": (wide.sample(truth.lonlat, rng=seed), wide, wide.reach(0.99)),
    }
    results: dict[str, Results] = {}
    skipped: dict[str, str] = {}
    for number, (which, (lonlat, law, near)) in enumerate(versions.items()):
        release = Visits(lonlat, truth.person, seen)
        attacked = Attempts(truth.lonlat, places, everything, release, law, near, exact)
        start, most = 0.1 + 0.3 * number, sample if which != "huge_noise" else max(k, sample // 10)
        more = guesses if which == "release" else {}
        results[which], skipped_here = attacked.results(most, seed, more, _from(show, start, 0.3))
        skipped = skipped or skipped_here
    found = tuple(
        Attack(
            name,
            group,
            title,
            estimate,
            *(
                results[which][key][2] if key in results[which] else None
                for which in ("without_noise", "huge_noise")
            ),
        )
        for key, (group, title, estimate) in results["release"].items()
        for name in [key if key in MEASURES else ""]
    )
    measures: dict[str, float | None] = {attack.name: attack.release.value for attack in found if attack.name}
    measures |= {
        f"{attack.name}_before": attack.without_noise.value
        for attack in found
        if attack.group == "unique" and attack.without_noise is not None
    }
    measures["few"] = sharing.few.value
    if exact:
        # Great-circle quantiles are exact; the promised ones of the page are upper bounds.
        measures["within_median"] = float((apart <= noise.reach(0.5)).mean())
    return {
        "rows": rows,
        "reports": len(apart),
        "persons": truth.persons,
        "period": _period(truth.time),
        "sharing": sharing,
        "attacks": found,
        "skipped": skipped,
        "measures": measures,
        "counts": reports.counts,
        "checks": _recount(reports, record),
        "apart": apart,
    }


def _recount(reports: Visits, record: ReleaseRecord) -> list[Verdict]:
    """Return whether the record's totals are those of the files: equal places of a person may be one report."""
    most = int(reports.counts.max())
    if record.unit == "each row":
        agreed = most <= max(1, len(record.places))
        return [Verdict("no person has two rows, as declared", float(most), not agreed)]
    if record.busiest is None or record.session is not None:
        return []
    pairs = np.unique(np.column_stack([reports.person, reports.place]), axis=0)
    distinct = int(np.bincount(pairs[:, 0]).max())
    agreed = distinct <= record.busiest.reports <= most
    rule = f"the busiest person of the record has as many reports as in the files ({record.busiest.reports:,})"
    return [Verdict(rule, float(most), not agreed)]
