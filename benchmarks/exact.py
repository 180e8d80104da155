"""Measurements of exact draws: error bounds, borders, cells and audits, at sizes that are too large for the tests.

python3 dev.py bench exact            prints the tables and writes docs/benchmarks/exact.md (an hour)
python3 dev.py bench exact 0.01       a hundredth of it
python3 dev.py bench exact errors     one table: errors, borders, slow, cells or audits
"""

import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from flint import arb, ctx
from scipy import stats

from geoind import Grid, PlanarGaussian, PlanarLaplace, SphericalLaplace, audit, discretise
from geoind.arrays import FloatArray
from geoind.distances import EARTH_RADIUS, haversine
from geoind.mechanisms import exact, planar
from geoind.mechanisms.noise import ARRAYS, half_angles, laplace_radius, out_of_range, survivals
from geoind.mechanisms.spherical import POLAR_FACTOR, TEMPERATE, TEMPERATE_FACTOR
from tests.mechanisms.draws import globe_draws, planar_draws, polar_draws, source_of

OUT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks" / "exact.md"
EPSILON = math.log(4) / 200
PLANAR = (PlanarLaplace(EPSILON), PlanarLaplace(5.0), PlanarGaussian(300.0))
GLOBES = (SphericalLaplace(EPSILON), SphericalLaplace(1e-3), SphericalLaplace(3e-6))
BLOCK = 1_000_000
TITLE = "# Exact draws: measured\n\n"
RULE = "\n\n---\n\n"
"""Separator of the tables of the page; a table that is measured again replaces the old one."""


def whole(word: int) -> arb:
    """Return a number between 0 and 1 whose first bits are the word; its other bits are 1000..."""
    return arb((2 * word + 1, -65))


def planar_error(noise: PlanarLaplace | PlanarGaussian, count: int, rng: np.random.Generator) -> float:
    """Return the largest error of a computed coordinate against 200 bits, divided by its bound."""
    points = rng.uniform(-1e7, 1e7, (count, 2))
    words = rng.integers(0, 1 << 64, (count, 2), np.uint64)
    step, survival = noise.lattice_step, survivals(words)

    def steps(s: FloatArray) -> FloatArray:
        if isinstance(noise, PlanarLaplace):
            return laplace_radius(s) / (noise.epsilon * step)
        return s * noise.sigma / step

    computed = planar.coordinates(points, survival, words, step, steps)
    used = np.setdiff1d(np.arange(count), out_of_range(survival))
    worst = 0.0
    for row in used.tolist():
        first, second = words[row].tolist()
        radius = noise._exact_radius(whole(first))
        sine, cosine = (2 * whole(second)).sin_cos_pi()
        for axis, part in enumerate((cosine, sine)):
            drawn = (float(points[row, axis]) + radius * part) / step
            bound = planar.ERROR + planar.RELATIVE_ERROR * abs(float(drawn))
            worst = max(worst, abs(float(computed[axis][row] - drawn)) / bound)
    return worst


def globe_error(globe: SphericalLaplace, count: int, rng: np.random.Generator) -> float:
    """Return the same as `planar_error`, in latitude and longitude, for places everywhere on Earth."""
    lat = np.degrees(np.arcsin(rng.uniform(-1, 1, count)))
    words = rng.integers(0, 1 << 64, (count, 2), np.uint64)
    survival = survivals(words)
    east, north = globe._draws._drawn(np.zeros(count), lat, survival, half_angles(words), ARRAYS)
    scale, worst = 10.0**globe.decimals, 0.0
    used = np.setdiff1d(np.arange(count), out_of_range(survival))
    for row in used.tolist():
        first, second = words[row].tolist()
        sin_arc, cos_arc = globe._exact_arc(whole(first)).sin_cos()
        sine, cosine = (2 * whole(second)).sin_cos_pi()
        sin_phi, cos_phi = (arb(float(lat[row])) / 180).sin_cos_pi()
        outward = cos_arc * cos_phi - sin_arc * cosine * sin_phi
        height = cos_arc * sin_phi + sin_arc * cosine * cos_phi
        rise = float(arb.atan2(height, (outward**2 + (sin_arc * sine) ** 2).sqrt()) * 180 / arb.pi() - north[row])
        turn = float(arb.atan2(sin_arc * sine, outward) * 180 / arb.pi() - east[row])
        near_pole = POLAR_FACTOR if abs(north[row]) > TEMPERATE else TEMPERATE_FACTOR
        coarser = min(1.0, 10 * math.cos(math.radians(north[row]))) if near_pole == POLAR_FACTOR else 1.0
        error = max(abs(rise), abs(turn) * coarser / near_pole) * scale
        worst = max(worst, error / globe._draws.error)
    return worst


def hunted(count: int) -> Iterator[str]:
    """Rows of the table of reports whose words were searched so that they lie next to a border."""
    for noise in PLANAR:
        points, draws, reports = planar_draws(noise, count, hunted=True)
        source = source_of(draws)
        wrong = (noise.sample(points, rng=source) != np.array(reports)).any(axis=1).sum()
        yield f"| `{noise!r}` | {count:,} | {len(set(source.asked)):,} | {wrong} |"
    for globe in GLOBES:
        found = {"": globe_draws(globe, count, hunted=True), ", near a pole": polar_draws(globe, count)}
        for where, draws_there in found.items():
            places, pairs, wanted = zip(*draws_there, strict=True)
            source = source_of(list(pairs))
            wrong = (globe.sample(places, rng=source) != np.array(wanted)).any(axis=1).sum()
            yield f"| `{globe!r}`{where} | {count:,} | {len(set(source.asked)):,} | {wrong} |"


def slow_path(mechanism: PlanarLaplace | SphericalLaplace, count: int) -> str:
    """Return a row: how many of `count` draws exact arithmetic decides, and its time per draw."""
    times: list[float] = []
    decided = exact.decided

    def timed(*draw: Any) -> object:
        # CPU time of this thread alone, without other work on the machine.
        start = time.thread_time()
        found = decided(*draw)
        times.append(time.thread_time() - start)
        return found

    exact.decided = timed  # type: ignore[assignment]
    truth = np.tile([2.2945, 48.8584], (BLOCK, 1))
    for _ in range(-(-count // BLOCK)):
        mechanism.sample(truth)
    exact.decided = decided
    total = BLOCK * -(-count // BLOCK)
    middle, long = np.quantile(times or [math.nan], [0.5, 0.99]) * 1e3
    return f"| `{mechanism!r}` | {total:,} | {len(times) / total * 1e6:.1f} | {middle:.2f} | {long:.2f} |"


def cells_of_the_plane(noise: PlanarLaplace, count: int) -> str:
    """Chi-square over cells of 0.4 / epsilon: reports of the middle of a grid against its exact probabilities."""
    # An odd number of steps, so that no lattice point lies on the border of two cells.
    cell = noise.lattice_step * (round(0.4 / noise.epsilon / noise.lattice_step) | 1)
    grid = Grid(0, 0, cell=cell, columns=41, rows=41)
    middle = len(grid) // 2
    expected = discretise(noise, grid).matrix[middle]
    counts = np.zeros(len(grid))
    for _ in range(-(-count // BLOCK)):
        counts += np.bincount(
            grid.nearest(noise.sample(np.tile(grid.xy[middle], (BLOCK, 1)))), minlength=len(grid)
        )
    return chi_square(repr(noise), counts, expected)


def cells_of_the_globe(globe: SphericalLaplace, count: int) -> str:
    """Chi-square over points of a coarse lattice at 60 degrees north."""
    lon, lat, scale = 24.93, 60.04, 10**globe.decimals
    rows, columns = np.arange(-12, 13), np.arange(-24, 25)
    parts = (np.arange(60) + 0.5) / 60 - 0.5
    base_lon, base_lat = round(lon * scale), round(lat * scale)
    expected, counts = np.zeros((len(rows), len(columns))), np.zeros((len(rows), len(columns)))
    k = globe.noise_epsilon * EARTH_RADIUS
    for i, row in enumerate(rows.tolist()):
        there_lat = (base_lat + row + parts) / scale
        there_lon = ((base_lon + columns)[:, None] + parts).ravel() / scale
        there = np.stack(np.meshgrid(there_lon, there_lat), axis=-1).reshape(-1, 2)
        area = np.cos(np.radians(there[:, 1])) * math.radians(1 / 60 / scale) ** 2
        away = haversine(np.array([[lon, lat]]), there)[0]
        density = (1 + k * k) / (2 * math.pi) * np.exp(-globe.noise_epsilon * away) * area
        expected[i] = density.reshape(60, len(columns), 60).sum(axis=(0, 2))
    for _ in range(-(-count // BLOCK)):
        reports = np.rint(globe.sample(np.tile([lon, lat], (BLOCK, 1))) * scale) - [base_lon, base_lat]
        inside = (np.abs(reports[:, 1]) <= 12) & (np.abs(reports[:, 0]) <= 24)
        at = (reports[inside, 1].astype(int) + 12, reports[inside, 0].astype(int) + 24)
        np.add.at(counts, at, 1)
    inside_share = expected.sum()
    total = BLOCK * -(-count // BLOCK)
    counts = np.append(counts.ravel(), total - counts.sum())
    return chi_square(repr(globe), counts, np.append(expected.ravel(), 1 - inside_share))


def chi_square(name: str, counts: FloatArray, probabilities: FloatArray) -> str:
    """Return a row: the fit of the counts."""
    total = counts.sum()
    enough = probabilities * total >= 10
    observed = np.append(counts[enough], counts[~enough].sum())
    wanted = np.append(probabilities[enough], probabilities[~enough].sum()) * total
    observed, wanted = observed[wanted >= 10], wanted[wanted >= 10]
    p = stats.chisquare(observed, wanted * observed.sum() / wanted.sum()).pvalue
    return f"| `{name}` | {total:,.0f} | {len(observed)} | {p:.3f} |"


def audited(mechanism: PlanarLaplace | SphericalLaplace, draws: int) -> str:
    """Return a row: the result of the audit."""
    result = audit(mechanism, places=[(2.2945, 48.8584)], draws=draws)
    counted = sum(2 * finding.draws for finding in result.findings)
    shown, visible = (epsilon / mechanism.epsilon for epsilon in (result.epsilon, result.smallest_visible))
    verdict = "refuted" if result.refuted else "not refuted"
    return f"| `{mechanism!r}` | {draws:,} | {counted:,} | {shown:.4f} | {visible:.4f} | {verdict} |"


def errors(share: float) -> Iterator[str]:
    """Yield the table of errors."""
    rng = np.random.default_rng(2024)
    yield "Largest error of a computed coordinate against 200 bits, divided by its proven bound:"
    yield "\n| mechanism | points | error / bound |\n| --- | ---: | ---: |"
    with ctx.workprec(200):
        for noise in PLANAR:
            count = round(200_000 * share)
            yield f"| `{noise!r}` | {count:,} | {planar_error(noise, count, rng):.3f} |"
        for globe in GLOBES:
            count = round((200_000 if globe.epsilon > 1e-5 else 100_000) * share)
            yield f"| `{globe!r}` | {count:,} | {globe_error(globe, count, rng):.3f} |"


def borders(share: float) -> Iterator[str]:
    """Yield the table of reports next to a border."""
    yield "Reports whose words were searched so that they lie within 2^-50 turns of a border, against 100 digits:"
    yield "\n| mechanism | draws | needed more than 128 bits | wrong |\n| --- | ---: | ---: | ---: |"
    yield from hunted(max(20, round(1700 * share)))


def slow(share: float) -> Iterator[str]:
    """Yield the table of the slow path."""
    yield "Frequency and time of exact arithmetic:"
    yield "\n| mechanism | draws | per million | median ms | 99 % ms |\n| --- | ---: | ---: | ---: | ---: |"
    for mechanism in (PLANAR[0], *GLOBES):
        yield slow_path(mechanism, round(1e7 * share))


def cells(share: float) -> Iterator[str]:
    """Yield the table of chi-square tests."""
    yield "Reports counted in cells, against the probabilities of the continuous distribution (chi-square):"
    yield "\n| mechanism | draws | cells | p |\n| --- | ---: | ---: | ---: |"
    for epsilon in (0.001, 0.1, 5.0):
        yield cells_of_the_plane(PlanarLaplace(epsilon), round(1e8 * share))
    for epsilon, decimals in ((0.001, 2), (0.1, 4)):
        yield cells_of_the_globe(SphericalLaplace(epsilon, decimals), round(1e8 * share))


def audits(share: float) -> Iterator[str]:
    """Yield the table of audits."""
    yield (
        "`audit`: draws per place and pair, all draws that bound a probability, the lower bound on epsilon, and "
        "the least epsilon that would have been refuted, both over the promise:"
    )
    yield "\n| mechanism | draws | counted | bound | visible from | |\n| --- | ---: | ---: | ---: | ---: | --- |"
    planar = [PlanarLaplace(epsilon) for epsilon in (0.001, 0.1, 5.0)]
    globes = [SphericalLaplace(epsilon) for epsilon in (0.001, 0.1)]
    mechanisms: list[PlanarLaplace | SphericalLaplace] = [*planar, *globes]
    for mechanism in mechanisms:
        # Two places of each of six pairs: a hundred million in all, and a few more in rows and calls.
        yield audited(mechanism, round(1e8 / 12 * share))


SECTIONS = {section.__name__: section for section in (errors, borders, slow, cells, audits)}


def main() -> None:
    """Measure the named sections, or all, and write their tables."""
    names = [name for name in sys.argv[1:] if name in SECTIONS] or list(SECTIONS)
    share = next((float(text) for text in sys.argv[1:] if text not in SECTIONS), 1.0)
    for name in names:
        lines = []
        for line in SECTIONS[name](share):
            print(line, flush=True)
            lines.append(line)
        written = OUT.read_text().removeprefix(TITLE).rstrip("\n") if OUT.exists() else RULE * (len(SECTIONS) - 1)
        tables = written.split(RULE)
        tables[list(SECTIONS).index(name)] = "\n".join(lines)
        OUT.write_text(f"{TITLE}{RULE.join(tables)}\n")


if __name__ == "__main__":
    main()
