"""The demo's page runs its own files, and starts where something is to be seen."""

import re

import httpx
import numpy as np
import shapely
from fastapi import FastAPI

from webdemo.page import stops_of
from webdemo.requests import Privacy


def test_the_page_runs_its_own_files_and_nothing_else(client: httpx.Client) -> None:
    page = client.get("/")
    assert page.status_code == 200
    policy = dict(part.split(" ", 1) for part in page.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["img-src"] == "'self' data:"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert not re.search(r"<script(?![^>]*src=)|<style|style=|onclick", page.text)
    for address in re.findall(r'(?:src|href)="([^"#]+)"', page.text):
        assert address.startswith("/"), address
        assert client.get(address).status_code == 200, address


def test_assets_are_leaflets_and_nothing_outside_them(client: httpx.Client) -> None:
    assert client.get("/assets/leaflet").headers["content-type"].startswith("text/javascript")
    assert client.get("/assets/leaflet_css").headers["content-type"].startswith("text/css")
    assert client.get("/assets/images/layers.png").headers["content-type"] == "image/png"
    assert client.get("/assets/..%2f..%2fapp.py").status_code == 400


def test_online_tiles_are_opt_in_and_say_so() -> None:
    from webdemo.page import security_headers

    assert "openstreetmap" not in security_headers(online_tiles=False)["Content-Security-Policy"]
    assert "https://tile.openstreetmap.org" in security_headers(online_tiles=True)["Content-Security-Policy"]


def test_you_start_in_a_building(demo_app: FastAPI, client: httpx.Client) -> None:
    town = demo_app.state.town
    lat, lon = town.home
    [[x, y]] = town.projection.to_xy([[lon, lat]])
    assert shapely.distance(town.shapes, shapely.Point(x, y)).min() < 0.2
    assert f'data-home="{lat},{lon}"' in client.get("/").text


def test_the_dial_ends_where_reports_still_fall_on_the_map(demo_app: FastAPI) -> None:
    stops = list(stops_of(demo_app.state.town))
    assert stops == [25, 50, 100, 200]
    long = np.ptp(demo_app.state.town.extent, axis=0).max()
    assert 2 * Privacy(factor=4, radius=stops[-1]).noise.radius_quantile(0.95) < long
