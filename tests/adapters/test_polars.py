"""Frames of Polars: types, the record, and lazy frames that are collected once."""

import io
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from geoind import EACH_ROW
from geoind.adapters.polars import obfuscate
from geoind.errors import InvalidInputError
from geoind.tables import read_promise

SIZE = 60
RNG = np.random.default_rng(2)
TRIPS = pl.DataFrame(
    {
        "trip": np.arange(SIZE),
        "rider": [f"rider {number % 4}" for number in range(SIZE)],
        "fare": np.arange(SIZE) / 4,
        "lon": RNG.uniform(2, 3, SIZE),
        "lat": RNG.uniform(48, 49, SIZE),
    }
)
EACH: dict[str, Any] = {"epsilon": 0.01, "person": EACH_ROW, "key": bytes(32)}
SECRET = "SECRET-SECRET-SECRET"


def test_kept_columns_keep_their_types_in_several_chunks() -> None:
    kept = TRIPS.select(
        when=pl.datetime(2024, 5, 1) + pl.duration(minutes="trip"),
        span=pl.duration(seconds="trip"),
        day=pl.date(2024, 5, 1),
        price=pl.col("fare").cast(pl.Decimal(9, 2)),
        text=pl.when(pl.col("trip") % 3 > 0).then(pl.lit("some text that is not short")),
        parts=pl.concat_list("rider", "rider"),
        both=pl.struct("rider", "trip"),
        code=pl.col("rider").cast(pl.Categorical),
        nothing=pl.lit(None),
    )
    frame = TRIPS.hstack(kept)
    frame = pl.concat([frame[:20], frame[20:25], frame[25:]], rechunk=False)
    reports = frame.geoind.obfuscate(**EACH, keep=kept.columns)
    assert reports.columns == ["lon", "lat", *kept.columns]
    assert reports.select(kept.columns).equals(kept)
    assert reports.select(kept.columns).schema == kept.schema


def test_a_lazy_frame_is_collected_once_for_the_needed_columns_and_drawn_once() -> None:
    runs: list[list[str]] = []

    def seen(part: pl.DataFrame) -> pl.DataFrame:
        runs.append(part.columns)
        return part

    lazy = TRIPS.lazy().map_batches(seen, projection_pushdown=True, streamable=False)
    options = {name: value for name, value in EACH.items() if name != "key"}
    reports = lazy.geoind.obfuscate(**options, keep=["fare"])
    assert isinstance(reports, pl.LazyFrame)
    assert [set(columns) for columns in runs] == [{"fare", "lon", "lat"}]
    assert reports.collect().equals(reports.collect())
    assert len(runs) == 1
    assert reports.collect_schema().names() == ["fare", "lon", "lat"]


def test_a_lazy_frame_has_the_reports_of_the_frame() -> None:
    lazy = TRIPS.lazy().filter(pl.col("fare") > 3)
    eager = lazy.collect().geoind.obfuscate(**EACH, keep=["trip"])
    assert lazy.geoind.obfuscate(**EACH, keep=["trip"]).collect().equals(eager)


@pytest.mark.parametrize("options", [{}, {"keep": ["rider"]}, {"order": "shuffle"}], ids=str)
def test_an_empty_frame_has_its_columns(options: dict[str, Any]) -> None:
    for frame in (TRIPS.clear(), TRIPS.clear().lazy()):
        reports = frame.geoind.obfuscate(**EACH, **options).lazy().collect()
        assert reports.columns == [*options.get("keep", []), "lon", "lat"]
        assert reports.is_empty()


def test_the_record_belongs_to_the_reports_and_to_a_file(tmp_path: Any) -> None:
    reports = TRIPS.geoind.obfuscate(epsilon=0.001, person="rider", keep=["fare"])
    record = reports.geoind.record
    assert record.kept == ("fare",)
    assert record.busiest.reports == SIZE / 4
    assert TRIPS.geoind.record is None
    assert reports.head(3).geoind.record is None, "it is of the whole release"
    assert pl.concat([reports.select("lon"), TRIPS.select("lon")]).geoind.record is None
    reports.write_parquet(tmp_path / "reports.parquet", metadata={"geoind": record.to_json()})
    assert read_promise(tmp_path / "reports.parquet") == record


def test_entries_that_no_row_has_do_not_leave() -> None:
    codes = pl.Series(["public", SECRET] * (SIZE // 2))
    frame = TRIPS.with_columns(
        code=codes.cast(pl.Categorical),
        kind=codes.cast(pl.Enum(["public", SECRET])),
        text=codes,
        parts=codes.reshape((-1, 1)),
    )
    half = frame.filter(pl.col("text") != SECRET)
    for given in (half, half.lazy()):
        reports = given.geoind.obfuscate(**EACH, keep=["code", "kind", "text"]).lazy().collect()
        for write in (reports.write_ipc, reports.write_ipc_stream, reports.write_parquet):
            file = io.BytesIO()
            write(file)
            assert SECRET.encode() not in file.getvalue()
        assert set(reports["kind"].cast(pl.String)) == {"public"}


def test_names_are_names_and_no_patterns() -> None:
    frame = TRIPS.rename({"fare": "^.*$", "trip": "*"})
    for given in (frame, frame.lazy()):
        assert given.geoind.obfuscate(**EACH, keep=["^.*$", "*"]).lazy().collect().columns == [
            "*",
            "^.*$",
            "lon",
            "lat",
        ]


def test_python_objects_are_left_out_and_cannot_be_kept() -> None:
    frame = TRIPS.with_columns(pl.Series("things", [object()] * SIZE, dtype=pl.Object))
    for given in (frame, frame.lazy()):
        assert given.geoind.obfuscate(**EACH).lazy().collect().columns == ["lon", "lat"]
        with pytest.raises(InvalidInputError, match="no column 'things'"):
            given.geoind.obfuscate(**EACH, keep=["things"])


def test_points_as_bytes_are_read_with_a_crs() -> None:
    import shapely

    places = shapely.to_wkb(shapely.points(TRIPS["lon"], TRIPS["lat"])).tolist()
    reports = pl.DataFrame({"place": places}).geoind.obfuscate(**EACH, geometry="place", crs="EPSG:4326")
    wanted = TRIPS.geoind.obfuscate(**EACH).to_numpy()
    assert (shapely.get_coordinates(shapely.from_wkb(reports["place"].to_list())) == wanted).all()


def test_other_frames_are_refused() -> None:
    for frame in (pa.table({"lon": [1.5], "lat": [2.5]}), TRIPS["lon"], TRIPS.to_pandas()):
        with pytest.raises(InvalidInputError, match="must be a DataFrame or a LazyFrame of Polars"):
            obfuscate(frame, **EACH)
