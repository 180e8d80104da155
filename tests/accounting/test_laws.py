import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoind import InvalidInputError, Mechanism, PlanarGaussian, PlanarLaplace
from geoind.accounting import delta_of_reports
from geoind.accounting.laws import group, sequential


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0, 0.1)), min_size=1, max_size=5))
def test_levels_and_deltas_add_up(promises: list[tuple[float, float]]) -> None:
    level, delta = sequential(promises)
    assert level == pytest.approx(sum(each for each, _ in promises))
    assert delta == pytest.approx(sum(each for _, each in promises))


def test_the_sum_of_promises_holds_and_the_accountant_is_never_worse() -> None:
    noise = PlanarGaussian(700.0)
    for level in (0.3, 1.0):
        one = delta_of_reports(noise, reports=1, radius=200, level=level)
        together = sequential([(level, one)] * 5)
        assert delta_of_reports(noise, reports=5, radius=200, level=together.level) <= together.delta


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("noise", [PlanarGaussian(700.0), PlanarLaplace(0.004)])
def test_a_group_promise_holds_as_many_times_as_far(noise: Mechanism, size: int) -> None:
    for level in (0.1, 0.5):
        delta = delta_of_reports(noise, reports=1, radius=100, level=level)
        far = group((level, delta), size)
        assert far.level == size * level
        assert delta_of_reports(noise, reports=1, radius=100 * size, level=far.level) <= far.delta + 1e-15
        assert far.delta <= min(1.0, size * math.exp(size * level) * delta)


def test_extreme_groups_stay_probabilities() -> None:
    assert group((0.0, 0.1), 3).delta == pytest.approx(0.3)
    assert group((1.0, 0.0), 10_000) == (10_000.0, 0.0)
    assert group((1.0, 1e-300), 10_000) == (10_000.0, 1.0)


@pytest.mark.parametrize("promise", [0.5, None, (1, 0.1, 0.2)])
def test_a_promise_that_is_no_pair_is_an_error_that_says_so(promise: tuple[float, float]) -> None:
    with pytest.raises(InvalidInputError, match="a promise must be a pair, level and delta"):
        group(promise, 2)
    with pytest.raises(InvalidInputError, match="a promise must be a pair, level and delta"):
        sequential([promise])


@pytest.mark.parametrize("promise", [(-1, 0.1), (1, -0.1), (1, 1.1), (math.nan, 0.1), (1, math.nan)])
def test_bad_promises_are_refused(promise: tuple[float, float]) -> None:
    with pytest.raises(InvalidInputError):
        group(promise, 2)
    with pytest.raises(InvalidInputError):
        sequential([promise])
