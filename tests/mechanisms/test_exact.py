"""Every report is that of the whole real numbers, however close they come to a border or however far they lead."""

from collections.abc import Callable

import numpy as np
import pytest

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
from tests.given_words import GivenWords, pairs_of
from tests.mechanisms import reference
from tests.mechanisms.draws import source_of
from tests.mechanisms.reference import BITS, fraction, mp


def bits_of(value: object, bits: int) -> int:
    return int(mp.floor(value * 2**bits))


@pytest.mark.parametrize("apart", [60.0, 150.0, 900.0])
def test_no_report_is_impossible_however_far_the_truth(apart: float) -> None:
    """Two places whose reports never meet would be told apart for certain; doubles end at 40 / epsilon."""
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

    with pytest.raises(RuntimeError, match="same bits for ever"):
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
