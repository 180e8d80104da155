"""A page escapes what it shows and runs only its own scripts, whatever gets into it."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from jinja2 import UndefinedError
from markupsafe import Markup
from playwright.sync_api import Page, Request

from geoind.errors import InvalidInputError
from geoind.pictures.page import content_policy, fill, html_page, script_json
from tests.hostile import HOSTILE


class Shown(HTMLParser):
    """The elements of a piece of HTML, and the text of all of them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_a_value_is_shown_as_it_is_and_is_nothing_else(text: str) -> None:
    shown = Shown(fill('<p title="{{ words }}">{{ words }}</p>', words=text))
    assert shown.tags == ["p"]
    readable = text.encode("utf-8", "replace").decode()
    assert shown.text == readable
    assert shown.attributes == [("title", readable)]


def test_what_a_template_gave_is_not_escaped_again() -> None:
    inner = fill("<b>{{ word }}</b>", word="&")
    assert fill("<p>{{ inner }}</p>", inner=inner) == "<p><b>&amp;</b></p>"


def test_a_template_without_one_of_its_values_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        fill("{{ forgotten }}")


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_json_in_a_script_means_the_same_and_cannot_end_it(text: str) -> None:
    written = script_json({text: [text]})
    assert json.loads(written) == {text: [text]}
    assert not re.search("[<>&\\u2028\\u2029]", written)


@pytest.mark.parametrize("text", ["'</script>'", "'</SCRIPT'", "x <!-- y"])
def test_a_script_that_would_end_early_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="must not contain"):
        html_page("t", Markup(), scripts=[text])
    with pytest.raises(InvalidInputError, match="must not contain"):
        html_page("t", Markup(), styles=["</style>"])


def test_a_policy_allows_nothing_but_what_it_names() -> None:
    policy = dict(part.split(" ", 1) for part in content_policy({"img-src": "data:"}).split("; "))
    assert policy.pop("img-src") == "data:"
    assert policy == dict.fromkeys(["default-src", "base-uri", "form-action"], "'none'")
    page = html_page("t", Markup(), scripts=["1"], styles=["b {}"])
    assert "unsafe" not in page
    assert page.index("Content-Security-Policy") < page.index("<title>")


def test_a_page_runs_its_own_scripts_and_styles(watched: Page, tmp_path: Path) -> None:
    script = f"document.title = {script_json(HOSTILE)}.length + ' texts';\r\ndocument.body.append('é\u2028');\r"
    path = tmp_path / "page.html"
    path.write_text(
        html_page("t", Markup("<p>x</p>"), scripts=[script], styles=["p { color:\r\n#010203 }"]), "utf-8"
    )
    watched.goto(path.as_uri())
    assert watched.title() == f"{len(HOSTILE)} texts"
    assert watched.locator("p").evaluate("p => getComputedStyle(p).color") == "rgb(1, 2, 3)"


INJECTED = [
    "<script>window.pwned = 1</script>",
    "<img src=data:, onerror='window.pwned = 1'>",
    "<svg onload='window.pwned = 1'></svg>",
    "<script src='data:text/javascript,window.pwned=1'></script>",
    "<iframe srcdoc='<script>parent.pwned = 1</script>'></iframe>",
    "<a id=link href='javascript:window.pwned = 1'>x</a>",
    "<base href='https://example.org/'><img src=x>",
    "<form id=form action='https://example.org/'><input name=place value=1></form>",
    "<style>@import 'https://example.org/x.css'; p { background: url(https://example.org/x.png) }</style><p>x</p>",
    "<link rel=stylesheet href='https://example.org/x.css'>",
]


def test_html_that_got_into_a_page_runs_nothing_and_sends_nothing(page: Page, tmp_path: Path) -> None:
    asked: list[Request] = []
    page.on("request", lambda request: asked.append(request))
    for number, injected in enumerate(INJECTED):
        path = tmp_path / f"{number}.html"
        own = ["window.own = 1"]
        path.write_text(html_page("t", Markup(injected), scripts=own, style_attributes=True), "utf-8")
        page.goto(path.as_uri())
        page.evaluate("document.getElementById('link')?.click(); document.getElementById('form')?.submit()")
        page.wait_for_timeout(200)
        assert page.evaluate("window.own") == 1, injected
        assert page.evaluate("window.pwned") is None, injected
    # A browser names a request that the policy forbids, and does not send it.
    assert [(one.url, one.failure) for one in asked if one.url.startswith("http") and one.failure != "csp"] == []
