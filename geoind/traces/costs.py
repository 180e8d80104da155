"""What the traces of a table cost and how far off the answers are, by each method, before anything is released."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from geoind.errors import InvalidInputError
from geoind.keys import KeyLike
from geoind.space.geodesy import geodesic_lengths
from geoind.traces.many import obfuscate_traces
from geoind.traces.methods import Independent, TraceMethod

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["trace_costs"]


def trace_costs(table: "DataFrame", methods: Mapping[str, TraceMethod], *, key: KeyLike) -> "DataFrame":
    """Return cost and error of each method on traces, one row per method; nothing is charged.

    The numbers are computed from the true traces, so those of private data are private.

    Parameters
    ----------
    table : DataFrame
        Person, time, lat and lon, as `geoind.files.read_traces` returns them. Of several positions of a person at
        the same time the first one counts.
    methods : mapping from name to TraceMethod
        One of them must be `Independent`: its sum is what fresh noise costs.
    key : Key or bytes
        32 bytes for the draws; not the key of a release.

    Returns
    -------
    DataFrame
        Columns: `method`, `mean_error` and `error_90` (metres), `median` and `largest` (epsilon per metre of a
        person's whole trace), `share` (of all persons' epsilon for fresh noise).

    Examples
    --------
    A person who stays, and one who moves 2 km a minute:

    >>> import pandas as pd
    >>> from geoind.traces import Independent, SparseVector
    >>> times = pd.date_range("2024-05-01", periods=60, freq="min", tz="UTC")
    >>> still = pd.DataFrame({"person": "ana", "time": times, "lat": 48.86, "lon": 2.29})
    >>> moving = still.assign(person="ben", lat=48.86 + 0.018 * np.arange(60))
    >>> methods = {"fresh": Independent(0.01), "session": SparseVector.for_accuracy(389)}
    >>> shares = [trace_costs(rows, methods, key=bytes(32))["share"].tolist()[1] for rows in (still, moving)]
    >>> [share > 0.5 for share in shares]
    [False, True]
    """
    import pandas as pd

    fresh = [name for name, method in methods.items() if isinstance(method, Independent)]
    if len(fresh) != 1:
        raise InvalidInputError("methods must have one Independent, as the baseline")
    if table.empty:
        raise InvalidInputError("there must be at least one position")
    rows = table.sort_values(["person", "time"], kind="stable").drop_duplicates(["person", "time"])
    seconds = rows["time"].to_numpy("datetime64[ns]").astype(np.int64) / 1e9
    lonlat, persons = rows[["lon", "lat"]].to_numpy(np.float64), rows["person"].tolist()
    found = []
    for name, method in methods.items():
        reports, spent = obfuscate_traces(lonlat, persons=persons, times=seconds, method=method, key=key)
        errors, totals = geodesic_lengths(lonlat, reports), np.array([*spent.values()])
        found.append(
            {
                "method": name,
                "mean_error": float(errors.mean()),
                "error_90": float(np.quantile(errors, 0.9)),
                "median": float(np.median(totals)),
                "largest": float(totals.max()),
                "share": float(totals.sum()),
            }
        )
    made = pd.DataFrame(found)
    made["share"] /= made.loc[made["method"] == fresh[0], "share"].item()
    return made
