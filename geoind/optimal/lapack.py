"""Cholesky factors by LAPACK in several threads.

scipy's own wrappers hold the interpreter's lock while they compute, so threads would wait for each other. The same
routines are called here through `ctypes`, which releases the lock. From 200 inputs on, where blocks are worth a
thread, that is what makes the solver parallel: with the wrappers it needs the same CPU time (27 s for 225 skewed
cells, 17 s for 400 uniform ones), but on two cores 1.5 to 1.8 times the wall time (docs/benchmarks/optimal.md).

A direct call is correct only if the routine takes exactly the types that are passed. Another build of scipy may
have 64-bit integers, or no such module; then the wrappers are used. Matrices are C-contiguous, and only their
lower triangles are read and written: the upper ones for Fortran.
"""

import ctypes
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs, dtrtrs
from threadpoolctl import threadpool_limits

from geoind.arrays import FloatArray
from geoind.parallel import Threads, available_cores

__all__ = ["factor", "half_solve", "inverse", "solve", "threads_for_blocks"]

UPPER = b"U"

SIGNATURES = {
    "dpotrf": "char int double int int",
    "dpotrs": "char int int double int double int int",
    "dtrtrs": "char char char int int double int double int int",
    "dpotri": "char int double int int",
}
"""The types that the arguments point to, in scipy's order; all are pointers, and nothing is returned."""


@cache
def _direct(name: str) -> Callable[..., None] | None:
    """Return a routine of scipy's LAPACK, or None if it does not take the types in `SIGNATURES`."""
    try:
        from scipy.linalg import cython_lapack

        capsule = dict(cython_lapack.__pyx_capi__)[name]
        name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    except (ImportError, AttributeError, KeyError):
        return None
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    signature = name_of(capsule)
    if _pointed_to(signature.decode()) != SIGNATURES[name]:
        return None
    count = len(SIGNATURES[name].split())
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * count)(pointer_of(capsule, signature))


def _pointed_to(signature: str) -> str:
    """Return the types that the arguments of a C signature point to; scipy's name for a double ends in `_d`.

    >>> _pointed_to("void (char *, int *, __pyx_t_5scipy_6linalg_13cython_lapack_d *)")
    'char int double'
    """
    inside = re.fullmatch(r"void \((.*)\)", signature)
    if inside is None:
        return signature
    return " ".join(
        re.sub(r"^\w*cython_lapack_d \*$", "double *", kind).removesuffix(" *") for kind in inside[1].split(", ")
    )


@cache
def _at(number: int) -> int:
    """Return the address of a C integer that is never freed."""
    kept = ctypes.c_int(number)
    _KEPT.append(kept)
    return ctypes.addressof(kept)


_KEPT: list[ctypes.c_int] = []


def factor(matrix: FloatArray) -> bool:
    """Replace the lower triangle of a matrix by its Cholesky factor; return whether it is positive definite."""
    if (direct := _direct("dpotrf")) is None:
        _, failed = dpotrf(matrix.T, lower=0, clean=0, overwrite_a=1)
        return not failed
    size, info = _at(len(matrix)), ctypes.c_int()
    direct(UPPER, size, matrix.ctypes.data, size, ctypes.addressof(info))
    return info.value == 0


def solve(cholesky: FloatArray, right: FloatArray) -> FloatArray:
    """Return the solution for one right-hand side."""
    if (direct := _direct("dpotrs")) is None:
        return np.asarray(dpotrs(cholesky.T, right, lower=0)[0])
    size, result, info = _at(len(cholesky)), right.copy(), ctypes.c_int()
    at = result.ctypes.data
    direct(UPPER, size, _at(1), cholesky.ctypes.data, size, at, size, ctypes.addressof(info))
    return result


def half_solve(cholesky: FloatArray, rows: FloatArray) -> FloatArray:
    """Return L^-1 times each row of a C-contiguous (k, n) array: half of a product with the inverse."""
    if (direct := _direct("dtrtrs")) is None:
        return np.asarray(dtrtrs(cholesky.T, rows.T, lower=0, trans=1)[0].T)
    size, result, info = _at(len(cholesky)), rows.copy(), ctypes.c_int()
    count, at = _at(len(rows)), result.ctypes.data
    direct(UPPER, b"T", b"N", size, count, cholesky.ctypes.data, size, at, size, ctypes.addressof(info))
    return result


def inverse(cholesky: FloatArray) -> FloatArray:
    """Return a matrix whose lower triangle is that of the inverse; the upper one is undefined."""
    if (direct := _direct("dpotri")) is None:
        return np.asarray(dpotri(cholesky.T, lower=0)[0].T)
    size, result, info = _at(len(cholesky)), cholesky.copy(), ctypes.c_int()
    direct(UPPER, size, result.ctypes.data, size, ctypes.addressof(info))
    return result


SMALL = 200
"""Blocks of fewer rows take less time than their hand-over between threads."""


@contextmanager
def threads_for_blocks(rows: int) -> Iterator[Threads]:
    """Yield one thread per core that this process may use, for blocks of so many rows.

    BLAS is limited to one thread meanwhile, because its own threads slow down small factorisations several times.
    """
    with (
        threadpool_limits(limits=1, user_api="blas"),
        Threads(1 if rows < SMALL else available_cores()) as threads,
    ):
        yield threads
