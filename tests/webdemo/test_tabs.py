"""The tabs beside Explore, in a browser."""

import re

import pytest
from playwright.sync_api import Page, expect

from geoind.maps import TRUTH
from tests.webdemo.browser import answered, click_map, number, sent, set_slider, settle, show


def test_near_me_retrieves_keeps_and_says_what_it_costs(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "near")
    kept = number(watched.locator("#kept"))
    expect(watched.locator("#nearest li")).to_have_count(min(5, int(kept)))
    assert number(watched.locator("#retrieved")) >= kept
    expect(watched.locator(".circle-report")).to_have_count(1)
    expect(watched.locator(".circle-truth")).to_have_count(1)
    expect(watched.locator("#near-sentence")).to_contain_text("With probability at least 0.95")
    cost = number(watched.locator("#overhead"))
    set_slider(watched, "confidence", 99)
    expect(watched.locator("#confidence-out")).to_have_text("99 %")
    expect(watched.locator("#near-sentence")).to_contain_text("at least 0.99, everything within 150 m")
    assert number(watched.locator("#overhead")) > cost
    expect(watched.locator("#missed")).to_have_text(re.compile(r"none|\d+"))
    # Counts end where the map ends, and say so.
    set_slider(watched, "radius", 200)
    expect(watched.locator("#near-outside")).to_contain_text("lies beyond this map")
    # What is missed has the colour that its key has.
    set_slider(watched, "confidence", 50)
    settle(watched)
    for _ in range(40):
        watched.get_by_role("button", name="Ask again with new noise").click()
        settle(watched)
        if watched.locator("#missed").inner_text() != "none":
            break
    edges: list[str] = watched.evaluate(
        "() => { const found = []; demo_map.eachLayer(({options}) => {"
        " if (options.stroke && options.radius === 5) found.push(options.color); }); return found; }"
    )
    assert len(edges) == number(watched.locator("#missed"))
    assert {*edges} == {TRUTH}
    set_slider(watched, "radius", 100)
    set_slider(watched, "confidence", 99)
    set_slider(watched, "query-radius", 300)
    expect(watched.locator("#near-sentence")).to_contain_text("everything within 300 m")
    with watched.expect_request(lambda request: request.url.endswith("/api/near")) as asked:
        watched.get_by_label("Looking for").select_option("anything")
    assert sent(asked.value)["kind"] == "any"
    with answered(watched, "/api/near"):
        watched.get_by_role("button", name="Ask again with new noise").click()


def test_the_mean_of_fresh_answers_converges_until_the_ledger_refuses(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "again")
    expect(watched.locator("#mean-error")).to_have_text("145 m")
    set_slider(watched, "budget", 10)
    watched.get_by_role("button", name="Ask until refused").click()
    expect(watched.locator("#again-verdict")).to_contain_text("Refused: the budget of 10 reports")
    expect(watched.locator("#answers")).to_have_text("10")
    expect(watched.locator("#again-together")).to_contain_text("the 10 paid answers together")
    expect(watched.locator("#meter-out")).to_have_text("0 %")
    assert watched.locator("#meter").evaluate("meter => meter.value") == 0
    watched.get_by_role("button", name="Ask once").click()
    expect(watched.locator("#answers")).to_have_text("10")
    watched.get_by_role("button", name="Start over").click()
    expect(watched.locator("#answers")).to_have_text("0")
    expect(watched.locator("#meter-out")).to_have_text("100 %")


def test_the_same_report_reveals_nothing_more_and_costs_once(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "again")
    set_slider(watched, "budget", 5)
    watched.get_by_label("the same report").check()
    watched.get_by_role("button", name="Ask once").click()
    expect(watched.locator("#answers")).to_have_text("1")
    error = watched.locator("#average-error").inner_text()
    watched.get_by_role("button", name="Ask until refused").click()
    expect(watched.locator("#answers")).to_have_text("6")
    expect(watched.locator("#meter-out")).to_have_text("80 %")
    expect(watched.locator("#again-verdict")).to_contain_text("learns nothing")
    assert number(watched.locator("#average-error")) > 0
    assert error


def test_a_drawn_walk_is_compared(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "trace")
    expect(watched.locator("#budgeted-count")).to_have_text("5")
    watched.get_by_role("button", name="Draw a new path").click()
    expect(watched.locator(".dot-truth")).to_have_count(0)
    expect(watched.get_by_role("button", name="Walk again")).to_be_disabled()
    for x, y in ((0.4, 0.4), (0.6, 0.4), (0.6, 0.6)):
        click_map(watched, x, y)
    expect(watched.locator(".dot-truth")).to_have_count(3)
    set_slider(watched, "trace-budget", 3)
    expect(watched.locator("#budgeted-count")).to_have_text("3")
    set_slider(watched, "step", 50)
    expect(watched.locator("#step-out")).to_have_text("50 m")
    expect(watched.locator("#budgeted-factor")).to_have_text("64 ×")
    expect(watched.locator("#map-summary")).to_contain_text("with 3 reports in all")
    set_slider(watched, "trace-budget", 1)
    expect(watched.locator("#trace-budget-out")).to_have_text("1 report")
    expect(watched.locator("#map-summary")).to_contain_text("with 1 report in all")
    settle(watched)
    seeds = []
    for _ in range(2):
        with watched.expect_request(lambda request: request.url.endswith("/api/trace")) as asked:
            watched.get_by_role("button", name="Walk again").click()
        seeds.append(sent(asked.value)["seed"])
        settle(watched)
    assert seeds[0] != seeds[1]
    watched.get_by_label("Each step").uncheck()
    expect(watched.locator(".line-naive")).to_have_count(0)
    watched.get_by_label("Budgeted").uncheck()
    expect(watched.locator(".line-budgeted")).to_have_count(0)
    watched.get_by_role("button", name="Undo a corner").click()
    expect(watched.locator(".dot-truth")).to_have_count(2)


def test_compare_opens_where_cloaking_fails_and_switches_priors_mechanisms_and_measures(
    watched: Page, demo_url: str
) -> None:
    watched.set_viewport_size({"width": 820, "height": 1180})
    show(watched, demo_url, "compare")
    finding = watched.locator("#compare-finding")
    expect(finding).to_contain_text("planar Laplace keeps the observer 55 m off, cloaking 0 m")
    # Readable on a tablet: no word is smaller than 12 px.
    sizes = watched.locator(".bars span, .bars b").evaluate_all(
        "words => words.map(word => parseFloat(getComputedStyle(word).fontSize))"
    )
    assert min(sizes) >= 12
    asked: list[str] = []
    watched.on("request", lambda request: asked.extend([request.url] if "/api/" in request.url else []))
    watched.get_by_label("uniform", exact=True).check()
    expect(finding).to_have_text("Uniform: cloaking and planar Laplace both keep the observer 107 m off.")
    watched.get_by_label("In detail").select_option("cloaking")
    expect(watched.locator("#comparison .card h2").nth(2)).to_have_text("Cloaking")
    watched.get_by_label("Measure").select_option("measured epsilon")
    expect(watched.locator("#comparison .card h2").first).to_have_text("Measured epsilon of each mechanism")
    expect(watched.locator("#comparison .card").first).to_contain_text("∞")
    watched.get_by_label("the prior at hand").check()
    # The bars are a list of choices, for keys as well.
    first = watched.get_by_role("list", name="measured epsilon by mechanism")
    first.get_by_role("button", name="cloaking").focus()
    watched.keyboard.press("End")
    watched.keyboard.press("Enter")
    expect(watched.locator("#mechanism")).to_have_value("dummies")
    expect(watched.get_by_role("button", name="dummies")).to_be_focused()
    watched.get_by_role("list", name="measured epsilon by prior").get_by_role(
        "button", name="four corners"
    ).click()
    expect(watched.get_by_label("four corners", exact=True)).to_be_checked()
    expect(watched).to_have_url(
        re.compile(r"(?=.*prior=four\+corners)(?=.*mechanism=dummies)(?=.*equalised=evaluated)(?=.*measure=)")
    )
    assert asked == []


def test_four_mechanisms_meet_the_same_place_at_the_same_cost(watched: Page, demo_url: str) -> None:
    with answered(watched, "/api/mechanisms") as first:
        show(watched, demo_url, "compare")
    found = first.value.json()["mechanisms"]
    assert [one["name"] for one in found] == ["cloaking", "Gaussian", "planar Laplace", "optimal"]
    assert {round(one["cost"]) for one in found} <= {round(found[0]["cost"]) + step for step in (-1, 0, 1)}
    assert found[0]["epsilon"] is None
    assert found[3]["epsilon"] < found[2]["epsilon"] < found[1]["epsilon"]
    for one in found:
        for share in ("reports", "belief"):
            assert sum(one[share]) == pytest.approx(1, abs=1e-4)
    expect(watched.locator("#four svg")).to_have_count(4)
    expect(watched.locator("#four .truth")).to_have_count(4)
    expect(watched.locator("#four figcaption").first).to_contain_text("ε unbounded")
    expect(watched.locator("#four .falls").first).to_be_visible()
    watched.get_by_label("what an observer believes after one").check()
    expect(watched.locator("#four .falls")).to_have_count(0)
    expect(watched.get_by_role("img", name=re.compile("cloaking: what an observer believes"))).to_be_visible()
    with answered(watched, "/api/mechanisms") as second:
        watched.locator("#mechanisms-place").click()
    settle(watched)
    assert sent(second.value.request)["lat"] != sent(first.value.request)["lat"]
    with answered(watched, "/api/mechanisms"):
        watched.locator("#mechanisms-redraw").click()
