"""Asking again: the ledger pays, and refuses."""

import httpx
import pytest

from tests.webdemo.asking import HERE, ask


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
        "the answer changes the odds by a factor of e^1.4 at most"
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
