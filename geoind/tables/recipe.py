"""How a table is obfuscated: whose rows they are, which columns leave, where the places are, which noise."""

import inspect
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, Unpack

from geoind.arrays import as_positive
from geoind.errors import InvalidInputError
from geoind.keys import KEY_BYTES, Key, KeyLike, as_key
from geoind.mechanisms.noise import DECIMALS
from geoind.mechanisms.protocol import Mechanism
from geoind.mechanisms.spherical import SphericalLaplace
from geoind.pipeline import choose_mechanism
from geoind.tables.places import LonLat, Points, column_names, places_of

if TYPE_CHECKING:
    from geoind.traces.many import TraceSessions
    from geoind.traces.methods import TraceMethod
    from geoind.traces.zones import PrivateZone

MethodName = Literal["switching", "sparse", "predictive", "independent"]
METHODS: tuple[MethodName, ...] = ("switching", "sparse", "predictive", "independent")
CONFIDENCE = 0.9
"""A fresh report lies with this probability within the metres for which methods are made."""

Missing = Literal["raise", "keep"]
Order = Literal["raise", "shuffle", "keep"]

WHOSE = (
    "`person=` must say whose reports these are: the column that names the person, or EACH_ROW if no person has "
    "two rows, or EACH_FILE if each file is one person. The reports of one person add up, so the promise of a "
    "release is stated per person"
)


class _PrivacyUnit(Enum):
    """Whose reports they are, where no column names the person."""

    EACH_ROW = "each row"
    EACH_FILE = "each file"

    def __repr__(self) -> str:
        return self.name


EACH_ROW = _PrivacyUnit.EACH_ROW
"""No person has two rows."""
EACH_FILE = _PrivacyUnit.EACH_FILE
"""Each file is one person, with the file's name."""


class Options(TypedDict, total=False):
    """The keywords of every function that obfuscates a table; `Recipe` explains them."""

    epsilon: float | None
    level: float | None
    radius: float | None
    delta: float | None
    reports: int | None
    mechanism: Mechanism | None
    person: str | _PrivacyUnit
    keep: Sequence[str]
    lon: str | Sequence[str] | None
    lat: str | Sequence[str] | None
    geometry: str | None
    crs: str | None
    time: str | None
    method: "MethodName | TraceMethod | None"
    zones: "Sequence[PrivateZone] | None"
    time_step: float | Mapping[str, float] | None
    same_place: float | None
    reports_per_person: int | None
    allow_total: float | None
    missing: Missing
    order: Order
    id_column: str | None
    key: KeyLike | None


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How to obfuscate any batch of a table, the same way on every machine and at every attempt.

    The noise of a record depends on the key, on the record's identity, on its true place and on the mechanism, and
    on nothing else: not on the engine, the partition or the attempt. Serialising or printing a recipe shows where
    its key is kept and never the key.

    Attributes are the keywords of `Recipe.of`, resolved.

    Examples
    --------
    >>> recipe = Recipe.of(epsilon=0.01, person="rider", keep=["fare"])
    >>> recipe.person, recipe.keep
    ('rider', ('fare',))
    >>> Recipe.of(epsilon=0.01, person=EACH_ROW, lon=["from_lon", "to_lon"], lat=["from_lat", "to_lat"]).places[1]
    LonLat(lon='to_lon', lat='to_lat')
    """

    mechanism: Mechanism
    person: str | _PrivacyUnit
    keep: tuple[str, ...] = ()
    places: tuple[LonLat | Points, ...] = ()
    time: str | None = None
    method: "TraceMethod | None" = None
    zones: "tuple[PrivateZone, ...] | None" = None
    time_step: tuple[tuple[str, float], ...] | None = None
    same_place: float | None = None
    reports_per_person: int | None = None
    allow_total: float | None = None
    missing: Missing = "raise"
    order: Order = "raise"
    id_column: str | None = None
    key: Key | None = None
    key_given: bool = False
    level: float | None = None
    radius: float | None = None
    delta: float | None = None
    reports: int | None = None

    @classmethod
    def of(cls, **options: Unpack[Options]) -> "Recipe":
        """Return the recipe that these keywords describe.

        Parameters
        ----------
        epsilon : float
            Privacy loss per metre of one report; or
        level, radius : float
            `epsilon = level / radius`; with `delta` and `reports`, the level of so many reports of a person
            together, except with probability delta; or
        mechanism : Mechanism
            Anything that samples lon/lat reports.
        person : str, EACH_ROW or EACH_FILE
            Whose reports they are: the column that names the person, in text or whole numbers; no person has two
            rows; each file is one person.
        keep : sequence of str
            The columns that leave with the reports. No other column does; of traces, person and time do, too.
        lon, lat : str or sequences of str, optional
            The columns of degrees; several for rows with several places, each with its own noise. By default the
            geometry that the table declares, else the columns called lon, lng, long or longitude, and lat or
            latitude.
        geometry, crs : str, optional
            The column of points, and its CRS where the table declares none.
        time : str, optional
            The column of times, for people who move: rows are traces, in the order of time for each person, and a
            session per person answers them.
        method : "switching", "sparse", "predictive", "independent" or TraceMethod, optional
            How sessions answer; by default "switching".
        zones : sequence of geoind.traces.PrivateZone, optional
            Of traces: private zones of some of the persons, each made by `PrivateZone.around` with `person_id=`.
            Their key is not that of a release, which changes: under it a home has one centre in all releases.
        time_step : float, or mapping from column to float, optional
            Seconds to whose multiples (since 1970, UTC) times that leave are rounded down: the time of traces, or
            the kept columns that are named.
        same_place : float, optional
            Side of cells in metres: rows of a person in the same cell get the same report, which counts once. It
            shows that they are in the same cell.
        reports_per_person : int, optional
            So many reports of each person at most: rows are chosen by a keyed tag of the record, never by arrival.
        allow_total : float, optional
            The total epsilon of one person, per metre, up to which a release is made although it is more than 0.2.
        missing : {"raise", "keep"}
            A row without a place (a null, empty text, an empty point) is an error, or keeps having none.
        order : {"raise", "shuffle", "keep"}
            Rows whose order shows where they are: an error, rows in random order, or as they are.
        id_column : str, optional
            The column that names the record: whole numbers, text or bytes. One name for one record, not for one
            person: two rows with the same name and the same place get the same report. By default a record is its
            file's path and its row.
        key : Key or bytes, optional
            The secret under which the noise is drawn, to repeat the reports of the same records later. By default
            one is made for this release.
        """
        given: dict[str, Any] = dict(options)
        # Attributes such as `key_given` are no keywords.
        if unknown := sorted(given.keys() - Options.__annotations__.keys()):
            raise TypeError(f"unexpected keyword argument {unknown[0]!r}")
        if given.get("person") is None:
            raise InvalidInputError(WHOSE)
        names = ("epsilon", "level", "radius", "delta", "reports", "mechanism")
        given["mechanism"] = choose_mechanism(**{name: given.get(name) for name in names})
        if given.get("time") is not None:
            given["method"] = method_of(given.get("method"), given["mechanism"])
        elif given.get("method") is not None:
            raise InvalidInputError("`method=` is for traces: give `time=`")
        given.pop("epsilon", None)
        given["places"] = places_of(*(given.pop(name, None) for name in ("lon", "lat", "geometry", "crs")))
        given["keep"] = column_names(given.get("keep", ()), "keep")
        if given.get("zones") is not None:
            from geoind.traces.zones import zones_of_persons

            given["zones"] = zones_of_persons(given["zones"])
        given["time_step"] = _steps_of(given.get("time_step"), given.get("time"))
        if given.get("key") is not None:
            given |= {"key": as_key(given["key"]), "key_given": True}
        return cls(**given)

    def __post_init__(self) -> None:
        for wrong, why in self._rules():
            if wrong:
                raise InvalidInputError(why)

    def _rules(self) -> Iterator[tuple[bool, str]]:
        """Yield whether a rule is broken, and the rule; each one may rely on those before it."""
        most, each_row, several = self.reports_per_person, self.person is EACH_ROW, len(self.places) > 1
        yield not isinstance(self.person, (str, _PrivacyUnit)), f"{WHOSE}; got {type(self.person).__name__}"
        yield self.missing not in ("raise", "keep"), f"`missing=` must be 'raise' or 'keep', got {self.missing!r}"
        orders = ("raise", "shuffle", "keep")
        yield self.order not in orders, f"`order=` must be 'raise', 'shuffle' or 'keep', got {self.order!r}"
        whole = isinstance(most, int) and not isinstance(most, bool) and most >= 1
        yield not (whole or most is None), f"`reports_per_person=` must be a whole number from 1, got {most!r}"
        yield self.most_rows == 0, f"`reports_per_person=` must be at least {len(self.places)}: a row has as many"
        one = "with EACH_ROW each has one"
        yield most is not None and each_row, f"`reports_per_person=` needs the persons: {one} row"
        yield (self.reports or 1) > 1 and each_row, f"`reports=` is for several reports of a person: {one}"
        for name in ("allow_total", "same_place"):
            if getattr(self, name) is not None:
                as_positive(getattr(self, name), f"`{name}=`")
        if self.same_place is not None:
            yield (
                each_row or self.time is not None or most is not None,
                "`same_place=` needs `person=`, the column that names the person, and goes without `time=` and "
                "`reports_per_person=`",
            )
            yield (
                several or not isinstance(self.mechanism, SphericalLaplace),
                "`same_place=` needs `epsilon=`, or `level=` and `radius=`, and one place per row",
            )
        yield self.zones is not None and self.time is None, "`zones=` is for traces: give `time=`"
        for name in self.steps:
            leaves = name in self.published
            yield not leaves, f"`time_step=`: column {name!r} does not leave, so it has no step"
        if self.time is not None:
            identified = "person and time identify the steps of a trace: leave `id_column=` out"
            yield self.id_column is not None, identified
            yield each_row, "a trace has several rows of a person: `person=` must name the column"
            yield self.person == self.time, "person and time of a trace must be two columns"
            ordered = "the rows of a trace are in the order of time: they cannot be shuffled"
            yield self.order == "shuffle", ordered
            yield several, "a step of a trace is one place: give one `lon=` and one `lat=`"
            yield (
                self.delta is not None or most is not None,
                "`delta=`, `reports=` and `reports_per_person=` are for single places: the total of a trace is "
                "that of its session",
            )

    @property
    def steps(self) -> dict[str, float]:
        """The columns of times that are rounded down, and the seconds to whose multiples."""
        return dict(self.time_step or ())

    @property
    def unit(self) -> str:
        """Whose reports they are, as a release record has it."""
        return self.person.value if isinstance(self.person, _PrivacyUnit) else "column"

    @property
    def person_column(self) -> str | None:
        """The column that names the person, if there is one."""
        return self.person if isinstance(self.person, str) else None

    @property
    def named(self) -> tuple[str, ...]:
        """The columns that name records, persons and times."""
        return tuple(name for name in (self.id_column, self.person_column, self.time) if name is not None)

    @property
    def most_rows(self) -> int | None:
        """How many rows of a person may have reports; None for all."""
        return None if self.reports_per_person is None else self.reports_per_person // max(len(self.places), 1)

    @property
    def published(self) -> tuple[str, ...]:
        """The columns that leave with the reports: those kept and, of a trace, person and time."""
        moving = () if self.time is None else tuple(name for name in (self.person_column, self.time) if name)
        return tuple(dict.fromkeys((*self.keep, *moving)))

    @property
    def sessions(self) -> "TraceSessions | None":
        """New sessions for the persons of traces; None for single places."""
        if self.method is None or self.key is None:
            return None
        from geoind.traces.many import TraceSessions

        return TraceSessions(self.method, self.key.read(), self.zones or ())

    def with_key(self) -> "Recipe":
        """Return the recipe with its key, or with one made for this release."""
        return self if self.key is not None else replace(self, key=Key(secrets.token_bytes(KEY_BYTES)))

    def refuse_shuffle(self, remedy: str) -> None:
        """Raise if rows are to be shuffled, for engines of several processes."""
        if self.order == "shuffle":
            raise InvalidInputError(f"`order='shuffle'` needs all rows in one process: {remedy}")

    def require_person_column(self) -> None:
        """Raise unless a ledger can charge: persons are named, and the charge is the same at every attempt."""
        if self.person is EACH_ROW:
            raise InvalidInputError("a ledger needs `person=`, the column that names the person")
        if not self.key_given and (self.time is not None or self.same_place is not None):
            # The cost depends on the noise, or on the cells: others could be drawn until the budget allows it.
            raise InvalidInputError(
                "a ledger needs `key=` for traces and for `same_place=`: their cost must be the same at a "
                "second attempt"
            )


def _steps_of(step: float | Mapping[str, float] | None, time: str | None) -> tuple[tuple[str, float], ...] | None:
    """Return the columns of times that are rounded down, and the seconds to whose multiples."""
    if step is None:
        return None
    if not isinstance(step, Mapping):
        if time is None:
            raise InvalidInputError("`time_step=` must name the columns of times, such as {'started_at': 900}")
        step = {time: step}
    steps = tuple((str(name), as_positive(seconds, "`time_step=`")) for name, seconds in step.items())
    if not all(seconds >= 1 and seconds == int(seconds) for _, seconds in steps):
        raise InvalidInputError("`time_step=` must be a whole number of seconds")
    return steps


def described(value: object) -> str:
    """Return a method and its numbers, for the record of a release."""
    if is_dataclass(value) and not isinstance(value, type):
        inside = (f"{field.name}={described(getattr(value, field.name))}" for field in fields(value))
        return f"{type(value).__name__}({', '.join(inside)})"
    if isinstance(value, (int, float)):
        return repr(value)
    # A function's own text would have its address in it.
    name = str(getattr(value, "__name__", ""))
    return name if name.isidentifier() else type(value).__name__


def method_of(method: "MethodName | TraceMethod | None", mechanism: Mechanism) -> "TraceMethod":
    """Return how the sessions of a table answer whose fresh reports a mechanism draws.

    Examples
    --------
    >>> method_of("independent", SphericalLaplace(0.01))
    Independent(epsilon=0.01)
    """
    if not isinstance(mechanism, SphericalLaplace):
        raise InvalidInputError(
            "a session needs noise on the globe with an epsilon: give `epsilon=`, or `level=` and `radius=`"
        )
    if mechanism.decimals != DECIMALS:
        raise InvalidInputError(f"a session reports with {DECIMALS} decimals, not {mechanism.decimals}")
    return _named(method or "switching", mechanism) if method is None or isinstance(method, str) else method


def _named(name: str, mechanism: SphericalLaplace) -> "TraceMethod":
    from geoind.traces.methods import Independent
    from geoind.traces.predictive import Predictive
    from geoind.traces.sparse import SparseVector, Switching

    if name == "independent":
        return Independent(mechanism.epsilon)
    metres = float(mechanism.radius_quantile(CONFIDENCE))
    if name == "predictive":
        made = Predictive.for_any_accuracy(metres, CONFIDENCE)
        return Predictive(made.test, mechanism.epsilon, made.limit)
    sparse = SparseVector.balanced(mechanism.epsilon, metres)
    if name == "sparse":
        return sparse
    if name == "switching":
        return Switching(sparse)
    raise InvalidInputError(f"`method=` must be one of {', '.join(METHODS)}, or a TraceMethod, got {name!r}")


Function = TypeVar("Function", bound=Callable[..., Any])


def with_options(function: Function) -> Function:
    """Return a function that shows `Options` in its signature, where it has `**options`."""
    own = inspect.signature(function)
    usual = {field.name: field.default for field in fields(Recipe) if field.default is not MISSING}
    shown = {name: each for name, each in own.parameters.items() if each.kind is not each.VAR_KEYWORD}
    for name, annotation in Options.__annotations__.items():
        default = inspect.Parameter.empty if name == "person" else usual.get(name)
        hint = getattr(annotation, "__forward_arg__", annotation)
        option = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
        shown.setdefault(name, option)
    function.__signature__ = own.replace(parameters=list(shown.values()))  # type: ignore[attr-defined]
    return function


with_options(Recipe.of.__func__)  # type: ignore[attr-defined]
