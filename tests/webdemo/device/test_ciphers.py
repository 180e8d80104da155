"""The device's AES-256 and BLAKE2b against those of Python."""

import hashlib
import secrets
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from .conftest import Script

RUN = """
const [{ aes256 }, { blake2b }] = [await source("aes"), await source("blake2b")];
const bytes = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (byte) => parseInt(byte, 16));
const hex = (array) => Buffer.from(array.buffer).toString("hex");
return given.map(({ key, block, message, size, person }) => [
    hex(aes256(bytes(key))(...new Uint32Array(bytes(block).buffer))),
    hex(blake2b(bytes(message), { key: bytes(key), size, person })),
]);
"""


def test_blocks_and_digests_are_those_of_python(script: Script) -> None:
    lengths = [0, 1, 15, 16, 127, 128, 129, 255, 256, 257, 1000]
    given: list[dict[str, Any]] = [
        {
            "key": secrets.token_hex(32),
            "block": secrets.token_hex(16),
            "message": secrets.token_hex(lengths[i % len(lengths)]),
            "size": (16, 32, 64)[i % 3],
            "person": ("", "geoind words 2", "geoind traveller")[i % 3],
        }
        for i in range(200)
    ]
    for case, (block, digest) in zip(given, script(RUN, given), strict=True):
        key, message, person = (
            bytes.fromhex(case["key"]),
            bytes.fromhex(case["message"]),
            case["person"].encode(),
        )
        cipher = Cipher(algorithms.AES256(key), modes.ECB()).encryptor()
        assert block == cipher.update(bytes.fromhex(case["block"])).hex()
        assert digest == hashlib.blake2b(message, key=key, digest_size=case["size"], person=person).hexdigest()
