import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from geoind import PlanarGaussian, PlanarLaplace, PostProcessed, Projected, Projection, SphericalLaplace
from geoind.mechanisms.protocol import Mechanism
from geoind.space.lattice import half_diagonal
from geoind.tables import Recipe
from geoind.tables.promise import TablePromise
from geoind.tables.summary import Tally, mean_error

PARIS = Projection(2.35, 48.86)
LAMBERT = Projection.from_crs("EPSG:2154")


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
def test_the_errors_that_are_told_are_those_of_the_reports(mechanism: Mechanism) -> None:
    summary = Tally().summary(mechanism, TablePromise.of(mechanism))
    truth = np.tile([2.35, 48.86], (20_000, 1))
    apart = np.hypot(*PARIS.to_xy(mechanism.sample(truth, rng=1)).T)
    assert summary.mean_error == pytest.approx(apart.mean(), rel=0.03)
    assert summary.reach_95 == pytest.approx(np.quantile(apart, 0.95), rel=0.03)
    assert "95 % within" in str(summary)


def test_a_step_that_does_not_tell_how_far_it_moves_a_report_costs_the_summary_nothing_else() -> None:
    mechanism = Projected(PostProcessed(PlanarLaplace(0.01), lambda reports: reports), PARIS)
    summary = Tally().summary(mechanism, TablePromise.of(mechanism))
    assert summary.mean_error is summary.reach_95 is None
    assert str(summary).startswith("0 reports, epsilon 0.0100004 per metre")
    assert "within" not in str(summary)


def test_columns_that_were_kept_are_named_and_no_others() -> None:
    promise = TablePromise.of(SphericalLaplace(0.01))
    warning = "passed on as asked, although they may tell the place: "
    kept = Tally().summary(SphericalLaplace(0.01), replace(promise, kept=("street", "cell")))
    assert f"{warning}street, cell" in str(kept)
    assert warning not in str(Tally().summary(SphericalLaplace(0.01), promise))


@pytest.mark.parametrize(
    ("count", "told"), [(1, "1 bad record got no report"), (2000, "2,000 bad records got no report")]
)
def test_bad_records_are_counted_in_words_that_fit(count: int, told: str) -> None:
    summary = Tally(rejected=count).summary(SphericalLaplace(0.01), TablePromise.of(SphericalLaplace(0.01)))
    assert str(summary).splitlines()[-1] == told


def test_a_mean_error_from_quantiles_is_that_of_the_law() -> None:
    assert mean_error(Projected(PlanarLaplace(0.01), PARIS)) == pytest.approx(200 + half_diagonal(), rel=0.005)


def test_what_two_processes_counted_comes_together() -> None:
    recipe, tallies = Recipe.of(epsilon=0.01, order="keep"), []
    for lon, lat in ((2.35, 48.86), (-70.65, -33.45)):
        batch = pa.RecordBatch.from_pydict({"lon": [lon], "lat": [lat]})
        table = recipe.table(batch.schema)
        examined = table.examine(batch)
        tallies.append(Tally())
        tallies[-1].add(table, examined, table.report(examined))
    for first, second in (tallies, tallies[::-1]):
        together = replace(first)
        together.merge(second)
        summary = together.summary(recipe.mechanism, TablePromise.of(recipe.mechanism))
        assert summary.reports == 2
        assert summary.bounds == pytest.approx((-70.65, -33.45, 2.35, 48.86), abs=0.1)


def test_many_distances_measure_few_boxes() -> None:
    from geoind.space.domain import _scales

    mechanism = Projected(PlanarLaplace(0.02), LAMBERT)
    before = _scales.cache_info().misses
    for confidence in np.linspace(0.01, 0.99, 300):
        mechanism.reach(confidence)
    assert _scales.cache_info().misses - before < 2 + math.log2(mechanism.reach(0.99) / mechanism.reach(0.01))


def test_little_noise_is_not_called_none() -> None:
    told = str(Tally().summary(SphericalLaplace(5.0), TablePromise.of(SphericalLaplace(5.0))))
    assert told == "0 reports, epsilon 5 per metre: 0.4 m from the truth on average, 95 % within 1.7 m"
