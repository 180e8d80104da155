import numpy as np

from geoind.evaluation.curves import curves
from tests.evaluation.test_report import SMALL


def test_curves_fall_with_epsilon() -> None:
    table = curves(SMALL, prior="middle row", epsilons=[0.005, 0.01, 0.03])
    for _, part in table.groupby("mechanism"):
        assert (np.diff(part["expected_loss"]) < 1e-9).all()
        assert (np.diff(part["measured_epsilon"]) > -1e-9).all()
        assert (part["adversary_error"] <= part["expected_loss"] + 1e-9).all()
