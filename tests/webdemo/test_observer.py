"""What an observer believes, and what remapping makes of it."""

import httpx
import numpy as np
from fastapi import FastAPI

from tests.webdemo.asking import HERE, ask, metres


def test_the_posterior_is_by_building_and_its_regions_are_the_smallest(
    demo_app: FastAPI, client: httpx.Client
) -> None:
    buildings = client.get("/api/town").json()["buildings"]
    assert len(buildings) == len(demo_app.state.town.shapes)
    answer = ask(client, "/api/explore", **HERE, cloud=0, seed=4, belief=True)["belief"]
    chances = sorted((chance for _, chance in answer["buildings"]), reverse=True)
    assert 0.98 < sum(chances) <= 1 + 1e-9
    for region in (answer["half"], answer["most"]):
        assert sum(chances[: region["count"]]) >= region["share"] > sum(chances[: region["count"] - 1])
        assert region["outline"]
    assert answer["sentence"].startswith(f"90 % sure: one of these {answer['most']['count']} buildings.")
    # Where an observer looks depends on the report: far away it is another building.
    likeliest = max(answer["buildings"], key=lambda pair: pair[1])[0]
    assert metres(buildings[likeliest]["inside"], (*HERE.values(),)) < 600


def test_remapping_moves_reports_closer_on_average_for_people_in_buildings(
    demo_app: FastAPI, client: httpx.Client
) -> None:
    rng = np.random.default_rng(3)
    homes = demo_app.state.town.prior_latlon
    chosen = rng.choice(len(homes), size=60, p=demo_app.state.town.prior.mass)
    pairs = []
    for seed, home in enumerate(chosen):
        lat, lon = homes[home].tolist()
        answer = ask(client, "/api/explore", lat=lat, lon=lon, radius=300, cloud=0, seed=seed)
        pairs.append((answer["report"]["error"], answer["remapped"]["error"]))
    reported, remapped = np.mean(pairs, axis=0)
    assert remapped < 0.9 * reported


def test_the_odds_between_distant_places_have_an_answer_with_little_noise(
    demo_app: FastAPI, client: httpx.Client
) -> None:
    homes = demo_app.state.town.prior_latlon
    (lat, lon), (north, east) = (homes[pick(homes.sum(axis=1))].tolist() for pick in (np.argmin, np.argmax))
    answer = ask(
        client, "/api/explore", lat=lat, lon=lon, there={"lat": north, "lon": east}, factor=100, radius=10, cloud=0
    )
    odds = answer["odds"]
    # The level of the promise between these places is beyond the exponent of a float.
    assert answer["promise"]["epsilon"] * odds["distance"] > 710
    assert 1e250 < odds["change"] <= odds["limit"]
    assert odds["after"] < np.inf
