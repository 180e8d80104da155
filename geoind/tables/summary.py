"""What somebody needs to notice a mistake: counted while reports are made, the same for every kind of table."""

import contextlib
from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from geoind.arrays import FloatArray
from geoind.errors import MOST_SAID, InvalidInputError, printable
from geoind.mechanisms.protocol import Mechanism
from geoind.tables.identities import plain
from geoind.tables.places import column_of
from geoind.tables.promise import TablePromise, refuse_more_reports
from geoind.tables.rows import Examined, Obfuscated
from geoind.tables.table import Table

__all__ = ["Summary", "Tally", "mean_error"]

IDENTITIES = 1 << 18
"""So many identities are looked at for repetitions; a column that does not tell records apart shows it soon."""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What was done. Print it.

    Attributes
    ----------
    reports : int
        How many there are.
    rejected : int
        Bad records that got none.
    promise : TablePromise
        What the reports promise.
    mean_error, reach_95 : float, optional
        Metres between truth and report: on average, and what at least 95 % of the reports stay within, which is
        the mechanism's `reach`: in WGS84 metres anywhere, rounding included, so a little more than the noise's own
        quantile. None where a step after the noise does not tell how far it moves a report.
    bounds : (west, south, east, north), optional
        Degrees that the *reports* span; None without reports.
    busiest : int, optional
        How many reports the busiest person has, or the busiest identity where there is no column of persons.
    repeated : int
        How many identities name more than one record, among those that were looked at.

    Examples
    --------
    >>> from geoind import SphericalLaplace
    >>> print(Tally().summary(SphericalLaplace(0.01), TablePromise.of(SphericalLaplace(0.01))))
    0 reports, epsilon 0.01 per metre: 201 m from the truth on average, 95 % within 480 m
    """

    reports: int
    rejected: int = 0
    promise: TablePromise
    mean_error: float | None
    reach_95: float | None
    bounds: tuple[float, float, float, float] | None = None
    busiest: int | None = None
    repeated: int = 0

    @property
    def busiest_epsilon(self) -> float | None:
        """What the reports of the busiest person or identity add up to, per metre."""
        return None if self.busiest is None else self.busiest * self.promise.epsilon

    def __str__(self) -> str:
        lines = [f"{self.reports:,} reports, {self.promise}"]
        if self.mean_error is not None and self.reach_95 is not None:
            fresh = "" if self.promise.session is None else "a fresh one is "
            lines[0] += (
                f": {fresh}{_metres(self.mean_error)} from the truth on average, "
                f"95 % within {_metres(self.reach_95)}"
            )
        if self.bounds is not None:
            west, south, east, north = self.bounds
            lines.append(f"the reports lie between {west:.5f} and {east:.5f} E, {south:.5f} and {north:.5f} N")
        if self.busiest is not None and self.busiest > self.promise.reports and self.promise.session is None:
            together = "more than the promise is for"
            if self.promise.reports == 1:
                together = f"epsilon {self.busiest_epsilon:.6g} per metre together"
            lines.append(f"the busiest person or record has {self.busiest:,} reports: {together}")
        if self.repeated:
            lines.append(
                f"{self.repeated:,} identities name more than one record: does the column tell records apart?"
            )
        if self.rejected:
            lines.append(f"{self.rejected:,} bad record{'s' * (self.rejected > 1)} got no report")
        if self.promise.kept:
            lines.append(f"passed on as asked, although they may tell the place: {', '.join(self.promise.kept)}")
        return "\n".join(printable(line, MOST_SAID) for line in lines)


def _metres(distance: float) -> str:
    """Return a distance to read; little noise must not look like none, nor like more than it is."""
    return f"{distance:,.0f} m" if distance >= 10 else f"{distance:.2g} m"


@dataclass
class Tally:
    """Counts, batch by batch; what several processes counted comes together with `merge`."""

    reports: int = 0
    rejected: int = 0
    persons: Counter[str] = field(default_factory=Counter)
    _low: FloatArray = field(default_factory=lambda: np.full(2, np.inf))
    _high: FloatArray = field(default_factory=lambda: np.full(2, -np.inf))
    _identities: list[pa.Array] = field(default_factory=list)

    def add(self, table: Table, examined: Examined, made: Obfuscated) -> None:
        """Count a batch."""
        for reports in made.reports:
            present = reports[~np.isnan(reports[:, 0])]
            self.reports += len(present)
            if len(present):
                self._low = np.minimum(self._low, present.min(axis=0))
                self._high = np.maximum(self._high, present.max(axis=0))
        self.rejected += len(made.problems)
        if table.recipe.person_column is not None:
            self.persons.update(table.count_persons(examined))
            refuse_more_reports(table.recipe.reports, self.persons)
        if table.recipe.id_column is not None and sum(map(len, self._identities)) < IDENTITIES:
            self._identities.append(plain(column_of(examined.batch, table.recipe.id_column)))

    def merge(self, other: "Tally") -> None:
        """Take over what another tally counted."""
        self.reports += other.reports
        self.rejected += other.rejected
        self.persons.update(other.persons)
        self._low = np.minimum(self._low, other._low)
        self._high = np.maximum(self._high, other._high)
        self._identities = _first([*self._identities, *other._identities])

    def settled(self) -> "Tally":
        """Return the counts in the least of memory, to travel to another process."""
        return replace(self, _identities=_first(self._identities))

    def summary(self, mechanism: Mechanism, promise: TablePromise) -> Summary:
        """Return what was counted; refuse a promise that it shows to be false."""
        refuse_more_reports(promise.reports, self.persons)
        repeated, most = self._repetitions()
        mean = reach = None
        with contextlib.suppress(InvalidInputError):  # a step of one's own that does not tell
            mean, reach = mean_error(mechanism), float(mechanism.reach(0.95))
        return Summary(
            reports=self.reports,
            rejected=self.rejected,
            promise=promise,
            mean_error=mean,
            reach_95=reach,
            bounds=(*self._low.tolist(), *self._high.tolist()) if self.reports else None,
            busiest=max(self.persons.values(), default=most or None),
            repeated=repeated,
        )

    def _repetitions(self) -> tuple[int, int]:
        """Return how many identities occur more than once, and how often the most frequent does."""
        if not sum(map(len, self._identities)):
            return 0, 0
        counts = pa.chunked_array(_first(self._identities)).value_counts().field("counts").to_numpy()
        return int(np.count_nonzero(counts > 1)), int(counts.max())


def _first(identities: list[pa.Array]) -> list[pa.Array]:
    """Return so many identities as are looked at, in one array without what it was cut from."""
    alike = [part.cast(pa.int64(), safe=False) if pa.types.is_integer(part.type) else part for part in identities]
    return [pa.concat_arrays(alike)[:IDENTITIES]] if alike else []


def mean_error(mechanism: Mechanism) -> float:
    """Return the mean distance in metres between truth and report, from the mechanism's quantiles."""
    own = getattr(mechanism, "mean_radius", None)
    if own is not None:
        return float(own)
    return float(np.mean([mechanism.reach((number + 0.5) / 200) for number in range(200)]))
