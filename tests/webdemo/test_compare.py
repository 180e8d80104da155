"""The comparison that is stored."""

import httpx
import pytest


def test_the_comparison_is_stored_and_has_the_papers_numbers(client: httpx.Client) -> None:
    answer = client.get("/api/compare").json()
    assert answer["loss"] == pytest.approx(107.298, abs=1e-3)
    laplace = [row for row in answer["rows"] if row["mechanism"] == "planar Laplace" and row["prior"] == "uniform"]
    assert laplace[0]["parameter"] == pytest.approx(0.016163, abs=1e-6)
    assert {"uniform", "zone centres"} <= set(answer["priors"])
    assert len(answer["rows"]) == 2 * len(answer["priors"]) * len(answer["mechanisms"])


def test_planar_laplace_against_cloaking_is_counted_over_all_priors(client: httpx.Client) -> None:
    answer = client.get("/api/compare").json()
    scores = {
        row["equalised"]: (row["wins"], row["losses"], row["ties"])
        for row in answer["tallies"]
        if row["mechanism"] == "cloaking"
    }
    assert scores == {"uniform": (5, 4, 1), "evaluated": (3, 6, 1)}
    for row in answer["tallies"]:
        assert row["wins"] + row["losses"] + row["ties"] == len(answer["priors"])
