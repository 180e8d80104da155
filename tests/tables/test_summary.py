"""The summary has the numbers that show a mistake, and says nothing more."""

import math
import shlex
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from geoind import PlanarGaussian, PlanarLaplace, PostProcessed, Projected, Projection, SphericalLaplace
from geoind.mechanisms.protocol import Mechanism
from geoind.space.lattice import half_diagonal
from geoind.tables.recipe import EACH_ROW, Recipe
from geoind.tables.record import PersonTotal, ReleaseRecord
from geoind.tables.release import Obfuscated, Part, Release
from geoind.tables.summary import Summary, Tally, mean_error
from geoind.tables.table import Table
from tests.tables.made_up import in_batches, table_of

PARIS = Projection(2.35, 48.86)
LAMBERT = Projection.from_crs("EPSG:2154")
RECORD = ReleaseRecord.of(SphericalLaplace(0.01), unit="column")


def release_of(**options: Any) -> tuple[Release, list[Obfuscated]]:
    given = table_of(40, who=["ana"] * 30 + ["ben"] * 10)
    recipe = Recipe.of(**{"person": EACH_ROW, **options}).with_key()
    part = Part(Table(recipe, given.schema))
    release = Release.of(recipe, part.count(in_batches(given)), part.table)
    return release, list(part.draw(in_batches(given, 15), release))


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
    summary = Tally().summary(release_of(mechanism=mechanism)[0], [])
    truth = np.tile([2.35, 48.86], (20_000, 1))
    apart = np.hypot(*PARIS.to_xy(mechanism.sample(truth, rng=1)).T)
    assert summary.mean_error == pytest.approx(apart.mean(), rel=0.03)
    assert summary.reach_95 == pytest.approx(np.quantile(apart, 0.95), rel=0.03)
    assert "95 % within" in str(summary)


def test_a_step_of_unknown_length_leaves_the_distances_out_and_nothing_else() -> None:
    mechanism = Projected(PostProcessed(PlanarLaplace(0.01), lambda reports: reports), PARIS)
    summary = Tally().summary(release_of(mechanism=mechanism)[0], [])
    assert summary.mean_error is summary.reach_95 is None
    assert str(summary).startswith("0 reports, epsilon 0.0100004 per metre")
    assert "within" not in str(summary).splitlines()[0]


def test_a_tally_counts_reports_and_what_they_span_in_one_part_or_several() -> None:
    release, made = release_of(epsilon=0.001)
    reports = np.concatenate([part.reports[0] for part in made])
    whole, first, second = Tally(), Tally(), Tally()
    for number, part in enumerate(made):
        whole.add(part)
        (second if number else first).add(part)
    for tally, more in ((whole, Tally()), (first, second)):
        tally.merge(more)
        summary = tally.summary(release, ["who"])
        assert summary.reports == 40
        assert summary.bounds == (*reports.min(axis=0), *reports.max(axis=0))
    assert Tally().summary(release, []).bounds is None


def test_rows_without_places_are_no_reports() -> None:
    release, [made, *_] = release_of(epsilon=0.001)
    gone = np.full_like(made.reports[0], np.nan)
    gone[3] = [2.25, 48.5]
    tally = Tally()
    tally.add(Obfuscated(made.batch, made.rows, (gone, np.full_like(gone, np.nan))))
    assert (tally.reports, tally.summary(release, []).bounds) == (1, (2.25, 48.5, 2.25, 48.5))


def lines(record: ReleaseRecord = RECORD, **members: Any) -> list[str]:
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
    trace = replace(RECORD, session="Independent(epsilon=0.01)", fresh=0.01, mechanism="Independent")
    [line] = lines(trace, mean_error=200.0, reach_95=480.0)
    assert line.endswith("(Independent): a fresh report is 200 m from the truth on average, 95 % within 480 m")


def test_a_summary_has_the_totals_of_the_busiest_and_the_median_person() -> None:
    busiest = PersonTotal(reports=2500, epsilon=25.0, level=19.5, radius=200, delta=1e-6)
    totals = replace(RECORD, persons=12, busiest=busiest, median=PersonTotal(reports=3, epsilon=0.03))
    assert lines(totals)[1:] == [
        "12 persons; the busiest has 2,500 reports, epsilon 25 per metre together (level 19.5 within 200 m, "
        "delta 1e-06)",
        "the median person has 3 reports, epsilon 0.03 per metre together",
    ]
    [line] = lines(replace(totals, persons=1))[1:]
    assert line.startswith("1 person; the busiest has 2,500 reports")
    [line] = lines(replace(totals, unit="each row"))[1:]
    assert "declared" in line


def test_a_summary_names_what_was_left_out_and_why() -> None:
    assert lines(reports_left_out=1)[1:] == ["1 report left out by the limit per person"]
    assert lines(reports_left_out=2000)[1:] == ["2,000 reports left out by the limit per person"]
    assert lines(rejected=1)[1:] == ["1 bad record got no report"]
    [line] = lines(charged=True)[1:]
    assert line.startswith("the ledger was charged; persons whose reports are those of an earlier charge")
    assert lines(bounds=(-1.5, 48.25, 2.0, 49.123456))[1:] == [
        "the reports lie between -1.50000 and 2.00000 E, 48.25000 and 49.12346 N"
    ]
    assert lines(replace(RECORD, kept=("fare", "day")))[1:] == ["columns kept: fare, day"]


@pytest.mark.parametrize("names", [("fare", "day"), ("a b", "it's", "$(reboot)"), ('say "so", please', "x")])
def test_the_columns_left_out_are_a_list_to_paste(names: tuple[str, ...]) -> None:
    import csv

    [line] = lines(left_out=names)[1:]
    words = shlex.split(line[line.index("--keep") :].removesuffix(")"))
    assert words[0] == "--keep"
    assert next(csv.reader([words[1]])) == list(names)


def test_a_hostile_name_does_not_reach_the_terminal() -> None:
    text = "\n".join(lines(replace(RECORD, kept=("\x1b[2Jx",)), left_out=("a\nb", "\x07")))
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
