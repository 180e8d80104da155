"""Certificates of optimal channels, checks of a problem's matrices, and the repair of a solver's answer."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, as_floats, as_positive
from geoind.channels.channel import Channel
from geoind.channels.extended import ExtendedMatrix
from geoind.channels.priors import Prior
from geoind.channels.rows import Rows, parts_of
from geoind.distances import Distance, euclidean, manhattan
from geoind.errors import InvalidInputError, SitesMismatchError, plural
from geoind.space.sites import Grid, Sites, same_sites

__all__ = [
    "YARDSTICK",
    "Certificate",
    "OptimalChannel",
    "Task",
    "as_loss",
    "as_metric",
    "as_task",
    "ends_of",
    "keep_promise",
    "moved_to",
]

YARDSTICK = 1e-7
"""Gaps are relative to the objective, or to this fraction of its largest possible value where that is more."""
METRICS = euclidean, manhattan
"""Distances whose triangle inequality need not be checked: that takes n^3 operations."""


@dataclass(frozen=True)
class Certificate:
    """The proof of optimality of a channel.

    Attributes
    ----------
    objective : float
        The value of the program at the returned channel, as stored.
    bound : float
        A bound on the optimum, by weak duality.
    gap : float
        Largest possible distance of the objective from the optimum, relative to the objective, or to 1e-7 of its
        largest possible value where that is more: doubles do not resolve smaller objectives.
    epsilon : float
        Privacy loss per unit of the distance, measured on the returned channel, or on its interpolation.
    repair : float
        Change of the objective by the repair of the solver's answer, after which the measured epsilon is within
        the requested one.
    iterations : int
    seconds : float
    method : str
        How the channel was found.
    optimal : bool
        Whether the gap is within the tolerance.
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

    def __init__(
        self, inputs: Sites, outputs: Sites, matrix: ArrayLike | ExtendedMatrix, certificate: Certificate
    ) -> None:
        super().__init__(inputs, outputs, matrix)
        object.__setattr__(self, "certificate", certificate)


@dataclass(frozen=True)
class Task:
    """The program: minimise sum mass cost K over the matrices K with ratios of at most exp(epsilon apart)."""

    inputs: Sites
    outputs: Sites
    mass: FloatArray
    epsilon: float
    distance: Distance
    loss: Distance
    everywhere: Grid | None = None
    """The inputs, if the constraints are those of the interpolated matrix."""

    @property
    def ends(self) -> tuple[Sites, Sites]:
        """Inputs and outputs."""
        return self.inputs, self.outputs

    @property
    def triangles(self) -> bool:
        """Whether the distances are known to satisfy the triangle inequality."""
        return self.distance in METRICS

    @property
    def apart(self) -> FloatArray:
        """The distances of the inputs, computed and checked at each call: those of a city take a gigabyte."""
        return as_metric(self.distance(self.inputs.xy, self.inputs.xy), len(self.inputs))

    @property
    def cost(self) -> FloatArray:
        """The loss of each output at each input, likewise."""
        return as_loss(self.loss(self.inputs.xy, self.outputs.xy), (len(self.inputs), len(self.outputs)))

    def objective(self, matrix: Rows) -> float:
        """Return the expected loss of a matrix."""
        cost, parts = self.cost, parts_of(matrix)
        return float(sum(self.mass[part] @ np.einsum("xz,xz->x", rows, cost[part]) for part, rows in parts))


def as_task(prior: Prior, epsilon: float, outputs: Sites | None, loss: Distance, distance: Distance) -> Task:
    """Return the program of least loss, with sites and epsilon checked."""
    inputs, outputs = ends_of(prior, outputs, loss=loss, distance=distance)
    return Task(inputs, outputs, prior.mass, as_positive(epsilon, "epsilon"), distance, loss)


def ends_of(prior: Prior, outputs: Sites | None, **distances: Distance) -> tuple[Sites, Sites]:
    """Return the inputs and the outputs of a problem, whose parts have the right types."""
    if not isinstance(prior, Prior):
        raise InvalidInputError(f"prior must be a Prior, got {type(prior).__name__}")
    if outputs is not None and not callable(getattr(outputs, "nearest", None)):
        raise InvalidInputError(f"outputs must be a Grid or Places, got {type(outputs).__name__}")
    for name, distance in distances.items():
        if not callable(distance):
            raise InvalidInputError(f"{name} must be a function of two lists of points, got {distance!r:.50}")
    return prior.sites, prior.sites if outputs is None else outputs


def as_metric(apart: FloatArray, n: int) -> FloatArray:
    """Return an (n, n) matrix of distances between inputs that is finite, symmetric and 0 on its diagonal."""
    apart = as_floats(apart, "distance")
    if apart.shape != (n, n):
        raise SitesMismatchError(f"distance must give a matrix of shape {(n, n)}, got {apart.shape}")
    if not ((apart >= 0) & (apart < np.inf)).all():
        raise InvalidInputError("distance must be finite and not negative")
    if np.diag(apart).any():
        raise InvalidInputError("distance must be 0 from a site to itself")
    if not np.allclose(apart, apart.T, rtol=1e-9, atol=0):
        raise InvalidInputError("distance must be symmetric")
    return np.minimum(apart, apart.T)


def as_loss(cost: FloatArray, shape: tuple[int, int], name: str = "loss") -> FloatArray:
    """Return a matrix of finite losses, one row for each input and one column for each output."""
    cost = as_floats(cost, name)
    if cost.shape != shape:
        raise SitesMismatchError(f"{name} must give a matrix of shape {shape}, got {cost.shape}")
    if not np.isfinite(cost).all():
        raise InvalidInputError(f"{name} must be finite")
    return cost


SMALLEST_SHARE = 1e-13
"""First share of the channel that is mixed in; less would vanish in rounding."""


def keep_promise(
    inputs: Sites, outputs: Sites, matrix: FloatArray, *, epsilon: float, measure: Callable[[Channel], float]
) -> tuple[Channel, float]:
    """Return a channel whose measured epsilon is at most `epsilon`, and that epsilon.

    Rows are scaled to sum to 1. If scaling, rounding or the solver's tolerance exceeds epsilon by a little, a
    small share of a channel that ignores its input is mixed in: its rows are equal, so every ratio moves towards
    1.
    """
    matrix = matrix / matrix.sum(axis=1, keepdims=True)
    blind = matrix.max(axis=0) / matrix.max(axis=0).sum()
    channel, share = Channel(inputs, outputs, matrix), 0.0
    # The loop ends: with a share of 1 all rows are equal, and the measured epsilon is 0.
    while (measured := measure(channel)) > epsilon:
        share = min(1.0, max(SMALLEST_SHARE, 4 * share))
        channel = Channel(inputs, outputs, (1 - share) * matrix + share * blind)
    return channel, measured


def moved_to(inputs: Sites, outputs: Sites, start: Channel) -> Channel:
    """Return a channel, moved to other sites: each input and report to the closest one."""
    if not isinstance(start, Channel):
        raise InvalidInputError(f"start must be a Channel, got {type(start).__name__}")
    if start.inputs.xy.shape[1] != inputs.xy.shape[1] or start.outputs.xy.shape[1] != outputs.xy.shape[1]:
        raise SitesMismatchError("start must have sites with as many coordinates as the prior and the outputs")
    if same_sites(start.inputs, inputs) and same_sites(start.outputs, outputs):
        return start
    columns = np.zeros((len(outputs), len(inputs)))
    np.add.at(columns, outputs.nearest(start.outputs.xy), start.matrix[start.inputs.nearest(inputs.xy)].T)
    return Channel(inputs, outputs, columns.T)
