"""What a moving person pays, and what an observer of all reports learns.

python3 dev.py bench traces [FILE]    prints the tables, writes docs/benchmarks/traces.md, docs/figures/traces.png;
                                      with a file of traces, GeoLife's for one, evaluates on them, too
"""

import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from _zone_attacks import jitter_attack, zone_attack

from geoind import Prior, TraceSession
from geoind.arrays import FloatArray
from geoind.files import read_traces
from geoind.space.projection import Projection
from geoind.space.sites import Grid
from geoind.traces import (
    Independent,
    LearnedMobility,
    Mobility,
    Predictive,
    PrivateZone,
    SparseVector,
    Switching,
    TraceMethod,
    commuter,
    days_until_home_is_known,
    drives_of,
    evaluate_traces,
    homes_figure,
    most_likely_path,
    most_likely_places,
    obfuscate_traces,
    smooth,
    trace_adversary_error,
)
from geoind.traces.drives import HOME, WORK, answers_to

ROOT = Path(__file__).resolve().parent.parent
PAGE, FIGURE = ROOT / "docs" / "benchmarks" / "traces.md", ROOT / "docs" / "figures" / "traces.png"
PLANE = Projection(*HOME)
ACCURACY = 500.0
EPSILON = Independent.for_accuracy(ACCURACY).epsilon
PERSONS, DAYS, EVERY = 12, 30, 600.0
WEEKS = 40
"""How many persons' weeks the averages are over."""
CROWD = 150
"""The same for the session with memory, whose error is one draw a person."""
ZONES = 20
"""How many persons leave their zones."""


def key(number: int) -> bytes:
    """Return the key of a simulated person."""
    return number.to_bytes(32)


def apart(reports: FloatArray, truth: FloatArray) -> FloatArray:
    """Return distances in metres."""
    return np.asarray(np.hypot(*(PLANE.to_xy(reports) - PLANE.to_xy(truth)).T))


def driver() -> tuple[FloatArray, FloatArray]:
    """Return a day of a person who never stays: 8 m/s, back and forth along 30 km."""
    times = np.arange(0.0, 86_400.0, 300.0)
    x = 15_000 - np.abs(8.0 * times % 60_000 - 30_000)
    return times, PLANE.to_lonlat(np.column_stack((x, np.zeros_like(x))))


def table(header: list[str], rows: list[list[str]]) -> str:
    """Return a table for a page."""
    return "\n".join("| " + " | ".join(line) + " |" for line in [header, ["---"] * len(header), *rows])


def budgets(times: FloatArray, truth: FloatArray, keys: int, accuracy: float = ACCURACY) -> str:
    """Return error and rate of each method on one trace.

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
        "sparse vector, every answer within": SparseVector.within(accuracy),
    }
    rows, first = [], None
    for name, method in methods.items():
        errors, rates = [], []
        for number in range(keys):
            session = TraceSession(method, key=key(number))
            errors.append(apart(answers_to((times, truth), session.report), truth))
            rates.append(session.epsilon_per_hour)
        rate = float(np.mean(rates))
        first = rate if first is None else first
        every = np.concatenate(errors)
        row = [f"{every.mean():.0f}", f"{np.quantile(every, 0.9):.0f}", f"{rate:.4f}", f"{first / rate:.1f}"]
        rows.append([name, *row])
    return table(["", "mean error, m", "90 % error, m", "epsilon per hour", "times less"], rows)


def crowd() -> str:
    """Return error and rate of the sparse vector session with memory, over enough persons to see the mean."""
    times, _ = commuter()
    truth = np.concatenate([commuter(rng=number)[1] for number in range(CROWD)])
    persons = np.repeat(np.arange(CROWD), len(times)).tolist()
    rows = []
    for accuracy in (500.0, 1000.0):
        method = SparseVector.for_accuracy(accuracy)
        reports, spent = obfuscate_traces(
            truth, persons=persons, times=np.tile(times, CROWD), method=method, key=bytes(32)
        )
        errors = apart(reports, truth)
        rate = float(np.mean([*spent.values()])) / (float(times[-1]) / 3600)
        independent = Independent.for_accuracy(accuracy).epsilon * 12
        numbers = (
            f"{errors.mean():.0f}",
            f"{np.quantile(errors, 0.9):.0f}",
            f"{rate:.4f}",
            f"{independent / rate:.1f}",
        )
        rows.append([f"within {accuracy:.0f} m", *numbers])
    return table(["", "mean error, m", "90 % error, m", "epsilon per hour", "times less than fresh noise"], rows)


def learned() -> str:
    """Return what each attack makes of two days of reports."""
    times, truth = commuter(days=2, every=EVERY)
    grid = Grid(-2500.0, -7000.0, cell=200.0, columns=60, rows=50)
    road = Prior.over(grid, np.unique(grid.nearest(np.linspace([0, 0], WORK, 400))))
    free, on_road = (Mobility(grid, PLANE, stay=0.9, prior=prior) for prior in (None, road))
    when, others = commuter(days=5, every=EVERY, rng=99)
    public = LearnedMobility.learn(
        others, persons=["a neighbour"] * len(when), times=when, grid=grid, projection=PLANE, step=EVERY
    )
    rows = []
    for name, method in (("independent", Independent(EPSILON)), ("session", SparseVector.for_accuracy(ACCURACY))):
        reports = answers_to((times, truth), TraceSession(method, key=key(1)).report)
        guesses = {"the reports": reports, "smoothed": smooth(reports, times)}
        guesses["most likely cells"] = most_likely_places(reports, times, method=method, mobility=free)
        guesses["most likely path"] = most_likely_path(reports, times, method=method, mobility=free)
        bayesian = {
            known: trace_adversary_error(reports, truth, times=times, method=method, mobility=mobility)
            for known, mobility in (
                ("`trace_adversary_error`", free),
                ("with the road", on_road),
                ("with the traffic", public),
            )
        }
        errors = [*(apart(guess, truth).mean() for guess in guesses.values()), *bayesian.values()]
        rows.append([name, *(f"{error:.0f}" for error in errors)])
    return table(["mean error in metres of", *guesses, *bayesian], rows)


def homes(found: pd.DataFrame) -> str:
    """Return the days until home is known."""
    rows = [
        [
            str(row.defence),
            str(row.attack),
            f"{row.days:.0f}" if np.isfinite(float(str(row.days))) else f"more than {DAYS}",
            f"{row.known} of {PERSONS}",
            f"{row.error:.0f}",
        ]
        for row in found.itertuples()
    ]
    header = ["", "best attack on night reports", "days until 100 m (median)", "ever known", "error at the end, m"]
    return table(header, rows)


def zones() -> str:
    """Return what the times of leaving a zone reveal about the home, and a home that is measured again."""
    found = [zone_attack(person, days=DAYS) for person in range(ZONES)]
    after = (1, 7, DAYS)
    rows = [
        [name, *(f"{np.median([errors[name][day - 1] for errors in found]):.0f}" for day in after)]
        for name in found[0]
    ]
    return table(["median error about home, m, after so many departures", *map(str, after)], rows)


def jitter() -> str:
    """Return what the centres of a home reveal that is measured 30 times."""
    found = [jitter_attack(person) for person in range(10 * ZONES)]
    rows = [[name, f"{np.median([errors[name] for errors in found]):.0f}"] for name in found[0]]
    return table(["30 measurements of a home, 8 m apart", "median error about home, m"], rows)


def nights() -> str:
    """Return how often a session leaves its zone by chance, and after how many steps when the person has left."""
    rows = []
    for minutes in (1, 15):
        left, late = [], []
        for person in range(10 * ZONES):
            zone = PrivateZone.around(lat=HOME[1], lon=HOME[0], epsilon=EPSILON, key=key(person))
            session = TraceSession(Independent(EPSILON), key=key(person), zone=zone)
            steps = 12 * 60 // minutes
            night = np.arange(0.0, steps) * 60.0 * minutes
            answers_to((night, np.tile(HOME, (steps, 1))), session.report)
            left.append(session.costs[zone.test] > 1)
            away = PLANE.to_lonlat(np.tile([2 * zone.limit, 0.0], (20, 1)))
            answers = answers_to((night[-1] + 60.0 * minutes * np.arange(1, 21), away), session.report)
            late.append(int(np.argmin((answers == (zone.lon, zone.lat)).all(axis=1))) + 1)
        rows.append([f"every {minutes} min", f"{100 * np.mean(left):.1f} %", f"{np.mean(late):.2f}"])
    return table(
        ["a test", "nights of 12 hours with a false alarm", "steps until a jump to twice the limit is noticed"],
        rows,
    )


def speed() -> str:
    """Return seconds of the filter and of the path on 100 x 100 cells and 1 000 steps."""
    times, truth = commuter(days=4, every=345.6)
    mobility = Mobility(Grid(-3000.0, -8000.0, cell=120.0, columns=100, rows=100), PLANE, stay=0.9)
    rows = []
    for name, method in (("independent", Independent(EPSILON)), ("session", SparseVector.for_accuracy(ACCURACY))):
        reports = answers_to((times[:1000], truth[:1000]), TraceSession(method, key=key(1)).report)
        seconds = []
        for attack in (trace_adversary_error, most_likely_path):
            began = time.process_time()
            if attack is trace_adversary_error:
                trace_adversary_error(reports, truth[:1000], times=times[:1000], method=method, mobility=mobility)
            else:
                most_likely_path(reports, times[:1000], method=method, mobility=mobility)
            seconds.append(time.process_time() - began)
        rows.append([name, *(f"{value:.0f}" for value in seconds)])
    return table(["seconds of processor", "forward-backward filter and medians", "most likely path"], rows)


def evaluated(path: str) -> str:
    """Return what the evaluation finds on the traces of a file, for fresh reports within 500 m."""
    found = evaluate_traces(drives_of(read_traces(path), most=12), accuracies=[ACCURACY])
    audits = found.audits.set_index("approach")
    columns = ["mean_error", "error_90", "smoothed_error", "level_per_hour"]
    rows = []
    for row in found.table[found.table["traces"] != "one drive"].to_dict("records"):
        refuted = "refuted" if audits.loc[row["approach"], "refuted"] else "not refuted"
        rows.append([str(row["approach"]), *(f"{row[column]:.4g}" for column in columns), refuted])
    header = ["", "mean error, m", "90 % error, m", "smoothed, m", "level within 200 m per hour", "audit"]
    return table(header, rows)


def main() -> None:
    """Measure, print, write."""
    known = days_until_home_is_known(persons=PERSONS, days=DAYS, every=EVERY, accuracy=ACCURACY)
    homes_figure(known).savefig(FIGURE, dpi=110)
    tables = {
        "commuter": budgets(*commuter(), keys=WEEKS),
        "commuter within 1 km": budgets(*commuter(), keys=WEEKS, accuracy=1000.0),
        "crowd": crowd(),
        "driver": budgets(*driver(), keys=WEEKS),
        "learned": learned(),
        "homes": homes(known),
        "zones": zones(),
        "jitter": jitter(),
        "nights": nights(),
        "speed": speed(),
    }
    if sys.argv[1:]:
        tables["geolife"] = evaluated(sys.argv[1])
    text = PAGE.read_text()
    for name, rows in tables.items():
        begin, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
        before, _, rest = text.partition(begin)
        text = before + begin + rows + end + rest.partition(end)[2]
    PAGE.write_text(text)
    print(*tables.values(), sep="\n\n")


if __name__ == "__main__":
    main()
