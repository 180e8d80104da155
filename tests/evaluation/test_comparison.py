import json
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from geoind import Grid, InvalidInputError, compare
from geoind.evaluation import Setting, as_plain_data, stored_comparison

SMALL = Setting(
    Grid(0, 0, cell=100, columns=6, rows=3),
    weights={"uniform": np.ones(18), "left zone": [1, 1, 1, 0, 0, 0] * 3},
)


@pytest.fixture(scope="module")
def small() -> pd.DataFrame:
    return compare(SMALL)


@pytest.fixture(scope="module")
def stored() -> pd.DataFrame:
    return pd.DataFrame(stored_comparison()["rows"])


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
    assert seen == [("started", 0), ("uniform", 0.5), ("left zone", 1)]


def test_plain_data_fits_into_json(small: pd.DataFrame) -> None:
    data = as_plain_data(small, SMALL)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert len(data["rows"]) == len(small)
    cloaking = next(row for row in data["rows"] if row["mechanism"] == "cloaking")
    assert cloaking["measured_epsilon"] is None


def test_the_stored_comparison_is_what_comes_out_today(stored: pd.DataFrame) -> None:
    fresh = compare(priors=["middle row"])
    fresh = fresh[fresh["equalised"] == "uniform"].set_index("mechanism")
    told = stored[(stored["prior"] == "middle row") & (stored["equalised"] == "uniform")].set_index("mechanism")
    assert list(told.index) == list(fresh.index)
    for measure in ("expected_loss", "adversary_error", "posterior_entropy", "bayes_vulnerability"):
        assert told[measure].to_numpy(float) == pytest.approx(fresh[measure].to_numpy(float), rel=1e-3, abs=1e-3)


def test_the_reference_values_are_met(stored: pd.DataFrame) -> None:
    told = stored[stored["equalised"] == "uniform"].set_index(["prior", "mechanism"])["adversary_error"]
    reference = {
        "uniform": (107.3, 107.3),
        "central zone": (107.3, 73.7),
        "middle row": (66.7, 63.3),
        "zone centres": (0.0, 54.7),
        "four corners": (0.0, 3.7),
    }
    for name, (cloaking, laplace) in reference.items():
        assert told[name, "cloaking"] == pytest.approx(cloaking, abs=0.06)
        assert told[name, "planar Laplace"] == pytest.approx(laplace, abs=0.06)


def test_the_comparison_scales_with_the_cell() -> None:
    wide = replace(SMALL, grid=Grid(0, 0, cell=1000, columns=6, rows=3))
    near, far = (compare(s, priors=["uniform"])["adversary_error"].to_numpy() for s in (SMALL, wide))
    assert far == pytest.approx(10 * near, rel=1e-3)


def test_what_is_optimal_for_the_uniform_prior_is_not_one_mechanism(small: pd.DataFrame) -> None:
    table = small.set_index(["equalised", "prior", "mechanism"])["adversary_error"]
    ends = [f"optimal for uniform, {end} error" for end in ("least", "most")]
    least, most = (table["uniform", "left zone", end] for end in ends)
    assert least < most - 20
    for name in ("optimal for uniform", "optimal for uniform, most entropy", *ends):
        assert table["uniform", "uniform", name] == pytest.approx(SMALL.loss, rel=1e-6)
        assert least - 1e-6 <= table["uniform", "left zone", name] <= most + 1e-6


def test_the_optimum_for_the_prior_reaches_the_wanted_loss_or_the_priors_own_error(small: pd.DataFrame) -> None:
    table = small.set_index(["equalised", "prior", "mechanism"])["adversary_error"]
    assert table["uniform", "left zone", "optimal for the prior"] == pytest.approx(107.298, abs=1e-3)


def test_a_decoy_costs_no_distance_and_leaves_the_prior_on_two_cells(small: pd.DataFrame) -> None:
    row = small.set_index(["equalised", "prior", "mechanism"]).to_dict("index")["uniform", "uniform", "dummies"]
    assert row["expected_loss"] == 0
    assert row["bayes_vulnerability"] == pytest.approx(0.5)
    assert row["posterior_entropy"] == pytest.approx(1)
    assert row["measured_epsilon"] == np.inf
