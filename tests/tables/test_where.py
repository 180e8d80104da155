"""Columns of places are named in pairs, or as one geometry."""

from typing import Any

import pytest

from geoind import InvalidInputError
from geoind.tables.where import LonLat, Points, places_of


@pytest.mark.parametrize(
    ("given", "places"),
    [
        ((None, None, None, None), ()),
        (("a", "b", None, None), (LonLat("a", "b"),)),
        ((["a", "c"], ["b", "d"], None, None), (LonLat("a", "b"), LonLat("c", "d"))),
        ((None, None, "g", None), (Points("g", None),)),
        ((None, None, "g", "EPSG:2154"), (Points("g", "EPSG:2154"),)),
        ((None, None, None, "EPSG:2154"), (Points(None, "EPSG:2154"),)),
        (("a", None, "g", None), "give `lon=` and `lat=`, or `geometry=`, not both"),
        ((None, "b", "g", None), "give `lon=` and `lat=`, or `geometry=`, not both"),
        (("a", None, None, "EPSG:2154"), "`crs=` is the CRS of a geometry"),
        ((None, "b", None, "EPSG:2154"), "`crs=` is the CRS of a geometry"),
        (("a", None, None, None), "got 1 and 0 columns"),
        ((["a", "c"], "b", None, None), "got 2 and 1 columns"),
        (("a", "a", None, None), "must be different columns"),
        ((["a", "a"], ["b", "d"], None, None), "must be different columns"),
        ((["a", "c"], ["b", "a"], None, None), "must be different columns"),
    ],
)
def test_places_are_pairs_of_columns_or_one_geometry(given: Any, places: Any) -> None:
    if isinstance(places, str):
        with pytest.raises(InvalidInputError, match=places):
            places_of(*given)
    else:
        assert places_of(*given) == places


def test_a_place_has_the_names_of_its_columns() -> None:
    assert LonLat("a", "b").names == ("a", "b")
    assert Points("g", "EPSG:2154").names == ("g",)
    assert Points().names == Points(None, "EPSG:2154").names == ()
