"""A budget per person: what is charged, what is refused, what is remembered."""

import math
import re
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoind import (
    BudgetExceededError,
    InvalidInputError,
    Ledger,
    PlanarGaussian,
    SphericalLaplace,
    epsilon_for,
    obfuscate,
)
from geoind.accounting import Promise
from geoind.arrays import ArrayLike, FloatArray
from geoind.keys import Words
from geoind.mechanisms.protocol import Randomness, RandomnessLike, Space
from tests.postgres import Server
from tests.trials import trials

EPSILON = math.log(4) / 200


def test_a_charge_is_subtracted_and_remembered(url: str) -> None:
    before = datetime.now(UTC) - timedelta(seconds=5)
    with Ledger(url, budget=1.0) as ledger:
        assert ledger.remaining("ana") == 1.0
        assert ledger.charge("ana", 0.25, label="cafes") == 0.75
        assert ledger.charge("ana", 0.5, label="bars", reports=1) == 0.25
        assert (ledger.spent("ana"), ledger.remaining("ana"), ledger.lifetime("ana")) == (0.75, 0.25, 0.75)
        assert [(c.epsilon, c.reports, c.label) for c in ledger.history("ana")] == [
            (0.25, 1, "cafes"),
            (0.5, 1, "bars"),
        ]
        assert before < ledger.history("ana")[0].at < datetime.now(UTC) + timedelta(seconds=5)
        assert ledger.remaining("ben") == 1.0
        assert ledger.history("ben") == []


def test_too_much_is_refused_and_charges_nothing(url: str) -> None:
    with Ledger(url, budget=1.0) as ledger:
        ledger.charge("ana", 0.75)
        with pytest.raises(BudgetExceededError) as caught:
            ledger.charge("ana", 0.5)
        assert (caught.value.person, caught.value.requested, caught.value.remaining) == ("ana", 0.5, 0.25)
        assert ledger.remaining("ana") == 0.25
        assert len(ledger.history("ana")) == 1
        assert ledger.charge("ana", 0.25) == 0.0


def test_the_budget_outlives_the_process(url: str) -> None:
    with Ledger(url, budget=1.0) as ledger:
        ledger.charge("ana", 0.75)
    with Ledger(url, budget=1.0) as ledger, pytest.raises(BudgetExceededError):
        ledger.charge("ana", 0.5)


def test_thousands_of_small_charges_add_up_exactly(url: str) -> None:
    with Ledger(url, budget=0.1) as ledger:
        for _ in range(10):
            ledger.charge_counts({"ana": 100}, 0.0001)
        assert (ledger.spent("ana"), ledger.remaining("ana")) == (0.1, 0.0)
        with pytest.raises(BudgetExceededError):
            ledger.charge("ana", 1e-9)


@given(
    reports=st.integers(1, 5000),
    epsilon=st.floats(3e-6, 0.2),
)
@settings(max_examples=trials(60), deadline=None)
def test_a_budget_of_n_epsilon_pays_for_n_reports_and_not_for_one_more(reports: int, epsilon: float) -> None:
    ledger = Ledger("sqlite://", budget=reports * epsilon)
    ledger.charge("ana", epsilon, reports=reports)
    assert ledger.remaining("ana") == pytest.approx(0, abs=1e-9)
    with pytest.raises(BudgetExceededError):
        ledger.charge("ana", epsilon)


@given(st.lists(st.floats(1e-6, 1e-3), min_size=1, max_size=30))
@settings(max_examples=trials(30), deadline=None)
def test_what_is_recorded_is_never_less_than_what_was_spent(charges: list[float]) -> None:
    ledger = Ledger("sqlite://", budget=1)
    for epsilon in charges:
        ledger.charge("ana", epsilon)
    recorded = ledger._limit.spent(ledger._counted("ana", None))
    assert recorded >= sum(Fraction(repr(epsilon)) for epsilon in charges)
    assert recorded <= sum(Fraction(repr(epsilon)) for epsilon in charges) + Fraction(len(charges), 10**15)


@pytest.mark.slow
@given(
    budget=st.floats(1e-9, 900),
    parts=st.lists(st.floats(1e-3, 0.9), min_size=1, max_size=12),
)
@settings(max_examples=trials(60), deadline=None)
def test_no_overdraft_is_larger_than_a_billionth(budget: float, parts: list[float]) -> None:
    with Ledger("sqlite://", budget=budget) as ledger:
        for part in parts:
            before = ledger._limit.spent(ledger._counted("ana", None))
            fits = before + Fraction(part * budget) <= Fraction(budget)
            try:
                ledger.charge("ana", part * budget)
            except BudgetExceededError:
                assert not fits or before + Fraction(part * budget) > Fraction(budget) * (1 - Fraction(1, 10**5))
            assert ledger._limit.spent(ledger._counted("ana", None)) <= Fraction(budget) * (1 + Fraction(2, 10**9))


@pytest.mark.parametrize("budget", [1e-10, 1e-6, 0.139, 50.0])
def test_a_full_budget_has_no_room_for_one_part_in_a_hundred_thousand(budget: float) -> None:
    with Ledger("sqlite://", budget=budget) as ledger:
        ledger.charge("ana", budget)
        with pytest.raises(BudgetExceededError):
            ledger.charge("ana", budget / 100_000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", 0.1), "person"),
        ((None, 0.1), "person"),
        ((1.5, 0.1), "whole number, got float"),
        ((True, 0.1), "whole number, got bool"),
        ((["ana"], 0.1), "whole number, got list"),
        (("a\nb", 0.1), "printable"),
        (("a\0b", 0.1), "printable"),
        (("\ud800", 0.1), "printable"),
        (("ana", 0.0), "epsilon"),
        (("ana", -1.0), "epsilon"),
        (("ana", math.nan), "epsilon"),
        (("ana", math.inf), "epsilon"),
        (("ana", 1e6), "at most 1000"),
        (("ana", "0.1"), "epsilon"),
    ],
    ids=repr,
)
def test_a_bad_charge_has_its_error(arguments: tuple[str, float], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Ledger("sqlite://", budget=1).charge(*arguments)


@pytest.mark.parametrize("reports", [0, -1, 1.5, math.nan, "2"])
def test_reports_must_be_counted(reports: int) -> None:
    with pytest.raises(InvalidInputError, match="reports"):
        Ledger("sqlite://", budget=1).charge("ana", 0.1, reports=reports)


@pytest.mark.parametrize(
    ("url", "options", "message"),
    [
        ("no url", {}, "database URL"),
        (None, {}, "database URL"),
        ("mysql://somewhere/db", {}, "sqlite or postgresql"),
        ("sqlite://", {"budget": 0}, "budget"),
        ("sqlite://", {"budget": math.nan}, "budget"),
        ("sqlite://", {"budget": 1e9}, "budget"),
        ("sqlite://", {"window": 3600}, "window"),
        ("sqlite://", {"window": timedelta(0)}, "window"),
        ("sqlite://", {"timeout": -1}, "timeout"),
    ],
    ids=repr,
)
def test_a_bad_ledger_has_its_error(url: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Ledger(url, **{"budget": 1.0, **options})  # type: ignore[arg-type]


def test_a_batch_charges_each_person_once_per_report(url: str) -> None:
    with Ledger(url, budget=1) as ledger:
        ledger.charge_counts({"ana": 3, "ben": 1}, 0.125, label="trips")
        assert (ledger.remaining("ana"), ledger.remaining("ben")) == (0.625, 0.875)
        assert [(c.epsilon, c.reports) for c in ledger.history("ana")] == [(0.375, 3)]
        ledger.charge_counts({}, 0.125)


def test_a_batch_that_one_person_cannot_pay_charges_no_person(url: str) -> None:
    with Ledger(url, budget=1) as ledger:
        ledger.charge("zoe", 1.0)
        crowd = [f"p{number}" for number in range(1200)]  # more than one statement's worth, zoe in the last
        with pytest.raises(BudgetExceededError) as caught:
            ledger.charge_counts(Counter([*crowd, "zoe"]), 0.5)
        assert caught.value.person == "zoe"
        assert ledger.history("p0") == []
        assert ledger.remaining("p0") == 1.0


def test_one_hundred_thousand_reports_of_ten_thousand_people_are_one_transaction(url: str) -> None:
    with Ledger(url, budget=1) as ledger:
        ledger.charge_counts(Counter(f"p{number % 10_000}" for number in range(100_000)), 0.0625)
        assert ledger.remaining("p9999") == 0.375


def test_batches_in_opposite_orders_do_not_wait_for_each_other(url: str) -> None:
    """Old and new names in both, more than one statement's worth: PostgreSQL would find a deadlock."""
    ledger = Ledger(url, budget=1000, timeout=300)  # a busy machine is no deadlock
    ledger.charge_counts({f"p{number:04}": 1 for number in range(0, 1500, 2)}, 0.001)
    errors: list[BaseException] = []

    def charge(names: list[str]) -> None:
        try:
            for _ in range(3):
                ledger.charge_counts(dict.fromkeys(names, 1), 0.001)
        except BaseException as error:
            errors.append(error)

    forward = [f"p{number:04}" for number in range(1500)]
    threads = [threading.Thread(target=charge, args=(names,)) for names in (forward, forward[::-1], forward[200:])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(ledger.history("p1499")) == 9
    ledger.close()


def test_the_pipeline_pays_before_it_draws_and_draws_nothing_when_refused(url: str) -> None:
    drawn: list[Words] = []

    class Watched:
        epsilon = EPSILON
        space: Space = "lonlat"

        def reach(self, confidence: float) -> float:
            return confidence

        def sample(self, points: ArrayLike, *, rng: RandomnessLike = None) -> FloatArray:
            assert isinstance(rng, Randomness)
            drawn.append(rng.words(np.zeros((3, 2)), 2, "test"))
            return np.asarray(points)

    with Ledger(url, budget=5 * EPSILON) as ledger:
        lat, lon = np.array([48.0, 49.0, 50.0]), np.zeros(3)
        obfuscate(lat=lat, lon=lon, mechanism=Watched(), ledger=ledger, person_id=["ana", "ben", "ana"])
        assert ledger.spent("ana") == pytest.approx(2 * EPSILON)
        obfuscate(lat=lat, lon=lon, epsilon=EPSILON, ledger=ledger, person_id="ana")
        with pytest.raises(BudgetExceededError):
            obfuscate(lat=lat, lon=lon, mechanism=Watched(), ledger=ledger, person_id=["cyd", "ben", "ana"])
        assert len(drawn) == 1
        assert ledger.spent("cyd") == 0
        assert ledger.spent("ben") == pytest.approx(EPSILON)
        with pytest.raises(InvalidInputError):
            obfuscate(lat=91.0, lon=0.0, epsilon=EPSILON, ledger=ledger, person_id="cyd")
        assert ledger.spent("cyd") == 0


def test_a_token_is_for_reports_of_one_cost_and_number(url: str) -> None:
    """A report of another epsilon is another report, whatever it is called."""
    with Ledger(url, budget=1) as ledger:
        assert ledger.charge("ana", 0.125, once="home") == 0.875
        assert ledger.charge("ana", 0.25, once="home") == 0.625
        assert ledger.charge("ana", 0.125, once="home") == 0.625
        assert ledger.charge("ana", 0.125, once="home", reports=2) == 0.375
        assert ledger.charge("ana", 0.125, once="home", reports=2) == 0.375
        with pytest.raises(BudgetExceededError):
            ledger.charge("ana", 0.5, once="home")


def test_repr_hides_the_password(server: Server) -> None:
    with Ledger(server.new_database().replace("postgres@", "postgres:s3cret@"), budget=1) as ledger:
        assert "budget=1.0" in repr(ledger)
        assert "s3cret" not in repr(ledger)


def test_the_file_is_written_through_to_the_disk(tmp_path: Path) -> None:
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}", budget=epsilon_for())
    with ledger._database.transaction(writes=False) as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
    ledger.close()


def test_the_table_of_what_a_refilled_budget_adds_up_to_is_right() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "budgets.md").read_text()
    rows = re.findall(r"^\| one .*? \| ([\d.]+)(?: per metre)? \| within ([\d.]+) (c?m) \|$", page, re.MULTILINE)
    for (epsilon, radius, unit), reports in zip(rows, [1, 20, 20 * 30, 20 * 365], strict=True):
        assert float(epsilon) == pytest.approx(reports * EPSILON, rel=0.01)
        metres = float(radius) / (100 if unit == "cm" else 1)
        assert metres == pytest.approx(200 / reports, rel=0.1)


def test_a_frame_with_a_column_of_persons_charges_each_once_per_row_or_none(url: str) -> None:
    import geopandas

    import geoind.adapters.geopandas  # noqa: F401

    points = geopandas.points_from_xy([2.0, 2.1, 2.2, 2.3], [48.0, 48.1, 48.2, 48.3])
    frame = geopandas.GeoDataFrame({"who": ["ana", "ben", "ana", "cyd"]}, geometry=points, crs=4326)
    with Ledger(url, budget=3 * EPSILON) as ledger:
        frame.geoind.obfuscate(epsilon=EPSILON, ledger=ledger, person="who")
        assert [round(ledger.spent(name) / EPSILON) for name in ("ana", "ben", "cyd")] == [2, 1, 1]
        with pytest.raises(BudgetExceededError):
            frame.geoind.obfuscate(epsilon=EPSILON, ledger=ledger, person="who")
        assert [round(ledger.spent(name) / EPSILON) for name in ("ana", "ben", "cyd")] == [2, 1, 1]


def test_several_costs_of_several_persons_are_charged_together_or_not_at_all(url: str) -> None:
    with Ledger(url, budget=0.05) as ledger:
        ledger.charge_all(
            {"ana": {0.01: 2, 0.02: 1}, "Zoe\u0308": {0.01: 1}, "Zo\u00eb": {0.01: 1}}, label="trace"
        )
        assert (ledger.spent("ana"), ledger.spent("Zo\u00eb")) == (0.04, 0.02)
        assert sorted((charge.epsilon, charge.reports) for charge in ledger.history("ana")) == [
            (0.02, 1),
            (0.02, 2),
        ]
        with pytest.raises(BudgetExceededError, match="ana") as refused:
            ledger.charge_all({"ben": {0.01: 1}, "ana": {0.01: 1, 0.02: 1}})
        # What all of it costs, and what is left before any of it.
        assert (refused.value.requested, refused.value.remaining) == pytest.approx((0.03, 0.01))
        assert (ledger.spent("ana"), ledger.spent("ben")) == (0.04, 0.0)


def test_a_cost_that_a_budget_cannot_count_is_refused_without_any_person() -> None:
    with Ledger("sqlite://", budget=1) as ledger, pytest.raises(InvalidInputError, match="has no epsilon"):
        ledger.charge_counts({}, PlanarGaussian(500))


def test_a_saved_session_replaces_the_one_before_and_is_forgotten_with_its_person(url: str) -> None:
    with Ledger(url, budget=1) as ledger:
        assert ledger.session("ana", "one") is None
        for state in ("here", "on the way"):
            with ledger.locked("ana") as account:
                account.save_session("one", state)
                assert account.session("one") == state
            assert ledger.session("ana", "one") == state
        with ledger.locked("ana") as account:
            account.save_session("two", "elsewhere")
        assert (ledger.session("ana", "one"), ledger.session("ana", "two")) == ("on the way", "elsewhere")
        assert ledger.session("ben", "one") is None
        ledger.forget("ana")
        assert ledger.session("ana", "one") is ledger.session("ana", "two") is None


def test_a_history_says_what_drew_each_report_and_what_it_cost() -> None:
    with Ledger("sqlite://", budget=Promise(level=5, radius=200, delta=1e-5)) as ledger:
        ledger.charge("ana", SphericalLaplace(0.001), reports=2)
        ledger.charge("ben", PlanarGaussian(5000.0), reports=3)
        entries = [*ledger.history("ana"), *ledger.history("ben")]
        charged = [(entry.epsilon, entry.reports, entry.mechanism) for entry in entries]
    assert charged == [(0.002, 2, "SphericalLaplace(0.001)"), (math.inf, 3, "PlanarGaussian(5000)")]
