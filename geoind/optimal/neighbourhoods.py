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

One threshold for all pairs of inputs and outputs decides which are kept. Its size on average depends on the
tolerance, and grows until the two bounds meet it. One iteration takes a block per output and one Schur complement,
which is a band: outputs * size^3 + inputs * width^2 operations, instead of outputs * inputs^3.
"""

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, vstack

from geoind.arrays import FloatArray, IntArray
from geoind.errors import InvalidInputError
from geoind.optimal.block_program import BlockProgram, Blocks
from geoind.optimal.blocks import BlockMethod
from geoind.optimal.cones import nearest_pairs
from geoind.optimal.extension import private_matrix
from geoind.optimal.interior import Solution
from geoind.optimal.lapack import threads_for_blocks
from geoind.parallel import Threads

__all__ = ["bracket", "memory_of"]

FIRST_RADIUS = 4.5
"""At first outputs keep as many inputs, on average, as most have within this distance, in units of 1 / epsilon.
This is for a tolerance of 0.02. What is left out falls like exp(-distance): others add ln(0.02 / tolerance)."""
FIRST_SIZES = 32, 200
"""Limits of that number."""
LEAST_SIZE, MOST_TIMES = 9, 3
"""Every output keeps at least so many inputs, however light they are, and at most so many times the average."""
NEAR = 1.45
"""Pairs within so many times the smallest distance are active from the beginning: on a grid, eight neighbours."""
GROWTH = 1.3, 2.5
"""Limits of the factor by which neighbourhoods grow."""
HEAVY = 1.5
"""Inputs are kept up to a distance, in units of 1 / epsilon, that grows with this many logarithms of mass."""
REACH = 7.0
"""Inputs within so many units of 1 / epsilon of a kept one follow."""
SHARPNESS, SMALLEST_WEIGHT = 40.0, 0.02
"""Weights are (a(y, x) k(y))^SHARPNESS: nearly all to the kept inputs that ask most; smaller ones are dropped."""
NEIGHBOURS = 3
"""Inequalities of the third kind for each input whose price is limited."""
EQUATIONS = 6000
"""Most rows of the Schur complement; but there may always be a third as many inequalities as inputs."""
SHUT = 10.0
"""Cost of the rest in the upper program, in units of the largest cost: none is left."""
LAST = 0.5
"""The lower program of the largest neighbourhoods that fit into memory is solved to this part of its tolerance."""
SHARE = 0.7
"""Part of the remaining time for the upper program, which takes two to four times as many iterations."""
INNER_UPPER, INNER_LOWER = 0.4, 0.2
"""Tolerance of each program, as a share of that of the bracket. The last step of the upper one halves its gap."""
HEADROOM = 1e-9
"""The upper program has epsilon * (1 - HEADROOM), because rows are rounded; that of the lower is
epsilon * (1 + HEADROOM), because ratios are."""


def memory_of(inputs: int, outputs: int, size: int) -> float:
    """Return the bytes that neighbourhoods of this size take: blocks, band and dense matrices."""
    size = min(size, inputs)
    entries, dense = outputs * size, inputs * max(inputs, outputs)
    # Factors and inverses; active pairs with what a step computes of them, followers. Dense: ratios, costs, the
    # best matrix, and what is temporary.
    return 8.0 * (2.2 * entries * size + 400 * entries + 3.4 * dense)


def bracket(
    *,
    mass: FloatArray,
    cost: FloatArray,
    distances: Callable[[], FloatArray],
    along: FloatArray,
    reference: IntArray,
    epsilon: float,
    largest_exponent: float,
    start: Solution,
    seed: FloatArray | None,
    offset: float,
    tolerance: float,
    deadline: float,
    memory: float,
    progress: Callable[[Solution], None],
) -> Solution:
    """Return a channel and a bound whose relative gap is within the tolerance, or the best in time and memory.

    Parameters
    ----------
    mass : (n,) array
        Prior mass; it decides which inputs are kept.
    cost : (n, outputs) array
        Prior mass times loss, not negative; it is scaled in place.
    distances : callable
        Returns a new (n, n) array of the distances of inputs, positive off the diagonal, which is overwritten.
    along : (n,) array
        A coordinate of the inputs. Any numbers will do; the time is least if few inputs are between close ones.
    reference : (outputs,) array of int
        The input of least loss for each output.
    epsilon, largest_exponent : float
        Ratios are exp(-epsilon * distance), and not smaller than exp(-largest_exponent).
    start : Solution
        Any private matrix, with its bounds.
    seed : (n, outputs) array, optional
        A channel from which the first columns are taken; it need not be private.
    offset : float
        A constant of the objective.
    tolerance, deadline, memory : float
        Relative gap; time of `perf_counter`; bytes.
    progress : callable
        Called with the best channel before each size of the neighbourhoods and after each iteration.
    """
    began = time.perf_counter()
    best = start
    n, outputs = cost.shape
    size = _first_size(distances(), reference, (FIRST_RADIUS + np.log(0.02 / tolerance)) / epsilon)
    unit = float(cost.max())
    cost /= unit
    while size > FIRST_SIZES[0] and memory_of(n, outputs, size) > memory:
        size -= 1
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
        progress(best)

    with threads_for_blocks(n) as team:
        while True:
            best = replace(best, last=replace(best.last, memory=memory_of(n, outputs, size)))
            progress(best)
            around = _Neighbourhoods(
                mass, cost, distances(), reference, epsilon, largest_exponent, size, along, team
            )
            now = time.perf_counter()
            until = now + SHARE * (deadline - now)
            matrix, report = around.upper(seed, INNER_UPPER * tolerance, until, lambda _: tell(-np.inf))
            objective = offset + unit * float(np.einsum("xz,xz->", cost, matrix))
            if objective < best.last.objective:
                method = f"neighbourhoods of {size} inputs"
                last = replace(best.last, objective=objective)
                kept = around.blocks, epsilon * (1 - HEADROOM), report
                best = replace(best, matrix=matrix, last=last, method=method, kept=kept)
            enough = best.last.objective - offset - tolerance * max(abs(best.last.objective), best.last.yardstick)
            inner = INNER_LOWER * tolerance
            if size == n or memory_of(n, outputs, int(size * GROWTH[0])) > memory:
                inner *= LAST
            around.lower(matrix, inner, enough / unit, deadline, lambda bound: tell(unit * bound))
            gap = best.last.gap
            if gap <= tolerance:
                return replace(best, stopped="optimal")
            if time.perf_counter() >= deadline:
                return replace(best, stopped="time limit")
            grown = min(n, int(size * min(max(gap / tolerance, GROWTH[0]), GROWTH[1])))
            if grown == size or memory_of(n, outputs, grown) > memory:
                return replace(best, stopped="stuck" if grown == size else "memory")
            size, seed = grown, best.matrix
            # Its memory is free before the next ones take theirs.
            del around


class _Neighbourhoods:
    """Both programs, for one size of the neighbourhoods.

    Parameters
    ----------
    mass, cost, reference, epsilon, largest_exponent
        As in `bracket`; the largest cost is 1.
    apart : (n, n) array
        The distances; overwritten by ratios.
    size : int
        Inputs that an output keeps on average.
    along : (n,) array
        As in `bracket`.
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
        along: FloatArray,
        team: Threads,
    ) -> None:
        self.along, self.team = along, team
        self.kept = _kept(mass, epsilon, apart, reference, size)
        self.blocks, self.cost = _blocks(self.kept, reference), cost
        self.near = nearest_pairs(apart, NEAR)
        self.followers = self._followers(apart, REACH / epsilon)
        self.first = np.exp(-epsilon / 2 * apart[self.blocks.member, reference[self.blocks.owner]])
        self.entry_cost = self.cost[self.blocks.member, self.blocks.owner]
        least = np.array([row[~kept].min(initial=np.inf) for row, kept in zip(cost, self.kept, strict=True)])
        self.rest_cost = np.where(np.isfinite(least), least, SHUT)
        # In place: for a city each matrix of all pairs takes a gigabyte.
        self.ratio = np.multiply(apart, -epsilon * (1 - HEADROOM), out=apart)
        np.maximum(self.ratio, -largest_exponent, out=self.ratio)
        np.exp(self.ratio, out=self.ratio)
        self.method: BlockMethod

    def _followers(self, apart: FloatArray, reach: float) -> list[IntArray]:
        """Return the inputs that follow at each output."""
        blocks = self.blocks

        def work(start: int, stop: int) -> list[IntArray]:
            found = []
            for j in range(start, stop):
                closest = apart[blocks.member[blocks.entries(j)]].min(axis=0)
                found.append(np.flatnonzero((closest <= reach) & ~self.kept[:, j]))
            return found

        return [some for part in self.team.pieces(len(blocks), work) for some in part]

    # ---------------------------------------------------------------------------------------------- the programs
    def _program(
        self, v: FloatArray, rest_cost: FloatArray, pairs: tuple[IntArray, IntArray] | None = None
    ) -> BlockProgram:
        """Return the program whose followers have weights for these columns, with inequalities for some pairs."""
        blocks, n = self.blocks, len(self.ratio)
        first, second = pairs if pairs is not None else (np.empty(0, dtype=np.int64),) * 2
        limit = self.ratio[first, second]

        def work(start: int, stop: int) -> list[tuple[IntArray, IntArray, FloatArray]]:
            found = []
            for j in range(start, stop):
                here, following = blocks.entries(j), self.followers[j]
                row, column, value = _weights(self.ratio[following[:, None], blocks.member[here]], v[here])
                found.append((following[row], here.start + column, value))
            return found

        parts = [some for part in self.team.pieces(len(blocks), work) for some in part]
        row, column, value = (np.concatenate(some) for some in zip(*parts, strict=True))
        shape = n, len(v)
        cost = self.entry_cost + np.bincount(column, self.cost[row, blocks.owner[column]] * value, len(v))
        kept = csr_array((np.ones(len(v)), (blocks.member, np.arange(len(v)))), shape=shape)
        equations = kept + csr_array((value, (row, column)), shape=shape)
        if len(first):
            # Row y at the outputs that keep x, less a(x, y) times row x.
            other = equations[second].tocoo()
            other.data = other.data * self.kept[first[other.row], blocks.owner[other.col]]
            equations = vstack([equations, csr_array(other) - kept[first].multiply(limit[:, None])])
        equations = csr_array(equations)
        equations.eliminate_zeros()
        # Half the memory, and faster products.
        equations.indices, equations.indptr = (
            some.astype(np.int32) for some in (equations.indices, equations.indptr)
        )
        return BlockProgram(
            blocks,
            self.ratio,
            cost,
            equations,
            np.concatenate([np.ones(n), 1 - limit]),
            np.concatenate([rest_cost, np.zeros(len(first))]),
            np.concatenate([self.along, self.along[first]]),
        )

    def upper(
        self, seed: FloatArray | None, tolerance: float, deadline: float, progress: Callable[[float], None]
    ) -> tuple[FloatArray, int]:
        """Return a private matrix of small loss, and its output for the rest of each row; a seed is a start."""
        shut = np.full(len(self.ratio), SHUT)

        def settle(v: FloatArray) -> BlockProgram:
            return self._program(v, shut)

        # Without a seed the exponential mechanism, which satisfies every pair strictly at half of epsilon.
        first = self.first / np.bincount(self.blocks.member, self.first)[self.blocks.member]
        if seed is not None:
            first = (first + seed[self.blocks.member, self.blocks.owner]) / 2
        self.method = BlockMethod(settle(first), self.near, first, self.team)
        self.method.run(
            tolerance,
            enough=-np.inf,
            deadline=deadline,
            settle=settle,
            progress=progress,
        )
        return private_matrix(
            self.blocks, self.method.columns(settle), self.ratio, self.cost, self.entry_cost, self.team
        )

    def lower(
        self,
        matrix: FloatArray,
        tolerance: float,
        enough: float,
        deadline: float,
        progress: Callable[[float], None],
    ) -> None:
        """Raise the lower bound until it is `enough`; `upper` must have been called, and returned `matrix`."""
        # The relaxation contains every channel of epsilon * (1 + HEADROOM).
        np.power(self.ratio, (1 + HEADROOM) / (1 - HEADROOM), out=self.ratio)
        n, count = len(self.ratio), min(NEIGHBOURS, len(self.ratio) - 1)
        excess = self.method.price[:n] - self.rest_cost
        most = max(n // 3, min(n, EQUATIONS - n)) // max(count, 1)
        limited = np.argsort(-excess)[: min(most, int((excess > 0).sum()))]
        # The neighbours whose probability of the event restricts that of x most, in the channel at hand.
        outside = (~self.kept[limited]).astype(np.float64) @ matrix.T / self.ratio[limited]
        outside[np.arange(len(limited)), limited] = np.inf
        second = np.argsort(outside, axis=1)[:, :count].ravel()
        self.method.reopen(self._program(self.method.v, self.rest_cost, (np.repeat(limited, count), second)))
        self.method.run(
            tolerance,
            enough=enough,
            deadline=deadline,
            progress=progress,
        )


def _first_size(apart: FloatArray, reference: IntArray, radius: float) -> int:
    """Return the size of the first neighbourhoods, from the distances of inputs."""
    within = int(np.median((apart <= radius).sum(axis=0)[reference]))
    return min(len(apart), max(FIRST_SIZES[0], min(FIRST_SIZES[1], within)))


def _kept(
    mass: FloatArray, epsilon: float, apart: FloatArray, reference: IntArray, size: int
) -> npt.NDArray[np.bool_]:
    """Return which inputs each output keeps: `size` on average.

    The pairs with the largest mass^HEAVY * exp(-epsilon * distance), about. Heavy inputs are kept from farther
    away, and outputs in empty areas keep few.
    """
    n, outputs = len(mass), len(reference)
    rank = apart[:, reference].astype(np.float32)
    rank *= np.float32(epsilon)
    rank -= HEAVY * np.log1p(mass * n).astype(np.float32)[:, None]
    rank[reference, np.arange(outputs)] = -np.inf
    last = size * outputs - 1
    limit = np.partition(rank, last, axis=None)[last]
    kept = np.empty((n, outputs), dtype=bool)
    least, most = min(LEAST_SIZE, n), min(MOST_TIMES * size, n)
    for j, column in enumerate(rank.T):
        low, high = np.partition(column, (least - 1, most - 1))[[least - 1, most - 1]]
        kept[:, j] = column <= min(max(limit, low), high)
    # Every input is kept somewhere.
    kept[np.arange(n), rank.argmin(axis=1)] = True
    return kept


def _blocks(kept: npt.NDArray[np.bool_], reference: IntArray) -> Blocks:
    output, member = np.nonzero(kept.T)
    start = np.searchsorted(output, np.arange(kept.shape[1] + 1))
    before = np.cumsum(kept, axis=0)[reference, np.arange(kept.shape[1])] - 1
    return Blocks(member, start, start[:-1] + before)


def _weights(ratio: FloatArray, column: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the weights of followers (rows) for kept inputs (columns), where not 0: share times ratio."""
    asked = ratio * column
    asked /= asked.max(axis=1, keepdims=True)
    row, kept = np.nonzero(asked >= SMALLEST_WEIGHT ** (1 / SHARPNESS))
    share = asked[row, kept] ** SHARPNESS
    return row, kept, share / np.bincount(row, share)[row] * ratio[row, kept]
