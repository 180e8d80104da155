"""Jobs against a model of them: any order of runs, errors, kills, cancellations and changed data.

Every release of a person's reports is charged once. What is charged is published, or is unfinished or
cancelled work of a job that was paid for.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from geoind import BudgetExceededError, GeoindError, Ledger, obfuscate_file
from geoind.errors import LedgerError
from geoind.files import cancel
from geoind.mechanisms.protocol import Mechanism
from geoind.pipeline import Costs, ReportCounts
from geoind.tables import obfuscate
from tests.postgres import Server
from tests.trials import trials

PERSONS = ("ana", "ben")
ROWS = 4
EPSILON = 0.001
VERSIONS = 2
EACH = {"points": ROWS, "trace": ROWS, "bounded": 2, "same place": 1}
"""The reports that a person has: of some rows two are left out, and all of them are in one cell."""
PLACES = ("file", "folder")
FAULTS = ("none", "none", "none", "unpaid", "unsure", "disk", "killed", "twice", "poor")


Release = tuple[str, str, object]
"""A person, a kind of release, and which of them."""
Reports = frozenset[tuple[float, float]]


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

    def charge_all(self, costs: Costs, **more: Any) -> None:
        if self._written:
            self._ledger.charge_all(costs, **more)
        raise LedgerError("the connection was lost")


NEED_A_KEY = ("trace", "same place")
"""What they cost depends on the noise: without a key, a job could be tried again until it is cheap."""


class Job(NamedTuple):
    """What is released, how and into what, under a key or not, from which version of the data."""

    kind: str
    place: str
    keyed: bool
    version: int


class Jobs(RuleBasedStateMachine):
    """Two targets, two keys or none, data that change for one of two persons."""

    database: Server | None = None

    @initialize()
    def open(self) -> None:
        self.folder = TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
        self.root = Path(self.folder.name)
        url = f"sqlite:///{self.root}/ledger.db" if self.database is None else self.database.new_database()
        self.ledger, self.poor = Ledger(url, budget=1000.0), Ledger(url, budget=EPSILON * ROWS)
        self.version = 0
        for version in range(VERSIONS):
            self._write(version)
        self.paid: set[Release] = set()
        self.published: dict[Release, Reports] = {}
        # By name: which job is unfinished there, and what stands for its fresh noise.
        self.pending: dict[str, tuple[Job, int]] = {}
        self.fresh = 0

    def teardown(self) -> None:
        if hasattr(self, "ledger"):
            self.ledger.close()
            self.poor.close()
            self.folder.cleanup()

    def _write(self, version: int) -> None:
        """Write the data, half of it as CSV and half as Parquet: of ben each version has other places."""
        rows = [
            {"trip": f"t{number}", "who": person, "at": number, "lon": lon, "lat": 48.8 + number / 1e6}
            for number, person in enumerate(PERSONS * ROWS)
            for lon in [2.3 + (version if person == "ben" else 0)]
        ]
        table = pa.Table.from_pylist(rows)
        place = self.root / f"in {version}"
        place.mkdir()
        pyarrow.csv.write_csv(table, self.root / f"in {version}.csv")
        pyarrow.csv.write_csv(table.slice(0, ROWS), place / "a.csv")
        pq.write_table(table.slice(ROWS), place / "b.parquet")

    @rule()
    def change_the_data(self) -> None:
        self.version = (self.version + 1) % VERSIONS

    @rule(name=st.sampled_from("xy"))
    def cancel(self, name: str) -> None:
        assert cancel(self._place(name)) == (name in self.pending)
        self.pending.pop(name, None)

    @rule(
        kind=st.sampled_from(sorted(EACH)),
        place=st.sampled_from(PLACES),
        name=st.sampled_from("xy"),
        keyed=st.booleans(),
        fault=st.sampled_from(FAULTS),
    )
    def run(self, kind: str, place: str, name: str, keyed: bool, fault: str) -> None:
        job = Job(kind, place, keyed or kind in NEED_A_KEY, self.version)
        resumed = self.pending.get(name)
        if resumed is not None and resumed[0] != job:
            with pytest.raises(GeoindError, match="begun by another job"):
                self._run(job, name, fault)
            return
        self.fresh += resumed is None
        nonce = self.fresh if resumed is None else resumed[1]
        releases = {person: self._release(job, person, nonce) for person in PERSONS}
        due = [release for release in releases.values() if release not in self.paid]
        # The poor ledger has room for all rows of a person once.
        over = fault == "poor" and any(self._charged(release[0]) + EACH[kind] > ROWS for release in due)
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
            for person, reports in self._reports(job, name).items():
                assert len(reports) == EACH[kind]
                assert self.published.setdefault(releases[person], reports) == reports, "a second report was drawn"
        if not over and fault != "unpaid":
            self.paid.update(due)

    @rule(kind=st.sampled_from(sorted(EACH)), keyed=st.booleans())
    def stream(self, kind: str, keyed: bool) -> None:
        """Obfuscate the same rows as a stream: under a key, it has the reports of a file."""
        self.fresh += 1
        job = Job(kind, "stream", keyed or kind in NEED_A_KEY, self.version)
        table = pyarrow.csv.read_csv(self.root / f"in {self.version}.csv")
        made = obfuscate(table, ledger=self.ledger, **self._options(job)).read_all()
        for person in PERSONS:
            release = self._release(job, person, self.fresh)
            reports = _reports_of(made, person)
            assert self.published.setdefault(release, reports) == reports, "a second report was drawn"
            self.paid.add(release)

    def _release(self, job: Job, person: str, nonce: int) -> Release:
        """Return what stands for the reports of a person that a job makes: under a key, the same in every job."""
        version = job.version if person == "ben" else 0
        return (person, job.kind, version if job.keyed else ("fresh", nonce))

    def _options(self, job: Job) -> dict[str, Any]:
        options: dict[str, Any] = {"epsilon": EPSILON, "person": "who", "keep": ["who"]}
        if job.kind == "trace":
            options |= {"time": "at", "method": "independent"}
        elif job.kind == "same place":
            # The corner of a cell is anywhere: in this one are all places of a person.
            options |= {"same_place": 20_000.0}
        else:
            options |= {"id_column": "trip"}
        if job.kind == "bounded":
            options |= {"reports_per_person": EACH["bounded"]}
        return options | ({"key": bytes(32)} if job.keyed else {})

    def _run(self, job: Job, name: str, fault: str) -> None:
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

        out = self._place(name)
        if out.exists() and name not in self.pending:
            shutil.rmtree(out) if out.is_dir() else out.unlink()
        more: dict[str, Any] = {"ledger": ledger, "progress": progress, **self._options(job)}
        if job.place == "folder":
            obfuscate_file([self.root / f"in {job.version}"], out, **more)
        else:
            obfuscate_file(self.root / f"in {job.version}.csv", out, **more)

    def _place(self, name: str) -> Path:
        return self.root / f"{name}.csv"

    def _reports(self, job: Job, name: str) -> dict[str, Reports]:
        """Return the reports of each person in a name."""
        out = self._place(name)
        if job.place == "folder":
            parts = [pyarrow.csv.read_csv(out / "a.csv"), pq.read_table(out / "b.parquet")]
            # A file without rows has no types.
            table = pa.concat_tables(parts, promote_options="permissive")
        else:
            table = pyarrow.csv.read_csv(out)
        return {person: _reports_of(table, person) for person in PERSONS}

    def _charged(self, person: str) -> int:
        return sum(charge.reports for charge in self.ledger.history(person))

    @invariant()
    def charges_are_the_releases_that_were_paid(self) -> None:
        if not hasattr(self, "ledger"):
            return
        for person in PERSONS:
            assert self._charged(person) == sum(EACH[kind] for who, kind, _ in self.paid if who == person)
        assert self.published.keys() <= self.paid
        left = {path.name for path in self.root.iterdir() if path.name.endswith(".partial")}
        assert left == {f".{self._place(name).name}.partial" for name in self.pending}


def _reports_of(table: pa.Table, person: str) -> Reports:
    return frozenset((row["lon"], row["lat"]) for row in table.to_pylist() if row["who"] == person)


STEPS = settings(max_examples=trials(60), stateful_step_count=20, deadline=None)


def test_jobs_are_charged_once_in_sqlite() -> None:
    run_state_machine_as_test(Jobs, settings=STEPS)


def test_jobs_are_charged_once_in_postgresql(server: Server) -> None:
    class JobsInPostgresql(Jobs):
        database = server

    run_state_machine_as_test(JobsInPostgresql, settings=settings(STEPS, max_examples=trials(10)))
