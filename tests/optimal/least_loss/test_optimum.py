import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from geoind import Grid, Places, Prior, adversary_error, expected_loss, min_loss_given_epsilon, tight_epsilon
from geoind.distances import Distance, discrete, euclidean, from_matrix, manhattan, squared
from geoind.errors import InvalidInputError, SitesMismatchError, SolverError
from geoind.optimal import Effort, Iterate, OptimalChannel, near_optimal_given_epsilon

REFERENCE = {
    (2, 0.01): 54.55511485,
    (2, 0.02): 26.64047415,
    (3, 0.01): 88.39396463,
    (3, 0.02): 39.54018205,
    (4, 0.01): 108.88543635,
    (4, 0.02): 46.64464837,
    (5, 0.01): 122.86772664,
    (5, 0.02): 51.06985434,
    (7, 0.01): 139.46174693,
    (7, 0.02): 56.25787517,
    (9, 0.01): 149.39592471,
    (9, 0.02): 59.19805429,
}


def square(side: int, cell: float = 100.0) -> Grid:
    return Grid(0, 0, cell=cell, columns=side, rows=side)


def skewed(side: int, seed: int = 0) -> Prior:
    return Prior(square(side), np.random.default_rng(seed).dirichlet(np.ones(side * side)))


def assert_kept(channel: OptimalChannel, epsilon: float, distance: Distance = euclidean) -> None:
    assert tight_epsilon(channel, distance) <= epsilon
    assert channel.certificate.epsilon <= epsilon
    assert np.abs(channel.matrix.sum(axis=1) - 1).max() < 1e-12
    assert channel.certificate.bound <= channel.certificate.objective


def by_highs(mass: np.ndarray, apart: np.ndarray, loss: np.ndarray, epsilon: float) -> float:
    """The same program, dense, by somebody else's solver."""
    n, m = loss.shape
    first, second = np.nonzero(~np.eye(n, dtype=bool))
    rows = np.zeros((len(first), m, n, m))
    pair, report = np.arange(len(first))[:, None], np.arange(m)
    rows[pair, report, first[:, None], report] = np.exp(-epsilon * apart[first, second])[:, None]
    rows[pair, report, second[:, None], report] = -1
    answer = linprog(
        (mass[:, None] * loss).ravel(),
        A_ub=rows.reshape(-1, n * m) if len(first) else None,
        b_ub=np.zeros(len(first) * m) if len(first) else None,
        A_eq=np.kron(np.eye(n), np.ones(m)),
        b_eq=np.ones(n),
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert answer.fun is not None
    return float(answer.fun)


@pytest.mark.parametrize(("side", "epsilon"), REFERENCE)
def test_the_reference_objectives_are_met_and_the_promise_is_kept(side: int, epsilon: float) -> None:
    best = min_loss_given_epsilon(Prior.uniform(square(side)), epsilon=epsilon)
    value = best.certificate.objective
    assert value == pytest.approx(REFERENCE[side, epsilon], rel=1e-6)
    assert value > REFERENCE[side, epsilon] * (1 - 1e-9)
    assert best.certificate.bound <= REFERENCE[side, epsilon] * (1 + 1e-9)
    assert best.certificate.optimal
    assert best.certificate.gap <= 1e-7
    assert best.epsilon <= epsilon
    assert_kept(best, epsilon)


def test_the_certificate_speaks_of_the_channel_as_it_is() -> None:
    prior = skewed(4)
    best = min_loss_given_epsilon(prior, epsilon=0.01)
    assert best.certificate.objective == pytest.approx(expected_loss(best, prior), rel=1e-12)
    assert best.certificate.epsilon == float(tight_epsilon(best))
    assert "optimal: objective" in str(best.certificate)


def test_what_is_optimal_for_the_user_leaves_the_adversary_as_much() -> None:
    # With one loss for both, the best report is the best guess: remapping an optimal channel gains nothing.
    prior = skewed(4)
    best = min_loss_given_epsilon(prior, epsilon=0.01)
    assert adversary_error(best, prior) == pytest.approx(best.certificate.objective, rel=1e-6)


def test_symmetry_does_not_change_the_optimum() -> None:
    grid = square(5)
    mass = np.full(25, 1 / 25)
    mass[1] += 1e-9
    mass /= mass.sum()
    with_symmetry = min_loss_given_epsilon(Prior.uniform(grid), epsilon=0.01).certificate
    without = min_loss_given_epsilon(Prior(grid, mass), epsilon=0.01).certificate
    assert "symmetries" in with_symmetry.method
    assert "symmetries" not in without.method
    assert with_symmetry.objective == pytest.approx(without.objective, rel=2e-7)


@st.composite
def problems(draw: st.DrawFn) -> tuple[Prior, Places, Distance, Distance, float]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, m = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    inputs = Places(rng.uniform(0, 1000, (n, 2)))
    mass = rng.dirichlet(np.ones(n))
    mass[rng.random(n) < draw(st.sampled_from([0.0, 0.5]))] = 0
    mass = mass / mass.sum() if mass.any() else np.eye(n)[0]
    outputs = inputs if draw(st.booleans()) else Places(rng.uniform(0, 1000, (m, 2)))
    table = rng.uniform(10, 1000, (n, n))
    table = np.triu(table, 1) + np.triu(table, 1).T
    table_loss = rng.normal(size=(n, len(outputs)))

    def any_loss(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        assert len(a) == n
        assert len(b) == len(outputs)
        return table_loss

    distance = draw(st.sampled_from([euclidean, manhattan, from_matrix(table)]))
    loss = draw(st.sampled_from([euclidean, squared, discrete, any_loss]))
    return Prior(inputs, mass), outputs, loss, distance, 10 ** draw(st.floats(-4, -2))


@given(problems())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_random_problems_agree_with_highs(problem: tuple[Prior, Places, Distance, Distance, float]) -> None:
    prior, outputs, loss, distance, epsilon = problem
    best = min_loss_given_epsilon(prior, epsilon=epsilon, outputs=outputs, loss=loss, distance=distance)
    xy = prior.sites.xy
    cost = loss(xy, outputs.xy)
    value = by_highs(prior.mass, distance(xy, xy), cost, epsilon)
    room = 1e-6 * max(abs(value), 1e-3 * float(np.ptp(cost)))
    assert best.certificate.objective == pytest.approx(value, abs=room)
    assert best.certificate.bound <= value + room
    assert_kept(best, epsilon, distance)


@pytest.mark.parametrize("epsilon", [1e-12, 1e-9, 1e-7, 1e-5, 1e-3, 0.1, 1.0, 10.0, 1e4])
@pytest.mark.parametrize("prior", [Prior.uniform(square(3)), skewed(3)])
def test_any_epsilon_is_kept_and_proven(epsilon: float, prior: Prior) -> None:
    best = min_loss_given_epsilon(prior, epsilon=epsilon)
    assert best.certificate.optimal
    assert best.epsilon <= epsilon
    assert_kept(best, epsilon)


def test_the_ends_of_the_scale_are_silence_and_truth() -> None:
    prior = skewed(3)
    silence = min_loss_given_epsilon(prior, epsilon=1e-12)
    assert silence.certificate.objective == pytest.approx(
        (prior.mass @ euclidean(prior.sites.xy, prior.sites.xy)).min()
    )
    assert min_loss_given_epsilon(prior, epsilon=10).certificate.objective < 1e-9


def test_one_input_and_one_output_are_problems_too() -> None:
    alone = Prior.uniform(square(1))
    best = min_loss_given_epsilon(alone, epsilon=0.01, outputs=Places([[300, 400], [0, 50]]))
    np.testing.assert_array_equal(best.matrix, [[0, 1]])
    forced = min_loss_given_epsilon(Prior.uniform(square(2)), epsilon=0.01, outputs=Places([[50, 50]]))
    np.testing.assert_array_equal(forced.matrix, np.ones((4, 1)))
    assert forced.certificate.gap == 0


def test_sites_at_distance_zero_share_a_row() -> None:
    places = Places([[0, 0], [0, 0], [100, 0]])
    best = min_loss_given_epsilon(Prior(places, [0.2, 0.3, 0.5]), epsilon=0.02)
    np.testing.assert_array_equal(best.matrix[0], best.matrix[1])
    assert best.epsilon <= 0.02


def test_sites_without_mass_keep_their_privacy() -> None:
    mass = np.zeros(16)
    mass[[0, 3, 9]] = 0.5, 0.3, 0.2
    best = min_loss_given_epsilon(Prior(square(4), mass), epsilon=0.01)
    assert best.certificate.optimal
    assert_kept(best, 0.01)


@pytest.mark.parametrize("dilation", [1.05, 1.2, 2.0])
def test_a_spanner_costs_some_loss_and_no_privacy(dilation: float) -> None:
    prior = skewed(5)
    exact = min_loss_given_epsilon(prior, epsilon=0.007).certificate
    sparse = min_loss_given_epsilon(prior, epsilon=0.007, dilation=dilation)
    assert_kept(sparse, 0.007)
    assert exact.objective <= sparse.certificate.objective <= dilation * exact.objective
    assert sparse.certificate.bound <= exact.objective
    assert not sparse.certificate.optimal
    # The promise is divided by what the spanner has, not by what was asked for: it is used up.
    assert sparse.epsilon > 0.9999 * 0.007


def test_a_near_optimal_answer_is_private_and_its_bound_holds() -> None:
    prior = skewed(6)
    exact = min_loss_given_epsilon(prior, epsilon=0.005).certificate.objective
    for largest in (9, 36):
        near = near_optimal_given_epsilon(prior, epsilon=0.005, largest_group=largest)
        assert_kept(near, 0.005)
        assert near.certificate.bound <= exact <= near.certificate.objective
    assert near.certificate.gap < 0.15
    scattered = Prior(Places(np.random.default_rng(3).uniform(0, 600, (30, 2))), np.full(30, 1 / 30))
    near = near_optimal_given_epsilon(scattered, epsilon=0.005, largest_group=10, distance=manhattan)
    assert_kept(near, 0.005, manhattan)
    assert near.certificate.bound <= near.certificate.objective


def test_groups_of_one_bound_the_loss_by_what_each_place_alone_would_lose() -> None:
    prior, outputs = Prior.uniform(square(3)), Places([[20, 30], [170, 190], [100, 0]])
    near = near_optimal_given_epsilon(prior, epsilon=0.005, outputs=outputs, largest_group=1)
    alone = euclidean(prior.sites.xy, outputs.xy).min(axis=1)
    assert near.certificate.bound == pytest.approx(prior.mass @ alone)
    assert_kept(near, 0.005)


def test_out_of_time_the_best_so_far_is_returned_with_its_gap() -> None:
    best = min_loss_given_epsilon(skewed(8), epsilon=0.01, effort=Effort(time_limit=1e-3))
    assert not best.certificate.optimal
    assert best.certificate.gap > 1e-7
    assert "NOT proven optimal" in str(best.certificate)
    assert_kept(best, 0.01)
    exact = min_loss_given_epsilon(skewed(8), epsilon=0.01).certificate
    assert best.certificate.bound <= exact.objective <= best.certificate.objective


def test_progress_brackets_the_optimum_at_every_step() -> None:
    seen: list[Iterate] = []
    best = min_loss_given_epsilon(skewed(4), epsilon=0.01, effort=Effort(progress=seen.append))
    assert len(seen) == best.certificate.iterations + 1
    value = best.certificate.objective
    assert all(one.bound <= value * (1 + 1e-9) and one.objective >= value * (1 - 1e-7) for one in seen)
    assert seen[-1].gap <= 1e-7 < seen[-2].gap


def test_a_tolerance_out_of_reach_is_an_error() -> None:
    with pytest.raises(SolverError, match="larger tolerance"):
        min_loss_given_epsilon(skewed(3), epsilon=0.01, effort=Effort(tolerance=1e-17))


def test_nonsense_is_refused() -> None:
    prior = skewed(2)
    for epsilon in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InvalidInputError, match="epsilon"):
            min_loss_given_epsilon(prior, epsilon=epsilon)
    with pytest.raises(InvalidInputError, match="symmetric"):
        min_loss_given_epsilon(prior, epsilon=1, distance=from_matrix(np.triu(np.ones((4, 4)), 1)))
    with pytest.raises(InvalidInputError, match="to itself"):
        min_loss_given_epsilon(prior, epsilon=1, distance=from_matrix(np.ones((4, 4))))
    with pytest.raises(SitesMismatchError, match="matrix"):
        min_loss_given_epsilon(prior, epsilon=1, loss=from_matrix(np.ones((3, 4))))
    with pytest.raises(InvalidInputError, match="loss must be finite"):
        min_loss_given_epsilon(prior, epsilon=1, loss=lambda a, b: np.full((len(a), len(b)), np.nan))
    with pytest.raises(InvalidInputError, match="dilation"):
        min_loss_given_epsilon(prior, epsilon=1, dilation=0.5)
    with pytest.raises(InvalidInputError, match="time_limit"):
        min_loss_given_epsilon(prior, epsilon=1, effort=Effort(time_limit=0))
    with pytest.raises(InvalidInputError, match="tolerance"):
        min_loss_given_epsilon(prior, epsilon=1, effort=Effort(tolerance=0))
    with pytest.raises(InvalidInputError, match="effort must be an Effort"):
        min_loss_given_epsilon(prior, epsilon=1, effort=60)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="largest_group"):
        near_optimal_given_epsilon(prior, epsilon=1, largest_group=0)


def test_a_problem_that_would_not_fit_in_memory_is_refused_at_once() -> None:
    grid = Grid(0, 0, cell=10, columns=30, rows=31)
    mass = np.random.default_rng(0).dirichlet(np.ones(930))
    with pytest.raises(InvalidInputError, match="near_optimal_given_epsilon"):
        min_loss_given_epsilon(Prior(grid, mass), epsilon=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cells", "epsilon"),
    [
        ([9, 18, 55, 65], 0.03),  # a few holes
        ([0, 40, 80], 0.06),
        ([cell for cell in range(81) if not (1 < cell // 9 < 6 and 1 < cell % 9 < 6)], 0.1),  # all but a region
        ([cell for cell in range(81) if cell // 9 != 4], 0.03),
    ],
)
def test_cells_without_mass_do_not_keep_the_optimum_from_being_proven(cells: list[int], epsilon: float) -> None:
    mass = np.random.default_rng(5).dirichlet(np.ones(81))
    mass[cells] = 0.0
    prior = Prior.from_counts(square(9), mass)
    best = min_loss_given_epsilon(prior, epsilon=epsilon)
    assert best.certificate.optimal
    assert_kept(best, epsilon)
    # Next to no mass changes next to nothing.
    filled = Prior.from_counts(square(9), np.maximum(prior.mass, 1e-12))
    nearby = min_loss_given_epsilon(filled, epsilon=epsilon).certificate
    assert best.certificate.objective == pytest.approx(nearby.objective, rel=1e-6, abs=1e-7)
