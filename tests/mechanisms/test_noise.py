"""The same mathematics for numbers and for arrays."""

import math

import mpmath
import numpy as np
import pytest
from flint import arb, arb_series, ctx

from geoind.keys import Words
from geoind.mechanisms import noise
from geoind.mechanisms.noise import (
    ARRAYS,
    BOTTOM,
    DIRECTION_ERROR,
    LARGEST_SURVIVAL,
    RADIUS_ERROR,
    SCALARS,
    SMALLEST_SURVIVAL,
    TOP,
    direction,
    half_angle_scalar,
    half_angles,
    laplace_radius,
    out_of_range,
    over_blocks,
    radius_of,
    survival_scalar,
    survivals,
)


def exact_radius(p: float) -> float:
    """Lambert's W_-1 with enough digits for the branch point."""
    with mpmath.workdps(60 + int(max(0, -2 * math.log10(p)))):
        return float(-1 - mpmath.lambertw((mpmath.mpf(p) - 1) / mpmath.e, -1).real)


PROBABILITIES = np.concatenate(
    [2.0 ** -np.arange(1, 1000, 7.0), np.linspace(1e-4, 0.9999, 400), 1 - 2.0 ** -np.arange(1, 54.0), [5e-324]]
)


def test_the_quantile_is_exact_to_1e_14_over_all_doubles() -> None:
    radius = radius_of(-np.log1p(-PROBABILITIES))
    exact = np.array([exact_radius(float(p)) for p in PROBABILITIES])
    assert np.abs(radius / exact - 1).max() < 1e-14


def test_the_quantile_of_zero_is_zero() -> None:
    assert radius_of(np.zeros(3)).tolist() == [0.0, 0.0, 0.0]


def words_of(rng: np.random.Generator, n: int) -> Words:
    """Words whose survival probability covers all that doubles decide, the ends more than chance would."""
    words = rng.integers(0, 1 << 64, size=(n, 2), dtype=np.uint64)
    share = np.concatenate([rng.uniform(0, 1, n // 2), 2.0 ** -rng.uniform(0, 22, n // 4)])
    share = np.concatenate([share, 1 - 2.0 ** -rng.uniform(1, 22, n - len(share))])
    words[:, 0] = (share * 2.0**53).astype(np.uint64) << np.uint64(11)
    return words


@pytest.mark.slow
def test_radius_and_direction_are_within_their_errors() -> None:
    """Against 50 digits, for both ends of the interval that the words mean."""
    words = words_of(np.random.default_rng(3), 800)
    s = np.sqrt(-2 * np.log(survivals(words)))
    radii, (cosines, sines) = laplace_radius(s), direction(half_angles(words), ARRAYS)
    with mpmath.workdps(50):
        for row, (first, second) in enumerate(words.tolist()):
            for more in (0, 1):
                survival, turn = mpmath.mpf(first + more) / 2**64, mpmath.mpf(second + more) / 2**64
                if not SMALLEST_SURVIVAL < survival < LARGEST_SURVIVAL:
                    continue
                exact = -1 - mpmath.lambertw(-survival / mpmath.e, -1).real
                assert abs(radii[row] - exact) < RADIUS_ERROR / 2
                assert abs(s[row] - mpmath.sqrt(-2 * mpmath.log(survival))) < RADIUS_ERROR / 2
                assert abs(cosines[row] - mpmath.cos(2 * mpmath.pi * turn)) < DIRECTION_ERROR / 2
                assert abs(sines[row] - mpmath.sin(2 * mpmath.pi * turn)) < DIRECTION_ERROR / 2


def test_what_doubles_are_trusted_with_keeps_its_error_up_to_both_ends() -> None:
    """Survival probabilities nearer and nearer to 0 and to 1: in range means right, and nearly all is in range."""
    rng = np.random.default_rng(5)
    tails = 2.0 ** rng.uniform(11, 63, 600)
    firsts = [int(tail) for tail in tails[::2]] + [2**64 - 1 - int(tail) for tail in tails[1::2]]
    ends = [2**42 - 4096, 2**42 + 4096]
    firsts += ends + [2**64 - end for end in ends]
    words = np.array([firsts, firsts], np.uint64).T.copy()
    survival = survivals(words)
    rare = set(out_of_range(survival).tolist())
    assert {len(firsts) - 4, len(firsts) - 1} & rare == {len(firsts) - 4}
    assert 200 < len(rare) < 400
    with mpmath.workdps(50), np.errstate(divide="ignore", invalid="ignore"):
        s = np.sqrt(-2 * np.log(survival))
        radii = laplace_radius(s)
        for row in sorted(set(range(len(firsts))) - rare):
            exact = mpmath.mpf(2 * firsts[row] + 1) / 2**65
            assert abs(radii[row] + 1 + mpmath.lambertw(-exact / mpmath.e, -1).real) < RADIUS_ERROR
            assert abs(s[row] - mpmath.sqrt(-2 * mpmath.log(exact))) < RADIUS_ERROR
    assert SMALLEST_SURVIVAL + (1 - LARGEST_SURVIVAL) < 5e-7
    assert out_of_range(np.empty(0)).tolist() == []
    assert out_of_range(np.array([0.0, 0.5, SMALLEST_SURVIVAL, LARGEST_SURVIVAL, 1.0])).tolist() == [0, 2, 3, 4]


def test_the_rational_radius_is_right_everywhere_that_it_is_used() -> None:
    s = np.linspace(1e-9, math.sqrt(-2 * math.log(SMALLEST_SURVIVAL)), 20_001)
    assert np.abs(laplace_radius(s) / radius_of(s * s / 2) - 1).max() < 4e-13


def test_the_rational_radius_has_a_certificate() -> None:
    """A proof, not a sample: Taylor expansions in ball arithmetic over intervals that cover every s in use.

    With f(s) = s P(s) / Q(s) the residual f - ln(1 + f) - s^2 / 2 is bounded by its expansion around the middle of
    each interval and the last term's enclosure over all of it; f is off by (1 + r) / r times the residual.
    """
    order = 10

    def expansion(around: arb) -> tuple[arb, arb_series]:
        s = arb_series([around, 1], prec=order + 1)

        def value(coefficients: tuple[float, ...]) -> arb_series:
            total = arb_series([arb(coefficients[0])], prec=order + 1)
            for coefficient in coefficients[1:]:
                total = total * s + arb(coefficient)
            return total

        f = s * value(TOP) / value(BOTTOM)
        return f[0], f - (1 + f).log() - s * s / 2

    s, end = math.sqrt(2 * (1 - LARGEST_SURVIVAL)) * 0.99, math.sqrt(-2 * math.log(SMALLEST_SURVIVAL)) * 1.01
    cap, ctx.cap = ctx.cap, order + 1
    try:
        with ctx.workprec(200):
            while s < end:
                half = min(0.005, s / 40)
                _, residual = expansion(arb(s + half))
                r, wide = expansion(arb(s + half, 1.001 * half))
                bound = sum((abs(residual[k]) * arb(half) ** k for k in range(order)), arb(0))
                bound += abs(wide[order]) * arb(1.001 * half) ** order
                assert bound * (1 + r) / r < 4e-13 * r
                s += 2 * half
    finally:
        ctx.cap = cap


def test_scalars_and_arrays_read_the_same_numbers_from_the_same_words() -> None:
    words = np.random.default_rng(1).integers(0, 1 << 64, size=(2000, 2), dtype=np.uint64)
    words[:4] = [[0, 0], [2**64 - 1, 2**64 - 1], [1, 2**63], [2**63, 2**63 - 1]]
    assert survivals(words).tolist() == [survival_scalar(first) for first in words[:, 0].tolist()]
    assert half_angles(words).tolist() == [half_angle_scalar(second) for second in words[:, 1].tolist()]


def test_every_bit_of_the_first_word_counts() -> None:
    """Small survival probabilities keep their last bits: 64 of them, where a double between 0 and 1 has 53."""
    words = np.array([[2**42 + 2 * step, 0] for step in range(3)], np.uint64)
    assert np.diff(survivals(words)).tolist() == [2.0**-63] * 2


@pytest.mark.parametrize("least", [0.5, 1e-300, 0.0, -0.5])
def test_the_angle_is_that_of_the_quadrant_whichever_formula_a_block_takes(least: float) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.uniform(least, 2.0, 1000), rng.uniform(-1, 1, 1000)
    x[0] = least
    np.testing.assert_allclose(ARRAYS.angle(y, x), np.arctan2(y, x), rtol=1e-15)
    assert SCALARS.angle(float(y[0]), float(x[0])) == math.atan2(y[0], x[0])


def test_a_block_without_rows_has_no_angles() -> None:
    assert ARRAYS.angle(np.empty(0), np.empty(0)).shape == (0,)


@pytest.mark.parametrize("name", ["sin", "cos", "tan", "sqrt", "log"])
def test_each_function_of_arrays_is_the_one_of_numbers(name: str) -> None:
    x = np.linspace(0.1, 1.5, 50)
    scalar = getattr(SCALARS, name)
    np.testing.assert_allclose(getattr(ARRAYS, name)(x), [scalar(value) for value in x.tolist()], rtol=1e-15)
    assert scalar(0.5) == getattr(math, name)(0.5)


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("count", [0, 1, 8192, 8193, 300_000])
def test_blocks_cover_everything_once_and_in_order(
    cores: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noise, "available_cores", lambda: cores)
    parts = over_blocks(lambda part: part, count)
    assert [part.start for part in parts] == [0, *(part.stop for part in parts[:-1])][: len(parts)]
    assert (parts[-1].stop if parts else 0) == count
