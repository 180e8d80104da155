"""Bad input is a TypeError or a RangeError, before anything is drawn; the law of the draws; budgets."""

import math

import numpy as np
import pytest
import scipy.stats

from geoind import SphericalLaplace
from geoind.distances import EARTH_RADIUS
from geoind.mechanisms.noise import snap_lonlat

from .conftest import Script

GOOD = "lat: 48.8584, lon: 2.2945"
KEY = "key: new Uint8Array(32)"

TYPES = [
    f"obfuscate({{ {GOOD} }})",
    f"obfuscate({{ {GOOD}, level: 1 }})",
    f"obfuscate({{ {GOOD}, epsilon: 0.01, level: 1, radius: 100 }})",
    f"obfuscate({{ {GOOD}, epsilon: '0.01' }})",
    "obfuscate({ lat: '48.8584', lon: 2.2945, epsilon: 0.01 })",
    "obfuscate({ lon: 2.2945, epsilon: 0.01 })",
    f"obfuscate({{ {GOOD}, epsilon: 0.01, label: 'a' }})",
    f"obfuscate({{ {GOOD}, epsilon: 0.01, {KEY} }})",
    f"obfuscate({{ {GOOD}, epsilon: 0.01, {KEY}, label: {{}} }})",
    f"obfuscate({{ {GOOD}, epsilon: 0.01, key: 5, label: 'a' }})",
    f"obfuscate({{ {GOOD}, epsilon: 0.01, decimals: '5' }})",
    f"obfuscate({{ {GOOD}, mechanism: {{}} }})",
    f"obfuscate({{ {GOOD}, mechanism: null }})",
    f"obfuscate({{ {GOOD}, mechanism: city, epsilon: 0.01 }})",
    f"obfuscate({{ {GOOD}, mechanism: city, {KEY} }})",
    "new Interpolated({})",
    "obfuscate()",
    "reach('0.01', 0.5)",
    "new TraceSession({ fresh: 0.01 })",
    "new TraceSession(method, { budget })",
    f"new TraceSession(method).report({{ {GOOD} }})",
    "TraceSession.resume('{}', method)",
    "new SparseVector({ fresh: 0.01, test: 0.01 })",
    f"new SamePlace(new Uint8Array(32)).obfuscate({{ {GOOD}, epsilon: 0.01, person: 1.5 }})",
    "new Budget({}, { epsilon: 0.1 })",
    "budget.charge(null, 0.01)",
    "budget.charge('ana', 0.01, { once: 5 })",
]
RANGES = [
    *(f"obfuscate({{ {GOOD}, epsilon: {bad} }})" for bad in ("0", "-1", "NaN", "Infinity", "1e-7", "0.21")),
    *(f"obfuscate({{ lat: {bad}, lon: 2.2945, epsilon: 0.01 }})" for bad in ("90.1", "NaN", "Infinity")),
    *(f"obfuscate({{ lat: 48.8584, lon: {bad}, epsilon: 0.01 }})" for bad in ("180.1", "-181", "NaN")),
    *(f"obfuscate({{ {GOOD}, epsilon: 0.01, decimals: {bad} }})" for bad in ("6", "-1", "2.5", "NaN")),
    f"obfuscate({{ {GOOD}, level: 1, radius: 0 }})",
    f"obfuscate({{ {GOOD}, mechanism: city }})",
    "new Interpolated('{}')",
    f"obfuscate({{ {GOOD}, epsilon: 0.01, key: new Uint8Array(16), label: 'a' }})",
    f"obfuscate({{ {GOOD}, epsilon: 0.01, key: 'secret', label: 'a' }})",
    f"obfuscate({{ {GOOD}, epsilon: 0.01, {KEY}, label: 0.5 }})",
    f"obfuscate({{ {GOOD}, epsilon: 0.01, {KEY}, label: 2n ** 64n }})",
    f"obfuscate({{ {GOOD}, epsilon: 0.01, {KEY}, label: 'a\\ud800' }})",
    "reach(0.01, 1)",
    "epsilonFor({ level: 0, radius: 1 })",
    "new SparseVector({ fresh: 0.01, test: -1, limit: 100 })",
    "new SparseVector({ fresh: 0.01, test: 0.01, limit: 100, choice: -1 })",
    "new SparseVector({ fresh: 0.01, test: 0.01, limit: 100, places: 65 })",
    "SparseVector.forAccuracy(1)",
    "SparseVector.forAccuracy(500, 1)",
    f"new TraceSession(method).report({{ {GOOD}, time: NaN }})",
    "new SamePlace(new Uint8Array(32), { cell: 0 })",
    *(
        f"new TraceSession(method, {{ person: {bad} }})"
        for bad in ("''", "' ana'", "'a\\nb'", "'a\\u2028b'", "'a\\u00a0b'")
    ),
    "new Budget(storage, { epsilon: 0 })",
    "new Budget(storage, { epsilon: 10 })",
    "budget.charge('ana', 0)",
    "new Budget({ getItem: () => '{', setItem() {} }, { epsilon: 0.1 })",
    'new Budget({ ...storage, getItem: () => `{ "spent": { "a": -1 } }` }, { epsilon: 0.1 })',
]

REFUSED = """
const { Budget, SparseVector } = geoind;
const storage = { getItem: () => null, setItem() { throw new Error("written"); } };
const budget = new Budget(storage, { epsilon: 0.1 });
const method = new SparseVector({ fresh: 0.01, test: 0.01, limit: 1000 });
const draw = crypto.getRandomValues.bind(crypto);
const matrix = Buffer.from(new Float64Array(16).fill(0.25).buffer).toString("base64");
const city = new geoind.Interpolated(JSON.stringify({
    format: "geoind mechanism 1", interpolated: true, metric: "euclidean", epsilon: 0.01, projection: [10, 50],
    inputs: [0, 0, 100, 2, 2], outputs: null, domain: null, reports: Array(4).fill([10, 50]), matrix,
}));
const names = { ...geoind, storage, budget, method, city };
let drawn = 0;
crypto.getRandomValues = (array) => { drawn += array.length === 4; return draw(array); };
return given.map((call) => {
    try { Function(...Object.keys(names), call)(...Object.values(names)); }
    catch (error) { return [error.name, error.message, drawn]; }
    return ["accepted", "", drawn];
});
"""


@pytest.mark.parametrize(
    ("calls", "name"), [(TYPES, "TypeError"), (RANGES, "RangeError")], ids=["types", "ranges"]
)
def test_bad_input_is_refused_before_anything_is_drawn(script: Script, calls: list[str], name: str) -> None:
    for call, (found, message, drawn) in zip(calls, script(REFUSED, calls), strict=True):
        assert (found, drawn) == (name, 0), call
        assert "48.8584" not in message, call


def test_draws_of_the_browsers_generator_follow_the_law(script: Script) -> None:
    run = """
    const at = { lat: 48.8584, lon: 2.2945, level: Math.log(4), radius: 200 };
    return Array.from({ length: given }, () => geoind.obfuscate(at)).map(({ lat, lon }) => [lon, lat]);
    """
    drawn = np.array(script(run, 20_000))
    east = np.radians(drawn[:, 0] - 2.2945) * math.cos(math.radians(48.8584)) * EARTH_RADIUS
    north = np.radians(drawn[:, 1] - 48.8584) * EARTH_RADIUS
    radius, globe = np.hypot(east, north), SphericalLaplace(math.log(4) / 200)
    for factor, accepted in ((1.0, True), (1.06, False), (0.94, False)):
        assert (scipy.stats.kstest(globe.radius_cdf(radius * factor), "uniform").pvalue > 1e-5) == accepted
    turns = np.arctan2(east, north) / (2 * math.pi) + 0.5
    assert scipy.stats.kstest(turns, "uniform").pvalue > 1e-5
    assert np.array_equal(drawn, snap_lonlat(drawn))
    assert script("return given.map((e) => geoind.reach(e, 0.95))", [0.2, 0.0069, 3e-6]) == pytest.approx(
        [SphericalLaplace(e).reach(0.95) for e in (0.2, 0.0069, 3e-6)], rel=1e-12
    )


STORAGE = """
const store = new Map();
const setItem = (name, value) => { store.set(name, value); };
const storage = { getItem: (name) => store.get(name) ?? null, setItem };
const key = new Uint8Array(32);
const { Budget, BudgetExceededError, SamePlace, SparseVector, TraceSession } = geoind;
const error = (call) => { try { call(); } catch (error) { return error; } return null; };
"""


def test_a_budget_pays_and_then_refuses(script: Script) -> None:
    run = f"""{STORAGE}
    const budget = new Budget(storage, {{ epsilon: 0.3, total: 0.5 }});
    for (let i = 0; i < 3; i += 1) budget.charge("constructor", 0.1);
    const refused = error(() => budget.charge("constructor", 0.1));
    budget.charge("ben", 0.1, {{ once: "a" }});
    budget.charge("ben", 0.1, {{ once: "a" }});
    const other = new Budget(storage, {{ epsilon: 0.3, total: 0.5 }});
    const overall = error(() => {{ other.charge("cy", 0.1); other.charge("cy", 0.1); }});
    const before = [other.spent("ben"), other.totalSpent, other.remaining("cy"), other.remaining("constructor")];
    other.forget("ben");
    return {{ refused: [refused instanceof BudgetExceededError, refused.requested, refused.remaining],
        overall: overall?.name, before, after: other.spent("ben") }};
    """
    found = script(run)
    assert found["refused"] == [True, 0.1, 0]
    assert found["overall"] == "BudgetExceededError"
    assert found["before"] == [0.1, 0.5, 0, 0]
    assert found["after"] == 0


def test_a_session_and_its_charges_are_stored_together(script: Script) -> None:
    run = f"""{STORAGE}
    const method = new SparseVector({{ fresh: 0.01, test: 0.01, limit: 500 }});
    const budget = new Budget(storage, {{ epsilon: 0.05 }});
    const start = () => new TraceSession(method, {{ key, person: "maps", budget }});
    const [first, second] = [start(), start()];
    first.report({{ lat: 48, lon: 2, time: 0 }});
    // A second object continues the first one's session, and one that repeats a step is not charged.
    const stayed = second.report({{ lat: 48, lon: 2, time: 60 }});
    const repeated = first.report({{ lat: 48, lon: 2, time: 60 }});
    const afterStay = budget.spent("maps");
    storage.setItem = () => {{ throw new Error("full"); }};
    const full = error(() => first.report({{ lat: 49, lon: 2, time: 120 }}));
    storage.setItem = setItem;
    const moved = first.report({{ lat: 49, lon: 2, time: 120 }});
    const afterMove = [budget.spent("maps"), first.spent];
    // 0.01 is left, less than the most expensive step: refused whether or not the person has moved.
    const before = store.get("geoind budget");
    const refused = [48, 49].map((lat) => error(() => first.report({{ lat, lon: 2, time: 180 }}))?.name);
    const same = JSON.stringify(stayed) === JSON.stringify(repeated);
    const unchanged = before === store.get("geoind budget");
    return {{ same, afterStay, full: full.message, afterMove, refused, unchanged }};
    """
    found = script(run)
    assert found["same"]
    assert found["afterStay"] == 0.02
    assert found["full"] == "full"
    assert found["afterMove"] == [0.04, 0.04]
    assert found["refused"] == ["BudgetExceededError"] * 2
    assert found["unchanged"]


def test_a_cell_is_charged_once(script: Script) -> None:
    run = f"""{STORAGE}
    const budget = new Budget(storage, {{ epsilon: 0.02 }});
    const places = new SamePlace(key, {{ cell: 1000 }});
    const ask = (lat) => places.obfuscate({{ lat, lon: 2.2945, epsilon: 0.01, person: "ana", budget }});
    const reports = [48.8584, 48.8584, 48.9].map(ask);
    const same = JSON.stringify(reports[0]) === JSON.stringify(reports[1]);
    return [same, budget.remaining("ana"), error(() => ask(50)).name];
    """
    assert script(run) == [True, 0, "BudgetExceededError"]
