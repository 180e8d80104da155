"""Rows on their way: examined, with their problems as values, and obfuscated."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from geoind.arrays import FloatArray, IntArray
from geoind.errors import InvalidInputError
from geoind.tables.places import rows_of
from geoind.traces.many import Positions

__all__ = ["Beside", "Examined", "Obfuscated", "Problem"]

Beside: TypeAlias = Callable[[IntArray], pa.RecordBatch]
"""From row numbers of a batch to those rows of everything that would pass."""


class Problem(NamedTuple):
    """A row that cannot have a report: its number in the batch, and why. Never the place itself."""

    row: int
    reason: str


@dataclass(frozen=True)
class Examined:
    """A batch that was looked at, before anything is drawn or charged.

    Attributes
    ----------
    batch : pyarrow.RecordBatch
        The rows without a problem, with their true places.
    rows : (n,) array
        The number of each of them in the batch that was given.
    problems : tuple of Problem
        The other rows.
    truths : tuple of (n, 2) arrays
        Degrees, one array per place of a row, NaN where it has none.
    steps : Positions, optional
        Of a table of traces: who and when.
    """

    batch: pa.RecordBatch = field(repr=False)
    rows: IntArray
    problems: tuple[Problem, ...]
    truths: tuple[FloatArray, ...] = field(repr=False)
    steps: Positions | None = None

    def without(self, problems: Mapping[int, str]) -> "Examined":
        """Return this without some more rows, by their numbers in this batch, which have problems."""
        if not problems:
            return self
        bad = [Problem(int(self.rows[row]), reason) for row, reason in problems.items()]
        kept = np.delete(np.arange(len(self.rows)), list(problems))
        return Examined(
            rows_of(self.batch, kept),
            self.rows[kept],
            tuple(sorted([*self.problems, *bad])),
            tuple(truth[kept] for truth in self.truths),
            None if self.steps is None else self.steps.only(kept),
        )

    @property
    def reports_per_row(self) -> IntArray:
        """How many reports each row makes: one for each place that it has."""
        return np.asarray(np.sum([~np.isnan(truth[:, 0]) for truth in self.truths], axis=0), np.int64)

    def raise_problems(self) -> "Examined":
        """Return this, or raise the first problem."""
        for problem in self.problems:
            raise InvalidInputError(f"row {problem.row}: {problem.reason} ({len(self.problems)} such rows)")
        return self


@dataclass(frozen=True)
class Obfuscated:
    """A batch of reports.

    Attributes
    ----------
    batch : pyarrow.RecordBatch
        The rows without a problem, with reports in place of true locations.
    rows : (n,) array
        The number of each of them in the batch that was given.
    problems : tuple of Problem
        The other rows, which got no report.
    reports : tuple of (n, 2) arrays
        Degrees, one array per place of a row, NaN where it has none.
    """

    batch: pa.RecordBatch
    rows: IntArray
    problems: tuple[Problem, ...]
    reports: tuple[FloatArray, ...] = field(repr=False)
