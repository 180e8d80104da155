"""The same numbers as the library of the authors of the field, on small grids."""

import importlib.util
import warnings

import numpy as np
import pytest

from geoind import (
    Channel,
    Grid,
    Prior,
    adversary_error,
    bayes_remap,
    discretise,
    exponential,
    geometric,
    planar_geometric,
    randomised_response,
)
from geoind.channels import (
    bayes_risk,
    bayes_vulnerability,
    min_entropy_leakage,
    mutual_information,
    posterior_entropy,
)
from geoind.distances import euclidean
from geoind.mechanisms.planar import PlanarLaplace

if importlib.util.find_spec("qif") is None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("qif has no wheel for this Python: nothing was compared with it", stacklevel=1)
    pytest.skip("qif has no wheel for this Python: nothing was compared with it", allow_module_level=True)

import qif

GRID = Grid(0, 0, cell=1, columns=4, rows=4)
APART = euclidean(GRID.xy, GRID.xy)
PRIOR = Prior(GRID, np.random.default_rng(1).dirichlet(np.ones(16)))
CHANNELS = {
    "laplace": discretise(PlanarLaplace(0.8), GRID),
    "geometric": planar_geometric(GRID, epsilon=0.8),
    "exponential": exponential(GRID, GRID, epsilon=0.8),
}
every_channel = pytest.mark.parametrize("channel", CHANNELS.values(), ids=CHANNELS)


@every_channel
def test_the_measured_epsilon_is_the_same(channel: Channel) -> None:
    theirs = qif.measure.d_privacy.smallest_epsilon(channel.matrix, lambda x, y: APART[x, y])
    assert channel.epsilon == pytest.approx(theirs, rel=1e-9)


@every_channel
def test_the_adversary_errs_as_much(channel: Channel) -> None:
    assert adversary_error(channel, PRIOR) == pytest.approx(
        qif.measure.l_risk.posterior(APART, PRIOR.mass, channel.matrix), rel=1e-12
    )
    strategy = np.asarray(qif.measure.l_risk.strategy(APART, PRIOR.mass, channel.matrix)).ravel()
    assert (np.argmax(bayes_remap(channel, PRIOR).matrix, axis=1) == strategy).all()


@every_channel
def test_vulnerability_and_information_are_the_same(channel: Channel) -> None:
    mass, matrix = PRIOR.mass, channel.matrix
    assert bayes_vulnerability(channel, PRIOR) == pytest.approx(qif.measure.bayes_vuln.posterior(mass, matrix))
    assert bayes_risk(channel, PRIOR) == pytest.approx(qif.measure.bayes_risk.posterior(mass, matrix))
    assert min_entropy_leakage(channel, PRIOR) == pytest.approx(
        qif.measure.bayes_vuln.min_entropy_leakage(mass, matrix)
    )
    assert posterior_entropy(channel, PRIOR) == pytest.approx(qif.measure.shannon.posterior(mass, matrix))
    assert mutual_information(channel, PRIOR) == pytest.approx(qif.measure.shannon.add_leakage(mass, matrix))


def test_the_matrices_with_a_formula_are_the_same() -> None:
    assert geometric(6, epsilon=0.4).matrix == pytest.approx(qif.mechanism.d_privacy.geometric(6, 0.4), rel=1e-9)
    assert randomised_response(6, epsilon=0.4).matrix == pytest.approx(
        qif.mechanism.d_privacy.randomized_response(6, 0.4), rel=1e-9
    )
    assert CHANNELS["exponential"].matrix == pytest.approx(
        qif.mechanism.d_privacy.exponential(16, lambda x, y: 0.8 * APART[x, y]), rel=1e-9
    )


def test_the_planar_mechanisms_are_the_same_up_to_their_integration_error() -> None:
    theirs = qif.mechanism.geo_ind.planar_geometric_grid(4, 4, 1, 0.8)
    assert CHANNELS["geometric"].matrix == pytest.approx(theirs, abs=1e-5)
    theirs = qif.mechanism.geo_ind.planar_laplace_grid(4, 4, 1, 0.8)
    assert CHANNELS["laplace"].matrix == pytest.approx(theirs, abs=2e-3)
