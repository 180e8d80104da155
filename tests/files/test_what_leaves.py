"""What is in the bytes that are written: the reports and the kept columns, and a record whose totals are right."""

import base64
import functools
import json
import random
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from geoind import obfuscate_file
from geoind.tables import read_promise
from tests.trials import trials

ROWS = 30
SECRET = "SECRET"
LONLAT = np.random.default_rng(3).normal([2.35, 48.86], [0.08, 0.05], (ROWS, 2)).round(7)
NOTES = [f"note {row}" for row in range(ROWS)]


def table() -> pa.Table:
    """Return places with a secret in every column but `note`, also in names, metadata and dictionaries."""
    note = pa.DictionaryArray.from_arrays(np.arange(ROWS), [*NOTES, f"{SECRET} entry"])
    rows = pa.table(
        {
            "note": note,
            "who": [f"{SECRET} person {row % 3}" for row in range(ROWS)],
            "id": [f"{SECRET} id {row}" for row in range(ROWS)],
            f"{SECRET} column": [row * 1.5 for row in range(ROWS)],
            "stop": [f"{SECRET} stop {row}" for row in range(ROWS)],
            "lon": LONLAT[:, 0],
            "lat": LONLAT[:, 1],
        }
    )
    noted = [field.with_metadata({"about": f"{SECRET} field"}) for field in rows.schema]
    return rows.cast(pa.schema(noted, metadata={"about": f"{SECRET} table", "pandas": f'{{"{SECRET}": 1}}'}))


def plain() -> pa.Table:
    """Return the same with texts instead of a dictionary, for formats of text."""
    return table().set_column(0, "note", pa.array(NOTES)).replace_schema_metadata()


def csv_file(path: Path) -> None:
    pyarrow.csv.write_csv(plain(), path)


def parquet_file(path: Path) -> None:
    pq.write_table(table(), path, row_group_size=7)


def frame() -> geopandas.GeoDataFrame:
    rows = plain().to_pandas()
    points = geopandas.points_from_xy(rows.pop("lon"), rows.pop("lat"), crs=4326)
    return geopandas.GeoDataFrame(rows, geometry=points)


def gpkg_file(path: Path) -> None:
    frame().to_file(path, layer=f"{SECRET} layer", metadata={"about": SECRET})


WRITERS: dict[str, Callable[[Path], None]] = {"csv": csv_file, "parquet": parquet_file, "gpkg": gpkg_file}


def all_bytes(folder: Path) -> bytes:
    """Return the bytes of all files, and what they hold compressed or encoded, and their names."""
    found = []
    for file in (path for path in folder.rglob("*") if path.is_file()):
        found += [file.name.encode(), file.read_bytes()]
        if file.suffix == ".parquet":
            found.append(base64.b64decode((pq.ParquetFile(file).metadata.metadata or {})[b"ARROW:schema"]))
    return b"\n".join(found)


def hidden() -> list[bytes]:
    """Return what must not be found: the secret and each true coordinate, as text and as binary numbers."""
    numbers = LONLAT.ravel().tolist()
    forms = [form for number in numbers for form in (str(number).encode(), struct.pack("<d", number))]
    return [SECRET.encode(), SECRET.encode("utf-16-le"), *forms]


@pytest.mark.parametrize(("before", "after"), [("csv", "csv"), ("parquet", "parquet"), ("gpkg", "parquet")])
def test_only_reports_and_kept_columns_are_in_the_bytes_of_shuffled_rows(
    tmp_path: Path, before: str, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So that all pages of a Parquet file can be searched.
    monkeypatch.setattr(pq, "ParquetWriter", functools.partial(pq.ParquetWriter, compression="none"))
    source, out = tmp_path / f"in.{before}", tmp_path / "out"
    WRITERS[before](source)
    out.mkdir()
    named: dict[str, Any] = {"keep": ["note"], "person": "who", "id_column": "id", "key": bytes(32)}
    obfuscate_file(source, out / f"reports.{after}", epsilon=0.001, order="shuffle", **named)
    written = all_bytes(out)
    assert [one for one in hidden() if one in written] == []
    assert NOTES[7].encode() in written


@pytest.mark.parametrize("before", ["csv", "parquet", "gpkg"])
def test_rows_that_get_no_report_are_not_in_the_bytes(
    tmp_path: Path, before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pq, "ParquetWriter", functools.partial(pq.ParquetWriter, compression="none"))
    WRITERS[before](tmp_path / f"in.{before}")
    (tmp_path / "out").mkdir()
    options: dict[str, Any] = {"person": "who", "keep": ["note"], "reports_per_person": 2, "epsilon": 0.001}
    obfuscate_file(tmp_path / f"in.{before}", tmp_path / "out" / f"reports.{before}", **options)
    written = all_bytes(tmp_path / "out")
    # "note 1" is also the beginning of others.
    found = [note for note in NOTES[10:] + NOTES[4:10] if note.encode() in written]
    assert len(found) <= 6
    assert [one for one in hidden() if one in written] == []


def random_folder(place: Path, rng: random.Random) -> None:
    """Write files of several formats, with persons, two places per row, missing places and bad rows."""
    place.mkdir()
    for suffix in ("csv", "ndjson", "parquet"):
        rows: list[dict[str, Any]] = []
        for _ in range(rng.randint(1, 40)):
            where = [round(rng.uniform(-80, 80), 5) for _ in range(4)]
            row: dict[str, Any] = dict(zip(("a_lon", "a_lat", "b_lon", "b_lat"), where, strict=True))
            for names in (("a_lon", "a_lat"), ("b_lon", "b_lat")):
                if rng.random() < 0.2:
                    row |= dict.fromkeys(names)
            if rng.random() < 0.1:
                row["a_lat"] = 91.0
            rows.append({"who": f"p{min(rng.randrange(9), rng.randrange(9))}", **row})
        schema = pa.schema([("who", pa.string()), *((name, pa.float64()) for name in rows[0] if name != "who")])
        made = pa.Table.from_pylist(rows, schema)
        if suffix == "csv":
            pyarrow.csv.write_csv(made, place / "a.csv")
        elif suffix == "parquet":
            pq.write_table(made, place / "c.parquet", row_group_size=5)
        else:
            (place / "b.ndjson").write_text("".join(json.dumps(row) + "\n" for row in made.to_pylist()))


def recounted(place: Path) -> Counter[str]:
    """Return the reports of each person in the output."""
    tables = [pyarrow.csv.read_csv(place / "a.csv"), pq.read_table(place / "c.parquet")]
    rows = [row for each in tables for row in each.to_pylist()]
    rows += [json.loads(line) for line in (place / "b.ndjson").read_text().splitlines()]
    counts: Counter[str] = Counter()
    for row in rows:
        counts[row["who"]] += sum(row.get(name) not in (None, "") for name in ("a_lon", "b_lon"))
    return +counts


@pytest.mark.parametrize("options", [{}, {"reports_per_person": 6}, {"order": "shuffle"}], ids=str)
@pytest.mark.parametrize("seed", range(trials(5)))
def test_totals_in_every_record_of_a_folder_equal_a_recount(
    tmp_path: Path, seed: int, options: dict[str, Any]
) -> None:
    random_folder(tmp_path / "in", random.Random(seed))
    summary = obfuscate_file(
        [tmp_path / "in"],
        tmp_path / "out",
        epsilon=0.001,
        person="who",
        keep=["who"],
        lon=["a_lon", "b_lon"],
        lat=["a_lat", "b_lat"],
        missing="keep",
        rejects=tmp_path / "bad",
        **options,
    )
    counts = recounted(tmp_path / "out")
    most = sorted(counts.values())
    record = summary.record
    assert record.busiest is not None
    assert record.median is not None
    assert summary.reports == sum(most)
    assert (record.persons, record.busiest.reports) == (len(most), most[-1])
    assert record.median.reports == most[(len(most) - 1) // 2]
    assert record.busiest.epsilon == pytest.approx(0.001 * most[-1])
    assert max(most) <= options.get("reports_per_person", 1000)
    rejected = [line for file in (tmp_path / "bad").rglob("*.ndjson") for line in file.read_text().splitlines()]
    assert summary.rejected == len(rejected)
    for name in ("a.csv", "b.ndjson", "c.parquet"):
        assert read_promise(tmp_path / "out" / name) == record
