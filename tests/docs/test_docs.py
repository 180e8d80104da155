"""The Python examples of the documentation run, and its tables agree with the code."""

import math
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from geoind import PlanarLaplace, SphericalLaplace, epsilon_for
from geoind.errors import __all__ as errors
from tests.apart import apart
from tests.docs.pages import PAGES, ROOT, name_of
from tests.spark_session import require_java

JVM = [ROOT / "docs" / "spark.md"]


def blocks(document: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", document.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # Dask's, in its reader of Parquet
@pytest.mark.parametrize("document", [page for page in PAGES if page not in JVM and blocks(page)], ids=name_of)
def test_the_examples_of_a_page_run_one_after_the_other(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # As if typed at the prompt, so that what is guarded runs, too.
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(document):
        apart(exec, compile(block, f"{document.name}: {block[:60]!r}", "exec"), namespace)


@pytest.mark.jvm
@pytest.mark.parametrize("document", JVM, ids=name_of)
def test_the_examples_of_a_page_about_spark_run(document: Path, tmp_path: Path) -> None:
    require_java()
    # In a process of its own: a Java machine stays in the folder where it was started.
    (tmp_path / "page.py").write_text("\n".join(blocks(document)))
    done = subprocess.run([sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    shown = ["1000 ['fare', 'lon', 'lat']", "1000", "6.93", "['fare', 'lon', 'lat']"]
    assert done.stdout.splitlines() == shown


def test_there_is_no_python_on_a_page_that_does_not_run() -> None:
    for document in PAGES:
        kinds = set(re.findall(r"^```(.+)$", document.read_text(), re.MULTILINE))
        # tests/webdemo/device/test_docs.py runs JavaScript.
        known = {"python", "console", "sql", "javascript", "{toctree}"}
        assert {kind for kind in kinds if not kind.startswith("{include}")} <= known, document.name


EPSILON = ROOT / "docs" / "explanations" / "epsilon.md"


def test_the_table_of_epsilons_is_what_the_code_says() -> None:
    rows = re.findall(
        r"^\| ln (\d+) \| (\d+) m \| ([\d.]+) \| ([\d,]+) m \| ([\d,]+) m \|$", EPSILON.read_text(), re.M
    )
    assert len(rows) == 9
    for level, radius, epsilon, mean, quantile in rows:
        globe = SphericalLaplace(epsilon_for(math.log(int(level)), int(radius)))
        assert f"{globe.epsilon:.5f}" == epsilon
        assert f"{globe.mean_radius:,.0f}" == mean
        assert f"{float(globe.radius_quantile(0.95)):,.0f}" == quantile


def test_the_mean_errors_of_the_examples_of_a_choice_are_what_the_code_says() -> None:
    rows = re.findall(r"^\| [^|]+ \| ln (\d+) within (\d+) m \| ([\d,]+) m \|", EPSILON.read_text(), re.M)
    assert len(rows) == 4
    for level, radius, mean in rows:
        globe = SphericalLaplace(epsilon_for(math.log(int(level)), int(radius)))
        assert f"{globe.mean_radius:,.0f}" == mean


def test_the_shares_within_the_radii_of_laws_are_what_the_code_says() -> None:
    row = re.compile(r"= (\d+) m \| (\d+) % \| ln 4 within ([\d,]+) m \| ln 4 within ([\d,]+) m \|$", re.M)
    rows = row.findall(EPSILON.read_text())
    assert len(rows) == 2
    for metres, share, half, twentieth in rows:
        for wanted, radius in ((int(share) / 100, "200"), (0.5, half), (0.05, twentieth)):
            noise = PlanarLaplace(epsilon_for(math.log(4), float(radius.replace(",", ""))))
            assert float(noise.radius_quantile(wanted)) == pytest.approx(int(metres), rel=0.01)


def test_the_quickstart_has_less_than_60_lines() -> None:
    assert len((ROOT / "docs" / "start" / "quickstart.md").read_text().splitlines()) < 60


@pytest.mark.parametrize("error", ["GeoindError", "InvalidInputError", "BudgetExceededError", *errors])
def test_the_page_of_errors_has_every_error(error: str) -> None:
    assert f"`{error}`" in (ROOT / "docs" / "reference" / "errors.md").read_text()


@pytest.mark.parametrize("document", PAGES, ids=name_of)
def test_links_to_files_of_the_repository_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\((?!https?://|#|mailto:)([^)#\s]+)", document.read_text()):
        assert (document.parent / target).exists(), target


def test_the_readme_names_the_pythons_that_the_package_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [name.rsplit(" ", 1)[1] for name in project["classifiers"] if ":: Python :: 3." in name]
    assert f"Python {', '.join(named[:-1])} and {named[-1]}" in PAGES[0].read_text()
    assert project["requires-python"] == f">={named[0]}"


@pytest.mark.parametrize("page", ["architecture.md", "benchmarks/mutants.md"])
def test_the_files_that_a_page_names_exist(page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    named = set(re.findall(r"`(?:geoind/)?([\w/]+(?:\.pyi?|/))`", text)) - {"geoind/", "webdemo/"}
    # A walk lists files without their suffix.
    walks = text.partition("<!-- walks -->")[2].partition("<!-- /walks -->")[0]
    named |= {f"{name}.py" for name in re.findall(r"`([\w/]+)`", walks)}
    assert len(named) > 20
    folders = (ROOT, ROOT / "geoind")
    assert [name for name in sorted(named) if not any((folder / name).exists() for folder in folders)] == []
