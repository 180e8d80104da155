"""The record of a release: mechanism, epsilon, lattice, columns, and totals per person; never a seed or a key.

A Parquet file has it in its schema metadata under `geoind`, every other file in a sidecar, `<file>.geoind.json`. A
folder that an engine wrote has one sidecar, `<folder>.geoind.json`.
"""

import json
import math
import re
import reprlib
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, Self, TypeAlias, cast

from geoind.errors import InvalidInputError, plural
from geoind.mechanisms.noise import DECIMALS
from geoind.mechanisms.protocol import Mechanism, off_site_level
from geoind.version import __version__

PARQUET_KEY = b"geoind"
"""The key in a Parquet file's schema metadata."""
ATTRS_KEY = "geoind"
"""The key in the `attrs` of a frame."""
SIDECAR = ".geoind.json"

MOST_BYTES = 1 << 20
"""No record is longer."""
LONGEST = 1000
"""Characters of a column's name."""
MOST_LEVEL = 700.0
"""The odds may change by a factor of e^level: a float holds no larger one."""
CLASS = r"[^\W\d]\w{0,99}"

Rule: TypeAlias = dict[str, Any]
"""What a member must be, and a function that says whether a value is; None is valid where it is the default."""


def _number(least: float, most: float, *, infinite: bool = False) -> Rule:
    """Return the rule for numbers between two limits, whole ones if these are, and perhaps infinity."""
    whole = isinstance(least, int)
    kinds, name, show = (int, "a whole number", "d") if whole else ((int, float), "a number", "g")

    def valid(value: Any) -> bool:
        known = isinstance(value, kinds) and not isinstance(value, bool)
        return known and (least <= value <= most or (infinite and value == math.inf))

    return {"rule": f"{name} from {least:{show}} to {most:{show}}", "valid": valid}


def _text(rule: str, pattern: str) -> Rule:
    """Return the rule for texts of a pattern."""
    return {"rule": rule, "valid": lambda text: isinstance(text, str) and re.fullmatch(pattern, text)}


def _columns(valid: Callable[[Any], bool]) -> Rule:
    """Return the rule for lists of names of columns, or of what contains them."""
    rule = f"a list of names of columns, at most {LONGEST} characters each"
    return {"rule": rule, "valid": lambda items: isinstance(items, tuple) and all(map(valid, items))}


def _is_name(value: object) -> bool:
    # A lone surrogate has no bytes in UTF-8.
    return isinstance(value, str) and len(value) <= LONGEST and re.search("[\ud800-\udfff]", value) is None


def _is_place(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) in (1, 2) and all(map(_is_name, value))


def _is_step(value: Any) -> bool:
    pair = isinstance(value, tuple) and len(value) == 2 and _is_name(value[0])
    return pair and type(value[1]) in (int, float) and 1 <= value[1] <= 1e9


class _Checked:
    """Members that are checked by their rules, however they came here."""

    def __post_init__(self) -> None:
        for each in fields(self):  # type: ignore[arg-type]
            value = getattr(self, each.name)
            valid = (value is None and each.default is None) or each.metadata["valid"](value)
            _check(each.name, value, valid, each.metadata["rule"])

    @classmethod
    def _read(cls, found: dict[str, Any]) -> Self:
        """Return what JSON has; members that it may lack have a default."""
        known = {}
        for each in fields(cls):  # type: ignore[arg-type]
            if each.name in found:
                value = found[each.name]
                # JSON has neither infinity nor tuples.
                known[each.name] = math.inf if value is None and each.default is not None else _tuples(value)
            elif each.default is MISSING:
                raise InvalidInputError(f"{each.name} must be there")
        return cls(**known)

    def _written(self) -> dict[str, Any]:
        """Return the members for JSON, without those that have their default."""
        named = [(each, getattr(self, each.name)) for each in fields(self)]  # type: ignore[arg-type]
        return {each.name: None if value == math.inf else value for each, value in named if value != each.default}


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


@dataclass(frozen=True, kw_only=True)
class PersonTotal(_Checked):
    """What the reports of one person add up to.

    Attributes
    ----------
    reports : int
        How many there are.
    epsilon : float
        The sum of their epsilons, per metre; infinite for noise without one.
    level, radius, delta : float, optional
        The accountant's answer: from all of these reports, places within the radius can be distinguished by a
        factor e^level at most, except with probability delta. None where no accountant knows the mechanism.

    Examples
    --------
    >>> print(PersonTotal(reports=10, epsilon=0.1, level=9.5, radius=100, delta=1e-6))
    10 reports, epsilon 0.1 per metre together (level 9.5 within 100 m, delta 1e-06)
    """

    reports: int = field(metadata=_number(0, 10**12))
    epsilon: float = field(metadata=_number(0.0, 1e24, infinite=True))
    level: float | None = field(default=None, metadata=_number(0.0, 1e12))
    radius: float | None = field(default=None, metadata=_number(0.0, 1e9))
    delta: float | None = field(default=None, metadata=_number(0.0, 1.0))

    def __post_init__(self) -> None:
        super().__post_init__()
        known = [value is not None for value in (self.level, self.radius, self.delta)]
        _check("level, radius and delta", None, len(set(known)) == 1, "there together")

    @classmethod
    def from_json(cls, members: dict[str, Any]) -> Self:
        """Return the total that a record has."""
        return cls._read(members)

    def to_json(self) -> dict[str, Any]:
        """Return the members of a record."""
        return self._written()

    def __str__(self) -> str:
        text = plural(self.reports, "report")
        if self.epsilon != math.inf:
            text += f", epsilon {self.epsilon:.4g} per metre{' together' * (self.reports > 1)}"
        if self.level is None:
            return text
        delta = f", delta {self.delta:.2g}" if self.delta else ""
        return f"{text} (level {self.level:.3g} within {self.radius:g} m{delta})"


TOTAL: Rule = {"rule": "an object", "valid": lambda total: isinstance(total, PersonTotal)}


@dataclass(frozen=True, kw_only=True)
class ReleaseRecord(_Checked):
    """What a release contains and promises.

    Parameters
    ----------
    mechanism : str
        What made the noise.
    epsilon : float
        Privacy loss per metre; infinite where none is promised, as for Gaussian noise.
    sigma : float, optional
        Of Gaussian noise, in metres on the ground: all that there is to know, for `level_of_reports`.
    level, radius : float, optional
        How the noise was chosen: places within the radius can be distinguished by a factor e^level, by
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
        The other columns that left, as the owner of the data named them: the promise is not about them.
    unit : {"column", "each row", "each file"}
        Whose reports they are: the person of a column, a person per row, a person per file.
    persons : int, optional
        How many persons there are; None where it was not counted.
    busiest, median : PersonTotal, optional
        What the reports of the person with the most, and of the median person, add up to.
    session : str, optional
        Of traces: how each person's session answered. Then epsilon is that of a person's whole trace, the largest
        among all persons; infinite where it is not known yet.
    fresh : float, optional
        Of traces: epsilon of one fresh report.
    zones : int, optional
        Of traces: how many persons have a private zone. Its centre is part of their totals.
    time_step : tuple of (str, float)
        Columns of times, and the seconds to whose multiples these are rounded down. Other times are exact.
    cells : str, optional
        The kind of cells whose centres the reports are, such as `h3:9`.
    key : {"given", "discarded"}, optional
        Whether the owner of the data gave the key of the noise, and can repeat the noise with it, or it was made
        for this release and not kept. None where it is not known.
    version : str
        The geoind that made the reports.

    Examples
    --------
    >>> from geoind import SphericalLaplace
    >>> record = ReleaseRecord.of(SphericalLaplace(0.01), unit="each row")
    >>> record.epsilon, record.mechanism
    (0.01, 'SphericalLaplace')
    >>> ReleaseRecord.from_json(record.to_json()) == record
    True
    """

    mechanism: str = field(
        metadata=_text("a class name, such as SphericalLaplace", rf"({CLASS}\(){{0,9}}{CLASS}\){{0,9}}")
    )
    epsilon: float = field(metadata=_number(1e-12, 1e12, infinite=True))
    level: float | None = field(default=None, metadata=_number(1e-12, MOST_LEVEL))
    radius: float | None = field(default=None, metadata=_number(1e-6, 1e9))
    reports: int = field(default=1, metadata=_number(1, 10**12))
    delta: float = field(default=0.0, metadata=_number(0.0, 1 - 1e-12))
    sigma: float | None = field(default=None, metadata=_number(1e-6, 1e9))
    off_site_level: float = field(default=0.0, metadata=_number(0.0, 1e12, infinite=True))
    decimals: int = field(metadata=_number(0, 15))
    places: tuple[tuple[str, ...], ...] = field(default=(), metadata=_columns(_is_place))
    kept: tuple[str, ...] = field(default=(), metadata=_columns(_is_name))
    unit: str = field(metadata=_text("column, each row or each file", "column|each row|each file"))
    persons: int | None = field(default=None, metadata=_number(0, 10**12))
    busiest: PersonTotal | None = field(default=None, metadata=TOTAL)
    median: PersonTotal | None = field(default=None, metadata=TOTAL)
    session: str | None = field(default=None, metadata=_text("a method's numbers", r"\w[\w.+=(), -]{0,1999}"))
    fresh: float | None = field(default=None, metadata=_number(1e-12, 1e12))
    zones: int | None = field(default=None, metadata=_number(1, 10**12))
    time_step: tuple[tuple[str, float], ...] = field(default=(), metadata=_columns(_is_step))
    cells: str | None = field(default=None, metadata=_text("h3:9 or geohash:7", r"(h3|geohash):[0-9]{1,2}"))
    key: str | None = field(default=None, metadata=_text("given or discarded", "given|discarded"))
    version: str = field(metadata=_text("a version", r"[0-9A-Za-z.+!_-]{1,64}"))

    @classmethod
    def of(cls, mechanism: Mechanism, /, *, unit: str, **members: Any) -> Self:
        """Return the record of a release with a mechanism that reports lon/lat; other members as they are."""
        usual: dict[str, Any] = {
            "mechanism": _name(mechanism),
            "epsilon": float(mechanism.epsilon),
            # Next to an epsilon, an attribute sigma of another mechanism may mean anything.
            "sigma": _sigma(mechanism) if mechanism.epsilon == math.inf else None,
            "off_site_level": off_site_level(mechanism),
            "decimals": getattr(mechanism, "decimals", DECIMALS),
        }
        return cls(unit=unit, version=__version__, **(usual | members))

    def __post_init__(self) -> None:
        super().__post_init__()
        closed = self.mechanism.count("(") == self.mechanism.count(")")
        _check("mechanism", self.mechanism, closed, "a class name, such as Projected(PlanarLaplace)")
        _check("level", self.level, (self.level is None) == (self.radius is None), "there with radius only")
        _check("reports", self.reports, self.reports == 1 or self.delta > 0, "1 without delta")
        _check("fresh", self.fresh, (self.fresh is None) == (self.session is None), "there with session only")
        _check("busiest", None, (self.busiest is None) == (self.median is None), "there with median only")
        if self.session is None and self.radius is not None and self.epsilon != math.inf:
            _check("radius", self.radius, self.epsilon * self.radius <= MOST_LEVEL, "at most 700 / epsilon")

    @classmethod
    def from_json(cls, text: str | bytes, file: str | None = None) -> Self:
        """Return the record that `to_json` wrote; unknown members are not used.

        Parameters
        ----------
        text : str or bytes
            The record. It is input: every member is checked.
        file : str, optional
            The name of the file that has it, for messages.
        """
        try:
            found = as_object(text)
            for name in ("busiest", "median"):
                if isinstance(found.get(name), dict):
                    found[name] = PersonTotal.from_json(found[name])
            return cls._read(found)
        except InvalidInputError as error:
            raise InvalidInputError(f"release record{'' if file is None else f' of {file!r}'}: {error}") from None

    def __str__(self) -> str:
        """Return the promise in a few words."""
        if self.session is not None:
            return f"at most epsilon {self.epsilon:.6g} per metre for each person's whole trace ({self.mechanism})"
        if self.delta and self.level is not None and self.radius is not None:
            many = f"{self.reports:,} reports together" if self.reports > 1 else "each"
            return f"level {self.level:.4g} within {self.radius:g} m, {many}, up to delta {self.delta:.3g}"
        if self.sigma is not None:
            return f"Gaussian noise, sigma {self.sigma:.6g} m"
        return f"epsilon {self.epsilon:.6g} per metre"

    @property
    def totals(self) -> list[str]:
        """What the reports of the busiest person and of the median person add up to, in a line each."""
        if self.unit == "each row":
            several = self.busiest is not None and self.busiest.reports > 1
            return ["no person has two rows, as declared" + (f"; a row has {self.busiest}" if several else "")]
        if self.busiest is None or self.persons is None:
            return []
        lines = [f"{plural(self.persons, 'person')}; the busiest has {self.busiest}"]
        return lines if self.persons < 2 else [*lines, f"the median person has {self.median}"]

    def to_json(self) -> str:
        """Return one line of JSON."""
        return json.dumps(self._written(), default=PersonTotal.to_json)


def sidecar_of(path: str | Path) -> Path:
    """Return the path of the record of a file that is not Parquet.

    Examples
    --------
    >>> sidecar_of("reports.csv").name
    'reports.csv.geoind.json'
    """
    return Path(f"{path}{SIDECAR}")


def as_object(text: object, most: int = MOST_BYTES) -> dict[str, Any]:
    """Return an object of JSON, with standard numbers and each member once."""
    if not isinstance(text, (str, bytes)) or len(text) > most:
        raise InvalidInputError(f"it must be JSON text of at most {most:,} bytes")
    try:
        found = json.loads(
            text.decode() if isinstance(text, bytes) else text,
            # int refuses NaN and Infinity.
            parse_constant=int,
            object_pairs_hook=_unique,
        )
    except (ValueError, RecursionError):
        raise InvalidInputError("it must be valid JSON, with each member once and no NaN or Infinity") from None
    _check("it", found, isinstance(found, dict), "an object")
    return cast("dict[str, Any]", found)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("duplicate member")
    return members


def _check(name: str, value: object, valid: bool, rule: str) -> None:
    if not valid:
        # Shortened before it is shown: what is not valid may be long, and deep.
        shown = reprlib.repr(value) if isinstance(value, (str, int, float, type(None))) else type(value).__name__
        raise InvalidInputError(f"{name} must be {rule}, got {shown}")


def _name(mechanism: Mechanism) -> str:
    own = type(mechanism).__name__
    inner = getattr(mechanism, "mechanism", None)
    return own if inner is None else f"{own}({_name(inner)})"


def _sigma(mechanism: Mechanism) -> float | None:
    """Return the sigma of Gaussian noise, in metres on the ground."""
    inner = getattr(mechanism, "mechanism", None)
    sigma = getattr(mechanism, "sigma", None) if inner is None else _sigma(inner)
    return None if sigma is None else float(sigma / getattr(mechanism, "largest_scale", 1.0))
