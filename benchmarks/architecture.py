"""Draw the packages of geoind and who imports whom, from the imports themselves: docs/figures/architecture.svg.

python3 dev.py bench architecture

An arrow that follows from two others is left out: cli -> tables says nothing new beside cli -> files -> tables.
"""

import argparse
import tomllib
from pathlib import Path
from random import Random

import grimp
import matplotlib as mpl
from matplotlib import pyplot as plt

ROOT = Path(__file__).resolve().parent.parent
FIGURE = ROOT / "docs" / "figures" / "architecture.svg"

FOUNDATION = {"errors", "version", "arrays", "parallel", "extras", "randomness", "distances"}
"""What nearly everything uses: drawn as rows, without arrows to them."""

Edges = dict[str, set[str]]


def rows() -> list[list[str]]:
    """Return the rows of the house, top first, as the import linter checks them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers: list[str] = settings["contracts"][0]["layers"]
    return [[name.strip(" ()") for name in layer.split("|")] for layer in layers if layer != "__main__"]


def imports(packages: list[str]) -> Edges:
    """Return which package imports which other."""
    graph = grimp.build_graph("geoind")
    within = {name: {f"geoind.{name}"} | graph.find_descendants(f"geoind.{name}") for name in packages}
    owner = {module: name for name, modules in within.items() for module in modules}
    edges: Edges = {name: set() for name in packages}
    for name, modules in within.items():
        for module in modules:
            found = {owner[other] for other in graph.find_modules_directly_imported_by(module) if other in owner}
            edges[name] |= found - {name}
    return edges


def reduced(edges: Edges) -> Edges:
    """Return the arrows that do not follow from others."""

    def reachable(start: str) -> set[str]:
        return edges[start] | {far for near in edges[start] for far in reachable(near)}

    return {
        name: {other for other in others if not any(other in reachable(near) for near in others - {other})}
        for name, others in edges.items()
    }


def arranged(levels: list[list[str]], edges: Edges) -> dict[str, tuple[float, float]]:
    """Return where each box stands: of many random arrangements the one whose arrows cross fewest boxes."""
    random = Random(1)
    arrows = [(name, other) for name, others in edges.items() for other in sorted(others - FOUNDATION)]
    height = {name: len(levels) - 1 - row for row, level in enumerate(levels) for name in level}
    centred = {
        name: 1.5 * (number - (len(level) - 1) / 2) for level in levels for number, name in enumerate(level)
    }

    def cost(x: dict[str, float]) -> tuple[int, float]:
        crossed = 0
        for start, end in arrows:
            for name in x:
                if height[end] < height[name] < height[start]:
                    share = (height[name] - height[end]) / (height[start] - height[end])
                    crossed += abs(x[end] + share * (x[start] - x[end]) - x[name]) < 0.75
        return crossed, sum(abs(x[start] - x[end]) for start, end in arrows)

    best = dict(centred)
    for _ in range(20_000):
        tried = dict(best)
        for name in random.sample([name for name in tried if name not in FOUNDATION], 2):
            tried[name] = random.choice([-2.0, -1.0, 0.0, 1.0, 2.0])
        best = min(best, tried, key=cost)
    return {name: (x, float(height[name])) for name, x in best.items()}


def draw(levels: list[list[str]], edges: Edges) -> None:
    """Write the picture."""
    mpl.rcParams["svg.hashsalt"] = "architecture"
    figure, axes = plt.subplots(figsize=(7, 0.62 * len(levels)))
    place = arranged(levels, edges)
    for name, others in edges.items():
        for other in sorted(others - FOUNDATION):
            axes.annotate(
                "",
                xy=place[other],
                xytext=place[name],
                arrowprops={"arrowstyle": "->", "color": "#8a8f98", "shrinkA": 13, "shrinkB": 13, "lw": 1},
            )
    for name, (x, y) in place.items():
        face = "#eef1f5" if name in FOUNDATION else "#dbe9f6"
        box = {"boxstyle": "round,pad=0.45", "facecolor": face, "edgecolor": "#3b5b7a", "linewidth": 0.8}
        axes.text(x, y, name, ha="center", va="center", fontsize=10, bbox=box)
    axes.set_xlim(-3, 3)
    axes.set_ylim(-0.6, len(levels) - 0.4)
    axes.axis("off")
    figure.savefig(FIGURE, bbox_inches="tight", metadata={"Date": None})
    print(f"wrote {FIGURE.relative_to(ROOT)}")


def main() -> None:
    """Draw the tree of today."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    levels = rows()
    draw(levels, reduced(imports([name for level in levels for name in level])))


if __name__ == "__main__":
    main()
