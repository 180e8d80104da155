"""Every error that geoind raises on purpose."""

__all__ = [
    "BudgetExceededError",
    "GeoindError",
    "InfeasibleError",
    "InvalidInputError",
    "LedgerError",
    "MissingExtraError",
    "NotStochasticError",
    "SitesMismatchError",
    "SolverError",
]


class GeoindError(Exception):
    """The root: `except GeoindError` catches all of geoind's own errors and nothing else."""


class InvalidInputError(GeoindError, ValueError):
    """An argument breaks a rule; nothing was drawn, written or charged."""


class NotStochasticError(InvalidInputError):
    """A matrix or a vector is not a probability distribution."""


class SitesMismatchError(InvalidInputError):
    """Two objects speak about different sets of locations."""


class BudgetExceededError(GeoindError):
    """A person's privacy budget does not cover the request; nothing was charged and nothing was drawn.

    Attributes
    ----------
    person : str
        Whose budget it is.
    requested, remaining : float
        Epsilon asked for and epsilon left, per metre; or by how much the level would grow, and the level left.
    measure : str
        Which of the two.
    """

    def __init__(self, person: str, requested: float, remaining: float, measure: str = "per metre") -> None:
        super().__init__(person, requested, remaining, measure)
        self.person = person
        self.requested = requested
        self.remaining = remaining
        self.measure = measure

    def __str__(self) -> str:
        return (
            f"the privacy budget of {self.person!r} is exceeded: "
            f"{self.requested:g} {self.measure} requested, {self.remaining:g} remaining"
        )


class LedgerError(GeoindError):
    """The ledger's database did not confirm: it is locked, full or gone, so nothing is published."""


class MissingExtraError(GeoindError, ImportError):
    """A package of an extra is not installed; the message names the extra, and nothing was computed."""


class InfeasibleError(GeoindError):
    """No mechanism satisfies the request."""


class SolverError(GeoindError):
    """A solver stopped before it could keep its word."""
