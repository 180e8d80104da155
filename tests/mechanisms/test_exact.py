"""Every report is that of the whole real numbers, however close they come to a border or however far they lead."""

from collections.abc import Callable

import numpy as np
import pytest
from flint import arb, ctx

from geoind import (
    InvalidInputError,
    Mechanism,
    PlanarGaussian,
    PlanarLaplace,
    SphericalGaussian,
    SphericalLaplace,
)
from geoind.arrays import FloatArray
from geoind.mechanisms import noise as noise_module
from geoind.mechanisms.exact import _nearest, ball_of, decided, globe_arc
from tests.given_words import GivenWords, pairs_of
from tests.mechanisms import reference
from tests.mechanisms.draws import source_of
from tests.mechanisms.reference import BITS, fraction, mp


def bits_of(value: object, bits: int) -> int:
    return int(mp.floor(value * 2**bits))


@pytest.mark.parametrize("apart", [60.0, 150.0, 900.0])
def test_no_report_is_impossible_however_far_the_truth(apart: float) -> None:
    """Two places whose reports never meet would be distinguished with certainty; doubles end at 40 / epsilon."""
    noise = PlanarLaplace(0.01)
    report = np.array([[3.0, 4.0]]) * noise.lattice_step
    truth = report + apart / noise.epsilon * np.array([[0.6, 0.8]])
    bits = 64 * 32
    with mp.workprec(3 * bits):
        distance = mp.hypot(*(mp.mpf(float(c)) for c in (truth - report)[0])) * mp.mpf(noise.epsilon)
        survival = (1 + distance) * mp.exp(-distance)
        east, north = (mp.mpf(float(c)) for c in (report - truth)[0])
        turn = mp.atan2(north, east) / (2 * mp.pi) % 1
        source = GivenWords([pairs_of(bits_of(survival, bits), bits_of(turn, bits), bits // 64)])
    assert noise.sample(truth, rng=source).tolist() == report.tolist()
    assert source.asked


def test_a_word_of_zeros_does_not_end_the_radius(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = PlanarLaplace(1.0)
    source = GivenWords([(0, 5, 0, 5, 1 << 40, 5)])
    assert np.hypot(*noise.sample([[0, 0]], rng=source)[0]) > 100
    monkeypatch.setattr(noise_module, "SMALLEST_SURVIVAL", -1.0)
    with np.errstate(divide="ignore"):
        cut = noise.sample([[0, 0]], rng=GivenWords([(2, 5, 0, 5, 1 << 40, 5)]))
    assert np.hypot(*cut[0]) < 60


def test_the_antipode_is_part_of_the_law() -> None:
    """With the widest noise the far end of the survival probability leads to the other side of the Earth."""
    globe = SphericalLaplace(2.9e-6)
    first = 1 << (BITS - 84)  # 5e-26, about the mass around the antipode
    arc = reference.globe_arc(fraction(first), globe._scales)
    assert arc > 2.9
    wanted = reference.place_of(*reference.globe(20.0, 10.0, arc, fraction(1 << 254)), 5)
    source = source_of([(first, 1 << 254)])
    assert tuple(globe.sample([[20.0, 10.0]], rng=source)[0].tolist()) == wanted


def test_a_source_that_returns_one_word_for_ever_is_an_error_not_an_endless_loop() -> None:
    class Stuck(GivenWords):
        def further(self, row: int, point: FloatArray, purpose: str, number: int) -> tuple[int, int]:  # noqa: ARG002
            return 0, 0

    with pytest.raises(RuntimeError, match="always returns the same bits"):
        PlanarLaplace(1.0).sample([[0, 0]], rng=Stuck([(0, 0)]))


@pytest.mark.parametrize(
    "noise",
    [PlanarLaplace(1e-200), PlanarLaplace(1e200), PlanarGaussian(1e-200), PlanarGaussian(1e200)],
    ids=repr,
)
def test_the_widest_and_the_narrowest_noise_is_ordinary_noise_in_other_units(
    noise: PlanarLaplace | PlanarGaussian,
) -> None:
    unit = noise.lattice_step
    ordinary: PlanarLaplace | PlanarGaussian
    if isinstance(noise, PlanarLaplace):
        ordinary = PlanarLaplace(noise.epsilon * unit)
    else:
        ordinary = PlanarGaussian(noise.sigma / unit)
    words = np.random.default_rng(4).integers(0, 1 << 64, size=(500, 2), dtype=np.uint64)
    words[0, 0] = 5
    given = [(*pair, 7, 7) for pair in words.tolist()]
    wanted = ordinary.sample(np.zeros((500, 2)), rng=GivenWords(given)) * unit
    assert noise.sample(np.zeros((500, 2)), rng=GivenWords(given)).tolist() == wanted.tolist()


@pytest.mark.parametrize("narrow", [SphericalLaplace(1e200, decimals=0), SphericalGaussian(1e-200, decimals=0)])
def test_the_narrowest_noise_falls_on_either_side_of_a_border_that_is_the_truth(narrow: Mechanism) -> None:
    reports = narrow.sample(np.tile([2.5, 48.5], (60, 1)), rng=1)
    assert set(map(tuple, reports.tolist())) == {(2.0, 48.0), (2.0, 49.0), (3.0, 48.0), (3.0, 49.0)}


@pytest.mark.parametrize("kind", [PlanarLaplace, PlanarGaussian, SphericalLaplace, SphericalGaussian])
@pytest.mark.parametrize("value", [5e-324, 1e-201, 1e201, 1.7e308])
def test_noise_beyond_the_ends_of_doubles_is_refused_when_it_is_named(
    kind: Callable[[float], Mechanism], value: float
) -> None:
    with pytest.raises(InvalidInputError, match="must be between 1e-200 and 1e"):
        kind(value)


def falls_to(arc: arb, scales: float) -> arb:
    """The probability of a larger arc: the law itself."""
    k = arb(scales)
    rest = (-k * arb.pi()).exp()
    return ((-k * arc).exp() * (arc.cos() + k * arc.sin()) + rest) / (1 + rest)


@pytest.mark.parametrize("scales", [18.3, 60.0, 3000.0, 1e7])
@pytest.mark.parametrize("words", [1, 2, 5])
def test_an_exact_arc_holds_the_arc_and_is_hardly_wider_than_its_word(scales: float, words: int) -> None:
    """Whatever its search does: both ends of the ball lie on their side of the drawn probability."""
    rng = np.random.default_rng(words)
    bits = 64 * words
    firsts = [int.from_bytes(rng.bytes(8 * words)) for _ in range(8)]
    ends = [0, 1, 2**bits - 2, 2**bits - 1]
    firsts += [*ends, 2 ** (bits // 2), 2**bits - 2 ** (bits // 2)]
    for first in firsts:
        with ctx.workprec(bits + 64):
            survival = ball_of(first, bits)
            arc = globe_arc(survival, scales)
        with ctx.workprec(4 * bits + 400):
            low, high = arc.mid() - arc.rad(), arc.mid() + arc.rad()
            top, bottom = survival.mid() + survival.rad(), survival.mid() - survival.rad()
            assert low <= 0 or falls_to(low, scales) >= top
            assert high >= arb.pi() or falls_to(high, scales) <= bottom
            # The word's own width, as an arc, and no more than a few times that.
            slope = abs(falls_to(arc.mid() * (1 + arb((1, -bits - 40))), scales) - falls_to(arc.mid(), scales))
            slope /= arc.mid() * arb((1, -bits - 40))
            if first not in ends:
                assert arc.rad() * slope <= 8 * survival.rad() + arb((1, -bits - 20))


def test_a_probability_without_a_width_gives_an_arc_as_narrow_as_the_precision() -> None:
    for survival in (0.75, 0.5, 2.0**-30):
        with ctx.workprec(200):
            arc = globe_arc(arb(survival), 60.0)
        with ctx.workprec(400):
            low, high = arc.mid() - arc.rad(), arc.mid() + arc.rad()
            assert falls_to(low, 60.0) >= survival >= falls_to(high, 60.0)
            assert arc.rad() < arb((1, -140))


@pytest.mark.parametrize("words", [1, 3])
def test_the_bits_drawn_so_far_mean_all_the_numbers_that_begin_with_them(words: int) -> None:
    bits = 64 * words
    with ctx.workprec(2 * bits):
        for number in (0, 1, 2**bits - 1, 2**bits // 3):
            ball = ball_of(number, bits)
            # A ball's radius is rounded up, to some nine digits.
            assert -1e-6 < (ball.mid() - ball.rad()) * 2**bits - number <= 0
            assert 0 <= (ball.mid() + ball.rad()) * 2**bits - (number + 1) < 1e-6


def test_more_bits_of_both_numbers_are_those_that_follow() -> None:
    asked: list[int] = []

    def further(number: int) -> tuple[int, int]:
        asked.append(number)
        return number + 10, number + 20

    seen: list[tuple[arb, arb]] = []

    def place(first: arb, second: arb) -> bool | None:
        seen.append((first, second))
        return True if len(seen) == 3 else None

    assert decided(place, 3, 4, further)
    assert asked == [0, 1]
    with ctx.workprec(400):
        first, second = (3 << 128) + (10 << 64) + 11, (4 << 128) + (20 << 64) + 21
        assert [ball.mid() for ball in seen[-1]] == [ball_of(first, 192).mid(), ball_of(second, 192).mid()]


@pytest.mark.parametrize(("value", "nearest"), [(2.4, 2), (2.6, 3), (-2.4, -2), (-2.6, -3), (0.0, 0)])
def test_the_nearest_whole_number_is_that_of_all_numbers_of_a_ball(value: float, nearest: int) -> None:
    assert _nearest(arb(value, 0.09)) == nearest
    assert _nearest(arb(value, 0.2)) == (nearest if value == 0 else None)
