"""The Cholesky routines, against numpy, with every kind of scipy that may be installed."""

import ctypes
import sys
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from geoind import Grid, Prior, min_loss_given_epsilon
from geoind.optimal import lapack

NOWHERE = ctypes.c_void_p(1)
"""A routine at this address ends the process when it is called."""


def capsules(integer: str = "int", real: str = "__pyx_t_5scipy_6linalg_13cython_lapack_d") -> dict[str, object]:
    """Capsules like scipy's, with other types, that must not be called."""
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    found = {}
    for name, kinds in lapack.SIGNATURES.items():
        words = {"int": integer, "double": real, "char": "char"}
        signature = f"void ({', '.join(f'{words[kind]} *' for kind in kinds.split())})".encode()
        KEPT.append(signature)
        found[name] = make(NOWHERE, signature, None)
    return found


KEPT: list[bytes] = []

BUILDS: dict[str, dict[str, dict[str, object]]] = {
    "64-bit integers": {"__pyx_capi__": capsules(integer="int64_t")},
    "a type of its own for integers": {"__pyx_capi__": capsules(integer="__pyx_t_5scipy_6linalg_blas_int")},
    "long double": {"__pyx_capi__": capsules(real="long double")},
    "another routine": {"__pyx_capi__": {name: capsules()["dtrtrs"] for name in ("dpotrf", "dpotrs", "dpotri")}},
    "no such routines": {"__pyx_capi__": {}},
    "no capsules": {},
}


@pytest.fixture(params=["this scipy", "no such module", *BUILDS])
def build(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    import scipy.linalg

    if request.param != "this scipy":
        module = None
        if request.param in BUILDS:
            module = ModuleType("scipy.linalg.cython_lapack")
            vars(module).update(BUILDS[request.param])
        monkeypatch.delattr(scipy.linalg, "cython_lapack", raising=False)
        monkeypatch.setitem(sys.modules, "scipy.linalg.cython_lapack", module)
    lapack._direct.cache_clear()
    yield request.param
    lapack._direct.cache_clear()


@pytest.mark.usefixtures("build")
@pytest.mark.parametrize("size", [1, 2, 7, 60])
def test_factors_solve_and_invert(size: int) -> None:
    rng = np.random.default_rng(size)
    root = rng.normal(size=(size, size))
    matrix = root @ root.T + size * np.eye(size)
    cholesky = np.tril(matrix)
    assert lapack.factor(cholesky)
    np.testing.assert_allclose(np.tril(cholesky), np.linalg.cholesky(matrix), rtol=1e-12, atol=1e-12)
    right = rng.normal(size=size)
    before = right.copy()
    np.testing.assert_allclose(
        lapack.solve(cholesky, right), np.linalg.solve(matrix, right), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_array_equal(right, before)
    np.testing.assert_allclose(np.tril(lapack.inverse(cholesky)), np.tril(np.linalg.inv(matrix)), atol=1e-12)
    np.testing.assert_allclose(np.tril(cholesky), np.linalg.cholesky(matrix), rtol=1e-12, atol=1e-12)
    rows = rng.normal(size=(3, size))
    half = lapack.half_solve(cholesky, rows)
    assert half.flags.c_contiguous
    np.testing.assert_allclose(half @ half.T, rows @ np.linalg.inv(matrix) @ rows.T, rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("build")
def test_what_is_not_positive_definite_is_said() -> None:
    assert not lapack.factor(np.array([[1.0, 0.0], [2.0, 1.0]]))


def test_only_a_routine_with_the_very_types_that_we_pass_is_called_directly(build: str) -> None:
    for name in lapack.SIGNATURES:
        assert (lapack._direct(name) is not None) == (build == "this scipy")


@pytest.mark.usefixtures("build")
def test_the_optimum_is_the_same_with_every_build() -> None:
    best = min_loss_given_epsilon(Prior.uniform(Grid(0, 0, cell=100, columns=3, rows=3)), epsilon=0.01)
    assert best.certificate.objective == pytest.approx(88.39396463, rel=1e-6)
    assert best.epsilon <= 0.01


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.mark.parametrize(("rows", "number"), [(lapack.SMALL - 1, 1), (lapack.SMALL, 7)])
def test_large_blocks_get_a_thread_per_core_and_small_ones_one(
    rows: int, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lapack, "available_cores", lambda: 7)
    with lapack.threads_for_blocks(rows) as team:
        assert team.number == number


def test_blas_has_one_thread_within_the_block_and_its_own_ones_afterwards() -> None:
    before = blas_threads()
    with lapack.threads_for_blocks(10):
        assert blas_threads() == {1}
    assert blas_threads() == before
