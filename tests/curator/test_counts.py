import itertools
import math
from typing import Any, cast

import geopandas
import h3
import numpy as np
import pytest

from geoind import BudgetExceededError, Grid, InvalidInputError, Ledger, Projection, SphericalLaplace
from geoind.accounting import PersonLevel
from geoind.curator import ReleasedCounts, release_counts
from geoind.curator.noise import GeometricNoise, as_fresh_randomness
from geoind.space import CellSites

STREET = Grid(0, 0, cell=100, columns=3, rows=1)
PARIS = CellSites(h3.grid_disk(h3.latlng_to_cell(48.86, 2.35, 8), 3))


def test_no_person_changes_the_counts_by_more_than_their_share_of_the_noise_allows() -> None:
    """All tables of up to five reports of two people in three cells, each with and without either person.

    With one seed both releases have the same noise: they differ by the bounded counts, and the law of the noise
    turns a distance of `most` into a factor e^epsilon.
    """
    largest = {1: 0, 2: 0}
    for cells in itertools.product(range(3), repeat=5):
        for owners in ([0, 0, 0, 1, 1], [0, 1, 0, 1, 0]):
            for most in largest:
                rows = np.array([row for row in range(5) if owners[row]])
                xy, person = STREET.xy[list(cells)], np.array(owners)
                both, one = (
                    release_counts(
                        xy[table], STREET, epsilon=1.0, person=person[table], reports_per_person=most, rng=7
                    )
                    for table in (range(5), rows)
                )
                apart = int(np.abs(both.counts - one.counts).sum())
                assert apart <= most
                largest[most] = max(largest[most], apart)
    assert largest == {1: 1, 2: 2}


@pytest.mark.parametrize("most", [1, 3])
def test_the_noise_of_a_release_has_the_rate_epsilon_over_the_reports_of_a_person(most: int) -> None:
    wide = Grid(0, 0, cell=10, columns=400, rows=100)
    people, here = ["ana"] * 4, [[0, 0]] * 4
    released = release_counts(here, wide, epsilon=0.6, person=people, reports_per_person=most, rng=11)
    assert abs(released.counts[1:]).mean() == pytest.approx(1 / math.sinh(0.6 / most), rel=0.03)
    noise = GeometricNoise(0.6, most).added_to(np.zeros(len(wide), np.int64), as_fresh_randomness(11))
    assert (released.counts - noise)[0] == most
    assert not (released.counts - noise)[1:].any()


def test_a_release_holds_nothing_but_what_is_public() -> None:
    released = release_counts([[0, 0]], STREET, epsilon=1.0, person=["ana"])
    assert set(vars(released)) == {"grid", "counts", "level", "reports_per_person", "at_least"}
    assert released.level == 1.0
    with pytest.raises(ValueError, match="read-only"):
        released.counts[0] = 0


def test_each_person_of_the_table_pays_once_before_anything_is_drawn() -> None:
    ledger = Ledger("sqlite://", budget=PersonLevel(1.0))
    points, people = [[0, 0], [0, 0], [999, 0]], ["ana", "ana", "ben"]
    release_counts(points, STREET, epsilon=0.6, person=people, ledger=ledger, outside="drop")
    assert (ledger.remaining("ana"), ledger.remaining("ben")) == (0.4, 0.4)
    assert [(one.epsilon, one.mechanism) for one in ledger.history("ana")] == [(0.6, "PersonLevel(0.6)")]
    ledger.charge("cem", PersonLevel(0.3))
    here, never = points[:1], cast("Any", _Never())
    with pytest.raises(BudgetExceededError, match="of level per person requested"):
        release_counts(here, STREET, epsilon=0.6, person=["ana"], ledger=ledger, rng=never)
    assert ledger.remaining("ana") == 0.4


class _Never:
    def words(self, *_: object) -> None:
        raise AssertionError("noise was drawn")

    further = words


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"points": [[999, 0]]}, "the grid does not cover 1 of 1 point:"),
        ({"outside": "keep"}, "outside must be"),
        ({"points": [[math.nan, 0]]}, "points must be finite"),
        ({"points": [], "person": []}, "at least one record"),
        ({"grid": [[0, 0]]}, "grid must be a Grid"),
        ({"at_least": 0}, "at_least must be"),
        ({"at_least": 2.5}, "at_least must be"),
        ({"grid": PARIS, "points": [[9.9, 48.8]]}, "does not cover 1 of 1 point"),
        ({"grid": PARIS, "points": [[200, 48.8]]}, "points"),
        ({"epsilon": 0.0}, "epsilon must be positive"),
        ({"epsilon": 1e-13}, "only noise would be left"),
        ({"reports_per_person": 0}, "reports_per_person must be"),
        ({"reports_per_person": 1.5}, "reports_per_person must be"),
        ({"reports_per_person": "2"}, "reports_per_person must be"),
        ({"person": ["ana", "ben"]}, "one name per record"),
        ({"points": geopandas.GeoSeries.from_xy([2.35], [48.86], crs=4326)}, "need the projection"),
        ({"rng": -1}, "rng must not be negative"),
    ],
)
def test_bad_input_is_an_error_and_is_not_charged(options: dict[str, object], message: str) -> None:
    ledger = Ledger("sqlite://", budget=PersonLevel(1.0))
    call = {"points": [[0, 0]], "grid": STREET, "epsilon": 0.5, "person": ["ana"], **options}
    with pytest.raises(InvalidInputError, match=message):
        release_counts(**call, ledger=ledger)  # type: ignore[arg-type]
    assert ledger.remaining("ana") == 1.0


def test_reports_and_releases_are_not_added_up() -> None:
    per_metre = Ledger("sqlite://", budget=0.01)
    with pytest.raises(InvalidInputError, match="level per person and this budget an epsilon per metre"):
        release_counts([[0, 0]], STREET, epsilon=0.005, person=["ana"], ledger=per_metre)
    per_person = Ledger("sqlite://", budget=PersonLevel(1.0))
    with pytest.raises(InvalidInputError, match="is a report and this budget a level per person"):
        per_person.charge("ana", SphericalLaplace(0.01))
    with pytest.raises(InvalidInputError, match="is a report"):
        per_person.charge("ana", 0.01)


def test_degrees_and_frames_are_counted_where_they_lie() -> None:
    projection = Projection(2.35, 48.86)
    lonlat = projection.to_lonlat(STREET.xy[[0, 1, 1, 2]])
    frame = geopandas.GeoSeries.from_xy(*lonlat.T, crs=4326).to_crs(2154)
    counted = [
        release_counts(xy, STREET, epsilon=1.0, person=range(4), rng=3).counts.tolist()
        for xy in (STREET.xy[[0, 1, 1, 2]], projection.to_xy(lonlat), projection.to_xy(frame))
    ]
    assert counted[0] == counted[1] == counted[2]


@pytest.mark.parametrize("confidence", [0.3, 0.9, 0.99])
@pytest.mark.parametrize("most", [1, 4])
def test_the_margin_is_the_least_that_holds_the_noise_as_often_as_it_says(confidence: float, most: int) -> None:
    released = ReleasedCounts(STREET, np.zeros(3, np.int64), 0.8, most)
    rate = 0.8 / most
    margin = released.margin(confidence)

    def within(limit: int) -> float:
        return math.tanh(rate / 2) * sum(math.exp(-rate * abs(z)) for z in range(-limit, limit + 1))

    assert within(margin) >= confidence
    assert margin == 0 or within(margin - 1) < confidence


def test_counts_without_a_positive_sum_are_no_population() -> None:
    with pytest.raises(InvalidInputError, match="too few people"):
        ReleasedCounts(STREET, np.array([-3, 1, 0]), 0.8, 1).population()


def test_small_counts_are_suppressed_after_the_noise() -> None:
    wide = Grid(0, 0, cell=10, columns=50, rows=40)
    how: dict[str, Any] = {"epsilon": 0.5, "person": range(300), "rng": 3}
    points = np.repeat(wide.xy[[5, 80, 900]], 100, axis=0)
    every, large = (release_counts(points, wide, at_least=least, **how) for least in (None, 7))
    np.testing.assert_array_equal(large.counts, np.where(every.counts < 7, 0, every.counts))
    # What is left is not only what is true: the noise exceeds the limit in some of the empty cells.
    assert np.count_nonzero(large.counts) > 3
    assert (large.at_least, every.at_least) == (7, None)
    assert "those below 7 suppressed" in repr(large)
    assert "noisy counts below 7" in large._repr_html_()
    assert "suppressed" not in repr(every) + every._repr_html_()


def test_counts_on_cells_of_h3_are_those_of_h3() -> None:
    lonlat = np.random.default_rng(5).normal([2.35, 48.86], 0.01, (400, 2))
    cells = [h3.latlng_to_cell(lat, lon, 8) for lon, lat in lonlat.tolist()]
    how: dict[str, Any] = {"epsilon": 20.0, "person": range(400), "outside": "drop", "rng": 1}
    released = release_counts(lonlat, PARIS, **how)
    truth = np.array([cells.count(cell) for cell in PARIS.cells])
    assert truth.sum() < 400
    assert abs(released.counts - truth).max() <= 1
    frame = geopandas.GeoSeries.from_xy(*lonlat.T, crs=4326).to_crs(2154)
    np.testing.assert_array_equal(release_counts(frame, PARIS, **how).counts, released.counts)
    assert "37 cells of h3:8" in repr(released)
    assert "ReleasedCounts" in released._repr_html_()
    with pytest.raises(InvalidInputError, match="need counts on a Grid"):
        released.population()
