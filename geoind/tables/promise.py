"""What a file of reports promises: which mechanism, which epsilon, which lattice; never a seed or a key.

A Parquet file says it in its schema metadata under `geoind`, every other file in a sidecar beside it,
`<file>.geoind.json`.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import pyarrow.parquet

from geoind.arrays import as_count, as_number, as_positive
from geoind.errors import InvalidInputError
from geoind.mechanisms.protocol import Mechanism, off_site_level
from geoind.space.lattice import DECIMALS
from geoind.tables.tracing import Tracing
from geoind.version import __version__

__all__ = ["ATTRS_KEY", "PARQUET_KEY", "TablePromise", "read_promise", "sidecar_of"]

PARQUET_KEY = b"geoind"
"""The key in a Parquet file's schema metadata."""
ATTRS_KEY = "geoind"
"""The key in the `attrs` of a frame."""
SPARK_KEY = b"org.apache.spark.sql.parquet.row.metadata"


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

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return the promise that `to_json` wrote; unknown members are ignored."""
        try:
            told = json.loads(text)
            mechanism, unit, version = told["mechanism"], told["unit"], told["version"]
            epsilon, decimals = told["epsilon"], told["lattice"]["decimals"]
        except (ValueError, KeyError, TypeError):
            raise InvalidInputError(
                "the promise must be JSON with mechanism, epsilon, unit, lattice, version"
            ) from None
        if unit != "1/m":
            raise InvalidInputError(f"the promise's epsilon must be in 1/m, got {unit!r}")
        return cls(
            mechanism=str(mechanism),
            epsilon=math.inf if epsilon is None else as_positive(epsilon, "the promise's epsilon"),
            level=_optional(told, "level"),
            radius=_optional(told, "radius"),
            reports=as_count(told.get("reports", 1), "the promise's reports"),
            delta=as_number(told.get("delta", 0.0), "the promise's delta"),
            sigma=_optional(told, "sigma"),
            off_site_level=_or_infinite(told.get("off_site_level", 0.0)),
            decimals=int(as_number(decimals, "the promise's decimals")),
            places=tuple(tuple(map(str, place.values())) for place in told.get("places", [])),
            kept=tuple(map(str, told.get("kept", []))),
            session=told.get("session"),
            fresh=_optional(told, "fresh"),
            version=str(version),
        )

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
        If the file tells nothing.
    """
    if not Path(path).exists():
        raise InvalidInputError(f"no such file: {path}")
    told = _parquet_metadata(Path(path))
    sidecar = sidecar_of(path)
    if told is None and sidecar.exists():
        told = sidecar.read_bytes()
    if told is None:
        raise InvalidInputError(f"{path} does not tell what was promised: no {sidecar.name}, no Parquet metadata")
    return TablePromise.from_json(told)


def _parquet_metadata(path: Path) -> bytes | None:
    if not path.is_file():
        return None
    with path.open("rb") as file:
        if file.read(4) != b"PAR1":
            return None
    # The file's own entries: what its schema says is among them, and what was known when it was complete.
    metadata = pyarrow.parquet.read_metadata(path).metadata or {}
    if PARQUET_KEY in metadata:
        return bytes(metadata[PARQUET_KEY])
    # What pandas makes of a frame's `attrs`, and Spark of a column's metadata.
    told = [json.loads(metadata.get(b"PANDAS_ATTRS", b"{}"))]
    fields = json.loads(metadata.get(SPARK_KEY, b"{}")).get("fields", [])
    told += [field.get("metadata", {}) for field in fields]
    return next((str(part[ATTRS_KEY]).encode() for part in told if ATTRS_KEY in part), None)


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


def _or_infinite(value: float | None) -> float:
    return math.inf if value is None else as_number(value, "the promise's off_site_level")


def _optional(told: dict[str, Any], name: str) -> float | None:
    value = told.get(name)
    return None if value is None else as_positive(value, f"the promise's {name}")
