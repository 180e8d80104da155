"""Jobs against a model of them: any order of runs, errors, kills, cancellations and changed data.

Every release of a person's reports is charged once. What is charged is published, or is unfinished or
cancelled work of a job that was paid for.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from geoind.adapters.dataset import obfuscate_dataset
from geoind.files.folder import obfuscate_files
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from geoind import BudgetExceededError, GeoindError, Ledger
from geoind.errors import LedgerError
from geoind.files import cancel, obfuscate_file
from geoind.files.job import Job
from geoind.mechanisms.protocol import Mechanism
from geoind.pipeline import Costs, ReportCounts
from geoind.tables import Recipe
from tests.postgres import Server
from tests.trials import trials

PERSONS = ("ana", "ben")
EACH = 3
EPSILON = 0.001
VERSIONS = 2
KINDS = ("file", "trace file", "folder", "trace folder", "dataset")
FAULTS = ("none", "none", "none", "unpaid", "unsure", "disk", "killed", "twice", "poor")


class Killed(BaseException):
    """An end that no handler of errors catches."""


class Unsure:
    """A ledger whose confirmation is lost, before or after the charge is written."""

    def __init__(self, ledger: Ledger, *, written: bool) -> None:
        self._ledger, self._written = ledger, written

    def charge_counts(
        self, reports: ReportCounts, cost: Mechanism, *, label: str = "", once: Mapping[str, str] | None = None
    ) -> None:
        if self._written:
            self._ledger.charge_counts(reports, cost, label=label, once=once)
        raise LedgerError("the connection was lost")

    def charge_all(self, costs: Costs, *, label: str = "", once: Mapping[str, str] | None = None) -> None:
        if self._written:
            self._ledger.charge_all(costs, label=label, once=once)
        raise LedgerError("the connection was lost")


class Jobs(RuleBasedStateMachine):
    """Two targets, two keys or none, data that change for one of two persons."""

    database: Server | None = None

    @initialize()
    def open(self) -> None:
        self.folder = TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
        self.root = Path(self.folder.name)
        url = f"sqlite:///{self.root}/ledger.db" if self.database is None else self.database.new_database()
        self.ledger, self.poor = Ledger(url, budget=1000.0), Ledger(url, budget=EPSILON * EACH)
        self.version = 0
        for version in range(VERSIONS):
            self._write(version)
        self.paid: set[tuple[str, object]] = set()
        self.published: dict[tuple[str, object], frozenset[tuple[float, float]]] = {}
        # By name: which job is unfinished there, and what stands for its fresh noise.
        self.pending: dict[str, tuple[tuple[str, bool, int], int]] = {}
        self.fresh = 0

    def teardown(self) -> None:
        if hasattr(self, "ledger"):
            self.ledger.close()
            self.poor.close()
            self.folder.cleanup()

    def _write(self, version: int) -> None:
        """Write the data: of ben each version has other places."""
        rows = [
            {"trip": f"t{number}", "who": person, "at": number, "lon": lon, "lat": 48.8 + number / 1000}
            for number, person in enumerate(PERSONS * EACH)
            for lon in [2.3 + (version / 100 if person == "ben" else 0)]
        ]
        table = pa.Table.from_pylist(rows)
        for suffix in ("csv", "parquet"):
            place = self.root / f"in {version} {suffix}"
            place.mkdir()
            if suffix == "csv":
                pyarrow.csv.write_csv(table, place / "a.csv")
            else:
                pq.write_table(table, place / "a.parquet")

    @rule()
    def change_the_data(self) -> None:
        self.version = (self.version + 1) % VERSIONS

    @rule(name=st.sampled_from("xy"))
    def cancel(self, name: str) -> None:
        assert cancel(self._place(name)) == (name in self.pending)
        self.pending.pop(name, None)

    @rule(
        kind=st.sampled_from(KINDS),
        name=st.sampled_from("xy"),
        keyed=st.booleans(),
        fault=st.sampled_from(FAULTS),
    )
    def run(self, kind: str, name: str, keyed: bool, fault: str) -> None:
        keyed = keyed or "trace" in kind
        job = (kind, keyed, self.version)
        resumed = self.pending.get(name)
        if resumed is not None and resumed[0] != job:
            with pytest.raises(GeoindError, match="begun by another job"):
                self._run(job, name, fault)
            return
        self.fresh += resumed is None
        nonce = self.fresh if resumed is None else resumed[1]
        releases = {person: (person, self._release(job, person, nonce)) for person in PERSONS}
        due = [release for release in releases.values() if release not in self.paid]
        # The poor ledger has room for one release of a person.
        over = fault == "poor" and any(self._charged(person) for person, _ in due)
        if fault in ("unpaid", "unsure", "disk", "killed"):
            with pytest.raises((LedgerError, OSError, GeoindError, Killed)):
                self._run(job, name, fault)
            self.pending[name] = (job, nonce)
        elif over:
            with pytest.raises(BudgetExceededError):
                self._run(job, name, fault)
        else:
            self._run(job, name, fault)
            self.pending.pop(name, None)
            for person, reports in self._reports(kind, name).items():
                assert len(reports) == EACH
                assert self.published.setdefault(releases[person], reports) == reports, "a second report was drawn"
        if not over and fault != "unpaid":
            self.paid.update(due)

    def _release(self, job: tuple[str, bool, int], person: str, nonce: int) -> object:
        """Return what stands for the reports of a person that a job makes: under a key, the same in every job."""
        kind, keyed, version = job
        return ("trace" in kind, version if person == "ben" else 0) if keyed else nonce

    def _run(self, job: tuple[str, bool, int], name: str, fault: str) -> None:
        kind, keyed, version = job
        ledger: Any = self.poor if fault == "poor" else self.ledger
        if fault in ("unpaid", "unsure"):
            ledger = Unsure(ledger, written=fault == "unsure")

        def progress(_count: int, _share: float | None) -> None:
            if fault == "disk":
                raise OSError(28, "No space left on device")
            if fault == "killed":
                raise Killed
            if fault == "twice":
                with pytest.raises(GeoindError, match="another process is working in"):
                    self._run(job, name, "none")

        options: dict[str, Any] = {"epsilon": EPSILON, "person_column": "who"}
        if "trace" in kind:
            options = {"epsilon": EPSILON, "trace": "who,at", "method": "independent", "key": bytes(32)}
        elif keyed:
            options |= {"key": bytes(32), "id_column": "trip"}
        place, out = self.root / f"in {version} csv", self._place(name)
        if out.exists() and name not in self.pending:
            shutil.rmtree(out) if out.is_dir() else out.unlink()
        if kind == "dataset":
            source = self.root / f"in {version} parquet"
            obfuscate_dataset(source, out, ledger=ledger, progress=progress, workers=1, **options)
        elif "folder" in kind:
            made = Job(recipe=Recipe.of(**options), ledger=ledger, progress=progress)
            obfuscate_files([place], out, made)
        else:
            obfuscate_file(place / "a.csv", out, ledger=ledger, progress=progress, **options)

    def _place(self, name: str) -> Path:
        return self.root / f"{name}.csv"

    def _reports(self, kind: str, name: str) -> dict[str, frozenset[tuple[float, float]]]:
        """Return the reports of each person in a name."""
        out = self._place(name)
        if kind == "dataset":
            table = pq.read_table(out / "a.parquet")
        else:
            table = pyarrow.csv.read_csv(out / "a.csv" if "folder" in kind else out)
        rows = table.to_pylist()
        return {
            person: frozenset((row["lon"], row["lat"]) for row in rows if row["who"] == person)
            for person in PERSONS
        }

    def _charged(self, person: str) -> int:
        return sum(charge.reports for charge in self.ledger.history(person))

    @invariant()
    def charges_are_the_releases_that_were_paid(self) -> None:
        if not hasattr(self, "ledger"):
            return
        for person in PERSONS:
            assert self._charged(person) == EACH * sum(who == person for who, _ in self.paid)
        assert self.published.keys() <= self.paid
        left = {path.name for path in self.root.iterdir() if path.name.endswith(".partial")}
        assert left == {f".{self._place(name).name}.partial" for name in self.pending}


STEPS = settings(max_examples=trials(60), stateful_step_count=20, deadline=None)


def test_jobs_are_charged_once_in_sqlite() -> None:
    run_state_machine_as_test(Jobs, settings=STEPS)


def test_jobs_are_charged_once_in_postgresql(server: Server) -> None:
    class JobsInPostgresql(Jobs):
        database = server

    run_state_machine_as_test(JobsInPostgresql, settings=settings(STEPS, max_examples=trials(10)))
