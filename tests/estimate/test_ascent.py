from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoind.arrays import FloatArray
from geoind.estimate.ascent import LEAST_MASS, ascend, climbed, held_out_steps
from geoind.estimate.observation import _ChannelReports, _Together
from tests.trials import trials


def unchanged(mass: FloatArray) -> FloatArray:
    return mass


def random_reports(seed: int, sites: int = 6, outputs: int = 5, people: int = 400) -> _ChannelReports:
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.full(outputs, 0.7), size=sites) + 1e-6
    matrix /= matrix.sum(axis=1, keepdims=True)
    truth = rng.dirichlet(np.full(sites, 0.5))
    counts = rng.multinomial(people, truth @ matrix)
    seen = np.flatnonzero(counts)
    return _ChannelReports(counts[seen].astype(float), matrix[:, seen])


def log_likelihood(reports: _ChannelReports, mass: FloatArray) -> float:
    return float(reports.counts @ np.log(mass @ reports.columns) / reports.counts.sum())


@settings(max_examples=trials(60), deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 12), st.integers(2, 12))
def test_the_likelihood_never_falls(seed: int, sites: int, outputs: int) -> None:
    reports = random_reports(seed, sites, outputs)
    trace = [step.log_likelihood for step in islice(ascend(reports, reports.counts, unchanged), 200)]
    assert (np.diff(trace) >= 0).all()


def test_the_first_step_is_bayes_rule() -> None:
    reports = random_reports(3)
    start, first = islice(ascend(reports, reports.counts, unchanged), 2)
    assert start.mass == pytest.approx(np.full(6, 1 / 6))
    posterior = reports.columns / 6 / (reports.columns.sum(axis=0) / 6)
    assert first.mass == pytest.approx(posterior @ reports.counts / reports.counts.sum())


def test_people_with_different_mechanisms_count_once_each() -> None:
    one, other = random_reports(1), random_reports(2, outputs=9, people=100)
    _, first = islice(ascend(_Together((one, other)), _Together((one, other)).counts, unchanged), 2)
    posteriors = sum(part.columns / part.columns.sum(axis=0) @ part.counts for part in (one, other))
    assert first.mass == pytest.approx(posteriors / 500)


@pytest.mark.parametrize("seed", range(5))
def test_the_gap_bounds_what_is_missing(seed: int) -> None:
    reports = random_reports(seed, sites=8, outputs=8)
    last, _ = climbed(reports, reports.counts, unchanged, most=20_000, tolerance=1e-4)
    for step in islice(ascend(reports, reports.counts, unchanged), 40):
        assert last.log_likelihood - step.log_likelihood <= step.gap + 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_it_ends_at_the_most_likely_population(seed: int) -> None:
    from scipy.optimize import minimize

    reports = random_reports(seed, sites=4, outputs=6)
    last, trace = climbed(reports, reports.counts, unchanged, most=50_000, tolerance=1e-3)

    def cost(logits: FloatArray) -> float:
        weights = np.exp(logits - logits.max())
        return -log_likelihood(reports, weights / weights.sum())

    best = min((minimize(cost, start, method="BFGS") for start in np.eye(4)), key=lambda result: result.fun)
    assert trace[-1] >= -best.fun - 1e-6
    assert last.gap * reports.counts.sum() <= 1e-3
    assert log_likelihood(reports, last.mass) == pytest.approx(trace[-1])


def test_momentum_is_worth_its_trouble() -> None:
    reports = random_reports(11, sites=30, outputs=30, people=5000)
    mass = np.full(30, 1 / 30)
    for _ in range(60):
        mass = mass * (reports.columns @ (reports.counts / (mass @ reports.columns))) / reports.counts.sum()
    _, trace = climbed(reports, reports.counts, unchanged, most=30)
    assert trace[-1] > log_likelihood(reports, mass)


def test_no_site_is_given_up_for_ever() -> None:
    reports = random_reports(4)
    last, _ = climbed(reports, reports.counts, unchanged, most=500)
    assert (last.mass >= 0.9 * LEAST_MASS / 6).all()


def test_held_out_reports_stop_the_fit_early_when_they_are_few_and_late_when_they_are_many() -> None:
    few, many = random_reports(5, 40, 40, people=200), random_reports(5, 40, 40, people=2_000_000)
    assert held_out_steps(few, unchanged, most=2000) < held_out_steps(many, unchanged, most=2000)


def test_one_report_is_enough_to_stop() -> None:
    reports = _ChannelReports(np.array([1.0]), np.array([[0.5], [0.1]]))
    assert held_out_steps(reports, unchanged, most=10) == 1


def test_progress_is_called_for_each_step() -> None:
    reports, seen = random_reports(6), []
    _, trace = climbed(
        reports, reports.counts, unchanged, most=7, progress=lambda number, value: seen.append((number, value))
    )
    assert seen == list(enumerate(trace))
    assert len(trace) == 8
