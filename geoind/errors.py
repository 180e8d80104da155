"""The errors of geoind, and helpers for their messages."""

# The errors of the top level (GeoindError, InvalidInputError, BudgetExceededError) are offered there only.
__all__ = [
    "InfeasibleError",
    "LedgerError",
    "MissingExtraError",
    "NotStochasticError",
    "SitesMismatchError",
    "SolverError",
]


MOST_SHOWN = 4000
"""Largest number of characters of a message, enough for the names of many columns."""
MOST_SAID = 900
"""Largest number of characters of a line on a terminal."""


def printable(text: str, most: int = MOST_SHOWN) -> str:
    r"""Return text for a terminal, a log or a page: one line, without control characters, shortened.

    Names of files, columns and persons are untrusted: they may contain escape sequences, or be very long.

    Examples
    --------
    >>> printable("column 'a\x1b[2J\n'"), len(printable("x" * 1_000_000))
    ("column 'a\\x1b[2J\\n'", 4000)
    """
    text = _shortened(text, most)
    if not text.isprintable():
        text = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)
    return _shortened(text, most)


def plural(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural unless the count is 1.

    Examples
    --------
    >>> plural(1, "report"), plural(1200, "report")
    ('1 report', '1,200 reports')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _shortened(text: str, most: int) -> str:
    # The end is kept, because it contains the advice.
    return text if len(text) <= most else f"{text[: most - 155]} ... {text[-150:]}"


class GeoindError(Exception):
    """The base class of all errors of geoind."""

    def __str__(self) -> str:
        return printable(super().__str__())


class InvalidInputError(GeoindError, ValueError):
    """An argument or an input is invalid. Nothing was published; the message mentions a charge."""


class NotStochasticError(InvalidInputError):
    """A matrix or a vector is not a probability distribution."""


class SitesMismatchError(InvalidInputError):
    """Two objects have different sets of locations."""


class BudgetExceededError(GeoindError):
    """A person's privacy budget does not cover the request; nothing was charged, published or written.

    Attributes
    ----------
    person : str
        The person whose budget is exceeded.
    requested, remaining : float
        Requested and remaining epsilon, per metre; or the increase of the level and the remaining level.
    measure : str
        The unit of both.
    """

    def __init__(self, person: str, requested: float, remaining: float, measure: str = "per metre") -> None:
        super().__init__(person, requested, remaining, measure)
        self.person = person
        self.requested = requested
        self.remaining = remaining
        self.measure = measure

    def __str__(self) -> str:
        return printable(
            f"the privacy budget of {self.person!r} is exceeded: "
            f"{self.requested:g} {self.measure} requested, {self.remaining:g} remaining"
        )


class LedgerError(GeoindError):
    """The ledger's database did not confirm (locked, full or not available); nothing is published."""


class MissingExtraError(GeoindError, ImportError):
    """A package of an extra is not installed; the message names the extra, and nothing was computed."""


class InfeasibleError(GeoindError):
    """No mechanism satisfies the request."""


class SolverError(GeoindError):
    """The solver did not reach the requested tolerance."""
