import json

import numpy as np
import pyarrow as pa

from geoind.files.rows import BatchRows

ROWS = BatchRows(pa.RecordBatch.from_pydict({"id": [7, 8, 9], "raw": [b"\x01", b"\xff", None]}), 100)


def test_rows_are_numbered_as_in_their_file() -> None:
    assert [ROWS.line(row) for row in range(3)] == [100, 101, 102]


def test_a_row_tells_all_its_columns_whatever_their_type() -> None:
    assert json.loads(ROWS.record(1)) == {"id": 8, "raw": "ff"}


def test_some_rows_come_in_the_order_asked_for() -> None:
    assert ROWS.beside(np.array([2, 0])).to_pydict()["id"] == [9, 7]
    assert ROWS.schema.names == ["id", "raw"]
