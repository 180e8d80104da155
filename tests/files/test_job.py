from pathlib import Path
from typing import Any

import pytest

from geoind.tables.promise import read_promise
from tests.files.test_delimited import obfuscated, reason


@pytest.mark.parametrize(
    ("text", "options", "why"),
    [
        ("", {}, "line 1: the file is empty"),
        ("a,b\n1,2\n", {}, "say which with lon"),
        ("lon,b\n1,2\n", {}, "say which with lat"),
        ("lat,lon,lng\n1,2,3\n", {}, "several columns"),
        ("lat,lon\n1,2\n", {"lat": "y", "lon": "lon"}, "lat: column 'y' must be there once"),
        ("lat,lon,lat\n1,2,3\n", {"lat": "lat", "lon": "lon"}, "several columns are called 'lat'"),
        ("lat,lon\n1,2\n", {"lat": "lon", "lon": "lon"}, "different columns"),
        ("lat,lon\n1,2\n", {"header": False}, "say which with lon"),
        ("lat,lon\n1,2\n".encode("utf-16"), {}, "UTF-16"),
        ("lat,lon\n1,2\n", {"delimiter": "ab"}, "single character"),
        ("lat,lon\n1,2\n", {"delimiter": '"'}, "single character"),
        ("lat,lon\n1,2\n", {"missing": "drop"}, "missing must be"),
        ("lat,lon\n1,2\n", {"format": "xml"}, "format must be one of"),
        ("lat,lon\n1,2\n", {"epsilon": float("nan")}, "epsilon must be positive"),
        ("lat,lon\n1,2\n", {"epsilon": 1e-9}, "reach round the Earth"),
        ("lat,lon\n1,2\n", {"key": bytes(32)}, "go together"),
        ("lat,lon\n1,2\n", {"id_column": "lat"}, "go together"),
        ("lat,lon\n1,2\n", {"id_column": "who", "key": bytes(32)}, "column 'who' must be there once"),
        ("id,lat,lon\n,1,2\n", {"id_column": "id", "key": bytes(32)}, "line 2: there is no identity"),
        ("id,lat,lon\na,1,2\n", {"id_column": "id", "key": b"short"}, "32 bytes"),
    ],
)
def test_bad_requests_are_refused_and_nothing_is_written(
    tmp_path: Path, text: bytes | str, options: dict[str, Any], why: str
) -> None:
    assert why in reason(tmp_path, text, **options)


def test_the_sidecar_tells_the_promise_and_neither_key_nor_truth(tmp_path: Path) -> None:
    key = bytes(range(32))
    obfuscated(
        tmp_path, "id,lat,lon\na,48.8584,2.2945\n", epsilon=None, level=2.0, radius=200, key=key, id_column="id"
    )
    promise = read_promise(tmp_path / "out-in.csv")
    assert (promise.epsilon, promise.level, promise.radius, promise.decimals) == (0.01, 2.0, 200, 5)
    text = (tmp_path / "out-in.csv.geoind.json").read_text()
    assert "48.8584" not in text
    assert key.hex() not in text
