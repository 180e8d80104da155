r"""The least loss of large problems, proven from both sides.

A column k_z(x) = K(z|x) matters near its output; far inputs have an exponentially small tail. Let a(y, x) =
exp(-epsilon d(y, x)). Each output *keeps* the inputs that matter most to it: their entries are variables, with
all constraints k_z(x) >= a(y, x) k_z(y) among them. An input that is not kept but close *follows*: k_z(x) >=
sum_y W_z(x, y) k_z(y) over kept y, a mean of such constraints. For the others k_z(x) >= 0. This gives two
programs that are smaller than the exact one, with a block of kept inputs for each output instead of all.

**Lower bound.** Of any private channel take the kept entries, and let r_x >= 0 be the rest of row x: the sum of
k_z(x) - (W_z k_z)(x) over the outputs that do not keep x. With c_x the least cost of an output that does not keep
x,

1. kept entries of row x + sum_z (W_z k_z)(x) + r_x = 1,
2. loss >= cost . kept entries + sum_z cost_z . (W_z k_z) + sum_x c_x r_x.

So the least value of the right side of 2, over 1, the constraints among kept inputs and r >= 0, is at most the
least loss, and every dual point of it is a lower bound. The price of row x cannot exceed c_x, but the optimal
price of a light input next to a heavy one does. There the neighbour limits r_x. Let E be the event that the output
does not keep x. Privacy of this event is

3. P(E|y) >= a(x, y) P(E|x), where P(E|x) = 1 - (kept entries of row x), and P(E|y) is at most 1 - (what is kept or
   follows of row y at the outputs that keep x),

a linear inequality, added for some pairs x, y. Weights and pairs may be anything: they only improve the bound.

**Upper bound.** The same without r: rows are filled by kept and following entries. The columns are extended to all
inputs, and the matrix is made exactly stochastic, by `extension`. Its epsilon is measured over all pairs
afterwards.

Neighbourhoods grow until the two bounds meet the tolerance. One iteration takes a block per output and one Schur
complement: outputs * size^3 + inputs^3 / 3 operations, instead of outputs * inputs^3.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, eye_array, vstack

from geoind.arrays import FloatArray, IntArray
from geoind.errors import InvalidInputError
from geoind.optimal.blocks import BlockMethod, BlockProgram, Blocks, Rows
from geoind.optimal.cones import nearest_pairs
from geoind.optimal.extension import private_matrix
from geoind.optimal.interior import Iterate, Stopped
from geoind.optimal.lapack import threads_for_blocks
from geoind.parallel import Threads

__all__ = ["Bracket", "Neighbourhoods", "bracket", "memory_of"]

FIRST_RADIUS = 4.5
"""At first each output keeps as many inputs as most outputs have within this distance, in units of 1 / epsilon."""
FIRST_SIZES = 32, 200
"""Limits of that number."""
GROWTH = 1.3, 2.5
"""Limits of the factor by which neighbourhoods grow."""
REACH = 4.0
"""Inputs within so many units of 1 / epsilon of a kept one follow."""
SHARPNESS, SMALLEST_WEIGHT = 40.0, 0.02
"""Weights are (a(y, x) k(y))^SHARPNESS: nearly all to the kept inputs that ask most; smaller ones are dropped."""
NEIGHBOURS = 3
"""Inequalities of the third kind for each input whose price is limited."""
SHUT = 10.0
"""Cost of the rest in the upper program, in units of the largest cost: none is left."""
INNER = 0.2
"""Tolerance of each program, as a share of the tolerance of the bracket."""
HEADROOM = 1e-9
"""The upper program has epsilon * (1 - HEADROOM), because rows are rounded; the lower one has epsilon itself."""


@dataclass(frozen=True)
class Bracket:
    """A private matrix, its bounds, and why the search ended."""

    matrix: FloatArray
    last: Iterate
    size: int
    stopped: Stopped


def memory_of(inputs: int, outputs: int, size: int) -> float:
    """Return the bytes that neighbourhoods of this size take: blocks, Schur complement and dense matrices."""
    size = min(size, inputs)
    return 8.0 * (1.5 * outputs * size**2 + 7 * inputs**2 + 6 * inputs * outputs)


def bracket(
    *,
    mass: FloatArray,
    cost: FloatArray,
    apart: FloatArray,
    reference: IntArray,
    epsilon: float,
    largest_exponent: float,
    start: Bracket,
    offset: float,
    tolerance: float,
    deadline: float,
    memory: float,
    progress: Callable[[Iterate], None] | None,
) -> Bracket:
    """Return a channel and a bound whose relative gap is within the tolerance, or the best in time and memory.

    Parameters
    ----------
    mass : (n,) array
        Prior mass; it decides which inputs are kept.
    cost : (n, outputs) array
        Prior mass times loss, not negative.
    apart : (n, n) array
        Distances of inputs, positive off the diagonal.
    reference : (outputs,) array of int
        The input of least loss for each output.
    epsilon, largest_exponent : float
        Ratios are exp(-epsilon * distance), and not smaller than exp(-largest_exponent).
    start : Bracket
        Any private matrix, with its bounds.
    offset : float
        A constant of the objective.
    tolerance, deadline, memory : float
        Relative gap; time of `perf_counter`; bytes.
    progress : callable, optional
        Called with an `Iterate` after each iteration.
    """
    began = time.perf_counter()
    best = start
    n, outputs = cost.shape
    size = _first_size(epsilon * apart[reference])
    if (needed := memory_of(n, outputs, size)) > memory:
        raise InvalidInputError(
            f"{n} inputs and {outputs} outputs would take {needed / 1e9:.1f} GB of memory, "
            f"more than {memory / 1e9:.1f} GB"
        )

    def tell(bound: float) -> None:
        nonlocal best
        last = replace(
            best.last,
            iteration=best.last.iteration + 1,
            bound=max(best.last.bound, offset + bound),
            seconds=time.perf_counter() - began,
        )
        best = replace(best, last=last)
        if progress is not None:
            progress(last)

    with threads_for_blocks(n) as team:
        while True:
            around = Neighbourhoods(mass, cost, apart, reference, epsilon, largest_exponent, size, team)
            now = time.perf_counter()
            matrix = around.upper(INNER * tolerance, now + (deadline - now) / 2, lambda _: tell(-np.inf))
            objective = offset + float((cost * matrix).sum())
            if objective < best.last.objective:
                best = replace(best, matrix=matrix, last=replace(best.last, objective=objective), size=size)
            enough = best.last.objective - offset - tolerance * max(abs(best.last.objective), best.last.yardstick)
            around.lower(matrix, INNER * tolerance, enough, deadline, tell)
            gap = best.last.gap
            if gap <= tolerance:
                return replace(best, stopped="optimal")
            if time.perf_counter() >= deadline:
                return replace(best, stopped="time limit")
            grown = min(n, int(size * min(max(gap / tolerance, GROWTH[0]), GROWTH[1])))
            if grown == size or memory_of(n, outputs, grown) > memory:
                return replace(best, stopped="stuck" if grown == size else "memory")
            size = grown


class Neighbourhoods:
    """Both programs, for one size of the neighbourhoods.

    Parameters
    ----------
    mass, cost, apart, reference, epsilon, largest_exponent
        As in `bracket`.
    size : int
        Inputs that each output keeps.
    team : Threads
    """

    def __init__(
        self,
        mass: FloatArray,
        cost: FloatArray,
        apart: FloatArray,
        reference: IntArray,
        epsilon: float,
        largest_exponent: float,
        size: int,
        team: Threads,
    ) -> None:
        self.apart, self.epsilon, self.largest_exponent, self.team = apart, epsilon, largest_exponent, team
        self.kept = _kept(mass, epsilon * apart, reference, size)
        self.blocks = _blocks(self.kept, reference)
        self.unit = float(cost.max())
        self.cost = cost / self.unit
        self.entry_cost = self.cost[self.blocks.member, self.blocks.owner]
        self.ratio = self._ratio(epsilon * (1 - HEADROOM))
        self.followers = self._followers(REACH / epsilon)
        least = np.where(self.kept, np.inf, self.cost).min(axis=1)
        self.rest_cost = np.where(np.isfinite(least), least, SHUT)
        self.method: BlockMethod

    def _ratio(self, epsilon: float) -> FloatArray:
        return np.exp(-np.minimum(epsilon * self.apart, self.largest_exponent))

    def _followers(self, reach: float) -> list[IntArray]:
        """Return the inputs that follow at each output."""
        blocks = self.blocks

        def work(start: int, stop: int) -> list[IntArray]:
            found = []
            for j in range(start, stop):
                closest = self.apart[blocks.member[blocks.entries(j)]].min(axis=0)
                found.append(np.flatnonzero((closest <= reach) & ~self.kept[:, j]))
            return found

        return [some for part in self.team.pieces(len(blocks), work) for some in part]

    # ---------------------------------------------------------------------------------------------- the programs
    def _program(
        self, v: FloatArray, rest_cost: FloatArray, pairs: tuple[IntArray, IntArray] | None = None
    ) -> BlockProgram:
        """Return the program whose followers have weights for these columns, with inequalities for some pairs."""
        blocks, n = self.blocks, len(self.apart)
        first, second = pairs if pairs is not None else (np.empty(0, dtype=np.int64),) * 2
        limit = self.ratio[first, second]
        cost = self.entry_cost.copy()

        def work(start: int, stop: int) -> list[Rows]:
            found = []
            for j in range(start, stop):
                here = blocks.entries(j)
                kept, following = blocks.member[here], self.followers[j]
                weights = _weights(self.ratio[following[:, None], kept], v[here])
                cost[here] += self.cost[following, j] @ weights
                matrix = csr_array(vstack([eye_array(len(kept)), csr_array(weights)]))
                number = np.concatenate([kept, following])
                concerned = np.flatnonzero(self.kept[first, j])
                if len(concerned):
                    # Row y, if the output keeps y or y follows, less a(x, y) times row x.
                    place = np.full(n, -1)
                    place[number] = np.arange(len(number))
                    at = place[second[concerned]]
                    other = matrix[np.maximum(at, 0)].multiply((at >= 0)[:, None])
                    own = matrix[place[first[concerned]]].multiply(limit[concerned][:, None])
                    matrix = csr_array(vstack([matrix, other - own]))
                    number = np.concatenate([number, n + concerned])
                found.append(Rows(number, matrix))
            return found

        rows = [some for part in self.team.pieces(len(blocks), work) for some in part]
        return BlockProgram(
            blocks,
            self.ratio,
            cost,
            rows,
            np.concatenate([np.ones(n), 1 - limit]),
            np.concatenate([rest_cost, np.zeros(len(first))]),
        )

    def upper(self, tolerance: float, deadline: float, progress: Callable[[float], None]) -> FloatArray:
        """Return a private matrix of small loss."""
        shut = np.full(len(self.apart), SHUT)

        def settle(v: FloatArray) -> BlockProgram:
            return self._program(v, shut)

        # At first the mass of a row is spread evenly over the outputs that keep it.
        even = 1 / self.kept.sum(axis=1)[self.blocks.member]
        self.method = BlockMethod(settle(even), nearest_pairs(self.apart), self.team)
        self.method.run(
            tolerance,
            enough=-np.inf,
            deadline=deadline,
            settle=settle,
            progress=lambda bound: progress(bound * self.unit),
        )
        return private_matrix(self.blocks, self.method.v, self.ratio, self.cost, self.entry_cost, self.team)

    def lower(
        self,
        matrix: FloatArray,
        tolerance: float,
        enough: float,
        deadline: float,
        progress: Callable[[float], None],
    ) -> None:
        """Raise the lower bound until it is `enough`; `upper` must have been called, and returned `matrix`."""
        # The relaxation must contain every channel of epsilon itself.
        self.ratio = self._ratio(self.epsilon)
        limited = np.flatnonzero(self.method.price[: len(self.apart)] > self.rest_cost)
        # The neighbours whose probability of the event restricts that of x most, in the channel at hand.
        outside = (~self.kept[limited]).astype(np.float64) @ matrix.T / self.ratio[limited]
        outside[np.arange(len(limited)), limited] = np.inf
        count = min(NEIGHBOURS, len(self.apart) - 1)
        second = np.argsort(outside, axis=1)[:, :count].ravel()
        self.method.reopen(self._program(self.method.v, self.rest_cost, (np.repeat(limited, count), second)))
        self.method.run(
            tolerance,
            enough=enough / self.unit,
            deadline=deadline,
            progress=lambda bound: progress(bound * self.unit),
        )


def _first_size(exponent: FloatArray) -> int:
    """Return the size of the first neighbourhoods, from epsilon * distance of outputs and inputs."""
    within = int(np.median((exponent <= FIRST_RADIUS).sum(axis=1)))
    return min(len(exponent.T), max(FIRST_SIZES[0], min(FIRST_SIZES[1], within)))


def _kept(mass: FloatArray, exponent: FloatArray, reference: IntArray, size: int) -> npt.NDArray[np.bool_]:
    """Return which inputs each output keeps.

    The inputs with the largest mass * exp(-epsilon * distance), about; heavy inputs are kept from farther away.
    """
    n, outputs = len(mass), len(reference)
    rank = exponent[:, reference] - np.log1p(mass * n)[:, None]
    rank[reference, np.arange(outputs)] = -np.inf
    kept = np.zeros((n, outputs), dtype=bool)
    np.put_along_axis(kept, np.argpartition(rank, size - 1, axis=0)[:size], True, axis=0)
    # Every input is kept somewhere.
    kept[np.arange(n), rank.argmin(axis=1)] = True
    return kept


def _blocks(kept: npt.NDArray[np.bool_], reference: IntArray) -> Blocks:
    output, member = np.nonzero(kept.T)
    start = np.searchsorted(output, np.arange(kept.shape[1] + 1))
    before = np.cumsum(kept, axis=0)[reference, np.arange(kept.shape[1])] - 1
    return Blocks(member, start, start[:-1] + before)


def _weights(ratio: FloatArray, column: FloatArray) -> FloatArray:
    """Return the weights of followers (rows) for kept inputs (columns): shares of sum 1, times the ratio."""
    asked = ratio * column
    share = (asked / asked.max(axis=1, keepdims=True)) ** SHARPNESS
    share[share < SMALLEST_WEIGHT] = 0.0
    share /= share.sum(axis=1, keepdims=True)
    return np.asarray(share * ratio)
