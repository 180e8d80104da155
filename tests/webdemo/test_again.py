"""Asking again: the ledger pays, and refuses."""

import httpx
import pytest

from tests.webdemo.asking import HERE, ask


def test_the_ledger_pays_for_the_budget_and_refuses_the_rest(client: httpx.Client) -> None:
    question = {**HERE, "person": "fresh0000001", "budget": 7}
    answer = ask(client, "/api/again", **question, count=5)
    assert len(answer["reports"]) == 5
    assert answer["refused"] is None
    assert answer["remaining"] == pytest.approx(2 / 7)
    answer = ask(client, "/api/again", **question, count=5)
    assert len(answer["reports"]) == 2
    assert answer["refused"].startswith("Refused")
    assert answer["remaining"] == 0
    assert ask(client, "/api/again", **question)["reports"] == []


def test_the_answer_has_the_level_of_all_reports_together(client: httpx.Client) -> None:
    question = {**HERE, "person": "together0001", "budget": 50, "factor": 4, "radius": 200}
    assert (
        "the answer changes the odds by a factor of e^1.4 at most"
        in ask(client, "/api/again", **question)["together"]
    )
    answer = ask(client, "/api/again", **question, count=19)
    # 20 reports of ln 4: 27.7 by the sum, 21.8 by the accountant.
    assert "the 20 paid answers together" in answer["together"]
    assert "e^27.7 at most; e^21.8" in answer["together"]


def test_the_same_report_costs_once_and_never_changes(client: httpx.Client) -> None:
    question = {**HERE, "person": "same00000001", "budget": 5, "answer": "same"}
    answer = ask(client, "/api/again", **question, count=20)
    assert len({tuple(at) for at in answer["reports"]}) == 1
    assert answer["remaining"] == pytest.approx(4 / 5)
    again = ask(client, "/api/again", **question)
    assert again["reports"][0] == answer["reports"][0]
    moved = ask(client, "/api/again", **{**question, "lat": 60.1715})
    assert moved["remaining"] == pytest.approx(3 / 5)
    assert moved["reports"][0] != answer["reports"][0]
