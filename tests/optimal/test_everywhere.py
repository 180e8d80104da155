"""The least loss of channels whose interpolation keeps epsilon between any two places."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import coo_array, kron

from geoind import (
    Grid,
    InvalidInputError,
    Places,
    PlanarLaplace,
    Prior,
    bayes_remap,
    discretise,
    expected_loss,
    min_loss_given_epsilon,
)
from geoind.channels import Interpolated
from geoind.distances import Distance, euclidean, manhattan, squared
from geoind.errors import SolverError
from geoind.optimal import Iterate, least_loss
from geoind.optimal.corners import CornerSystem
from tests.trials import trials


def grid_of(columns: int, rows: int) -> Grid:
    return Grid(0, 0, cell=100, columns=columns, rows=rows)


def by_highs(
    prior: Prior, outputs: Places | Grid, loss: Distance, epsilon: float, sides: int
) -> tuple[float, float]:
    """The loss with a polygon outside of each cone's circle and with one inside, by another solver."""
    grid = prior.sites
    assert isinstance(grid, Grid)
    rows, right = [], []
    for y, x, up, aside in itertools.product(range(grid.rows), range(grid.columns), (-1, 1), (-1, 1)):
        if 0 <= y + up < grid.rows and 0 <= x + aside < grid.columns:
            site = y * grid.columns + x
            for angle in 2 * math.pi * np.arange(sides) / sides:
                rows.append([site, site + aside, site + up * grid.columns])
                right.append([math.cos(angle), math.sin(angle)])
    which, turn = np.array(rows), np.array(right)
    size, count = len(grid), len(rows)
    answers = []
    for radius in (1.0, math.cos(math.pi / sides)):
        values = np.column_stack([-turn.sum(axis=1) - epsilon * grid.cell * radius, turn])
        one = coo_array((values.ravel(), (np.repeat(np.arange(count), 3), which.ravel())), (count, size))
        answer = linprog(
            (prior.mass[:, None] * loss(grid.xy, outputs.xy)).T.ravel(),
            A_ub=kron(np.eye(len(outputs)), one).toarray(),
            b_ub=np.zeros(count * len(outputs)),
            A_eq=np.tile(np.eye(size), len(outputs)),
            b_eq=np.ones(size),
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        assert answer.fun is not None
        answers.append(float(answer.fun))
    return answers[0], answers[1]


@st.composite
def problems(draw: st.DrawFn) -> tuple[Prior, Places | Grid, Distance, float]:
    grid = grid_of(draw(st.integers(2, 4)), draw(st.integers(2, 4)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    mass = rng.dirichlet(np.full(len(grid), draw(st.sampled_from([0.2, 1.0, 10.0]))))
    if draw(st.booleans()):
        mass[rng.integers(len(grid))] = 0.0
    outputs = grid if draw(st.booleans()) else Places(rng.uniform(-50, 350, (5, 2)))
    loss: Distance = draw(st.sampled_from([euclidean, squared]))
    return Prior(grid, mass / mass.sum()), outputs, loss, 10 ** draw(st.floats(-3.5, -1))


@given(problems())
@settings(max_examples=trials(25), deadline=None, derandomize=True)
def test_random_problems_lie_between_two_polygons(problem: tuple[Prior, Places | Grid, Distance, float]) -> None:
    prior, outputs, loss, epsilon = problem
    best = min_loss_given_epsilon(
        prior, epsilon=epsilon, outputs=outputs, loss=loss, everywhere=True, tolerance=1e-5
    )
    proof = best.certificate
    assert proof.optimal
    assert Interpolated(best).epsilon == proof.epsilon <= epsilon
    assert np.abs(best.matrix.sum(axis=1) - 1).max() < 1e-12
    outer, inner = by_highs(prior, outputs, loss, epsilon, 24)
    assert proof.bound <= proof.objective
    small = 1e-6 * float((prior.mass @ loss(prior.sites.xy, outputs.xy)).max())
    assert outer - small <= proof.objective
    assert proof.bound <= inner + small


@pytest.mark.parametrize(
    ("level", "loss", "polygon"), [(0.3, 182.0793, 182.3), (0.69, 156.9285, 157.8), (1.0, 141.8484, 142.8)]
)
def test_the_loss_of_5x5_is_that_of_a_polygon_of_12_sides_or_less(
    level: float, loss: float, polygon: float
) -> None:
    prior = Prior.uniform(grid_of(5, 5))
    best = min_loss_given_epsilon(prior, epsilon=level / 100, everywhere=True, tolerance=1e-7)
    assert best.certificate.objective == pytest.approx(loss, abs=1e-4)
    assert best.certificate.objective < polygon < best.certificate.objective * 1.01
    assert best.certificate.method == "interior point on the corners, 8 symmetries"
    # More than between the sites only, where the constraint is weaker.
    assert min_loss_given_epsilon(prior, epsilon=level / 100).certificate.objective < best.certificate.objective


def test_symmetry_and_orientation_do_not_change_the_optimum() -> None:
    rng = np.random.default_rng(1)
    mass = rng.dirichlet(np.ones(15)).reshape(3, 5)
    # The last one has symmetries and is turned.
    flat, turned = (
        min_loss_given_epsilon(Prior.uniform(grid), epsilon=0.01, everywhere=True, tolerance=1e-6)
        for grid in (grid_of(3, 5), grid_of(5, 3))
    )
    assert flat.certificate.method == turned.certificate.method == "interior point on the corners, 4 symmetries"
    assert flat.certificate.objective == pytest.approx(turned.certificate.objective, rel=1e-5)
    wide = min_loss_given_epsilon(
        Prior(grid_of(5, 3), mass.ravel()), epsilon=0.01, everywhere=True, tolerance=1e-6
    )
    tall = min_loss_given_epsilon(
        Prior(grid_of(3, 5), mass.T.ravel()), epsilon=0.01, everywhere=True, tolerance=1e-6
    )
    assert wide.certificate.objective == pytest.approx(tall.certificate.objective, rel=1e-5)
    nearly = np.ones(16)
    nearly[1] += 1e-9
    even, uneven = (
        min_loss_given_epsilon(
            Prior.from_counts(grid_of(4, 4), counts), epsilon=0.01, everywhere=True, tolerance=1e-6
        )
        for counts in (np.ones(16), nearly)
    )
    assert "8 symmetries" in even.certificate.method
    assert "symmetries" not in uneven.certificate.method
    assert even.certificate.objective == pytest.approx(uneven.certificate.objective, rel=1e-5)


@pytest.mark.parametrize("epsilon", [1e-12, 1e-7, 1e-4, 0.1, 10.0, 1e4])
def test_any_epsilon_is_kept_and_proven(epsilon: float) -> None:
    prior = Prior(grid_of(3, 3), np.random.default_rng(2).dirichlet(np.ones(9)))
    best = min_loss_given_epsilon(prior, epsilon=epsilon, everywhere=True, tolerance=1e-4)
    assert best.certificate.optimal
    assert Interpolated(best).epsilon <= epsilon


def test_sites_between_the_cells_lower_the_loss_below_that_of_remapped_laplace() -> None:
    """Interpolation over shorter steps may be steeper, and the promise is the same."""
    prior = Prior(grid_of(5, 5), np.random.default_rng(0).dirichlet(np.ones(25)))
    laplace = discretise(PlanarLaplace(0.005), grid_of(5, 5))
    losses = [expected_loss(laplace @ bayes_remap(laplace, prior), prior)]
    for steps in (1, 2, 3):
        best = min_loss_given_epsilon(
            prior.refined(steps), epsilon=0.005, outputs=prior.sites, everywhere=True, tolerance=1e-3
        )
        assert best.certificate.epsilon <= 0.005
        losses.append(best.certificate.bound)
        assert best.certificate.optimal
    assert losses[3] < losses[2] < losses[1]
    assert losses[3] * (1 + 2e-3) < losses[0]


def test_a_start_that_is_private_everywhere_is_used_and_another_one_is_not() -> None:
    prior = Prior(grid_of(4, 4), np.random.default_rng(3).dirichlet(np.ones(16)))
    best = min_loss_given_epsilon(prior, epsilon=0.01, everywhere=True, tolerance=1e-5)
    again = min_loss_given_epsilon(
        prior, epsilon=0.01, everywhere=True, start=best, time_limit=1e-9, tolerance=1e-5
    )
    assert again.certificate.objective == pytest.approx(best.certificate.objective, rel=1e-12)
    between_sites = min_loss_given_epsilon(prior, epsilon=0.01)
    assert Interpolated(between_sites).epsilon > 0.01
    other = min_loss_given_epsilon(
        prior, epsilon=0.01, everywhere=True, start=between_sites, time_limit=1e-9, tolerance=1e-5
    )
    assert other.certificate.epsilon <= 0.01
    assert not other.certificate.optimal


def test_progress_brackets_the_optimum_at_every_step() -> None:
    seen = list[Iterate]()
    prior = Prior(grid_of(4, 5), np.random.default_rng(4).dirichlet(np.ones(20)))
    best = min_loss_given_epsilon(prior, epsilon=0.01, everywhere=True, tolerance=1e-6, progress=seen.append)
    assert [now.iteration for now in seen] == list(range(best.certificate.iterations + 1))
    assert best.certificate.iterations <= 25
    for now in seen:
        assert now.bound <= best.certificate.objective * (1 + 1e-12)
        assert now.objective >= best.certificate.bound * (1 - 1e-12)


@pytest.mark.parametrize(
    ("sites", "options", "message"),
    [
        (Places([[0, 0], [100, 0], [0, 100]]), {}, "Grid of at least two rows and columns"),
        (grid_of(5, 1), {}, "Grid of at least two rows and columns"),
        (grid_of(3, 3), {"distance": manhattan}, "distance=euclidean"),
        (grid_of(3, 3), {"dilation": 1.5}, "dilation=1"),
    ],
)
def test_what_cannot_be_solved_is_refused(sites: Places | Grid, options: dict[str, Any], message: str) -> None:
    counts = np.random.default_rng(5).random(len(sites))
    with pytest.raises(InvalidInputError, match=message):
        min_loss_given_epsilon(Prior.from_counts(sites, counts), epsilon=0.01, everywhere=True, **options)


def test_what_does_not_fit_in_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(least_loss, "MEMORY", 1e5)
    with pytest.raises(
        InvalidInputError, match="36 inputs and 36 outputs would take 0 GB of memory; choose larger cells"
    ):
        min_loss_given_epsilon(Prior.uniform(grid_of(6, 6)), epsilon=0.01, everywhere=True)


def test_a_method_that_cannot_go_on_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def singular(*_: object) -> bool:
        return False

    monkeypatch.setattr(CornerSystem, "_pivot", singular)
    with pytest.raises(SolverError, match="tolerance"):
        min_loss_given_epsilon(Prior.uniform(grid_of(3, 3)), epsilon=0.01, everywhere=True)


def test_the_repair_is_measured_on_the_interpolation(monkeypatch: pytest.MonkeyPatch) -> None:
    prior = Prior.uniform(grid_of(3, 3))
    honest = min_loss_given_epsilon(prior, epsilon=0.01, everywhere=True, tolerance=1e-6).certificate
    monkeypatch.setattr(least_loss, "HEADROOM", -1e-4)
    best = min_loss_given_epsilon(prior, epsilon=0.01, everywhere=True, tolerance=1e-6)
    assert Interpolated(best).epsilon <= 0.01
    assert best.certificate.repair > 0
    assert best.certificate.objective > honest.bound
