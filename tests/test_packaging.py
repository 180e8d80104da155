"""What people expect of a package: one version, a conda recipe with the same requirements, a citation."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from rattler_build import RecipeParseError, Stage0Recipe

import geoind

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RECIPE = ROOT / "conda" / "recipe.yaml"


def test_the_conda_recipe_is_valid_and_has_this_version() -> None:
    [variant] = Stage0Recipe.from_file(RECIPE).render()
    assert f"version='{geoind.__version__}'" in repr(variant)


def test_a_recipe_with_an_unknown_key_would_be_refused() -> None:
    with pytest.raises(RecipeParseError):
        Stage0Recipe.from_yaml(RECIPE.read_text().replace("noarch:", "no_arch:"))


def test_the_conda_recipe_has_the_requirements_of_the_package() -> None:
    run = yaml.safe_load(RECIPE.read_text())["requirements"]["run"]
    python, *packages = run
    assert python == f"python {PROJECT['requires-python']}"
    assert packages == [re.sub(r"(?=>=)", " ", wanted.lower()) for wanted in PROJECT["dependencies"]]


def test_the_citation_has_this_version_and_the_paper_of_the_definition() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == geoind.__version__
    assert any(PROJECT["urls"]["Paper"].endswith(str(paper.get("doi"))) for paper in citation["references"])
    for paper in citation["references"]:
        assert {"type", "title", "authors", "year"} <= {*paper}


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.name
)
def test_issue_templates_are_valid(path: Path) -> None:
    form = yaml.safe_load(path.read_text())
    if path.name != "config.yml":
        assert {"name", "description", "body"} <= {*form}
        assert {part["type"] for part in form["body"]} <= {"markdown", "textarea", "input"}
