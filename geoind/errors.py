"""Every error that geoind raises on purpose."""

# The other three errors are offered at the top of geoind.
__all__ = [
    "InfeasibleError",
    "LedgerError",
    "MissingExtraError",
    "NotStochasticError",
    "SitesMismatchError",
    "SolverError",
]


MOST_SHOWN = 4000
"""Characters of a message: room for the names of many columns."""
MOST_SAID = 900
"""Characters of a line on a terminal."""


def printable(text: str, most: int = MOST_SHOWN) -> str:
    r"""Return text for a terminal, a log or a page's message: one line, without control characters, not too long.

    Names of files, columns and persons are text from outside: they may hold escape sequences, or megabytes.

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
    """Return a count with its noun, which gets an s unless the count is 1.

    Examples
    --------
    >>> plural(1, "report"), plural(1200, "report")
    ('1 report', '1,200 reports')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _shortened(text: str, most: int) -> str:
    # The end is kept: it contains the advice.
    return text if len(text) <= most else f"{text[: most - 155]} ... {text[-150:]}"


class GeoindError(Exception):
    """The root: `except GeoindError` catches all of geoind's own errors and nothing else."""

    def __str__(self) -> str:
        return printable(super().__str__())


class InvalidInputError(GeoindError, ValueError):
    """An argument or an input breaks a rule. Nothing was published; a charge is mentioned in the message."""


class NotStochasticError(InvalidInputError):
    """A matrix or a vector is not a probability distribution."""


class SitesMismatchError(InvalidInputError):
    """Two objects speak about different sets of locations."""


class BudgetExceededError(GeoindError):
    """A person's privacy budget does not cover the request; nothing was charged, published or written.

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
        return printable(
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
    """The solver did not reach the requested tolerance."""
