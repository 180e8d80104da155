"""Cholesky factors by LAPACK, without the interpreter's lock where that is possible.

scipy's own wrappers hold the lock while they compute, so that threads wait for each other. The same routines are
called here through `ctypes`, which releases it. That is right only if a routine takes the very types that we pass:
another build of scipy may have 64-bit integers, or no such module. Then the wrappers are used, which know their
own build. Matrices are C-contiguous, and only their lower triangles are read and written: what Fortran sees as the
upper ones.
"""

import ctypes
import re
from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs, dtrtrs

from geoind.arrays import FloatArray

__all__ = ["factor", "half_solve", "inverse", "solve"]

UPPER = b"U"

SIGNATURES = {
    "dpotrf": "char int double int int",
    "dpotrs": "char int int double int double int int",
    "dtrtrs": "char char char int int double int double int int",
    "dpotri": "char int double int int",
}
"""What the arguments point to, in scipy's order; all are pointers, and nothing is returned."""


@cache
def _direct(name: str) -> Callable[..., None] | None:
    """Return a routine of the LAPACK that scipy brings, or None if it does not take what we pass."""
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
    """Return the types that a C signature's arguments point to; scipy's name for a double ends in `_d`.

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
        matrix.T[:], failed = dpotrf(matrix.T, lower=0, clean=0)
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
    """Return L^-1 times each row, a C-contiguous (k, n) array: halves of a product with the inverse."""
    if (direct := _direct("dtrtrs")) is None:
        return np.asarray(dtrtrs(cholesky.T, rows.T, lower=0, trans=1)[0].T)
    size, result, info = _at(len(cholesky)), rows.copy(), ctypes.c_int()
    count, at = _at(len(rows)), result.ctypes.data
    direct(UPPER, b"T", b"N", size, count, cholesky.ctypes.data, size, at, size, ctypes.addressof(info))
    return result


def inverse(cholesky: FloatArray) -> FloatArray:
    """Return the lower triangle of the inverse; what stands above it means nothing."""
    if (direct := _direct("dpotri")) is None:
        return np.asarray(dpotri(cholesky.T, lower=0)[0].T)
    size, result, info = _at(len(cholesky)), cholesky.copy(), ctypes.c_int()
    direct(UPPER, size, result.ctypes.data, size, ctypes.addressof(info))
    return result
