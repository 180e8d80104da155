"""Budget against error of several ways to answer a trace, and audits of sequences of answers."""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
import pandas as pd

from geoind.accounting.accountant import level_of_reports
from geoind.arrays import FloatArray, as_count, as_unit
from geoind.audits.trials import bound
from geoind.budgets.same_place import SamePlace
from geoind.errors import InvalidInputError
from geoind.evaluation.figures import new_figure
from geoind.evaluation.report import evaluation_page, html_figure, html_heading, html_table
from geoind.mechanisms.planar import PlanarGaussian, PlanarLaplace
from geoind.mechanisms.spherical import SphericalGaussian
from geoind.parallel import OnShare
from geoind.pipeline import Location
from geoind.space.projection import Projection
from geoind.traces.adversary import smooth
from geoind.traces.drives import HOME, Trace, answers_to
from geoind.traces.methods import Independent, TraceMethod
from geoind.traces.predictive import Predictive, straight_on
from geoind.traces.questions import arc_length
from geoind.traces.session import TraceSession
from geoind.traces.sparse import SparseVector, Switching

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

__all__ = ["APPROACHES", "TraceAudit", "TraceEvaluation", "audit_traces", "evaluate_traces", "trace_report_files"]

ACCURACIES = (250.0, 500.0, 1000.0, 2000.0)
"""Metres that hold a fresh report nine times in ten."""
RADIUS, DELTA = 200.0, 1e-5
"""Levels are for places so many metres apart; those of an accountant hold except with this probability."""
DRAWS = 300
"""Runs of each trace in an audit."""
AUDITED = (([0, 0, 0.6, 0.6, 0.6, 1.8], [0, 0, 0.2, 0.2, 0.2, 2.2]), ([0.0] * 6, [0, 0.4] * 3))
"""Pairs of traces: metres to the north, in wanted accuracies."""

Noise = PlanarLaplace | PlanarGaussian


Position: TypeAlias = tuple[float, float, float]
"""Time in seconds, longitude, latitude."""

Kind: TypeAlias = tuple[str, ...]
"""What kind of answer each position got."""


class _SessionLike(Protocol):
    """An object that answers one person's positions and says what it spent, such as a `TraceSession`."""

    @property
    def spent(self) -> float:
        """Epsilon of everything answered so far, per metre."""
        ...

    def report(self, *, lat: float, lon: float, time: float) -> Location[float]:
        """Return the place to publish."""
        ...


@dataclass(frozen=True)
class TraceAudit:
    """The result of an audit of two traces.

    Parameters
    ----------
    event : tuple
        The kind of sequence that distinguishes the traces best: per step, which earlier answer was repeated, or
        that a new one was given, or which trace a new one was nearer to.
    loss : float
        Lower bound on the logarithm of the ratio of its probabilities, at least 0; wrong with the probability
        `risk` at most.
    allowed : float
        What the session says that this costs: spent epsilon times the distance of the traces.
    """

    event: Kind
    loss: float
    allowed: float

    @property
    def refuted(self) -> bool:
        """Whether the session breaks its promise."""
        return self.loss > self.allowed


def audit_traces(
    session: Callable[[], _SessionLike],
    first: Sequence[Position],
    second: Sequence[Position],
    *,
    draws: int = 2000,
    risk: float = 0.01,
) -> TraceAudit:
    """Return a lower bound on how well sequences of answers distinguish two traces.

    Half of the runs choose the kind of sequence, the other half count it.

    Parameters
    ----------
    session : callable
        Returns a new session, under a new key, each time.
    first, second : sequence of (time, lon, lat)
        Two traces at the same times.
    draws : int
        Runs of each trace.
    risk : float
        Probability with which an honest session is refuted, at most.

    Examples
    --------
    >>> from geoind import TraceSession
    >>> from geoind.traces import Independent
    >>> here, there = ([(60.0 * k, 2.2945, lat) for k in range(3)] for lat in (48.8584, 48.8593))
    >>> audit_traces(lambda: TraceSession(Independent(0.01)), here, there, draws=200).refuted
    False
    """
    if [time for time, *_ in first] != [time for time, *_ in second] or not len(first):
        raise InvalidInputError("the two traces must have the same times, at least one")
    runs = as_count(draws, "draws") // 2
    as_unit(risk, "risk")
    apart = max(float(arc_length(*a[1:], *b[1:])) for a, b in zip(first, second, strict=True))
    costs: defaultdict[Kind, float] = defaultdict(float)

    def counted(steps: Sequence[Position]) -> Counter[Kind]:
        seen: Counter[Kind] = Counter()
        for _ in range(runs):
            one = session()
            places = [tuple(one.report(lat=lat, lon=lon, time=time)) for time, lon, lat in steps]
            for kind in _kinds(places, first, second):
                costs[kind] = max(costs[kind], one.spent)
                seen[kind] += 1
        return seen

    chosen_here, chosen_there = counted(first), counted(second)

    def promising(event: Kind) -> float:
        return bound(chosen_here[event], chosen_there[event], runs, risk) - costs[event] * apart

    event = max(chosen_here, key=promising)
    loss = max(0.0, bound(counted(first)[event], counted(second)[event], runs, risk))
    return TraceAudit(event, loss, costs[event] * apart)


def _kinds(places: list[tuple[float, ...]], first: Sequence[Position], second: Sequence[Position]) -> list[Kind]:
    """Return the kinds of a sequence: which answers were repeated, without and with where new ones were."""
    known: dict[tuple[float, ...], int] = {}
    coarse: list[str] = []
    fine: list[str] = []
    for (lat, lon), here, there in zip(places, first, second, strict=True):
        if (lat, lon) in known:
            exact = kind = f"again {known[lat, lon]}"
        else:
            known[lat, lon] = len(known)
            nearer = arc_length(lon, lat, *here[1:]) < arc_length(lon, lat, *there[1:])
            exact, kind = "nearer the first" if nearer else "nearer the second", "new"
        fine.append(exact)
        coarse.append(kind)
    return [tuple(coarse), tuple(fine)]


class _SamePlace:
    """The same report for the same place: a place costs once."""

    def __init__(self, accuracy: float, key: bytes) -> None:
        self._memory, self._epsilon = SamePlace(key), Independent.for_accuracy(accuracy).epsilon
        self._seen: set[Location[float]] = set()

    @property
    def spent(self) -> float:
        return len(self._seen) * self._epsilon

    def report(self, *, lat: float, lon: float, time: float) -> Location[float]:  # noqa: ARG002
        answer = self._memory.obfuscate(lat=lat, lon=lon, person_id=0, epsilon=self._epsilon)
        self._seen.add(answer)
        return answer


class _Gaussian:
    """Normal noise at every step, whose cost only an accountant computes."""

    spent = math.inf

    def __init__(self, accuracy: float, key: bytes) -> None:
        self._noise = SphericalGaussian(_gaussian(accuracy).sigma)
        self._rng = np.random.default_rng(int.from_bytes(key))

    def report(self, *, lat: float, lon: float, time: float) -> Location[float]:  # noqa: ARG002
        [[lon, lat]] = self._noise.sample([[lon, lat]], rng=self._rng).tolist()
        return Location(lat, lon)


@dataclass(frozen=True)
class _Approach:
    """A way to answer a trace: a session for an accuracy and a key, and the noise that an accountant counts."""

    begin: Callable[[float, bytes], _SessionLike]
    noise: Callable[[float], Noise] | None = None

    def level(self, accuracy: float, session: _SessionLike, steps: int, radius: float) -> float:
        """Return the level within a radius of everything that was answered."""
        if self.noise is None:
            return session.spent * radius
        return _accounted(self.noise(accuracy), steps, radius)


@dataclass
class _Counted:
    """A session whose spending is that of its approach, for traces so many metres apart."""

    session: _SessionLike
    approach: _Approach
    accuracy: float
    apart: float
    steps: int = 0

    @property
    def spent(self) -> float:
        return self.approach.level(self.accuracy, self.session, self.steps, self.apart) / self.apart

    def report(self, *, lat: float, lon: float, time: float) -> Location[float]:
        self.steps += 1
        return self.session.report(lat=lat, lon=lon, time=time)


@lru_cache(maxsize=4096)
def _accounted(noise: Noise, steps: int, radius: float) -> float:
    return level_of_reports(noise, reports=steps, radius=radius, delta=DELTA)


def _gaussian(accuracy: float) -> PlanarGaussian:
    return PlanarGaussian(accuracy / math.sqrt(2 * math.log(10)))


def _laplace(accuracy: float) -> PlanarLaplace:
    return PlanarLaplace(Independent.for_accuracy(accuracy).epsilon)


def _session(method: Callable[[float], TraceMethod]) -> Callable[[float, bytes], _SessionLike]:
    return lambda accuracy, key: TraceSession(method(accuracy), key=key)


APPROACHES: dict[str, _Approach] = {
    "independent noise, sum": _Approach(_session(Independent.for_accuracy)),
    "independent noise, accountant": _Approach(_session(Independent.for_accuracy), _laplace),
    "Gaussian noise, accountant": _Approach(_Gaussian, _gaussian),
    "same place, same report": _Approach(_SamePlace),
    "predictive, last report": _Approach(_session(Predictive.for_accuracy)),
    "predictive, straight on": _Approach(
        _session(lambda metres: Predictive.for_accuracy(metres, predictor=straight_on))
    ),
    "sparse vector": _Approach(_session(SparseVector.for_accuracy)),
    "sparse vector, switching": _Approach(_session(lambda metres: Switching(SparseVector.for_accuracy(metres)))),
    "sparse vector, every answer within": _Approach(_session(SparseVector.within)),
}
HEADINGS = {
    "accuracy": "fresh reports within, m",
    "mean_error": "mean error, m",
    "error_90": "90 % error, m",
    "smoothed_error": "error when smoothed, m",
    "level_per_hour": f"level within {RADIUS:g} m per hour",
    "loss": "loss found, at least",
    "allowed": "loss allowed",
}
"""Headings of the columns on the page."""
STYLES = ("o-", "o--", "s--", "^-", "v-", "v:", "D-", "D:", "P-.")


@dataclass(frozen=True, eq=False)
class TraceEvaluation:
    """Budget and error of each approach, and what an audit of short sequences found.

    Attributes
    ----------
    table : DataFrame
        A row for each set of traces, approach and accuracy: errors of the answers and of smoothing them, in
        metres, and the level within 200 m that an hour costs.
    audits : DataFrame
        A row for each approach: a lower bound on the loss of short sequences, and what it may be.
    """

    table: "DataFrame"
    audits: "DataFrame"

    def text(self) -> str:
        """Return the tables for a terminal."""
        parts = []
        for name, rows in self.table.groupby("traces", sort=False):
            parts.append(f"{name}: level within {RADIUS:g} m that an hour costs, and mean error in metres")
            wide = rows.pivot(index="approach", columns="accuracy", values=["level_per_hour", "mean_error"])
            parts.append(wide.loc[list(dict.fromkeys(rows["approach"]))].to_string(float_format="%.4g"))
        parts.append("Audits of short sequences: loss found, loss allowed\n" + self.audits.to_string(index=False))
        return "\n\n".join(parts)

    def figure(self) -> "Figure":
        """Return budget against error, a panel for each set of traces."""
        names = list(dict.fromkeys(self.table["traces"]))
        figure = new_figure(5.5 * len(names) + 2.5, 4.8, "What an hour costs at which error")
        panels = figure.subplots(1, len(names), squeeze=False, sharey=True)[0]
        for axes, name in zip(panels, names, strict=True):
            rows = self.table[self.table["traces"] == name]
            for style, (approach, line) in zip(STYLES, rows.groupby("approach", sort=False), strict=True):
                axes.plot(line["mean_error"], line["level_per_hour"], style, label=str(approach), markersize=5)
            axes.set(xscale="log", yscale="log", title=name, xlabel="mean error, m")
            axes.grid(alpha=0.3)
        panels[0].set_ylabel(f"level within {RADIUS:g} m per hour")
        figure.legend(*panels[-1].get_legend_handles_labels(), loc="outside right upper", fontsize="small")
        return figure

    def write(self, path: Path) -> list[Path]:
        """Write a page with the figure and the tables, and every number as JSON next to it; return the files."""
        page, numbers = trace_report_files(path)
        caption = "Lower and farther left is better. Each line: fresh reports within 250 m to 2 km."
        parts = [
            html_heading(1, "People who move: what each way to answer costs"),
            html_figure(self.figure(), caption),
            html_table(self.table.rename(columns=HEADINGS).set_index(["traces", "approach"]), "%.4g"),
            html_heading(2, "Audits of short sequences"),
            html_table(self.audits.rename(columns=HEADINGS).set_index("approach"), "%.3f"),
        ]
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(evaluation_page(parts), encoding="utf-8")
        data = {"table": self.table.to_dict("records"), "audits": self.audits.to_dict("records")}
        numbers.write_text(json.dumps(data, indent=1), encoding="utf-8")
        return [page, numbers]


def trace_report_files(page: Path) -> list[Path]:
    """Return the page and the file of the numbers next to it."""
    return [Path(page), Path(page).with_suffix(".json")]


def evaluate_traces(
    drives: Sequence[Trace],
    *,
    accuracies: Sequence[float] = ACCURACIES,
    draws: int = DRAWS,
    progress: OnShare | None = None,
) -> TraceEvaluation:
    """Return what each way to answer traces costs and errs, on the longest drive and on all, each audited.

    Parameters
    ----------
    drives : sequence of (times, lonlat)
        Positions of people over time, the longest first: times in seconds and (n, 2) longitudes and latitudes.
    accuracies : sequence of float
        Metres within which nine of ten fresh reports are, one after the other.
    draws : int
        How often each short sequence is drawn for its audit.
    progress : callable, optional
        Called with the approach and the share that is done.

    Examples
    --------
    >>> from geoind.traces import commuters
    >>> found = evaluate_traces(commuters(persons=1, days=1, every=3600), accuracies=[500], draws=10)
    >>> len(found.table), len(found.audits)
    (9, 9)
    """
    if not drives:
        raise InvalidInputError("there must be at least one drive")
    sets = {"one drive": 1} if len(drives) == 1 else {"one drive": 1, f"all {len(drives)} drives": len(drives)}
    rows, audits = [], []
    for number, (name, approach) in enumerate(APPROACHES.items()):
        for accuracy in accuracies:
            measured = [_measure(approach, accuracy, drive, key) for key, drive in enumerate(drives)]
            for traces, count in sets.items():
                row = {"traces": traces, "approach": name, "accuracy": accuracy}
                rows.append(row | _joined(measured[:count]))
        audits.append({"approach": name, **_audited(approach, accuracies[len(accuracies) // 2], draws)})
        if progress is not None:
            progress(name, (number + 1) / len(APPROACHES))
    table = pd.DataFrame(rows).sort_values("traces", key=lambda names: names != "one drive", kind="stable")
    return TraceEvaluation(table.reset_index(drop=True), pd.DataFrame(audits))


def _measure(approach: _Approach, accuracy: float, drive: Trace, key: int) -> tuple[FloatArray, float, float]:
    """Return (2, n) errors of the answers and of smoothing them, the level of the drive, and its hours."""
    times, lonlat = drive
    session = approach.begin(accuracy, key.to_bytes(32))
    reports = answers_to(drive, session.report)
    plane = Projection(*lonlat[0])
    truth = plane.to_xy(lonlat)
    errors = [np.hypot(*(plane.to_xy(guess) - truth).T) for guess in (reports, smooth(reports, times))]
    level = approach.level(accuracy, session, len(reports), RADIUS)
    return np.array(errors), level, float(times[-1] - times[0]) / 3600


def _joined(measured: Sequence[tuple[FloatArray, float, float]]) -> dict[str, object]:
    errors, smoothed = np.concatenate([errors for errors, _, _ in measured], axis=1)
    return {
        "positions": len(errors),
        "mean_error": float(errors.mean()),
        "error_90": float(np.quantile(errors, 0.9)),
        "smoothed_error": float(smoothed.mean()),
        "level_per_hour": sum(level for _, level, _ in measured) / sum(hours for _, _, hours in measured),
    }


def _audited(approach: _Approach, accuracy: float, draws: int) -> dict[str, float | bool]:
    """Return what sequences reveal: of a person who stays a while, and of one who goes to and fro a little."""
    plane = Projection(*HOME)
    keys = iter(range(1_000_000))
    found = []
    for pair in AUDITED:
        first, second = (
            plane.to_lonlat(np.array([[0.0, accuracy * north] for north in norths])) for norths in pair
        )
        apart = float(arc_length(*first.T, *second.T).max())

        def begun(apart: float = apart) -> _SessionLike:
            return _Counted(approach.begin(accuracy, next(keys).to_bytes(32)), approach, accuracy, apart)

        traces = [
            [(60.0 * step, lon, lat) for step, (lon, lat) in enumerate(trace.tolist())]
            for trace in (first, second)
        ]
        found.append(audit_traces(begun, *traces, draws=draws))
    worst = max(found, key=lambda audit: audit.loss - audit.allowed)
    return {"loss": worst.loss, "allowed": worst.allowed, "refuted": worst.refuted}
