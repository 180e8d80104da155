import argparse

import pytest
from geoind.cli.reading import FORMATS, where_of

from geoind.cli.shared import add_reading, reading_of
from geoind.files import Reading, formats


def options(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_reading(parser, "where the places are")
    return parser.parse_args(arguments)


@pytest.mark.parametrize(("text", "delimiter"), [("tab", "\t"), ("\\t", "\t"), (";", ";")])
def test_a_tab_can_be_typed(text: str, delimiter: str) -> None:
    assert reading_of(options("--delimiter", text)).delimiter == delimiter


def test_every_option_reaches_the_reading() -> None:
    reading = reading_of(options("--format", "csv", "--no-header", "--layer", "homes"))
    assert (reading.format, reading.header, reading.layer) == ("csv", False, "homes")
    assert reading_of(options()) == Reading()


def test_places_are_named_as_often_as_there_are_any() -> None:
    where = where_of(options("--lat", "a", "--lon", "b", "--lat", "c", "--lon", "d"))
    assert where == {"lat": ["a", "c"], "lon": ["b", "d"], "geometry": None, "crs": None}
    assert where_of(options("--geometry", "spot", "--crs", "EPSG:2154"))["crs"] == "EPSG:2154"


def test_a_format_can_be_chosen_by_every_name_that_the_library_knows() -> None:
    assert FORMATS == formats.FORMATS
