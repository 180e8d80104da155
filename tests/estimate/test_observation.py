import numpy as np
import pytest

from geoind import Grid, PlanarLaplace, discretise, randomised_response
from geoind.estimate.convolution import window_around
from geoind.estimate.observation import ChannelReports, NoiseReports, Observation, Together

GRID = Grid(0, 0, cell=100, columns=6, rows=4)
RNG = np.random.default_rng(1)


def noisy(grid: Grid = GRID, epsilons: tuple[float, ...] = (0.01, 0.03)) -> NoiseReports:
    window = window_around(grid, min(epsilons))
    groups = [(epsilon, PlanarLaplace(epsilon).sample(grid.xy, rng=5)) for epsilon in epsilons]
    return NoiseReports.of(grid, window, groups)


def channelled() -> ChannelReports:
    channel = discretise(PlanarLaplace(0.01), GRID)
    return ChannelReports.of(channel, channel.sample(GRID.xy, rng=6))


@pytest.mark.parametrize("observation", [noisy(), channelled(), Together((noisy(), channelled()))])
def test_explain_is_the_transpose_of_predict(observation: Observation) -> None:
    mass, weights = RNG.random(len(GRID)), RNG.random(len(observation.counts))
    assert observation.predict(mass) @ weights == pytest.approx(observation.explain(weights) @ mass, rel=1e-10)


def test_every_report_is_counted_once() -> None:
    assert noisy().counts.sum() == 2 * len(GRID)
    assert channelled().counts.sum() == len(GRID)
    assert Together((noisy(), channelled())).counts.sum() == 3 * len(GRID)


def test_hardly_a_report_leaves_the_window_unless_people_live_on_its_border() -> None:
    seen = noisy().sensitivity
    assert ((seen > 0.9998) & (seen <= 1)).all()
    wide = window_around(GRID, 0.01)
    open_border = NoiseReports.of(wide, wide, [(0.01, GRID.xy)])
    corner = open_border.sensitivity.reshape(wide.rows, wide.columns)
    assert 0.25 < corner[0, 0] < 0.5
    assert corner[wide.rows // 2, wide.columns // 2] > 0.999


def test_predictions_are_probabilities_of_the_cells_seen() -> None:
    channel = randomised_response(4, epsilon=1.0)
    reports = ChannelReports.of(channel, channel.outputs.xy[[2, 2, 0]])
    assert reports.counts.tolist() == [1, 2]
    assert reports.predict(np.full(4, 0.25)) == pytest.approx([0.25, 0.25])
    assert reports.predict(np.eye(4)[2])[1] == channel.matrix[2, 2]
