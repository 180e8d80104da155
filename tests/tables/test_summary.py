import math
from collections import Counter
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from geoind.tables.promise import TablePromise

from geoind import PlanarGaussian, PlanarLaplace, PostProcessed, Projected, Projection, SphericalLaplace
from geoind.mechanisms.protocol import Mechanism
from geoind.space.lattice import half_diagonal
from geoind.tables import Recipe
from geoind.tables.summary import Summary, Tally, mean_error
from tests.tables import cases

PARIS = Projection(2.35, 48.86)
LAMBERT = Projection.from_crs("EPSG:2154")
PROMISE = TablePromise.of(SphericalLaplace(0.01))


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


def lines(promise: TablePromise | None = None, **told: Any) -> list[str]:
    """Return a summary's lines after the first one."""
    usual: dict[str, Any] = {"reports": 40, "mean_error": None, "reach_95": None}
    return str(Summary(promise=promise or PROMISE, **(usual | told))).splitlines()


def test_a_summary_begins_with_how_many_reports_and_how_far_they_are() -> None:
    assert lines() == ["40 reports, epsilon 0.01 per metre"]
    assert lines(reports=1234567) == ["1,234,567 reports, epsilon 0.01 per metre"]
    # Half a distance would be read as the whole.
    assert lines(mean_error=5.0) == lines(reach_95=5.0) == lines()
    for mean, reach, words in (
        (1234.4, 56789.0, "1,234 m from the truth on average, 95 % within 56,789 m"),
        (10.0, 10.6, "10 m from the truth on average, 95 % within 11 m"),
        (9.96, 0.123, "10 m from the truth on average, 95 % within 0.12 m"),
        (9.94, 3.0, "9.9 m from the truth on average, 95 % within 3 m"),
    ):
        assert lines(mean_error=mean, reach_95=reach) == [f"40 reports, epsilon 0.01 per metre: {words}"]
    trace = replace(PROMISE, session="Independent(epsilon=0.01)", fresh=0.01, mechanism="Independent")
    [told] = lines(trace, mean_error=200.0, reach_95=480.0)
    assert told.endswith("(Independent): a fresh one is 200 m from the truth on average, 95 % within 480 m")


def test_a_summary_says_between_which_degrees_the_reports_lie() -> None:
    assert lines(bounds=(-1.5, 48.25, 2.0, 49.123456)) == [
        "40 reports, epsilon 0.01 per metre",
        "the reports lie between -1.50000 and 2.00000 E, 48.25000 and 49.12346 N",
    ]


def test_a_summary_says_what_the_busiest_has_together_when_that_is_more_than_was_promised() -> None:
    assert lines(busiest=1) == lines()
    assert lines(busiest=2500)[1:] == [
        "the busiest person or record has 2,500 reports: epsilon 25 per metre together"
    ]
    several = replace(PROMISE, reports=3, delta=1e-5, level=1.0, radius=100.0)
    assert len(lines(several, busiest=3)) == 1
    assert lines(several, busiest=4)[1:] == [
        "the busiest person or record has 4 reports: more than the promise is for"
    ]
    # A trace's promise is for all of it.
    assert len(lines(replace(PROMISE, session="x", fresh=0.01), busiest=50)) == 1
    assert Summary(reports=1, promise=PROMISE, mean_error=None, reach_95=None).busiest_epsilon is None
    told = Summary(reports=1, promise=PROMISE, mean_error=None, reach_95=None, busiest=7)
    assert told.busiest_epsilon == pytest.approx(0.07)


def test_a_summary_warns_of_identities_that_repeat_and_of_bad_records_and_of_nothing_else() -> None:
    assert lines(repeated=1)[1:] == ["1 identities name more than one record: does the column tell records apart?"]
    assert lines(repeated=4321)[1].startswith("4,321 identities")
    assert lines(rejected=0) == lines(repeated=0) == lines()
    bare = Summary(reports=40, promise=PROMISE, mean_error=None, reach_95=None)
    assert (bare.rejected, bare.bounds, bare.busiest, bare.repeated) == (0, None, None, 0)


PLACES = cases.lonlat(12)


def counted(rows: slice, tally: Tally | None = None, **options: Any) -> Tally:
    """Return what is counted of some rows of a table in which the third row lacks its place."""
    lon = [None if row == 2 else float(lon) for row, lon in enumerate(PLACES[:, 0])]
    columns = {"id": IDS, "who": WHO, "lon": lon, "lat": PLACES[:, 1]}
    batch = pa.RecordBatch.from_pydict(columns).slice(rows.start, rows.stop - rows.start)
    key = bytes(32) if "id_column" in options else None
    table = Recipe.of(epsilon=0.01, key=key, **options).table(batch.schema)
    examined = table.examine(batch)
    tally = tally or Tally()
    tally.add(table, examined, table.report(examined))
    return tally


IDS = [0, 1, 2, 3, 4, 5, 0, 1, 8, 9, 0, 11]
WHO = ["ana", "ben", "ana", "ana", "ana", "ben", "ana", "ben", "cem", "cem", "ana", "cem"]


def summed(tally: Tally) -> Summary:
    return tally.summary(SphericalLaplace(0.01), PROMISE)


def test_a_tally_counts_reports_bad_rows_persons_and_identities_in_one_batch_or_several() -> None:
    cases_of: list[tuple[dict[str, Any], int]] = [({}, 1), ({"missing": "keep"}, 0)]
    for options, rejected in cases_of:
        whole = counted(slice(0, 12), **options)
        parts = counted(slice(5, 12), counted(slice(0, 5), **options), **options)
        for tally in (whole, parts):
            assert (tally.reports, tally.rejected) == (11, rejected)
            assert summed(tally).busiest is None
            assert summed(tally).repeated == 0
        named = counted(slice(0, 12), person_column="who", id_column="id", **options)
        assert named.persons == {"ana": 5, "ben": 3, "cem": 3}
        assert (summed(named).busiest, summed(named).repeated) == (5, 2)
    # Without persons the busiest identity stands for them.
    records = counted(slice(5, 12), counted(slice(0, 5), id_column="id"), id_column="id")
    assert (summed(records).busiest, summed(records).repeated) == (3, 2)
    once = counted(slice(0, 2), id_column="id")
    assert (summed(once).busiest, summed(once).repeated) == (1, 0)


def test_the_bounds_are_those_of_all_reports_whatever_is_missing() -> None:
    tally = Tally()
    assert summed(tally).bounds is None
    made = []
    for rows in (slice(2, 3), slice(0, 3), slice(2, 3), slice(3, 12)):
        batch = pa.RecordBatch.from_pydict({"lon": PLACES[rows, 0], "lat": PLACES[rows, 1]})
        if rows.start == 2:
            batch = pa.RecordBatch.from_pydict({"lon": pa.array([None], pa.float64()), "lat": [1.0]})
        table = Recipe.of(epsilon=0.01, missing="keep").table(batch.schema)
        examined = table.examine(batch)
        reports = table.report(examined)
        tally.add(table, examined, reports)
        made.append(reports.reports[0])
    reports_made = np.vstack(made)
    low, high = np.nanmin(reports_made, axis=0), np.nanmax(reports_made, axis=0)
    assert summed(tally).bounds == (*low, *high)
    assert summed(tally).reports == 12


def test_merged_tallies_count_what_one_tally_would_have() -> None:
    options: dict[str, Any] = {"person_column": "who", "id_column": "id"}
    first, second = counted(slice(0, 5), **options), counted(slice(5, 12), **options)
    bounds = np.array([summed(first).bounds, summed(second).bounds])
    for one, other in ((first, second), (first.settled(), second), (first, second.settled())):
        together = replace(one, persons=Counter(one.persons))
        together.merge(other)
        assert (together.reports, together.rejected) == (11, 1)
        assert together.persons == {"ana": 5, "ben": 3, "cem": 3}
        assert summed(together).repeated == 2
        assert summed(together).bounds == (*bounds.min(axis=0)[:2], *bounds.max(axis=0)[2:])


def test_so_many_identities_are_looked_at_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("geoind.tables.summary.IDENTITIES", 5)
    # The ones of the batch that goes beyond are cut, and of the next batches none is taken.
    tally = Tally()
    for rows in (slice(0, 3), slice(3, 6), slice(6, 12)):
        counted(rows, tally, id_column="id", missing="keep")
    assert [part.to_pylist() for part in tally._identities] == [[0, 1, 2], [3, 4, 5]]
    assert [part.to_pylist() for part in tally.settled()._identities] == [[0, 1, 2, 3, 4]]
    assert summed(tally).repeated == 0
    exact = Tally()
    for rows in (slice(0, 5), slice(5, 12)):
        counted(rows, exact, id_column="id", missing="keep")
    assert len(exact._identities) == 1
    assert Tally().settled()._identities == []


def test_identities_of_two_types_of_whole_numbers_are_compared_as_numbers() -> None:
    tally = Tally(_identities=[pa.array([1, 2], pa.int8()), pa.array([2, 2**63], pa.uint64())])
    assert summed(tally).repeated == 1
    texts = Tally(_identities=[pa.array(["1", "2"]), pa.array(["2"])])
    assert summed(texts).repeated == 1


def test_a_mean_error_is_the_mechanisms_own_where_it_tells_one() -> None:
    class Telling:
        mean_radius = np.float64(123.5)

    class Quantiles:
        def reach(self, confidence: float) -> float:
            return 100 * confidence**2

    assert mean_error(cast(Mechanism, Telling())) == 123.5
    # The integral of a square, by the middles of 200 parts.
    assert mean_error(cast(Mechanism, Quantiles())) == pytest.approx(100 / 3, rel=1e-5)
    assert mean_error(cast(Mechanism, Quantiles())) != 100 / 3
