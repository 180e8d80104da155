"""The notebooks are stored with small pictures of today's cells, and run from top to bottom, on any places."""

import importlib.util
import io
import re
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import nbformat
import pandas as pd
import pytest
from matplotlib.figure import Figure

from geoind.evaluation import synthetic_city
from tests.apart import apart

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
_spec = importlib.util.spec_from_file_location("refresh", FOLDER / "refresh.py")
assert _spec is not None
assert _spec.loader is not None
refresh = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(refresh)

NOTEBOOKS: list[Path] = refresh.books()
ON_PLACES = [notebook for notebook in NOTEBOOKS if refresh.PLACES in notebook.read_text()]
AGAIN = "run `python3 dev.py notebooks`"

every_notebook = pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)


def outputs(book: Any) -> list[Any]:
    return [output for cell in book.cells for output in cell.get("outputs", [])]


def pictures(book: Any) -> int:
    return sum("image/png" in output.get("data", {}) for output in outputs(book))


def test_the_notebooks_are_numbered_in_their_order() -> None:
    assert len(NOTEBOOKS) >= 8
    assert [int(notebook.name[:2]) for notebook in NOTEBOOKS] == [*range(1, len(NOTEBOOKS) + 1)]


@every_notebook
def test_what_is_stored_was_made_by_the_cells(notebook: Path) -> None:
    book = nbformat.read(notebook, as_version=4)
    assert book.metadata.get("geoind", {}).get("sources") == refresh.sources(book), AGAIN
    assert pictures(book) >= 2, AGAIN
    counts = [cell.execution_count for cell in book.cells if cell.cell_type == "code"]
    assert counts == [*range(1, len(counts) + 1)], AGAIN


@every_notebook
def test_what_is_stored_is_small_and_names_no_path_of_a_machine(notebook: Path) -> None:
    book = nbformat.read(notebook, as_version=4)
    assert notebook.stat().st_size < 400_000
    for output in outputs(book):
        assert output.get("name") != "stderr"
        assert output.output_type != "error"
        text = output.get("text", "") + "".join(
            content for kind, content in output.get("data", {}).items() if kind != "image/png"
        )
        text = re.sub(r"data:image/png;base64,[\w+/=]+", "", text)
        assert len(text) < 3000
        assert not re.search(r"/(home|root|tmp|work|var|usr|Users|mnt|opt)/|[A-Z]:\\|\b0x[0-9a-f]{6,}", text)
    assert not [cell for cell in book.cells if "execution" in cell.metadata]


def drawn(namespace: dict[str, Any]) -> int:
    """Draw the figures of a cell as a notebook does after it, close them, and return how many there were."""
    figures = {id(value): value for value in namespace.values() if isinstance(value, Figure)}
    figures |= {id(figure): figure for figure in map(plt.figure, plt.get_fignums())}
    for figure in figures.values():
        figure.savefig(io.BytesIO(), dpi=40)
    plt.close("all")
    for name in [name for name, value in namespace.items() if id(value) in figures]:
        del namespace[name]
    return len(figures)


@pytest.mark.notebook
@every_notebook
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_notebook_runs_and_draws(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each notebook once: on the places of a file if it takes one, else on its own.

    The first one runs in a kernel, as for a reader; the cells of the others run here, because a kernel's start
    takes as long as most of them.
    """
    if notebook == NOTEBOOKS[0]:
        book = refresh.run(notebook, tmp_path)
        assert pictures(book) >= 2
        assert not [output for output in outputs(book) if output.get("name") == "stderr"]
        return
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(refresh.PLACES, raising=False)
    if notebook in ON_PLACES:
        places = synthetic_city(64, lon=24.94, lat=60.17).sample_lonlat(3000, rng=3)
        pd.DataFrame(places, columns=["lon", "lat"]).to_csv("places.csv", index=False)
        monkeypatch.setenv(refresh.PLACES, str(tmp_path / "places.csv"))
    count, namespace = 0, {"__name__": "__main__"}
    plt.switch_backend("agg")
    with matplotlib.rc_context():
        for cell in nbformat.read(notebook, as_version=4).cells:
            if cell.cell_type == "code":
                apart(exec, compile(cell.source, notebook.stem, "exec"), namespace)
                count += drawn(namespace)
    assert count >= 2


@pytest.mark.notebook
@pytest.mark.parametrize("notebook", ON_PLACES, ids=lambda notebook: notebook.stem)
def test_a_notebook_on_places_has_places_without_a_file(notebook: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(refresh.PLACES, raising=False)
    first, *others = [
        cell.source for cell in nbformat.read(notebook, as_version=4).cells if cell.cell_type == "code"
    ]
    assert not [source for source in others if "PLACES" in source], "only the first cell depends on the file"
    with matplotlib.rc_context():
        exec(first, {})


def test_at_least_four_notebooks_take_places_of_ones_own() -> None:
    assert len(ON_PLACES) >= 4
