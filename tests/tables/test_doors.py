"""Every engine that carries tables refuses the same columns, passes the same and makes the same reports."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import dask_geopandas
import duckdb
import geopandas
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dask import config

from geoind import InvalidInputError, KeyedRandomness, SphericalLaplace
from geoind.adapters import dask, dataset
from geoind.adapters import spark as spark_door
from geoind.adapters.arrow import obfuscate_batch
from geoind.adapters.geopandas import obfuscate_points
from geoind.tables import Recipe, policy, read_promise, table
from tests.tables import cases

KEY = bytes(range(32))
NOISE: dict[str, Any] = {"epsilon": 0.01, "key": KEY, "id_column": "trip"}
TRUTH = cases.lonlat(60)

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")

Door = Callable[..., pa.Table]


def by_recipe(given: pa.Table, folder: Path, **options: Any) -> pa.Table:  # noqa: ARG001
    return pa.Table.from_batches([Recipe.of(**options).obfuscate(b) for b in given.combine_chunks().to_batches()])


def by_arrow(given: pa.Table, folder: Path, **options: Any) -> pa.Table:  # noqa: ARG001
    noise = SphericalLaplace(options.pop("epsilon"))
    return pa.Table.from_batches([obfuscate_batch(b, noise, **options) for b in given.to_batches()])


def by_folder(given: pa.Table, folder: Path, **options: Any) -> pa.Table:
    (folder / "in").mkdir()
    pq.write_table(given, folder / "in" / "a.parquet")
    dataset.obfuscate_dataset(folder / "in", folder / "out", workers=1, **options)
    assert read_promise(folder / "out" / "a.parquet").epsilon == 0.01
    return pq.read_table(folder / "out" / "a.parquet")


def by_points(given: pa.Table, folder: Path, **options: Any) -> pa.Table:  # noqa: ARG001
    frame = given.to_pandas()
    points = geopandas.points_from_xy(frame.pop("lon"), frame.pop("lat"))
    reports = obfuscate_points(geopandas.GeoDataFrame(frame, geometry=points, crs=4326), **options)
    return flat(reports)


def by_lonlat_of_a_geoframe(given: pa.Table, folder: Path, **options: Any) -> pa.Table:  # noqa: ARG001
    frame = geopandas.GeoDataFrame(given.to_pandas())
    return pa.Table.from_pandas(
        pd.DataFrame(obfuscate_points(frame, lon="lon", lat="lat", **options)), preserve_index=False
    )


def by_dask(given: pa.Table, folder: Path, **options: Any) -> pa.Table:  # noqa: ARG001
    # Dask would take bytes for text.
    with config.set({"dataframe.convert-string": False}):
        lazy = dask.obfuscate(dd.from_pandas(given.to_pandas(), npartitions=1), **options)
        return pa.Table.from_pandas(lazy.compute(scheduler="sync"), preserve_index=False)


def by_dask_geopandas(given: pa.Table, folder: Path, **options: Any) -> pa.Table:  # noqa: ARG001
    frame = given.to_pandas()
    points = geopandas.points_from_xy(frame.pop("lon"), frame.pop("lat"))
    frame = geopandas.GeoDataFrame(frame, geometry=points, crs=4326)
    with config.set({"dataframe.convert-string": False}):
        lazy = dask_geopandas.from_geopandas(frame, npartitions=1)
        return flat(dask.obfuscate(lazy, **options).compute(scheduler="sync"))


def by_dask_parquet(given: pa.Table, folder: Path, **options: Any) -> pa.Table:
    pq.write_table(given, folder / "a.parquet")
    lazy = dask.obfuscate_parquet(folder, **options)
    return pa.Table.from_pandas(lazy.compute(scheduler="sync"), preserve_index=False)


def by_duckdb(given: pa.Table, folder: Path, **options: Any) -> pa.Table:  # noqa: ARG001
    recipe = Recipe.of(**options)
    batches = duckdb.connect().from_arrow(given).to_arrow_reader(1000)
    return pa.Table.from_batches([recipe.obfuscate(batch) for batch in batches])


def by_polars(given: pa.Table, folder: Path, **options: Any) -> pa.Table:  # noqa: ARG001
    recipe = Recipe.of(**options)
    batches = pl.from_arrow(given).rechunk().to_arrow().to_batches()
    return pa.Table.from_batches([recipe.obfuscate(batch) for batch in batches])


def flat(reports: Any) -> pa.Table:
    shapes = reports.geometry
    frame = pd.DataFrame(reports.drop(columns="geometry")).assign(lon=shapes.x, lat=shapes.y)
    return pa.Table.from_pandas(frame, preserve_index=False)


DOORS: dict[str, Door] = {
    "recipe": by_recipe,
    "arrow": by_arrow,
    "folder": by_folder,
    "points": by_points,
    "lon and lat of a GeoDataFrame": by_lonlat_of_a_geoframe,
    "dask": by_dask,
    "dask-geopandas": by_dask_geopandas,
    "dask parquet": by_dask_parquet,
    "duckdb": by_duckdb,
    "polars": by_polars,
}


def with_columns(columns: dict[str, cases.Column], prefix: str = "c") -> tuple[pa.Table, dict[str, str]]:
    """Return a table with each column under a name that tells nothing, and which case is which name."""
    result = cases.table_with(TRUTH, ["a"] * len(TRUTH))
    names = {}
    for number, (case, column) in enumerate(columns.items()):
        values = column(TRUTH)
        names[f"{prefix}{number}q"] = case
        result = result.append_column(
            f"{prefix}{number}q", values if isinstance(values, pa.Array) else pa.array(values)
        )
    return result, names


def named_in(error: InvalidInputError, names: dict[str, str]) -> set[str]:
    return {case for name, case in names.items() if f"'{name}'" in str(error)}


@pytest.mark.parametrize("door", DOORS)
def test_every_door_names_every_column_that_repeats_the_place(door: str, tmp_path: Path) -> None:
    given, names = with_columns(cases.BY_VALUE)
    with pytest.raises(InvalidInputError) as caught:
        DOORS[door](given, tmp_path, **NOISE)
    assert named_in(caught.value, names) == set(names.values())
    assert not any(str(axis) in str(caught.value) for axis in TRUTH.ravel())


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("case", cases.BY_TYPE)
def test_every_door_refuses_nested_and_binary_copies(door: str, case: str, tmp_path: Path) -> None:
    given, _ = with_columns({case: cases.BY_TYPE[case]})
    with pytest.raises(InvalidInputError, match="'c0q'"):
        DOORS[door](given, tmp_path, **NOISE)


@pytest.mark.parametrize("door", DOORS)
def test_every_door_passes_ordinary_columns_and_makes_the_same_reports(door: str, tmp_path: Path) -> None:
    given, names = with_columns({name: cases.PLAIN[name] for name in cases.PLAIN if name != "nothing"})
    reports = DOORS[door](given, tmp_path, **NOISE)
    for name in names:
        assert reports[name].to_pylist() == given[name].to_pylist()
    rng = KeyedRandomness(KEY, given["trip"].to_numpy())
    wanted = SphericalLaplace(0.01).sample(TRUTH, rng=rng)
    np.testing.assert_array_equal(np.column_stack([reports["lon"], reports["lat"]]), wanted)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("option", ["person_column", "id_column"])
def test_at_no_door_a_column_of_the_place_names_persons_or_records(door: str, option: str, tmp_path: Path) -> None:
    given, _ = with_columns({})
    name = "geometry" if door in ("points", "dask-geopandas") else "lat"
    if name == "lat":
        given = given.set_column(given.column_names.index("lat"), "lat", pa.array([str(lat) for _, lat in TRUTH]))
    with pytest.raises(InvalidInputError, match=f"column '{name}' holds the place"):
        DOORS[door](given, tmp_path, **{**NOISE, option: name})


@pytest.mark.parametrize("door", DOORS)
def test_every_door_drops_and_keeps(door: str, tmp_path: Path) -> None:
    given, _ = with_columns({"latitude": cases.BY_VALUE["latitude"], "text": cases.BY_VALUE["text"]})
    given = given.append_column("street", pa.array(["Rue de Rivoli"] * 60))
    reports = DOORS[door](given, tmp_path, drop=["c0q", "c1q"], keep=["street"], **NOISE)
    assert set(reports.column_names) == {"trip", "note", "lon", "lat", "street"}
    sink = pa.BufferOutputStream()
    pq.write_table(reports, sink, compression="none", use_dictionary=False)
    data = sink.getvalue().to_pybytes()
    assert not any(np.float64(axis).tobytes() in data or str(axis).encode() in data for axis in TRUTH.ravel())


@pytest.mark.parametrize("door", ["recipe", "folder", "points", "dask", "duckdb"])
def test_without_the_policy_the_truth_would_pass(
    door: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "refuse", lambda told: None)  # noqa: ARG005
    monkeypatch.setattr(policy, "refuse", lambda told: None)  # noqa: ARG005
    given, names = with_columns(cases.BY_VALUE)
    reports = DOORS[door](given, tmp_path, **NOISE)
    assert set(names) <= set(reports.column_names)
    assert reports["c0q"].to_pylist() == TRUTH[:, 1].tolist()


@pytest.mark.jvm
def test_spark_names_every_column_and_makes_the_same_reports(
    spark: Any,
    tmp_path: Path,
) -> None:
    given, names = with_columns(cases.BY_VALUE)
    pq.write_table(given.combine_chunks(), tmp_path / "telling.parquet")
    telling = spark.read.parquet(str(tmp_path / "telling.parquet")).coalesce(1)
    with pytest.raises(Exception, match="tell the place") as caught:
        spark_door.obfuscate(telling, **NOISE).collect()
    assert len(named_in(caught.value, names)) == len(names)  # type: ignore[arg-type]
    plain, _ = with_columns({"prices": cases.PLAIN["prices"], "words": cases.PLAIN["words"]})
    pq.write_table(plain, tmp_path / "plain.parquet")
    frame = spark_door.obfuscate(spark.read.parquet(str(tmp_path / "plain.parquet")), **NOISE)
    rows = sorted(frame.collect(), key=lambda row: row["trip"])
    wanted = SphericalLaplace(0.01).sample(TRUTH, rng=KeyedRandomness(KEY, np.arange(60)))
    np.testing.assert_array_equal([(row["lon"], row["lat"]) for row in rows], wanted)
