"""A mechanism of one's own is measured like the library's; one that is wrong is reported."""

import json
import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import pytest

from geoind import (
    Channel,
    Grid,
    InvalidInputError,
    PlanarGaussian,
    PlanarLaplace,
    Prior,
    SphericalLaplace,
    bayes_remap,
    discretise,
    exponential,
    planar_geometric,
)
from geoind.arrays import ArrayLike, FloatArray
from geoind.distances import manhattan
from geoind.evaluation import Contender, Setting, as_plain_data, compare, stored_comparison
from geoind.evaluation.comparison import Evaluation, evaluate
from geoind.evaluation.figures import draw_scatter
from geoind.evaluation.report import standings, terminal_tables

GRID = Grid(0, 0, cell=100, columns=3, rows=3)
SETTING = Setting(
    GRID, weights={"uniform": np.ones(9), "row": [0, 0, 0, 1, 1, 1, 0, 0, 0]}, zone=(3, 1), wanted_loss=60
)
NOISE = PlanarLaplace(0.01)


@dataclass(frozen=True)
class Square:
    """Noise that is uniform in a square: its epsilon is infinite, whatever it states."""

    side: float
    epsilon: float
    space: ClassVar[Literal["xy"]] = "xy"

    def reach(self, confidence: float) -> float:
        return confidence * self.side

    def sample(self, points: ArrayLike, *, rng: Any = None) -> FloatArray:
        points = np.asarray(points)
        return points + np.random.default_rng(rng).uniform(-self.side / 2, self.side / 2, points.shape)


def remapped(prior: Prior, epsilon: float = 0.02) -> Channel:
    channel = discretise(PlanarLaplace(epsilon), GRID)
    return channel @ bayes_remap(channel, prior)


def not_stochastic(prior: Prior) -> Channel:
    return Channel(prior.sites, prior.sites, np.full((9, 9), 0.1))


def fails(_prior: Prior) -> Channel:
    raise RuntimeError("no such\x1b[2J model")


OWN: list[Any] = [
    Contender("twin", lambda prior, epsilon: discretise(PlanarLaplace(epsilon), prior.sites), tune=(1e-4, 1)),
    Contender("falling", lambda prior, metres: planar_geometric(prior.sites, epsilon=1 / metres), tune=(1, 1e5)),
    Contender("remapped twin", remapped, tune=(1e-4, 1)),
    Contender("too exact", lambda _, rate: exponential(GRID, GRID, epsilon=rate), tune=(0.5, 1)),
    Contender("truth", Channel(GRID, GRID, np.eye(9))),
    Contender("noise", NOISE),
    Contender("draws", Square(500, epsilon=1e-4)),
    Contender("normal", lambda _: PlanarGaussian(100.0)),
    Contender("degrees", SphericalLaplace(0.01)),
    Contender("array", lambda _: np.eye(9)),  # type: ignore[arg-type,return-value]
    Contender("elsewhere", planar_geometric(Grid(0, 0, cell=10, columns=3, rows=3), epsilon=0.01)),
    not_stochastic,
    fails,
]


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    return evaluate(SETTING, contenders=OWN)


@pytest.fixture(scope="module")
def rows(evaluation: Evaluation) -> dict[Any, dict[Any, Any]]:
    return evaluation.table.set_index(["equalised", "prior", "mechanism"]).to_dict("index")


WAYS = [(way, prior) for way in ("uniform", "evaluated") for prior in ("uniform", "row")]


@pytest.mark.parametrize("key", WAYS)
def test_a_twin_of_the_planar_laplace_has_its_numbers(
    rows: dict[Any, dict[Any, Any]], key: tuple[str, str]
) -> None:
    twin, own, geometric = (rows[*key, name] for name in ("twin", "planar Laplace", "falling"))
    for measure in ("parameter", "expected_loss", "adversary_error", "measured_epsilon", "posterior_entropy"):
        assert twin[measure] == pytest.approx(own[measure], rel=1e-5)
    # The loss may grow with the parameter as well as fall.
    assert 1 / geometric["parameter"] == pytest.approx(rows[*key, "planar geometric"]["parameter"], rel=1e-5)
    assert (twin["note"], twin["knows_prior"], geometric["knows_prior"]) == ("", False, False)


@pytest.mark.parametrize("key", WAYS)
def test_a_function_of_the_prior_is_made_for_it_and_tuned_like_the_remapped_laplace(
    rows: dict[Any, dict[Any, Any]], key: tuple[str, str]
) -> None:
    mine, own = rows[*key, "remapped twin"], rows[*key, "remapped Laplace"]
    assert mine["adversary_error"] == pytest.approx(own["adversary_error"], rel=1e-4)
    assert mine["knows_prior"] == (key[1] == "row")
    if key != ("uniform", "row"):
        assert mine["expected_loss"] == pytest.approx(SETTING.loss, rel=1e-5)


def test_a_mechanism_is_its_matrix_or_drawn(rows: dict[Any, dict[Any, Any]]) -> None:
    exact = discretise(NOISE, GRID)
    assert rows["uniform", "row", "noise"]["measured_epsilon"] == exact.epsilon
    drawn = rows["uniform", "uniform", "degrees"]
    # Spherical and planar noise differ by one part in a million here; the draws by a few metres.
    assert drawn["expected_loss"] == pytest.approx(rows["uniform", "uniform", "noise"]["expected_loss"], rel=0.02)
    assert 0.5 * exact.epsilon < drawn["measured_epsilon"] <= 0.01
    assert "lower bound" in drawn["note"]
    assert "refute" not in drawn["note"]


@pytest.mark.parametrize(
    ("name", "words", "measured"),
    [
        ("too exact", "not at equal cost: tune gives 0.0 to 0.", True),
        ("truth", "its epsilon is infinite", True),
        ("draws", "the stated epsilon is 0.0001, which the draws refute", True),
        ("normal", "its stated epsilon is infinite", True),
        ("array", "InvalidInputError: it must return a Channel or a Mechanism, got ndarray", False),
        ("elsewhere", "SitesMismatchError: the inputs of the channel must be the cells of the grid", False),
        ("not_stochastic", "NotStochasticError: each row of matrix must sum to 1", False),
        ("fails", "RuntimeError: no such\\x1b[2J model", False),
    ],
)
def test_a_wrong_one_is_reported_in_table_text_page_and_json(
    evaluation: Evaluation, rows: dict[Any, dict[Any, Any]], name: str, words: str, measured: bool
) -> None:
    for key in WAYS:
        assert words in rows[*key, name]["note"]
        assert math.isnan(rows[*key, name]["adversary_error"]) is not measured
        assert ((*key, name) in evaluation.channels) is measured
    assert f"{name}: " in terminal_tables(evaluation)
    assert words in terminal_tables(evaluation)
    plain = as_plain_data(evaluation.table, SETTING)
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert all(words in str(row["note"]) for row in plain["rows"] if row["mechanism"] == name)
    assert not [row for row in plain["rows"] if row["mechanism"] == "cloaking" and "note" in row]


def test_they_are_in_the_figures_with_names_that_are_no_formulas(evaluation: Evaluation) -> None:
    table = evaluation.table.replace({"mechanism": {"twin": "$\\frac{$"}})
    figure = draw_scatter(table, title="Cost and privacy")
    (legend,) = figure.legends
    labels = {text.get_text() for text in legend.get_texts()}
    assert {"$\\frac{$", "draws", "cloaking"} <= labels
    assert "fails" not in labels
    figure.canvas.draw()


@pytest.mark.parametrize("pair", [("planar Laplace", "cloaking"), ("truth", "Gaussian")])
def test_wins_losses_and_ties_are_counted(
    evaluation: Evaluation, rows: dict[Any, dict[Any, Any]], pair: tuple[str, str]
) -> None:
    first, second = pair
    found = standings(evaluation.table, "uniform").to_dict("index")
    assert found["twin"]["planar Laplace"] == "0-0-2"
    assert found["fails"]["cloaking"] == "0-0-0"
    assert not {"dummies", "optimal for uniform, most error"} & set(found)
    errors = [[rows["uniform", prior, name]["adversary_error"] for name in pair] for prior in SETTING.weights]
    wins, losses = sum(a > b + 0.05 for a, b in errors), sum(a < b - 0.05 for a, b in errors)
    assert found[first][second] == f"{wins}-{losses}-{2 - wins - losses}"
    assert found[second][first] == f"{losses}-{wins}-{2 - wins - losses}"


def test_the_score_of_the_papers_priors_is_what_the_docs_say() -> None:
    stored = pd.DataFrame(stored_comparison()["rows"])
    scores = [
        standings(stored, way).to_dict("index")["planar Laplace"]["cloaking"] for way in ("uniform", "evaluated")
    ]
    assert scores == ["5-4-1", "3-6-1"]


@pytest.mark.parametrize(
    ("contenders", "message"),
    [
        ([lambda prior: prior], "start with a letter"),
        ([Channel(GRID, GRID, np.eye(9))] * 2, "two mechanisms are called 'Channel'"),
        ([("cloaking", NOISE)], "must be a Mechanism, a Channel or a function, got tuple"),
    ],
)
def test_contenders_that_are_none_are_refused_at_once(contenders: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        compare(SETTING, contenders=contenders)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", NOISE), "start with a letter"),
        (("_hidden", NOISE), "start with a letter"),
        (("x" * 41, NOISE), "up to 40 characters"),
        (("a\nb", NOISE), "start with a letter"),
        (("mine", 7), "got int"),
        (("mine", NOISE, (1, 2)), "tune needs a function"),
        (("mine", remapped, (2, 1)), "tune must be"),
        (("mine", remapped, (0, 1)), "tune must be positive"),
        (("mine", remapped, (1, math.inf)), "tune must be positive and finite"),
    ],
)
def test_a_bad_contender_is_an_error(arguments: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Contender(*arguments)


def test_a_name_of_the_librarys_is_taken() -> None:
    with pytest.raises(InvalidInputError, match="two mechanisms are called 'cloaking'"):
        compare(SETTING, contenders=[Contender("cloaking", NOISE)])


def test_a_mask_is_a_prior_and_distances_may_be_along_streets() -> None:
    masked = Setting(GRID, weights={"row": np.arange(9) // 3 == 1}, zone=(3, 1), wanted_loss=60)
    pd.testing.assert_frame_equal(compare(masked), compare(SETTING, priors=["row"]))
    along, straight = (
        compare(setting).set_index(["equalised", "mechanism"]).to_dict("index")
        for setting in (replace(masked, metric=manhattan), masked)
    )
    for name in ("planar Laplace", "exponential", "remapped Laplace"):
        assert along["evaluated", name]["expected_loss"] == pytest.approx(60, rel=1e-6)
    # Along streets the same noise is farther: less noise has the same cost.
    wider = ("uniform", "planar Laplace")
    assert along[wider]["parameter"] > straight[wider]["parameter"]
    for name in ("cloaking", "Gaussian", "optimal geo-ind", "optimal for the prior"):
        assert along["uniform", name]["adversary_error"] <= along["uniform", name]["expected_loss"] + 1e-6


def test_a_metric_must_be_a_function() -> None:
    with pytest.raises(InvalidInputError, match="metric must be a distance, got str"):
        Setting(GRID, metric="manhattan")  # type: ignore[arg-type]
