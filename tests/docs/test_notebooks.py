"""The notebooks run from top to bottom, show something, and are stored without output."""

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))


def test_notebooks_are_numbered_in_order() -> None:
    assert [notebook.name[:2] for notebook in NOTEBOOKS] == [f"{1 + n:02}" for n in range(len(NOTEBOOKS))]
    assert len(NOTEBOOKS) >= 6


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_a_notebook_is_stored_without_output(notebook: Path) -> None:
    for cell in nbformat.read(notebook, as_version=4).cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


@pytest.mark.notebook
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_notebook_runs_and_draws(notebook: Path, tmp_path: Path) -> None:
    book = nbformat.read(notebook, as_version=4)
    environment = {**os.environ, "MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    NotebookClient(
        book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute(env=environment)
    outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 2
    assert not [output for output in outputs if output.get("name") == "stderr"]
