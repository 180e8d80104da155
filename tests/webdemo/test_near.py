"""What is near: nothing is missed where the area of retrieval covers, and nothing else is kept."""

import math

import httpx
import numpy as np
import pytest
from fastapi import FastAPI

from geoind import SphericalLaplace
from tests.webdemo.asking import HERE, ask, metres


def test_the_area_of_retrieval_is_fixed_before_the_draw_and_nothing_is_missed_when_it_covers(
    client: httpx.Client,
) -> None:
    covered, radii = [], set()
    for seed in range(60):
        answer = ask(client, "/api/near", **HERE, interest=100, confidence=0.8, kind="any", seed=seed)
        radii.add(answer["retrieval_radius"])
        covered.append(answer["covered"])
        if answer["covered"]:
            assert answer["missed"] == []
        assert all(place["distance"] <= 100 for place in answer["kept"])
        assert len(answer["kept"]) <= len(answer["retrieved"])
    assert len(radii) == 1
    [radius] = radii
    noise = SphericalLaplace(math.log(4) / 100)
    assert radius == pytest.approx(100 + float(noise.radius_quantile(0.8)), rel=0.006, abs=1)
    assert answer["overhead"] == pytest.approx((radius / 100) ** 2)
    assert 0.8 - 4 * math.sqrt(0.16 / 60) < np.mean(covered) < 1


def test_what_is_kept_is_what_lies_near_sorted_by_distance(demo_app: FastAPI, client: httpx.Client) -> None:
    answer = ask(client, "/api/near", **HERE, interest=200, confidence=0.99, kind="food", seed=1)
    assert answer["covered"]
    distances = [place["distance"] for place in answer["kept"]]
    assert distances == sorted(distances)
    places = demo_app.state.town.basemap.places
    food = places[places["kind"] == "food"].geometry
    centre = (HERE["lat"], HERE["lon"])
    assert len(distances) == sum(metres((at.y, at.x), centre) <= 200 for at in food) > 5
