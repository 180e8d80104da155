"""Small charts as inline SVG: curves, bars, squares and intervals, coloured by the style sheet of their page."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from geoind.pictures.page import fill

__all__ = ["CHART_STYLE", "bars", "curves", "intervals", "squares"]

WIDTH, HEIGHT = 640, 240
LEFT, BOTTOM, TOP, RIGHT = 52, 36, 14, 24


def curves(series: Mapping[str, Sequence[tuple[float, float]]], *, title: str, x: str, most: float) -> Markup:
    """Return a chart of shares between 0 and 1 over metres from 0 to `most`; at most two series, by name.

    Examples
    --------
    >>> "<polyline" in curves({"measured": [(0, 0), (100, 1)]}, title="Distances", x="metres", most=100)
    True
    """
    across, up = (WIDTH - LEFT - RIGHT) / most, HEIGHT - TOP - BOTTOM
    lines = [
        (
            name,
            " ".join(f"{LEFT + across * min(at, most):.1f},{TOP + up * (1 - share):.1f}" for at, share in points),
        )
        for name, points in series.items()
    ]
    ticks = [(LEFT + across * most * part / 4, f"{most * part / 4:,.0f}") for part in range(5)]
    levels = [(TOP + up * (1 - part / 4), f"{part * 25} %") for part in range(5)]
    return fill(
        CURVES,
        title=title,
        x=x,
        lines=lines,
        ticks=ticks,
        levels=levels,
        left=LEFT,
        right=WIDTH - RIGHT,
        width=WIDTH,
        height=HEIGHT,
    )


def bars(values: Sequence[tuple[str, float, str]], *, title: str) -> Markup:
    """Return a chart of (label, share, kind) bars; the kind "low" is drawn as a warning.

    Examples
    --------
    >>> "fewer than 10" in bars([("fewer than 10", 0.25, "low"), ("10 to 99", 0.75, "")], title="Persons")
    True
    """
    most = max((share for _, share, _ in values), default=0) or 1.0
    wide, up = (WIDTH - LEFT - RIGHT) / max(1, len(values)), HEIGHT - TOP - BOTTOM - 14
    drawn = [
        (LEFT + wide * (number + 0.1), TOP + 14 + up * (1 - share / most), up * share / most, label, kind, share)
        for number, (label, share, kind) in enumerate(values)
    ]
    return fill(BARS, title=title, bars=drawn, wide=wide, base=TOP + 14 + up, width=WIDTH, height=HEIGHT)


def squares(cells: Sequence[tuple[int, int, str]], *, title: str, scale: float, unit: str) -> Markup:
    """Return a map of (column, row, class) squares, north up, with a bar that is `scale` squares long.

    Examples
    --------
    >>> squares([(0, 0, "low"), (1, 0, "many")], title="Reports", scale=1, unit="1 km").count("<rect")
    3
    """
    columns = max((column for column, _, _ in cells), default=0) + 1
    rows = max((row for _, row, _ in cells), default=0) + 1
    side = min(12.0, (WIDTH - 2 * RIGHT) / columns)
    drawn = [(RIGHT + side * column, TOP + side * (rows - 1 - row), kind) for column, row, kind in cells]
    return fill(
        SQUARES,
        title=title,
        cells=drawn,
        side=side,
        below=TOP + side * rows + 12,
        long=scale * side,
        unit=unit,
        left=RIGHT,
        width=WIDTH,
        height=TOP + side * rows + 36,
    )


def intervals(rows: Sequence[tuple[str, Sequence[tuple[str, float, float, float]]]], *, title: str) -> Markup:
    """Return a chart with a row for each label: (kind, value, low, high) marks between 0 and 1 on a line.

    A value that is NaN has an interval only.

    Examples
    --------
    >>> intervals([("home", [("now", 0.2, 0.1, 0.3), ("none", 1, 1, 1)])], title="Attacks").count("<circle")
    2
    """
    left, step = 250, 24
    across = WIDTH - left - RIGHT
    drawn = [
        (
            label,
            TOP + step * (number + 0.6),
            [
                (kind, left + across * at, left + across * low, left + across * high)
                for kind, at, low, high in marks
            ],
        )
        for number, (label, marks) in enumerate(rows)
    ]
    ticks = [(left + across * part / 4, f"{part * 25} %") for part in range(5)]
    height = TOP + step * len(rows) + BOTTOM
    return fill(
        INTERVALS,
        title=title,
        rows=drawn,
        ticks=ticks,
        left=left,
        width=WIDTH,
        height=height,
        base=height - BOTTOM + 4,
        top=TOP,
    )


CURVES = """
<svg viewBox="0 0 {{ width }} {{ height }}" role="img" aria-label="{{ title }}">
{% for y, text in levels %}
<line class="grid" x1="{{ left }}" x2="{{ right }}" y1="{{ y }}" y2="{{ y }}"/>
<text class="end" x="{{ left - 6 }}" y="{{ y + 4 }}">{{ text }}</text>
{% endfor %}
{% for at, text in ticks %}<text class="mid" x="{{ at }}" y="{{ height - 20 }}">{{ text }}</text>{% endfor %}
<text class="mid" x="{{ (left + right) / 2 }}" y="{{ height - 4 }}">{{ x }}</text>
{% for name, points in lines %}
<polyline class="line{{ loop.index }}" points="{{ points }}"/>
<text class="line{{ loop.index }}" x="{{ right - 130 }}" y="{{ height - 60 - 16 * loop.index }}">{{ name }}</text>
{% endfor %}
</svg>
"""

BARS = """
<svg viewBox="0 0 {{ width }} {{ height }}" role="img" aria-label="{{ title }}">
{% for x, y, tall, label, kind, share in bars %}
<rect class="bar {{ kind }}" x="{{ x }}" y="{{ y }}" width="{{ wide * 0.8 }}" height="{{ tall }}"/>
<text class="mid" x="{{ x + wide * 0.4 }}" y="{{ y - 4 }}">{{ "%.0f" | format(100 * share) }} %</text>
<text class="mid" x="{{ x + wide * 0.4 }}" y="{{ base + 18 }}">{{ label }}</text>
{% endfor %}
</svg>
"""

SQUARES = """
<svg viewBox="0 0 {{ width }} {{ height }}" role="img" aria-label="{{ title }}">
{% for x, y, kind in cells %}
<rect class="cell {{ kind }}" x="{{ x }}" y="{{ y }}" width="{{ side }}" height="{{ side }}"/>
{% endfor %}
<rect class="scale" x="{{ left }}" y="{{ below }}" width="{{ long }}" height="3"/>
<text x="{{ left }}" y="{{ below + 18 }}">{{ unit }}</text>
</svg>
"""

INTERVALS = """
<svg viewBox="0 0 {{ width }} {{ height }}" role="img" aria-label="{{ title }}">
{% for at, text in ticks %}
<line class="grid" x1="{{ at }}" x2="{{ at }}" y1="{{ top }}" y2="{{ base }}"/>
<text class="mid" x="{{ at }}" y="{{ base + 16 }}">{{ text }}</text>
{% endfor %}
{% for label, y, marks in rows %}
<text class="end" x="{{ left - 8 }}" y="{{ y + 4 }}">{{ label }}</text>
{% for kind, at, low, high in marks %}
<line class="{{ kind }}" x1="{{ low }}" x2="{{ high }}" y1="{{ y }}" y2="{{ y }}"/>
{% if at == at %}<circle class="{{ kind }}" cx="{{ at }}" cy="{{ y }}" r="4"/>{% endif %}

{% endfor %}
{% endfor %}
</svg>
"""

CHART_STYLE = """
svg { width: 100%; max-width: 46rem; height: auto; font: 12px system-ui, sans-serif; display: block }
@media screen and (max-width: 36rem) { svg { min-width: 34rem } }
svg text { fill: var(--ink) } svg .mid { text-anchor: middle } svg .end { text-anchor: end }
.grid { stroke: var(--rule) } polyline { fill: none; stroke-width: 2 }
polyline.line1 { stroke: var(--one) } polyline.line2 { stroke: var(--two); stroke-dasharray: 6 4 }
svg text.line1 { fill: var(--one) } svg text.line2 { fill: var(--two) }
.bar { fill: var(--one) } .bar.low, .cell.low { fill: var(--two) } .scale { fill: var(--ink) }
.cell { stroke: var(--paper); stroke-width: 0.5 }
.cell.few { fill: var(--few) } .cell.some { fill: var(--some) } .cell.many { fill: var(--one) }
line.now { stroke: var(--one); stroke-width: 3 } circle.now { fill: var(--one) }
line.none { stroke: var(--two); stroke-width: 1 }
circle.none { fill: var(--paper); stroke: var(--two); stroke-width: 2 }
line.huge { stroke: var(--grey) } circle.huge { fill: var(--grey) }
"""
"""Colours are the variables --ink, --paper, --rule, --one, --two, --few, --some and --grey of the page."""
