"""What a release did, for a terminal or a log: the numbers that show a mistake."""

import contextlib
import csv
import io
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from geoind.arrays import FloatArray
from geoind.errors import MOST_SAID, InvalidInputError, plural, printable
from geoind.mechanisms.protocol import Mechanism
from geoind.tables.record import ReleaseRecord
from geoind.tables.release import Obfuscated, Release

__all__ = ["Summary", "Tally", "mean_error"]


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What was done. Print it.

    Attributes
    ----------
    reports : int
        How many there are.
    record : ReleaseRecord
        What left, what is promised, and the totals per person.
    mean_error, reach_95 : float, optional
        Metres between truth and report: on average, and what at least 95 % of the reports stay within. None where
        a step after the noise does not say how far it moves a report.
    bounds : (west, south, east, north), optional
        Degrees that the *reports* span; None without reports.
    left_out : tuple of str
        The columns that did not leave.
    reports_left_out : int
        Reports that were not made because of `reports_per_person`.
    rejected : int
        Bad records that got no report.
    charged : bool
        Whether a ledger was charged; reports that it had recorded as paid are free.
    """

    reports: int
    record: ReleaseRecord
    mean_error: float | None
    reach_95: float | None
    bounds: tuple[float, float, float, float] | None = None
    left_out: tuple[str, ...] = ()
    reports_left_out: int = 0
    rejected: int = 0
    charged: bool = False

    def __str__(self) -> str:
        record, lines = self.record, [f"{plural(self.reports, 'report')}, {self.record}"]
        if self.mean_error is not None and self.reach_95 is not None:
            fresh = "" if record.session is None else "a fresh report is "
            lines[0] += (
                f": {fresh}{_metres(self.mean_error)} from the truth on average, "
                f"95 % within {_metres(self.reach_95)}"
            )
        lines += record.totals
        if self.bounds is not None:
            west, south, east, north = self.bounds
            lines.append(f"the reports lie between {west:.5f} and {east:.5f} E, {south:.5f} and {north:.5f} N")
        if self.reports_left_out:
            lines.append(f"{plural(self.reports_left_out, 'report')} left out by the limit per person")
        if self.rejected:
            lines.append(f"{plural(self.rejected, 'bad record')} got no report")
        if self.charged:
            lines.append(
                "the ledger was charged; persons whose reports are those of an earlier charge pay nothing"
            )
        if record.kept:
            lines.append(f"columns kept: {', '.join(record.kept)}")
        if self.left_out:
            lines.append(f"columns left out (to keep some: --keep {_pasted(self.left_out)})")
        return "\n".join(printable(line, MOST_SAID) for line in lines)


def _pasted(names: Sequence[str]) -> str:
    """Return names as the command line takes them: one CSV record, quoted for a shell.

    Examples
    --------
    >>> print(_pasted(["fare", "name, first"]))
    'fare,"name, first"'
    """
    record = io.StringIO()
    csv.writer(record, lineterminator="").writerow(names)
    return shlex.quote(record.getvalue())


def _metres(distance: float) -> str:
    """Return a distance to read; little noise must not look like none, nor like more than it is."""
    return f"{distance:,.0f} m" if distance >= 10 else f"{distance:.2g} m"


@dataclass
class Tally:
    """Reports counted batch by batch; what several processes counted comes together with `merge`."""

    reports: int = 0
    low: FloatArray | None = None
    high: FloatArray | None = None

    def add(self, made: Obfuscated) -> None:
        """Count a batch."""
        for reports in made.reports:
            if count := int(np.count_nonzero(~np.isnan(reports[:, 0]))):
                # Column by column, which numpy does faster than row by row.
                low, high = ([edge.reduce(axis) for axis in reports.T] for edge in (np.fmin, np.fmax))
                self.merge(Tally(count, np.array(low), np.array(high)))

    def merge(self, other: "Tally") -> None:
        """Take over what another tally counted."""
        self.reports += other.reports
        if other.low is not None and other.high is not None:
            self.low = other.low if self.low is None else np.minimum(self.low, other.low)
            self.high = other.high if self.high is None else np.maximum(self.high, other.high)

    def summary(
        self, release: Release, left_out: Sequence[str], *, rejected: int = 0, charged: bool = False
    ) -> Summary:
        """Return what was counted."""
        mechanism, mean, reach = release.recipe.mechanism, None, None
        with contextlib.suppress(InvalidInputError):  # a step of one's own that does not say it
            mean, reach = mean_error(mechanism), float(mechanism.reach(0.95))
        low, high = self.low, self.high
        return Summary(
            reports=self.reports,
            record=release.record,
            mean_error=mean,
            reach_95=reach,
            bounds=None if low is None or high is None else (*low.tolist(), *high.tolist()),
            left_out=tuple(left_out),
            reports_left_out=release.left_out,
            rejected=rejected,
            charged=charged,
        )


def mean_error(mechanism: Mechanism) -> float:
    """Return the mean distance in metres between truth and report, from the mechanism's quantiles."""
    own = getattr(mechanism, "mean_radius", None)
    if own is not None:
        return float(own)
    return float(np.mean([mechanism.reach((number + 0.5) / 200) for number in range(200)]))
