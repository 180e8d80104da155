"""Neighbourhoods bracket the optimum of the full program, and their channels are private over all pairs."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, kron

from geoind import (
    Channel,
    Grid,
    InvalidInputError,
    Places,
    Prior,
    expected_loss,
    min_loss_given_epsilon,
    tight_epsilon,
)
from geoind.arrays import FloatArray
from geoind.channels.extended import ExtendedMatrix
from geoind.distances import Distance, euclidean, from_matrix, manhattan, squared
from geoind.errors import SitesMismatchError
from geoind.optimal import Iterate, OptimalChannel, least_loss, neighbourhoods
from geoind.optimal.neighbourhoods import memory_of
from geoind.space.sites import Sites

EPSILON = 0.01


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbourhoods of a few inputs, for problems of any size."""
    monkeypatch.setattr(least_loss, "EXACT_WORK", 0)
    monkeypatch.setattr(neighbourhoods, "FIRST_SIZES", (9, 9))


def square(side: int) -> Grid:
    return Grid(0, 0, cell=100, columns=side, rows=side)


def mass_of(kind: str, side: int) -> FloatArray:
    rng = np.random.default_rng(side)
    row, column = np.divmod(np.arange(side * side), side)
    mass: FloatArray = {
        "uniform": np.ones(side * side),
        "skewed": 1 / (1 + (row - 1.0) ** 2 + (column - 1.0) ** 2) ** 1.5,
        "lumpy": rng.pareto(1.0, side * side) + 0.01,
        "many zeros": np.where(rng.random(side * side) < 0.7, 0.0, rng.random(side * side)),
    }[kind]
    return mass


def prior_of(kind: str, side: int) -> Prior:
    return Prior.from_counts(square(side), mass_of(kind, side))


def by_highs(prior: Prior, outputs: Sites, epsilon: float) -> float:
    """The program with all pairs of inputs, by another solver."""
    n, m = len(prior.sites), len(outputs)
    apart, cost = euclidean(prior.sites.xy, prior.sites.xy), euclidean(prior.sites.xy, outputs.xy)
    first, second = np.nonzero(~np.eye(n, dtype=bool))
    pair = np.arange(len(first))
    entries = np.concatenate([np.exp(-epsilon * apart[first, second]), -np.ones(len(first))])
    pairs = csr_array((entries, (np.tile(pair, 2), np.concatenate([first, second]))), shape=(len(first), n))
    rows = csr_array(kron(pairs, eye_array(m)))
    answer = linprog(  # type: ignore[call-overload]
        (prior.mass[:, None] * cost).ravel(),
        A_ub=rows,
        b_ub=np.zeros(rows.shape[0]),
        A_eq=csr_array(kron(eye_array(n), np.ones((1, m)))),
        b_eq=np.ones(n),
    )
    return float(answer.fun)


def assert_bracket(
    best: OptimalChannel, optimum: float, epsilon: float = EPSILON, distance: Distance = euclidean
) -> None:
    proof = best.certificate
    assert proof.bound <= optimum * (1 + 1e-6)
    assert proof.objective >= optimum * (1 - 1e-6)
    assert proof.epsilon == tight_epsilon(best, distance) <= epsilon
    assert np.abs(best.matrix.sum(axis=1) - 1).max() < 1e-12
    assert proof.gap == pytest.approx((proof.objective - proof.bound) / proof.objective)


@pytest.mark.parametrize("kind", ["uniform", "skewed", "lumpy", "many zeros"])
def test_the_bracket_contains_the_optimum_of_any_prior(kind: str) -> None:
    prior = prior_of(kind, 4 if kind == "lumpy" else 5)
    best = min_loss_given_epsilon(prior, epsilon=EPSILON, tolerance=0.05)
    exact = min_loss_given_epsilon(prior, epsilon=EPSILON).certificate
    assert exact.method.startswith("interior point")
    assert "neighbourhoods of" in best.certificate.method
    assert_bracket(best, exact.objective)
    assert best.certificate.optimal
    assert best.certificate.gap <= 0.05
    assert best.certificate.objective == pytest.approx(expected_loss(best, prior))


@pytest.mark.parametrize(
    ("side", "kind", "outputs"),
    [(4, "lumpy", None), (7, "skewed", 6)],
)
def test_the_bracket_contains_the_optimum_by_highs(side: int, kind: str, outputs: int | None) -> None:
    prior = prior_of(kind, side)
    reports = (
        prior.sites if outputs is None else Places(np.random.default_rng(5).uniform(0, 100 * side, (outputs, 2)))
    )
    best = min_loss_given_epsilon(prior, epsilon=EPSILON, outputs=reports, tolerance=0.05)
    assert_bracket(best, by_highs(prior, reports, EPSILON))
    assert best.certificate.optimal


def test_the_reference_objective_of_81_cells_is_in_the_bracket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbourhoods, "FIRST_SIZES", (30, 30))
    prior = prior_of("uniform", 9)
    best = min_loss_given_epsilon(prior, epsilon=EPSILON, tolerance=0.02)
    assert_bracket(best, 149.39592471)
    assert best.certificate.optimal


@pytest.mark.parametrize(
    "settings",
    [
        {"REACH": 0.0},
        {"REACH": 30.0},
        {"NEIGHBOURS": 1},
        {"NEIGHBOURS": 8},
        {"SHARPNESS": 1.0},
        {"FIRST_SIZES": (2, 2)},
        {"FIRST_SIZES": (15, 15), "HEADROOM": 0.05},
    ],
    ids=str,
)
def test_what_only_improves_the_bounds_cannot_make_them_wrong(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    prior = prior_of("lumpy", 4)
    exact = min_loss_given_epsilon(prior, epsilon=EPSILON).certificate.objective
    for name, value in settings.items():
        monkeypatch.setattr(neighbourhoods, name, value)
    # One round only, however wide its gap: the next size does not fit in memory.
    monkeypatch.setattr(least_loss, "MEMORY", memory_of(16, 16, neighbourhoods.FIRST_SIZES[0]))
    best = min_loss_given_epsilon(prior, epsilon=EPSILON, tolerance=1e-3)
    assert_bracket(best, exact)


def test_neighbourhoods_grow_until_the_gap_is_met() -> None:
    prior = prior_of("lumpy", 5)
    seen: list[Iterate] = []
    best = min_loss_given_epsilon(prior, epsilon=EPSILON, tolerance=1e-3, progress=seen.append)
    exact = min_loss_given_epsilon(prior, epsilon=EPSILON).certificate.objective
    assert_bracket(best, exact)
    assert best.certificate.gap <= 1e-3
    assert "neighbourhoods of 9 inputs" not in best.certificate.method
    assert {one.iteration for one in seen} == set(range(best.certificate.iterations + 1))
    # The memory of larger neighbourhoods is stated before their first iteration.
    for earlier, one in pairwise(seen):
        assert one.memory >= earlier.memory
        assert (one.memory > earlier.memory) == (one.iteration == earlier.iteration)
    assert seen[0].iteration == 0
    assert seen[-1].memory > seen[0].memory > 0
    assert all(one.bound <= exact * (1 + 1e-9) and one.objective >= exact * (1 - 1e-9) for one in seen)
    assert all(one.gap >= other.gap for one, other in pairwise(seen))


@pytest.mark.parametrize("epsilon", [0.003, 0.03])
def test_cells_that_are_small_or_large_against_one_over_epsilon_are_bracketed(epsilon: float) -> None:
    prior = prior_of("lumpy", 5)
    best = min_loss_given_epsilon(prior, epsilon=epsilon, tolerance=0.05)
    assert_bracket(best, min_loss_given_epsilon(prior, epsilon=epsilon).certificate.objective, epsilon)
    assert best.certificate.optimal


def test_a_smaller_tolerance_begins_with_larger_neighbourhoods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbourhoods, "FIRST_SIZES", (5, 60))
    prior = prior_of("uniform", 7)
    rough, fine = (
        min_loss_given_epsilon(prior, epsilon=EPSILON, tolerance=tolerance).certificate
        for tolerance in (0.3, 0.05)
    )
    first, second = (int(proof.method.split()[2]) for proof in (rough, fine))
    assert 5 < first < second < 49


def test_outputs_keep_so_many_inputs_on_average(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbourhoods, "LEAST_SIZE", 1)
    rng = np.random.default_rng(0)
    xy, mass = rng.uniform(0, 1000, (40, 2)), rng.dirichlet(np.ones(40))
    for size in (2, 9, 40):
        assert neighbourhoods._kept(mass, EPSILON, euclidean(xy, xy), np.arange(40), size).mean() == size / 40


def test_the_unit_of_length_changes_nothing_of_the_search() -> None:
    mass = mass_of("lumpy", 5)
    metres, far = (
        min_loss_given_epsilon(
            Prior.from_counts(Grid(0, 0, cell=100 * unit, columns=5, rows=5), mass),
            epsilon=EPSILON / unit,
            tolerance=0.01,
        ).certificate
        # A power of two changes no digit of a double.
        for unit in (1, 2**-10)
    )
    assert metres.optimal
    assert (far.iterations, far.gap, far.method) == (metres.iterations, metres.gap, metres.method)
    assert far.bound == metres.bound / 1024


def test_an_earlier_channel_is_the_first_candidate() -> None:
    prior = prior_of("lumpy", 5)
    earlier = min_loss_given_epsilon(prior, epsilon=EPSILON, tolerance=0.05)
    seen: list[Iterate] = []
    # One iteration of each program, as after a restart that is stopped again.
    again = min_loss_given_epsilon(
        prior, epsilon=EPSILON, tolerance=1e-3, time_limit=1e-3, start=earlier, progress=seen.append
    )
    assert all(one.objective <= earlier.certificate.objective for one in seen)
    assert again.certificate.objective <= earlier.certificate.objective * (1 + 1e-12)
    assert_bracket(again, min_loss_given_epsilon(prior, epsilon=EPSILON).certificate.objective)
    fresh = min_loss_given_epsilon(prior, epsilon=EPSILON, tolerance=1e-3, time_limit=1e-3)
    assert fresh.certificate.objective > again.certificate.objective


@pytest.mark.parametrize("case", ["larger epsilon", "coarser grid", "other outputs"])
def test_a_start_that_does_not_fit_is_only_where_the_search_begins(case: str) -> None:
    prior = prior_of("lumpy", 4)
    start = {
        "larger epsilon": lambda: min_loss_given_epsilon(prior, epsilon=3 * EPSILON),
        "coarser grid": lambda: min_loss_given_epsilon(
            Prior.uniform(Grid(50, 50, cell=200, columns=2, rows=2)), epsilon=EPSILON
        ),
        "other outputs": lambda: min_loss_given_epsilon(
            prior, epsilon=EPSILON, outputs=Places(np.array([[150.0, 150.0], [900.0, 0.0]]))
        ),
    }[case]()
    best = min_loss_given_epsilon(prior, epsilon=EPSILON, tolerance=0.05, start=start)
    assert_bracket(best, min_loss_given_epsilon(prior, epsilon=EPSILON).certificate.objective)
    assert best.certificate.optimal


def test_equal_sites_take_a_start_as_well() -> None:
    xy = square(3).xy
    prior = Prior(Places(np.concatenate([xy, xy[:3]])), np.full(12, 1 / 12))
    exact = min_loss_given_epsilon(prior, epsilon=EPSILON, outputs=square(3))
    best = min_loss_given_epsilon(prior, epsilon=EPSILON, outputs=square(3), tolerance=0.05, start=exact)
    assert best.certificate.objective <= exact.certificate.objective * (1 + 1e-9)
    assert_bracket(best, exact.certificate.objective)


def test_a_bad_start_is_an_error_before_the_search() -> None:
    prior, seen = prior_of("lumpy", 4), list[Iterate]()
    with pytest.raises(InvalidInputError, match="start must be a Channel, got ndarray"):
        min_loss_given_epsilon(prior, epsilon=EPSILON, start=np.eye(16), progress=seen.append)  # type: ignore[arg-type]
    records = Places(np.arange(9.0).reshape(3, 3))
    with pytest.raises(SitesMismatchError, match="as many coordinates"):
        min_loss_given_epsilon(
            prior, epsilon=EPSILON, start=Channel(records, records, np.eye(3)), progress=seen.append
        )
    assert not seen


def test_small_problems_and_small_tolerances_are_solved_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    prior = prior_of("lumpy", 4)
    assert "interior" in min_loss_given_epsilon(prior, epsilon=EPSILON, tolerance=0.9e-3).certificate.method
    monkeypatch.setattr(least_loss, "EXACT_WORK", 16**4)
    assert "interior" in min_loss_given_epsilon(prior, epsilon=EPSILON, tolerance=0.02).certificate.method


def test_out_of_time_the_best_so_far_is_returned_with_its_bounds() -> None:
    prior = prior_of("lumpy", 5)
    best = min_loss_given_epsilon(prior, epsilon=EPSILON, tolerance=1e-3, time_limit=1e-3)
    exact = min_loss_given_epsilon(prior, epsilon=EPSILON).certificate.objective
    assert not best.certificate.optimal
    assert best.certificate.bound <= exact <= best.certificate.objective
    assert tight_epsilon(best) <= EPSILON


def test_memory_is_checked_before_the_search_and_limits_the_growth(monkeypatch: pytest.MonkeyPatch) -> None:
    prior = prior_of("lumpy", 5)
    monkeypatch.setattr(least_loss, "MEMORY", memory_of(25, 25, 9))
    kept = min_loss_given_epsilon(prior, epsilon=EPSILON, tolerance=1e-3)
    assert not kept.certificate.optimal
    assert tight_epsilon(kept) <= EPSILON
    monkeypatch.setattr(neighbourhoods, "FIRST_SIZES", (9, 20))
    reduced = min_loss_given_epsilon(prior, epsilon=EPSILON, tolerance=0.5)
    assert "neighbourhoods of 9 inputs" in reduced.certificate.method
    monkeypatch.setattr(least_loss, "MEMORY", memory_of(25, 25, 9) - 1)
    seen: list[Iterate] = []
    with pytest.raises(InvalidInputError, match="25 inputs and 25 outputs"):
        min_loss_given_epsilon(prior, epsilon=EPSILON, tolerance=1e-3, progress=seen.append)
    assert not seen


@pytest.mark.parametrize(("loss", "distance"), [(squared, euclidean), (manhattan, manhattan)])
def test_other_losses_metrics_and_scattered_places_are_bracketed_as_well(
    loss: Distance, distance: Distance
) -> None:
    rng = np.random.default_rng(7)
    prior = Prior(Places(rng.uniform(0, 500, (20, 2))), rng.dirichlet(np.ones(20)))
    best = min_loss_given_epsilon(prior, epsilon=EPSILON, loss=loss, distance=distance, tolerance=0.05)
    exact = min_loss_given_epsilon(prior, epsilon=EPSILON, loss=loss, distance=distance).certificate
    assert_bracket(best, exact.objective, EPSILON, distance)
    assert best.certificate.optimal
    assert isinstance(best.rows, ExtendedMatrix if distance is euclidean else np.ndarray)


def test_a_table_of_distances_without_triangle_inequality_is_bracketed_as_well() -> None:
    rng = np.random.default_rng(3)
    table = np.triu(rng.uniform(20, 600, (16, 16)), 1)
    prior, distance = prior_of("lumpy", 4), from_matrix(table + table.T)
    best = min_loss_given_epsilon(prior, epsilon=EPSILON, distance=distance, tolerance=0.05)
    exact = min_loss_given_epsilon(prior, epsilon=EPSILON, distance=distance).certificate
    assert_bracket(best, exact.objective, EPSILON, distance)
    assert best.certificate.optimal


def test_equal_sites_have_equal_rows() -> None:
    xy = square(4).xy
    prior = Prior(Places(np.concatenate([xy, xy[:3]])), np.full(19, 1 / 19))
    best = min_loss_given_epsilon(prior, epsilon=EPSILON, outputs=square(4), tolerance=0.05)
    np.testing.assert_array_equal(best.matrix[:3], best.matrix[16:])
    assert best.certificate.optimal


def test_the_answer_is_stored_as_few_entries_and_is_what_the_certificate_says() -> None:
    prior = prior_of("lumpy", 8)
    best = min_loss_given_epsilon(prior, epsilon=EPSILON, tolerance=0.05)
    stored = best.rows
    assert isinstance(stored, ExtendedMatrix)
    assert len(stored.value) < best.matrix.size / 2
    dense = Channel(best.inputs, best.outputs, best.matrix)
    assert dense.epsilon <= best.certificate.epsilon == best.epsilon <= EPSILON
    assert dense.epsilon == pytest.approx(EPSILON, rel=2e-9)
    assert best.certificate.objective == pytest.approx(expected_loss(dense, prior), rel=1e-12)
    truth = np.arange(64).repeat(50)
    np.testing.assert_array_equal(best.sample_indices(truth, rng=1), dense.sample_indices(truth, rng=1))


def test_sites_that_are_too_close_for_a_bound_of_rounding_are_stored_densely() -> None:
    """The rounding error of a row sum, divided by their distance, is more than the solver leaves to epsilon."""
    xy = np.concatenate([square(4).xy, [[100.0, 100.0 + 1e-3]]])
    prior = Prior.from_counts(Places(xy), np.arange(1.0, 18.0))
    best = min_loss_given_epsilon(prior, epsilon=EPSILON, tolerance=0.05)
    assert "neighbourhoods" in best.certificate.method
    assert isinstance(best.rows, np.ndarray)
    assert best.certificate.epsilon == best.epsilon <= EPSILON


def test_a_single_cell_needs_no_neighbourhood() -> None:
    best = min_loss_given_epsilon(Prior.uniform(square(1)), epsilon=EPSILON, tolerance=0.02)
    assert best.certificate.objective == 0
