import asyncio
import importlib
import math
import tracemalloc
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import fastapi
import geopandas
import httpx
import numpy as np
import pandas as pd
import pytest
import shapely

from geoind import (
    BudgetExceededError,
    ClosestIn,
    InvalidInputError,
    KeyedRandomness,
    Location,
    Mechanism,
    PlanarLaplace,
    PostProcessed,
    Projected,
    Projection,
    SamePlace,
    SphericalGaussian,
    SphericalLaplace,
    TraceSession,
    epsilon_for,
    mechanism_for_reports,
    obfuscate,
    obfuscate_lonlat,
    private_query,
)
from geoind.arrays import ArrayLike, FloatArray
from geoind.keys import Words
from geoind.mechanisms.noise import BLOCK
from geoind.mechanisms.protocol import RandomnessLike, Space
from geoind.pipeline import Costs, ReportCounts
from geoind.traces import SparseVector
from tests.keywords import Place, Together

EPSILON = math.log(4) / 200
LATTICE = ClosestIn(shapely.box(0, 0, 9, 9))
EIFFEL: Place = {"lat": 48.8584, "lon": 2.2945}


def test_the_first_call_of_the_readme_works() -> None:
    report = obfuscate(lat=48.8584, lon=2.2945, level=math.log(4), radius=200)
    assert isinstance(report, Location)
    assert isinstance(report.lat, float)
    assert report.lat == round(report.lat, 5)
    assert abs(report.lat - 48.8584) < 0.5


def test_scalars_give_floats_and_arrays_give_arrays_of_their_shape() -> None:
    lat, lon = obfuscate(lat=np.full((2, 3), 10.0), lon=np.zeros((2, 3)), epsilon=EPSILON)
    assert lat.shape == lon.shape == (2, 3)
    report = obfuscate(lat=np.float32(10), lon=0, epsilon=EPSILON)  # type: ignore[call-overload]
    assert type(report.lat) is type(report.lon) is float
    empty = obfuscate(lat=[], lon=[], epsilon=EPSILON)
    assert empty.lat.shape == empty.lon.shape == (0,)


def test_a_scalar_and_an_array_of_one_agree_under_a_seed() -> None:
    one = obfuscate(**EIFFEL, epsilon=EPSILON, rng=1)
    many = obfuscate(lat=[48.8584], lon=[2.2945], epsilon=EPSILON, rng=1)
    assert (one.lat, one.lon) == (many.lat[0], many.lon[0])


def test_scalar_calls_have_the_noise_of_the_mechanism() -> None:
    north = np.array([obfuscate(lat=0.0, lon=0.0, epsilon=EPSILON).lat for _ in range(20_000)]) * 111_195
    assert np.var(north) == pytest.approx(3 / (EPSILON / 1.0057) ** 2, rel=0.1)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"lat": math.nan}, "finite"),
        ({"lat": math.inf}, "finite"),
        ({"lat": 90.1}, "latitude"),
        ({"lat": -90.1}, "latitude"),
        ({"lon": -180.5}, "longitude"),
        ({"lon": 180.5}, "longitude"),
        ({"lat": "48.85"}, "numbers"),
        ({"lat": None}, "numbers"),
        ({"lat": True}, "numbers"),
        ({"lat": [1.0, 2.0]}, "same shape"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": "0.1"}, "epsilon"),
        ({"epsilon": [0.1]}, "numbers"),
        ({"epsilon": 1e-9}, "round the Earth"),
        ({"epsilon": None}, "give `epsilon=`"),
        ({"level": 1.0}, "not both"),
        ({"epsilon": None, "level": 1.0}, "`level=` and `radius=`"),
        ({"epsilon": None, "level": 0.0, "radius": 200.0}, "level"),
        ({"epsilon": None, "level": 1.0, "radius": -200.0}, "radius"),
        ({"mechanism": SphericalLaplace(1.0)}, "not several"),
        ({"epsilon": None, "mechanism": "laplace"}, "mechanism must have"),
        ({"epsilon": None, "mechanism": PlanarLaplace(0.01)}, "takes metres"),
        ({"epsilon": None, "mechanism": PostProcessed(PlanarLaplace(9.0), LATTICE)}, "takes metres"),
        ({"delta": 1e-5}, "not with `epsilon=`"),
        ({"reports": 5}, "goes with `delta=`"),
        ({"epsilon": None, "level": 1.0, "delta": 1e-5}, "goes with `level=` and `radius=`"),
        ({"epsilon": None, "level": 1.0, "radius": 200.0, "delta": 1.0}, "delta must"),
        ({"epsilon": None, "level": 1.0, "radius": 200.0, "delta": 1e-5, "reports": 0}, "reports must"),
        ({"epsilon": None, "level": 1e3, "radius": 1.0, "delta": 1e-5}, "likely a unit error"),
        ({"rng": "seed"}, "rng must"),
        ({"person_id": "alice"}, "go together"),
    ],
    ids=str,
)
def test_every_bad_argument_has_its_error(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        obfuscate(**{**EIFFEL, "epsilon": EPSILON, **bad})


def test_several_reports_together_get_the_least_noise_that_keeps_their_promise() -> None:
    promise: Together = {"level": math.log(4), "radius": 200.0, "delta": 1e-5, "reports": 20}
    noise = mechanism_for_reports(**promise, space="lonlat")
    assert obfuscate(**EIFFEL, **promise, rng=5) == obfuscate(**EIFFEL, mechanism=noise, rng=5)
    assert obfuscate(**EIFFEL, **promise, mechanism=SphericalGaussian(4000.0), rng=5)
    with pytest.raises(InvalidInputError, match=r"the delta of 20 reports .* more than 1e-05"):
        obfuscate(**EIFFEL, **promise, mechanism=SphericalGaussian(400.0), rng=5)


NORTH, EAST = "latitude must be between -90 and 90", "longitude must be between -180 and 180"

SCALAR_CALLS: dict[str, Callable[[float, float], object]] = {
    "obfuscate": lambda lat, lon: obfuscate(lat=lat, lon=lon, epsilon=EPSILON),
    "obfuscate, seeded": lambda lat, lon: obfuscate(lat=lat, lon=lon, epsilon=EPSILON, rng=1),
    "private_query": lambda lat, lon: private_query(lat=lat, lon=lon, radius=300, epsilon=EPSILON),
    "SamePlace": lambda lat, lon: SamePlace(bytes(32), cell=100).obfuscate(
        lat=lat, lon=lon, person_id="ana", epsilon=EPSILON
    ),
    "TraceSession": lambda lat, lon: TraceSession(SparseVector.for_accuracy(500)).report(lat=lat, lon=lon, time=0),
}


@pytest.mark.parametrize("call", SCALAR_CALLS.values(), ids=SCALAR_CALLS)
@pytest.mark.parametrize(
    ("lat", "lon", "message"),
    [
        (91.2345678, 2.3456789, f"{NORTH}: are lat and lon swapped?"),
        (-179.2345678, -89.3456789, f"{NORTH}: are lat and lon swapped?"),
        (91.2345678, 92.3456789, NORTH),
        (181.2345678, 2.3456789, NORTH),
        (2.3456789, 181.2345678, EAST),
        (math.nan, 2.3456789, "latitude must be a finite number"),
        (2.3456789, -math.inf, "longitude must be a finite number"),
    ],
)
def test_a_bad_coordinate_of_a_scalar_call_is_named_without_its_value_and_without_a_row(
    call: Callable[[float, float], object], lat: float, lon: float, message: str
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        call(lat, lon)
    assert str(caught.value) == message


def test_a_planar_mechanism_is_never_given_degrees() -> None:
    with pytest.raises(InvalidInputError, match=r"takes metres.*Projected"):
        obfuscate_lonlat([[2.2945, 48.8584]], PlanarLaplace(100.0))


@pytest.mark.parametrize("places", [(48.8584, 2.2945), ([48.8584],), ("48.8584",), (pd.Series([48.8584]),)])
def test_swapping_by_position_is_impossible(places: tuple[object, ...]) -> None:
    with pytest.raises(InvalidInputError, match=r"by name: obfuscate\(lat=\.\.\., lon=\.\.\.") as caught:
        obfuscate(*places, epsilon=EPSILON)  # type: ignore[call-overload]
    assert "48.8584" not in str(caught.value)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"lat": [48.8584], "lon": [2.2945]}),
        geopandas.GeoDataFrame(geometry=geopandas.points_from_xy([2.2945], [48.8584]), crs=4326),
        geopandas.GeoSeries.from_xy([2.2945], [48.8584], crs=4326),
    ],
    ids=lambda frame: type(frame).__name__,
)
def test_the_error_for_a_frame_names_the_call_that_then_works(frame: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"import geoind\.adapters\.geopandas, then df\.geoind\.obfuscate"):
        obfuscate(frame)  # type: ignore[call-overload]
    importlib.import_module("geoind.adapters.geopandas")
    assert callable(frame.geoind.obfuscate)


@pytest.mark.parametrize("given", [{}, {"lat": 48.8584}, {"lon": 2.2945}], ids=str)
def test_a_missing_coordinate_is_an_error_of_ours(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="lat and lon must be numbers or arrays"):
        obfuscate(**given, epsilon=EPSILON)


def test_a_location_becomes_an_object_in_the_json_of_fastapi_as_documented() -> None:
    app = fastapi.FastAPI()

    @app.get("/report")
    def report() -> dict[str, float]:
        return obfuscate(**EIFFEL, epsilon=EPSILON)._asdict()

    async def ask() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
            return await client.get("/report")

    with ThreadPoolExecutor() as threads:
        # In a thread: the browser tests leave an event loop in this one.
        answer = threads.submit(lambda: asyncio.run(ask())).result().json()
    assert list(answer) == ["lat", "lon"]
    assert abs(answer["lat"] - EIFFEL["lat"]) < 0.5
    assert abs(answer["lon"] - EIFFEL["lon"]) < 0.5


def test_a_true_and_a_one_are_not_confused_by_the_cache() -> None:
    assert obfuscate(**EIFFEL, level=1.0, radius=200.0)
    with pytest.raises(InvalidInputError):
        obfuscate(**EIFFEL, level=True, radius=200.0)


def test_level_and_radius_make_epsilon() -> None:
    assert epsilon_for() == math.log(4) / 200
    assert epsilon_for(level=math.log(2), radius=100) == math.log(2) / 100


def test_a_planar_mechanism_speaks_degrees_through_a_projection() -> None:
    paris = Projected(PlanarLaplace(EPSILON), Projection(2.35, 48.86))
    report = obfuscate(**EIFFEL, mechanism=paris)
    assert report.lon == round(report.lon, 5)


def test_a_mechanism_of_the_user_ends_on_the_lattice_too() -> None:
    class Shift:
        epsilon = 1.0
        space: Space = "lonlat"

        def reach(self, confidence: float) -> float:
            return 100_000 * confidence

        def sample(self, points: ArrayLike, *, rng: RandomnessLike = None) -> FloatArray:  # noqa: ARG002
            return np.asarray(points) + 1 / 3

    assert obfuscate(lat=0.0, lon=0.0, mechanism=Shift()) == (0.33333, 0.33333)


@dataclass
class Purse:
    """A budget in memory, that notes what happened."""

    left: float = 1.0
    notes: list[str] = field(default_factory=list)

    def charge_all(self, costs: Costs, **more: Any) -> None:
        raise AssertionError(f"these are no traces: {costs} {more}")

    def charge_counts(
        self, reports: ReportCounts, cost: Mechanism, *, label: str = "", once: Mapping[str, str] | None = None
    ) -> None:
        assert not label
        assert once is None
        count = sum(reports.values())
        if count * cost.epsilon > self.left:
            raise BudgetExceededError(str(min(reports, key=str)), count * cost.epsilon, self.left)
        self.left -= count * cost.epsilon
        self.notes.append(f"{count} paid")


@dataclass
class Watched:
    notes: list[str]

    def words(self, points: FloatArray, count: int, purpose: str) -> Words:  # noqa: ARG002
        self.notes.append("drawn")
        return np.zeros((len(points), count), np.uint64)

    def further(self, row: int, point: FloatArray, purpose: str, number: int) -> tuple[int, int]:  # noqa: ARG002
        return 1, 1


def test_the_budget_is_charged_before_the_noise_is_drawn() -> None:
    purse = Purse()
    place: dict[str, Any] = {"lat": [1.0, 2.0], "lon": [1.0, 2.0], "epsilon": 0.01}
    obfuscate(**place, ledger=purse, person_id="alice", rng=Watched(purse.notes))
    assert purse.notes == ["2 paid", "drawn"]
    assert purse.left == pytest.approx(0.98)
    obfuscate(lat=1.0, lon=1.0, epsilon=0.01, ledger=purse, person_id="alice")
    assert purse.left == pytest.approx(0.97)


@pytest.mark.parametrize("lat", [1.0, [1.0, 2.0]], ids=["one", "two"])
def test_a_whole_number_is_a_person_and_what_is_no_name_is_an_error(lat: float | list[float]) -> None:
    purse = Purse()
    persons: list[Any] = [5, np.int64(5), np.full(np.size(lat), 5)]
    no_names: list[Any] = [5.0, b"ana"[: np.size(lat)], object(), [["ana"]] * np.size(lat)]
    place: dict[str, Any] = {"lat": lat, "lon": lat, "epsilon": 0.01, "ledger": purse}
    for person in persons:
        obfuscate(**place, person_id=person)
    paid = purse.notes.copy()
    assert len(paid) == 3
    for person in no_names:
        with pytest.raises(InvalidInputError, match="person_id must be text or a whole number"):
            obfuscate(**place, person_id=person)
    assert purse.notes == paid


def test_persons_of_one_call_are_all_text_or_all_numbers() -> None:
    purse = Purse()
    with pytest.raises(InvalidInputError, match="not both"):
        obfuscate(lat=[1.0, 2.0], lon=[1.0, 2.0], epsilon=0.01, ledger=purse, person_id=["7", 7])
    assert not purse.notes


@dataclass
class Strict:
    """A mechanism that refuses every truth."""

    epsilon: float = 0.01
    space: Space = "lonlat"

    def reach(self, confidence: float) -> float:
        return confidence

    def check_truths(self, points: FloatArray) -> None:
        raise InvalidInputError(f"{len(points)} truths are refused")

    def sample(self, points: ArrayLike, *, rng: RandomnessLike = None) -> FloatArray:
        raise NotImplementedError


def test_what_a_mechanism_refuses_is_not_paid_for_whatever_is_wrapped_around_it() -> None:
    purse = Purse()
    paris = Projected(Strict(space="xy"), Projection(2.35, 48.86))
    for mechanism in (Strict(), PostProcessed(Strict(), np.copy), PostProcessed(paris, np.copy)):
        with pytest.raises(InvalidInputError, match="1 truths are refused"):
            obfuscate(**EIFFEL, mechanism=mechanism, ledger=purse, person_id="ana")
    assert purse.notes == []


def test_an_exceeded_budget_draws_and_charges_nothing() -> None:
    purse = Purse(left=0.015)
    with pytest.raises(BudgetExceededError) as caught:
        obfuscate(lat=[1, 2], lon=[1, 2], epsilon=0.01, ledger=purse, person_id="alice", rng=Watched(purse.notes))
    assert (caught.value.person, caught.value.requested, caught.value.remaining) == ("alice", 0.02, 0.015)
    assert purse.notes == []


@pytest.mark.parametrize(
    "bad",
    [
        {"lat": math.nan},
        {"lat": -90.0, "mechanism": Projected(PlanarLaplace(0.01), Projection.from_crs("EPSG:2154"))},
        {"rng": KeyedRandomness(bytes(32), [1, 2])},
        {"person_id": ["alice", "bob"]},
    ],
    ids=str,
)
def test_bad_input_is_never_charged(bad: dict[str, Any]) -> None:
    purse = Purse()
    arguments: dict[str, Any] = {
        **EIFFEL,
        "mechanism": SphericalLaplace(0.01),
        "ledger": purse,
        "person_id": "alice",
        **bad,
    }
    with pytest.raises(InvalidInputError):
        obfuscate(**arguments)
    assert purse.notes == []


def test_one_person_per_location_pays_for_each() -> None:
    purse = Purse()
    obfuscate_lonlat([[0, 0], [1, 1]], SphericalLaplace(0.01), ledger=purse, person_id=["alice", "bob"])
    assert purse.notes == ["2 paid"]


def test_a_mechanism_that_ignores_our_randomness_is_charged_all_the_same() -> None:
    class Own:
        epsilon = 0.01
        space: Space = "lonlat"

        def reach(self, confidence: float) -> float:
            return confidence

        def sample(self, points: ArrayLike, *, rng: RandomnessLike = None) -> FloatArray:  # noqa: ARG002
            return np.asarray(points)

    purse = Purse()
    obfuscate_lonlat([[0, 0]], Own(), ledger=purse, person_id="alice")
    assert purse.notes == ["1 paid"]


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({"epsilon": 5}, "epsilon 5 per metre moves reports by 0.4 m on average, less than 10 m"),
        ({"epsilon": 1.0}, "epsilon 1 per metre moves reports by 2 m on average"),
        ({"level": math.log(4), "radius": 0.2}, "epsilon 6.93 per metre moves reports by 0.29 m on average"),
        ({"epsilon": 0.2001}, r"For so little noise, pass `mechanism=SphericalLaplace\(epsilon\)"),
    ],
    ids=str,
)
def test_an_epsilon_of_other_units_is_refused_in_metres(choice: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        obfuscate(**EIFFEL, **choice)


def test_little_noise_is_possible_with_a_mechanism() -> None:
    assert obfuscate(**EIFFEL, epsilon=0.2)
    report = obfuscate(**EIFFEL, mechanism=SphericalLaplace(5.0))
    assert abs(report.lat - 48.8584) < 1e-3
    assert PlanarLaplace(5.0).sample([[0.0, 0.0]]).shape == (1, 2)  # in the plane metres are what you choose


@pytest.mark.parametrize("half", [{"person_id": "alice"}, {"ledger": Purse()}], ids=["person", "ledger"])
def test_a_person_without_a_ledger_and_a_ledger_without_a_person_are_refused_everywhere(
    half: dict[str, Any],
) -> None:
    with pytest.raises(InvalidInputError, match="go together"):
        obfuscate_lonlat([[2.2945, 48.8584]], SphericalLaplace(0.01), **half)
    with pytest.raises(InvalidInputError, match="go together"):
        obfuscate(**EIFFEL, epsilon=0.01, **half)
    with pytest.raises(InvalidInputError, match="go together"):
        obfuscate(lat=[1.0], lon=[1.0], epsilon=0.01, **half)


def test_many_reports_take_little_more_memory_than_truths_and_reports_themselves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("geoind.mechanisms.noise.available_cores", lambda: 1)
    lat, lon = np.zeros(400_000), np.zeros(400_000)
    obfuscate(lat=lat[:1], lon=lon[:1], epsilon=0.01)
    tracemalloc.start()
    obfuscate(lat=lat, lon=lon, epsilon=0.01)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    one_block = 30 * 8 * BLOCK
    assert peak < 2 * (lat.nbytes + lon.nbytes) + one_block
