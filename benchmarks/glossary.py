"""Draw the picture of level and radius in docs/glossary.md.

python3 dev.py bench glossary
"""

import argparse
import math
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from geoind import PlanarLaplace
from geoind.maps import REPORT, TRUTH

FIGURE = Path(__file__).resolve().parent.parent / "docs" / "figures" / "level-and-radius.svg"
LEVEL, RADIUS = math.log(4), 200.0
SHOWN = 1000.0
"""Metres from the middle to the edges of the map."""


def draw_map(axes: Axes) -> None:
    """Draw a true location, the radius around it, and 300 reports of it."""
    reports = PlanarLaplace(LEVEL / RADIUS).sample(np.zeros((300, 2)), rng=7)
    reports = reports[(np.abs(reports) < 0.97 * SHOWN).all(axis=1)]
    axes.scatter(
        reports[:, 0], reports[:, 1], s=9, color=REPORT, alpha=0.45, linewidths=0, label="300 reports of x"
    )
    angle = np.linspace(0, 2 * np.pi, 200)
    axes.plot(RADIUS * np.cos(angle), RADIUS * np.sin(angle), color=TRUTH, lw=1.8, label="radius, 200 m")
    axes.scatter([0, RADIUS], [0, 0], s=60, color=[TRUTH, "white"], edgecolors=TRUTH, linewidths=1.8, zorder=3)
    for name, x in (("x", -30), ("x'", RADIUS + 30)):
        axes.annotate(name, (x, 24), fontsize=14, color=TRUTH, ha="right" if x < 0 else "left", weight="bold")
    axes.set(
        xlim=(-SHOWN, SHOWN), ylim=(-SHOWN, SHOWN), aspect="equal", xlabel="metres east", ylabel="metres north"
    )
    axes.set_title("A true location x, and a place x' at the radius")
    axes.legend(loc="upper left", framealpha=1)


def draw_factors(axes: Axes) -> None:
    """Draw by which factor a report changes the odds between two places, over their distance."""
    distance = np.linspace(0, 600, 200)
    axes.plot(distance, np.exp(LEVEL / RADIUS * distance), color=REPORT, lw=2.5)
    axes.plot([RADIUS, RADIUS, 0], [1, 4, 4], color=TRUTH, lw=1.8, ls="--")
    axes.scatter([RADIUS], [4], s=60, color=TRUTH, zorder=3)
    axes.annotate("the radius: 200 m", (RADIUS + 12, 1.12), color=TRUTH, fontsize=12)
    axes.annotate("e^level = 4", (12, 4.3), color=TRUTH, fontsize=12)
    axes.annotate(
        "epsilon = level / radius\n= ln 4 / 200 m", (330, 9.0), ha="left", va="top", color=REPORT, fontsize=12
    )
    axes.set(yscale="log", xlim=(0, 600), ylim=(1, 70), xlabel="distance between two places (m)")
    axes.set_yticks([1, 2, 4, 8, 16, 32, 64], labels=["1", "2", "4", "8", "16", "32", "64"])
    axes.minorticks_off()
    axes.set_ylabel("largest factor on the odds")
    axes.set_title("How much a report changes the odds, at most")
    axes.grid(alpha=0.3)


def main() -> None:
    """Write the picture."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    figure = Figure(figsize=(11, 4.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_map(left)
    draw_factors(right)
    figure.savefig(FIGURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
