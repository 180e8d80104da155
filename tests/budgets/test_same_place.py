import itertools
import math
import re
import secrets
from typing import Any

import numpy as np
import pyproj
import pytest

from geoind import BudgetExceededError, InvalidInputError, Ledger, Location, SamePlace, SphericalLaplace
from geoind.budgets.same_place import _rotation
from geoind.distances import EARTH_RADIUS
from tests.goodness import fits, is_uniform
from tests.keywords import Place
from tests.trials import trials

EPSILON = math.log(4) / 200
GEOD = pyproj.Geod(ellps="WGS84")
HOME: Place = {"lat": 48.8584, "lon": 2.2945}


def secret(number: int) -> bytes:
    return number.to_bytes(32, "big")


def test_the_same_place_gets_the_same_report_and_is_paid_once() -> None:
    ledger = Ledger("sqlite://", budget=EPSILON)
    reports = {
        SamePlace(secret(1)).obfuscate(**HOME, person_id="ana", epsilon=EPSILON, ledger=ledger) for _ in range(10)
    }
    assert len(reports) == 1
    assert ledger.remaining("ana") == pytest.approx(0, abs=1e-9)


def test_a_new_place_is_paid_and_an_old_one_stays_free_when_the_budget_is_gone() -> None:
    ledger, memory = Ledger("sqlite://", budget=2 * EPSILON), SamePlace(secret(1))

    def ask(lat: float, lon: float) -> Location[float]:
        return memory.obfuscate(lat=lat, lon=lon, person_id="ana", epsilon=EPSILON, ledger=ledger)

    first = ask(**HOME)
    ask(lat=48.9, lon=2.3)
    with pytest.raises(BudgetExceededError):
        ask(lat=48.7, lon=2.3)
    assert ask(**HOME) == first


def test_reports_of_one_place_at_three_epsilons_are_three_reports_and_cost_their_sum() -> None:
    memory = SamePlace(secret(1))
    with Ledger("sqlite://", budget=1) as ledger:
        for factor in (1, 2, 4, 2, 1):
            memory.obfuscate(**HOME, person_id="ana", epsilon=factor * EPSILON, ledger=ledger)
        assert ledger.spent("ana") == pytest.approx(7 * EPSILON)
    # The tokens themselves differ: a ledger that compares nothing else charges three.
    tokens = set()

    class Tokens:
        def charge(self, _person: str, _cost: object, *, once: str, **_: object) -> float:
            tokens.add(once)
            return 0.0

    for factor in (1, 2, 4, 2, 1):
        memory.obfuscate(**HOME, person_id="ana", epsilon=factor * EPSILON, ledger=Tokens())  # type: ignore[arg-type]
    assert len(tokens) == 3


@pytest.mark.slow
def test_the_grid_is_turned_by_a_uniformly_random_rotation() -> None:
    """Each entry of a uniform rotation has mean 0 and second moment 1/3, and no two are correlated."""
    turned = np.array([_rotation(secret(number)) for number in range(trials(8_000))])
    assert np.allclose(turned @ turned.transpose(0, 2, 1), np.eye(3))
    assert np.allclose(np.linalg.det(turned), 1)
    entries = turned.reshape(-1, 9)
    spread = 1 / math.sqrt(len(entries))
    assert np.abs(entries.mean(axis=0)).max() < 5 * math.sqrt(1 / 3) * spread
    assert np.abs(entries.T @ entries / len(entries) - np.eye(9) / 3).max() < 5 * math.sqrt(1 / 9) * spread
    # A uniform direction has uniform coordinates (Archimedes).
    assert all(is_uniform(math.pi * column) for column in entries.T)


def test_one_person_has_one_secret_however_the_name_was_typed() -> None:
    memory = SamePlace(secret(1))
    assert memory.obfuscate(**HOME, person_id="Zoe\u0301", epsilon=EPSILON) == memory.obfuscate(
        **HOME, person_id="Zo\u00e9", epsilon=EPSILON
    )
    assert memory.obfuscate(**HOME, person_id=7, epsilon=EPSILON) == memory.obfuscate(
        **HOME, person_id="7", epsilon=EPSILON
    )


def test_another_person_key_epsilon_or_cell_is_another_report() -> None:
    memory = SamePlace(secret(1))
    reports = {
        memory.obfuscate(**HOME, person_id="ana", epsilon=EPSILON),
        memory.obfuscate(**HOME, person_id="ben", epsilon=EPSILON),
        memory.obfuscate(**HOME, person_id="ana", epsilon=2 * EPSILON),
        SamePlace(secret(2)).obfuscate(**HOME, person_id="ana", epsilon=EPSILON),
        SamePlace(secret(1), cell=50).obfuscate(**HOME, person_id="ana", epsilon=EPSILON),
    }
    assert len(reports) == 5


def test_moving_within_a_cell_is_not_seen_and_every_cell_has_its_own_noise() -> None:
    memory = SamePlace(secret(3), cell=200)
    east = HOME["lon"] + np.linspace(0, 0.02, 400)  # 1.5 km in steps of 4 m
    reports = [memory.obfuscate(lat=HOME["lat"], lon=lon, person_id="ana", epsilon=EPSILON) for lon in east]
    changes = sum(a != b for a, b in itertools.pairwise(reports))
    assert 5 <= changes <= 15
    distinct = list(dict.fromkeys(reports))
    assert len(distinct) == changes + 1
    steps = [(round(b.lat - a.lat, 4), round(b.lon - a.lon, 4)) for a, b in itertools.pairwise(distinct)]
    assert len(set(steps)) == len(steps)


def test_the_centre_of_a_cell_is_within_reach_of_all_of_it() -> None:
    rng = np.random.default_rng(0)
    for number in range(3000):
        memory = SamePlace(secret(number % 7), cell=float(rng.choice([1, 100, 5000, 100_000])))
        lon, lat = rng.uniform(-180, 180), math.degrees(math.asin(rng.uniform(-1, 1)))
        _, (centre_lon, centre_lat) = memory._cell(memory._secret("ana"), lon, lat)
        assert GEOD.inv(lon, lat, centre_lon, centre_lat)[2] <= memory.cell_radius


def test_the_poles_of_the_turned_grid_lie_in_cells_of_it() -> None:
    """There the sine of the latitude is one, or rounds to more."""
    for number in range(300):
        memory = SamePlace(secret(number), cell=1000.0)
        rows = math.ceil(math.pi * EARTH_RADIUS / memory.cell)
        x, y, z = _rotation(memory._secret("ana"))[:, 2].tolist()
        lon, lat = math.degrees(math.atan2(y, x)), math.degrees(math.asin(z))
        for pole, end in (((lon, lat), rows - 1), (((lon + 360) % 360 - 180, -lat), 0)):
            (row, _), (centre_lon, centre_lat) = memory._cell(memory._secret("ana"), *pole)
            assert row == end
            assert GEOD.inv(*pole, centre_lon, centre_lat)[2] <= memory.cell_radius


def test_a_cell_may_have_a_pole_of_the_earth_for_its_centre(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = SamePlace(secret(1), cell=1000.0)
    rows = math.ceil(math.pi * EARTH_RADIUS / memory.cell)
    for row in range(rows // 4, rows // 4 + 200):
        rise = (row + 0.5) * math.pi / rows - math.pi / 2
        columns = math.ceil(2 * rows * math.cos(rise))
        turn = (row % columns + 0.5) * 2 * math.pi / columns - math.pi
        cosine, sine = math.cos(rise), math.sin(rise)
        up = np.array([cosine * math.cos(turn), cosine * math.sin(turn), sine])
        east = np.array([-math.sin(turn), math.cos(turn), 0.0])
        for sign in (1, -1):
            turned = np.array([east, np.cross(sign * up, east), sign * up])
            monkeypatch.setattr("geoind.budgets.same_place._rotation", lambda _, turned=turned: turned)
            number, (_, lat) = memory._cell(bytes(32), 0.0, 90.0 * sign)
            assert number == (row, row % columns)
            assert lat == pytest.approx(90 * sign, abs=1e-5)


@pytest.mark.parametrize("cell", [1, 100_000])
def test_a_cell_may_be_as_small_and_as_large_as_is_said(cell: int) -> None:
    memory = SamePlace(secret(1), cell=cell)
    assert isinstance(memory.cell, float)
    for number in range(50):
        place = {"lon": 7.2 * number - 180.0, "lat": 3.5 * number - 87.0}
        lon, lat = memory._cell(memory._secret("ana"), **place)[1]
        assert GEOD.inv(place["lon"], place["lat"], lon, lat)[2] <= memory.cell_radius


def test_the_meridian_where_a_row_ends_belongs_to_its_last_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("geoind.budgets.same_place._rotation", lambda _: np.eye(3))
    memory = SamePlace(secret(1), cell=100_000.0)
    for lat in (-89.9, -30.0, 0.1, 60.0, 89.9):
        (row, column), (lon, _) = memory._cell(bytes(32), 180.0, lat)
        assert lon > 0
        assert memory._cell(bytes(32), lon, lat)[0] == (row, column)
        assert memory._cell(bytes(32), math.nextafter(-180.0, 0), lat)[0] == (row, 0)


def test_a_cell_is_a_hundred_metres_wide_by_default() -> None:
    assert SamePlace(secret(1)) == SamePlace(secret(1), cell=100)


def centres(lat: float, count: int, cell: float) -> tuple[np.ndarray, np.ndarray]:
    """Distances and bearings from one truth to the centre of its cell, for many secrets."""
    moved = [SamePlace(secret(n), cell=cell)._cell(secret(n + 10**6), 10.0, lat)[1] for n in range(count)]
    ends, ones = np.array(moved), np.ones(count)
    bearing, _, apart = GEOD.inv(10.0 * ones, lat * ones, ends[:, 0], ends[:, 1])
    return np.asarray(apart), np.radians(bearing)


@pytest.mark.slow
def test_without_the_secret_a_cells_centre_is_noise_that_looks_the_same_everywhere() -> None:
    """What the proof of the promise rests on: borders that are public would fail it."""
    equator, _ = centres(0.0, 4000, 1000.0)
    north, bearings = centres(80.0, 4000, 1000.0)
    assert is_uniform(bearings)
    from scipy import stats

    assert stats.ks_2samp(equator, north).pvalue > 1e-4
    assert stats.ks_2samp(equator * 1.05, north).pvalue < 1e-4
    # Uniform over a square cell, whatever the truth: mean distance from the centre of a unit square.
    assert equator.mean() == pytest.approx(1000 * 0.3826, rel=0.02)


@pytest.mark.slow
def test_a_step_across_a_border_does_not_cost_a_cell() -> None:
    """Over the secrets, reports from two places 20 m apart fall beyond a line about equally often.

    With cells of 1 000 m and public borders the ratio for two sides of a border would be up to
    exp(1000 * epsilon) = 1000; promised is exp(20 * epsilon) = 1.15.
    """
    cell, count = 1000.0, trials(1500)
    rows = math.ceil(math.pi * EARTH_RADIUS / cell)
    border = 180 / rows * (rows // 2 + 1100) - 90  # where the grid has a border if it is not turned
    step = 10 / 111_195
    beyond = []
    for lat in (border - step, border + step):
        reports = [
            SamePlace(secret(n), cell).obfuscate(lat=lat, lon=10.0, person_id="a", epsilon=EPSILON)
            for n in range(count)
        ]
        beyond.append(sum(report.lat > border for report in reports))
    ratio = max(beyond[1] / beyond[0], (count - beyond[0]) / (count - beyond[1]))
    assert ratio <= math.exp(20 * EPSILON) * (1 + 4.5 * math.sqrt(2 / (count / 2)))


@pytest.mark.slow
def test_given_the_cell_the_noise_is_the_mechanisms() -> None:
    globe = SphericalLaplace(EPSILON)
    truth, reports = [], []
    for number in range(4000):
        memory = SamePlace(secret(number))
        truth.append(memory._cell(memory._secret("ana"), HOME["lon"], HOME["lat"])[1])
        report = memory.obfuscate(**HOME, person_id="ana", epsilon=EPSILON)
        reports.append([report.lon, report.lat])
    sphere = pyproj.Geod(a=6_371_008.8, b=6_371_008.8)
    starts, ends = np.array(truth), np.array(reports)
    bearing, _, apart = sphere.inv(starts[:, 0], starts[:, 1], ends[:, 0], ends[:, 1])
    assert is_uniform(np.radians(bearing))
    assert fits(np.asarray(apart), globe.radius_cdf)
    assert not fits(np.asarray(apart) * 1.15, globe.radius_cdf)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"key": b"short"}, "key"),
        ({"key": "x" * 32}, "key"),
        ({"cell": 0}, "cell"),
        ({"cell": 0.5}, "cell"),
        ({"cell": math.nan}, "cell"),
        ({"cell": 100_000.5}, "cell"),
    ],
    ids=str,
)
def test_a_bad_memory_has_its_error(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        SamePlace(**{"key": secrets.token_bytes(32), **arguments})  # type: ignore[arg-type]


def test_a_bad_request_has_its_error_and_is_not_charged() -> None:
    ledger, memory = Ledger("sqlite://", budget=1), SamePlace(secret(1))
    asked: dict[str, Any] = {**HOME, "person_id": "ana", "epsilon": EPSILON, "ledger": ledger}
    for bad in ({"lat": 91.0}, {"lon": math.nan}, {"epsilon": 0}, {"person_id": ""}):
        with pytest.raises(InvalidInputError):
            memory.obfuscate(**{**asked, **bad})
    assert ledger.spent("ana") == 0


def test_the_key_is_not_printed_and_the_ledger_holds_a_keyed_hash_instead_of_the_cell() -> None:
    key = secrets.token_bytes(32)
    assert key.hex() not in repr(SamePlace(key))
    assert repr(key) not in repr(SamePlace(key))
    tokens: list[tuple[str]] = []
    for memory in (SamePlace(secret(1)), SamePlace(secret(1)), SamePlace(secret(2))):
        ledger = Ledger("sqlite://", budget=1)
        memory.obfuscate(**HOME, person_id="ana", epsilon=EPSILON, ledger=ledger)
        with ledger._database.transaction(writes=False) as connection:
            tokens += [(token,) for (token,) in connection.exec_driver_sql("SELECT token FROM geoind_once")]
    assert tokens[0] == tokens[1] != tokens[2]
    assert all(re.fullmatch("[0-9a-f]{32}", token) for (token,) in tokens)
