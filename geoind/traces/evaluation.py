"""Budget against error for people who move: each way to answer a trace, on one drive and on many, each audited."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from geoind import TraceSession
from geoind.accounting.reports import level_of_reports
from geoind.arrays import FloatArray
from geoind.budgets.same_place import SamePlace
from geoind.distances import haversine
from geoind.errors import InvalidInputError
from geoind.evaluation.figures import new_figure
from geoind.evaluation.report import Picture, evaluation_page, html_figure, html_heading, html_table
from geoind.extras import require
from geoind.mechanisms.planar import PlanarGaussian, PlanarLaplace
from geoind.mechanisms.spherical import SphericalGaussian
from geoind.parallel import OnShare
from geoind.pipeline import Location
from geoind.space.projection import Projection
from geoind.traces import (
    Answering,
    Independent,
    Predictive,
    SparseVector,
    Switching,
    TraceMethod,
    audit_traces,
    smooth,
    straight_on,
)
from geoind.traces.drives import Drive

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

__all__ = ["ACCURACIES", "CONTENDERS", "TraceEvaluation", "evaluate_traces"]

ACCURACIES = (250.0, 500.0, 1000.0, 2000.0)
"""Metres that hold a fresh report nine times in ten."""
RADIUS, DELTA = 200.0, 1e-5
"""Levels are for places so many metres apart; an accountant's hold but for this probability."""
DRAWS = 300
"""Runs of each trace in an audit."""
AUDITED = (([0, 0, 0.6, 0.6, 0.6, 1.8], [0, 0, 0.2, 0.2, 0.2, 2.2]), ([0.0] * 6, [0, 0.4] * 3))
"""Pairs of traces: metres to the north, in wanted accuracies."""

Noise = PlanarLaplace | PlanarGaussian


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
    """Normal noise at every step; what it costs only an accountant can tell."""

    spent = math.inf

    def __init__(self, accuracy: float, key: bytes) -> None:
        self._noise = SphericalGaussian(_gaussian(accuracy).sigma)
        self._rng = np.random.default_rng(int.from_bytes(key))

    def report(self, *, lat: float, lon: float, time: float) -> Location[float]:  # noqa: ARG002
        [[lon, lat]] = self._noise.sample([[lon, lat]], rng=self._rng).tolist()
        return Location(lat, lon)


@dataclass(frozen=True)
class Contender:
    """A way to answer a trace: a session for an accuracy and a key, and the noise that an accountant counts."""

    begin: Callable[[float, bytes], Answering]
    noise: Callable[[float], Noise] | None = None

    def level(self, accuracy: float, session: Answering, steps: int, radius: float) -> float:
        """Return the level within a radius of everything that was answered."""
        if self.noise is None:
            return session.spent * radius
        return _accounted(self.noise(accuracy), steps, radius)


@dataclass
class _Counted:
    """A session whose spending an accountant tells, for traces so many metres apart."""

    session: Answering
    contender: Contender
    accuracy: float
    apart: float
    steps: int = 0

    @property
    def spent(self) -> float:
        return self.contender.level(self.accuracy, self.session, self.steps, self.apart) / self.apart

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


def _session(method: Callable[[float], TraceMethod]) -> Callable[[float, bytes], Answering]:
    return lambda accuracy, key: TraceSession(method(accuracy), key=key)


CONTENDERS: dict[str, Contender] = {
    "independent noise, sum": Contender(_session(Independent.for_accuracy)),
    "independent noise, accountant": Contender(_session(Independent.for_accuracy), _laplace),
    "Gaussian noise, accountant": Contender(_Gaussian, _gaussian),
    "same place, same report": Contender(_SamePlace),
    "predictive, last report": Contender(_session(Predictive.for_accuracy)),
    "predictive, straight on": Contender(
        _session(lambda metres: Predictive.for_accuracy(metres, predictor=straight_on))
    ),
    "sparse vector": Contender(_session(SparseVector.for_accuracy)),
    "sparse vector, switching": Contender(_session(lambda metres: Switching(SparseVector.for_accuracy(metres)))),
    "sparse vector, every answer within": Contender(_session(SparseVector.within)),
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
"""What the page calls the columns."""
STYLES = ("o-", "o--", "s--", "^-", "v-", "v:", "D-", "D:", "P-.")


@dataclass(frozen=True, eq=False)
class TraceEvaluation:
    """Budget and error of each contender, and what an audit of short sequences found.

    Attributes
    ----------
    table : DataFrame
        A row for each set of traces, contender and accuracy: errors of the answers and of smoothing them, in
        metres, and the level within 200 m that an hour costs.
    audits : DataFrame
        A row for each contender: a lower bound on the loss of short sequences, and what it may be.
    """

    table: "DataFrame"
    audits: "DataFrame"

    def text(self) -> str:
        """Return the tables for a terminal."""
        parts = []
        for name, rows in self.table.groupby("traces", sort=False):
            parts.append(f"{name}: level within {RADIUS:g} m that an hour costs, and mean error in metres")
            wide = rows.pivot(index="contender", columns="accuracy", values=["level_per_hour", "mean_error"])
            parts.append(wide.loc[list(dict.fromkeys(rows["contender"]))].to_string(float_format="%.4g"))
        parts.append("Audits of short sequences: loss found, loss allowed\n" + self.audits.to_string(index=False))
        return "\n\n".join(parts)

    def figure(self) -> "Figure":
        """Return budget against error, a panel for each set of traces."""
        names = list(dict.fromkeys(self.table["traces"]))
        figure = new_figure(5.5 * len(names) + 2.5, 4.8, "What an hour costs at which error")
        panels = figure.subplots(1, len(names), squeeze=False, sharey=True)[0]
        for axes, name in zip(panels, names, strict=True):
            rows = self.table[self.table["traces"] == name]
            for style, (contender, line) in zip(STYLES, rows.groupby("contender", sort=False), strict=True):
                axes.plot(line["mean_error"], line["level_per_hour"], style, label=str(contender), markersize=5)
            axes.set(xscale="log", yscale="log", title=name, xlabel="mean error, m")
            axes.grid(alpha=0.3)
        panels[0].set_ylabel(f"level within {RADIUS:g} m per hour")
        figure.legend(*panels[-1].get_legend_handles_labels(), loc="outside right upper", fontsize="small")
        return figure

    def write(self, path: Path) -> list[Path]:
        """Write a page with the figure and the tables, and every number as JSON beside it; return the files."""
        require("a page with figures", "matplotlib")
        page, numbers = trace_report_files(path)
        picture = Picture(
            self.figure(), "Lower and farther left is better. Each line: fresh reports within 250 m to 2 km."
        )
        parts = [
            html_heading(1, "People who move: what each way to answer costs"),
            html_figure(picture),
            html_table(self.table.rename(columns=HEADINGS).set_index(["traces", "contender"]), "%.4g"),
            html_heading(2, "Audits of short sequences"),
            html_table(self.audits.rename(columns=HEADINGS).set_index("contender"), "%.3f"),
        ]
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(evaluation_page(parts), encoding="utf-8")
        told = {"table": self.table.to_dict("records"), "audits": self.audits.to_dict("records")}
        numbers.write_text(json.dumps(told, indent=1), encoding="utf-8")
        return [page, numbers]


def trace_report_files(page: Path) -> list[Path]:
    """Return the page and the numbers that stand beside it."""
    return [Path(page), Path(page).with_suffix(".json")]


def evaluate_traces(
    drives: Sequence[Drive],
    *,
    accuracies: Sequence[float] = ACCURACIES,
    draws: int = DRAWS,
    progress: OnShare | None = None,
) -> TraceEvaluation:
    """Return what each way to answer traces costs and errs, on the longest drive and on all, each audited.

    Parameters
    ----------
    drives : sequence of Drive
        Positions of people over time, the longest first.
    accuracies : sequence of float
        Metres within which nine of ten fresh reports are, one after the other.
    draws : int
        How often each short sequence is drawn for its audit.
    progress : callable, optional
        Told the contender and the share that is done.

    Examples
    --------
    >>> from geoind.traces.drives import commuters
    >>> found = evaluate_traces(commuters(persons=1, days=1, every=3600), accuracies=[500], draws=10)
    >>> len(found.table), len(found.audits)
    (9, 9)
    """
    if not drives:
        raise InvalidInputError("there must be at least one drive")
    sets = {"one drive": 1} if len(drives) == 1 else {"one drive": 1, f"all {len(drives)} drives": len(drives)}
    rows, audits = [], []
    for number, (name, contender) in enumerate(CONTENDERS.items()):
        for accuracy in accuracies:
            measured = [_measure(contender, accuracy, drive, key) for key, drive in enumerate(drives)]
            for told, count in sets.items():
                known = {"traces": told, "contender": name, "accuracy": accuracy}
                rows.append({**known, **_joined(measured[:count])})
        audits.append({"contender": name, **_audited(contender, accuracies[len(accuracies) // 2], draws)})
        if progress is not None:
            progress(name, (number + 1) / len(CONTENDERS))
    table = pd.DataFrame(rows).sort_values("traces", key=lambda names: names != "one drive", kind="stable")
    return TraceEvaluation(table.reset_index(drop=True), pd.DataFrame(audits))


@dataclass(frozen=True)
class _Measured:
    errors: FloatArray
    smoothed: FloatArray
    level: float
    hours: float


def _measure(contender: Contender, accuracy: float, drive: Drive, key: int) -> _Measured:
    session = contender.begin(accuracy, key.to_bytes(32))
    answers = [
        session.report(lat=lat, lon=lon, time=time)
        for time, (lon, lat) in zip(drive.times.tolist(), drive.lonlat.tolist(), strict=True)
    ]
    reports = np.array([(answer.lon, answer.lat) for answer in answers])
    plane = Projection(*drive.lonlat[0])
    truth = plane.to_xy(drive.lonlat)
    errors, smoothed = (
        np.hypot(*(plane.to_xy(guess) - truth).T) for guess in (reports, smooth(reports, drive.times))
    )
    level = contender.level(accuracy, session, len(reports), RADIUS)
    return _Measured(errors, smoothed, level, drive.hours)


def _joined(measured: Sequence[_Measured]) -> dict[str, float]:
    errors = np.concatenate([one.errors for one in measured])
    smoothed = np.concatenate([one.smoothed for one in measured])
    return {
        "positions": len(errors),
        "mean_error": float(errors.mean()),
        "error_90": float(np.quantile(errors, 0.9)),
        "smoothed_error": float(smoothed.mean()),
        "level_per_hour": sum(one.level for one in measured) / sum(one.hours for one in measured),
    }


def _audited(contender: Contender, accuracy: float, draws: int) -> dict[str, float | bool]:
    """Return what sequences give away: of a person who stays a while, and of one who goes to and fro a little."""
    plane = Projection(2.2945, 48.8584)
    keys = iter(range(1_000_000))
    found = []
    for pair in AUDITED:
        traces = []
        for norths in pair:
            lonlat = plane.to_lonlat(np.array([[0.0, accuracy * north] for north in norths]))
            traces.append([(60.0 * step, lon, lat) for step, (lon, lat) in enumerate(lonlat.tolist())])
        first, second = (np.array([place for _, *place in trace]) for trace in traces)
        apart = float(np.diagonal(haversine(first, second)).max())

        def begun(apart: float = apart) -> Answering:
            return _Counted(contender.begin(accuracy, next(keys).to_bytes(32)), contender, accuracy, apart)

        found.append(audit_traces(begun, *traces, draws=draws))
    worst = max(found, key=lambda audit: audit.loss - audit.allowed)
    return {"loss": worst.loss, "allowed": worst.allowed, "refuted": worst.refuted}
