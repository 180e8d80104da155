"""What a solver proves about the channel it returns."""

from dataclasses import dataclass

from geoind.arrays import ArrayLike
from geoind.channels.channel import Channel
from geoind.errors import plural
from geoind.space.sites import Sites

__all__ = ["YARDSTICK", "Certificate", "OptimalChannel"]

YARDSTICK = 1e-7
"""Gaps are relative to the objective, or to this fraction of the worst that it can be, where that is more."""


@dataclass(frozen=True)
class Certificate:
    """The proof that comes with an optimal channel.

    Attributes
    ----------
    objective : float
        The value of the program at the returned channel, as stored.
    bound : float
        What weak duality proves that no channel can beat.
    gap : float
        How far the objective can be from the optimum, relative to it, or to 1e-7 of the worst that a mechanism
        can make of it, where that is more: doubles do not resolve smaller objectives.
    epsilon : float
        Privacy loss per unit of the distance asked for, measured on the returned channel.
    repair : float
        What it cost the objective to turn the solver's answer into a channel that keeps the promise as measured.
    iterations : int
    seconds : float
    method : str
        How the channel was found.
    optimal : bool
        Whether the gap is within the tolerance asked for.
    """

    objective: float
    bound: float
    gap: float
    epsilon: float
    repair: float
    iterations: int
    seconds: float
    method: str
    optimal: bool

    def __str__(self) -> str:
        verdict = "optimal" if self.optimal else "NOT proven optimal"
        return (
            f"{verdict}: objective {self.objective:.8g}, bound {self.bound:.8g}, gap {self.gap:.1e}, "
            f"measured epsilon {self.epsilon:.8g}, repair {self.repair:.1e}; "
            f"{self.method}, {plural(self.iterations, 'iteration')}, {self.seconds:.2f} s"
        )


class OptimalChannel(Channel):
    """A channel with the certificate of the program that it solves.

    Examples
    --------
    >>> from geoind import Grid, Prior, min_loss_given_epsilon
    >>> best = min_loss_given_epsilon(Prior.uniform(Grid(0, 0, cell=100, columns=2, rows=2)), epsilon=0.01)
    >>> best.certificate.optimal, round(best.certificate.objective, 3)
    (True, 54.555)
    """

    certificate: Certificate

    def __init__(self, inputs: Sites, outputs: Sites, matrix: ArrayLike, certificate: Certificate) -> None:
        super().__init__(inputs, outputs, matrix)
        object.__setattr__(self, "certificate", certificate)
