"""The words of sessions are a function of key, person, moment, place and purpose, and frozen."""

import pickle
from itertools import islice

import numpy as np

from geoind.traces.words import CHOICE, FRESH, LIMIT, TEST, SessionSource, StepWords

KEY = bytes(range(32))
HERE = (2.2945, 48.8584)


def test_arrays_and_single_sessions_have_the_same_words() -> None:
    words = StepWords(KEY)
    persons = np.stack([np.frombuffer(words.person(name), np.uint64) for name in ("ana", "bea")])
    times, lonlat = np.array([60.0, -0.0]), np.array([HERE, (-0.0, -33.5)])
    steps, runs = words.steps(persons, times, lonlat), words.runs(persons, np.array([3, 4]), lonlat)
    for row, name in enumerate(("ana", "bea")):
        source = SessionSource(KEY, name)
        seed = source.step(float(times[row]) + 0.0, *lonlat[row].tolist())
        run = source.run(3 + row, *lonlat[row].tolist())
        for counter in range(3):
            many = words.pairs(steps, 0.01, CHOICE, np.array([row, row]), counter=counter)[row].tolist()
            assert many == list(islice(source.stream(seed, 0.01, CHOICE, row), 2 * counter, 2 * counter + 2))
        assert words.pairs(runs, 0.02, LIMIT)[row].tolist() == list(islice(source.stream(run, 0.02, LIMIT), 2))
        assert source.first_words(seed, 0.01, [(FRESH, 0), (CHOICE, 5)]) == [
            next(source.stream(seed, 0.01, FRESH)),
            next(source.stream(seed, 0.01, CHOICE, 5)),
        ]


def test_another_key_person_moment_place_epsilon_purpose_or_number_gives_other_words() -> None:
    ana = SessionSource(KEY, "ana")
    seeds = {
        ana.step(0.0, *HERE),
        ana.step(1.0, *HERE),
        ana.step(0.0, HERE[0], 48.0),
        ana.step(0.0, 2.0, HERE[1]),
        ana.run(0, *HERE),
        ana.run(1, *HERE),
        SessionSource(KEY, "bea").step(0.0, *HERE),
        SessionSource(KEY).step(0.0, *HERE),
        SessionSource(bytes(32), "ana").step(0.0, *HERE),
    }
    assert len(seeds) == 9
    seed = ana.step(0.0, *HERE)
    streams = [(0.01, FRESH, 0), (0.02, FRESH, 0), (0.01, TEST, 0), (0.01, FRESH, 1)]
    words = [word for stream in streams for word in islice(ana.stream(seed, *stream), 6)]
    assert len(set(words)) == len(words)


def test_the_words_are_frozen() -> None:
    source = SessionSource(KEY, "ana")
    assert list(islice(source.stream(source.step(60.0, *HERE), 0.01, FRESH), 3)) == FROZEN


FROZEN = [3475097888656556792, 9302565014432875857, 8015084997083737110]


def test_a_source_travels_to_another_process() -> None:
    source = SessionSource(KEY, "ana")
    again = pickle.loads(pickle.dumps(source))
    assert again.step(60.0, *HERE) == source.step(60.0, *HERE)


def test_bits_are_balanced() -> None:
    words = StepWords(KEY)
    person = np.frombuffer(words.person("ana"), np.uint64)
    times = np.arange(4000.0)
    seeds = words.steps(np.tile(person, (4000, 1)), times, np.tile(HERE, (4000, 1)))
    bits = np.unpackbits(words.pairs(seeds, 0.01, FRESH).view(np.uint8).reshape(4000, -1), axis=1).mean(axis=0)
    assert np.abs(bits - 0.5).max() < 5 * 0.5 / np.sqrt(4000)
