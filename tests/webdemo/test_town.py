"""Any town will do: with buildings or without, with places or without."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import geopandas
import httpx
import numpy as np
import pytest
import shapely
from fastapi import FastAPI

from geoind.maps import read_basemap
from tests.apart import apart
from webdemo.app import create_app
from webdemo.observer import best_guess, posterior
from webdemo.requests import Privacy
from webdemo.town import Town

STREET = shapely.LineString([(2.34, 48.85), (2.36, 48.86)])
TOWER = shapely.box(2.3490, 48.8550, 2.3495, 48.8553)
HUT = shapely.box(2.35500, 48.85700, 2.35501, 48.85701)
CAFE = shapely.Point(2.3500, 48.8552)
HERE = {"lat": 48.8551, "lon": 2.3500}


def town_file(folder: Path, *shapes: shapely.Geometry, **columns: Sequence[str | None]) -> Path:
    path = folder / "town.gpkg"
    geopandas.GeoDataFrame(columns, geometry=list(shapes), crs="EPSG:4326").to_file(path)
    return path


def client_of(app: FastAPI) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1")


@pytest.mark.parametrize(
    "shapes",
    [(STREET,), (STREET, TOWER), (STREET, CAFE), (CAFE, shapely.Point(2.36, 48.86)), (CAFE,)],
    ids=["street", "tower", "cafe", "two places", "one place"],
)
def test_a_town_may_lack_buildings_streets_or_places(tmp_path: Path, shapes: tuple[shapely.Geometry, ...]) -> None:
    app = create_app(town_file(tmp_path, *shapes))

    async def ask_everything() -> None:
        async with client_of(app) as client:
            assert (await client.get("/")).status_code == 200
            assert (await client.get("/api/town")).json()["buildings"]
            for path, body in {
                "/api/explore": {**HERE, "belief": True, "there": HERE},
                "/api/near": {**HERE, "kind": "any"},
                "/api/trace": {"path": [HERE, {"lat": 48.8571, "lon": 2.3520}]},
            }.items():
                answer = await client.post(path, json=body)
                assert answer.status_code == 200, answer.text

    apart(asyncio.run, ask_everything())


def test_an_application_that_is_not_served_leaves_no_folder(tmp_path: Path) -> None:
    path = town_file(tmp_path, STREET)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    made = "import os, sys, webdemo.app as demo; demo.create_app(sys.argv[1]); print(os.listdir(sys.argv[2]))"
    command = [sys.executable, "-c", made, str(path), str(temporary)]
    done = subprocess.run(
        command, env={**os.environ, "TMPDIR": str(temporary)}, capture_output=True, text=True, check=True
    )
    assert "geoind-demo-" in done.stdout
    assert not list(temporary.iterdir())


@pytest.fixture
def two_buildings(tmp_path: Path) -> Town:
    path = town_file(tmp_path, TOWER, HUT, building=["yes", "yes"], **{"building:levels": ["3", None]})
    return Town(read_basemap(path))


def test_people_are_in_buildings_by_area_and_floors(two_buildings: Town) -> None:
    prior = two_buildings.prior
    x = two_buildings.projection.to_xy([[2.352, 48.856]])[0, 0]
    tower = prior.sites.xy[:, 0] < x
    areas = [shapely.area(two_buildings.projection.transform(shape)) for shape in (TOWER, HUT)]
    assert prior.mass[~tower].sum() == pytest.approx(areas[1] / (3 * areas[0] + areas[1]), rel=0.15)
    inside = shapely.contains_xy(shapely.union_all([TOWER, HUT]).buffer(1e-7), *two_buildings.prior_latlon.T[::-1])
    assert inside.all()


def test_the_observer_believes_in_what_is_near_the_report(two_buildings: Town) -> None:
    noise = Privacy(factor=4, radius=50).noise
    report = np.array([[2.3492, 48.8551]])
    weights = posterior(two_buildings, noise, report)
    assert weights.sum() == pytest.approx(1)
    guess = best_guess(two_buildings, noise, report)
    assert np.linalg.norm(guess - two_buildings.projection.to_xy(report)[0]) < 20
    # A report from the other side of the Earth is as good as none, not a division by zero.
    far = posterior(two_buildings, noise, np.array([[-170.0, -40.0]]))
    assert np.isfinite(far).all()
