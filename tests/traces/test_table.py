"""A table of traces is a session per person."""

import numpy as np
import pytest

from geoind import InvalidInputError, Ledger, TraceSession
from geoind.traces import Independent, SparseVector, TraceMethod, commuter, obfuscate_traces

KEY = bytes(range(32))


@pytest.mark.parametrize("method", [Independent(0.01), SparseVector.for_accuracy(500)], ids=["fresh", "sparse"])
def test_mixed_rows_get_what_each_persons_own_session_answers(method: TraceMethod) -> None:
    times, lonlat = commuter(days=1, every=1800.0)
    rng = np.random.default_rng(0)
    persons = rng.choice(["ana", "bea", "cem"], len(times)).tolist()
    made = obfuscate_traces(lonlat, persons=persons, times=times, method=method, key=KEY)
    for person in ("ana", "bea", "cem"):
        session = TraceSession(method, key=KEY, person_id=person)
        rows = [row for row, name in enumerate(persons) if name == person]
        alone = [session.report(lat=lonlat[row, 1], lon=lonlat[row, 0], time=times[row]) for row in rows]
        assert made.lonlat[rows].tolist() == [[answer.lon, answer.lat] for answer in alone]
        assert made.spent[person] == session.spent


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"times": [0, 0, 1]}, "row 1"),
        ({"times": [5, 6, 1]}, "row 2"),
        ({"times": [0, np.nan, 1]}, "NaN|finite"),
        ({"times": [0, 1]}, "one per row"),
        ({"persons": ["ana", "ana"]}, "one per row"),
        ({"persons": ["ana", "", "ana"]}, "person"),
        ({"lonlat": [[2, 48], [2, 91], [2, 48]]}, "latitude"),
        ({"key": b"short"}, "32 bytes"),
    ],
)
def test_bad_tables_are_refused_before_anything_is_charged(changed: dict[str, object], message: str) -> None:
    table = {"lonlat": [[2.0, 48.0]] * 3, "persons": ["ana"] * 3, "times": [0, 1, 2], "key": KEY}
    with Ledger("sqlite://", budget=1) as ledger:
        with pytest.raises(InvalidInputError, match=message):
            obfuscate_traces(**(table | changed), method=Independent(0.01), ledger=ledger)  # type: ignore[arg-type]
        assert ledger.spent("ana") == 0


def test_one_person_written_in_two_ways_is_one_person() -> None:
    made = obfuscate_traces(
        [[2.0, 48.0]] * 2, persons=["Zoe\u0308", "Zo\u00eb"], times=[0, 1], method=Independent(0.01), key=KEY
    )
    assert list(made.spent.values()) == [0.02]
