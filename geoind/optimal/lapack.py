"""Cholesky factors by LAPACK, without the interpreter's lock.

scipy's own wrappers hold the lock while they compute, so that threads wait for each other. The same routines are
called here through `ctypes`, which releases it. Matrices are C-contiguous, and only their lower triangles are read
and written: what Fortran sees as the upper ones.
"""

import ctypes
from collections.abc import Callable
from functools import cache

from geoind.arrays import FloatArray

__all__ = ["factor", "half_solve", "inverse", "solve"]

UPPER = b"U"


@cache
def _routine(name: str) -> Callable[..., None]:
    """Return a routine of the LAPACK that scipy brings; every argument is a pointer."""
    from scipy.linalg import cython_lapack

    capsule = dict(cython_lapack.__pyx_capi__)[name]
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    signature = name_of(capsule)
    count = signature.count(b"*")
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * count)(pointer_of(capsule, signature))


@cache
def _at(number: int) -> int:
    """Return the address of a C integer that is never freed."""
    kept = ctypes.c_int(number)
    _KEPT.append(kept)
    return ctypes.addressof(kept)


_KEPT: list[ctypes.c_int] = []


def factor(matrix: FloatArray) -> bool:
    """Replace the lower triangle of a matrix by its Cholesky factor; return whether it is positive definite."""
    size, info = _at(len(matrix)), ctypes.c_int()
    _routine("dpotrf")(UPPER, size, matrix.ctypes.data, size, ctypes.addressof(info))
    return info.value == 0


def solve(cholesky: FloatArray, right: FloatArray) -> FloatArray:
    """Return the solution for one right-hand side."""
    size, result, info = _at(len(cholesky)), right.copy(), ctypes.c_int()
    at = result.ctypes.data
    _routine("dpotrs")(UPPER, size, _at(1), cholesky.ctypes.data, size, at, size, ctypes.addressof(info))
    return result


def half_solve(cholesky: FloatArray, rows: FloatArray) -> FloatArray:
    """Return L^-1 times each row, a C-contiguous (k, n) array: halves of a product with the inverse."""
    size, result, info = _at(len(cholesky)), rows.copy(), ctypes.c_int()
    count, at = _at(len(rows)), result.ctypes.data
    _routine("dtrtrs")(
        UPPER, b"T", b"N", size, count, cholesky.ctypes.data, size, at, size, ctypes.addressof(info)
    )
    return result


def inverse(cholesky: FloatArray) -> FloatArray:
    """Return the lower triangle of the inverse; what stands above it means nothing."""
    size, result, info = _at(len(cholesky)), cholesky.copy(), ctypes.c_int()
    _routine("dpotri")(UPPER, size, result.ctypes.data, size, ctypes.addressof(info))
    return result
