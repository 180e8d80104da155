"""A promise about several reports together goes through a table."""

import pyarrow as pa
import pytest

from geoind import InvalidInputError, SphericalGaussian, SphericalLaplace, mechanism_for_reports
from geoind.tables import Recipe
from geoind.tables.promise import PARQUET_KEY, TablePromise
from geoind.tables.summary import Summary
from tests.keywords import Together

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


def summary(busiest: int, promise: TablePromise) -> str:
    return str(Summary(reports=40, promise=promise, mean_error=1.0, reach_95=2.0, busiest=busiest))


def test_the_summary_says_when_a_person_has_more_reports_than_the_promise_is_for() -> None:
    promise = TablePromise.of(SphericalGaussian(5000.0), **TOGETHER)
    assert "more than the promise is for" not in summary(20, promise)
    assert "21 reports: more than the promise is for" in summary(21, promise)
    assert "epsilon 0.02 per metre together" in summary(2, TablePromise.of(SphericalLaplace(0.01)))
