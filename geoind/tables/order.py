"""Whether the order of the rows tells the place: rows sorted by a coordinate, or along a curve through the map.

A row between two others on a Hilbert curve lies between them on the map, whatever noise its report has. Rows that
follow a clock are in the order of the clock, which a column of times tells anyway: a drive north is not sorted.
"""

import numpy as np
import pyarrow as pa

from geoind.arrays import FloatArray
from geoind.errors import InvalidInputError
from geoind.tables.names import is_time
from geoind.tables.places import is_text
from geoind.tables.rows import Beside

__all__ = ["follows_a_clock", "is_sorted_by_place", "refuse_sorted"]

LEAST_ROWS = 32
MOST_ROWS = 512
ROWS_PER_CELL = 8
COHERENT = 0.45
"""Share of the changes of cell that rows in random order have. Hilbert order has 0.15 to 0.37 on the cells of
another map, rows in random order 0.9 to 1.1."""


def refuse_sorted(truth: FloatArray, beside: Beside) -> None:
    """Refuse rows that are sorted by place, unless a column of times explains their order.

    Parameters
    ----------
    truth : (n, 2) array
        Degrees, in the order of the rows.
    beside : callable
        From row numbers to those rows of the columns that pass.
    """
    if is_sorted_by_place(truth) and not follows_a_clock(beside(np.arange(min(len(truth), MOST_ROWS)))):
        raise InvalidInputError(
            "the rows are sorted by place, which tells it whatever the noise: give order='shuffle' "
            "(--order shuffle) for rows in random order, or order='keep' (--order keep) if it comes from elsewhere"
        )


def is_sorted_by_place(truth: FloatArray) -> bool:
    """Return whether rows follow a coordinate, or a curve that fills the map.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> places = rng.normal([2.35, 48.86], 0.1, (500, 2))
    >>> is_sorted_by_place(places), is_sorted_by_place(places[np.argsort(places[:, 1])])
    (False, True)
    """
    places = truth[:MOST_ROWS]
    places = places[np.isfinite(places).all(axis=1)]
    if len(places) < LEAST_ROWS:
        return False
    for axis in places.T:
        steps = np.diff(axis)
        moved = np.count_nonzero(steps)
        up = np.count_nonzero(steps > 0)
        if moved >= LEAST_ROWS - 1 and not 0.05 * moved < up < 0.95 * moved:
            return True
    # Cells of equally many rows in each direction, so that a crowded centre is more than one cell.
    side = max(3, int(np.sqrt(len(places) / ROWS_PER_CELL)))
    edges = np.linspace(0, len(places), side + 1).astype(np.int64)[1:-1]
    ranks = [np.searchsorted(np.sort(axis)[edges], axis, side="right") for axis in places.T]
    cells = ranks[0] * side + ranks[1]
    shares = np.bincount(cells) / len(places)
    occupied = np.count_nonzero(shares)
    by_chance = (len(places) - 1) * (1 - np.sum(shares**2)) - occupied
    changes = np.count_nonzero(np.diff(cells)) - occupied
    return bool(occupied >= side * side // 2 and by_chance > occupied and changes < COHERENT * by_chance)


def follows_a_clock(beside: pa.RecordBatch) -> bool:
    """Return whether a column of times rises, or falls, with the rows: at least for each person of a table.

    Examples
    --------
    >>> follows_a_clock(pa.RecordBatch.from_pydict({"started_at": ["2024-05-01 08:00", "2024-05-01 08:10"]}))
    True
    """
    for name, column in zip(beside.schema.names, beside.columns, strict=True):
        column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        kind = column.type
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            values = column.cast(pa.int64() if not pa.types.is_date32(kind) else pa.int32())
        elif is_time(name) and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            values = column
        elif is_time(name) and is_text(kind):
            # ISO times sort as text does.
            coded = column.cast(pa.large_string()).drop_null().dictionary_encode()
            ranks = np.argsort(np.argsort(np.asarray(coded.dictionary.to_pylist(), str)))
            values = pa.array(ranks[coded.indices.to_numpy()])
        else:
            continue
        times = np.asarray(values.drop_null().to_numpy(zero_copy_only=False), np.float64)
        steps = np.diff(times)
        if np.any(steps) and max(np.mean(steps >= 0), np.mean(steps <= 0)) >= 0.9:
            return True
    return False
