"""The figures of the evaluation, titled by their finding, readable in black and white and by the colour-blind."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from geoind.arrays import FloatArray
from geoind.channels.channel import Channel
from geoind.channels.priors import Prior
from geoind.errors import plural
from geoind.evaluation.setting import Setting
from geoind.extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

__all__ = ["STYLES", "draw_bars", "draw_channels", "draw_curves", "draw_priors", "draw_scatter", "new_figure"]

INK = "#222222"
# The colours of Okabe and Ito are distinct for colour-blind readers; hatches and markers differ as well.
STYLES: dict[str, dict[str, Any]] = {
    "cloaking": {"color": "#999999", "hatch": "", "marker": "s", "linestyle": ":"},
    "optimal for uniform": {"color": "#E69F00", "hatch": "///", "marker": "D", "linestyle": "-."},
    "planar Laplace": {"color": "#0072B2", "hatch": "", "marker": "o", "linestyle": "-"},
    "remapped Laplace": {"color": "#56B4E9", "hatch": "...", "marker": "v", "linestyle": (0, (5, 1))},
    "optimal for the prior": {"color": "#F0E442", "hatch": "xx", "marker": "*", "linestyle": "-."},
    "optimal geo-ind": {"color": "#009E73", "hatch": "\\\\\\", "marker": "P", "linestyle": "--"},
    "planar geometric": {"color": "#CC79A7", "hatch": "--", "marker": "^", "linestyle": (0, (1, 1))},
    "exponential": {"color": "#D55E00", "hatch": "++", "marker": "<", "linestyle": (0, (3, 1, 1, 1))},
    "randomised response": {"color": "#000000", "hatch": "oo", "marker": "x", "linestyle": (0, (5, 3))},
    "Gaussian": {"color": "#7F3C8D", "hatch": "||", "marker": ">", "linestyle": (0, (8, 2))},
    "dummies": {"color": "#FFFFFF", "hatch": "oo", "marker": "h", "linestyle": (0, (2, 4))},
}


def new_figure(width: float, height: float, title: str, **layout: Any) -> "Figure":
    """Return an empty figure with a title; pyplot's global state is not used."""
    require("a figure", "matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white", **layout)
    FigureCanvasAgg(figure)
    # Titles contain names of files, where a dollar sign does not start a formula.
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold", color=INK, parse_math=False)
    return figure


def _square(axes: "Axes", values: FloatArray, setting: Setting, *, largest: float | None = None) -> Any:
    """Draw one value per cell, zones as thin lines, zero as white."""
    from matplotlib.colors import PowerNorm

    grid = setting.grid
    table = np.ma.masked_less_equal(values.reshape(grid.rows, grid.columns), 0)
    image = axes.imshow(table, origin="lower", cmap="Blues", norm=PowerNorm(0.6, vmin=0, vmax=largest))
    axes.set_xticks(np.arange(0, grid.columns + 1, setting.zone[0]) - 0.5, labels=[])
    axes.set_yticks(np.arange(0, grid.rows + 1, setting.zone[1]) - 0.5, labels=[])
    axes.tick_params(length=0)
    axes.grid(color="#888888", linewidth=0.6)
    axes.set_axisbelow(False)
    return image


def draw_priors(setting: Setting, title: str = "Prior knowledge of the adversary") -> "Figure":
    """Return a figure of all priors on the grid; lines separate the cloaking zones."""
    names = list(setting.weights)
    columns = min(5, len(names))
    rows = math.ceil(len(names) / columns)
    figure = new_figure(max(4.2, 2.1 * columns), 2.35 * rows + 0.4, title)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for place in axes[len(names) :]:
        place.set_axis_off()
    for place, name in zip(axes, names, strict=False):
        mass = setting.prior(name).mass
        _square(place, mass, setting)
        place.set_title(
            f"{name}\n{plural(int(np.count_nonzero(mass)), 'cell')}", fontsize=9, color=INK, parse_math=False
        )
    return figure


def draw_bars(table: "DataFrame", *, mechanisms: Sequence[str], title: str) -> "Figure":
    """Return adversary errors as bars, a group for each prior; whiskers show the range over all optima."""
    priors = list(dict.fromkeys(table["prior"]))
    errors = table.set_index(["prior", "mechanism"])["adversary_error"]
    figure = new_figure(max(10.0, 1.15 * len(priors)), 4.3, title)
    axes = figure.subplots()
    shown = [name for name in mechanisms if (priors[0], name) in errors.index]
    width = 0.84 / len(shown)
    ranges: list[tuple[Any, FloatArray, FloatArray]] = []
    for place, name in enumerate(shown):
        style = STYLES[name]
        at = np.arange(len(priors)) + (place - (len(shown) - 1) / 2) * width
        height = np.array([errors[prior, name] for prior in priors])
        axes.bar(
            at, height, width, label=name, color=style["color"], hatch=style["hatch"], edgecolor=INK, linewidth=0.6
        )
        ends = [f"{name}, {end}" for end in ("least error", "most error")]
        if all((priors[0], end) in errors.index for end in ends):
            low, high = (np.array([errors[prior, end] for prior in priors]) for end in ends)
            ranges.append((at, low, high))
    top = 1.6 * axes.get_ylim()[1] if ranges else axes.get_ylim()[1]
    for at, low, high in ranges:
        axes.vlines(at, low, np.minimum(high, top), color=INK, linewidth=1.6, label="its range over all optima")
        axes.plot(np.tile(at, 2), np.concatenate([low, np.where(high <= top, high, np.nan)]), "_", color=INK)
        for x, height in zip(at[high > top], high[high > top], strict=True):
            axes.annotate(
                f"to {height:.0f}", (x, top), (0, 2), textcoords="offset points", ha="center", fontsize=8
            )
    axes.set_ylim(0, top)
    words = [name.replace(" ", "\n", 1) for name in priors]
    axes.set_xticks(np.arange(len(priors)), labels=words, fontsize=9, parse_math=False)
    axes.set_ylabel("adversary's expected error (m)")
    _plain_frame(axes)
    figure.legend(loc="outside lower center", ncols=min(5, len(shown) + 1), frameon=False, fontsize=9)
    return figure


def draw_channels(channels: Mapping[str, Channel], prior: Prior, setting: Setting, *, title: str) -> "Figure":
    """Return two rows of heat maps: reports of the middle cell, and the posterior after its report."""
    figure = new_figure(1.75 * len(channels), 4.5, title)
    axes = figure.subplots(2, len(channels), squeeze=False)
    middle = len(setting.grid) // 2
    for column, (name, channel) in enumerate(channels.items()):
        here = np.hypot(*(channel.outputs.xy - setting.grid.xy[middle]).T)
        cells = setting.grid.nearest(channel.outputs.xy)
        reports = np.zeros(len(setting.grid))
        np.add.at(reports, cells, channel.matrix[middle])
        axes[0, column].set_title(name, fontsize=9, color=INK)
        _square(axes[0, column], reports, setting)
        axes[0, column].set_xlabel(f"largest {reports.max():.2f}", fontsize=8)
        joint = channel.joint(prior)
        seen = int(np.where(joint.any(axis=0), here, np.inf).argmin())
        posterior = joint[:, seen] / joint[:, seen].sum()
        _square(axes[1, column], posterior, setting)
        axes[1, column].set_xlabel(f"largest {posterior.max():.2f}", fontsize=8)
    axes[0, 0].set_ylabel("reports of\nthe middle cell", fontsize=9)
    axes[1, 0].set_ylabel("posterior after\nthat report", fontsize=9)
    return figure


def draw_curves(curves: "DataFrame", *, title: str, mark: float | None = None) -> "Figure":
    """Return expected distance and adversary error against the measured epsilon, a line for each mechanism."""
    figure = new_figure(9.6, 4.2, title)
    left, right = figure.subplots(1, 2)
    for name, part in curves.groupby("mechanism", sort=False):
        style = {key: value for key, value in STYLES[str(name)].items() if key != "hatch"}
        for axes, column in ((left, "expected_loss"), (right, "adversary_error")):
            axes.plot(part["measured_epsilon"], part[column], label=name, markersize=4, linewidth=1.4, **style)
    for axes, what in ((left, "expected distance (m): cost"), (right, "adversary's expected error (m): privacy")):
        axes.set_xscale("log")
        axes.set_xlabel("measured epsilon (1/m)")
        axes.set_ylabel(what)
        axes.set_ylim(bottom=0)
        if mark is not None:
            axes.axvline(mark, color="#888888", linewidth=0.8, linestyle=":")
        _plain_frame(axes)
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    return figure


def draw_scatter(table: "DataFrame", *, prior: str, title: str) -> "Figure":
    """Return loss against adversary error under one prior: a point for each mechanism."""
    figure = new_figure(6.4, 4.4, title)
    axes = figure.subplots()
    for _, row in table[table["prior"] == prior].iterrows():
        if row["mechanism"] not in STYLES:
            continue
        style = STYLES[row["mechanism"]]
        axes.scatter(
            row["expected_loss"],
            row["adversary_error"],
            s=70,
            color=style["color"],
            marker=style["marker"],
            edgecolors=None if style["marker"] == "x" else INK,
            label=row["mechanism"],
        )
    axes.set_xlabel("expected distance (m): cost")
    axes.set_ylabel("adversary's expected error (m): privacy")
    limit = max(axes.get_xlim()[1], axes.get_ylim()[1])
    axes.plot([0, limit], [0, limit], color="#888888", linewidth=0.8, linestyle=":")
    axes.text(limit * 0.6, limit * 0.62, "error = loss", fontsize=8, color="#555555", rotation=38)
    _plain_frame(axes)
    figure.legend(loc="outside right upper", frameon=False, fontsize=9)
    return figure


def _plain_frame(axes: "Axes") -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
