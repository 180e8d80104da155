"""The comparison that is stored."""

import httpx
import pytest


def test_the_comparison_is_stored_and_has_the_papers_numbers(client: httpx.Client) -> None:
    told = client.get("/api/compare").json()
    assert told["loss"] == pytest.approx(107.298, abs=1e-3)
    laplace = [row for row in told["rows"] if row["mechanism"] == "planar Laplace" and row["prior"] == "uniform"]
    assert laplace[0]["parameter"] == pytest.approx(0.016163, abs=1e-6)
    assert {"uniform", "zone centres"} <= set(told["priors"])
    assert len(told["rows"]) == 2 * len(told["priors"]) * len(told["mechanisms"])
