"""Four mechanisms of the same cost on the town's cells: what they report, and what an observer makes of it."""

import httpx
import pytest

from tests.webdemo.asking import HERE, ask


def test_all_cost_the_same_and_only_noise_with_an_epsilon_rules_nothing_out(client: httpx.Client) -> None:
    answer = ask(client, "/api/mechanisms", **HERE, seed=3)
    four = {one["name"]: one for one in answer["mechanisms"]}
    assert set(four) == {"cloaking", "optimal for the prior", "planar Laplace", "optimal geo-ind"}
    for one in four.values():
        assert one["cost"] == pytest.approx(four["cloaking"]["cost"], rel=0.01)
        assert sum(one["reports"]) == pytest.approx(1, abs=1e-4)
        assert sum(one["belief"]) == pytest.approx(1, abs=1e-4)
        assert one["adversary_error"] <= one["cost"] * 1.001, "a guess is at least as good as the report"
    assert four["cloaking"]["epsilon"] is four["optimal for the prior"]["epsilon"] is None
    assert four["optimal geo-ind"]["epsilon"] < four["planar Laplace"]["epsilon"]
    assert not four["planar Laplace"]["excluded"] + four["optimal geo-ind"]["excluded"]
    assert all(four["cloaking"]["belief"][cell] == 0 for cell in four["cloaking"]["excluded"])
    assert max(row["adversary_error"] for row in four.values()) == four["optimal for the prior"]["adversary_error"]


def test_a_zone_is_reported_whole_and_holds_the_place(client: httpx.Client) -> None:
    answer = ask(client, "/api/mechanisms", **HERE, seed=3)
    zone = next(one for one in answer["mechanisms"] if one["name"] == "cloaking")
    assert len(zone["report"]) == 9
    assert answer["truth"] in zone["report"]
    assert [cell for cell, chance in enumerate(zone["reports"]) if chance] == zone["report"]


def test_a_location_outside_the_cells_is_marked(client: httpx.Client) -> None:
    assert ask(client, "/api/mechanisms", **HERE)["inside"]
    assert not ask(client, "/api/mechanisms", lat=60.19, lon=24.97)["inside"]
