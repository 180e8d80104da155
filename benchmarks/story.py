"""How fast the story answers in a browser that has no server behind it, and its picture for the docs.

python3 dev.py bench story            prints the table, writes docs/benchmarks/story.md and docs/figures/story.png
"""

import shutil
import statistics
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from webdemo.static_build import write_static

DOCS = Path(__file__).resolve().parent.parent / "docs"
TIMES = 30

# From a question to the frame that shows its answer; a bare frame for comparison.
CLICK = """
(id) => new Promise(done => {
    const start = performance.now();
    if (id) document.getElementById(id).click();
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
})
"""


def measure(page: Page) -> dict[str, list[float]]:
    """Milliseconds from a click to the drawn answer, for each kind of question."""
    times = {"a bare frame": [page.evaluate(CLICK, "") for _ in range(TIMES)]}
    for what, view, button in (
        ("one report, belief on both maps", "card=2", "redraw"),
        ("here or there", "card=3", "redraw"),
        ("asked once more", "card=4", "ask-once"),
        ("a person hides again", "part=guess", "hide-again"),
    ):
        page.evaluate("(view) => { location.hash = view; }", view)
        page.wait_for_timeout(200)
        times[what] = []
        for _ in range(TIMES):
            if page.locator(f"#{button}").get_attribute("aria-disabled") == "true":
                page.locator("#start-over").click()
            times[what].append(page.evaluate(CLICK, button))
    return times


def main() -> None:
    """Write the story into a folder, open it, measure, take the picture."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        size = sum(path.stat().st_size for path in write_static(Path(folder)))
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
        page.goto(Path(folder, "index.html").as_uri())
        times = measure(page)
        page.evaluate("() => { location.hash = 'card=4&seed=3'; }")
        page.wait_for_timeout(200)
        page.locator("#bet").fill("30")
        page.locator("#play").click()
        page.locator("#chart svg").wait_for()
        picture = DOCS / "figures" / "story.png"
        page.screenshot(path=picture)
        Image.open(picture).convert("RGB").quantize(256, Image.Quantize.FASTOCTREE).save(picture, optimize=True)
        browser.close()
    bare = statistics.median(times["a bare frame"])
    lines = ["| what | fastest | median | median, times a bare frame |", "| --- | --- | --- | --- |"]
    for name, taken in times.items():
        median = statistics.median(taken)
        lines.append(f"| {name} | {min(taken):.0f} ms | {median:.0f} ms | {median / bare:.1f} |")
    table = "\n".join(lines)
    print(table)
    (DOCS / "benchmarks" / "story.md").write_text(
        "# The story: how fast it answers without a server\n\n"
        f"From a click to the frame that shows the answer in Chromium, {TIMES} clicks each, opened from a disk: a "
        f"folder of {size / 1000:.0f} kB. By `python3 dev.py bench story`, on a busy machine.\n\n{table}\n"
    )


if __name__ == "__main__":
    main()
