import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoind.errors import InvalidInputError
from geoind.files.formats import Rows
from geoind.files.google import READ, open_google
from tests.files.test_delimited import Given


def history(value: Any) -> Rows:
    source = open_google(Given(value if isinstance(value, bytes) else json.dumps(value).encode()))
    (rows,) = source.rows()
    return rows


def points(value: Any) -> list[tuple[str, ...]]:
    return [tuple(row.values()) for row in history(value).batch.to_pylist()]


RECORDS = {
    "locations": [
        {"latitudeE7": 488584000, "longitudeE7": -22945001, "timestamp": "2024-01-02T00:00:00.5Z", "accuracy": 12},
        {
            "latitudeE7": 5,
            "longitudeE7": 1000000000,
            "timestampMs": "1600000000123",
            "activity": [{"timestamp": "x"}],
        },
        {"timestamp": "2024-01-01T00:00:00Z", "source": "WIFI"},
    ]
}
ANDROID = {
    "semanticSegments": [
        {
            "startTime": "2024-05-02T08:00:00.000+02:00",
            "endTime": "2024-05-02T10:00:00.000+02:00",
            "timelinePath": [
                {"point": "48.8584°, 2.2945°", "time": "2024-05-02T08:10:00.000+02:00"},
                {"point": "-48.86°, -2.3°", "time": "2024-05-02T08:05:00.000+02:00"},
            ],
        },
        {
            "startTime": "2024-05-01T08:00:00.000+02:00",
            "visit": {"topCandidate": {"placeId": "x", "placeLocation": {"latLng": "48.1°, 2.1°"}}},
        },
        {"startTime": "2024-05-01T09:00:00.000+02:00", "activity": {"start": {"latLng": "1.0°, 2.0°"}}},
    ],
    "rawSignals": [{"position": {"LatLng": "1.0°, 2.0°", "timestamp": "2024-05-01T09:00:00.000+02:00"}}],
    "userLocationProfile": {"frequentPlaces": [{"placeLocation": "1.0°, 2.0°"}]},
}
IOS = [
    {
        "endTime": "2024-05-02T10:00:00.000+02:00",
        "startTime": "2024-05-02T08:00:00.000+02:00",
        "timelinePath": [{"point": "geo:48.8584,2.2945", "durationMinutesOffsetFromStartTime": "65"}],
    },
    {
        "startTime": "2024-05-02T08:30:00.000+02:00",
        "visit": {"hierarchyLevel": "0", "topCandidate": {"placeLocation": "geo:-48.1,2.1"}},
    },
]


def test_records_are_read_in_the_order_of_time() -> None:
    assert points(RECORDS) == [
        ("0.0000005", "100.0000000", "2020-09-13T12:26:40.123Z"),
        ("48.8584000", "-2.2945001", "2024-01-02T00:00:00.500Z"),
    ]
    assert history(RECORDS).bad == []


def test_paths_and_visits_of_an_android_timeline_are_read() -> None:
    assert points(ANDROID) == [
        ("48.1", "2.1", "2024-05-01T06:00:00.000Z"),
        ("-48.86", "-2.3", "2024-05-02T06:05:00.000Z"),
        ("48.8584", "2.2945", "2024-05-02T06:10:00.000Z"),
    ]


def test_paths_and_visits_of_an_ios_timeline_are_read() -> None:
    assert points(IOS) == [
        ("-48.1", "2.1", "2024-05-02T06:30:00.000Z"),
        ("48.8584", "2.2945", "2024-05-02T07:05:00.000Z"),
    ]


def test_points_of_one_time_stay_in_the_order_of_the_file() -> None:
    # Sorted by place they would show which of two reports is farther north.
    paths = [{"point": f"{lat}°, 2°", "time": "2024-05-01T00:00:00Z"} for lat in (48, 50, 49)]
    assert [lat for lat, *_ in points([{"timelinePath": paths}])] == ["48", "50", "49"]


@pytest.mark.parametrize(
    ("segment", "reason"),
    [
        ({"timelinePath": [{"point": "geo:x,1"}]}, "place"),
        ({"timelinePath": [{"point": "geo:1,1"}]}, "time"),
        ({"timelinePath": [{"point": "geo:1,1", "time": "yesterday"}]}, "time"),
        ({"startTime": "2024-05-01", "timelinePath": [{"point": "geo:1,1", "time": None}]}, "time"),
        (
            {
                "startTime": "2024-05-01T00:00:00Z",
                "timelinePath": [{"point": "geo:1,1", "durationMinutesOffsetFromStartTime": "1e300"}],
            },
            "time",
        ),
        (
            {"startTime": "0001-01-01T00:00:00+05:00", "visit": {"topCandidate": {"placeLocation": "geo:1,1"}}},
            "time",
        ),
    ],
)
def test_a_point_without_place_or_time_is_bad(segment: Any, reason: str) -> None:
    rows = history([*IOS, segment])
    assert rows.numbers.tolist() == [1, 2]
    assert [(record.row, record.reason) for record in rows.bad] == [(3, f"has no valid {reason}")]


@pytest.mark.parametrize("lat", [None, True, 1.5, "48", 10**400, -(10**10)])
def test_a_record_whose_place_is_no_number_is_bad(lat: Any) -> None:
    rows = history({"locations": [{"latitudeE7": lat, "longitudeE7": 1, "timestamp": "2024-01-01T00:00:00Z"}]})
    assert [record.reason for record in rows.bad] == ["has no valid place"]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"secret", b"[" * 100_000, b"\xff\xfe[", b"5", b"{}", b'{"locations": 5}']
)
def test_what_is_no_history_is_refused_without_quoting_it(content: bytes) -> None:
    with pytest.raises(
        InvalidInputError, match=r"^the file must be (JSON|a Records.json or a Timeline.json of Google)$"
    ):
        history(content)


VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.sampled_from(["geo:1,2", "2024-01-01"])
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(sorted(READ)), inner, max_size=4)
    ),
)


@given(VALUES, VALUES)
def test_any_json_gives_points_or_is_refused(locations: Any, segments: Any) -> None:
    for value in (segments, {"locations": locations, "semanticSegments": segments}):
        try:
            rows = history(value)
        except InvalidInputError:
            continue
        assert rows.batch.num_rows == len(rows.numbers)
        assert rows.batch["time"].to_pylist() == sorted(rows.batch["time"].to_pylist())
