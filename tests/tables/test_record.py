"""The release record: members are checked when read, and say what was released; the summary is for people."""

import contextlib
import json
import math
import shlex
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import geoind
from geoind import (
    Channel,
    Grid,
    Places,
    PlanarGaussian,
    PlanarLaplace,
    PostProcessed,
    Projected,
    Projection,
    SphericalLaplace,
)
from geoind.cli import main
from geoind.errors import InvalidInputError
from geoind.files import read_reports
from geoind.mechanisms.noise import half_diagonal
from geoind.mechanisms.protocol import Mechanism, mean_error
from geoind.tables import PersonTotal, ReleaseRecord, Summary, sidecar_of
from geoind.tables.parts import Part, Reports, corners_of
from geoind.tables.recipe import EACH_ROW, Recipe
from geoind.tables.release import Release
from geoind.tables.sidecars import read_promise, write_sidecar
from geoind.tables.table import Table
from tests.tables.made_up import in_batches, table_of
from tests.trials import trials


def record_of(mechanism: Mechanism, **members: Any) -> ReleaseRecord:
    return ReleaseRecord.of(mechanism, unit="each row", **members)


def plain_record(*, level: float | None = None, radius: float | None = None) -> ReleaseRecord:
    return record_of(geoind.SphericalLaplace(0.01), level=level, radius=radius)


def test_the_json_has_mechanism_epsilon_lattice_columns_totals_and_version() -> None:
    busiest = PersonTotal(reports=7, epsilon=0.07, level=12.5, radius=200.0, delta=1e-6)
    median = PersonTotal(reports=1, epsilon=0.01, level=2.0, radius=200.0, delta=0.0)
    record = ReleaseRecord.of(
        SphericalLaplace(0.01),
        unit="column",
        level=2.0,
        radius=200.0,
        places=(("from_lon", "from_lat"), ("to",)),
        kept=("fare",),
        persons=12,
        busiest=busiest,
        median=median,
    )
    assert json.loads(record.to_json()) == {
        "mechanism": "SphericalLaplace",
        "epsilon": 0.01,
        "level": 2.0,
        "radius": 200.0,
        "decimals": 5,
        "places": [["from_lon", "from_lat"], ["to"]],
        "kept": ["fare"],
        "unit": "column",
        "persons": 12,
        "busiest": {"reports": 7, "epsilon": 0.07, "level": 12.5, "radius": 200.0, "delta": 1e-6},
        "median": {"reports": 1, "epsilon": 0.01, "level": 2.0, "radius": 200.0, "delta": 0.0},
        "version": geoind.__version__,
    }
    assert ReleaseRecord.from_json(record.to_json()) == record


@pytest.mark.parametrize(
    ("total", "words"),
    [
        (PersonTotal(reports=1, epsilon=0.01), "1 report, epsilon 0.01 per metre"),
        (
            PersonTotal(reports=2000, epsilon=20.0, level=19.25, radius=100, delta=1e-6),
            "2,000 reports, epsilon 20 per metre together (level 19.2 within 100 m, delta 1e-06)",
        ),
        (PersonTotal(reports=3, epsilon=float("inf")), "3 reports"),
        (PersonTotal(reports=0, epsilon=0.0), "0 reports, epsilon 0 per metre"),
    ],
)
def test_a_total_in_words_and_in_json_is_the_same_total(total: PersonTotal, words: str) -> None:
    assert str(total) == words
    text = json.dumps(total.to_json(), allow_nan=False)
    assert PersonTotal.from_json(json.loads(text)) == total


def test_level_and_radius_are_absent_when_epsilon_was_given() -> None:
    assert "level" not in json.loads(plain_record().to_json())


def test_a_coarser_lattice_is_part_of_the_promise() -> None:
    assert record_of(geoind.SphericalLaplace(5e-6, decimals=3)).decimals == 3


def test_a_wrapped_mechanism_is_named_with_what_it_wraps() -> None:
    paris = geoind.Projected(geoind.PlanarLaplace(0.01), geoind.Projection(2.35, 48.86))
    assert record_of(paris).mechanism == "Projected(PlanarLaplace)"


def test_reading_finds_the_sidecar(tmp_path: Path) -> None:
    path = tmp_path / "reports.csv"
    path.write_text("lon,lat\n")
    sidecar_of(path).write_text(plain_record(level=2.0, radius=200.0).to_json())
    assert read_promise(path) == plain_record(level=2.0, radius=200.0)


def test_reading_finds_parquet_metadata(tmp_path: Path) -> None:
    table = pyarrow.table({"lon": [0.0]}).replace_schema_metadata({b"geoind": plain_record().to_json()})
    path = tmp_path / "reports.parquet"
    pyarrow.parquet.write_table(table, path)
    assert read_promise(path) == plain_record()
    pyarrow.parquet.write_table(table.replace_schema_metadata(None), path)
    with pytest.raises(InvalidInputError, match="has no release record"):
        read_promise(path)


def test_a_file_without_a_promise_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "reports.csv"
    path.write_text("lon,lat\n")
    with pytest.raises(InvalidInputError, match="has no release record"):
        read_promise(path)
    with pytest.raises(InvalidInputError, match="no such file"):
        read_promise(tmp_path / "nowhere.csv")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"mechanism": "x", "epsilon": 0.01, "unit": "each row", "version": "1"}',
        '{"mechanism": "x", "epsilon": 0, "unit": "each row", "version": "1", "decimals": 5}',
        '{"mechanism": "x", "epsilon": NaN, "unit": "each row", "version": "1", "decimals": 5}',
        '{"mechanism": "x", "epsilon": 0.01, "unit": "1/km", "version": "1", "decimals": 5}',
    ],
)
def test_a_broken_promise_file_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="release record"):
        ReleaseRecord.from_json(text)


@pytest.mark.parametrize("sites", [Grid(0, 0, cell=100, columns=3, rows=1), Places([[0, 0], [100, 0], [200, 0]])])
def test_a_promise_between_sites_says_what_holds_off_them(sites: Grid | Places) -> None:
    channel = Channel(sites, sites, [[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]])
    mechanism = Projected(channel, Projection(2.35, 48.86))
    promise = record_of(mechanism)
    assert promise.mechanism == "Projected(Channel)"
    assert promise.epsilon == mechanism.epsilon > channel.epsilon
    assert promise.off_site_level == mechanism.off_site_level > 0.9
    assert ReleaseRecord.from_json(promise.to_json()) == promise
    json.loads(promise.to_json(), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert "off_site_level" not in record_of(SphericalLaplace(0.01)).to_json()


def test_a_projected_promise_is_the_one_on_the_ground() -> None:
    oslo = shapely.box(10, 59.8, 11.5, 60.2)
    mechanism = Projected(PlanarLaplace(0.01), Projection.from_crs("EPSG:3857"), domain=oslo)
    assert record_of(mechanism).epsilon > 0.0198


def test_noise_without_a_promise_says_so_in_json_that_everybody_reads() -> None:
    mechanism = Projected(PlanarGaussian(500), Projection(2.35, 48.86))
    promise = record_of(mechanism)
    assert json.loads(promise.to_json(), parse_constant=pytest.fail)["epsilon"] is None
    assert ReleaseRecord.from_json(promise.to_json()) == promise
    assert mechanism.guarantee == "No bound on the privacy loss per metre: PlanarGaussian has no epsilon."


def test_gaussian_noise_has_its_sigma_and_the_level_of_all_reports_in_the_record() -> None:
    noise = geoind.SphericalGaussian(3000.0)
    promise = record_of(noise, level=1.5, radius=200.0, delta=1e-5, reports=20)
    found = json.loads(promise.to_json())
    assert found["epsilon"] is None
    assert (found["sigma"], found["level"], found["radius"]) == (3000.0, 1.5, 200.0)
    assert (found["reports"], found["delta"]) == (20, 1e-5)
    assert ReleaseRecord.from_json(promise.to_json()) == promise
    assert str(promise) == "level 1.5 within 200 m, 20 reports together, up to delta 1e-05"
    assert str(record_of(noise)) == "Gaussian noise, sigma 3000 m"
    assert str(record_of(SphericalLaplace(0.01))) == "epsilon 0.01 per metre"


def test_a_projected_sigma_is_recorded_in_metres_on_the_ground() -> None:
    web = Projection.from_crs("EPSG:3857")
    oslo = Projected(geoind.PlanarGaussian(500), web, domain=shapely.box(10, 59.8, 11, 60.2))
    assert record_of(oslo).sigma == pytest.approx(250, rel=0.02)
    assert ReleaseRecord.from_json(record_of(oslo).to_json()).epsilon == float("inf")


def test_a_promise_is_of_one_report_without_delta_unless_it_says_so() -> None:
    plain = ReleaseRecord(
        mechanism="SphericalLaplace", epsilon=0.01, decimals=5, unit="each row", version=geoind.__version__
    )
    assert plain == plain_record() == ReleaseRecord.from_json(plain.to_json())
    assert (plain.reports, plain.delta, plain.off_site_level) == (1, 0.0, 0.0)


@pytest.mark.parametrize(
    ("name", "within", "beyond"),
    [("radius", 1e-6, 0.99e-6), ("zones", 10**12, 10**12 + 1), ("time_step", (("at", 1),), (("at", 0.99),))],
)
def test_a_number_is_within_its_limits(name: str, within: object, beyond: object) -> None:
    promise = plain_record(level=2.0, radius=200.0)
    assert getattr(replace(promise, **{name: within}), name) == within  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=f"{name} must be"):
        replace(promise, **{name: beyond})  # type: ignore[arg-type]


def test_a_level_means_nothing_without_its_radius() -> None:
    for members in ({"level": 2.0}, {"radius": 200.0}):
        with pytest.raises(InvalidInputError, match="level must be there with radius only"):
            plain_record(**members)


def test_a_promise_up_to_delta_says_of_how_many_reports_it_speaks() -> None:
    noise = geoind.SphericalGaussian(3000.0)
    for reports, many in ((1, "each"), (2, "2 reports together")):
        promise = record_of(noise, level=1.5, radius=200.0, delta=1e-5, reports=reports)
        assert str(promise) == f"level 1.5 within 200 m, {many}, up to delta 1e-05"
        assert ReleaseRecord.from_json(promise.to_json()).reports == reports


def test_reading_finds_what_pandas_makes_of_a_record(tmp_path: Path) -> None:
    notes = {b"PANDAS_ATTRS": json.dumps({"geoind": plain_record().to_json()})}
    table = pyarrow.table({"lon": [0.0]}).replace_schema_metadata(notes)
    pyarrow.parquet.write_table(table, tmp_path / "reports.parquet")
    assert read_promise(tmp_path / "reports.parquet") == plain_record()


def test_a_folder_has_the_record_that_all_of_its_files_have(tmp_path: Path) -> None:
    folder = tmp_path / "reports"
    (folder / "deep").mkdir(parents=True)
    for name in ("a.csv", "deep/b.csv"):
        (folder / name).write_text("lon,lat\n")
        sidecar_of(folder / name).write_text(plain_record().to_json())
    (folder / ".hidden").write_text("")
    (folder / "_SUCCESS").write_text("")
    assert read_promise(folder) == plain_record()
    sidecar_of(folder / "deep" / "b.csv").write_text(plain_record(level=2.0, radius=200.0).to_json())
    with pytest.raises(InvalidInputError, match="one release, with one record: there are 2"):
        read_promise(folder)
    sidecar_of(folder / "deep" / "b.csv").unlink()
    with pytest.raises(InvalidInputError, match=r"b\.csv has no release record"):
        read_promise(folder)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInputError, match="empty has no release record"):
        read_promise(tmp_path / "empty")


def test_a_folder_with_a_sidecar_has_that_record_and_its_files_have_no_other(tmp_path: Path) -> None:
    folder = tmp_path / "reports"
    folder.mkdir()
    (folder / "part-0.csv").write_text("lon,lat\n")
    assert write_sidecar(folder, plain_record()) == sidecar_of(folder)
    assert read_promise(folder) == plain_record()
    write_sidecar(folder / "part-0.csv", plain_record(level=2.0, radius=200.0))
    with pytest.raises(InvalidInputError, match="there are 2 records"):
        read_promise(folder)


WHOLE = ReleaseRecord(
    mechanism="Projected(Channel)",
    epsilon=0.02,
    level=1.5,
    radius=200.0,
    reports=3,
    delta=1e-6,
    sigma=700.0,
    off_site_level=0.75,
    decimals=4,
    places=(("from_lon", "from_lat"), ("to",)),
    kept=("street",),
    unit="column",
    persons=7,
    busiest=PersonTotal(reports=9, epsilon=0.2, level=3.5, radius=200.0, delta=1e-6),
    median=PersonTotal(reports=2, epsilon=0.04),
    session="Independent(epsilon=0.01)",
    fresh=0.005,
    key="given",
    version="1.2.3",
)


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"epsilon": float("inf")},
        {"off_site_level": float("inf")},
        {"off_site_level": 0.0},
        {"level": None, "radius": None},
        {"sigma": None},
        {"delta": 0.0, "reports": 1},
        {"places": (), "kept": ()},
        {"session": None, "fresh": None},
        {"key": "discarded"},
        {"key": None},
        {"persons": None},
        {"busiest": None, "median": None},
        {"unit": "each file"},
    ],
)
def test_every_member_of_a_promise_is_written_and_read_again(changed: dict[str, Any]) -> None:
    promise = replace(WHOLE, **changed)
    found = json.loads(promise.to_json(), parse_constant=pytest.fail)
    assert ReleaseRecord.from_json(promise.to_json()) == promise
    assert ReleaseRecord.from_json(promise.to_json().encode()) == promise
    # Members of later versions are not used, and what is not there is the usual.
    assert ReleaseRecord.from_json(json.dumps(found | {"news": 7})) == promise
    absent = {name for name, value in changed.items() if value in (None, (), 0.0)} - {"kept"}
    assert not absent & set(found)
    assert {"reports", "delta"} <= set(found) or not promise.delta


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"unit": "1/km"}, "release record: unit must be column, each row or each file"),
        ({"epsilon": -1}, "release record: epsilon"),
        ({"level": 0}, "release record: level"),
        ({"radius": "far"}, "release record: radius"),
        ({"sigma": -5}, "release record: sigma"),
        ({"fresh": 0}, "release record: fresh"),
        ({"key": True}, "release record: key must be given or discarded"),
        ({"key": "0f" * 32}, "release record: key must be given or discarded"),
        ({"reports": 0}, "release record: reports"),
        ({"reports": 1.5}, "release record: reports"),
        ({"delta": "some"}, "release record: delta"),
        ({"off_site_level": "some"}, "release record: off_site_level"),
        ({"decimals": "5?"}, "release record: decimals"),
        ({"busiest": {"reports": 1, "epsilon": 10**400}}, "release record: epsilon"),
    ],
)
def test_a_promise_with_a_part_that_is_none_is_refused_by_its_name(changed: dict[str, Any], message: str) -> None:
    found = json.loads(WHOLE.to_json()) | changed
    with pytest.raises(InvalidInputError, match=message):
        ReleaseRecord.from_json(json.dumps(found))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"level": 2.0, "radius": 200.0}, "epsilon 0.0123457 per metre"),
        ({"delta": 1e-5, "level": 2.0, "radius": 200.0}, "level 2 within 200 m, each, up to delta 1e-05"),
        ({"sigma": 512.5}, "Gaussian noise, sigma 512.5 m"),
        (
            {"sigma": 512.5, "delta": 1e-5, "level": 2.0, "radius": 200.0, "reports": 2000},
            "level 2 within 200 m, 2,000 reports together, up to delta 1e-05",
        ),
        (
            {"session": "x", "fresh": 0.01, "delta": 1e-5, "level": 2.0, "radius": 200.0},
            "at most epsilon 0.0123457 per metre for each person's whole trace (Mine)",
        ),
    ],
)
def test_a_promise_in_a_few_words_is_the_strongest_that_was_made(changed: dict[str, Any], words: str) -> None:
    plain = ReleaseRecord(mechanism="Mine", epsilon=0.012345678, decimals=5, unit="each row", version="1")
    assert str(replace(plain, **changed)) == words


def test_a_parquet_file_speaks_for_itself_before_a_sidecar_does(tmp_path: Path) -> None:
    table = pyarrow.table({"lon": [0.0]}).replace_schema_metadata({b"geoind": plain_record().to_json()})
    path = tmp_path / "reports.parquet"
    other = plain_record(level=2.0, radius=200.0)
    sidecar_of(path).write_text(other.to_json())
    pyarrow.parquet.write_table(table, path)
    assert read_promise(path) == plain_record()
    pyarrow.parquet.write_table(table.replace_schema_metadata({b"PANDAS_ATTRS": b"{}"}), path)
    assert read_promise(path) == other


def test_the_sigma_on_the_ground_is_that_of_the_innermost_noise_in_the_largest_scale() -> None:
    web = Projection.from_crs("EPSG:3857")
    oslo = Projected(PlanarGaussian(500), web, domain=shapely.box(10, 59.8, 11, 60.2))
    assert record_of(oslo).sigma == 500 / oslo.largest_scale
    assert record_of(Projected(PlanarLaplace(0.01), Projection(2.35, 48.86))).sigma is None
    assert record_of(geoind.SphericalGaussian(700.0)).sigma == 700.0


def test_beside_an_epsilon_a_sigma_is_the_mechanisms_own_affair() -> None:
    @dataclass(frozen=True)
    class Own(SphericalLaplace):
        sigma: float = 3.0

    found = record_of(Own(0.01))
    assert found.sigma is None
    assert str(found) == "epsilon 0.01 per metre"


RECORD = json.loads(record_of(SphericalLaplace(0.01), level=2.0, radius=200.0).to_json())


@pytest.mark.parametrize(
    "changed",
    [
        {"mechanism": "x{{7*7}}"},
        {"mechanism": "Projected(PlanarLaplace"},
        {"mechanism": "PlanarLaplace)"},
        {"mechanism": "A" * 101},
        {"mechanism": 7},
        {"mechanism": "<b>"},
        {"version": "1<script>"},
        {"version": ""},
        {"epsilon": True},
        {"epsilon": "0.01"},
        {"epsilon": 10**400},
        {"epsilon": 1e300},
        {"epsilon": 100, "radius": 1e9},
        {"level": 1e4},
        {"delta": 1.0},
        {"delta": -0.1},
        {"reports": 10**30},
        {"reports": 7},
        {"level": None},
        {"decimals": 5.0},
        {"decimals": 16},
        {"decimals": True},
        {"places": "abc"},
        {"places": [["lon", "lat", "alt"]]},
        {"places": ["a"]},
        {"places": [["a", 7]]},
        {"places": [["g" * 1001]]},
        {"kept": {"a": 1}},
        {"kept": [{"a": 1}]},
        {"kept": ["\ud800"]},
        {"session": "{{7*7}}", "fresh": 0.01},
        {"session": "Independent(epsilon=0.01)"},
        {"fresh": 0.01},
        {"session": ["x"], "fresh": 0.01},
        {"unit": "household"},
        {"unit": None},
        {"unit": "column", "persons": -1},
        {"unit": "column", "persons": 1.5},
        {"busiest": {"reports": 1, "epsilon": 0.01}},
        {"busiest": 7, "median": 7},
        *(
            {"busiest": {"reports": 1, "epsilon": 0.01} | bad}
            for bad in (
                {"reports": -1},
                {"reports": True},
                {"reports": 10**13},
                {"epsilon": -1},
                {"epsilon": "0.01"},
                {"level": 1.0},
                {"level": -1, "radius": 1, "delta": 0},
                {"level": 1, "radius": 1, "delta": 2},
            )
        ),
    ],
)
def test_a_member_that_geoind_does_not_write_is_refused_by_its_name(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    path = tmp_path / "r.csv"
    path.write_text("lon,lat\n2,48\n")
    sidecar_of(path).write_text(json.dumps(RECORD | changed))
    with pytest.raises(InvalidInputError, match=r"^release record of 'r\.csv': ") as caught:
        read_promise(path)
    assert len(str(caught.value)) < 300
    assert "busiest" in changed or any(name in str(caught.value) for name in changed)


@pytest.mark.parametrize(
    "text",
    [
        b"\xff\xfe",
        b'{"mechanism": "\xff"}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"epsilon": NaN}',
        b'{"epsilon": -Infinity}',
        b'{"unit": "each row", "unit": "1/m"}',
        b"1" * 100_000,
        b" " * (1 << 20) + b"{}",
        json.dumps(RECORD).encode("utf-16"),
    ],
)
def test_a_record_that_is_not_plain_json_is_refused(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "r.csv"
    path.write_text("lon,lat\n2,48\n")
    sidecar_of(path).write_bytes(text)
    with pytest.raises(InvalidInputError, match=r"^release record of 'r\.csv': "):
        read_promise(path)


def test_a_sidecar_that_is_too_long_is_refused_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("lon,lat\n2,48\n")
    with sidecar_of(path).open("wb") as file:
        # 1 TB, which takes no room on the disk and would not fit into memory.
        file.truncate(1 << 40)
    with pytest.raises(InvalidInputError, match="at most 1,048,576 bytes"):
        read_promise(path)


@pytest.mark.parametrize("key", [b"geoind", b"PANDAS_ATTRS"])
@pytest.mark.parametrize(
    "value",
    [
        b"\xff",
        b"{",
        b"[]",
        b"7",
        b'{"geoind": 7}',
        b'{"geoind": {}}',
    ],
)
def test_hostile_metadata_of_a_parquet_file_is_no_traceback(tmp_path: Path, key: bytes, value: bytes) -> None:
    path = tmp_path / "r.parquet"
    table = pyarrow.table({"lon": [0.0]}).replace_schema_metadata({key: value})
    pyarrow.parquet.write_table(table, path)
    with pytest.raises(InvalidInputError, match=r"release record of|has no release record"):
        read_promise(path)


def test_a_broken_parquet_file_is_no_traceback(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    path.write_bytes(b"PAR1" + b"\xff" * 100 + b"PAR1")
    with pytest.raises(InvalidInputError, match="cannot be read as a Parquet file"):
        read_promise(path)


def test_a_mechanism_whose_class_has_a_hostile_name_makes_no_record() -> None:
    hostile = type("x{{7*7}}", (SphericalLaplace,), {})
    with pytest.raises(InvalidInputError, match="mechanism must be"):
        record_of(hostile(0.01))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
MEMBERS = [*json.loads(WHOLE.to_json())]


@given(st.dictionaries(st.sampled_from(MEMBERS), ANYTHING, max_size=3) | st.binary() | ANYTHING, st.booleans())
@settings(max_examples=trials(200), deadline=None)
def test_anything_is_a_promise_that_can_be_used_or_an_error(found: Any, whole: bool) -> None:
    if isinstance(found, dict):
        found = json.dumps((json.loads(WHOLE.to_json()) if whole else RECORD) | found)
    text = found if isinstance(found, bytes) else json.dumps(found) if not isinstance(found, str) else found
    try:
        promise = ReleaseRecord.from_json(text)
    except InvalidInputError as error:
        assert str(error).startswith("release record: ")  # noqa: PT017
        return
    assert len(str(promise)) < 2000
    assert ReleaseRecord.from_json(promise.to_json()) == promise
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "r.csv")
        path.write_text("lon,lat\n2,48\n")
        sidecar_of(path).write_text(promise.to_json())
        with contextlib.suppress(InvalidInputError):
            read_reports(path)
        assert main(["map", str(path), "--out", f"{path}.html"]) in (0, 2)


PARIS = Projection(2.35, 48.86)
LAMBERT = Projection.from_crs("EPSG:2154")
SUMMARISED = ReleaseRecord.of(SphericalLaplace(0.01), unit="column")


def release_of(**options: Any) -> tuple[Release, Part, list[Reports]]:
    given = table_of(40, who=["ana"] * 30 + ["ben"] * 10)
    recipe = Recipe.of(**{"person": EACH_ROW, **options}).with_key()
    part = Part(Table(recipe, given.schema))
    release = Release.of(recipe, part.count(in_batches(given)), part.table)
    return release, part, list(part.draw(in_batches(given, 15), release))


@pytest.mark.parametrize(
    "mechanism",
    [
        SphericalLaplace(0.01),
        Projected(PlanarLaplace(0.01), PARIS),
        Projected(PlanarLaplace(0.01), LAMBERT),
        Projected(PlanarGaussian(150), PARIS),
    ],
    ids=["globe", "local plane", "national grid", "gaussian"],
)
def test_the_distances_of_a_summary_are_those_of_the_reports(mechanism: Mechanism) -> None:
    summary = release_of(mechanism=mechanism)[0].summary(corners_of([]), [])
    truth = np.tile([2.35, 48.86], (20_000, 1))
    apart = np.hypot(*PARIS.to_xy(mechanism.sample(truth, rng=1)).T)
    assert summary.mean_error == pytest.approx(apart.mean(), rel=0.03)
    assert summary.reach_95 == pytest.approx(np.quantile(apart, 0.95), rel=0.03)
    assert "95 % within" in str(summary)


def test_a_step_of_unknown_length_leaves_the_distances_out_and_nothing_else() -> None:
    mechanism = Projected(PostProcessed(PlanarLaplace(0.01), lambda reports: reports), PARIS)
    summary = release_of(mechanism=mechanism)[0].summary(corners_of([]), [])
    assert summary.mean_error is summary.reach_95 is None
    assert str(summary).startswith("40 reports, epsilon 0.0100004 per metre")
    assert "within" not in str(summary).splitlines()[0]


def test_a_part_counts_reports_and_what_they_span_and_several_parts_span_all() -> None:
    release, part, made = release_of(epsilon=0.001)
    reports = [places for _, _, (places,) in made]
    together = np.concatenate(reports)
    summary = release.summary(corners_of(corners_of([each]) for each in reports), ["who"])
    assert (summary.reports, part.drawn) == (40, 40)
    assert summary.bounds == (*together.min(axis=0), *together.max(axis=0))
    assert release.summary(corners_of([]), []).bounds is None


def test_rows_without_places_span_nothing() -> None:
    gone = np.full((15, 2), np.nan)
    assert len(corners_of([gone])) == 0
    one = gone.copy()
    one[3] = [2.25, 48.5]
    assert corners_of([one, gone]).tolist() == [[2.25, 48.5], [2.25, 48.5]]


def lines(record: ReleaseRecord = SUMMARISED, **members: Any) -> list[str]:
    usual: dict[str, Any] = {"reports": 40, "mean_error": None, "reach_95": None}
    return str(Summary(record=record, **(usual | members))).splitlines()


def test_a_summary_begins_with_how_many_reports_and_how_far_they_are() -> None:
    assert lines() == ["40 reports, epsilon 0.01 per metre"]
    assert lines(reports=1) == ["1 report, epsilon 0.01 per metre"]
    assert lines(reports=1234567) == ["1,234,567 reports, epsilon 0.01 per metre"]
    for mean, reach, words in (
        (1234.4, 56789.0, "1,234 m from the truth on average, 95 % within 56,789 m"),
        (10.0, 10.6, "10 m from the truth on average, 95 % within 11 m"),
        (9.94, 0.123, "9.9 m from the truth on average, 95 % within 0.12 m"),
    ):
        assert lines(mean_error=mean, reach_95=reach) == [f"40 reports, epsilon 0.01 per metre: {words}"]
    trace = replace(SUMMARISED, session="Independent(epsilon=0.01)", fresh=0.01, mechanism="Independent")
    [line] = lines(replace(SUMMARISED, cells="h3:5"), mean_error=200.0, reach_95=480.0)[1:]
    assert line == "each report was then moved to the centre of its cell (h3:5)"
    [line] = lines(mean_error=200.0, reach_95=480.0, varies=True)
    assert line.endswith(": where it is farthest, 200 m from the truth on average, 95 % within 480 m")
    [line] = lines(trace, mean_error=200.0, reach_95=480.0)
    assert line.endswith("(Independent): a fresh report is 200 m from the truth on average, 95 % within 480 m")


def test_a_summary_has_the_totals_of_the_busiest_and_the_median_person() -> None:
    busiest = PersonTotal(reports=2500, epsilon=25.0, level=19.5, radius=200, delta=1e-6)
    totals = replace(SUMMARISED, persons=12, busiest=busiest, median=PersonTotal(reports=3, epsilon=0.03))
    assert lines(totals)[1:] == [
        "12 persons; the busiest has 2,500 reports, epsilon 25 per metre together (level 19.5 within 200 m, "
        "delta 1e-06)",
        "the median person has 3 reports, epsilon 0.03 per metre together",
    ]
    [line] = lines(replace(totals, persons=1))[1:]
    assert line.startswith("1 person; the busiest has 2,500 reports")
    [line] = lines(replace(totals, unit="each row"))[1:]
    assert line.startswith("no person has two rows, as declared; a row has 2,500 reports, epsilon 25 per metre")
    one = replace(totals, unit="each row", busiest=PersonTotal(reports=1, epsilon=0.01))
    assert lines(one)[1:] == ["no person has two rows, as declared"]


def test_a_summary_names_what_was_left_out_and_why() -> None:
    assert lines(reports_left_out=1)[1:] == ["1 report left out by the limit per person"]
    assert lines(reports_left_out=2000)[1:] == ["2,000 reports left out by the limit per person"]
    assert lines(rejected=1)[1:] == ["1 bad record got no report"]
    [line] = lines(charged=True)[1:]
    assert line.startswith("the ledger was charged; persons whose reports are those of an earlier charge")
    assert lines(bounds=(-1.5, 48.25, 2.0, 49.123456))[1:] == [
        "the reports lie between -1.50000 and 2.00000 E, 48.25000 and 49.12346 N"
    ]
    assert lines(replace(SUMMARISED, kept=("fare", "day")))[1:] == ["columns kept: fare, day"]


@pytest.mark.parametrize("names", [("fare", "day"), ("a b", "it's", "$(reboot)"), ('say "so", please', "x")])
def test_the_columns_left_out_are_a_list_to_paste(names: tuple[str, ...]) -> None:
    import csv

    [line] = lines(left_out=names)[1:]
    words = shlex.split(line[line.index("--keep") :].removesuffix(")"))
    assert words[0] == "--keep"
    assert next(csv.reader([words[1]])) == list(names)


def test_columns_called_like_coordinates_are_named_and_not_offered_to_be_kept() -> None:
    names = ("end_lat", "fare", "dropoff.Longitude", "flat", "along", "salon")
    assert lines(left_out=names)[1:] == [
        "columns left out, called like coordinates: end_lat, dropoff.Longitude (--lat and --lon)",
        "columns left out (to keep some: --keep fare,flat,along,salon)",
    ]
    assert len(lines(left_out=("end_lat", "end_lng"))) == 2


def test_a_hostile_name_does_not_reach_the_terminal() -> None:
    text = "\n".join(lines(replace(SUMMARISED, kept=("\x1b[2Jx",)), left_out=("a\nb", "\x07")))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert len(text.splitlines()) == 3


def test_a_mean_error_is_the_mechanisms_own_or_that_of_its_quantiles() -> None:
    class Own:
        mean_radius = np.float64(123.5)

    class Quantiles:
        def reach(self, confidence: float) -> float:
            return 100 * confidence**2

    assert mean_error(cast(Mechanism, Own())) == 123.5
    assert mean_error(cast(Mechanism, Quantiles())) == pytest.approx(100 / 3, rel=1e-5)
    assert mean_error(Projected(PlanarLaplace(0.01), PARIS)) == pytest.approx(200 + half_diagonal(), rel=0.005)
    assert math.isfinite(mean_error(Projected(PlanarLaplace(0.01), LAMBERT)))
