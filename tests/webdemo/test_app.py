"""The demo's server: what it promises to the browser, and what it answers to bad questions."""

from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests.trials import trials
from tests.webdemo.asking import HERE

FAR = {"lat": 48.8584, "lon": 2.2945}


def test_every_answer_carries_the_policy(client: httpx.Client) -> None:
    for answer in (client.get("/static/app.css"), client.get("/nowhere"), client.post("/api/explore", json={})):
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_name_that_is_not_this_machine_is_refused(client: httpx.Client) -> None:
    assert client.get("/", headers={"Host": "evil.example"}).status_code == 400


@pytest.mark.parametrize(
    ("path", "body", "status", "sentence"),
    [
        ("/api/explore", {**HERE, "factor": 1.0}, 422, "factor: input should be greater than or equal to 1.1"),
        ("/api/explore", {**HERE, "radius": -5}, 422, "radius: "),
        ("/api/explore", {**HERE, "radius": "wide"}, 422, "radius: input should be a valid number"),
        ("/api/explore", {"lat": 60.1705}, 422, "lon: field required"),
        ("/api/explore", {**HERE, "60.16952": "red"}, 422, "the request: extra inputs are not permitted"),
        ("/api/explore", FAR, 400, "a location must lie within 3 km of the map"),
        ("/api/near", {**HERE, "confidence": 1}, 422, "confidence: "),
        ("/api/near", {**HERE, "kind": "bars"}, 422, "kind: "),
        ("/api/again", {**HERE, "person": "Ana!"}, 422, "person: "),
        ("/api/again", {**HERE, "person": "ana00000", "answer": "no"}, 422, "answer: "),
        ("/api/trace", {"path": [HERE]}, 422, "path: list should have at least 2 items"),
        ("/api/trace", {"path": [HERE, HERE]}, 400, "the path must have two different corners"),
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
    @settings(max_examples=trials(30), deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
    def fuzz(case: "schemathesis.Case[Any]") -> None:
        # A location far from the town is well-formed and still refused, with a 400.
        case.call_and_validate(excluded_checks=[positive_data_acceptance])

    fuzz()


def test_the_fuzz_covers_every_question(api_schema: Any) -> None:
    asked = {"/api/explore", "/api/near", "/api/again", "/api/trace", "/api/promise", "/api/mechanisms"}
    assert set(api_schema) == asked | {"/api/compare", "/api/town"}
