import base64
import io
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot
from PIL import Image

from geoind import (
    Channel,
    Grid,
    InvalidInputError,
    Places,
    PlanarLaplace,
    Prior,
    Projection,
    audit,
    estimate_population,
    min_loss_given_epsilon,
    planar_geometric,
)
from geoind.curator import ReleasedCounts, release_counts
from geoind.evaluation import synthetic_city
from geoind.pictures.cells import SMALL, colour_names, density_layer, thumbnail

CITY = synthetic_city(16)
CAFES = Prior(Places([[0, 0], [100, 0], [500, 500]]), [0.5, 0.25, 0.25])
GRID = Grid(0, 0, cell=100, columns=5, rows=4)
CHANNEL = planar_geometric(GRID, epsilon=0.01)
VALUES: dict[str, Callable[[], Any]] = {
    "prior": lambda: CITY.prior,
    "prior over places": lambda: CAFES,
    "channel": lambda: CHANNEL,
    "optimal channel": lambda: min_loss_given_epsilon(
        Prior.uniform(Grid(0, 0, cell=100, columns=3, rows=3)), epsilon=0.01
    ),
    "audit": lambda: audit(PlanarLaplace(0.01), draws=2000, rng=1),
    "estimate": lambda: estimate_population(
        PlanarLaplace(0.01).sample(CITY.sample_xy(500, rng=1), rng=2), 0.01, CITY.grid
    ),
    "release": lambda: release_counts(CITY.sample_xy(50, rng=1), CITY.grid, epsilon=1.0, person=range(50), rng=1),
}


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    pyplot.close("all")


@pytest.mark.parametrize("name", VALUES)
def test_a_value_is_a_line_and_not_its_numbers_and_a_small_card_in_a_notebook(name: str) -> None:
    value = VALUES[name]()
    line = repr(value)
    assert line.startswith(type(value).__name__ + "(")
    assert line.endswith(")")
    assert "\n" not in line
    assert "array" not in line
    assert len(line) < 250
    page = value._repr_html_()
    assert page.count("<div") == page.count("</div>")
    assert page.count("<tr>") == page.count("</tr>") >= 2
    assert len(page) < 40_000
    assert ("data:image/png" in page) == (name not in ("prior over places", "audit"))


def test_a_card_is_text_even_where_words_look_like_html() -> None:
    class Street(Grid):
        def __repr__(self) -> str:
            return "<script>"

    assert "<script>" not in Prior.uniform(Street(0, 0, cell=1, columns=1, rows=1))._repr_html_()


def test_the_card_of_a_large_channel_does_not_wait_for_its_epsilon() -> None:
    large = Channel.deterministic(CITY.grid, CITY.grid, np.arange(256)) @ planar_geometric(CITY.grid, epsilon=0.01)
    wide = planar_geometric(Grid(0, 0, cell=100, columns=20, rows=20), epsilon=0.01)
    assert "measured epsilon" in large._repr_html_()
    assert "measured epsilon" not in wide._repr_html_()
    assert "epsilon" not in vars(wide)


def test_the_picture_of_a_prior_has_its_densities_where_its_cells_are() -> None:
    mass = np.zeros(20)
    mass[7] = 1
    [image] = Prior(GRID, mass).plot().images
    shown = np.asarray(image.get_array())
    assert np.argwhere(shown > 0).tolist() == [[1, 2]]
    assert shown.max() == 1.0
    assert image.get_extent() == pytest.approx([-0.05, 0.45, -0.05, 0.35])


def test_a_picture_goes_where_it_is_asked_to() -> None:
    axes = pyplot.subplots()[1]
    assert CITY.prior.plot(axes, largest=0.5) is axes
    assert axes.images[0].norm.vmax == 0.5


def test_places_are_dots_of_their_mass() -> None:
    dots: Any
    [dots] = CAFES.plot().collections
    assert np.allclose(dots.get_sizes() / dots.get_sizes().max(), [1, 0.5, 0.5])
    assert np.allclose(dots.get_offsets(), CAFES.sites.xy / 1000)


def test_the_picture_of_a_channel_is_the_row_of_its_truth() -> None:
    axes = CHANNEL.plot(3)
    assert np.allclose(np.asarray(axes.images[0].get_array()).ravel(), CHANNEL.matrix[3])
    assert np.allclose(axes.lines[0].get_xydata(), GRID.xy[[3]] / 1000)
    assert re.fullmatch(r"reports of input (7|12)", CHANNEL.plot().get_title())
    with pytest.raises(InvalidInputError, match="0 to 19"):
        CHANNEL.plot(20)


def test_the_picture_of_a_release_has_its_counts_and_no_negative_ones() -> None:
    counts = np.arange(20) - 5
    [image] = ReleasedCounts(GRID, counts, 1.0, 1).plot(largest=7.0).images
    assert np.asarray(image.get_array()).ravel().tolist() == np.maximum(counts, 0).tolist()
    assert image.norm.vmax == 7.0
    assert ReleasedCounts(GRID, -np.ones(20, int), 1.0, 1).plot().images


def test_the_picture_of_an_audit_marks_what_breaks_the_promise() -> None:
    kept = VALUES["audit"]()
    colours = [bar.get_facecolor() for bar in kept.plot().patches]
    assert len(colours) == len(kept.findings)
    assert len(set(colours)) == 1
    broken = audit(PlanarLaplace(0.02), epsilon=0.01, draws=20_000, rng=1).plot()
    assert len({bar.get_facecolor() for bar in broken.patches}) == 2
    assert np.asarray(broken.lines[0].get_xdata())[0] == 0.01


@pytest.mark.slow
def test_a_map_shows_the_cells_without_asking_a_server() -> None:
    for view in (CITY.prior.explore(CITY.projection), CHANNEL.explore(Projection(2.35, 48.86), 3)):
        page = view.get_root().render()
        assert "data:image/png" in page
        assert "tile" not in page.lower().replace("tiles: null", "")
    with pytest.raises(InvalidInputError, match="over a Grid, not Places"):
        CAFES.explore(CITY.projection)


def test_a_thumbnail_is_small_however_large_the_grid_is() -> None:
    wide = synthetic_city(300)
    png = thumbnail(wide.grid, wide.prior.mass)
    assert png is not None
    assert int.from_bytes(png[16:20]) <= SMALL
    assert len(png) < 20_000


def test_the_colours_of_a_legend_are_those_of_the_cells() -> None:
    masses = np.array([0.0, 1, 4, 9, 16, 25, 36]) / 36
    grid = Grid(0, 0, cell=100, columns=7, rows=1)
    layer = density_layer(grid, masses, Projection(0, 0), pixels=70, opacity=0.6, name="people")
    picture = Image.open(io.BytesIO(base64.b64decode(layer.url.partition(",")[2]))).convert("RGBA")
    cells = np.asarray(picture)[picture.height // 2, 5::10].tolist()
    # The legend has equal steps of the square root, from none to the largest.
    for cell, name in zip(cells, colour_names(7, opacity=0.6), strict=True):
        *colour, alpha = map(int, re.findall(r"\d+", name))
        assert cell[:3] == pytest.approx(colour, abs=1)
        assert 100 * cell[3] / 255 == pytest.approx(alpha, abs=1)
