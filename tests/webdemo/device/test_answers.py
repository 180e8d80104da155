"""The device has the known answers of Python, in Node and Chromium, from the module and the classic script."""

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route

from .conftest import DEVICE, Script

FOLDER = Path(__file__).parent
ANSWERS = json.loads((FOLDER.parents[1] / "known_answers.json").read_text("utf-8"))
RUNNER = (FOLDER / "answers.js").read_text("utf-8")
INLINE = RUNNER.replace("export ", "")


def damaged() -> dict[str, Any]:
    """Return the answers, each of another place."""
    wrong = json.loads(json.dumps(ANSWERS))
    for case in wrong["lonlat"] + wrong["same places"] + wrong["city"]["records"]:
        case["report"][0] += 1e-5
    for name in wrong["reports"]:
        wrong["reports"][name] = [[lon + 1e-5, lat] for lon, lat in wrong["reports"][name]]
    for case in wrong["sessions"]:
        case["state"]["seen"] = ""
    return dict(wrong)


def test_node_has_the_known_answers(script: Script) -> None:
    run = f"{INLINE}; return differences(geoind, given)"
    assert script(run, ANSWERS) == []
    cases = ANSWERS["lonlat"] + ANSWERS["same places"] + ANSWERS["city"]["records"] + ANSWERS["sessions"]
    assert len(script(run, damaged())) == 12 + len(cases)


@pytest.fixture
def device_page(page: Page) -> Page:
    """A page whose address gives the files of the device."""

    def answer(route: Route) -> None:
        name = route.request.url.rpartition("/")[2]
        kind = "text/javascript" if name else "text/html"
        route.fulfill(body=(DEVICE / name).read_text("utf-8") if name else "<title>x</title>", content_type=kind)

    page.route("http://device.test/**", answer)
    page.goto("http://device.test/")
    return page


def test_chromium_has_the_known_answers(device_page: Page) -> None:
    run = f"async (answers) => {{ {INLINE}; return differences(await import('/geoind.js'), answers); }}"
    assert device_page.evaluate(run, ANSWERS) == []


def test_the_classic_script_has_the_known_answers(device_page: Page) -> None:
    device_page.add_script_tag(url="/geoind.classic.js")
    assert (
        device_page.evaluate(f"(answers) => {{ {INLINE}; return differences(geoind, answers); }}", ANSWERS) == []
    )


def test_words_of_every_kind_of_label_are_those_of_python(script: Script) -> None:
    labels: dict[str, list[Any]] = {
        "whole numbers": [0, 1, -1, str(2**63 - 1)],
        "unsigned numbers": [0, 1, str(2**63), str(2**64 - 1)],
        "text": ["", "a", "exactly 16 bytes", "seventeen bytes !"],
        "text of many bytes": ["Zoë", "東京都", "x" * 1000, "a\0"],
        "bytes": [list(b""), list(b"a"), [255], list(b"exactly 16 bytes")],
    }
    run = """
    const { keyedWords } = await source("randomness");
    const key = Uint8Array.from({ length: 32 }, (_, i) => i);
    const half = (number) => number.toString(16).padStart(8, "0");
    const hex = (words, at) => half(words[at + 1]) + half(words[at]);
    return Object.fromEntries(Object.entries(given).map(([name, labels]) => [name, labels.map((label, i) => {
        const place = [[0, 0], [2.2945, 48.8584], [-180, -90], [13, 89.99999]][i];
        const big = name.endsWith("numbers") ? BigInt(label) : label;
        const words = keyedWords(key, Array.isArray(label) ? Uint8Array.from(label) : big, place, "a purpose");
        return [words(0, 0), words(1, 0), words(i, 1)].flatMap((pair) => [hex(pair, 0), hex(pair, 2)]);
    })]));
    """
    for name, found in script(run, labels).items():
        wanted = zip(ANSWERS["words"][name], ANSWERS["further words"][name], strict=True)
        assert found == [[*first, *further] for first, further in wanted], name
