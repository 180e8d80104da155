"""Coordinates in every usual unit, against somebody else's numbers."""

import numpy as np
import pyproj
import pytest

from geoind.tables.units import NAMES, NEARNESS, in_every_unit, utm


@pytest.mark.parametrize(
    ("lon", "lat", "epsg"), [(2.2945, 48.8584, 32631), (-70.6, -33.4, 32719), (0.1, 83.9, 32631)]
)
def test_utm_agrees_with_proj_to_a_millimetre(lon: float, lat: float, epsg: int) -> None:
    wanted = pyproj.Transformer.from_crs(4326, epsg, always_xy=True).transform(lon, lat)
    np.testing.assert_allclose(utm(np.array([[lon, lat]]))[:, 0], wanted, atol=1e-3)


def test_there_is_a_name_and_a_nearness_for_every_unit() -> None:
    rows = in_every_unit(np.array([[2.5, 48.50125], [np.nan, np.nan]]))
    # The two of the table's own CRS are added where they are known.
    assert len(rows) == len(NEARNESS) == len(NAMES) - 2
    value = {name: size for name, (size, _) in zip(NAMES, rows, strict=False)}
    assert value["the latitude in degrees, minutes and seconds"] == pytest.approx(483004.5)
    assert value["the latitude in seconds without degrees and minutes"] == pytest.approx(4.5)
    assert value["the longitude counted from the antimeridian"] == 182.5
