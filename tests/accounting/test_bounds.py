import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoind import (
    Mechanism,
    PlanarGaussian,
    PlanarLaplace,
)
from geoind.accounting.reports import delta_of_reports, level_bounds, level_of_reports
from tests.accounting.test_reports import LN4, NOISE


@pytest.mark.parametrize("reports", [2, 30, 3000, 100_000])
@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-12, 1e-100])
def test_bounds_are_close_however_many_reports_and_however_small_delta(reports: int, delta: float) -> None:
    lower, upper = level_bounds(NOISE, reports=reports, radius=200, delta=delta)
    assert 0 < lower <= upper <= reports * LN4
    # At the very end of the sum's range the grid itself shows.
    assert upper - lower < (5e-5 if upper < 0.9 * reports * LN4 else 2e-3) * upper


def test_noises_of_very_different_size_fit_on_one_grid() -> None:
    mixture: dict[Mechanism, int] = {PlanarLaplace(0.01): 1, PlanarLaplace(1e-6): 1000, PlanarGaussian(20.0): 2}
    lower, upper = level_bounds(mixture, radius=200, delta=1e-5)
    alone = level_of_reports(PlanarGaussian(20.0), reports=2, radius=200, delta=1e-5)
    assert alone < upper < alone + 2 + 0.2
    assert upper - lower < 1e-4 * upper


def test_the_order_and_the_grouping_of_a_mixture_do_not_count() -> None:
    wide, narrow = PlanarLaplace(0.001), PlanarLaplace(0.01)
    one = level_of_reports({wide: 7, narrow: 5}, radius=200, delta=1e-6)
    other = level_of_reports([(narrow, 2), (wide, 7), (narrow, 3)], radius=200, delta=1e-6)
    assert one == pytest.approx(other, rel=1e-4)
    assert level_of_reports({wide: 7}, radius=200, delta=1e-6) == level_of_reports(
        wide, reports=7, radius=200, delta=1e-6
    )


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 200), st.floats(0.01, 0.3))
def test_the_delta_of_a_level_is_the_delta_it_was_made_for(reports: int, delta: float) -> None:
    level = level_of_reports(NOISE, reports=reports, radius=100, delta=delta)
    assert delta_of_reports(NOISE, reports=reports, radius=100, level=level) == pytest.approx(delta, rel=2e-3)
