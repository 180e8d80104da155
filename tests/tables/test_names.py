"""A name tells a place in any style and many languages; one that only looks like it does not."""

import pytest

from geoind import InvalidInputError
from geoind.tables.names import coordinate_columns, listed, named_path, paired, tells_motion, tells_place, words_of

TELLING = [
    *("x_min", "Max-Y", "minX", "post_code", "open_location_code", "cell.tower", "what_3_words", "the geom"),
    *("long", "home_long", "alt", "gps_alt", "lange", "user_laenge", "lat_2", "venue7", "geohash9", "cell_id_3"),
    *("address", "work_address", "homelat", "startlng", "car_lon", "Breitengrad", "住所", "my_postcode_old"),
    *(
        "email_address_street",
        "location",
        "w_lan",
        "s2_token_7",
        "house_number",
        "my_house_number",
        "streetNumber",
        "geo_json",
        "lat_lon",
        "a_b_zip_code",
    ),
    *("addr", "adres", "addresses", "geo", "loc", "zip", "gps", "home_lat_7", "start_alt"),
]
PLAIN = [
    *("l_at", "z_ip", "p_oi", "g_ps", "r_ue", "how_long", "long_name", "alt_text", "text_alt", "loc7", "geo3"),
    *("email_address", "ip_addr", "wallet_address", "url_adresse", "has_address", "num_places", "count_venues"),
    *("is_geo", "n_streets", "address_verified", "gps_accuracy", "", "__", "thelat", "balloon", "platform"),
    *(
        "is",
        "status",
        "accuracy",
        "address_time",
        "mail_addresses",
        "mac_adres",
        "web_addr_7",
        "too_alt",
        "7",
        "2_3",
    ),
    *("has_gps", "count_lat", "num_zip", "street_count", "home", "start", "homelatter", "loc12", "geo12"),
]


@pytest.mark.parametrize("name", TELLING)
def test_a_name_of_a_place_is_known_whole_in_parts_and_glued(name: str) -> None:
    assert tells_place(name)


@pytest.mark.parametrize("name", PLAIN)
def test_what_only_looks_like_a_place_is_none(name: str) -> None:
    assert not tells_place(name)


def test_words_come_apart_at_signs_and_capitals_and_lose_accents() -> None:
    assert words_of("HTTPServerLat_2b-Straße") == ("http", "server", "lat", "2b", "strasse")
    assert words_of("ÉlanVital") == ("elan", "vital")


def test_names_that_differ_by_x_and_y_alone_are_a_pair() -> None:
    assert paired(["a_x", "a_y", "b_x", "c_y", "z"]) == ["a_x", "a_y"]
    assert paired(["y", "x"]) == ["y", "x"]


def test_motion_is_known_by_one_word() -> None:
    assert [name for name in ("gpsSpeed", "course", "distance_m", "fare") if tells_motion(name)] == [
        "gpsSpeed",
        "course",
        "distance_m",
    ]


def test_messages_name_columns_and_paths_without_coordinates() -> None:
    assert listed(["a12", "a123", "48.8"]) == "a12, ..., ..."
    assert named_path("a/48.858_2,294/12.34.csv") == "a/..._.../12.34.csv"


def test_coordinates_are_the_only_columns_that_look_like_them_or_those_that_are_named() -> None:
    assert coordinate_columns([" LNG ", "lat", "note"], None, None) == (" LNG ", "lat")
    assert coordinate_columns(["a", "b", "lon", "lat"], "b", "a") == ("b", "a")
    for names, lon, lat, message in (
        (["lat"], None, None, "no column is called lon, lng, long or longitude: say which with lon"),
        (["lon", "lng", "lat"], None, None, "several columns are called lon"),
        (["lon", "lat"], "x", "lat", "lon: column 'x' must be there once, the columns are lon, lat"),
        (["x", "x", "lat"], "x", "lat", "must be there once"),
        (["lon", "lat"], "lon", "lon", "must be two columns"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            coordinate_columns(names, lon, lat)
