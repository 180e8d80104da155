"""The whole evaluation: what its tables say is what its channels measure."""

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from geoind import Grid, InvalidInputError, adversary_error, expected_loss
from geoind.evaluation import Setting, compare
from geoind.evaluation.comparison import CLAIMS, CURVE_POINTS, Evaluation, check_claims, curves, evaluate
from tests.evaluation.small import SMALL
from tests.evaluation.test_report import HOSTILE
from tests.evaluation.test_report import SMALL as WITH_MIDDLE_ROW


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


@pytest.mark.slow
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


def test_curves_fall_with_epsilon() -> None:
    table = curves(WITH_MIDDLE_ROW, prior=HOSTILE, epsilons=[0.005, 0.01, 0.03])
    for _, part in table.groupby("mechanism"):
        assert (np.diff(part["expected_loss"]) < 1e-9).all()
        assert (np.diff(part["measured_epsilon"]) > -1e-9).all()
        assert (part["adversary_error"] <= part["expected_loss"] + 1e-9).all()


ROWS = {
    "lower": [3, 2, 0, 1, 0, 0, 0, 0, 0],
    "middle": [0, 0, 0, 1, 1, 1, 0, 0, 0],
    "upper": [0, 0, 0, 0, 0, 0, 1, 1, 2],
}
SETTING = Setting(Grid(0, 0, cell=100, columns=3, rows=3), weights=ROWS, zone=(3, 1))


@pytest.fixture(scope="module")
def steps() -> list[object]:
    return []


@pytest.fixture(scope="module")
def evaluation(steps: list[object]) -> Evaluation:
    return evaluate(SETTING, progress=lambda *step: steps.append(step))


@pytest.mark.slow
def test_the_table_is_what_the_channels_measure(evaluation: Evaluation) -> None:
    keys = zip(*(evaluation.table[name] for name in ("equalised", "prior", "mechanism")), strict=True)
    rows = dict(zip(keys, evaluation.table.to_dict("records"), strict=True))
    assert set(rows) == set(evaluation.channels)
    for (way, name, mechanism), channel in evaluation.channels.items():
        prior, row = SETTING.prior(name), rows[way, name, mechanism]
        assert row["adversary_error"] == pytest.approx(adversary_error(channel, prior))
        # Among dummies the service is asked for the truth as well: that costs nothing.
        loss = 0.0 if mechanism == "dummies" else expected_loss(channel, prior)
        assert row["expected_loss"] == pytest.approx(loss)


def test_curves_are_of_the_first_and_the_last_prior(evaluation: Evaluation) -> None:
    assert list(dict.fromkeys(evaluation.curves["prior"])) == ["lower", "upper"]
    counts = evaluation.curves.groupby(["prior", "mechanism"]).size()
    assert set(counts) == {CURVE_POINTS}
    epsilons = np.unique(evaluation.curves["epsilon"])
    np.testing.assert_allclose([epsilons[0], epsilons[-1]], [0.2 / 100, 5 / 100])


def test_claims_are_judged_for_every_prior_and_progress_is_called(
    evaluation: Evaluation, steps: list[object]
) -> None:
    assert evaluation.setting is SETTING
    assert len(evaluation.claims)
    assert len(steps) >= len(ROWS)


ERRORS = {
    "cloaking": 90.0,
    "optimal for uniform": 40.0,
    "optimal for uniform, least error": 10.0,
    "optimal for uniform, most error": 300.0,
    "planar Laplace": 80.0,
    "Gaussian": 85.0,
    "remapped Laplace": 99.0,
    "optimal for the prior": 100.0,
    "dummies": 500.0,
}
KNOWING = {"remapped Laplace", "optimal for the prior"}


def verdicts(**changed: float) -> tuple[dict[str, str], dict[str, str]]:
    errors = ERRORS | {name.replace("_", " "): error for name, error in changed.items()}
    table = pd.DataFrame({"mechanism": list(errors), "adversary_error": list(errors.values())})
    table["equalised"], table["prior"] = "uniform", "row"
    table["knows_prior"] = table["mechanism"].isin(KNOWING)
    found = check_claims(table)
    return dict(zip(found["claim"], found["verdict"], strict=True)), dict(
        zip(found["claim"], found["detail"], strict=True)
    )


def test_every_claim_gets_a_verdict() -> None:
    found, detail = verdicts()
    assert found == {
        "Laplace > cloaking": "fails",
        "Laplace > optimal for uniform": "depends on which optimum",
        "Laplace best without the prior": "fails",
        "optimal for the prior is best": "holds",
        "Laplace never disclosed": "holds",
    }
    assert set(found) == set(CLAIMS)
    assert detail["Laplace best without the prior"] == "80.0 m against 90.0 m of cloaking"
    assert detail["Laplace > optimal for uniform"] == "80.0 m against 10.0 to 300.0 m"


@pytest.mark.parametrize(
    ("claim", "laplace", "verdict"),
    [
        ("Laplace > cloaking", 91.0, "holds"),
        ("Laplace > cloaking", 90.04, "equal"),
        ("Laplace > optimal for uniform", 301.0, "holds"),
        ("Laplace > optimal for uniform", 9.0, "fails"),
        ("Laplace best without the prior", 91.0, "holds"),
        ("Laplace never disclosed", 0.0, "fails"),
        ("optimal for the prior is best", 101.0, "fails"),
    ],
)
def test_verdicts_follow_the_numbers(claim: str, laplace: float, verdict: str) -> None:
    assert verdicts(planar_Laplace=laplace)[0][claim] == verdict
