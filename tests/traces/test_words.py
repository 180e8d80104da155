"""The words of sessions are a function of key, person, moment, place and purpose, and frozen."""

from itertools import islice

import numpy as np

from geoind.traces.words import CHOICE, FRESH, LIMIT, TEST, Block, SessionWords, as_words

KEY = bytes(range(32))
HERE = (2.2945, 48.8584)


def step(words: SessionWords, name: str, time: float, lon: float, lat: float) -> Block:
    return words.steps(words.person(name), time, (lon, lat))


def run(words: SessionWords, name: str, number: int, lon: float, lat: float) -> Block:
    return words.runs(words.person(name), number, (lon, lat))


def test_a_row_among_many_has_the_words_of_a_row_alone() -> None:
    words = SessionWords(KEY)
    names, times, lonlat = ("ana", "bea"), np.array([60.0, -0.0]), np.array([HERE, (-0.0, -33.5)])
    steps = words.steps(words.persons(names), times, lonlat)
    runs = words.runs(words.persons(names), np.array([3, 4]), lonlat)
    for row, name in enumerate(names):
        lon, lat = lonlat[row].tolist()
        seed = step(words, name, float(times[row]), lon, lat)
        # No place and no time has a sign of zero.
        assert seed == step(words, name, float(times[row]) + 0.0, lon + 0.0, lat + 0.0)
        for counter in range(3):
            many = words.pairs(steps, 0.01, CHOICE, np.array([row, row]), counter=counter)[row].tolist()
            assert many == list(islice(words.stream(seed, 0.01, CHOICE, row), 2 * counter, 2 * counter + 2))
        alone = as_words(words.pairs(run(words, name, 3 + row, lon, lat), 0.02, LIMIT))
        assert words.pairs(runs, 0.02, LIMIT)[row].tolist() == [*alone]


def test_another_key_person_moment_place_epsilon_purpose_or_number_gives_other_words() -> None:
    words = SessionWords(KEY)
    seeds = {
        step(words, "ana", 0.0, *HERE),
        step(words, "ana", 1.0, *HERE),
        step(words, "ana", 0.0, HERE[0], 48.0),
        step(words, "ana", 0.0, 2.0, HERE[1]),
        run(words, "ana", 0, *HERE),
        run(words, "ana", 1, *HERE),
        step(words, "bea", 0.0, *HERE),
        step(words, "", 0.0, *HERE),
        step(SessionWords(bytes(32)), "ana", 0.0, *HERE),
    }
    assert len(seeds) == 9
    seed = step(words, "ana", 0.0, *HERE)
    streams = [(0.01, FRESH, 0), (0.02, FRESH, 0), (0.01, TEST, 0), (0.01, FRESH, 1)]
    found = [word for stream in streams for word in islice(words.stream(seed, *stream), 6)]
    assert len(set(found)) == len(found)


def test_the_words_are_frozen() -> None:
    words = SessionWords(KEY)
    seed = step(words, "ana", 60.0, *HERE)
    assert list(islice(words.stream(seed, 0.01, FRESH), 3)) == FROZEN
    source = words.fresh(np.array([[0, 0], as_words(seed)], np.uint64), 0.01)
    assert source.words(np.array([HERE] * 2), 2, "")[1].tolist() == FROZEN[:2]
    assert source.further(1, np.array(HERE), "", 0)[0] == FROZEN[2]
    first, _ = as_words(words.pairs(run(words, "ana", 7, *HERE), 0.02, LIMIT))
    assert (first, next(words.stream(seed, 0.01, CHOICE, 5))) == FROZEN_RUN_AND_CHOICE


FROZEN = [3475097888656556792, 9302565014432875857, 8015084997083737110]
FROZEN_RUN_AND_CHOICE = (14883156885553925671, 9896896433796731697)


def test_bits_are_balanced() -> None:
    words = SessionWords(KEY)
    persons = np.tile(words.persons(["ana"]), (4000, 1))
    seeds = words.steps(persons, np.arange(4000.0), np.tile(HERE, (4000, 1)))
    bits = np.unpackbits(words.pairs(seeds, 0.01, FRESH).view(np.uint8).reshape(4000, -1), axis=1).mean(axis=0)
    assert np.abs(bits - 0.5).max() < 5 * 0.5 / np.sqrt(4000)
