"""The attacks: against brute force on small data, planted homes, and the risks that scikit-mobility computes."""

import itertools

import numpy as np
import pytest

from geoind import SphericalLaplace
from geoind.arrays import FloatArray, IntArray
from geoind.audits.attacks import (
    MATCHING,
    bayesian,
    known_visits,
    linkage,
    mean_of,
    median_of,
    mode_of,
    nearest_report,
    uniqueness,
    usual_places,
)
from geoind.audits.visits import Visits, at_night, at_work, plane_around, rows_within, snapped
from geoind.distances import haversine

PLACES = np.array([[2.30, 48.8], [2.31, 48.8], [2.32, 48.8], [2.33, 48.8]])
TRACES = [
    *("00 11 02 02", "01 21 22 02 12", "10 20 30 30 11 02", "10 00 20 10 12", "10 30 01 12 02 32"),
    *("00 10 10 12 12 02", "10 00 21 11 02 12", "00 01 01 31", "30 30 31 31 22 32", "20 11 21 22"),
    *("30 21 01 22 02 22", "20 10 20 11 31 02", "20 20 30 21 01 22", "20 31 32 22 22", "11 12 22 22 12"),
    "30 20 11 32",
]
"""Each visit is the number of a place and an hour."""
THIRD, SIXTH, SEVENTH = 1 / 3, 1 / 6, 1 / 7
RISKS: dict[tuple[str, int], list[float]] = {
    ("location", 2): [
        *(SEVENTH, SEVENTH, 0.25, SEVENTH, 0.25, SEVENTH, SEVENTH, SIXTH, 0.2, SEVENTH, SIXTH, 0.25, SIXTH, 0.2),
        *(SEVENTH, 0.25),
    ],
    ("sequence", 2): [
        *(SIXTH, 0.2, THIRD, 0.2, 0.5, SIXTH, 0.2, 0.5, 0.2, SIXTH, 0.2, 0.25, 0.2, 0.2, SIXTH, THIRD),
    ],
    ("time", 2): [1, 0.5, 0.5, 1, 1, 0.5, 1, 1, 1, 0.5, 0.5, 1, 1, 0.5, 0.5, 1],
    ("frequency", 1): [
        *(0.5, THIRD, THIRD, THIRD, THIRD, 1, THIRD, 0.5, 1, THIRD, THIRD, THIRD, 1, THIRD, THIRD, 0.25),
    ],
    ("frequency", 2): [1] * 16,
    ("probability", 1): [0.5, 1, 0.5, 1, 0.5, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0.5, 1],
    ("proportion", 2): [1, 1, 1, 1, 1, THIRD, *[1] * 10],
}
"""The risks of scikit-mobility 1.3.1, by attack and number of known visits or places: one over the number of
persons who fit the most telling knowledge. Its home-work attack sorts by rising frequency and is not compared."""


def small() -> Visits:
    visits = [(person, visit) for person, trace in enumerate(TRACES) for visit in trace.split()]
    place = PLACES[[int(visit[0]) for _, visit in visits]]
    hours = np.array([int(visit[1]) for _, visit in visits]) * 3600.0
    return Visits(place, np.array([person for person, _ in visits]), hours + np.arange(len(visits)))


@pytest.mark.parametrize(("name", "known"), RISKS)
def test_the_matching_attacks_have_the_risks_of_scikit_mobility(name: str, known: int) -> None:
    visits = small()
    near = rows_within(visits.lonlat, 0.0)
    worst = []
    for person in range(visits.persons):
        rows = visits.rows_of(person)
        if name not in ("location", "sequence", "time"):
            rows = rows[np.unique(visits.place[rows], return_index=True)[1]]
        risks = []
        for chosen in itertools.combinations(rows.tolist(), min(known, len(rows))):
            knowledge = known_visits(visits, np.array(chosen))
            fits = MATCHING[name](knowledge, [near(place) for place in knowledge.places], visits, 0.0)
            assert fits[person]
            risks.append(1 / fits.sum())
        worst.append(max(risks))
    np.testing.assert_allclose(worst, RISKS[name, known])


def test_the_tolerance_of_frequencies_admits_more_persons() -> None:
    visits = small()
    risks = [
        np.nansum(
            linkage(
                visits,
                visits,
                persons=np.arange(16),
                radius=0.0,
                attacks=["frequency"],
                tolerance=tolerance,
                rng=np.random.default_rng(1),
            )["frequency"]
        )
        for tolerance in (0.0, 0.5)
    ]
    assert risks[1] < risks[0]


def test_home_and_work_name_the_persons_whose_two_most_visited_places_they_are() -> None:
    home, work, gym = PLACES[:3]
    rows = [(home, 0)] * 3 + [(work, 0)] * 2 + [(gym, 0)] + [(home, 1)] * 4 + [(work, 1)] * 2 + [(gym, 2)] * 3
    rows += [(home, 2)] * 2 + [(work, 2)]
    visits = Visits(np.array([place for place, _ in rows]), np.array([person for _, person in rows]))
    risks = linkage(
        visits,
        visits,
        persons=np.arange(3),
        radius=0.0,
        attacks=["home_work"],
        tolerance=0.0,
        rng=np.random.default_rng(1),
    )
    assert risks["home_work"].tolist() == [0.5, 0.5, 1.0]


def random_visits(count: int, persons: int, *, lat: float = 48.86) -> Visits:
    rng = np.random.default_rng(5)
    lonlat = np.column_stack([rng.uniform(2.3, 2.34, count), rng.uniform(lat, lat + 0.03, count)])
    return Visits(lonlat, rng.integers(0, persons, count), rng.uniform(0, 1e5, count))


@pytest.mark.parametrize(
    ("lon", "lat"), [(2.35, 48.86), (179.999, -17.0), (-180.0, 65.0), (10.0, 89.999), (0.0, -90.0)]
)
@pytest.mark.parametrize("radius", [0.0, 500.0, 50_000.0, 3e7])
def test_the_rows_around_a_place_are_those_within_the_radius(lon: float, lat: float, radius: float) -> None:
    rng = np.random.default_rng(3)
    spread = 0.02 if radius < 1e4 else 2.0
    lons = (lon + rng.normal(0, spread / max(np.cos(np.radians(lat)), 0.01), 400) + 180) % 360 - 180
    places = np.column_stack([lons, np.clip(lat + rng.normal(0, spread, 400), -90, 90)])
    places[0] = (lon, lat)
    found = rows_within(places, radius)(np.array([lon, lat]))
    expected = np.flatnonzero(haversine(np.array([[lon, lat]]), places)[0] <= radius + 1e-3)
    assert sorted(found.tolist()) == expected.tolist()
    assert 0 in found


def test_places_in_one_cell_are_one_place() -> None:
    places = random_visits(500, 5).lonlat
    cells = snapped(places, 100.0)
    assert haversine(places[:1], cells[:1])[0, 0] < 142
    assert max(haversine(place[None], cell[None])[0, 0] for place, cell in zip(places, cells, strict=True)) < 142
    assert 100 < len(np.unique(cells, axis=0)) < 500


def test_distances_from_the_centre_of_a_plane_are_exact() -> None:
    places = random_visits(50, 5).lonlat
    apart = np.hypot(*plane_around(places[0], places).T)
    np.testing.assert_allclose(apart, haversine(places[:1], places)[0], atol=1e-6)
    assert plane_around(np.array([2.0, 48.0]), np.array([[2.1, 48.0]]))[0, 0] > 0


def fits(places: FloatArray, visits: Visits, person: int, radius: float) -> bool:
    own = visits.lonlat[visits.person == person]
    return all(len(own) and (haversine(place[None], own)[0] <= radius).any() for place in places)


def test_uniqueness_is_what_brute_force_counts() -> None:
    truth = random_visits(150, 20)
    noise = SphericalLaplace(0.01)
    release = Visits(noise.sample(truth.lonlat, rng=1), truth.person)
    unique = uniqueness(
        truth, release, persons=np.arange(20), radius=400.0, timed=False, rng=np.random.default_rng(7)
    )
    rng, expected = np.random.default_rng(7), np.full((20, 5), np.nan)
    for person in range(20):
        chosen: IntArray = rng.permutation(truth.rows_of(person))[:5]
        for count in range(1, len(chosen) + 1):
            who = [other for other in range(20) if fits(truth.lonlat[chosen[:count]], release, other, 400.0)]
            expected[person, count - 1] = who == [person]
    np.testing.assert_array_equal(unique, expected)
    assert 0 < np.nanmean(expected) < 1


def test_a_report_at_another_hour_does_not_fit_a_timed_visit() -> None:
    place = np.array([[2.3, 48.8], [2.3, 48.8]])
    visits = Visits(place, np.array([0, 1]), np.array([0.0, 7200.0]))
    for timed, share in ((True, 1.0), (False, 0.0)):
        unique = uniqueness(
            visits, visits, persons=np.arange(2), radius=0.0, timed=timed, rng=np.random.default_rng(1)
        )
        assert np.nanmean(unique) == share


def test_the_bayesian_guess_is_that_of_the_posterior_by_brute_force() -> None:
    truth = random_visits(40, 5).lonlat
    noise = SphericalLaplace(0.004)
    reports = noise.sample(truth, rng=2)
    mass = np.arange(1.0, 41) / 820

    def law(metres: FloatArray) -> FloatArray:
        return np.asarray(np.exp(-0.004 * metres))

    errors, found = bayesian(truth, reports, places=truth, mass=mass, law=law, reach=1e5)
    for number, report in enumerate(reports):
        xy = plane_around(report, truth)
        posterior = mass * law(np.hypot(*xy.T))
        posterior /= posterior.sum()
        steps = np.linspace(0, 1, 81)
        grid = np.stack(np.meshgrid(*(xy.min(axis=0)[axis] + np.ptp(xy[:, axis]) * steps for axis in (0, 1))), -1)
        cost = (posterior * np.hypot(*(grid[..., None, :] - xy).transpose(3, 0, 1, 2))).sum(axis=-1)
        best = grid.reshape(-1, 2)[cost.argmin()]
        [true] = xy[number : number + 1]
        assert abs(errors[number] - np.hypot(*(best - true))) < 80
        mass_near = [posterior[haversine(place[None], truth)[0] <= 100].sum() for place in truth]
        best_place = truth[int(np.argmax(mass_near))]
        assert found[number] == (haversine(best_place[None], truth[number : number + 1])[0, 0] <= 100)


def test_the_nearest_report_is_what_brute_force_finds_and_ties_share() -> None:
    truth = random_visits(80, 5).lonlat
    reports = SphericalLaplace(0.02).sample(truth, rng=3)
    own = haversine(truth, reports).argmin(axis=1) == np.arange(80)
    assert nearest_report(truth, reports, np.arange(80)).tolist() == own.astype(float).tolist()
    assert 0 < own.mean() < 1
    same = np.repeat(truth[:1], 4, axis=0)
    assert nearest_report(same, same, np.arange(4)).tolist() == [0.25] * 4


def test_a_planted_home_is_found_from_many_reports_and_not_from_one() -> None:
    home = np.array([[2.35, 48.86]])
    noise = SphericalLaplace(0.01)

    def error(count: int, seed: int) -> FloatArray:
        reports = noise.sample(np.repeat(home, count, axis=0), rng=seed)
        xy = plane_around(reports[0], reports)
        [true] = plane_around(reports[0], home)
        return np.array(
            [np.hypot(*(guess(xy, lambda d: np.exp(-0.01 * d)) - true)) for guess in (mean_of, median_of, mode_of)]
        )

    many = np.median([error(200, seed) for seed in range(20)], axis=0)
    assert (many < [25, 25, 60]).all()
    assert np.median([error(1, seed)[0] for seed in range(20)]) > 80


def test_the_usual_place_is_the_most_visited_one_in_those_hours() -> None:
    home, work = PLACES[:2]
    places = np.array([home, home, work, work, work, PLACES[2]])
    visits = Visits(places, np.array([0, 0, 0, 0, 0, 1]))
    night = np.array([True, True, False, False, True, True])
    assert usual_places(visits, night, least=2).tolist()[0] == home.tolist()
    assert usual_places(visits, least=2).tolist()[0] == work.tolist()
    assert np.isnan(usual_places(visits, least=2)[1]).all()


def test_nights_and_working_hours_are_in_local_solar_time() -> None:
    noon = 20_000 * 86_400 + 12 * 3600.0  # 4 October 2024, a Friday
    tokyo, london = np.array([[139.7, 35.7]]), np.array([[0.0, 51.5]])
    assert at_night(tokyo, np.array([noon])).tolist() == [True]
    assert at_night(london, np.array([noon])).tolist() == [False]
    assert at_work(london, np.array([noon, noon + 86_400, noon + 3 * 86_400])[:, None].ravel()[:1]).tolist() == [
        True
    ]
    assert at_work(np.repeat(london, 3, axis=0), noon + 86_400 * np.arange(3.0)).tolist() == [True, False, False]
