"""Who pays: one person, one name."""

import unicodedata
from numbers import Integral

from geoind.errors import InvalidInputError

__all__ = ["as_person"]


def as_person(person: object) -> str:
    r"""Return a person's name as ledgers keep it: text in Unicode NFC, or the digits of a whole number.

    Text that looks the same is the same person, however its accents were typed. Nothing else becomes a name: a
    float 7.0 is often an identifier that a table has spoilt, None is nobody, and "ana " is ana, typed or padded by
    a table, whose second name would have a second budget.

    Examples
    --------
    >>> as_person("ana"), as_person(7)
    ('ana', '7')
    >>> as_person("Zoe\u0301") == as_person("Zo\u00e9")
    True
    >>> as_person(7.0)
    Traceback (most recent call last):
        ...
    geoind.errors.InvalidInputError: person must be text or a whole number, got float
    """
    if type(person) is not bool and isinstance(person, Integral):
        return str(int(person))
    if not isinstance(person, str):
        raise InvalidInputError(f"person must be text or a whole number, got {type(person).__name__}")
    if not person.isprintable() or not person.strip():
        raise InvalidInputError("person must be a name of printable characters that is not empty")
    if person != person.strip():
        raise InvalidInputError("person must be a name without space around it")
    return unicodedata.normalize("NFC", person)
