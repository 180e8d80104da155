import pickle
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from geoind import Grid, InvalidInputError
from geoind.evaluation import compare
from tests.evaluation.small import SMALL


def test_every_mechanism_meets_every_prior_both_ways(small: pd.DataFrame) -> None:
    per_round = small.groupby(["equalised", "prior"])["mechanism"].agg(list)
    assert len(per_round) == 4
    assert all(names == per_round.iloc[0] for names in per_round)
    assert not small.duplicated(["equalised", "prior", "mechanism"]).any()


def test_tunable_mechanisms_cost_the_same_under_the_prior_they_are_tuned_to(small: pd.DataFrame) -> None:
    fixed = {"cloaking", "optimal geo-ind", "dummies"}
    tuned = small[(small["prior"] == "uniform") & ~small["mechanism"].isin(fixed)]
    assert tuned["expected_loss"].to_numpy() == pytest.approx(SMALL.loss, rel=1e-6)


def test_the_adversary_is_never_worse_than_the_report_taken_at_face_value(small: pd.DataFrame) -> None:
    # Dummies are no report to take at face value: they cost traffic, not distance.
    reports = small[small["mechanism"] != "dummies"]
    assert (reports["adversary_error"] <= reports["expected_loss"] + 1e-6).all()


def test_remapping_never_costs_more_and_never_promises_less(small: pd.DataFrame) -> None:
    table = small[small["equalised"] == "uniform"].set_index(["prior", "mechanism"]).to_dict("index")
    for name in SMALL.weights:
        before, after = table[name, "planar Laplace"], table[name, "remapped Laplace"]
        assert after["expected_loss"] <= before["expected_loss"] + 1e-9
        assert after["measured_epsilon"] <= before["measured_epsilon"] * (1 + 1e-9)


def test_the_optimal_mechanism_costs_less_than_the_laplace_at_the_same_epsilon(small: pd.DataFrame) -> None:
    table = small.set_index(["equalised", "prior", "mechanism"]).to_dict("index")
    for way in ("uniform", "evaluated"):
        for name in SMALL.weights:
            best, laplace = table[way, name, "optimal geo-ind"], table[way, name, "planar Laplace"]
            assert best["parameter"] == laplace["parameter"]
            assert best["measured_epsilon"] <= laplace["parameter"]
            assert best["expected_loss"] < laplace["expected_loss"]


def test_two_processes_find_what_one_finds(small: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(compare(SMALL, workers=2), small)


def test_a_setting_survives_the_way_to_another_process() -> None:
    again = pickle.loads(pickle.dumps(SMALL))
    assert again.grid == SMALL.grid
    assert again.prior("left zone").mass == pytest.approx(SMALL.prior("left zone").mass)


def test_a_subset_can_be_asked_for() -> None:
    assert set(compare(SMALL, priors=["left zone"])["prior"]) == {"left zone"}


@pytest.mark.parametrize("asked", [{"priors": ["nowhere"]}, {"workers": 0}])
def test_an_unknown_prior_or_no_worker_is_refused(asked: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        compare(SMALL, **asked)


def test_progress_starts_at_nothing_and_ends_with_all() -> None:
    seen = []
    compare(SMALL, progress=lambda what, share: seen.append((what, share)))
    assert seen == [("started", 0), ("left zone", 0.5), ("uniform", 1)]


def test_the_comparison_scales_with_the_cell() -> None:
    wide = replace(SMALL, grid=Grid(0, 0, cell=1000, columns=6, rows=3))
    near, far = (compare(s, priors=["uniform"])["adversary_error"].to_numpy() for s in (SMALL, wide))
    assert far == pytest.approx(10 * near, rel=1e-3)
