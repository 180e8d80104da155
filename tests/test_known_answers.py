"""Keyed noise is a file format: what a key and a label gave once, they give for ever, on every machine.

The answers in known_answers.json are frozen. A change that breaks one is another scheme and takes another name.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from geoind import (
    Channel,
    Grid,
    KeyedRandomness,
    Mechanism,
    PlanarGaussian,
    PlanarLaplace,
    SphericalGaussian,
    SphericalLaplace,
    TraceSession,
)
from geoind.arrays import FloatArray
from geoind.budgets.same_place import SamePlace
from geoind.channels.dummies import Dummies
from geoind.channels.priors import Prior
from geoind.files import load_mechanism
from geoind.keys import Key, Labels, Words, key_of_place
from geoind.mechanisms import exact, noise
from geoind.traces import PrivateZone, SparseVector

FOLDER = Path(__file__).parent
ANSWERS = json.loads((FOLDER / "known_answers.json").read_text())
KEY = bytes(range(32))
STREET = Grid(0, 0, cell=100, columns=3, rows=1)
LABELS: dict[str, Labels] = {
    "whole numbers": [0, 1, -1, 2**63 - 1],
    "unsigned numbers": np.array([0, 1, 2**63, 2**64 - 1], np.uint64),
    "short numbers": np.array([0, 1, -1, 127], np.int8),
    "text": ["", "a", "exactly 16 bytes", "seventeen bytes !"],
    "text of many bytes": ["Zoë", "東京都", "x" * 1000, "a\0"],
    "bytes": [b"", b"a", b"\xff", b"exactly 16 bytes"],
}
PLACES = [[0.0, 0.0], [2.2945, 48.8584], [-180.0, -90.0], [13.0, 89.99999]]
MECHANISMS: dict[str, Mechanism] = {
    "PlanarLaplace": PlanarLaplace(0.01),
    "PlanarLaplace, little noise": PlanarLaplace(5.0),
    "PlanarGaussian": PlanarGaussian(300.0),
    "SphericalLaplace": SphericalLaplace(0.01),
    "SphericalLaplace, three decimals": SphericalLaplace(0.01, decimals=3),
    "SphericalLaplace, wide": SphericalLaplace(3e-6),
    "SphericalGaussian": SphericalGaussian(600.0),
    "Channel": Channel(STREET, STREET, [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]]),
    "Dummies": Dummies(Prior(STREET, [0.5, 0.25, 0.25]), k=3),
}


def words_in_hex(labels: object) -> list[list[str]]:
    words = KeyedRandomness(KEY, labels).words(np.array(PLACES), 4, "a purpose")  # type: ignore[arg-type]
    return [[f"{word:016x}" for word in row] for row in words.tolist()]


def further_in_hex(labels: object) -> list[list[str]]:
    source = KeyedRandomness(KEY, labels)  # type: ignore[arg-type]
    pairs = [source.further(row, np.array(place), "a purpose", row) for row, place in enumerate(PLACES)]
    return [[f"{word:016x}" for word in pair] for pair in pairs]


def of_engines() -> dict[str, object]:
    key = Key(KEY)
    return {
        "file": key.for_file("2024/part-0.parquet").hex(),
        "second place of a row": key_of_place(KEY, 1).hex(),
        "same place": list(
            SamePlace(KEY, cell=100.0).obfuscate(lat=48.8584, lon=2.2945, person_id="Zoë", epsilon=0.01)
        ),
        "private zone": zones(),
    }


def zones() -> list[object]:
    """Return a zone without a person, that of a person, and the token by which a ledger knows the second."""
    home: dict[str, Any] = {"lat": 48.8584, "lon": 2.2945, "epsilon": 0.01, "key": KEY}
    payer: Any = Payer()
    zones = [PrivateZone.around(**home), PrivateZone.around(**home, ledger=payer, person_id="Zoë")]
    return [*([zone.lon, zone.lat] for zone in zones), payer.tokens]


class Payer:
    """A ledger that notes what it should recognise a charge by."""

    def __init__(self) -> None:
        self.tokens: list[object] = []

    def charge(self, person: str | int, cost: object, *, label: str = "", once: str | None = None) -> float:  # noqa: ARG002
        self.tokens.append(once)
        return 0.0


def current() -> dict[str, object]:
    """Return what today's code answers."""
    return {
        "words": {name: words_in_hex(labels) for name, labels in LABELS.items()},
        "further words": {name: further_in_hex(labels) for name, labels in LABELS.items()},
        "reports": {
            name: mechanism.sample(PLACES, rng=KeyedRandomness(KEY, ["a", "b", "c", "d"])).tolist()
            for name, mechanism in MECHANISMS.items()
        },
        "engines": of_engines(),
        "many": many(),
    }


def many() -> dict[str, str]:
    """Return a digest of 20 000 reports of each mechanism, some at poles and borders of the lattice."""
    rng = np.random.PCG64(1)
    turns = (rng.random_raw(40_000).reshape(-1, 2) >> np.uint64(11)) * 2.0**-53
    points = (turns - 0.5) * [360.0, 180.0]
    points[:4] = PLACES
    source = KeyedRandomness(KEY, np.arange(len(points)))
    reports = {name: mechanism.sample(points, rng=source) for name, mechanism in MECHANISMS.items()}
    return {name: hashlib.sha256(report.tobytes()).hexdigest() for name, report in reports.items()}


@pytest.mark.parametrize("labels", LABELS)
def test_words_of_a_label_are_for_ever(labels: str) -> None:
    assert words_in_hex(LABELS[labels]) == ANSWERS["words"][labels]
    assert further_in_hex(LABELS[labels]) == ANSWERS["further words"][labels]


@pytest.mark.parametrize("name", MECHANISMS)
def test_reports_of_a_record_are_for_ever(name: str) -> None:
    keyed = KeyedRandomness(KEY, ["a", "b", "c", "d"])
    assert MECHANISMS[name].sample(PLACES, rng=keyed).tolist() == ANSWERS["reports"][name]


def test_keys_of_engines_are_for_ever() -> None:
    assert of_engines() == ANSWERS["engines"]


@pytest.mark.parametrize("case", ANSWERS["lonlat"], ids=lambda case: f"{case['why']} {case['label']}")
def test_reports_of_the_device_are_for_ever(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    source = CountedWords(KeyedRandomness(KEY, [case["label"]]))
    decided = Mock(wraps=exact.decided)
    monkeypatch.setattr(exact, "decided", decided)
    globe = SphericalLaplace(case["epsilon"], case["decimals"])
    assert globe.sample([[case["lon"], case["lat"]]], rng=source).tolist() == [case["report"]]
    # The searched cases are what they are called: doubles, or 64 bits of both numbers, do not decide them.
    assert decided.called or case["why"] in ("anywhere", "at an edge")
    assert source.asked == (case["why"] == "more than 64 bits")


class CountedWords:
    """A source that notes how many further words were needed."""

    def __init__(self, source: KeyedRandomness) -> None:
        self.source, self.asked = source, 0

    def words(self, points: FloatArray, count: int, purpose: str) -> Words:
        return self.source.words(points, count, purpose)

    def further(self, row: int, point: FloatArray, purpose: str, number: int) -> tuple[int, int]:
        self.asked += 1
        return self.source.further(row, point, purpose, number)


@pytest.mark.parametrize("record", ANSWERS["city"]["records"], ids=lambda record: record["label"])
def test_reports_of_a_mechanism_in_a_file_are_for_ever(record: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "city.json"
    path.write_text(json.dumps(ANSWERS["city"]["file"]))
    source = KeyedRandomness(KEY, [record["label"]])
    city = load_mechanism(path)
    assert city.sample([[record["lon"], record["lat"]]], rng=source).tolist() == [record["report"]]


@pytest.mark.parametrize("case", ANSWERS["sessions"], ids=lambda case: case["why"])
def test_answers_of_a_session_are_for_ever(case: dict[str, Any]) -> None:
    session = TraceSession(SparseVector(**case["method"]), key=KEY, person_id=case["person"])
    for time, lon, lat, *answer in case["steps"]:
        report = session.report(lat=lat, lon=lon, time=time)
        assert [report.lon, report.lat] == answer
    assert json.loads(session.state()) == case["state"]


@pytest.mark.parametrize("case", ANSWERS["same places"], ids=lambda case: f"{case['person']} {case['cell']:g} m")
def test_reports_of_a_cell_are_for_ever(case: dict[str, Any]) -> None:
    report = SamePlace(KEY, cell=case["cell"]).obfuscate(
        lat=case["lat"], lon=case["lon"], person_id=case["person"], epsilon=case["epsilon"]
    )
    assert [report.lon, report.lat] == case["report"]


def by_the_page(label: int | str | bytes, place: list[float], counter: int) -> list[str]:
    """Return a pair of words by docs/keyed-noise.md, with nothing of geoind."""

    def key_of(text: str) -> Callable[[bytes], bytes]:
        subkey = hashlib.blake2b(text.encode(), key=KEY, digest_size=32, person=b"geoind words 2").digest()
        return lambda block: Cipher(algorithms.AES256(subkey), modes.ECB()).encryptor().update(block)

    def xor(a: bytes, b: bytes) -> bytes:
        return bytes(x ^ y for x, y in zip(a, b, strict=True))

    kind, block = "integer", b""
    if isinstance(label, int):
        block = (label % 2**64).to_bytes(16, "little")
    else:
        kind, aes = "text", key_of("text labels")
        message = label.encode() if isinstance(label, str) else b"\xff" + label
        block = aes(len(message).to_bytes(16, "little"))
        for start in range(0, len(message), 16):
            block = aes(xor(block, message[start : start + 16].ljust(16, b"\0")))
    aes = key_of(f"{kind} labels: a purpose")
    where = np.array([round(c * 2**30) for c in place], "<f8").tobytes()
    pair = aes(xor(aes(xor(block, bytes(8) + counter.to_bytes(8, "little"))), where))
    return [f"{int.from_bytes(pair[at : at + 8], 'little'):016x}" for at in (0, 8)]


@pytest.mark.parametrize("name", LABELS)
def test_the_page_in_docs_says_what_the_code_does(name: str) -> None:
    labels = LABELS[name]
    plain = labels.tolist() if isinstance(labels, np.ndarray) else labels
    for row, (label, place) in enumerate(zip(plain, PLACES, strict=True)):
        assert by_the_page(label, place, 0) + by_the_page(label, place, 1) == ANSWERS["words"][name][row]
        assert by_the_page(label, place, 2**32 + row) == ANSWERS["further words"][name][row]


def test_many_reports_are_the_same_for_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    assert many() == ANSWERS["many"]
    monkeypatch.setattr(noise, "ROWS_PER_THREAD", 1000)
    monkeypatch.setattr(noise, "SHARED_BLOCK", 777)
    for cores in (2, 3):
        monkeypatch.setattr(noise, "available_cores", lambda cores=cores: cores)
        assert many() == ANSWERS["many"]


@pytest.mark.slow
def test_many_reports_are_the_same_without_the_instructions_of_this_processor() -> None:
    from numpy._core._multiarray_umath import (  # type: ignore[import-not-found]
        __cpu_dispatch__,
        __cpu_features__,
    )

    fast = [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]
    environment = os.environ | {"NPY_DISABLE_CPU_FEATURES": " ".join(fast)}
    code = "import json, tests.test_known_answers as t; print(json.dumps(t.many()))"
    given = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=True,
        cwd=FOLDER.parent,
        env=environment,
        text=True,
    )
    assert json.loads(given.stdout) == ANSWERS["many"]
