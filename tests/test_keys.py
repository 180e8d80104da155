import hashlib
import os
import pickle
import stat
from functools import partial
from pathlib import Path

import pytest

from geoind import InvalidInputError
from geoind.keys import VARIABLE, Key, as_key, key_of_place

SECRET = hashlib.sha256(b"a key for tests").digest()


def shown(secret: bytes) -> list[str]:
    return [secret.hex(), repr(secret), str(list(secret))[1:-1]]


def test_a_key_shows_its_place_and_fingerprint_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, SECRET.hex())
    (tmp_path / "key").write_text(SECRET.hex() + "\n")
    (tmp_path / "key").chmod(0o600)
    (tmp_path / "raw").write_bytes(SECRET)
    (tmp_path / "raw").chmod(0o600)
    files = [tmp_path / "key", tmp_path / "raw"]
    keys = [Key(SECRET), Key.from_hex(SECRET.hex()), Key.in_variable(), *map(Key.in_file, files)]
    places = ["memory", "memory", VARIABLE, *map(str, files)]
    for key, place in zip(keys, places, strict=True):
        assert place in repr(key)
        assert not any(form in f"{key!r} {key}" for form in shown(SECRET))
        assert key.read() == SECRET
        assert key == keys[0]
        assert hash(key) == hash(keys[0])
    assert [key.file for key in keys] == [None, None, None, *files]
    assert Key(bytes(32)) != keys[0]


def test_only_a_key_in_memory_travels_with_its_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, SECRET.hex())
    (tmp_path / "key").write_text(SECRET.hex())
    (tmp_path / "key").chmod(0o600)
    assert SECRET in pickle.dumps(Key(SECRET))
    for key in (Key.in_variable(), Key.in_file(tmp_path / "key")):
        pickled = pickle.dumps(key)
        assert SECRET not in pickled
        assert SECRET.hex().encode() not in pickled
        assert pickle.loads(pickled).read() == SECRET


def test_a_worker_with_another_key_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(SECRET.hex())
    (tmp_path / "key").chmod(0o600)
    key = Key.in_file(tmp_path / "key")
    (tmp_path / "key").write_text(bytes(32).hex())
    (tmp_path / "key").chmod(0o600)
    with pytest.raises(InvalidInputError, match="is not the key of this job"):
        key.read()
    (tmp_path / "key").unlink()
    with pytest.raises(InvalidInputError, match="cannot be read on this machine"):
        key.read()


def test_a_new_file_is_private_and_never_overwritten(tmp_path: Path) -> None:
    first = Key.new_file(tmp_path / "a")
    assert first != Key.new_file(tmp_path / "b")
    if os.name == "posix":
        assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600
    with pytest.raises(InvalidInputError, match="is not overwritten"):
        Key.new_file(tmp_path / "a")
    assert Key.in_file(tmp_path / "a") == first


def test_each_file_of_a_dataset_has_a_key_of_its_own() -> None:
    keys = {Key(SECRET).for_file(path) for path in ("a.parquet", "b.parquet", "x/a.parquet")}
    assert len(keys | {SECRET}) == 4
    assert Key(SECRET).for_file("a") == Key(SECRET).for_file("a")


@pytest.mark.parametrize("text", ["", "0123", "zz" * 32, "ab" * 33])
def test_a_message_about_a_bad_key_does_not_quote_it(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, text)
    for read in (Key.in_variable, partial(Key.from_hex, text)):
        with pytest.raises(InvalidInputError, match="64 hexadecimal digits") as caught:
            read()
        assert not text or text not in str(caught.value)
        assert caught.value.__suppress_context__


def test_a_secret_is_32_bytes() -> None:
    for secret in (b"short", "x" * 32, None):
        with pytest.raises(InvalidInputError, match="32 bytes"):
            as_key(secret)  # type: ignore[arg-type]


def test_the_error_for_a_key_as_text_names_what_reads_text() -> None:
    with pytest.raises(InvalidInputError, match=r"Key\.from_hex") as caught:
        Key(SECRET.hex())  # type: ignore[arg-type]
    assert SECRET.hex() not in str(caught.value)


@pytest.mark.skipif(os.name != "posix", reason="only POSIX has such modes")
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o620, 0o602, 0o777])
def test_a_key_file_that_others_can_read_or_write_is_refused(mode: int, tmp_path: Path) -> None:
    Key.new_file(tmp_path / "key")
    (tmp_path / "key").chmod(mode)
    with pytest.raises(InvalidInputError, match="must be readable by its owner only: chmod 600"):
        Key.in_file(tmp_path / "key")


def test_each_further_place_of_a_row_has_a_key_of_its_own() -> None:
    keys = [key_of_place(secret, number) for secret in (SECRET, bytes(32)) for number in (1, 2, 10)]
    assert len({*keys, SECRET, bytes(32)}) == 8
    assert {len(key) for key in keys} == {32}
    assert key_of_place(SECRET, 2) == keys[1]


def test_dask_tokens_differ_by_key_and_by_place(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(SECRET.hex())
    (tmp_path / "key").chmod(0o600)
    tokens = [key.__dask_tokenize__() for key in (Key(SECRET), Key(bytes(32)), Key.in_file(tmp_path / "key"))]
    assert len(set(tokens)) == 3
    assert Key(SECRET).__dask_tokenize__() == tokens[0]
    assert not any(form in str(tokens) for form in shown(SECRET))


def test_a_key_is_no_other_thing_with_the_same_fingerprint() -> None:
    class Posing:
        fingerprint = Key(SECRET).fingerprint

    assert Key(SECRET) != Posing()
    assert Key(SECRET) != SECRET


@pytest.mark.skipif(os.name != "posix", reason="only POSIX lists open files")
def test_no_key_file_stays_open(tmp_path: Path) -> None:
    before = len(list(Path("/dev/fd").iterdir()))
    for number in range(3):
        Key.new_file(tmp_path / str(number)).read()
    assert len(list(Path("/dev/fd").iterdir())) == before
