"""The examples of docs/clusters.md, run as they are printed."""

import re
from pathlib import Path
from typing import Any

import pytest

GUIDE = (Path(__file__).parents[2] / "docs" / "clusters.md").read_text()


def examples(heading: str) -> list[str]:
    section = GUIDE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    found = re.findall(r"```py\n(.*?)```", section, re.DOTALL)
    assert found
    return found


def run(heading: str, names: dict[str, Any]) -> None:
    for code in examples(heading):
        exec(compile(code, heading, "exec"), names)


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the first example leaves behind: files, reports and a key."""
    monkeypatch.chdir(tmp_path)
    # Not "__main__", so that the example does not start processes: the job runs here.
    result: dict[str, Any] = {"__name__": "guide"}
    code = "\n".join(examples("A folder of Parquet files")).replace('if __name__ == "__main__":', "if True:")
    exec(compile(code.replace("level=1.386", "workers=1, level=1.386"), "folder", "exec"), result)
    result["key"] = result["Key"].in_file("trips.key")
    return result


def test_a_folder_is_done_and_paid_for(names: dict[str, Any]) -> None:
    assert str(names["done"]) == "Done(rows=2000, pieces=2, found=0)"
    with names["Ledger"]("sqlite:///budgets.db", budget=10.0) as ledger:
        assert sum(ledger.spent(person) for person in ("ana", "ben", "eva")) == pytest.approx(2000 * 1.386 / 200)


def by_trip(rows: list[dict[str, Any]]) -> dict[int, tuple[float, float]]:
    return {row["trip"]: (row["lon"], row["lat"]) for row in rows}


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # Dask's, in its reader of Parquet
def test_duckdb_polars_and_dask_make_the_same_reports(names: dict[str, Any]) -> None:
    run("DuckDB and Polars", names)
    run("Dask", names)
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
    folder = names["pq"].read_table("reports").to_pylist()
    assert by_trip(names["same"].compute(scheduler="sync").to_dict("records")) == by_trip(folder)
