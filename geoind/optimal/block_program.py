"""A linear program over columns that are defined on some inputs only, and its constraints."""

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array, csr_array

from geoind.arrays import FloatArray, IntArray

__all__ = ["BlockProgram", "Blocks", "Pairs"]

WITHIN_BAND = 0.97
"""Share of the entries that are within half the band's width of their output's reference."""

PIECES = 8
"""Pieces of a sparse matrix, which several threads multiply."""

Kind = TypeVar("Kind", bound=np.generic)


@dataclass(frozen=True)
class Blocks:
    """The entries of all columns, output after output.

    Parameters
    ----------
    member : (entries,) array of int
        The input of each entry, increasing within an output.
    start : (outputs + 1,) array of int
        The first entry of each output.
    reference : (outputs,) array of int
        The entry of each output where its column is large.
    """

    member: IntArray
    start: IntArray
    reference: IntArray
    size: IntArray = field(init=False)
    owner: IntArray = field(init=False)
    corner: IntArray = field(init=False)

    def __post_init__(self) -> None:
        size = np.diff(self.start)
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "owner", np.repeat(np.arange(len(size)), size))
        # A pair of entries of an output is a cell of its square matrix; all cells have consecutive numbers.
        object.__setattr__(self, "corner", np.concatenate([[0], np.cumsum(size**2)]))

    def __len__(self) -> int:
        return len(self.size)

    def entries(self, j: int) -> slice:
        """Return the entries of an output."""
        return slice(self.start[j], self.start[j + 1])

    def square(self, cells: npt.NDArray[Kind], j: int) -> npt.NDArray[Kind]:
        """Return an output's square matrix from an array with a value for each cell."""
        return cells[self.corner[j] : self.corner[j + 1]].reshape(self.size[j], self.size[j])


@dataclass(frozen=True)
class BlockProgram:
    """Minimise cost . v + rest_cost . rest, where equations @ v + rest = right, rest >= 0, and v is in its cones.

    Parameters
    ----------
    blocks : Blocks
    ratio : (n, n) array
        In each column v(k) >= ratio[i, k] v(i) for all pairs of its entries.
    cost : (entries,) array
    equations : (equations, entries) sparse array
        The first n equations are those of the inputs: their entries are not negative, and 1 at the entries of the
        input itself.
    right, rest_cost : (equations,) array
    along : (equations,) array
        A coordinate of the input to which each equation belongs. The Schur complement is a band in this order.
    """

    blocks: Blocks
    ratio: FloatArray
    cost: FloatArray
    equations: csr_array
    right: FloatArray
    rest_cost: FloatArray
    along: FloatArray

    @cached_property
    def order(self) -> IntArray:
        """The place of each equation on the diagonal of the Schur complement."""
        order = np.empty(len(self.along), dtype=np.int64)
        order[np.argsort(self.along, kind="stable")] = np.arange(len(order))
        return order

    @cached_property
    def width(self) -> int:
        """The width of that band: it contains nearly all pairs of entries of each output."""
        blocks = self.blocks
        centre = self.order[blocks.member[blocks.reference]]
        apart = np.abs(self.order[blocks.member] - centre[blocks.owner])
        return 2 * int(np.quantile(apart, WITHIN_BAND))

    @property
    def adjoint(self) -> csc_array:
        """The transpose of the equations, which shares their memory."""
        return self.equations.T

    @cached_property
    def pieces(self) -> tuple[list[csr_array], list[csr_array]]:
        """The equations and their transpose as pieces of rows in single precision, for several threads."""
        return _pieces(self.equations), _pieces(csr_array(self.adjoint))

    def extra(self, j: int) -> tuple[IntArray, FloatArray]:
        """Return the numbers of the equations after the first n that concern an output, and their entries."""
        number, cell, value = self._extra[j]
        part = np.zeros((len(number), self.blocks.size[j]))
        part.reshape(-1)[cell] = value
        return number, part

    @cached_property
    def _extra(self) -> list[tuple[IntArray, IntArray, FloatArray]]:
        """For each output these numbers, and the cells of its entries that are not 0, which are few."""
        blocks, n = self.blocks, len(self.ratio)
        matrix = self.equations[n:].tocsc()
        found = []
        for j in range(len(blocks)):
            start = matrix.indptr[blocks.start[j] : blocks.start[j + 1] + 1]
            here = slice(start[0], start[-1])
            row, place = np.unique(matrix.indices[here], return_inverse=True)
            column = np.repeat(np.arange(blocks.size[j]), np.diff(start))
            found.append((n + row.astype(np.int64), place * blocks.size[j] + column, matrix.data[here]))
        return found


def _pieces(matrix: csr_array) -> list[csr_array]:
    """Return consecutive rows with about the same number of entries."""
    edges = np.searchsorted(matrix.indptr, np.linspace(0, matrix.nnz, PIECES + 1))
    edges[0], edges[-1] = 0, matrix.shape[0]
    single = matrix.astype(np.float32)
    return [single[first:last] for first, last in pairwise(edges.tolist())]


class Pairs:
    """The constraints of the Newton system, as sorted cells of the blocks.

    Parameters
    ----------
    program : BlockProgram
    cells : (pairs,) array of int
    a : (pairs,) array, optional
        The ratios of the pairs, if they are known.
    """

    def __init__(self, program: BlockProgram, cells: IntArray, a: FloatArray | None = None) -> None:
        blocks = program.blocks
        self.cells, self.entries = cells, len(blocks.member)
        self.start = np.searchsorted(cells, blocks.corner)
        self.owner = np.repeat(np.arange(len(blocks)), np.diff(self.start))
        size = blocks.size[self.owner]
        giver, taker = np.divmod(cells - blocks.corner[self.owner], size)
        self.source, self.target = blocks.start[self.owner] + giver, blocks.start[self.owner] + taker
        if a is None:
            a = program.ratio[blocks.member[self.source], blocks.member[self.target]]
        self.a = a
        # Only lower triangles are factored.
        self.lower = blocks.corner[self.owner] + np.maximum(giver, taker) * size + np.minimum(giver, taker)
        self.first = np.flatnonzero(np.diff(self.source, prepend=-1))

    def __len__(self) -> int:
        return len(self.cells)

    def slack(self, v: FloatArray) -> FloatArray:
        """Return v(k) - a v(i) for each pair."""
        return np.asarray(v[self.target] - self.a * v[self.source])

    def adjoint(self, multipliers: FloatArray) -> FloatArray:
        """Return the sum of the multipliers on each entry."""
        return np.asarray(self._gained(multipliers) - self._given(self.a * multipliers))

    def diagonal(self, stiffness: FloatArray) -> FloatArray:
        """Return the diagonal of B' D B, with the constraints B and their stiffness D."""
        return self._gained(stiffness) + self._given(self.a**2 * stiffness)

    def _gained(self, values: FloatArray) -> FloatArray:
        """Return the sums of the pairs' values by their targets."""
        return np.asarray(np.bincount(self.target, values, self.entries), dtype=np.float64)

    def _given(self, values: FloatArray) -> FloatArray:
        """Return the sums of the pairs' values by their sources, by which pairs are sorted."""
        sums = np.zeros(self.entries)
        sums[self.source[self.first]] = np.add.reduceat(values, self.first)
        return sums
