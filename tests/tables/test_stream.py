"""Any Arrow stream becomes reports: the same ones from every source, with the named columns and nothing else."""

import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import shapely

from geoind import (
    EACH_ROW,
    BudgetExceededError,
    InvalidInputError,
    Key,
    KeyedRandomness,
    Ledger,
    PlanarLaplace,
    Projected,
    Projection,
    SphericalLaplace,
)
from geoind.tables import EACH_FILE, ReleaseRecord, obfuscate
from geoind.tables import parts as part_module
from tests.goodness import fits

KEY = bytes(range(32))
NOISE = SphericalLaplace(0.01)
SIZE = 120
RNG = np.random.default_rng(9)
LONLAT = np.column_stack([RNG.uniform(-170, 170, SIZE), RNG.uniform(-80, 80, SIZE)])
RIDERS = [f"rider {number % 7}" for number in range(SIZE)]
IDS = np.arange(SIZE) * 3
BY_ROW: dict[str, Any] = {"epsilon": 0.01, "key": KEY, "person": EACH_ROW}
BY_RIDER: dict[str, Any] = {"epsilon": 0.001, "key": KEY, "person": "rider", "id_column": "trip"}


def trips(**columns: Any) -> pa.Table:
    """Return rows of several batches: trip, rider, fare, lon, lat, and other columns."""
    places = {"lon": LONLAT[:, 0], "lat": LONLAT[:, 1]}
    table = pa.table({"trip": IDS, "rider": RIDERS, "fare": np.arange(SIZE) / 4, **places, **columns})
    return pa.Table.from_batches(table.to_batches(max_chunksize=50))


def lonlat(table: pa.Table) -> np.ndarray:
    return np.column_stack([table["lon"].to_numpy(), table["lat"].to_numpy()])


def written(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def record(table: pa.Table) -> ReleaseRecord:
    return ReleaseRecord.from_json(table.schema.metadata[b"geoind"])


def relation(table: pa.Table) -> Any:
    return duckdb.connect().from_arrow(table)


SOURCES: dict[str, Callable[[pa.Table], Any]] = {
    "table": lambda table: table,
    "batch": lambda table: table.combine_chunks().to_batches()[0],
    "reader": lambda table: table.to_reader(max_chunksize=7),
    "polars": pl.from_arrow,
    "duckdb": relation,
    "pandas": lambda table: table.to_pandas(),
}


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gets_the_reports_of_its_records(source: str) -> None:
    by_row = obfuscate(SOURCES[source](trips()), **BY_ROW).read_all()
    wanted = NOISE.sample(LONLAT, rng=KeyedRandomness(Key(KEY).for_file(""), np.arange(SIZE)))
    np.testing.assert_array_equal(lonlat(by_row), wanted)
    by_id = obfuscate(SOURCES[source](trips()), **BY_ROW, id_column="trip").read_all()
    np.testing.assert_array_equal(lonlat(by_id), NOISE.sample(LONLAT, rng=KeyedRandomness(KEY, IDS)))


# What leaves

SECRET = "SECRET-SECRET-SECRET"


def planted() -> pa.Table:
    """Return trips with a secret in every column, entry and metadata that is not named."""
    codes = pa.DictionaryArray.from_arrays(pa.array([0] * SIZE), pa.array(["public", SECRET]))
    table = trips(code=codes, note=[SECRET] * SIZE, tags=[[SECRET]] * SIZE, **{SECRET: IDS})
    table = table.set_column(1, "rider", pa.array([f"{SECRET} {rider}" for rider in RIDERS]))
    fields = [field.with_metadata({"about": SECRET}) for field in table.schema]
    return table.cast(pa.schema(fields, {"author": SECRET, "geo": json.dumps({"columns": {}, "note": SECRET})}))


@pytest.mark.parametrize("source", SOURCES)
def test_nothing_but_the_named_columns_is_in_the_bytes(source: str) -> None:
    given = SOURCES[source](planted())
    reports = obfuscate(given, **BY_RIDER, keep=["fare", "code"]).read_all()
    assert reports.column_names == ["fare", "lon", "lat", "code"]
    assert reports["fare"].to_pylist() == trips()["fare"].to_pylist()
    assert set(reports["code"].to_pylist()) == {"public"}
    assert SECRET.encode() not in written(reports)


def test_rows_that_were_filtered_out_before_are_not_in_the_bytes() -> None:
    notes = [f"{SECRET} {number}" if number % 2 else f"a public text, {number}" for number in range(SIZE)]
    frame = pl.DataFrame(trips(note=notes)).filter(~pl.col("note").str.starts_with(SECRET))
    reports = obfuscate(frame, **BY_ROW, keep=["note"]).read_all()
    assert reports["note"].to_pylist() == notes[::2]
    assert SECRET.encode() not in written(reports)


def test_rows_that_the_limit_leaves_out_are_not_in_the_bytes() -> None:
    notes = pa.array([f"note {number:04} of a rider" for number in range(SIZE)], pa.string_view())
    reports = obfuscate(trips(note=notes), **BY_RIDER, keep=["note"], reports_per_person=2).read_all()
    kept = set(reports["note"].to_pylist())
    assert len(kept) == 14
    data = written(reports)
    assert {note for note in notes.to_pylist() if note.encode() in data} == kept


def test_columns_have_their_order_and_types_and_the_record_names_what_was_kept() -> None:
    kinds = {"when": pa.timestamp("ns", "UTC"), "small": pa.int8(), "price": pa.decimal128(38, 2)}
    columns = {name: pa.array([None, 1] * (SIZE // 2)).cast(kind) for name, kind in kinds.items()}
    reports = obfuscate(trips(**columns), **BY_ROW, keep=[*kinds, "trip"]).read_all()
    assert reports.column_names == ["trip", "lon", "lat", *kinds]
    for name, kind in kinds.items():
        assert reports.schema.field(name).type == kind
        assert reports[name].to_pylist() == columns[name].to_pylist()
    assert set(reports.schema.metadata) == {b"geoind"}
    assert record(reports).kept == (*kinds, "trip")


def test_a_column_that_is_not_needed_may_have_any_type() -> None:
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([SIZE], pa.int32()), pa.array(["x"]))
    table = trips().append_column("odd", pa.StructArray.from_arrays([runs], ["runs"]))
    assert obfuscate(table, **BY_RIDER, reports_per_person=1).read_all().num_rows == 7
    with pytest.raises(InvalidInputError, match="'odd' has type struct<runs: run_end_encoded"):
        obfuscate(table, **BY_ROW, keep=["odd"])


# Whose reports


@pytest.mark.parametrize("source", SOURCES)
def test_a_release_without_a_declared_person_is_refused(source: str) -> None:
    with pytest.raises(InvalidInputError, match="must say whose reports these are"):
        obfuscate(SOURCES[source](trips()), epsilon=0.01)
    with pytest.raises(InvalidInputError, match="EACH_FILE is for files"):
        obfuscate(SOURCES[source](trips()), epsilon=0.01, person=EACH_FILE)


TWO: dict[str, Any] = {"lon": ["lon", "to_lon"], "lat": ["lat", "to_lat"]}
RECOUNTED: dict[str, dict[str, Any]] = {
    "points": {"id_column": "trip"},
    "a limit": {"id_column": "trip", "reports_per_person": 3},
    "two places": {**TWO, "missing": "keep"},
    "two places, a limit": {**TWO, "reports_per_person": 5},
    "one place": {"lon": "to_lon", "lat": "to_lat", "same_place": 1000},
}


@pytest.mark.parametrize("case", RECOUNTED)
def test_totals_of_the_record_are_those_of_the_output(case: str) -> None:
    options = {"epsilon": 0.001, "key": KEY, "person": "rider", **RECOUNTED[case]}
    # Eleven places, which riders visit several times.
    lons, lats = (np.tile(values[:11], 11)[:SIZE] for values in LONLAT.T)
    to_lat = pa.array(lats, mask=np.arange(SIZE) % 5 == 0 if "missing" in options else None)
    reports = obfuscate(trips(to_lon=lons, to_lat=to_lat), **options, keep=["rider"]).read_all()
    names = [(place, place.replace("lon", "lat")) for place in np.atleast_1d(options.get("lon", "lon"))]
    made = [
        (row["rider"], row[lon], row[lat])
        for row in reports.to_pylist()
        for lon, lat in names
        if row[lat] is not None
    ]
    counts = Counter(rider for rider, _, _ in (set(made) if case == "one place" else made))
    stated = record(reports)
    assert stated.busiest is not None
    assert stated.median is not None
    assert stated.persons == 7
    assert stated.busiest.reports == max(counts.values())
    assert stated.median.reports == sorted(counts.values())[3]
    assert stated.busiest.epsilon == pytest.approx(0.001 * max(counts.values()))


def test_totals_of_traces_are_what_their_sessions_cost() -> None:
    at = np.arange(SIZE) * 60.0
    with Ledger("sqlite://", budget=10) as ledger:
        options: dict[str, Any] = {
            "epsilon": 0.001,
            "person": "rider",
            "time": "at",
            "key": bytes(32),
        }
        reports = obfuscate(trips(at=at), ledger=ledger, **options).read_all()
        spent = {rider: ledger.spent(rider) for rider in RIDERS}
    assert reports.column_names == ["rider", "lon", "lat", "at"]
    stated = record(reports)
    assert stated.busiest is not None
    assert stated.busiest.epsilon == pytest.approx(max(spent.values()))
    assert stated.epsilon == stated.busiest.epsilon


def test_a_total_that_hides_no_person_is_refused_and_a_limit_is_a_remedy() -> None:
    options = {**BY_RIDER, "epsilon": 0.1}
    with pytest.raises(InvalidInputError, match="the busiest person has 18 reports"):
        obfuscate(trips(), **options)
    assert obfuscate(trips(), **options, reports_per_person=2).read_all().num_rows == 14
    assert obfuscate(trips(), **options, allow_total=1.8).read_all().num_rows == SIZE


def test_a_limit_chooses_the_same_records_in_every_order_and_not_the_first_ones() -> None:
    chosen = []
    for turn in (np.arange(SIZE), np.random.default_rng(1).permutation(SIZE)):
        reports = obfuscate(trips().take(turn), **BY_RIDER, keep=["trip"], reports_per_person=4).read_all()
        chosen.append(reports.sort_by("trip"))
    assert chosen[0].equals(chosen[1])
    assert chosen[0].num_rows == 28
    first = {rider: IDS[[name == rider for name in RIDERS]][:4].tolist() for rider in RIDERS}
    assert chosen[0]["trip"].to_pylist() != sorted(trip for trips in first.values() for trip in trips)


# Charges


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(f"sqlite:///{tmp_path}/budgets.db", budget=100.0) as made:
        yield made


def spent(ledger: Ledger) -> dict[str, float]:
    return {rider: ledger.lifetime(rider) for rider in sorted(set(RIDERS))}


POINTS_AND_TRACES: dict[str, dict[str, Any]] = {
    "points": BY_RIDER,
    "a limit": {**BY_RIDER, "reports_per_person": 3},
    "one place": {"epsilon": 0.001, "key": KEY, "person": "rider", "same_place": 1000},
    "traces": {"epsilon": 0.001, "key": KEY, "person": "rider", "time": "at", "method": "sparse"},
}


@pytest.mark.parametrize("case", POINTS_AND_TRACES)
def test_the_same_release_is_charged_once_and_changed_data_again(case: str, ledger: Ledger) -> None:
    options, at = POINTS_AND_TRACES[case], np.arange(SIZE) * 60.0
    charges = []
    for _ in range(2):
        reports = obfuscate(trips(at=at), **options, ledger=ledger, job="monday").read_all()
        charges.append(spent(ledger))
    assert charges[0] == charges[1]
    stated = record(reports)
    assert stated.busiest is not None
    assert max(charges[0].values()) == pytest.approx(stated.busiest.epsilon)
    moved = np.where([rider == "rider 3" for rider in RIDERS], LONLAT[:, 1] / 2, LONLAT[:, 1])
    changed = trips(at=at).set_column(4, "lat", pa.array(moved))
    obfuscate(changed, **options, ledger=ledger, job="monday")
    after = spent(ledger)
    assert {rider for rider in after if after[rider] > charges[0][rider]} == {"rider 3"}


def test_without_a_key_each_release_is_charged(ledger: Ledger) -> None:
    options = {name: value for name, value in BY_RIDER.items() if name != "key"}
    for calls in (1, 2):
        obfuscate(trips(), **options, ledger=ledger)
        assert max(spent(ledger).values()) == pytest.approx(0.018 * calls)


def test_a_charge_needs_persons_and_is_for_all_or_none(tmp_path: Path) -> None:
    with Ledger(f"sqlite:///{tmp_path}/small.db", budget=0.0175) as small:
        with pytest.raises(BudgetExceededError):
            obfuscate(trips(), **BY_RIDER, ledger=small)
        with pytest.raises(InvalidInputError, match="a ledger needs `person=`"):
            obfuscate(trips(), **BY_ROW, ledger=small)
        assert set(spent(small).values()) == {0}


class Unstable:
    """A source that gives other rows each time."""

    def __init__(self, *tables: pa.Table) -> None:
        self._tables = iter(tables)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return next(self._tables).__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "change", ["a row more", "a row less", "another place", "another person", "another order"]
)
@pytest.mark.parametrize("held", [True, False], ids=["held in memory", "read again"])
def test_a_source_that_changes_between_the_passes_is_released_as_counted_or_refused(
    change: str, held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = {
        "a row more": pa.concat_tables([trips(), trips().slice(0, 1)]),
        "a row less": trips().slice(1),
        "another place": trips().set_column(3, "lon", pa.array([*LONLAT[:-1, 0], 0.5])),
        "another person": trips().set_column(1, "rider", pa.array(["rider 6", *RIDERS[1:]])),
        "another order": trips().take(np.arange(SIZE)[::-1]),
    }[change]
    options = {**BY_RIDER, "id_column": None, "keep": ["rider"]}
    same = obfuscate(trips(), **options).read_all()
    if not held:
        monkeypatch.setattr(part_module, "REMEMBERED", 0)
        # The first is asked for its schema only.
        assert obfuscate(Unstable(trips(), trips(), trips()), **options).read_all().equals(same)
    reader = obfuscate(Unstable(trips(), trips(), other), **options)
    if held:
        assert reader.read_all().equals(same)
        return
    with pytest.raises(InvalidInputError, match="input changed"):
        reader.read_all()


@pytest.mark.parametrize("passes", [2, 3])
def test_a_source_that_changes_before_the_charge_is_not_charged(
    passes: int, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part_module, "REMEMBERED", 0)
    other = trips().slice(1)
    source = Unstable(*[trips()] * passes, other, other)
    if passes == 2:
        with pytest.raises(InvalidInputError, match="input changed"):
            obfuscate(source, **BY_RIDER, ledger=ledger)
        assert set(spent(ledger).values()) == {0}
    else:
        reader = obfuscate(source, **BY_RIDER, ledger=ledger)
        with pytest.raises(InvalidInputError, match="input changed"):
            reader.read_all()


# Rows


def test_batches_are_cut_anywhere_and_bad_rows_have_their_numbers_in_the_whole() -> None:
    whole = obfuscate(trips(), **BY_ROW).read_all()
    for size in (1, 13, 1000):
        cut = obfuscate(trips().to_reader(max_chunksize=size), **BY_ROW).read_all()
        assert cut.combine_chunks().equals(whole.combine_chunks())
    bad = trips().set_column(4, "lat", pa.array([*LONLAT[:-2, 1], 91.23456, None]))
    with pytest.raises(InvalidInputError, match="row 118: latitude must be between -90 and 90") as refused:
        obfuscate(bad, **BY_ROW)
    assert "91.2" not in str(refused.value)


@pytest.mark.parametrize("options", [{}, {"keep": ["fare"]}, {"order": "shuffle"}, {"reports_per_person": 2}])
def test_a_stream_without_rows_or_without_places_has_its_columns(options: dict[str, Any]) -> None:
    options = {**BY_RIDER, **options}
    assert obfuscate(trips().slice(0, 0), **options).read_all().num_rows == 0
    nowhere = trips().set_column(3, "lon", pa.nulls(SIZE, pa.float64()))
    reports = obfuscate(nowhere, **options, missing="keep").read_all()
    assert reports["lat"].null_count == SIZE
    stated = record(reports)
    assert stated.busiest is not None
    assert stated.busiest.reports == 0


def test_rows_sorted_by_place_are_refused_or_shuffled() -> None:
    ordered = trips().sort_by("lat")
    with pytest.raises(InvalidInputError, match=r"order of the rows shows .* `order='shuffle'`"):
        obfuscate(ordered, **BY_ROW)
    options = {**BY_ROW, "id_column": "trip", "keep": ["trip"]}
    shuffled = obfuscate(ordered, **options, order="shuffle").read_all()
    kept = obfuscate(ordered, **options, order="keep").read_all()
    assert kept["trip"].to_pylist() == ordered["trip"].to_pylist()
    assert shuffled["trip"].to_pylist() != kept["trip"].to_pylist()
    assert shuffled.sort_by("trip").equals(kept.combine_chunks().sort_by("trip"))


def test_times_explain_an_order_though_they_do_not_leave() -> None:
    at = pa.array(np.arange(SIZE) * 60 + 1_700_000_000).cast(pa.timestamp("s"))
    along = trips(at=at).set_column(4, "lat", pa.array(np.sort(LONLAT[:, 1])))
    assert obfuscate(along, **BY_ROW).read_all().column_names == ["lon", "lat"]


def test_a_kept_copy_of_the_truth_is_refused_before_a_charge(ledger: Ledger) -> None:
    for copy in (LONLAT[:, 1], [f"seen at {lat:.4f}" for lat in LONLAT[:, 1]]):
        with pytest.raises(InvalidInputError, match="'copy' repeats true coordinates"):
            obfuscate(trips(copy=copy), **BY_RIDER, keep=["copy"], ledger=ledger)
    for name in ("lon", "lat"):
        with pytest.raises(InvalidInputError, match=f"'{name}' holds the true place"):
            obfuscate(trips(), **BY_RIDER, keep=[name], ledger=ledger)
    assert set(spent(ledger).values()) == {0}


# Names of records

WORDS = [f"trip {number}" for number in range(SIZE)]
UUIDS = [uuid.UUID(int=number).bytes for number in range(SIZE)]


@pytest.mark.parametrize(
    ("ids", "labels"),
    [
        (pa.array(IDS, pa.uint16()), IDS),
        (pa.array(WORDS), WORDS),
        (pa.array(WORDS, pa.large_string()), WORDS),
        (pa.array(WORDS, pa.string_view()), WORDS),
        (pa.array(WORDS).dictionary_encode(), WORDS),
        (pa.array(UUIDS, pa.binary(16)), UUIDS),
        (pa.array(UUIDS, pa.uuid()), UUIDS),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_the_report_depends_on_the_name_of_a_record_and_not_on_its_type(ids: pa.Array, labels: Any) -> None:
    reports = obfuscate(trips(id=ids), **BY_ROW, id_column="id").read_all()
    np.testing.assert_array_equal(lonlat(reports), NOISE.sample(LONLAT, rng=KeyedRandomness(KEY, labels)))


def test_another_key_or_epsilon_gives_unrelated_noise() -> None:
    first = lonlat(obfuscate(trips(), **BY_ROW).read_all()) - LONLAT
    for other in ({"key": bytes(32)}, {"epsilon": 0.005}):
        second = lonlat(obfuscate(trips(), **{**BY_ROW, **other}).read_all()) - LONLAT
        assert abs(np.corrcoef(first[:, 1], second[:, 1])[0, 1]) < 0.5


def test_reports_have_the_distribution_of_the_mechanism() -> None:
    size, noise = 20_000, SphericalLaplace(1e-4)
    table = pa.table({"lon": np.zeros(size), "lat": np.zeros(size)})
    reports = obfuscate(table, mechanism=noise, person=EACH_ROW, key=KEY).read_all()
    lon, lat = np.radians(lonlat(reports)).T
    radius = np.arccos(np.cos(lat) * np.cos(lon)) * 6_371_008.8
    assert fits(radius, noise.radius_cdf)
    assert not fits(radius * 1.05, noise.radius_cdf)
    assert not fits(radius / 1.05, noise.radius_cdf)


def test_any_mechanism_of_degrees_may_draw() -> None:
    paris = Projected(PlanarLaplace(0.01), Projection(2.35, 48.86))
    table = pa.table({"x": [2.3, None], "y": [48.8, None]})
    options: dict[str, Any] = {"person": EACH_ROW, "key": KEY, "missing": "keep"}
    reports = obfuscate(table, mechanism=paris, lon="x", lat="y", **options).read_all()
    source = KeyedRandomness(Key(KEY).for_file(""), [0])
    assert reports["x"][0].as_py() == paris.sample([[2.3, 48.8]], rng=source)[0, 0]


# Forms of places

FORMS = ["struct", "list", "binary", "large_binary", "binary_view", "big-endian", "ewkb"]
CRS84: dict[str, Any] = {"geometry": "place", "crs": "OGC:CRS84", "missing": "keep"}
HOLES = [0, 7, 39]


def points(form: str, places: np.ndarray = LONLAT) -> pa.Table:
    missing = np.isnan(places[:, 0])
    shapes = np.asarray(shapely.points(places))
    shapes[missing] = None
    if form == "struct":
        parts = [places[:, 0].copy(), places[:, 1].copy()]
        place = pa.StructArray.from_arrays(parts, ["x", "y"], mask=pa.array(missing))
    elif form == "list":
        place = pa.FixedSizeListArray.from_arrays(pa.array(places.ravel()), 2, mask=pa.array(missing))
    elif form == "big-endian":
        place = pa.array(shapely.to_wkb(shapes, byte_order=0), pa.binary())
    elif form == "ewkb":
        place = pa.array(shapely.to_wkb(shapely.set_srid(shapes, 4326), include_srid=True), pa.binary())
    else:
        place = pa.array(shapely.to_wkb(shapes), getattr(pa, form)())
    return pa.table({"trip": np.arange(len(places)), "place": place})


def coordinates(column: pa.ChunkedArray) -> np.ndarray:
    values = column.to_pylist()
    if isinstance(values[-1], bytes):
        values = [
            None if value is None else shapely.get_coordinates(shapely.from_wkb(value))[0] for value in values
        ]
    elif isinstance(values[-1], dict):
        values = [None if value is None else (value["x"], value["y"]) for value in values]
    return np.array([(np.nan, np.nan) if value is None else value for value in values])


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_points_gets_the_same_reports_as_wkb(form: str) -> None:
    places = LONLAT.copy()
    places[HOLES] = np.nan
    given = points(form, places)
    reports = obfuscate(given, **BY_ROW, **CRS84).read_all()
    wanted = NOISE.sample(LONLAT, rng=KeyedRandomness(Key(KEY).for_file(""), np.arange(SIZE)))
    wanted[HOLES] = np.nan
    np.testing.assert_array_equal(coordinates(reports["place"]), wanted)
    kind = given.schema.field("place").type
    assert reports.schema.field("place").type == (pa.binary() if pa.types.is_nested(kind) else kind)
    assert np.flatnonzero(reports["place"].is_null().to_numpy()).tolist() == HOLES


@pytest.mark.parametrize("kind", [pa.float32(), pa.decimal128(9, 6), pa.string()])
def test_degrees_keep_their_type(kind: pa.DataType) -> None:
    columns = {
        name: pa.array(values.round(6)).cast(kind) for name, values in zip(("lon", "lat"), LONLAT.T, strict=True)
    }
    reports = obfuscate(pa.table(columns), **BY_ROW).read_all()
    assert [field.type for field in reports.schema] == [kind, kind]
    truth = np.column_stack([column.cast(pa.float64()).to_numpy() for column in columns.values()])
    wanted = NOISE.sample(truth, rng=KeyedRandomness(Key(KEY).for_file(""), np.arange(SIZE)))
    made = np.column_stack([reports[name].cast(pa.float64()).to_numpy() for name in columns])
    np.testing.assert_allclose(made, wanted, atol=1e-5)


def test_half_a_place_does_not_leave_and_an_empty_point_becomes_null() -> None:
    half = pa.table({"lon": [None, 2.0], "lat": [48.0, 48.0]})
    assert obfuscate(half, **BY_ROW, missing="keep").read_all()["lat"].to_pylist()[0] is None
    for order in (0, 1):
        empty = pa.table(
            {"place": list(shapely.to_wkb([shapely.Point(), shapely.Point(2, 48)], byte_order=order))}
        )
        made = obfuscate(empty, **BY_ROW, **CRS84).read_all()["place"]
        assert made.is_null().to_pylist() == [True, False]


def test_heights_do_not_leave() -> None:
    table = pa.table({"place": [shapely.Point(1, 2, 3).wkb]})
    assert not shapely.from_wkb(obfuscate(table, **BY_ROW, **CRS84).read_all()["place"][0].as_py()).has_z


def test_a_projected_crs_is_carried_there_and_back() -> None:
    lambert = Projection.from_crs("EPSG:2154")
    xy = lambert.to_xy(np.column_stack([RNG.uniform(2.2, 2.5, SIZE), RNG.uniform(48.8, 48.9, SIZE)]))
    reports = obfuscate(points("struct", xy), **BY_ROW, geometry="place", crs="EPSG:2154").read_all()
    source = KeyedRandomness(Key(KEY).for_file(""), np.arange(SIZE))
    wanted = lambert.to_xy(NOISE.sample(lambert.to_lonlat(xy), rng=source))
    np.testing.assert_allclose(coordinates(reports["place"]), wanted, atol=1e-6)


def declared(about: dict[str, Any], name: str = "geoarrow.wkb") -> pa.Table:
    plain = points("list" if name == "geoarrow.point" else "binary")
    metadata = {"ARROW:extension:name": name, "ARROW:extension:metadata": json.dumps(about)}
    return plain.cast(pa.schema([plain.schema.field(0), plain.schema.field(1).with_metadata(metadata)]))


@pytest.mark.parametrize("name", ["geoarrow.point", "geoarrow.wkb"])
def test_geoarrow_needs_no_names_and_its_crs_stays(name: str) -> None:
    reports = obfuscate(declared({"crs": "EPSG:4326", "note": SECRET}, name), **BY_ROW).read_all()
    about = reports.schema.field("place").metadata
    assert about[b"ARROW:extension:name"] == b"geoarrow.wkb"
    assert json.loads(about[b"ARROW:extension:metadata"]) == {"crs": "EPSG:4326"}
    assert np.abs(coordinates(reports["place"]) - LONLAT).max() > 0


def geoparquet(**column: Any) -> pa.Table:
    about = {"encoding": "WKB", "geometry_types": ["Point Z"], **column}
    geo = {"version": "1.1.0", "primary_column": "place", "columns": {"place": about}, "author": SECRET}
    return points("binary").replace_schema_metadata({"geo": json.dumps(geo), "owner": SECRET})


def test_of_geoparquet_metadata_the_crs_stays_and_boxes_and_notes_do_not() -> None:
    given = geoparquet(
        crs=None, bbox=[-179.5, -84, 179, 84], covering={"bbox": {}}, orientation=SECRET, epoch=SECRET
    )
    with pytest.raises(InvalidInputError, match="must have a CRS"):
        obfuscate(given, **BY_ROW)
    reports = obfuscate(given, **BY_ROW, crs="EPSG:4326").read_all()
    geo = json.loads(reports.schema.metadata[b"geo"])
    crs = geo["columns"]["place"].pop("crs")
    assert crs["id"] == {"authority": "EPSG", "code": 4326}
    assert geo["columns"] == {"place": {"encoding": "WKB", "geometry_types": ["Point"]}}
    assert SECRET.encode() not in written(reports)
    assert b"179.5" not in written(reports)


class Place(pa.ExtensionType):  # type: ignore[misc]
    def __init__(self, storage: pa.DataType) -> None:
        super().__init__(storage, "geoarrow.wkb")

    def __arrow_ext_serialize__(self) -> bytes:
        return b'{"crs": "OGC:CRS84"}'

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, _: bytes) -> "Place":
        return cls(storage)


def test_a_registered_extension_type_becomes_its_storage_and_is_declared() -> None:
    plain = points("binary")["place"].combine_chunks()
    pa.register_extension_type(Place(plain.type))
    try:
        given = pa.table({"place": pa.ExtensionArray.from_storage(Place(plain.type), plain)})
        made = obfuscate(given, **BY_ROW).schema.field("place")
        assert made.type == plain.type
        assert made.metadata[b"ARROW:extension:name"] == b"geoarrow.wkb"
    finally:
        pa.unregister_extension_type("geoarrow.wkb")


REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "no stream": ({"lon": [1.0]}, {}, "stream must be a table with __arrow_c_stream__"),
    "no such column": (trips(), {"lon": "x", "lat": "lat"}, "no column 'x'"),
    "a kept column that does not exist": (trips(), {"keep": ["x"]}, "no column 'x'"),
    "whole degrees": (pa.table({"lon": [1], "lat": [2]}), {}, "must be float, decimal or text"),
    "two ways": (trips(), {"lon": "lon", "geometry": "lat"}, "not both"),
    "a CRS for degrees": (trips(), {"crs": "EPSG:4326"}, "`crs=` is the CRS of a geometry"),
    "no CRS": (points("binary"), {"geometry": "place"}, "must have a CRS"),
    "another CRS": (geoparquet(), {"crs": "EPSG:2154"}, "declares another CRS"),
    "another SRID": (points("ewkb"), {"geometry": "place", "crs": "EPSG:2154"}, "has another CRS"),
    "nonsense for a CRS": (points("list"), {"geometry": "place", "crs": "Paris"}, "crs"),
    "a kept geometry": (
        geoparquet().append_column("lon", pa.array(LONLAT[:, 0])).append_column("lat", pa.array(LONLAT[:, 1])),
        {"lon": "lon", "lat": "lat", "keep": ["place"]},
        "'place' holds geometries",
    ),
    "text for points": (pa.table({"place": ["POINT (1 2)"]}), CRS84, "must hold WKB or GeoArrow points"),
    "bytes for points": (pa.table({"place": [b"\x01"]}), CRS84, "row 0: geometry must be WKB"),
    "a line": (
        pa.table({"place": [None, shapely.LineString([(0, 0), (1, 1)]).wkb]}),
        CRS84,
        "row 1: geometry must be a point",
    ),
    "heights": (pa.table({"place": [{"x": 1.0, "y": 2.0, "z": 3.0}]}), CRS84, "points of x and y only"),
    "no id": (
        pa.table({"lon": [1.5], "lat": [2.5], "id": [None]}),
        {"id_column": "id"},
        "row 0: identity is missing",
    ),
    "a fraction for an id": (trips(), {"id_column": "fare"}, "'fare' must be whole numbers, text or bytes"),
    "a fraction for a person": (trips(), {"person": "fare"}, "'fare' must name persons"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_in_doubt_is_refused(name: str) -> None:
    given, options, message = REFUSED[name]
    with pytest.raises(InvalidInputError, match=message):
        obfuscate(given, **{**BY_ROW, **options})
