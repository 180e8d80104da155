"""Cells of geohash and H3: known names, and there and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoind import InvalidInputError, Projection
from geoind.distances import euclidean, haversine
from geoind.space import CellSites, cell_centres, cell_names

PLACES = st.tuples(st.floats(-180, 180), st.floats(-90, 90))


@pytest.mark.parametrize(
    ("lonlat", "name"),
    [
        ((10.40744, 57.64911), "u4pruydqqvj"),
        ((-5.6, 42.6), "ezs42"),
        ((112.5584, 37.8324), "ww8p1r4t8"),
        ((180.0, 90.0), "zzzzzzz"),
        ((-180.0, -90.0), "0000000"),
    ],
)
def test_geohashes_are_those_of_others(lonlat: tuple[float, float], name: str) -> None:
    assert cell_names([lonlat], f"geohash:{len(name)}") == [name]


@given(PLACES, st.integers(1, 12))
def test_the_centre_of_a_geohash_is_in_it_and_longer_ones_refine_it(place: tuple[float, float], size: int) -> None:
    [name] = cell_names([place], f"geohash:{size}")
    [centre] = cell_centres([name])
    assert cell_names([centre], f"geohash:{size}") == [name]
    wide, high = 360 / 2 ** ((5 * size + 1) // 2), 180 / 2 ** (5 * size // 2)
    assert (np.abs(centre - place) <= np.array([wide, high]) / 2 * (1 + 1e-6)).all()
    assert cell_names([place], "geohash:12")[0].startswith(name)


@pytest.mark.parametrize("system", ["geohash:6", "h3:8"])
def test_cells_are_sites_with_distances_on_the_ground(system: str) -> None:
    lonlat = np.random.default_rng(1).uniform((2.3, 48.8), (2.4, 48.9), (40, 2))
    names = sorted(set(cell_names(lonlat, system)))
    sites = CellSites(names, Projection(2.35, 48.85))
    assert sites.system == system
    assert (sites.numbers(lonlat) == [names.index(name) for name in cell_names(lonlat, system)]).all()
    assert sites.numbers([[0.0, 0.0]]).tolist() == [-1]
    assert (sites.nearest(sites.xy) == np.arange(len(sites))).all()
    ground = haversine(cell_centres(names), cell_centres(names))
    # A sphere and WGS84 differ by up to half a percent.
    assert np.allclose(euclidean(sites.xy, sites.xy), ground, rtol=5e-3)


@pytest.mark.parametrize("cells", ["h3", "h3:16", "geohash:0", "geohash:13", "s2:4", "geohash:-1", "", "h3:9\n"])
def test_other_cells_are_refused(cells: str) -> None:
    with pytest.raises(InvalidInputError, match="cells must be"):
        cell_names([[0, 0]], cells)


@pytest.mark.parametrize(
    "cells",
    [
        [],
        ["ezs42", "ezs42"],
        ["ezs42", "ezs4"],
        ["ezs4a"],
        "ezs42",
        ["891fb467413ffff", "ezs42"],
        ["881fb4662dfffff", "8001fffffffffff"],
        [7],
    ],
)
def test_cells_that_are_no_sites_are_refused(cells: list[str]) -> None:
    with pytest.raises(InvalidInputError, match="cell"):
        CellSites(cells, Projection(0, 0))
