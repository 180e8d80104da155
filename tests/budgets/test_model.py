"""Ledgers against a model of them: several objects on one database, time that passes, any order of calls."""

from dataclasses import dataclass, field
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from geoind import BudgetExceededError, InvalidInputError, Ledger
from tests.trials import trials

DAY = timedelta(days=1)
WINDOWS = (None, DAY, 3 * DAY, 7 * DAY)
BUDGET = 10
PERSONS = st.sampled_from(["ana", "ben"])
TOKENS = st.sampled_from(["home", "work"])
LEDGERS = st.integers(0, len(WINDOWS) - 1)


@dataclass
class Person:
    """What the model knows of a person: charges by age, tokens."""

    charges: list[tuple[float, Fraction]] = field(default_factory=list)
    tokens: set[tuple[str, int, int]] = field(default_factory=set)

    def spent(self, window: timedelta | None) -> Fraction:
        ages = [(age, cost) for age, cost in self.charges if window is None or age < window / DAY]
        return sum((cost for _, cost in ages), Fraction(0))


class Model(RuleBasedStateMachine):
    """One ledger per window on the same database; each call is checked against plain sums of plain lists."""

    @initialize()
    def open(self) -> None:
        self.people: dict[str, Person] = {}
        # Counting is what is tested here, not the disk.
        self.folder = TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
        url = f"sqlite:///{self.folder.name}/ledger.db"
        self.ledgers = [Ledger(url, budget=BUDGET, window=window) for window in WINDOWS]

    def teardown(self) -> None:
        if hasattr(self, "ledgers"):
            for ledger in self.ledgers:
                ledger.close()
            self.folder.cleanup()

    @rule(person=PERSONS, ledger=LEDGERS, epsilon=st.integers(1, 6), reports=st.integers(1, 3))
    def charge(self, person: str, ledger: int, epsilon: int, reports: int) -> None:
        self._charge(person, ledger, epsilon, reports, None)

    @rule(
        person=PERSONS,
        ledger=LEDGERS,
        epsilon=st.integers(1, 3),
        reports=st.integers(1, 2),
        token=st.sampled_from("ht"),
    )
    def charge_once(self, person: str, ledger: int, epsilon: int, reports: int, token: str) -> None:
        self._charge(person, ledger, epsilon, reports, token)

    def _charge(self, person: str, ledger: int, epsilon: int, reports: int, token: str | None) -> None:
        known = self.people.setdefault(person, Person())
        cost = Fraction(epsilon * reports)
        spent = known.spent(WINDOWS[ledger])
        free = token is not None and (token, epsilon, reports) in known.tokens
        fits = free or spent + cost <= BUDGET
        if not fits:
            with pytest.raises(BudgetExceededError) as caught:
                self.ledgers[ledger].charge(person, float(epsilon), reports=reports, once=token)
            assert caught.value.requested == cost
            assert caught.value.remaining == max(Fraction(0), BUDGET - spent)
            return
        left = self.ledgers[ledger].charge(person, float(epsilon), reports=reports, once=token)
        if not free:
            known.charges.append((0.0, cost))
        if token is not None:
            known.tokens.add((token, epsilon, reports))
        assert left == max(0, BUDGET - known.spent(WINDOWS[ledger]))

    @rule(ledger=LEDGERS, epsilon=st.integers(1, 4))
    def charge_both_or_none(self, ledger: int, epsilon: int) -> None:
        people = [self.people.setdefault(name, Person()) for name in ("ana", "ben")]
        fits = all(person.spent(WINDOWS[ledger]) + epsilon <= BUDGET for person in people)
        try:
            self.ledgers[ledger].charge_counts({"ben": 1, "ana": 1}, float(epsilon))
        except BudgetExceededError:
            assert not fits
            return
        assert fits
        for person in people:
            person.charges.append((0.0, Fraction(epsilon)))

    @rule(days=st.sampled_from([0.4, 1.1, 2.2, 5.5]))
    def wait(self, days: float) -> None:
        by = int(days * 86_400_000_000)
        with self.ledgers[0]._database.transaction(writes=True) as connection:
            connection.exec_driver_sql(f"UPDATE geoind_charge SET at = at - {by}")
        for person in self.people.values():
            person.charges = [(age + days, cost) for age, cost in person.charges]

    @rule(ledger=LEDGERS, keep=st.sampled_from([None, DAY / 2, DAY, 7 * DAY, 9 * DAY]))
    def prune(self, ledger: int, keep: timedelta | None) -> None:
        """Pruning changes no sum, whichever ledger prunes."""
        try:
            self.ledgers[ledger].prune(keep=keep)
        except InvalidInputError:
            assert keep is not None
            assert keep < 7 * DAY

    @precondition(lambda self: self.people)
    @rule(person=PERSONS)
    def forget(self, person: str) -> None:
        self.ledgers[0].forget(person)
        self.people.pop(person, None)

    @invariant()
    def every_ledger_counts_as_the_model(self) -> None:
        if not hasattr(self, "ledgers"):
            return
        for name in ("ana", "ben"):
            person = self.people.get(name, Person())
            for window, ledger in zip(WINDOWS, self.ledgers, strict=True):
                assert ledger.spent(name) == person.spent(window)
                assert ledger.lifetime(name) == person.spent(None)


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=trials(25), stateful_step_count=30, deadline=None)
