"""What is done to a table, said once: where its places are, which noise, under which key, what may pass."""

import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypedDict, Unpack

import pyarrow as pa

from geoind.budgets.persons import PersonReports
from geoind.errors import InvalidInputError
from geoind.mechanisms.protocol import Mechanism
from geoind.pipeline import Budget, Costs, choose_mechanism
from geoind.randomness import KEY_BYTES
from geoind.tables.keys import Key, KeyLike, as_key
from geoind.tables.promise import refuse_more_reports
from geoind.tables.table import Table
from geoind.tables.tracing import MethodName, Tracing, tracing_of
from geoind.tables.where import LonLat, Points, column_names, places_of
from geoind.traces.many import TraceSessions
from geoind.traces.session import TraceMethod

__all__ = ["Missing", "Options", "Order", "Recipe", "TableOptions"]

log = logging.getLogger("geoind")

PRIVACY = ("epsilon", "level", "radius", "delta", "reports", "mechanism")

Missing = Literal["raise", "keep"]
Order = Literal["raise", "shuffle", "keep"]


class TableOptions(TypedDict, total=False):
    """The keywords about a table; `Recipe` tells what they mean."""

    lon: str | Sequence[str] | None
    lat: str | Sequence[str] | None
    geometry: str | None
    crs: str | None
    drop: Sequence[str]
    keep: Sequence[str]
    missing: Missing
    order: Order
    id_column: str | None
    person_column: str | None
    key: KeyLike | None
    trace: str | tuple[str, str] | None
    method: MethodName | TraceMethod | None


class Options(TableOptions, total=False):
    """The keywords that everything takes that obfuscates a table: which noise, and about the table."""

    epsilon: float | None
    level: float | None
    radius: float | None
    delta: float | None
    reports: int | None
    mechanism: Mechanism | None


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How to obfuscate any batch of a table, the same way on every machine and at every attempt.

    With a key the noise of a record depends on the key, on the record's identity, on its true place and on the
    mechanism, and on nothing else: not on the engine, the partition or the attempt. Serialise it, print it, log
    it: it holds the key's place, never shows the key.

    Parameters
    ----------
    mechanism : Mechanism
        Anything that samples lon/lat reports, such as `SphericalLaplace(epsilon)`.
    places : tuple of LonLat or Points
        Where the true places are. Each has its own noise. None given: the geometry that the schema declares, else
        the columns called lon, lng, long or longitude, and lat or latitude.
    key : Key, optional
        The secret under which noise is drawn; None for fresh noise.
    id_column : str, optional
        The column that names the record: whole numbers, text or bytes. One name for one record, not for one
        person: two rows with the same name and the same place get the same report.
    person_column : str, optional
        The column that names the person, in text or whole numbers, whose budget pays.
    drop, keep : tuple of str
        Columns that are left out, and columns that pass although they seem to tell a place.
    missing : {"raise", "keep"}
        What to do with a row without a place (a null, empty text, an empty point): a problem, or it stays so.
    order : {"raise", "shuffle", "keep"}
        What to do where the rows are sorted by place: an error, rows in an order that depends on nothing but key
        and identity, or nothing.
    level, radius, delta, reports : float, optional
        How the noise was chosen, for the promise.
    trace : Tracing, optional
        That rows are steps of traces, in the order of time for each person. A session per person answers them; the
        mechanism draws its fresh reports.

    Examples
    --------
    >>> recipe = Recipe.of(epsilon=0.01, id_column="trip", key=bytes(32))
    >>> batch = pa.RecordBatch.from_pydict({"trip": [7, 8], "lon": [2.2945, 2.35], "lat": [48.8584, 48.86]})
    >>> recipe.obfuscate(batch).slice(1) == recipe.obfuscate(batch.slice(1))
    True
    >>> Recipe.of(epsilon=0.01, lon=["from_lon", "to_lon"], lat=["from_lat", "to_lat"]).places[1]
    LonLat(lon='to_lon', lat='to_lat')
    """

    mechanism: Mechanism
    places: tuple[LonLat | Points, ...] = ()
    key: Key | None = None
    id_column: str | None = None
    person_column: str | None = None
    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    missing: Missing = "raise"
    order: Order = "raise"
    level: float | None = None
    radius: float | None = None
    delta: float | None = None
    reports: int | None = None
    trace: Tracing | None = None

    def __post_init__(self) -> None:
        if self.missing not in ("raise", "keep"):
            raise InvalidInputError(f"missing must be 'raise' or 'keep', got {self.missing!r}")
        if self.order not in ("raise", "shuffle", "keep"):
            raise InvalidInputError(f"order must be 'raise', 'shuffle' or 'keep', got {self.order!r}")
        both = set(self.drop) & set(self.keep)
        if both:
            raise InvalidInputError(f"column {min(both)!r} must be dropped or kept, not both")
        if self.trace is not None:
            self._check_trace(self.trace)

    def _check_trace(self, trace: Tracing) -> None:
        if self.id_column is not None:
            raise InvalidInputError("person and time name the steps of a trace: leave id_column out")
        if self.person_column != trace.person:
            raise InvalidInputError("the person of a trace is named by trace: leave person_column out")
        if self.order == "shuffle":
            raise InvalidInputError("the rows of a trace are in the order of time: they cannot be shuffled")
        if len(self.places) > 1:
            raise InvalidInputError("a step of a trace is one place: give one lon and one lat")
        if self.delta is not None:
            raise InvalidInputError(
                "delta and reports are for single places: a trace's epsilon is that of all of it"
            )

    @classmethod
    def of(cls, **options: Unpack[Options]) -> "Recipe":
        """Return the recipe that these keywords describe."""
        unknown = set(options) - Options.__optional_keys__
        if unknown:
            raise InvalidInputError(f"there is no option {min(unknown)!r}")
        chosen = {name: options.get(name) for name in PRIVACY}
        key = options.get("key")
        mechanism = choose_mechanism(**chosen)  # type: ignore[arg-type]
        told, method, trace = options.get("trace"), options.get("method"), None
        if told is not None:
            trace = tracing_of(told, method, mechanism)
        elif method is not None:
            raise InvalidInputError("method is for traces: give trace, the columns of person and time")
        return cls(
            mechanism=mechanism,
            places=places_of(options.get("lon"), options.get("lat"), options.get("geometry"), options.get("crs")),
            key=None if key is None else as_key(key),
            id_column=options.get("id_column"),
            person_column=options.get("person_column") or (None if trace is None else trace.person),
            drop=column_names(options.get("drop"), "drop"),
            keep=column_names(options.get("keep"), "keep"),
            missing=options.get("missing", "raise"),
            order=options.get("order", "raise"),
            level=options.get("level"),
            radius=options.get("radius"),
            delta=options.get("delta"),
            reports=options.get("reports"),
            trace=trace,
        )

    @property
    def named(self) -> tuple[str, ...]:
        """The columns that name records, persons and times."""
        time = None if self.trace is None else self.trace.time
        return tuple(name for name in (self.id_column, self.person_column, time) if name is not None)

    def must_count(self, ledger: Budget | None) -> bool:
        """Return whether persons are counted first: to be charged, or as the promise is for so many reports."""
        return ledger is not None or (self.person_column is not None and (self.reports or 1) > 1)

    def charge(
        self, ledger: Budget | None, persons: PersonReports, *, label: str, costs: Costs | None = None
    ) -> None:
        """Charge all persons for their reports, or none; more reports than the promise is for are refused.

        Under a key the ledger remembers for which reports each person has paid: the same ones are free.

        Parameters
        ----------
        ledger : Ledger, optional
            The ledger to charge, if any.
        persons : PersonReports
            The reports of each person.
        label : str
            What the ledger calls them.
        costs : dict, optional
            Of traces: what the answers of each person's session cost.
        """
        refuse_more_reports(self.reports, persons.counts)
        if ledger is None:
            return
        if self.trace is None:
            ledger.charge_counts(persons.counts, self.mechanism, label=label, once=persons.tokens)
        else:
            ledger.charge_all(costs or {}, label=label, once=persons.tokens)

    def with_key(self) -> "Recipe":
        """Return the recipe with a key: its own, or one made for this purpose alone, which a log line tells."""
        if self.key is not None:
            return self
        key = Key(secrets.token_bytes(KEY_BYTES))
        log.warning(
            "no key was given: made %r. It lives in this result alone: computing the result again repeats "
            "its reports, another call makes new ones, which are a second release. To repeat the reports "
            "later, give key=Key.new_file(path)",
            key,
        )
        return replace(self, key=key)

    def sessions(self) -> TraceSessions:
        """Return a session for each person of a table of traces, before their first step."""
        if self.trace is None:
            raise InvalidInputError("there are no traces: give trace, the columns of person and time")
        secret = secrets.token_bytes(KEY_BYTES) if self.key is None else self.key.read()
        return TraceSessions(self.trace.method, secret)

    def in_parts(self, instead: str) -> "Recipe":
        """Return this recipe for a table that comes in parts, where rows cannot be shuffled among all of them."""
        self.refuse_traces()
        if self.order == "shuffle":
            raise InvalidInputError(
                f"order='shuffle' needs the whole table at once, and this one comes in parts: {instead}"
            )
        return self

    def refuse_traces(self) -> None:
        """Refuse traces where nothing brings each person's rows together, in the order of time."""
        if self.trace is not None:
            raise InvalidInputError(
                "trace needs a person's rows together, in the order of time: "
                "give a file, or use geoind.adapters.geopandas.obfuscate_traces, Dask or Spark"
            )

    def refuse_identity_without_key(self) -> None:
        """Refuse a column of identities that nothing would look at, where no key was given or made."""
        if self.id_column is not None and self.key is None:
            raise InvalidInputError("id_column names records whose reports a key repeats: give key, too")

    def refuse_ledger_without_persons(self, ledger: object) -> None:
        """Refuse a ledger without persons, and one for traces that could be drawn again until they fit."""
        if ledger is not None and self.person_column is None:
            raise InvalidInputError("a ledger needs person_column, the column that says whose budgets pay")
        if ledger is not None and self.trace is not None and self.key is None:
            raise InvalidInputError(
                "trace with a ledger needs key (--key-file): the cost depends on the noise, and only keyed noise "
                "is the same in a second attempt"
            )

    def table(self, schema: pa.Schema, *, open_ended: bool = False, path: str = "") -> Table:
        """Return the recipe for tables of one schema; refuse columns that tell the place."""
        return Table(self, schema, open_ended, path)

    def obfuscate(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with reports in place of true locations; the first bad row is an error."""
        self.refuse_traces()
        return self.table(batch.schema).obfuscate(batch).batch
