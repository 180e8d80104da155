"""k-anonymity by dummies, for comparison: the truth among decoys. It is *not* geo-indistinguishable."""

import math
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, IntArray, as_count, as_points
from geoind.channels.priors import Prior
from geoind.channels.rows import as_grid, reach_of_rows
from geoind.distances import Distance, euclidean
from geoind.errors import InvalidInputError, SitesMismatchError
from geoind.keys import Words
from geoind.mechanisms.protocol import RandomnessLike, Space, as_randomness
from geoind.space.sites import as_plane, same_sites

__all__ = ["Dummies"]


@dataclass(frozen=True, eq=False)
class Dummies:
    """The closest site of the truth together with k - 1 random decoys, in random order.

    **Not geo-indistinguishable**: the truth is always among the k, so a set without x excludes x, and `epsilon`
    is infinite. An adversary with a prior gives member j of a set the weight prior(j) / decoys(j): decoys
    protect only as far as their distribution resembles the prior.

    Parameters
    ----------
    decoys : Prior
        The distribution of decoys, which are drawn independently of the truth.
    k : int
        Size of a set.

    Examples
    --------
    >>> from geoind import Grid
    >>> grid = Grid(0, 0, cell=100, columns=9, rows=9)
    >>> hidden = Dummies(Prior.uniform(grid), k=5)
    >>> sets = hidden.sample_sets([[410, 395]])
    >>> sets.shape, bool((sets == 400).all(axis=2).any())
    ((1, 5, 2), True)
    """

    decoys: Prior
    _: KW_ONLY
    k: int

    space: ClassVar[Space] = "xy"

    def __post_init__(self) -> None:
        if not isinstance(self.decoys, Prior):
            raise InvalidInputError(f"decoys must be a Prior, got {type(self.decoys).__name__}")
        as_plane(self.decoys.sites, "the decoys' places")
        object.__setattr__(self, "k", as_count(self.k, "k"))

    @property
    def epsilon(self) -> float:
        """Infinite, unless there is one site only."""
        return math.inf if len(self.decoys) > 1 else 0.0

    def reach(self, confidence: float) -> float:
        """Return the metres within which a random member lies of the truth with at least this probability.

        Defined for decoys on a `Grid`.
        """
        sites = self.decoys.sites
        rows = np.eye(len(sites)) / self.k + (1 - 1 / self.k) * self.decoys.mass
        return reach_of_rows(rows, sites, sites, confidence)

    def check_inside(self, points: FloatArray) -> None:
        """Raise an error for truths outside the decoys' grid."""
        as_grid(self.decoys.sites).check_inside(points)

    def sample_sets(self, points: ArrayLike, *, rng: RandomnessLike = None) -> FloatArray:
        """Return for each of the (n, 2) points the k places that are sent, (n, k, 2)."""
        return self.decoys.sites.xy[self._members(as_points(points), rng)]

    def sample(self, points: ArrayLike, *, rng: RandomnessLike = None) -> FloatArray:
        """Return one random member of each set, as received by a service that is queried for one location."""
        return self.decoys.sites.xy[self._members(as_points(points), rng)[:, 0]]

    def posterior(self, members: ArrayLike, prior: Prior) -> FloatArray:
        """Return the probability that each member of each set is the truth, (n, k), for site numbers (n, k).

        Where the prior of every member is zero, all are equally likely.

        Examples
        --------
        >>> from geoind import Grid
        >>> street = Grid(0, 0, cell=100, columns=3, rows=1)
        >>> hidden = Dummies(Prior.uniform(street), k=2)
        >>> hidden.posterior([[0, 1]], Prior(street, [0.6, 0.2, 0.2]))
        array([[0.75, 0.25]])
        """
        if not same_sites(prior.sites, self.decoys.sites):
            raise SitesMismatchError("the prior's sites must be those of the decoys")
        numbers = np.asarray(members)
        # A member with no probability as a decoy is the truth.
        certain = self.decoys.mass[numbers] == 0
        weights = prior.mass[numbers] / np.where(certain, 1.0, self.decoys.mass[numbers])
        weights = np.where(certain.any(axis=1, keepdims=True), certain, weights)
        total = weights.sum(axis=1, keepdims=True)
        shares = np.where(total > 0, weights / np.where(total > 0, total, 1.0), 1 / numbers.shape[1])
        return np.asarray(shares)

    def adversary_error(
        self, prior: Prior, *, loss: Distance = euclidean, draws: int = 10_000, rng: RandomnessLike = None
    ) -> float:
        """Return the mean loss of the best guess among all sites after a set, over simulated persons.

        Examples
        --------
        >>> from geoind import Grid
        >>> street = Grid(0, 0, cell=100, columns=2, rows=1)
        >>> Dummies(Prior.uniform(street), k=1).adversary_error(Prior.uniform(street))
        0.0
        """
        count = as_count(draws, "draws")
        blank = np.zeros((count, 2))
        words = as_randomness(rng, count).words(blank, 2 * self.k + 1, f"Dummies draws {self.k}")
        members = self._mix(_draw(prior.mass, words[:, 0]), words[:, 1:])
        weights = self.posterior(members, prior)
        xy = prior.sites.xy
        table = loss(xy, xy)
        total = 0.0
        for block in np.array_split(np.arange(count), 1 + count // 2000):
            total += float(np.einsum("nk,nkg->ng", weights[block], table[members[block]]).min(axis=1).sum())
        return total / count

    def _members(self, points: FloatArray, rng: RandomnessLike) -> IntArray:
        truth = self.decoys.sites.nearest(points)
        words = as_randomness(rng, len(points)).words(self.decoys.sites.xy[truth], 2 * self.k, f"Dummies {self.k}")
        return self._mix(truth, words)

    def _mix(self, truth: IntArray, words: Words) -> IntArray:
        """Return the truth and k - 1 decoys in random order, from 2 k words each."""
        members = _draw(self.decoys.mass, words[:, : self.k])
        members[:, 0] = truth
        return np.take_along_axis(members, np.argsort(words[:, self.k :], axis=1), axis=1)


def _draw(mass: FloatArray, words: Words) -> IntArray:
    """Return a site number for each word."""
    cumulative = np.cumsum(mass)
    uniform = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return np.searchsorted(cumulative / cumulative[-1], uniform, side="right").astype(np.int64)
