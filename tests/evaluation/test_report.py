import base64
import io
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image
from playwright.sync_api import Page as Browser

from geoind import Channel, Grid, Prior
from geoind.evaluation import Contender, Setting, figures
from geoind.evaluation.comparison import Evaluation, evaluate
from geoind.evaluation.report import findings, pictures, terminal_tables, write_report

# Not all hostile texts: a picture has room for few words, and a font not every sign.
HOSTILE = "{{7*7}} $\\frac{$ {% <img src=x onerror='window.pwned=1'>"

SMALL = Setting(
    Grid(0, 0, cell=100, columns=3, rows=3),
    weights={"uniform": np.ones(9), HOSTILE: [0, 0, 0, 1, 1, 1, 0, 0, 0]},
    zone=(3, 1),
)


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    return evaluate(SMALL, contenders=[Contender("all alike", all_alike), Contender("broken <b>", broken)])


def all_alike(prior: Prior) -> Channel:
    return Channel(prior.sites, prior.sites, np.full((9, 9), 1 / 9))


def broken(_prior: Prior) -> Channel:
    raise RuntimeError("<i>no model")


@pytest.fixture(scope="module")
def drawn(evaluation: Evaluation) -> dict[str, tuple[Figure, str]]:
    """Every picture; and nothing is left open in pyplot."""
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    found = pictures(evaluation)
    assert plt.get_fignums() == before
    return found


@pytest.fixture(scope="module")
def files(evaluation: Evaluation, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_report(evaluation, tmp_path_factory.mktemp("report") / "deep" / "report.html")


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.sources: list[str | None] = []
        self.tags: set[str] = set()
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.sources += [value for name, value in attrs if name in {"src", "href", "srcset", "data"}]
        if tag not in {"meta", "img", "br"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.slow
def test_the_page_makes_no_request(files: list[Path], drawn: dict[str, tuple[Figure, str]]) -> None:
    text = files[0].read_text(encoding="utf-8")
    page = Page(text)
    assert page.open == []
    assert page.sources
    assert all(source and source.startswith("data:image/png;base64,") for source in page.sources)
    assert not page.tags & {"script", "link", "iframe"}
    assert "url(" not in text
    assert text.count("<img alt=") == len(drawn)


def test_pictures_keep_their_size_on_a_phone_and_are_sharp_on_screens_with_two_dots_a_pixel(
    files: list[Path],
) -> None:
    text = files[0].read_text(encoding="utf-8")
    images = re.findall(r'width="(\d+)" src="data:image/png;base64,([^"]+)"', text)
    assert images
    for width, data in images:
        assert Image.open(io.BytesIO(base64.b64decode(data))).width == pytest.approx(2 * int(width), abs=2)
    assert "width: 56rem" not in text


def test_the_page_has_the_mechanisms_of_ones_own_and_what_is_wrong_with_them(
    files: list[Path], drawn: dict[str, tuple[Figure, str]]
) -> None:
    text = files[0].read_text(encoding="utf-8")
    for words in ("all alike", "broken &lt;b&gt;", "RuntimeError: &lt;i&gt;no model", "Wins, losses and ties"):
        assert words in text
    assert "broken <b>" not in text
    assert "all alike" in [axes.get_title() for axes in drawn["channels-uniform"][0].axes]
    (legend,) = drawn["others-evaluated"][0].legends
    assert {"all alike", "broken <b>"} <= {part.get_text() for part in legend.get_texts()}


def test_every_picture_says_what_it_shows(drawn: dict[str, tuple[Figure, str]]) -> None:
    for figure, caption in drawn.values():
        assert len(figure.get_suptitle()) > 15
        assert caption.endswith(".")


def test_every_number_of_the_page_is_in_the_csv_files(evaluation: Evaluation, files: list[Path]) -> None:
    assert [file.name for file in files] == ["report.html", "report.csv", "report-curves.csv", "report-claims.csv"]
    table = pd.read_csv(files[1])
    assert len(table) == len(evaluation.table)
    assert table["adversary_error"].to_numpy() == pytest.approx(
        evaluation.table["adversary_error"].to_numpy(), nan_ok=True
    )
    assert len(pd.read_csv(files[2])) == len(evaluation.curves)
    assert len(pd.read_csv(files[3])) == len(evaluation.claims)


def test_the_terminal_shows_every_mechanism_and_prior(evaluation: Evaluation) -> None:
    text = terminal_tables(evaluation)
    for name in {*evaluation.table["mechanism"], *SMALL.weights}:
        assert name in text
    assert not re.search(r"[ \t]+$", text, re.MULTILINE)


def test_findings_name_each_prior_once(evaluation: Evaluation) -> None:
    for sentence in findings(evaluation):
        verdict = sentence.split("] ", 1)[1]
        assert all(verdict.count(name) == 1 for name in SMALL.weights)


def test_every_mechanism_has_a_style_of_its_own_without_colour(evaluation: Evaluation) -> None:
    styles = figures.styles_of(evaluation.table["mechanism"])
    assert set(styles) == {name for name in evaluation.table["mechanism"] if "," not in name}
    assert len({style["marker"] for style in styles.values()}) == len(styles)


def test_names_of_priors_are_shown_and_run_nothing(watched: Browser, files: list[Path]) -> None:
    watched.goto(files[0].as_uri())
    assert watched.title() == "geoind evaluation"
    assert watched.get_by_text(f"Under the {HOSTILE} prior.").count() == 1
    assert watched.locator("table.claims th", has_text="{{7*7}}").count() == 1
    assert watched.evaluate("window.pwned") is None
    assert not [path for path in files[0].parent.iterdir() if path.is_dir()]
