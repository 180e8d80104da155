"""What is done to a table, as keywords declare it: each arrives, and what does not go together is refused."""

import inspect
import pickle
from dataclasses import fields
from typing import Any

import pytest

from geoind import EACH_ROW, InvalidInputError, Key, SphericalGaussian, SphericalLaplace, level_of_reports
from geoind.tables import EACH_FILE, Recipe
from geoind.tables.recipe import with_options
from geoind.tables.tracing import method_of
from geoind.tables.where import LonLat, Points
from geoind.traces import Independent
from tests.tables.made_up import KEY

NOISE = SphericalLaplace(0.01)
USUAL: dict[str, Any] = {"epsilon": 0.01, "person": "who"}


@pytest.mark.parametrize("person", [None, 7, ["who"], True])
def test_a_recipe_without_a_declared_person_is_refused_with_the_choice(person: Any) -> None:
    with pytest.raises(InvalidInputError, match="whose reports these are") as caught:
        Recipe.of(epsilon=0.01, person=person)
    assert "EACH_ROW if no person has two rows, or EACH_FILE if each file is one person" in str(caught.value)
    with pytest.raises(InvalidInputError, match="whose reports these are"):
        Recipe.of(epsilon=0.01)


def test_a_recipe_of_an_epsilon_and_a_person_is_the_usual_one() -> None:
    usual = Recipe.of(**USUAL)
    assert usual == Recipe(mechanism=NOISE, person="who")
    assert (usual.keep, usual.places, usual.missing, usual.order) == ((), (), "raise", "raise")
    others = {field.name for field in fields(Recipe)} - {
        "mechanism",
        "person",
        "keep",
        "places",
        "missing",
        "order",
    }
    assert {name for name in others if getattr(usual, name) not in (None, False)} == set()


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"epsilon": 0.02}, {"mechanism": SphericalLaplace(0.02)}),
        ({"epsilon": None, "mechanism": NOISE}, {"mechanism": NOISE}),
        (
            {"epsilon": None, "level": 2.0, "radius": 100.0},
            {"mechanism": SphericalLaplace(0.02), "level": 2.0, "radius": 100.0},
        ),
        ({"person": EACH_ROW}, {"person": EACH_ROW}),
        ({"person": EACH_FILE}, {"person": EACH_FILE}),
        ({"lon": "a", "lat": "b"}, {"places": (LonLat("a", "b"),)}),
        ({"geometry": "a", "crs": "b"}, {"places": (Points("a", "b"),)}),
        ({"key": KEY}, {"key": Key(KEY), "key_given": True}),
        ({"key": Key(KEY)}, {"key": Key(KEY), "key_given": True}),
        ({"id_column": "a"}, {"id_column": "a"}),
        ({"keep": ["b", "a", "b"]}, {"keep": ("b", "a")}),
        ({"keep": "ab"}, {"keep": ("ab",)}),
        ({"missing": "keep"}, {"missing": "keep"}),
        ({"order": "shuffle"}, {"order": "shuffle"}),
        ({"same_place": 100.0}, {"same_place": 100.0}),
        ({"reports_per_person": 3}, {"reports_per_person": 3}),
        ({"allow_total": 3.0}, {"allow_total": 3.0}),
        ({"time": "at", "method": "independent"}, {"time": "at", "method": Independent(0.01)}),
        ({"time": "at", "method": Independent(0.02)}, {"time": "at", "method": Independent(0.02)}),
        ({"time": "at"}, {"time": "at", "method": method_of(None, NOISE)}),
    ],
)
def test_every_keyword_arrives_and_changes_nothing_else(options: dict[str, Any], parts: dict[str, Any]) -> None:
    made = Recipe.of(**USUAL | options)
    for name, value in parts.items():
        assert getattr(made, name) == value
    for field in fields(Recipe):
        if field.name not in {*parts, "mechanism"}:
            assert getattr(made, field.name) == getattr(Recipe.of(**USUAL), field.name)


def test_a_promise_for_several_reports_keeps_its_numbers() -> None:
    made = Recipe.of(person="who", level=1.5, radius=200.0, delta=1e-5, reports=2)
    assert (made.level, made.radius, made.delta, made.reports) == (1.5, 200.0, 1e-5, 2)
    assert level_of_reports(made.mechanism, reports=2, radius=200.0, delta=1e-5) == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"missing": "drop"}, "`missing=` must be 'raise' or 'keep', got 'drop'"),
        ({"order": "sort"}, "`order=` must be 'raise', 'shuffle' or 'keep', got 'sort'"),
        ({"keep": ["a", None]}, "`keep=` must be names of columns"),
        ({"lon": [7], "lat": "lat"}, "`lon=` must be names of columns"),
        ({"epsilon": None}, "epsilon"),
        ({"method": "sparse"}, "`method=` is for traces: give `time=`"),
        ({"time": "at", "method": "magic"}, "`method=` must be one of switching, sparse"),
        ({"time": "at", "id_column": "id"}, "leave `id_column=` out"),
        ({"time": "at", "person": EACH_ROW}, "a trace has several rows of a person"),
        ({"time": "who"}, "must be two columns"),
        ({"time": "at", "order": "shuffle"}, "cannot be shuffled"),
        ({"time": "at", "lon": ["a", "c"], "lat": ["b", "d"]}, "a step of a trace is one place"),
        ({"time": "at", "reports_per_person": 3}, "are for single places"),
        ({"reports_per_person": 0}, "must be a whole number from 1, got 0"),
        ({"reports_per_person": 2.5}, "must be a whole number from 1, got 2.5"),
        ({"reports_per_person": True}, "must be a whole number from 1, got True"),
        ({"reports_per_person": 1, "lon": ["a", "c"], "lat": ["b", "d"]}, "must be at least 2: a row has as many"),
        ({"reports_per_person": 3, "person": EACH_ROW}, "needs the persons: with EACH_ROW each has one row"),
        ({"same_place": 100.0, "person": EACH_ROW}, "`same_place=` needs `person=`"),
        ({"same_place": 100.0, "time": "at"}, "goes without `time=`"),
        ({"same_place": 100.0, "reports_per_person": 3}, "goes without `time=` and `reports_per_person=`"),
        ({"same_place": 100.0, "lon": ["a", "c"], "lat": ["b", "d"]}, "one place per row"),
        ({"same_place": 100.0, "epsilon": None, "mechanism": SphericalGaussian(500.0)}, "needs `epsilon=`"),
        ({"allow_total": 0}, "`allow_total=` must be"),
        ({"allow_total": float("nan")}, "`allow_total=` must be"),
        ({"allow_total": "much"}, "`allow_total=` must be"),
        (
            {"epsilon": None, "level": 1.5, "radius": 200.0, "delta": 1e-5, "reports": 2, "person": EACH_ROW},
            "`reports=` is for several reports of a person",
        ),
        ({"same_place": -1.0}, "`same_place=` must be positive"),
        ({"key": b"short"}, "32 bytes"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Recipe.of(**USUAL | options)


def test_a_column_that_names_a_record_or_a_person_is_not_published_unless_it_is_kept_or_of_a_trace() -> None:
    assert Recipe.of(**USUAL, id_column="id").published == ()
    assert Recipe.of(**USUAL, id_column="id", keep=["id"]).published == ("id",)
    assert Recipe.of(**USUAL, time="at", keep=["fare"]).published == ("fare", "who", "at")
    assert Recipe.of(epsilon=0.01, person=EACH_FILE, time="at").published == ("at",)


def test_a_key_is_made_where_there_is_none_and_never_shown() -> None:
    own = Recipe.of(**USUAL, key=KEY)
    assert own.with_key() is own
    first, second = Recipe.of(**USUAL).with_key(), Recipe.of(**USUAL).with_key()
    assert first.key is not None
    assert second.key is not None
    assert first.key != second.key
    for recipe in (own, first):
        assert recipe.key is not None
        assert recipe.key.read().hex() not in repr(recipe)
        assert str(recipe.key.read()) not in repr(recipe)
        assert pickle.loads(pickle.dumps(recipe)) == recipe


def test_functions_with_options_show_all_keywords_in_their_signature() -> None:
    @with_options
    def own(frame: object, *, ledger: object = None, **options: Any) -> None:
        """Do nothing."""

    shown = inspect.signature(own).parameters
    assert list(shown)[:2] == ["frame", "ledger"]
    assert set(inspect.signature(Recipe.of).parameters) <= set(shown)
    assert "options" not in shown
