"""A promise about several reports together goes through a table."""

from collections import Counter
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from geoind import (
    InvalidInputError,
    Ledger,
    Promise,
    SphericalGaussian,
    SphericalLaplace,
    mechanism_for_reports,
)
from geoind.adapters import dask, dataset
from geoind.adapters.geopandas import obfuscate_points
from geoind.budgets.persons import PersonReports
from geoind.files import obfuscate_file
from geoind.files.folder import obfuscate_files
from geoind.files.job import Job
from geoind.tables import Recipe
from geoind.tables.promise import PARQUET_KEY, TablePromise
from geoind.tables.summary import Summary, Tally
from tests.keywords import Together
from tests.tables import cases

TOGETHER: Together = {"level": 1.5, "radius": 200.0, "delta": 1e-5, "reports": 20}
BATCH = pa.RecordBatch.from_pydict({"lon": [2.2945, 2.35], "lat": [48.8584, 48.86]})


def test_a_table_gets_the_least_noise_that_keeps_the_promise_and_tells_it() -> None:
    recipe = Recipe.of(**TOGETHER)
    assert recipe.mechanism == mechanism_for_reports(**TOGETHER, space="lonlat")
    reports = recipe.obfuscate(BATCH)
    promise = TablePromise.from_json(reports.schema.metadata[PARQUET_KEY])
    assert promise.mechanism == "SphericalGaussian"
    assert {name: getattr(promise, name) for name in TOGETHER} == TOGETHER
    assert isinstance(recipe.mechanism, SphericalGaussian)
    assert promise.sigma == recipe.mechanism.sigma


def test_a_mechanism_that_keeps_the_promise_is_taken_and_another_one_is_refused() -> None:
    enough, little = SphericalGaussian(5000.0), SphericalLaplace(0.01)
    assert Recipe.of(**TOGETHER, mechanism=enough).mechanism is enough
    with pytest.raises(InvalidInputError, match="20 reports of this mechanism"):
        Recipe.of(**TOGETHER, mechanism=little)


def visits(*names: str) -> pa.RecordBatch:
    """Return a batch in which each of these persons has a place, whichever."""
    truth = cases.lonlat(len(names), seed=len(names))
    return pa.RecordBatch.from_pydict({"who": names, "lon": truth[:, 0], "lat": truth[:, 1]})


THREE: Together = {**TOGETHER, "reports": 3}
REFUSAL = "the promise is for 3 reports of a person together, and somebody has 4: give reports=4"


def test_a_batch_is_refused_in_which_somebody_has_more_reports_than_the_promise_is_for() -> None:
    recipe = Recipe.of(**THREE, person_column="who")
    assert recipe.obfuscate(visits("ana", "ben", "ana", "ana", "ben", "ben")).num_rows == 6
    with pytest.raises(InvalidInputError, match=REFUSAL) as caught:
        recipe.obfuscate(visits("ana", "ben", "ana", "ana", "ana"))
    assert "ana" not in str(caught.value)
    # A promise for each report, or of nobody knows whom, is not known to be false.
    many = visits(*["ana"] * 5)
    for options in ({"level": 1.5, "radius": 200.0, "delta": 1e-5, "person_column": "who"}, THREE):
        assert Recipe.of(**options).obfuscate(many).num_rows == 5


def test_reports_of_several_batches_and_processes_are_counted_together() -> None:
    recipe = Recipe.of(**THREE, person_column="who")
    batches = [visits("ana", "ben", "ana"), visits("cyd", "ana"), visits("ana", "ben")]
    table, tallies = recipe.table(batches[0].schema), [Tally(), Tally()]
    for tally, batch in zip((tallies[0], tallies[0], tallies[1]), batches, strict=True):
        examined = table.examine(batch)
        tally.add(table, examined, table.report(examined))
    examined = table.examine(batches[2])
    with pytest.raises(InvalidInputError, match=REFUSAL):
        Tally(persons=Counter(tallies[0].persons)).add(table, examined, table.report(examined))
    assert tallies[0].summary(recipe.mechanism, table.promise).busiest == 3
    tallies[0].merge(tallies[1])
    with pytest.raises(InvalidInputError, match=REFUSAL):
        tallies[0].summary(recipe.mechanism, table.promise)


def test_nobody_pays_for_more_reports_than_the_promise_is_for() -> None:
    recipe = Recipe.of(**THREE, person_column="who")
    with Ledger("sqlite://", budget=Promise(level=1.5, radius=200, delta=1e-5)) as ledger:
        with pytest.raises(InvalidInputError, match=REFUSAL):
            recipe.charge(ledger, PersonReports(Counter(ana=4, ben=1)), label="x")
        assert ledger.history("ben") == ledger.history("ana") == []
        recipe.charge(ledger, PersonReports(Counter(ana=3, ben=1)), label="x")
        assert [entry.reports for entry in ledger.history("ana")] == [3]


def test_a_trace_has_no_promise_for_so_many_reports() -> None:
    with pytest.raises(InvalidInputError, match="delta and reports are for single places"):
        Recipe.of(**TOGETHER, mechanism=SphericalLaplace(0.0003), trace="who,when")


def summary(busiest: int, promise: TablePromise) -> str:
    return str(Summary(reports=40, promise=promise, mean_error=1.0, reach_95=2.0, busiest=busiest))


def test_the_summary_says_when_a_record_has_more_reports_than_the_promise_is_for() -> None:
    promise = TablePromise.of(SphericalGaussian(5000.0), **TOGETHER)
    assert "more than the promise is for" not in summary(20, promise)
    assert "21 reports: more than the promise is for" in summary(21, promise)
    assert "epsilon 0.02 per metre together" in summary(2, TablePromise.of(SphericalLaplace(0.01)))


def by_file(tables: list[pa.Table], folder: Path, **options: Any) -> None:
    pyarrow.csv.write_csv(pa.concat_tables(tables), folder / "in.csv")
    obfuscate_file(folder / "in.csv", folder / "out.csv", **options)


def by_files(tables: list[pa.Table], folder: Path, *, ledger: Any = None, **options: Any) -> None:
    (folder / "in").mkdir()
    for number, table in enumerate(tables):
        pyarrow.csv.write_csv(table, folder / "in" / f"{number}.csv")
    obfuscate_files([folder / "in"], folder / "out", Job(recipe=Recipe.of(**options), ledger=ledger))


def by_dataset(tables: list[pa.Table], folder: Path, **options: Any) -> None:
    (folder / "in").mkdir()
    for number, table in enumerate(tables):
        pq.write_table(table, folder / "in" / f"{number}.parquet")
    dataset.obfuscate_dataset(folder / "in", folder / "out", workers=1, key=bytes(32), **options)


def by_frame(tables: list[pa.Table], folder: Path, **options: Any) -> None:
    obfuscate_points(pa.concat_tables(tables).to_pandas(), **options).to_csv(folder / "out.csv")


def by_dask(tables: list[pa.Table], folder: Path, **options: Any) -> None:
    frame = pa.concat_tables(tables).to_pandas().assign(trip=range(7))
    lazy = dask.obfuscate(dd.from_pandas(frame, npartitions=3), id_column="trip", key=bytes(32), **options)
    lazy.to_csv(folder / "out", compute_kwargs={"scheduler": "sync"})


def by_dask_parquet(tables: list[pa.Table], folder: Path, **options: Any) -> None:
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"in{number}.parquet")
    lazy = dask.obfuscate_parquet(folder, key=bytes(32), **options)
    lazy.to_csv(folder / "out", compute_kwargs={"scheduler": "sync"})


@pytest.mark.parametrize("paid", [False, True])
@pytest.mark.parametrize("door", [by_file, by_files, by_dataset, by_frame, by_dask, by_dask_parquet])
def test_no_door_gives_somebody_more_reports_than_the_promise_is_for(
    door: Any, paid: bool, tmp_path: Path
) -> None:
    # Nobody has more than three in any part.
    tables = [
        pa.table(visits("ana", "ben", "ana")),
        pa.table(visits("ana", "cyd")),
        pa.table(visits("ben", "ana")),
    ]
    tables = [table.sort_by([("lon", "ascending")]) for table in tables]
    options: dict[str, Any] = {"person_column": "who", "order": "keep"}
    for reports in (3, 4):
        folder = tmp_path / str(reports)
        folder.mkdir()
        together: Together = {**TOGETHER, "reports": reports}
        with Ledger("sqlite://", budget=Promise(level=1.5, radius=200, delta=1e-5)) as ledger:
            payer = {"ledger": ledger} if paid and door is not by_dask_parquet else {}
            if reports == 4:
                door(tables, folder, **together, **options, **payer)
                assert [path for path in folder.iterdir() if path.name.startswith("out")]
                continue
            with pytest.raises(InvalidInputError, match=REFUSAL):
                door(tables, folder, **together, **options, **payer)
            assert ledger.history("ana") == ledger.history("cyd") == []
        assert not [path for path in folder.iterdir() if "out" in path.name]
