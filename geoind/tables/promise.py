"""What a file of reports promises: which mechanism, which epsilon, which lattice; never a seed or a key.

A Parquet file says it in its schema metadata under `geoind`, every other file in a sidecar beside it,
`<file>.geoind.json`.
"""

import json
import math
import re
import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, cast

import pyarrow.parquet

from geoind.errors import InvalidInputError
from geoind.mechanisms.protocol import Mechanism, off_site_level
from geoind.space.lattice import DECIMALS
from geoind.tables.tracing import Tracing
from geoind.version import __version__

__all__ = ["ATTRS_KEY", "PARQUET_KEY", "TablePromise", "read_promise", "record_of", "sidecar_of"]

PARQUET_KEY = b"geoind"
"""The key in a Parquet file's schema metadata."""
ATTRS_KEY = "geoind"
"""The key in the `attrs` of a frame."""
SPARK_KEY = b"org.apache.spark.sql.parquet.row.metadata"

MOST_BYTES = 1 << 20
"""No record is longer."""
LONGEST = 1000
"""Characters of a column's name."""
RANGES: Mapping[str, tuple[float, float]] = {
    "epsilon": (1e-12, 1e12),
    "level": (1e-12, 700.0),
    "radius": (1e-6, 1e9),
    "delta": (0.0, 1 - 1e-12),
    "sigma": (1e-6, 1e9),
    "off_site_level": (0.0, 1e12),
    "fresh": (1e-12, 1e12),
}
COUNTS = {"reports": (1, 10**12), "decimals": (0, 15)}
OPTIONAL = ("epsilon", "level", "radius", "sigma", "off_site_level", "fresh")
UNBOUNDED = ("epsilon", "off_site_level")
VERSION = re.compile(r"[0-9A-Za-z.+!_-]{1,64}")
SESSION = re.compile(r"\w[\w.+=(), -]{0,1999}")


@dataclass(frozen=True, kw_only=True)
class TablePromise:
    """The guarantee that every report of a file carries.

    Parameters
    ----------
    mechanism : str
        What made the noise.
    epsilon : float
        Privacy loss per metre; infinite where none is promised, as for Gaussian noise.
    sigma : float, optional
        Of Gaussian noise, in metres on the ground: all that there is to know, for `level_of_reports`.
    level, radius : float, optional
        How the noise was chosen: places within the radius can be told apart by a factor e^level, by
    reports : int
        so many reports together, except with probability
    delta : float
        which is 0 for geo-indistinguishability itself.
    off_site_level : float
        Privacy loss beyond epsilon times distance, for a mechanism that first moves the truth to one of its sites.
    decimals : int
        The lattice: decimals of a degree that a report has.
    places : tuple of tuples of str
        The columns of each place that a row has: longitude and latitude, or a geometry. Each carries the promise.
    kept : tuple of str
        Columns that somebody passed on although they seem to tell the place: the promise does not speak of them.
    session : str, optional
        Of traces: how each person's session answered. Then epsilon is that of a person's whole trace, the largest
        among all persons; infinite where it is not known yet.
    fresh : float, optional
        Of traces: epsilon of one fresh report.
    version : str
        The geoind that made the reports.

    Examples
    --------
    >>> from geoind import SphericalLaplace
    >>> promise = TablePromise.of(SphericalLaplace(0.01))
    >>> promise.epsilon, promise.mechanism
    (0.01, 'SphericalLaplace')
    >>> TablePromise.from_json(promise.to_json()) == promise
    True
    """

    mechanism: str
    epsilon: float
    level: float | None = None
    radius: float | None = None
    reports: int = 1
    delta: float = 0.0
    sigma: float | None = None
    off_site_level: float = 0.0
    decimals: int = DECIMALS
    places: tuple[tuple[str, ...], ...] = ()
    kept: tuple[str, ...] = ()
    session: str | None = None
    fresh: float | None = None
    version: str

    @classmethod
    def of(
        cls,
        mechanism: Mechanism,
        *,
        level: float | None = None,
        radius: float | None = None,
        reports: int | None = None,
        delta: float | None = None,
        trace: Tracing | None = None,
    ) -> Self:
        """Return what this geoind promises with a mechanism that reports lon/lat, whatever the table."""
        return cls(
            mechanism=_name(mechanism) if trace is None else type(trace.method).__name__,
            epsilon=float(mechanism.epsilon) if trace is None else math.inf,
            level=level,
            radius=radius,
            reports=reports or 1,
            delta=delta or 0.0,
            # Beside an epsilon, what a mechanism of one's own calls sigma is its own affair.
            sigma=_sigma(mechanism) if mechanism.epsilon == math.inf else None,
            off_site_level=off_site_level(mechanism),
            decimals=getattr(mechanism, "decimals", DECIMALS),
            session=None if trace is None else trace.told,
            fresh=None if trace is None else float(mechanism.epsilon),
            version=__version__,
        )

    def for_traces(self, spent: Iterable[float]) -> Self:
        """Return the promise of traces that cost so much each: the largest is that of all."""
        if self.fresh is None:
            return self
        return replace(self, epsilon=max(spent, default=self.fresh))

    def __post_init__(self) -> None:
        _check(
            "mechanism",
            self.mechanism,
            _is_mechanism(self.mechanism),
            "a class name, such as SphericalLaplace or Projected(PlanarLaplace)",
        )
        _check("version", self.version, _matches(VERSION, self.version), "a version")
        for name, (low, high) in RANGES.items():
            value = getattr(self, name)
            missing = value is None or (name in UNBOUNDED and value == math.inf)
            valid = (missing and name in OPTIONAL) or (_is_number(value) and low <= value <= high)
            _check(name, value, valid, f"a number from {low:g} to {high:g}")
        for name, (low, high) in COUNTS.items():
            value = getattr(self, name)
            valid = _is_number(value) and isinstance(value, int) and low <= value <= high
            _check(name, value, valid, f"a whole number from {low} to {high}")
        texts = [*self.kept, *(column for place in self.places for column in place)]
        _check(
            "places", self.places, all(len(place) in (1, 2) for place in self.places), "one or two columns each"
        )
        for text in texts:
            _check("places and kept", text, _is_text(text), f"names of at most {LONGEST} characters")
        _check(
            "session", self.session, self.session is None or _matches(SESSION, self.session), "a method's numbers"
        )
        _check("fresh", self.fresh, (self.fresh is None) == (self.session is None), "there with session only")
        if self.session is None and self.radius is not None and self.epsilon != math.inf:
            # The odds may change by a factor of exp(epsilon * radius): a float holds no larger one.
            _check(
                "radius", self.radius, self.epsilon * self.radius <= RANGES["level"][1], "at most 700 / epsilon"
            )

    @classmethod
    def from_json(cls, text: str | bytes, file: str | None = None) -> Self:
        """Return the promise that `to_json` wrote; unknown members are not used.

        Parameters
        ----------
        text : str or bytes
            The record. It is input: every member is checked.
        file : str, optional
            The name of the file that has it, for messages.
        """
        try:
            told = _loaded(text)
            lattice: Any = told.get("lattice")
            _check("lattice", lattice, isinstance(lattice, dict), "an object with decimals")
            _check("unit", told.get("unit"), told.get("unit") == "1/m", "'1/m'")
            both = (told.get("level") is None) == (told.get("radius") is None)
            _check("level", told.get("level"), both, "there with radius only")
            several = told.get("reports", 1) == 1 or bool(told.get("delta"))
            _check("reports", told.get("reports"), several, "1 without delta")
            return cls(
                mechanism=told.get("mechanism", ""),
                epsilon=_or_infinite(told, "epsilon", None),
                level=told.get("level"),
                radius=told.get("radius"),
                reports=told.get("reports", 1),
                delta=told.get("delta", 0.0),
                sigma=told.get("sigma"),
                off_site_level=_or_infinite(told, "off_site_level", 0.0),
                decimals=lattice.get("decimals"),
                places=tuple(_columns(place) for place in _listed(told, "places")),
                kept=tuple(_listed(told, "kept")),
                session=told.get("session"),
                fresh=told.get("fresh"),
                version=told.get("version", ""),
            )
        except InvalidInputError as error:
            raise InvalidInputError(f"release record{'' if file is None else f' of {file!r}'}: {error}") from None

    def __str__(self) -> str:
        """Say how private the reports are, in a few words."""
        if self.session is not None:
            most = "not known yet" if self.epsilon == math.inf else f"at most epsilon {self.epsilon:.6g} per metre"
            return f"{most} for each person's whole trace ({self.mechanism})"
        if self.delta and self.level is not None and self.radius is not None:
            many = f"{self.reports:,} reports together" if self.reports > 1 else "each"
            return f"level {self.level:.4g} within {self.radius:g} m, {many}, up to delta {self.delta:.3g}"
        if self.sigma is not None:
            return f"Gaussian noise, sigma {self.sigma:.6g} m"
        return f"epsilon {self.epsilon:.6g} per metre"

    def to_json(self) -> str:
        """Return one line of JSON."""
        # JSON has no infinity: null is no bound at all.
        bound = None if self.epsilon == math.inf else self.epsilon
        told: dict[str, Any] = {"mechanism": self.mechanism, "epsilon": bound, "unit": "1/m"}
        if self.sigma is not None:
            told["sigma"] = self.sigma
        if self.level is not None and self.radius is not None:
            told |= {"level": self.level, "radius": self.radius}
        if self.delta:
            told |= {"reports": self.reports, "delta": self.delta}
        if self.off_site_level:
            told["off_site_level"] = None if self.off_site_level == math.inf else self.off_site_level
        told["lattice"] = {"decimals": self.decimals}
        if self.places:
            told["places"] = [_named(place) for place in self.places]
        if self.kept:
            told["kept"] = list(self.kept)
        if self.session is not None:
            told |= {"session": self.session, "fresh": self.fresh}
        return json.dumps(told | {"version": self.version})


def refuse_more_reports(promised: int | None, persons: Mapping[str, int]) -> None:
    """Refuse persons who have more reports than the promise is for: it would be known to be false.

    Parameters
    ----------
    promised : int, optional
        How many reports of a person the promise is for together; 1 or None where it is for each.
    persons : dict
        How many reports each person has.

    Examples
    --------
    >>> refuse_more_reports(3, {"ana": 3, "ben": 1})
    """
    if promised is None or promised == 1:
        return
    most = max(persons.values(), default=0)
    if most > promised:
        raise InvalidInputError(
            f"the promise is for {promised:,} reports of a person together, and somebody has {most:,}: "
            f"give reports={most} (--reports), or fewer rows"
        )


def sidecar_of(path: str | Path) -> Path:
    """Return where the promise of a file that is not Parquet lies.

    Examples
    --------
    >>> sidecar_of("reports.csv").name
    'reports.csv.geoind.json'
    """
    return Path(f"{path}.geoind.json")


def read_promise(path: str | Path) -> TablePromise:
    """Return what a file of reports promises, from its sidecar or its Parquet metadata.

    Raises
    ------
    InvalidInputError
        If the file has no release record, or one with a member that is not valid.
    """
    path = Path(path)
    record = record_of(path)
    if record is None:
        raise InvalidInputError(
            f"{path} does not tell what was promised: no {sidecar_of(path).name}, no Parquet metadata"
        )
    return TablePromise.from_json(record, path.name)


def record_of(path: str | Path) -> str | bytes | None:
    """Return the release record of a file as it is, not checked; None where there is none."""
    path = Path(path)
    if not path.exists():
        raise InvalidInputError(f"no such file: {path}")
    record = _parquet_metadata(path)
    sidecar = sidecar_of(path)
    if record is None and sidecar.is_file():
        try:
            with sidecar.open("rb") as file:
                # One byte more than a record may have: `from_json` refuses it.
                record = file.read(MOST_BYTES + 1)
        except OSError as error:
            raise InvalidInputError(f"release record of {path.name!r}: {error.strerror}") from None
    return record


def _parquet_metadata(path: Path) -> str | bytes | None:
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            if file.read(4) != b"PAR1":
                return None
        # The file's own entries: what its schema says is among them, and what was known when it was complete.
        metadata = pyarrow.parquet.read_metadata(path).metadata or {}
    except (pyarrow.ArrowException, OSError):
        raise InvalidInputError(f"{path.name!r} cannot be read as a Parquet file") from None
    if PARQUET_KEY in metadata:
        return bytes(metadata[PARQUET_KEY])
    # What pandas makes of a frame's `attrs`, and Spark of a column's metadata.
    try:
        attrs = _loaded(metadata.get(b"PANDAS_ATTRS", b"{}"))
        fields = _listed(_loaded(metadata.get(SPARK_KEY, b"{}")), "fields")
    except InvalidInputError as error:
        raise InvalidInputError(f"release record of {path.name!r}: {error}") from None
    parts = [attrs, *(field.get("metadata") for field in fields if isinstance(field, dict))]
    return next((part[ATTRS_KEY] for part in parts if isinstance(part, dict) and ATTRS_KEY in part), None)


def _loaded(text: object) -> dict[str, Any]:
    """Return an object of JSON, with standard numbers and each member once."""
    if not isinstance(text, (str, bytes)) or len(text) > MOST_BYTES:
        raise InvalidInputError(f"it must be JSON text of at most {MOST_BYTES:,} bytes")
    try:
        told = json.loads(
            text.decode() if isinstance(text, bytes) else text,
            parse_constant=_no_constant,
            object_pairs_hook=_unique,
        )
    except (ValueError, RecursionError):
        raise InvalidInputError("it must be valid JSON, with each member once and no NaN or Infinity") from None
    _check("it", told, isinstance(told, dict), "an object")
    return cast("dict[str, Any]", told)


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("duplicate member")
    return members


def _listed(told: dict[str, Any], name: str) -> list[Any]:
    value = told.get(name, [])
    _check(name, value, isinstance(value, list), "a list")
    return cast("list[Any]", value)


def _columns(place: object) -> tuple[str, ...]:
    for names in (("lon", "lat"), ("geometry",)):
        if isinstance(place, dict) and set(place) == set(names):
            return tuple(place[name] for name in names)
    raise InvalidInputError("places must be objects with lon and lat, or with geometry")


def _check(name: str, value: object, valid: bool, rule: str) -> None:
    if not valid:
        # Shortened before it is shown: what is not valid may be long, and deep.
        shown = reprlib.repr(value) if isinstance(value, (str, int, float, type(None))) else type(value).__name__
        raise InvalidInputError(f"{name} must be {rule}, got {shown}")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_text(value: object) -> bool:
    # A lone surrogate has no bytes in UTF-8.
    return isinstance(value, str) and len(value) <= LONGEST and re.search("[\ud800-\udfff]", value) is None


def _matches(rule: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and rule.fullmatch(value) is not None


def _is_mechanism(value: object) -> bool:
    if not isinstance(value, str) or len(value) > LONGEST:
        return False
    names = value.rstrip(")").split("(")
    closed = len(value) - len(value.rstrip(")"))
    return closed == len(names) - 1 and all(name.isidentifier() and len(name) <= 100 for name in names)


def _named(place: tuple[str, ...]) -> dict[str, str]:
    return dict(zip(("lon", "lat") if len(place) == 2 else ("geometry",), place, strict=True))


def _name(mechanism: Mechanism) -> str:
    own = type(mechanism).__name__
    inner = getattr(mechanism, "mechanism", None)
    return own if inner is None else f"{own}({_name(inner)})"


def _sigma(mechanism: Mechanism) -> float | None:
    """Return the sigma of Gaussian noise, in metres on the ground."""
    inner = getattr(mechanism, "mechanism", None)
    sigma = getattr(mechanism, "sigma", None) if inner is None else _sigma(inner)
    return None if sigma is None else float(sigma / getattr(mechanism, "largest_scale", 1.0))


def _or_infinite(told: dict[str, Any], name: str, usual: float | None) -> Any:
    if name not in told and usual is None:
        raise InvalidInputError(f"{name} must be there")
    # JSON has no infinity: null is no bound at all.
    value = told.get(name, usual)
    return math.inf if value is None else value
