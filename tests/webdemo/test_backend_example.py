import asyncio
import contextlib
import os
import re
import secrets
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import geopandas
import httpx
import numpy as np
import pytest
from fastapi import FastAPI

from geoind import Ledger, SamePlace, private_query
from geoind.queries import PointsOfInterest
from geoind.queries.points_of_interest import distances_from
from tests.apart import apart
from tests.keywords import Place
from webdemo import backend_example
from webdemo.backend_example import BUDGET, EPSILON, RADIUS, create_backend, create_provider

HOME: Place = {"lat": 48.85841234, "lon": 2.29451234}


def free_port() -> int:
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def serving(factory: str, port: int, log: Path, workers: int, **environment: str) -> Iterator[None]:
    """Run an application of the example under uvicorn."""
    command = [sys.executable, "-m", "uvicorn", "--factory", f"webdemo.backend_example:{factory}"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--port", str(port), "--workers", str(workers)],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
        )
    try:
        for _ in range(1800):
            assert process.poll() is None, log.read_text()
            with contextlib.suppress(httpx.TransportError):
                httpx.get(f"http://127.0.0.1:{port}/openapi.json", trust_env=False)
                break
            time.sleep(0.1)
        else:
            raise AssertionError(log.read_text())
        yield
    finally:
        process.terminate()
        process.wait(30)


@dataclass(frozen=True)
class Town:
    """The example at work."""

    client: httpx.Client
    places: np.ndarray
    provider_log: Path
    backend_log: Path


@pytest.fixture(scope="module")
def places() -> np.ndarray:
    return np.random.default_rng(0).normal([HOME["lon"], HOME["lat"]], 0.01, (3000, 2))


@pytest.fixture
def town(url: str, places: np.ndarray, tmp_path: Path) -> Iterator[Town]:
    """Provider and backend, the latter with two workers."""
    path = tmp_path / "places.parquet"
    geopandas.GeoDataFrame(
        {"name": [f"place {number}" for number in range(len(places))]},
        geometry=geopandas.points_from_xy(*places.T),
        crs=4326,
    ).to_parquet(path)
    provider, backend = free_port(), free_port()
    logs = tmp_path / "provider.log", tmp_path / "backend.log"
    settings = {
        "GEOIND_LEDGER": url,
        "GEOIND_KEY": secrets.token_hex(32),
        "GEOIND_PROVIDER": f"http://127.0.0.1:{provider}/search",
        # Nothing here is about speed.
        "GEOIND_TIMEOUT": "300",
        "no_proxy": "127.0.0.1",
    }
    with (
        serving("provider_from_environment", provider, logs[0], 1, GEOIND_PLACES=str(path)),
        serving("backend_from_environment", backend, logs[1], 2, **settings),
        httpx.Client(base_url=f"http://127.0.0.1:{backend}", trust_env=False, timeout=600) as client,
    ):
        yield Town(client, places, *logs)


def call(app: FastAPI, method: str, path: str, **options: Any) -> httpx.Response:
    """Call an application without a server."""

    async def answer() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://example") as client:
            return await client.request(method, path, **options)

    response: httpx.Response = apart(asyncio.run, answer())
    return response


def ask(town: Town, person: str, **truth: float) -> httpx.Response:
    return town.client.post("/nearby", json=truth or HOME, headers={"X-Person": person})


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_backend_with_several_workers_answers_pays_once_and_sends_the_provider_nothing_else(
    town: Town,
) -> None:
    """One run of everything: starting the servers is what takes the time."""
    first = ask(town, "ana")
    assert first.status_code == 200, first.text
    answer = first.json()
    apart = distances_from(town.places, **HOME)
    wanted = [f"place {number}" for number in np.argsort(apart)[: np.sum(apart <= RADIUS)]]
    found = [place["name"] for place in answer["places"]]
    assert set(found) <= set(wanted)
    assert found == [name for name in wanted if name in set(found)]  # the closest first
    assert answer["remaining"] == pytest.approx(BUDGET - EPSILON)

    # Again from home, whichever worker answers: the same query, at no cost.
    with ThreadPoolExecutor(8) as pool:
        again = list(pool.map(lambda _: ask(town, "ana"), range(24)))
    assert {response.text for response in again} == {first.text}

    # From ever new places: the budget pays for 19 more, whichever workers answer, and not for one more.
    trip = [{"lat": 40 + number / 10, "lon": 3.0} for number in range(30)]
    with ThreadPoolExecutor(8) as pool:
        codes = [response.status_code for response in pool.map(lambda at: ask(town, "ana", **at), trip)]
    assert (codes.count(200), codes.count(429)) == (19, 11)
    refused = ask(town, "ana", lat=10.0, lon=10.0)
    assert refused.status_code == 429
    assert refused.json()["remaining"] == pytest.approx(0, abs=1e-9)
    assert ask(town, "ana").text.startswith(first.text[:60])  # home stays free
    assert ask(town, "ben").status_code == 200

    # What the provider saw: centres that are not the truth, and always the same radius.
    seen = re.findall(
        r"GET /search\?ll=([\d.-]+)%2C([\d.-]+)&radius=(\d+)&limit=50 ", town.provider_log.read_text()
    )
    assert len(seen) == 1 + 24 + 19 + 1 + 1
    assert len({radius for *_, radius in seen}) == 1
    assert len(set(seen)) == 1 + 19 + 1
    centres = np.array([[float(lon), float(lat)] for lat, lon, _ in seen])
    truths = np.array([[HOME["lon"], HOME["lat"]], *[[at["lon"], at["lat"]] for at in trip]])
    assert not {tuple(centre) for centre in centres} & {tuple(truth) for truth in truths}
    assert "48.858412" not in town.provider_log.read_text()
    for log in (town.provider_log, town.backend_log):
        assert "48.85841234" not in log.read_text()
        assert "Traceback" not in log.read_text()

    # What a backend must refuse, without repeating a coordinate.
    for truth, person, code in [
        ({"lat": 91.2345, "lon": 2.0}, "ana", 422),
        ({"lat": "91.2345 north", "lon": 2.0}, "ana", 422),
        ({"lon": 91.2345}, "ana", 422),
        ({"lat": 1.0, "lon": 2.0}, None, 422),
        ({"lat": 1.0, "lon": 2.0}, "", 422),
    ]:
        headers = {"X-Person": person} if person is not None else {}
        bad = town.client.post("/nearby", json=truth, headers=headers)
        assert bad.status_code == code, bad.text
        assert "91.2345" not in bad.text
    spent = town.client.get("/budget", headers={"X-Person": "ben"}).json()
    assert spent == {"remaining": pytest.approx(BUDGET - EPSILON), "lifetime": pytest.approx(EPSILON)}


def test_a_silent_ledger_is_503_and_a_silent_provider_502_and_nothing_is_sent_unpaid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ledger.db"
    ledger = Ledger(f"sqlite:///{path}", budget=BUDGET, timeout=0.1)
    app = create_backend(ledger, SamePlace(bytes(32)), f"http://127.0.0.1:{free_port()}/search")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    silent = call(app, "POST", "/nearby", json=HOME, headers={"X-Person": "ana"})
    assert silent.status_code == 502
    assert ledger.spent("ana") == pytest.approx(EPSILON)  # paid before it was sent
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        locked = call(app, "POST", "/nearby", json=HOME, headers={"X-Person": "ben"})
    assert locked.status_code == 503
    assert ledger.spent("ben") == 0
    ledger.close()


class Answers(BaseHTTPRequestHandler):
    """A provider that answers as it likes, and notes who asked."""

    asked: ClassVar[list[str]] = []
    replies: ClassVar[dict[str, tuple[int, dict[str, str], bytes]]] = {}

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self.asked.append(path)
        status, headers, body = self.replies[path]
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            for start in range(0, len(body), 1000):
                self.wfile.write(body[start : start + 1000])
                time.sleep(0.02 if path == "/slow" else 0)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a real server that gives the answers of `Answers.replies`."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    Answers.asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


PLACES = b'[{"name": "tower", "lat": 48.8584, "lon": 2.2945}]'


@pytest.mark.parametrize(
    ("path", "status", "headers", "body", "detail"),
    [
        ("/moved", 302, {"Location": "/elsewhere"}, PLACES, "wants to send the query elsewhere"),
        ("/moved", 307, {"Location": "http://127.0.0.1:1/steal"}, b"", "wants to send the query elsewhere"),
        ("/broken", 500, {}, b"oh no", "answered with status 500"),
        ("/empty", 204, {}, b"", "answered with status 204"),
        ("/page", 200, {"Content-Type": "text/html"}, b"<html>", "did not answer with places"),
        ("/none", 200, {}, b"", "did not answer with places"),
        ("/object", 200, {}, b'{"error": 7}', "did not answer with places"),
        ("/numbers", 200, {}, b"[1, 2]", "did not answer with places"),
        ("/nan", 200, {}, b'[{"name": "x", "lat": NaN, "lon": 2}]', "did not answer with places"),
        ("/pole", 200, {}, b'[{"name": "x", "lat": 91, "lon": 2}]', "did not answer with places"),
        ("/deep", 200, {}, b"[" * 100_000, "did not answer with places"),
        ("/huge", 200, {}, b" " * 300_000 + PLACES, "answered too much"),
        ("/slow", 200, {}, b" " * 100_000 + PLACES, "is too slow"),
        ("/cut", 200, {"Content-Length": "999"}, PLACES, "does not answer"),
    ],
)
def test_whatever_the_provider_answers_is_places_or_a_502_that_says_why(
    provider: str,
    path: str,
    status: int,
    headers: dict[str, str],
    body: bytes,
    detail: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backend_example, "MOST_BYTES", 200_000)
    Answers.replies = {path: (status, headers, body), "/good": (200, {}, PLACES), "/elsewhere": (200, {}, PLACES)}
    with Ledger("sqlite://", budget=BUDGET) as ledger:
        for address, code in ((path, 502), ("/good", 200)):
            # Half a second for the slow one, however slow the machine is.
            patience = 0.5 if address == "/slow" else 300
            app = create_backend(ledger, SamePlace(bytes(32)), f"{provider}{address}", timeout=patience)
            answer = call(app, "POST", "/nearby", json=HOME, headers={"X-Person": "ana"})
            assert answer.status_code == code, answer.text
            if code == 502:
                assert answer.json() == {"detail": f"the provider {detail}"}
            else:
                assert [place["name"] for place in answer.json()["places"]] in ([], ["tower"])
    assert Answers.asked == [path, "/good"]  # no request was redirected


def test_asyncio_goes_on_while_the_ledger_waits(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    ledger = Ledger(f"sqlite:///{path}", budget=BUDGET)

    async def both() -> int:
        beats = 0
        query: dict[str, Any] = {
            **HOME,
            "radius": RADIUS,
            "epsilon": EPSILON,
            "ledger": ledger,
            "person_id": "ana",
        }
        asked = asyncio.create_task(asyncio.to_thread(private_query, **query))
        while not asked.done():
            await asyncio.sleep(0.02)
            beats += 1
            if beats == 10:
                other.rollback()
        await asked
        return beats

    with contextlib.closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert apart(asyncio.run, both()) >= 10
    assert ledger.spent("ana") == pytest.approx(EPSILON)
    ledger.close()


def test_a_delivery_shares_its_position_until_its_budget_is_used_up(tmp_path: Path) -> None:
    def posted(app: FastAPI, places: list[Place]) -> list[httpx.Response]:
        return [call(app, "POST", "/track", json=place, headers={"X-Person": "ana"}) for place in places]

    with Ledger(f"sqlite:///{tmp_path}/ledger.db", budget=BUDGET) as ledger:
        app = create_backend(ledger, SamePlace(bytes(32)), "http://127.0.0.1:1/search")
        stays = posted(app, [HOME] * 3)
        assert {answer.status_code for answer in stays} == {200}
        shown = [answer.json() for answer in stays]
        assert shown[-1]["remaining"] == pytest.approx(ledger.remaining("ana"))
        assert all((one["lat"], one["lon"]) != (HOME["lat"], HOME["lon"]) for one in shown)
        moves = posted(app, [{"lat": 48.8 - step, "lon": 2.2} for step in range(30)])
        assert (moves[0].status_code, moves[-1].status_code) == (200, 429)
        [refused] = posted(app, [{"lat": 91, "lon": 0}])
        assert refused.status_code == 422
        assert ledger.spent("ana") <= BUDGET


def test_a_position_that_a_later_one_overtook_is_422_and_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with Ledger("sqlite://", budget=BUDGET) as ledger:
        app = create_backend(ledger, SamePlace(bytes(32)), "http://127.0.0.1:1/search")
        spent = []
        for now, status in ((1.7e9, 200), (1.7e9 - 1, 422)):
            monkeypatch.setattr("webdemo.backend_example.time.time", lambda now=now: now)
            answer = call(app, "POST", "/track", json=HOME, headers={"X-Person": "ana"})
            assert answer.status_code == status
            spent.append(ledger.spent("ana"))
        assert "come in order" in answer.json()["detail"]
        assert spent[0] == spent[1] > 0


def test_an_hour_of_a_delivery_is_within_a_days_budget_which_is_shown_after_each_position(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger(f"sqlite:///{tmp_path}/ledger.db", budget=BUDGET, window=timedelta(days=1)) as ledger:
        app = create_backend(ledger, SamePlace(bytes(range(32))), "http://127.0.0.1:1/search")
        shown = []
        for minute in range(61):
            monkeypatch.setattr("webdemo.backend_example.time.time", lambda now=60.0 * minute: 1.7e9 + now)
            north = 8 * 60 * minute / 111_195  # 8 m/s
            place = {"lat": 48.5 + north, "lon": 2.35}
            answer = call(app, "POST", "/track", json=place, headers={"X-Person": "ana"})
            assert answer.status_code == 200
            shown.append(answer.json())
        remaining = [one["remaining"] for one in shown]
        assert remaining == sorted(remaining, reverse=True)
        assert 0 < remaining[-1] < remaining[0] < BUDGET
        left = call(app, "GET", "/budget", headers={"X-Person": "ana"}).json()
        assert left["remaining"] == pytest.approx(remaining[-1])
        # What the customer sees follows the delivery: the last answer is nearer to the end than to the start.
        assert shown[-1]["lat"] > 48.5 + 0.5 * 8 * 3600 / 111_195


def test_the_provider_alone_finds_what_is_near(places: np.ndarray) -> None:
    frame = geopandas.GeoDataFrame(
        {"name": [str(n) for n in range(len(places))]}, geometry=geopandas.points_from_xy(*places.T), crs=4326
    )
    near = {"ll": f"{HOME['lat']},{HOME['lon']}", "radius": 500}
    found = call(create_provider(PointsOfInterest(frame)), "GET", "/search", params=near).json()
    assert len(found) == np.sum(distances_from(places, **HOME) <= 500)
