import os
from typing import Any

import numpy as np
import pytest
from scipy import stats

from geoind import InvalidInputError, KeyedRandomness, PlanarLaplace, SphericalLaplace, obfuscate
from geoind.mechanisms.protocol import Randomness, as_randomness, words_by_block

KEY = bytes(range(32))
POINTS = np.zeros((4, 2))
SYSTEM = as_randomness(None, 1)


def keyed_words(*labels: object, key: bytes = KEY, points: object = None, purpose: str = "test") -> np.ndarray:
    keyed = KeyedRandomness(key, list(labels))  # type: ignore[arg-type]
    where = np.zeros((len(labels), 2)) if points is None else np.asarray(points, float)
    return keyed.words(where, 2, purpose)


@pytest.mark.parametrize("size", [1, 16, 17, 100_000])
def test_fresh_words_never_repeat(size: int) -> None:
    points = np.zeros((size, 2))
    words = np.vstack([SYSTEM.words(points, 2, ""), SYSTEM.words(points, 2, "")])
    assert words.shape == (2 * size, 2)
    assert len(np.unique(words)) == words.size


@pytest.mark.parametrize("source", [SYSTEM, KeyedRandomness(KEY, np.arange(50_000))])
def test_every_bit_of_every_word_is_a_fair_coin(source: Randomness) -> None:
    words = source.words(np.zeros((50_000, 2)), 3, "bits")
    for bit in range(64):
        ones = ((words >> np.uint64(bit)) & np.uint64(1)).sum(axis=0)
        assert all(stats.binomtest(int(k), len(words)).pvalue > 1e-12 for k in ones)
    assert stats.kstest(words[:, 0] / 2.0**64, "uniform").pvalue > 1e-10
    assert abs(np.corrcoef(words.T / 2.0**64) - np.eye(3)).max() < 0.03


@pytest.mark.skipif(not hasattr(os, "fork"), reason="NOT RUN: this system cannot fork")
def test_forked_workers_never_share_noise() -> None:
    noise = SphericalLaplace(0.01)
    noise.sample(np.zeros((100, 2)))
    pipes = []
    for _ in range(3):
        read, write = os.pipe()
        child = os.fork()
        if not child:
            reports = noise.sample(np.zeros((100, 2)))
            os.write(write, reports.tobytes())
            os._exit(0)
        os.waitpid(child, 0)
        pipes.append(os.read(read, 1600))
    mine = noise.sample(np.zeros((100, 2))).tobytes()
    assert len({mine, *pipes}) == 4


def test_scalar_calls_never_repeat() -> None:
    reports = {obfuscate(lat=0.0, lon=0.0, epsilon=0.001) for _ in range(200)}
    assert len(reports) == 200


def test_the_same_record_gets_the_same_words_again() -> None:
    np.testing.assert_array_equal(keyed_words("a", "b"), keyed_words("a", "b"))
    np.testing.assert_array_equal(keyed_words("b", "a"), keyed_words("a", "b")[::-1])
    np.testing.assert_array_equal(keyed_words(7, 8), keyed_words(*np.array([7, 8], np.int32)))


@pytest.mark.parametrize(
    "other",
    [
        keyed_words("b"),
        keyed_words(b"a"),
        keyed_words(97),
        keyed_words("a", key=bytes(32)),
        keyed_words("a", points=[[0.0, 1e-6]]),
        keyed_words("a", purpose="another epsilon"),
    ],
    ids=["label", "bytes", "integer", "key", "place", "purpose"],
)
def test_another_record_key_place_or_purpose_gets_independent_words(other: np.ndarray) -> None:
    shared = np.bitwise_count(keyed_words("a") ^ other).sum()
    assert 30 < shared < 98  # of 128 bits, 64 expected to differ


def test_two_epsilons_for_one_record_do_not_share_their_direction() -> None:
    keyed = KeyedRandomness(KEY, np.arange(1000))
    near, far = (PlanarLaplace(e).sample(np.zeros((1000, 2)), rng=keyed) for e in (0.01, 0.02))
    turn = np.arctan2(*near.T) - np.arctan2(*far.T)
    assert abs(np.exp(1j * turn).mean()) < 0.15


def test_the_last_bits_of_a_coordinate_do_not_make_a_second_report() -> None:
    a = keyed_words("a", points=[[2.2945, 48.8584]])
    np.testing.assert_array_equal(a, keyed_words("a", points=[[np.nextafter(2.2945, 3), 48.8584]]))


def test_negative_and_unsigned_integers_are_labels_too() -> None:
    assert len(np.unique(keyed_words(-1, 0, 1))) == 6
    assert keyed_words(np.uint64(2**63 + 5)).shape == (1, 2)


def test_texts_of_every_length_get_words_of_their_own() -> None:
    texts = [
        "",
        "a",
        "a" * 15,
        "a" * 16,
        "a" * 17,
        "a" * 32,
        "a" * 33,
        "b" * 16 + "a",
        "ä",
        "a\0",
        "\0a",
        "x" * 1000,
    ]
    assert len(np.unique(keyed_words(*texts))) == 2 * len(texts)
    # Next to any other label, and in any container.
    for text in texts:
        np.testing.assert_array_equal(keyed_words(text), keyed_words(*texts)[texts.index(text)][None])
        np.testing.assert_array_equal(keyed_words(text), keyed_words(np.str_(text)))


def test_a_text_and_its_bytes_are_two_labels() -> None:
    assert len(np.unique(keyed_words("abc", b"abc", b"", b"\0abc", "\0abc", "\xff"))) == 12


@pytest.mark.parametrize("key", [b"short", bytes(33), "0" * 32, None])
def test_a_key_is_32_bytes_and_is_never_shown(key: object) -> None:
    with pytest.raises(InvalidInputError, match="32 bytes"):
        KeyedRandomness(key, [1])  # type: ignore[arg-type]
    assert "\\x" not in repr(KeyedRandomness(KEY, [1]))
    assert repr(KEY) not in repr(KeyedRandomness(KEY, [1]))


@pytest.mark.parametrize("labels", [[1.5], [None], ["a", 3.0], 7, "text"])
def test_a_label_is_an_integer_a_string_or_bytes(labels: object) -> None:
    with pytest.raises(InvalidInputError, match="label"):
        KeyedRandomness(KEY, labels)  # type: ignore[arg-type]


def test_labels_must_be_one_per_point() -> None:
    with pytest.raises(InvalidInputError, match="one per point: 2 for 4"):
        PlanarLaplace(1.0).sample(POINTS, rng=KeyedRandomness(KEY, [1, 2]))


def test_a_seed_repeats_a_simulation_but_not_its_rows() -> None:
    first = PlanarLaplace(1.0).sample(POINTS, rng=42)
    np.testing.assert_array_equal(first, PlanarLaplace(1.0).sample(POINTS, rng=42))
    assert len(np.unique(first)) == first.size
    generator = np.random.default_rng(42)
    np.testing.assert_array_equal(first, PlanarLaplace(1.0).sample(POINTS, rng=generator))
    assert not np.array_equal(first, PlanarLaplace(1.0).sample(POINTS, rng=generator))


@pytest.mark.parametrize("rng", ["seed", 1.5, True, -1, object(), np.random.RandomState(0)])
def test_what_is_no_randomness_is_refused(rng: object) -> None:
    with pytest.raises(InvalidInputError, match="rng must"):
        as_randomness(rng, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("shared", [15, 16, 17, 31, 32, 500])
def test_every_byte_of_a_text_counts(shared: int) -> None:
    texts = ["x" * shared + end for end in ("ab", "ba", "bb")] + ["ab" + "x" * shared]
    assert len(np.unique(keyed_words(*texts))) == 8


def test_labels_and_places_are_never_shown() -> None:
    shown = repr(KeyedRandomness(KEY, ["patient 7"]).at(np.array([[2.35, 48.86]])))
    assert "patient" not in shown
    assert "48.86" not in shown
    assert "patient" not in str(vars(KeyedRandomness(KEY, ["patient 7"]))["_blocks"])


def test_zero_is_one_place_whatever_its_sign() -> None:
    np.testing.assert_array_equal(keyed_words("a", points=[[0.0, 0.0]]), keyed_words("a", points=[[-0.0, -0.0]]))
    tiny = [[-1e-12, 1e-12]]
    np.testing.assert_array_equal(keyed_words("a", points=[[0.0, 0.0]]), keyed_words("a", points=tiny))


def test_further_words_are_a_records_own_and_repeat() -> None:
    keyed = KeyedRandomness(KEY, ["a", "b"])
    points = np.array([[1.0, 2.0], [1.0, 2.0]])
    first = keyed.words(points, 40, "p")
    further = [keyed.further(row, points[row], "p", number) for row in (0, 1) for number in range(20)]
    assert further == [keyed.further(row, points[row], "p", number) for row in (0, 1) for number in range(20)]
    assert len({*first.ravel().tolist(), *np.ravel(further).tolist()}) == 160
    alone = KeyedRandomness(KEY, ["b"]).further(0, points[1], "p", 3)
    assert alone == further[23]


def test_many_records_get_the_words_that_each_gets_alone() -> None:
    """Records are enciphered some thousand at a time."""
    points = np.random.default_rng(0).uniform(-1, 1, (20_000, 2))
    words = KeyedRandomness(KEY, np.arange(20_000)).words(points, 3, "p")
    for row in (0, 8191, 8192, 19_999):
        one = KeyedRandomness(KEY, [row]).words(points[row : row + 1], 3, "p")
        np.testing.assert_array_equal(words[row : row + 1], one)


@pytest.mark.parametrize("labels", [np.arange(500), [f"trip {row}" for row in range(500)]])
def test_a_key_gives_a_block_of_records_the_words_that_all_together_get(labels: object) -> None:
    points = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    keyed = KeyedRandomness(KEY, labels)  # type: ignore[arg-type]
    words_of = words_by_block(keyed, points, 2, "p")
    parts = [slice(300, 500), slice(0, 1), slice(1, 300)]
    drawn = {part.start: words_of(part) for part in parts}
    np.testing.assert_array_equal(np.vstack([drawn[0], drawn[1], drawn[300]]), keyed.words(points, 2, "p"))


def test_a_generator_draws_the_words_of_all_blocks_in_the_order_of_the_records() -> None:
    points = np.zeros((500, 2))
    words_of = words_by_block(as_randomness(7, 500), points, 2, "p")
    last, first = words_of(slice(300, 500)), words_of(slice(0, 300))
    np.testing.assert_array_equal(np.vstack([first, last]), as_randomness(7, 500).words(points, 2, "p"))


def test_blocks_of_fresh_words_have_nothing_in_common() -> None:
    words_of = words_by_block(SYSTEM, np.zeros((500, 2)), 2, "p")
    words = np.vstack([words_of(slice(0, 250)), words_of(slice(250, 500)), words_of(slice(250, 500))])
    assert words.shape == (750, 2)
    assert len(np.unique(words)) == words.size


@pytest.mark.parametrize("shape", [(3, 2), (40, 2), (20_000, 2)])
def test_every_byte_of_every_fresh_word_is_drawn(shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory that was never written would hold what was there before."""
    monkeypatch.setattr(np, "empty", np.zeros)
    drawn = np.array(
        [SYSTEM.words(np.zeros((shape[0], 2)), shape[1], "").view(np.uint8).ravel() for _ in range(12)]
    )
    assert drawn.shape == (12, 16 * shape[0])
    # Twelve bytes that are drawn are never all the same.
    assert (np.ptp(drawn, axis=0) > 0).all()


@pytest.mark.parametrize("seed", [0, 1, np.int64(0), np.uint8(7)], ids=repr)
def test_every_whole_number_that_is_not_negative_is_a_seed(seed: int) -> None:
    words = as_randomness(seed, 4).words(POINTS, 2, "")
    expected = as_randomness(np.random.default_rng(int(seed)), 4).words(POINTS, 2, "")
    np.testing.assert_array_equal(words, expected)


@pytest.mark.parametrize("labels", [np.arange(5), list("abcde"), [b"a", "b", b"c", "d", b"e"], (1, 2, 3, 4, 5)])
@pytest.mark.parametrize(
    "rows", [slice(1, 4), slice(0, 0), np.array([True, False, True, True, False]), np.zeros(5, bool)], ids=repr
)
def test_some_of_the_records_keep_their_words(labels: Any, rows: Any) -> None:
    points = np.arange(10.0).reshape(5, 2)
    keyed = KeyedRandomness(KEY, labels)
    some = keyed.only(rows)
    np.testing.assert_array_equal(some.words(points[rows], 3, "p"), keyed.words(points, 3, "p")[rows])
    kept = np.arange(5)[rows].tolist()
    assert list(some.labels) == [labels[row] for row in kept]
    assert some.key == KEY
    for place, row in enumerate(kept):
        assert some.further(place, points[row], "p", 2) == keyed.further(row, points[row], "p", 2)


@pytest.mark.parametrize("count", [4, 6])
def test_a_mask_of_records_has_one_entry_per_label(count: int) -> None:
    with pytest.raises(InvalidInputError, match=f"one per point: 5 for {count}"):
        KeyedRandomness(KEY, np.arange(5)).only(np.ones(count, bool))


def test_further_words_of_a_generator_and_of_the_system_are_fresh_pairs() -> None:
    for source in (as_randomness(7, 1), SYSTEM):
        pairs = [source.further(0, POINTS[0], "p", number) for number in range(50)]
        words = [word for pair in pairs for word in pair]
        assert [len(pair) for pair in pairs] == [2] * 50
        assert len(set(words)) == 100
        # As large as 64 bits are, and no larger.
        assert 2**63 < max(words) < 2**64
    assert as_randomness(7, 1).further(0, POINTS[0], "p", 0) == as_randomness(7, 1).further(0, POINTS[0], "p", 9)
