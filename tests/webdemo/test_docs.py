"""The page that says what can be asked."""

import re

import httpx


def test_the_documentation_names_every_question(client: httpx.Client) -> None:
    page = client.get("/docs").text
    schema = client.get("/openapi.json").json()
    for path in schema["paths"]:
        assert f"POST {path}" in page or f"GET {path}" in page
    assert "http" not in re.sub(r"</?html", "", page)
