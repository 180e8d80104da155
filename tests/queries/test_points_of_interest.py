import json
import os
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from geoind import private_query
from geoind.errors import InvalidInputError
from geoind.queries import PointsOfInterest
from geoind.queries.points_of_interest import closest, distances_from, lonlat_of
from tests.queries.test_private_query import ASK, EIFFEL, GEOD, distances, frame_of, places


def test_shapes_are_measured_to_their_closest_point() -> None:
    park = shapely.box(2.2945 + 0.001, 48.858, 2.2945 + 0.01, 48.859)
    query = private_query(**ASK)
    found = query.refine(geopandas.GeoDataFrame(geometry=[park], crs=4326))
    assert found["distance"].iloc[0] == pytest.approx(73.4, abs=0.3)


@pytest.mark.parametrize(
    ("lat", "lon", "radius"),
    [
        (0.0, 179.999, 5000.0),
        (60.0, -179.999, 50_000.0),
        (89.99, 10.0, 20_000.0),
        (-89.9, 10.0, 5000.0),
        (48.0, 2.0, 3e6),
        (10.0, 0.0, 19e6),
    ],
    ids=str,
)
def test_the_index_finds_what_measuring_everything_finds(lat: float, lon: float, radius: float) -> None:
    rng = np.random.default_rng(8)
    uniform = np.column_stack([rng.uniform(-180, 180, 3000), np.degrees(np.arcsin(rng.uniform(-1, 1, 3000)))])
    bearing, apart = rng.uniform(0, 360, 3000), radius * rng.uniform(0, 1.3, 3000) ** 0.5
    ones = np.ones(3000)
    close = np.column_stack(GEOD.fwd(lon * ones, lat * ones, bearing, np.minimum(apart, 2e7))[:2])
    lonlat = np.vstack(
        [uniform, close, np.column_stack([uniform[:, 0], np.sign(lat + 0.1) * (90 - 0.001 * ones)])]
    )
    found = PointsOfInterest(frame_of(lonlat)).around(lat=lat, lon=lon, radius=radius)
    exact = distances(lonlat, lat, lon)
    assert sorted(found["number"]) == np.flatnonzero(exact <= radius).tolist()
    assert found["distance"].is_monotonic_increasing


def test_places_come_from_a_geoparquet_file(tmp_path: object) -> None:
    path = f"{tmp_path}/places.parquet"
    frame_of(places(200)).to_crs(2154).to_parquet(path)
    source = PointsOfInterest.read(path)
    assert source.frame.crs == "EPSG:4326"
    assert 0 < len(source.around(**EIFFEL, radius=1000)) < 200
    frame_of(places(200)).to_file(f"{tmp_path}/places.geojson")
    assert len(PointsOfInterest.read(f"{tmp_path}/places.geojson").frame) == 200


@pytest.mark.parametrize("item", [{"lat": True, "lon": 2.0}, {"location": {"latitude": 48.0, "longitude": False}}])
def test_a_boolean_of_a_provider_is_not_a_coordinate(item: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="results must be numbers"):
        lonlat_of([item])
    with pytest.raises(InvalidInputError, match="centre: lat must be a number"):
        distances_from([[2.0, 48.0]], lat=True, lon=2.0)


def test_a_parquet_file_with_hostile_metadata_is_one_error(tmp_path: Path) -> None:
    for value in (b"\xff", b"{", b"[]", b'{"columns": []}'):
        table = pa.table({"geometry": [b"x"]}).replace_schema_metadata({b"geo": value})
        pq.write_table(table, tmp_path / "p.parquet")
        with pytest.raises(InvalidInputError, match="cannot be read as GeoParquet"):
            PointsOfInterest.read(tmp_path / "p.parquet")
    with pytest.raises(InvalidInputError, match="must be an existing local file"):
        PointsOfInterest.read("http://127.0.0.1:9/p.parquet")


def test_geoparquet_without_a_crs_is_in_degrees(tmp_path: Path) -> None:
    geopandas.GeoDataFrame(geometry=[shapely.Point(2, 48)], crs=4326).to_parquet(tmp_path / "in.parquet")
    table = pq.read_table(tmp_path / "in.parquet")
    geo = json.loads(table.schema.metadata[b"geo"])
    del geo["columns"]["geometry"]["crs"]
    pq.write_table(table.replace_schema_metadata({b"geo": json.dumps(geo)}), tmp_path / "in.parquet")
    found = PointsOfInterest.read(tmp_path / "in.parquet").around(lat=48.0, lon=2.0, radius=1.0)
    assert found["distance"].tolist() == [0.0]


def test_a_place_at_exactly_the_radius_is_inside() -> None:
    lonlat = np.array([[2.301, 48.8612]])
    [radius] = distances_from(lonlat, **EIFFEL).tolist()
    records = [{"lon": 2.301, "lat": 48.8612}]
    for results in (lonlat, records, frame_of(lonlat)):
        assert len(closest(results, **EIFFEL, radius=radius)[0]) == 1
        assert len(closest(results, **EIFFEL, radius=np.nextafter(radius, 0))[0]) == 0


def test_a_crs_in_geoparquet_that_names_a_file_does_not_open_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    geopandas.GeoDataFrame(geometry=[shapely.Point(2, 48)], crs=4326).to_parquet(tmp_path / "in.parquet")
    table = pq.read_table(tmp_path / "in.parquet")
    geo = json.loads(table.schema.metadata[b"geo"])
    geo["columns"]["geometry"]["crs"] = f"+init={tmp_path / 'pipe'}:x"
    pq.write_table(table.replace_schema_metadata({b"geo": json.dumps(geo)}), tmp_path / "in.parquet")
    with pytest.raises(InvalidInputError, match="cannot be read as GeoParquet"):
        PointsOfInterest.read(tmp_path / "in.parquet")
