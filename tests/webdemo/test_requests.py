import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import uvicorn

from geoind import Ledger, SamePlace
from webdemo.backend_example import BUDGET, create_backend

MOST_SENT = 64 << 20
"""Far beyond what the buffers of two sockets hold."""


@pytest.fixture(scope="module")
def backend_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("backend")
    with contextlib.closing(Ledger(f"sqlite:///{folder}/budgets.db", budget=BUDGET)) as ledger:
        app = create_backend(ledger, SamePlace(bytes(32), cell=100), "http://127.0.0.1:9/")
        with contextlib.closing(socket.socket()) as listening:
            listening.bind(("127.0.0.1", 0))
            server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
            thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
            thread.start()
            while not server.started:
                time.sleep(0.01)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/nearby"
            server.should_exit = True
            thread.join()


@pytest.fixture(params=["demo", "backend"])
def address(request: pytest.FixtureRequest) -> str:
    if request.param == "backend":
        return str(request.getfixturevalue("backend_url"))
    return str(request.getfixturevalue("demo_url")).rstrip("/") + "/api/explore"


def answer_to(address: str, headers: str, parts: Iterator[bytes]) -> tuple[int, int]:
    """Return the status of the answer, and how many bytes were sent until it came."""
    place = urlsplit(address)
    sent = 0
    with socket.create_connection((place.hostname, place.port), timeout=60) as wire:
        head = f"POST {place.path} HTTP/1.1\r\nHost: {place.hostname}\r\nContent-Type: application/json\r\n"
        wire.sendall((head + "X-Person: ana\r\n" + headers + "\r\n\r\n").encode())
        with contextlib.suppress(ConnectionError):
            for part in parts:
                wire.sendall(part)
                sent += len(part)
        answer = b""
        with contextlib.suppress(ConnectionError):
            answer = wire.recv(100)
    return int(answer.split()[1]) if answer else 0, sent


def test_a_length_that_is_too_large_is_refused_before_the_body_is_sent(address: str) -> None:
    assert answer_to(address, "Content-Length: 600000000", iter(()))[0] == 413


def test_a_body_without_a_length_is_counted_and_refused_while_it_comes(address: str) -> None:
    chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    status, sent = answer_to(address, "Transfer-Encoding: chunked", iter([chunk] * (MOST_SENT // len(chunk))))
    # Where the server closes the connection while more is sent, the answer can be lost.
    assert status in (413, 0)
    assert sent < MOST_SENT
    status, _ = answer_to(address, "Transfer-Encoding: chunked", iter([chunk, chunk]))
    assert status in (413, 0)


def test_an_ordinary_body_arrives_whole_in_pieces(address: str) -> None:
    body = b'{"lat": 95, "lon": 24.9423}'
    pieces = [b"1\r\n" + bytes([byte]) + b"\r\n" for byte in body]
    assert answer_to(address, "Transfer-Encoding: chunked", iter([*pieces, b"0\r\n\r\n"]))[0] == 422


@pytest.mark.parametrize("value", ["true", "false", '"60.17"', "null", "[1]"])
def test_what_is_not_a_number_is_not_a_latitude(address: str, value: str) -> None:
    body = f'{{"lat": {value}, "lon": 24.9423}}'.encode()
    assert answer_to(address, f"Content-Length: {len(body)}", iter([body]))[0] == 422
