"""The demo's server: what it promises to the browser, and what it answers to good and to bad questions."""

import math
import re
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest
import schemathesis
import shapely
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from geoind import SphericalLaplace, TraceSession
from geoind.traces import Independent
from webdemo.page import stops_of
from webdemo.requests import Privacy
from webdemo.trace import lasting, steps_along

HERE = {"lat": 60.1705, "lon": 24.9423}
FAR = {"lat": 48.8584, "lon": 2.2945}


@pytest.fixture(scope="module")
def client(demo_url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=demo_url, trust_env=False) as client:
        yield client


def ask(client: httpx.Client, address: str, **body: Any) -> Any:
    answer = client.post(address, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def metres(a: Any, b: Any) -> float:
    north = 111_195 * (a[0] - b[0])
    east = 111_195 * math.cos(math.radians(a[0])) * (a[1] - b[1])
    return math.hypot(north, east)


# The page


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


def test_every_answer_carries_the_policy(client: httpx.Client) -> None:
    for answer in (client.get("/static/app.css"), client.get("/nowhere"), client.post("/api/explore", json={})):
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_name_that_is_not_this_machine_is_refused(client: httpx.Client) -> None:
    assert client.get("/", headers={"Host": "evil.example"}).status_code == 400


def test_assets_are_leaflets_and_nothing_outside_them(client: httpx.Client) -> None:
    assert client.get("/assets/leaflet").headers["content-type"].startswith("text/javascript")
    assert client.get("/assets/leaflet_css").headers["content-type"].startswith("text/css")
    assert client.get("/assets/images/layers.png").headers["content-type"] == "image/png"
    assert client.get("/assets/..%2f..%2fapp.py").status_code == 400


def test_online_tiles_are_opt_in_and_say_so() -> None:
    from webdemo.page import security_headers

    assert "openstreetmap" not in security_headers(online_tiles=False)["Content-Security-Policy"]
    assert "https://tile.openstreetmap.org" in security_headers(online_tiles=True)["Content-Security-Policy"]


def test_the_documentation_names_every_question(client: httpx.Client) -> None:
    page = client.get("/docs").text
    schema = client.get("/openapi.json").json()
    for path in schema["paths"]:
        assert f"POST {path}" in page or f"GET {path}" in page
    assert "http" not in re.sub(r"</?html", "", page)


# Bad questions


@pytest.mark.parametrize(
    ("path", "body", "status", "sentence"),
    [
        ("/api/explore", {**HERE, "factor": 1.0}, 422, "factor: input should be greater than or equal to 1.1"),
        ("/api/explore", {**HERE, "radius": -5}, 422, "radius: "),
        ("/api/explore", {**HERE, "radius": "wide"}, 422, "radius: input should be a valid number"),
        ("/api/explore", {"lat": 60.1705}, 422, "lon: field required"),
        ("/api/explore", {**HERE, "colour": "red"}, 422, "colour: extra inputs are not permitted"),
        ("/api/explore", FAR, 400, "a location must lie within 3 km of the map"),
        ("/api/near", {**HERE, "confidence": 1}, 422, "confidence: "),
        ("/api/near", {**HERE, "kind": "bars"}, 422, "kind: "),
        ("/api/again", {**HERE, "person": "Ana!"}, 422, "person: "),
        ("/api/again", {**HERE, "person": "ana00000", "answer": "no"}, 422, "answer: "),
        ("/api/trace", {"path": [HERE]}, 422, "path: list should have at least 2 items"),
        ("/api/trace", {"path": [HERE, HERE]}, 400, "the path must lead somewhere"),
        ("/api/trace", {"path": [HERE, {"lat": 60.19, "lon": 24.97}], "step": 5}, 400, "at most 500 steps"),
    ],
)
def test_a_bad_question_gets_a_4xx_and_a_sentence(
    client: httpx.Client, path: str, body: dict[str, Any], status: int, sentence: str
) -> None:
    answer = client.post(path, json=body)
    assert answer.status_code == status
    assert sentence in answer.json()["detail"]
    assert set(answer.json()) == {"detail"}


@pytest.mark.parametrize("body", [{"lat": 60.123456, "lon": 24.9, "radius": -1}, {"lat": 91.123456, "lon": 24.9}])
def test_a_refusal_never_quotes_the_location(client: httpx.Client, body: dict[str, Any]) -> None:
    answer = client.post("/api/explore", json=body)
    assert answer.status_code == 422
    assert "123456" not in answer.text


@pytest.fixture(scope="module")
def api_schema(demo_url: str) -> Any:
    return schemathesis.openapi.from_url(f"{demo_url}openapi.json")


@pytest.mark.parametrize("mode", [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE])
@pytest.mark.parametrize(
    "path", ["/api/explore", "/api/near", "/api/again", "/api/trace", "/api/promise", "/api/mechanisms"]
)
def test_whatever_is_asked_is_answered_as_the_schema_says(
    api_schema: Any, path: str, mode: schemathesis.GenerationMode
) -> None:
    @given(case=api_schema[path]["POST"].as_strategy(generation_mode=mode))
    @settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
    def fuzz(case: "schemathesis.Case[Any]") -> None:
        # A location far from the town is well-formed and still refused, with a 400.
        case.call_and_validate(excluded_checks=[positive_data_acceptance])

    fuzz()


def test_the_fuzz_covers_every_question(api_schema: Any) -> None:
    asked = {"/api/explore", "/api/near", "/api/again", "/api/trace", "/api/promise", "/api/mechanisms"}
    assert set(api_schema) == asked | {"/api/compare", "/api/town"}


# Explore


def test_explore_says_what_epsilon_means(client: httpx.Client) -> None:
    told = ask(client, "/api/explore", **HERE, factor=4, radius=200)
    assert told["promise"]["epsilon"] == pytest.approx(math.log(4) / 200)
    assert told["promise"]["sentence"] == (
        "Between two places up to 200 m apart, a report changes an observer's odds by a factor of 4 at most."
    )
    noise = SphericalLaplace(math.log(4) / 200)
    assert told["promise"]["mean_error"] == pytest.approx(noise.mean_radius)
    assert [ring["share"] for ring in told["rings"]] == [0.5, 0.9, 0.95, 0.99]
    for ring in told["rings"]:
        assert ring["radius"] == pytest.approx(float(noise.radius_quantile(ring["share"])))


def test_the_cloud_has_the_radii_of_the_rings(client: httpx.Client) -> None:
    told = ask(client, "/api/explore", **HERE, cloud=2000, seed=7)
    centre = (HERE["lat"], HERE["lon"])
    errors = np.array([metres(at, centre) for at in told["cloud"]])
    for ring in told["rings"]:
        share = (errors <= ring["radius"]).mean()
        assert abs(share - ring["share"]) < 4 * math.sqrt(ring["share"] * (1 - ring["share"]) / 2000)
    assert metres((told["report"]["lat"], told["report"]["lon"]), centre) == pytest.approx(
        told["report"]["error"], rel=0.006
    )


def test_a_seed_repeats_the_noise_and_its_absence_does_not(client: httpx.Client) -> None:
    seeded = [ask(client, "/api/explore", **HERE, cloud=3, seed=5)["cloud"] for _ in range(2)]
    fresh = [ask(client, "/api/explore", **HERE, cloud=3)["cloud"] for _ in range(2)]
    assert seeded[0] == seeded[1]
    assert fresh[0] != fresh[1]


def test_no_report_changes_the_odds_between_two_places_by_more_than_the_promise(client: httpx.Client) -> None:
    for seed, east in enumerate([0.0001, 0.001, 0.002, 0.004] * 5):
        there = {"lat": HERE["lat"], "lon": HERE["lon"] + east}
        told = ask(client, "/api/explore", **HERE, there=there, factor=4, radius=100, cloud=0, seed=seed)
        odds, epsilon = told["odds"], told["promise"]["epsilon"]
        assert odds["distance"] == pytest.approx(
            metres((there["lat"], there["lon"]), (*HERE.values(),)), rel=0.006
        )
        assert odds["limit"] == pytest.approx(math.exp(epsilon * odds["distance"]))
        assert 1 / odds["limit"] <= odds["change"] <= odds["limit"]
        assert odds["after"] == pytest.approx(odds["before"] * odds["change"])
    assert ask(client, "/api/explore", **HERE)["odds"] is None


def test_the_belief_is_told_by_building_and_its_regions_are_the_smallest(
    demo_app: FastAPI, client: httpx.Client
) -> None:
    buildings = client.get("/api/town").json()["buildings"]
    assert len(buildings) == len(demo_app.state.town.shapes)
    told = ask(client, "/api/explore", **HERE, cloud=0, seed=4, belief=True)["belief"]
    chances = sorted((chance for _, chance in told["buildings"]), reverse=True)
    assert 0.98 < sum(chances) <= 1 + 1e-9
    for region in (told["half"], told["most"]):
        assert sum(chances[: region["count"]]) >= region["share"] > sum(chances[: region["count"] - 1])
        assert region["outline"]
    assert told["sentence"].startswith(f"90 % sure: one of these {told['most']['count']} buildings.")
    # Where an observer looks depends on the report: far away it is another building.
    likeliest = max(told["buildings"], key=lambda pair: pair[1])[0]
    assert metres(buildings[likeliest]["inside"], (*HERE.values(),)) < 600


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


def test_remapping_moves_reports_closer_on_average_for_people_in_buildings(
    demo_app: FastAPI, client: httpx.Client
) -> None:
    rng = np.random.default_rng(3)
    homes = demo_app.state.town.prior_latlon
    chosen = rng.choice(len(homes), size=60, p=demo_app.state.town.prior.mass)
    pairs = []
    for seed, home in enumerate(chosen):
        lat, lon = homes[home].tolist()
        told = ask(client, "/api/explore", lat=lat, lon=lon, radius=300, cloud=0, seed=seed)
        pairs.append((told["report"]["error"], told["remapped"]["error"]))
    reported, remapped = np.mean(pairs, axis=0)
    assert remapped < 0.9 * reported


# Near me


def test_the_area_of_retrieval_is_fixed_before_the_draw_and_nothing_is_missed_when_it_covers(
    client: httpx.Client,
) -> None:
    covered, radii = [], set()
    for seed in range(60):
        told = ask(client, "/api/near", **HERE, interest=100, confidence=0.8, kind="any", seed=seed)
        radii.add(told["retrieval_radius"])
        covered.append(told["covered"])
        if told["covered"]:
            assert told["missed"] == []
        assert all(place["distance"] <= 100 for place in told["kept"])
        assert len(told["kept"]) <= len(told["retrieved"])
    assert len(radii) == 1
    [radius] = radii
    noise = SphericalLaplace(math.log(4) / 100)
    assert radius == pytest.approx(100 + float(noise.radius_quantile(0.8)), rel=0.006, abs=1)
    assert told["overhead"] == pytest.approx((radius / 100) ** 2)
    assert 0.8 - 4 * math.sqrt(0.16 / 60) < np.mean(covered) < 1


def test_what_is_kept_is_what_lies_near_sorted_by_distance(demo_app: FastAPI, client: httpx.Client) -> None:
    told = ask(client, "/api/near", **HERE, interest=200, confidence=0.99, kind="food", seed=1)
    assert told["covered"]
    distances = [place["distance"] for place in told["kept"]]
    assert distances == sorted(distances)
    places = demo_app.state.town.basemap.places
    food = places[places["kind"] == "food"].geometry
    centre = (HERE["lat"], HERE["lon"])
    assert len(distances) == sum(metres((at.y, at.x), centre) <= 200 for at in food) > 5


# Ask again


def test_the_ledger_pays_for_the_budget_and_refuses_the_rest(client: httpx.Client) -> None:
    question = {**HERE, "person": "fresh0000001", "budget": 7}
    told = ask(client, "/api/again", **question, count=5)
    assert len(told["reports"]) == 5
    assert told["refused"] is None
    assert told["remaining"] == pytest.approx(2 / 7)
    told = ask(client, "/api/again", **question, count=5)
    assert len(told["reports"]) == 2
    assert told["refused"].startswith("Refused")
    assert told["remaining"] == 0
    assert ask(client, "/api/again", **question)["reports"] == []


def test_the_answers_say_what_they_tell_together(client: httpx.Client) -> None:
    question = {**HERE, "person": "together0001", "budget": 50, "factor": 4, "radius": 200}
    assert (
        "the answer tells places apart by a factor of e^1.4 at most"
        in ask(client, "/api/again", **question)["together"]
    )
    told = ask(client, "/api/again", **question, count=19)
    # 20 reports of ln 4: 27.7 by the sum, 21.8 by the accountant.
    assert "the 20 paid answers together" in told["together"]
    assert "e^27.7 at most; e^21.8" in told["together"]


def test_the_same_report_costs_once_and_never_changes(client: httpx.Client) -> None:
    question = {**HERE, "person": "same00000001", "budget": 5, "answer": "same"}
    told = ask(client, "/api/again", **question, count=20)
    assert len({tuple(at) for at in told["reports"]}) == 1
    assert told["remaining"] == pytest.approx(4 / 5)
    again = ask(client, "/api/again", **question)
    assert again["reports"][0] == told["reports"][0]
    moved = ask(client, "/api/again", **{**question, "lat": 60.1715})
    assert moved["remaining"] == pytest.approx(3 / 5)
    assert moved["reports"][0] != told["reports"][0]


# Compare


def test_the_comparison_is_stored_and_has_the_papers_numbers(client: httpx.Client) -> None:
    told = client.get("/api/compare").json()
    assert told["loss"] == pytest.approx(107.298, abs=1e-3)
    laplace = [row for row in told["rows"] if row["mechanism"] == "planar Laplace" and row["prior"] == "uniform"]
    assert laplace[0]["parameter"] == pytest.approx(0.016163, abs=1e-6)
    assert {"uniform", "zone centres"} <= set(told["priors"])
    assert len(told["rows"]) == 2 * len(told["priors"]) * len(told["mechanisms"])


# A trace


def test_a_walk_is_cut_into_even_steps_with_both_ends() -> None:
    steps, length = steps_along(np.array([[0.0, 0.0], [100.0, 0.0], [100.0, 50.0]]), 40.0)
    assert length == 150
    assert steps[0].tolist() == [0, 0]
    assert steps[-1].tolist() == [100, 50]
    assert len(steps) == 5


@pytest.mark.parametrize("budget", [1, 2, 3, 7, 19, 20, 50])
def test_a_budget_lasts_for_the_whole_walk_and_is_used(budget: int) -> None:
    times = np.linspace(0, 900, 20)
    session = TraceSession(lasting(Independent(0.01), budget, times), key=bytes(32))
    spent = []
    for time in times.tolist():
        session.report(lat=60.17, lon=24.94, time=time)
        spent.append(session.spent)
    assert spent[-1] == pytest.approx(0.01 * min(budget, 20))
    # Never more than the share of the walk so far and one report.
    assert all(used <= 0.01 * (1.01 + budget * time / 900) for used, time in zip(spent, times, strict=True))


def test_reports_at_each_step_cost_more_and_tell_more(client: httpx.Client) -> None:
    path = [HERE, {"lat": 60.1745, "lon": 24.9423}, {"lat": 60.1745, "lon": 24.9493}]
    naive, budgeted = [], []
    for seed in range(12):
        told = ask(client, "/api/trace", path=path, step=10, budget=4, seed=seed)
        naive.append(told["naive"]["guess_error"])
        budgeted.append(told["budgeted"]["guess_error"])
    assert len(told["naive"]["reports"]) == len(told["steps"])
    assert len(told["budgeted"]["reports"]) == 4
    epsilon = told["promise"]["epsilon"]
    assert told["budgeted"]["spent"] == pytest.approx(4 * epsilon)
    assert told["naive"]["spent"] == pytest.approx(len(told["steps"]) * epsilon)
    assert told["budgeted"]["factor"] == "256"
    assert np.mean(naive) < 0.6 * np.mean(budgeted)
