"""How fast the demo answers a click, in a real browser, and its picture for the docs.

python3 dev.py bench demo            prints the table, writes docs/benchmarks/demo.md and docs/figures/demo.png
"""

import os
import shutil
import socket
import statistics
import threading
from pathlib import Path

import uvicorn
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from webdemo.app import create_app

DOCS = Path(__file__).resolve().parent.parent / "docs"
CLICKS = 30
REST = 200
"""Milliseconds between two clicks, faster than a person."""

# From the click to the next frame after the numbers and the overlays have changed.
CLICK = """
(id) => new Promise(done => {
    const box = demo_base.getBounds().pad(-0.3);
    const at = L.latLng(box.getSouth() + Math.random() * (box.getNorth() - box.getSouth()),
                        box.getWest() + Math.random() * (box.getEast() - box.getWest()));
    const start = performance.now();
    const seen = new MutationObserver(() => {
        seen.disconnect();
        requestAnimationFrame(() => done(performance.now() - start));
    });
    seen.observe(document.getElementById(id), {childList: true, characterData: true, subtree: true});
    demo_map.fire('click', {latlng: at});
})
"""
BARE = """
async () => { const start = performance.now(); await (await fetch('/static/icon.svg', {cache: 'no-store'})).text();
return performance.now() - start; }
"""


def measure(page: Page, address: str) -> dict[str, list[float]]:
    """Milliseconds from a click to the drawn answer, for each tab, and of a bare request for comparison."""
    times: dict[str, list[float]] = {}
    page.goto(address)
    times["a bare request"] = []
    for _ in range(CLICKS):
        times["a bare request"].append(page.evaluate(BARE))
        page.wait_for_timeout(REST)
    for tab in ("explore", "explore with belief", "near", "trace"):
        name = tab.split()[0]
        page.goto(
            f"{address}?{tab.replace(' ', '')}#tab={name}"
            + ("&show-belief=1&show-remapped=1" if " " in tab else "")
        )
        page.wait_for_load_state("networkidle")
        target = {"explore": "rings", "near": "nearest", "trace": "naive-guess"}[name]
        times[tab] = []
        for _ in range(CLICKS):
            times[tab].append(page.evaluate(CLICK, target))
            if tab == "trace":
                # A click adds a corner to the walk: take it back, or walks of hundreds of steps are measured.
                page.get_by_role("button", name="Undo a corner").click()
            page.wait_for_load_state("networkidle")
            page.locator("#panel:not([aria-busy=true])").wait_for(state="attached")
            page.wait_for_timeout(REST)
    return times


def main() -> None:
    """Serve, measure, take the picture."""
    listener = socket.create_server(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    server = uvicorn.Server(uvicorn.Config(create_app(), log_level="warning", access_log=False))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
            )
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            times = measure(page, address)
            page.goto(f"{address}?picture#tab=explore&show-belief=1&show-cloud=0&seed=25")
            page.wait_for_load_state("networkidle")
            page.wait_for_timeout(500)
            picture = DOCS / "figures" / "demo.png"
            page.screenshot(path=picture)
            Image.open(picture).convert("RGB").quantize(256, Image.Quantize.FASTOCTREE).save(
                picture, optimize=True
            )
            browser.close()
    finally:
        server.should_exit = True
        thread.join()
    lines = ["| what | fastest | median | median, over a bare request |", "| --- | --- | --- | --- |"]
    bare = statistics.median(times["a bare request"])
    for name, taken in times.items():
        median = statistics.median(taken)
        lines.append(f"| {name} | {min(taken):.0f} ms | {median:.0f} ms | {median - bare:.0f} ms |")
    table = "\n".join(lines)
    print(table)
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    busy = f" Other programs kept the machine busy meanwhile (load {load:.0f} on {cores} cores)."
    words = (
        f"From a click to the drawn answer in Chromium, {CLICKS} clicks each, by `python3 dev.py bench demo`."
        f"{busy if load > cores else ''}\n\n{table}\n"
    )
    (DOCS / "benchmarks" / "demo.md").write_text(f"# The demo: how fast it answers\n\n{words}")


if __name__ == "__main__":
    main()
