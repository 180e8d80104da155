"""Draws with many bits, random or searched so that they fall next to a border, and what has to be reported."""

import math
from collections.abc import Iterator

import mpmath
import numpy as np

from geoind import PlanarGaussian, PlanarLaplace, SphericalGaussian, SphericalLaplace
from geoind.arrays import FloatArray
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


def polar_draws(
    globe: SphericalLaplace | SphericalGaussian, count: int
) -> Iterator[tuple[list[float], tuple[int, int], tuple[float, float]]]:
    """Yield truths near a pole, draws searched next to a border of a row there, and what has to be reported.

    Longitudes have ever fewer decimals towards a pole, so the border is one of the row that the draw leads to.
    """
    rng = np.random.default_rng(6)
    found = 0
    while found < count:
        pole, from_pole = int(rng.choice([-1, 1])), float(10 ** rng.uniform(-5, 0.8))
        lon, lat = rng.uniform(-180, 180), pole * (90 - from_pole)
        first = number(rng)
        arc = globe_arc(globe, fraction(first))
        drawn = reference.globe(lon, lat, arc, fraction(number(rng)))
        step, coarser = mp.mpf(10) ** -globe.decimals, reference.coarser_in(drawn[1], globe.decimals)
        if coarser is None or abs(drawn[1]) < 84:
            continue
        if rng.integers(2):
            border = (reference.round_half_up(drawn[1] / step) + mp.mpf("0.5")) * step
            turn = reference.turn_to_parallel(border, lat, arc)
        else:
            wide = step * 10**coarser
            border = (reference.round_half_up(drawn[0] / wide) + mp.mpf("0.5")) * wide
            turn = reference.turn_to_meridian(border, lon, lat, arc)
        if turn is None:
            continue
        second = near(turn, rng)
        drawn = reference.globe(lon, lat, arc, fraction(second))
        if reference.coarser_in(drawn[1], globe.decimals) != coarser:
            continue  # the border was one of another row
        yield [lon, lat], (first, second), reference.place_of(*drawn, globe.decimals)
        found += 1
