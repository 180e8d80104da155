import numpy as np
import pyproj
import pytest

from geoind import (
    Grid,
    InvalidInputError,
    Mechanism,
    PlanarLaplace,
    Projected,
    Projection,
    SphericalLaplace,
    discretise,
    randomised_response,
)
from geoind.distances import haversine
from geoind.estimate.convolution import window_around
from geoind.estimate.observation import (
    Observation,
    _ChannelReports,
    _NoiseReports,
    _Together,
    epsilon_in_plane,
    grouped,
)

GRID = Grid(0, 0, cell=100, columns=6, rows=4)
RNG = np.random.default_rng(1)


def noisy(grid: Grid = GRID, epsilons: tuple[float, ...] = (0.01, 0.03)) -> _NoiseReports:
    window = window_around(grid, min(epsilons))
    groups = [(epsilon, PlanarLaplace(epsilon).sample(grid.xy, rng=5)) for epsilon in epsilons]
    return _NoiseReports.of(grid, window, groups)


def channelled() -> _ChannelReports:
    channel = discretise(PlanarLaplace(0.01), GRID)
    return _ChannelReports.of(channel, channel.sample(GRID.xy, rng=6))


@pytest.mark.parametrize("observation", [noisy(), channelled(), _Together((noisy(), channelled()))])
def test_explain_is_the_transpose_of_predict(observation: Observation) -> None:
    mass, weights = RNG.random(len(GRID)), RNG.random(len(observation.counts))
    assert observation.predict(mass) @ weights == pytest.approx(observation.explain(weights) @ mass, rel=1e-10)


def test_every_report_is_counted_once() -> None:
    assert noisy().counts.sum() == 2 * len(GRID)
    assert channelled().counts.sum() == len(GRID)
    assert _Together((noisy(), channelled())).counts.sum() == 3 * len(GRID)


def test_hardly_a_report_leaves_the_window_unless_people_live_on_its_border() -> None:
    seen = noisy().sensitivity
    assert ((seen > 0.9998) & (seen <= 1)).all()
    wide = window_around(GRID, 0.01)
    open_border = _NoiseReports.of(wide, wide, [(0.01, GRID.xy)])
    corner = open_border.sensitivity.reshape(wide.rows, wide.columns)
    assert 0.25 < corner[0, 0] < 0.5
    assert corner[wide.rows // 2, wide.columns // 2] > 0.999


def test_predictions_are_probabilities_of_the_cells_seen() -> None:
    channel = randomised_response(4, epsilon=1.0)
    reports = _ChannelReports.of(channel, channel.outputs.xy[[2, 2, 0]])
    assert reports.counts.tolist() == [1, 2]
    assert reports.predict(np.full(4, 0.25)) == pytest.approx([0.25, 0.25])
    assert reports.predict(np.eye(4)[2])[1] == channel.matrix[2, 2]


WIDE = Grid(-2000, -2000, cell=100, columns=41, rows=41)


def test_planar_noise_counts_with_the_epsilon_it_was_drawn_with() -> None:
    noise = PlanarLaplace(1e-3)
    assert epsilon_in_plane(noise, WIDE, None) == noise.noise_epsilon
    [(planar, xy)], projection = grouped([[0.0, 0.0]], Projected(noise, Projection(0, 0)), None)
    assert (planar, projection) == (noise, Projection(0, 0))
    np.testing.assert_allclose(xy, 0, atol=1e-6)


@pytest.mark.parametrize("lat", [0.0, 48.86, 85.0])
def test_noise_on_the_sphere_counts_in_metres_of_the_plane(lat: float) -> None:
    globe, projection = SphericalLaplace(0.01), Projection(2.35, lat)
    ratio = epsilon_in_plane(globe, WIDE, projection) / globe.noise_epsilon
    # Great-circle metres per WGS84 metre, to the north-east of the origin.
    geodesic = pyproj.Geod(ellps="WGS84")
    lon, north, _ = geodesic.fwd(2.35, lat, 45.0, 1000.0)
    expected = haversine(np.array([[2.35, lat]]), np.array([[lon, north]]))[0, 0] / 1000
    assert ratio == pytest.approx(expected, abs=2e-4)
    assert 0.9955 < ratio < 1.0057


def test_reports_are_split_by_what_made_them() -> None:
    reports = np.arange(12.0).reshape(6, 2)
    groups, projection = grouped(reports, [0.02, 0.01, 0.02, 0.01, 0.01, 0.02], None)
    assert projection is None
    assert [mechanism.epsilon for mechanism, _ in groups] == [0.01, 0.02]
    assert groups[0][1].tolist() == reports[[1, 3, 4]].tolist()
    channel, noise = randomised_response(3, epsilon=1.0), PlanarLaplace(0.01)
    mechanisms: list[Mechanism] = [noise, channel, noise, channel, PlanarLaplace(0.01), channel]
    groups, _ = grouped(reports, mechanisms, None)
    assert [(mechanism, len(xy)) for mechanism, xy in groups] == [(noise, 3), (channel, 3)]


def test_a_number_is_noise_on_the_globe_only_where_there_is_a_projection() -> None:
    [(plane, _)], _ = grouped([[0.0, 0.0]], 0.01, None)
    [(globe, _)], _ = grouped([[0.0, 0.0]], 0.01, Projection(0, 0))
    assert isinstance(plane, PlanarLaplace)
    assert isinstance(globe, SphericalLaplace)


def test_a_channel_s_epsilon_is_not_measured_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    channel = randomised_response(3, epsilon=1.0)
    monkeypatch.setattr("geoind.channels.channel.tight_epsilon", lambda *_: pytest.fail("measured"))
    grouped(channel.outputs.xy, channel, None)
    grouped(channel.outputs.xy, [channel] * 3, None)


def test_points_only() -> None:
    import geopandas
    import shapely

    lines = geopandas.GeoSeries([shapely.LineString([(0, 0), (1, 1)])], crs=4326)
    with pytest.raises(InvalidInputError, match="points"):
        grouped(lines, 0.01, Projection(0, 0))
    with pytest.raises(InvalidInputError, match="points"):
        grouped(geopandas.GeoSeries([shapely.Point(0, 0), None], crs=4326), 0.01, Projection(0, 0))
