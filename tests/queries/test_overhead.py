import math
import re
from pathlib import Path

import numpy as np
import pytest

from geoind import InvalidInputError, private_query
from geoind.queries import overhead, overhead_table, plot_retrieval_radius, retrieval_radius

EPSILON = math.log(4) / 200


@pytest.mark.parametrize(("level", "factor"), [(2, 30.9), (4, 10.8), (6, 7.7), (8, 6.4), (10, 5.6)], ids=str)
def test_the_area_factor_of_the_literature(level: int, factor: float) -> None:
    price = overhead(300, 0.95, math.log(level) / 200)
    assert price["area_factor"] == pytest.approx(factor, abs=0.07)
    assert price["extra_area"] == pytest.approx((price["area_factor"] - 1) * math.pi * 300**2)
    assert "results" not in price


def test_where_places_are_even_the_results_grow_as_the_area() -> None:
    rng = np.random.default_rng(2)
    places = rng.uniform([1.8, 48.5], [2.8, 49.2], (60_000, 2))
    users = rng.uniform([2.2, 48.8], [2.4, 48.9], (500, 2))
    price = overhead(300, 0.95, EPSILON, places=places, users=users, draws=1000)
    assert price["results"] == pytest.approx(60_000 * math.pi * 300**2 / (73_400 * 77_850), rel=0.1)
    assert price["extra_results"] == pytest.approx(price["results"] * (price["area_factor"] - 1), rel=0.1)


def test_simulated_results_agree_with_real_queries() -> None:
    rng = np.random.default_rng(4)
    places = rng.normal([2.3, 48.85], 0.01, (500, 2))
    user = [[2.3, 48.85]]
    price = overhead(300, 0.9, EPSILON, places=places, users=user, draws=3000)
    from geoind.queries.points_of_interest import distances_from

    counts, own = [], np.count_nonzero(distances_from(places, lat=48.85, lon=2.3) <= 300)
    for _ in range(400):
        query = private_query(lat=48.85, lon=2.3, radius=300, confidence=0.9, epsilon=EPSILON, rng=rng)
        counts.append(np.count_nonzero(distances_from(places, lat=query.lat, lon=query.lon) <= query.radius) - own)
    assert price["extra_results"] == pytest.approx(np.mean(counts), rel=0.1)


def test_the_table_has_a_row_per_pair_and_the_radius_falls_with_epsilon() -> None:
    table = overhead_table(300)
    assert len(table) == 25
    for _, group in table.groupby("confidence"):
        assert group["retrieval_radius"].is_monotonic_decreasing
    for _, group in table.groupby("epsilon"):
        assert group["retrieval_radius"].is_monotonic_increasing
    row = table[(table.epsilon == EPSILON) & (table.confidence == 0.95)].iloc[0]
    assert row.retrieval_radius == retrieval_radius(300, 0.95, EPSILON)


def test_the_plot_shows_the_radius_from_both_sides() -> None:
    figure = plot_retrieval_radius(300, epsilons=[0.005, 0.01], confidences=[0.9])
    left, right = figure.axes
    assert left.get_xlim() == (0, 1)
    assert len(left.lines) == 3  # two epsilons and the area of interest
    assert np.asarray(left.lines[0].get_ydata())[-1] == pytest.approx(retrieval_radius(300, 0.995, 0.005))
    assert right.get_xlabel() == "epsilon (per metre)"


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ((0, 0.95, EPSILON), {}),
        ((300, 1.0, EPSILON), {}),
        ((300, 0.95, -1), {}),
        ((300, 0.95, EPSILON), {"places": []}),
        ((300, 0.95, EPSILON), {"places": [[2, 48]], "users": [[2, 99]]}),
        ((300, 0.95, EPSILON), {"places": [[2, 48]], "draws": 0}),
    ],
    ids=str,
)
def test_bad_arguments_have_their_error(arguments: tuple[float, ...], options: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError):
        overhead(*arguments, **options)  # type: ignore[arg-type]


def test_the_table_of_the_docs_is_what_the_code_says() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "queries.md").read_text()
    rows = re.findall(r"^\| ln (\d+) \| ([\d,]+) m \| ([\d.]+) \|$", page, re.MULTILINE)
    assert len(rows) == 5
    for level, radius, factor in rows:
        price = overhead(300, 0.95, math.log(int(level)) / 200)
        assert (f"{price['retrieval_radius']:,.0f}", f"{price['area_factor']:.1f}") == (radius, factor)
