"""The SQL of docs/queries.md, run as it stands there by a real PostGIS."""

import re
import warnings
from contextlib import closing
from pathlib import Path

import geopandas
import numpy as np
import pytest

from geoind import private_query
from geoind.queries import PointsOfInterest
from tests.postgres import find_postgis, running_server

PAGE = Path(__file__).resolve().parents[2] / "docs" / "queries.md"


def test_the_recipe_finds_what_the_embedded_places_find() -> None:
    programs = find_postgis()
    if programs is None:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("PostGIS is not on this machine: the SQL recipe was NOT tested", stacklevel=1)
        pytest.skip("PostGIS is not on this machine: the SQL recipe was NOT tested")
    import psycopg
    from psycopg.rows import dict_row

    schema, search = re.findall(r"^```sql\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    places = np.random.default_rng(1).normal([2.2945, 48.8584], 0.01, (2000, 2))
    frame = geopandas.GeoDataFrame(
        {"name": [str(number) for number in range(2000)]}, geometry=geopandas.points_from_xy(*places.T), crs=4326
    )
    embedded = PointsOfInterest(frame)
    with (
        running_server(programs) as server,
        closing(psycopg.connect(server.url(), autocommit=True, row_factory=dict_row)) as connection,
    ):
        connection.execute("CREATE EXTENSION postgis")
        connection.execute(schema.encode())
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO place VALUES (%s, ST_SetSRID(ST_MakePoint(%s, %s), 4326)::geography)",
                [(str(number), lon, lat) for number, (lon, lat) in enumerate(places.tolist())],
            )
        for seed in range(5):
            query = private_query(lat=48.8584, lon=2.2945, radius=300, epsilon=0.007, rng=seed)
            rows = connection.execute(search.encode(), query.as_params("postgis")).fetchall()
            near = embedded.around(lat=query.lat, lon=query.lon, radius=query.radius)
            assert sorted(row["name"] for row in rows) == sorted(near["name"])
            assert [row["name"] for row in query.refine(rows)] == query.refine(near)["name"].tolist()
