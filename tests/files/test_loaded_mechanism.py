"""A mechanism that was saved and loaded, wherever a mechanism is taken."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely

import geoind.adapters.geopandas  # noqa: F401 - adds df.geoind
from geoind import (
    BudgetExceededError,
    Channel,
    Grid,
    InvalidInputError,
    KeyedRandomness,
    Ledger,
    PlanarLaplace,
    Prior,
    Projected,
    Projection,
    audit,
    level_of_reports,
    min_loss_given_epsilon,
    obfuscate,
    obfuscate_file,
    obfuscate_lonlat,
    private_query,
)
from geoind.arrays import FloatArray
from geoind.channels import Interpolated
from geoind.files import load_mechanism, save_mechanism
from geoind.tables import obfuscate as obfuscate_table

GRID = Grid(-600, -600, cell=300, columns=5, rows=5)
BOX = shapely.box(2.342, 48.855, 2.358, 48.865)
PLACES = np.random.default_rng(1).uniform([2.342, 48.855], [2.358, 48.865], (300, 2))


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Projected:
    prior = Prior(GRID, np.arange(25) / 300)
    best = min_loss_given_epsilon(prior, epsilon=0.002)
    file = tmp_path_factory.mktemp("city") / "city.parquet"
    save_mechanism(file, Projected(Interpolated(best), Projection(2.35, 48.86), domain=BOX))
    found = load_mechanism(file)
    assert isinstance(found, Projected)
    return found


def sites(city: Projected) -> set[tuple[float, float]]:
    """The reports that it can make."""
    return set(map(tuple, np.round(city.projection.to_lonlat(GRID.xy), city.decimals).tolist()))


def test_one_location_and_many(city: Projected) -> None:
    lat, lon = obfuscate(lat=48.861, lon=2.352, mechanism=city)
    assert (round(lon, 5), round(lat, 5)) in sites(city)
    many = obfuscate(lat=PLACES[:, 1], lon=PLACES[:, 0], mechanism=city)
    assert set(zip(many.lon.round(5).tolist(), many.lat.round(5).tolist(), strict=True)) <= sites(city)
    with pytest.raises(InvalidInputError, match="outside the domain"):
        obfuscate(lat=48.9, lon=2.352, mechanism=city)


def test_one_location_is_drawn_as_in_an_array(city: Projected) -> None:
    """From the same two words: the first chooses the site, the second the report."""
    assert isinstance(city.mechanism, Interpolated)
    assert city.sample_one is not None
    rng = np.random.default_rng(5)
    for lon, lat in PLACES.tolist():
        first, second = map(int, rng.integers(0, 2**64, 2, np.uint64))
        x, y = city.projection.to_xy([[lon, lat]])[0].tolist()
        wanted = city.reports[city.mechanism.sample_output(x, y, first, second)].tolist()
        assert list(city.sample_one(lon, lat, first, second)) == wanted
    with pytest.raises(InvalidInputError, match="outside the domain"):
        city.sample([[2.352, 48.9]])
    assert Projected(PlanarLaplace(0.01), city.projection).sample_one is None


def test_keyed_reports_do_not_depend_on_the_last_bits_of_metres(city: Projected) -> None:
    """Another version of PROJ may move places by nanometres; words of metres would be other words."""

    class Moved(Projection):
        def to_xy(self, lonlat: Any) -> FloatArray:
            return super().to_xy(lonlat) + 1e-8

    moved = Moved(2.35, 48.86)
    source = KeyedRandomness(bytes(32), np.arange(300))
    for planar in (city.mechanism, PlanarLaplace(0.01)):
        one, other = (Projected(planar, plane).sample(PLACES, rng=source) for plane in (city.projection, moved))
        assert (one == other).all()


def test_reports_are_those_of_the_channel_through_the_projection(city: Projected) -> None:
    planar = city.mechanism.sample(city.projection.to_xy(PLACES), rng=3)
    assert city.sample(PLACES, rng=3) == pytest.approx(city.projection.to_lonlat(planar), abs=1e-5)


def test_a_ledger_charges_its_epsilon_and_refuses_before_anything_is_drawn(city: Projected) -> None:
    with Ledger("sqlite://", budget=2.5 * city.epsilon) as ledger:
        assert ledger.charge("ana", city) == pytest.approx(1.5 * city.epsilon)
        obfuscate(lat=48.861, lon=2.352, mechanism=city, ledger=ledger, person_id="ana")
        with pytest.raises(BudgetExceededError):
            obfuscate(lat=48.861, lon=2.352, mechanism=city, ledger=ledger, person_id="ana")
        with pytest.raises(InvalidInputError, match="outside"):
            obfuscate(lat=48.9, lon=2.352, mechanism=city, ledger=ledger, person_id="ben")
        assert ledger.remaining("ben") == pytest.approx(2.5 * city.epsilon)


def test_a_key_and_a_record_give_the_same_report_and_another_record_another(city: Projected) -> None:
    labels = [*range(300)]
    one, again = (obfuscate_lonlat(PLACES, city, rng=KeyedRandomness(bytes(32), labels)) for _ in range(2))
    assert (one == again).all()
    alone = obfuscate_lonlat(PLACES[[7]], city, rng=KeyedRandomness(bytes(32), [7]))
    assert (alone == one[7]).all()
    other = obfuscate_lonlat(PLACES, city, rng=KeyedRandomness(bytes(32), [label + 300 for label in labels]))
    assert (one != other).any(axis=1).sum() > 50


def test_tables_and_frames(city: Projected) -> None:
    columns = {"trip": range(300), "rider": [f"r{number}" for number in range(300)], "lon": PLACES[:, 0]}
    frame = pd.DataFrame(columns | {"lat": PLACES[:, 1]})
    options: dict[str, Any] = {
        "person": "rider",
        "id_column": "trip",
        "key": bytes(32),
        "mechanism": city,
        "keep": ["trip"],
    }
    one = obfuscate_table(pa.Table.from_pandas(frame), **options).read_all().to_pandas()
    again = obfuscate_table(pa.Table.from_pandas(frame), **options).read_all().to_pandas()
    assert one.equals(again)
    assert set(map(tuple, one[["lon", "lat"]].round(5).to_numpy().tolist())) <= sites(city)
    with pytest.raises(InvalidInputError, match=r"row 3.*outside the domain of the mechanism"):
        obfuscate_table(
            pa.Table.from_pandas(frame.assign(lat=frame.lat + (frame.trip == 3))), **options
        ).read_all()
    reports = frame.geoind.obfuscate(**options)
    assert reports[["lon", "lat"]].to_numpy() == pytest.approx(one[["lon", "lat"]].to_numpy())


def test_an_audit_agrees_and_finds_a_promise_that_is_too_small(city: Projected) -> None:
    # In the plane, because an audit also goes beyond the domain.
    planar = city.mechanism
    assert not audit(planar, draws=20_000, rng=1).refuted
    assert audit(planar, epsilon=planar.epsilon / 20, draws=20_000, rng=1).refuted


def test_queries_and_levels_of_several_reports(city: Projected) -> None:
    query = private_query(lat=48.861, lon=2.352, radius=100, mechanism=city, rng=1)
    assert query.radius >= 100 + city.reach(0.95)
    # The sum of the reports, at most.
    level = level_of_reports(city, reports=5, radius=200, delta=1e-6)
    assert 0 < level <= 5 * 200 * city.epsilon * (1 + 1e-9)


@pytest.mark.parametrize("interpolated", [True, False])
def test_unfinished_work_of_one_mechanism_is_not_continued_with_another(
    city: Projected, interpolated: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They differ in one entry only."""
    assert isinstance(city.mechanism, Interpolated)
    channel = city.mechanism.channel
    matrix = channel.matrix.copy()
    matrix[0, [0, 1]] = matrix[0, [0, 1]].sum() / 2
    first, second = (
        Projected(Interpolated(each) if interpolated else each, Projection(2.35, 48.86), domain=BOX)
        for each in (Channel(GRID, GRID, channel.matrix), Channel(GRID, GRID, matrix))
    )
    (tmp_path / "days").mkdir()
    for name in ("monday.csv", "tuesday.csv"):
        (tmp_path / "days" / name).write_text("rider,lon,lat\nana,2.35,48.86\n")

    def obfuscate_days(mechanism: Projected) -> None:
        obfuscate_file(tmp_path / "days", tmp_path / "reports", person="rider", mechanism=mechanism)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("geoind.tables.unfinished.WorkFolder.publish", stop)
        with pytest.raises(KeyboardInterrupt):
            obfuscate_days(first)
    with pytest.raises(InvalidInputError, match="begun by another job"):
        obfuscate_days(second)
    obfuscate_days(first)
