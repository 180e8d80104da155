"""The cases: ways in which a column tells the place, and columns that do not. One line per case.

Each is a function of the (n, 2) true degrees of a table that gives the column. `BY_VALUE` and `BY_TYPE` must be
refused at every door, `PLAIN` must pass at every door. A door for text writes the columns as text.
"""

import base64
import json
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import shapely

from geoind.tables.cells import maidenhead, quadkey, s2_leaf
from geoind.tables.units import utm

Column = Callable[[Any], Any]

EARTH = 6_378_137.0


def lonlat(count: int = 60, seed: int = 5) -> Any:
    """Return true places in and around a city, in random order, with six decimals."""
    rng = np.random.default_rng(seed)
    return np.round(rng.normal([2.35, 48.86], [0.05, 0.03], (count, 2)), 6)


def mercator(truth: Any) -> Any:
    lon, lat = np.radians(truth.T)
    return EARTH * lon, EARTH * np.log(np.tan(np.pi / 4 + lat / 2))


def sexagesimal(value: float) -> str:
    minutes = (value % 1) * 60
    return f"{int(value)}°{int(minutes):02}'{minutes % 1 * 60:06.3f}\""


def in_parts(value: float) -> tuple[int, int, float]:
    """Return whole degrees, whole minutes, and seconds."""
    minutes = (value % 1) * 60
    return int(value), int(minutes), minutes % 1 * 60


def way(lon: float, lat: float) -> str:
    """Return a way of one place as Google writes it: differences of 1e-5 degrees, five bits a letter."""
    result = ""
    for number in (round(lat * 1e5) << 1, round(lon * 1e5) << 1):
        while number > 31:
            result, number = result + chr((number & 31 | 32) + 63), number >> 5
        result += chr(number + 63)
    return result


def tile(lon: float, lat: float) -> str:
    """Return the tile of level 17 in which a place lies."""
    key = [int(digit) for digit in quadkey(lon, lat, 17)]
    return "17/" + "/".join(str(int("".join(str(digit >> bit & 1) for digit in key), 2)) for bit in (0, 1))


def mgrs(lon: float, lat: float) -> str:
    """Return the MGRS reference of a place, in the square DQ."""
    return "31UDQ" + "".join(f"{int(side % 1e5):05}" for side in utm(np.array([[lon, lat]]))[:, 0])


def geohash_number(lon: float, lat: float, pole: float) -> int:
    """Return a geohash of 52 bits as a number: those of the longitude and of the latitude in turn."""
    east, north = int((lon + 180) / 360 * 2**26), int((lat + pole) / (2 * pole) * 2**26)
    return sum((east >> at & 1) << 2 * at + 1 | (north >> at & 1) << 2 * at for at in range(26))


def geohash(lon: float, lat: float) -> str:
    """Return a geohash of seven letters, by halving: longitude and latitude in turn."""
    west, east, south, north = -180.0, 180.0, -90.0, 90.0
    bits = ""
    for turn in range(35):
        if turn % 2 == 0:
            middle = (west + east) / 2
            west, east = (middle, east) if lon >= middle else (west, middle)
            bits += str(int(lon >= middle))
        else:
            middle = (south + north) / 2
            south, north = (middle, north) if lat >= middle else (south, middle)
            bits += str(int(lat >= middle))
    return "".join("0123456789bcdefghjkmnpqrstuvwxyz"[int(bits[at : at + 5], 2)] for at in range(0, 35, 5))


H3_CELLS = ("891fb4646d3ffff", "8a1fb46741affff", "8f1fb4646d26b12")
"""Around Paris, of three levels."""


def plus_code(lon: float, lat: float) -> str:
    """Return the plus code of a place, by its five steps of a twentieth each."""
    east, north = int((lon + 180) * 8000), int((lat + 90) * 8000)
    signs = "23456789CFGHJMPQRVWX"
    pairs = [f"{signs[north // 20**at % 20]}{signs[east // 20**at % 20]}" for at in range(5)]
    return "".join(reversed(pairs[1:])) + "+" + pairs[0]


BY_VALUE: dict[str, Column] = {
    # name of the case: (a column's values); the column is called "note", which tells nothing
    "latitude": lambda truth: truth[:, 1],
    "longitude": lambda truth: truth[:, 0],
    "sign turned": lambda truth: -truth[:, 0],
    "float32": lambda truth: truth[:, 1].astype(np.float32),
    "rounded to 3 decimals": lambda truth: np.round(truth[:, 1], 3),
    "rounded to 2 decimals": lambda truth: np.round(truth[:, 1], 2),
    "half a metre off": lambda truth: truth[:, 1] + np.random.default_rng(1).normal(0, 4e-6, len(truth)),
    "radians": lambda truth: np.radians(truth[:, 1]),
    "arc seconds": lambda truth: truth[:, 1] * 3600,
    "milliarcseconds": lambda truth: np.rint(truth[:, 0] * 3.6e6).astype(np.int64),
    "1e-7 degrees": lambda truth: np.rint(truth[:, 1] * 1e7).astype(np.int64),
    "1e-6 degrees": lambda truth: np.rint(truth[:, 0] * 1e6).astype(np.int32),
    "1e-5 degrees": lambda truth: np.rint(truth[:, 1] * 1e5).astype(np.int32),
    "semicircles": lambda truth: np.rint(truth[:, 1] * 2**31 / 180).astype(np.int64),
    "NMEA": lambda truth: np.floor(truth[:, 1]) * 100 + (truth[:, 1] % 1) * 60,
    "Web Mercator x": lambda truth: mercator(truth)[0],
    "Web Mercator y": lambda truth: np.round(mercator(truth)[1]),
    "text": lambda truth: [str(lat) for _, lat in truth],
    "both in a text": lambda truth: [f"{lat}, {lon}" for lon, lat in truth],
    "decimal commas": lambda truth: [f"bei {lat}".replace(".", ",") for _, lat in truth],
    "WKT": lambda truth: [f"POINT ({lon} {lat})" for lon, lat in truth],
    "GeoJSON": lambda truth: [json.dumps({"type": "Point", "coordinates": [lon, lat]}) for lon, lat in truth],
    "a link": lambda truth: [f"https://maps.example/?q={lat},{lon}&z=17" for lon, lat in truth],
    "degrees, minutes, seconds": lambda truth: [f"{sexagesimal(lat)}N" for _, lat in truth],
    "geohashes": lambda truth: [geohash(lon, lat) for lon, lat in truth],
    "geohashes as numbers": lambda truth: [geohash_number(lon, lat, 90) for lon, lat in truth],
    "geohashes of Redis": lambda truth: [geohash_number(lon, lat, 85.05112878) for lon, lat in truth],
    "quadkeys": lambda truth: [quadkey(lon, lat, 17) for lon, lat in truth],
    "plus codes": lambda truth: [plus_code(lon, lat) for lon, lat in truth],
    "short plus codes": lambda truth: [f"{plus_code(lon, lat)[4:]} Paris" for lon, lat in truth],
    "S2 tokens": lambda truth: [f"{s2_leaf(lon, lat) >> 32 | 1:x}".rstrip("0") for lon, lat in truth],
    "S2 cells": lambda truth: [s2_leaf(lon, lat) for lon, lat in truth],
    "H3 cells": lambda truth: [H3_CELLS[row % len(H3_CELLS)] for row in range(len(truth))],
    "H3 cells as numbers": lambda truth: [int(H3_CELLS[row % len(H3_CELLS)], 16) for row in range(len(truth))],
    "in one row of ten": lambda truth: [lat if row % 10 == 0 else None for row, (_, lat) in enumerate(truth)],
    "WKB in hexadecimal digits": lambda truth: list(shapely.to_wkb(shapely.points(truth), hex=True)),
    "digits without a point": lambda truth: [f"ref-{round(lat * 1e6)}" for _, lat in truth],
    "minutes and seconds between colons": lambda truth: [
        "{}:{:02}:{:05.2f}".format(*in_parts(lat)) for _, lat in truth
    ],
    "minutes and seconds between spaces": lambda truth: [
        "{} {:02} {:05.2f} N".format(*in_parts(lat)) for _, lat in truth
    ],
    "minutes and seconds between letters": lambda truth: [
        "{}d{:02}m{:05.2f}s".format(*in_parts(lat)) for _, lat in truth
    ],
    "degrees and decimal minutes": lambda truth: [f"N {int(lat)}° {lat % 1 * 60:.3f}'" for _, lat in truth],
    "rationals of a photograph": lambda truth: [
        "{}/1, {}/1, {}/1000".format(*in_parts(lat)[:2], round(in_parts(lat)[2] * 1000)) for _, lat in truth
    ],
    "seconds without a sign": lambda truth: ["{}{:02}{:05.2f}N".format(*in_parts(lat)) for _, lat in truth],
    "what follows the point": lambda truth: truth[:, 1] % 1,
    "minutes of a degree": lambda truth: truth[:, 1] * 60 % 60,
    "seconds of a minute": lambda truth: truth[:, 1] * 3600 % 60,
    "gradians": lambda truth: truth[:, 1] / 0.9,
    "1e-9 degrees": lambda truth: np.rint(truth[:, 1] * 1e9).astype(np.int64),
    "hundredths": lambda truth: np.rint(truth[:, 1] * 100).astype(np.int64),
    "counted from the pole": lambda truth: 90 - truth[:, 1],
    "counted from the antimeridian": lambda truth: truth[:, 0] + 180,
    "sine": lambda truth: np.sin(np.radians(truth[:, 1])),
    "UTM easting": lambda truth: utm(truth)[0],
    "UTM in a text": lambda truth: ["31U {:.0f} {:.0f}".format(*place) for place in utm(truth).T],
    "MGRS": lambda truth: [mgrs(*place) for place in truth],
    "Maidenhead": lambda truth: [maidenhead(*place).lower() for place in truth],
    "tiles": lambda truth: [tile(*place) for place in truth],
    "encoded ways": lambda truth: [way(*place) for place in truth],
    "digits of another script": lambda truth: [
        str(lat).translate(str.maketrans("0123456789.", "٠١٢٣٤٥٦٧٨٩٫")) for _, lat in truth
    ],
    "an escaped link": lambda truth: [f"q={lat}%2C{lon}".replace(".", "%2E") for lon, lat in truth],
    "a text in hexadecimal digits": lambda truth: [f"{lat:.6f}".encode().hex() for _, lat in truth],
    "a double in hexadecimal digits": lambda truth: [struct.pack("<d", lat).hex() for _, lat in truth],
    "WKB in base64": lambda truth: [
        base64.b64encode(shapely.to_wkb(shapely.Point(place))).decode() for place in truth
    ],
    "text in base64": lambda truth: [base64.b64encode(f"{lat},{lon}".encode()).decode() for lon, lat in truth],
    "of the row before": lambda truth: np.roll(truth[:, 1], 1),
    "of the row before, in a text": lambda truth: [f"from {lat}, {lon}" for lon, lat in np.roll(truth, 1, axis=0)],
    "in another order": lambda truth: np.sort(truth[:, 0]),
    "all places in each row": lambda truth: [" ".join(map(str, truth.ravel()))] * len(truth),
    "all places in one row": lambda truth: [" ".join(map(str, truth.ravel())), *["x"] * (len(truth) - 1)],
}

BY_TYPE: dict[str, Column] = {
    "struct of two numbers": lambda truth: pa.array([{"a": lon, "b": lat} for lon, lat in truth]),
    "list of two numbers": lambda truth: pa.array(truth.tolist()),
    "fixed list": lambda truth: pa.FixedSizeListArray.from_arrays(pa.array(truth.ravel()), 2),
    "WKB": lambda truth: pa.array([np.array([lon, lat]).tobytes() for lon, lat in truth]),
    "nested member": lambda truth: pa.array([{"a": {"b": lat, "c": "x", "d": 1}} for _, lat in truth]),
    "list of structs": lambda truth: pa.array([[{"q": lat, "r": "s", "t": 0}] for _, lat in truth]),
    "dictionary": lambda truth: pa.array([str(lat) for _, lat in truth]).dictionary_encode(),
    "text as bytes": lambda truth: pa.array([f"{lat},{lon}".encode() for lon, lat in truth]),
    "floats as bytes": lambda truth: pa.array([struct.pack(">ff", lon, lat) for lon, lat in truth]),
}
"""Only where a format has such types."""

BY_ARROW: dict[str, Column] = {
    "map": lambda truth: pa.array([[("a", lat)] for _, lat in truth], pa.map_(pa.string(), pa.float64())),
    "integers as bytes": lambda truth: pa.array([struct.pack("<i", round(lat * 1e7)) for _, lat in truth]),
    "hours, minutes and seconds": lambda truth: pa.array(np.rint(truth[:, 1] * 3.6e9).astype("m8[us]")),
    "time of day": lambda truth: pa.array(np.rint(truth[:, 0] * 3.6e9).astype(np.int64)).cast(pa.time64("us")),
    "days since 1970": lambda truth: pa.array(np.rint(truth[:, 1] * 1e7).astype("M8[ns]")),
}
"""Only Arrow and Parquet have such types."""

TELLING_NAMES = (
    *("lat", "LATITUDE", "pickupLatitude", "home_lng", "homelat", "latE7", "breite", "Längengrad", "easting"),
    *("geohash", "geohash_7", "h3", "h3_index", "S2CellId", "plus_code", "what3words", "w3w", "quadkey", "mgrs"),
    *(
        "address",
        "homeAddress",
        "street",
        "Straße",
        "postcode",
        "zip",
        "plz",
        "codePostal",
        "dirección",
        "adresse",
    ),
    *(
        "ele",
        "elevation",
        "altitude",
        "wifi",
        "ssid",
        "bssid",
        "cell_id",
        "venue",
        "poi",
        "PULocationID",
        "location",
    ),
    *("bbox", "xmin", "geom", "the_geom", "wkt", "coordinates", "gps", "hilbert_distance", "gridRef", "x_coord"),
    *("широта", "纬度", "経度", "위도", "enlem", "szerokość", "endereço", "place_id", "lat2", "start-lon"),
)

PLAIN_NAMES = (
    *("late", "platform", "latency", "salon", "plate", "translate", "long_name", "belongs", "latest", "lonely"),
    *(
        "address_verified",
        "email_address",
        "ip_address",
        "gps_accuracy",
        "location_time",
        "has_address",
        "alt_text",
    ),
    *("id", "trip", "person", "price", "fare", "speed", "heading", "name", "note", "time", "created_at", "city"),
    *("country", "status", "score", "category", "temperature", "flat", "relation", "balloon", "colon", "shape"),
    *("width", "length", "rank", "workplace", "streetwear", "population", "display_name", "vehicle_type_1", "x"),
)

PLAIN: dict[str, Column] = {
    "row number": lambda truth: np.arange(len(truth)),
    "random ids": lambda truth: np.random.default_rng(2).integers(0, 1 << 62, len(truth)),
    "eight digits": lambda truth: np.random.default_rng(2).integers(10_000_000, 99_999_999, len(truth)),
    "prices": lambda truth: np.round(np.random.default_rng(3).gamma(3, 6, len(truth)), 2),
    "speeds": lambda truth: np.random.default_rng(4).uniform(0, 130, len(truth)),
    "shares": lambda truth: np.random.default_rng(5).uniform(0, 1, len(truth)),
    "ages": lambda truth: np.random.default_rng(6).integers(18, 90, len(truth)),
    "near the latitude by chance": lambda truth: np.random.default_rng(7).normal(48.86, 0.03, len(truth)).round(2),
    "follows the latitude": lambda truth: 1000 * (truth[:, 1] - 48),
    "ranks of the latitude's digits": lambda truth: np.rint(truth[:, 1] * 1e6).astype(np.int64) % 10,
    "always the same": lambda truth: np.full(len(truth), 48.86),
    "zeros": lambda truth: np.zeros(len(truth)),
    "epoch seconds": lambda truth: 1_700_000_000 + np.random.default_rng(8).integers(0, 86_400, len(truth)),
    "times": lambda truth: [f"2024-05-{1 + row % 28:02}T12:{row % 60:02}:07Z" for row in range(len(truth))],
    "identities": lambda truth: [f"trip-{row:08}" for row in range(len(truth))],
    "hashes": lambda truth: [np.random.default_rng(row).bytes(16).hex() for row in range(len(truth))],
    "words": lambda truth: ["a quiet evening with 2 friends" for _ in truth],
    "phone numbers": lambda truth: [f"+33 6 {11 + row} 22 33 {row % 90 + 10}" for row in range(len(truth))],
    "nothing": lambda truth: [None] * len(truth),
    "booleans": lambda truth: [row % 2 == 0 for row in range(len(truth))],
}


def table_with(truth: Any, column: Any, name: str = "note") -> pa.Table:
    """Return a table of places with one more column."""
    values = column if isinstance(column, pa.Array) else pa.array(column)
    rows = pa.array(range(len(truth)))
    return pa.table({"trip": rows, "lon": truth[:, 0], "lat": truth[:, 1], name: values})
