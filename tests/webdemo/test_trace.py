"""A walk: every step, or as many reports as a budget pays for."""

import httpx
import numpy as np
import pytest

from geoind import TraceSession
from geoind.traces import Independent
from tests.webdemo.asking import HERE, ask
from webdemo.trace import lasting, steps_along


def test_a_walk_is_cut_into_even_steps_with_both_ends() -> None:
    steps, length = steps_along(np.array([[0.0, 0.0], [100.0, 0.0], [100.0, 50.0]]), 40.0)
    assert length == 150
    assert steps[0].tolist() == [0, 0]
    assert steps[-1].tolist() == [100, 50]
    assert len(steps) == 5


@pytest.mark.parametrize("budget", [1, 2, 3, 7, 19, 20, 50])
def test_a_budget_lasts_for_the_whole_walk_and_is_used(budget: int) -> None:
    times = np.linspace(0, 900, 20)
    session = TraceSession(lasting(Independent(0.01), budget, times), key=bytes(32))
    spent = []
    for time in times.tolist():
        session.report(lat=60.17, lon=24.94, time=time)
        spent.append(session.spent)
    assert spent[-1] == pytest.approx(0.01 * min(budget, 20))
    # Never more than the share of the walk so far and one report.
    assert all(used <= 0.01 * (1.01 + budget * time / 900) for used, time in zip(spent, times, strict=True))


def test_reports_at_each_step_cost_more_and_reveal_more(client: httpx.Client) -> None:
    path = [HERE, {"lat": 60.1745, "lon": 24.9423}, {"lat": 60.1745, "lon": 24.9493}]
    naive, budgeted = [], []
    for seed in range(12):
        answer = ask(client, "/api/trace", path=path, step=10, budget=4, seed=seed)
        naive.append(answer["naive"]["guess_error"])
        budgeted.append(answer["budgeted"]["guess_error"])
    assert len(answer["naive"]["reports"]) == len(answer["steps"])
    assert len(answer["budgeted"]["reports"]) == 4
    epsilon = answer["promise"]["epsilon"]
    assert answer["budgeted"]["spent"] == pytest.approx(4 * epsilon)
    assert answer["naive"]["spent"] == pytest.approx(len(answer["steps"]) * epsilon)
    assert answer["budgeted"]["factor"] == "256"
    assert np.mean(naive) < 0.6 * np.mean(budgeted)
