"""The device's elementary functions against Arb: doubles within their bound, balls around the value."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx

from .conftest import Script

U = 2.0**-53
BOUND = 16
"""In units of U, relative to the value: what docs/exact-draws.md assumes of the machine."""

MEASURED = 6
"""In the same units: the most that the derivation in docs/device.md allows for."""


def off(found: float, value: arb) -> float:
    """Return the relative error of a double, in units of U."""
    exact = arb(found)
    return 0.0 if found == 0 and value == 0 else abs(float((exact - value) / value)) / U


def inputs() -> dict[str, list[Any]]:
    rng = np.random.default_rng(2)
    angles = np.concatenate(
        [rng.uniform(0, 1.9, 2000), 10 ** rng.uniform(-12, 0, 500), [0.7854, 0.78539816339, 1.5]]
    )
    degrees = np.concatenate([rng.uniform(-360, 360, 2000), [0, 45, 90, -90, 180, 44.99999999, 1e-300]])
    positive = np.concatenate(
        [2 ** rng.uniform(-60, 5, 2000), 1 - 2 ** rng.uniform(-22, -1, 1000), [0.7071, 1.4143]]
    )
    pairs = rng.normal(size=(2000, 2)) * 10 ** rng.uniform(-6, 2, (2000, 2))
    words = rng.integers(0, 2**32, (2000, 2))
    return {
        "cosSin": angles.tolist(),
        "cosSinDegrees": degrees.tolist(),
        "log": positive.tolist(),
        "sqrt": positive.tolist(),
        "atan2": [*pairs.tolist(), [1.0, 1.0], [0.5, -1.0], [-0.25, 1.0], [0.75, 1.0], [2.0, 0.0], [0.0, 1.0]],
        "cosSinTurn": [*words.tolist(), [2**29, 0], [2**29 - 1, 2**32 - 1], [2**32 - 1, 2**32 - 1], [0, 0]],
    }


RUN = """
const functions = await source("functions");
return Object.fromEntries(Object.entries(given).map(([name, values]) =>
    [name, values.map((value) => functions[name](...[value].flat()))]));
"""


@pytest.fixture(scope="module")
def found(script: Script) -> dict[str, list[Any]]:
    return dict(script(RUN, inputs()))


@pytest.mark.parametrize("name", ["log", "sqrt", "atan2"])
def test_a_function_in_doubles_is_within_its_bound(found: dict[str, list[Any]], name: str) -> None:
    exact: dict[str, Any] = {
        "log": lambda x: arb(x).log(),
        "sqrt": lambda x: arb(x).sqrt(),
        "atan2": lambda at: arb.atan2(*map(arb, at)),
    }
    with ctx.workprec(200):
        worst = max(off(value, exact[name](x)) for x, value in zip(inputs()[name], found[name], strict=True))
    assert worst <= MEASURED


@pytest.mark.parametrize(("name", "unit"), [("cosSin", 1), ("cosSinDegrees", 180), ("cosSinTurn", 2**63)])
def test_cosine_and_sine_are_within_their_bound(found: dict[str, list[Any]], name: str, unit: int) -> None:
    worst, worst_of_small = 0.0, 0.0
    with ctx.workprec(200):
        for x, (cos, sin) in zip(inputs()[name], found[name], strict=True):
            angle = arb(x[0] * 2**32 + x[1] if isinstance(x, list) else x)
            values = angle.sin_cos() if unit == 1 else (angle / unit).sin_cos_pi()
            # Absolute where a quarter turn is next to the angle; relative for small angles.
            worst = max(worst, *(abs(float(arb(y) - v)) / U for y, v in zip((sin, cos), values, strict=True)))
            if name == "cosSin" and x < 0.78:
                worst_of_small = max(worst_of_small, off(sin, values[0]), off(cos, values[1]))
    assert worst <= MEASURED
    assert worst_of_small <= MEASURED


def test_the_test_of_a_bound_can_fail() -> None:
    with ctx.workprec(200):
        assert off(math.log(3) * (1 + 20 * U), arb(3).log()) > BOUND


BALLS = """
const { Balls } = await source("balls");
return given.map(([bits, name, ...values]) => {
    const balls = new Balls(bits);
    const big = values.map((value) => (typeof value === "string" ? BigInt(value) : value));
    const pairs = big.filter((_, i) => i % 2 === 0).map((m, i) => ({ m, r: big[2 * i + 1] }));
    const asBalls = name === "log" || name === "expMinus" ? big : pairs;
    const made = name === "pi" ? balls.pi : name === "ln2" ? { m: balls.ln2, r: 2n } : balls[name](...asBalls);
    return [made].flat().map((ball) => ball && [ball.m, ball.r].map(String));
});
"""


def ball_cases() -> list[list[Any]]:
    rng = np.random.default_rng(3)

    def whole(bits: int, size: float) -> str:
        return str(int(Fraction(float(rng.normal() * size)) * 2**bits) + int(rng.integers(2**60)))

    cases: list[list[Any]] = []
    for bits in (128, 256, 320, 700):
        cases += [[bits, "pi"], [bits, "ln2"]]
        for _ in range(40):
            size = 10 ** rng.uniform(-6, 3)
            a, b, few, most = whole(bits, size), whole(bits, size), str(rng.integers(50)), str(2 ** (bits // 2))
            cases += [[bits, "cosSin", a, few], [bits, "atan2", a, few, b, most], [bits, "mul", a, most, b, few]]
            cases += [[bits, "div", a, few, b, few], [bits, "sqrt", str(abs(int(a))), most]]
            cases += [[bits, "expMinus", str(abs(int(a)))], [bits, "log", str(abs(int(a)) + 1), bits - 20]]
    return cases


def test_balls_hold_the_values_and_are_small(script: Script) -> None:
    cases = ball_cases()
    functions: dict[str, Any] = {
        "pi": lambda: [arb.pi()],
        "ln2": lambda: [arb(2).log()],
        "cosSin": lambda a: a.sin_cos()[::-1],
        "atan2": lambda y, x: [arb.atan2(y, x)],
        "mul": lambda a, b: [a * b],
        "div": lambda a, b: [a / b],
        "sqrt": lambda a: [a.sqrt()],
        "expMinus": lambda a: [(-a).exp()],
        "log": lambda a: [a.log()],
    }
    for (bits, name, *values), results in zip(cases, script(BALLS, cases), strict=True):
        with ctx.workprec(2 * bits + 200):
            unit = arb((1, -bits))
            if name == "log":
                given = [[arb((int(values[0]), -values[1]))]]
            elif name == "expMinus":
                given = [[int(values[0]) * unit]]
            else:
                pairs = list(zip(map(int, values[::2]), map(int, values[1::2]), strict=True))
                # The middle and both ends of each ball.
                given = [[(m + turn * r) * unit for m, r in pairs] for turn in (-1, 0, 1)]
            for point in given:
                for value, result in zip(functions[name](*point), results, strict=True):
                    if result is None:
                        assert name == "atan2"
                        continue
                    middle, radius = map(int, result)
                    assert abs(value - middle * unit) <= radius * unit, (bits, name, values)
            if name in ("pi", "ln2", "cosSin", "expMinus", "log"):
                assert all(int(radius) < 8 * bits + 10**5 for _, radius in results), (bits, name)


def test_a_ball_of_a_double_holds_it(script: Script) -> None:
    numbers = [0.0, 1.0, -2.5, 48.8584, -1e-300, 5e-324, 180.0, 0.1]
    run = """
    const { Balls } = await source("balls");
    return given.map((x) => { const { m, r } = new Balls(128).of(x); return [String(m), String(r)]; });
    """
    for number, (m, r) in zip(numbers, script(run, numbers), strict=True):
        assert abs(Fraction(number) - Fraction(int(m), 2**128)) <= Fraction(int(r), 2**128)


def test_the_whole_number_of_a_ball_is_given_only_if_there_is_one(script: Script) -> None:
    run = """
    const { Balls } = await source("balls");
    const balls = new Balls(64);
    return given.map(([x, r]) => String(balls.nearest({ m: balls.of(x).m, r: BigInt(r) })));
    """
    given = [[2.3, 10], [2.5, 1], [-2.5, 1], [-2.4, 5], [2.4999999, 2**42], [2.4999999, 1]]
    assert script(run, given) == ["2", "null", "null", "-2", "null", "2"]


def test_doubles_and_balls_lead_to_the_same_report(script: Script) -> None:
    run = """
    const wrong = [];
    for (const [lon, lat, epsilon, decimals, ...words] of given) {
        const pairs = () => Uint32Array.from(words);
        const fast = new geoind.SphericalLaplace(epsilon, decimals);
        const slow = new geoind.SphericalLaplace(epsilon, decimals);
        slow.error = 1; // nothing is decided in doubles
        const [a, b] = [fast, slow].map((globe) => JSON.stringify(globe.sample(lon, lat, pairs)));
        if (a !== b) wrong.push([lon, lat, epsilon, a, b]);
    }
    return wrong;
    """
    rng = np.random.default_rng(4)
    points = np.column_stack([rng.uniform(-180, 180, 600), np.degrees(np.arcsin(rng.uniform(-1, 1, 600)))])
    kinds = rng.choice(len(KINDS), 600)
    words = rng.integers(0, 2**32, (600, 4)).tolist()
    assert script(run, [[*p, *KINDS[k], *w] for p, k, w in zip(points.tolist(), kinds, words, strict=True)]) == []


KINDS = [(math.log(4) / 200, 5), (0.2, 5), (0.0003, 4), (3e-6, 5), (0.01, 0), (1e5, 5)]
