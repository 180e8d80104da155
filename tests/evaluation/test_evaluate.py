"""The whole evaluation: what its tables say is what its channels measure."""

import numpy as np
import pytest

from geoind import Grid, adversary_error, expected_loss
from geoind.evaluation import Setting
from geoind.evaluation.evaluate import CURVE_POINTS, Evaluation, evaluate

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


def test_claims_are_judged_for_every_prior_and_progress_is_told(
    evaluation: Evaluation, steps: list[object]
) -> None:
    assert evaluation.setting is SETTING
    assert len(evaluation.claims)
    assert len(steps) >= len(ROWS)
