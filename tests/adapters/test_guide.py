"""The first script of docs/clusters.md, run as a file, and what it leaves behind; the engines after it agree."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from geoind import Ledger
from tests.apart import apart

GUIDE = Path(__file__).parents[2] / "docs" / "clusters.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the script ran: spawned workers read it, too, so it must not begin twice."""
    path = tmp_path_factory.mktemp("guide")
    (path / "job.py").write_text(BLOCKS[0])
    done = subprocess.run([sys.executable, "job.py"], cwd=path, capture_output=True, text=True, check=True)
    assert "Done(rows=2000, pieces=2, found=0)" in done.stdout
    assert "2,000 reports" in done.stdout
    return path


def test_a_folder_is_done_and_paid_for(folder: Path) -> None:
    with Ledger(f"sqlite:///{folder / 'budgets.db'}", budget=10.0) as ledger:
        assert sum(ledger.spent(person) for person in ("ana", "ben", "eva")) == pytest.approx(2000 * 1.386 / 200)


def by_trip(rows: list[dict[str, Any]]) -> dict[int, tuple[float, float]]:
    return {row["trip"]: (row["lon"], row["lat"]) for row in rows}


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # Dask's, in its reader of Parquet
def test_duckdb_polars_and_dask_make_the_same_reports(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    # Not "__main__": what the script makes is there.
    names: dict[str, Any] = {"__name__": "guide"}
    for block in BLOCKS:
        apart(exec, compile(block, "guide", "exec"), names)
    dask_rows = by_trip(names["reports"].compute(scheduler="sync").to_dict("records"))
    polars_rows = by_trip(names["polars_reports"].to_dicts())
    assert len(polars_rows) == 2000
    assert dask_rows == polars_rows == by_trip(names["lazy_reports"].to_dicts())
    duckdb_rows = by_trip(names["database"].sql("SELECT * FROM reports").to_arrow_table().to_pylist())
    assert duckdb_rows == {
        trip: polars_rows[trip]
        for trip, person in names["pl"].read_parquet("trips/*.parquet").select("trip", "person").iter_rows()
        if person != "eva"
    }
    rows = names["pq"].read_table("reports").to_pylist()
    assert by_trip(names["same"].compute(scheduler="sync").to_dict("records")) == by_trip(rows)
