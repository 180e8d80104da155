"""The figures of the evaluation, titled by their finding, readable in black and white and by the colour-blind."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from geoind.arrays import FloatArray
from geoind.channels.channel import Channel
from geoind.channels.priors import Prior
from geoind.errors import plural
from geoind.evaluation.contenders import BUILT_IN
from geoind.evaluation.setting import Setting
from geoind.extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

__all__ = [
    "STYLES",
    "draw_bars",
    "draw_channels",
    "draw_curves",
    "draw_priors",
    "draw_scatter",
    "new_figure",
    "styles_of",
]

INK = "#222222"
COST, PRIVACY = "expected distance (m): cost", "adversary's expected error (m): privacy"
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
OWN_COLOURS = ("#882255", "#44AA99", "#AA4499", "#661100")
OWN_MARKERS = ("d", "p", "X", "8", "H")


def styles_of(mechanisms: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the style of each mechanism that is drawn: the library's, then those of one's own.

    "optimal for uniform, most error" and the like are drawn as a range of "optimal for uniform".
    """
    names = list(dict.fromkeys(mechanisms))
    own = [name for name in names if name not in BUILT_IN]
    new = {
        name: {"color": colour, "hatch": "**", "marker": marker, "linestyle": (0, (4, 1, 1, 1, 1, 1))}
        for name, colour, marker in zip(own, cycle(OWN_COLOURS), cycle(OWN_MARKERS), strict=False)
    }
    return {name: style for name, style in STYLES.items() if name in names} | new


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
    styles = styles_of(table["mechanism"])
    shown = [name for name in mechanisms if name in styles]
    width = 0.84 / len(shown)
    ranges: list[tuple[Any, FloatArray, FloatArray]] = []
    for place, name in enumerate(shown):
        style = styles[name]
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
    _legend(figure, axes, loc="outside lower center", ncols=min(5, len(shown) + 1))
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
        np.add.at(reports, cells, channel.rows[middle])
        axes[0, column].set_title(name, fontsize=9, color=INK, parse_math=False, wrap=True)
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


def draw_curves(curves: "DataFrame", *, title: str) -> "Figure":
    """Return expected distance and adversary error against the measured epsilon, a line for each mechanism."""
    figure = new_figure(9.6, 4.2, title)
    left, right = figure.subplots(1, 2)
    styles = styles_of(curves["mechanism"])
    for name, part in curves.groupby("mechanism", sort=False):
        style = {key: value for key, value in styles[str(name)].items() if key != "hatch"}
        for axes, column in ((left, "expected_loss"), (right, "adversary_error")):
            axes.plot(part["measured_epsilon"], part[column], label=name, markersize=4, linewidth=1.4, **style)
    for axes, what in ((left, COST), (right, PRIVACY)):
        axes.set_xscale("log")
        axes.set_xlabel("measured epsilon (1/m)")
        axes.set_ylabel(what)
        axes.set_ylim(bottom=0)
        _plain_frame(axes)
    _legend(figure, left, loc="outside lower center", ncols=5)
    return figure


def draw_scatter(table: "DataFrame", *, title: str) -> "Figure":
    """Return cost against privacy, a panel for each way of equalising.

    A large mark is the mean of a mechanism over the priors, a small one is a single prior.
    """
    ways = list(dict.fromkeys(table["equalised"]))
    figure = new_figure(4.4 * len(ways) + 2.4, 4.6, title)
    panels = figure.subplots(1, len(ways), squeeze=False, sharex=True, sharey=True)[0]
    for axes, way in zip(panels, ways, strict=True):
        part = table[table["equalised"] == way]
        for name, style in styles_of(part["mechanism"]).items():
            rows = part.loc[part["mechanism"] == name, ["expected_loss", "adversary_error"]].dropna()
            look = {"color": style["color"], "marker": style["marker"]}
            edge = {} if style["marker"] == "x" else {"edgecolors": INK}
            if len(rows):
                axes.scatter(*rows.to_numpy().T, s=9, alpha=0.45, **look)
                axes.scatter(*rows.mean(), s=75, label=name, zorder=3, **look, **edge)
        axes.set_xlabel(COST)
        axes.set_title(f"equal under {way}", fontsize=9, color=INK)
        axes.axline((0, 0), slope=1, color="#888888", linewidth=0.8, linestyle=":")
        _plain_frame(axes)
    panels[0].set_ylabel(PRIVACY)
    _legend(figure, panels[0], loc="outside right upper")
    return figure


def _legend(figure: "Figure", axes: "Axes", **place: Any) -> None:
    """Add the legend of some axes; the names of mechanisms are no formulas."""
    legend = figure.legend(*axes.get_legend_handles_labels(), frameon=False, fontsize=9, **place)
    for text in legend.get_texts():
        text.set_parse_math(False)


def _plain_frame(axes: "Axes") -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
