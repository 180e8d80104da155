import json

import pandas as pd
import pytest

from geoind.evaluation import as_plain_data, compare, stored_comparison
from tests.evaluation.small import SMALL


@pytest.fixture(scope="module")
def stored() -> pd.DataFrame:
    return pd.DataFrame(stored_comparison()["rows"])


def test_plain_data_fits_into_json(small: pd.DataFrame) -> None:
    data = as_plain_data(small, SMALL)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert len(data["rows"]) == len(small)
    cloaking = next(row for row in data["rows"] if row["mechanism"] == "cloaking")
    assert cloaking["measured_epsilon"] is None


@pytest.mark.slow
def test_the_stored_comparison_is_what_comes_out_today(stored: pd.DataFrame) -> None:
    fresh = compare(priors=["middle row"])
    fresh = fresh[fresh["equalised"] == "uniform"].set_index("mechanism")
    rows = stored[(stored["prior"] == "middle row") & (stored["equalised"] == "uniform")].set_index("mechanism")
    assert list(rows.index) == list(fresh.index)
    for measure in ("expected_loss", "adversary_error", "posterior_entropy", "bayes_vulnerability"):
        assert rows[measure].to_numpy(float) == pytest.approx(fresh[measure].to_numpy(float), rel=1e-3, abs=1e-3)


def test_the_reference_values_are_met(stored: pd.DataFrame) -> None:
    rows = stored[stored["equalised"] == "uniform"].set_index(["prior", "mechanism"])["adversary_error"]
    reference = {
        "uniform": (107.3, 107.3),
        "central zone": (107.3, 73.7),
        "middle row": (66.7, 63.3),
        "zone centres": (0.0, 54.7),
        "four corners": (0.0, 3.7),
    }
    for name, (cloaking, laplace) in reference.items():
        assert rows[name, "cloaking"] == pytest.approx(cloaking, abs=0.06)
        assert rows[name, "planar Laplace"] == pytest.approx(laplace, abs=0.06)
