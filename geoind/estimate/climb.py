"""How the most likely population is looked for."""

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from geoind.arrays import as_count, as_positive
from geoind.channels.priors import Prior
from geoind.errors import InvalidInputError
from geoind.estimate.ascent import OnStep

__all__ = ["Climb", "Stopping"]

Stopping: TypeAlias = Literal["held-out", "converged"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Climb:
    """How the climb to a likely population goes: until when, from where, and who hears of it meanwhile.

    Parameters
    ----------
    stopping : "held-out" or "converged"
        Stop where reports that were set aside are predicted best, or at the most likely population.
    max_steps : int
        At most this many steps.
    tolerance : float
        In nats over all reports, for `stopping="converged"`: no population is likelier by more.
    start : Prior, optional
        Where the climb begins: a population on the grid in which no site is impossible, such as last month's.
        Default: the uniform one. If one population is likelier than all others, a converged climb ends there from
        any start; one that stops early keeps something of its start.
    progress : callable, optional
        Called with each step and its log-likelihood per report.

    Examples
    --------
    >>> Climb(stopping="converged").max_steps
    1000
    """

    stopping: Stopping = "held-out"
    max_steps: int = 1000
    tolerance: float = 1.0
    start: Prior | None = None
    progress: OnStep | None = None

    def __post_init__(self) -> None:
        if self.stopping not in get_args(Stopping):
            raise InvalidInputError(f"stopping must be 'held-out' or 'converged', got {self.stopping!r}")
        as_count(self.max_steps, "max_steps")
        as_positive(self.tolerance, "tolerance")
        if not isinstance(self.start, Prior | None):
            raise InvalidInputError(f"start must be a Prior, got {type(self.start).__name__}")
        if self.start is not None and not (self.start.mass > 0).all():
            raise InvalidInputError(
                f"start must leave no site impossible, {(self.start.mass == 0).sum()} of {len(self.start)} are: "
                "mix it with the uniform prior"
            )
        if self.progress is not None and not callable(self.progress):
            raise InvalidInputError(f"progress must be callable, got {type(self.progress).__name__}")
