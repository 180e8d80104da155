"""How long a home stays unknown."""

import numpy as np
import pandas as pd
import pytest

from geoind import PlanarLaplace, Projection
from geoind.traces import Independent, days_until_home_is_known, homes_figure
from geoind.traces.drives import HOME
from geoind.traces.homes import DEFENCES, _until_known, defences


@pytest.fixture(scope="module")
def found() -> pd.DataFrame:
    return days_until_home_is_known(persons=3, days=4, every=1200.0)


@pytest.mark.slow
def test_fresh_noise_and_tests_at_every_step_are_gone_first(found: pd.DataFrame) -> None:
    errors = found.set_index("defence")["error"]
    assert errors["fresh noise per report"] < 60
    assert errors["predictive session"] < 60
    for lasting in ("the same report for the same place", "sparse vector session", "session with a private zone"):
        assert errors[lasting] > errors["fresh noise per report"]


def test_one_draw_for_ever_reveals_no_more_on_later_days(found: pd.DataFrame) -> None:
    curve = found.set_index("defence")["errors"]["session with a private zone"]
    assert np.ptp(curve) < 1


def test_repeated_reports_of_a_cell_count_once_in_the_best_attack(found: pd.DataFrame) -> None:
    attacks = found.set_index("defence")["attack"]
    assert attacks["the same report for the same place"].endswith("of distinct ones")


def test_every_defence_is_in_the_table_and_in_the_figure(found: pd.DataFrame) -> None:
    assert tuple(found["defence"]) == DEFENCES
    assert {len(errors) for errors in found["errors"]} == {4}
    [axes] = homes_figure(found).axes
    assert len(axes.get_lines()) == len(DEFENCES) + 1


def test_every_defence_errs_about_as_much_as_fresh_noise() -> None:
    expected = PlanarLaplace(Independent.for_accuracy(500).epsilon).mean_radius
    for name, defence in defences(500.0).items():
        reports = [defence.answer(person, np.zeros(1), np.array([HOME]))[0] for person in range(400)]
        errors = np.hypot(*Projection(*HOME).to_xy(np.array(reports)).T)
        assert np.mean(errors) == pytest.approx(expected, rel=0.1), name


def test_a_home_is_known_from_the_day_on_which_the_guess_stays_near() -> None:
    assert _until_known(np.array([50.0, 120.0, 90.0, 80.0])) == 3
    assert _until_known(np.array([50.0, 20.0])) == 1
    assert _until_known(np.array([50.0, 120.0])) == np.inf
