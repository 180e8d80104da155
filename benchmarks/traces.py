"""What a moving person pays, and what somebody learns who sees every report.

python3 dev.py bench traces     prints the tables, writes docs/benchmarks/traces.md and docs/figures/traces.png
"""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from geoind import Mobility, SamePlace, TraceSession, trace_adversary_error
from geoind.arrays import FloatArray
from geoind.space.projection import Projection
from geoind.space.sites import Grid
from geoind.traces import (
    Independent,
    Predictive,
    PrivateZone,
    SparseVector,
    Switching,
    TraceMethod,
    average,
    commuter,
    middle,
    most_likely_places,
    smooth,
)
from geoind.traces.commuter import HOME

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "traces.md"
OUT, FIGURE = ROOT / "docs" / "benchmarks" / "traces.md", ROOT / "docs" / "figures" / "traces.png"
PLANE = Projection(*HOME)
ACCURACY = 500.0
EPSILON = Independent.for_accuracy(ACCURACY).epsilon
MEAN_ERROR = 2 / EPSILON
PERSONS, DAYS, EVERY = 12, 30, 600.0
KNOWN = 100.0
WEEKS = 60
"""How many persons' weeks the averages are over."""


def key(number: int) -> bytes:
    """Return the key of a simulated person."""
    return number.to_bytes(32)


def replay(session: TraceSession, times: FloatArray, truth: FloatArray) -> FloatArray:
    """Return what a session answers to a trace."""
    steps = zip(times.tolist(), truth.tolist(), strict=True)
    answers = [session.report(lat=lat, lon=lon, time=moment) for moment, (lon, lat) in steps]
    return np.array([(answer.lon, answer.lat) for answer in answers])


def apart(reports: FloatArray, truth: FloatArray) -> FloatArray:
    """Return distances in metres."""
    return np.asarray(np.hypot(*(PLANE.to_xy(reports) - PLANE.to_xy(truth)).T))


def driver() -> tuple[FloatArray, FloatArray]:
    """Return a day of somebody who never stays: 8 m/s, back and forth along 30 km."""
    times = np.arange(0.0, 86_400.0, 300.0)
    x = 15_000 - np.abs(8.0 * times % 60_000 - 30_000)
    return times, PLANE.to_lonlat(np.column_stack((x, np.zeros_like(x))))


def table(header: list[str], rows: list[list[str]]) -> str:
    """Return a table for a page."""
    return "\n".join("| " + " | ".join(line) + " |" for line in [header, ["---"] * len(header), *rows])


def budgets(times: FloatArray, truth: FloatArray, keys: int, accuracy: float = ACCURACY) -> str:
    """Return error, rate and time per step of each method on one trace.

    A session with memory reports a home with one draw for weeks: its error is one number per person, and it takes
    many persons to see the mean.
    """
    sparse = SparseVector.for_accuracy(accuracy)
    methods: dict[str, TraceMethod] = {
        "independent": Independent.for_accuracy(accuracy),
        "predictive, as published": Predictive.for_accuracy(accuracy),
        "sparse vector, without memory": SparseVector(sparse.fresh, sparse.test, sparse.limit),
        "sparse vector, with memory": sparse,
        "switching": Switching(sparse),
    }
    rows, first = [], None
    for name, method in methods.items():
        errors, rates = [], []
        began = time.process_time()
        for number in range(keys):
            session = TraceSession(method, key=key(number))
            errors.append(apart(replay(session, times, truth), truth))
            rates.append(session.epsilon_per_hour)
        each = (time.process_time() - began) / (keys * len(times)) * 1e6
        rate = float(np.mean(rates))
        first = rate if first is None else first
        every = np.concatenate(errors)
        row = [f"{every.mean():.0f}", f"{np.quantile(every, 0.9):.0f}", f"{rate:.4f}", f"{first / rate:.1f}"]
        rows.append([name, *row, f"{each:.0f}"])
    header = [
        "",
        "mean error, m",
        "90 % error, m",
        "epsilon per hour",
        "times less",
        "microseconds of processor per step",
    ]
    return table(header, rows)


def learned() -> str:
    """Return what each attack makes of two days of reports."""
    times, truth = commuter(days=2, every=EVERY)
    mobility = Mobility(Grid(-2500.0, -7000.0, cell=200.0, columns=60, rows=50), PLANE, stay=0.9)
    rows = []
    for name, method in (("independent", Independent(EPSILON)), ("session", SparseVector.for_accuracy(ACCURACY))):
        reports = replay(TraceSession(method, key=key(1)), times, truth)
        guesses = {
            "the reports": reports,
            "smoothed over an hour": smooth(reports, times),
            "most likely cells": most_likely_places(reports, times, method=method, mobility=mobility),
        }
        bayesian = trace_adversary_error(reports, truth, times=times, method=method, mobility=mobility)
        rows.append(
            [name, *(f"{apart(guess, truth).mean():.0f}" for guess in guesses.values()), f"{bayesian:.0f}"]
        )
    return table(["mean error in metres of", *guesses, "`trace_adversary_error`"], rows)


def same_place(number: int, _times: FloatArray, truth: FloatArray) -> FloatArray:
    """Return one report for each cell that a person visits."""
    memory = SamePlace(key(number))
    answers = [memory.obfuscate(lat=lat, lon=lon, epsilon=EPSILON, person=number) for lon, lat in truth.tolist()]
    return np.array([(answer.lon, answer.lat) for answer in answers])


def zoned(number: int, times: FloatArray, truth: FloatArray) -> FloatArray:
    """Return a session's answers with a zone around home."""
    zone = PrivateZone.around(lat=HOME[1], lon=HOME[0], epsilon=EPSILON, key=key(number))
    return replay(TraceSession(SparseVector.for_accuracy(ACCURACY), key=key(number), zone=zone), times, truth)


def cloaked(number: int, _times: FloatArray, truth: FloatArray) -> FloatArray:
    """Return centres of grid cells; the grid lies anyhow to each person's home."""
    cell = MEAN_ERROR / 0.3826  # mean distance of a uniform place from the centre of its square
    shift = np.random.default_rng(number).uniform(0, cell, 2)
    return PLANE.to_lonlat((np.floor((PLANE.to_xy(truth) + shift) / cell) + 0.5) * cell - shift)


def drifting(number: int, times: FloatArray, truth: FloatArray) -> FloatArray:
    """Return places beside the truth: an offset that is another one after about six hours."""
    generator = np.random.default_rng(number)
    kept = np.exp(-EVERY / (6 * 3600))
    spread = MEAN_ERROR / np.sqrt(np.pi / 2)
    offset, offsets = generator.normal(0, spread, 2), []
    for _ in times:
        offset = kept * offset + np.sqrt(1 - kept**2) * generator.normal(0, spread, 2)
        offsets.append(offset)
    return PLANE.to_lonlat(PLANE.to_xy(truth) + np.array(offsets))


Defence = Callable[[int, FloatArray, FloatArray], FloatArray]
DEFENCES: dict[str, Defence] = {
    "fresh noise per report": lambda n, t, x: replay(TraceSession(Independent(EPSILON), key=key(n)), t, x),
    "the same report for the same place": same_place,
    "sparse vector session": lambda n, t, x: replay(
        TraceSession(SparseVector.for_accuracy(ACCURACY), key=key(n)), t, x
    ),
    "session with a private zone": zoned,
    "cloaking to a grid": cloaked,
    "an offset that drifts": drifting,
}


def home_errors(reports: FloatArray, times: FloatArray) -> FloatArray:
    """Return the error about home after each day, (attacks, days), from what was reported at night."""
    night = (times / 3600 % 24 < 7) | (times / 3600 % 24 > 20)
    errors = []
    for day in range(1, DAYS + 1):
        seen = reports[night & (times < 86_400 * day)]
        distinct = np.unique(seen, axis=0)
        guesses = [average(seen), middle(seen), average(distinct), middle(distinct)]
        errors.append(apart(np.array(guesses), np.array([HOME] * len(guesses))))
    return np.array(errors).T


def until_known(errors: FloatArray) -> float:
    """Return the first day from which on a guess stays within 100 m; infinite if there is none."""
    wrong = np.flatnonzero(errors > KNOWN)
    day = 1 if not len(wrong) else int(wrong[-1]) + 2
    return day if day <= DAYS else np.inf


def homes() -> str:
    """Return the days until home is known, and draw them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot(xlabel="days of reports", ylabel="error about home, m (median person)")
    rows = []
    for name, defence in DEFENCES.items():
        persons = []
        for number in range(PERSONS):
            times, truth = commuter(days=DAYS, every=EVERY, rng=number)
            persons.append(home_errors(defence(number, times, truth), times))
        every = np.array(persons)
        # The attack that does best against the whole crowd: the attacker knows the defence.
        best = int(every[:, :, -1].mean(axis=0).argmin())
        days = np.array([until_known(errors) for errors in every[:, best]])
        median = np.median(days)
        rows.append(
            [
                name,
                ("mean", "geometric median", "mean of distinct ones", "geometric median of distinct ones")[best],
                f"{median:.0f}" if np.isfinite(median) else f"more than {DAYS}",
                f"{np.isfinite(days).sum()} of {PERSONS}",
                f"{np.median(every[:, best, -1]):.0f}",
            ]
        )
        axes.plot(range(1, DAYS + 1), np.median(every[:, best], axis=0), label=name)
    axes.axhline(KNOWN, color="grey", linestyle=":")
    axes.set_ylim(0)
    axes.legend(fontsize="small")
    figure.savefig(FIGURE, dpi=110)
    header = ["", "best attack on night reports", "days until 100 m (median)", "ever known", "error at the end, m"]
    return table(header, rows)


def main() -> None:
    """Measure, print, write."""
    tables = {
        "commuter": budgets(*commuter(), keys=WEEKS),
        "commuter within 1 km": budgets(*commuter(), keys=WEEKS, accuracy=1000.0),
        "driver": budgets(*driver(), keys=WEEKS),
        "learned": learned(),
        "homes": homes(),
    }
    page = f"""# What people who move pay, and what they give away

Written by `python3 dev.py bench traces`. Fresh reports are within {ACCURACY:.0f} m nine times in ten.

Errors and rates are averages over {WEEKS} persons.

## A commuter, a week, a position every five minutes

{tables["commuter"]}

Fresh reports within 1 000 m nine times in ten:

{tables["commuter within 1 km"]}

## Somebody who never stays, a day, a position every five minutes

{tables["driver"]}

## What the attacks learn about each moment

A commuter, two days, a position every ten minutes; 60 x 50 cells of 200 m.

{tables["learned"]}

## Days until home is known to 100 m

{PERSONS} commuters, {DAYS} days, a position every {EVERY / 60:.0f} minutes.
Each defence has a mean error of about {MEAN_ERROR:.0f} m. The attacker averages what was reported at night, and
uses the one way, of four, that does best against the whole crowd.

{tables["homes"]}
"""
    OUT.write_text(page)
    text = PAGE.read_text()
    for name, rows in tables.items():
        begin, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
        before, _, rest = text.partition(begin)
        text = before + begin + rows + end + rest.partition(end)[2]
    PAGE.write_text(text)
    print(page)


if __name__ == "__main__":
    main()
