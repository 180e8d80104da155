"""The Newton system of `BlockMethod`: one block per output, and one Schur complement of the equations.

Only the entries of the blocks, and of these the ones near their output, are added up to a Schur complement, which
is a band. The others and what follows them, several times as many pairs of small weight, are left to conjugate
gradients, for which the band is the preconditioner. Their error is one of the row sums only: for any change of the
prices the columns satisfy the dual equations.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from geoind.arrays import FloatArray, IntArray
from geoind.optimal import lapack
from geoind.optimal.bands import Band, lower_triangle
from geoind.optimal.block_program import BlockProgram, Blocks, Pairs
from geoind.optimal.newton import factor_block
from geoind.parallel import Threads

__all__ = ["BlockNewton"]

GRADIENTS = 50
"""Most conjugate gradients for one direction."""


class BlockNewton:
    """Solve H dv - A' dprice = right, (1 / softness) drest - dprice = rest_right, A dv + drest = residual.

    A are the equations of a program. H = B' D B, with the constraints B of its active pairs and their stiffness D.

    Parameters
    ----------
    blocks : Blocks
    team : Threads
    """

    def __init__(self, blocks: Blocks, team: Threads) -> None:
        self.blocks, self.team = blocks, team
        self.factors, self.inverses = np.empty(blocks.corner[-1]), _Inverses(blocks, team)
        self.v = self.scale = self.softness = np.empty(0)
        self.spare = np.empty(len(blocks))
        self.solve_schur: Callable[[FloatArray], FloatArray]

    def factor(
        self, program: BlockProgram, pairs: Pairs, v: FloatArray, stiffness: FloatArray, softness: FloatArray
    ) -> None:
        """Factor the blocks and the Schur complement; the basis of a block is explained in `newton`."""
        blocks = self.blocks
        diagonal = pairs.diagonal(stiffness) * v * v
        coupling = -pairs.a * stiffness * v[pairs.source] * v[pairs.target]
        at = blocks.reference[pairs.owner]
        coupling[(pairs.source == at) | (pairs.target == at)] = 0.0
        pull = pairs.adjoint(stiffness * pairs.slack(v)) * v
        gap = np.bincount(blocks.owner, pull, len(blocks))
        pull[blocks.reference] = 0.0
        self.v, self.scale, self.softness = v, np.ones_like(v), softness
        schur = Band(program.order, program.width)

        def work(start: int, stop: int) -> None:
            for j in range(start, stop):
                here, some = blocks.entries(j), slice(pairs.start[j], pairs.start[j + 1])
                reference = int(blocks.reference[j] - blocks.start[j])
                block = blocks.square(self.factors, j)
                cells = pairs.lower[some] - blocks.corner[j]
                block[:] = np.bincount(cells, coupling[some], block.size).reshape(block.shape)
                factor_block(block, diagonal[here], reference)
                shift = lapack.solve(block, pull[here])
                self.scale[here] -= shift
                # Positive in exact arithmetic; the lower limit keeps it positive in doubles.
                self.spare[j] = max(gap[j] - pull[here] @ shift, 1e-6 * abs(gap[j]))
                lower = lapack.inverse(block)
                inverse = np.where(lower_triangle(len(lower)), lower, lower.T)
                inverse[reference, reference] = 0.0
                inverse *= v[here][:, None]
                inverse *= v[here]
                ray = v[here] * self.scale[here] / np.sqrt(self.spare[j])
                inverse += np.outer(ray, ray)
                self.inverses[j] = inverse
                number, share = blocks.member[here], inverse
                more, part = program.extra(j)
                if len(more):
                    cross = part @ inverse
                    share = np.block([[inverse, cross.T], [cross, cross @ part.T]])
                    number = np.concatenate([number, more])
                schur.add(number, blocks.member[blocks.reference[j]], share)

        self.team.pieces(len(blocks), work)
        schur.cells[program.order, 0] += softness
        self.solve_schur = schur.factor()

    def solve(
        self,
        program: BlockProgram,
        right: FloatArray,
        rest_right: FloatArray,
        residual: FloatArray,
        defect: float,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return (dv, drest, dprice) with the last factors; the equations may be others by now.

        The residual is met up to this relative defect, in the norm of the preconditioner.
        """
        step, rest = self._apply_inverse(right), self.softness * rest_right
        price = self._prices(program, residual - program.equations @ step - rest, defect)
        # In double precision: whatever the error of the prices, the dual equations are satisfied.
        step += self._apply_inverse(program.adjoint @ price)
        return step, rest + self.softness * price, price

    def _apply_inverse(self, right: FloatArray) -> FloatArray:
        """Return H^-1 right, block by block."""
        blocks = self.blocks
        scaled = right * self.v
        along = np.bincount(blocks.owner, self.scale * scaled, len(blocks)) / self.spare
        scaled[blocks.reference] = 0.0
        result = np.empty_like(scaled)

        def back_substitute(start: int, stop: int) -> None:
            for j in range(start, stop):
                here = blocks.entries(j)
                result[here] = lapack.solve(blocks.square(self.factors, j), scaled[here])

        self.team.pieces(len(blocks), back_substitute)
        return np.asarray((result + along[blocks.owner] * self.scale) * self.v)

    def _prices(self, program: BlockProgram, right: FloatArray, most: float) -> FloatArray:
        """Return the solution of (A H^-1 A' + softness) price = right by conjugate gradients."""
        (equations, adjoint), price, defect = program.pieces, np.zeros_like(right), right
        scaled = direction = self.solve_schur(defect)
        size = first = float(defect @ scaled)
        for _ in range(GRADIENTS):
            if not size > most**2 * first:
                break
            along = self.inverses @ self._product(adjoint, direction)
            image = self._product(equations, along) + self.softness * direction
            length = size / float(direction @ image)
            price = price + length * direction
            defect = defect - length * image
            scaled = self.solve_schur(defect)
            before, size = size, float(defect @ scaled)
            direction = scaled + size / before * direction
        return price

    def _product(self, pieces: list[csr_array], right: FloatArray) -> FloatArray:
        """Return the product of a matrix in pieces, in single precision."""
        single = right.astype(np.float32)
        return np.concatenate(list(self.team.each(lambda piece: piece @ single, pieces))).astype(np.float64)


class _Inverses:
    """The inverses of all blocks in single precision, for conjugate gradients.

    Blocks of about the same size are stacked, with zeros where they are smaller: one product of stacks takes a
    quarter of the time of two substitutions per block.
    """

    STEP = 16

    def __init__(self, blocks: Blocks, team: Threads) -> None:
        self.entries, self.team = len(blocks.member), team
        width = -(-blocks.size // self.STEP) * self.STEP
        self.where = np.empty((len(blocks), 2), dtype=np.int64)
        self.stacks: list[npt.NDArray[np.float32]] = []
        # The last number is a place that holds 0.
        self.places: list[IntArray] = []
        for number, size in enumerate(np.unique(width)):
            some = np.flatnonzero(width == size)
            self.where[some, 0], self.where[some, 1] = number, np.arange(len(some))
            place = blocks.start[some][:, None] + np.arange(size)
            self.places.append(np.where(np.arange(size) < blocks.size[some][:, None], place, self.entries))
            self.stacks.append(np.zeros((len(some), size, size), dtype=np.float32))

    def __setitem__(self, j: int, inverse: FloatArray) -> None:
        stack, place = self.where[j]
        self.stacks[stack][place, : len(inverse), : len(inverse)] = inverse

    def __matmul__(self, right: FloatArray) -> FloatArray:
        padded = np.append(right, 0.0).astype(np.float32)
        result = np.empty(self.entries + 1)
        for stack, place in zip(self.stacks, self.places, strict=True):

            def multiply(start: int, stop: int, stack: Any = stack, place: IntArray = place) -> None:
                some = slice(start, stop)
                result[place[some]] = (stack[some] @ padded[place[some]][..., None])[..., 0]

            self.team.pieces(len(stack), multiply)
        return result[:-1]
