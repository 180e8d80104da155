"""Every report is that of the whole real numbers, however close they come to a border or however far they lead."""

import math
from collections.abc import Iterator
from dataclasses import replace

import mpmath
import numpy as np
import pytest

from geoind import PlanarGaussian, PlanarLaplace, SphericalGaussian, SphericalLaplace
from geoind.arrays import FloatArray
from geoind.mechanisms import noise as noise_module
from geoind.mechanisms import planar
from geoind.mechanisms.noise import laplace_radius, survivals
from tests.given_words import GivenWords, pairs_of
from tests.mechanisms import reference
from tests.mechanisms.reference import BITS, fraction, mp

PLANAR: list[PlanarLaplace | PlanarGaussian] = [
    PlanarLaplace(math.log(4) / 200),
    PlanarLaplace(5.0),
    PlanarLaplace(1e-6),
    PlanarGaussian(300.0),
]
GLOBES = [
    SphericalLaplace(math.log(4) / 200),
    SphericalLaplace(0.2, decimals=3),
    SphericalLaplace(5e-5),
    SphericalLaplace(3e-6),
    SphericalGaussian(600.0),
    SphericalGaussian(20_000.0, decimals=2),
    SphericalGaussian(450_000.0),
]


def number(rng: np.random.Generator) -> int:
    return int.from_bytes(rng.bytes(BITS // 8))


def near(turn: mpmath.mpf, rng: np.random.Generator) -> int:
    """Return a number whose distance from the turn is between 2^-180 and 2^-50, on either side."""
    apart = int(2.0 ** rng.uniform(BITS - 180, BITS - 50)) * int(rng.choice([-1, 1]))
    return int(mp.floor(turn * 2**BITS)) + apart


def planar_radius(noise: PlanarLaplace | PlanarGaussian, survival: mpmath.mpf) -> mpmath.mpf:
    if isinstance(noise, PlanarLaplace):
        return reference.laplace_radius(survival) / noise.epsilon
    return reference.gaussian_radius(survival) * noise.sigma


def planar_draws(
    noise: PlanarLaplace | PlanarGaussian, count: int, *, hunted: bool
) -> tuple[FloatArray, list[tuple[int, int]], list[list[float]]]:
    """Return truths, their draws, and what has to be reported; hunted: within 1e-10 steps of a border."""
    rng = np.random.default_rng(12)
    step = noise.lattice_step
    points: list[list[float]] = []
    draws: list[tuple[int, int]] = []
    reports: list[list[float]] = []
    while len(points) < count:
        x, y = rng.uniform(-1e6, 1e6, 2).tolist()
        first, second = number(rng), number(rng)
        radius = planar_radius(noise, fraction(first))
        if hunted:
            along = x if rng.integers(2) else y
            border = (round((along + float(radius) * rng.uniform(-1, 1)) / step) + mp.mpf("0.5")) * step
            turn = reference.turn_to_border(border, along, radius)
            if turn is None:
                continue
            second = near(turn if along == x else (mp.mpf("1.25") - turn) % 1, rng)
        drawn = reference.plane(x, y, radius, fraction(second), step)
        points.append([x, y])
        draws.append((first, second))
        reports.append([reference.round_half_up(coordinate) * step for coordinate in drawn])
    return np.array(points), draws, reports


def source_of(draws: list[tuple[int, int]]) -> GivenWords:
    return GivenWords([pairs_of(*draw, BITS // 64) for draw in draws])


@pytest.mark.parametrize("noise", PLANAR, ids=repr)
@pytest.mark.parametrize("hunted", [False, True], ids=["random", "hunted"])
def test_planar_reports_are_those_of_a_hundred_digits(noise: PlanarLaplace | PlanarGaussian, hunted: bool) -> None:
    points, draws, reports = planar_draws(noise, 80, hunted=hunted)
    source = source_of(draws)
    assert noise.sample(points, rng=source).tolist() == reports
    assert (len(set(source.asked)) > 0.3 * len(points)) == hunted


@pytest.mark.parametrize("error", [0.0, -1.0], ids=["error bound zero", "borders ignored"])
def test_doubles_alone_would_fail_at_borders(error: float, monkeypatch: pytest.MonkeyPatch) -> None:
    noise = PLANAR[0]
    points, draws, reports = planar_draws(noise, 80, hunted=True)
    monkeypatch.setattr(planar, "ERROR", error)
    monkeypatch.setattr(planar, "RELATIVE_ERROR", 0.0)
    assert noise.sample(points, rng=source_of(draws)).tolist() != reports


@pytest.mark.parametrize("noise", PLANAR, ids=repr)
def test_computed_coordinates_keep_their_error(noise: PlanarLaplace | PlanarGaussian) -> None:
    points, draws, _ = planar_draws(noise, 80, hunted=False)
    words = source_of(draws).words(points, 2, "")
    unit = noise.lattice_step

    def steps(s: FloatArray) -> FloatArray:
        if isinstance(noise, PlanarLaplace):
            return laplace_radius(s) / (noise.epsilon * unit)
        return s * noise.sigma / unit

    computed = planar.coordinates(points, survivals(words), words, unit, steps)
    for row, ((x, y), (first, second)) in enumerate(zip(points.tolist(), draws, strict=True)):
        drawn = reference.plane(x, y, planar_radius(noise, fraction(first)), fraction(second), unit)
        for axis in (0, 1):
            allowed = planar.ERROR + planar.RELATIVE_ERROR * abs(float(drawn[axis]))
            assert abs(computed[axis][row] - drawn[axis]) < allowed / 4


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


def globe_arc(globe: SphericalLaplace | SphericalGaussian, survival: mpmath.mpf) -> mpmath.mpf:
    if isinstance(globe, SphericalLaplace):
        return reference.globe_arc(survival, globe._scales)
    return reference.gaussian_radius(survival) * globe.noise_arc


def globe_draws(
    globe: SphericalLaplace | SphericalGaussian, count: int, *, hunted: bool
) -> Iterator[tuple[list[float], tuple[int, int], tuple[float, float]]]:
    """Yield truths, their draws, and what has to be reported; among them the poles and the antimeridian."""
    rng = np.random.default_rng(5)
    places = [[10.0, 90.0], [-180.0, -90.0], [180.0, 0.0], [13.0, 89.99995], [-179.99999, -89.999], [0.0, 84.5]]
    found = 0
    while found < count:
        lon, lat = places[found] if found < len(places) else (rng.uniform(-180, 180), rng.uniform(-89, 89))
        first, second = number(rng), number(rng)
        arc = globe_arc(globe, fraction(first))
        if hunted:
            lon, lat = rng.uniform(-180, 180), rng.uniform(-84, 84)
            step = mp.mpf(10) ** -globe.decimals
            if rng.integers(2):
                border = (round((lat + rng.uniform(-1, 1) * math.degrees(arc)) / step) + mp.mpf("0.5")) * step
                turn = reference.turn_to_parallel(border, lat, arc) if abs(border) < 84 else None
            else:
                border = (round((lon + rng.uniform(-1, 1) * math.degrees(arc)) / step) + mp.mpf("0.5")) * step
                turn = reference.turn_to_meridian(border, lon, lat, arc)
            if turn is None:
                continue
            second = near(turn, rng)
        drawn = reference.globe(lon, lat, arc, fraction(second))
        if hunted and abs(drawn[1]) > 84:
            continue  # the border was one of another row
        yield [lon, lat], (first, second), reference.place_of(*drawn, globe.decimals)
        found += 1


@pytest.mark.parametrize("globe", GLOBES, ids=repr)
@pytest.mark.parametrize("hunted", [False, True], ids=["random", "hunted"])
def test_reports_on_the_globe_are_those_of_a_hundred_digits(
    globe: SphericalLaplace | SphericalGaussian, hunted: bool
) -> None:
    points, draws, reports = zip(*globe_draws(globe, 30, hunted=hunted), strict=True)
    source = source_of(list(draws))
    assert list(map(tuple, globe.sample(points, rng=source).tolist())) == list(reports)
    assert (len(set(source.asked)) > 0.3 * len(points)) == hunted
    if hunted:
        error_free = replace(globe)
        object.__setattr__(error_free, "_draws", replace(error_free._draws, error=0.0))
        assert list(map(tuple, error_free.sample(points, rng=source_of(list(draws))).tolist())) != list(reports)


@pytest.mark.parametrize("globe", GLOBES, ids=repr)
def test_one_place_gets_the_report_that_it_gets_among_others(globe: SphericalLaplace | SphericalGaussian) -> None:
    rng = np.random.default_rng(8)
    words = rng.integers(0, 1 << 64, size=(800, 2), dtype=np.uint64)
    points = np.column_stack([rng.uniform(-180, 180, 800), rng.uniform(-90, 90, 800)])
    points[:5] = np.array([[180, 90], [-180, -90], [0, 89.99999], [180, 0], [-180, 79.9999]])
    together = globe.sample(points, rng=GivenWords([tuple(pair) for pair in words.tolist()]))
    apart = [globe._draws.report(*p, *w) for p, w in zip(points.tolist(), words.tolist(), strict=True)]
    assert list(map(tuple, together.tolist())) == apart
    exactly = [
        globe._draws.exactly(p[0], p[1], w[0], w[1], GivenWords([tuple(w)]), 0)
        for p, w in zip(points[:200].tolist(), words[:200].tolist(), strict=True)
    ]
    assert exactly == apart[:200]


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
