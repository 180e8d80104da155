"""What all reports of a person, or all releases that a curator makes of them, may tell together."""

from dataclasses import dataclass

from geoind.arrays import as_positive, as_unit

__all__ = ["PersonLevel", "Promise"]


@dataclass(frozen=True, kw_only=True)
class Promise:
    """Places within a radius can be told apart by a factor e^level at most, except with probability delta.

    Parameters
    ----------
    level : float
        Of all reports together.
    radius : float
        In metres.
    delta : float
        Strictly between 0 and 1; far less than one over the number of people.

    Examples
    --------
    >>> Promise(level=2.0, radius=200, delta=1e-6)
    Promise(level=2.0, radius=200.0, delta=1e-06)
    """

    level: float
    radius: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", as_positive(self.level, "level"))
        object.__setattr__(self, "radius", as_positive(self.radius, "radius"))
        object.__setattr__(self, "delta", as_unit(self.delta, "delta"))


@dataclass(frozen=True)
class PersonLevel:
    """What a trusted curator promises: nobody learns by more than e^level whether a person is in the data.

    A level **per person, not per metre**: the release is at most e^level times as likely with all of a person's
    records as without them, wherever the person was. Moving a person is taking them out and putting them in
    again: e^(2 level) between any two places, near or far.

    Parameters
    ----------
    level : float
        The epsilon of differential privacy; it has no unit.

    Examples
    --------
    >>> PersonLevel(1)
    PersonLevel(level=1.0)
    """

    level: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", as_positive(self.level, "level"))
