"""What many reports cost together: how tight the accountant's bounds are, how long they take, and the picture.

python3 dev.py bench accounting

Prints the tables, and writes docs/benchmarks/accounting.md and docs/figures/reports.png.
"""

import math
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from geoind import (
    Grid,
    Mechanism,
    PlanarGaussian,
    PlanarLaplace,
    level_of_reports,
    mechanism_for_reports,
    planar_geometric,
)
from geoind.accounting import Promise, accountant, calibration, level_bounds
from geoind.audits import audit_reports

ROOT = Path(__file__).resolve().parent.parent
OUT, PICTURE = ROOT / "docs" / "benchmarks" / "accounting.md", ROOT / "docs" / "figures" / "reports.png"

RADIUS, DELTA = 200.0, 1e-5
LEVEL = math.log(4)

# For the picture: noise wide enough that an audit can see something of many reports.
SMALL = 0.1
COUNTS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
FEWEST, MOST, DRAWS = 10_000, 40_000, 2_000_000
"""Sequences that an audit looks at, from each place, and about how many reports they have together."""


def timed(call: Callable[[], object]) -> float:
    """Return milliseconds of a call that finds nothing kept."""
    for cache in (accountant.level_of_losses, accountant.delta_of_losses, accountant._on_grid, calibration._made):
        cache.cache_clear()
    start = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - start)


def table(header: list[str], rows: list[list[str]]) -> str:
    """Return a table for a page."""
    return "\n".join("| " + " | ".join(line) + " |" for line in [header, ["---"] * len(header), *rows])


def tightness() -> str:
    """Return bounds, their gap and their time for one noise and many numbers of reports."""
    noise = PlanarLaplace(LEVEL / RADIUS)
    rows = []
    for reports in (1, 5, 20, 100, 600, 10_000, 100_000):
        lower, upper = level_bounds(noise, reports=reports, radius=RADIUS, delta=DELTA)
        first = min(
            timed(partial(level_of_reports, noise, reports=reports, radius=RADIUS, delta=DELTA)) for _ in range(3)
        )
        start = time.perf_counter()
        level_of_reports(noise, reports=reports, radius=RADIUS, delta=DELTA)
        again = 1000 * (time.perf_counter() - start)
        rows.append(
            [
                f"{reports:,}",
                f"{reports * LEVEL:,.2f}",
                f"{lower:,.4f}",
                f"{upper:,.4f}",
                f"{(upper - lower) / upper:.0e}",
                f"{first:.0f} ms",
                f"{again:.2f} ms",
            ]
        )
    return table(["reports", "sum", "at least", "at most", "gap", "first call", "again"], rows)


def noises() -> str:
    """Return the mean error of each report, for one promise of all reports together."""
    rows = []
    for reports in (1, 5, 6, 10, 20, 100, 1000):
        best = partial(mechanism_for_reports, reports=reports, level=LEVEL, radius=RADIUS, delta=DELTA)
        laplace, gaussian = best(family="laplace"), best(family="gaussian")
        took = timed(best)
        errors = [2 * RADIUS * reports / LEVEL, laplace.mean_radius, gaussian.mean_radius]
        rows.append([f"{reports:,}", *(f"{error / 1000:,.2f} km" for error in errors), f"{took:.0f} ms"])
    return table(["reports", "Laplace, sum", "Laplace", "Gaussian", "time for both"], rows)


def summed(mechanism: Mechanism, reports: int) -> float:
    """Return the level without an accountant: levels add up, and deltas where there are any."""
    if mechanism.epsilon < math.inf:
        return reports * mechanism.epsilon * RADIUS
    return reports * level_of_reports(mechanism, reports=1, radius=RADIUS, delta=DELTA / reports)


def picture() -> None:
    """Draw what the n-th report costs: the sum, the accountant, and what an audit sees."""
    mpl.use("agg")
    laplace = PlanarLaplace(SMALL / RADIUS)
    mechanisms: dict[str, Mechanism] = {
        "Planar Laplace": laplace,
        "Gaussian of the same mean error": PlanarGaussian(laplace.mean_radius / math.sqrt(math.pi / 2)),
        "Planar geometric on 41 x 41 cells of 200 m": planar_geometric(
            Grid(-4000, -4000, cell=200, columns=41, rows=41), epsilon=SMALL / RADIUS
        ),
    }
    figure, panels = plt.subplots(1, 3, figsize=(12, 4), sharey=True, layout="constrained")
    for panel, (name, mechanism) in zip(panels, mechanisms.items(), strict=True):
        promised = [level_bounds(mechanism, reports=n, radius=RADIUS, delta=DELTA) for n in COUNTS]
        seen = [
            audit_reports(
                mechanism,
                Promise(level=bound[1], radius=RADIUS, delta=DELTA, reports=n),
                sequences=min(MOST, max(FEWEST, DRAWS // n)),
                rng=np.random.default_rng(n),
            )
            for n, bound in zip(COUNTS, promised, strict=True)
        ]
        for n, audited in zip(COUNTS, seen, strict=True):
            print(
                f"{name}: {n} reports, sum {summed(mechanism, n):.3f}, at most {audited.promise.level:.3f}, "
                f"seen {audited.level:.3f}"
            )
            if audited.refuted:
                raise SystemExit("an audit refutes the accountant")
        panel.plot(COUNTS, [summed(mechanism, n) for n in COUNTS], color="#b0b0b0", label="plain sum")
        lower, upper = zip(*promised, strict=True)
        panel.plot(COUNTS, upper, color="#2460c8", lw=2, label="accountant, at most")
        panel.fill_between(COUNTS, lower, upper, color="#2460c8", alpha=0.25)
        shown = [(n, audited.level) for n, audited in zip(COUNTS, seen, strict=True) if audited.level > 0]
        panel.plot(*zip(*shown, strict=True), "o", color="#d4500c", label="audit, at least (95 % sure)")
        panel.set(xscale="log", yscale="log", ylim=(0.03, 200), xlabel="reports", title=name)
        panel.grid(alpha=0.3)
    panels[0].set_ylabel(f"level within {RADIUS:g} m, up to delta {DELTA:g}")
    panels[0].legend(loc="upper left", frameon=False)
    figure.savefig(PICTURE, dpi=120)


def main() -> None:
    """Measure, print, write."""
    page = f"""# What many reports cost together

Planar Laplace noise of ln 4 within 200 m, delta 1e-5. The sum is that of the budgets; the accountant's answer lies
between "at least" and "at most". The first call finds nothing kept from earlier ones.

{tightness()}

The mean error of each report, where all of them together keep ln 4 within 200 m up to delta 1e-5:

{noises()}
"""
    print(page)
    OUT.write_text(page)
    picture()


if __name__ == "__main__":
    main()
