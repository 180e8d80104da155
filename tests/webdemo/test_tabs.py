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
    settle(watched)
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
    expect(watched.locator("#budgeted-factor")).to_have_text("×64")
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


def test_compare_opens_on_a_city_and_shows_cost_against_privacy(watched: Page, demo_url: str) -> None:
    watched.set_viewport_size({"width": 820, "height": 1180})
    show(watched, demo_url, "compare")
    finding = watched.locator("#finding")
    expect(finding).to_contain_text(
        "planar Laplace costs 111 m and keeps the observer 111 m off; cloaking costs 110 m"
    )
    # Readable on a tablet: no word is smaller than 12 px.
    sizes = watched.locator(".scatter text, .reasons li").evaluate_all(
        "words => words.map(word => parseFloat(getComputedStyle(word).fontSize))"
    )
    assert min(sizes) >= 12
    points = watched.locator(".scatter .point")
    expect(watched.locator(".scatter .point:not(.other)")).to_have_count(5)
    # Each point lies at its cost and its privacy: none above the diagonal, on which the report is the best guess.
    diagonal = watched.locator(".scatter .limit").evaluate(
        "line => [line.x1, line.y1, line.x2, line.y2].map(at => at.baseVal.value)"
    )
    slope = (diagonal[3] - diagonal[1]) / (diagonal[2] - diagonal[0])
    for x, y in points.evaluate_all("all => all.map(one => [one.cx.baseVal.value, one.cy.baseVal.value])")[:-1]:
        assert y >= diagonal[1] + slope * (x - diagonal[0]) - 1 or x == diagonal[0], "dummies cost no distance"
    asked: list[str] = []
    watched.on("request", lambda request: asked.extend([request.url] if "/api/" in request.url else []))
    watched.get_by_label("zone centres", exact=True).check()
    expect(finding).to_have_text(
        "Zone centres: planar Laplace costs 113 m and keeps the observer 55 m off; "
        "cloaking costs 0 m and keeps the observer 0 m off."
    )
    reasons = watched.get_by_role("list", name="Why each mechanism exists")
    expect(reasons.get_by_role("listitem")).to_have_count(5)
    expect(reasons.get_by_role("listitem").first).to_contain_text("ε unbounded")
    reasons.get_by_role("button", name="cloaking").focus()
    watched.keyboard.press("Enter")
    expect(reasons.get_by_role("button", name="cloaking")).to_be_focused()
    expect(watched.locator("#mechanism")).to_have_value("cloaking")
    expect(watched.locator("#comparison .card h2").nth(2)).to_have_text("Cloaking")
    watched.get_by_label("In detail").select_option("dummies")
    expect(watched.locator("#comparison .card h2").nth(2)).to_have_text("Dummies")
    expect(watched.get_by_role("row", name="cloaking")).to_contain_text("5 – 4 – 1")
    expect(watched.get_by_role("row", name="cloaking")).to_contain_text("3 – 6 – 1")
    watched.get_by_label("the prior at hand").check()
    expect(watched).to_have_url(
        re.compile(r"(?=.*prior=zone\+centres)(?=.*mechanism=dummies)(?=.*equalised=evaluated)")
    )
    assert asked == []


def test_four_mechanisms_meet_the_same_place_at_the_same_cost(watched: Page, demo_url: str) -> None:
    with answered(watched, "/api/mechanisms") as first:
        show(watched, demo_url, "compare")
    found = first.value.json()["mechanisms"]
    names = ["cloaking", "optimal for the prior", "planar Laplace", "optimal geo-ind"]
    assert [one["name"] for one in found] == names
    assert {round(one["cost"]) for one in found} <= {round(found[0]["cost"]) + step for step in (-1, 0, 1)}
    assert found[0]["epsilon"] is found[1]["epsilon"] is None
    assert found[3]["epsilon"] < found[2]["epsilon"]
    for one in found:
        for share in ("reports", "belief"):
            assert sum(one[share]) == pytest.approx(1, abs=1e-4)
    expect(watched.locator("#four svg")).to_have_count(4)
    expect(watched.locator("#four .truth")).to_have_count(4)
    expect(watched.locator("#four figcaption").first).to_contain_text("ε unbounded")
    expect(watched.get_by_role("img", name=re.compile("cloaking: what an observer believes"))).to_be_visible()
    # Only mechanisms without an epsilon rule cells out.
    crosses = watched.locator("#four figure").evaluate_all(
        "all => all.map(figure => figure.querySelectorAll('.excluded').length)"
    )
    assert crosses == [len(one["excluded"]) for one in found]
    assert crosses[0] > 60
    assert crosses[2:] == [0, 0]
    watched.get_by_label("where your reports fall").check()
    expect(watched.locator("#four .falls").first).to_be_visible()
    expect(watched.locator("#four .excluded")).to_have_count(0)
    with answered(watched, "/api/mechanisms") as second:
        watched.locator("#mechanisms-place").click()
    settle(watched)
    assert sent(second.value.request)["lat"] != sent(first.value.request)["lat"]
    with answered(watched, "/api/mechanisms"):
        watched.locator("#mechanisms-redraw").click()
