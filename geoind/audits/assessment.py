"""What a release promises, how far off its reports are, who shares a place, and which attacks succeed."""

import math
import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from scipy.special import betaincinv

from geoind.accounting.accountant import level_of_reports
from geoind.arrays import ArrayLike, FloatArray, IntArray, as_count, as_floats, as_lonlat, as_positive
from geoind.audits import attacks
from geoind.audits.attacks import Law, Visits, Within
from geoind.errors import InvalidInputError
from geoind.mechanisms.protocol import Mechanism
from geoind.mechanisms.spherical import SphericalGaussian, SphericalLaplace
from geoind.space.geodesy import geodesic_lengths

__all__ = ["LEGAL_DISTANCES", "MEASURES", "Assessment", "Attack", "Estimate", "assess", "parse_rule"]

LEGAL_DISTANCES: Mapping[str, float] = {
    "precise geolocation in California (1,850 feet)": 564.0,
    "precise geolocation in Connecticut, Utah and Virginia (1,750 feet)": 533.0,
}
"""Distances that laws name, in metres. Arithmetic, not legal advice."""

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
DELTA = 1e-6
RADII = (50.0, 200.0, 1000.0)
QUANTILES = (0.5, 0.9, 0.95, 0.99)
CELL = 100.0
"""Side of the cells in which true places are the same place, in metres."""
FEWEST = 2
MOST_ROWS = 20_000_000
GUESSED = 100
"""Persons on whom the guesses that a caller adds are tried."""
HUGE = 100.0
"""How much wider the noise of the control with huge noise is."""
CELLS = 40
"""Cells of the map in each direction."""

Guess: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]
"""From the reports of one person, (n, 2) degrees, and their times to a guess about the home, in degrees."""
Progress: TypeAlias = Callable[[str, float], None]


class Total(Protocol):
    """What the reports of one person add up to, as a release record has it."""

    @property
    def reports(self) -> int: ...  # noqa: D102
    @property
    def epsilon(self) -> float: ...  # noqa: D102


class Record(Protocol):
    """What `geoind.tables.read_promise` returns."""

    @property
    def mechanism(self) -> str: ...  # noqa: D102
    @property
    def epsilon(self) -> float: ...  # noqa: D102
    @property
    def sigma(self) -> float | None: ...  # noqa: D102
    @property
    def decimals(self) -> int: ...  # noqa: D102
    @property
    def places(self) -> tuple[tuple[str, ...], ...]: ...  # noqa: D102
    @property
    def kept(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def unit(self) -> str: ...  # noqa: D102
    @property
    def persons(self) -> int | None: ...  # noqa: D102
    @property
    def busiest(self) -> Total | None: ...  # noqa: D102
    @property
    def median(self) -> Total | None: ...  # noqa: D102
    @property
    def session(self) -> str | None: ...  # noqa: D102
    @property
    def fresh(self) -> float | None: ...  # noqa: D102
    @property
    def version(self) -> str: ...  # noqa: D102


class Estimate(NamedTuple):
    """A share or a distance with its 95 % confidence interval.

    Attributes
    ----------
    value, low, high : float
    hits : float
        Of a share: the sum of the successes that it was computed from; NaN for a distance.
    count : int
        The number of trials.
    """

    value: float
    low: float
    high: float
    hits: float
    count: int


class Attack(NamedTuple):
    """The success of one attack.

    Attributes
    ----------
    name : str
        The measure, see `MEASURES`, or "" for an attack that is a part of one.
    group : str
        "bayes", "home", "unique", "match" or "nearest".
    title : str
    release, without_noise, huge_noise : Estimate, optional
        On the release, and on two controls made from the same truth.
    """

    name: str
    group: str
    title: str
    release: Estimate
    without_noise: Estimate | None = None
    huge_noise: Estimate | None = None


class Promised(NamedTuple):
    """What some reports of one person promise: for each radius the level up to delta, and the sum of levels."""

    who: str
    reports: int
    epsilon: float
    levels: Mapping[float, float]
    sums: Mapping[float, float]


class Sharing(NamedTuple):
    """How many persons are within the reach around reports.

    Attributes
    ----------
    whose : str
        "persons of the data" or "people of the population file".
    radius : float
        Metres.
    counts : (n,) array
        The number around each sampled report.
    few : Estimate
        The share of reports with fewer than k.
    cells : tuple of (column, row, fewest, reports)
        Of the map: the smallest number around a sampled report in the cell, and the sampled reports there.
    corner, side : (west, south) of the map, (width, height) of a cell, in degrees
    outside : int
        Sampled reports outside of the map.
    """

    whose: str
    radius: float
    counts: FloatArray
    few: Estimate
    cells: tuple[tuple[int, int, float, int], ...]
    corner: tuple[float, float]
    side: tuple[float, float]
    outside: int


class Verdict(NamedTuple):
    """A check: what it says, the value that was found, and whether it failed."""

    rule: str
    found: float | None
    failed: bool


@dataclass(frozen=True, eq=False)
class Assessment:
    """What a release means for the persons in it. Write it as a page (`html`), Markdown or JSON.

    Attributes
    ----------
    record : Record
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
    >>> truth = np.random.default_rng(1).uniform([2.3, 48.8], [2.4, 48.9], (60, 2))
    >>> record = ReleaseRecord.of(noise, unit="each row")
    >>> found = assess(noise.sample(truth, rng=1), record, truth=truth, fail_if=["nearest > 0.9"])
    >>> found.failed, found.markdown.splitlines()[0]
    (False, '# Privacy statement of a release')
    """

    record: Record
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
        from geoind.audits.statement import json_of

        return json_of(self)


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


class _Noise(NamedTuple):
    """The law of the noise. It is exact where the record describes it, else fitted to the mean distance."""

    mechanism: SphericalLaplace | SphericalGaussian
    exact: bool

    def law(self, metres: FloatArray) -> FloatArray:
        if isinstance(self.mechanism, SphericalGaussian):
            return np.asarray(np.exp(-((metres / self.mechanism.sigma) ** 2) / 2))
        return np.asarray(np.exp(-self.mechanism.noise_epsilon * metres))

    def share_within(self, metres: float) -> float:
        if isinstance(self.mechanism, SphericalGaussian):
            return 1 - math.exp(-((metres / self.mechanism.sigma) ** 2) / 2)
        return float(self.mechanism.radius_cdf(metres))

    def wider(self) -> "_Noise":
        if isinstance(self.mechanism, SphericalGaussian):
            return _Noise(SphericalGaussian(min(5e5, HUGE * self.mechanism.sigma)), True)
        return _Noise(SphericalLaplace(max(3e-6, self.mechanism.epsilon / HUGE)), True)


def noise_of(record: Record) -> _Noise | None:
    """Return the noise of one report as the record describes it; of a session, that of a fresh report."""
    if record.session is not None and record.fresh is not None:
        return _Noise(SphericalLaplace(record.fresh, record.decimals), False)
    if record.mechanism == "SphericalLaplace":
        return _Noise(SphericalLaplace(record.epsilon, record.decimals), True)
    if record.mechanism == "SphericalGaussian" and record.sigma is not None:
        return _Noise(SphericalGaussian(record.sigma, record.decimals), True)
    return None


def assess(
    reports: ArrayLike,
    record: Record,
    *,
    truth: ArrayLike | None = None,
    person: Sequence[object] | None = None,
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
    person : sequence, optional
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
    >>> truth = np.random.default_rng(1).uniform([2.3, 48.8], [2.4, 48.9], (60, 2))
    >>> record = ReleaseRecord.of(noise, unit="each row")
    >>> assess(noise.sample(truth, rng=1), record, truth=truth).measures["nearest"] < 0.5
    True
    """
    rules = [parse_rule(rule) for rule in fail_if]
    k, sample = as_count(k, "k"), as_count(sample, "sample")
    if k < FEWEST:
        raise InvalidInputError(f"k must be at least {FEWEST}, got {k}")
    metres = {str(name): as_positive(value, f"distance {name!r}") for name, value in distances.items()}
    show = progress or (lambda text, share: None)
    given = _places(reports, "reports")
    rng, noise = np.random.default_rng(seed), noise_of(record)
    if not (~np.isnan(given[:, 0])).any():
        raise InvalidInputError("there are no reports")
    known = None if population is None else _population(*population)
    common: dict[str, Any] = {"record": record, "files": dict(files or {}), "public": frozenset(public)}
    if truth is None:
        done = _of_record(given, time, noise, known, k=k, metres=metres, sample=sample, rng=rng)
    else:
        done = _of_truth(
            _Rows.of(given, truth, person, time, k),
            record,
            noise,
            known,
            metres=metres,
            timed="time" in public,
            guesses=guesses or {},
            sample=sample,
            k=k,
            rng=rng,
            seed=seed,
            show=show,
        )
    promised = _promised(record, noise, done.pop("counts", None))
    measures: dict[str, float | None] = dict.fromkeys(MEASURES)
    measures |= done.pop("measures") | _of_busiest(promised)
    verdicts = [*done.pop("checks", ())]
    for rule, (name, comparison, limit) in zip(fail_if, rules, strict=True):
        value = measures[name]
        failed = value is None or COMPARISONS[comparison](value, limit)
        verdicts.append(Verdict(f"fail if {rule.strip()}", value, failed))
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


class _Rows(NamedTuple):
    """The rows of the truth that got a report, and how many there were."""

    truth: FloatArray
    reports: FloatArray
    person: IntArray
    time: FloatArray | None
    rows: int

    @classmethod
    def of(
        cls, reports: FloatArray, truth: ArrayLike, person: Sequence[object] | None, time: ArrayLike | None, k: int
    ) -> "_Rows":
        places = _places(truth, "truth")
        if len(places) != len(reports):
            raise InvalidInputError(
                f"truth has {len(places):,} rows, reports have {len(reports):,}: match them by an id"
            )
        names = np.arange(len(places)) if person is None else np.asarray(person)
        seconds = None if time is None else as_floats(time, "time")
        for name, values in (("person", names), ("time", seconds)):
            if values is not None and values.shape != (len(places),):
                raise InvalidInputError(f"{name} must be one per row, got {values.shape} for {len(places):,} rows")
        present = ~np.isnan(places[:, 0])
        if (np.isnan(places[:, 0]) & ~np.isnan(reports[:, 0])).any():
            raise InvalidInputError("a row without a true place has a report: truth and reports do not match")
        used = present & ~np.isnan(reports[:, 0])
        _, codes = np.unique(names[used], return_inverse=True)
        count = int(codes.max()) + 1 if len(codes) else 0
        if count < k:
            raise InvalidInputError(
                f"the statement would be about {'one person' if count == 1 else f'{count} persons'}, "
                f"fewer than k = {k}: its numbers would be about single persons"
            )
        return cls(
            places[used], reports[used], codes, None if seconds is None else seconds[used], int(present.sum())
        )


def _places(values: ArrayLike, name: str) -> FloatArray:
    """Return (n, 2) degrees, where rows may be NaN."""
    array = as_floats(values, name)
    if array.ndim != 2 or array.shape[1] != 2:
        raise InvalidInputError(f"{name} must have shape (n, 2), got {array.shape}")
    if len(array) > MOST_ROWS:
        raise InvalidInputError(
            f"{name} has {len(array):,} rows, more than {MOST_ROWS:,}: assess a part of the persons"
        )
    gone = np.isnan(array).all(axis=1)
    as_lonlat(array[~gone], name)
    return array


def _population(places: ArrayLike, weights: ArrayLike) -> tuple[FloatArray, FloatArray]:
    lonlat, people = as_lonlat(places, "population"), as_floats(weights, "weights of the population")
    if people.shape != (len(lonlat),) or not ((people >= 0) & (people < math.inf)).all():
        raise InvalidInputError("weights of the population must be one per place, finite and not negative")
    if not people.any():
        raise InvalidInputError("the population has no people")
    return lonlat, people


def _share(successes: ArrayLike) -> Estimate:
    """Return the mean of successes, each between 0 and 1, with a 95 % interval: Clopper and Pearson's.

    It holds for fractions, too, whose variance is at most that of zeros and ones.
    """
    values = np.asarray(successes, float)
    values = values[~np.isnan(values)]
    hits, count = float(values.sum()), len(values)
    low = betaincinv(hits, count - hits + 1, 0.025) if hits > 0 else 0.0
    high = betaincinv(hits + 1, count - hits, 0.975) if hits < count else 1.0
    return Estimate(hits / count, float(low), float(high), hits, count)


def _middle(errors: FloatArray, *, mean: bool = False) -> Estimate:
    """Return the median of errors with an interval by order statistics, or the mean with a normal one."""
    values = np.sort(errors[~np.isnan(errors)])
    count = len(values)
    spread = 1.96 * math.sqrt(count) / 2
    if mean:
        half = 1.96 * float(values.std()) / math.sqrt(count)
        value = float(values.mean())
        return Estimate(value, max(0.0, value - half), value + half, math.nan, count)
    low, high = max(0, math.floor(count / 2 - spread)), min(count - 1, math.ceil(count / 2 + spread))
    return Estimate(float(np.median(values)), float(values[low]), float(values[high]), math.nan, count)


def _promised(record: Record, noise: _Noise | None, counts: IntArray | None) -> tuple[Promised, ...]:
    """Return the promise of one report, and of the median and the busiest person."""
    totals = [("one report", 1, record.epsilon if record.session is None else record.fresh or math.inf)]
    if record.unit != "each row":
        for who, total in (("the median person", record.median), ("the busiest person", record.busiest)):
            if total is not None:
                totals.append((who, total.reports, total.epsilon))
        if record.busiest is None and counts is not None:
            each = record.epsilon
            median = int(np.sort(counts)[len(counts) // 2])
            totals += [("the median person", median, median * each)]
            totals += [("the busiest person", int(counts.max()), int(counts.max()) * each)]
    mechanism = None if noise is None or record.session is not None else noise.mechanism
    return tuple(_levels(who, reports, epsilon, mechanism) for who, reports, epsilon in totals)


def _levels(who: str, reports: int, epsilon: float, mechanism: Mechanism | None) -> Promised:
    sums = {radius: epsilon * radius for radius in RADII}
    levels = dict(sums)
    if mechanism is not None and reports and (reports > 1 or epsilon == math.inf):
        for radius in RADII:
            level = level_of_reports(mechanism, reports=reports, radius=radius, delta=DELTA)
            levels[radius] = min(level, sums[radius])
    return Promised(who, reports, epsilon, levels, sums)


def _of_busiest(promised: Sequence[Promised]) -> dict[str, float | None]:
    level = promised[-1].levels[200.0]
    return {"busiest_reports": float(promised[-1].reports), "busiest_level": level if level < math.inf else None}


def _distances(apart: FloatArray | None, noise: _Noise | None, metres: Mapping[str, float]) -> dict[str, Any]:
    """Return quantiles of the distances and shares within the named ones, measured and promised."""
    exact = noise if noise is not None and noise.exact else None
    quantiles = tuple(
        (
            share,
            None if apart is None else float(np.quantile(apart, share)),
            None if exact is None else float(exact.mechanism.reach(share)),
        )
        for share in QUANTILES
    )
    within = tuple(
        (
            name,
            limit,
            None if apart is None else float((apart <= limit).mean()),
            None if exact is None else exact.share_within(limit),
        )
        for name, limit in metres.items()
    )
    curve = () if apart is None else tuple((n / 50, float(np.quantile(apart, n / 50))) for n in range(1, 50))
    return {"quantiles": quantiles, "within": within, "curve": curve}


def _of_record(
    reports: FloatArray,
    time: ArrayLike | None,
    noise: _Noise | None,
    population: tuple[FloatArray, FloatArray] | None,
    *,
    k: int,
    metres: Mapping[str, float],
    sample: int,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Return what can be said without the truth."""
    present = reports[~np.isnan(reports[:, 0])]
    sharing = None
    if population is not None and noise is not None:
        rows = _some(len(present), 2 * sample, rng)
        sharing = _sharing(present[rows], population, noise.mechanism.reach(0.95), k)
    return {
        "rows": len(reports),
        "reports": len(present),
        "persons": None,
        "period": _period(None if time is None else as_floats(time, "time")),
        "sharing": sharing,
        "attacks": (),
        "skipped": {"attacks": "they need the true locations"},
        "measures": {} if sharing is None else {"few": sharing.few.value},
        **_distances(None, noise, metres),
    }


def _period(time: FloatArray | None) -> tuple[float, float] | None:
    known = None if time is None else time[~np.isnan(time)]
    return None if known is None or not len(known) else (float(known.min()), float(known.max()))


def _some(count: int, most: int, rng: np.random.Generator) -> IntArray:
    return np.arange(count) if count <= most else np.sort(rng.choice(count, most, replace=False))


def _of_truth(
    rows: _Rows,
    record: Record,
    noise: _Noise | None,
    population: tuple[FloatArray, FloatArray] | None,
    *,
    metres: Mapping[str, float],
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
    apart = geodesic_lengths(rows.truth, rows.reports)
    _check_match(apart, noise)
    exact = noise is not None and noise.exact
    if noise is None:
        noise = _Noise(SphericalLaplace(max(3e-6, 2 / max(float(apart.mean()), 1e-3))), False)
    radius = {
        share: noise.mechanism.reach(share) if exact else float(np.quantile(apart, share))
        for share in (0.95, 0.99)
    }
    show("persons within the reach", 0.05)
    people = population or (rows.truth, None)
    chosen = _some(len(apart), 2 * sample, rng)
    sharing = _sharing(rows.reports[chosen], people, radius[0.95], k, person=rows.person)
    # The same seed for the release and the controls: the same persons, and the same knowledge about them.
    places = Visits(attacks.snapped(rows.truth, CELL), rows.person, rows.time)
    seen = rows.time if timed else None
    wide = noise.wider()
    releases = {
        "release": _Attacked(rows, places, Visits(rows.reports, rows.person, seen), noise, radius[0.99], exact),
        "without_noise": _Attacked(rows, places, Visits(places.lonlat, rows.person, seen), None, 0.0, exact),
        "huge_noise": _Attacked(
            rows,
            places,
            Visits(wide.mechanism.sample(rows.truth, rng=seed), rows.person, seen),
            wide,
            wide.mechanism.reach(0.99),
            exact,
        ),
    }
    results: dict[str, dict[str, tuple[str, str, Estimate]]] = {}
    skipped: dict[str, str] = {}
    for number, (which, attacked) in enumerate(releases.items()):
        start, most = 0.1 + 0.3 * number, sample if which != "huge_noise" else max(k, sample // 10)
        results[which], skipped_here = attacked.results(
            most, seed, guesses if which == "release" else {}, lambda text, share: show(text, start + 0.3 * share)
        )
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
        measures["within_median"] = float((apart <= noise.mechanism.reach(0.5)).mean())
    return {
        "rows": rows.rows,
        "reports": len(apart),
        "persons": int(rows.person.max()) + 1,
        "period": _period(rows.time),
        "sharing": sharing,
        "attacks": found,
        "skipped": skipped,
        "measures": measures,
        "counts": np.bincount(rows.person),
        "checks": _recount(rows, record),
        **_distances(apart, noise, metres),
    }


def _check_match(apart: FloatArray, noise: _Noise | None) -> None:
    """Raise if the reports are farther away than the noise allows: then the rows are not matched."""
    if noise is not None and noise.exact and float(np.median(apart)) > noise.mechanism.reach(0.999):
        raise InvalidInputError(
            "truth and reports do not match: half of the reports are farther from the truth of their row than the "
            "noise allows. The order of the rows differs: give `id_column=`"
        )


def _recount(rows: _Rows, record: Record) -> list[Verdict]:
    """Return whether the record's totals are those of the files: equal places of a person may be one report."""
    if record.busiest is None or record.session is not None:
        return []
    most = int(np.bincount(rows.person).max())
    places = Visits(rows.reports, rows.person).place
    pairs = np.unique(np.column_stack([rows.person, places]), axis=0)
    distinct = int(np.bincount(pairs[:, 0]).max())
    agreed = distinct <= record.busiest.reports <= most
    rule = f"the busiest person of the record has as many reports as in the files ({record.busiest.reports:,})"
    return [Verdict(rule, float(most), not agreed)]


def _sharing(
    reports: FloatArray,
    people: tuple[FloatArray, FloatArray | None],
    radius: float,
    k: int,
    person: IntArray | None = None,
) -> Sharing:
    """Return how many persons, or people of a population, are within a radius of reports."""
    places, weights = people
    index = Within(places, radius)
    if weights is not None:
        counts = np.array([weights[index.rows(report)].sum() for report in reports])
    else:
        assigned = np.arange(len(places)) if person is None else person
        counts = np.array([len(np.unique(assigned[index.rows(report)])) for report in reports], float)
    (west, east), (south, north) = np.quantile(reports, [0.01, 0.99], axis=0).T
    middle = math.cos(math.radians((south + north) / 2))
    # Square cells on the ground, at least half of the radius wide.
    height = max((north - south), (east - west) * middle, 1e-3) / CELLS
    height = max(height, math.degrees(radius / 6_371_008.8) / 2)
    side = (height / max(middle, 0.01), height)
    cell = np.floor((reports - (west, south)) / side).astype(np.int64)
    inside = ((cell >= 0) & (cell <= CELLS)).all(axis=1)
    fewest: dict[tuple[int, int], list[float]] = {}
    for (column, row), count in zip(cell[inside].tolist(), counts[inside].tolist(), strict=True):
        fewest.setdefault((column, row), []).append(count)
    cells = tuple((column, row, min(found), len(found)) for (column, row), found in sorted(fewest.items()))
    whose = "people of the population file" if weights is not None else "persons of the data"
    few = _share(counts < k)
    return Sharing(
        whose,
        radius,
        counts,
        few,
        cells,
        (float(west), float(south)),
        (float(side[0]), float(side[1])),
        int((~inside).sum()),
    )


class _Attacked(NamedTuple):
    """A release, or a control, under attack."""

    rows: _Rows
    places: Visits
    release: Visits
    noise: _Noise | None
    radius: float
    exact: bool

    def results(
        self, sample: int, seed: int, guesses: Mapping[str, Guess], show: Progress
    ) -> tuple[dict[str, tuple[str, str, Estimate]], dict[str, str]]:
        """Return group, title and success of each attack, and why others were not run."""
        found: dict[str, tuple[str, str, Estimate]] = {}
        skipped: dict[str, str] = {}
        rng = np.random.default_rng(seed)
        chosen = _some(len(self.rows.truth), sample, rng)
        persons = _some(self.places.persons, sample, rng)
        show("Bayesian attack", 0.0)
        if self.exact:
            found |= self._bayes(chosen)
        else:
            skipped["the Bayesian attack on one report"] = "the record does not describe the noise of each report"
        show("nearest report", 0.2)
        linked = attacks.nearest_report(self.rows.truth, self.release.lonlat, chosen)
        nearest = ("nearest", "the report nearest to a known true place", _share(linked))
        show("homes and workplaces", 0.25)
        found |= self._homes(persons, guesses, skipped)
        show("uniqueness", 0.5)
        found |= self._unique(persons, rng)
        show("matching", 0.75)
        found |= self._matching(persons, rng, skipped)
        found["nearest"] = nearest
        return found, skipped

    def law(self, metres: FloatArray) -> FloatArray:
        return np.exp(-metres) if self.noise is None else self.noise.law(metres)

    def _bayes(self, chosen: IntArray) -> dict[str, tuple[str, str, Estimate]]:
        fine = attacks.snapped(self.rows.truth, CELL / 2)
        places, visits = np.unique(fine, axis=0, return_counts=True)
        reach = 100.0 if self.noise is None else self.noise.mechanism.reach(1 - 1e-6)
        reports = self.rows.truth if self.noise is None else self.release.lonlat
        errors, hits = attacks.bayesian(
            self.rows.truth[chosen],
            reports[chosen],
            places=places,
            mass=visits / visits.sum(),
            law=self.law,
            reach=reach,
        )
        return {
            "bayes_error": ("bayes", "mean error of the best guess", _middle(errors, mean=True)),
            "bayes_found": ("bayes", "true place found within 100 m", _share(hits)),
        }

    def _homes(
        self, persons: IntArray, guesses: Mapping[str, Guess], skipped: dict[str, str]
    ) -> dict[str, tuple[str, str, Estimate]]:
        """Return the best of the attacks on homes and on workplaces, and each of them."""
        found: dict[str, tuple[str, str, Estimate]] = {}
        for what, truth, when in self._targets():
            several = [
                person
                for person in persons.tolist()
                if not np.isnan(truth[person, 0]) and self.places.counts[person] > 1
            ]
            if not several:
                reason = "no person has two reports and a place that was visited twice"
                skipped[f"the attack on {what}places" if what == "work" else "the attack on homes"] = reason
                continue
            tried = self._tried(several, truth, when)
            if what == "home" and self.release.time is not None:
                tried |= self._guessed(several[:GUESSED], truth, guesses)
            best = max(tried, key=lambda name: (tried[name] <= attacks.FOUND).mean())
            most = min(tried, key=lambda name: float(np.median(tried[name])))
            place = "home" if what == "home" else "workplace"
            found[f"{what}_found"] = (
                "home",
                f"{place} found within 100 m ({best})",
                _share(tried[best] <= attacks.FOUND),
            )
            found[f"{what}_error"] = ("home", f"median error about the {place} ({most})", _middle(tried[most]))
            for name, errors in tried.items():
                title = f"{place} found by the {name}"
                found[f"{what}: {name}"] = ("home", title, _share(errors <= attacks.FOUND))
        return found

    def _targets(self) -> "list[tuple[str, FloatArray, attacks.Flags | None]]":
        """Return homes and workplaces of the truth, and the reports from which they are guessed."""
        if self.places.time is None:
            return [
                (what, attacks.usual_places(self.places, number=n, least=2), None)
                for n, what in enumerate(("home", "work"))
            ]
        hours = [tell(self.places.lonlat, self.places.time) for tell in (attacks.at_night, attacks.at_work)]
        timed = self.release.time is not None
        return [
            (what, attacks.usual_places(self.places, when, least=2), when if timed else None)
            for what, when in zip(("home", "work"), hours, strict=True)
        ]

    def _tried(
        self, persons: Sequence[int], truth: FloatArray, when: "attacks.Flags | None"
    ) -> dict[str, FloatArray]:
        """Return the error of each estimator about each person's place."""
        estimators = {"mean": attacks.mean_of, "median": attacks.median_of, "mode": attacks.mode_of}
        kinds = (
            {"of all reports": None}
            if when is None
            else {"of all reports": None, "of reports in those hours": when}
        )
        errors = {f"{name} {kind}": np.full(len(persons), np.inf) for kind in kinds for name in estimators}
        for number, person in enumerate(persons):
            own = self.release.rows_of(person)
            for kind, which in kinds.items():
                rows = own if which is None else own[which[own]]
                if not len(rows):
                    continue
                reports = self.release.lonlat[rows]
                centre = reports[0]
                xy = attacks.plane_around(centre, reports)
                [true] = attacks.plane_around(centre, truth[person][None])
                for name, estimate in estimators.items():
                    errors[f"{name} {kind}"][number] = np.hypot(*(estimate(xy, self.law) - true))
        return errors

    def _guessed(
        self, persons: Sequence[int], truth: FloatArray, guesses: Mapping[str, Guess]
    ) -> dict[str, FloatArray]:
        errors: dict[str, FloatArray] = {}
        for name, guess in guesses.items():
            found = []
            for person in persons:
                rows = self.release.rows_of(person)
                seconds = np.zeros(len(rows)) if self.release.time is None else self.release.time[rows]
                place = np.asarray(guess(self.release.lonlat[rows], seconds), float)
                found.append(float(geodesic_lengths(place, truth[person][None])[0]))
            errors[name] = np.array(found)
        return errors

    def _unique(self, persons: IntArray, rng: np.random.Generator) -> dict[str, tuple[str, str, Estimate]]:
        unique = attacks.uniqueness(
            self.places,
            self.release,
            persons=persons,
            radius=self.radius,
            timed=self.release.time is not None,
            rng=rng,
        )
        return {
            f"unique{count}": ("unique", f"unique by {count} known visit{'s' * (count > 1)}", _share(column))
            for count, column in enumerate(unique.T, 1)
            if not np.isnan(column).all()
        }

    def _matching(
        self, persons: IntArray, rng: np.random.Generator, skipped: dict[str, str]
    ) -> dict[str, tuple[str, str, Estimate]]:
        names = [*attacks.MATCHING, "home_work"]
        if self.release.time is None:
            names = [name for name in names if name not in ("sequence", "time")]
            skipped["matching by sequence and by time"] = "no times leave with the reports"
        risks = attacks.linkage(
            self.places,
            self.release,
            persons=persons,
            radius=self.radius,
            attacks=names,
            tolerance=attacks.TOLERANCE,
            rng=rng,
        )
        titles = {name: f"named by {name.replace('_', ' and ')}" for name in names}
        found = {n: ("match", titles[n], _share(r)) for n, r in risks.items() if not np.isnan(r).all()}
        if len(found) < len(risks):
            skipped.setdefault("some matching attacks", "no person has two visits to two places")
        return found
