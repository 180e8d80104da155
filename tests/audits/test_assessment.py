"""The assessment of a release: totals counted again, controls, rules, and nothing of the truth but aggregates."""

import json
import math
import re
from typing import Any

import numpy as np
import pytest

from geoind import SphericalGaussian, SphericalLaplace, level_of_reports
from geoind.arrays import FloatArray, IntArray
from geoind.audits import MEASURES, Assessment, assess
from geoind.audits import matched as matching
from geoind.audits.rules import parse_rule
from geoind.distances import haversine
from geoind.errors import InvalidInputError
from geoind.mechanisms.protocol import Mechanism
from geoind.tables import PersonTotal, ReleaseRecord

NOISE = SphericalLaplace(math.log(4) / 200)


def town(persons: int = 60, rows: int = 8) -> tuple[FloatArray, IntArray, FloatArray]:
    """Return places, persons and times: each person is mostly at home at night and at work by day."""
    rng = np.random.default_rng(2)
    homes, works = (rng.uniform([2.30, 48.84], [2.36, 48.88], (persons, 2)) for _ in range(2))
    person = np.repeat(np.arange(persons), rows)
    night = np.tile(np.arange(rows) % 2 == 0, persons)
    day = np.tile(np.arange(rows) // 2, persons)
    time = (
        1_720_000_000 // 86_400 * 86_400
        + 86_400.0 * day
        + np.where(night, 2, 12) * 3600
        + np.tile(np.arange(rows), persons)
    )
    places = np.where(night[:, None], homes[person], works[person])
    return (places + rng.normal(0, 1e-5, places.shape)).round(6), person, time


def record_of(mechanism: Mechanism = NOISE, **members: Any) -> ReleaseRecord:
    return ReleaseRecord.of(mechanism, **{"unit": "column"} | members)


def assessed(mechanism: Mechanism = NOISE, **options: Any) -> Assessment:
    truth, person, time = town()
    reports = mechanism.sample(truth, rng=1)
    keywords: dict[str, Any] = {"truth": truth, "person": person, "time": time, "sample": 24} | options
    return assess(keywords.pop("reports", reports), keywords.pop("record", record_of(mechanism)), **keywords)


@pytest.fixture(scope="module")
def found() -> Assessment:
    busiest = PersonTotal(reports=8, epsilon=8 * NOISE.epsilon)
    return assessed(
        record=record_of(persons=60, busiest=busiest, median=busiest, kept=("person", "time")), sample=60
    )


def test_the_totals_are_those_of_the_files_and_of_the_accountant(found: Assessment) -> None:
    assert (found.rows, found.reports, found.persons) == (480, 480, 60)
    one, median, busiest = found.promised
    assert (one.reports, median.reports, busiest.reports) == (1, 8, 8)
    assert one.levels[200.0] == pytest.approx(math.log(4))
    assert busiest.levels[200.0] == level_of_reports(NOISE, reports=8, radius=200, delta=1e-6)
    assert found.measures["busiest_reports"] == 8
    assert not found.failed
    assert len(found.verdicts) == 1


@pytest.mark.parametrize("counted", [7, 9])
def test_a_record_whose_totals_are_not_those_of_the_files_fails(counted: int) -> None:
    total = PersonTotal(reports=counted, epsilon=counted * NOISE.epsilon)
    result = assessed(record=record_of(persons=60, busiest=total, median=total))
    assert result.failed
    assert "FAILED" in result.markdown


def test_a_person_with_two_rows_breaks_the_declaration_that_each_row_is_a_person() -> None:
    record = record_of(unit="each row")
    truth, person, _ = town()
    reports = NOISE.sample(truth, rng=1)
    assert assess(reports, record, truth=truth, person=person, sample=20).failed
    assert not assess(reports, record, truth=truth, sample=20).failed


def test_the_distances_are_those_between_truth_and_report(found: Assessment) -> None:
    truth, _, _ = town()
    reports = NOISE.sample(truth, rng=1)
    apart = np.array([haversine(a[None], b[None])[0, 0] for a, b in zip(truth, reports, strict=True)])
    for share, measured, promised in found.quantiles:
        assert measured == pytest.approx(np.quantile(apart, share), rel=0.006)
        assert promised == NOISE.reach(share)
    name, metres, measured, promised = found.within[0]
    assert "California" in name
    assert (metres, round(promised or 0, 2)) == (564.0, 0.9)
    assert measured == pytest.approx((apart <= 564).mean(), abs=0.005)


def test_persons_within_the_reach_are_counted_as_by_brute_force(found: Assessment) -> None:
    truth, person, _ = town()
    reports, sharing = NOISE.sample(truth, rng=1), found.sharing
    assert sharing is not None
    assert sharing.radius == NOISE.reach(0.95)
    near = haversine(reports, truth) <= sharing.radius
    chosen = sorted(len(np.unique(person[row])) for row in near)
    assert set(sharing.counts.tolist()) <= set(chosen)
    assert abs(np.median(sharing.counts) - np.median(chosen)) <= 2


def test_people_of_a_population_are_counted_instead_of_persons() -> None:
    truth, _, _ = town()
    west = truth[:, 0].mean()
    places = np.array([[2.30, 48.86], [2.36, 48.86]])
    result = assessed(population=(places, [7.0, 5000.0]))
    assert result.sharing is not None
    assert set(result.sharing.counts.tolist()) <= {0.0, 7.0, 5000.0}
    assert result.sharing.whose == "people of the population file"
    assert west < 2.36


def test_attacks_succeed_without_noise_and_fail_with_huge_noise(found: Assessment) -> None:
    attacks = {attack.name: attack for attack in found.attacks if attack.name}
    assert {"bayes_found", "home_found", "work_found", "unique5", "time", "home_work", "nearest"} <= set(attacks)
    for name in ("bayes_found", "home_found", "unique3", "location", "home_work"):
        attack = attacks[name]
        assert attack.without_noise is not None
        assert attack.huge_noise is not None
        assert attack.without_noise.value > 0.9
        assert attack.huge_noise.value <= attack.release.value + 0.1
        assert attack.release.low <= attack.release.value <= attack.release.high
    home = attacks["home_error"]
    assert home.without_noise is not None
    assert home.without_noise.value < 20 < home.release.value < 400


def test_planted_homes_are_found_when_a_person_has_many_reports() -> None:
    truth, person, time = town(persons=12, rows=120)
    result = assess(NOISE.sample(truth, rng=3), record_of(), truth=truth, person=person, time=time, sample=12)
    assert (result.measures["home_found"] or 0) > 0.7
    hidden = assess(
        NOISE.sample(truth, rng=3),
        record_of(),
        truth=truth,
        person=person,
        time=time,
        sample=12,
        public=("person",),
    )
    assert (hidden.measures["home_found"] or 0) < (result.measures["home_found"] or 0)
    assert hidden.measures["time"] is None


def test_a_guess_of_the_caller_is_tried_on_homes() -> None:
    seen = []

    def guess(reports: FloatArray, times: FloatArray) -> FloatArray:
        seen.append((len(reports), len(times)))
        return np.array([0.0, 0.0])

    result = assessed(guesses={"null island": guess})
    [attack] = [attack for attack in result.attacks if "null island" in attack.title]
    assert attack.release.value == 0
    assert set(seen) == {(8, 8)}


def test_the_same_seed_gives_the_same_statement() -> None:
    once = assessed().json
    assert assessed().json == once
    assert assessed(seed=1).json != once


def test_gaussian_noise_has_levels_up_to_delta_and_no_epsilon() -> None:
    result = assessed(SphericalGaussian(400.0))
    assert result.promised[0].levels[200.0] == level_of_reports(
        SphericalGaussian(400.0), reports=1, radius=200, delta=1e-6
    )
    assert "none (Gaussian noise)" in result.markdown
    assert json.loads(result.json)["epsilon"] is None


def test_less_noise_than_promised_is_said(found: Assessment) -> None:
    truth, _, _ = town()
    result = assessed(reports=SphericalLaplace(2 * NOISE.epsilon).sample(truth, rng=1))
    assert "less noise than promised" in result.markdown
    assert "less noise than promised" not in found.markdown


def test_rows_that_do_not_match_are_an_error() -> None:
    truth, _, _ = town()
    mixed = np.random.default_rng(1).permutation(NOISE.sample(truth, rng=1))
    with pytest.raises(InvalidInputError, match="do not match"):
        assessed(reports=mixed)
    with pytest.raises(InvalidInputError, match="480 rows, reports have 479"):
        assessed(reports=mixed[1:])


def test_rows_without_a_report_count_for_homes_only() -> None:
    truth, _, _ = town()
    reports = NOISE.sample(truth, rng=1)
    reports[5::8] = np.nan
    result = assessed(reports=reports)
    assert (result.rows, result.reports) == (480, 420)
    with pytest.raises(InvalidInputError, match="a row without a true place has a report"):
        assessed(truth=np.where(np.arange(480)[:, None] == 3, np.nan, truth))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"person": np.zeros(480, int)}, "one person, fewer than k = 10"),
        ({"person": np.arange(480) % 9}, "9 persons, fewer than k = 10"),
        ({"reports": np.full((480, 2), np.nan)}, "no reports"),
        ({"k": 1}, "at least 2"),
        ({"person": np.arange(3)}, "one per row"),
        ({"time": np.arange(3.0)}, "one per row"),
        ({"distances": {"x": -1.0}}, "positive"),
        ({"population": ([[2.3, 48.8]], [-1.0])}, "not negative"),
        ({"population": ([[2.3, 48.8]], [0.0])}, "no people"),
        ({"fail_if": ["privacy > 1"]}, "no measure 'privacy'; the measures are busiest_reports"),
    ],
)
def test_what_cannot_be_assessed_is_an_error(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(message) if "'" in message else message):
        assessed(**options)


def test_one_row_and_too_many_rows_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInputError, match="one person"):
        assess([[2.3, 48.8]], record_of(unit="each row"), truth=[[2.3, 48.8]])
    monkeypatch.setattr(matching, "MOST_ROWS", 100)
    with pytest.raises(InvalidInputError, match="more than 100: assess a part of the persons"):
        assessed()


@pytest.mark.parametrize(
    "text", ["", "unique4", "unique4 > x", "unique4 > 0.1 or 1", "__import__('os') > 1", "unique4 > 1.2.3"]
)
def test_a_rule_is_a_measure_a_comparison_and_a_number(text: str) -> None:
    with pytest.raises(InvalidInputError, match="a rule must be"):
        parse_rule(text)


def test_every_measure_is_computed_and_rules_decide(found: Assessment) -> None:
    assert set(found.measures) == set(MEASURES)
    assert [name for name, value in found.measures.items() if value is None] == []
    unique = found.measures["unique2"]
    assert unique is not None
    rules = [f"unique2 > {unique + 0.01}", f"unique2 > {unique - 0.01}", "unique2 <= 1", "nearest < 0"]
    assert [verdict.failed for verdict in assessed(fail_if=rules, sample=60).verdicts] == [
        False,
        True,
        True,
        False,
    ]


def test_a_rule_about_a_measure_that_was_not_computed_fails() -> None:
    [verdict] = assessed(time=None, fail_if=["sequence > 0.9"]).verdicts
    assert (verdict.found, verdict.failed) == (None, True)


def test_without_the_truth_the_record_is_stated() -> None:
    truth, _, _ = town()
    total = PersonTotal(reports=8, epsilon=8 * NOISE.epsilon)
    record = record_of(persons=60, busiest=total, median=total)
    result = assess(NOISE.sample(truth, rng=1), record, fail_if=["busiest_reports > 5", "unique1 > 0.5"])
    assert [verdict.failed for verdict in result.verdicts] == [True, True]
    assert result.attacks == ()
    assert "| 95% of reports within | not known | 692 m |" in result.markdown
    crowd = assess(NOISE.sample(truth, rng=1), record, population=(truth, np.ones(len(truth))))
    assert crowd.sharing is not None


def test_no_true_location_and_no_count_below_k_is_in_the_statement() -> None:
    truth, _, _ = town()
    result = assessed(k=12)
    for text in (result.html, result.markdown, result.json):
        numbers = re.findall(r"-?\d+\.\d{4,}", text)
        close = {f"{value:.4f}" for value in truth.ravel()}
        assert not close & {f"{float(number):.4f}" for number in numbers}
        assert not any(str(value) in text for value in truth.ravel().tolist())
    content = json.loads(result.json)
    for attack in result.attacks:
        [shown] = [each for each in content["attacks"] if each["title"] == attack.title]
        if 0 < attack.release.hits < 12:
            assert shown["release"]["value"] is None
            assert content["measures"].get(attack.name) is None
            assert (
                f"{100 * attack.release.value:.1f} %" not in result.html.split(attack.title)[1].split("</td>")[0]
            )
    assert any(0 < attack.release.hits < 12 for attack in result.attacks)


def test_the_page_loads_nothing_and_is_one_file(found: Assessment) -> None:
    page = found.html
    assert "default-src &#39;none&#39;" in page
    assert "<script" not in page
    assert not re.search(r"(src|href)=", page)
    assert "style=" not in page
    assert page.count("<svg") == 4
    assert "@media print" in page
    assert "prefers-color-scheme: dark" in page
