"""What a release did, in words for people."""

import csv
import io
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from geoind.accounting.record import ReleaseRecord
from geoind.errors import MOST_SAID, plural, printable

COORDINATE = re.compile(r"(^|[^a-z])(lat|latitude|lon|lng|long|longitude)$", re.IGNORECASE)
"""The name of a column that may hold another location of the row: it is not offered to be kept."""


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
    varies : bool
        Whether these distances depend on the place; then they are the largest.
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
    exact_times : tuple of str
        Columns of times that left as they are.
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
    exact_times: tuple[str, ...] = ()
    varies: bool = False

    def __str__(self) -> str:
        record, lines = self.record, [f"{plural(self.reports, 'report')}, {self.record}"]
        if self.mean_error is not None and self.reach_95 is not None:
            fresh = "" if record.session is None else "a fresh report is "
            fresh = "where it is farthest, " if self.varies else fresh
            lines[0] += (
                f": {fresh}{_metres(self.mean_error)} from the truth on average, "
                f"95 % within {_metres(self.reach_95)}"
            )
        if record.cells is not None:
            lines.append(f"each report was then moved to the centre of its cell ({record.cells})")
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
        if record.zones is not None:
            lines.append(f"{plural(record.zones, 'person')} with a private zone, whose centre is in the totals")
        lines += [f"times in {name!r} are rounded down to {step:g} s" for name, step in record.time_step]
        if self.exact_times:
            lines.append(f"exact times are public: {', '.join(self.exact_times)} (--time-step makes them coarse)")
        if record.kept:
            lines.append(f"columns kept: {', '.join(record.kept)}")
        coordinates = [name for name in self.left_out if COORDINATE.search(name)]
        if coordinates:
            lines.append(f"columns left out, called like coordinates: {', '.join(coordinates)} (--lat and --lon)")
        if others := [name for name in self.left_out if name not in coordinates]:
            lines.append(f"columns left out (to keep some: --keep {_pasted(others)})")
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
