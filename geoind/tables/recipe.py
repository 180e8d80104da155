"""How a table is obfuscated: whose rows they are, which columns leave, where the places are, which noise."""

import inspect
import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

from geoind.arrays import as_positive
from geoind.errors import InvalidInputError
from geoind.keys import Key, KeyLike, as_key
from geoind.mechanisms.protocol import Mechanism
from geoind.mechanisms.spherical import SphericalLaplace
from geoind.pipeline import choose_mechanism
from geoind.randomness import KEY_BYTES
from geoind.space.lattice import DECIMALS

if TYPE_CHECKING:
    from geoind.traces.session import TraceMethod

__all__ = [
    "EACH_FILE",
    "EACH_ROW",
    "METHODS",
    "LonLat",
    "MethodName",
    "Missing",
    "Options",
    "Order",
    "Points",
    "PrivacyUnit",
    "Recipe",
    "column_names",
    "coordinate_columns",
    "described",
    "listed",
    "method_of",
    "named_path",
    "places_of",
    "with_options",
]

LAT_NAMES = ("lat", "latitude")
LON_NAMES = ("lon", "lng", "long", "longitude")


def coordinate_columns(names: Sequence[str]) -> tuple[str, str]:
    """Return the names of the longitude and the latitude: the only columns with one of the usual names.

    Examples
    --------
    >>> coordinate_columns(["id", "Latitude", "Longitude"])
    ('Longitude', 'Latitude')
    """
    return _only(names, LON_NAMES, "lon"), _only(names, LAT_NAMES, "lat")


def _only(names: Sequence[str], usual: Sequence[str], option: str) -> str:
    found = [name for name in names if name.strip().lower().rpartition(".")[2] in usual]
    if len(found) == 1:
        return found[0]
    problem = "no column is" if not found else "several columns are"
    raise InvalidInputError(
        f"{problem} called {', '.join(usual[:-1])} or {usual[-1]}: name the column with `{option}=`; "
        f"the columns are {listed(names)}"
    )


def listed(names: Iterable[str]) -> str:
    """Return names for a message, without those that may be values: where a header is missing, true places.

    Examples
    --------
    >>> listed(["trip", "lat", "h3_9"]), listed(["7", "48.8584", "2.2945"])
    ('trip, lat, h3_9', '7, ..., ...')
    """
    return ", ".join("..." if sum(map(str.isdigit, str(name))) > 2 else str(name) for name in names)


def named_path(path: str) -> str:
    """Return a path for a message, without what may be a coordinate.

    Examples
    --------
    >>> named_path("2024-05/trips.csv"), named_path("48.8584_2.2945/trips.csv")
    ('2024-05/trips.csv', '..._.../trips.csv')
    """
    return re.sub(r"\d+[.,]\d{3,}", "...", path)


@dataclass(frozen=True)
class LonLat:
    """A place in two columns of degrees."""

    lon: str
    lat: str

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return (self.lon, self.lat)


@dataclass(frozen=True)
class Points:
    """A place in one column of points: the one that the schema declares, or this one, and its CRS."""

    geometry: str | None = None
    crs: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The column."""
        return () if self.geometry is None else (self.geometry,)


def places_of(
    lon: str | Sequence[str] | None, lat: str | Sequence[str] | None, geometry: str | None, crs: str | None
) -> tuple[LonLat | Points, ...]:
    """Return where the places are, as keywords name it; nothing where they do not."""
    if geometry is not None and (lon is not None or lat is not None):
        raise InvalidInputError("give `lon=` and `lat=`, or `geometry=`, not both")
    if crs is not None and (lon is not None or lat is not None):
        raise InvalidInputError("`crs=` is the CRS of a geometry: lon and lat are degrees")
    if geometry is not None or crs is not None:
        return (Points(geometry, crs),)
    lons, lats = column_names(lon, "lon"), column_names(lat, "lat")
    if len(lons) != len(lats):
        raise InvalidInputError(
            f"`lon=` and `lat=` must be given together: got {len(lons)} and {len(lats)} columns"
        )
    names = (*lons, *lats)
    if len(set(names)) < len(names):
        raise InvalidInputError("`lon=` and `lat=` must be different columns")
    return tuple(LonLat(*pair) for pair in zip(lons, lats, strict=True))


def column_names(names: str | Sequence[str] | None, what: str) -> tuple[str, ...]:
    """Return the names of columns that were given as none, one or several."""
    result = () if names is None else (names,) if isinstance(names, str) else tuple(names)
    if not all(isinstance(name, str) for name in result):
        raise InvalidInputError(f"`{what}=` must be names of columns")
    return tuple(dict.fromkeys(result)) if what == "keep" else result


MethodName = Literal["switching", "sparse", "predictive", "independent"]
METHODS: tuple[MethodName, ...] = ("switching", "sparse", "predictive", "independent")

CONFIDENCE = 0.9
"""A fresh report lies with this probability within the metres for which methods are made."""


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
    from geoind.traces.methods import Independent, Predictive
    from geoind.traces.sparse import SparseVector
    from geoind.traces.switching import Switching

    if name == "independent":
        return Independent(mechanism.epsilon)
    metres = float(mechanism.radius_quantile(CONFIDENCE))
    if name == "predictive":
        made = Predictive.for_any_accuracy(metres, CONFIDENCE)
        return Predictive(made.test, mechanism.epsilon, made.limit)
    epsilon = mechanism.epsilon
    sparse = SparseVector(epsilon, epsilon, 3 * metres, epsilon / 2)
    if name == "sparse":
        return sparse
    if name == "switching":
        return Switching(sparse)
    raise InvalidInputError(f"`method=` must be one of {', '.join(METHODS)}, or a TraceMethod, got {name!r}")


Missing = Literal["raise", "keep"]
Order = Literal["raise", "shuffle", "keep"]

WHOSE = (
    "`person=` must say whose reports these are: the column that names the person, or EACH_ROW if no person has "
    "two rows, or EACH_FILE if each file is one person. The reports of one person add up, so the promise of a "
    "release is stated per person"
)


class PrivacyUnit(Enum):
    """Whose reports they are, where no column names the person."""

    EACH_ROW = "each row"
    EACH_FILE = "each file"

    def __repr__(self) -> str:
        return self.name


EACH_ROW = PrivacyUnit.EACH_ROW
"""No person has two rows."""
EACH_FILE = PrivacyUnit.EACH_FILE
"""Each file is one person, with the file's name."""


class Options(TypedDict, total=False):
    """The keywords of everything that obfuscates a table; `Recipe.of` explains them."""

    epsilon: float | None
    level: float | None
    radius: float | None
    delta: float | None
    reports: int | None
    mechanism: Mechanism | None
    person: str | PrivacyUnit
    keep: Sequence[str]
    lon: str | Sequence[str] | None
    lat: str | Sequence[str] | None
    geometry: str | None
    crs: str | None
    time: str | None
    method: "MethodName | TraceMethod | None"
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

    `Recipe.of` makes one from keywords. The noise of a record depends on the key, on the record's identity, on its
    true place and on the mechanism, and on nothing else: not on the engine, the partition or the attempt.
    Serialising or printing a recipe shows where its key is kept and never the key.

    Examples
    --------
    >>> recipe = Recipe.of(epsilon=0.01, person="rider", keep=["fare"])
    >>> recipe.person, recipe.keep
    ('rider', ('fare',))
    >>> Recipe.of(epsilon=0.01, person=EACH_ROW, lon=["from_lon", "to_lon"], lat=["from_lat", "to_lat"]).places[1]
    LonLat(lon='to_lon', lat='to_lat')
    """

    mechanism: Mechanism
    person: str | PrivacyUnit
    keep: tuple[str, ...] = ()
    places: tuple[LonLat | Points, ...] = ()
    time: str | None = None
    method: "TraceMethod | None" = None
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
    def of(
        cls,
        *,
        epsilon: float | None = None,
        level: float | None = None,
        radius: float | None = None,
        delta: float | None = None,
        reports: int | None = None,
        mechanism: Mechanism | None = None,
        person: str | PrivacyUnit | None = None,
        keep: Sequence[str] = (),
        lon: str | Sequence[str] | None = None,
        lat: str | Sequence[str] | None = None,
        geometry: str | None = None,
        crs: str | None = None,
        time: str | None = None,
        method: "MethodName | TraceMethod | None" = None,
        same_place: float | None = None,
        reports_per_person: int | None = None,
        allow_total: float | None = None,
        missing: Missing = "raise",
        order: Order = "raise",
        id_column: str | None = None,
        key: KeyLike | None = None,
    ) -> "Recipe":
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
        if person is None:
            raise InvalidInputError(WHOSE)
        chosen = choose_mechanism(
            epsilon=epsilon, level=level, radius=radius, delta=delta, reports=reports, mechanism=mechanism
        )
        if time is None and method is not None:
            raise InvalidInputError("`method=` is for traces: give `time=`")
        return cls(
            mechanism=chosen,
            person=person,
            keep=column_names(keep, "keep"),
            places=places_of(lon, lat, geometry, crs),
            time=time,
            method=None if time is None else method_of(method, chosen),
            same_place=same_place,
            reports_per_person=reports_per_person,
            allow_total=allow_total,
            missing=missing,
            order=order,
            id_column=id_column,
            key=None if key is None else as_key(key),
            key_given=key is not None,
            level=level,
            radius=radius,
            delta=delta,
            reports=reports,
        )

    def __post_init__(self) -> None:
        if not isinstance(self.person, (str, PrivacyUnit)):
            raise InvalidInputError(f"{WHOSE}; got {type(self.person).__name__}")
        if self.missing not in ("raise", "keep"):
            raise InvalidInputError(f"`missing=` must be 'raise' or 'keep', got {self.missing!r}")
        if self.order not in ("raise", "shuffle", "keep"):
            raise InvalidInputError(f"`order=` must be 'raise', 'shuffle' or 'keep', got {self.order!r}")
        most = self.reports_per_person
        if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
            raise InvalidInputError(f"`reports_per_person=` must be a whole number from 1, got {most!r}")
        if self.most_rows == 0:
            raise InvalidInputError(
                f"`reports_per_person=` must be at least {len(self.places)}: a row has as many"
            )
        if most is not None and self.person is EACH_ROW:
            raise InvalidInputError("`reports_per_person=` needs the persons: with EACH_ROW each has one row")
        if (self.reports or 1) > 1 and self.person is EACH_ROW:
            raise InvalidInputError("`reports=` is for several reports of a person: with EACH_ROW each has one")
        if self.allow_total is not None:
            as_positive(self.allow_total, "`allow_total=`")
        if self.same_place is not None:
            as_positive(self.same_place, "`same_place=`")
            self._check_same_place()
        if self.time is not None:
            self._check_trace()

    def _check_same_place(self) -> None:
        if self.person is EACH_ROW or self.time is not None or self.reports_per_person is not None:
            raise InvalidInputError(
                "`same_place=` needs `person=`, the column that names the person, and goes without `time=` and "
                "`reports_per_person=`"
            )
        if not isinstance(self.mechanism, SphericalLaplace) or len(self.places) > 1:
            raise InvalidInputError(
                "`same_place=` needs `epsilon=`, or `level=` and `radius=`, and one place per row"
            )

    def _check_trace(self) -> None:
        if self.id_column is not None:
            raise InvalidInputError("person and time identify the steps of a trace: leave `id_column=` out")
        if self.person is EACH_ROW:
            raise InvalidInputError("a trace has several rows of a person: `person=` must name the column")
        if self.person == self.time:
            raise InvalidInputError("person and time of a trace must be two columns")
        if self.order == "shuffle":
            raise InvalidInputError("the rows of a trace are in the order of time: they cannot be shuffled")
        if len(self.places) > 1:
            raise InvalidInputError("a step of a trace is one place: give one `lon=` and one `lat=`")
        if self.delta is not None or self.reports_per_person is not None:
            raise InvalidInputError(
                "`delta=`, `reports=` and `reports_per_person=` are for single places: the total of a trace is "
                "that of its session"
            )

    @property
    def unit(self) -> str:
        """Whose reports they are, as a release record has it."""
        return self.person.value if isinstance(self.person, PrivacyUnit) else "column"

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

    def with_key(self) -> "Recipe":
        """Return the recipe with its key, or with one made for this release."""
        return self if self.key is not None else replace(self, key=Key(secrets.token_bytes(KEY_BYTES)))

    def require_person_column(self, purpose: str) -> None:
        """Raise unless persons are named, and the charge is the same at every attempt."""
        if self.person is EACH_ROW:
            raise InvalidInputError(f"{purpose} needs `person=`, the column that names the person")
        if not self.key_given and (self.time is not None or self.same_place is not None):
            # The cost depends on the noise, or on the cells: others could be drawn until the budget allows it.
            raise InvalidInputError(
                f"{purpose} needs `key=` for traces and for `same_place=`: their cost must be the same at a "
                "second attempt"
            )


Function = TypeVar("Function", bound=Callable[..., Any])


def with_options(function: Function) -> Function:
    """Return a function with keywords of `Recipe.of` in its signature, where it has `**options`."""
    own = list(inspect.signature(function).parameters.values())
    shared = list(inspect.signature(Recipe.of).parameters.values())
    named = [parameter for parameter in own if parameter.kind is not inspect.Parameter.VAR_KEYWORD]
    known = {parameter.name for parameter in named}
    merged = [*named, *(parameter for parameter in shared if parameter.name not in known)]
    function.__signature__ = inspect.signature(function).replace(parameters=merged)  # type: ignore[attr-defined]
    return function
