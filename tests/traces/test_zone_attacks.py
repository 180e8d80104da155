"""What an observer learns from the border of a zone, and from its centres."""

import numpy as np

from geoind.traces.zone_attacks import jitter_attack, zone_attack


def test_the_times_of_leaving_find_the_home_behind_an_exact_border_and_not_behind_a_private_one() -> None:
    found = [zone_attack(person, days=30) for person in range(4)]
    last = {name: np.median([errors[name][-1] for errors in found]) for name in found[0]}
    assert last["exact circle, times of leaving"] < 40
    assert last["private zone, times of leaving"] > 0.6 * last["centre alone"]
    assert last["private zone, times of leaving"] > 3 * last["exact circle, times of leaving"]


def test_a_centre_per_measurement_finds_the_home_and_a_centre_per_cell_does_not() -> None:
    found = [jitter_attack(person) for person in range(40)]
    each, ours = (
        np.median([errors[name] for errors in found]) for name in ("a centre per measurement", "private zone")
    )
    assert each < 60
    assert ours > 120
