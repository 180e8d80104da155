"""What is decided before anything is drawn: rows of a person, totals per person, refusals."""

import json
import math
from collections import Counter
from statistics import median_low
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from geoind import InvalidInputError, Ledger, SphericalGaussian, SphericalLaplace
from geoind.accounting.accountant import level_of_reports
from geoind.tables.parts import Part
from geoind.tables.recipe import EACH_FILE, EACH_ROW, Recipe
from geoind.tables.release import Release
from geoind.tables.stream import obfuscate
from geoind.tables.table import Table
from tests.tables.made_up import KEY, in_batches, lonlat, released, table_of
from tests.trials import trials


def people(count: int, seed: int = 0, persons: int = 5) -> pa.Table:
    """Return rows of persons of whom some have many, in random order."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(persons, count, p=rng.dirichlet(np.ones(persons)))
    return table_of(count, seed, trip=rng.permutation(count), who=[f"p{code}" for code in codes])


def counts(reports: pa.Table) -> Counter[str]:
    return Counter(reports["who"].to_pylist())


BOUNDED: dict[str, Any] = {"person": "who", "keep": ["who", "trip"], "id_column": "trip", "key": KEY}


@pytest.mark.parametrize("most", [1, 3, 50, 10_000])
def test_each_person_has_at_most_so_many_reports_and_as_many_as_there_are_rows(most: int) -> None:
    given = people(1000)
    release, [made] = released(given, reports_per_person=most, epsilon=1e-4, **BOUNDED)
    assert counts(made) == {name: min(count, most) for name, count in counts(given).items()}
    assert (release.reports, release.left_out) == (len(made), 1000 - len(made))


@pytest.mark.slow
def test_the_chosen_rows_do_not_depend_on_the_order_of_the_rows_the_batches_or_the_files() -> None:
    given = people(900)
    [made] = released(given, reports_per_person=10, **BOUNDED)[1]
    chosen = made.sort_by("trip").to_pydict()
    for seed, size in enumerate((1, 7, 400, None)):
        turned = given.take(np.random.default_rng(seed).permutation(900))
        [again] = released(turned, size=size, reports_per_person=10, **BOUNDED)[1]
        assert again.sort_by("trip").to_pydict() == chosen
        parts = [turned.slice(0, 100), turned.slice(100, 1), turned.slice(101, 500), turned.slice(601)]
        together = pa.concat_tables(released(*parts, size=size, reports_per_person=10, **BOUNDED)[1])
        assert together.sort_by("trip").to_pydict() == chosen


def test_the_chosen_rows_are_not_the_first_ones_and_each_has_the_same_chance() -> None:
    given = pa.table({"trip": np.arange(40), "who": ["ana"] * 40, "lon": [2.3] * 40, "lat": [48.8] * 40})
    options = {name: value for name, value in BOUNDED.items() if name not in ("key", "id_column")}
    times = np.zeros(40)
    for _ in range(trials(400)):
        [made] = released(given, reports_per_person=10, order="keep", **options)[1]
        times[made["trip"].to_numpy()] += 1
    # Each row is chosen a hundred times, give or take nine: six standard errors.
    assert np.abs(times - times.mean()).max() < 6 * math.sqrt(times.mean() * 0.75)


def test_under_another_key_other_rows_are_chosen_and_without_one_fresh_ones() -> None:
    given = people(400, persons=2)

    def chosen(**options: Any) -> list[int]:
        [made] = released(given, reports_per_person=10, **BOUNDED | options)[1]
        return sorted(made["trip"].to_pylist())

    assert chosen() == chosen()
    assert chosen() != chosen(key=bytes(32))
    assert chosen(key=None, id_column=None) != chosen(key=None, id_column=None)


def test_rows_of_one_record_are_all_chosen_or_none_of_them() -> None:
    given = table_of(60, trip=np.arange(60) // 3, who=["ana"] * 60)
    for most in (3, 10, 31):
        release, [made] = released(given, reports_per_person=most, **BOUNDED)
        assert len(made) <= most
        assert set(Counter(made["trip"].to_pylist()).values()) <= {3}
        assert release.record.busiest is not None
        assert release.record.busiest.reports == len(made)
    with pytest.raises(InvalidInputError, match="identities of `id_column=` must be different"):
        released(given, reports_per_person=2, **BOUNDED)


def with_gaps(given: pa.Table, seed: int, name: str = "lon") -> pa.Table:
    """Return rows of which some have no place."""
    gone = np.random.default_rng(seed).random(len(given)) < 0.3
    lon = pa.array(given[name].to_numpy(), mask=gone)
    return given.set_column(given.column_names.index(name), name, lon)


def test_rows_without_a_place_stay_whatever_the_limit_is() -> None:
    given = with_gaps(people(300), 1)
    [made] = released(given, reports_per_person=2, missing="keep", **BOUNDED)[1]
    gone = [
        trip
        for trip, lon in zip(*(given[name].to_pylist() for name in ("trip", "lon")), strict=True)
        if lon is None
    ]
    assert sorted(row["trip"] for row in made.to_pylist() if row["lon"] is None) == sorted(gone)
    assert max(counts(made.filter(made["lon"].is_valid())).values()) == 2


@pytest.mark.parametrize("options", [{"order": "shuffle"}, {"order": "keep", "reports_per_person": 2}])
def test_a_table_of_bad_rows_only_has_no_reports(options: dict[str, Any]) -> None:
    given = pa.table({"who": ["ana"] * 30, "lon": [2.3] * 30, "lat": [91.0] * 30})
    recipe = Recipe.of(epsilon=0.001, person="who", key=KEY, **options)
    bad: list[Any] = []
    part = Part(Table(recipe, given.schema), on_problems=lambda _, problems: bad.extend(problems))
    count = part.count(in_batches(given, 7))
    release = Release.of(recipe, count, part.table)
    assert (len(bad), release.reports, release.record.persons) == (30, 0, 0)
    drawn = part.draw(in_batches(given, 7), release)
    assert sum(len(rows) for _, rows, _ in drawn) == 0


def test_a_file_that_is_a_person_has_one_name_however_it_is_written() -> None:
    given = table_of(20)
    release, _ = released(given, given, person=EACH_FILE, paths=("Zoe\u0308.csv", "Zo\u00eb.csv"))
    assert release.persons.counts == {"Zo\u00eb.csv": 40}
    for name in ("a\nb.csv", " a.csv", "-", ""):
        with pytest.raises(InvalidInputError, match=r"person must be|EACH_FILE is for files"):
            released(given, person=EACH_FILE, paths=(name,))


def recounted(tables: list[pa.Table], lon: tuple[str, ...] = ("lon",)) -> list[int]:
    """Return the sorted numbers of reports of persons, from what was released."""
    found: Counter[str] = Counter()
    for number, table in enumerate(tables):
        for row in table.to_pylist():
            found[row.get("who", f"file {number}")] += sum(row[name] is not None for name in lon)
    return sorted(count for count in found.values() if count)


def assert_totals(release: Release, numbers: list[int], **options: Any) -> None:
    """Assert that a record has the totals of persons with so many reports."""
    record = release.record
    assert record.persons == len(numbers)
    assert release.reports == sum(numbers)
    assert record.busiest is not None
    assert record.median is not None
    assert record.busiest.reports == (numbers[-1] if numbers else 0)
    assert record.median.reports == (median_low(numbers) if numbers else 0)
    for total in (record.busiest, record.median):
        assert total.epsilon == pytest.approx(total.reports * release.recipe.mechanism.epsilon)
        if total.reports:
            radius, delta = options.get("radius", 200.0), 1e-6 if total.reports > 1 else 0.0
            assert (total.radius, total.delta) == (radius, delta)
            wanted = (
                level_of_reports(release.recipe.mechanism, reports=total.reports, radius=radius, delta=delta)
                if total.reports > 1
                else radius * release.recipe.mechanism.epsilon
            )
            assert total.level == pytest.approx(wanted)


@pytest.mark.parametrize("seed", range(12))
def test_totals_of_a_release_equal_a_recount(seed: int) -> None:
    rng = np.random.default_rng(seed)
    given = people(int(rng.integers(1, 300)), seed, persons=int(rng.integers(1, 8)))
    options: dict[str, Any] = {"keep": ["who"], "epsilon": 1e-4}
    lon: tuple[str, ...] = ("lon",)
    if seed % 2:
        given, options["missing"] = with_gaps(given, seed), "keep"
    if seed % 3 == 0:
        other = lonlat(len(given), seed + 100)
        given = given.append_column("lon2", pa.array(other[:, 0])).append_column("lat2", pa.array(other[:, 1]))
        given, lon = with_gaps(given, seed + 1, "lon2") if seed % 2 else given, ("lon", "lon2")
        options |= {"lon": list(lon), "lat": ["lat", "lat2"]}
    if seed % 4 < 2:
        options["reports_per_person"] = int(rng.integers(len(lon), 40))
    cuts = np.sort(rng.integers(0, len(given) + 1, 3))
    parts = [given.slice(start, end - start) for start, end in zip([0, *cuts], [*cuts, len(given)], strict=True)]
    unit = ("who", EACH_FILE)[seed % 5 == 4]
    if unit is EACH_FILE:
        options["keep"] = []
    release, made = released(*parts, size=int(rng.integers(1, 100)), person=unit, **options)
    assert_totals(release, recounted(made, lon))
    if seed % 4 >= 2 and unit == "who":
        each, made = released(given, person=EACH_ROW, **options)
        rows = [sum(row[name] is not None for name in lon) for row in made[0].to_pylist()]
        assert_totals(each, sorted(number for number in rows if number))


def test_totals_of_the_same_places_count_each_cell_once() -> None:
    homes = lonlat(20)
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 20, 400)
    given = pa.table({"who": [f"p{row % 3}" for row in rows], "lon": homes[rows, 0], "lat": homes[rows, 1]})
    release, [made] = released(given, size=50, person="who", keep=["who"], same_place=100.0)
    pairs = {(row["who"], row["lon"], row["lat"]) for row in made.to_pylist()}
    numbers = sorted(Counter(who for who, _, _ in pairs).values())
    assert release.reports == len(made) == 400
    record = release.record
    assert record.busiest is not None
    assert record.median is not None
    assert (record.persons, record.busiest.reports, record.median.reports) == (3, numbers[-1], numbers[1])
    assert record.busiest.epsilon == pytest.approx(0.001 * numbers[-1])
    # The same place of the same person has the same report, and of others another one.
    by_place = {(who, home) for who, home in zip(given["who"].to_pylist(), rows.tolist(), strict=True)}
    assert len(pairs) == len(by_place)


def test_the_total_of_a_trace_is_what_its_session_costs() -> None:
    given = table_of(90, who=[f"p{row % 3}" for row in range(90)], at=1.7e9 + 60 * np.arange(90))
    release, [made] = released(given, person="who", time="at", method="independent", epsilon=0.002)
    assert made.column_names == ["who", "at", "lon", "lat"]
    assert release.record.kept == ("who", "at")
    assert_totals(release, [30, 30, 30])
    assert release.record.epsilon == pytest.approx(0.06)


@pytest.mark.parametrize("method", ["switching", "sparse", "predictive"])
@pytest.mark.parametrize("rows", [1, 2, 40])
def test_the_total_of_a_trace_has_all_that_a_session_asks_for(method: Any, rows: int) -> None:
    given = table_of(rows, who=["ana"] * rows, at=1.7e9 + 60 * np.arange(rows))
    recipe = Recipe.of(epsilon=0.001, person="who", time="at", method=method, key=KEY)
    part = Part(Table(recipe, given.schema))
    count = part.count(in_batches(given))
    record = Release.of(recipe, count, part.table).record
    assert record.busiest is not None
    assert record.busiest.reports == rows
    spent = math.fsum(cost * number for cost, number in count.costs["ana"].items())
    assert record.busiest.epsilon == record.epsilon == pytest.approx(spent)
    # What a session asks depends on its answers: nothing below the sum is proven, whatever the delta.
    assert record.busiest.level == pytest.approx(200 * spent)
    assert record.busiest.delta == 0


@pytest.mark.parametrize("options", [{"person": EACH_ROW}, {"person": "who"}, {"person": "who", "time": "at"}])
def test_a_table_without_rows_has_a_record_of_no_person(options: dict[str, Any]) -> None:
    given = table_of(0, who=pa.array([], pa.string()), at=pa.array([], pa.float64()))
    for order in ("keep",) if "time" in options else ("raise", "shuffle", "keep"):
        release, [made] = released(given, order=order, **options)
        assert len(made) == 0
        assert_totals(release, [])


@pytest.mark.parametrize(
    ("options", "remedies"),
    [
        ({}, ["`time=`", "`same_place=100`", "`reports_per_person=N`", "a smaller epsilon", "`allow_total="]),
        ({"time": "at", "method": "independent"}, ["`method=`", "a smaller epsilon", "`allow_total="]),
    ],
)
def test_a_total_that_does_not_hide_the_busiest_person_is_refused_with_the_remedies(
    options: dict[str, Any], remedies: list[str]
) -> None:
    # Twenty reports are worth 0.2 per metre together: a mean error of 10 m.
    given = table_of(24, who=["ana"] * 21 + ["ben"] * 3, at=1.7e9 + np.arange(24))
    with pytest.raises(
        InvalidInputError, match=r"has 21 reports that add up to epsilon 0\.21 per metre"
    ) as caught:
        released(given, person="who", epsilon=0.01, **options)
    assert [remedy for remedy in remedies if remedy not in str(caught.value)] == []
    accepted = str(caught.value).rpartition("`allow_total=")[2].rstrip("`")
    assert float(accepted) == pytest.approx(0.21)
    assert released(given, person="who", epsilon=0.01, allow_total=float(accepted), **options)[0].reports == 24
    with pytest.raises(InvalidInputError, match="do not hide the person"):
        released(given, person="who", epsilon=0.01, allow_total=0.2, **options)
    assert released(given.slice(1), person="who", epsilon=0.01, **options)[0].reports == 23


def test_the_remedies_of_a_refused_total_make_it_pass() -> None:
    given = pa.table({"who": ["ana"] * 600, "lon": [2.3] * 600, "lat": [48.8] * 600})
    options: dict[str, Any] = {"person": "who", "epsilon": 0.01, "order": "keep"}
    with pytest.raises(InvalidInputError, match="do not hide the person"):
        released(given, **options)
    for remedy in ({"same_place": 100.0}, {"reports_per_person": 20}, {"epsilon": 0.0001}):
        assert released(given, **options | remedy)[0].reports in (600, 20)


def test_a_single_report_is_not_refused_a_second_time() -> None:
    given = table_of(30, who=[f"p{row}" for row in range(30)])
    for unit in (EACH_ROW, "who"):
        assert released(given, person=unit, mechanism=SphericalLaplace(1.0))[0].reports == 30
    with pytest.raises(InvalidInputError, match="do not hide the person"):
        released(pa.concat_tables([given, given]), person="who", mechanism=SphericalLaplace(1.0))


def test_gaussian_totals_are_refused_by_the_noise_that_is_left() -> None:
    given = table_of(400, who=["ana"] * 400)
    options: dict[str, Any] = {"person": "who", "mechanism": SphericalGaussian(150.0)}
    with pytest.raises(InvalidInputError, match="do not hide the person"):
        released(given, **options)
    assert released(given, **options | {"mechanism": SphericalGaussian(1000.0)})[0].reports == 400


def test_a_promise_for_several_reports_is_for_no_more_of_them() -> None:
    given = people(60, persons=2)
    most = max(counts(given).values())
    together: dict[str, Any] = {"level": 1.5, "radius": 200.0, "delta": 1e-6}
    options: dict[str, Any] = {"person": "who", "keep": ["who"]}
    release, _ = released(given, reports=most, **together, **options)
    assert (release.record.reports, release.record.delta) == (most, 1e-6)
    assert release.record.busiest is not None
    assert release.record.busiest.level == pytest.approx(1.5, rel=0.01)
    with pytest.raises(InvalidInputError, match=rf"give `reports={most}`, or `reports_per_person={most - 1}`"):
        released(given, reports=most - 1, **together, **options)
    bounded, [made] = released(given, reports=most - 1, reports_per_person=most - 1, **together, **options)
    assert max(counts(made).values()) == most - 1
    assert bounded.record.reports == most - 1


def test_a_kept_column_that_no_part_has_is_an_error_and_one_that_some_have_is_not() -> None:
    first, second = table_of(30, 1, fare=np.arange(30)), table_of(30, 2)
    _, made = released(first, second, person=EACH_ROW, keep=["fare"])
    assert [table.column_names for table in made] == [["fare", "lon", "lat"], ["lon", "lat"]]
    assert made[0]["fare"].to_pylist() == list(range(30))
    with pytest.raises(InvalidInputError, match="column 'tip' of `keep=` exists in no file"):
        released(first, second, person=EACH_ROW, keep=["fare", "tip"])


@pytest.mark.parametrize("change", ["place", "row", "identity"])
def test_rows_that_change_between_the_passes_are_refused(change: str) -> None:
    given = people(200)
    recipe = Recipe.of(epsilon=0.001, person="who", id_column="trip", key=KEY)
    table = Table(recipe, given.schema)
    part = Part(table)
    release = Release.of(recipe, part.count(in_batches(given)), table)
    other = given.slice(1)
    if change != "row":
        name = "lon" if change == "place" else "trip"
        values = given[name].to_numpy().copy()
        values[7] += 1
        other = given.set_column(given.column_names.index(name), name, pa.array(values))
    with pytest.raises(InvalidInputError, match="changed"):
        list(Part(table).draw(in_batches(other), release))
    # The order of the rows is no change.
    turned = given.take(np.random.default_rng(0).permutation(200))
    assert sum(len(rows) for _, rows, _ in Part(table).draw(in_batches(turned), release)) == 200


def test_charges_equal_what_is_in_the_output() -> None:
    given = with_gaps(people(300, 3), 3)
    cases: list[dict[str, Any]] = [
        {"reports_per_person": 7, "missing": "keep"},
        {"missing": "keep"},
        {"same_place": 500.0, "missing": "keep"},
    ]
    for case in cases:
        with Ledger("sqlite://", budget=10.0) as ledger:
            options: dict[str, Any] = {"person": "who", "keep": ["who"], "epsilon": 0.0001, "key": KEY, **case}
            made = obfuscate(given, ledger=ledger, **options).read_all()
            rows = [row for row in made.to_pylist() if row["lon"] is not None]
            if "same_place" in case:
                rows = [dict(row) for row in {tuple(row.items()) for row in rows}]
            paid = Counter(row["who"] for row in rows)
            for name in counts(given):
                assert sum(charge.reports for charge in ledger.history(name)) == paid[name]
            record = json.loads(made.schema.metadata[b"geoind"])
            assert record["busiest"]["reports"] == max(paid.values())
            again = obfuscate(given, ledger=ledger, **options).read_all()
            assert again.to_pydict() == made.to_pydict()
            assert sum(len(ledger.history(name)) for name in paid) == len(paid)
