"""The pictures show the numbers that they are given."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from geoind import Channel, Grid
from geoind.evaluation import Setting
from geoind.evaluation.figures import (
    STYLES,
    draw_bars,
    draw_channels,
    draw_curves,
    draw_priors,
    draw_scatter,
    new_figure,
    styles_of,
)

GRID = Grid(0, 0, cell=100, columns=3, rows=2)
SETTING = Setting(GRID, weights={"uniform": np.ones(6), "a corner": [2, 1, 0, 1, 0, 0]}, zone=(3, 1))
TABLE = pd.DataFrame(
    {
        "prior": ["uniform", "uniform", "a corner", "a corner"],
        "mechanism": ["cloaking", "planar Laplace"] * 2,
        "expected_loss": [100.0, 120.0, 90.0, 80.0],
        "adversary_error": [70.0, 110.0, 10.0, 40.0],
    }
)


def test_a_figure_has_its_title_and_leaves_pyplot_alone() -> None:
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    assert new_figure(4, 3, "What it shows").get_suptitle() == "What it shows"
    assert plt.get_fignums() == before


def test_priors_are_drawn_cell_by_cell_and_empty_cells_are_left_white() -> None:
    figure = draw_priors(SETTING)
    assert [axes.get_title() for axes in figure.axes] == ["uniform\n6 cells", "a corner\n3 cells"]
    for axes, name in zip(figure.axes, SETTING.weights, strict=True):
        shown: Any = axes.images[0].get_array()
        mass = SETTING.prior(name).mass
        np.testing.assert_allclose(np.asarray(shown.filled(0)).ravel(), mass)
        np.testing.assert_array_equal(np.ma.getmaskarray(shown).ravel(), mass == 0)
        # Zones are rows of three cells here: two lines across the columns, three across the rows.
        assert (len(axes.get_xticks()), len(axes.get_yticks())) == (2, 3)


def test_six_priors_take_two_rows_and_no_empty_frame_is_left() -> None:
    many = Setting(GRID, weights={f"prior {number}": np.ones(6) for number in range(6)}, zone=(3, 1))
    figure = draw_priors(many)
    assert sum(axes.axison for axes in figure.axes) == 6
    assert len(figure.axes) == 10


def test_bars_are_as_high_as_the_errors_and_grouped_by_prior() -> None:
    (axes,) = draw_bars(TABLE, mechanisms=["cloaking", "planar Laplace", "dummies"], title="Bars").axes
    groups: list[Any] = list(axes.containers)
    bars = {str(group.get_label()): group.patches for group in groups}
    assert {name: [bar.get_height() for bar in some] for name, some in bars.items()} == {
        "cloaking": [70.0, 10.0],
        "planar Laplace": [110.0, 40.0],
    }
    for group in range(2):
        spots = [some[group].get_x() + some[group].get_width() / 2 for some in bars.values()]
        assert np.mean(spots) == pytest.approx(group)
        assert spots == sorted(spots)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["uniform", "a\ncorner"]
    assert axes.get_ylim()[0] == 0


def test_a_range_over_many_optima_is_a_line_and_one_beyond_the_picture_is_said() -> None:
    ends = [
        ("uniform", "least error", 50.0),
        ("uniform", "most error", 90.0),
        ("a corner", "least error", 5.0),
        ("a corner", "most error", 4000.0),
    ]
    more = pd.DataFrame(
        {
            "prior": [prior for prior, _, _ in ends],
            "mechanism": [f"cloaking, {end}" for _, end, _ in ends],
            "adversary_error": [error for _, _, error in ends],
        }
    )
    (axes,) = draw_bars(pd.concat([TABLE, more]), mechanisms=["cloaking"], title="Ranges").axes
    (lines,) = axes.collections
    top = axes.get_ylim()[1]
    spans = [np.asarray(path.vertices)[:, 1].tolist() for path in lines.get_paths()]
    assert spans == [[50.0, 90.0], [5.0, top]]
    assert [text.get_text() for text in axes.texts] == ["to 4000"]
    assert 90 < top < 200


def test_channels_are_drawn_as_reports_of_the_middle_and_as_what_they_tell() -> None:
    exact, silent = Channel(GRID, GRID, np.eye(6)), Channel(GRID, GRID, np.full((6, 6), 1 / 6))
    prior = SETTING.prior("a corner")
    figure = draw_channels({"exact": exact, "silent": silent}, prior, SETTING, title="Channels")
    assert [axes.get_title() for axes in figure.axes[:2]] == ["exact", "silent"]
    said = [axes.get_xlabel() for axes in figure.axes]
    # Reports of cell 3 above; below, the belief: sure after the truth, the prior after anything else.
    assert said == ["largest 1.00", "largest 0.17", "largest 1.00", "largest 0.50"]
    beliefs = [np.asarray(axes.images[0].get_array().filled(0)).ravel() for axes in figure.axes[2:]]  # type: ignore[union-attr]
    np.testing.assert_allclose(beliefs[0], [0, 0, 0, 1, 0, 0])
    np.testing.assert_allclose(beliefs[1], prior.mass)


def test_curves_are_lines_over_the_measured_epsilon() -> None:
    curves = pd.DataFrame(
        {
            "mechanism": ["cloaking", "cloaking", "Gaussian", "Gaussian"],
            "measured_epsilon": [0.01, 0.02, 0.01, 0.03],
            "expected_loss": [200.0, 100.0, 150.0, 50.0],
            "adversary_error": [90.0, 60.0, 80.0, 40.0],
        }
    )
    left, right = draw_curves(curves, title="Curves").axes
    for axes, column in ((left, "expected_loss"), (right, "adversary_error")):
        lines = {str(line.get_label()): line for line in axes.lines}
        for name, part in curves.groupby("mechanism"):
            np.testing.assert_array_equal(lines[str(name)].get_xdata(), part["measured_epsilon"])
            np.testing.assert_array_equal(lines[str(name)].get_ydata(), part[column])
        assert (axes.get_xscale(), axes.get_ylim()[0]) == ("log", 0)


def test_a_scatter_has_the_mean_of_each_mechanism_and_leaves_out_what_failed() -> None:
    ends = TABLE.assign(mechanism="optimal for uniform, least error")
    failed = TABLE[:1].assign(mechanism="mine", adversary_error=np.nan)
    both = pd.concat([TABLE, ends, failed]).assign(equalised="uniform")
    (axes,) = draw_scatter(both, title="Cost and privacy").axes
    labelled = [dots for dots in axes.collections if not str(dots.get_label()).startswith("_")]
    points = {str(dots.get_label()): dots.get_offsets().tolist() for dots in labelled}  # type: ignore[union-attr]
    assert points == {"cloaking": [[95.0, 40.0]], "planar Laplace": [[100.0, 75.0]]}


def test_mechanisms_of_ones_own_have_styles_of_their_own() -> None:
    styles = styles_of([*TABLE["mechanism"], "optimal for uniform, most error", "mine", "yours"])
    assert list(styles) == ["cloaking", "planar Laplace", "mine", "yours"]
    assert (
        len({style["marker"] for style in [*STYLES.values(), styles["mine"], styles["yours"]]}) == len(STYLES) + 2
    )


def test_every_mechanism_is_distinct_without_colour() -> None:
    for key in ("marker", "color"):
        assert len({style[key] for style in STYLES.values()}) == len(STYLES)
